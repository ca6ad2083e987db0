"""Missing views: one model for every set of views, beside models trained for one set, and peers, in one table.

    OMP_NUM_THREADS=1 python benchmarks/missing_views.py [NAME ...]

Names: views, halves. Both data sets are downloaded on first use.

views: multiple features, 2,000 digits in six views. Five splits in 1,500 rows to train on and 500 to test on. Every
training row misses a random half of its views; every test row is seen through eight sets of views. Models for one set
are trained twice: on the training rows that have all of its views (none has more than three), and on the same rows with
nothing missing, as if there were no problem. Boosted trees and featgeo's own classifier take long for many columns:
they are trained for one set on the first split only, and only for sets of at most 150 columns. The peer is cca-zoo (pip
install cca-zoo==4.0.1), left out where it is not installed. Its models take new rows that miss views, but no such
training rows, so it gets the means of the columns there, and once nothing missing at all. Of MCCA, GCCA, kernel GCCA
and GFA the last did best: the narrowest view limits MCCA and GCCA to six dimensions.

halves: MNIST, each image cut into a left and a right half. Networks for the left half, for the right half and for both,
with the library's trunk, rates, batches and number of epochs, but trained by cross-entropy for their input alone. With
eight epochs the three networks take about 90 CPU seconds in all, on one thread.

Seeds and splits are from 500 on; nothing was chosen on them. Before they were looked at, cca-zoo's model and options
were chosen on the test rows of split 0, in its favour.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import nn

from featgeo import FeatureClassifier, MultimodalDecomposition, Training, datasets
from featgeo.features import networks
from featgeo.learning.batches import Batches
from featgeo.learning.train import one_cycle

SEED = 500
SPLITS = 5
SIZES = (1, 2, 2, 3, 3, 4, 5, 6)  # of the sets of views that test rows are seen through
PRESENT = 3  # views that a training row has
SLOW_COLUMNS = 150
EPOCHS = 8  # what `Training` chooses for so many rows
Array = np.ndarray
Views = Mapping[str, Array]


# --- multiple features, half of the views missing --------------------------------------------------------------------


def patterns(names: Sequence[str], seed: int) -> list[tuple[str, ...]]:
    """Different sets of views, of the sizes above, in the order of `names`."""
    rng = np.random.default_rng(seed)
    drawn: list[tuple[str, ...]] = []
    for size in SIZES:
        while (pattern := tuple(names[i] for i in np.sort(rng.permutation(len(names))[:size]))) in drawn:
            pass
        drawn.append(pattern)
    return drawn


def with_missing(views: Views, seed: int) -> dict[str, Array]:
    """The same rows, each with a random half of its views all NaN."""
    rng = np.random.default_rng([seed, 1])
    n = len(next(iter(views.values())))
    present = rng.permuted(np.tile(np.arange(len(views)) < PRESENT, (n, 1)), axis=1)
    return {name: np.where(present[:, [i]], view, np.nan) for i, (name, view) in enumerate(views.items())}


def side_by_side(views: Views, pattern: Sequence[str]) -> Array:
    return np.hstack([views[name] for name in pattern])


def unseen(views: Views, pattern: Sequence[str]) -> dict[str, Array]:
    """Test rows of which only the views of a pattern are seen; the others are all NaN."""
    return {name: view if name in pattern else np.full_like(view, np.nan) for name, view in views.items()}


class Split:
    """One split of the rows; the training rows with nothing missing and with half of the views missing."""

    def __init__(self, seed: int, is_first: bool) -> None:
        views, labels = datasets.multiple_features()
        self.seed, self.is_first = seed, is_first
        rows, test_rows = train_test_split(np.arange(len(labels)), train_size=1500, stratify=labels, random_state=seed)
        self.y, self.y_test = labels[rows], labels[test_rows]
        self.complete = {name: view[rows] for name, view in views.items()}
        self.train = with_missing(self.complete, seed)
        self.test = {name: view[test_rows] for name, view in views.items()}

    def accuracy(self, predicted: Array) -> float:
        """Share of the test rows whose label this is."""
        return float(np.mean(predicted == self.y_test))


Predict = Callable[[tuple[str, ...]], Array | None]  # labels of the test rows of which these views are seen


def ours(split: Split) -> Predict:
    model = MultimodalDecomposition(max_order=1, random_state=split.seed).fit(split.train, split.y)
    return lambda pattern: model.given(**{name: split.test[name] for name in pattern}).map()


def one_each(make: Callable[[], Any], split: Split, train: Views, fast: bool = True) -> Predict:
    """A model for each set of views, trained on the rows that have all of them."""

    def predict(pattern: tuple[str, ...]) -> Array | None:
        columns = side_by_side(train, pattern)
        rows = ~np.isnan(columns).any(axis=1)
        if not rows.any() or (not fast and (columns.shape[1] > SLOW_COLUMNS or not split.is_first)):
            return None
        return make().fit(columns[rows], split.y[rows]).predict(side_by_side(split.test, pattern))

    return predict


def trees_on_all_columns(split: Split, impute: bool) -> Predict:
    """One model of boosted trees on the columns of all views; what is missing is the column's mean, or stays NaN."""
    columns = side_by_side(split.train, list(split.train))
    means = np.nanmean(columns, axis=0)

    def filled(values: Array) -> Array:
        return np.where(np.isnan(values), means, values) if impute else values

    model = HistGradientBoostingClassifier(random_state=split.seed).fit(filled(columns), split.y)
    return lambda pattern: model.predict(filled(side_by_side(unseen(split.test, pattern), list(split.test))))


