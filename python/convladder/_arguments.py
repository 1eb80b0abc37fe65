"""Converts the arguments of callers to those of the core: every parameter of every function is converted here, or
checked by the core. Invalid values raise BadInput, whose message begins with the name of the parameter.
"""
import operator
import re
import reprlib

import numpy

from . import _core
from ._tensors import element_type, is_plain, on_gpu, to_host

_MOST = 2**31 - 1  # sizes and indices are int32
_LARGEST = float(numpy.finfo(numpy.float32).max)


def shown(value):
    """The value as text for a message: short, and on one line."""
    return " ".join(reprlib.repr(value).split())


def refused(name, value, rule):
    return _core.BadInput(f"{name} = {shown(value)}: {rule}")


class as_called:
    """A context in which errors name the caller's parameters instead of the core's."""

    def __init__(self, arrays={}, sizes={}):
        """@param arrays names that differ between caller and core
        @param sizes the caller's parameter for each size; it is put in front: "x: h = 0: must be at least 1"
        """
        self._arrays, self._sizes = arrays, sizes

    def __enter__(self):
        return self

    def __exit__(self, type, error, traceback):
        if not isinstance(error, _core.BadInput):
            return
        found = re.match(r"[\w-]+", str(error))
        name = found.group() if found else ""
        if name in self._arrays:
            raise _core.BadInput(self._arrays[name] + str(error)[len(name):]) from None
        if name in self._sizes:
            raise _core.BadInput(f"{self._sizes[name]}: {error}") from None


# --- Numbers

def integer(name, value, rule="it must be an integer"):
    """An int32 integer. @raises BadInput"""
    try:
        if isinstance(value, (bool, numpy.bool_)):
            raise TypeError
        number = operator.index(value)
    except TypeError:
        raise refused(name, value, rule) from None
    if not -_MOST <= number <= _MOST:
        raise refused(name, value, "it must be less than 2^31 and more than -2^31")
    return number


def _items(value):
    """The elements of a list; None if it is not a list, or a nested one that NumPy cannot convert."""
    try:
        return list(value) if numpy.ndim(value) == 1 else None
    except (TypeError, ValueError):
        return None


def each(name, value, count):
    """`count` integers, from one number or from `count` numbers. @raises BadInput"""
    if type(value) is int and -_MOST <= value <= _MOST:
        return [value] * count
    rule = "it must be an integer" + (f", or {count} of them" if count > 1 else "")
    items = _items(value)
    if items is None:
        return [integer(name, value, rule)] * count
    if len(items) != count:
        raise refused(name, value, rule)
    return [integer(name, item, rule) for item in items]


def integers(name, value, counts):
    """A list of integers whose length is one of `counts`. @raises BadInput"""
    rule = f"it must be a list of {' or '.join(map(str, counts))} integers"
    items = _items(value)
    if items is None or len(items) not in counts:
        raise refused(name, value, rule)
    return [integer(name, item, rule) for item in items]


def padding(value, axes, same=True):
    """Padding before and after each axis: from one number, one per axis, or two per axis; None for "same", which the
    core converts to numbers. @param same whether "same" is allowed @raises BadInput"""
    if type(value) is int:
        return each("pad", value, 2 * axes)
    if isinstance(value, str):
        if value == "same" and same:
            return None
        raise refused("pad", value, "it must be numbers, or 'same'" if same else
                      "it must be numbers; 'same' is for dense arrays")
    items = _items(value)
    if items is not None and len(items) == 2 * axes:
        return each("pad", value, 2 * axes)
    return [number for number in each("pad", value, axes) for _ in range(2)]


def reals(name, value, counts):
    """Finite float32 numbers whose count is one of `counts`; a single number counts as one. @raises BadInput"""
    rule = f"it must be {' or '.join(map(str, counts))} finite numbers within the range of float32"
    items = _items(value)
    items = [value] if items is None else items
    if len(items) not in counts:
        raise refused(name, value, rule)
    numbers = []
    for item in items:
        try:
            if isinstance(item, (bool, numpy.bool_, str, bytes)):
                raise TypeError
            number = float(item)
        except (TypeError, ValueError, OverflowError):
            raise refused(name, value, rule) from None
        if not abs(number) <= _LARGEST:  # written so that NaN is rejected, too
            raise refused(name, value, rule)
        numbers.append(number)
    return numbers


