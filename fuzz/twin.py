"""What a durable learner must be like after any story: plain learners in memory, without ids, files or crashes."""

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np

from tightrope.checks.worlds import arrays, ordinary_world
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


CORRECTIONS = ("retract", "amend", "undo")


def story(policy: Policy, feedback: str, number: int, version: int = 0) -> dict[str, Any]:
    """What came of episode `number`, as arguments of `tell`: a function of the policy and the number.

    Other versions are what it is amended to.
    """
    seed = [9, number, version] if version else [9, number]
    parts = arrays(WORLD.play(policy, feedback, number, np.random.default_rng(seed)))
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


def candidates(number: int, told: Iterable[int], asked: int, every: int) -> list[int]:
    """Episodes that a correction is about: a share of those that were told lately."""
    return [n for n in sorted(told) if n > asked - 20 and n % every == number % every]


def possible_amendment(twin: "Twin", number: int) -> list[int]:
    """The one episode that is amended, if there is one."""
    return candidates(number, twin.told, twin.asked, 5)[:1]


class Fix(NamedTuple):
    """A correction: what it does to which episodes, or which other one it undoes."""

    event: int
    kind: str
    numbers: tuple[int, ...]
    version: int = 0


class Entrant:
    def __init__(self, learner: LearnerBase) -> None:
        self.learner, self.shadow, self.failed = learner, Shadow.empty(len(learner.budgets)), ""


def void(fixes: list[Fix]) -> set[int]:
    """The corrections that are undone."""
    found: set[int] = set()
    for fix in reversed(fixes):
        if fix.kind == "undo" and fix.event not in found:
            found |= set(fix.numbers)
    return found


def fate_of(fixes: list[Fix]) -> dict[int, Any]:
    """What became of episodes: "retracted", or the version that they were amended to."""
    found: dict[int, Any] = {}
    undone = void(fixes)
    holding = [fix for fix in fixes if fix.event not in undone]
    for fix in sorted(holding, key=lambda fix: fix.kind == "retract"):  # a retracted episode stays so
        if fix.kind != "undo":
            found |= dict.fromkeys(fix.numbers, "retracted" if fix.kind == "retract" else fix.version)
    return found


class Twin:
    """Whoever calls `do` has made sure that it can be done (`can`)."""

    def __init__(self, name: str) -> None:
        learner = make_learner(name, WORLD, episodes=10_000)
        self.first = self.name = learner.name
        self.feedback = learner.feedback
        self.entrants = {learner.name: Entrant(learner)}
        self.account, self.guard = (
            Account.empty(len(WORLD.budgets)),
            Guard.empty(WORLD.space.n_pairs, len(WORLD.budgets)),
        )
        self.given: dict[int, Policy | None] = {}  #: policies of those that are open; None: nobody knows
        self.asked = self.events = 0
        self.log: list[tuple[str, Any, Any]] = []  #: what changed the learners, in order
        self.fixes: list[Fix] = []
        self.left_out: list[int] = []

    @property
    def told(self) -> list[int]:
        return [number for what, number, _ in self.log if what == "tell"]

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
        if what in CORRECTIONS:
            return self.corrected(self.fixes_with(what, number)) is not None
        return possible(what, number, {name: one.failed for name, one in self.entrants.items()}, self.name)

    def refuses(self, number: int) -> bool:
        """Return whether the champion needs the policy of an episode and it is unknown."""
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
                self.change("tell", number, self.given.pop(number))
            case "set_budgets" | "stop_loss":
                self.change(what, number, None)
            case "challenge":
                self.change("challenge", number, f"number {self.events}")
            case "promote" | "dismiss":
                self.change(what, number, names[number % len(names)])
            case "retract" | "amend" | "undo":
                corrected = self.corrected(self.fixes_with(what, number))
                assert corrected is not None
                for name in ("fixes", "entrants", "account", "guard", "name", "left_out"):
                    setattr(self, name, getattr(corrected, name))
        again = what == "promote" and self.name == champion
        self.events += what not in ("ask", "watch", "give_up", "snapshot") and not again

    def change(self, what: str, number: int, about: Any, version: int = 0) -> None:
        """What changes the learners: a tell of what `about` played, or an operation on the learner `about`."""
        self.log.append((what, number, about))
        match what:
            case "tell":
                self.tell(about, number, version)
            case "set_budgets":
                for one in self.learning:
                    one.learner = one.learner.with_budgets(some_budgets(number))
                self.guard = self.guard.reassessed(self.account, self.champion.learner.budgets)
            case "stop_loss":
                by_number = {int(name.split()[1]): rule for name, rule in rules(number).items()}
                scales, budgets = np.ones(len(WORLD.budgets)), self.champion.learner.budgets
                self.guard = self.guard.with_rules(SAFE.probabilities, by_number, scales, self.account, budgets)
            case "challenge":
                self.entrants[about] = Entrant(challenger(self.feedback, number))
            case "promote":
                self.name = about
                self.guard = self.guard.reassessed(self.account, self.champion.learner.budgets)
            case "dismiss":
                del self.entrants[about]

    def fixes_with(self, what: str, number: int) -> list[Fix] | None:
        """All corrections with one more; None if it cannot be chosen."""
        now = fate_of(self.fixes)
        numbers = candidates(number, self.told, self.asked, 3)
        version = number + 1
        if what == "undo":
            undone = void(self.fixes)
            numbers = [fix.event for fix in self.fixes if fix.event not in undone]
            numbers = numbers[number % len(numbers) :][:1] if numbers else []
        elif what == "amend":
            numbers = [n for n in possible_amendment(self, number) if now.get(n) not in ("retracted", version)]
        elif all(now.get(n) == "retracted" for n in numbers):
            numbers = []
        return [*self.fixes, Fix(self.events + 1, what, tuple(numbers), version)] if numbers else None

    def corrected(self, fixes: list[Fix] | None) -> "Twin | None":
        """A twin that was told the same, but for what is corrected; None if something could not have happened then."""
        if fixes is None:
            return None
        twin, fates = Twin(self.first), fate_of(fixes)
        twin.fixes = fixes
        for what, number, about in self.log:
            if what == "tell" and fates.get(number) == "retracted":
                continue
            if what == "tell" and about is None and twin.champion.learner.learns_from == "told":
                twin.left_out.append(number)
                continue
            if what == "promote" and twin.entrants[about].failed:
                return None
            twin.change(what, number, about, fates.get(number, 0) if what == "tell" else 0)
        amended = fixes[-1].kind == "amend" and fixes[-1].numbers[0] in twin.left_out
        return None if amended else twin

    def tell(self, played: Policy | None, number: int, version: int = 0) -> None:
        """Have all learners learn from an outcome."""
        parts = story(somebody(0) if played is None else played, self.feedback, number, version)
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
            "retracted": sum(fate == "retracted" for fate in fate_of(self.fixes).values()),
            "left out": len(self.left_out),
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
