"""Type hints for editors and type checkers. Arguments are NumPy arrays, objects that numpy.asarray accepts, or tensors of
PyTorch, CuPy or JAX; with tensors as arguments, the results are tensors too. tests/test_convladder.py compares this file with
the functions."""
from typing import Any, Callable, Literal, Optional, Sequence, Tuple, Union

import numpy

__version__: str

# An argument is any object that numpy.asarray accepts, or a tensor. A result is a Result or such a tensor; a type checker
# knows only the members that both share with arrays.
Array = Union["Result", Any]
Indices = Any  # an array of integers that fit int32
Where = Literal["auto", "cpu", "emulated", "gpu"]
Number = Union[int, Sequence[int]]  # for all axes, or one each
Pad = Union[Number, Literal["same"]]
Precision = Literal["fp32", "tf32"]
Layout = Literal["nchw", "nhwc"]

class BadInput(ValueError):
    parameter: str

class UnsupportedProblem(ValueError): ...
class DeviceError(RuntimeError): ...

class Result(numpy.ndarray):
    rung: str
    where: str
    milliseconds: float

class Row:
    rung: str
    where: str
    status: Literal["ran", "declined"]
    max_error: Optional[float]
    milliseconds: Optional[float]
    reason: str
    verdict: Optional[Literal["agrees", "differs"]]
    remark: str

class Table(list[Row]): ...

class Rulebook:
    coords: Result
    pairs: Result
    rung: str
    where: str
    milliseconds: float
    @property
    def inputs(self) -> int: ...
    @property
    def outputs(self) -> int: ...
    def table(self) -> numpy.ndarray: ...

def conv2d(x: Array, w: Array, bias: Optional[Array] = None, *, pad: Pad = 0, stride: Number = 1,
           dilation: Number = 1, groups: int = 1, activation: Optional[Literal["none", "relu"]] = None,
           dtype: Any = None, precision: Precision = "fp32", allow_transforms: bool = False,
           layout: Optional[Layout] = None, rung: Optional[str] = None, where: Where = "auto") -> Array: ...
def conv2d_dgrad(dy: Array, w: Array, x_shape: Sequence[int], *, pad: Pad = 0, stride: Number = 1,
                 dilation: Number = 1, groups: int = 1, dtype: Any = None, precision: Precision = "fp32",
                 allow_transforms: bool = False, layout: Optional[Layout] = None, rung: Optional[str] = None,
                 where: Where = "auto") -> Array: ...
def conv2d_transpose(x: Array, w: Array, bias: Optional[Array] = None, *, pad: Pad = 0, stride: Number = 1,
                     dilation: Number = 1, groups: int = 1, out_padding: Number = 0, dtype: Any = None,
                     precision: Precision = "fp32", allow_transforms: bool = False,
                     layout: Optional[Layout] = None, rung: Optional[str] = None, where: Where = "auto") -> Array: ...
def conv2d_wgrad(x: Array, dy: Array, kernel: Number, *, pad: Pad = 0, stride: Number = 1, dilation: Number = 1,
                 groups: int = 1, dtype: Any = None, precision: Precision = "fp32", allow_transforms: bool = False,
                 layout: Optional[Layout] = None, rung: Optional[str] = None, where: Where = "auto") -> Tuple[Array, Array]: ...
def im2col(x: Array, kernel: Number, *, pad: Pad = 0, stride: Number = 1, dilation: Number = 1,
           rung: Optional[str] = None, where: Where = "auto") -> Array: ...
def col2im(col: Array, x_shape: Sequence[int], kernel: Number, *, pad: Pad = 0, stride: Number = 1,
           dilation: Number = 1, rung: Optional[str] = None, where: Where = "auto") -> Array: ...
def gemm(a: Array, b: Array, bias: Optional[Array] = None, *, transpose_a: bool = False, transpose_b: bool = False,
         activation: Optional[Literal["none", "relu"]] = None,
         map: str = "row_major", dtype: Any = None, precision: Precision = "fp32", rung: Optional[str] = None,
         where: Where = "auto") -> Array: ...
def fft(x: Array, *, direction: Literal["forward", "inverse"] = "forward",
        ring: Literal["complex", "mersenne"] = "complex", input: Optional[Literal["complex", "real"]] = None,
        length: Optional[int] = None, rung: Optional[str] = None, where: Where = "auto") -> Array: ...
def tile_map(map: str, tiles_m: int, tiles_n: int, k_steps: int = 1, *, splits: int = 1, batch: int = 1,
             blocks: int = 132, group_rows: int = 8, rung: Optional[str] = None, where: Where = "auto") -> Result: ...
def rulebook(coords: Indices, shape: Sequence[int], *,
             mode: Literal["subm", "strided", "transposed", "inverse"] = "subm", kernel: Number = 3,
             stride: Number = 1, pad: Number = 0, dilation: Number = 1, out_padding: Number = 0,
             batch: Optional[int] = None, rung: Optional[str] = None, where: Where = "auto") -> Rulebook: ...
def sparse_conv(features: Array, weights: Array, book: Rulebook, bias: Optional[Array] = None, *,
                activation: Optional[Literal["none", "relu"]] = None, dtype: Any = None,
                precision: Precision = "fp32", rung: Optional[str] = None, where: Where = "auto") -> Array: ...
def sparse_dgrad(dy: Array, weights: Array, book: Rulebook, *, dtype: Any = None, precision: Precision = "fp32",
                 rung: Optional[str] = None, where: Where = "auto") -> Array: ...
def sparse_wgrad(features: Array, dy: Array, book: Rulebook, *, dtype: Any = None, precision: Precision = "fp32",
                 rung: Optional[str] = None, where: Where = "auto") -> Array: ...
def sparse_max_pool(features: Array, book: Rulebook, *, rung: Optional[str] = None,
                    where: Where = "auto") -> Tuple[Array, Array]: ...
def sparse_max_pool_dgrad(dy: Array, argmax: Indices, book: Rulebook, *, rung: Optional[str] = None,
                          where: Where = "auto") -> Array: ...
def sparse_avg_pool(features: Array, book: Rulebook, *, rung: Optional[str] = None,
                    where: Where = "auto") -> Array: ...
def sparse_global_pool(features: Array, coords: Indices, shape: Sequence[int], *, reduce: Literal["max", "mean"] = "max",
                       batch: Optional[int] = None, rung: Optional[str] = None, where: Where = "auto") -> Array: ...
def sparse_to_dense(features: Array, coords: Indices, shape: Sequence[int], *, batch: Optional[int] = None,
                    rung: Optional[str] = None, where: Where = "auto") -> Array: ...
def voxelize(points: Array, voxel: Union[float, Sequence[float]], range: Sequence[float], *, rung: Optional[str] = None,
             where: Where = "auto") -> Tuple[Array, Array]: ...
def compare(function: Callable[..., Any], *arguments: Any, rungs: Union[None, str, Sequence[str]] = None,
            where: Union[None, str, Sequence[str]] = None, **options: Any) -> Table: ...
def rungs() -> list[dict[str, Any]]: ...
