"""Convolutions of images, their columns, and products of matrices."""
from . import _core
from ._arguments import as_called, each, flag, float_type, floats, integer, integers, padding, word
from ._run import Call, operation

_NAMES = {"weights": "w"}  # of arrays that the core calls otherwise


def _activation(name):
    return "none" if name is None else word(name)


def _conv2d(x_shape, w_shape, sizes, pad, stride, dilation, groups, dtype, precision, bias=False, activation=None):
    """The problem of a convolution, from the shapes of x and w. @param sizes whose they are, see as_called()"""
    (N, C, H, W), (K, R, S) = x_shape, w_shape
    options = dict(pad=padding(pad, 2), stride=each("stride", stride, 2), dilation=each("dilation", dilation, 2),
                   groups=integer("groups", groups), bias=bias, activation=_activation(activation), dtype=dtype,
                   precision=word(precision))
    with as_called(sizes=sizes):
        return _core.conv2d_problem(N=N, C=C, H=H, W=W, K=K, R=R, S=S, **options)


def _sizes(x, w, filters):
    """Of which parameter a convolution's sizes are. @param filters where R and S, which do not fit the image, come from"""
    return {**dict.fromkeys("nchw", x), "k": w, **dict.fromkeys("rspq", filters), "shape": "pad"}


@operation
def conv2d(x, w, bias=None, *, pad=0, stride=1, dilation=1, groups=1, activation=None, dtype=None,
           precision="fp32", allow_transforms=False):
    """2-D convolution (cross-correlation, as in every deep learning library).

    x [N][C][H][W], w [K][C / groups][R][S] and bias [K] or None to y [N][K][P][Q].
    pad: one number, (vertical, horizontal) or (top, bottom, left, right); stride and dilation: one number or (h, w).
    activation: None or "relu". precision: "fp32", or "tf32", which allows factors to be rounded to TF32.
    dtype: "float32", "float16" or "bfloat16": x and w are rounded to it, and so is y; bias and sums are float32. None: that
    of x and w where it is one of these, else float32.
    allow_transforms: whether, without `rung`, a rung of Winograd or of Fourier transforms may be chosen. They need fewer
    multiplications; their rounding errors are larger, and of values of very different sizes, overwhelm the small ones.
    """
    dtype, transforms = float_type(dtype, x, w), flag("allow_transforms", allow_transforms)
    x, w = floats("x", x, (4,)), floats("w", w, (4,))
    K, _, R, S = w.shape
    problem = _conv2d(x.shape, (K, R, S), _sizes("x", "w", "w"), pad, stride, dilation, groups, dtype, precision,
                      bias is not None, activation)
    arrays = {"x": x, "weights": w}
    if bias is not None:
        arrays["bias"] = floats("bias", bias, (1,))
    return Call("conv2d", problem, arrays, ("y",), allow_transforms=transforms, names=_NAMES)


@operation
def conv2d_dgrad(dy, w, x_shape, *, pad=0, stride=1, dilation=1, groups=1, dtype=None, precision="fp32",
                 allow_transforms=False):
    """The gradient of conv2d with respect to x: dy [N][K][P][Q] and w to dx, of `x_shape` (N, C, H, W)."""
    dtype, transforms = float_type(dtype, dy, w), flag("allow_transforms", allow_transforms)
    dy, w = floats("dy", dy, (4,)), floats("w", w, (4,))
    K, _, R, S = w.shape
    problem = _conv2d(integers("x_shape", x_shape, (4,)), (K, R, S), _sizes("x_shape", "w", "x_shape"), pad, stride,
                      dilation, groups, dtype, precision)
    return Call("conv2d_dgrad", problem, {"dy": dy, "weights": w}, ("dx",), allow_transforms=transforms, names=_NAMES)


@operation
def conv2d_wgrad(x, dy, kernel, *, pad=0, stride=1, dilation=1, groups=1, dtype=None, precision="fp32",
                 allow_transforms=False):
    """The gradients of conv2d with respect to w and bias: x and dy, for filters of `kernel` (R, S), to (dw, db).

    Both are float32 for every dtype.
    """
    dtype, transforms = float_type(dtype, x, dy), flag("allow_transforms", allow_transforms)
    x, dy = floats("x", x, (4,)), floats("dy", dy, (4,))
    problem = _conv2d(x.shape, (dy.shape[1], *each("kernel", kernel, 2)), _sizes("x", "dy", "kernel"), pad, stride,
                      dilation, groups, dtype, precision)
    return Call("conv2d_wgrad", problem, {"x": x, "dy": dy}, ("dw", "db"), allow_transforms=transforms)


def _columns(N, C, size, image, kernel, pad, stride, dilation):
    """@param image the parameter that the sizes are of"""
    axes = len(size)
    options = dict(kernel=each("kernel", kernel, axes), pad=padding(pad, axes), stride=each("stride", stride, axes),
                   dilation=each("dilation", dilation, axes))
    with as_called(sizes={**dict.fromkeys(("n", "c", "depth", "height", "width"), image),
                          **dict.fromkeys(("windows", "rows", "shape"), "kernel")}):
        return _core.im2col_problem(N=N, C=C, size=size, **options)


