"""How every kernel is compiled: `jit` is numba.njit with an on-disk cache that cannot go stale.

The cache makes a first projection a matter of 1 s instead of 30 s. numba would renew a kernel only when its own file
changes, not when that of a kernel inside it does; so the stamp that numba compares is replaced by one of all sources.
That reaches for what numba keeps to itself, and `tests/kernels/test_compile.py` fails when numba changes it.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba

Kernel = Callable[..., Any]

#: Nothing that changes a value: one kernel is compiled into several others, and all copies must round alike.
FASTMATH = {"nsz"}

_package = Path(__file__).parents[1]
_sources = {*_package.glob("**/kernels/*.py"), *_package.glob("**/kernels.py")}
_caches: list[Any] = []


def jit(function: Kernel) -> Kernel:
    """Compile `function` on first use, and keep the machine code on disk for the next process.

    While it runs, other threads of Python do, too: whoever reads a policy need not wait for who is learning.
    """
    try:
        compiled: Kernel = numba.njit(cache=True, nogil=True, fastmath=FASTMATH, error_model="numpy")(function)
    except RuntimeError:  # neither the package folder nor a user cache folder can be written
        uncached: Kernel = numba.njit(nogil=True, fastmath=FASTMATH, error_model="numpy")(function)
        return uncached
    cache = getattr(getattr(compiled, "_cache", None), "_cache_file", None)
    if cache is not None and hasattr(cache, "_source_stamp"):
        _caches.append(cache)
        cache._source_stamp = _stamp()
    return compiled


def inlined(function: Kernel) -> Kernel:
    """`jit` for a part of a kernel that is a function for its name's sake: LLVM writes it into its callers.

    A call would copy every array of every argument, some 250 words: a tenth of a microsecond for each chunk.
    """
    part: Kernel = numba.njit(forceinline=True, fastmath=FASTMATH, error_model="numpy")(function)
    return part


def depend_on(source: str) -> None:
    """Compile every kernel anew whenever this file changes too: some of them will contain what is in it."""
    if Path(source) not in _sources and Path(source).is_file():
        _sources.add(Path(source))
        stamp = _stamp()
        for cache in _caches:
            cache._source_stamp = stamp


def _stamp() -> tuple[float, int]:
    """Newest change and total size of all sources: one kernel may contain any other."""
    stats = [path.stat() for path in _sources]
    return max(s.st_mtime for s in stats), sum(s.st_size for s in stats)
