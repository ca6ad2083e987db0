"""Objects of scikit-learn and scipy that this library makes, as plain values and back.

These classes, and no other and no function, are made from a file without a word of the user. Each is made by its own
constructor, here; a file only says which of them, and brings numbers and arrays, whose shapes must go together.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.interpolate import BSpline
from sklearn.base import BaseEstimator
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LinearRegression
from sklearn.preprocessing import QuantileTransformer, SplineTransformer

# What a fit leaves: the letters name the axes of arrays, d being the number of columns; other entries are types.
LEARNED: dict[type[BaseEstimator], dict[str, Any]] = {
    QuantileTransformer: {"n_quantiles_": int, "references_": "q", "quantiles_": "qd"},
    SplineTransformer: {"n_features_out_": int, "bsplines_": list},
    Nystroem: {"components_": "kd", "normalization_": "kk", "component_indices_": "k"},
    LinearRegression: {"coef_": "d", "intercept_": float},  # of one target
    HistGradientBoostingRegressor: {},  # an option of the user: models keep the nodes of trees that are fitted
}
CLASSES = {cls.__name__: cls for cls in LEARNED}
SPLINE = "BSpline"
NAMES = frozenset({*CLASSES, SPLINE})


def plain(value: Any) -> tuple[str, dict[str, Any]] | None:
    """Name and state of an object that can be made from plain values again; None for all others."""
    if type(value) is BSpline:
        return SPLINE, {"t": value.t, "c": value.c, "k": value.k, "extrapolate": value.extrapolate}
    if type(value) not in LEARNED:
        return None
    parameters = value.get_params(deep=False)
    learned = {name: part for name, part in vars(value).items() if name not in parameters}
    found = type(value).__name__, {"parameters": parameters, "learned": learned}
    try:
        rebuilt(*found)
    except (KeyError, TypeError, ValueError):
        return None
    return found


def rebuilt(name: str, state: dict[str, Any]) -> Any:
    """The object that `plain` described."""
    if name == SPLINE:
        return BSpline(state["t"], state["c"], state["k"], extrapolate=state["extrapolate"])
    cls = CLASSES[name]
    parameters, learned = state["parameters"], state["learned"]
    if parameters.get("n_jobs") is not None or not _is_plain([*parameters.values(), *learned.values()]):
        raise ValueError(f"parameters of a {name}")
    if any(not part.isidentifier() or hasattr(cls, part) for part in learned) or (learned and not LEARNED[cls]):
        raise ValueError(f"attributes of a {name}")
    if learned:  # else it was never fitted: an option of the user
        _check_learned(name, learned)
    made = cls(**parameters)
    if hasattr(made, "_parameter_constraints"):  # scikit-learn's own rules for each parameter
        made._validate_params()
    vars(made).update(learned)
    return made


def _is_plain(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return all(map(_is_plain, value))
    if isinstance(value, np.ndarray):
        return value.dtype.kind in "biufOU"
    return isinstance(value, None | bool | int | float | str | np.generic | BSpline)


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
