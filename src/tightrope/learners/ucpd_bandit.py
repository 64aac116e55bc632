"""ucpd-practical with bandit feedback: losses and constraints are observed along the path only.

Blocks, sets, steps and targets are lines 1 to 6 of `ucpd_practical`, with intervals for every successor as sets. Losses
f and constraints g_i that were not observed are replaced as follows.
a. The prediction f'(s,a) of the next block is the mean of all losses met at (s,a); −1, the least possible loss, before
   the first visit, so that every pair is tried.
b. With f''(s,a) the prediction for this block, the estimate of the loss of an episode is f'' + Δ, with
       Δ(s,a) = (f − f'') / (u + η |f − f''| / 10)
   at the pairs of the path and 0 elsewhere. u(s,a) is the largest probability of passing (s,a) with the policy that
   played, under any model of the set. The second summand (implicit exploration) is there so that no Δ changes θ by more
   than a factor e^10. Δ is 0 where nothing was predicted.
c. The step (line 4) takes <f' + the mean Δ of the block, θ>. Δ has a large variance where u is small, but only losses
   that differ from their prediction have one; η decreases with the gaps of the Δ (line 5). F is the largest span of f'.
d. ḡ_i(s,a,s') is the mean of all g_i met there; before the first, the mean at (s,a); before that, the least of the
   layer. So untried pairs look cheap, and are tried.
e. The excess V_i (line 3) is of the constraints that were met. With counts and ḡ of before the block, û_i + e_i is what
   its paths use by ḡ_i, less the part that is due to the chance of drawing actions; their use beyond ḡ_i is added. So
   trying a pair that turns out to be expensive is an excess, too, and is paid back.

Ties pool the counts of moves, but not losses and constraints: every pair has its own means.

Nothing is proved of the whole; docs/explanation/theory.md, section 5, says what is proved of its parts.

Feedback: bandit. Needs to know: the space and the budgets.
"""

from dataclasses import field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tightrope import core
from tightrope.arguments import whole
from tightrope.confidence import Box, ConfidenceRule, Counts
from tightrope.errors import InvalidInputError
from tightrope.learners.base import Offer, Seen
from tightrope.learners.parameters import NOT_NEGATIVE, POSITIVE, PROBABILITY, SHARE, parameter
from tightrope.learners.parts import Block, Dynamics, PolicyOfMeasure, block_after, block_loss, estimated, no_losses
from tightrope.learners.shared.budgeted import BudgetedState, BudgetedStep, Prudence, no_paths, paths_after, rate
from tightrope.learners.shared.counting import CountingLearner
from tightrope.model import LayeredMDP
from tightrope.space import FloatArray
from tightrope.storage.state import numbers, state

#: The prediction of a loss before the first visit: the least possible loss.
UNKNOWN = -1.0


@state
class BanditState(BudgetedState):
    """The state of ucpd-bandit; `last_loss` is f''."""

    loss_sum: FloatArray = numbers()  #: (n_pairs,) of the losses met
    constraint_sum: FloatArray = numbers()  #: (I, n_tuples) of the constraints met before the block
    met: FloatArray = numbers()  #: (I, most, L) the constraints on the paths of the block


