"""Logs of made-up episodes: the machine of the example folder, played by name."""

import csv
import io
from pathlib import Path
from typing import Any

import numpy as np

from tightrope.problems.files.folder import example_text

MOVES = list(csv.DictReader(io.StringIO(example_text("transitions.csv"))))
WEEKS = list(csv.DictReader(io.StringIO(example_text("loss.csv"))))
LOSS = {(row["state"], row["action"]): float(row["loss"]) for row in WEEKS if row["episode"] == "1"}
HOURS = {
    (row["state"], row["action"]): float(row["hours"])
    for row in csv.DictReader(io.StringIO(example_text("technician.csv")))
}
ACTIONS = {"good": ["run", "service"], "worn": ["run", "service"], "broken": ["stand", "repair"]}
STEPS = 7

Columns = dict[str, list[Any]]


def laws() -> dict[tuple[str, str], tuple[list[str], list[float]]]:
    found: dict[tuple[str, str], tuple[list[str], list[float]]] = {}
    for row in MOVES:
        names, chances = found.setdefault((row["state"], row["action"]), ([], []))
        names.append(row["next_state"])
        chances.append(float(row["probability"]))
    return found


def recorded(episodes: int, seed: int, *, noise: float = 2.0, first: float = 0.5) -> Columns:
    """Episodes in which the first action of every state is chosen with probability `first`."""
    rng, law = np.random.default_rng(seed), laws()
    names = ("episode", "step", "state", "action", "next_state", "loss", "hours", "probability")
    columns: Columns = {name: [] for name in names}
    for episode in range(1, episodes + 1):
        state = "good"
        for step in range(STEPS):
            choice = int(rng.random() >= first)
            action = ACTIONS[state][choice]
            successors, chances = law[state, action]
            then = successors[int(rng.random() >= chances[0])] if len(successors) > 1 else successors[0]
            loss = LOSS[state, action] + noise * float(rng.uniform(-1, 1))
            chance = 1 - first if choice else first
            row = (episode, step, state, action, then, loss, HOURS[state, action], chance)
            for name, cell in zip(columns, row, strict=True):
                columns[name].append(cell)
            state = then
    return columns


def written(columns: Columns, path: Path) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        lines = csv.writer(file)
        lines.writerow(columns)
        lines.writerows(zip(*columns.values(), strict=True))
    return path
