"""The commands: parsing and printing only. Results on stdout, progress and notes on stderr."""

from pathlib import Path
from typing import Annotated

import typer

from tightrope.arguments import LARGEST, MANY, MOST_RUNS, unknown
from tightrope.cli import note, options, show
from tightrope.cli.app import EXIT_CODES, FAILED, Command, app

__all__ = ["app", "directories"]


# commands import the rest of tightrope when they are called: help does not wait for NumPy and Matplotlib

#: What can be listed.
LISTS = ("problems", "learners", "losses", "noises")


@app.command("list", cls=Command)
def list_(
    kind: Annotated[
        str | None,
        options.argument("KIND", "problems, learners, losses or noises.", show_default="all four"),
    ] = None,
    name: Annotated[str | None, options.argument("NAME", "Show one of them with its options.")] = None,
) -> None:
    """List problems, learners, loss sequences and noises of the constraints; or show the options of one of them."""
    from tightrope.cli.listings import details, listing

    if kind is not None and kind not in LISTS:
        raise unknown("there is no list of", kind, LISTS)
    if kind is not None and name is not None:
        show("\n".join(details(kind, name)))
        return
    for one in [kind] if kind else LISTS:
        lines = listing(one)
        show("\n".join(lines if kind else [f"{one}:", *lines, ""]))
    if kind is not None:
        note(f"options of one of them: tightrope list {kind} NAME")


@app.command(epilog=EXIT_CODES, cls=Command)
@options.grouped(options.Conduct)
def run(
    problem: options.Problem,
    episodes: options.Episodes = None,
    seed: Annotated[int, options.whole("Random seed of the first run.", 0, LARGEST)] = 0,
    seeds: Annotated[int, options.whole("Number of seeds: seed, seed + 1, and so on.", 1, MOST_RUNS)] = 1,
    learner: Annotated[
        list[str] | None,
        options.value(
            "NAMES",
            "Learners to run, separated by commas; see: tightrope list learners.",
            "--learner",
            "--learners",
            default="ucpd-practical, ucpd",
            names="learners",
        ),
    ] = None,
    losses: Annotated[
        list[str] | None,
        options.value(
            "NAMES",
            "Loss sequences to run, separated by commas; see: tightrope list losses.",
            default="the problem's own",
            names="losses",
        ),
    ] = None,
    noise: Annotated[
        list[str] | None,
        options.value(
            "NAMES",
            "Laws of the constraints to run, separated by commas; see: tightrope list noises.",
            "--noise",
            "--constraints",
            default="the problem's own",
            names="noises",
        ),
    ] = None,
    records: Annotated[int, options.whole("Number of episodes to record.", 1, MANY)] = 60,
    spacing: Annotated[options.Spacing, options.one_of(options.Spacing, "Spacing of the recorded episodes.")] = "log",
    regret: Annotated[
        options.Regret,
        options.one_of(
            options.Regret, "Compute the regret (a linear program) at all records, only at the last, or never."
        ),
    ] = "records",
    *,
    conduct: options.Conduct,
) -> None:
    """Run learners on a problem; print regret and budget use, write tables and a picture.

    The same command continues a run that was interrupted.
    """
    from tightrope.cli import actions
    from tightrope.lab.runner import folder_name
    from tightrope.lab.study import DEFAULT_LEARNERS, Records, Study

    study = Study(
        problems=[problem],
        learners=[*(options.listed("--learner", learner) or DEFAULT_LEARNERS)],
        losses=[*options.listed("--losses", losses)],
        noises=[*options.listed("--noise", noise)],
        episodes=options.episodes_of(problem, episodes),
        seeds=list(range(seed, seed + seeds)),
        records=Records(count=records, spacing=spacing, regret=regret),
    )
    study = actions.with_options(study, conduct)
    actions.play_study(study, conduct.out or Path("runs", folder_name(study)), conduct, draw=True)


@app.command(epilog=EXIT_CODES, cls=Command)
@options.grouped(options.Conduct)
def sweep(
    file: Annotated[Path, options.argument("FILE", "A study file (docs/how-to/studies.md).")],
    *,
    conduct: options.Conduct,
) -> None:
    """Run a study: learners × problems × losses × options × seeds, from one file.

    The same command continues a study that was interrupted.
    """
    from tightrope.cli import actions
    from tightrope.lab.runner import is_conducted
    from tightrope.lab.study import StudyFile

    file = actions.study_file(file)
    study = actions.with_options(StudyFile(file).study, conduct)
    own = file.parent if is_conducted(file) else None  # a study in its own folder continues there
    actions.play_study(study, conduct.out or own or Path("runs", file.stem), conduct, beside=file.parent, draw=False)