def latent_factors(split: Split, train: Views) -> Predict:
    """cca-zoo: a classifier of the latent factors, whose posterior means come from any views."""
    from cca_zoo.probabilistic import GFA

    scalers = {name: StandardScaler().fit(view) for name, view in train.items()}  # it leaves NaN out
    scaled = [np.nan_to_num(scalers[name].transform(view)) for name, view in train.items()]
    # Draws from the posterior, which hold a factor of every row, would take gigabytes; only their means are used.
    factors = GFA(100, max_iter=300, n_posterior_samples=20, random_state=split.seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # it asks for a thousand quiet iterations
        factors.fit(scaled)
    model = LogisticRegression(max_iter=2000).fit(factors.posterior_mean(scaled), split.y)

    def predict(pattern: tuple[str, ...]) -> Array:
        seen = [scalers[name].transform(view) if name in pattern else None for name, view in split.test.items()]
        labels: Array = model.predict(factors.posterior_mean(seen))
        return labels

    return predict


def logistic() -> Any:
    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000))


def methods(split: Split, ours_too: bool) -> Iterator[tuple[str, Callable[[], Predict]]]:
    """Names of methods and what trains them."""
    seed = split.seed
    if ours_too:
        yield "featgeo", lambda: ours(split)
    kinds: dict[str, tuple[Callable[[], Any], bool]] = {
        "logistic": (logistic, True),
        "trees": (lambda: HistGradientBoostingClassifier(random_state=seed), False),
        "FeatureClassifier": (lambda: FeatureClassifier(random_state=seed), False),
    }
    for where, train in {"rows that have it": split.train, "nothing missing": split.complete}.items():
        for kind, (make, fast) in kinds.items():
            yield f"{kind}, {where}", lambda make=make, train=train, fast=fast: one_each(make, split, train, fast)
    yield "trees on all columns, means", lambda: trees_on_all_columns(split, impute=True)
    yield "trees on all columns, NaN", lambda: trees_on_all_columns(split, impute=False)
    try:
        import cca_zoo  # noqa: F401
    except ImportError:
        return
    yield "cca-zoo, means", lambda: latent_factors(split, split.train)
    yield "cca-zoo, nothing missing", lambda: latent_factors(split, split.complete)


def run_views(first: int, n_splits: int, ours_too: bool) -> None:
    shown = patterns(list(datasets.multiple_features().views), first)
    accuracies: dict[str, dict[tuple[str, ...], list[float]]] = defaultdict(lambda: defaultdict(list))
    seconds: dict[str, float] = defaultdict(float)
    for seed in range(first, first + n_splits):
        split = Split(seed, is_first=seed == first)
        for name, train in methods(split, ours_too):
            start = time.process_time()
            predict = train()
            for pattern in shown:
                if (predicted := predict(pattern)) is not None:
                    accuracies[name][pattern].append(split.accuracy(predicted))
            seconds[name] += time.process_time() - start
        print(f"split {seed} done", flush=True)
    for i, pattern in enumerate(shown):
        print(f"{chr(ord('a') + i)}: {'+'.join(pattern)}")
    heads = [*(chr(ord("a") + i) for i in range(len(shown))), "≤3", "all"]
    print(f"{'accuracy, mean of the splits':<40}", *(f"{head:>6}" for head in heads), "  cpu_s a split")
    few = [pattern for pattern in shown if len(pattern) <= PRESENT]
    for name, found in accuracies.items():
        means = {pattern: float(np.mean(found[pattern])) for pattern in shown if pattern in found}
        # No mean where a set is left out: it could not be compared with the other means of its column.
        overall = [np.mean([means[p] for p in group]) if set(group) <= set(means) else None for group in (few, shown)]
        cells = [*(means.get(pattern) for pattern in shown), *overall]
        line = (f"{'-' if cell is None else format(cell, '.3f'):>6}" for cell in cells)
        splits = max(len(values) for values in found.values())
        print(f"{name:<40}", *line, f"  {seconds[name] / splits:.1f}", flush=True)


