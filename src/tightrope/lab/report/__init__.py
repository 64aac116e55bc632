"""The report of a study: one HTML page that makes no requests, or a live page on the loopback address."""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from string import Template
from threading import Lock, Thread
from typing import Any

import numpy as np

from tightrope import __version__
from tightrope.errors import InvalidInputError, TightropeError
from tightrope.lab.engines import saved
from tightrope.lab.folder import HISTORY, RUNS, RunFolder, progress
from tightrope.lab.history import Budget
from tightrope.lab.results import Curve, Results, Section
from tightrope.lab.run import Run
from tightrope.lab.tables import SPREAD, Power, band, power
from tightrope.model import Policy
from tightrope.planning.hindsight import solve_cmdp
from tightrope.problems.base import Problem
from tightrope.space import FloatArray
from tightrope.storage.files import write_bytes

# --------------------------------------------------------------------------------------------- policies
#
# The last policies of the learners, layer by layer, next to the best fixed policy in hindsight. The policy of a learner
# is read from the last checkpoint of its first seed; hindsight is for the first of these runs.

#: The most states that the page shows.
MOST_STATES = 1500

#: Actions with a lower probability are left out.
RAREST = 0.005

#: The names of states that are cells of a grid.
CELL = re.compile(r"row (\d+), column (\d+)")


def policies(folder: Path, section: Section) -> dict[str, Any]:
    """Return the last policies of a section as plain data; `words` is the reason if there are none."""
    loaded: dict[str, Run] = {}
    words = ""
    for curve in section.curves:
        try:
            loaded[curve.label] = _load(RunFolder(folder / RUNS / curve.runs[0].name))
        except (TightropeError, OSError) as error:
            words = f"{curve.runs[0].name}: {error}"
    if not loaded:
        return {"words": f"The policies are unknown: {words}"}
    first = next(iter(loaded.values()))
    problem, space = first.problem, first.problem.space
    if space.n_states > MOST_STATES:
        return {"words": f"The problem has {space.n_states} states in {space.n_layers} layers, too many to show here."}
    met = first.account.total_constraints / first.episode if problem.changing else problem.constraints.mean
    best = solve_cmdp(problem.mdp, first.account.total_loss, met, problem.budgets).policy
    return {
        "words": "",
        "actions": [problem.action_name(action) for action in range(space.n_actions)],
        "layers": _layers(problem),
        "seed": first.seed,
        "learned": [
            {"label": label, "episode": run.episode, "states": _states(problem, run.learner.policy)}
            for label, run in loaded.items()
        ],
        "hindsight": _states(problem, best),
    }


def _load(folder: RunFolder) -> Run:
    report = folder.report()
    if report is None or not folder.checkpoint.is_file():
        raise TightropeError("there is no checkpoint")
    return saved(folder, report.configuration)


def _layers(problem: Problem) -> list[list[dict[str, Any]]]:
    """Return the states of each layer except the last: their names, and their cells if the problem is a grid."""
    starts = problem.space.csr.layer_ptr.tolist()
    layers = []
    for first, last in pairwise(starts[:-1]):
        names = [problem.state_name(state) for state in range(first, last)]
        cells = [CELL.search(name) for name in names]
        layers.append(
            [
                {"name": name, "cell": [int(part) for part in cell.groups()] if cell else None}
                for name, cell in zip(names, cells, strict=True)
            ]
        )
    return layers


def _states(problem: Problem, policy: Policy) -> list[list[Any]]:
    """Return for each state the expected visits per episode and the policy: [visits, [[action, probability], …]]."""
    space, theta = problem.space, problem.mdp.occupancy(policy)
    visits = np.bincount(space.tuples[:, 0], weights=theta, minlength=space.n_states)
    pairs = list(zip(space.pairs[:, 1].tolist(), policy.probabilities.round(3).tolist(), strict=True))
    ends = space.csr.state_ptr.tolist()
    n_choosing = int(space.csr.layer_ptr[-2])
    return [
        [round(float(visits[s]), 4), [pair for pair in pairs[ends[s] : ends[s + 1]] if pair[1] >= RAREST]]
        for s in range(n_choosing)
    ]


