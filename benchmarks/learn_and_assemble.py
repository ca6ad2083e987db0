"""Learning and assembling against exact truths, the published recipe and the tools people use now: one table.

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
from numpy.polynomial.hermite_e import hermeval
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import train_test_split
from torch import nn

import featgeo as fg
from featgeo import datasets
from featgeo.features import networks
from featgeo.paper import discrete as discrete_experiment
from featgeo.paper.orthogonality import samples as cosine_samples

N = 50_000
SEED = 100  # draws and splits from here on: the defaults of the library were chosen while looking at smaller seeds


@contextmanager
def cpu_time() -> Iterator[Callable[[], float]]:
    start = time.process_time()
    yield lambda: time.process_time() - start


def row(name: str, **figures: object) -> None:
    shown = (f"{key} {value:.4g}" if isinstance(value, float) else f"{key} {value}" for key, value in figures.items())
    print(f"{name:<34}", "  ".join(shown), flush=True)


# --- the paper's cosine density -------------------------------------------------------------------------------------


def h_score(f: torch.Tensor, g: torch.Tensor) -> torch.Tensor:
    f, g = f - f.mean(dim=0), g - g.mean(dim=0)
    n = len(f)
    return (f * g).sum() / n - ((f.T @ f / n) * (g.T @ g / n)).sum() / 2


def published_recipe(x: np.ndarray, y: np.ndarray, k: int, lean: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Appendix D, plainly: softplus networks of two layers of 32, minibatches of 256 from a DataLoader, 100 epochs of
    Adam at 1e-3, one H-score for each level. `lean` replaces the DataLoader by slices of a permutation.
    """
    torch.manual_seed(0)

    def network() -> nn.Module:
        return nn.Sequential(nn.Linear(1, 32), nn.Softplus(), nn.Linear(32, 32), nn.Softplus(), nn.Linear(32, k))

    f, g = network(), network()
    xs, ys = (torch.from_numpy(z).float()[:, None] for z in (x, y))
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(xs, ys), batch_size=256, shuffle=True)
    optimizer = torch.optim.Adam([*f.parameters(), *g.parameters()], lr=1e-3)
    for _ in range(100):
        batches = ((xs[rows], ys[rows]) for rows in torch.randperm(len(xs)).split(256)) if lean else loader
        for x_batch, y_batch in batches:
            fs, gs = f(x_batch), g(y_batch)
            loss = -sum(h_score(fs[:, : i + 1], gs[:, : i + 1]) for i in range(k))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    with torch.no_grad():
        fs, gs = (z - z.mean(dim=0) for z in (f(xs), g(ys)))
    return fs.double().numpy(), gs.double().numpy()


def kernel_error(f: np.ndarray, g: np.ndarray, x: np.ndarray, y: np.ndarray) -> float:
    """Relative error of the kernel over rows of the product distribution; f or g carries sigma."""
    apart = np.random.default_rng(0).permutation(len(y))
    truth = np.cos(np.pi * (x - y[apart]))
    return float(np.sqrt(np.mean(((f * g[apart]).sum(axis=1) - truth) ** 2) / np.mean(truth**2)))


def expectation_errors(model: fg.ModalDecomposition) -> list[float]:
    at, fine = np.linspace(-1, 1, 1001), np.linspace(-1, 1, 20_001)
    density = 1 + np.cos(np.pi * (at[:, None] - fine))
    density /= density.sum(axis=1, keepdims=True)
    given = model.given(at)
    functions = (lambda y: y, np.square, np.exp)
    return [float(np.sqrt(np.mean((given.mean(psi) - density @ psi(fine)) ** 2))) for psi in functions]


def cosine() -> None:
    results: dict[str, list[list[float]]] = {"auto": [], "neural": []}
    for seed in range(SEED, SEED + 5):
        x, y = cosine_samples(N, seed)
        for solver, found in results.items():
            with cpu_time() as used:
                model = fg.ModalDecomposition(2, solver=solver, random_state=seed).fit(x, y)
                seconds = used()
            f, g = model.transform(x, y)
            error = kernel_error(f * model.singular_values_, g, x, y)
            found.append([error, *expectation_errors(model), seconds])
    samples = cosine_samples(N, SEED)
    published = {}
    for lean in (False, True):
        with cpu_time() as used:
            f, g = published_recipe(*samples, k=2, lean=lean)
            published[lean] = used()
        name = "cosine, published" + (", no DataLoader" if lean else " recipe")
        row(name, kernel_error=kernel_error(f, g, *samples), cpu_seconds=published[lean])
    for solver, found in results.items():
        error, mean, square, exponential, seconds = np.median(found, axis=0)
        row(f"cosine, {solver} (medians of 5)", kernel_error=error, E_y=mean, E_y2=square, E_exp=exponential,
            cpu_seconds=seconds,
            times_less=published[False] / seconds, than_without_DataLoader=published[True] / seconds)  # fmt: skip


# --- the paper's discrete distribution, Gaussian variables, the Gaussian mixture, sequences --------------------------


