"""The tests as the oracle of causal-learn's constraint-based searches.

    from causallearn.search.ConstraintBased.PC import pc
    from featgeo.evidence.causal_learn import register

    graph = pc(data, alpha=0.05, indep_test=register())

Queries are answered from a cache where they were asked before, as causal-learn's own tests do; with `cache_path` it is
kept in a file.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import Any

import numpy as np

from featgeo.evidence.conditional import conditional_independence_test
from featgeo.evidence.reading import read_rows, varies

NAME = "featgeo"


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
            self.varies = [varies(*read_rows(column=column)) for column in data.T]

        def __call__(self, X: int, Y: int, condition_set: Iterable[int] | None = None) -> float:
            """The p-value of the columns X and Y given those of the condition set."""
            x, y, given, key = self.get_formatted_XYZ_and_cachekey(X, Y, condition_set)
            if key not in self.pvalue_cache:
                self.pvalue_cache[key] = self._pvalue(x, y, given)
            return self.pvalue_cache[key]

        def _pvalue(self, x: list[int], y: list[int], given: list[int]) -> float:
            if not all(any(self.varies[column] for column in side) for side in (x, y)):
                return 1.0
            S = self.data[:, given] if given else None
            return conditional_independence_test(self.data[:, x], self.data[:, y], S, **options).pvalue

    register_ci_test(name, FeatureTest)
    return name
