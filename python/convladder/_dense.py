"""Convolutions of images, their column matrices, and GEMMs."""
import functools

from . import _core
from ._arguments import as_called, each, flag, float_type, floats, integer, integers, one_of, padding, refused, word
from ._layouts import laid_out, other_layout
from ._run import Call, operation
from ._tensors import complex_of_parts, has_complex_elements, parts_of

_NAMES = {"weights": "w"}  # arrays with different names in the core


def _activation(name):
    return "none" if name is None else word(name)


def _conv2d(layout, x_shape, w_shape, sizes, pad, stride, dilation, groups, dtype, precision, bias=False, activation=None):
    """The problem of a convolution, from the shapes of x and w. @param sizes the parameter of each size, see
    as_called()"""
    (N, C, H, W), (K, R, S) = x_shape, w_shape
    options = dict(pad=padding(pad, 2), stride=each("stride", stride, 2), dilation=each("dilation", dilation, 2),
                   groups=integer("groups", groups), bias=bias, activation=_activation(activation), dtype=dtype,
                   precision=word(precision), layout=layout)
    with as_called(sizes=sizes):
        return _core.conv2d_problem(N=N, C=C, H=H, W=W, K=K, R=R, S=S, **options)


@functools.cache
def _sizes(x, w, filters, arrays):
    """The parameter of each size of a convolution: that of x or of w.
    @param filters the parameter to name if filters do not fit the image, and `arrays` if arrays are too large"""
    return {**dict.fromkeys("nchw", x), **dict.fromkeys("krs", w), **dict.fromkeys("pq", filters), "shape": arrays}


def _call(ladder, images, problem, sizes, dtype, precision, outputs, bias=None, transforms=False):
    """@param problem creates it for a layout @param sizes N, C, H, W, K, R, S, stride, groups @param bias the given
    one, or None"""
    made = problem(images.layout)
    *sizes, stride, groups = sizes
    kind = "16 bits" if dtype != "float32" else precision
    arrays = {"weights" if name == "w" else name: array for name, array in images.arrays.items()}
    if bias is not None:
        arrays["bias"] = floats("bias", bias, (1,))
    moved = frozenset("weights" if name == "w" else name for name in images.moved)
    return Call(ladder, made, arrays, outputs, allow_transforms=transforms, names=_NAMES, layout=images.layout,
                other=lambda: problem(other_layout(images.layout)), moved=moved, channels_last=images.channels_last,
                weights=images.weights, sizes_of_problem=(*sizes, 0, max(each("stride", stride, 2)), groups), type=kind)


@operation
def conv2d(x, w, bias=None, *, pad=0, stride=1, dilation=1, groups=1, activation=None, dtype=None,
           precision="fp32", allow_transforms=False, layout=None):
    """2-D convolution (cross-correlation, as in every deep learning library).

    x [N][C][H][W], w [K][C / groups][R][S] and bias [K] or None to y [N][K][P][Q].
    pad: one number, (vertical, horizontal), (top, bottom, left, right), or "same": as many zeros as give y ceil(H /
    stride) x ceil(W / stride) pixels; if the number is odd, one more at the bottom or right. stride and dilation: one
    number or (h, w).
    activation: None or "relu". precision: "fp32", or "tf32", which allows operands to be rounded to TF32.
    dtype: "float32", "float16" or "bfloat16": x and w are rounded to it, and so is y; bias and accumulators are
    float32. None: the type of x and w if both have one of these, otherwise float32.
    allow_transforms: whether, without `rung`, a rung with Winograd or Fourier transforms may be selected. It takes
    fewer multiplications, but its rounding errors are larger: they may exceed small values next to much larger ones.
    layout: "nchw", as above, or "nhwc": x [N][H][W][C], w [K][R][S][C / groups], y [N][P][Q][K]. None: "nchw", except
    that PyTorch's tensors may be channels_last, and y is then channels_last, too. On a GPU such a convolution is
    computed in NHWC in the tensors' memory, and weights that are not channels_last are converted. On the host it is
    computed in NCHW.
    Without `rung`, the call is computed in the other layout if that is expected to be faster: x and w are converted,
    and y is converted back. On a GPU this applies to most convolutions in float16 or bfloat16 in NCHW, and in float32
    in NHWC. y.rung is the name of the rung.

    Raises BadInput for invalid arguments.
    """
    dtype, transforms = float_type(dtype, x, w), flag("allow_transforms", allow_transforms)
    images = laid_out(layout, {"x": x}, w=w)
    K, _, R, S = images.shape("w")

    def problem(layout):
        return _conv2d(layout, images.shape("x"), (K, R, S), _sizes("x", "w", "w", "pad"), pad, stride, dilation, groups,
                       dtype, precision, bias is not None, activation)
    return _call("conv2d", images, problem, (*images.shape("x"), K, R, S, stride, groups), dtype, precision, ("y",), bias,
                 transforms)