# --------------------------------------------------------------------------------------------- content

#: Logarithmic axes, on which a power of T is a straight line; or linear ones.
POWERS, PLAIN = "powers", "plain"


@dataclass(frozen=True)
class Figure:
    """A figure of a section: a column of the table, or the use of a budget per episode."""

    column: str
    title: str
    meaning: str
    axes: str
    budget: Budget | None = None

    def values(self, curve: Curve, episodes: FloatArray) -> FloatArray:
        """Return the values of a curve at episodes (n,), as (n_seeds, n)."""
        values = curve.values(self.column, episodes)
        return values if self.budget is None else values / episodes


FIGURES = (
    Figure("regret", "Regret", "loss so far beyond the best fixed policy within the budgets", POWERS),
    Figure("violation", "Violation", "excess of the sums over budget: episodes below budget offset others", POWERS),
    Figure("strong_violation", "Strong violation", "sum of the excess of each episode, without offsets", POWERS),
)
OF_THE_LEARNER = (
    Figure("multiplier_norm", "Multipliers", "norm of the learner's prices of the budgets", PLAIN),
    Figure("epoch", "Epochs", "number of updates of the learner's confidence set, plus one", PLAIN),
)


def figures_of(section: Section) -> list[Figure]:
    """Return the figures of a section for which there are records."""
    uses = [
        Figure(one.column, f"Use of {one.name}", "in an episode, on average so far", PLAIN, one)
        for one in section.budgets
    ]
    columns = [run.columns for curve in section.curves for run in curve.runs]
    recorded = {name for run in columns for name, column in run.items() if np.isfinite(column).any()}
    return [figure for figure in (*FIGURES, *uses, *OF_THE_LEARNER) if figure.column in recorded]


def content(folder: Path, *, live: bool = False) -> dict[str, Any]:
    """Return the content of the page of a study, as plain data."""
    sections = Results.read(folder, live=live).sections
    return {
        "title": folder.resolve().name,
        "version": __version__,
        "spread": SPREAD,
        "live": live,
        "progress": asdict(progress(folder)),
        "sections": [_section(section) | {"policies": policies(folder, section)} for section in sections],
    }


def _section(section: Section) -> dict[str, Any]:
    return {
        "title": section.title,
        "horizon": section.horizon,
        "units": section.facts.units,
        "warnings": section.facts.warnings,
        "episodes": section.episodes.astype(int).tolist(),
        "curves": [
            {"label": curve.label, "seeds": curve.seeds, "settings": curve.settings} for curve in section.curves
        ],
        "figures": [_figure(figure, section) for figure in figures_of(section)],
    }


def _figure(figure: Figure, section: Section) -> dict[str, Any]:
    budget = figure.budget
    unit = budget.unit if budget else section.facts.loss_unit if figure.column == "regret" else ""
    return {
        "title": figure.title,
        "meaning": figure.meaning,
        "axes": figure.axes,
        "unit": unit,
        "limit": None if budget is None else number(budget.limit),
        "curves": [_curve(figure, curve, section.episodes) for curve in section.curves],
    }


def _curve(figure: Figure, curve: Curve, episodes: FloatArray) -> dict[str, Any]:
    values = figure.values(curve, episodes)
    drawn = band(values)
    fitted = power(episodes, values) if figure.axes == POWERS else None
    return {
        "mean": numbers(drawn.mean),
        "low": numbers(drawn.low),
        "high": numbers(drawn.high),
        "last": [_last(of_seed) for of_seed in values],
        "power": None if fitted is None else _power(fitted),
    }


def _power(fitted: Power) -> dict[str, float | None]:
    return {name: number(value) for name, value in fitted._asdict().items()}


def _last(values: FloatArray) -> float | None:
    known = values[np.isfinite(values)]
    return number(known[-1]) if known.size else None


def numbers(values: FloatArray) -> list[float | None]:
    """Round values to six digits, more than a figure shows, to keep the page small."""
    return [number(value) for value in values.tolist()]


def number(value: float) -> float | None:
    """Round a value to six digits; None for NaN and infinity, which JSON does not have."""
    if not np.isfinite(value):
        return None
    short = float(f"{value:.6g}")
    return int(short) if short.is_integer() else short


