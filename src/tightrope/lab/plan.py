"""The runs of a study: one configuration for each combination of its lists and its grid."""

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from hashlib import blake2s
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

import msgspec

from tightrope.arguments import MOST_RUNS, options_of, unknown
from tightrope.errors import InfeasibleError, InvalidInputError
from tightrope.lab.metrics import Comparators
from tightrope.lab.study import KINDS, STUDY, Choice, Named, Records, Study
from tightrope.learners import LearnerBase, learner_called, make_learner
from tightrope.learners.registry import options_of as options_of_learner
from tightrope.problems import PROBLEMS, make
from tightrope.problems.base import Problem
from tightrope.problems.constraints import CONSTRAINTS
from tightrope.problems.files import load_with_digest
from tightrope.problems.files.declaration import FILE
from tightrope.problems.files.folder import name_of
from tightrope.problems.losses import LOSSES

#: The most characters of the name of a folder, without its digest.
LONGEST = 120

#: Characters that are replaced in it.
UNSAFE = re.compile(r"[^A-Za-z0-9._=+,-]+")


class Conditions(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """The problem of a run: its name and options, its losses, its noise, its budgets."""

    problem: Named
    losses: Named | None  # None: the problem's own
    noise: Named | None
    contents: str | None = None  # digest of the files of a problem in a folder: an edited one is another problem
    place: str | None = None  # the path of that folder, which is not a part of the digest
    #: Limits other than the problem's own, in its units; left out of files and digests if empty.
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
        """The limits in `budgets`; empty if all are the problem's own."""
        return {} if self.budgets is msgspec.UNSET else self.budgets


class Configuration(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """One run, with everything that its bits depend on: equal configurations give equal results."""

    conditions: Conditions
    learner: Named
    episodes: int
    seed: int
    records: Records

    @property
    def digest(self) -> str:
        """Eight hexadecimal digits, different for different configurations."""
        anywhere = msgspec.structs.replace(self.conditions, place=None)
        return digest(msgspec.structs.replace(self, conditions=anywhere))

    @property
    def name(self) -> str:
        """The name of its folder: readable, and unique by its digest."""
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
        """Return the choices of problem, losses, noise and learner that are not defaults."""
        asked = self.conditions
        parts = {"problem": asked.problem, "losses": asked.losses, "noise": asked.noise, "learner": self.learner}
        return ((kind, part) for kind, part in parts.items() if part is not None)

    @property
    def how(self) -> dict[str, Any]:
        """The arguments of its `Run`, besides problem and learner."""
        return {
            "episodes": self.episodes,
            "seed": self.seed,
            "records": self.records.count,
            "spacing": self.records.spacing,
            "regret": self.records.regret,
        }

    def make_learner(self, problem: Problem) -> LearnerBase:
        """Make the learner for its problem."""
        return make_learner(self.learner.name, problem, episodes=self.episodes, seed=self.seed, **self.learner.options)


def digest(value: msgspec.Struct) -> str:
    """Eight hexadecimal digits of a hash of all fields."""
    text = json.dumps(msgspec.to_builtins(value), sort_keys=True)
    return blake2s(text.encode(), digest_size=4).hexdigest()


def chosen_for(losses: Named | None, noise: Named | None) -> dict[str, Any]:
    """Losses and noise as arguments of a problem; those that are None are left out."""
    parts = (("losses", losses), ("noise", noise))
    return {kind: {"name": part.name} | part.options for kind, part in parts if part is not None}


def _words(choice: Named) -> str:
    words = [Path(choice.name).name, *(f"{key}={_brief(value)}" for key, value in choice.options.items())]
    return "-".join(UNSAFE.sub("-", word).rstrip("-") for word in words)


def _brief(value: Any) -> str:
    """Return a value as short text for a name: 1,2,1 for [1, 2, 1]."""
    match value:
        case dict():
            return ",".join(f"{key}={_brief(inner)}" for key, inner in value.items())
        case list():
            return ",".join(map(_brief, value))
    return str(value)


def planned(study: Study, beside: Path = Path()) -> list[Configuration]:
    """All runs of a study, in the order of its table; relative folders of problems are looked for in `beside`.

    Makes every problem and learner once, so that errors are found before anything is played.
    """
    plan = Plan(study)
    conditions = list(plan.conditions(beside))  # before the learners, which take longer to make
    learners, horizons, seeds = plan.learners(), study.horizons, study.all_seeds
    _check_room(len(conditions), len(horizons), len(learners), len(seeds))
    configurations = [
        Configuration(conditions=under, episodes=episodes, learner=learner, seed=seed, records=study.records)
        for under, episodes, learner, seed in product(conditions, horizons, learners, seeds)
    ]
    plan.refuse_unused()
    return list({one.digest: one for one in configurations}.values())  # equal runs are played once


class Plan:
    """Expands the lists and the grid of a study."""

    def __init__(self, study: Study) -> None:
        self.study = study
        self.grid: dict[str, dict[str, list[Any]]] = msgspec.to_builtins(study.grid)
        self.known: dict[str, set[str]] = {kind: set() for kind in self.grid}

    def learners(self) -> list[Named]:
        """Every learner with all values of its options."""
        found: list[Named] = []
        for choice in map(Named.of, self.study.learners):
            found += self._unfolded("learner", choice, options_of_learner(learner_called(choice.name)))
        found = list({repr(one): one for one in found}.values())  # equal learners are made once
        small = make("random", layer_sizes=[1, 2, 1], n_actions=2)
        for learner in found:  # finds wrong values before anything is played
            make_learner(learner.name, small, episodes=1, **learner.options)
        return found

    def conditions(self, beside: Path) -> Iterator[Conditions]:
        """Every problem with all values of its options, its losses and its noises."""
        places: dict[str, Path] = {}
        for choice in map(Named.of, self.study.problems):
            place = folder_of(choice.name, beside)
            if place is not None and places.setdefault(name_of(place), place.resolve()) != place.resolve():
                raise InvalidInputError(f"two folders are called {name_of(place)}; rename one of them")
            own = {} if place is not None else _problem_options(choice.name)
            for problem in self._unfolded("problem", choice, set(own) - {"losses", "noise"}):
                for losses, noise in product(
                    self._beside("losses", self.study.losses, problem, own, LOSSES),
                    self._beside("noise", self.study.noises, problem, own, CONSTRAINTS),
                ):
                    yield from self._with_budgets(*_resolved(problem, losses, noise, place, "budget" in self.grid))

    def _with_budgets(self, under: Conditions, problem: Problem) -> Iterator[Conditions]:
        """The conditions with every combination of the grid's limits for the budgets of their problem."""
        self.known.setdefault("budget", set()).update(problem.constraint_names)
        grid = self.grid.get("budget", {})
        values = {name: limits for name, limits in grid.items() if name in problem.constraint_names}
        _check_room(*map(len, values.values()))
        for combination in product(*values.values()):
            limits = dict(zip(values, combination, strict=True))
            if limits and self.study.records.regret != "never":
                _check_feasible(problem, limits)
            yield msgspec.structs.replace(under, budgets=limits) if limits else under

    def _beside(
        self,
        kind: str,
        chosen: list[Choice],
        problem: Named,
        own: Mapping[str, Any],
        makers: Mapping[str, Callable[..., object]],
    ) -> list[Named | None]:
        """The losses or noises of a problem: those of the study, or its own choice; None for its default."""
        if kind in problem.options:
            if chosen:
                raise InvalidInputError(f"{problem} has {kind} of its own, and so has the study; remove one of them")
            chosen = [problem.options[kind]]
        elif not chosen and self.grid[kind] and isinstance(own.get(kind), str | Mapping):
            chosen = [own[kind]]
        found: list[Named | None] = []
        for choice in map(Named.of, chosen):
            if choice.name not in makers:
                raise unknown(f"there is no {KINDS[kind]}", choice.name, makers)
            found += self._unfolded(kind, choice, options_of(makers[choice.name]))
        return found or [None]

    def _unfolded(self, kind: str, choice: Named, known: Iterable[str]) -> Iterator[Named]:
        """The choice with every combination of the grid's values for its options."""
        self.known[kind].update(known)
        values = {option: values for option, values in self.grid[kind].items() if option in set(known)}
        _check_room(*map(len, values.values()))
        for combination in product(*values.values()):
            yield Named(choice.name, choice.options | dict(zip(values, combination, strict=True)))

    def refuse_unused(self) -> None:
        """Refuse keys of the grid that apply to nothing in the study."""
        for kind, values in self.grid.items():
            for option in values:
                if option not in self.known[kind]:
                    what = "budget" if kind == "budget" else "option"
                    raise unknown(f"no {KINDS[kind]} in the study has the {what}", option, self.known[kind])


def _check_feasible(problem: Problem, limits: Mapping[str, float]) -> None:
    """Refuse limits that no policy can meet, by name."""
    try:
        Comparators(problem.with_budgets(limits))
    except InfeasibleError as error:
        words = " and ".join(f"{name} {limit:g}" for name, limit in limits.items())
        raise InfeasibleError(f"{problem.name} with {words}: {error}; see tightrope check") from error


def folder_of(name: str, beside: Path) -> Path | None:
    """The folder of a problem in files, given by the folder or its problem.toml; None for a problem of the suite."""
    path = Path(name)
    place = beside / path
    # os.path, since a name may be too long for a path, or a folder above it unreadable
    there, is_file = os.path.exists, os.path.isfile
    if not name or name in PROBLEMS or not (len(path.parts) != 1 or path.is_absolute() or there(place)):
        return None
    if not is_file(place):
        if is_file(place / STUDY) and not is_file(place / FILE):
            raise InvalidInputError(f"{name} is a study, not a problem; to run it: tightrope sweep {name}")
        return place
    if place.name == FILE:
        return place.parent
    hint = f"; to run a study: tightrope sweep {name}" if place.suffix == ".toml" else ""
    raise InvalidInputError(f"{name} is a file; give the folder of a problem, which holds {FILE}{hint}")


def _check_room(*lengths: int) -> None:
    """Refuse a study of too many runs before they are listed."""
    if prod(lengths) > MOST_RUNS:
        raise InvalidInputError(f"the study has {prod(lengths)} runs or more; at most {MOST_RUNS} are allowed")


def _resolved(
    problem: Named, losses: Named | None, noise: Named | None, place: Path | None, any_budgets: bool
) -> tuple[Conditions, Problem]:
    """The conditions of a problem, and the problem, made once to find what is wrong before anything is played."""
    own = {key: value for key, value in problem.options.items() if key not in ("losses", "noise")}
    if place is None:
        found = Conditions(problem=Named(problem.name, own), losses=losses, noise=noise)
        return found, found.make_problem()
    for option in own:
        raise unknown(f"{place} has no option", option, ["losses", "noise"])
    loaded, contents = load_with_digest(place, **chosen_for(losses, noise), any_budgets=any_budgets)
    under = Conditions(
        problem=Named(name_of(place)), losses=losses, noise=noise, contents=contents, place=str(place.resolve())
    )
    return under, loaded


def _problem_options(name: str) -> dict[str, Any]:
    if name not in PROBLEMS:
        raise unknown("there is no folder and no problem", name, PROBLEMS)
    return PROBLEMS[name].options
