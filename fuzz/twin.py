"""What a durable learner must be like after any story: plain learners in memory, without ids, files or crashes."""

from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

import numpy as np

from tightrope.checks.learners.play import arrays, ordinary_world
from tightrope.durable import StopLoss
from tightrope.learners import LearnerBase, make_learner
from tightrope.learners.base import BanditEpisode, Episode
from tightrope.model import Policy
from tightrope.ops.state import Account, Guard, Shadow
from tightrope.space import FloatArray
from tightrope.storage.checkpoints import fingerprint

WORLD = ordinary_world()
SAFE = Policy.uniform(WORLD.space)

#: Who may challenge whom, by the feedback of the stream.
CHALLENGERS = {"full": ("ucpd", "ucpd-bandit"), "bandit": ("ucpd-bandit", "uob-reps")}


def story(policy: Policy, feedback: str, number: int) -> dict[str, Any]:
    """What came of episode `number`, as arguments of `tell`: a function of the policy and the number."""
    parts = arrays(WORLD.play(policy, feedback, number, np.random.default_rng([9, number])))
    return {"loss" if name == "losses" else name: part for name, part in parts.items()}


def somebody(number: int) -> Policy:
    """Whose policy is played where it is not ours."""
    weights = np.random.default_rng([5, number]).uniform(0.1, 1.0, WORLD.space.n_pairs)
    first, per_state = WORLD.space.csr.state_ptr[:-2], np.diff(WORLD.space.csr.state_ptr[:-1])
    return Policy(WORLD.space, weights / np.add.reduceat(weights, first).repeat(per_state))


def watched(number: int, unknown: bool) -> Policy | None:
    """What `watch` is told of it."""
    return None if unknown and number % 3 == 0 else somebody(number % 4)


def some_budgets(number: int) -> Any:
    return WORLD.budgets * (0.8 + 0.05 * (number % 9))


def rules(number: int) -> dict[str, StopLoss]:
    """Some that stop at once, some that never do, and now and then none."""
    most = 0.2 * (number % 7) - 0.5
    kinds: tuple[dict[str, StopLoss], ...] = (
        {},
        {"constraint 0": StopLoss(most=most, back=most - 0.1)},
        {"constraint 1": StopLoss(most=most, back=most - 1.0, by="predicted", horizon=100, window=5)},
    )
    return kinds[number % 3]


def challenger(feedback: str, number: int) -> LearnerBase:
    return make_learner(CHALLENGERS[feedback][number % 2], WORLD, episodes=10_000)


def possible(what: str, number: int, failed: dict[str, str], champion: str) -> bool:
    """Whether a call makes sense, given why each failed: two challengers at the most, and a champion that learns."""
    name = list(failed)[number % len(failed)]
    match what:
        case "challenge":
            return len(failed) < 3
        case "promote":
            return not failed[name]
        case "dismiss":
            return name != champion
    return True


def digest(data: bytes) -> str:
    return blake2b(data, digest_size=8).hexdigest()


def sums(account: Account | Guard | Shadow) -> str:
    """The bits of what is summed up."""
    return digest(b"".join(np.asarray(getattr(account, name)).tobytes() for name in sorted(account.__slots__)))


def with_one_more(account: Account, met: Sequence[float] | FloatArray, budgets: FloatArray) -> Account:
    """The account after an episode of one step with these costs: the loss, then each constraint."""
    return account.after(np.array(met).reshape(-1, 1), budgets)


class Entrant:
    def __init__(self, learner: LearnerBase) -> None:
        self.learner, self.shadow, self.failed = learner, Shadow.empty(len(learner.budgets)), ""


