"""Small real tables that come with the library, for demos, guides and tests."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class CountTable(NamedTuple):
    """Counts with one axis a variable; `FiniteJoint(*table)` takes it as it is."""

    counts: NDArray[np.int64]
    names: tuple[str, ...]
    categories: tuple[tuple[str, ...], ...]


def hair_eye_color() -> CountTable:
    """Hair colour, eye colour and sex of 592 statistics students (Snee, The American Statistician 28, 1974)."""
    male = [[32, 11, 10, 3], [53, 50, 25, 15], [10, 10, 7, 7], [3, 30, 5, 8]]  # hair by eye
    female = [[36, 9, 5, 2], [66, 34, 29, 14], [16, 7, 7, 7], [4, 64, 5, 8]]
    return CountTable(
        np.stack([male, female], axis=-1),
        ("hair", "eye", "sex"),
        (("black", "brown", "red", "blond"), ("brown", "blue", "hazel", "green"), ("male", "female")),
    )


def titanic() -> CountTable:
    """Class, sex, age and survival of the 2,201 people aboard the Titanic (Dawson, J. Statistics Education 3, 1995)."""
    died = [  # class by sex by age
        [[0, 118], [0, 4]],
        [[0, 154], [0, 13]],
        [[35, 387], [17, 89]],
        [[0, 670], [0, 3]],
    ]
    survived = [
        [[5, 57], [1, 140]],
        [[11, 14], [13, 80]],
        [[13, 75], [14, 76]],
        [[0, 192], [0, 20]],
    ]
    return CountTable(
        np.stack([died, survived], axis=-1),
        ("class", "sex", "age", "survived"),
        (("first", "second", "third", "crew"), ("male", "female"), ("child", "adult"), ("no", "yes")),
    )
