"""Packages that only some of tightrope needs: a clear word when one is missing."""

from tightrope.errors import InvalidInputError


class MissingPackageError(InvalidInputError, ImportError):
    """An optional package is not installed; the message says how to install it."""


def missing(package: str, extra: str) -> MissingPackageError:
    """The error for an optional `package` that could not be imported; `extra` of ours brings it."""
    return MissingPackageError(f"this needs {package}, which is not installed: pip install 'tightrope[{extra}]'")
