"""Forms of tables: parsed by hand, laid out like the table that they stand for, refused with the column."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tightrope as tr
from tightrope import Factors, InvalidInputError
from tightrope.problems.factors import AXES, parse

ROWS = [(0, 0, 0), (0, 0, 1), (0, 1, 1), (1, 0, 0), (1, 1, 1)]
P = [0.25, 0.75, 1.0, 1.0, 1.0]
SIZES = {"episode": 3, "step": 4, "state": 2, "action": 2, "next_state": 2}


def test_a_form_is_a_sum_of_products() -> None:
    form = parse("-2 * price[episode, step] * energy[action] + 1.5e1*wear[state,action] - .5")
    assert [term.coefficient for term in form.terms] == [-2, 15, -0.5]
    assert form.factors == {"price": ("episode", "step"), "energy": ("action",), "wear": ("state", "action")}


@pytest.mark.parametrize(
    ("form", "words"),
    [
        ("", "column 1: a number or a table such as price.* is expected"),
        ("price", "column 6: the axes of price, such as price.step, action. is expected"),
        ("price[", "column 7: an axis is expected"),
        ("price[]", r"column 7: '\]' where an axis is expected"),
        ("price[step", "column 11: a comma or ] is expected"),
        ("price[step,]", r"column 12: '\]' where an axis is expected"),
        ("price[day]", "column 7: price has no axis 'day'"),
        ("price[stat]", "did you mean 'state'"),
        ("price[step, step]", "column 13: price has the axis step twice"),
        ("price[step] energy[action]", r"column 13: 'energy' where \+, - or \* is expected"),
        ("price[step] *", "column 14: a number or a table"),
        ("price[step] ** 2", r"column 14: '\*' where a number"),
        ("(price[step])", r"column 1: '\(' is not expected"),
        ("price[step] / 2", "column 13: '/' is not expected"),
        ("__import__('os')", r"column 11: '\(' is not expected"),
        ("step[step]", "column 1: step is an axis, and a table needs another name"),
        ("a[step] + a[state]", r"uses a with the axes \['step'\] and \['state'\]; give one of the two another name"),
        ("1" * 10_001, "10001 characters"),
    ],
)
def test_an_invalid_form_is_refused_with_the_column(form: str, words: str) -> None:
    with pytest.raises(InvalidInputError, match=words):
        parse(form)


@given(st.text(alphabet="ab[]*+-,. 1e_step", max_size=30))
def test_any_text_is_a_form_or_is_refused(form: str) -> None:
    try:
        assert parse(form).terms
    except InvalidInputError as error:
        assert "form" in str(error)


@st.composite
def factored(draw: st.DrawFn) -> tuple[Factors, np.ndarray]:
    """Random factors, and the same as one table over all axes."""
    form, tables, whole = [], {}, np.zeros([SIZES[axis] for axis in AXES])
    for k in range(draw(st.integers(1, 3))):
        term, product = [f"{k + 0.5}"], np.full(whole.shape, k + 0.5)
        for m in range(draw(st.integers(0, 2))):
            axes = draw(st.lists(st.sampled_from(AXES), min_size=1, unique=True))
            values = np.array(draw(st.lists(st.integers(-9, 9), min_size=96, max_size=96)), dtype=float)
            shape = [SIZES[axis] for axis in axes]
            tables[f"t{k}_{m}"] = values[: int(np.prod(shape))].reshape(shape)
            term.append(f"t{k}_{m}[{', '.join(axes)}]")
            order = [axis for axis in AXES if axis in axes]
            aligned = np.transpose(tables[f"t{k}_{m}"], [axes.index(axis) for axis in order])
            product = product * aligned.reshape([SIZES[axis] if axis in axes else 1 for axis in AXES])
        form.append(" * ".join(term))
        whole = whole + product
    return Factors(" + ".join(form), **tables), whole


@given(factored())
def test_factors_are_laid_out_like_the_table_that_they_stand_for(made: tuple[Factors, np.ndarray]) -> None:
    factors, whole = made
    layout = tr.unroll(ROWS, P, n_steps=4)
    laid_out = np.broadcast_to(layout.lay_out(factors), (3, layout.space.n_tuples))
    expected = layout.lay_out(lambda s, a, s_next, step: whole[:, step, s, a, s_next])
    np.testing.assert_allclose(laid_out, expected, rtol=1e-12, atol=1e-12)
    if factors.n_episodes is not None:
        some = layout.lay_out(lambda *move: factors.during(slice(1, 3), *move))
        np.testing.assert_array_equal(some, laid_out[1:])


@pytest.mark.parametrize(
    ("form", "tables", "words"),
    [
        ("a[step]", {}, "needs a table a, over step"),
        ("a[step]", {"a": [1], "b": [1]}, "has no table 'b'"),
        ("a[step]", {"a": [[1]]}, r"a has shape \(1, 1\); expected a dimension for each of step"),
        ("a[step]", {"a": []}, r"a has shape \(0,\)"),
        ("a[step]", {"a": [np.inf]}, "a"),
        ("a[episode] * b[episode]", {"a": [1, 2], "b": [1]}, "different numbers of episodes: a 2, b 1"),
    ],
)
def test_tables_that_do_not_fit_are_refused(form: str, tables: dict[str, object], words: str) -> None:
    with pytest.raises(InvalidInputError, match=words):
        Factors(form, **tables)  # type: ignore[arg-type]


def test_a_table_that_is_too_short_is_refused_when_it_is_laid_out() -> None:
    layout = tr.unroll(ROWS, P, n_steps=4)
    with pytest.raises(InvalidInputError, match="a has 3 entries along step, and none for step 3"):
        layout.lay_out(Factors("a[step]", a=[1, 2, 3]))


def test_factors_make_a_problem() -> None:
    layout = tr.unroll(ROWS, P, n_steps=4)
    charge = tr.Factors("price[episode, step] * energy[action]", price=np.arange(12).reshape(3, 4), energy=[0, 2])
    problem = tr.Problem.from_units(
        name="mine", mdp=layout.mdp, ties=layout.ties, scenarios=layout.lay_out(charge), losses="replay",
        uses=[layout.lay_out(tr.Factors("on[action]", on=[0, 1]))], budgets=[2.0], constraint_names=["on"],
    )  # fmt: skip
    assert problem.loss_scale == 22
    assert repr(charge) == "Factors('price[episode, step] * energy[action]')"


def test_numbers_may_have_exponents_and_tables_any_name() -> None:
    layout = tr.unroll([(0, 0, 0)], [1.0], n_steps=1)
    assert layout.lay_out(Factors(".5e3 * form[action]", form=[2.0])).tolist() == [1000.0]
