"""Several sources of one label: exact truths, the published recipes, and the gain of incomplete rows, in one table.

    OMP_NUM_THREADS=1 python benchmarks/multimodal.py [NAME ...]

Names: complete, pairwise, gain, ace. CPU times are compared within a run, on one thread. Seeds are from 400 on, those
of the gain from 800 on; nothing was chosen on them. (The gain was first measured on seeds 400 to 419: medians 0.615 and
0.801, worst 1.28 and 1.09. Then the dependence between sources was reduced to its held-out modes, on other seeds.) For
the lines of the package ace: pip install ace==0.4.2.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec

import numpy as np
import torch
from scipy.special import ndtr, ndtri
from torch import nn

from featgeo.models import MultimodalDecomposition
from featgeo.paper import multimodal

SEED = 400
GAIN_SEED = 800
REPEATS = 5
GAIN_REPEATS = 20
ACE_SEED = 450
FRESH_ROWS = 20_000
COMPLETE_ROWS, SINGLE_ROWS = 1_000, 20_000
Array = np.ndarray
Tensor = torch.Tensor


def row(name: str, **figures: object) -> None:
    shown = (f"{key} {value:.4g}" if isinstance(value, float) else f"{key} {value}" for key, value in figures.items())
    print(f"{name:<40}", "  ".join(shown), flush=True)


# --- the published recipes: Adam, minibatches of 256, 100 epochs -----------------------------------------------------


def covariance(a: Tensor, b: Tensor) -> Tensor:
    return ((a - a.mean(dim=0)).T @ (b - b.mean(dim=0))) / len(a)


def h_score(f: Tensor, g: Tensor) -> Tensor:
    return covariance(f, g).trace() - (covariance(f, f) * covariance(g, g)).sum() / 2


def minibatches(n: int, epochs: int, seed: int) -> Iterator[Tensor]:
    generator = torch.Generator().manual_seed(seed)
    for _ in range(epochs):
        yield from torch.randperm(n, generator=generator).split(256)


def mlp(inputs: int) -> nn.Module:
    return nn.Sequential(nn.Linear(inputs, 32), nn.Softplus(), nn.Linear(32, 32), nn.Softplus(), nn.Linear(32, 1))


def column(values: Array) -> Tensor:
    return torch.from_numpy(values).float()[:, None]


def step(optimizer: torch.optim.Optimizer, loss: Tensor) -> None:
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


class Published:
    """The paper's networks: f_bar of x1 plus f_bar of x2, f of both, and tables g_bar and g of the label.

    The error of f does not fall steadily: it may double between two looks 20 epochs apart, so one run says little.
    """

    def __init__(self, law: str, seed: int, epochs: int) -> None:
        torch.manual_seed(seed)
        self.law, self.seed, self.epochs = law, seed, epochs
        x1, x2, y = multimodal.samples(law, multimodal.SAMPLES, seed)
        self.x1, self.x2, self.label = column(x1), column(x2), torch.eye(2)[torch.from_numpy((y == 1).astype(int))]
        self.f_bar_1, self.f_bar_2, self.f = mlp(1), mlp(1), mlp(2)
        self.g_bar, self.g = nn.Linear(2, 1), nn.Linear(2, 1)

    def complete(self) -> None:
        """Maximise the nested H-score."""
        networks = (self.f_bar_1, self.f_bar_2, self.f, self.g_bar, self.g)
        optimizer = torch.optim.Adam([weight for network in networks for weight in network.parameters()])
        for batch in minibatches(len(self.x1), self.epochs, self.seed):
            x1, x2, label = self.x1[batch], self.x2[batch], self.label[batch]
            f_bar, g_bar = self.f_bar_1(x1) + self.f_bar_2(x2), self.g_bar(label)
            f, g = self.f(torch.cat([x1, x2], 1)), self.g(label)
            step(optimizer, -h_score(f_bar, g_bar) - h_score(torch.cat([f_bar, f], 1), torch.cat([g_bar, g], 1)))

    def pairwise(self) -> None:
        """Maximise the H-score of f_bar and g_bar, each covariance from a minibatch of the pairs that show it."""
        networks = (self.f_bar_1, self.f_bar_2, self.g_bar)
        optimizer = torch.optim.Adam([weight for network in networks for weight in network.parameters()])
        shuffles = (minibatches(len(self.x1), self.epochs, 3 * self.seed + i) for i in range(3))
        for sources, first, second in zip(*shuffles, strict=True):
            g_1, g_2 = self.g_bar(self.label[first]), self.g_bar(self.label[second])
            g = torch.cat([g_1, g_2])
            between = covariance(self.f_bar_1(self.x1[sources]), self.f_bar_2(self.x2[sources]))
            alone = h_score(self.f_bar_1(self.x1[first]), g_1) + h_score(self.f_bar_2(self.x2[second]), g_2)
            step(optimizer, (between * covariance(g, g)).sum() - alone)

    def expected(self, x: Tensor, values: Tensor) -> nn.Module:
        """A network of x trained by squared error: the conditional expectation of values."""
        network = mlp(1)
        optimizer = torch.optim.Adam(network.parameters())
        for batch in minibatches(len(x), self.epochs, self.seed):
            step(optimizer, ((network(x[batch]) - values[batch]) ** 2).mean())
        return network

    def result(self, interaction: bool) -> multimodal.MultimodalResult:
        """Posteriors are assembled by the paper's formulas, and cut to [0, 1]."""
        with torch.no_grad():
            own_1, own_2 = self.f_bar_1(self.x1), self.f_bar_2(self.x2)
        from_2, from_1 = self.expected(self.x1, own_2), self.expected(self.x2, own_1)
        with torch.no_grad():
            grid, grid_1, grid_2 = (column(x) for x in (multimodal.GRID, multimodal.GRID_1, multimodal.GRID_2))
            mean_bar, prior = (own_1 + own_2).mean(), self.label[:, 1].mean()
            g_bar, g = ((net(torch.eye(2)[1:]) - net(self.label).mean()).squeeze() for net in (self.g_bar, self.g))
            f_bar = self.f_bar_1(grid_1) + self.f_bar_2(grid_2) - mean_bar
            known, f, f_own = f_bar * g_bar, None, torch.zeros(len(self.x1), 1)
            if interaction:
                f_own = self.f(torch.cat([self.x1, self.x2], 1))
                f = self.f(torch.cat([grid_1, grid_2], 1)) - f_own.mean()
                known = known + f * g
            known_1 = (self.f_bar_1(grid) + from_2(grid) - mean_bar) * g_bar
            known_2 = (self.f_bar_2(grid) + from_1(grid) - mean_bar) * g_bar
            posteriors = [(prior * (1 + part)).clamp(0, 1)[:, 0].double().numpy() for part in (known, known_1, known_2)]
            sigmas = [
                float(own.std() * net(self.label).std()) for own, net in ((own_1 + own_2, self.g_bar), (f_own, self.g))
            ]
        features = [None if part is None else part[:, 0].double().numpy() for part in (f_bar, f)]
        return multimodal.measured(self.law, *features, *posteriors, sigmas[0], sigmas[1] if interaction else None)


