"""A learner of another package trains on an environment of ours: neat-python, which evolves small networks."""

import random
from pathlib import Path
from typing import Any

import gymnasium
import neat
import numpy as np

import tightrope as tr
from tightrope.planning.hindsight import best_policy

OPTIONS: dict[str, Any] = {"layer_sizes": [1, 4, 4, 4, 4, 1], "n_actions": 2, "losses": "fixed", "seed": 1}
EPISODES = 30


def test_a_third_party_agent_learns_from_the_reward() -> None:
    env = gymnasium.make("tightrope.interop.gym_env:tightrope/Random-v0", **OPTIONS)
    problem = tr.make("random", **OPTIONS)
    space, loss = problem.space, problem.losses.begin(np.random.default_rng(0)).loss(1)
    kinds = (neat.DefaultGenome, neat.DefaultReproduction, neat.DefaultSpeciesSet, neat.DefaultStagnation)
    config = neat.Config(*kinds, Path(__file__).with_name("neat.ini"))

    def act(network: Any, state: int) -> int:
        layer = space.layer_of(state)
        inputs = layer / space.n_layers, (state - space.states_of(layer)[0]) / 3
        return int(np.argmax(network.activate(inputs)))

    def evaluate(genomes: Any, config: Any) -> None:
        for _, genome in genomes:
            network = neat.nn.FeedForwardNetwork.create(genome, config)
            total, (state, _) = 0.0, env.reset(seed=7)
            for _ in range(EPISODES):
                over = False
                while not over:
                    state, reward, over, _, _ = env.step(act(network, state))
                    total += float(reward)
                state, _ = env.reset()
            genome.fitness = total / EPISODES

    def exact_loss(genome: Any) -> float:
        network = neat.nn.FeedForwardNetwork.create(genome, config)
        choices = [float(act(network, s) == a) for s, a in space.pairs.tolist()]
        return float(loss @ problem.mdp.occupancy(tr.Policy(space, choices)))

    before = random.getstate()  # the library draws from Python's own generator
    try:
        population = neat.Population(config, seed=1)
        at_first = min(exact_loss(genome) for genome in population.population.values())
        learnt = exact_loss(population.run(evaluate, 12))
    finally:
        random.setstate(before)
    aimless = float(loss @ problem.mdp.occupancy(tr.Policy.uniform(space)))
    best, _ = best_policy(problem.mdp, loss)
    assert learnt < at_first - 0.3
    assert aimless - learnt > 0.5 * (aimless - best)
