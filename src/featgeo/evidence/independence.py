"""Are X and Y independent, and how many modes have they? P-values that hold at any number of rows, for any columns."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from featgeo.evidence.blocks import (
    block_evidence,
    linear_evidence,
    linear_ladder,
    rank_pvalues,
    smooth_ladders,
    table_evidence,
)
from featgeo.evidence.halves import check_model, learned_evidence
from featgeo.evidence.shuffling import Evidence, Shuffling, checked, read_rows
from featgeo.features.recipes import is_finite
from featgeo.features.scored import Symbols
from featgeo.features.variables import Rows, symbol_keys
from featgeo.geometry.validation import Array, check_choice
from featgeo.models import ModalDecomposition

Method = Literal["auto", "table", "smooth", "linear", "learned"]
METHODS = ("auto", "table", "smooth", "linear", "learned")


def independence_test(
    X: Any,
    Y: Any,
    *,
    method: Method = "auto",
    model: ModalDecomposition | None = None,
    n_permutations: int = 999,
    random_state: Any = None,
    sample_weight: Any = None,
) -> Evidence:
    """Test whether two variables are independent.

    Args:
        X: Rows of X, (n,) or (n, p): numbers, labels, dates or a mixture; a missing value is a value like any other.
            For "learned" whatever the model takes, images and sequences too.
        Y: Rows of Y, in the same order.
        method: What dependence to look for.

            - "table": any, between finite alphabets, by Pearson's chi-square on the table of counts.
            - "smooth": any, by features of either side, from smooth to rough: cosines of the rank of a number,
              indicators of a label, components of a kernel of several columns. Monotone maps of a number change
              nothing. Choose it for numbers of few values whose order matters.
            - "linear": between the columns as they are, labels as indicators, by their canonical correlations. Pass
              features of your own and it tests inside their spans.
            - "learned": what a model learns. Modes are learned on one half of the rows and tested on the other, both
              ways. Choose it where functions that matter must be found among many: wide tables, images, sequences.
            - "auto": "learned" for images and sequences, "table" where both take few values, else "smooth".
        model: For "learned", the `ModalDecomposition` to learn with; it is cloned and not changed. A default one when
            None.
        n_permutations: Random arrangements of the rows that the statistic is compared with, where rows are few; the
            smallest p-value is then 1 / (n_permutations + 1), for "learned" twice that. With many rows the limit is
            known, and none are needed.
        random_state: Seed of the arrangements and of the halves; None is always the same.
        sample_weight: How often each row counts, whole numbers, (n,): a weight of 2 is the row twice. Once when None.

    Returns:
        The statistic, its p-value and how it was found. The statistic is Pearson's for tables, Bartlett's for "linear";
        for "smooth" it is -log10 of a harmonic mean of the tail probabilities of all blocks of features;
        for "learned" the score of the learned modes, in units of its spread, of the half that shows more.

    References:
        The harmonic mean of tail probabilities: D. J. Wilson (2019), PNAS 116:1195.
    """
    check_choice(method, "method", METHODS, "Use 'auto' to let the columns decide.")
    shuffling = Shuffling.of(n_permutations, random_state)
    if model is not None and method != "learned":
        raise ValueError(f"`model` is for method='learned', got method={method!r}. Pass that, or leave the model out.")
    check_model(model)
    x, y = read_rows(sample_weight, X=X, Y=Y)
    learns = method == "learned" or (method == "auto" and (x.variable.is_tensor or y.variable.is_tensor))
    checked(x, y, tensors=learns)
    if learns:
        return learned_evidence(x, y, model, shuffling)
    if method == "linear":
        return linear_evidence(linear_ladder(x), linear_ladder(y), shuffling)
    if method == "table" or (method == "auto" and is_finite(x) and is_finite(y)):
        return table_evidence(_symbols(x), _symbols(y), shuffling)
    seed = int(shuffling.rng.integers(2**31))  # of the centres of kernels
    return block_evidence(smooth_ladders(x, seed), smooth_ladders(y, seed), shuffling)


def _symbols(rows: Rows) -> Symbols:
    symbols = Symbols.of(symbol_keys(rows.table))
    if symbols.size == len(rows) and not is_finite(rows):
        raise ValueError(
            f"Every row of {rows.variable.name} has a value of its own: a table of counts says nothing. Use "
            "method='smooth'."
        )
    return symbols


def mode_pvalues(
    X: Any, Y: Any, *, n_permutations: int = 999, random_state: Any = None, sample_weight: Any = None
) -> Array:
    """How many modes do given features have? Tests inside their spans, one after the other.

    Args:
        X: Features of X, (n, p); labels count as indicators.
        Y: Features of Y, (n, q).
        n_permutations: Random arrangements of the rows that "there are no modes" is compared with, where rows are few;
            no p-value is then below 1 / (n_permutations + 1).
        random_state: Seed of the arrangements; None is always the same.
        sample_weight: How often each row counts, whole numbers, (n,): a weight of 2 is the row twice. Once when None.

    Returns:
        P-values of "there are no more than i modes" for i = 0, 1, ..., (min(p, q),). They never fall along the row, so
        as many modes are real, at level a, as p-values lie below a. What is left after the modes may depend in any way
        that is not correlation. For i = 0 they are exact where X and Y are independent; otherwise they need many rows
        and finite fourth moments.
    """
    shuffling = Shuffling.of(n_permutations, random_state)
    x, y = (linear_ladder(rows) for rows in checked(*read_rows(sample_weight, X=X, Y=Y)))
    # The larger of two: one is right where X and Y are independent, the other in the limit where they are uncorrelated.
    independent = linear_evidence(x, y, shuffling).pvalue
    pvalues = rank_pvalues(x.features, y.features)
    return np.maximum.accumulate([max(independent, pvalues[0]), *pvalues[1:]])
