"""Validation of arrays. It is a module of its own so that the help of the command line does not import NumPy."""

from collections.abc import Sized
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from tightrope.arguments import MANY, MOST, real, shown
from tightrope.errors import InvalidInputError

#: The sizes of an array, a letter for any; None: any number of dimensions.
Shape = tuple[int | str, ...] | None

#: The most entries of an array. A broadcast view may be small, while its copy is not.
MOST_NUMBERS = 10 * MOST


def floats(values: object, name: str, shape: Shape) -> NDArray[np.float64]:
    """Return `values` as a contiguous, writable float array of this shape, finite or not."""
    if type(values) is np.ndarray and values.dtype == np.float64 and values.flags.carray and _fits(values, shape):
        return values
    array = _array(values, name, shape, "numbers")
    if array.dtype.kind == "O":
        array = _of_reals(array, name, shape)
    elif array.dtype.kind not in "biuf":
        _refuse(name, shape, "numbers", f"it holds {array.dtype}")
    with np.errstate(over="ignore"):  # of more than 64 bits: they become infinite
        return np.require(array.astype(np.float64, copy=False), requirements=["C", "W"])


def wholes(values: object, name: str, shape: Shape) -> NDArray[np.int64]:
    """Return `values` as a contiguous array of whole numbers of this shape."""
    if type(values) is np.ndarray and values.dtype == np.int64 and values.flags.c_contiguous and _fits(values, shape):
        return values
    array = _array(values, name, shape, "whole numbers")
    if array.size and (array.dtype.kind not in "iu" or array.max() > np.iinfo(np.int64).max):
        _refuse(name, shape, "whole numbers", f"it holds {array.dtype}")
    return np.ascontiguousarray(array, dtype=np.int64)


def finite(array: NDArray[np.float64], name: str) -> NDArray[np.float64]:
    """Return `array` if all entries are finite, or raise InvalidInputError."""
    if not np.isfinite(array).all():
        at = np.unravel_index(int(np.argmin(np.isfinite(array))), array.shape)
        index = ", ".join(str(int(i)) for i in at)
        raise InvalidInputError(f"{name} is {array[at]} at index {index}; every entry must be finite")
    return array


def _array(values: object, name: str, shape: Shape, what: str) -> NDArray[Any]:
    """Return `values` as an array of any type and this shape, or raise InvalidInputError."""
    try:
        many = not isinstance(values, np.ndarray) and isinstance(values, Sized) and len(values) > MANY
        if many and (shape or ())[:1] != (len(values),):  # type: ignore[arg-type]
            _refuse(name, shape, what, f"it has {len(values)} entries")  # type: ignore[arg-type]
        array = np.asarray(values)
        if array.size > MOST_NUMBERS:
            _refuse(name, shape, what, f"it has {array.size} entries")
    except InvalidInputError:
        raise
    except Exception as error:  # ragged lists, objects of other libraries, too little memory
        _refuse(name, shape, what, shown(error), error)
    if array.dtype.kind in "OSUV" and array.ndim == 0:  # not an array of numbers
        _refuse(name, shape, what, f"it is {shown(values)}")
    if array.size == 0 and shape and (0 in shape or (array.ndim == 1 and isinstance(shape[0], str))):
        return array.reshape([n if isinstance(n, int) else 0 for n in shape])
    if not _fits(array, shape):
        raise InvalidInputError(f"{name} has shape {array.shape}; expected {_shown(shape).rstrip()}")
    return array


def _of_reals(array: NDArray[Any], name: str, shape: Shape) -> NDArray[np.float64]:
    """Convert numbers that NumPy stores as objects: fractions, and integers of more than 64 bits."""
    found = [real(value) for value in array.ravel()]
    if None in found:
        _refuse(name, shape, "numbers", f"it holds {shown(array.ravel()[found.index(None)])}")
    return np.array(found, dtype=np.float64).reshape(array.shape)


def _fits(array: NDArray[Any], shape: Shape) -> bool:
    if shape is None or array.shape == shape:
        return True
    sizes = zip(array.shape, shape, strict=False)
    return array.ndim == len(shape) and all(n == m or isinstance(n, str) for m, n in sizes)


def _shown(shape: Shape) -> str:
    return "" if shape is None else f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''}) "


def _refuse(name: str, shape: Shape, what: str, why: str, error: Exception | None = None) -> NoReturn:
    raise InvalidInputError(f"{name} is no {_shown(shape)}array of {what}: {why}") from error