def discrete() -> None:
    table = discrete_experiment.distribution().probability()
    cells = np.random.default_rng(discrete_experiment.SEED).choice(
        table.size, discrete_experiment.SAMPLES, p=table.ravel()
    )
    x, y = np.divmod(cells, table.shape[1])
    truth = fg.FiniteJoint.from_samples(x=x, y=y).modes(3).sigma
    for solver, training in (("exact", None), ("neural", fg.Training(max_epochs=20))):
        spaces = (
            {}
            if solver == "exact"
            else {"x_space": OneHotNetwork(table.shape[0]), "y_space": OneHotNetwork(table.shape[1])}
        )
        model = fg.ModalDecomposition(3, solver=solver, random_state=0, training=training, **spaces).fit(x, y)
        row(f"discrete, {solver}", largest_sigma_error=float(np.abs(model.singular_values_ - truth).max()))


class OneHotNetwork(nn.Module):
    """A network of indicators, as in appendix D."""

    def __init__(self, symbols: int) -> None:
        super().__init__()
        self.symbols = symbols
        self.linear = nn.Linear(symbols, 16)

    def forward(self, index: torch.Tensor) -> torch.Tensor:
        """Features of symbols, (n, 1) -> (n, 16)."""
        return nn.functional.silu(self.linear(nn.functional.one_hot(index[:, 0].long(), self.symbols).float()))


def gaussian() -> None:
    correlations, held_out, first = [], [], []
    for seed in range(SEED, SEED + 10):
        rng = np.random.default_rng(seed)
        x = rng.standard_normal(N)
        y = 0.8 * x + 0.6 * rng.standard_normal(N)
        model = fg.ModalDecomposition(5, random_state=seed).fit(x, y)
        f = model.transform(x)
        correlations.append([abs(np.corrcoef(f[:, i], hermeval(x, np.eye(6)[i + 1]))[0, 1]) for i in range(4)])
        held_out.append(model.held_out_singular_values_)
        first.append(abs(model.singular_values_[0] - 0.8))
    row("gaussian, auto (medians of 10)", hermite=np.median(correlations, axis=0).round(4).tolist())
    row("", held_out_minus_truth=(np.median(held_out, axis=0) - 0.8 ** np.arange(1, 6)).round(4).tolist(),
        worst_sigma_1_error=float(max(first)))  # fmt: skip


def mixture() -> None:
    rng = np.random.default_rng(SEED)
    root = rng.standard_normal((10, 10)) / np.sqrt(10) + np.eye(10)
    covariance = root @ root.T
    mu = rng.standard_normal(10)
    mu /= np.sqrt(mu @ np.linalg.solve(covariance, mu))
    y = rng.choice([-1, 1], N)
    X = y[:, None] * mu + rng.standard_normal((N, 10)) @ root.T
    truth = np.tanh(X @ np.linalg.solve(covariance, mu))
    for solver, training in (("auto", None), ("neural", fg.Training(max_epochs=20))):
        with cpu_time() as used:
            model = fg.ModalDecomposition(1, solver=solver, random_state=SEED, training=training).fit(X, y)
            row(f"mixture, {solver}", correlation=float(abs(np.corrcoef(model.transform(X)[:, 0], truth)[0, 1])),
                spaces=model.spaces_[0], cpu_seconds=used())  # fmt: skip


def sequences() -> None:
    def chain(n: int, length: int, flip: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        start = rng.integers(0, 2, (n, 1))
        flips = rng.random((n, length - 1)) < flip[:, None]
        return np.hstack([start, (start + np.cumsum(flips, axis=1)) % 2]).astype(float)

    def draw(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
        rng = np.random.default_rng(seed)
        u, v = np.divmod(rng.choice(4, n, p=[0.1, 0.4, 0.2, 0.3]), 2)
        flip = np.array([0.1, 0.9])
        return chain(n, 40, flip[u], rng), chain(n, 30, flip[v], rng)

    def truth(z: np.ndarray, share: float) -> np.ndarray:
        phi = (z.shape[1] - 1) / 2 - (z[:, 1:] == z[:, :-1]).sum(axis=1)
        return np.tanh(np.log(9) * phi + np.log(share / (1 - share)) / 2)

    X, Y = draw(N, SEED)
    x_new, y_new = draw(10_000, SEED + 1)
    for space, training in (("windows", None), ("sequence", SEQUENCE_TRAINING)):
        with cpu_time() as used:
            model = fg.ModalDecomposition(1, x_space=space, y_space=space, random_state=SEED, training=training)
            model.fit(X, Y)
            seconds = used()
        f, g = model.transform(x_new, y_new)
        row(f"sequences, {space}", f=float(abs(np.corrcoef(f[:, 0], truth(x_new, 0.5))[0, 1])),
            g=float(abs(np.corrcoef(g[:, 0], truth(y_new, 0.7))[0, 1])), cpu_seconds=seconds)  # fmt: skip


SEQUENCE_TRAINING = fg.Training(learning_rate=0.02, max_epochs=30, surplus=0)  # one weak mode: no room for noise


# --- real data --------------------------------------------------------------------------------------------------------


def fashion() -> None:
    data = datasets.fashion_mnist()
    with cpu_time() as used:
        model = fg.FeatureClassifier(x_space="image", random_state=0).fit(data.train_images, data.train_labels)
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
    model = fg.FeatureClassifier(random_state=0).fit(X_train, y_train)
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
    model = fg.FeatureRegressor(random_state=0).fit(X_train, y_train)
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


ALL = (cosine, discrete, gaussian, mixture, sequences, fashion, adult, diamonds)

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", choices=[[], *(part.__name__ for part in ALL)], default=[])
    wanted = parser.parse_args().names
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    for part in ALL:
        if not wanted or part.__name__ in wanted:
            part()
