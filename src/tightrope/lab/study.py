"""What a study consists of: a TOML file, as plain data (docs/studies.md)."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec

from tightrope.arguments import LARGEST, MANY, MOST_RUNS, unknown
from tightrope.errors import InvalidInputError
from tightrope.lab.run import Regret, Spacing
from tightrope.problems.files.toml import TomlFile

#: A name, or a name with options: {name = "ucpd", radius_scale = 0.1}.
Choice = str | dict[str, Any]


class Named(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """A choice, taken apart."""

    name: str
    options: dict[str, Any] = {}

    @classmethod
    def of(cls, choice: Choice) -> "Named":
        if isinstance(choice, str):
            return cls(choice)
        options = dict(choice)
        name = options.pop("name", None)
        if not isinstance(name, str):
            raise InvalidInputError(
                f'{choice} has no name; expected something like {{name = "ucpd", radius_scale = 0.1}}'
            )
        return cls(name, options)

    def __str__(self) -> str:
        options = ", ".join(f"{key} {value}" for key, value in self.options.items())
        return f"{self.name} ({options})" if options else self.name


#: Who plays if nobody is named.
DEFAULT_LEARNERS = ("ucpd-practical", "ucpd")

#: What the grid sets, by the key that it is set with, and what one of it is called.
KINDS = {"problem": "problem", "losses": "loss sequence", "noise": "noise", "learner": "learner", "budget": "problem"}

Horizon = Annotated[int, msgspec.Meta(ge=1, le=LARGEST)]
Seeds = Annotated[int, msgspec.Meta(ge=1, le=MOST_RUNS)]
Seed = Annotated[int, msgspec.Meta(ge=0, le=LARGEST)]


class Records(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """`[records]`: how many episodes are recorded, how they are spaced, and where regret is computed."""

    count: Annotated[int, msgspec.Meta(ge=1, le=MANY)] = 60
    spacing: Spacing = "log"
    regret: Regret = "records"


class Grid(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """`[grid]`: the values of each option of problems, losses, noises and learners, and the limits of each budget."""

    problem: dict[str, list[Any]] = {}
    losses: dict[str, list[Any]] = {}
    noise: dict[str, list[Any]] = {}
    learner: dict[str, list[Any]] = {}
    #: By the name of the constraint; left out of files and digests where unused, so that they are those of 0.2.
    budget: dict[str, list[int | float]] | msgspec.UnsetType = msgspec.UNSET


class Study(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """The whole file: every problem with every loss sequence, noise, learner, value of the grid, horizon and seed."""

    problems: Annotated[list[Choice], msgspec.Meta(min_length=1)]
    learners: Annotated[list[Choice], msgspec.Meta(min_length=1)] = msgspec.field(
        default_factory=lambda: list(DEFAULT_LEARNERS)
    )
    losses: list[Choice] = []  # none: each problem's own
    noises: list[Choice] = []  # likewise
    grid: Grid = Grid()
    episodes: Horizon | Annotated[list[Horizon], msgspec.Meta(min_length=1)] = 20_000
    seeds: Seeds | Annotated[list[Seed], msgspec.Meta(min_length=1)] = 1  # how many (0, 1, …), or which
    records: Records = Records()
    contents: dict[str, str] = {}  # digests of the folders among the problems, when they were played

    @property
    def horizons(self) -> list[int]:
        """For how many episodes each is played."""
        return [self.episodes] if isinstance(self.episodes, int) else list(dict.fromkeys(self.episodes))

    @property
    def all_seeds(self) -> list[int]:
        """One by one."""
        return list(range(self.seeds)) if isinstance(self.seeds, int) else list(dict.fromkeys(self.seeds))


class StudyFile(TomlFile):
    """A study and the text that it was read from."""

    about = "a study"
    ours = ("contents",)

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        content = normal(self.content)
        for key, kind in (("grid", Grid), ("records", Records)):
            if isinstance(content.get(key), dict):
                content[key] = msgspec.to_builtins(self.read(content[key], kind, key))
        self.study = self.read(content, Study)


def normal(value: Any) -> Any:
    """`value` with whole numbers as such: 1.0 and 1 are one run, and 1e3 may be a number of episodes."""
    match value:
        case dict():
            return {key: normal(inner) for key, inner in value.items()}
        case list():
            return [normal(inner) for inner in value]
        case float() if value.is_integer() and abs(value) <= LARGEST:
            return int(value)
    return value


def with_values(study: Study, assignments: list[str]) -> Study:
    """`study` with "learner.radius_scale=0.1,0.3" and the like in its grid: an option takes all that it is given."""
    grid = msgspec.to_builtins(study.grid)
    given: dict[tuple[str, str], list[Any]] = {}
    for assignment in assignments:
        key, _, text = assignment.partition("=")
        kind, _, option = key.strip().partition(".")
        if not (option and text.strip()):
            raise InvalidInputError(
                f"{assignment!r} sets nothing; expected something like learner.radius_scale=0.1,0.3"
            )
        if kind not in KINDS:
            raise unknown(f"{assignment!r}: nothing has options by the name of", kind, KINDS)
        found = _values(text)
        if kind == "budget" and not all(isinstance(value, int | float) for value in found):
            raise InvalidInputError(f"{assignment!r}: the limit of a budget must be a number")
        given.setdefault((kind, option), []).extend(found)
    for (kind, option), values in given.items():
        grid.setdefault(kind, {})[option] = values
    return msgspec.structs.replace(study, grid=msgspec.convert(grid, Grid))


def with_budgets(study: Study, budgets: Mapping[str, Sequence[float]]) -> Study:
    """`study` with these limits of budgets in its grid, by the name of the constraint."""
    if not budgets:
        return study
    limits = {} if study.grid.budget is msgspec.UNSET else study.grid.budget
    changed = {name: [normal(limit) for limit in values] for name, values in budgets.items()}
    return msgspec.structs.replace(study, grid=msgspec.structs.replace(study.grid, budget=limits | changed))


def _values(text: str) -> list[Any]:
    """Values with commas between them, as TOML knows them; what it does not know is text."""
    found = []
    for part in _parts(text):
        try:
            found.append(normal(msgspec.toml.decode(f"value = {part}")["value"]))
        except (msgspec.DecodeError, RecursionError):
            found.append(part)
    return found


def _parts(text: str) -> list[str]:
    """Cut at commas that are inside no brackets: [1,2],[1,3] are two."""
    parts, depth = [""], 0
    for character in text:
        depth += (character in "[{") - (character in "]}")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts]
