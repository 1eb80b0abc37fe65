"""A call: the problem, its arrays, and the rung that computes it."""
import dataclasses
import difflib
import functools
import inspect
import json
import math
import pathlib
import sys
import typing
import warnings

import numpy

from . import _core
from ._arguments import as_called, shown, word
from ._layouts import contiguous_weights, in_layout, other_layout
from ._tensors import (contiguous, element_type, framework_of, is_torch, like_torch, on_gpu, to_host, with_marks)


class Result(numpy.ndarray):
    """An array with information about its computation.

    Attributes: `rung` (name), `where` ("cpu", "emulated" or "gpu"), and `milliseconds` (of the rung's run, on the
    host clock). Arrays computed from it are ordinary arrays.
    """

    rung: str = None
    where: str = None
    milliseconds: float = None

    def __array_finalize__(self, source):
        if isinstance(source, Result):
            self.rung, self.where, self.milliseconds = source.rung, source.where, source.milliseconds

    def __array_wrap__(self, array, context=None, return_scalar=False):
        return array[()] if return_scalar or array.ndim == 0 else numpy.asarray(array)


@dataclasses.dataclass(frozen=True)
class Call:
    """The request of a call."""

    ladder: str
    problem: _core.Problem
    arrays: dict  # the inputs by name
    outputs: tuple  # names of the returned outputs, in order
    rulebook: typing.Optional["Rulebook"] = None  # of _sparse.py
    allow_transforms: bool = False  # whether a rung with transforms may be selected
    names: dict = dataclasses.field(default_factory=dict)  # the caller's names of arrays that have other names in the core
    sizes: dict = dataclasses.field(default_factory=dict)  # the caller's parameters for other names in errors
    returned: typing.Callable = lambda array: array  # the conversion of each output
    layout: typing.Optional[str] = None  # of the images, if there are any
    other: typing.Optional[typing.Callable] = None  # creates the problem in the other layout
    moved: frozenset = frozenset()  # names of the arrays whose memory is in the other layout
    channels_last: bool = False  # whether images are returned in that memory order, with the shape NCHW
    weights: typing.Any = None  # the caller's arrays
    sizes_of_problem: tuple = ()  # of a convolution: N, C, H, W, K, R, S, pad, stride, groups
    type: str = ""  # precision of the products: "fp32", "tf32" or "16 bits"

    @functools.cached_property
    def on_gpu(self):
        """Whether the arrays are in a GPU's memory. @raises BadInput if only some are"""
        there = {name: on_gpu(array) for name, array in self.arrays.items()}
        if any(there.values()) and not all(there.values()):
            host, gpu = (next(name for name in there if there[name] == side) for side in (False, True))
            raise _core.BadInput(f"{host} = an array on the host: {gpu} is on a GPU, so all arrays must be")
        return any(there.values())


# Operations that are computed by the rungs of another ladder.
SERVED_BY = {"conv2d_transpose": "conv2d_dgrad"}


@functools.cache
def _table():
    rows = _core.rungs()
    return rows + [dict(row, ladder=ladder) for ladder, server in SERVED_BY.items()
                   for row in rows if row["ladder"] == server]


@functools.cache
def _fastest():
    return json.loads((pathlib.Path(__file__).parent / "fastest.json").read_text())


PLACES = ("cpu", "emulated", "gpu")


def candidates(ladder, where, problem=None, allow_transforms=False):
    """The ladder's rungs at that place, the best first: on the CPU by the expected time for the problem, on a GPU by
    measured times. Without either, the last rung of the table comes first.
    @param allow_transforms also rungs with transforms, which save multiplications but have larger rounding errors"""
    if where == "cpu" and problem is not None:
        if names := _core.ranked_rungs(ladder, problem, allow_transforms=allow_transforms):
            return names
    return _measured(ladder, where, allow_transforms)


