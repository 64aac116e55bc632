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


Directory = Annotated[Path, options.argument("DIR", "The directory of a durable learner.", parser=directory)]
NewDirectory = Annotated[Path, options.argument("DIR", "The directory to create.")]
Place = Annotated[str, options.argument("DIR", "The directory of a durable learner, or the address of its database.")]


@app.command(epilog="Exit code: 0 no damage, 1 something is damaged, 2 wrong usage or input.", cls=Command)
def inspect(
    folder: Directory,
    as_json: options.AsJson = False,
    policy: Annotated[Path | None, options.value("FILE", "Write the current policy to this .csv file.")] = None,
) -> None:
    """Show the state of a durable learner: episodes, budget use, multipliers, confidence sets, integrity."""
    from tightrope.cli.production import inspect_directory

    raise typer.Exit(0 if inspect_directory(folder, as_json, policy) else FAILED)


@app.command(epilog=EXIT_CODES, cls=Command)
def migrate(
    folder: Directory,
    dry_run: Annotated[bool, options.flag("--dry-run", "Check whether it can be migrated; change nothing.")] = False,
) -> None:
    """Bring a directory of an earlier release to the format of this version. Opening it does the same."""
    from tightrope.cli.production import migrate_directory

    migrate_directory(folder, dry_run)


@app.command(epilog=EXIT_CODES, cls=Command)
def backup(
    folder: Directory,
    file: Annotated[Path, options.argument("FILE", "The backup to write; an earlier one is replaced.")],
) -> None:
    """Write a durable learner to one file, while it runs. To read it back: tightrope restore."""
    from tightrope.cli.production import backup_directory

    backup_directory(folder, file)


@app.command(epilog=EXIT_CODES, cls=Command)
def restore(
    file: Annotated[Path, options.argument("FILE", "A backup: tightrope backup.")],
    folder: NewDirectory,
    to_event: Annotated[
        int | None, options.whole("Leave out everything after this event.", 0, LARGEST, "the last one")
    ] = None,
) -> None:
    """Restore a durable learner from a backup to a new directory, in the state after the last or an earlier event."""
    from tightrope.cli.production import restore_directory

    restore_directory(file, folder, to_event)


Reason = Annotated[str, options.value("TEXT", "Recorded with the correction.")]
Author = Annotated[
    str | None, options.value("NAME", "Who corrects, recorded with the correction.", default="your login name")
]
DryRun = Annotated[bool, options.flag("--dry-run", "Show what would change; change nothing.")]


@app.command(epilog=EXIT_CODES, cls=Command)
def retract(
    place: Place,
    episodes: Annotated[list[str] | None, options.argument("EPISODE", "Ids of episodes to retract.")] = None,
    since: Annotated[
        str | None, options.value("TIME", "Retract what was told then or later: 2026-11-18T09:00Z.")
    ] = None,
    until: Annotated[str | None, options.value("TIME", "Retract what was told before that time.")] = None,
    told_by: Annotated[str | None, options.value("NAME", "Retract what this author told.")] = None,
    undo: Annotated[int | None, options.whole("Undo the correction of this event instead.", 1, LARGEST)] = None,
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
    episode: Annotated[str, options.argument("EPISODE", "The id of an episode that was told.")],
    file: Annotated[Path, options.argument("FILE", "The outcome as JSON, as for HTTP (docs/how-to/service.md).")],
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
    file: Annotated[Path, options.argument("FILE", "The .jsonl or .parquet file to write.")],
) -> None:
    """Write the episodes of a durable learner, with policies, outcomes, times and authors, while it runs."""
    from tightrope.cli.production import export_directory

    export_directory(folder, file)


@app.command("import", epilog=EXIT_CODES, cls=Command)
def import_(
    file: Annotated[Path, options.argument("FILE", "A .jsonl or .parquet file: tightrope export.")],
    folder: NewDirectory,
    problem: Annotated[
        str | None,
        options.value(
            "PROBLEM",
            "Make a new learner for this problem, which learns the outcomes: a name, or a folder.",
            default="the learner that was exported",
        ),
    ] = None,
    learner: options.Learner = "ucpd-practical",
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


File = Annotated[Path, options.argument("FILE", "The file of tokens (tightrope serve --tokens FILE).")]
Name = Annotated[str, options.argument("NAME", "Name of the token; it is the author of what its holder changes.")]


@tokens.command(epilog=EXIT_CODES, cls=Command)
def add(
    file: File,
    name: Name,
    role: Annotated[
        list[Role],
        options.value(
            "ROLE",
            "read: status, policies, metrics; act: open episodes, draw actions; tell: report outcomes; operate: "
            "budgets, stop-loss, challengers. Repeatable.",
        ),
    ],
    expires: Annotated[
        str | None, options.value("TIME", "End of its validity, as 2027-01-31 or 2027-01-31T12:00Z.", default="never")
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
    keep: Annotated[float, options.value("HOURS", "How long the old token stays valid.", min=0.0)] = 24.0,
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
