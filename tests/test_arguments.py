"""Names and numbers from users."""

import itertools
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tightrope import InvalidInputError
from tightrope.arguments import check_options, file_path, listed, number, options_of, room, shown, texts, unknown, whole
from tightrope.arguments.arrays import finite, floats, wholes


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


def test_a_name_unlike_all_others_gets_the_list_without_a_suggestion() -> None:
    assert str(unknown("there is no fruit", "zzz", ["pear", "apple"])) == (
        "there is no fruit 'zzz' (known: apple, pear)"
    )


def test_no_similar_name_is_searched_for_a_very_long_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """The search would take seconds, which a client could use to slow a service down."""
    monkeypatch.setattr("difflib.get_close_matches", lambda *_, **__: pytest.fail("it was looked for"))
    assert "there is no fruit 'zzz" in str(unknown("there is no fruit", "z" * 8 * 2**20, ["pear", "apple"]))


def test_numbers_of_numpy_count_too() -> None:
    assert type(whole(np.int32(4), "size", at_least=0)) is int
    assert type(number(np.float32(0.5), "share", 0, 1)) is float
    assert number(1, "share", 0, 1) == 1.0


@pytest.mark.parametrize("value", [0, 3.0, True, "4", None, np.nan])
def test_invalid_whole_numbers_are_refused(value: Any) -> None:
    with pytest.raises(InvalidInputError, match=f"size is {value!r}; it must be a whole number of at least 1"):
        whole(value, "size", at_least=1)


@pytest.mark.parametrize("value", [-0.1, 2.5, True, "1", None, np.nan, np.inf])
def test_numbers_outside_the_range_are_refused(value: Any) -> None:
    with pytest.raises(InvalidInputError, match=f"share is {value!r}; it must be a number from 0 to 2"):
        number(value, "share", 0, 2)


def test_numbers_too_large_to_be_shown_or_held_are_refused() -> None:
    with pytest.raises(InvalidInputError, match=r"size is 1000.*… *; .* at most 9007199254740992"):
        whole(10**400, "size", at_least=1)
    with pytest.raises(InvalidInputError, match="size is a int; "):
        whole(10**5000, "size", at_least=1)
    with pytest.raises(InvalidInputError, match="share is 1000"):
        number(10**400, "share", 0, 2)
    with pytest.raises(InvalidInputError, match=r"size is 9; .* at most 5"):
        whole(9, "size", 1, at_most=5)


class Raising:
    """An object of another library that raises in repr."""

    def _raise(self, *_: object) -> Any:
        raise RuntimeError("no")

    __repr__ = __len__ = __iter__ = __array__ = __float__ = __fspath__ = _raise


def test_what_cannot_be_shown_is_called_by_its_kind() -> None:
    assert shown(Raising()) == "a Raising"
    assert shown("x" * 1000).endswith("x…")


def test_entries_are_listed_unless_they_never_end() -> None:
    assert listed((i for i in range(3)), "sizes") == [0, 1, 2]
    assert texts(["a", "b"], "names") == ("a", "b")
    wrong: Any
    for wrong in (None, 3, "abc", b"abc", {}, range(10**12), itertools.count(), Raising()):
        with pytest.raises(InvalidInputError, match="sizes"):
            listed(wrong, "sizes")
    with pytest.raises(InvalidInputError, match=r"names\[1\] is 2; expected a str"):
        texts(["a", 2], "names")


def test_paths_are_text_or_paths() -> None:
    assert file_path("a/b", "path") == file_path(Path("a/b"), "path") == Path("a/b")
    for wrong in (None, 3, b"a", "a\0b", "a\ud800", ["a"], Raising()):
        with pytest.raises(InvalidInputError, match="path is"):
            file_path(wrong, "path")


def test_what_would_not_fit_is_not_begun() -> None:
    room(10**8, "this")
    with pytest.raises(InvalidInputError, match=r"this would have 1e\+99 moves; at most 100000000"):
        room(10**400, "this")


def test_arrays_as_they_should_be_are_handed_back_at_once() -> None:
    values, numbers = np.ones((2, 3)), np.arange(3)
    assert floats(values, "x", (2, 3)) is floats(values, "x", ("I", 3)) is floats(values, "x", None) is values
    assert wholes(numbers, "x", (3,)) is numbers


def test_what_is_like_an_array_becomes_one() -> None:
    frozen = np.ones(3)
    frozen.flags.writeable = False
    for given in ([1, True, 2.5], (1, 1, 2.5), np.array([1, 1, 2.5], ">f4"), np.ones(6)[::2], frozen, range(3)):
        array = floats(given, "x", (3,))
        assert array.dtype == np.float64
        assert array.flags.carray
    assert floats([Fraction(1, 4), 10**30], "x", (2,)).tolist() == [0.25, 1e30]
    assert floats([], "x", ("I", 3)).shape == floats([], "x", (0, 3)).shape == (0, 3)
    assert wholes([1, 2], "x", (2,)).dtype == np.int64
    assert wholes([], "x", ("n", 3)).shape == (0, 3)


WRONG_ARRAYS = [
    None, "abc", b"abc", "1", 3, 1j, object(), Raising(), {}, {"a": 1}, {1, 2}, (i for i in range(3)), [[1], [2, 3]],
    ["a", "b", "c"], [None, 1, 2], [1j, 2, 3], [10**400, 1, 2], np.zeros(2), np.zeros((3, 1)), np.array(3.0),
    np.zeros(3, dtype="M8[s]"), np.array([1, "a", None], dtype=object), range(10**12), np.broadcast_to(0.0, (10**12,)),
]  # fmt: skip


@pytest.mark.parametrize("value", WRONG_ARRAYS, ids=range(len(WRONG_ARRAYS)))
def test_arrays_of_another_shape_or_kind_are_refused(value: Any) -> None:
    for read in (floats, wholes):
        with pytest.raises(InvalidInputError, match=r"^x (is no|has shape)"):
            read(value, "x", (3,))


def test_what_is_not_finite_is_named_by_its_place() -> None:
    with pytest.raises(InvalidInputError, match="x is inf at index 1, 0; every entry must be finite"):
        finite(np.array([[1.0, 2.0], [np.inf, 3.0]]), "x")


def test_whole_numbers_are_whole_and_have_room() -> None:
    for wrong in ([1.0, 2.0], [True, False], np.array([2**64 - 1, 0], dtype=np.uint64), [2**70, 1]):
        with pytest.raises(InvalidInputError, match="x is no"):
            wholes(wrong, "x", (2,))