@operation
def conv2d_dgrad(dy, w, x_shape, *, pad=0, stride=1, dilation=1, groups=1, dtype=None, precision="fp32",
                 allow_transforms=False, layout=None):
    """The gradient of conv2d with respect to x: dy [N][K][P][Q] and w to dx with the shape `x_shape` (N, C, H, W).

    layout: as in conv2d. With "nhwc", dy is [N][P][Q][K], w is [K][R][S][C / groups], and x_shape is (N, H, W, C). If
    dy is channels_last (PyTorch), so is dx; x_shape is then (N, C, H, W).

    Raises BadInput for invalid arguments.
    """
    dtype, transforms = float_type(dtype, dy, w), flag("allow_transforms", allow_transforms)
    images = laid_out(layout, {"dy": dy}, w=w)
    K, _, R, S = images.shape("w")
    x_shape = images.given(integers("x_shape", x_shape, (4,)))

    def problem(layout):
        return _conv2d(layout, x_shape, (K, R, S), _sizes("x_shape", "w", "x_shape", "x_shape"), pad, stride, dilation,
                       groups, dtype, precision)
    return _call("conv2d_dgrad", images, problem, (*x_shape, K, R, S, stride, groups), dtype, precision, ("dx",),
                 transforms=transforms)


@operation
def conv2d_transpose(x, w, bias=None, *, pad=0, stride=1, dilation=1, groups=1, out_padding=0, dtype=None,
                     precision="fp32", allow_transforms=False, layout=None):
    """2-D transposed convolution ("deconvolution"), like torch.nn.functional.conv_transpose2d: the computation of
    conv2d_dgrad.

    x [N][C][H][W], w [C][K / groups][R][S] and bias [K] or None to y [N][K][P][Q], of height (H - 1) * stride - top -
    bottom + dilation * (R - 1) + 1 + out_padding; the width is analogous.
    pad: rows and columns that are removed from y, in the forms of conv2d; "same": as many as leave (H * stride) x (W
    * stride) pixels.
    out_padding: additional rows and columns at the bottom and right, one number or (h, w).
    The other parameters are those of conv2d, except that sums are rounded to dtype before the bias is added in
    float32 and the result is rounded again. With layout="nhwc", x is [N][H][W][C], w is [C][R][S][K / groups], and y
    is [N][P][Q][K].

    Raises BadInput for invalid arguments.
    """
    dtype, transforms = float_type(dtype, x, w), flag("allow_transforms", allow_transforms)
    images = laid_out(layout, {"x": x}, w=w)
    (N, C, H, W), (w_C, group_K, R, S) = images.shape("x"), images.shape("w")
    if w_C != C:
        raise _core.BadInput(f"w = filters of {w_C} input channels: x has {C}")
    groups = integer("groups", groups)
    options = dict(pad=padding(pad, 2), stride=each("stride", stride, 2), dilation=each("dilation", dilation, 2),
                   out_padding=each("out_padding", out_padding, 2), groups=groups, bias=bias is not None, dtype=dtype,
                   precision=word(precision))
    sizes = {**dict.fromkeys("nchw", "x"), **dict.fromkeys("krs", "w"), "shape": "pad"}
    K = group_K * min(max(1, groups), max(1, C))  # invalid groups are rejected

    def problem(layout):
        with as_called({"out-padding": "out_padding"}, sizes):
            return _core.conv2d_transpose_problem(N=N, C=C, H=H, W=W, K=K, R=R, S=S, layout=layout, **options)
    down, across = options["stride"]
    return _call("conv2d_transpose", images, problem, (N, K, H * down, W * across, C, R, S, stride, groups), dtype, precision,
                 ("y",), bias, transforms)


