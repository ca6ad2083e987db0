"""What files bring is held against annotations: a table of values and the types that they are, and are not, of."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Optional, Protocol, TypeVar, get_type_hints, runtime_checkable

import numpy as np
import pytest

import featgeo.models  # noqa: F401 (its classes are what files know)
from featgeo import schema

T = TypeVar("T")


class Named(Protocol):
    name: str

    def greet(self) -> str: ...

    def _hidden(self) -> str: ...


@runtime_checkable
class Called(Protocol):
    def __call__(self) -> int: ...


class Greeter:
    name = "a"
    greet = __str__ = lambda self: "hello"


class Mute:
    name = "a"


FITS = [
    (1, Any),
    (None, None),
    (None, type(None)),
    (1, float),
    (1.5, float),
    (1, int),
    ("a", str),
    (True, bool),
    (None, int | None),
    (3, int | None),
    (3, Optional[int]),  # noqa: UP045 (the other spelling)
    ("a", Literal["a", "b"]),
    (1, Literal[1, 2]),
    (np.zeros(2), np.ndarray[Any, np.dtype[np.float64]]),
    (len, Callable[[Any], int]),
    ({"a": 1}, dict[str, int]),
    ({"a": 1}, Mapping[str, int]),
    ((1, "a"), tuple[int, str]),
    ((1, 2, 3), tuple[int, ...]),
    ((), tuple[int, ...]),
    ((1, 2), Sequence[int]),
    ("ab", Sequence[str]),
    ({1}, set[int]),
    (frozenset({1}), frozenset[int]),
    ([[1], [2, 3]], list[list[int]]),
    (b"ab", Sequence[str]),  # texts and bytes are not taken apart, nor is what can be read only once
    (iter([1]), Iterator[str]),
    (5, ClassVar[int]),
    (5, T),
    (5, "int"),  # kinds that are not known allow everything
    (Greeter(), Named),
    (len, Called),
]

DOES_NOT_FIT = [
    (1, None),
    (0, type(None)),
    (True, float),
    ("1", float),
    (True, int),
    (1.0, int),
    (1, str),
    (1, bool),
    ("a", int | None),
    ("a", Optional[int]),  # noqa: UP045
    ("c", Literal["a", "b"]),
    (True, Literal[1, 2]),
    (1.0, Literal[1, 2]),
    ([0.0], np.ndarray[Any, np.dtype[np.float64]]),
    (3, Callable[[Any], int]),
    ({"a": "b"}, dict[str, int]),
    ({1: 1}, dict[str, int]),
    ({"a": 1, 2: 2}, Mapping[str, int]),
    ([1], Mapping[str, int]),
    ((1, 2), tuple[int, str]),
    ((1,), tuple[int, str]),
    ((1, "a", 2), tuple[int, str]),
    ((1, "a"), tuple[int, ...]),
    ([1, 2], tuple[int, ...]),
    ((1, "a"), Sequence[int]),
    ({"a"}, set[int]),
    (frozenset({"a"}), frozenset[int]),
    ([[1], ["a"]], list[list[int]]),
    (Mute(), Named),
    (3, Called),
]


@pytest.mark.parametrize(("value", "hint"), FITS)
def test_what_is_of_a_type(value, hint):
    assert schema.fits(value, hint)


@pytest.mark.parametrize(("value", "hint"), DOES_NOT_FIT)
def test_what_is_not_of_a_type(value, hint):
    assert not schema.fits(value, hint)


@dataclass
class Base:
    sizes: tuple[int, ...]
    width: str = ""


@dataclass
class Record(Base):
    names: list[str] = ()  # type: ignore[assignment]
    width: float = 1.0


WHOLE = {"sizes": [1], "names": ["a"], "width": 1.0}


def test_records_from_json_have_tuples_where_these_are_due_and_lists_elsewhere():
    assert schema.made(Record, {"sizes": [1, 2], "names": ["a"], "width": 2}) == Record((1, 2), names=["a"], width=2)


@pytest.mark.parametrize(
    ("plain", "message"),
    [
        ([1], r"a Record has the fields \['sizes', 'width', 'names'\]"),
        (WHOLE | {"more": 1}, "a Record has the fields"),
        (WHOLE | {"sizes": ["a"]}, "^sizes of a Record is a tuple$"),
        (WHOLE | {"sizes": 1}, "sizes of a Record is a int"),
        (WHOLE | {"names": [1]}, "names of a Record is a list"),
        (WHOLE | {"width": True}, "width of a Record is a bool"),
        ({"names": ["a"], "width": 1.0}, "a Record has the fields"),
        ({"sizes": [1], "names": ["a"]}, "a Record has the fields"),  # files hold what has a default, too
    ],
)
def test_records_of_other_fields_or_types_are_refused(plain, message):
    with pytest.raises(TypeError, match=message):
        schema.made(Record, plain)


def test_annotations_of_subclasses_count():
    with pytest.raises(TypeError, match="width of a Base is a float"):
        schema.made(Base, {"sizes": (), "width": 1.0})
    assert schema.made(Record, WHOLE).width == 1.0


@pytest.mark.parametrize("cls", schema.SAVED.values())
def test_annotations_of_all_classes_that_files_hold_can_be_evaluated(cls):
    hints = get_type_hints(cls)
    assert all(name in hints for name in schema.saved_fields(cls))


@dataclass(eq=False)
class Fitted:
    size: int = 1
    seen_: tuple[int, ...] = field(init=False)
    name_: str = field(init=False, metadata=schema.OPTIONAL)
    rows_: list[int] = field(init=False, metadata=schema.NOT_SAVED)


def test_fields_that_the_constructor_does_not_take_are_set_afterwards():
    made = schema.made(Fitted, {"size": 2, "seen_": [3]})
    assert (made.size, made.seen_, hasattr(made, "name_")) == (2, (3,), False)
    assert schema.filled(Fitted(), {"seen_": (), "name_": "a"}).name_ == "a"


@pytest.mark.parametrize(
    ("plain", "message"),
    [
        ({}, r"a Fitted has \['seen_'\], got \[\]"),
        ({"seen_": (), "size": 2}, "a Fitted has"),
        ({"seen_": (), "rows_": [1]}, "a Fitted has"),
        ({"seen_": ("a",)}, "seen_ of a Fitted is a tuple"),
        ({"seen_": (), "__class__": int}, "a Fitted has"),
    ],
)
def test_what_is_set_afterwards_is_declared_there_and_of_its_type(plain, message):
    with pytest.raises(TypeError, match=message):
        schema.filled(Fitted(), plain)


def test_files_know_a_class_by_a_name_of_its_own():
    assert schema.is_saved(schema.SAVED["Support"].__new__(schema.SAVED["Support"]))
    assert schema.saved(schema.SAVED["Support"]) is schema.SAVED["Support"]
    with pytest.raises(TypeError, match=r"another Support, that of featgeo\.assembly\.links"):
        schema.saved(type("Support", (), {}))
    assert not schema.is_saved(type("Support", (), {})())
