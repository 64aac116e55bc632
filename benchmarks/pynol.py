"""python -m benchmarks.pynol: dynamic-o-reps beside its authors' code, on their grid, with the same losses and rates.

Needs PyNOL (github.com/li-lf/PyNOL) and its `autograd` on PYTHONPATH; they are not part of this repository. A walker
moves right or down through a square, and slips with probability 0.1; in every state one action costs 1 and the other
nothing, drawn anew every --freq episodes. Ours is given the rates of their code, η_1 = ε = 1/√T. Prints the differences
of rates, weights and measures, and the time of an episode with each. Both agree until theirs clips measures at 0.001;
from then on theirs adapts sooner, unless ours is given as much mixing.
"""

import argparse
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import page
from tightrope import Episode, LayeredMDP, LayeredSpace
from tightrope.learners.dynamic_o_reps import DynamicOREPS
from tightrope.learners.o_reps import OREPS
from tightrope.space import FloatArray

#: The least measure in their code.
CLIPPED = 1e-3


def laid_out(domain: Any) -> tuple[LayeredMDP, NDArray[np.int64]]:
    """Return their grid in layers, and the index of each of our pairs in theirs."""
    layer, n_actions = np.array(domain.layers[0]), domain.num_actions
    order = np.argsort(layer, kind="stable")  # of each of our states, the index of theirs
    number = np.argsort(order)
    tuples, P, pairs = [], [], []
    for s in order[:-1]:
        for a in range(n_actions):
            pairs.append(s * n_actions + a)
            for s_next in np.flatnonzero(domain.transition[s, a]):
                tuples.append([int(number[s]), a, int(number[s_next])])
                P.append(domain.transition[s, a, s_next])
    space = LayeredSpace.from_tuples(np.bincount(layer).tolist(), n_actions, tuples)
    assert space.tuples.tolist() == tuples
    return LayeredMDP(space, P), np.array(pairs)


def drawn(rng: np.random.Generator, domain: Any) -> FloatArray:
    """Return 1 for one action of every state, 0 for the other."""
    loss = np.ones((domain.num_states, domain.num_actions))
    loss[np.arange(domain.num_states), rng.integers(domain.num_actions, size=domain.num_states)] = 0.0
    return loss[:-1].reshape(-1)


def observe(learner: OREPS | DynamicOREPS, loss: FloatArray) -> None:
    """Observe an episode with the loss of each pair; the path does not matter to the learner."""
    space, states, actions = learner.space, [0], list[int]()
    while len(actions) < space.n_layers:
        _, a, s_next = space.tuples[np.argmax(space.tuples[:, 0] == states[-1])]
        states.append(int(s_next))
        actions.append(int(a))
    f = space.expand_to_tuples(2 * loss - 1)
    learner.observe(Episode(states, actions, f, np.zeros((0, space.n_tuples))))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--side", type=int, default=4)
    parser.add_argument("--episodes", type=int, default=100)
    parser.add_argument("--freq", type=int, default=25)
    asked = parser.parse_args()
    try:
        grid, models = (
            import_module(f"applications.online_mdp.{name}") for name in ("grid_world.loop_free_ssp", "models.doreps")
        )
        base, environment = import_module("pynol.learner.base"), import_module("pynol.environment.environment")
    except ImportError as error:
        raise SystemExit(f"{error}; put PyNOL and autograd on PYTHONPATH") from None
    T, rng, loss = asked.episodes, np.random.default_rng(0), np.empty(0)
    domain = grid.GridWorld(asked.side, asked.side, [(0, 1), (1, 0)], 0.9)
    theirs = {
        "O-REPS": base.Hedge(domain=domain, step_size=T**-0.5, prior="minimum"),
        "DO-REPS": models.DOREPS(domain=domain, K=T, prior="minimum"),
    }
    ensemble = theirs["DO-REPS"]
    rates = np.array([each.step_size for each in ensemble.schedule.bases], dtype=float)
    mdp, pairs = laid_out(domain)
    known: dict[str, Any] = {"model": mdp, "episodes": T}
    same = {**known, "learning_rate": T**-0.5, "largest_rate": rates[-1], "meta_rate": T**-0.5}
    dynamic = DynamicOREPS(mdp.space, [], **same, mixing=0.0)
    ours: dict[str, OREPS | DynamicOREPS] = {
        "O-REPS": OREPS(mdp.space, [], **known, learning_rate=T**-0.5 / 2),  # losses in [-1, 1] are twice as wide
        "DO-REPS": dynamic,
        f"DO-REPS, ours with {CLIPPED} of q_1 mixed in": DynamicOREPS(mdp.space, [], **same, mixing=CLIPPED),
        "DO-REPS, ours as it is": DynamicOREPS(mdp.space, [], **known),
    }
    costs = dict.fromkeys([(name, "theirs") for name in theirs] + [(name, "ours") for name in ours], 0.0)
    their_losses, apart, apart_free, weights_apart = np.zeros(len(rates)), 0.0, 0.0, 0.0
    clipped = np.zeros(len(rates), dtype=bool)
    for t in range(T):
        loss = drawn(rng, domain) if t % asked.freq == 0 else loss
        for name, model in theirs.items():
            env = environment.Environment(func=lambda x, loss=loss: x @ loss, grad_func=lambda x, loss=loss: loss)
            costs[name, "theirs"] += float(model.opt(env)[1])
        weights_apart = max(weights_apart, np.abs(dynamic.weights(their_losses) - ensemble.meta.prob).max())
        bases = np.array(ensemble.x_bases)[:, pairs]
        their_losses += bases @ loss[pairs]
        clipped |= bases.min(axis=1) < 1.01 * CLIPPED
        gap = np.abs(np.array([mdp.space.sum_over_successors(q) for q in dynamic.state.measures]) - bases).max(axis=1)
        apart, apart_free = max(apart, gap.max()), max([apart_free, *gap[~clipped]])
        for name, learner in ours.items():
            costs[name, "ours"] += float(loss[pairs] @ mdp.space.sum_over_successors(learner.state.theta))
            observe(learner, loss[pairs])
    rows = [
        (name, *(f"{costs[name, whose] / T:.4f}" if (name, whose) in costs else "" for whose in ("theirs", "ours")))
        for name in ours
    ]
    print(page.table((f"loss of an episode, T = {T}", "theirs", "ours"), rows))
    print(f"""
{len(rates)} bases. At the most rates differ by {np.abs(rates - dynamic.rates).max():.1e}, weights on the same losses by
{weights_apart:.1e}, measures by {apart_free:.1e} until theirs are held at {CLIPPED}, and by {apart:.1e} in all.""")


if __name__ == "__main__":
    main()
