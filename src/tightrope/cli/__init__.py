"""The command line: `main` sets up signals and standard streams, then imports the commands."""

import sys


def main() -> None:
    """Run the `tightrope` command."""
    try:
        from tightrope.signals import answer_signals

        answer_signals()
    except KeyboardInterrupt:  # before signals are handled
        print("tightrope: interrupted", file=sys.stderr)
        raise SystemExit(130) from None

    from tightrope.cli import standard

    standard.open_all()
    try:
        from tightrope.cli.commands import app

        app(prog_name="tightrope")
    finally:
        standard.let_go()
