"""The compiled core: C++ kernels behind one set of names, compiled once for each level of instructions.

On x86-64 there are three builds of the same source, for levels v2, v3 (AVX2) and v4 (AVX-512) of the instruction set.
The best one that the CPU supports is loaded; the environment variable TIGHTROPE_CPU names another. All give the same
bits (`arithmetic.hpp`).
"""

import os
from importlib import import_module
from typing import Any

from tightrope.core import _portable
from tightrope.errors import InvalidInputError

_MODULES = {"v2": "_portable", "v3": "_v3", "v4": "_v4"} if _portable.cpu_level() else {"portable": "_portable"}


def levels() -> tuple[str, ...]:
    """Return the levels that this CPU supports, the best one last."""
    supported = _portable.cpu_level() or 2
    return tuple(_MODULES)[: supported - 1]


def _chosen() -> str:
    """Return the level that TIGHTROPE_CPU names, or else the best one."""
    wanted = os.environ.get("TIGHTROPE_CPU") or levels()[-1]
    if wanted not in levels():
        raise InvalidInputError(
            f"TIGHTROPE_CPU is {wanted!r}; this machine supports {', '.join(levels())}. Unset it for the best one"
        )
    return wanted


level = _chosen()  #: the level in use
_native: Any = import_module(f"tightrope.core.{_MODULES[level]}")
globals().update({name: getattr(_native, name) for name in dir(_native) if not name.startswith("_")})
