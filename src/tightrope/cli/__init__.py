"""The command line. Here is only what has to come before everything else; the commands are in `commands`."""

import sys


def main() -> None:
    """The `tightrope` command."""
    try:
        from tightrope.ending import answer_signals

        answer_signals()
    except KeyboardInterrupt:  # just before
        print("tightrope: interrupted", file=sys.stderr)
        raise SystemExit(130) from None

    from tightrope.cli import standard

    standard.open_all()
    try:
        from tightrope.cli.commands import app

        app(prog_name="tightrope")
    finally:
        standard.let_go()
