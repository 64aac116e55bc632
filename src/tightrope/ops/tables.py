"""What the tables of a problem say, kept in the directory of its learner: so a client tells only what they do not."""

import io
import zipfile
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from tightrope.arguments import printable
from tightrope.errors import InvalidInputError, StorageError
from tightrope.problems.constraints import Deterministic
from tightrope.problems.losses import Scenarios
from tightrope.space import FloatArray, LayeredSpace
from tightrope.storage.files import write_bytes
from tightrope.ties import Ties

NAME = "tables.npz"


@dataclass(frozen=True, eq=False)
class Tables:
    """Losses and uses as the learner meets them, and the way to the units of the problem."""

    scenarios: FloatArray  #: (K, n_tuples) recorded losses; none, if nobody said what they are
    uses: FloatArray  #: (I, n_tuples) the constraints, if they are the same in every episode; else (0, n_tuples)
    outcome: NDArray[np.int64]  #: (1, n_tuples) which pairs share one law (`Ties.outcome`); none, if nobody knows
    loss_scale: float = 1.0
    loss_offset: float = 0.0
    loss_unit: str = ""

    @classmethod
    def none(cls, n_tuples: int) -> Self:
        """Nothing is known: all has to be told, in the units of the learner."""
        return cls(np.empty((0, n_tuples)), np.empty((0, n_tuples)), np.empty((0, n_tuples), dtype=np.int64))

    @classmethod
    def of(cls, problem: Any) -> Self:
        """Those of a problem."""
        n, losses, constraints = problem.space.n_tuples, problem.losses, problem.constraints
        return cls(
            losses.scenarios if isinstance(losses, Scenarios) else np.empty((0, n)),
            constraints.mean if isinstance(constraints, Deterministic) else np.empty((0, n)),
            np.empty((0, n), dtype=np.int64) if problem.ties is None else problem.ties.outcome[None],
            problem.loss_scale,
            problem.loss_offset,
            problem.loss_unit,
        )

    def lost(self, loss: float, steps: int) -> float:
        """The sum of the losses of so many steps, in the units of the problem."""
        return self.loss_scale * loss + self.loss_offset * steps

    def ties(self, space: LayeredSpace) -> Ties | None:
        """Those of the problem, on its space."""
        return Ties(space, *self.outcome) if len(self.outcome) else None

    def write(self, folder: Path) -> None:
        """Keep them beside the journal, where there are none yet; others than those that are there are refused."""
        if (folder / NAME).exists():
            kept = self.read(folder, self.scenarios.shape[1])
            if any(not np.array_equal(getattr(kept, field.name), getattr(self, field.name)) for field in fields(self)):
                raise InvalidInputError(
                    f"the learner in {printable(folder)} was told in other tables than those of this problem; leave "
                    "the problem out to go on with what is there, or choose another directory"
                )
            return
        buffer = io.BytesIO()
        arrays: dict[str, Any] = {field.name: np.array(getattr(self, field.name)) for field in fields(self)}
        np.savez_compressed(buffer, **arrays)
        write_bytes(folder / NAME, buffer.getvalue())

    @classmethod
    def read(cls, folder: Path, n_tuples: int, problem: str = "") -> Self:
        """What `write` kept; nothing, if the learner is for no problem that has a name."""
        path = folder / NAME
        if not path.exists():
            if problem:
                raise StorageError(
                    f"{printable(path)} is missing, so that nobody knows in which units losses of {problem} are told; "
                    "restore it from a copy, or name the problem as when the learner was made"
                )
            return cls.none(n_tuples)
        try:
            with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as found:
                arrays = {field.name: found[field.name] for field in fields(cls)}
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
            raise StorageError(
                f"{printable(path)} cannot be read: {error}; restore it from a copy, or take it away and name the "
                "problem as when the learner was made"
            ) from error
        tables = cls(**{name: array if array.ndim else array.item() for name, array in arrays.items()})
        if any(array.shape[1:] != (n_tuples,) for array in (tables.scenarios, tables.uses, tables.outcome)):
            raise StorageError(f"{printable(path)} is of another problem; restore it from a copy")
        return tables