@functools.cache
def _measured(ladder, where, allow_transforms):
    """The ladder's rungs at that place: first the measured ones, the fastest first, then the others, the last of the
    table first."""
    there = [row["name"] for row in _table() if row["ladder"] == ladder and where in row["where"] and
             (allow_transforms or not row["transforms"])]
    fastest = _fastest().get(SERVED_BY.get(ladder, ladder), [])  # CUDA rungs only
    measured = [name for name in fastest if name in there]
    return measured + [name for name in reversed(there) if name not in measured]


def place(ladder, where):
    """`where`, with "auto" replaced by a place where the ladder has rungs. @raises BadInput"""
    if where == "auto":
        return "gpu" if candidates(ladder, "gpu") else "cpu"
    if where not in PLACES:
        raise _core.BadInput(f"where = {where!r}: it must be auto, {', '.join(PLACES[:-1])} or {PLACES[-1]}")
    if where == "gpu" and not any("gpu" in row["where"] for row in _table()):
        raise _core.BadInput(f"where = {where!r}: this computer, or this build of the module, has no GPU")
    return where


def full_name(ladder, name, where="auto"):
    """The rung with that name; the last word suffices if it is unique, or unique at that place.
    @raises BadInput"""
    if not isinstance(name, str):
        raise _core.BadInput(f"rung = {shown(name)}: it must be a name from convladder.rungs()")
    rows = [row for row in _table() if row["ladder"] == ladder]
    same = [row for row in rows if row["name"] == name or row["name"].endswith("/" + name)]
    if len(same) > 1:
        same = [row for row in same if where in row["where"]] or same
    names = [row["name"] for row in same]
    if len(names) > 1:
        raise _core.BadInput(f"rung = {name!r}: it may be {' or '.join(names)}")
    if not names:
        was = _core.renamed_rungs()
        names = [was[old] for old in was if (old == name or old.endswith("/" + name)) and was[old].split("/")[1] == ladder]
        if len(names) > 1:
            raise _core.BadInput(f"rung = {name!r}: it may be {' or '.join(names)}")
        if names:
            warnings.warn(f"rung = {name!r}: the present name is {names[0]!r}", DeprecationWarning, stacklevel=2)
    if not names:
        short = {row["name"].split("/", 2)[2]: row["name"] for row in rows}
        near = difflib.get_close_matches(name.split("/", 2)[-1], short, 1, 0)
        raise _core.BadInput(f"rung = {name!r}: there is none of that name in {ladder}; the nearest is {short[near[0]]}")
    return names[0]


def _features(N, C, H, W, K, R, S, pad, stride, groups):
    """Features of a problem for the prediction of the fastest rung, scaled so that a difference of 1 is significant."""
    return (math.log2(C / groups), math.log2(K / groups), math.log2(max(1, N * H * W)) / 2, math.log2(R * S),
            float(stride > 1), 8.0 * (groups == C > 1))


def _conversion_us(N, C, H, W, K, R, S, pad, stride, groups, bytes_each):
    """The time to convert the images of a convolution: two launches, and their bytes through memory twice."""
    return 8 + 2 * bytes_each * N * H * W * (C + K / stride**2) / 3e6


@functools.cache
def _measured_problems(ladder, kind):
    """[(sizes, features, [(layout, rung, microseconds)])] of the problems on which the ladder was measured."""
    problems = {}
    for row in _fastest()["measured"].get(SERVED_BY.get(ladder, ladder), []):
        if row["type"] == kind:
            problems.setdefault(tuple(row["sizes"]), []).extend((row["layout"], *each) for each in row["us"].items())
    return [(sizes, _features(*sizes), rows) for sizes, rows in problems.items()]


def by_measurements(call, where):
    """[(layout, rung)] of both layouts, the best first: by the times on the most similar measured problem plus the
    time to convert the images; then by those on the next one."""
    if not call.type:
        return []
    mine, ordered = _features(*call.sizes_of_problem), []
    there = {row["name"] for row in _table() if row["ladder"] == call.ladder and where in row["where"] and
             (call.allow_transforms or not row["transforms"])}
    for sizes, features, rows in _measured_problems(call.ladder, call.type):
        distance = sum(abs(a - b) for a, b in zip(mine, features))
        moved = _conversion_us(*sizes, bytes_each=2 if call.type == "16 bits" else 4)
        ordered += [(distance, us + moved * (layout != call.layout), layout, rung) for layout, rung, us in rows if rung in there]
    return list(dict.fromkeys((layout, rung) for _, _, layout, rung in sorted(ordered)))


