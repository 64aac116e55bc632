"""The commands: parsing and printing only. Results on stdout, progress and notes on stderr."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from tightrope.arguments import LARGEST, MANY, MOST_RUNS
from tightrope.cli import options
from tightrope.cli.app import EXIT_CODES, FAILED, app
from tightrope.cli.standard import note, show
from tightrope.errors import InvalidInputError

__all__ = ["app"]

# all else of ours is imported by the commands that need it: help does not wait for numba, scipy and matplotlib


class Kind(StrEnum):
    """What can be listed."""

    PROBLEMS = "problems"
    LEARNERS = "learners"
    LOSSES = "losses"
    NOISES = "noises"


@app.command("list")
def list_(
    kind: Annotated[Kind | None, typer.Argument(help="One kind only; everything if left out.")] = None,
) -> None:
    """List the problems, learners, loss sequences or constraints that can be asked for by name."""
    from tightrope.experiments.listings import listing

    for one in [kind] if kind else Kind:
        lines = listing(one)
        show("\n".join(lines if kind else [f"{one}:", *lines, ""]))


@app.command(epilog=EXIT_CODES)
@options.conducts
def run(
    problem: options.Problem,
    episodes: options.Episodes = 20_000,
    seed: Annotated[int, options.whole("The (first) random seed.", 0, LARGEST)] = 0,
    seeds: Annotated[int, options.whole("How many seeds, one after another.", 1, MOST_RUNS)] = 1,
    learner: options.Learners = None,
    losses: options.Losses = None,
    noise: options.Noises = None,
    records: Annotated[int, options.whole("How many episodes to record.", 1, MANY)] = 60,
    spacing: Annotated[options.Spacing, typer.Option(help="How they are spaced.")] = options.Spacing.LOG,
    regret: Annotated[options.Regret, typer.Option(help="Where the hindsight LP is solved.")] = options.Regret.RECORDS,
    *,
    conduct: options.Conduct,
) -> None:
    """Play a problem and show regret and violation, exactly accounted for. Run again, it goes on."""
    from tightrope.cli import studies
    from tightrope.experiments.studies.study import DEFAULT_LEARNERS, Records, Study, with_values

    study = Study(
        problems=[problem],
        learners=[*(options.listed("--learner", learner) or DEFAULT_LEARNERS)],
        losses=[*options.listed("--losses", losses)],
        noises=[*options.listed("--noise", noise)],
        episodes=episodes,
        seeds=list(range(seed, seed + seeds)),
        records=Records(count=records, spacing=spacing.value, regret=regret.value),
    )
    study = with_values(study, conduct.set_ or [])
    studies.show(study, conduct.out or Path("runs", studies.folder_name(study)), conduct, draw=True)


@app.command(epilog=EXIT_CODES)
@options.conducts
def sweep(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A study: see docs/studies.md.")],
    *,
    conduct: options.Conduct,
) -> None:
    """Play a study: learners × problems × losses × parameters × seeds, from one file. Run again, it goes on."""
    from tightrope.cli import studies
    from tightrope.experiments.studies.study import StudyFile, with_values

    study = with_values(StudyFile(file).study, conduct.set_ or [])
    own = file.parent if studies.is_conducted(file) else None  # then it goes on there
    studies.show(study, conduct.out or own or Path("runs", file.stem), conduct, beside=file.parent, draw=False)


@app.command(epilog="Exit code: 0 all assumptions hold, 1 one fails, 2 wrong usage or input.")
def check(
    problem: options.Problem,
    episodes: options.Episodes = 20_000,
    seed: Annotated[int, options.whole("Whose losses and constraints to look at.", 0, LARGEST)] = 0,
    losses: Annotated[
        str | None,
        typer.Option(help="See: tightrope list losses.", show_default="the problem's own"),
    ] = None,
    noise: Annotated[
        str | None,
        typer.Option("--noise", "--constraints", help="See: tightrope list noises.", show_default="the problem's own"),
    ] = None,
    level: Annotated[
        float | None, typer.Option(help="ζ, the level of ucpd that you mean to use.", show_default="ucpd's own")
    ] = None,
    budget: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=LIMIT", help="Another limit, to try it out; as often as you like.", show_default=False
        ),
    ] = None,
    learner: Annotated[str, typer.Option(help="Who plays, where losses answer to what is played.")] = "ucpd",
    figure: Annotated[
        Path | None,
        typer.Option(help="Draw the best loss against each budget: a .png, .svg or .pdf.", show_default=False),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="All numbers as JSON, in place of the page.")] = False,
) -> None:
    """Does the theorem hold for a problem, with which constants, and what does each budget cost?"""
    from tightrope.cli.checking import check_problem

    limits = options.limits(budget or [])
    holds = check_problem(problem, episodes, seed, losses, noise, level, limits, learner, figure, as_json)
    raise typer.Exit(0 if holds else FAILED)


@app.command(epilog=EXIT_CODES)
def report(
    folder: options.Folder,
    figures: Annotated[
        options.Form | None, typer.Option(help="Figures for a paper too, in DIR/figures.", show_default="none")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="The page.", show_default="DIR/report.html")] = None,
) -> None:
    """Make one page of a study that needs no network: figures, tables, parameters, policies."""
    from tightrope.report.figures import write_figures
    from tightrope.report.page import write_page

    path = out or folder / "report.html"
    write_page(folder, path)
    show(str(path))
    for path in write_figures(folder, figures) if figures else ():
        show(str(path))


@app.command(epilog=EXIT_CODES)
def watch(folder: options.Folder, port: options.Port = 0) -> None:
    """Serve that page on this machine while the study is played, until Ctrl-C."""
    from threading import Event

    from tightrope.report.serving import served

    if not folder.is_dir():
        raise InvalidInputError(f"there is no folder {folder}")
    with served(folder, port) as address:
        show(address)
        Event().wait()


@app.command(epilog="Exit code: 0 all is whole, 1 something is damaged, 2 wrong usage or input.")
def inspect(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The directory of a durable learner.")],
    as_json: Annotated[bool, typer.Option("--json", help="All numbers as JSON, in place of the page.")] = False,
    policy: Annotated[
        Path | None, typer.Option(help="Write the policy that is played as a table: a .csv.", show_default=False)
    ] = None,
) -> None:
    """Show what a durable learner holds: episodes, spending, prices, widths of the sets, integrity."""
    from tightrope.cli.inspecting import inspect_directory

    raise typer.Exit(0 if inspect_directory(folder, as_json, policy) else FAILED)


@app.command(epilog=EXIT_CODES)
def serve(
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", help="A learner's directory, or one with a directory for each of several.")
    ],
    problem: Annotated[
        str | None,
        typer.Option(
            help="Make a learner for this problem, if there is none: a name, or a folder (tightrope new).",
            autocompletion=options.complete("problems"),
            show_default=False,
        ),
    ] = None,
    learner: Annotated[
        str, typer.Option(help="Which one. See: tightrope list learners.", autocompletion=options.complete("learners"))
    ] = "ucpd-practical",
    episodes: Annotated[
        int | None, options.whole("How many are planned, for a learner that needs to know.", 1, LARGEST)
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="Make it in DIR/NAME, to serve several.", show_default="in DIR itself")
    ] = None,
    host: Annotated[str, typer.Option(help="The address to listen at; any but this machine's own needs a token.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option(min=0, max=65535, help="Where; 0: any that is free.")] = 8000,
    token_file: Annotated[
        Path | None,
        typer.Option(help="Who sends what is in it is let in.", show_default="variable TIGHTROPE_TOKEN"),
    ] = None,
    certificate: Annotated[Path | None, typer.Option(help="For TLS, in PEM.", show_default="no TLS")] = None,
    key: Annotated[Path | None, typer.Option(help="Of the certificate.", show_default="in the same file")] = None,
    rate: Annotated[float, typer.Option(min=1.0, help="Requests a second from one address.")] = 5000.0,
    max_body: Annotated[int, options.whole("Bytes of a request.", 1, LARGEST)] = 8 * 2**20,
    max_open: Annotated[int, options.whole("Episodes open at once.", 1, LARGEST)] = 1000,
    snapshot_every: Annotated[int, options.whole("Events after which the state is written.", 1, LARGEST)] = 1000,
    keep_journal: Annotated[int, options.whole("Events to be kept that no snapshot needs.", 0, LARGEST)] = 0,
) -> None:
    """Serve learners over HTTP until Ctrl-C: asked, told, looked at (docs/service.md). What is not there is made."""
    import signal

    from tightrope.ending import answer_signals
    from tightrope.ops.auth import Limits
    from tightrope.ops.server import Address, Server, token_of

    new = None
    if problem is not None:
        from tightrope.cli.serving import new_learner

        new = new_learner(directory, problem, learner, episodes, name)
    address = Address(host, port, token_of(token_file), certificate, key, Limits(body=max_body, rate=rate))
    if address.token is not None and certificate is None and not address.loopback:
        note("the token is sent as it is, for all to read on the way; better give a --certificate")
    learners = {"most_open": max_open, "snapshot_every": snapshot_every, "keep_journal": keep_journal}
    server = Server(directory, address, new, **learners)
    answer_signals(signal.SIGINT)  # which stops a server also in the background of a script
    show(server.address)
    server.run()


@app.command(epilog=EXIT_CODES)
def new(
    folder: Annotated[
        Path, typer.Argument(metavar="NAME", help="A folder that does not exist yet; those above it are made too.")
    ],
) -> None:
    """Write a small commented example of a problem in files of your own."""
    from tightrope.problems.files import write_example

    for path in write_example(folder):
        show(str(path))
    note(f"change them as you like, then: tightrope run {folder}")