class UCPDBandit(CountingLearner[BanditState]):
    """UCPD with bandit feedback: adversarial losses, unknown dynamics, long-run budgets.

    Parameters
    ----------
    space, budgets : the space and (I,) the limits per episode.
    episodes : not needed; nothing depends on it.
    confidence : a rule that makes an interval for every successor, "kl-box" or "kl-l1-box", or one of your own.
    level, radius_scale, renewal, ties, first_rate, optimism, prudence, repayment, least_share, block : as in
        `UCPDPractical`.
    exploration : the share of η |f − f''| that is added to u; a larger one has less variance and more bias.

    Example
    -------
    >>> import tightrope as tr
    >>> problem = tr.make("media-streaming")
    >>> learner = tr.make_learner("ucpd-bandit", problem)
    >>> history = tr.run(problem, learner, episodes=200, seed=0)
    >>> bool(history["use_fast_steps"][-1] <= 200 * 5)
    True
    """

    name = "ucpd-bandit"
    reference = (
        "tightrope: ucpd-practical with the loss estimates of Jin, Jin, Luo, Sra, Yu (ICML 2020) around predictions "
        "(this package)"
    )
    constants = "declared departure"

    learns_from = "told"

    plans = False
    ties_by_default = True
    feedback = "bandit"

    model: LayeredMDP | None = field(init=False, default=None)
    episodes: Any = None
    confidence: str | ConfidenceRule = "kl-box"
    level: float = parameter(PROBABILITY, default=0.01)
    radius_scale: float = parameter(NOT_NEGATIVE, default=1.0)
    renewal: float = parameter(POSITIVE, default=0.1)
    first_rate: float = parameter(POSITIVE, default=1.0)
    optimism: float = parameter(NOT_NEGATIVE, default=0.3)
    prudence: float = parameter(NOT_NEGATIVE, default=0.25)
    repayment: float = parameter(POSITIVE, default=10.0)
    least_share: float = parameter(SHARE, default=0.5)
    block: int = 6
    exploration: float = parameter(POSITIVE, default=0.1)

    def configure(self) -> None:
        self.block = whole(self.block, "block", 1)
        self.unreported = set() if self.confidence == "paper" else {"episodes"}
        self._dynamics = Dynamics.of(self)
        self.rule = self._dynamics.rule
        prudence = Prudence(errors=self.prudence, repayment=self.repayment, least_share=self.least_share)
        self._step = BudgetedStep(self.space, self.budgets, self._dynamics, prudence, self.optimism, self.first_rate)
        self._policy_of = PolicyOfMeasure(self.space)
        self._first_tuples = np.asarray(self.space.tuples_before[:-1])  # of the layers
        self._layer_sizes = np.diff(self.space.tuples_before)

    def initial(self) -> BanditState:
        space, n = self.space, len(self.budgets)
        counts, zeros = Counts(space, self.ties, self.renewal), np.zeros(n)
        self.set_of(counts)
        return BanditState(
            counts=counts, theta=self._dynamics.first_measure(), solver=self._step.begin(counts), multipliers=zeros,
            losses=no_losses(space.n_tuples), waiting=0, paths=no_paths(space, self.block), last_use=zeros,
            squares=zeros, steps=0, overspent=zeros, caution=1.0, gap=0.0, largest_span=0.0,
            last_loss=np.full(space.n_tuples, UNKNOWN), loss_sum=np.zeros(space.n_pairs),
            constraint_sum=np.zeros((n, space.n_tuples)), met=np.zeros((n, self.block, space.n_layers)),
        )  # fmt: skip

    def set_of(self, counts: Counts) -> Box:
        """Return the confidence set of these counts, an interval for every successor."""
        made = self._step.set_of(counts)
        if not isinstance(made, Box):
            raise InvalidInputError(
                f"confidence is {self.confidence!r}, which makes a {type(made).__name__}; {self.name} needs an "
                "interval for every successor: 'kl-box' or 'kl-l1-box'"
            )
        return made

    @property
    def confidence_set(self) -> Box:
        """The confidence set of the next step."""
        return self.set_of(self.state.counts)

    def offer(self, state: BanditState) -> Offer:
        return Offer(self._policy_of(state.theta), state.multipliers, state.counts.epoch)

    def step(self, state: BanditState, seen: Seen) -> BanditState:
        """Count the path, add up estimates and losses; at the end of a block take a step."""
        path, f, g, _ = seen
        estimate = state.last_loss + self._surprise(state, seen)  # line b
        counts, block = state.counts.counted(path), block_after(state, estimate, g, self.block)
        loss_sum, met, paths = state.loss_sum.copy(), state.met.copy(), paths_after(state, path)
        loss_sum[self.space.pair_of_tuple[path]] += f
        met[:, state.waiting] = g
        changes: dict[str, Any] = {}
        if block.waiting == 0:
            played, observed = paths[: state.waiting + 1], met[:, : state.waiting + 1]
            changes = self._stepped(state, counts, block, estimate, loss_sum, played, observed)
        return replace(
            state, observed=state.observed + 1, counts=counts, loss_sum=loss_sum, met=met, paths=paths,
            **block._asdict(), **changes,
        )  # fmt: skip

    def _stepped(
        self,
        state: BanditState,
        counts: Counts,
        block: Block,
        estimate: FloatArray,
        loss_sum: FloatArray,
        paths: NDArray[np.int64],
        met: FloatArray,
    ) -> dict[str, Any]:
        """Return the fields that a step changes, after a block with these paths (n, L) and constraints (I, n, L)."""
        space, tuples, pi = self.space, paths.ravel(), self.offered(state).policy.probabilities
        moves = counts.totals()[1]
        before = moves - np.bincount(tuples, minlength=space.n_tuples)
        total = state.constraint_sum.copy()
        np.add.at(total.T, tuples, met.reshape(len(met), tuples.size).T)

        mean = self._mean(before, state.constraint_sum)
        excess = met.sum(axis=(1, 2)) - mean[:, tuples].sum(axis=1) - len(paths) * self.budgets
        use, e = core.advantages(space.native, pi, *state.counts.laws, state.theta, mean, 0.0, tuples)
        excess += len(paths) * use + e  # line e
        predicted = self._predicted(counts, loss_sum)
        stepped = self._step(
            state, pi, counts, block.squares, paths, loss=block_loss(state, estimate), next_loss=predicted,
            mean=self._mean(moves, total), excess=excess,
        )  # fmt: skip
        return stepped._asdict() | {"steps": state.steps + 1, "last_loss": predicted, "constraint_sum": total}

    def _surprise(self, state: BanditState, seen: Seen) -> FloatArray:
        """Return Δ (n_tuples,) of line b."""
        predicted = state.last_loss[seen.path]
        off = np.where(predicted > UNKNOWN, seen.loss - predicted, 0.0)
        eta = rate(state.largest_span, state.gap / self.space.n_layers, self.first_rate)
        added = self.exploration * eta * np.abs(off)
        return estimated(seen.policy, self.set_of(state.counts), seen.path, off, added)

    def _predicted(self, counts: Counts, loss_sum: FloatArray) -> FloatArray:
        """Return f' (n_tuples,) of line a."""
        visits = counts.totals()[0]
        return self.space.expand_to_tuples(np.where(visits > 0, loss_sum / np.maximum(1, visits), UNKNOWN))

    def _mean(self, moves: NDArray[np.int64], total: FloatArray) -> FloatArray:
        """Return ḡ (I, n_tuples) of line d, a new array, given how often each tuple was met, and Σ g."""
        visits, met = np.add.reduceat(moves, self.space.csr.pair_ptr[:-1]), moves > 0
        here = total / np.maximum(1, moves)
        at_pair = self.space.sum_over_successors(total) / np.maximum(1, visits)
        least = np.minimum.reduceat(np.where(met, here, np.inf), self._first_tuples, axis=1)
        least = np.repeat(np.where(np.isfinite(least), least, 0.0), self._layer_sizes, axis=1)
        visited = self.space.expand_to_tuples(visits) > 0
        mean: FloatArray = np.where(met, here, np.where(visited, self.space.expand_to_tuples(at_pair), least))
        return mean
