"""The commands on directories of durable learners: look at them, move them to other versions and places."""

from pathlib import Path
from typing import Annotated

import typer

from tightrope.arguments import LARGEST
from tightrope.cli import options
from tightrope.cli.app import EXIT_CODES, FAILED, Command, app

Directory = Annotated[Path, typer.Argument(metavar="DIR", help="The directory of a durable learner.")]


@app.command(epilog="Exit code: 0 no damage, 1 something is damaged, 2 wrong usage or input.", cls=Command)
def inspect(
    folder: Directory,
    as_json: options.AsJson = False,
    policy: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the current policy to this .csv file.", show_default=False),
    ] = None,
) -> None:
    """Show the state of a durable learner: episodes, budget use, multipliers, confidence sets, integrity."""
    from tightrope.cli.actions import inspect_directory

    raise typer.Exit(0 if inspect_directory(folder, as_json, policy) else FAILED)


@app.command(epilog=EXIT_CODES, cls=Command)
def migrate(
    folder: Directory,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check whether it can be migrated; change nothing.")
    ] = False,
) -> None:
    """Bring a directory of an earlier release to the format of this version. Opening it does the same."""
    from tightrope.cli.actions import migrate_directory

    migrate_directory(folder, dry_run)


@app.command(epilog=EXIT_CODES, cls=Command)
def backup(
    folder: Directory,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The backup to write; an earlier one is replaced.")],
) -> None:
    """Write a durable learner to one file, while it runs. To read it back: tightrope restore."""
    from tightrope.cli.actions import backup_directory

    backup_directory(folder, file)


@app.command(epilog=EXIT_CODES, cls=Command)
def restore(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A backup: tightrope backup.")],
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The directory to create.")],
    to_event: Annotated[
        int | None,
        options.whole("Leave out everything after this event.", 0, LARGEST, show_default="the last one"),
    ] = None,
) -> None:
    """Restore a durable learner from a backup to a new directory, as it was after the last event or an earlier one."""
    from tightrope.cli.actions import restore_directory

    restore_directory(file, folder, to_event)
