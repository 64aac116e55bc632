"""How every kernel is compiled: `jit` is numba.njit with an on-disk cache that cannot go stale."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba

Kernel = Callable[..., Any]

#: Nothing that changes a value: one kernel is compiled into several others, and all copies must round alike.
FASTMATH = {"nsz"}


def _package_stamp() -> tuple[float, int]:
    """Newest change and total size of all kernel sources: one kernel may inline any other."""
    stats = [path.stat() for path in Path(__file__).parent.glob("*.py")]
    return max(s.st_mtime for s in stats), sum(s.st_size for s in stats)


def jit(function: Kernel) -> Kernel:
    """Compile `function` on first use, and keep the machine code on disk for the next process."""
    try:
        compiled: Kernel = numba.njit(cache=True, fastmath=FASTMATH, error_model="numpy")(function)
    except RuntimeError:  # neither the package folder nor a user cache folder can be written
        uncached: Kernel = numba.njit(fastmath=FASTMATH, error_model="numpy")(function)
        return uncached
    # numba stamps a cache with the file of the function alone and would miss an edit of a kernel it calls
    cache_file = getattr(getattr(compiled, "_cache", None), "_cache_file", None)
    if cache_file is not None and hasattr(cache_file, "_source_stamp"):
        cache_file._source_stamp = _package_stamp()
    return compiled
