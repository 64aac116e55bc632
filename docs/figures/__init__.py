"""The drawings of the site: `draw(name, folder)` writes one, in light and in dark."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

from figures.concepts import CONCEPTS
from figures.learners import budget_kept, first_episodes
from figures.learners import thumbnail as learner_thumbnail
from figures.problems import best_policies, thumbnail
from tightrope.learners import LEARNERS
from tightrope.problems import PROBLEMS

#: Colours of text and lines, and of a background to fade into.
THEMES = {"light": ("#24292f", "#ffffff"), "dark": ("#d0d7de", "#131416")}

Drawer = Callable[[Figure, str], None]

#: Every drawing by name: its size in inches, and the function that draws it on a figure in a theme.
FIGURES: dict[str, tuple[tuple[float, float], Drawer]] = {
    **CONCEPTS,
    "front-delay": ((4.0, 2.7), partial(budget_kept, 0)),
    "front-energy": ((4.0, 2.7), partial(budget_kept, 1)),
    **{f"problem-{name}": ((7.2, 2.8), partial(best_policies, name)) for name in PROBLEMS},
    **{f"learner-{name}": ((7.2, 2.4), partial(first_episodes, name)) for name in LEARNERS},
    **{f"thumbnail-{name}": ((3.0, 1.6), partial(thumbnail, name)) for name in PROBLEMS},
    **{f"thumbnail-of-{name}": ((3.0, 1.6), partial(learner_thumbnail, name)) for name in LEARNERS},
}


def draw(name: str, folder: Path) -> None:
    """Write `name`-light.svg and `name`-dark.svg into `folder`, unless they are there."""
    size, drawer = FIGURES[name]
    folder.mkdir(parents=True, exist_ok=True)
    for theme, (ink, _) in THEMES.items():
        path = folder / f"{name}-{theme}.svg"
        if path.exists():
            continue
        colours = dict.fromkeys(("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color"), ink)
        with mpl.rc_context({**colours, "svg.hashsalt": name, "font.size": 10}):
            figure = Figure(figsize=size, layout="constrained")
            drawer(figure, theme)
            figure.savefig(path, transparent=True, metadata={"Date": None})
