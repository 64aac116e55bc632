"""Online reinforcement learning on a budget: see the README for a first run, docs/ for the rest.

Names are loaded on first use, so that `tightrope --help` does not wait for numba and scipy.
"""

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from tightrope.errors import ConvergenceError, InfeasibleError, InvalidInputError, TightropeError
    from tightrope.model import LayeredMDP, Policy
    from tightrope.space import LayeredSpace

_HOME = {
    "ConvergenceError": "errors",
    "InfeasibleError": "errors",
    "InvalidInputError": "errors",
    "LayeredMDP": "model",
    "LayeredSpace": "space",
    "Policy": "model",
    "TightropeError": "errors",
}

__all__ = [
    "ConvergenceError",
    "InfeasibleError",
    "InvalidInputError",
    "LayeredMDP",
    "LayeredSpace",
    "Policy",
    "TightropeError",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'tightrope' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"tightrope.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
