"""Studies that are played in this process, and interrupted."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tightrope import Results, Run, Study
from tightrope.lab.engines import Engine
from tightrope.lab.runner import conducted


def conduct(study: Study, folder: Path, said: list[str] | None = None, **how: Any) -> Results:
    """Conduct it, with one worker; `said` takes what it says."""
    tell = (lambda words: None) if said is None else said.append
    with conducted(study, folder, Engine(jobs=1), tell=tell, **how) as done:
        return done


class PowerCutError(BaseException):
    """An error that a run cannot catch."""


@contextmanager
def cut_after(
    steps: int, monkeypatch: pytest.MonkeyPatch, error: type[BaseException] = PowerCutError
) -> Iterator[None]:
    """The machine goes down after so many episodes."""
    step, left = Run.step, steps

    def stumble(self: Run) -> None:
        nonlocal left
        if left == 0:
            raise error
        left -= 1
        step(self)

    with monkeypatch.context() as patch:
        patch.setattr(Run, "step", stumble)
        yield
