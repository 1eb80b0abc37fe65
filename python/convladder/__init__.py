"""Convolution on GPUs: every rung of every ladder, called with NumPy arrays.

    import convladder
    y = convladder.conv2d(x, w, pad=1, activation="relu")
    y.rung                                               # the rung that computed it
    print(convladder.compare(convladder.conv2d, x, w))   # compares all rungs that support the problem

Places: "cpu" runs the C++ rungs, "emulated" the CUDA rungs on the CPU, thread by thread, and "gpu" the CUDA rungs on
a GPU, in a build with nvcc. "auto" is gpu if available, otherwise cpu. With `rung=None`, a rung that supports the
problem is selected: on the CPU the one with the least expected time, elsewhere the one that was fastest in the
project's committed measurements (for a convolution on a GPU, on the most similar problem). Rungs that use Winograd or
Fourier transforms have larger rounding errors and are selected only with allow_transforms=True. `python -m
convladder` prints the places of this computer.

Invalid arguments raise BadInput, whose attribute `parameter` is the name of the argument, or "memory".

"""
from ._core import BadInput, DeviceError, UnsupportedProblem, __version__, rungs
from ._compare import Row, Table, compare
from ._dense import col2im, conv2d, conv2d_dgrad, conv2d_transpose, conv2d_wgrad, fft, gemm, im2col, tile_map
from ._run import Result
from ._sparse import (Rulebook, rulebook, sparse_avg_pool, sparse_conv, sparse_dgrad, sparse_global_pool,
                      sparse_max_pool, sparse_max_pool_dgrad, sparse_to_dense, sparse_wgrad, voxelize)

__all__ = ["BadInput", "DeviceError", "Result", "Row", "Rulebook", "Table", "UnsupportedProblem", "col2im", "compare",
           "conv2d", "conv2d_dgrad", "conv2d_transpose", "conv2d_wgrad", "fft", "gemm", "im2col", "rulebook", "rungs",
           "sparse_avg_pool", "sparse_conv", "sparse_dgrad", "sparse_global_pool", "sparse_max_pool",
           "sparse_max_pool_dgrad", "sparse_to_dense", "sparse_wgrad", "tile_map", "voxelize"]

# Messages begin with the parameter: "stride = 0: must be at least 1", "x: it is missing".
BadInput.parameter = property(lambda error: str(error).split(" ")[0].rstrip(":"), doc="The name of the invalid argument.")
