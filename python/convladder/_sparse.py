"""Sparse convolution and pooling over a rulebook."""
import numpy

from . import _core
from ._arguments import (as_called, each, float_type, floats, host_array, indices, integer, integers, padding, reals, refused,
                         shown, voxel_size, word)
from ._run import Call, operation
from ._tensors import to_host


class Rulebook:
    """The rulebook of a sparse convolution: the input site of each output site and tap. Created by rulebook().

    coords [outputs][1 + axes]: the sites of the output rows; pairs [P][3]: (tap, input row, output row).
    rung, where, milliseconds: of the run that built them.
    """

    def __init__(self, core, coords, pairs):
        self._core = core  # the same in all forms that convolutions read
        self._there = {}  # forms that have been copied to the memory of a place, by (where, name, shape)
        self.coords, self.pairs = coords, pairs
        self.rung, self.where, self.milliseconds = pairs.rung, pairs.where, pairs.milliseconds

    @property
    def inputs(self):
        """Input rows."""
        return self._core.inputs

    @property
    def outputs(self):
        """Output rows."""
        return self._core.outputs

    def table(self):
        """[taps][outputs]: the input row of an output at a tap, or -1."""
        return self._core.table()

    def inputs_at(self, where, ladder, problem):
        """The forms that a problem reads, by name, in the memory of that place; they are kept there as long as the
        rulebook."""
        forms = {}
        for name, shape in _core.forms(self._core, ladder, problem):
            key = where, name, tuple(shape)
            if key not in self._there:
                self._there[key] = _core.uploaded_form(self._core, ladder, problem, name, where)
            forms[name] = self._there[key]
        return forms

    def __repr__(self):
        return f"<Rulebook: {self._core.problem()}; {len(self.pairs)} pairs, {self.outputs} outputs>"


_MOST_AXES = 4


def _sites(coords, shape, host=False):
    """@returns (coords, shape), converted"""
    shape = integers("shape", shape, range(1, 1 + _MOST_AXES))
    coords = indices("coords", coords, (2,), host)
    axes = len(shape)
    if coords.shape[1] != 1 + axes:
        raise _core.BadInput(f"coords = {coords.shape[1]} columns: with {axes} axes there are {1 + axes}, batch index first")
    return coords, shape


def _batch(batch, coords):
    """(samples, the parameter that gives their number): by default the largest batch index plus one."""
    if batch is not None:
        return integer("batch", batch), "batch"
    return integer("coords", int(to_host(coords[:, 0]).max(initial=0)) + 1), "coords"


@operation
def _rulebook(coords, shape, *, mode="subm", kernel=3, stride=1, pad=0, dilation=1, out_padding=0, batch=None):
    coords, shape = _sites(coords, shape, host=True)  # its forms are built on the host, wherever it was found
    axes = len(shape)
    batch, teller = _batch(batch, coords)
    numbers = dict(kernel=kernel, stride=stride, dilation=dilation, out_padding=out_padding)
    with as_called({"out-padding": "out_padding", "batch": teller}, {"sites": "shape", "bytes": "kernel"}):
        problem = _core.rulebook_problem(mode=word(mode), sites=len(coords), batch=batch, shape=shape,
                                         pad=padding(pad, axes, same=False),
                                         **{name: each(name, value, axes) for name, value in numbers.items()})
    return Call("rulebook", problem, {"coords": coords}, ("out_coords", "pairs"))


def rulebook(coords, shape, *, mode="subm", kernel=3, stride=1, pad=0, dilation=1, out_padding=0, batch=None,
             rung=None, where="auto"):
    """Builds the rulebook of a sparse convolution.

    coords [sites][1 + axes]: int32, batch index first, distinct, inside of `shape`, which has one to four extents.
    mode: "subm" (submanifold), "strided", "transposed" or "inverse" (back to the sites of "strided").
    kernel, stride, pad, dilation, out_padding: one number, or one per axis; pad also before and after each axis:
    (before, after, before, after, ...). For "subm" the padding follows from the kernel.

    Raises BadInput for invalid arguments.
    """
    options = dict(mode=mode, kernel=kernel, stride=stride, pad=pad, dilation=dilation, out_padding=out_padding,
                   batch=batch)
    found, pairs = _rulebook(coords, shape, rung=rung, where=where, **options)
    call = _rulebook.prepare(coords, shape, **options)
    return Rulebook(_core.rulebook(call.problem, call.arrays["coords"]), found, pairs)