@app.command(epilog="Exit code: 0 all assumptions hold, 1 one fails, 2 wrong usage or input.", cls=Command)
def check(
    problem: options.Problem,
    episodes: options.Episodes = None,
    seed: Annotated[int, options.whole("Random seed of the losses and constraints to examine.", 0, LARGEST)] = 0,
    losses: Annotated[
        str | None,
        options.value(
            "NAME", "Loss sequence; see: tightrope list losses.", default="the problem's own", names="losses"
        ),
    ] = None,
    noise: Annotated[
        str | None,
        options.value(
            "NAME",
            "Law of the constraints; see: tightrope list noises.",
            "--noise",
            "--constraints",
            default="the problem's own",
            names="noises",
        ),
    ] = None,
    level: Annotated[
        float | None,
        options.value("PROBABILITY", "Confidence level ζ that you intend to give to ucpd.", default="ucpd's default"),
    ] = None,
    budget: Annotated[
        list[str] | None, options.value("NAME=LIMIT", "Check the problem with this limit of a budget; repeatable.")
    ] = None,
    learner: Annotated[
        str,
        options.value("NAME", "Learner to simulate where the losses depend on the policies played.", names="learners"),
    ] = "ucpd",
    figure: Annotated[
        Path | None,
        options.value("FILE", "Draw the least loss against each budget to this .png, .svg or .pdf file."),
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Check whether the theorem's assumptions hold for a problem, and what each budget costs."""
    from tightrope.cli.actions import check_problem

    limits = options.limits(budget or [])
    holds = check_problem(
        problem, options.episodes_of(problem, episodes), seed, losses, noise, level, limits, learner, figure, as_json
    )
    raise typer.Exit(0 if holds else FAILED)


@app.command(epilog=EXIT_CODES, cls=Command)
def report(
    folder: options.Folder,
    figures: Annotated[
        options.Form | None,
        options.one_of(options.Form, "Also write figures for a paper in this format, to DIR/figures.", default="none"),
    ] = None,
    out: Annotated[Path | None, options.value("FILE", "File to write the page to.", default="DIR/report.html")] = None,
) -> None:
    """Write a study as one HTML page that works offline: figures, tables, parameters, policies."""
    from tightrope.lab.report import write_page
    from tightrope.lab.report.figures import write_figures

    path = out or folder / "report.html"
    write_page(folder, path)
    show(str(path))
    for path in write_figures(folder, figures) if figures else ():
        show(str(path))


@app.command(epilog=EXIT_CODES, cls=Command)
def watch(folder: options.Folder, port: options.Port = 0) -> None:
    """Serve a live page of a study on this machine until Ctrl-C."""
    from threading import Event

    from tightrope.lab.report import served
    from tightrope.lab.results import check_folder

    check_folder(folder, live=True)
    with served(folder, port) as address:
        show(address)
        Event().wait()


@app.command(epilog=EXIT_CODES, cls=Command, context_settings={"auto_envvar_prefix": "TIGHTROPE_SERVE"})
@options.grouped(options.Serving)
def serve(
    directory: Annotated[
        str,
        options.argument(
            "DIR",
            "The directory of a durable learner, or a directory that holds several of them; or the address of a "
            "PostgreSQL database, postgresql://USER@HOST/DATABASE, that several replicas serve.",
        ),
    ],
    problem: Annotated[
        str | None,
        options.value(
            "PROBLEM",
            "Create the learner for this problem if it does not exist: a name, or a folder (tightrope new).",
            names="problems",
        ),
    ] = None,
    learner: options.Learner = "ucpd-practical",
    episodes: options.Planned = None,
    name: Annotated[
        str | None,
        options.value(
            "NAME", "Create the learner in DIR/NAME, to serve several; in a database, the schema.", default="DIR itself"
        ),
    ] = None,
    *,
    serving: options.Serving,
) -> None:
    """Serve durable learners over HTTP until Ctrl-C (docs/how-to/service.md). --problem creates the learner first."""
    import signal

    from tightrope.cli.production import served_place
    from tightrope.ops.auth import Limits
    from tightrope.ops.logs import configure
    from tightrope.ops.server import Address, Server, token_of
    from tightrope.signals import answer_signals

    place, new = served_place(directory, name), None
    if problem is not None:
        from tightrope.cli.production import new_learner

        new = new_learner(place, problem, learner, episodes, name)
    configure(serving.log_level, serving.log_format)
    limits, token = Limits(body=serving.max_body, rate=serving.rate), token_of(serving.token_file)
    address = Address(serving.host, serving.port, token, serving.tokens_file, serving.certificate, serving.key, limits)
    if address.guarded and serving.certificate is None and not address.loopback:
        note("warning: without TLS the token can be read on the network; use --certificate")
    learners: dict[str, float] = {"most_open": serving.max_open, "snapshot_every": serving.snapshot_every}
    learners |= {"keep_days": serving.keep_days, "keep_journal": serving.keep_journal}
    if serving.expire_after is not None:
        learners["expire_after"] = serving.expire_after
    server = Server(place if isinstance(place, str) else Path(directory), address, new, **learners)
    answer_signals(signal.SIGINT)  # Ctrl-C stops the server also in the background of a script
    show(server.address)
    server.run()


@app.command(epilog=EXIT_CODES, cls=Command)
def new(
    folder: Annotated[Path, options.argument("NAME", "A new folder; parent folders are created as needed.")],
    from_log: Annotated[
        Path | None, options.value("FILE", "Recorded episodes, CSV or Parquet.", default="a commented example")
    ] = None,
    budget: Annotated[
        list[str] | None, options.value("NAME=LIMIT", "A column of the log that is a budget, and its limit.")
    ] = None,
    column: Annotated[
        list[str] | None,
        options.value("ROLE=COLUMNS", "A column of the log with another name: loss=cost, state=level,hour."),
    ] = None,
    bins: Annotated[
        list[str] | None, options.value("COLUMN=EDGES", "Edges for a column of numbers: level=10,20,50.")
    ] = None,
    unit: Annotated[list[str] | None, options.value("NAME=UNIT", "For headings: loss=euros.")] = None,
    bounds: Annotated[
        list[str] | None,
        options.value("NAME=LEAST,MOST", "What a step can ever have: loss=-5,20.", default="what was recorded"),
    ] = None,
    terminal: Annotated[list[str] | None, options.value("STATE", "Where an episode is over.")] = None,
    by_step: Annotated[bool, options.flag("--by-step", "Every step has laws and losses of its own.")] = False,
) -> None:
    """Write a problem in files of your own: a small commented example, or what a log says there is."""
    if from_log is None:
        if budget or column or bins or unit or bounds or terminal or by_step:
            raise typer.BadParameter("the options of a log need --from-log FILE.")
        from tightrope.problems.files import write_example

        for path in write_example(folder):
            show(str(path))
        note(f"edit these files, then run: tightrope run {folder}")
        return
    from tightrope.cli.actions import new_from_log

    new_from_log(
        folder, from_log, options.limits(budget or []), column or [], bins or [], unit or [], bounds or [],
        terminal or [], by_step,
    )  # fmt: skip


Recorded = Annotated[Path, options.argument("DIR", "A problem made from a log: tightrope new --from-log.")]


@app.command(epilog=EXIT_CODES, cls=Command)
def learn(
    folder: Recorded,
    file: Annotated[Path, options.argument("FILE", "Where to write the learner; tr.load reads it.")],
    learner: options.Learner = "ucpd-practical",
    episodes: options.Planned = None,
) -> None:
    """Make a learner that has counted the episodes of a log, and write it to a file."""
    from tightrope.cli.actions import learn_from_log

    learn_from_log(folder, file, learner, episodes)


@app.command(epilog=EXIT_CODES, cls=Command)
def evaluate(
    folder: Recorded,
    policy: Annotated[
        str,
        options.argument(
            "POLICY",
            "best (the problem's own, within the budgets), uniform, a learner's file, or a .csv of a policy.",
        ),
    ] = "best",
    level: Annotated[
        float, options.value("P", "The probability that the intervals hold.", min=0.5, max=0.999999)
    ] = 0.95,
) -> None:
    """Estimate from the log what a policy would cost and use, with intervals."""
    from tightrope.cli.actions import evaluate_policy

    evaluate_policy(folder, policy, level)


from tightrope.cli import directories  # noqa: E402 - the help lists them after the others