_found = {}  # problems with images, which are determined by their text


def _kept(compute):
    """Caches results for a call on images and a place."""

    @functools.wraps(compute)
    def kept(call, where):
        if call.other is None:
            return compute(call, where)
        key = compute.__name__, call.ladder, where, str(call.problem), call.allow_transforms
        if key not in _found:
            if len(_found) >= 4096:
                _found.clear()
            _found[key] = compute(call, where)
        return _found[key]

    return kept


@_kept
def first_that_takes(call, where):
    """The best rung that supports the call's problem there; None if there is none."""
    names = candidates(call.ladder, where, call.problem, call.allow_transforms)
    if where == "gpu":
        names = [rung for layout, rung in by_measurements(call, where) if layout == call.layout] + names
    return next((name for name in names if _core.declines(call.ladder, name, where, call.problem) is None), None)


@functools.cache
def _is_naive(rung):
    """Whether the rung computes a convolution by its definition."""
    return rung.startswith("cuda_naive/") or next(row["kind"] for row in _table() if row["name"] == rung) == "start"


def in_other_layout(call):
    """The same call in the other layout: its images are converted, and its results are converted back.
    @raises BadInput if its arrays do not fit together"""
    _core.require_shapes(call.ladder, call.problem, {name: list(array.shape) for name, array in call.arrays.items()})
    layout = other_layout(call.layout)
    images = {name for name, array in call.arrays.items() if array.ndim == 4}
    arrays = {name: in_layout(array, layout) if name in images else array for name, array in call.arrays.items()}
    return dataclasses.replace(call, problem=call.other(), arrays=arrays, layout=layout, moved=call.moved ^ images)


@_kept
def best_layout(call, where):
    """The layout whose best rung is expected to be fastest. Without measurements, it is the other layout if that has
    a rung and the call's layout has only naive ones."""
    problems = {call.layout: call.problem, other_layout(call.layout): call.other()}
    if where == "gpu":
        for layout, rung in by_measurements(call, where):
            if _core.declines(call.ladder, rung, where, problems[layout]) is None:
                return layout
    name = first_that_takes(call, where)
    if name is not None and not _is_naive(name):
        return call.layout
    there = first_that_takes(in_other_layout(call), where)
    return call.layout if there is None or (name is not None and _is_naive(there)) else other_layout(call.layout)


def in_best_layout(call, rung, where):
    """The call, or in_other_layout(). NCHW is kept if the rungs do not run on a GPU."""
    if rung is not None or call.other is None:
        return call
    where = "gpu" if call.on_gpu else place(call.ladder, word(where))
    if (call.layout == "nchw" and where != "gpu") or best_layout(call, where) == call.layout:
        return call
    return in_other_layout(call)


def in_memory(call):
    """The call with its arrays contiguous in its layout: arrays whose memory is in the other layout are copied."""
    if not call.moved:
        return call
    arrays = dict(call.arrays)
    for name in call.moved:
        arrays[name] = contiguous_weights(call.weights, arrays[name]) if name == "weights" else contiguous(arrays[name])
    return dataclasses.replace(call, arrays=arrays, moved=frozenset())


def as_given(outputs, call, computed):
    """The outputs of the call `computed`, which may be in the other layout, in the form that `call` returns."""
    for name, array in outputs.items():
        if array.ndim != 4:
            continue
        result = array
        if computed.layout != call.layout:
            result = contiguous(in_layout(result, call.layout))
        if call.channels_last and call.layout == "nhwc":
            result = in_layout(result, "nchw")
        if result is not array:
            outputs[name] = with_marks(result, array)
    return outputs


