"""The typed fields of a dataclass are its schema: what files may hold of it, and what they bring is held against.

A class that files hold says so itself, by `@saved`; nothing else is ever made from a file. All of its fields are
written, but those that are `NOT_SAVED`; those that its constructor does not take (`init=False`) are set afterwards.
"""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

SAVED: dict[str, type] = {}  # what files may hold, by name
# Metadata of fields:
NOT_SAVED = {"saved": False}  # rows and moments of a fit, and what can be computed again
OPTIONAL = {"optional": True}  # not every object has it

_Class = TypeVar("_Class", bound=type)
_hints = cache(get_type_hints)


class RefusedError(ValueError):
    """A file that is not, or no longer, what `save` writes; the message lacks only its subject, the file."""


def damaged(reason: object) -> RefusedError:
    """The error for a file whose content cannot be what was saved."""
    return RefusedError(
        f"is not a featgeo model, or it is damaged or cut short ({str(reason)[:300]}). Save the model again, or get "
        "another copy of the file."
    )


def saved(cls: _Class) -> _Class:
    """Say that files may hold a dataclass."""
    if SAVED.setdefault(cls.__name__, cls) is not cls:
        raise TypeError(f"Files know another {cls.__name__}, that of {SAVED[cls.__name__].__module__}. Rename one.")
    return cls


def is_saved(value: Any) -> bool:
    """Whether files may hold an object of this very class."""
    return SAVED.get(type(value).__name__) is type(value)


def saved_fields(cls: type) -> dict[str, dataclasses.Field[Any]]:
    """The fields that files hold, by name."""
    return {field.name: field for field in dataclasses.fields(cls) if field.metadata.get("saved", True)}


def made(cls: type, plain: Mapping[str, Any]) -> Any:
    """A dataclass from values of its fields: lists become tuples where these are due, and all types are checked."""
    fields = saved_fields(cls)
    needed = {name for name, field in fields.items() if field.init}
    if not isinstance(plain, Mapping) or plain.keys() - fields.keys() or needed - plain.keys():
        raise TypeError(f"a {cls.__name__} has the fields {list(fields)}")
    result = cls(**_checked(cls, {name: value for name, value in plain.items() if fields[name].init}))
    return filled(result, {name: value for name, value in plain.items() if not fields[name].init})


def filled(result: Any, plain: Mapping[str, Any]) -> Any:
    """The same object, with those fields set that its constructor does not take; types are checked."""
    cls: type = type(result)
    fields = {name: field for name, field in saved_fields(cls).items() if not field.init}
    needed = {
        name
        for name, field in fields.items()
        if field.default is field.default_factory is dataclasses.MISSING and not field.metadata.get("optional")
    }
    if plain.keys() - fields.keys() or needed - plain.keys():
        raise TypeError(f"a {cls.__name__} has {sorted(needed)}, got {sorted(map(str, plain))}")
    for name, value in _checked(cls, plain).items():
        setattr(result, name, value)
    return result


def _checked(cls: type, plain: Mapping[str, Any]) -> dict[str, Any]:
    """Values of fields, each of its type."""
    values, hints = dict(plain), _hints(cls)
    for name, value in plain.items():
        if get_origin(hints[name]) is tuple and isinstance(value, list):
            values[name] = tuple(value)
        if not fits(values[name], hints[name]):
            raise TypeError(f"{name} of a {cls.__name__} is a {type(values[name]).__name__}")
    return values


def fits(value: Any, hint: Any) -> bool:
    """Whether a value is what an annotation allows; annotations of kinds that are not known here allow everything."""
    origin, arguments = get_origin(hint), get_args(hint)
    if hint in (int, float):
        return isinstance(value, hint | int) and not isinstance(value, bool)
    if origin in (Union, types.UnionType):
        return any(fits(value, argument) for argument in arguments)
    if origin is Literal:
        return any(value == argument and type(value) is type(argument) for argument in arguments)
    kind = type(None) if hint is None else origin or hint
    if kind is Any or not isinstance(kind, type):  # type variables, and what is said of classes, among them
        return True
    if getattr(kind, "_is_protocol", False):
        return all(hasattr(value, name) for name in vars(kind) if name == "__call__" or not name.startswith("_"))
    return isinstance(value, kind) and (not arguments or _parts_fit(value, kind, arguments))


def _parts_fit(value: Any, kind: type, arguments: tuple[Any, ...]) -> bool:
    """Whether what a container holds is what the annotation says of it."""
    if isinstance(value, Mapping):
        return all(fits(key, arguments[0]) and fits(part, arguments[1]) for key, part in value.items())
    if kind is tuple and arguments[-1] is not Ellipsis:
        return len(value) == len(arguments) and all(map(fits, value, arguments))
    if isinstance(value, Sequence | set | frozenset) and not isinstance(value, str | bytes):
        return all(fits(part, arguments[0]) for part in value)
    return True