# --- the paper's experiments -----------------------------------------------------------------------------------------


MEASURES = ("f_bar_error", "f_error", "posterior_error", "posterior_1_error", "posterior_2_error", "sigma_bar", "sigma")


def figures(results: list[multimodal.MultimodalResult]) -> dict[str, object]:
    """Medians, with the largest in brackets where there are several results; no figure for what was not learned."""
    shown: dict[str, object] = {}
    for name in MEASURES:
        values = [getattr(result, name) for result in results]
        if None not in values:
            largest = f" ({max(values):.4g})" if len(values) > 1 else ""
            shown[name] = f"{np.median(values):.4g}{largest}"
    return shown


def published(law: str, data: str, seed: int, epochs: int) -> multimodal.MultimodalResult:
    networks = Published(law, seed, epochs)
    if data == "complete":
        networks.complete()
    else:
        networks.pairwise()
    return networks.result(interaction=data == "complete")


def run_paper(law: str, data: str, epochs: int, runs: int) -> None:
    start = time.process_time()
    results = [multimodal.run(law, data, seed=SEED + i) for i in range(REPEATS)]
    ours = (time.process_time() - start) / REPEATS
    row(f"{law} law, {data} rows, median of {REPEATS}", **figures(results), cpu_s=ours)
    start = time.process_time()
    results = [published(law, data, SEED + i, epochs) for i in range(runs)]
    spent = (time.process_time() - start) / runs
    row(f"  published recipe, median of {runs}", **figures(results), cpu_s=spent, times=spent / ours)


def run_complete(epochs: int, runs: int) -> None:
    for law in ("clipped", "valid"):
        run_paper(law, "complete", epochs, runs)


# --- what rows with a missing source add -----------------------------------------------------------------------------


