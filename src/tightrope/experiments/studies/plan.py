"""The runs of a study, each with all that decides on its bits."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from hashlib import blake2s
from itertools import product
from pathlib import Path
from typing import Any

import msgspec

from tightrope.arguments import options_of, unknown
from tightrope.errors import InvalidInputError
from tightrope.experiments.studies.changes import named
from tightrope.experiments.studies.study import Choice, Records, Study
from tightrope.learners import learner_called, make_learner
from tightrope.learners.registry import options_of as options_of_learner
from tightrope.problems import PROBLEMS, make
from tightrope.problems.base import Problem
from tightrope.problems.constraints import NOISES
from tightrope.problems.files import load_with_digest
from tightrope.problems.files.folder import name_of
from tightrope.problems.losses import LOSSES

#: A name and its options.
Named = dict[str, Any]

#: The longest name of a folder, before its digest.
LONGEST = 120


class Configuration(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """One run, resolved. Equal configurations give equal bits."""

    problem: Named
    losses: Named | None  # None: the problem's own
    noise: Named | None
    learner: Named
    episodes: int
    seed: int
    records: Records
    contents: str | None = None  # digest of the files, where the problem is a folder: edited, it is another problem
    place: str | None = None  # where that folder lies, which makes no difference

    @property
    def digest(self) -> str:
        """Eight hexadecimal digits that differ where anything does."""
        return digest(msgspec.structs.replace(self, place=None))

    @property
    def name(self) -> str:
        """What its folder is called: readable, and its own."""
        words = [_words(self.problem), *(_words(one) for one in (self.losses, self.noise) if one is not None)]
        whole = "-".join([*words, _words(self.learner), f"T{self.episodes}", f"seed{self.seed}"])
        return f"{re.sub(r'[^A-Za-z0-9._=+-]+', '-', whole)[:LONGEST]}-{self.digest}"

    @property
    def options(self) -> dict[str, Any]:
        """What was chosen beyond names, as it is called on the command line: learner.radius_scale."""
        parts = {"problem": self.problem, "losses": self.losses, "noise": self.noise, "learner": self.learner}
        return {f"{kind}.{key}": value for kind, part in parts.items() for key, value in options(part).items()}

    def make_problem(self) -> Problem:
        """The problem, or a refusal if its files are others than they were."""
        chosen = _chosen(self.losses, self.noise)
        if self.place is None:
            return make(**(self.problem | chosen))
        problem, contents = load_with_digest(self.place, **chosen)
        if contents != self.contents:
            raise InvalidInputError(f"{self.place} was changed while it was played; run it again")
        return problem


def digest(value: msgspec.Struct) -> str:
    """Eight hexadecimal digits of all that is in it."""
    text = json.dumps(msgspec.to_builtins(value), sort_keys=True)
    return blake2s(text.encode(), digest_size=4).hexdigest()


def _chosen(losses: Named | None, noise: Named | None) -> dict[str, Any]:
    return {kind: part for kind, part in (("losses", losses), ("noise", noise)) if part is not None}


def options(choice: Mapping[str, Any] | None) -> Named:
    """All but the name."""
    return {key: value for key, value in (choice or {}).items() if key != "name"}


def _words(choice: Named) -> str:
    return "-".join([Path(str(choice["name"])).name, *(f"{key}={value}" for key, value in options(choice).items())])


def planned(study: Study, beside: Path = Path()) -> list[Configuration]:
    """Every run of a study, in the order of its table; folders of problems are found from `beside`.

    Whatever is wrong is refused here, before anything is played: every problem is made once.
    """
    plan = Plan(study)
    problems = list(plan.problems(beside))  # before the learners, which may have to be compiled
    learners = plan.learners()
    configurations = [
        msgspec.structs.replace(first, episodes=episodes, learner=learner, seed=seed)
        for first in problems
        for episodes, learner, seed in product(study.horizons, learners, study.all_seeds)
    ]
    plan.refuse_unused()
    return list({one.digest: one for one in configurations}.values())  # asked for twice, played once


class Plan:
    """How the lists and the grid of a study unfold."""

    def __init__(self, study: Study) -> None:
        self.study = study
        self.grid: dict[str, dict[str, list[Any]]] = msgspec.to_builtins(study.grid)
        self.known: dict[str, set[str]] = {kind: set() for kind in self.grid}

    def learners(self) -> list[Named]:
        """Every learner with all values of its options."""
        chosen = map(_choice, self.study.learners)
        found = [one for choice in chosen for one in self._unfolded("learner", choice, _learner_options(choice))]
        small = make("random", layer_sizes=[1, 2, 1], n_actions=2)
        for learner in found:  # so that a value that is wrong is found before anything is played
            make_learner(**learner, problem=small, episodes=1)
        return found

    def problems(self, beside: Path) -> Iterator[Configuration]:
        """Every problem with all values of its options, its losses and its noises, as a run of nobody."""
        places: dict[str, Path] = {}
        for choice in map(_choice, self.study.problems):
            place = folder_of(choice["name"], beside)
            if place is not None and places.setdefault(name_of(place), place.resolve()) != place.resolve():
                raise InvalidInputError(f"two folders are called {name_of(place)}, so that no table tells them apart")
            own = {} if place is not None else _problem_options(choice)
            for problem in self._unfolded("problem", choice, set(own) - {"losses", "noise"}):
                for losses, noise in product(
                    self._beside("losses", self.study.losses, problem, own, LOSSES),
                    self._beside("noise", self.study.noises, problem, own, NOISES),
                ):
                    yield _resolved(problem, losses, noise, place, self.study.records)

    def _beside(
        self, kind: str, chosen: list[Choice], problem: Named, own: Named, makers: Mapping[str, Callable[..., object]]
    ) -> list[Named | None]:
        """The losses or noises of a problem: those of the study, or what it says itself; None where nobody does."""
        if kind in problem:
            if chosen:
                raise InvalidInputError(f"{named(problem)} has {kind} of its own, and so has the study; leave out one")
            chosen = [problem[kind]]
        elif not chosen and self.grid[kind] and isinstance(own.get(kind), str | Mapping):
            chosen = [own[kind]]
        found = []
        for choice in map(_choice, chosen):
            if choice["name"] not in makers:
                raise unknown(f"there is no {kind}", choice["name"], makers)
            found += list(self._unfolded(kind, choice, options_of(makers[choice["name"]])))
        return list(found) or [None]

    def _unfolded(self, kind: str, choice: Named, known: Iterable[str]) -> Iterator[Named]:
        """The choice with each combination of the values that the grid has for its options."""
        self.known[kind].update(known)
        values = {option: values for option, values in self.grid[kind].items() if option in set(known)}
        for combination in product(*values.values()):
            yield choice | dict(zip(values, combination, strict=True))

    def refuse_unused(self) -> None:
        """An option that nobody in the study has is a mistake."""
        for kind, values in self.grid.items():
            for option in values:
                if option not in self.known[kind]:
                    raise unknown(f"nothing in the study has the option {kind}.{option}: no", option, self.known[kind])


def folder_of(name: str, beside: Path) -> Path | None:
    """The folder that holds the problem, where it is none of ours."""
    path = Path(name)
    if name in PROBLEMS or not (len(path.parts) != 1 or path.is_absolute() or (beside / path).exists()):
        return None
    return beside / path


def _resolved(
    problem: Named, losses: Named | None, noise: Named | None, place: Path | None, records: Records
) -> Configuration:
    """The configuration of a problem, which is made once to see that it can be."""
    chosen = {key: value for key, value in problem.items() if key not in ("losses", "noise")}
    first = Configuration(problem=chosen, losses=losses, noise=noise, learner={}, episodes=1, seed=0, records=records)
    if place is None:
        first.make_problem()
        return first
    for option in options(chosen):
        raise unknown(f"{place} has no option", option, ["losses", "noise"])
    _, contents = load_with_digest(place, **_chosen(losses, noise))
    named_so = chosen | {"name": name_of(place)}
    return msgspec.structs.replace(first, problem=named_so, contents=contents, place=str(place.resolve()))


def _choice(choice: Choice) -> Named:
    """A name alone, or a table with a name."""
    if isinstance(choice, str):
        return {"name": choice}
    if not isinstance(choice.get("name"), str):
        raise InvalidInputError(f'{choice} has no name; expected something like {{name = "ucpd", radius_scale = 0.1}}')
    return {"name": choice["name"]} | options(choice)


def _problem_options(choice: Named) -> Named:
    if choice["name"] not in PROBLEMS:
        raise unknown("there is no problem", choice["name"], PROBLEMS)
    return PROBLEMS[choice["name"]].options


def _learner_options(choice: Named) -> list[str]:
    return options_of_learner(learner_called(choice["name"]))
