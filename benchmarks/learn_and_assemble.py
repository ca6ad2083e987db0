"""Learning and assembling beside the tools people use now: one table.

    OMP_NUM_THREADS=1 python benchmarks/learn_and_assemble.py [NAME ...]

CPU times are compared within a run, on one thread. Adult, diamonds and Fashion-MNIST are downloaded on first use.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import torch
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import train_test_split
from torch import nn

from featgeo import FeatureClassifier, FeatureRegressor, ModalDecomposition, Training, datasets
from featgeo.features import networks
from featgeo.geometry import Modes
from featgeo.paper import cosine as cosine_experiment
from featgeo.paper import discrete as discrete_experiment
from featgeo.paper.record import kernel_error

SEED = 100  # draws and splits from here on: the defaults of the library were chosen while looking at smaller seeds


@contextmanager
def cpu_time() -> Iterator[Callable[[], float]]:
    start = time.process_time()
    yield lambda: time.process_time() - start


def row(name: str, **figures: object) -> None:
    shown = (f"{key} {value:.4g}" if isinstance(value, float) else f"{key} {value}" for key, value in figures.items())
    print(f"{name:<34}", "  ".join(shown), flush=True)


# --- the paper's cosine and discrete data, by networks (by the defaults: reproduce.py) ------------------------------


def cosine() -> None:
    results = []
    for seed in range(SEED, SEED + 5):
        data = cosine_experiment.draw(seed)
        with cpu_time() as used:
            model = ModalDecomposition(2, solver="neural", random_state=seed).fit(data.x, data.y)
            seconds = used()
        grid = cosine_experiment.GRID
        modes = Modes(model.singular_values_, *model.transform(grid, grid))
        results.append(
            [kernel_error(modes, cosine_experiment.KERNEL, cosine_experiment.MASS, cosine_experiment.MASS), seconds]
        )
    error, seconds = np.median(results, axis=0)
    row("cosine, neural (medians of 5)", kernel_error=error, cpu_seconds=seconds)


def discrete() -> None:
    data = discrete_experiment.draw(SEED)
    truth = discrete_experiment.optimum(data).sigma
    spaces = (OneHotNetwork(size) for size in discrete_experiment.SHAPE)
    model = ModalDecomposition(3, "neural", *spaces, random_state=0, training=Training(max_epochs=20)).fit(
        data.x, data.y
    )
    row("discrete, neural", largest_sigma_error=float(np.abs(model.singular_values_ - truth).max()))


class OneHotNetwork(nn.Module):
    """A network of indicators, as in appendix D."""

    def __init__(self, symbols: int) -> None:
        super().__init__()
        self.symbols = symbols
        self.linear = nn.Linear(symbols, 16)

    def forward(self, index: torch.Tensor) -> torch.Tensor:
        """Features of symbols, (n, 1) -> (n, 16)."""
        return nn.functional.silu(self.linear(nn.functional.one_hot(index[:, 0].long(), self.symbols).float()))


# --- real data --------------------------------------------------------------------------------------------------------


def fashion() -> None:
    data = datasets.fashion_mnist()
    with cpu_time() as used:
        model = FeatureClassifier(x_space="image", random_state=0).fit(data.train_images, data.train_labels)
        seconds = used()
    p = model.predict_proba(data.test_images)
    ours = float((model.classes_[p.argmax(axis=1)] == data.test_labels).mean()), log_loss(data.test_labels, p)
    row("Fashion-MNIST, FeatureClassifier", accuracy=ours[0], log_loss=ours[1], cpu_seconds=seconds)
    theirs = cross_entropy_network(data, seconds)
    row("Fashion-MNIST, cross-entropy", accuracy=theirs[0], log_loss=theirs[1], cpu_seconds=theirs[2],
        log_loss_ratio=ours[1] / theirs[1])  # fmt: skip


def cross_entropy_network(data: datasets.FashionMnist, seconds: float) -> tuple[float, float, float]:
    """The same trunk with a softmax, AdamW and a one-cycle rate, for the same CPU time."""
    torch.manual_seed(0)
    images, labels = torch.from_numpy(data.train_images), torch.from_numpy(data.train_labels).long()
    trunk = networks.image(1, 28, 28)
    trunk.fit_input_scale(images[:4096])
    net = nn.Sequential(trunk, nn.Linear(trunk(images[:2]).shape[1], 10))
    optimizer = torch.optim.AdamW(net.parameters(), lr=0.003)

    def step(rows: torch.Tensor) -> None:
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(images[rows]), labels[rows]).backward()
        optimizer.step()

    for _ in range(5):  # warm up
        step(torch.arange(512))
    with cpu_time() as used:
        for _ in range(30):
            step(torch.randperm(len(images))[:512])
        n_steps = int(seconds / (used() / 30))
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.005, total_steps=n_steps + 1)
    with cpu_time() as used:
        done = 0
        while done < n_steps:
            for rows in torch.randperm(len(images)).split(512)[: n_steps - done]:
                step(rows)
                schedule.step()
                done += 1
        taken = used()
    with torch.no_grad():
        p = torch.softmax(net(torch.from_numpy(data.test_images)), dim=1).double().numpy()
    p /= p.sum(axis=1, keepdims=True)
    return float((p.argmax(axis=1) == data.test_labels).mean()), log_loss(data.test_labels, p), taken


def calibration_error(p: np.ndarray, y: np.ndarray, bins: int = 15) -> float:
    index = np.minimum((p * bins).astype(int), bins - 1)
    return float(sum(abs(p[index == b].sum() - y[index == b].sum()) for b in range(bins)) / len(y))


def adult() -> None:
    X, y = datasets.adult()
    positive = (y == ">50K").to_numpy()
    X_train, X_test, y_train, y_test = train_test_split(
        X, positive, test_size=0.25, random_state=SEED, stratify=positive
    )
    model = FeatureClassifier(random_state=0).fit(X_train, y_train)
    p = model.predict_proba(X_test)[:, 1]
    row("Adult, FeatureClassifier", auc=roc_auc_score(y_test, p), calibration_error=calibration_error(p, y_test),
        log_loss=log_loss(y_test, p), spaces=model.spaces_[0])  # fmt: skip
    as_categories = dict.fromkeys(X.select_dtypes(exclude="number"), "category")
    both = X.astype(as_categories)
    trees = HistGradientBoostingClassifier(random_state=0).fit(both.loc[X_train.index], y_train)
    p = trees.predict_proba(both.loc[X_test.index])[:, 1]
    row("Adult, HistGradientBoosting", auc=roc_auc_score(y_test, p), calibration_error=calibration_error(p, y_test),
        log_loss=log_loss(y_test, p))  # fmt: skip


def diamonds() -> None:
    table = datasets.diamonds()
    X, y = table.drop(columns="price"), table["price"].to_numpy(float)
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.25, random_state=SEED)
    model = FeatureRegressor(random_state=0).fit(X_train, y_train)
    low, high = model.predict_interval(X_test, 0.9).T
    covered = float(np.mean((low <= y_test) & (y_test <= high)))
    row("diamonds, FeatureRegressor", R2=model.score(X_test, y_test), mean_width=float(np.mean(high - low)),
        coverage_of_90=covered, spaces=model.spaces_[0])  # fmt: skip
    trees = HistGradientBoostingRegressor(random_state=0, categorical_features="from_dtype").fit(X_train, y_train)
    ends = [
        HistGradientBoostingRegressor(loss="quantile", quantile=q, random_state=0, categorical_features="from_dtype")
        .fit(X_train, y_train)
        .predict(X_test)
        for q in (0.05, 0.95)
    ]
    row("diamonds, HistGradientBoosting", R2=trees.score(X_test, y_test), mean_width=float(np.mean(ends[1] - ends[0])),
        coverage_of_90=float(np.mean((ends[0] <= y_test) & (y_test <= ends[1]))))  # fmt: skip


ALL = (cosine, discrete, fashion, adult, diamonds)

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", choices=[[], *(part.__name__ for part in ALL)], default=[])
    wanted = parser.parse_args().names
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    for part in ALL:
        if not wanted or part.__name__ in wanted:
            part()
