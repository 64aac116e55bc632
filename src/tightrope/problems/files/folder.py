"""A problem from a folder: `problem.toml` and the tables that it names. See `docs/how-to/your-own-problem.md`.

Errors name the file, the line and the column, in the names and units of the files.
"""

import hashlib
import os
from dataclasses import replace
from importlib.resources import files
from os import PathLike
from pathlib import Path

import numpy as np

from tightrope.arguments import file_path
from tightrope.errors import InfeasibleError, InvalidInputError
from tightrope.problems.base import Problem
from tightrope.problems.constraints import NoiseChoice, Replay, largest_factor
from tightrope.problems.factors import Form
from tightrope.problems.files.charges import Charges, FormCharges, columns, parsed
from tightrope.problems.files.declaration import FILE, Toml
from tightrope.problems.files.dynamics import Dynamics, not_known
from tightrope.problems.files.reading import read_regular
from tightrope.problems.files.tables import MOST_BYTES, Table, read_table
from tightrope.problems.losses import LossChoice
from tightrope.space import FloatArray
from tightrope.storage.files import write_bytes

#: The columns that identify a row; only losses and uses can also have episodes.
KEYS = ("state", "action", "next_state", "step")


def load_problem(
    folder: str | PathLike[str], *, losses: LossChoice | None = None, noise: NoiseChoice | None = None
) -> Problem:
    """Read the problem in `folder`.

    Losses and constraints are scaled to Assumption 2; `Problem.units` converts back.

    Parameters
    ----------
    folder : the folder with `problem.toml` and its tables; or that file.
    losses : a loss sequence, in place of the one in the folder.
    noise : the noise of the constraints, in place of the one in the folder.

    Returns
    -------
    Problem : the problem.

    Raises
    ------
    InvalidInputError : if anything in the files is wrong, with file, line and column.
    InfeasibleError : if no policy can meet the budgets.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "problem.toml").write_text('''
    ... name = "shop"
    ... n_steps = 2
    ... start = "open"
    ... transitions = "moves.csv"
    ... [loss]
    ... table = "moves.csv"
    ... bounds = [0, 3]
    ... [constraints.hours]
    ... table = "moves.csv"
    ... budget = 1
    ... ''')
    ...     _ = Path(folder, "moves.csv").write_text('''
    ... state,action,next_state,probability,loss,hours
    ... open,work,open,1,0,1
    ... open,rest,open,1,3,0
    ... '''.lstrip())
    ...     load_problem(folder).space
    LayeredSpace(3 states in 3 layers, 2 actions, 4 tuples)
    """
    return load_with_digest(file_path(folder, "folder"), losses=losses, noise=noise)[0]


def load_with_digest(
    folder: str | PathLike[str],
    *,
    losses: LossChoice | None = None,
    noise: NoiseChoice | None = None,
    any_budgets: bool = False,
) -> tuple[Problem, str]:
    """Read a problem as `load_problem` does, and return it with a digest of every byte that was read.

    The digest changes with the files, not with the place of the folder, nor with files that are not read.

    Parameters
    ----------
    any_budgets : accept budgets that no policy can meet, for `tightrope check`.
    """
    folder = Path(folder)
    if folder.name == FILE and folder.is_file():
        folder = folder.parent
    toml = Toml(folder / FILE)
    files = Files(toml)
    dynamics = Dynamics(toml, files.open("transitions"))
    layout = dynamics.layout
    charges = _charges(toml, files, dynamics, "loss")
    scenarios, warnings = charges.lay_out(), charges.warnings()
    low, high = toml.loss.bounds
    if layout.waiting[:-1].any() or layout.step[0] < 0:  # waiting and a random start have the loss 0
        low, high = min(low, 0.0), max(high, 0.0)
    uses, largest = _read_uses(toml, files, dynamics, warnings)

    law = toml.whole.noise if noise is None else noise
    law = "none" if law is None else law
    with toml.blaming("noise", when=noise is None):
        largest_factor(law)
        if law != "none" and len(uses) > 1:
            raise InvalidInputError("a constraint has an episode column already; leave out one or the other")
    sequence = toml.loss.sequence if losses is None else losses
    if sequence is None:
        sequence = "replay" if len(scenarios) > 1 else "fixed"
    with toml.blaming("loss", "sequence", when=losses is None):
        problem = Problem.from_units(
            name=toml.whole.name or name_of(folder),
            mdp=layout.mdp,
            ties=layout.ties,
            scenarios=scenarios,
            losses=sequence,
            uses=uses.mean(axis=0),
            noise=law,
            budgets=[constraint.budget for constraint in toml.constraints.values()],
            constraint_names=tuple(toml.constraints),
            loss_bounds=(low, high),
            use_bounds=largest,
            loss_unit=toml.loss.unit,
            constraint_units=tuple(constraint.unit for constraint in toml.constraints.values()),
            state_names=layout.state_names(list(dynamics.states)),
            action_names=tuple(dynamics.actions),
            warnings=[*toml.whole.warnings, *warnings],
        )
    if len(uses) > 1:
        problem = replace(problem, constraints=Replay(uses / problem.constraint_scales[:, None]))
    if not any_budgets:
        for k, name in enumerate(toml.constraints):
            with toml.blaming("constraints", name, "budget"):
                problem.check_budget(k)
        with toml.blaming("constraints"):
            problem.check_budgets()
    return problem, files.digest


