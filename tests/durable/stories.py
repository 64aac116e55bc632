"""Episodes that depend only on the policy and their number, so that a twin can play them again."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from tightrope import DurableLearner, Policy, make_learner
from tightrope.checks.worlds import World, arrays, ordinary_world
from tightrope.durable import OpenEpisode
from tightrope.learners import LearnerBase

WORLD = ordinary_world()


def fresh(name: str = "ucpd-practical", at: World = WORLD, **options: Any) -> LearnerBase:
    return make_learner(name, at, episodes=1000, **options)


def story(policy: Policy, feedback: str, number: int, at: World = WORLD) -> dict[str, Any]:
    """Return the outcome of episode `number` as arguments of `tell`."""
    parts = arrays(at.play(policy, feedback, number, np.random.default_rng([9, number])))
    if "losses" in parts:
        parts["loss"] = parts.pop("losses")
    return parts


def number_of(episode: OpenEpisode) -> int:
    return int(episode.id.partition("-")[0])


def played(learner: DurableLearner, episode: OpenEpisode) -> dict[str, Any]:
    """Return the outcome of an open episode."""
    return story(episode.policy, learner.feedback, number_of(episode))


def one_more(learner: DurableLearner) -> OpenEpisode:
    """Open an episode, play it and tell its outcome."""
    episode = learner.ask()
    assert learner.tell(episode.id, **played(learner, episode)) == "learned"
    return episode


def rows(learner: DurableLearner, query: str) -> list[Any]:
    """Return what a query finds in the journal on disk."""
    with closing(sqlite3.connect(learner.directory / "journal.sqlite")) as sql:
        return sql.execute(query).fetchall()


def opened(folder: Path, learner: LearnerBase | None = None, **options: Any) -> DurableLearner:
    return DurableLearner(folder / "it", learner, **{"keep_journal": 0, **options})
