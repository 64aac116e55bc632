"""The commands that inspect, move and correct directories of durable learners, and those for tokens of a service."""

from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from tightrope.arguments import LARGEST
from tightrope.cli import note, options, show
from tightrope.cli.app import EXIT_CODES, FAILED, Command, Group, app


def directory(text: str) -> Path:
    """Return a directory; refuse the address of a database, which may contain a password."""
    from tightrope.ops.database import POSTGRES

    if text.startswith(POSTGRES):
        raise typer.BadParameter(
            "this is the address of a database, and the command is for directories; back a database up with pg_dump, "
            "and ask its service for the state of the learner."
        )
    return Path(text)


Directory = Annotated[Path, typer.Argument(metavar="DIR", help="The directory of a durable learner.", parser=directory)]
Place = Annotated[
    str, typer.Argument(metavar="DIR", help="The directory of a durable learner, or the address of its database.")
]


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
    from tightrope.cli.production import inspect_directory

    raise typer.Exit(0 if inspect_directory(folder, as_json, policy) else FAILED)


@app.command(epilog=EXIT_CODES, cls=Command)
def migrate(
    folder: Directory,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check whether it can be migrated; change nothing.")
    ] = False,
) -> None:
    """Bring a directory of an earlier release to the format of this version. Opening it does the same."""
    from tightrope.cli.production import migrate_directory

    migrate_directory(folder, dry_run)


@app.command(epilog=EXIT_CODES, cls=Command)
def backup(
    folder: Directory,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The backup to write; an earlier one is replaced.")],
) -> None:
    """Write a durable learner to one file, while it runs. To read it back: tightrope restore."""
    from tightrope.cli.production import backup_directory

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
    """Restore a durable learner from a backup to a new directory, in the state after the last or an earlier event."""
    from tightrope.cli.production import restore_directory

    restore_directory(file, folder, to_event)


Reason = Annotated[str, typer.Option(metavar="TEXT", help="Recorded with the correction.", show_default=False)]
Author = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Who corrects, recorded with the correction.", show_default="your login name"),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would change; change nothing.")]


@app.command(epilog=EXIT_CODES, cls=Command)
def retract(
    place: Place,
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
    """Retract outcomes, as if the learner had never learned them. Outcomes must meet all given conditions."""
    from tightrope.cli.production import retract_outcomes

    retract_outcomes(place, episodes, since, until, told_by, undo, reason=reason, author=author, dry_run=dry_run)


@app.command(epilog=EXIT_CODES, cls=Command)
def amend(
    place: Place,
    episode: Annotated[str, typer.Argument(metavar="EPISODE", help="The id of an episode that was told.")],
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="The outcome as JSON, as for HTTP (docs/how-to/service.md)."),
    ],
    reason: Reason = "",
    author: Author = None,
    dry_run: DryRun = False,
) -> None:
    """Replace the outcome of an episode, as if the learner had been told the new one."""
    from tightrope.cli.production import amend_outcome

    amend_outcome(place, episode, file, reason=reason, author=author, dry_run=dry_run)


@app.command(epilog=EXIT_CODES, cls=Command)
def export(
    folder: Directory,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The .jsonl or .parquet file to write.")],
) -> None:
    """Write the episodes of a durable learner, with policies, outcomes, times and authors, while it runs."""
    from tightrope.cli.production import export_directory

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
    from tightrope.cli.production import import_directory

    import_directory(file, folder, problem, learner, episodes)


# --------------------------------------------------------------------------------------------- tokens of a service

tokens = typer.Typer(cls=Group, no_args_is_help=True, pretty_exceptions_enable=False)
app.add_typer(tokens, name="token", help="Make, rotate, remove and list the tokens of a service.")


class Role(StrEnum):
    """What the holder of a token may do."""

    READ = "read"
    ACT = "act"
    TELL = "tell"
    OPERATE = "operate"


File = Annotated[Path, typer.Argument(metavar="FILE", help="The file of tokens (tightrope serve --tokens FILE).")]
Name = Annotated[
    str, typer.Argument(metavar="NAME", help="Name of the token; it is the author of what its holder changes.")
]


@tokens.command(epilog=EXIT_CODES, cls=Command)
def add(
    file: File,
    name: Name,
    role: Annotated[
        list[Role],
        typer.Option(
            metavar="ROLE",
            help="read: status, policies, metrics; act: open episodes, draw actions; tell: report outcomes; operate: "
            "budgets, stop-loss, challengers. Repeatable.",
        ),
    ],
    expires: Annotated[
        str | None,
        typer.Option(
            metavar="TIME", help="End of its validity, as 2027-01-31 or 2027-01-31T12:00Z.", show_default="never"
        ),
    ] = None,
) -> None:
    """Make a token, add its hash to the file, and print it. A running service accepts it within a second."""
    from tightrope.ops import tokens as token_file

    show(token_file.add(file, name, [one.value for one in role], None if expires is None else _time(expires)))
    note(f"give it to {name}; it cannot be printed again")


@tokens.command(epilog=EXIT_CODES, cls=Command)
def rotate(
    file: File,
    name: Name,
    keep: Annotated[float, typer.Option(min=0.0, metavar="HOURS", help="How long the old token stays valid.")] = 24.0,
) -> None:
    """Make a new token with the name, the roles and the expiry of an old one, and print it."""
    from tightrope.ops import tokens as token_file

    show(token_file.rotate(file, name, timedelta(hours=keep)))
    note(f"give it to {name}; the old token stays valid for {keep:g} hours")


@tokens.command(epilog=EXIT_CODES, cls=Command)
def remove(file: File, name: Name) -> None:
    """Remove all tokens of a name from the file."""
    from tightrope.ops import tokens as token_file

    token_file.remove(file, name)
    note(f"removed {name}")


@tokens.command("list", epilog=EXIT_CODES, cls=Command)
def list_(file: File) -> None:
    """List names, roles and expiry."""
    from tightrope.ops import tokens as token_file
    from tightrope.ops.inspection import table

    rows = [["name", "roles", "expires", "sha256"]]
    for one in token_file.read(file):
        when = "never" if one.expires is None else one.expires.strftime("%Y-%m-%d %H:%M UTC")
        rows.append([one.name, " ".join(one.roles), f"{when}{', expired' if one.expired else ''}", one.sha256[:12]])
    show("\n".join(table(rows)))


def _time(text: str) -> datetime:
    """Return a time; one without a zone is UTC."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError as error:
        raise typer.BadParameter(f"--expires {text!r} is not a time; write 2027-01-31 or 2027-01-31T12:00Z") from error
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC)
