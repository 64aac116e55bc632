"""The problems that tests run over; those whose package is not installed are skipped."""

from typing import Any

import pytest

from tightrope import Problem, make
from tightrope.errors import MissingPackageError
from tightrope.problems import PROBLEMS

NAMES = sorted(PROBLEMS)


def make_or_skip(name: str, **options: Any) -> Problem:
    """The problem, or a skipped test."""
    try:
        return make(name, **options)
    except MissingPackageError as error:
        pytest.skip(str(error))
