"""Whether a value is of the type that an annotation says: what files bring is held against the classes it fills."""

from __future__ import annotations

import dataclasses
import sys
import types
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, Literal, TypeVar, Union, get_args, get_origin

import numpy as np


def check(value: Any, hint: Any, name: str) -> None:
    """Refuse a value that is not what an annotation allows."""
    if not fits(value, hint):
        raise TypeError(f"{name} is a {type(value).__name__}")


def made(cls: type, plain: Mapping[str, Any]) -> Any:
    """A dataclass from what JSON holds of it: lists become tuples where these are due, and all types are checked."""
    hints = field_types(cls)
    if not isinstance(plain, Mapping) or plain.keys() - hints.keys():
        raise TypeError(f"a {cls.__name__} has the fields {list(hints)}")
    values = {
        name: tuple(value) if get_origin(hints[name]) is tuple and isinstance(value, list) else value
        for name, value in plain.items()
    }
    for name, value in values.items():
        check(value, hints[name], f"{name} of a {cls.__name__}")
    return cls(**values)


@cache
def field_types(cls: type) -> dict[str, Any]:
    """The annotations of a dataclass's fields, evaluated; `Any` where a name is there for type checkers only."""
    result: dict[str, Any] = {}
    for owner in reversed(cls.__mro__):
        names = vars(sys.modules[owner.__module__])
        for name, hint in vars(owner).get("__annotations__", {}).items():
            try:
                result[name] = eval(hint, names) if isinstance(hint, str) else hint  # noqa: S307 (our own source)
            except NameError:
                result[name] = Any
    return {field.name: result.get(field.name, Any) for field in dataclasses.fields(cls)}


def fits(value: Any, hint: Any) -> bool:
    """Whether a value is what an annotation allows; annotations of kinds that are not known here allow everything."""
    if hint is Any:
        return True
    if hint is None or hint is type(None):
        return value is None
    if hint is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Union or origin is types.UnionType:
        return any(fits(value, argument) for argument in arguments)
    if origin is Literal:
        return any(value == argument and type(value) is type(argument) for argument in arguments)
    if origin is np.ndarray:
        return isinstance(value, np.ndarray)
    if origin is Callable:
        return callable(value)
    if origin is not None:
        return _fits_container(value, origin, arguments)
    if isinstance(hint, TypeVar) or not isinstance(hint, type):
        return True
    if getattr(hint, "_is_protocol", False):
        return all(hasattr(value, name) for name in vars(hint) if name == "__call__" or not name.startswith("_"))
    return isinstance(value, hint)


def _fits_container(value: Any, origin: Any, arguments: tuple[Any, ...]) -> bool:
    if not isinstance(origin, type):
        return True
    if not isinstance(value, origin):
        return False
    if isinstance(value, Mapping):
        key, part = arguments
        return all(fits(name, key) and fits(entry, part) for name, entry in value.items())
    if isinstance(value, tuple) and origin is tuple and arguments[-1] is not Ellipsis:
        return len(value) == len(arguments) and all(map(fits, value, arguments))
    if isinstance(value, Sequence | set | frozenset) and not isinstance(value, str | bytes):
        return all(fits(part, arguments[0]) for part in value)
    return True
