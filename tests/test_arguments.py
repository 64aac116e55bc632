"""Names and numbers from users."""

from typing import Any

import numpy as np
import pytest

from tightrope.arguments import check_options, number, options_of, unknown, whole
from tightrope.errors import InvalidInputError


def example(first: int, *, size: int = 3, losses: str = "fixed") -> None: ...


def test_options_are_the_keyword_only_parameters_in_order() -> None:
    assert options_of(example) == {"size": 3, "losses": "fixed"}
    assert list(options_of(example)) == ["size", "losses"]


def test_unknown_options_are_refused_with_the_nearest_known_one() -> None:
    check_options("the example", example, {"losses": 1, "size": 2})
    with pytest.raises(InvalidInputError, match=r"the example has no option 'sizes'; did you mean 'size'\?"):
        check_options("the example", example, {"sizes": 2})
    with pytest.raises(InvalidInputError, match=r"'first' \(known: losses, size\)"):
        check_options("the example", example, {"first": 2})


def needy(*, table: list[int], size: int = 3) -> None: ...


def test_an_option_that_cannot_be_done_without_is_asked_for() -> None:
    check_options("the needy", needy, {"table": [1]})
    with pytest.raises(InvalidInputError, match="the needy needs the option 'table'"):
        check_options("the needy", needy, {"size": 2})


def test_a_name_like_nothing_else_gets_the_list_alone() -> None:
    assert str(unknown("there is no fruit", "zzz", ["pear", "apple"])) == (
        "there is no fruit 'zzz' (known: apple, pear)"
    )


def test_numbers_of_numpy_count_too() -> None:
    assert type(whole(np.int32(4), "size", at_least=0)) is int
    assert type(number(np.float32(0.5), "share", 0, 1)) is float
    assert number(1, "share", 0, 1) == 1.0


@pytest.mark.parametrize("value", [0, 3.0, True, "4", None, np.nan])
def test_what_is_no_whole_number_from_one_on(value: Any) -> None:
    with pytest.raises(InvalidInputError, match=f"size is {value!r}; it must be a whole number of at least 1"):
        whole(value, "size", at_least=1)


@pytest.mark.parametrize("value", [-0.1, 2.5, True, "1", None, np.nan, np.inf])
def test_what_is_no_number_in_the_range(value: Any) -> None:
    with pytest.raises(InvalidInputError, match=f"share is {value!r}; it must be a number from 0 to 2"):
        number(value, "share", 0, 2)
