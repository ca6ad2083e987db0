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

NAME = "featgeo"


def register(name: str = NAME) -> str:
    """Make the test known to causal-learn.

    Args:
        name: What `indep_test` is to call it.

    Returns:
        The name, to be passed on. Further arguments of the search, `method` and `random_state`, reach
        `conditional_independence_test`.
    """
    try:
        from causallearn.utils.cit import CIT_Base, register_ci_test
    except ImportError as error:
        raise ImportError("The search needs causal-learn. Install it with: pip install 'featgeo[causal]'") from error

    class FeatureTest(CIT_Base):
        """Independence, or conditional independence, of columns of the data."""

        def __init__(self, data: np.ndarray, **options: Any) -> None:
            super().__init__(data, **options)
            self.options = {key: options[key] for key in ("method", "random_state") if key in options}
            written = json.dumps(self.options, sort_keys=True, default=str).encode()
            self.check_cache_method_consistent(name, hashlib.sha256(written).hexdigest())

        def __call__(self, X: int, Y: int, condition_set: Iterable[int] | None = None) -> float:
            """The p-value of the columns X and Y given those of the condition set."""
            x, y, given, key = self.get_formatted_XYZ_and_cachekey(X, Y, condition_set)
            if key not in self.pvalue_cache:
                S = self.data[:, given] if given else None
                evidence = conditional_independence_test(self.data[:, x], self.data[:, y], S, **self.options)
                self.pvalue_cache[key] = evidence.pvalue
            return self.pvalue_cache[key]

    register_ci_test(name, FeatureTest)
    return name
