"""The kernels of the subproblem against `projection.reference`, the same in plain NumPy, and by their definitions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.instances import Instance, random_box, random_instance
from tightrope import project
from tightrope.projection import reference
from tightrope.projection.kernels import conjugate, dual, hessian, tridiagonal
from tightrope.projection.kernels.placement import LANES
from tightrope.projection.kernels.workspace import allocate_panels, by_name
from tightrope.projection.lanes import assign_lanes
from tightrope.projection.projector import Projector
from tightrope.space import FloatArray, LayeredSpace

SEEDS = st.integers(0, 2000)


class Evaluated:
    """A projector that has evaluated the dual at β."""

    def __init__(self, instance: Instance, beta: FloatArray) -> None:
        self.instance, self.projector = instance, Projector(instance.space)
        self.projector.prepare(instance.confidence)
        assert self.projector._stacks is not None
        self.lanes, self.panel_ptr = self.projector._lanes, self.projector._panel_ptr
        self.work = by_name(instance.space.n_layers + 1, *self.projector._stacks)
        self.theta = np.empty(instance.space.n_tuples)
        assert not dual.tilt(self.lanes, instance.reference, instance.cost, self.work, self.theta)
        self.F, self.residual = self.again(beta, logarithmic=False)

    def again(self, beta: FloatArray, logarithmic: bool) -> tuple[float, float]:
        F, residual = dual.evaluate(self.lanes, self.projector._data, beta, logarithmic, self.work)
        return F, residual

    def divided(self, logarithmic: bool = False) -> FloatArray:
        """θ; to be asked for once."""
        dual.divide(self.lanes, logarithmic, self.work, self.theta)
        return self.theta

    def H(self, damping: float) -> FloatArray:
        """The matrix that the panels then hold, upper blocks mirrored."""
        hessian.assemble(self.lanes, self.projector._data, damping, self.work)
        space, panels = self.instance.space, self.work.panels
        H = np.zeros((space.n_states,) * 2)
        for k in range(space.n_layers):
            rows = slice(*space.csr.layer_ptr[[k, k + 1]])
            width = space.layer_sizes[k]
            panel = panels[self.panel_ptr[k] : self.panel_ptr[k + 1]].reshape(width, -1)
            H[rows, rows] = np.triu(panel[:, :width]) + np.triu(panel[:, :width], 1).T
            if k < space.n_layers - 1:
                onward = slice(*space.csr.layer_ptr[[k + 1, k + 2]])
                H[rows, onward] = panel[:, width:]
                H[onward, rows] = panel[:, width:].T
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
    np.testing.assert_allclose(ours.work.inflow[1:-1], twin.inflow[1:-1], atol=1e-9)
    np.testing.assert_allclose(ours.work.outflow, twin.outflow, atol=1e-9)
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
    ours = Evaluated(instance, beta)
    shares = ours.work.share * ours.work.W
    u = ours.work.u
    u[:] = np.log(u, where=u > 0, out=np.full_like(u, -np.inf))
    ours.theta[:] = np.log(ours.theta)
    F, residual = ours.again(beta, logarithmic=True)
    assert pytest.approx(ours.F, rel=1e-11, abs=1e-10) == F
    assert residual == pytest.approx(ours.residual, abs=1e-10)
    np.testing.assert_allclose(ours.work.share * ours.work.W, shares, atol=1e-11)
    np.testing.assert_allclose(ours.divided(logarithmic=True), Evaluated(instance, beta).divided(), atol=1e-11)


@given(SEEDS)
def test_tilting_by_logarithms(seed: int) -> None:
    """References out of range are tilted by their logarithms: up to a factor, to the same."""
    instance = random_instance(seed, max_steps=4, max_width=4)
    ours, work = (lambda e: (e, e.work))(Evaluated(instance, np.zeros(instance.space.n_states)))
    u = work.u.copy()
    assert dual.tilt(ours.lanes, instance.reference * 1e-150, instance.cost, work, ours.theta)
    np.testing.assert_allclose(np.exp(work.u + 150 * np.log(10.0)), u, rtol=1e-11)


@given(SEEDS)
def test_gradient_is_inflow_minus_outflow(seed: int) -> None:
    instance = random_instance(seed, max_steps=4, max_width=4)
    beta = potentials(instance.space, np.random.default_rng(seed), 1.0)
    ours = Evaluated(instance, beta)
    gradient = ours.work.inflow - ours.work.outflow
    for s in range(1, instance.space.n_states - 1):
        step = np.zeros_like(beta)
        step[s] = 1e-6
        slope = (ours.again(beta + step, False)[0] - ours.again(beta - step, False)[0]) / 2e-6
        assert slope == pytest.approx(gradient[s], abs=1e-6)


@given(SEEDS, st.sampled_from([0.0, 0.5]))
def test_hessian(seed: int, damping: float) -> None:
    instance = random_instance(seed, max_steps=4, max_width=4, max_actions=3)
    space = instance.space
    ours = Evaluated(instance, np.zeros(space.n_states))
    twin = reference.dual(*instance, np.zeros(space.n_states))
    H = twin.H + damping * np.diag(twin.inflow + twin.outflow)
    H[-1], H[:, -1] = 0.0, 0.0  # the last state's potential is fixed
    assert len(ours.work.panels) > 0
    np.testing.assert_allclose(ours.H(damping), H, atol=1e-9)


@given(SEEDS, st.sampled_from([0.0, 0.5]))
def test_sweeps(seed: int, damping: float) -> None:
    """C, D, E and both sweeps by their definitions, from a dense H."""
    instance = random_instance(seed, max_steps=4, max_width=4, max_actions=3)
    space = instance.space
    ours = Evaluated(instance, np.zeros(space.n_states))
    work, lanes, data = ours.work, ours.lanes, ours.projector._data
    twin = reference.dual(*instance, np.zeros(space.n_states))
    H = (twin.H + damping * np.diag(twin.inflow + twin.outflow))[:-1, :-1]
    layer = np.repeat(np.arange(space.n_layers + 1), space.layer_sizes)[:-1]
    B = np.where(layer[:, None] + 1 == layer[None, :], H, 0.0)
    inside = np.where(layer[:, None] == layer[None, :], H, 0.0)
    C = (1 + damping) * (twin.inflow + twin.outflow)[:-1]
    for s in range(1, len(C)):
        C += conjugate.FILL * B[s] * twin.outflow[s] / C[s]
    U = np.diag(C) + B

    c, d, t, y = np.empty((4, space.n_states))
    conjugate.pivots(lanes, data, damping, work, c, d)
    np.testing.assert_allclose(c[:-1], C, atol=1e-9)
    assert (c[:-1] >= (1 - 1e-9) * work.outflow[:-1]).all()
    E = inside - np.diag(d[:-1])

    v = np.random.default_rng(seed).standard_normal(space.n_states)
    v[-1] = 0.0
    conjugate.backward(lanes, data, work, c, v, t, y)
    size = 1 + np.abs(t).max()
    np.testing.assert_allclose(U @ t[:-1], v[:-1], atol=1e-9 * size)
    np.testing.assert_allclose(y[:-1], E @ t[:-1], atol=1e-9 * size)
    product = conjugate.forward(lanes, work, c, d, v, t, y)
    size += np.abs(y).max()
    np.testing.assert_allclose(U.T @ y[:-1], H @ t[:-1], atol=1e-9 * size)
    assert product == pytest.approx(v @ y, abs=1e-9 * size)


@given(st.lists(st.integers(1, 7), min_size=0, max_size=5), st.integers(0, 1000))
def test_factorise_and_solve(inner: list[int], seed: int) -> None:
    """Against numpy.linalg on a random positive definite block-tridiagonal matrix."""
    rng = np.random.default_rng(seed)
    space = LayeredSpace.dense([1, *inner, 1], 1)
    (panel_ptr, panels), layer_state = allocate_panels(np.array([1, *inner])), space.csr.layer_ptr.astype(np.uint32)
    layer = np.repeat(np.arange(space.n_layers + 1), space.layer_sizes)
    near = np.abs(layer[:, None] - layer[None, :]) <= 1
    A = np.where(near, rng.standard_normal((space.n_states,) * 2), 0.0)
    H = np.where(near, A + A.T, 0.0) + 4 * space.n_states * np.eye(space.n_states)
    for k in range(space.n_layers):
        rows = space.states_of(k)
        columns = [*rows, *(space.states_of(k + 1) if k < space.n_layers - 1 else [])]
        panels[panel_ptr[k] : panel_ptr[k + 1]] = H[np.ix_(rows, columns)].ravel()
    b = rng.standard_normal(space.n_states)
    x = b.copy()
    tridiagonal.factorise(layer_state, panel_ptr, panels)
    tridiagonal.solve(layer_state, panel_ptr, panels, x)
    np.testing.assert_allclose(x[:-1], np.linalg.solve(H[:-1, :-1], b[:-1]), rtol=1e-11, atol=1e-13)


def test_a_state_without_mass_and_one_too_many_are_factorised_all_the_same() -> None:
    """Rows of zeros, and pivots that are 0 or less by rounding: no NaN, and what the others have is right."""
    layer_state, (panel_ptr, panels) = np.array([0, 3, 4], dtype=np.uint32), allocate_panels(np.array([3]))
    panels[:] = np.array([[2.0, 0, 0], [0, 0, 0], [0, 0, -1e-17]]).ravel()
    x = np.array([4.0, 0, 0, 7.0])
    tridiagonal.factorise(layer_state, panel_ptr, panels)
    tridiagonal.solve(layer_state, panel_ptr, panels, x)
    np.testing.assert_allclose(x, [2, 0, 0, 7], rtol=1e-15)


@given(SEEDS)
def test_conjugate_gradients_solve(seed: int) -> None:
    instance = random_instance(seed, max_steps=4, max_width=5)
    space = instance.space
    ours = Evaluated(instance, np.zeros(space.n_states))
    work, H = ours.work, ours.H(0.1)[:-1, :-1]
    b = work.outflow - work.inflow
    b[[0, -1]] = 0.0
    x = b.copy()
    conjugate.conjugate_gradients(ours.lanes, ours.projector._data, 0.1, 1e-10, 500, work, x)
    assert np.abs(H @ x[:-1] - b[:-1]).sum() <= 1e-9 * max(np.abs(b).sum(), 1e-3)


@given(SEEDS, st.sampled_from([0.0, 0.5, 1.0]))
def test_lanes_have_a_slot_for_every_tuple(seed: int, share_free: float) -> None:
    """One of its own for a tuple of a pair with a set, a common one for equal moves of the free pairs of a state."""
    space = random_instance(seed, max_width=30, max_actions=4).space
    free = np.random.default_rng(seed).random(space.n_pairs) < share_free
    lanes = assign_lanes(space, free)
    free_tuple = space.expand_to_tuples(free)
    moves = np.where(free_tuple[:, None], space.tuples * [1, 0, 1] - [0, 1, 0], space.tuples)  # action -1
    _, which = np.unique(moves, axis=0, return_inverse=True)
    _, slot_of_move = np.unique(lanes.slot, return_inverse=True)
    together = set(zip(which.tolist(), slot_of_move.tolist(), strict=True))
    assert len(together) == which.max() + 1 == slot_of_move.max() + 1
    np.testing.assert_array_equal(lanes.successor[lanes.slot], space.tuples[:, 2])
    np.testing.assert_array_equal(lanes.origin, space.pairs[lanes.pair, 0])

    n_lanes = np.diff(lanes.chunk_pair.astype(int))
    assert n_lanes.max() <= LANES
    layer = np.repeat(np.arange(space.n_layers + 1), space.layer_sizes)
    for chunk, n in enumerate(n_lanes):
        pairs = lanes.pair[lanes.chunk_pair[chunk] : lanes.chunk_pair[chunk + 1]]
        assert len(set(layer[space.pairs[pairs, 0]])) == 1
        assert len(set(free[pairs])) == 1
        table = lanes.successor[lanes.chunk_slot[chunk] : lanes.chunk_slot[chunk + 1]].reshape(-1, n)
        assert set(layer[table.ravel()]) == {layer[space.pairs[pairs[0], 0]] + 1}
        assert lanes.aligned[chunk] == (table == table[:, :1]).all()
        for v, i in enumerate(pairs):
            tuples = np.arange(space.csr.pair_ptr[i], space.csr.pair_ptr[i + 1])
            np.testing.assert_array_equal(lanes.slot[tuples], lanes.chunk_slot[chunk] + np.arange(len(tuples)) * n + v)
    first_pairs = lanes.pair[lanes.chunk_pair[lanes.layer_chunk[:-1]]]
    np.testing.assert_array_equal(layer[space.pairs[first_pairs, 0]], np.arange(space.n_layers))


@pytest.mark.parametrize("with_ball", [None, False, True], ids=["ball", "box", "box and ball"])
def test_the_answer_is_that_of_the_reference(with_ball: bool | None) -> None:
    for seed in range(60):
        instance = random_instance(seed) if with_ball is None else random_box(seed, with_ball)
        np.testing.assert_allclose(project(*instance).theta, reference.solve(*instance), atol=1e-7)


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
