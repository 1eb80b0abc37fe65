"""Memory layouts of images: NCHW or NHWC, and PyTorch's channels_last, which is NHWC in memory with the shape NCHW."""
import dataclasses
import typing
import weakref

from . import _core
from ._arguments import floats, one_of, word
from ._tensors import contiguous, is_torch, on_gpu, transposed

LAYOUTS = ("nchw", "nhwc")
_ORDER = {"nchw": (0, 1, 2, 3), "nhwc": (0, 2, 3, 1)}  # the axes of NCHW, outermost first in memory


def other_layout(layout):
    return LAYOUTS[1 - LAYOUTS.index(layout)]


def in_layout(array, layout):
    """A view of an array in the other layout."""
    return transposed(array, _ORDER["nhwc"] if layout == "nhwc" else (0, 3, 1, 2))


@dataclasses.dataclass(frozen=True)
class Images:
    """The arrays with four axes of a call."""

    layout: str  # the layout of the computation, and of `arrays`
    arrays: dict  # by name
    moved: frozenset = frozenset()  # names of the arrays whose memory is in the other layout
    channels_last: bool = False  # whether the caller's arrays have the shape NCHW and are channels_last (PyTorch)
    weights: typing.Any = None  # the caller's arrays

    def shape(self, name):
        """In the order of NCHW."""
        return self._nchw(self.arrays[name].shape, self.layout)

    def given(self, shape):
        """A shape given by the caller, in NCHW order."""
        return self._nchw(shape, "nchw" if self.channels_last else self.layout)

    @staticmethod
    def _nchw(shape, layout):
        first, *others = shape
        return (first, others[2], *others[:2]) if layout == "nhwc" else (first, *others)


def _lies_in(tensor, layout):
    """Whether PyTorch's tensor [N][C][H][W] is contiguous in that layout."""
    expected, shape, strides = 1, tensor.shape, tensor.stride()
    for axis in reversed(_ORDER[layout]):
        if shape[axis] != 1 and strides[axis] != expected:
            return False
        expected *= shape[axis]
    return True


def _is_marked_channels_last(tensor):
    """Whether a tensor that is contiguous in both layouts has the strides of channels_last, as PyTorch keeps them."""
    _, C, H, W = tensor.shape
    nchw, nhwc = (C * H * W, H * W, W, 1), (C * H * W, 1, W * C, C)
    return tensor.stride() == nhwc != nchw


def _require_contiguous(name, array):
    """@raises BadInput if a GPU array has gaps, or permuted axes"""
    if is_torch(array) and not array.is_contiguous():
        hint = "channels_last is supported without layout= only, otherwise " if _lies_in(array, "nhwc") else ""
        raise _core.BadInput(f"{name} = a view with gaps or with its axes exchanged: {hint}pass {name}.contiguous()")
    if hasattr(array, "flags") and not array.flags.c_contiguous:
        raise _core.BadInput(f"{name} = a view with gaps or with its axes exchanged: pass cupy.ascontiguousarray({name})")


def _layouts_of(tensors, strict):
    """The layouts in which each of PyTorch's tensors is contiguous; an empty tensor is contiguous in both.
    @param strict whether there must be one @raises BadInput"""
    lies = {}
    for name, tensor in tensors.items():
        lies[name] = {layout for layout in LAYOUTS if tensor.numel() == 0 or _lies_in(tensor, layout)}
        if not lies[name] and strict:
            raise _core.BadInput(f"{name} = a view with gaps or with its axes exchanged: pass {name}.contiguous() or "
                                 f"{name}.contiguous(memory_format=torch.channels_last)")
        lies[name] = lies[name] or set(LAYOUTS)
    return lies


def _layout_of(images, lies):
    """The layout of a call on PyTorch's tensors: that of its images. If they are contiguous in both layouts, as with
    one channel or one pixel, it is that of the weights, and otherwise that of the first image's strides.
    @raises BadInput if images differ"""
    clear = {name: next(iter(lies[name])) for name in images if len(lies[name]) == 1}
    if len(set(clear.values())) > 1:
        (first, layout), (name, other) = list(clear.items())[:2]
        called = {"nchw": "contiguous", "nhwc": "channels_last"}
        call = f"{name}.contiguous({'memory_format=torch.channels_last' if layout == 'nhwc' else ''})"
        raise _core.BadInput(f"{name} = a tensor that is {called[other]}: {first} is {called[layout]}, and both must have the "
                             f"same memory format; pass {call}")
    if clear:
        return next(iter(clear.values()))
    if len(lies.get("w", LAYOUTS)) == 1:
        return next(iter(lies["w"]))
    return "nhwc" if _is_marked_channels_last(next(iter(images.values()))) else "nchw"


def laid_out(layout, images, **filters):
    """The Images of a call. @param layout the caller's, or None @param images by name, the first one first
    @param filters w, if the call has it @raises BadInput"""
    given, w = {**images, **filters}, filters.get("w")
    if layout is not None:
        layout = one_of("layout", word(layout), LAYOUTS)
    arrays = {name: floats(name, array, (4,)) for name, array in given.items()}
    tensors = {name: array for name, array in given.items() if is_torch(array)}
    there = [on_gpu(array) for array in arrays.values()]
    if any(there):  # a copy must not keep a graph of gradients, and its weights, alive
        arrays = {name: array.detach() if is_torch(array) else array for name, array in arrays.items()}
    if layout is not None or not all(name in tensors for name in (given if any(there) else images)):
        if all(there):
            for name, array in arrays.items():
                _require_contiguous(name, array)
        return Images(layout or "nchw", arrays, weights=w)
    if any(there) and not all(there):
        return Images("nchw", arrays)  # which is rejected
    lies = _layouts_of(tensors, strict=any(there))
    memory = _layout_of({name: tensors[name] for name in images}, lies)
    if not any(there):  # on the host, rungs read NCHW
        return Images("nchw", arrays, channels_last=memory == "nhwc")
    if memory == "nhwc":
        arrays = {name: in_layout(tensor, "nhwc") for name, tensor in arrays.items()}
    return Images(memory, arrays, frozenset(name for name in arrays if memory not in lies[name]), memory == "nhwc", w)


# For PyTorch's weights: id -> (weak reference, the state that the copy depends on, the copy).
_copies = {}


def contiguous_weights(weights, view):
    """A contiguous copy of `view`, a view of the caller's weights with permuted axes. For PyTorch's weights the copy
    is cached as long as they live and are unmodified, for calls in the same stream."""
    if not is_torch(weights) or not on_gpu(weights):
        return contiguous(view)
    import torch
    # Tensors of inference mode do not count writes, and a captured graph may run after they have been modified.
    if weights.is_inference() or torch.cuda.is_current_stream_capturing():
        return contiguous(view)
    depends_on = (weights.data_ptr(), weights._version, weights.dtype, view.shape, view.stride(),
                  torch.cuda.current_stream(weights.device).cuda_stream)
    reference, was, copy = _copies.get(id(weights), (None, None, None))
    if reference is None or reference() is not weights or was != depends_on:
        copy, at = contiguous(view), id(weights)
        _copies[at] = weakref.ref(weights, lambda _: _copies.pop(at, None)), depends_on, copy
    return copy
