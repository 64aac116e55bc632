"""`tightrope token`: the file of tokens of a service. It contains hashes; a token is printed once, when it is made."""

from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from tightrope.cli import note, show
from tightrope.cli.app import EXIT_CODES, Command, Group

app = typer.Typer(cls=Group, no_args_is_help=True, pretty_exceptions_enable=False)


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


@app.command(epilog=EXIT_CODES, cls=Command)
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
    """Make a token, add its hash to the file, and print it. A service that runs takes it within a second."""
    from tightrope.ops import tokens

    show(tokens.add(file, name, [one.value for one in role], None if expires is None else _time(expires)))
    note(f"give it to {name}; it cannot be printed again")


@app.command(epilog=EXIT_CODES, cls=Command)
def rotate(
    file: File,
    name: Name,
    keep: Annotated[
        float, typer.Option(min=0.0, metavar="HOURS", help="How long the token of before stays valid.")
    ] = 24.0,
) -> None:
    """Make a new token with the name, the roles and the expiry of an old one, and print it."""
    from tightrope.ops import tokens

    show(tokens.rotate(file, name, timedelta(hours=keep)))
    note(f"give it to {name}; the token of before stays valid for {keep:g} hours")


@app.command(epilog=EXIT_CODES, cls=Command)
def remove(file: File, name: Name) -> None:
    """Remove all tokens of a name from the file."""
    from tightrope.ops import tokens

    tokens.remove(file, name)
    note(f"removed {name}")


@app.command("list", epilog=EXIT_CODES, cls=Command)
def list_(file: File) -> None:
    """List names, roles and expiry."""
    from tightrope.ops import tokens
    from tightrope.ops.inspection import table

    rows = [["name", "roles", "expires", "sha256"]]
    for one in tokens.read(file):
        when = "never" if one.expires is None else one.expires.strftime("%Y-%m-%d %H:%M UTC")
        rows.append([one.name, " ".join(one.roles), f"{when}{', expired' if one.expired else ''}", one.sha256[:12]])
    show("\n".join(table(rows)))


def _time(text: str) -> datetime:
    """Return a time; one without a zone is UTC."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError as error:
        raise typer.BadParameter(f"--expires {text!r} is no time; write 2027-01-31 or 2027-01-31T12:00Z") from error
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC)
