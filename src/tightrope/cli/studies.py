"""`run` and `sweep`: a study, conducted and shown."""

from contextlib import ExitStack
from pathlib import Path

from tightrope.cli import options
from tightrope.cli.options import Conduct
from tightrope.cli.standard import note
from tightrope.cli.standard import show as say
from tightrope.errors import InvalidInputError, TightropeError
from tightrope.kernels.compile import compiled_before
from tightrope.lab.engines import Engine
from tightrope.lab.estimate import estimate
from tightrope.lab.progress import shown
from tightrope.lab.report.serving import served
from tightrope.lab.runner import STUDY, Conducted, conducted, folder_name, is_conducted, studies_in
from tightrope.lab.study import Study, StudyFile, with_budgets, with_values
from tightrope.problems.files.declaration import FILE

__all__ = ["StudyFile", "folder_name", "is_conducted", "show", "study_file", "with_options"]


def study_file(path: Path) -> Path:
    """The file of a study, given by the file or the folder that it lies in; a problem is refused with the remedy."""
    if path.is_dir() and (path / STUDY).is_file():
        return path / STUDY
    if path.name == FILE or (path / FILE).is_file():
        folder = path.parent if path.name == FILE else path
        raise InvalidInputError(f"{path} is a problem, not a study; to run it: tightrope run {folder}")
    if path.is_dir() and (studies := studies_in(path)):
        raise InvalidInputError(f"{path} holds several studies; give one of them: {studies}")
    return path


def with_options(study: Study, conduct: Conduct) -> Study:
    """`study` with the values of --set and --budget."""
    return with_budgets(with_values(study, conduct.set_ or []), options.budgets(conduct.budget or []))


def show(study: Study, folder: Path, conduct: Conduct, *, beside: Path = Path(), draw: bool) -> None:
    """Play a study, print its results and where they are."""
    if conduct.jobs == 0:
        raise InvalidInputError("--jobs is 0; give a number of parallel runs, or -1 for one for each core")
    if conduct.address is not None and conduct.backend not in ("dask", "ray"):
        raise InvalidInputError(f"--address needs --backend dask or ray; the backend is {conduct.backend}")
    engine = Engine(conduct.jobs, conduct.backend.value, conduct.address)
    if conduct.dry_run:
        say("\n".join(estimate(study, folder, engine, beside)))
        return
    if not compiled_before():
        note("compiling; this takes up to a minute, once")
    with ExitStack() as meanwhile:
        if conduct.watch:
            note(f"live page: {meanwhile.enter_context(served(folder, conduct.port))}")
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
        others = f" ({len(done.failed)} runs failed; the same command tries them again)" if len(done.failed) > 1 else ""
        raise TightropeError(f"{name}: {words}{others}")


def _print(done: Conducted, draw: bool) -> None:
    """Print the tables before drawing the pictures, which takes a while."""
    if not done.runs:
        return
    for section in done.sections:
        say("\n".join([*section.lines(), ""]))
    say(f"table    {done.tables[0]}")
    say(f"summary  {done.summaries[0]} (and .md, .tex)")
    for k, section in enumerate(done.sections if draw else (), 1):
        picture = section.draw(done.folder, "picture" if len(done.sections) == 1 else f"picture-{k}")
        say(f"picture  {picture} (and .svg)")
