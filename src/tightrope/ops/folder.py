"""A directory of one durable learner: made if it is not there, and owned by one process at a time."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from os.path import realpath
from pathlib import Path

from tightrope.arguments import printable
from tightrope.errors import InvalidInputError, StorageError
from tightrope.ops import head
from tightrope.ops.journal import NAME, unbegun
from tightrope.storage.files import locked
from tightrope.storage.replacing import is_temporary, sync_folder


@contextmanager
def claimed(folder: Path, *, make: bool) -> Iterator[Path]:
    """Own `folder` until the block ends; one with anything else in it is refused. Yields where it is, from anywhere."""
    with ExitStack() as stack:
        try:
            if not make and not (folder / NAME).is_file():
                raise unbegun(folder)
            made = [path for path in (folder, *folder.parents) if not path.exists()]
            folder.mkdir(parents=True, exist_ok=True)
            for path in made:
                sync_folder(path.parent)
            folder = Path(realpath(folder))
            stack.enter_context(locked(folder, remedy="a directory belongs to one process at a time"))
            new = all(is_temporary(path) or _is_head(path) for path in folder.iterdir())
        except OSError as error:
            raise StorageError(f"cannot write to {printable(folder)}: {error.strerror}") from error
        if not new and not (folder / NAME).is_file():
            raise InvalidInputError(f"{printable(folder)} holds files that are no durable learner; choose another")
        yield folder


def _is_head(path: Path) -> bool:
    """What is made first, and alone where nothing came after it."""
    return path.name == head.NAME and path.stat().st_size in (0, head.SIZE)