def posterior_error(law: str, model: MultimodalDecomposition) -> float:
    learned = model.given(x1=multimodal.GRID_1, x2=multimodal.GRID_2).proba()[:, 1]
    exact = multimodal.truth(law).posterior(multimodal.GRID_1, multimodal.GRID_2)
    return multimodal.root_mean_square(learned - exact)


def gain(law: str, seed: int) -> tuple[float, float]:
    """Errors of P(Y=1|x1, x2): from the complete rows alone, and with the rows that have one source."""
    x1, x2, y = multimodal.samples(law, COMPLETE_ROWS + 2 * SINGLE_ROWS, seed)
    whole, first, second = np.split(np.arange(len(y)), [COMPLETE_ROWS, COMPLETE_ROWS + SINGLE_ROWS])
    alone = MultimodalDecomposition(random_state=seed).fit({"x1": x1[whole], "x2": x2[whole]}, y[whole])
    datasets = [
        {"x1": x1[whole], "x2": x2[whole], "y": y[whole]},
        {"x1": x1[first], "y": y[first]},
        {"x2": x2[second], "y": y[second]},
    ]
    together = MultimodalDecomposition(random_state=seed).fit_datasets(datasets)
    return posterior_error(law, alone), posterior_error(law, together)


def run_gain() -> None:
    for law in ("pairwise", "valid"):
        alone, together = np.transpose([gain(law, GAIN_SEED + i) for i in range(GAIN_REPEATS)])
        row(
            f"{law} law, gain, {GAIN_REPEATS} draws",
            ratio=float(np.median(together / alone)),
            worst_ratio=float(np.max(together / alone)),
            error_alone=float(np.median(alone)),
            error_together=float(np.median(together)),
        )


# --- optimal transformations, beside the package ace ------------------------------------------------------------------


@dataclass(frozen=True)
class Transformations:
    """Rows of two sources and of Y, with the optimal transformations at each row."""

    x: tuple[np.ndarray, np.ndarray]
    y: np.ndarray
    phi: tuple[Array, Array]
    psi: Array


def paper_rows(n: int, seed: int) -> Transformations:
    """E[Y|x1, x2] is a sum, and Y is 1 or -1: 1/4 of its variance is explained."""
    x1, x2, y = multimodal.samples("pairwise", n, seed)
    return Transformations((x1, x2), y, (np.cos(np.pi * x1) / 2, np.cos(np.pi * x2) / 2), y)


def gaussian_rows(n: int, seed: int) -> Transformations:
    """Breiman and Friedman's Y = exp(x1^3 + noise), with a second source: Gaussian once transformed, 3/4 explained.

    Functions of jointly Gaussian variables are correlated most where they are linear.
    """
    rng = np.random.default_rng(seed)
    z1, noise = rng.standard_normal((2, n))
    z2 = z1 / 2 + np.sqrt(3 / 4) * rng.standard_normal(n)
    total = z1 + z2 + noise  # of variance 4
    x = np.cbrt(z1), 2 * ndtr(z2) - 1
    return Transformations(x, np.exp(total), (x[0] ** 3 / 2, ndtri((x[1] + 1) / 2) / 2), total / 2)


LABEL_EFFECTS = 0.6 * np.array([1, -1, -1, 1, -1, 1, 1, -1])  # of eight labels; no order of them is smooth
Y_VALUES = np.array([1.0, -1.0, 1.0, -1.0])  # psi of four labels


def label_rows(n: int, seed: int) -> Transformations:
    """P(y|x1, x2) = (1 + s psi(y)) / 4 with s = phi1(label) + phi2(x2): 0.44 explained."""
    rng = np.random.default_rng(seed)
    label, x2 = rng.integers(8, size=n), rng.uniform(-1, 1, n)
    phi = LABEL_EFFECTS[label], 0.4 * np.cos(np.pi * x2)
    above = rng.random(n) < (1 + phi[0] + phi[1]) / 2
    y = 2 * rng.integers(2, size=n) + ~above
    return Transformations((np.array(list("abcdefgh"))[label], x2), np.array(list("abcd"))[y], phi, Y_VALUES[y])


def our_transformations(train: Transformations, fresh: Transformations, seed: int) -> tuple[list[Array], Array]:
    model = MultimodalDecomposition(n_modes=1, max_order=1, random_state=seed)
    model.fit(dict(zip("ab", train.x, strict=True)), train.y)
    found = model.optimal_transformations(dict(zip("ab", fresh.x, strict=True)), fresh.y)
    return list(found.phi.values()), found.psi


