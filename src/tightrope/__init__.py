"""Online reinforcement learning on a budget: see the README for a first run, docs/ for the rest.

Names are loaded on first use, so that `tightrope --help` does not wait for NumPy. Nothing is imported here,
not even `typing`: before the command handles signals, Ctrl-C would print a traceback.
"""

__version__ = "0.3.0"

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from tightrope import checks as checks
    from tightrope import durable as durable
    from tightrope import interop as interop
    from tightrope import theory as theory
    from tightrope.confidence import BernsteinBox as BernsteinBox
    from tightrope.confidence import Box as Box
    from tightrope.confidence import KLBall as KLBall
    from tightrope.confidence import KnownModel as KnownModel
    from tightrope.confidence import L1Ball as L1Ball
    from tightrope.confidence import PaperRadius as PaperRadius
    from tightrope.durable import DurableLearner as DurableLearner
    from tightrope.errors import CallbackError as CallbackError
    from tightrope.errors import ConvergenceError as ConvergenceError
    from tightrope.errors import InfeasibleError as InfeasibleError
    from tightrope.errors import InvalidInputError as InvalidInputError
    from tightrope.errors import TightropeError as TightropeError
    from tightrope.lab.compare import compare as compare
    from tightrope.lab.figures import plot_comparison as plot_comparison
    from tightrope.lab.history import History as History
    from tightrope.lab.results import Results as Results
    from tightrope.lab.run import Record as Record
    from tightrope.lab.run import Run as Run
    from tightrope.lab.run import Stop as Stop
    from tightrope.lab.run import run as run
    from tightrope.lab.study import Study as Study
    from tightrope.learners import load as load
    from tightrope.learners import make_learner as make_learner
    from tightrope.learners.base import BanditEpisode as BanditEpisode
    from tightrope.learners.base import Episode as Episode
    from tightrope.learners.in_units import InUnits as InUnits
    from tightrope.learners.ucpd import UCPD as UCPD
    from tightrope.learners.ucpd_practical import UCPDPractical as UCPDPractical
    from tightrope.model import LayeredMDP as LayeredMDP
    from tightrope.model import Policy as Policy
    from tightrope.planning.hindsight import solve_cmdp as solve_cmdp
    from tightrope.problems import make as make
    from tightrope.problems.base import Problem as Problem
    from tightrope.problems.factors import Factors as Factors
    from tightrope.problems.files import load_problem as load_problem
    from tightrope.problems.logs import Log as Log
    from tightrope.problems.logs import evaluate as evaluate
    from tightrope.problems.logs import read_log as read_log
    from tightrope.problems.unroll import pad as pad
    from tightrope.problems.unroll import unroll as unroll
    from tightrope.projection.project import project as project
    from tightrope.space import LayeredSpace as LayeredSpace
    from tightrope.ties import Ties as Ties
    from tightrope.units import Units as Units

#: The modules of the public names.
_NAMES = {
    "confidence": "BernsteinBox Box KLBall KnownModel L1Ball PaperRadius",
    "durable": "DurableLearner",
    "errors": "CallbackError ConvergenceError InfeasibleError InvalidInputError TightropeError",
    "lab.compare": "compare",
    "lab.figures": "plot_comparison",
    "lab.history": "History",
    "lab.results": "Results",
    "lab.run": "Record Run Stop run",
    "lab.study": "Study",
    "learners": "load make_learner",
    "learners.base": "BanditEpisode Episode",
    "learners.in_units": "InUnits",
    "learners.ucpd": "UCPD",
    "learners.ucpd_practical": "UCPDPractical",
    "model": "LayeredMDP Policy",
    "planning.hindsight": "solve_cmdp",
    "problems": "make",
    "problems.base": "Problem",
    "problems.factors": "Factors",
    "problems.files": "load_problem",
    "problems.logs": "Log evaluate read_log",
    "problems.unroll": "pad unroll",
    "projection.project": "project",
    "space": "LayeredSpace",
    "ties": "Ties",
    "units": "Units",
}
_HOME = {name: module for module, names in _NAMES.items() for name in names.split()}

#: Modules that are public names, as in `tr.checks.check_problem`.
_MODULES = ("checks", "durable", "interop", "theory")


def __getattr__(name: str) -> "Any":
    import importlib

    if name in _MODULES:
        return importlib.import_module(f"tightrope.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'tightrope' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"tightrope.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*_HOME, *_MODULES, "__version__"])