def voxel_size(value):
    """The sides of a voxel along x, y and z, from one number or three. @raises BadInput"""
    sides = reals("voxel", value, (1, 3))
    return sides * (3 // len(sides))


# --- Words

def word(value):
    """A word for the core, which checks it, whatever its type."""
    text = value if isinstance(value, str) else shown(value)
    return text.encode("utf-8", "backslashreplace").decode()


def one_of(name, value, words):
    """The word, checked before the core sees it, because other parameters depend on it. @raises BadInput"""
    if value not in words:
        raise refused(name, value, f"it must be one of {', '.join(words)}")
    return value


def flag(name, value):
    """@raises BadInput"""
    if not isinstance(value, (bool, numpy.bool_)):
        raise refused(name, value, "it must be True or False")
    return bool(value)


def words(name, value):
    """A list of words, from one word or several. @raises BadInput"""
    items = [value] if isinstance(value, str) else value if isinstance(value, (list, tuple, set, frozenset)) else [None]
    if not all(isinstance(item, str) for item in items):
        raise refused(name, value, "it must be a name, or a list of names")
    return list(items)


def float_type(dtype, *arrays):
    """The name of `dtype`, if it is given; otherwise the type of the arrays if all have the same 16-bit type, and
    float32 otherwise."""
    if dtype is not None:
        return word(dtype if isinstance(dtype, str) else getattr(dtype, "__name__", str(dtype).rpartition(".")[2]))
    if all(map(is_plain, arrays)):
        return "float32"
    types = {element_type(array) if hasattr(array, "dtype") else "float32" for array in arrays}
    return types.pop() if types in ({"float16"}, {"bfloat16"}) else "float32"


# --- Arrays

def _array(name, value, dimensions, host):
    """The value as an array with one of these numbers of axes: a NumPy array, or a tensor that stays on its GPU
    unless `host`. @raises BadInput"""
    if isinstance(value, numpy.ma.MaskedArray):
        raise _core.BadInput(f"{name} = a masked array: masks are not supported; fill it first: {name}.filled(0)")
    array = value
    if host or not on_gpu(value):
        try:
            array = to_host(value)
        except (TypeError, ValueError):
            raise refused(name, value, "it must be an array, or convertible to a NumPy array") from None
    if array.ndim not in dimensions:
        raise _core.BadInput(f"{name} = an array of {array.ndim} axes: it must have {' or '.join(map(str, dimensions))}")
    if any(extent > _MOST for extent in array.shape):
        raise _core.BadInput(f"{name} = an array of shape {tuple(array.shape)}: each extent must be less than 2^31")
    return array


def host_array(name, value, dimensions):
    """The value as a NumPy array of any type. @raises BadInput"""
    return _array(name, value, dimensions, True)


def floats(name, value, dimensions, host=False):
    """A contiguous array of float32, or of float16 if it has that type. A tensor on a GPU stays there unless `host`,
    and is checked by the core. @raises BadInput, also for finite numbers beyond float32"""
    if is_plain(value) and value.ndim in dimensions and value.flags.c_contiguous and 0 < value.size <= _MOST:
        return value
    array = _array(name, value, dimensions, host)
    if on_gpu(array):
        return array
    if array.dtype.kind != "f":
        raise _core.BadInput(f"{name} = elements of type {array.dtype}: they must be float32")
    if array.dtype == numpy.float16:
        return numpy.ascontiguousarray(array)
    with numpy.errstate(over="ignore"):
        result = numpy.ascontiguousarray(array, numpy.float32)
    if array.dtype.itemsize > result.dtype.itemsize:
        beyond = numpy.isfinite(array) & numpy.isinf(result)
        if beyond.any():
            place = tuple(map(int, numpy.argwhere(beyond)[0]))
            raise _core.BadInput(f"{name} = {array[place]!s}: {name}{list(place)} does not fit float32, whose largest number "
                                 f"is {_LARGEST:.8g}")
    return result


def indices(name, value, dimensions, host=False):
    """A contiguous array of int32, from any integers that fit. The core checks the range of the values, also for a
    tensor on a GPU, which stays there unless `host`. @raises BadInput"""
    array = _array(name, value, dimensions, host)
    if on_gpu(array):
        return array
    if array.dtype.kind not in "iu":
        raise _core.BadInput(f"{name} = elements of type {array.dtype}: they must be int32")
    for at in (array.argmin(), array.argmax()) if array.size else ():
        place = tuple(map(int, numpy.unravel_index(at, array.shape)))
        if not -_MOST - 1 <= int(array[place]) <= _MOST:
            raise _core.BadInput(f"{name} = {array[place]}: {name}{list(place)} does not fit int32, which ends at 2^31 - 1")
    return numpy.ascontiguousarray(array, numpy.int32)
