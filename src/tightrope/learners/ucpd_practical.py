"""UCPD with the budgets as constraints of its step: for realistic horizons, without units or a planned horizon.

Episodes are played in blocks of one policy, of 1 episode at first and 6 later. After block m, let f be the mean of its
losses and π its policy. f, g_i and the budgets c_i are taken from the least of each layer, in shares of their spans:
1. The sets are balls around the counted frequencies of the declared successors (`rules`), with the counts of tied pairs
   pooled: wide enough for any one question, not for all questions at once. They are updated when a count has grown by a
   tenth. Δ are the measures whose conditionals lie in them.
2. The use is estimated with P̂(s'|s,a) = (M(s,a,s') + p(s'|s,a)) / (N(s,a) + 1): the counts and one more visit, whose
   successor θ' chooses by its conditionals p, so that untried pairs are tried. Let û_i be the use of π for the mean
   ḡ_i of all draws so far. Then θ' uses û_i + <A_i, θ'>, with A_i the advantages over π (`core/advantages.hpp`).
   After bad luck a pair looks expensive and would not be tried again; so A_i is lowered by ω/κ standard errors of the
   counts, and by ω/κ expensive visits. With ω = ½ a single event never excludes a pair.
3. The target is c_i(t) = c_i − κ min{(z σ_i + [V_i]_+ / τ) / √t, c_i / 2}. σ_i is the standard deviation of the use of
   a path, from the differences of successive ones. V_i = Σ (û_i + e_i − c_i) is the excess so far. e_i is the surprise
   of the paths that were played: their use beyond û_i where successors were others than P̂ predicts. So V_i also counts
   what û_i misses of policies whose pairs only look cheap.
4. θ ← argmin over θ in Δ of η <f' + f − f'', θ> + D(θ, (1 − λ_m) θ + λ_m even) with <A_i, θ> <= c_i(t) − û_i for all
   i. f'' is the prediction for this block, which was the f before, and f' = f is the prediction for the next. λ_m =
   1/(10 + m); even, which is also θ^1, is the measure of the uniform policy where every successor is equally likely.
   The prices of the budgets are the multipliers of the inequalities. A price changes θ by a factor of at most e^200.
   If that is not enough, because the targets cannot be met, θ exceeds them by the least that such a price allows.
5. η = 1/√(F²/h² + (G/L)²): F is the largest span of an f so far, and G the sum of the gaps between the loss of θ
   under f − f'' and that of the mixture re-weighted by it, Σ_k <θ, f − f''> + log(Σ θ e^{−η (f − f'')}) / η. For
   losses that do not change, η stays at h/F. Otherwise it balances the cost of their changes with the cost of moving.
6. κ, the caution, is 1 at first. It is halved, down to 1/16, by a step that exceeds a target and goes less than a tenth
   of the way towards it, because targets exclude each other. Every other step raises it by 3 %, up to 1. With less
   caution the learner aims closer to its budgets and is more optimistic. So it keeps following its losses, and tries
   pairs again that had bad luck.

Nothing depends on the units of losses and constraints, or on the number of episodes. docs/explanation/theory.md says
what is proved of `ucpd-inside`. This preset differs from it in line 1 (there the sets hold at all times), 2 (there
constraints are bounds that hold with high probability, here they are estimates), 3, 4 (the shares λ_m, and the cap on
prices) and 5, and in the blocks. Nothing is proved of it with the default sets. With confidence="kl" and level=0.01 the
model is in all sets, at all times, with probability 0.99, and the sum over episodes of ‖θ − θ̄‖₁ is bounded, with θ̄ the
measure of the policy played; the regret is larger then.

Feedback: full information. Needs to know: the space and the budgets.
"""

from dataclasses import field, replace
from typing import Any

import numpy as np

from tightrope import core
from tightrope.arguments import whole
from tightrope.confidence import ConfidenceRule, ConfidenceSet, Counts
from tightrope.learners.base import Offer, Seen
from tightrope.learners.parameters import NOT_NEGATIVE, POSITIVE, PROBABILITY, SHARE, parameter
from tightrope.learners.parts import Dynamics, PolicyOfMeasure, block_after, block_loss, no_losses
from tightrope.learners.shared.budgeted import BudgetedState, BudgetedStep, Prudence, no_paths, paths_after
from tightrope.learners.shared.counting import CountingLearner
from tightrope.model import LayeredMDP
from tightrope.space import FloatArray
from tightrope.storage.state import numbers, state


@state
class PracticalState(BudgetedState):
    """The state of ucpd-practical."""

    mean_constraints: FloatArray = numbers()  #: (I, n_tuples) ḡ


