"""Diagrams: a layered CMDP, an occupancy measure, ask and tell, and how the solver lays out its work."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch, Rectangle

import tightrope as tr

#: Colours that stand out on white and on black.
BLUE, ORANGE, GREY = "#0b7fab", "#d1603d", "#8c959f"
#: Blue and orange for large areas, by theme.
TINTS = {"light": ("#2a8fbd", "#e2713f"), "dark": ("#3fa7d6", "#f08a5d")}

SIZES = (1, 3, 3, 1)


def places(sizes: tuple[int, ...] = SIZES) -> np.ndarray:
    """Return (n_states, 2) where each state stands: layers from left to right, states from top to bottom."""
    return np.array([(k, (n - 1) / 2 - i) for k, n in enumerate(sizes) for i in range(n)], dtype=np.float64)


def arrow(
    axes: Axes, start: np.ndarray, end: np.ndarray, colour: str, *, width: float = 1.0, bend: float = 0.0
) -> None:
    """Draw an arrow from state to state."""
    axes.add_patch(
        FancyArrowPatch(
            tuple(start),
            tuple(end),
            arrowstyle="-|>",
            mutation_scale=10,
            shrinkA=9,
            shrinkB=9,
            color=colour,
            linewidth=width,
            connectionstyle=f"arc3,rad={bend}",
        )
    )


def layers(axes: Axes, sizes: tuple[int, ...] = SIZES, *, headings: bool = True) -> np.ndarray:
    """Draw the states of each layer and set the limits; return where they are."""
    where = places(sizes)
    axes.plot(*where.T, "o", markersize=15, color=GREY)
    top = (max(sizes) - 1) / 2
    for k in range(len(sizes)):
        if headings:
            axes.text(k, top + 0.55, f"layer {k}", ha="center")
    axes.set(xlim=(-0.35, len(sizes) - 0.65), ylim=(-top - 0.6, top + 0.9))
    axes.axis("off")
    return where


def layered_cmdp(figure: Figure, theme: str) -> None:
    axes = figure.subplots()
    where = layers(axes)
    for start, end in ((0, 1), (0, 3), (1, 5), (1, 6), (3, 4), (3, 5), (4, 7), (5, 7), (6, 7)):
        arrow(axes, where[start], where[end], GREY, width=0.7)
    for end, chance in ((4, "0.7"), (5, "0.2"), (6, "0.1")):
        arrow(axes, where[2], where[end], BLUE, width=2)
        x, y = 0.45 * where[2] + 0.55 * where[end]
        axes.text(x, y + 0.14, chance, ha="center", color=BLUE, fontweight="bold")
    arrow(axes, where[0], where[2], ORANGE, width=2)
    axes.text(0.1, -0.75, "a tuple (s, a, s'):\nloss f, uses g", ha="center", va="top", color=ORANGE)
    axes.text(1.0, -0.32, "a pair (s, a)", ha="center", va="top", color=BLUE)
    axes.text(3.0, -0.35, "the end", ha="center", va="top")
    axes.text(0.0, 0.25, "the start", ha="center")


def occupancy(figure: Figure, theme: str) -> None:
    """Two policies of one model: the width of a line is how likely an episode passes through it."""
    space = tr.LayeredSpace.dense(layer_sizes=SIZES, n_actions=2)
    rng = np.random.default_rng(3)
    weights = rng.gamma(0.5, size=space.n_tuples)
    mdp = tr.LayeredMDP(space, weights / space.expand_to_tuples(space.sum_over_successors(weights)))
    chosen = np.where(space.pairs[:, 1] == 0, 0.9, 0.1)
    for axes, policy, title in zip(
        figure.subplots(1, 2),
        (tr.Policy.uniform(space), tr.Policy(space, chosen)),
        ("each action with probability 1/2", "action 0 with probability 0.9"),
        strict=True,
    ):
        where = layers(axes)
        theta = mdp.occupancy(policy)
        for (s, a, s_next), mass in zip(space.tuples, theta, strict=True):
            ends = np.array([where[s], where[s_next]])
            axes.plot(
                ends[:, 0], ends[:, 1] + (0.06 if a else -0.06), color=(BLUE, ORANGE)[a], linewidth=9 * mass, alpha=0.8,
                zorder=0, solid_capstyle="butt",
            )  # fmt: skip
        axes.set_title(title)


def box(axes: Axes, x: float, y: float, width: float, height: float, text: str, colour: str) -> None:
    patch = FancyBboxPatch(
        (x, y), width, height, boxstyle="round,pad=0.02,rounding_size=0.06", facecolor="none", edgecolor=colour, lw=1.5
    )
    axes.add_patch(patch)
    axes.text(x + width / 2, y + height / 2, text, ha="center", va="center")


def between(axes: Axes, start: tuple[float, float], end: tuple[float, float], text: str, colour: str) -> None:
    axes.add_patch(FancyArrowPatch(start, end, arrowstyle="-|>", mutation_scale=12, color=colour, linewidth=1.5))
    x, y = (start[0] + end[0]) / 2, (start[1] + end[1]) / 2
    if start[1] == end[1]:
        axes.text(x, y + 0.06, text, ha="center", va="bottom")
    else:
        axes.text(x + 0.06, y, text, ha="left", va="center")


def ask_tell_journal(figure: Figure, theme: str) -> None:
    axes = figure.subplots()
    box(axes, 0.0, 0.55, 1.2, 1.55, "your system\n\nplays the\nepisode", GREY)
    box(axes, 3.0, 0.55, 1.3, 1.55, "durable\nlearner", BLUE)
    box(axes, 5.5, 1.35, 1.5, 0.75, "journal:\nall events", ORANGE)
    box(axes, 5.5, 0.55, 1.5, 0.55, "snapshots", ORANGE)
    between(axes, (1.25, 1.95), (2.95, 1.95), "1  ask", GREY)
    between(axes, (2.95, 1.6), (1.25, 1.6), "2  id and policy", BLUE)
    between(axes, (1.25, 1.1), (2.95, 1.1), "3  tell the outcome", GREY)
    between(axes, (2.95, 0.7), (1.25, 0.7), "5  learned", BLUE)
    between(axes, (4.35, 1.72), (5.45, 1.72), "4  sync", BLUE)
    between(axes, (4.35, 0.82), (5.45, 0.82), "sometimes", BLUE)
    axes.text(3.5, 0.2, "After a crash: read the last snapshot, replay the journal after it.", ha="center", va="center")
    axes.set(xlim=(-0.1, 7.1), ylim=(0, 2.3))
    axes.axis("off")


def lanes(figure: Figure, theme: str) -> None:
    """Left as a page lists them, right as the core lays them out."""
    left, right = figure.subplots(1, 2, width_ratios=(1, 1.6))
    counts, colours = (3, 3, 2, 3), (BLUE, ORANGE, GREY, "#6f7f2e")
    for pair, (n, colour) in enumerate(zip(counts, colours, strict=True)):
        for i in range(n):
            left.add_patch(Rectangle((0.1 + i, 3 - pair + 0.1), 0.8, 0.8, facecolor=colour))
            left.text(0.5 + i, 3 - pair + 0.5, f"{'abcd'[pair]}{i}", ha="center", va="center", color="#ffffff")
            right.add_patch(Rectangle((pair + 0.1, 2 - i + 0.1), 0.8, 0.8, facecolor=colour))
            right.text(pair + 0.5, 2 - i + 0.5, f"{'abcd'[pair]}{i}", ha="center", va="center", color="#ffffff")
    for i in range(3):
        right.text(5.0, 2 - i + 0.5, f"one instruction: successor {i} of all pairs", va="center")
        right.annotate("", (4.9, 2 - i + 0.5), (4.1, 2 - i + 0.5), arrowprops={"arrowstyle": "<-", "color": GREY})
    left.set(xlim=(-0.1, 3.1), ylim=(0, 4.1), title="pairs a to d, one a row")
    right.set(xlim=(-0.1, 10.5), ylim=(-0.6, 3.5), title="a chunk: pairs side by side")
    for axes in (left, right):
        axes.axis("off")


def dual(figure: Figure, theme: str) -> None:
    """Potentials on the states, and the pattern of the Hessian that follows."""
    left, right = figure.subplots(1, 2, width_ratios=(1.7, 1))
    where = layers(left)
    for k in range(len(SIZES) - 1):
        first, n, m = sum(SIZES[:k]), SIZES[k], SIZES[k + 1]
        for s in range(first, first + n):
            for s_next in range(first + n, first + n + m):
                left.plot(*where[[s, s_next]].T, color=GREY, linewidth=0.7, zorder=0)
    for s, (x, y) in enumerate(where):
        left.text(x, y - 0.36, rf"$\beta_{{{s}}}$", ha="center", color=BLUE)
    left.set_ylim(-1.7, 1.9)
    starts = np.concatenate([[0], np.cumsum(SIZES)])
    for k, n in enumerate(SIZES):
        for other in (k - 1, k, k + 1):
            if 0 <= other < len(SIZES):
                colour = BLUE if other == k else ORANGE
                right.add_patch(Rectangle((starts[other], starts[k]), SIZES[other], n, facecolor=colour, alpha=0.85))
    total = starts[-1]
    right.set(xlim=(-0.2, total + 0.2), ylim=(total + 0.2, -0.2), aspect="equal", title="second derivatives of F(β)")
    right.axis("off")


CONCEPTS = {
    "layered-cmdp": ((7.2, 3.0), layered_cmdp),
    "occupancy": ((7.6, 2.8), occupancy),
    "ask-tell-journal": ((7.6, 2.6), ask_tell_journal),
    "solver-lanes": ((7.6, 2.2), lanes),
    "solver-dual": ((7.6, 2.8), dual),
}
