"""The fixed binary tree by which what is told of parts becomes what is told of all.

Sums of floats depend on their order. This order depends on the number of parts alone, and on nothing else: so it does
not matter who computes what, or when, or how often.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

P = TypeVar("P")
T = TypeVar("T")


def folded(parts: Sequence[P], of_part: Callable[[P], T], merged: Callable[[T, T], T]) -> T:
    """What is told of all parts, neighbours first: the left branch holds the largest power of two that leaves a right.

    Args:
        parts: At least one, in order.
        of_part: What is told of one.
        merged: What is told of both, from what is told of some parts and of those after them; it changes neither.
    """
    if len(parts) == 1:
        return of_part(parts[0])
    half = 1 << (len(parts) - 1).bit_length() - 1
    return merged(folded(parts[:half], of_part, merged), folded(parts[half:], of_part, merged))