class UCPDPractical(CountingLearner[PracticalState]):
    """UCPD for practice: adversarial losses, unknown dynamics, long-run budgets, no horizon needed.

    Parameters
    ----------
    space : the layered space.
    budgets : (I,) the budgets per episode.
    episodes : not needed, unless the confidence rule has a horizon.
    confidence, radius_scale, renewal, ties : as in `UCPD`, with other defaults.
    level : ζ; for `kl-pointwise` the chance that one bound fails, for `kl` that the model ever leaves its sets.
    first_rate : h, how far a step may move θ while losses do not change.
    optimism : ω, the number of standard errors, and of expensive visits, by which the use of a pair is estimated lower.
    prudence : z, the number of standard errors of the mean use by which a step aims below each budget.
    repayment : τ; an excess is paid back over τ√t episodes.
    least_share : the least share of a budget that a step aims at.
    block : the largest number of episodes with one policy; 1 takes a step after each, at several times the cost.

    Example
    -------
    >>> import tightrope as tr
    >>> problem = tr.make("media-streaming")
    >>> learner = tr.UCPDPractical(problem.space, problem.budgets, ties=problem.ties)
    >>> history = tr.run(problem, learner, episodes=200, seed=0)
    >>> bool(history["use_fast_steps"][-1] <= 200 * 5)
    True
    """

    name = "ucpd-practical"
    reference = "tightrope: after Qiu, Wei, Yang, Ye, Wang, with the budgets inside an optimistic step (this package)"
    constants = "declared departure"

    plans = False
    ties_by_default = True

    model: LayeredMDP | None = field(init=False, default=None)
    episodes: Any = None
    confidence: str | ConfidenceRule = "kl-pointwise"
    level: float = parameter(PROBABILITY, default=0.35)
    radius_scale: float = parameter(NOT_NEGATIVE, default=1.0)
    renewal: float = parameter(POSITIVE, default=0.1)
    first_rate: float = parameter(POSITIVE, default=1.0)
    optimism: float = parameter(NOT_NEGATIVE, default=0.5)
    prudence: float = parameter(NOT_NEGATIVE, default=0.5)
    repayment: float = parameter(POSITIVE, default=10.0)
    least_share: float = parameter(SHARE, default=0.5)
    block: int = 6

    def configure(self) -> None:
        self.block = whole(self.block, "block", 1)
        self.unreported = set() if getattr(self, "confidence", None) == "paper" else {"episodes"}
        self._dynamics = Dynamics.of(self)
        self.rule = self._dynamics.rule
        prudence = Prudence(errors=self.prudence, repayment=self.repayment, least_share=self.least_share)
        self._step = BudgetedStep(self.space, self.budgets, self._dynamics, prudence, self.optimism, self.first_rate)
        self._policy_of = PolicyOfMeasure(self.space)

    def initial(self) -> PracticalState:
        space, n = self.space, len(self.budgets)
        counts, zeros = Counts(space, self.ties, self.renewal), np.zeros(n)
        return PracticalState(
            counts=counts, theta=self._dynamics.first_measure(), solver=self._step.begin(counts), multipliers=zeros,
            losses=no_losses(space.n_tuples), waiting=0, paths=no_paths(space, self.block), last_use=zeros,
            squares=zeros, steps=0, overspent=zeros, caution=1.0, gap=0.0, largest_span=0.0,
            last_loss=np.zeros(space.n_tuples), mean_constraints=np.zeros((n, space.n_tuples)),
        )  # fmt: skip

    @property
    def confidence_set(self) -> ConfidenceSet:
        """The confidence set of the next step."""
        return self._step.set_of(self.state.counts)

    def offer(self, state: PracticalState) -> Offer:
        policy = self._policy_of(state.theta)
        return Offer(policy, state.multipliers, self._dynamics.epoch_of(state.counts))

    def step(self, state: PracticalState, seen: Seen) -> PracticalState:
        """Count the path, add up losses and constraints; at the end of a block take a step."""
        path, f, g, _ = seen
        counts, block = state.counts.counted(path), block_after(state, f, g[:, path], self.block)
        mean, paths = core.average(state.mean_constraints, g, state.observed + 1), paths_after(state, path)
        changes: dict[str, Any] = {}
        if block.waiting == 0:
            loss, pi = block_loss(state, f), self.offered(state).policy.probabilities
            played = paths[: state.waiting + 1]
            stepped = self._step(state, pi, counts, block.squares, played, loss=loss, next_loss=loss, mean=mean.copy())
            changes = stepped._asdict() | {"steps": state.steps + 1, "last_loss": loss.copy()}
        return replace(
            state, observed=state.observed + 1, counts=counts, mean_constraints=mean, paths=paths, **block._asdict(),
            **changes,
        )  # fmt: skip