def name_of(folder: Path) -> str:
    """Return the name of a folder; bytes that are not UTF-8 are escaped."""
    return os.fsencode(folder.resolve().name).decode(errors="backslashreplace")


class Files:
    """The tables of a folder; each is read once, and may have no unknown column."""

    def __init__(self, toml: Toml) -> None:
        self.toml = toml
        self._digest = hashlib.sha256()
        self._note(FILE, toml.data)
        self._tables: dict[str, Table] = {}
        self._known = {toml.whole.transitions: {*KEYS, "probability", "count", "outcome"}}
        used = set()
        for keys, part in toml.charged.items():
            if part.table is not None:
                self._known.setdefault(part.table, set()).update((*KEYS, "episode", part.column or keys[-1]))
                continue
            for name, axes in parsed(toml, part, *keys).factors.items():
                used.add(name)
                if place := columns(toml, name, axes):
                    self._known.setdefault(place[0], set()).update(place[1])
        for name in toml.whole.tables:
            if name not in used:
                raise InvalidInputError(f"{toml.where('tables', name)}: no form uses the table {name}; remove it")

    def open(self, *keys: str) -> Table:
        """Return the table that this key of the declaration names."""
        toml = self.toml
        name, needed = toml.whole.transitions, ["state", "action", "next_state"]
        if keys != ("transitions",):
            part = toml.charged[keys[:-1]]
            name, needed = str(part.table), ["state", "action", part.column or keys[-2]]
        return self._opened(name, needed, *keys)

    def open_form(self, form: Form) -> dict[str, Table]:
        """Return the tables of a form that are files, by their names in the form."""
        found = {}
        for name, axes in form.factors.items():
            if place := columns(self.toml, name, axes):
                found[name] = self._opened(*place, "tables", name)
        return found

    def _opened(self, name: str, needed: list[str], *keys: str) -> Table:
        toml = self.toml
        if name not in self._tables:
            data = self._read(name, *keys)
            self._note(name, data)
            self._tables[name] = read_table(toml.path.parent / name, data, needed, self._known[name])
        self._tables[name].check_columns(needed, self._known[name])
        return self._tables[name]

    @property
    def digest(self) -> str:
        """The digest of the files that were read so far, by their names in the declaration and their content."""
        return self._digest.hexdigest()

    def _note(self, name: str, data: bytes) -> None:
        self._digest.update(f"{name}\0{len(data)}\0".encode())
        self._digest.update(data)

    def _read(self, name: str, *keys: str) -> bytes:
        folder = self.toml.path.parent
        try:
            return read_regular(folder / name, MOST_BYTES)
        except (FileNotFoundError, NotADirectoryError) as error:
            there = [other for other in _files_in(folder) if other != FILE]
            raise not_known(f"{self.toml.where(*keys)}: {folder} has no file", name, there) from error
        except OSError as error:
            raise InvalidInputError(f"{folder / name} cannot be read: {error.strerror or error}") from error