rulebook.prepare = _rulebook.prepare


def _checked(book):
    if not isinstance(book, Rulebook):
        raise refused("book", book, "it must be a result of rulebook()")
    return book


def _conv(book, Cin, Cout, dtype, precision, bias=False, activation=None):
    """@param Cin, Cout (the parameter that gives them, their number)"""
    with as_called(sizes={"cin": Cin[0], "cout": Cout[0], "shape": Cin[0]}):
        return _core.sparse_conv_problem(_checked(book)._core, Cin[1], Cout[1], dtype, bias,
                                         "none" if activation is None else word(activation), word(precision))


def _pool(book, name, array):
    """@param name of the parameter whose channels are pooled"""
    with as_called(sizes={"cin": name}):
        return _core.sparse_pool_problem(_checked(book)._core, array.shape[1])


@operation
def sparse_conv(features, weights, book, bias=None, *, activation=None, dtype=None, precision="fp32"):
    """Sparse convolution: features [inputs][Cin] and weights [taps][Cin][Cout] (and bias [Cout]) to y
    [outputs][Cout].

    dtype: "float32", "float16" or "bfloat16": features and weights are rounded to it, and so is y; accumulators
    are float32. None: the type of features and weights if both have one of these, otherwise float32. Raises
    BadInput for invalid arguments.
    """
    dtype = float_type(dtype, features, weights)
    features, weights = floats("features", features, (2,)), floats("weights", weights, (3,))
    problem = _conv(book, ("features", features.shape[1]), ("weights", weights.shape[2]), dtype, precision,
                    bias is not None, activation)
    arrays = {"features": features, "weights": weights}
    if bias is not None:
        arrays["bias"] = floats("bias", bias, (1,))
    return Call("sparse_conv", problem, arrays, ("y",), book)


@operation
def sparse_dgrad(dy, weights, book, *, dtype=None, precision="fp32"):
    """The gradient of sparse_conv with respect to its features: dy [outputs][Cout] to dx [inputs][Cin]."""
    dtype = float_type(dtype, dy, weights)
    dy, weights = floats("dy", dy, (2,)), floats("weights", weights, (3,))
    problem = _conv(book, ("weights", weights.shape[1]), ("dy", dy.shape[1]), dtype, precision)
    return Call("sparse_dgrad", problem, {"dy": dy, "weights": weights}, ("dx",), book)


@operation
def sparse_wgrad(features, dy, book, *, dtype=None, precision="fp32"):
    """The gradient of sparse_conv with respect to its weights: dw [taps][Cin][Cout], float32 for every dtype."""
    dtype = float_type(dtype, features, dy)
    features, dy = floats("features", features, (2,)), floats("dy", dy, (2,))
    problem = _conv(book, ("features", features.shape[1]), ("dy", dy.shape[1]), dtype, precision)
    return Call("sparse_wgrad", problem, {"features": features, "dy": dy}, ("dw",), book)


@operation
def sparse_max_pool(features, book):
    """Max pooling over a rulebook: (y [outputs][C], argmax [outputs][C], the input rows with the largest features)."""
    features = floats("features", features, (2,))
    problem = _pool(book, "features", features)
    return Call("sparse_max_pool", problem, {"features": features}, ("y", "argmax"), book)


@operation
def sparse_max_pool_dgrad(dy, argmax, book):
    """The gradient of sparse_max_pool with respect to its features: dy and argmax to dx [inputs][C].

    argmax is the array that sparse_max_pool returned, or selects other input rows of the same output rows; -1 if an
    output row has none. Raises BadInput for invalid arguments.
    """
    dy, argmax = floats("dy", dy, (2,)), indices("argmax", argmax, (2,))
    problem = _pool(book, "dy", dy)
    return Call("sparse_max_pool_dgrad", problem, {"dy": dy, "argmax": argmax}, ("dx",), book)