@operation
def conv2d_wgrad(x, dy, kernel, *, pad=0, stride=1, dilation=1, groups=1, dtype=None, precision="fp32",
                 allow_transforms=False, layout=None):
    """The gradients of conv2d with respect to w and bias: x and dy, for filters of `kernel` (R, S), to (dw, db).

    Both are float32 for every dtype.
    layout: as in conv2d. With "nhwc", x is [N][H][W][C], dy is [N][P][Q][K], and dw is [K][R][S][C / groups]. If x
    and dy are channels_last (PyTorch), so is dw; it is an error if only one of them is.

    Raises BadInput for invalid arguments.
    """
    dtype, transforms = float_type(dtype, x, dy), flag("allow_transforms", allow_transforms)
    images = laid_out(layout, {"x": x, "dy": dy})
    sizes = {**_sizes("x", "kernel", "kernel", "kernel"), "k": "dy"}
    filters = images.shape("dy")[1], *each("kernel", kernel, 2)

    def problem(layout):
        return _conv2d(layout, images.shape("x"), filters, sizes, pad, stride, dilation, groups, dtype, precision)
    return _call("conv2d_wgrad", images, problem, (*images.shape("x"), *filters, stride, groups), dtype, precision,
                 ("dw", "db"), transforms=transforms)


def _columns(N, C, size, image, arrays, kernel, pad, stride, dilation):
    """@param image the parameter of the sizes @param arrays the parameter to name if arrays are too large"""
    axes = len(size)
    options = dict(kernel=each("kernel", kernel, axes), pad=padding(pad, axes), stride=each("stride", stride, axes),
                   dilation=each("dilation", dilation, axes))
    with as_called(sizes={**dict.fromkeys(("n", "c", "depth", "height", "width"), image),
                          **dict.fromkeys(("windows", "rows"), "kernel"), "shape": arrays}):
        return _core.im2col_problem(N=N, C=C, size=size, **options)


@operation
def im2col(x, kernel, *, pad=0, stride=1, dilation=1):
    """The windows of x [N][C] and one to three axes as columns: [N][C * taps][windows].

    kernel, stride, dilation: one number, or one per axis. pad: the same, or before and after each axis, which is
    (top, bottom, left, right) in two dimensions, or "same" as in conv2d.

    Raises BadInput for invalid arguments.
    """
    x = floats("x", x, (3, 4, 5))
    problem = _columns(x.shape[0], x.shape[1], list(x.shape[2:]), "x", "kernel", kernel, pad, stride, dilation)
    return Call("im2col", problem, {"x": x}, ("col",))


@operation
def col2im(col, x_shape, kernel, *, pad=0, stride=1, dilation=1):
    """The adjoint of im2col: columns [N][C * taps][windows], summed into the shape of x: N, C and one to three
    extents.

    The other parameters are those of im2col. Raises BadInput for invalid arguments.
    """
    col = floats("col", col, (3,))
    shape = integers("x_shape", x_shape, (3, 4, 5))
    problem = _columns(shape[0], shape[1], shape[2:], "x_shape", "x_shape", kernel, pad, stride, dilation)
    return Call("col2im", problem, {"col": col}, ("x",))


@operation
def gemm(a, b, bias=None, *, transpose_a=False, transpose_b=False, activation=None,
         map="row_major",  # `map`: the name used throughout the project
         dtype=None, precision="fp32"):
    """The GEMM c = a b + bias of matrices [M][K] and [K][N]; bias [N] or None is added to each row.

    Batched: a [batch][M][K] and b [batch][K][N] to c [batch][M][N]. transpose_a: a is [K][M]; transpose_b: b is
    [N][K].
    activation: None or "relu". map: the assignment of tiles to blocks; it does not change the result.
    dtype: "float32", "float16" or "bfloat16": a and b are rounded to it, and so is c; bias and accumulators are
    float32. None: the type of a and b if both have one of these, otherwise float32.

    Raises BadInput for invalid arguments.
    """
    dtype = float_type(dtype, a, b)
    transpose_a, transpose_b = flag("transpose_a", transpose_a), flag("transpose_b", transpose_b)
    a, b = floats("a", a, (2, 3)), floats("b", b, (2, 3))
    if a.shape[:-2] != b.shape[:-2]:
        raise _core.BadInput(f"b = an array of shape {tuple(b.shape)}: it must hold as many matrices as a, of shape "
                             f"{tuple(a.shape)}")
    if a.ndim == 3 and len(a) == 0:
        raise _core.BadInput("a = no matrices: there must be at least one")
    M, K = a.shape[-2:][::-1 if transpose_a else 1]
    b_K, N = b.shape[-2:][::-1 if transpose_b else 1]
    if K != b_K:
        raise _core.BadInput(f"b = {b_K} {'columns' if transpose_b else 'rows'}: a has {K} "
                             f"{'rows' if transpose_a else 'columns'}")
    with as_called(sizes={"m": "a", "k": "a", "n": "b"}):
        problem = _core.gemm_problem(M=M, N=N, K=K, batch=len(a) if a.ndim == 3 else 0, transpose_a=transpose_a,
                                     transpose_b=transpose_b, bias=bias is not None, activation=_activation(activation), map=word(map), dtype=dtype,
                                     precision=word(precision))
    arrays = {"a": a, "b": b}
    if bias is not None:
        arrays["bias"] = floats("bias", bias, (1,))
    return Call("gemm", problem, arrays, ("c",))