def _files_in(folder: Path) -> list[str]:
    """Return the printable names of the files in a folder; empty if it cannot be read."""
    try:
        with os.scandir(folder) as entries:
            return [entry.name for entry in entries if entry.is_file() and entry.name.isprintable()]
    except OSError:
        return []


def _charges(toml: Toml, files: Files, dynamics: Dynamics, *keys: str) -> Charges | FormCharges:
    """Return the losses or uses of this part of the declaration."""
    part = toml.charged[keys]
    if part.form is None:
        return Charges(toml, files.open(*keys, "table"), dynamics, part, *keys)
    return FormCharges(toml, files.open_form(parsed(toml, part, *keys)), dynamics, part, *keys)


def _read_uses(toml: Toml, files: Files, dynamics: Dynamics, warnings: list[str]) -> tuple[FloatArray, FloatArray]:
    """Return the uses, (n_episodes, I, n_tuples), and the largest possible use of each budget, (I,), in own units.

    New warnings are appended to `warnings`.
    """
    tables, largest, n_steps = [], [], dynamics.n_steps
    for name, constraint in toml.constraints.items():
        keys = ("constraints", name)
        charges = _charges(toml, files, dynamics, *keys)
        charges.check_size(charges.n_episodes * len(toml.constraints) * dynamics.layout.space.n_tuples)
        tables.append(charges.lay_out())
        warnings += charges.warnings()
        most = charges.largest if constraint.bounds is None else float(np.abs(constraint.bounds).max())
        if most == 0:
            raise InvalidInputError(f"{charges.what} is 0 everywhere, so its budget has no effect; drop it")
        if abs(constraint.budget) > n_steps * most:
            budget = f"{toml.where(*keys, 'budget')}: a budget of {constraint.budget:g} {constraint.unit} for {name!r}"
            steps = f"but {n_steps} steps use"
            if constraint.budget > 0:
                raise InvalidInputError(
                    f"{budget}, {steps} {n_steps * most:g} at most: it can never bind; lower it, or drop it"
                )
            raise InfeasibleError(f"{budget}, {steps} {-n_steps * most:g} at least: it cannot be met")
        largest.append(most)
    lengths = {len(table) for table in tables} - {1}
    if len(lengths) > 1:
        raise InvalidInputError(
            f"{toml.where('constraints')}: the tables of the constraints have {sorted(lengths)} episodes; "
            "each episode needs a value of every constraint, so all need equally many"
        )
    uses = np.zeros((*(lengths or {1}), len(tables), dynamics.layout.space.n_tuples))
    for i, table in enumerate(tables):
        uses[:, i] = table
    return uses, np.array(largest)


def new_folder(folder: Path) -> None:
    """Make a folder, which must not exist yet."""
    try:
        str(folder).encode()
    except UnicodeEncodeError as error:
        raise InvalidInputError(f"{os.fsencode(folder)!r} is not UTF-8; choose a name that is") from error
    try:
        folder.mkdir(parents=True)
    except FileExistsError as error:
        raise InvalidInputError(f"{folder} is there already; choose a name that is not") from error
    except OSError as error:
        raise InvalidInputError(f"cannot make the folder {folder}: {error.strerror or error}") from error


#: The files of the example, in the order in which they are read; FOLDER in them stands for the name of the folder.
EXAMPLE = ("problem.toml", "transitions.csv", "loss.csv", "technician.csv")


def write_example(folder: Path) -> list[Path]:
    """Write the example to `folder`, which must not exist yet; returns the files."""
    new_folder(folder)
    # a comment is one line, also if the name of the folder has line breaks
    named = str(folder) if str(folder).isprintable() else "FOLDER"
    for name in EXAMPLE:
        write_bytes(folder / name, example_text(name).replace("FOLDER", named).encode())
    return [folder / name for name in EXAMPLE]


def example_text(name: str) -> str:
    """Return the text of a file of the example."""
    return files("tightrope.problems.files").joinpath("example", name).read_text("utf-8")
