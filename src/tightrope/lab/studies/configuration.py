"""One run, resolved: all that decides on its bits."""

import json
import re
from collections.abc import Iterator
from hashlib import blake2s
from pathlib import Path
from typing import Any

import msgspec

from tightrope.errors import InvalidInputError
from tightrope.lab.study import Named, Records
from tightrope.learners import LearnerBase, make_learner
from tightrope.problems import make
from tightrope.problems.base import Problem
from tightrope.problems.files import load_with_digest

#: The longest name of a folder, before its digest.
LONGEST = 120

#: What is not put into it.
UNSAFE = re.compile(r"[^A-Za-z0-9._=+,-]+")


class Conditions(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """What a learner is up against."""

    problem: Named
    losses: Named | None  # None: the problem's own
    noise: Named | None
    contents: str | None = None  # digest of the files, where the problem is a folder: edited, it is another problem
    place: str | None = None  # where that folder lies, which makes no difference
    #: Limits that are not the problem's own, in own units; left out of files and digests where there are none.
    budgets: dict[str, int | float] | msgspec.UnsetType = msgspec.UNSET

    def make_problem(self) -> Problem:
        """Make the problem; raise InvalidInputError if its files have changed since the study was planned."""
        chosen = chosen_for(self.losses, self.noise)
        if self.place is None:
            problem = make(self.problem.name, **self.problem.options, **chosen)
        else:
            problem, contents = load_with_digest(self.place, **chosen, any_budgets=bool(self.limits))
            if contents != self.contents:
                raise InvalidInputError(f"{self.place} was changed while it was played; run it again")
        return problem.with_budgets(self.limits) if self.limits else problem

    @property
    def limits(self) -> dict[str, int | float]:
        """`budgets`, empty where all are the problem's own."""
        return {} if self.budgets is msgspec.UNSET else self.budgets


class Configuration(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """One run. Equal configurations give equal bits."""

    conditions: Conditions
    learner: Named
    episodes: int
    seed: int
    records: Records

    @property
    def digest(self) -> str:
        """Eight hexadecimal digits that differ where anything does."""
        anywhere = msgspec.structs.replace(self.conditions, place=None)
        return digest(msgspec.structs.replace(self, conditions=anywhere))

    @property
    def name(self) -> str:
        """What its folder is called: readable, and its own."""
        words = [_words(part) for _, part in self._parts()]
        limits = [_words(Named("budget", {name: limit})) for name, limit in self.conditions.limits.items()]
        whole = "-".join([*words, *limits, f"T{self.episodes}", f"seed{self.seed}"])
        return f"{whole[:LONGEST].rstrip('-,')}-{self.digest}"

    @property
    def options(self) -> dict[str, Any]:
        """Options and limits of budgets by the keys of the grid: learner.radius_scale, budget.delay."""
        chosen = {f"{kind}.{key}": value for kind, part in self._parts() for key, value in part.options.items()}
        return chosen | {f"budget.{name}": limit for name, limit in self.conditions.limits.items()}

    def _parts(self) -> Iterator[tuple[str, Named]]:
        """What was chosen, by kind."""
        asked = self.conditions
        parts = {"problem": asked.problem, "losses": asked.losses, "noise": asked.noise, "learner": self.learner}
        return ((kind, part) for kind, part in parts.items() if part is not None)

    @property
    def how(self) -> dict[str, Any]:
        """How it is played, whoever plays."""
        return {
            "episodes": self.episodes,
            "seed": self.seed,
            "records": self.records.count,
            "spacing": self.records.spacing,
            "regret": self.records.regret,
        }

    def make_learner(self, problem: Problem) -> LearnerBase:
        """The learner, for its problem."""
        return make_learner(self.learner.name, problem, episodes=self.episodes, seed=self.seed, **self.learner.options)


def digest(value: msgspec.Struct) -> str:
    """Eight hexadecimal digits of all that is in it."""
    text = json.dumps(msgspec.to_builtins(value), sort_keys=True)
    return blake2s(text.encode(), digest_size=4).hexdigest()


def chosen_for(losses: Named | None, noise: Named | None) -> dict[str, Any]:
    """Losses and noise as problems take them; nothing where the problem's own are meant."""
    parts = (("losses", losses), ("noise", noise))
    return {kind: {"name": part.name} | part.options for kind, part in parts if part is not None}


def _words(choice: Named) -> str:
    words = [Path(choice.name).name, *(f"{key}={_brief(value)}" for key, value in choice.options.items())]
    return "-".join(UNSAFE.sub("-", word).rstrip("-") for word in words)


def _brief(value: Any) -> str:
    """[1, 2, 1] → 1,2,1."""
    match value:
        case dict():
            return ",".join(f"{key}={_brief(inner)}" for key, inner in value.items())
        case list():
            return ",".join(map(_brief, value))
    return str(value)
