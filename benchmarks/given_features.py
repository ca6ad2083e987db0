"""Given features, side information and sequences: exact truths, the published recipes, and peers, in one table.

    OMP_NUM_THREADS=1 python benchmarks/given_features.py [NAME ...]

Names: orthogonality, side, sequential, adult. CPU times are compared within a run, on one thread. Adult is downloaded
on first use; its peers are fairlearn and concept-erasure (pip install fairlearn concept-erasure), left out where they
are not installed. Seeds and splits are from 300 on; nothing was chosen on them.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator

import numpy as np
import pandas as pd
import torch
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from torch import nn

import featgeo as fg
from featgeo import datasets
from featgeo.paper import orthogonality, sequential, side_information

SEED = 300
REPEATS = 5
Array = np.ndarray


def row(name: str, **figures: object) -> None:
    shown = (f"{key} {value:.4g}" if isinstance(value, float) else f"{key} {value}" for key, value in figures.items())
    print(f"{name:<40}", "  ".join(shown), flush=True)


def median(values: list[float]) -> float:
    return float(np.median(values))


# --- the published recipes: Adam, minibatches of 256, 100 epochs -----------------------------------------------------


def h_score(f: torch.Tensor, g: torch.Tensor) -> torch.Tensor:
    f, g = f - f.mean(dim=0), g - g.mean(dim=0)
    n = len(f)
    return (f * g).sum() / n - ((f.T @ f / n) * (g.T @ g / n)).sum() / 2


def minibatches(n: int, epochs: int, seed: int) -> Iterator[torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    for _ in range(epochs):
        yield from torch.randperm(n, generator=generator).split(256)


def mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(1, 32), nn.Softplus(), nn.Linear(32, 32), nn.Softplus(), nn.Linear(32, 1))


def published_orthogonality(given: str, x: Array, y: Array, seed: int, epochs: int) -> tuple[float, float, float]:
    """Correlation with the truth, relative error and residual correlation of the published recipe."""
    torch.manual_seed(seed)
    f, g_aligned, g = mlp(), mlp(), mlp()
    xs, ys = (torch.from_numpy(part).float()[:, None] for part in (x, y))
    phi = torch.from_numpy(orthogonality.GIVEN[given](x)).float()[:, None]
    optimizer = torch.optim.Adam([*f.parameters(), *g_aligned.parameters(), *g.parameters()])
    for batch in minibatches(len(x), epochs, seed):
        aligned = g_aligned(ys[batch])
        both_f, both_g = torch.cat([phi[batch], f(xs[batch])], 1), torch.cat([aligned, g(ys[batch])], 1)
        loss = -h_score(phi[batch], aligned) - h_score(both_f, both_g)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        grid = f(torch.from_numpy(orthogonality.GRID).float()[:, None])[:, 0].double().numpy()
        own = f(xs)[:, 0].double().numpy()
    truth = orthogonality.TRUTH[given](orthogonality.GRID)
    correlation = float(np.corrcoef(grid, truth)[0, 1])
    unit = np.sign(correlation) * (grid - own.mean()) / own.std()
    error = float(np.sqrt(np.mean((unit - truth) ** 2) / np.mean(truth**2)))
    return abs(correlation), error, float(abs(np.corrcoef(own, orthogonality.GIVEN[given](x))[0, 1]))


def published_side(x: Array, s: Array, y: Array, seed: int, epochs: int) -> tuple[Array, Array]:
    """F of x by the nested H-score and by a multihead network, both by the published recipe, normalised."""
    torch.manual_seed(seed)
    n_x, n_s, n_y = side_information.SHAPE
    sizes = {"f_bar": (n_x, 2), "g_bar": (n_s, 2), "f": (n_x, 1), "g": (n_s * n_y, 1)}
    tables = {name: nn.Embedding(*size) for name, size in sizes.items()}
    multihead = side_information.MultiheadNetwork(side_information.SHAPE, 1, seed)
    nested = torch.optim.Adam([weight for table in tables.values() for weight in table.parameters()])
    heads = torch.optim.Adam(multihead.parameters())
    xs, ss, ys = (torch.from_numpy(part) for part in (x, s, y))
    for batch in minibatches(len(x), epochs, seed):
        bx, bs, by = xs[batch], ss[batch], ys[batch]
        f_bar, g_bar = tables["f_bar"](bx), tables["g_bar"](bs)
        f = torch.cat([f_bar, tables["f"](bx)], 1)
        g = torch.cat([g_bar, tables["g"](bs * n_y + by)], 1)
        for optimizer, loss in (
            (nested, -h_score(f_bar, g_bar) - h_score(f, g)),
            (heads, -multihead()[bx, bs, by].mean()),
        ):
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return tables["f"].weight.detach().numpy()[:, 0], multihead.f.detach().numpy()[:, 0]


# --- the paper's experiments -----------------------------------------------------------------------------------------


def run_orthogonality(epochs: int) -> None:
    for given in orthogonality.GIVEN:
        start = time.process_time()
        results = [orthogonality.run(given, seed=SEED + i) for i in range(REPEATS)]
        ours = (time.process_time() - start) / REPEATS
        row(
            f"orthogonal to {given}, median of {REPEATS}",
            correlation=median([result.correlation for result in results]),
            lowest=min(result.correlation for result in results),
            error=median([result.relative_error for result in results]),
            largest_error=max(result.relative_error for result in results),
            residual=max(abs(result.residual) for result in results),
            cpu_s=ours,
        )
        start = time.process_time()
        correlation, error, residual = published_orthogonality(
            given, *orthogonality.samples(50_000, SEED), SEED, epochs
        )
        spent = time.process_time() - start
        row("  published recipe, one run", correlation=correlation, error=error, residual=residual, times=spent / ours)


def run_side(epochs: int) -> None:
    for i in range(3):
        result = side_information.run(seed=SEED + i)
        x, s, y = side_information.samples(side_information.SAMPLES, SEED + i)
        f, heads = published_side(x, s, y, SEED + i, epochs)
        row(
            f"side information, draw {i + 1}",
            f=result.f_correlation,
            g=result.g_correlation,
            sigma_error=result.sigma_error,
            posterior_error=result.posterior_error,
            with_multihead=result.multihead_f_correlation,
            published_with_multihead=float(abs(np.corrcoef(f, heads)[0, 1])),
            ours_with_published_multihead=float(abs(np.corrcoef(result.f, heads)[0, 1])),
        )


def run_sequential() -> None:
    for order in (1, 2):
        for length in (12_000, 300_000):
            results = [sequential.run(order, length, seed=SEED + i) for i in range(REPEATS)]
            row(
                f"chain of order {order}, length {length}",
                from_plug_in=max(float(np.abs(result.learned - result.exact).max()) for result in results),
                from_theory=max(float(np.abs(result.learned - result.theory).max()) for result in results),
                energies=np.round(results[0].learned, 4),
            )


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
    left = fg.leakage(test, sex_test, random_state=SEED)
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
        model = fg.ModalDecomposition(1, x_space=space, orthogonal_to="gender", random_state=SEED).fit(X, y)
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="what to run; everything when none is named")
    parser.add_argument("--epochs", type=int, default=100, help="of the published recipes")
    options = parser.parse_args()
    torch.set_num_threads(1)
    every: dict[str, Callable[[], None]] = {
        "orthogonality": lambda: run_orthogonality(options.epochs),
        "side": lambda: run_side(options.epochs),
        "sequential": run_sequential,
        "adult": run_adult,
    }
    unknown = set(options.names) - set(every)
    if unknown:
        parser.error(f"there is no {sorted(unknown)}; the names are {list(every)}")
    for name in options.names or every:
        every[name]()


if __name__ == "__main__":
    main()
