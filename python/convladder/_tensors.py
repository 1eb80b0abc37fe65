"""Tensors of PyTorch, CuPy and JAX: their location, and new tensors beside them. They are passed as DLPack capsules
(https://dmlc.github.io/dlpack/latest/python_spec.html) without copies.
"""
import numpy

from . import _core

_CUDA = 2  # kDLCUDA of DLPack's DLDeviceType
_LEGACY_DEFAULT_STREAM = 1  # the number in DLPack's Python specification; CUDA's own handle is 0


_FLOAT32 = numpy.dtype(numpy.float32)


def is_plain(array):
    """Whether it is a NumPy array of float32. Most arguments are, and then no further tests are needed."""
    return type(array) is numpy.ndarray and array.dtype is _FLOAT32


def element_type(array):
    """The name of its element type: "float32", "bfloat16", ..."""
    return str(array.dtype).rpartition(".")[2]


def on_gpu(array):
    """Whether it is a tensor in a GPU's memory."""
    if type(array) is numpy.ndarray:
        return False
    device = getattr(array, "__dlpack_device__", None)
    return device is not None and device()[0] == _CUDA


def has_complex_elements(array):
    """Whether its elements are complex numbers."""
    return hasattr(array, "dtype") and element_type(array).startswith("complex")


def parts_of(array):
    """An array of complex numbers with real and imaginary parts in a last axis."""
    if is_torch(array):
        import torch
        return torch.view_as_real(array.resolve_conj())
    if isinstance(array, numpy.ma.MaskedArray):
        return array  # which is rejected
    if on_gpu(array) and not hasattr(array, "get"):  # JAX
        import jax.numpy
        return jax.numpy.stack([array.real, array.imag], axis=-1)
    return array.astype(array.dtype, order="C", copy=False).view(array.real.dtype).reshape(*array.shape, 2)


def complex_of_parts(array):
    """The inverse conversion, from float32."""
    if is_torch(array):
        import torch
        return torch.view_as_complex(array)
    if on_gpu(array) and not hasattr(array, "get"):  # JAX
        return array[..., 0] + 1j * array[..., 1]
    return array.view("complex64")[..., 0]


def is_torch(array):
    """Whether it is a PyTorch tensor, on any device."""
    return type(array).__module__.partition(".")[0] == "torch"


def transposed(array, axes):
    """A view of an array of any library with permuted axes."""
    return array.permute(axes) if is_torch(array) else array.transpose(axes)


def contiguous(array):
    """The array, copied if it is not contiguous. JAX's arrays always are."""
    if is_torch(array):  # an empty tensor is contiguous for PyTorch, whatever its strides are
        return array.contiguous() if array.numel() else array.new_empty(array.shape)
    if hasattr(array, "flags") and not array.flags.c_contiguous:
        return array.copy(order="C")
    return array


def with_marks(array, source):
    """The array with the attributes of another result of PyTorch's; NumPy's Result keeps its own."""
    if is_torch(array):
        vars(array).update(vars(source))
    return array


class Torch:
    """PyTorch's tensors, on its current stream."""

    def __init__(self, like):
        import torch
        self._torch, self._device = torch, like.device
        self.stream = torch.cuda.current_stream(like.device).cuda_stream

    def capsule(self, tensor):
        return tensor.detach().__dlpack__(stream=self.stream or _LEGACY_DEFAULT_STREAM)

    def empty(self, shape, dtype):
        return self._torch.empty(shape, dtype=getattr(self._torch, dtype), device=self._device)

    def finished(self, tensor, rung):
        tensor.rung, tensor.where = rung, "gpu"
        return tensor


class CuPy:
    """CuPy's arrays, on its current stream."""

    def __init__(self, like):
        import cupy
        self._cupy = cupy
        self.stream = cupy.cuda.get_current_stream().ptr

    def capsule(self, tensor):
        return tensor.__dlpack__(stream=self.stream or _LEGACY_DEFAULT_STREAM)

    def empty(self, shape, dtype):
        return self._cupy.empty(shape, dtype)

    def finished(self, tensor, rung):
        return tensor


class Jax:
    """JAX's arrays. JAX does not expose a current stream, and its arrays are immutable: the call uses its own memory
    for outputs, on the default stream, and waits."""

    stream = 0

    def __init__(self, like):
        import jax
        self._jax = jax

    def capsule(self, tensor):
        return tensor.__dlpack__(stream=_LEGACY_DEFAULT_STREAM) if isinstance(tensor, self._jax.Array) else tensor

    def empty(self, shape, dtype):
        return _core.empty("gpu", dtype, list(shape))

    def finished(self, tensor, rung):
        _core.synchronize("gpu")
        return self._jax.dlpack.from_dlpack(tensor)


_FRAMEWORKS = {"torch": Torch, "cupy": CuPy, "jaxlib": Jax, "jax": Jax}


def framework_of(name, array):
    """The framework of a tensor on a GPU. @raises BadInput"""
    package = type(array).__module__.partition(".")[0]
    if package not in _FRAMEWORKS:
        raise _core.BadInput(f"{name} = a GPU tensor of {package}: it must be a tensor of PyTorch, CuPy or JAX")
    return _FRAMEWORKS[package](array)


def to_host(array):
    """The array as a NumPy array, without a copy if it is on the host. bfloat16, which NumPy does not support,
    becomes float32."""
    if is_torch(array):
        array = array.detach().cpu()
        return (array.float() if element_type(array) == "bfloat16" else array).numpy()
    if on_gpu(array) and hasattr(array, "get"):
        return array.get()  # CuPy, which does not convert implicitly
    array = numpy.asarray(array)
    return array.astype(numpy.float32) if element_type(array) == "bfloat16" else array


def like_torch(array, dtype, channels_last=False):
    """A NumPy array as a PyTorch tensor on the host that shares its memory. @param channels_last copies images into
    it"""
    import torch
    tensor = torch.from_numpy(numpy.asarray(array))
    if dtype == "bfloat16":
        tensor = tensor.to(torch.bfloat16)
    if channels_last and tensor.ndim == 4:
        tensor = tensor.contiguous(memory_format=torch.channels_last)
    tensor.rung, tensor.where, tensor.milliseconds = array.rung, array.where, array.milliseconds
    return tensor