def ace_transformations(train: Transformations, fresh: Transformations, seed: int) -> tuple[list[Array], Array]:
    """Labels enter as their positions in the alphabet; between the rows of the fit values are interpolated."""
    from ace.ace import ACESolver

    solver = ACESolver()
    x, y = [numbers(values) for values in train.x], numbers(train.y)
    solver.specify_data_set(x, y)
    with contextlib.redirect_stdout(io.StringIO()):
        solver.solve()
    pairs = zip(fresh.x, x, solver.x_transforms, strict=True)
    phi = [between(numbers(new), old, values) for new, old, values in pairs]
    return phi, between(numbers(fresh.y), y, solver.y_transform)


def numbers(values: np.ndarray) -> Array:
    if values.dtype.kind in "if":
        return values.astype(float)
    return np.unique(values, return_inverse=True)[1].astype(float)


def between(new: Array, old: Array, values: Array) -> Array:
    """A function known at some points, as the mean where they are equal, at others."""
    points, position = np.unique(old, return_inverse=True)
    return np.interp(new, points, np.bincount(position, values) / np.bincount(position))


def transformation_errors(phi: list[Array], psi: Array, truth: Transformations) -> tuple[float, float, float]:
    """Relative errors of phi and psi on fresh rows, and the share of the variance of psi that the sum of phi explains.

    Both have mean 0 there, and psi the sign of the truth.
    """
    sign = np.sign(np.mean((psi - psi.mean()) * truth.psi))
    psi, phi = sign * (psi - psi.mean()), [sign * (part - part.mean()) for part in phi]
    wrong = sum(np.mean((part - true + true.mean()) ** 2) for part, true in zip(phi, truth.phi, strict=True))
    true_psi = truth.psi - truth.psi.mean()
    return (
        float(np.sqrt(wrong / sum(np.var(true) for true in truth.phi))),
        float(np.sqrt(np.mean((psi - true_psi) ** 2) / np.var(true_psi))),
        float(1 - np.mean((psi - sum(phi)) ** 2) / np.var(psi)),
    )


Way = Callable[[Transformations, Transformations, int], tuple[list[Array], Array]]
Draw = Callable[[int, int], Transformations]


def timed_transformations(way: Way, draw: Draw, n: int) -> tuple[dict[str, object], float]:
    """Medians over the draws, the worst in brackets, and CPU seconds of one fit."""
    results, spent = [], 0.0
    for seed in range(ACE_SEED, ACE_SEED + REPEATS):
        train, fresh = draw(n, seed), draw(FRESH_ROWS, seed + 1_000)
        start = time.process_time()
        phi, psi = way(train, fresh, seed)
        spent += (time.process_time() - start) / REPEATS
        results.append(transformation_errors(phi, psi, fresh))
    phi_error, psi_error, explained = np.transpose(results)
    shown: dict[str, object] = {
        "phi_error": f"{np.median(phi_error):.4g} ({max(phi_error):.4g})",
        "psi_error": f"{np.median(psi_error):.4g} ({max(psi_error):.4g})",
        "explained": f"{np.median(explained):.4g} ({min(explained):.4g})",
    }
    return shown, spent


def run_ace() -> None:
    laws = {"pairwise": (paper_rows, 1 / 4), "gaussian": (gaussian_rows, 3 / 4), "labels": (label_rows, 0.44)}
    for law, (draw, explained) in laws.items():
        for n in (1_000, 10_000):
            shown, ours = timed_transformations(our_transformations, draw, n)
            row(f"{law} law, transformations, n = {n}", **shown, truth=explained, cpu_s=ours)
            if find_spec("ace") is not None:
                shown, spent = timed_transformations(ace_transformations, draw, n)
                row("  ace", **shown, truth=explained, cpu_s=spent, times=spent / ours)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="what to run; everything when none is named")
    parser.add_argument("--epochs", type=int, default=100, help="of the published recipes")
    parser.add_argument("--runs", type=int, default=3, help="of the published recipes, a minute each")
    options = parser.parse_args()
    torch.set_num_threads(1)
    every: dict[str, Callable[[], None]] = {
        "complete": lambda: run_complete(options.epochs, options.runs),
        "pairwise": lambda: run_paper("pairwise", "pairwise", options.epochs, options.runs),
        "gain": run_gain,
        "ace": run_ace,
    }
    unknown = set(options.names) - set(every)
    if unknown:
        parser.error(f"there is no {sorted(unknown)}; the names are {list(every)}")
    for name in options.names or every:
        every[name]()


if __name__ == "__main__":
    main()
