"""What every learner runs with unless told otherwise, worked out by hand for one space, and written out.

|S| = 14 in L = 4 layers of 1, 6, 4 and 2 states and a last one, |A| = 3; so |S||A| = 42, but 39 pairs have actions, and
there are 3 (6 + 24 + 8 + 2) = 120 tuples. T = 90,000 episodes, I = 2 budgets, slack 0.5 (0.25 in units of [0, 1]),
δ = 0.01. A new learner adds its line: each number from the formula of its publication or its docstring, not from its
code.
"""

from typing import Any

import numpy as np
import pytest

from tests.learners.problems import Turns
from tightrope import Box, LayeredMDP, LayeredSpace, Problem, make_learner
from tightrope.learners import LEARNERS, LearnerBase
from tightrope.learners.registry import options_of
from tightrope.learners.shared.counting import estimates
from tightrope.problems.constraints import Deterministic

T = 90_000

Row = dict[str, float | str]

#: Settings that most learners share.
RADII: Row = {"level": 0.01, "radius_scale": 1.0}
BALLS: Row = {**RADII, "confidence": "paper", "renewal": 1.0}
AS_PUBLISHED: Row = {"charge": "optimistic", "proportional": 0.0, "draws": "last"}
PRACTICAL: Row = {
    "first_rate": 1.0, "change_rate": 5.0, "correction": 0.3, "integral": 3.0, "realism": 0.5, "largest_tilt": 100.0,
    "block": 6,
}  # fmt: skip

INSIDE: Row = {"first_rate": 1.0, "repayment": 10.0, "least_share": 0.5, "block": 6}