# --- MNIST, left and right halves ------------------------------------------------------------------------------------


class Alone(nn.Module):
    """The library's trunk for each input, side by side, and a linear layer to ten classes."""

    def __init__(self, inputs: Mapping[str, torch.Tensor]) -> None:
        super().__init__()
        self.trunks = nn.ModuleDict({name: networks.image(1, *images.shape[1:]) for name, images in inputs.items()})
        with torch.no_grad():
            features = sum(self.trunks[name](images[:1]).shape[1] for name, images in inputs.items())
        self.head = nn.Linear(features, 10)

    def forward(self, inputs: Mapping[str, torch.Tensor]) -> torch.Tensor:
        """Logits of a batch of rows, (n, 10)."""
        logits: torch.Tensor = self.head(torch.cat([trunk(inputs[name]) for name, trunk in self.trunks.items()], dim=1))
        return logits


def alone(inputs: Mapping[str, torch.Tensor], labels: torch.Tensor, epochs: int, seed: int) -> Alone:
    """Train a network for these inputs alone, with the rates, batches and rows that `Training` would choose."""
    torch.manual_seed(seed)
    model = Alone(inputs)
    for name, images in inputs.items():
        model.trunks[name].fit_input_scale(images[:4096])
    n_parameters = sum(parameter.numel() for parameter in model.parameters())
    options = Training(max_epochs=epochs)
    batches = Batches.in_memory({**inputs, "y": labels}, options, seed, n_parameters)
    rate, n_steps = options.rate(n_parameters), epochs * batches.n_batches
    optimizer = torch.optim.AdamW(model.parameters(), rate, weight_decay=options.weight_decay, fused=True)
    step = 0
    for epoch in range(epochs):
        for batch in batches.epoch(epoch):
            loss = nn.functional.cross_entropy(model(batch), batch["y"])
            for group in optimizer.param_groups:
                group["lr"] = rate * one_cycle(step / n_steps)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
    return model.eval()


def run_halves(seed: int, epochs: int, ours_too: bool) -> None:
    images, labels, test_images, test_labels = datasets.mnist()
    train = {"left": images[:, :, :14].copy(), "right": images[:, :, 14:].copy()}
    test = {"left": test_images[:, :, :14].copy(), "right": test_images[:, :, 14:].copy()}
    pairs = (("left",), ("right",), ("left", "right"))
    for seen in pairs:
        start = time.process_time()
        inputs, test_inputs = ({name: torch.from_numpy(part[name]) for name in seen} for part in (train, test))
        model = alone(inputs, torch.from_numpy(labels).long(), epochs, seed)
        spent = time.process_time() - start
        with torch.no_grad():
            accuracy = float(np.mean(model(test_inputs).argmax(dim=1).numpy() == test_labels))
        print(f"halves, {'+'.join(seen)}, network alone: accuracy {accuracy:.4f}  cpu_s {spent:.0f}", flush=True)
    if ours_too:
        start = time.process_time()
        training = Training(max_epochs=epochs)
        joint = MultimodalDecomposition(9, 9, spaces="image", training=training, random_state=seed).fit(train, labels)
        spent = time.process_time() - start
        for seen in pairs:
            accuracy = float(np.mean(joint.given(**{name: test[name] for name in seen}).map() == test_labels))
            print(f"halves, {'+'.join(seen)}, featgeo: accuracy {accuracy:.4f}  cpu_s of the one fit {spent:.0f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="what to run; everything when none is named")
    parser.add_argument("--seed", type=int, default=SEED, help="of the first split; below 50 to try things out")
    parser.add_argument("--splits", type=int, default=SPLITS)
    parser.add_argument("--epochs", type=int, default=EPOCHS, help="of all networks")
    parser.add_argument("--peers", action="store_true", help="leave featgeo's joint model out")
    options = parser.parse_args()
    torch.set_num_threads(1)
    every: dict[str, Callable[[], None]] = {
        "views": lambda: run_views(options.seed, options.splits, not options.peers),
        "halves": lambda: run_halves(options.seed, options.epochs, not options.peers),
    }
    unknown = set(options.names) - set(every)
    if unknown:
        parser.error(f"there is no {sorted(unknown)}; the names are {list(every)}")
    for name in options.names or every:
        every[name]()


if __name__ == "__main__":
    main()
