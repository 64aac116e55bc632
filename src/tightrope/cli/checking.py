"""`tightrope check`: print the page or the numbers of a problem, draw its picture."""

import json
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from tightrope import theory
from tightrope.cli.standard import note, show
from tightrope.lab import drawing
from tightrope.lab.plan import folder_of
from tightrope.lab.progress import shown
from tightrope.problems import make
from tightrope.problems.files import load_with_digest
from tightrope.theory.facts import facts
from tightrope.theory.page import page
from tightrope.theory.picture import draw
from tightrope.theory.windows import answering


def check_problem(
    name: str,
    episodes: int,
    seed: int,
    losses: str | None,
    noise: str | None,
    level: float | None,
    limits: Mapping[str, float],
    learner: str,
    figure: Path | None,
    as_json: bool,
) -> bool:
    """Print what the theorem says about a problem, by name or in a folder; return whether its assumptions hold."""
    if figure is not None:
        drawing.form_of(figure)  # refused before anything is computed
    place, asked = folder_of(name, Path()), {"losses": losses, "noise": noise}
    chosen: Any = {kind: choice for kind, choice in asked.items() if choice is not None}
    loaded = make(name, **chosen) if place is None else load_with_digest(place, **chosen, any_budgets=True)[0]
    problem = loaded.with_budgets(limits)
    at: dict[str, Any] = {} if level is None else {"level": level}
    with shown(episodes, 1, 0, 0) if answering(problem) else nullcontext() as tell:
        found = theory.check(
            problem,
            episodes=episodes,
            seed=seed,
            **at,
            learner=learner,
            progress=tell and (lambda done: tell(done, 0)),
        )
    show(json.dumps(facts(found), indent=2, ensure_ascii=False) if as_json else "\n".join(page(found)))
    if figure is not None:
        drawing.write(draw(found), figure)
        note(f"picture  {figure}")
    return found.holds