# --------------------------------------------------------------------------------------------- page

ASSETS = files("tightrope.lab.report") / "assets"

#: In the order in which they are inserted; the library comes first.
STYLES = ("uPlot-1.6.32.min.css", "page.css")
SCRIPTS = ("uPlot-1.6.32.min.js", "elements.js", "charts.js", "tables.js", "policies.js", "figures.js")
LICENCE = "uPlot-1.6.32.LICENSE"  # must accompany every copy

#: Characters that could end the element of the content, as escapes of JSON.
HARMLESS = {ord(character): f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"}


def write_page(folder: Path, path: Path) -> None:
    """Write the page about the study in `folder`."""
    write_bytes(path, page(content(folder)).encode())


def page(content: Mapping[str, Any]) -> str:
    """Return the page of this content as HTML."""
    return whole_page(str(content["title"]), content, asset("page.js"), live=bool(content["live"]))


def whole_page(title: str, content: Mapping[str, Any], script: str, *, live: bool) -> str:
    """Return a page that needs no other file; no text in `content` can end its element or be executed.

    Parameters
    ----------
    script : draws the content.
    live : whether the script may request new content from the server of the page.
    """
    return Template(asset("page.html")).substitute(
        title=escape(title),
        connect="'self'" if live else "'none'",
        styles="\n".join(map(asset, STYLES)),
        scripts="\n".join([*map(asset, SCRIPTS), script]),
        licence=asset(LICENCE),
        content=as_json(content).translate(HARMLESS),
    )


def as_json(content: Mapping[str, Any]) -> str:
    """Return compact JSON in ASCII; lone surrogates, which file names may have, are escaped."""
    return json.dumps(content, separators=(",", ":"), allow_nan=False)


def asset(name: str) -> str:
    """Return the text of an asset."""
    return (ASSETS / name).read_text("utf-8")


HOST = "127.0.0.1"


class Latest:
    """The content of the page, renewed only after a run has written something."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock = Lock()
        self._stamps: list[tuple[str, int]] = []
        self._content: dict[str, Any] = {}

    def content(self) -> dict[str, Any]:
        """Return the current content."""
        with self._lock:
            found = sorted(self.folder.glob(f"{RUNS}/*/{HISTORY}"))
            stamps = [(path.parent.name, path.stat().st_mtime_ns) for path in found]
            if not self._content or stamps != self._stamps:
                self._content, self._stamps = content(self.folder, live=True), stamps
            return self._content | {"progress": asdict(progress(self.folder))}


class Handler(BaseHTTPRequestHandler):
    """Answers two requests: the page, and its content."""

    latest: Latest
    server: ThreadingHTTPServer

    def do_GET(self) -> None:
        """Answer / with the page, /content.json with its content."""
        # against DNS rebinding, by which other pages could read this one
        if self.headers.get("Host") not in [f"{name}:{self.server.server_port}" for name in (HOST, "localhost")]:
            return self.send_error(403)
        if self.path not in ("/", "/content.json"):
            return self.send_error(404)
        try:
            found = self.latest.content()
        except FileNotFoundError:  # runs are being discarded, to start over
            return self.send_error(503)
        if self.path == "/":
            return self._answer("text/html", page(found))
        return self._answer("application/json", as_json(found))

    def _answer(self, kind: str, text: str) -> None:
        data = text.encode()
        self.send_response(200)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing: the terminal belongs to the command."""


class Server(ThreadingHTTPServer):
    """Ends with the command, and prints nothing about clients that disconnect."""

    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print nothing: the terminal belongs to the command."""


@contextmanager
def served(folder: Path, port: int = 0) -> Iterator[str]:
    """Serve the page of the study in `folder` until the block ends; yield its address."""
    handler = type("OfFolder", (Handler,), {"latest": Latest(folder)})
    try:
        server = Server((HOST, port), handler)
    except (OSError, OverflowError) as error:
        raise InvalidInputError(f"cannot listen on port {port}: {error}; choose another with --port") from error
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True)
    thread.start()
    try:
        yield f"http://{HOST}:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
