"""What all figures share: colours, fonts, logarithmic axes, and writing to files."""

import unicodedata
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import TextToPath
from matplotlib.ticker import FuncFormatter, NullLocator

from tightrope.arguments import printable
from tightrope.errors import InvalidInputError
from tightrope.space import FloatArray
from tightrope.storage.files import write_bytes

#: File formats and their metadata; no dates, so that equal figures are equal files.
FORMS: dict[str, dict[str, Any]] = {"png": {}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}

#: Inches of the widest label that a figure makes room for.
WIDEST = 8.0

#: Font sizes of a title, and of a long title; a title that is still too long is cut.
TITLE, SMALLEST = 13.0, 7.0

INK, MUTED, GRID = "#222222", "#6f6f6f", "#e6e6e6"
#: The colours of Okabe and Ito, which colour-blind readers can tell apart; without yellow, too faint for a line.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
#: Line styles for more learners than colours, and marks for their labels.
DASHES: Any = (("solid", ""), ((0, (5, 1.5)), "╌ "), ((0, (1, 1.3)), "┈ "))
STYLE: Any = {
    "font.family": "DejaVu Sans",
    "font.size": 9.5,
    "text.color": INK,
    "figure.facecolor": "white",
    "axes.facecolor": "white",
    "axes.edgecolor": MUTED,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.grid.which": "major",
    "grid.color": GRID,
    "grid.linewidth": 0.7,
    "lines.solid_capstyle": "round",
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "text.parse_math": False,  # $ in a name is not mathematics
    "svg.hashsalt": "tightrope",  # the same run gives the same file
}


def save(figure: Figure, folder: Path, name: str) -> list[Path]:
    """Write `name`.png and `name`.svg into `folder`, atomically; return where they are."""
    paths = [folder / f"{name}.{form}" for form in ("png", "svg")]
    for path in paths:
        write(figure, path)
    return paths


def write(figure: Figure, path: Path) -> None:
    """Write a figure atomically, in the format of its suffix."""
    buffer, form = BytesIO(), form_of(path)
    with mpl.rc_context(STYLE), _unknown_letters():
        figure.savefig(buffer, format=form, metadata=FORMS[form])
    write_bytes(path, buffer.getvalue())


@contextmanager
def _unknown_letters() -> Iterator[None]:
    """Ignore warnings about missing glyphs, which are drawn as boxes."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph")
        yield


def form_of(path: Path) -> str:
    """Return the format of a figure from the suffix of its path."""
    form = path.suffix.lower().removeprefix(".")
    if form not in FORMS:
        raise InvalidInputError(f"{printable(path)}: the name of a picture must end in .{' or .'.join(FORMS)}")
    return form


def entitle(figure: Figure, title: str, meaning: str) -> None:
    """Write the title, as large as there is room for, and an explanation below it."""
    height, room = figure.get_figheight(), 0.96 * figure.get_figwidth()
    size = max(SMALLEST, TITLE * min(1.0, room / max(_inches(title, TITLE), 1.0)))
    figure.text(0.02, 1 - 0.26 / height, drawable(title), size=size, weight="bold", va="center")
    figure.text(0.02, 1 - 0.53 / height, meaning, color=MUTED, va="center")


def head(axes: Axes, name: str, meaning: str) -> None:
    for text, points, style in ((name, 23, {"size": 11, "weight": "bold"}), (meaning, 9, {"color": MUTED})):
        axes.annotate(text, (0, 1), (0, points), "axes fraction", "offset points", **style)


def against_episodes(axes: Axes) -> None:
    """Label the axis of episodes and make it logarithmic."""
    axes.set_xscale("log")
    axes.set_xlabel("episode", loc="left", color=MUTED)
    axes.tick_params(length=3, width=0.8)
    plain_ticks(axes.xaxis)


def plain_ticks(axis: Axis) -> None:
    """Ticks at 10, 1k, 1M, and no minor ones."""
    axis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))
    axis.set_minor_locator(NullLocator())


def logarithmic(axes: Axes, values: FloatArray) -> str:
    """Make the vertical axis logarithmic, linear around zero if a value is at or below it; return a note about that."""
    note = ""
    if values.min() > 0:
        axes.set_yscale("log")
    else:
        largest = np.abs(values).max()
        threshold = 1.0 if largest >= 10 or largest == 0 else 10.0 ** np.floor(np.log10(largest / 10))
        low, high = min(values.min(), 0.0), max(values.max(), threshold)
        axes.set_yscale("symlog", linthresh=threshold, linscale=0.6)
        axes.set_ylim(1.6 * low, 1.6 * high)
        if low < 0:
            axes.axhline(0, color=MUTED, linewidth=0.8)
        note = f"vertical axis linear between {short(-threshold) if low < 0 else 0} and {short(threshold)}"
    plain_ticks(axes.yaxis)
    return note


def spread(heights: Sequence[float] | FloatArray, *, gap: float) -> FloatArray:
    """The heights nearest to these ascending ones (least squares) that are `gap` apart; in 0..1 if they fit."""
    steps = gap * np.arange(len(heights))
    pooled = nearest_ascending(
        np.asarray(heights, dtype=np.float64) - steps
    )  # with the gaps taken out, neighbours in the wrong order pool
    return np.asarray(np.clip(pooled, 0.0, max(0.0, 1.0 - steps[-1])) + steps)


def nearest_ascending(values: FloatArray) -> FloatArray:
    """The ascending sequence nearest to `values` (n,), in least squares: neighbours in the wrong order share a mean."""
    pools: list[tuple[float, int]] = []  # mean and length
    for value in values.tolist():
        mean, n = value, 1
        while pools and pools[-1][0] >= mean:
            before, m = pools.pop()
            mean, n = (before * m + mean * n) / (m + n), m + n
        pools.append((mean, n))
    means, lengths = zip(*pools, strict=True)
    return np.repeat(means, lengths)


def width_of(labels: Iterable[str]) -> float:
    """The width of the widest of these labels in inches, at most WIDEST."""
    widest = max((_inches(label, STYLE["font.size"]) for label in labels), default=0.0)
    return min(WIDEST, 9 / 72 + widest + 0.1)


def _inches(text: str, size: float) -> float:
    """The width of a text in inches, in bold letters of this size in points."""
    bold = FontProperties(family=STYLE["font.family"], size=size, weight="bold")
    with _unknown_letters():
        return float(TextToPath().get_text_width_height_descent(drawable(text), bold, ismath=False)[0]) / 72


def drawable(text: str) -> str:
    """Replace characters that have no glyph and are not allowed in SVG."""
    return "".join("\ufffd" if unicodedata.category(c).startswith("C") else c for c in text)


def grouped(value: float) -> str:
    """A number with thin spaces between thousands, 20 000, and three digits if it is small."""
    return (f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}").replace(",", "\u2009").replace("-", "−")


def short(value: float) -> str:
    """The label of a tick: 1, 10, 100, 1k, 10k, 1M."""
    for unit, name in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= unit:
            return f"{value / unit:g}{name}".replace("-", "−")
    return f"{value:g}".replace("-", "−")
