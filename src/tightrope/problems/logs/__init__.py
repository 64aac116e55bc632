"""Recorded episodes: read and cleaned (`log`), estimated as a problem (`estimate`), and used to evaluate
policies (`evaluation`)."""

from tightrope.problems.logs.estimate import problem_from_log
from tightrope.problems.logs.evaluation import Estimate, Evaluation, evaluate
from tightrope.problems.logs.log import Log, read_log

__all__ = ["Estimate", "Evaluation", "Log", "evaluate", "problem_from_log", "read_log"]