def choose(call, rung, where):
    """(rung, where) of a call."""
    where = word(where)
    if call.on_gpu and where not in ("auto", "gpu"):
        raise _core.BadInput(f"where = {where!r}: tensors on a GPU are computed on the GPU only")
    if call.on_gpu:
        where = "gpu"
    if rung is not None:
        if where != "auto":
            place(call.ladder, where)
        rung = full_name(call.ladder, rung, where)
        if where == "auto":
            places = next(row["where"] for row in _table() if row["name"] == rung)
            where = "gpu" if "gpu" in places else places[0] if places else "cpu"
        return rung, where
    where = place(call.ladder, where)
    if name := first_that_takes(call, where):
        return name, where
    names = candidates(call.ladder, where, call.problem, call.allow_transforms)
    if not names:
        raise _core.BadInput(f"where = {where!r}: {call.ladder} has no rung there")
    why = _core.declines(call.ladder, names[-1], where, call.problem)
    raise _core.UnsupportedProblem(f"no rung supports {call.problem}; {names[-1]}: {why}")


def _require_valid_values(call):
    """Checks on the host the arrays that kernels use as indices, and the numbers of a ring: arrays on a GPU are
    copied, and the call waits for the copies. @raises BadInput"""
    if names := _core.restricted_inputs(call.ladder, call.problem):
        arrays = {name: to_host(call.arrays[name]) for name in names if name in call.arrays}
        _core.require_valid_values(call.ladder, call.problem, arrays, call.rulebook and call.rulebook._core)


def run_in_place(call, rung, framework, where="gpu"):
    """The outputs by name, as tensors of the framework: the rung uses the caller's memory and the framework's stream."""
    if call.ladder == "rulebook":
        raise _core.BadInput("coords = a tensor on a GPU: only rulebook() takes it; for a given rung, arrays must be on the host")
    _require_valid_values(call)
    inputs = {name: framework.capsule(array) for name, array in call.arrays.items()}
    if call.rulebook is not None:
        inputs.update(call.rulebook.inputs_at(where, call.ladder, call.problem))
    outputs = {name: framework.empty(shape, dtype) for name, dtype, shape in _core.outputs(call.ladder, call.problem)}
    words = -(-_core.workspace_bytes(call.ladder, rung, where, call.problem) // 4)
    workspace = framework.empty((words,), "int32")
    _core.run_in_place(call.ladder, rung, where, call.problem, inputs,
                       {name: framework.capsule(array) for name, array in outputs.items()},
                       framework.capsule(workspace), framework.stream)
    return {name: framework.finished(array, rung) for name, array in outputs.items()}


def run(call, rung=None, where="auto"):
    """The outputs by name."""
    with as_called(call.names, call.sizes):
        computed = in_best_layout(call, rung, where)
        outputs = _run(in_memory(computed), *choose(computed, rung, where))
        return outputs if call.layout is None else as_given(outputs, call, computed)


def _run(call, rung, where):
    if call.on_gpu:
        return run_in_place(call, rung, framework_of(*next(iter(call.arrays.items()))))
    book = call.rulebook._core if call.rulebook is not None else None
    outputs, milliseconds = _core.run(call.ladder, rung, where, call.problem, call.arrays, book)
    for name, array in outputs.items():
        outputs[name] = array = array.view(Result)
        array.rung, array.where, array.milliseconds = rung, where, milliseconds
    return outputs


def operation(prepare):
    """Turns a function that returns a request into a function that also takes `rung` and `where`, and runs the
    request."""

    @functools.wraps(prepare)
    def wrapped(*arguments, rung=None, where="auto", **options):
        call = prepare(*arguments, **options)
        outputs = run(call, rung, where)
        values = tuple(call.returned(outputs[name]) for name in call.outputs)
        torchs = "torch" in sys.modules and [each for each in (*arguments, *options.values()) if is_torch(each)]
        if torchs and not call.on_gpu:
            values = tuple(like_torch(value, element_type(torchs[0]), call.channels_last) for value in values)
        return values[0] if len(values) == 1 else values

    parameters = inspect.signature(prepare)
    own = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default)
           for name, default in (("rung", None), ("where", "auto"))]
    wrapped.__signature__ = parameters.replace(parameters=[*parameters.parameters.values(), *own])
    wrapped.prepare = prepare
    return wrapped
