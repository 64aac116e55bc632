"""Writes tables between the marks of a page of docs, and draws the picture of docs/explanation/benchmarks.md."""

from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib as mpl
from matplotlib.figure import Figure

from benchmarks.problems import table as table
from tightrope.lab.figures import INK, MUTED, PALETTE, STYLE
from tightrope.storage.files import write_bytes

if TYPE_CHECKING:
    from benchmarks.growth import Size
    from benchmarks.subproblem import Row

DOCS = Path(__file__).parent.parent / "docs"
PAGE, COMPARISON = DOCS / "explanation" / "benchmarks.md", DOCS / "explanation" / "comparison-tables.md"
DASHED = (0, (4, 2))
DRAWN = STYLE | {"text.parse_math": True}  # powers of ten at logarithmic axes
PICTURE = DOCS / "images" / "benchmarks.png"


def write(mark: str, text: str, page: Path = PAGE) -> None:
    """Replace the text between the marks of that name."""
    before, begin, rest = page.read_text("utf-8").partition(f"<!-- {mark} -->\n")
    _, end, after = rest.partition(f"<!-- end of {mark} -->")
    if not (begin and end):
        raise SystemExit(f"{page.name} has no place for {mark}")
    write_bytes(page, f"{before}{begin}{text}\n{end}{after}".encode())


def draw(rows: Sequence["Row"], family: Sequence["Size"]) -> None:
    """Draw our times and those of the rivals on every model (left), and growth over the sparse family (right)."""
    with mpl.rc_context(DRAWN):
        figure = Figure(figsize=(10.5, 4.4), layout="constrained")
        left, right = figure.subplots(1, 2)
        late = sorted((row for row in rows if row.phase == "late"), key=lambda row: row.n_tuples)
        tuples = [row.n_tuples for row in late]
        left.plot(tuples, [row.exp_pass for row in late], color=MUTED, linestyle=DASHED, label="numpy.exp, once")
        left.plot(tuples, [row.warm for row in late], "o-", color=PALETTE[0], label="tightrope, warm")
        left.plot(tuples, [row.cold for row in late], "o--", color=PALETTE[5], label="tightrope, cold")
        names = list(dict.fromkeys(name for row in late for name in row.others if "prepared" not in name))
        for name, colour, marker in zip(names, (PALETTE[1], PALETTE[3], PALETTE[2]), "sD^", strict=False):
            points = [
                (row.n_tuples, result.seconds, result.status)
                for row in late
                if not isinstance(result := row.others.get(name, ""), str)
            ]
            left.plot([n for n, _, _ in points], [t for _, t, _ in points], f"{marker}-", color=colour, label=name)
            for n, t, status in points:
                if status not in ("optimal", "stopped"):
                    left.plot(n, t, marker, color="white", markeredgecolor=colour, zorder=3)
        left.set_title("One episode, late: hollow marks did not get there", loc="left", color=INK, fontsize=10)
        sizes = [size.n_tuples for size in family]
        for label, name, colour in (
            ("whole loop, early", "loop", PALETTE[2]),
            ("projection, late", "late", PALETTE[1]),
            ("projection, early", "early", PALETTE[0]),
        ):
            right.plot(sizes, [getattr(size, name) for size in family], "o-", color=colour, label=label)
        right.plot(sizes, [size.exp_pass for size in family], color=MUTED, linestyle=DASHED, label="numpy.exp, once")
        right.set_title("Grids over 40 steps, per episode", loc="left", color=INK, fontsize=10)
        for axes in (left, right):
            axes.set_xscale("log")
            axes.set_yscale("log")
            axes.set_xlabel("tuples")
            axes.legend(frameon=False, fontsize=8.5)
        left.set_ylim(bottom=1e-8)  # room for the legend
        left.set_ylabel("seconds")
        data = BytesIO()
        figure.savefig(data, format="png", dpi=160, metadata={"Software": None})
    write_bytes(PICTURE, data.getvalue())
