"""Problems by name: `make("edge-cloud")`. One environment a file; `PROBLEMS` lists them.

A problem's module is imported when it is made, so that listing names does not wait for numba and scipy.
"""

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tightrope.problems.options import check_options, options_of, unknown

if TYPE_CHECKING:
    from tightrope.problems.base import Problem

__all__ = ["PROBLEMS", "Entry", "make"]


@dataclass(frozen=True)
class Entry:
    """Where a problem is made, and one line about it."""

    summary: str
    maker: str  # "package.module:function"; its options are keyword-only

    def load(self) -> "Callable[..., Problem]":
        """The function that makes the problem."""
        module, _, function = self.maker.partition(":")
        maker: Callable[..., Problem] = getattr(importlib.import_module(module), function)
        return maker

    @property
    def options(self) -> dict[str, Any]:
        """The problem's options and their defaults."""
        return options_of(self.load())


PROBLEMS = {
    "edge-cloud": Entry(
        "host a service near a moving user: changing prices, against delay and energy",
        "tightrope.problems.edge_cloud:edge_cloud",
    ),
    "media-streaming": Entry(
        "fill a player's buffer over a fast or a slow link, on a budget of fast steps",
        "tightrope.problems.media_streaming:media_streaming",
    ),
    "random": Entry(
        "random transitions, losses and constraints of any size, from a seed",
        "tightrope.problems.random:random",
    ),
}


def make(name: str, **options: Any) -> "Problem":
    """The problem called `name`; `PROBLEMS[name].options` lists its options.

    >>> make("media-streaming", losses="switching").budgets
    array([5.])
    """
    if name not in PROBLEMS:
        raise unknown("there is no problem", name, PROBLEMS)
    maker = PROBLEMS[name].load()
    check_options(f"problem {name!r}", maker, options)
    return maker(**options)