@operation
def sparse_avg_pool(features, book):
    """Average pooling over a rulebook: features [inputs][C] to y [outputs][C], float32.

    y is the mean over the input rows that the rulebook pairs with an output row: their sum, in float32, divided by
    their number. Missing sites are not counted, as in spconv and unlike PyTorch's avg_pool with or without
    count_include_pad. An output row without any input row is 0. Raises BadInput for invalid arguments.
    """
    features = floats("features", features, (2,))
    problem = _pool(book, "features", features)
    return Call("sparse_avg_pool", problem, {"features": features}, ("y",), book)


@operation
def sparse_global_pool(features, coords, shape, *, reduce="max", batch=None):
    """The maximum or the mean of all sites of each image: features [sites][C] at `coords` to y [batch][C], float32.

    coords, shape: as for rulebook(), distinct and inside of `shape`; the first column is the index of the image that
    a row belongs to, in any order. batch: by default the largest batch index plus one.
    reduce: "max", in which NaN exceeds every number, or "mean", the sum in float32 divided by the number of sites. An
    image without a site is 0. A result has the same bits in every run. Raises BadInput for invalid arguments.
    """
    features = floats("features", features, (2,))
    coords, shape = _sites(coords, shape)
    batch, teller = _batch(batch, coords)
    with as_called({"batch": teller}, {"cin": "features", "sites": "shape", "bytes": "shape"}):
        problem = _core.sparse_global_pool_problem(sites=len(coords), batch=batch, shape=shape, C=features.shape[1],
                                                   reduce=word(reduce))
    return Call("sparse_global_pool", problem, {"features": features, "coords": coords}, ("y",),
                sizes={"memory": teller} if teller == "coords" else {})


@operation
def sparse_to_dense(features, coords, shape, *, batch=None):
    """Copies rows of features [sites][C] at `coords` to a dense tensor [batch][C] and `shape`, with zeros elsewhere.

    coords: as for rulebook(), distinct and inside of `shape`. batch: by default the largest batch index plus one.
    Raises BadInput for invalid arguments.
    """
    features = floats("features", features, (2,))
    coords, shape = _sites(coords, shape)
    batch, teller = _batch(batch, coords)
    with as_called({"batch": teller}, {"cin": "features", "sites": "shape", "bytes": "shape"}):
        problem = _core.sparse_to_dense_problem(sites=len(coords), batch=batch, shape=shape, C=features.shape[1])
    return Call("sparse_to_dense", problem, {"features": features, "coords": coords}, ("x",),
                sizes={"memory": teller} if teller == "coords" else {})


@operation
def voxelize(points, voxel, range):
    """Voxelization of points [n][3 or more] (x, y, z and further measurements): (coords, features) of the voxels with
    points.

    voxel: the side of a voxel, or its three sides along x, y and z. range: (x0, y0, z0, x1, y1, z1); points outside
    of it or with non-finite coordinates are ignored.
    coords [M][4]: int32, batch index 0, z, y, x, sorted; features [M][columns]: the mean of each voxel's points, all
    columns.
    Along each axis the grid of coords has (high - low) / voxel voxels: the nearest integer if the quotient is an
    integer up to rounding, otherwise the next larger one.
    Points in float64 may be far from 0, like map coordinates: they are rounded to float32 relative to the point of
    the range that is nearest to 0. The means are absolute coordinates, summed in float64 and rounded to float32. It
    is an error if neighbouring numbers of the points' type are further apart than the side of a voxel. Raises
    BadInput for invalid arguments.
    """
    stored = host_array("points", points, (2,))  # the number of voxels is known only after a rung has run
    numbers = floats("points", stored, (2,)).astype(numpy.float32, copy=False)
    corners = reals("range", range, (6,))
    with as_called(sizes={"n": "points", "c": "points", "voxels": "voxel"}):
        problem = _core.voxelize_problem(points=len(stored), columns=stored.shape[1], voxel=voxel_size(voxel),
                                         range=corners, type=stored.dtype.name)
        if stored.dtype == numpy.float64:
            numbers = _core.points_in_float(problem, corners, numpy.ascontiguousarray(stored))
    return Call("voxelize", problem, {"points": numbers}, ("out_coords", "features"))