def _length_of_half(length, half):
    """The number of points of a line with this half spectrum. @raises BadInput"""
    even = max(1, 2 * (half - 1))
    if length is None:
        return even
    if integer("length", length) < 1 or length // 2 + 1 != half:
        raise refused("length", length, f"x has {half} frequencies up to the middle, those of {even} points"
                      + (f" or {even + 1}" if half > 1 else ""))
    return length


@operation
def fft(x, *, direction="forward", ring="complex", input=None,  # `input`: the name used throughout the project
        length=None):
    """The discrete Fourier transform of lines or planes.

    x of complex64, lines [N][L] or planes [N][H][L], becomes y of complex64 with the same shape. In float32, both
    have real and imaginary parts in an additional axis: x [N][L][2] becomes y [N][L][2], and planes [N][H][L][2]
    become [N][H][L][2]. For real x, float32 [N][L] or [N][H][L], y is half of the spectrum, float32 [N][L/2 + 1][2]
    or [N][H][L/2 + 1][2]; the remaining frequencies are complex conjugates. input: "complex" or "real"; None: real if
    x is float32 with two axes.

    direction: "forward", or "inverse", which does not divide by L. With input="real", the inverse maps half of the
    spectrum, complex64 [N][L/2 + 1] or float32 [N][L/2 + 1][2] (planes likewise), to real points, float32 [N][L] or
    [N][H][L]; length: L, if the even one of the two possible lengths is not meant. ring: "complex", or "mersenne",
    integers modulo 2^17 - 1, whose transform is exact (docs/ladders/fft.md): there x holds integers from -2^24 to
    2^24, which are reduced modulo 2^17 - 1.

    """
    direction = one_of("direction", word(direction), ("forward", "inverse"))
    input = None if input is None else one_of("input", word(input), ("complex", "real"))
    is_complex, to_real = has_complex_elements(x), (direction, input) == ("inverse", "real")
    if is_complex:
        if input == "real" and not to_real:
            raise _core.BadInput("x = complex points: input='real' takes real points forward, and half of their spectrum inverse")
        x, input = parts_of(x), input or "complex"
    x = floats("x", x, {"complex": (3, 4), "real": (3, 4) if to_real else (2, 3)}.get(input, (2, 3, 4)))
    if input is None:
        input = "real" if x.ndim == 2 else "complex"
        if (direction, input) == ("inverse", "real"):
            raise _core.BadInput("direction = 'inverse': x holds real points; the inverse to real points takes half of their "
                                 "spectrum, with input='real'")
    has_parts = input != "real" or to_real
    if has_parts and x.shape[-1] != 2:
        hint = '; input="real" takes planes of real points' if x.ndim == 3 and not to_real else ""
        raise _core.BadInput(f"x = {x.shape[-1]} numbers per point: they must be 2, a real and an imaginary part{hint}")
    N, *lengths = x.shape[:-1] if has_parts else x.shape
    if to_real:
        lengths[-1] = _length_of_half(length, lengths[-1])
    elif length is not None:
        raise refused("length", length, "it is determined by x, except for the inverse with input='real'")
    with as_called(sizes=dict.fromkeys(("n", "length", "height", "numbers"), "x")):
        problem = _core.fft_problem(N=N, H=lengths[0] if len(lengths) == 2 else None, L=lengths[-1],
                                    direction=direction, ring=word(ring), input=input)
    return Call("fft", problem, {"x": x}, ("y",), returned=complex_of_parts if is_complex and not to_real else Call.returned)


@operation
def tile_map(map, tiles_m, tiles_n, k_steps=1, *, splits=1, batch=1, blocks=132, group_rows=8):
    """The tile map of a GEMM: rows (block, batch, tile m, tile n, first k-step, last k-step + 1). Raises BadInput for
    invalid arguments."""
    numbers = dict(tiles_m=tiles_m, tiles_n=tiles_n, k_steps=k_steps, splits=splits, batch=batch, blocks=blocks,
                   group_rows=group_rows)
    with as_called(sizes={"tiles": "tiles_m"}):
        problem = _core.tile_map_problem(map=word(map), **{name: integer(name, n) for name, n in numbers.items()})
    return Call("tile_map", problem, {}, ("units",))
