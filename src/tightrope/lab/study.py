"""A study: the learners, problems, losses, options and seeds to run; as a value and as a file (docs/how-to/studies.md).

results = tr.Study(problems=["edge-cloud"], learners=["ucpd-practical", "ucpd"], episodes=2000, seeds=10).run()
"""

import json
from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import msgspec

from tightrope.arguments import LARGEST, MANY, MOST_RUNS, file_path, listed, shown, unknown
from tightrope.errors import InvalidInputError
from tightrope.lab.run import Callback, Regret, Spacing
from tightrope.problems.files.reading import TomlFile, complaint_of

if TYPE_CHECKING:
    from tightrope.lab.engines import Backend
    from tightrope.lab.results import Results

Struct = TypeVar("Struct", bound=msgspec.Struct)

#: The file of a study, in its folder.
STUDY = "study.toml"

#: A name, or a name with options: {name = "ucpd", radius_scale = 0.1}.
Choice = str | dict[str, Any]

#: The learners of a study that names none.
DEFAULT_LEARNERS = ("ucpd-practical", "ucpd")

#: The kinds of keys in the grid, and what has the option or the budget.
KINDS = {"problem": "problem", "losses": "loss sequence", "noise": "noise", "learner": "learner", "budget": "problem"}

#: The first line of a study file that tightrope wrote; a file without it is never replaced.
HEADING = "# A study of tightrope: `tightrope sweep` with this file resumes it, or starts it in another folder.\n"
#: The beginning of that line in every version: it tells such a file from one that a user wrote.
MARK = "# A study of tightrope: "

Horizon = Annotated[int, msgspec.Meta(ge=1, le=LARGEST)]
Seeds = Annotated[int, msgspec.Meta(ge=1, le=MOST_RUNS)]
Seed = Annotated[int, msgspec.Meta(ge=0, le=LARGEST)]