class Twin:
    """Whoever calls `do` has made sure that it can be done (`can`)."""

    def __init__(self, name: str) -> None:
        learner = make_learner(name, WORLD, episodes=10_000)
        self.name, self.feedback = learner.name, learner.feedback
        self.entrants = {learner.name: Entrant(learner)}
        self.account, self.guard = (
            Account.empty(len(WORLD.budgets)),
            Guard.empty(WORLD.space.n_pairs, len(WORLD.budgets)),
        )
        self.given: dict[int, Policy | None] = {}  #: policies of those that are open; None: nobody knows
        self.asked = self.events = 0

    @property
    def champion(self) -> Entrant:
        return self.entrants[self.name]

    @property
    def plays(self) -> Policy:
        return SAFE if self.guard.stops else self.champion.learner.policy

    @property
    def learning(self) -> list[Entrant]:
        return [one for one in self.entrants.values() if not one.failed]

    def can(self, what: str, number: int) -> bool:
        return possible(what, number, {name: one.failed for name, one in self.entrants.items()}, self.name)

    def refuses(self, number: int) -> bool:
        """Whether nobody knows who played the episode, and the champion must."""
        return self.given[number] is None and self.champion.learner.learns_from == "told"

    def do(self, what: str, number: int) -> None:
        """A call that changes something, unless the champion is promoted, who is the champion already."""
        names, champion = list(self.entrants), self.name
        match what:
            case "ask" | "watch":
                unknown = all(one.learner.learns_from == "any" for one in self.learning)
                self.asked += 1
                self.given[self.asked] = self.plays if what == "ask" else watched(number, unknown)
            case "give_up":
                del self.given[number]
            case "tell":
                self.tell(self.given.pop(number), number)
            case "set_budgets":
                for one in self.learning:
                    one.learner = one.learner.with_budgets(some_budgets(number))
                self.guard = self.guard.reassessed(self.account, self.champion.learner.budgets)
            case "stop_loss":
                by_number = {int(name.split()[1]): rule for name, rule in rules(number).items()}
                scales, budgets = np.ones(len(WORLD.budgets)), self.champion.learner.budgets
                self.guard = self.guard.with_rules(SAFE.probabilities, by_number, scales, self.account, budgets)
            case "challenge":
                self.entrants[f"number {self.events}"] = Entrant(challenger(self.feedback, number))
            case "promote":
                self.name = names[number % len(names)]
                self.guard = self.guard.reassessed(self.account, self.champion.learner.budgets)
            case "dismiss":
                del self.entrants[names[number % len(names)]]
        again = what == "promote" and self.name == champion
        self.events += what not in ("ask", "watch", "give_up", "snapshot") and not again

    def tell(self, played: Policy | None, number: int) -> None:
        """All learn from it."""
        parts = story(somebody(0) if played is None else played, self.feedback, number)
        path = WORLD.space.path(parts["states"], parts["actions"])
        costs = np.vstack([parts["loss"], parts["constraints"]])
        if self.feedback == "full":
            costs = costs[:, path]
        met = np.add.accumulate(costs, axis=1)[:, -1]  # step by step
        budgets = self.champion.learner.budgets
        for one in self.learning:
            if played is None and one.learner.learns_from == "told":
                one.failed = f"it could not learn from episode {number}: the policy that played it is not known"
                self.events += 1
                continue
            mu = None if played is None else played.probabilities
            one.shadow = one.shadow.after(costs, WORLD.space.pair_of_tuple[path], one.learner.policy.probabilities, mu)
            if one.learner.feedback == "full":
                one.learner.observe(Episode(**parts))
            else:
                bandit = BanditEpisode(parts["states"], parts["actions"], costs[0].copy(), costs[1:].copy(), played)
                one.learner.observe(bandit)
        self.account = with_one_more(self.account, met, budgets)
        by_safe = played is not None and np.array_equal(played.probabilities, SAFE.probabilities)
        self.guard = self.guard.after(self.account, met[1:], budgets, by_safe=by_safe)

    def sight(self) -> dict[str, Any]:
        """All that must be as in the directory."""
        return {
            "asked": self.asked,
            "told": self.account.told,
            "events": self.events,
            "given": {
                str(number): "" if policy is None else digest(policy.probabilities.tobytes())
                for number, policy in self.given.items()
            },
            "plays": digest(self.plays.probabilities.tobytes()),
            "champion": self.name,
            "account": sums(self.account),
            "guard": sums(self.guard),
            "learners": {
                name: [digest(fingerprint(one.learner)), sums(one.shadow), one.failed]
                for name, one in self.entrants.items()
            },
        }
