"""Interfaces to other software: problems as Gymnasium environments, environments as problems, and TensorBoard.

Names are loaded on first use, since the packages that they need are optional and slow to import.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tightrope.interop.gym_env import ProblemEnv as ProblemEnv
    from tightrope.interop.gym_env import SixTuple as SixTuple
    from tightrope.interop.live import LiveHistory as LiveHistory
    from tightrope.interop.live import LiveSpace as LiveSpace
    from tightrope.interop.live import play_live as play_live
    from tightrope.interop.tensorboard import TensorBoard as TensorBoard
    from tightrope.problems.gym import problem_from_gym as problem_from_gym

_HOME = {
    "LiveHistory": "interop.live",
    "LiveSpace": "interop.live",
    "ProblemEnv": "interop.gym_env",
    "SixTuple": "interop.gym_env",
    "TensorBoard": "interop.tensorboard",
    "play_live": "interop.live",
    "problem_from_gym": "problems.gym",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'tightrope.interop' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"tightrope.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(_HOME)
