"""The tests as the oracle of causal-learn's constraint-based searches.

    from causallearn.search.ConstraintBased.PC import pc
    from featgeo.evidence.causal_learn import register

    graph = pc(data, alpha=0.05, indep_test=register())

Queries are answered from a cache where they were asked before, as causal-learn's own tests do; with `cache_path` it is
kept in a file. A search asks about the same columns many times: what the columns and the conditions give to every test
is kept while conditions have the same size. That saves time only: p-values are those of
`conditional_independence_test`, to the last digit.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from typing import Any

import numpy as np

from featgeo.evidence.conditional import GivenS, Side, check_options, conditional_evidence
from featgeo.evidence.independence import independence_test
from featgeo.evidence.shuffling import read_rows
from featgeo.features.scored import LANDMARKS
from featgeo.features.spaces import varies
from featgeo.features.variables import Rows

NAME = "featgeo"
MOST_KEPT = 2**26  # numbers that conditions may hold, together, of which each holds about n x LANDMARKS


class Columns:
    """The columns of a table that is asked many questions.

    Args:
        data: Shape (n, d), numbers.
        method: As in `conditional_independence_test`; so are the others.
        n_permutations: Of permutation tests.
        random_state: Seed.
    """

    def __init__(
        self, data: np.ndarray, *, method: str = "auto", n_permutations: int = 999, random_state: Any = None
    ) -> None:
        self.seed = check_options(method, n_permutations, random_state)
        self.data, self.method, self.n_permutations = data, method, n_permutations
        self.varies = [varies(*read_rows(column=column)) for column in data.T]
        self._side = cache(lambda columns: Side(self._rows(columns)))
        # A search goes round all conditions of one size before it comes to the next.
        most = MOST_KEPT // (len(data) * LANDMARKS)
        self._condition = lru_cache(most)(lambda columns: GivenS(self._rows(columns), self.seed))

    def pvalue(self, x: Sequence[int], y: Sequence[int], given: Sequence[int]) -> float:
        """Of the independence of columns x and y given others; 1 where x or y never varies."""
        if not all(any(self.varies[column] for column in side) for side in (x, y)):
            return 1.0
        if not any(self.varies[column] for column in given):
            X, Y = self.data[:, list(x)], self.data[:, list(y)]
            return independence_test(X, Y, n_permutations=self.n_permutations, random_state=self.seed).pvalue
        sides, condition = (self._side(tuple(x)), self._side(tuple(y))), self._condition(tuple(given))
        return conditional_evidence(*sides, condition, self.method, self.n_permutations).pvalue

    def _rows(self, columns: tuple[int, ...]) -> Rows:
        (rows,) = read_rows(columns=self.data[:, list(columns)])
        return rows


def register(name: str = NAME, **options: Any) -> str:
    """Make the test known to causal-learn.

    Args:
        name: What `indep_test` is to call it; tests with different options may be known by different names.
        **options: Of `conditional_independence_test`, such as `method` and `random_state`.

    Returns:
        The name, to be passed on. A column that never varies is independent of all others, with p-value 1.
    """
    try:
        from causallearn.utils.cit import CIT_Base, register_ci_test
    except ImportError as error:
        raise ImportError("The search needs causal-learn. Install it with: pip install 'featgeo[causal]'") from error

    class FeatureTest(CIT_Base):
        """Independence, or conditional independence, of columns of the data."""

        def __init__(self, data: np.ndarray, cache_path: str | None = None, **others: Any) -> None:
            if others:
                raise ValueError(
                    f"Options of the test are arguments of register(...), not of the search: got {others}."
                )
            super().__init__(data, cache_path=cache_path)
            written = json.dumps(options, sort_keys=True, default=str).encode()
            self.check_cache_method_consistent(name, hashlib.sha256(written).hexdigest())
            self.columns = Columns(data, **options)

        def __call__(self, X: int, Y: int, condition_set: Iterable[int] | None = None) -> float:
            """The p-value of the columns X and Y given those of the condition set."""
            x, y, given, key = self.get_formatted_XYZ_and_cachekey(X, Y, condition_set)
            if key not in self.pvalue_cache:
                self.pvalue_cache[key] = self.columns.pvalue(x, y, given)
            return self.pvalue_cache[key]

    register_ci_test(name, FeatureTest)
    return name
