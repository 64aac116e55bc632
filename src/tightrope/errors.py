"""What can go wrong, in words. Every error of ours says what is wrong, where, and what to do about it."""


class TightropeError(Exception):
    """Base of every error that tightrope raises on purpose."""


class InvalidInputError(TightropeError, ValueError):
    """Something given to tightrope does not make sense; the message names the place."""


class InfeasibleError(InvalidInputError):
    """No policy can meet the budgets; the message names the budget and by how much it falls short."""


class ConvergenceError(TightropeError, RuntimeError):
    """A solver did not reach its tolerance. Nothing inexact is ever returned in its place."""
