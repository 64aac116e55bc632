"""What is asked for: a problem, learners, episodes and seeds, as plain data."""

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from tightrope.errors import InvalidInputError
from tightrope.problems import PROBLEMS, make
from tightrope.problems.base import Problem
from tightrope.problems.files import load_with_digest


@dataclass(frozen=True, kw_only=True)
class Request:
    """One problem, one or several learners, each with one or several seeds; the same request, the same files."""

    problem: str
    losses: str | None
    learner: str  # or several, with commas
    episodes: int
    seed: int
    seeds: int
    contents: str | None = None  # digest of the files, where the problem is a folder: edited, it is another problem

    def located(self) -> Self:
        """The same, a folder by the shortest way to write it."""
        if not self.is_folder:
            return self
        plain = replace(self, problem=os.path.normpath(self.problem))
        return plain if plain.is_folder else replace(plain, problem=f".{os.sep}{plain.problem}")

    @property
    def learners(self) -> list[str]:
        """Their names, each once."""
        return list(dict.fromkeys(name.strip() for name in self.learner.split(",")))

    @property
    def all_seeds(self) -> range:
        """Seeds follow one another."""
        return range(self.seed, self.seed + self.seeds)

    @property
    def runs(self) -> list[tuple[str, int]]:
        """Learner and seed of each run, in the order of the tables."""
        return [(learner, seed) for learner in self.learners for seed in self.all_seeds]

    @property
    def name(self) -> str:
        """A folder of its own for every request."""
        seeds = f"seed{self.seed}" if self.seeds == 1 else f"seeds{self.seed}-{self.all_seeds[-1]}"
        problem = Path(self.problem).resolve().name if self.is_folder else self.problem
        names = self.learners
        learners = "+".join(names) if len(names) <= 4 else f"{len(names)}-learners"
        parts = [problem, self.losses, learners, f"T{self.episodes}", seeds]
        return "-".join(part for part in parts if part)

    def table_name(self, learner: str, seed: int) -> str:
        """The file that a run is written to."""
        return f"history-seed{seed}.csv" if len(self.learners) == 1 else f"history-{learner}-seed{seed}.csv"

    @property
    def is_folder(self) -> bool:
        """Whether the problem is a folder of somebody's own; a name that we know comes first."""
        path = Path(self.problem)
        return self.problem not in PROBLEMS and (len(path.parts) != 1 or path.is_absolute() or path.exists())

    def make_problem(self) -> tuple[Problem, Self]:
        """The problem, with the losses asked for, and the request for just that: with a digest of what was read."""
        if self.is_folder:
            problem, contents = load_with_digest(self.problem, losses=self.losses)
            if self.contents not in (None, contents):
                raise InvalidInputError(f"{self.problem} was changed while it was played; run it again")
            return problem, replace(self, contents=contents)
        return make(self.problem) if self.losses is None else make(self.problem, losses=self.losses), self
