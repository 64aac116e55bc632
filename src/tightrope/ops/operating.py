"""Operating a learner over HTTP: other budgets, a stop-loss, challengers, and episodes that somebody else plays.

What changes something is done by who writes (`Keeper.write`), and is on disk before it is answered.
"""

import asyncio
from typing import Any

from msgspec.structs import asdict

from tightrope.errors import InvalidInputError
from tightrope.learners.base import LearnerBase
from tightrope.learners.registry import learner_for
from tightrope.ops.api import Asked, Budgets, Challenger, Rule, Rules, Spent, Standing, Watch
from tightrope.ops.learner import difference
from tightrope.ops.refusals import Refusal
from tightrope.ops.rehearsal import rehearse
from tightrope.ops.served_learner import Keeper
from tightrope.ops.snapshots import checkpoint_of
from tightrope.ops.state import LARGEST_SUM, StopLoss
from tightrope.streams import streams

#: Learners of one directory: all of them learn from every episode.
MOST_LEARNERS = 10


async def watch(keeper: Keeper, told: Watch) -> Asked:
    """An episode that somebody else plays."""

    def change() -> Asked:
        policy = None if told.policy is None else keeper.reader.policy(told.policy, "policy")
        episode = keeper.learner.watch(policy)
        keeper.open[episode] = policy
        return Asked(episode)

    return await keeper.write(change)


async def set_budgets(keeper: Keeper, told: Budgets) -> list[Spent]:
    """Other budgets for all that is told from now on; those that are not named stay."""

    def change() -> None:
        budgets = keeper.reader.budgets.changed(keeper.learner.status.budgets, told.budgets)
        keeper.reader.refuse_beyond(budgets, keeper.learner.space.n_layers, told.budgets)
        keeper.learner.set_budgets(budgets)

    await keeper.write(change)
    return keeper.spending()


async def set_rules(keeper: Keeper, told: Rules) -> Rules:
    """Rules in place of those that there are."""

    def change() -> None:
        safe = None if told.safe_policy is None else keeper.reader.policy(told.safe_policy, "safe_policy")
        keeper.learner.stop_loss({name: StopLoss(**asdict(rule)) for name, rule in told.rules.items()}, safe)

    await keeper.write(change)
    return rules_of(keeper)


def rules_of(keeper: Keeper) -> Rules:
    """As they stand, in the units of the problem."""
    guard, budgets = keeper.learner.status.guard, keeper.reader.budgets
    rules = {}
    for i, (name, scale) in enumerate(zip(budgets.names, budgets.scales, strict=True)):
        if guard.most[i] < LARGEST_SUM:
            most, back, horizon = float(guard.most[i] * scale), float(guard.back[i] * scale), int(guard.horizon[i])
            rules[name] = Rule(most, "predicted" if horizon else "spent", back, horizon, int(guard.window[i]))
    return Rules(rules, guard.safe.tolist() if rules else None)


async def challenge(keeper: Keeper, name: str, told: Challenger) -> list[Standing]:
    """One more learner, which learns from the same episodes; one that is there already is left as it is."""

    def change() -> None:
        learner, there = made(told, keeper), {one.name: one.settings for one in keeper.learner.status.entrants}
        if name not in there:
            if len(there) >= MOST_LEARNERS:
                raise InvalidInputError(f"there are {MOST_LEARNERS} learners already; dismiss one")
            keeper.learner.challenge(name, learner)
        elif words := difference(there[name], learner.settings):
            raise Refusal("name-taken", f"{name} was made with {words}; choose another name, or dismiss it first")

    if name not in [one.name for one in keeper.learner.status.entrants]:
        await asyncio.to_thread(lambda: rehearse(checkpoint_of(made(told, keeper)), keeper.learner.feedback))
    await keeper.write(change)
    return standings(keeper)


def made(told: Challenger, keeper: Keeper) -> LearnerBase:
    """A learner as `make_learner` makes it, of what the directory knows of the problem."""

    def tell(need: str) -> Any:
        if need != "rng":
            raise InvalidInputError(f"{told.learner} has to be told its {need}; challenge with it in Python")
        return streams(told.seed).learner

    space, budgets = keeper.learner.space, keeper.learner.status.budgets
    return learner_for(told.learner, space, budgets, keeper.tables.ties(space), tell, told.episodes, told.options)


async def promote(keeper: Keeper, name: str) -> list[Standing]:
    """From now on its policy is handed out."""
    await keeper.write(lambda: keeper.learner.promote(_known(keeper, name)))
    return standings(keeper)


async def dismiss(keeper: Keeper, name: str) -> list[Standing]:
    """Forget it."""
    await keeper.write(lambda: keeper.learner.dismiss(_known(keeper, name)))
    return standings(keeper)


def _known(keeper: Keeper, name: str) -> str:
    names = [one.name for one in keeper.learner.status.entrants]
    if name not in names:
        raise Refusal("unknown-challenger", f"these learn here: {', '.join(names)}")
    return name


def standings(keeper: Keeper) -> list[Standing]:
    """All learners, and what each would have lost and spent."""
    status, names = keeper.learner.status, keeper.reader.budgets.names

    def by_name(values: tuple[float, ...]) -> dict[str, float]:
        return dict(zip(names, values, strict=True))

    return [
        Standing(
            name=one.name,
            champion=one.name == status.champion,
            learner=dict(one.settings),
            weighed=one.weighed,
            would_have_lost=keeper.tables.lost(one.loss, one.weighed * keeper.learner.space.n_layers),
            would_have_spent=by_name(one.would_have_spent),
            standard_errors=by_name(one.standard_errors),
            on_paths=one.on_paths,
            spent_on_paths=by_name(one.spent_on_paths),
            uncovered=one.uncovered,
            failed=one.failed,
        )
        for one in status.standings
    ]
