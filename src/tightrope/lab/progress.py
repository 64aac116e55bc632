"""Progress over all episodes of all runs: a bar on a terminal, a line now and then elsewhere."""

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from time import monotonic

from rich.console import Console
from rich.progress import BarColumn, Progress, TimeElapsedColumn

from tightrope.signals import finally_

#: Called with the numbers of episodes and of runs that are done.
Show = Callable[[int, int], None]

#: Takes the numbers of episodes and runs, in all and done before; yields a `Show`.
Watch = Callable[[int, int, int, int], AbstractContextManager[Show]]

#: Seconds after which lines are printed where there is no terminal; the last one is repeated.
LINES = (5, 15, 30, 60)


@contextmanager
def silence(episodes: int, runs: int, episodes_before: int, runs_before: int) -> Iterator[Show]:
    """Show nothing."""
    yield lambda episodes_done, runs_done: None


class Estimate:
    """An estimate of the remaining time, from the time of the episodes so far."""

    def __init__(self, episodes: int, before: int, clock: Callable[[], float] = monotonic) -> None:
        self.episodes, self.before, self.clock = episodes, before, clock
        self.began: float | None = None

    def __call__(self, done: int) -> str:
        """Return the estimate as text; empty before the first episode, since imports come first."""
        if done <= self.before:
            return ""
        if self.began is None:
            self.began, self.before = self.clock(), done
            return ""
        seconds = (self.clock() - self.began) * (self.episodes - done) / (done - self.before)
        return f"about {lasting(seconds)} left"


def lasting(seconds: float) -> str:
    """Return a duration as text."""
    for unit, name in ((86_400, "days"), (3_600, "h"), (60, "min")):
        if seconds >= 1.5 * unit:
            return f"{seconds / unit:.0f} {name}"
    return f"{seconds:.0f} s"


@contextmanager
def shown(episodes: int, runs: int, episodes_before: int, runs_before: int) -> Iterator[Show]:
    """Show a progress bar on stderr, or lines if that is not a terminal."""
    estimate = Estimate(episodes, episodes_before)

    def words(episodes_done: int, runs_done: int) -> str:
        left = estimate(episodes_done)
        of_runs = f"{runs_done} of {runs} runs, " if runs > 1 else ""
        return f"{of_runs}{episodes_done:,} of {episodes:,} episodes" + (f", {left}" if left else "")

    if not sys.stderr.isatty():
        begun = f"{runs - runs_before} runs, " if runs > 1 else ""
        print(f"playing {begun}{episodes - episodes_before:,} episodes", file=sys.stderr, flush=True)
        yield lines(words)
        return
    columns = (BarColumn(), "{task.percentage:>3.0f} %", "{task.description}", TimeElapsedColumn())
    bars = Progress(*columns, console=Console(stderr=True), transient=True)
    with finally_(bars.stop):  # restores the cursor
        bars.start()
        task = bars.add_task("starting", total=episodes, completed=episodes_before)

        def show(episodes_done: int, runs_done: int) -> None:
            bars.update(task, completed=episodes_done, description=words(episodes_done, runs_done))

        yield show


def lines(words: Callable[[int, int], str], clock: Callable[[], float] = monotonic) -> Show:
    """Return a `Show` that prints a line now and then."""
    began, printed = clock(), 0

    def show(episodes_done: int, runs_done: int) -> None:
        nonlocal printed
        text = words(episodes_done, runs_done)
        due = LINES[printed] if printed < len(LINES) else LINES[-1] * (printed - len(LINES) + 2)
        if clock() - began >= due:
            printed += 1
            print(text, file=sys.stderr, flush=True)

    return show
