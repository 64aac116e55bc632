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


Reason = Annotated[str, typer.Option(metavar="TEXT", help="Recorded with the correction.", show_default=False)]
Author = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Who corrects, recorded with the correction.", show_default="your login name"),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would change; change nothing.")]


@app.command(epilog=EXIT_CODES, cls=Command)
def retract(
    folder: Directory,
    episodes: Annotated[
        list[str] | None, typer.Argument(metavar="EPISODE", help="Ids of episodes to retract.", show_default=False)
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(
            metavar="TIME", help="Retract what was told then or later: 2026-11-18T09:00Z.", show_default=False
        ),
    ] = None,
    until: Annotated[
        str | None, typer.Option(metavar="TIME", help="Retract what was told before that time.", show_default=False)
    ] = None,
    told_by: Annotated[
        str | None, typer.Option(metavar="NAME", help="Retract what this author told.", show_default=False)
    ] = None,
    undo: Annotated[
        int | None, options.whole("Undo the correction of this event instead.", 1, LARGEST, show_default=False)
    ] = None,
    reason: Reason = "",
    author: Author = None,
    dry_run: DryRun = False,
) -> None:
    """Take outcomes back: the learner becomes one that never learned them. All conditions given must hold."""
    from tightrope.cli.corrections import retract_outcomes

    retract_outcomes(folder, episodes, since, until, told_by, undo, reason=reason, author=author, dry_run=dry_run)


@app.command(epilog=EXIT_CODES, cls=Command)
def amend(
    folder: Directory,
    episode: Annotated[str, typer.Argument(metavar="EPISODE", help="The id of an episode that was told.")],
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="The outcome as JSON, as for HTTP (docs/how-to/service.md)."),
    ],
    reason: Reason = "",
    author: Author = None,
    dry_run: DryRun = False,
) -> None:
    """Replace the outcome of an episode: the learner becomes one that was told this outcome then."""
    from tightrope.cli.corrections import amend_outcome

    amend_outcome(folder, episode, file, reason=reason, author=author, dry_run=dry_run)


@app.command(epilog=EXIT_CODES, cls=Command)
def export(
    folder: Directory,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The .jsonl or .parquet file to write.")],
) -> None:
    """Write the episodes of a durable learner, with policies, outcomes, times and authors, while it runs."""
    from tightrope.cli.corrections import export_directory

    export_directory(folder, file)


@app.command("import", epilog=EXIT_CODES, cls=Command)
def import_(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A .jsonl or .parquet file: tightrope export.")],
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The directory to create.")],
    problem: Annotated[
        str | None,
        typer.Option(
            metavar="PROBLEM",
            help="Make a new learner for this problem, which learns the outcomes: a name, or a folder.",
            show_default="the learner that was exported",
        ),
    ] = None,
    learner: Annotated[str, typer.Option(metavar="NAME", help="The new learner.")] = "ucpd-practical",
    episodes: options.Episodes = None,
) -> None:
    """Make the directory that was exported, with the same bits; or a new learner with its outcomes as history."""
    from tightrope.cli.corrections import import_directory

    import_directory(file, folder, problem, learner, episodes)
