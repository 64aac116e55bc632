"""`run` and `sweep`: a study, conducted and shown."""

from contextlib import ExitStack
from pathlib import Path

from tightrope.cli.options import Conduct
from tightrope.cli.standard import note
from tightrope.cli.standard import show as say
from tightrope.errors import InvalidInputError, TightropeError
from tightrope.experiments.progress import shown
from tightrope.experiments.studies.conduct import Conducted, conducted, folder_name, is_conducted
from tightrope.experiments.studies.engines import Engine
from tightrope.experiments.studies.estimate import estimate
from tightrope.experiments.studies.study import Study
from tightrope.experiments.studies.summary import sections
from tightrope.report.serving import served

__all__ = ["folder_name", "is_conducted", "show"]


def show(study: Study, folder: Path, conduct: Conduct, *, beside: Path = Path(), draw: bool) -> None:
    """Play it, print what came of it, and say where it is."""
    if conduct.jobs == 0:
        raise InvalidInputError("--jobs is 0; it is how many runs are played side by side, or -1 for one for each core")
    if conduct.address is not None and conduct.backend not in ("dask", "ray"):
        raise InvalidInputError(f"--address is for --backend dask or ray; this is {conduct.backend}")
    engine = Engine(conduct.jobs, conduct.backend.value, conduct.address)
    if conduct.dry_run:
        say("\n".join(estimate(study, folder, engine, beside)))
        return
    with ExitStack() as meanwhile:
        if conduct.watch:
            note(f"watch it at {meanwhile.enter_context(served(folder, conduct.port))}")
        board = None
        if conduct.tensorboard is not None:
            from tightrope.interop import TensorBoard

            board = meanwhile.enter_context(TensorBoard(conduct.tensorboard))
        done = meanwhile.enter_context(
            conducted(
                study,
                folder,
                engine,
                beside=beside,
                fresh=conduct.fresh,
                save_every=conduct.checkpoint_every,
                watch=shown,
                callback=board,
                tell=note,
            )
        )
        _print(done, draw)
    if done.failed:
        name, words = next(iter(done.failed.items()))
        others = f" ({len(done.failed)} runs failed; run again, they are tried again)" if len(done.failed) > 1 else ""
        raise TightropeError(f"{name}: {words}{others}")


def _print(done: Conducted, draw: bool) -> None:
    """Results before pictures, which take a while."""
    if not done.runs:
        return
    found = list(sections(done))
    for section in found:
        say("\n".join([*section.lines(), ""]))
    say(f"table    {done.tables[0]}")
    for k, section in enumerate(found if draw else (), 1):
        picture = section.draw(done.folder, "picture" if len(found) == 1 else f"picture-{k}")
        say(f"picture  {picture} (and .svg)")
