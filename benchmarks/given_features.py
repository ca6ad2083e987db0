"""One feature of Adult that leaves sex out, beside tools that erase it: leakage of sex, and income from what is left.

    OMP_NUM_THREADS=1 python benchmarks/given_features.py

Adult is downloaded on first use; the peers are fairlearn and concept-erasure (pip install fairlearn concept-erasure),
left out where they are not installed. Nothing was chosen on this split.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import torch
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from featgeo import ModalDecomposition, datasets, leakage

SEED = 300
Array = np.ndarray


def row(name: str, **figures: object) -> None:
    shown = (f"{key} {value:.4g}" if isinstance(value, float) else f"{key} {value}" for key, value in figures.items())
    print(f"{name:<40}", "  ".join(shown), flush=True)


# --- Adult with sex as the given feature ------------------------------------------------------------------------------


def encoded(train: pd.DataFrame, test: pd.DataFrame) -> tuple[Array, Array]:
    """Numbers standardised, labels as indicators, without collinear columns.

    A label that no test row has, or a combination of columns that is constant up to a few rows, is turned by erasers
    into a tiny but exact copy of what they were to erase. So rare labels count as one, the first label of each column
    has no indicator, and the number of `education` is left out: all that is kind to the peers.
    """
    train, test = (part.drop(columns="educational-num") for part in (train, test))
    labels = train.select_dtypes(exclude="number").columns
    numbers = train.select_dtypes("number").columns
    columns = make_column_transformer(
        (StandardScaler(), numbers),
        (
            OneHotEncoder(drop="first", min_frequency=100, handle_unknown="infrequent_if_exist", sparse_output=False),
            labels,
        ),
    )
    return columns.fit_transform(train), columns.transform(test)


def income(name: str, train: Array, test: Array, y: pd.Series, y_test: pd.Series, sex_test: pd.Series) -> None:
    left = leakage(test, sex_test, random_state=SEED)
    figures: dict[str, object] = {"columns": train.shape[1], "linear": left.linear, "nonlinear": left.nonlinear}
    models = {"logistic": LogisticRegression(max_iter=2000), "trees": HistGradientBoostingClassifier(random_state=0)}
    for kind, model in models.items():
        probability = model.fit(train, y).predict_proba(test)[:, 1]
        figures[f"{kind} accuracy"] = float(accuracy_score(y_test, model.classes_[(probability > 0.5).astype(int)]))
        figures[f"{kind} AUC"] = float(roc_auc_score(y_test == model.classes_[1], probability))
    row(name, **figures)


def run_adult() -> None:
    X, y = datasets.adult()
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.3, random_state=SEED, stratify=y)
    sex, sex_test = X["gender"], X_test["gender"]
    raw, raw_test = encoded(X.drop(columns="gender"), X_test.drop(columns="gender"))
    income("adult, raw columns without sex", raw, raw_test, y, y_test, sex_test)
    for space in ("auto", "spline"):
        model = ModalDecomposition(1, x_space=space, orthogonal_to="gender", random_state=SEED).fit(X, y)
        own = abs(np.corrcoef(model.transform(X)[:, 0], sex == "Male")[0, 1])
        name = f"adult, featgeo, x_space={space}"
        income(name, model.transform(X), model.transform(X_test), y, y_test, sex_test)
        row("  ", residual_on_fit=float(own), aligned=model.aligned_.energy_, orthogonal=model.orthogonal_.energy_)
    male, male_test = ((part == "Male").to_numpy(float)[:, None] for part in (sex, sex_test))
    try:
        from fairlearn.preprocessing import CorrelationRemover
    except ImportError:
        row("adult, fairlearn", skipped="not installed")
    else:
        remover = CorrelationRemover(sensitive_feature_ids=[0]).fit(np.hstack([male, raw]))
        parts = (remover.transform(np.hstack(both)) for both in ((male, raw), (male_test, raw_test)))
        income("adult, fairlearn CorrelationRemover", *parts, y, y_test, sex_test)
    try:
        from concept_erasure import LeaceEraser
    except ImportError:
        row("adult, LEACE", skipped="not installed")
    else:
        tensors = [torch.from_numpy(part) for part in (raw, raw_test)]
        eraser = LeaceEraser.fit(tensors[0], torch.from_numpy(male[:, 0]).long())
        income("adult, LEACE", *(eraser(part).numpy() for part in tensors), y, y_test, sex_test)


if __name__ == "__main__":
    torch.set_num_threads(1)
    run_adult()
