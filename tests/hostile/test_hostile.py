"""Nothing silently wrong, nothing unclear, nothing unbounded: every hostile input has its answer, or its message.

To add a case, add a line to one of the tables. `hostile_case` says what a line means.
"""

from __future__ import annotations

import hostile_arguments
import hostile_functions
import hostile_tables
import hostile_values
import pytest
from hostile_case import Case

import featgeo

CASES: list[Case] = [*hostile_values.CASES, *hostile_arguments.CASES, *hostile_functions.CASES, *hostile_tables.CASES]


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_hostile(case: Case):
    case.run()


def test_every_case_has_a_name_of_its_own():
    assert len({case.name for case in CASES}) == len(CASES) >= 300


def test_every_public_name_is_attacked():
    words = {word.strip("(),.:") for case in CASES for word in case.name.split()}
    missing = {name for name in featgeo.__all__ if name not in words and name != "FitWarning"}  # nothing to hand it
    assert not missing, f"no case names {sorted(missing)}"