class Named(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """A choice, split into its name and its options."""

    name: str
    options: dict[str, Any] = {}

    @classmethod
    def of(cls, choice: Choice) -> "Named":
        """Split a choice; raise InvalidInputError if it has no name."""
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


class Records(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """`[records]`: how many episodes are recorded, how they are spaced, and at which of them regret is computed."""

    count: Annotated[int, msgspec.Meta(ge=1, le=MANY)] = 60
    spacing: Spacing = "log"
    regret: Regret = "records"


class Grid(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """`[grid]`: the values of each option of problems, losses, noises and learners, and the limits of each budget."""

    problem: dict[str, list[Any]] = {}
    losses: dict[str, list[Any]] = {}
    noise: dict[str, list[Any]] = {}
    learner: dict[str, list[Any]] = {}
    #: By the name of the constraint. An empty one is omitted from files and digests, which are then those of 0.2.
    budget: dict[str, list[int | float]] | msgspec.UnsetType = msgspec.UNSET


class Study(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Every combination of problems, losses, noises, learners, values of the grid, horizons and seeds.

    Parameters
    ----------
    problems, learners, losses, noises : names, folders of problems, or tables of a name and options,
        {"name": "ucpd", "radius_scale": 0.1}. Without losses or noises, each problem has its own.
    grid : values of options by kind, {"learner": {"radius_scale": [0.1, 1]}, "budget": {"delay": [12, 14]}}.
    episodes : the horizon, or several.
    seeds : how many seeds (0, 1, …), or which.
    records : a `Records`, or its fields, {"count": 60, "spacing": "log", "regret": "records"}.
    contents : digests of the problems in folders; written by tightrope.

    Examples
    --------
    >>> import tightrope as tr
    >>> study = tr.Study(problems=["media-streaming"], learners=["ucpd", "uniform"], episodes=100, seeds=2)
    >>> study.all_seeds
    [0, 1]
    """

    problems: Annotated[list[Choice], msgspec.Meta(min_length=1)]
    learners: Annotated[list[Choice], msgspec.Meta(min_length=1)] = msgspec.field(
        default_factory=lambda: list(DEFAULT_LEARNERS)
    )
    losses: list[Choice] = []
    noises: list[Choice] = []
    grid: Grid = Grid()
    episodes: Horizon | Annotated[list[Horizon], msgspec.Meta(min_length=1)] = 20_000
    seeds: Seeds | Annotated[list[Seed], msgspec.Meta(min_length=1)] = 1
    records: Records = Records()
    contents: dict[str, str] = {}

    def __post_init__(self) -> None:
        for name in ("problems", "learners", "losses", "noises"):
            value = getattr(self, name)
            if not isinstance(value, list):
                one = isinstance(value, str | dict)
                msgspec.structs.force_setattr(self, name, [value] if one else listed(value, name))
        for name in ("episodes", "seeds"):
            value = getattr(self, name)
            if not isinstance(value, int | float | list):
                msgspec.structs.force_setattr(self, name, listed(value, name))
        for name, kind in (("grid", Grid), ("records", Records)):
            value = getattr(self, name)
            if not isinstance(value, kind):
                msgspec.structs.force_setattr(self, name, _converted(value, kind, name))

    def checked(self) -> "Study":
        """Return this study after checking its values; raise InvalidInputError for an invalid one."""
        try:
            return _converted(msgspec.to_builtins(self), Study, "the study")
        except (TypeError, ValueError, RecursionError) as error:
            if isinstance(error, InvalidInputError):
                raise
            raise InvalidInputError(f"the study has a value that no file can hold: {error}") from error

    @property
    def horizons(self) -> list[int]:
        """The numbers of episodes, each once."""
        return [self.episodes] if isinstance(self.episodes, int) else list(dict.fromkeys(self.episodes))

    @property
    def all_seeds(self) -> list[int]:
        """The seeds of the study, each once."""
        return list(range(self.seeds)) if isinstance(self.seeds, int) else list(dict.fromkeys(self.seeds))

    def run(
        self,
        folder: str | PathLike[str] | None = None,
        *,
        jobs: int = -1,
        backend: "Backend" = "processes",
        address: str | None = None,
        fresh: bool = False,
        checkpoint_every: float = 10.0,
        callback: Callback | None = None,
        notify: Callable[[str], None] = lambda words: None,
    ) -> "Results":
        """Play all runs that are not finished in `folder`, and return the results of all.

        Parameters
        ----------
        folder : where the results are kept; by default a folder in runs/ that is named after the study, as on the
            command line. Called again, a study continues there.
        jobs : how many runs are played in parallel; -1 is one for each core.
        backend, address : "processes" or "loky" on this machine, "dask" or "ray" on a cluster (docs/how-to/studies.md).
        fresh : discard existing results of these runs.
        checkpoint_every : seconds between two checkpoints of a run.
        callback : called at each record of a run, in this process (docs/how-to/python.md); takes backend="processes".
        notify : called with notes, as text: what changed since the last time, which runs continue.

        Returns
        -------
        Results of the runs that are finished; `failed` says what went wrong with others.
        """
        from tightrope.lab.engines import Engine
        from tightrope.lab.runner import conducted, folder_name

        study = self.checked()
        place = Path("runs", folder_name(study)) if folder is None else file_path(folder, "folder")
        engine = Engine(jobs, backend, address).checked()
        how = {"fresh": fresh, "save_every": checkpoint_every, "callback": callback, "tell": notify}
        with conducted(study, place, engine, **how) as results:  # type: ignore[arg-type]
            return results


def _converted(value: object, kind: type[Struct], name: str) -> Struct:
    """Return `value` as a struct; raise InvalidInputError with its place if it is invalid."""
    try:
        return msgspec.convert(normal(value), kind)
    except msgspec.ValidationError as error:
        keys, words = complaint_of(error, kind)
        raise InvalidInputError(f"{'.'.join([name, *keys]).removeprefix('the study.')}: {words}") from error
    except (ValueError, TypeError, RecursionError) as error:
        raise InvalidInputError(f"{name} is {shown(value)}: {error}") from error


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
    """`value` with integral floats as integers: 1.0 and 1 are the same run, and 1e3 may be a number of episodes."""
    match value:
        case dict():
            return {key: normal(inner) for key, inner in value.items()}
        case list():
            return [normal(inner) for inner in value]
        case float() if value.is_integer() and abs(value) <= LARGEST:
            return int(value)
    return value


def with_values(study: Study, assignments: list[str]) -> Study:
    """Return `study` with assignments such as "learner.radius_scale=0.1,0.3" in its grid, replacing earlier ones.

    An option that is assigned twice takes the values of both.
    """
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
    """Parse values separated by commas as TOML; a value that is not TOML is text."""
    found = []
    for part in _parts(text):
        try:
            found.append(normal(msgspec.toml.decode(f"value = {part}")["value"]))
        except (msgspec.DecodeError, RecursionError):
            found.append(part)
    return found


def _parts(text: str) -> list[str]:
    """Split at commas outside of brackets: [1,2],[1,3] are two parts."""
    parts, depth = [""], 0
    for character in text:
        depth += (character in "[{") - (character in "]}")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts]


# ------------------------------------------------------------------------------------- writing a file


def to_toml(study: Study) -> str:
    """The file of a study with all defaults written out."""
    plain = msgspec.to_builtins(study)
    lines = [f"{key} = {_toml(plain[key])}" for key in plain if key not in ("grid", "records", "contents")]
    for key in ("grid", "records", "contents"):
        inner = plain[key].items() if key != "grid" else _dotted(plain[key]).items()
        lines += ["", f"[{key}]", *(f"{name} = {_toml(value)}" for name, value in inner)] if inner else []
    return HEADING + "\n".join(lines) + "\n"


def _dotted(grid: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """A grid by the keys of the command line: learner.radius_scale."""
    return {f"{kind}.{_key(option)}": values for kind, options in grid.items() for option, values in options.items()}


def _toml(value: Any) -> str:
    match value:
        case dict():
            return "{" + ", ".join(f"{_key(key)} = {_toml(inner)}" for key, inner in value.items()) + "}"
        case list():
            return "[" + ", ".join(map(_toml, value)) + "]"
        case str():
            return _text(value)
        case bool():
            return str(value).lower()
    return repr(value)


def _key(name: str) -> str:
    return name if name.replace("_", "a").replace("-", "a").isalnum() and name.isascii() else _text(name)


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


# ------------------------------------------------------------------------------------- what changed


def differences(before: Study, now: Study) -> list[str]:
    """What changed from one study to the next: a phrase for each change."""
    words = []
    for name in ("problems", "losses", "noises", "learners"):
        old, new = ([str(Named.of(choice)) for choice in getattr(study, name)] for study in (before, now))
        gone, come = [one for one in old if one not in new], [one for one in new if one not in old]
        if gone or come:
            words.append(
                f"{name}: " + ", ".join([*(f"without {one}" for one in gone), *(f"with {one}" for one in come)])
            )
    words += _changed(_by_key(before), _by_key(now))
    edited = [name for name, digest in now.contents.items() if before.contents.get(name, digest) != digest]
    return [*words, *(f"the files of {name} were edited" for name in edited)]


def _by_key(study: Study) -> dict[str, Any]:
    plain = msgspec.to_builtins(study)
    records = {f"records.{name}": value for name, value in plain["records"].items()}
    return {"episodes": study.horizons, "seeds": study.all_seeds} | _dotted(plain["grid"]) | records


def _changed(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    names = [name for name in {**before, **now} if before.get(name) != now.get(name)]
    return [f"{name} {_brief(before.get(name, 'none'))}, now {_brief(now.get(name, 'none'))}" for name in names]


def _brief(value: Any) -> str:
    if isinstance(value, list) and len(value) > 3 and value == list(range(value[0], value[-1] + 1)):
        return f"{value[0]} to {value[-1]}"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
