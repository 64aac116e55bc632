"""How far a play has come: a bar on a terminal, a line elsewhere, or nothing."""

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeElapsedColumn, TimeRemainingColumn

from tightrope.ending import finally_

#: Told what is counted and how many there are, yields what to call with the number done.
Watch = Callable[[str, int], AbstractContextManager[Callable[[int], None]]]


@contextmanager
def silence(unit: str, total: int) -> Iterator[Callable[[int], None]]:
    """Nothing is shown."""
    yield lambda done: None


@contextmanager
def bar(unit: str, total: int) -> Iterator[Callable[[int], None]]:
    """A progress bar on stderr, a line if that is no terminal."""
    if not sys.stderr.isatty():
        print(f"playing {total} {unit}", file=sys.stderr)
        yield lambda done: None
        return
    columns = (
        "{task.description}",
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        "left:",
        TimeRemainingColumn(),
    )
    bars = Progress(*columns, console=Console(stderr=True), transient=True)
    with finally_(bars.stop):  # it gives back the cursor
        bars.start()
        task = bars.add_task(f"{unit} (compiling first)", total=total)
        yield lambda done: bars.update(task, completed=done, description=unit)