PARAMETERS: dict[str, Row] = {
    # L T, L √T, 1/T
    "ucpd": {**BALLS, **AS_PUBLISHED, "alpha": 360_000.0, "V": 1200.0, "mixing": 1.1111111e-5},
    "ucpd-inside": {**RADII, "confidence": "kl", "renewal": 0.1, "tightening": 0.0},
    "ucpd-known": {**AS_PUBLISHED, "alpha": 360_000.0, "V": 1200.0, "mixing": 1.1111111e-5},
    "ucpd-practical": {
        **INSIDE, **RADII, "confidence": "kl-pointwise", "level": 0.35, "renewal": 0.1, "optimism": 0.5,
        "prudence": 0.5,
    },
    "ucpd-practical-known": {**INSIDE, "prudence": 0.0},
    "ucpd-practical-0.2": {**PRACTICAL, **RADII, "confidence": "kl", "renewal": 0.1, "prudence": 0.5},
    "ucpd-practical-known-0.2": {**PRACTICAL, "prudence": 0.0},
    "ucpd-bandit": {
        **INSIDE, **RADII, "confidence": "kl-box", "renewal": 0.1, "optimism": 0.3, "prudence": 0.25,
        "exploration": 0.1,
    },
    "ucpd-bandit-0.2": {**PRACTICAL, **RADII, "confidence": "kl-box", "renewal": 0.1, "prudence": 0.5, "optimism": 0.1},
    # 1/(2√T), 1/√T, 1/T
    "omdpd": {**RADII, "confidence": "kl", "renewal": 0.1, "alpha": 1.0, "beta": 0.0016666667, "V": 0.0033333333,
              "mixing": 1.1111111e-5},
    # √(log(42/4) / T) = √2.3513753 / 300
    "o-reps": {"learning_rate": 0.0051113982},
    # √(4 log(42/4) / (42 T)) = √(4 · 2.3513753 / 3780000)
    "bandit-o-reps": {"learning_rate": 0.0015774117},
    # as o-reps; √(2.3513753 / T + 4 log(4 T)) = √51.175463; N = 1 + ⌈log2(7.1537028 / 0.0051113982)⌉ = 12,
    # √(log 12 / T) / 4 = √2.4849066 / 1200; 1/(4 T)²
    "dynamic-o-reps": {"learning_rate": 0.0051113982, "largest_rate": 7.1537028, "meta_rate": 0.0013136322,
                       "mixing": 7.7160494e-12},
    # √(log(14² · 3 / 4²) / T) = √3.6041382 / 300
    "uc-o-reps": {**BALLS, "learning_rate": 0.0063281893},
    # √(8 log 3 / T) / 4 = √8.7888983 / 1200
    "mdp-e": {"learning_rate": 0.0024705063},
    # α = 1/6: √(2/6 · log 3 / (3 T)) / 4 = √(0.36620410 / 270000) / 4; times 4 · 3 · 6
    "online-ssp": {"learning_rate": 2.9115196e-4, "exploration": 0.020962941},
    "lazy-fpl": {"phase_exponent": 0.33333333, "perturbation_scale": 1.0},
    # √T; √(8 log 3 · 300 / T) / 4 = √(8.7888983 / 300) / 4
    "politex": {"phase_length": 300.0, "learning_rate": 0.042790425},
    # T, √T
    "drift-plus-penalty": {"alpha": 90_000.0, "V": 300.0},
    "renewal-drift-plus-penalty": {"V": 300.0},
    "opt-cmdp": {**RADII},
    # ρ = 4 / 0.25; ρ / (4 √(2 T)) = 4 / 424.26407
    "opt-dual-cmdp": {**RADII, "rho": 16.0, "dual_step": 0.0094280904},
    # √(2 log 3 / T) / (4 (1 + 2 · 16)) = √2.1972246 / (300 · 132)
    "opt-primal-dual": {**RADII, "rho": 16.0, "dual_step": 0.0094280904, "policy_step": 3.7431914e-5},
    # √(log 3) / (4² √T), 1/√T, 1/T, 2 · 4 / 0.25; β = 4 √(6 log(39 T / 0.01)) = 4 √(6 · 19.676297)
    "opdop": {**RADII, "policy_step": 2.1836397e-4, "dual_step": 0.0033333333, "mixing": 1.1111111e-5,
              "largest": 32.0, "beta": 43.461759},
    "s-ops": {"confidence": "kl", "level": 0.005, "radius_scale": 1.0, "renewal": 0.1, "first_rate": 1.0,
              "change_rate": 5.0, "block": 10},
    "dope": {**RADII},
    "c-ucrl": {**RADII},
    "uopt-rpgpd": {**RADII, "rate_exponent": 0.53, "entropy_exponent": 0.4},
    "optpess-lp": {**RADII},
    "always-safe": {**RADII},
    # epochs log2(8 T / 42) = 14.065320; (log 3 + log 18 + log 12 + log 6) / 4 = 2.0664125;
    # √(14.065320 · 3.0664125 / (1.7182818 T)), which is below 1/42
    "fpop": {"learning_rate": 0.016700199, "level": 1.1111111e-5, "radius_scale": 1.0},
    # √(4 log(4 · 42 / 0.01) / (42 T)) = √(4 · 9.7291342 / 3780000), both
    "uob-reps": {**RADII, "learning_rate": 0.0032086415, "exploration": 0.0032086415},
    # (4² √(log 3 / T) / 39)^(2/3) = (16 · 0.0034938236 / 39)^(2/3); √(0.012712693 log 3 / T) / 4
    "opt-pomd": {**RADII, "exploration": 0.012712693, "learning_rate": 9.8482658e-5},
    # √(6 · 14 / 4) (3 / T)^(1/4) = 4.5825757 · 0.075983569; √(0.34820045 · 3.6041382 / (6 · 3 T))
    "shifted-bandit-uc-o-reps": {**RADII, "shift": 0.34820045, "learning_rate": 8.8015240e-4},
    "ucrl2": {**RADII},
    "ucbvi": {**RADII},
    "q-learning-ucb": {**RADII},
    # 1/L, 1/√T
    "reinforce-lagrangian": {"policy_step": 0.25, "dual_step": 0.0033333333},
    # √(8 log 3 / T) / 4, as mdp-e; 1/√T
    "npg-lagrangian": {"policy_step": 0.0024705063, "dual_step": 0.0033333333},
    "pid-lagrangian": {"policy_step": 0.0024705063, "dual_step": 0.0033333333, "proportional": 1.0, "derivative": 1.0},
    # T^0.2; ι = 128 log(√78 T) = 1738.9976, 8 √(39 · 4⁵ ι³) / T^0.2
    "triple-q": {"tuning": "published", "eta": 9.7914836, "tightness": 11840560.75},
    "actor-critic": {"trace": 1.0, "critic_power": 0.6, "actor_power": 0.9},
    "psrl": {"prior": 1.0, "resample": "episode"},
    "follow-the-leader": {"growth": 0.01},
}  # fmt: skip


def worked_out() -> Problem:
    """Every policy uses 1 of 1.5 and 1.6 of 2.3."""
    space = LayeredSpace.dense([1, 6, 4, 2, 1], 3)
    return Problem(
        name="worked out",
        mdp=LayeredMDP.even(space),
        losses=Turns([np.zeros(space.n_tuples)]),
        constraints=Deterministic(np.repeat([[0.25], [0.4]], space.n_tuples, axis=1)),
        budgets=np.array([1.5, 2.3]),
        constraint_names=("use", "other use"),
    )


def made(name: str, episodes: int = T) -> Any:
    return make_learner(name, worked_out(), episodes=episodes)


def settings_of(learner: LearnerBase) -> Row:
    return {name: value for name, value in learner.settings.items() if name not in ("learner", "episodes", "ties")}


