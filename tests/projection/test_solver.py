"""The parts of the solver in the core: against `projection.reference`, and by their definitions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import FloatArray
from tests.instances import Instance, random_box, random_instance
from tightrope import LayeredSpace, core, project
from tightrope.projection import reference
from tightrope.projection.projector import Projector, hand_over

SEEDS = st.integers(0, 2000)

LANES = 64  # the most pairs of a chunk, as in core/lanes.hpp
FILL = 0.99  # as in core/conjugate.hpp


class Evaluated:
    """The parts of a solver that has evaluated the dual at β."""

    def __init__(self, instance: Instance, beta: FloatArray, logarithmic: bool = False) -> None:
        self.instance, self.parts = instance, core.Parts(instance.space.native, True)
        hand_over(instance.confidence, self.parts, instance.confidence.free(instance.space))
        self.F, self.residual = self.at(beta, logarithmic)

    def at(self, beta: FloatArray, logarithmic: bool = False) -> tuple[float, float]:
        """F and the flow residual at another β."""
        F, residual = self.parts.evaluate(self.instance.reference, self.instance.cost, beta, logarithmic)
        return F, residual

    def __getitem__(self, name: str) -> FloatArray:
        """A copy of an array of the layout or the workspace."""
        array: FloatArray = self.parts.arrays()[name]
        return array

    def divided(self) -> FloatArray:
        """θ; to be asked for once."""
        theta: FloatArray = self.parts.divided()
        return theta

    def H(self, damping: float) -> FloatArray:
        """The matrix that the panels then hold, upper blocks mirrored."""
        space, panels, begin = self.instance.space, self.parts.assembled(damping), 0
        H = np.zeros((space.n_states,) * 2)
        for k in range(space.n_layers):
            rows = slice(*space.csr.layer_ptr[[k, k + 1]])
            height = space.layer_sizes[k]
            width = height + (space.layer_sizes[k + 1] if k < space.n_layers - 1 else 0)
            panel, begin = panels[begin : begin + height * width].reshape(height, width), begin + height * width
            H[rows, rows] = np.triu(panel[:, :height]) + np.triu(panel[:, :height], 1).T
            if k < space.n_layers - 1:
                onward = slice(*space.csr.layer_ptr[[k + 1, k + 2]])
                H[rows, onward] = panel[:, height:]
                H[onward, rows] = panel[:, height:].T
        assert begin == len(panels)
        return H


def potentials(space: LayeredSpace, rng: np.random.Generator, size: float) -> FloatArray:
    beta = size * rng.standard_normal(space.n_states)
    beta[[0, -1]] = 0.0
    return beta


@given(SEEDS, st.sampled_from([0.0, 1.0, 20.0]))
def test_evaluate(seed: int, size: float) -> None:
    instance = random_instance(seed, max_steps=4, max_width=4, max_actions=3)
    beta = potentials(instance.space, np.random.default_rng(seed), size)
    ours, twin = Evaluated(instance, beta), reference.dual(*instance, beta)
    assert pytest.approx(twin.F, rel=1e-10, abs=1e-9) == ours.F
    np.testing.assert_allclose(ours["inflow"][1:-1], twin.inflow[1:-1], atol=1e-9)
    np.testing.assert_allclose(ours["outflow"], twin.outflow, atol=1e-9)
    assert ours.residual == pytest.approx(np.abs(twin.inflow - twin.outflow)[1:-1].sum(), abs=1e-9)
    np.testing.assert_allclose(ours.divided(), twin.theta, atol=1e-9)


@given(SEEDS, st.sampled_from([160.0, 200.0]))
def test_potentials_that_are_far_apart(seed: int, size: float) -> None:
    """By up to 400 in a layer: e^β is cut off there unless every pair is weighed by itself."""
    instance = random_instance(seed, max_steps=4, max_width=4, max_actions=3)
    beta = size * np.random.default_rng(seed).choice([-1.0, 1.0], instance.space.n_states)
    beta[[0, -1]] = 0.0
    ours, twin = Evaluated(instance, beta), reference.dual(*instance, beta)
    assert pytest.approx(twin.F, rel=1e-10, abs=1e-9) == ours.F
    assert ours.residual == pytest.approx(np.abs(twin.inflow - twin.outflow)[1:-1].sum(), abs=1e-9)
    np.testing.assert_allclose(ours.divided(), twin.theta, atol=1e-9)


@given(SEEDS)
def test_logarithms_give_the_same_dual(seed: int) -> None:
    """The careful way, for weights out of range, agrees with the plain one where both work."""
    instance = random_instance(seed, max_steps=4, max_width=4)
    beta = potentials(instance.space, np.random.default_rng(seed), 2.0)
    plain, careful = Evaluated(instance, beta), Evaluated(instance, beta, logarithmic=True)
    assert pytest.approx(plain.F, rel=1e-11, abs=1e-10) == careful.F
    assert careful.residual == pytest.approx(plain.residual, abs=1e-10)
    np.testing.assert_allclose(careful["share"] * careful["W"], plain["share"] * plain["W"], atol=1e-11)
    np.testing.assert_allclose(careful.divided(), plain.divided(), atol=1e-11)


@given(SEEDS)
def test_tilting_by_logarithms(seed: int) -> None:
    """References out of range are tilted by their logarithms: up to a factor, to the same."""
    instance = random_instance(seed, max_steps=4, max_width=4)
    beta = np.zeros(instance.space.n_states)
    plain, tiny = Evaluated(instance, beta), Evaluated(instance._replace(reference=instance.reference * 1e-150), beta)
    np.testing.assert_allclose(np.exp(tiny["u"] + 150 * np.log(10.0)), plain["u"], rtol=1e-11)
    np.testing.assert_allclose(tiny.divided(), plain.divided(), atol=1e-9)


@given(SEEDS)
def test_gradient_is_inflow_minus_outflow(seed: int) -> None:
    instance = random_instance(seed, max_steps=4, max_width=4)
    beta = potentials(instance.space, np.random.default_rng(seed), 1.0)
    ours = Evaluated(instance, beta)
    gradient = ours["inflow"] - ours["outflow"]
    for s in range(1, instance.space.n_states - 1):
        step = np.zeros_like(beta)
        step[s] = 1e-6
        slope = (ours.at(beta + step)[0] - ours.at(beta - step)[0]) / 2e-6
        assert slope == pytest.approx(gradient[s], abs=1e-6)


@given(SEEDS, st.sampled_from([0.0, 0.5]))
def test_hessian(seed: int, damping: float) -> None:
    instance = random_instance(seed, max_steps=4, max_width=4, max_actions=3)
    space = instance.space
    ours = Evaluated(instance, np.zeros(space.n_states))
    twin = reference.dual(*instance, np.zeros(space.n_states))
    H = twin.H + damping * np.diag(twin.inflow + twin.outflow)
    H[-1], H[:, -1] = 0.0, 0.0  # the last state's potential is fixed
    np.testing.assert_allclose(ours.H(damping), H, atol=1e-9)


@given(SEEDS, st.sampled_from([0.0, 0.5]))
def test_sweeps(seed: int, damping: float) -> None:
    """C, D, E and both sweeps by their definitions, from a dense H."""
    instance = random_instance(seed, max_steps=4, max_width=4, max_actions=3)
    space = instance.space
    ours = Evaluated(instance, np.zeros(space.n_states))
    twin = reference.dual(*instance, np.zeros(space.n_states))
    H = (twin.H + damping * np.diag(twin.inflow + twin.outflow))[:-1, :-1]
    layer = np.repeat(np.arange(space.n_layers + 1), space.layer_sizes)[:-1]
    B = np.where(layer[:, None] + 1 == layer[None, :], H, 0.0)
    inside = np.where(layer[:, None] == layer[None, :], H, 0.0)
    C = (1 + damping) * (twin.inflow + twin.outflow)[:-1]
    for s in range(1, len(C)):
        C += FILL * B[s] * twin.outflow[s] / C[s]
    U = np.diag(C) + B

    ours.parts.find_pivots(damping)
    c, d = ours["C"], ours["D"]
    np.testing.assert_allclose(c[:-1], C, atol=1e-9)
    assert (c[:-1] >= (1 - 1e-9) * ours["outflow"][:-1]).all()
    E = inside - np.diag(d[:-1])

    v = np.random.default_rng(seed).standard_normal(space.n_states)
    v[-1] = 0.0
    ours.parts.sweep(v, back=True)
    t, y = ours["t"], ours["y"]
    size = 1 + np.abs(t).max()
    np.testing.assert_allclose(U @ t[:-1], v[:-1], atol=1e-9 * size)
    np.testing.assert_allclose(y[:-1], E @ t[:-1], atol=1e-9 * size)
    product = ours.parts.sweep(v, back=False)
    y = ours["y"]
    size += np.abs(y).max()
    np.testing.assert_allclose(U.T @ y[:-1], H @ t[:-1], atol=1e-9 * size)
    assert product == pytest.approx(v @ y, abs=1e-9 * size)


@given(st.lists(st.integers(1, 30), min_size=0, max_size=5), st.integers(0, 1000))
def test_factorise_and_solve(inner: list[int], seed: int) -> None:
    """Against numpy.linalg on a random positive definite block-tridiagonal matrix."""
    rng = np.random.default_rng(seed)
    space = LayeredSpace.dense([1, *inner, 1], 1)
    layer = np.repeat(np.arange(space.n_layers + 1), space.layer_sizes)
    near = np.abs(layer[:, None] - layer[None, :]) <= 1
    A = np.where(near, rng.standard_normal((space.n_states,) * 2), 0.0)
    H = np.where(near, A + A.T, 0.0) + 4 * space.n_states * np.eye(space.n_states)
    panels = []
    for k in range(space.n_layers):
        rows = space.states_of(k)
        panels.append(H[np.ix_(rows, [*rows, *(space.states_of(k + 1) if k < space.n_layers - 1 else [])])].ravel())
    b = rng.standard_normal(space.n_states - 1)
    x = b.copy()
    core.solve_tridiagonal(np.array([1, *inner]), np.concatenate(panels), x)
    np.testing.assert_allclose(x, np.linalg.solve(H[:-1, :-1], b), rtol=1e-11, atol=1e-13)


def test_a_state_without_mass_and_one_too_many_are_factorised_all_the_same() -> None:
    """Rows of zeros, and pivots that are 0 or less by rounding: no NaN, and what the others have is right."""
    x = np.array([4.0, 0, 0])
    core.solve_tridiagonal(np.array([3]), np.array([[2.0, 0, 0], [0, 0, 0], [0, 0, -1e-17]]).ravel(), x)
    np.testing.assert_allclose(x, [2, 0, 0], rtol=1e-15)


@given(SEEDS)
def test_conjugate_gradients_solve(seed: int) -> None:
    instance = random_instance(seed, max_steps=4, max_width=5)
    space = instance.space
    ours = Evaluated(instance, np.zeros(space.n_states))
    H, b = ours.H(0.1)[:-1, :-1], ours["outflow"] - ours["inflow"]
    b[[0, -1]] = 0.0
    x = b.copy()
    ours.parts.conjugate_gradients(0.1, 1e-10, x)
    assert np.abs(H @ x[:-1] - b[:-1]).sum() <= 1e-9 * max(np.abs(b).sum(), 1e-3)


@given(SEEDS, st.sampled_from([0.0, 0.5, 1.0]))
def test_lanes_have_a_slot_for_every_tuple(seed: int, share_free: float) -> None:
    """One of its own for a tuple of a pair with a set, a common one for equal moves of the free pairs of a state."""
    space = random_instance(seed, max_width=30, max_actions=4).space
    free = np.random.default_rng(seed).random(space.n_pairs) < share_free
    parts = core.Parts(space.native, False)
    parts.set_l1(np.ones(space.n_tuples), np.where(free, np.inf, 1.0), free)
    lanes = parts.arrays()
    free_tuple = space.expand_to_tuples(free)
    moves = np.where(free_tuple[:, None], space.tuples * [1, 0, 1] - [0, 1, 0], space.tuples)  # action -1
    _, which = np.unique(moves, axis=0, return_inverse=True)
    _, slot_of_move = np.unique(lanes["slot"], return_inverse=True)
    together = set(zip(which.tolist(), slot_of_move.tolist(), strict=True))
    assert len(together) == which.max() + 1 == slot_of_move.max() + 1
    np.testing.assert_array_equal(lanes["successor"][lanes["slot"]], space.tuples[:, 2])
    np.testing.assert_array_equal(lanes["origin"], space.pairs[lanes["pair"], 0])

    n_lanes = np.diff(lanes["chunk_pair"].astype(int))
    assert n_lanes.max() <= LANES
    layer = np.repeat(np.arange(space.n_layers + 1), space.layer_sizes)
    for chunk, n in enumerate(n_lanes):
        pairs = lanes["pair"][lanes["chunk_pair"][chunk] : lanes["chunk_pair"][chunk + 1]]
        assert len(set(layer[space.pairs[pairs, 0]])) == 1
        assert len(set(free[pairs])) == 1
        table = lanes["successor"][lanes["chunk_slot"][chunk] : lanes["chunk_slot"][chunk + 1]].reshape(-1, n)
        assert set(layer[table.ravel()]) == {layer[space.pairs[pairs[0], 0]] + 1}
        assert lanes["aligned"][chunk] == (table == table[:, :1]).all()
        for v, i in enumerate(pairs):
            tuples = np.arange(space.csr.pair_ptr[i], space.csr.pair_ptr[i + 1])
            slots = lanes["chunk_slot"][chunk] + np.arange(len(tuples)) * n + v
            np.testing.assert_array_equal(lanes["slot"][tuples], slots)
    first_pairs = lanes["pair"][lanes["chunk_pair"][lanes["layer_chunk"][:-1]]]
    np.testing.assert_array_equal(layer[space.pairs[first_pairs, 0]], np.arange(space.n_layers))


@pytest.mark.parametrize("with_ball", [None, False, True], ids=["ball", "box", "box and ball"])
def test_the_answer_is_that_of_the_reference(with_ball: bool | None) -> None:
    for seed in range(60):
        instance = random_instance(seed) if with_ball is None else random_box(seed, with_ball)
        np.testing.assert_allclose(project(*instance).theta, reference.solve(*instance).theta, atol=1e-7)


@pytest.mark.parametrize("seed", [16, 439, 650, 682])
def test_no_potential_moves_by_more_than_20_in_a_step(seed: int) -> None:
    """Answers whose potentials are 100 and more: a step that would jump there is cut short."""
    space, given_reference, cost, confidence = random_instance(seed)
    projector = Projector(space)
    projector.solve(given_reference, 3 * cost, confidence, np.empty(space.n_tuples))
    farthest = np.abs(projector.potentials).max()
    assert farthest > 100
    assert projector.iterations >= farthest / 20


def test_conjugate_gradients_and_factors_give_the_same_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(0, 400, 7):
        instance = random_instance(seed)
        answers = []
        for operations in (np.inf, -1.0):
            monkeypatch.setattr("tightrope.projection.projector.DIRECT_OPERATIONS", operations)
            answers.append(project(*instance).theta)
        np.testing.assert_allclose(answers[0], answers[1], atol=1e-7)
