"""Objects of scikit-learn and scipy that this library makes, as plain values and back.

These classes, and no other and no function, are made from a file without a word of the user. Each is made by its own
constructor, here; a file only says which of them, and brings numbers and arrays, whose shapes must go together. Boosted
trees are made by fitting a tiny one, so that all that scikit-learn keeps in them besides is its own; then they get
their trees, once no node points outside of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.interpolate import BSpline
from sklearn.base import BaseEstimator
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.ensemble._hist_gradient_boosting.common import PREDICTOR_RECORD_DTYPE
from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LinearRegression
from sklearn.preprocessing import QuantileTransformer, SplineTransformer

from featgeo.features.index import IndexRegressor

# What a fit leaves: the letters name the axes of arrays, d being the number of columns; other entries are types.
LEARNED: dict[type[BaseEstimator], dict[str, Any]] = {
    QuantileTransformer: {"n_quantiles_": int, "references_": "q", "quantiles_": "qd"},
    SplineTransformer: {"n_features_out_": int, "bsplines_": list},
    Nystroem: {"components_": "kd", "normalization_": "kk", "component_indices_": "k"},
    LinearRegression: {"coef_": "d", "intercept_": float},  # of one target
    IndexRegressor: {"centre_": "d", "direction_": "d", "at_": "m", "curve_": "m"},
}
CLASSES = {cls.__name__: cls for cls in LEARNED}
TREES, SPLINE = "HistGradientBoostingRegressor", "BSpline"
NAMES = frozenset({*CLASSES, TREES, SPLINE})
_TREE_PARTS = ("binned_left_cat_bitsets", "raw_left_cat_bitsets")
_BITSET = 8  # words of 32 bits
MOST_CELLS = 2**22  # of the table that a tiny fit reads: 32 MB


def plain(value: Any) -> tuple[str, dict[str, Any]] | None:
    """Name and state of an object that can be made from plain values again; None for all others."""
    cls = type(value)
    if cls is BSpline:
        return SPLINE, {"t": value.t, "c": value.c, "k": value.k, "extrapolate": value.extrapolate}
    if cls is HistGradientBoostingRegressor:
        return _plain_trees(value)
    if cls not in LEARNED:
        return None
    parameters = value.get_params(deep=False)
    learned = {name: part for name, part in vars(value).items() if name not in parameters}
    if not _are_plain([*parameters.values(), *learned.values()]) or parameters.get("n_jobs") is not None:
        return None
    if cls is LinearRegression and np.ndim(learned.get("coef_", [0.0])) != 1:
        return None
    return cls.__name__, {"parameters": parameters, "learned": learned}


def rebuilt(name: str, state: dict[str, Any]) -> Any:
    """The object that `plain` described."""
    if name == SPLINE:
        return BSpline(state["t"], state["c"], state["k"], extrapolate=state["extrapolate"])
    if name == TREES:
        fitted = len(state) > 1
        return _rebuilt_trees(**state) if fitted else HistGradientBoostingRegressor(**state["parameters"])
    cls = CLASSES[name]
    parameters, learned = state["parameters"], state["learned"]
    if parameters.get("n_jobs") is not None or not _are_plain([*parameters.values(), *learned.values()]):
        raise ValueError(f"parameters of a {name}")
    if any(not part.isidentifier() or hasattr(cls, part) for part in learned):
        raise ValueError(f"attributes of a {name}")
    if learned:  # else it was never fitted: an option of the user
        _check_learned(name, learned)
    made = cls(**parameters)
    if hasattr(made, "_parameter_constraints"):  # scikit-learn's own rules for each parameter
        made._validate_params()
    vars(made).update(learned)
    return made


def _are_plain(values: list[Any]) -> bool:
    for value in values:
        if isinstance(value, list | tuple):
            if not _are_plain(list(value)):
                return False
        elif isinstance(value, np.ndarray):
            if value.dtype.kind not in "biufOU":
                return False
        elif value is not None and not isinstance(value, bool | int | float | str | np.generic | BSpline):
            return False
    return True


def _check_learned(name: str, learned: dict[str, Any]) -> None:
    sizes = {"d": learned["n_features_in_"]}
    for attribute, form in LEARNED[CLASSES[name]].items():
        part = learned[attribute]
        if isinstance(form, type):
            good = isinstance(part, form)
        else:
            good = isinstance(part, np.ndarray) and part.dtype.kind in "iuf" and part.ndim == len(form)
            good = good and all(
                sizes.setdefault(axis, size) == size for axis, size in zip(form, part.shape, strict=True)
            )
        if not good:
            raise ValueError(f"{attribute} of a {name}")
    splines = learned.get("bsplines_", [])
    if not all(isinstance(part, BSpline) for part in splines) or (
        "bsplines_" in learned and len(splines) != sizes["d"]
    ):
        raise ValueError(f"splines of a {name}")


def _plain_trees(model: HistGradientBoostingRegressor) -> tuple[str, dict[str, Any]] | None:
    """All that predictions depend on; None where it cannot be made again so, or would need a large table."""
    parameters = model.get_params(deep=False)
    if not _are_plain(list(parameters.values())) or hasattr(model, "feature_names_in_"):
        return None
    if not hasattr(model, "_predictors"):
        return TREES, {"parameters": parameters}
    if model.loss != "squared_error":
        return None
    encoder = None if model._preprocessor is None else model._preprocessor.named_transformers_["encoder"]
    categories = [] if encoder is None else list(encoder.categories_)
    known = np.zeros(model.n_features_in_, dtype=bool) if model.is_categorical_ is None else model.is_categorical_
    if _n_rows(categories) * len(known) > MOST_CELLS or any(values.dtype.kind != "f" for values in categories):
        return None
    grown = [tree for (tree,) in model._predictors]
    return TREES, {
        "parameters": parameters,
        "is_label": known,
        "labels": categories,
        "baseline": model._baseline_prediction,
        "stopped_early": bool(model.do_early_stopping_),
        "scores": [model.train_score_, model.validation_score_],
        "sizes": np.array([len(tree.nodes) for tree in grown]),
        "nodes": np.concatenate([tree.nodes for tree in grown]).view(np.uint8),
        "n_sets": np.array([len(tree.raw_left_cat_bitsets) for tree in grown]),
        "sets": [np.concatenate([getattr(tree, part) for tree in grown]) for part in _TREE_PARTS],
    }


def _n_rows(labels: list[np.ndarray]) -> int:
    return max([2, *map(len, labels)])


def _rebuilt_trees(
    parameters: dict[str, Any], is_label: np.ndarray, labels: list[np.ndarray], baseline: np.ndarray,
    stopped_early: bool, scores: list[np.ndarray], sizes: np.ndarray, nodes: np.ndarray, n_sets: np.ndarray,
    sets: list[np.ndarray],
) -> HistGradientBoostingRegressor:  # fmt: skip
    if not all(isinstance(part, np.ndarray) and part.dtype.kind == "f" and part.ndim == 1 for part in labels):
        raise ValueError("labels of trees")
    if is_label.dtype != bool or is_label.sum() != len(labels) or _n_rows(labels) * len(is_label) > MOST_CELLS:
        raise ValueError("columns of trees")
    if parameters.get("loss") != "squared_error" or baseline.shape != (1, 1) or baseline.dtype != np.float64:
        raise ValueError("kind of trees")
    table = np.zeros((_n_rows(labels), len(is_label)))
    for column, values in zip(np.flatnonzero(is_label), labels, strict=True):
        table[:, column] = np.resize(values, len(table))
    model = HistGradientBoostingRegressor(
        max_iter=1, early_stopping=False, random_state=0, categorical_features=is_label if len(labels) else None
    ).fit(table, np.zeros(len(table)))
    trees = nodes.view(PREDICTOR_RECORD_DTYPE)
    remapped = np.zeros(len(is_label), dtype=bool) if model._preprocessor is None else model._is_categorical_remapped
    _check_trees(trees, sizes, n_sets, sets, remapped)
    model._baseline_prediction = baseline
    model._predictors = _split(trees, sizes, n_sets, sets)
    model.do_early_stopping_ = stopped_early
    model.train_score_, model.validation_score_ = scores
    return model.set_params(**parameters)


def _split(trees: np.ndarray, sizes: np.ndarray, n_sets: np.ndarray, sets: list[np.ndarray]) -> list[Any]:
    ends, set_ends = np.cumsum(sizes)[:-1], np.cumsum(n_sets)[:-1]
    parts = zip(np.split(trees, ends), *(np.split(part, set_ends) for part in sets), strict=True)
    return [[TreePredictor(*(np.ascontiguousarray(part) for part in tree))] for tree in parts]


def _check_trees(
    trees: np.ndarray, sizes: np.ndarray, n_sets: np.ndarray, sets: list[np.ndarray], is_label: np.ndarray
) -> None:
    """Nodes point forwards inside of their tree, to columns and sets that are there: scikit-learn does not look."""
    counts = all(part.dtype.kind == "i" and part.ndim == 1 and (part >= 0).all() for part in (sizes, n_sets))
    whole = counts and len(sizes) == len(n_sets) > 0 and sizes.min() > 0 and sizes.sum() == len(trees)
    good_sets = len(sets) == 2 and all(part.dtype == np.uint32 and part.shape[1:] == (_BITSET,) for part in sets)
    if not (whole and good_sets and len(sets[0]) == len(sets[1]) == n_sets.sum()):
        raise ValueError("sizes of trees")
    inner = trees["is_leaf"] == 0
    position = np.arange(len(trees)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    size, own_sets = np.repeat(sizes, sizes), np.repeat(n_sets, sizes)
    column = trees["feature_idx"]
    good = (column >= 0) & (column < len(is_label))
    for side in ("left", "right"):
        good &= (trees[side] > position) & (trees[side] < size)
    in_sets = trees["is_categorical"] != 0
    good &= ~in_sets | ((trees["bitset_idx"] < own_sets) & is_label[np.where(good, column, 0)])
    if not good[inner].all():
        raise ValueError("nodes of trees")