def test_no_learner_with_parameters_is_missing() -> None:
    chosen = {name for name, learner in LEARNERS.items() if {*options_of(learner)} - {"ties"}}
    assert chosen == {*PARAMETERS}


@pytest.mark.parametrize("name", PARAMETERS)
def test_the_parameters_are_those_worked_out_by_hand(name: str) -> None:
    settings, expected = settings_of(made(name)), PARAMETERS[name]
    assert settings.keys() == expected.keys()
    for parameter, value in expected.items():
        close = value if isinstance(value, str) else pytest.approx(value, rel=1e-7)
        assert settings[parameter] == close, parameter


def test_parameters_for_few_episodes_are_held_below_what_the_theorems_ask_for() -> None:
    assert made("fpop", 700).learning_rate == pytest.approx(1 / 42)  # and not √(7.0588937 · 3.0664125 / 1202.7973)
    assert made("fpop", 1).level == 0.5  # and not 1
    assert made("online-ssp", 100).exploration == 0.5  # and not √(0.36620410 / 300) · 18
    assert made("shifted-bandit-uc-o-reps", 700).shift == 0.5  # and not 4.5825757 (3 / 700)^(1/4)


#: The first pair was visited 10,000 times, and led to the six states so often; no other was visited.
LED = [3000, 1000, 2000, 2000, 1000, 1000]


def visits() -> tuple[np.ndarray, np.ndarray]:
    N, M = np.zeros(39, np.int64), np.zeros(120, np.int64)
    N[0], M[:6] = 10_000, LED
    return N, M


@pytest.mark.parametrize("name", ["opt-cmdp", "opt-dual-cmdp", "opt-primal-dual", "dope", "always-safe"])
def test_radii_of_averages_and_frequencies(name: str) -> None:
    """β^c = √(2 log(6·39·2 T / 0.01) / n) with 22.161203, β^p = √(4·0.3·0.7·22.591986 / n) + 14·22.591986 / (3 n)."""
    learner, (N, M) = made(name), visits()
    assert learner._radii.of_costs(N)[:2] == pytest.approx([0.066575076, 6.6575076])
    box = learner._radii.box(estimates(learner.state.counts, learner.state.cost_sum)._replace(N=N, M=M))
    assert box.upper[:2] - [0.3, 0.1] == pytest.approx([0.054105834, 0.039061544])
    assert [0.3, 0.1] - box.lower[:2] == pytest.approx([0.054105834, 0.039061544])
    assert (box.lower[6:] == 0).all() and (box.upper[6:] == 1).all()


def test_radii_of_confidence_sets() -> None:
    """Six successors; log(90001·42 / 0.01) and log(90000·42 / 0.01) are 19.750416 and 19.750405."""
    space, (N, M) = worked_out().space, visits()
    for name in ("ucpd", "uc-o-reps"):
        assert made(name).rule(space, N, M).radius[:2] == pytest.approx([0.15394966, np.inf])  # √(2·6·19.750416 / n)
    box = made("uob-reps").rule(space, N, M)  # 2 √(0.3·19.750405 / 9999) + 14·19.750405 / (3·9999)
    assert box.upper[0] == pytest.approx(0.3 + 0.057903356)
    shifted = made("shifted-bandit-uc-o-reps").rule(space, N, M)  # 0.34820045 / 6; 0.65179955 · 0.15394966
    assert isinstance(shifted, Box) and shifted.ball is not None
    assert shifted.lower[0] == pytest.approx(0.058033409)
    assert shifted.ball.center[0] == pytest.approx(0.65179955 * 0.3 + 0.058033409)
    assert shifted.ball.radius[0] == pytest.approx(0.10034432)


def test_radii_of_ucrl2_after_a_million_steps() -> None:
    """log(2·42·10⁶ / 0.01) = 22.851498: √(14·6·22.851498 / n), 0.9 − √(7·22.851498 / (2 n))."""
    learner, (N, M) = made("ucrl2"), visits()
    learner.state.counts.N[:], learner.state.counts.M[:] = N, M
    ball, least = learner.plausible(learner.state.counts, 0.9 * N, 10**6)
    assert ball.radius[:2] == pytest.approx([0.43812393, np.inf])
    assert least[:2] == pytest.approx([0.9 - 0.089431673, 0])


def test_constants_of_bonuses() -> None:
    ucbvi = made("ucbvi")
    assert ucbvi._iota == pytest.approx(22.746137)  # log(5·14·3·4 T / 0.01)
    assert ucbvi._rare == pytest.approx(1.9470298e11)  # 100²·4³·14²·3·22.746137²
    assert made("q-learning-ucb")._first_bonus == pytest.approx(36.106016)  # √(4³·20.369444), log(2·39 T / 0.01)
    assert made("dope").gamma == made("optpess-lp").gamma == pytest.approx(0.25)
