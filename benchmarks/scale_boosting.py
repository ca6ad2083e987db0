"""Predictions of 100,000 rows and fits of a million, beside scikit-learn's boosting in the same run.

Times are CPU seconds, on one thread. The laws are drawn with seeds that no default was chosen on. Adult and diamonds
are downloaded on first use; their rows are repeated where there are fewer than 100,000.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

from featgeo import FeatureClassifier, FeatureRegressor, datasets

SEED = 11_000
ROWS = 100_000


def timed(call: Callable[[], Any]) -> tuple[float, Any]:
    start = time.process_time()
    result = call()
    return time.process_time() - start, result


def drawn(n: int, d: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Columns of which five matter: a wave, a product, a bend and a line."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + np.abs(X[:, 3]) + 0.5 * X[:, 4] + 0.7 * rng.normal(size=n)


def with_rows(values: Any) -> Any:
    """Columns as a frame, a target as an array."""
    return values.reset_index(drop=True) if isinstance(values, pd.DataFrame) else np.asarray(values)


def many(frame: Any) -> Any:
    """The same rows, over and over, until there are 100,000."""
    index = np.resize(np.arange(len(frame)), ROWS)
    return frame.iloc[index].reset_index(drop=True) if isinstance(frame, pd.DataFrame) else frame[index]


Row = dict[str, Any]


def predict() -> Iterator[Row]:
    """Time of `predict` or `predict_proba` on 100,000 rows, as a multiple of boosting's."""
    X, y = drawn(12_000, 10, SEED)
    diamonds = datasets.diamonds()
    cases = {
        "adult": (*map(with_rows, datasets.adult()), True),
        "diamonds": (with_rows(diamonds.drop(columns="price")), with_rows(diamonds["price"]), False),
        "drawn, number": (X, y, False),
        "drawn, label": (X, (y > 1).astype(int), True),
        "drawn, four labels": (X, np.digitize(y, np.quantile(y, [0.25, 0.5, 0.75])), True),
    }
    for name, (X, y, is_label) in cases.items():
        n = min(len(X), 20_000)
        some = np.random.default_rng(SEED).permutation(len(X))[:n]
        train = X.iloc[some] if isinstance(X, pd.DataFrame) else X[some]
        boosting = HistGradientBoostingClassifier if is_label else HistGradientBoostingRegressor
        options = {"categorical_features": "from_dtype"} if isinstance(X, pd.DataFrame) else {}
        peer = boosting(random_state=0, **options)
        model = (FeatureClassifier if is_label else FeatureRegressor)(random_state=0)
        ours_fit, _ = timed(lambda: model.fit(train, y[some]))
        peer_fit, _ = timed(lambda: peer.fit(categorical(train), y[some]))
        rows, peer_rows = many(X), categorical(many(X))
        for method in ("predict_proba", "predict") if is_label else ("predict",):
            ours, _ = timed(lambda: getattr(model, method)(rows))
            theirs, _ = timed(lambda: getattr(peer, method)(peer_rows))
            yield {
                "row": f"{method} of {ROWS:,} rows, {name}", "ours": ours, "other": theirs, "other is": "boosting",
                "ratio": ours / theirs, "note": f"fit {ours_fit:.1f} s, boosting {peer_fit:.1f} s; {model.spaces_[0]}",
            }  # fmt: skip


def categorical(frame: Any) -> Any:
    """Texts as categories, which boosting splits as sets."""
    if not isinstance(frame, pd.DataFrame):
        return frame
    texts = frame.select_dtypes(exclude=["number", "bool"]).columns
    return frame.astype(dict.fromkeys(texts, "category"))


def fit(n: int = 1_000_000, d: int = 10) -> Iterator[Row]:
    """A fit of a million rows by "auto"."""
    X, y = drawn(n, d, SEED + 1)
    fresh, truth = drawn(ROWS, d, SEED + 2)
    model, peer = FeatureRegressor(random_state=0), HistGradientBoostingRegressor(random_state=0)
    ours, _ = timed(lambda: model.fit(X, y))
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    theirs, _ = timed(lambda: peer.fit(X, y))
    scores = [predictor.score(fresh, truth) for predictor in (model, peer)]
    yield {
        "row": f"fit of {n:,} x {d}", "ours": ours, "other": theirs, "other is": "boosting", "ratio": ours / theirs,
        "note": f"R2 {scores[0]:.4f}, boosting {scores[1]:.4f}; {model.spaces_[0]}; {memory:.2f} GB in all",
    }  # fmt: skip


def wide() -> Iterator[Row]:
    """A fit of many columns."""
    yield from fit(100_000, 200)