@operation
def im2col(x, kernel, *, pad=0, stride=1, dilation=1):
    """The windows of x [N][C] and one to three axes as columns: [N][C * taps][windows].

    kernel, stride, dilation: one number, or one an axis. pad: the same, or before and after each axis, which is (top, bottom,
    left, right) in two dimensions.
    """
    x = floats("x", x, (3, 4, 5))
    problem = _columns(x.shape[0], x.shape[1], list(x.shape[2:]), "x", kernel, pad, stride, dilation)
    return Call("im2col", problem, {"x": x}, ("col",))


@operation
def col2im(col, x_shape, kernel, *, pad=0, stride=1, dilation=1):
    """The adjoint of im2col: columns [N][C * taps][windows], summed back into the shape of x: N, C and one to three extents.

    The other parameters are im2col's.
    """
    col = floats("col", col, (3,))
    shape = integers("x_shape", x_shape, (3, 4, 5))
    problem = _columns(shape[0], shape[1], shape[2:], "x_shape", kernel, pad, stride, dilation)
    return Call("col2im", problem, {"col": col}, ("x",))


@operation
def gemm(a, b, bias=None, *, activation=None, map="row_major",  # `map`: as everywhere in the project
         dtype=None, precision="fp32"):
    """c = a b + bias of matrices [M][K] and [K][N]; bias [N] or None is added to each row.

    activation: None or "relu". map: which block computes which tile; the result is the same.
    dtype: "float32", "float16" or "bfloat16": a and b are rounded to it, and so is c; bias and sums are float32. None: that
    of a and b where it is one of these, else float32.
    """
    dtype = float_type(dtype, a, b)
    a, b = floats("a", a, (2,)), floats("b", b, (2,))
    if a.shape[1] != b.shape[0]:
        raise _core.BadInput(f"b = {b.shape[0]} rows: a has {a.shape[1]} columns")
    with as_called(sizes={"m": "a", "k": "a", "n": "b"}):
        problem = _core.gemm_problem(M=a.shape[0], N=b.shape[1], K=a.shape[1], bias=bias is not None,
                                     activation=_activation(activation), map=word(map), dtype=dtype,
                                     precision=word(precision))
    arrays = {"a": a, "b": b}
    if bias is not None:
        arrays["bias"] = floats("bias", bias, (1,))
    return Call("gemm", problem, arrays, ("c",))


@operation
def fft(x, *, direction="forward", ring="complex", input=None):  # `input`: as everywhere in the project
    """The discrete Fourier transform of lines or planes, float32, real and imaginary parts in the last axis.

    x [N][L][2] becomes y [N][L][2], and planes [N][H][L][2] become [N][H][L][2]. Of real x, [N][L] or [N][H][L], y is
    half of the frequencies, [N][L/2 + 1][2] or [N][H][L/2 + 1][2]: the others are their conjugates. input: "complex" or
    "real"; None: real if x has two axes.

    Of an array `lines` of complex64 [N][L], x is `lines.view("float32").reshape(N, L, 2)`, and the way back is
    `y.view("complex64")[..., 0]`. direction: "forward", or "inverse", which is not divided by L. ring: "complex", or
    "mersenne", whole numbers modulo 2^17 - 1, whose transform is exact (docs/ladders/fft.md): there x has whole numbers from
    -2^24 to 2^24, each of which stands for its remainder.
    """
    if input is not None:
        input = word(input)
    x = floats("x", x, {"complex": (3, 4), "real": (2, 3)}.get(input, (2, 3, 4)))
    if input is None:
        input = "real" if x.ndim == 2 else "complex"
    if input != "real" and x.shape[-1] != 2:
        hint = '; input="real" takes planes of real points' if x.ndim == 3 else ""
        raise _core.BadInput(f"x = {x.shape[-1]} numbers a point: they must be 2, a real and an imaginary part{hint}")
    N, *lengths = x.shape if input == "real" else x.shape[:-1]
    with as_called(sizes=dict.fromkeys(("n", "length", "height", "numbers"), "x")):
        problem = _core.fft_problem(N=N, H=lengths[0] if len(lengths) == 2 else None, L=lengths[-1],
                                    direction=word(direction), ring=word(ring), input=input)
    return Call("fft", problem, {"x": x}, ("y",))


@operation
def tile_map(map, tiles_m, tiles_n, k_steps=1, *, splits=1, batch=1, blocks=132, group_rows=8):
    """Which block computes which part of a product: rows (block, batch, tile m, tile n, first k-step, last + 1)."""
    numbers = dict(tiles_m=tiles_m, tiles_n=tiles_n, k_steps=k_steps, splits=splits, batch=batch, blocks=blocks,
                   group_rows=group_rows)
    with as_called(sizes={"tiles": "tiles_m"}):
        problem = _core.tile_map_problem(map=word(map), **{name: integer(name, n) for name, n in numbers.items()})
    return Call("tile_map", problem, {}, ("units",))
