"""Spaces of boosted trees: for tables of several columns, where sums and kernels miss interactions.

Given functions t(Y) of the other variable, the best function of X for each is its conditional expectation E[t(Y)|X]
(this is one half-step of alternating conditional expectations). Trees estimate it from all columns at once, with labels
and missing values as they are.

Trees adapt to the rows they are grown on, so what they say about those rows is too good. The space is therefore grown
once for each fold without that fold, and features of the rows of the fit come from the trees that never saw them. New
rows meet the average over some of the folds where there is a single function, since averages of trees are better than
single ones; else trees grown on all rows, the fewer for each function the more there are. So predictions take not much
longer than boosting's.

Boosted trees as tensors of their nodes: what is saved, exported and run on a GPU.

All rows go down all trees at once, one step for each level, by looking up where they stand. On the CPU scikit-learn's
own loop over the same nodes is several times faster, since each row there takes no more steps than it needs.

Functions of a single index: a direction of many columns, and a curve along it.

Where many columns act through one sum of them, a conditional expectation is  E[t(Y)|x] = h(b.x).  Least squares finds b
up to its length for any curve h where columns are elliptical, such as Gaussian ones (Brillinger 1982), and nearly so
for many others. Along the index b.x only a function of one number is left to learn, which takes few rows.

The curve is one of a few, by the Bayesian information criterion: cubic splines of some sizes, or a step
a + b tanh((z - c) / s), which is what evidence for one of two hidden causes adds up to: the true mode of two Gaussians
of the same covariance, and of the paper's sequences (Prop. seq).

A direction that was fitted to a row explains some of its noise, and does so along a line: judged on the same rows, a
line would look better than the true curve. So the curve is fitted to indices of rows by directions that never saw them.

Means of given functions for each label of a column: what labels of any number say, in linear time.

The best function of a label l for a target t is its conditional mean E[t|l]. With few rows of a label its average is
mostly noise, so it is shrunk towards the mean mu of all rows, as far as the rows tell. With n_l rows and the sum S_l,

    m_l = (S_l + kappa mu) / (n_l + kappa),    kappa = variance within labels / variance between labels,

the posterior mean where labels have normal means of their own. Both variances come from the analysis of variance; kappa
is infinite where labels differ no more than noise would. A label that was not seen has mu.

The average of a label contains the row itself, and says too much about it. So the rows that means are learned from get
those of the folds without them: *cross-fitted*. Sums are kept by fold, and leaving one out is a subtraction. How
frequent a label is goes with it, as log(1 + n_l): that may matter, too, and trees can trust the means of frequent ones
more. It says nothing of a row's own target, so it counts all rows: leaving some out would make labels rarer than new
rows see them, and trees learn sharp steps in it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import torch
from scipy.interpolate import make_lsq_spline
from scipy.optimize import least_squares
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.ensemble._hist_gradient_boosting.common import PREDICTOR_RECORD_DTYPE
from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor
from sklearn.linear_model import LinearRegression
from sklearn.utils._openmp_helpers import _openmp_effective_n_threads
from torch import Tensor

from featgeo.features.columns import UNKNOWN
from featgeo.features.space import Fields, Space, interpolated
from featgeo.features.spaces import ROWS_A_LABEL, Encoding, has_many
from featgeo.features.variables import Rows, Variable, copies_of, deal
from featgeo.geometry.validation import Array
from featgeo.schema import saved
from featgeo.watch import tell

MOST_LABELS = 256  # bits of a set, as scikit-learn has them


@saved
@dataclass(eq=False, repr=False)
class Forest(Fields):
    """A sum of trees.

    Attributes:
        n_inputs: How many columns are read.
        start: The value before any tree.
        roots: Where each tree begins among the nodes, (trees,).
        nodes: Those of all trees one after the other, parents before their children, (nodes, 7). The column that a node
            asks for; where rows go then and where they go else, leaves to themselves; which set of labels goes left, -1
            where numbers do; up to where these go left; whether rows do so that miss it; and what a leaf says.
        sets: Labels by their codes, one bit each, (sets, 8 words of 32 bits).
    """

    n_inputs: int
    start: float
    roots: np.ndarray
    nodes: Array
    sets: np.ndarray

    def __post_init__(self) -> None:
        self.feature, self.left, self.right, self.in_set = self.nodes[:, :4].T.astype(np.int64)
        self.threshold, self.missing_left, self.value = self.nodes[:, 4], self.nodes[:, 5] != 0, self.nodes[:, 6]
        self._check()
        self.bits = np.unpackbits(self.sets.view(np.uint8), axis=1, bitorder="little").astype(bool)
        self.depth, at = 0, self.roots
        while len(at := at[self.left[at] != at]):
            at = np.unique([self.left[at], self.right[at]])
            self.depth += 1

    def _check(self) -> None:
        """Nodes point forwards inside of their tree, to sets that are there: scikit-learn's loop does not look."""
        n, own = len(self.nodes), np.arange(len(self.nodes))
        sizes = np.diff(self.roots, append=n)
        types = [part.dtype.name for part in (self.roots, self.nodes, self.sets)]
        good = types == ["int64", "float64", "uint32"] and self.nodes.shape[1:] == (7,) and self.sets.shape[1:] == (8,)
        if good and len(sizes) and self.roots[0] == 0 and (sizes > 0).all():
            inner, end = self.left != own, np.repeat(self.roots + sizes, sizes)
            inside = [np.where(inner, (side > own) & (side < end), side == own) for side in (self.left, self.right)]
            columns = (self.feature >= 0) & (self.feature < self.n_inputs)
            if np.all([*inside, columns, (self.in_set >= -1) & (self.in_set < len(self.sets))]):
                return
        raise ValueError("nodes of trees that do not go together")

    @classmethod
    def of(cls, model: HistGradientBoostingRegressor) -> Forest | None:
        """The trees of a fitted model that reads labels as codes; None for kinds of trees that are not sums."""
        encoder = None if model._preprocessor is None else model._preprocessor.named_transformers_["encoder"]
        labels = [] if encoder is None else [codes[~np.isnan(codes)] for codes in encoder.categories_]
        if model.loss != "squared_error" or any(not np.isin(codes, np.arange(MOST_LABELS)).all() for codes in labels):
            return None
        is_label = np.zeros(model.n_features_in_, dtype=bool) if encoder is None else model.is_categorical_
        column = np.argsort(~is_label, kind="stable")  # scikit-learn puts labels first
        trees = [tree for (tree,) in model._predictors]
        nodes = np.concatenate([tree.nodes for tree in trees])
        ranks = np.concatenate([tree.raw_left_cat_bitsets for tree in trees]).view(np.uint8)
        sizes = np.array([(len(tree.nodes), len(tree.raw_left_cat_bitsets)) for tree in trees])
        (roots, first_set) = (np.cumsum(sizes, axis=0) - sizes).T
        root, is_leaf = np.repeat(roots, sizes[:, 0]), nodes["is_leaf"] != 0
        left, right = (np.where(is_leaf, np.arange(len(nodes)), nodes[side] + root) for side in ("left", "right"))
        asks_set = nodes["is_categorical"] != 0
        in_set = np.where(asks_set, nodes["bitset_idx"] + np.repeat(first_set, sizes[:, 0]), -1)
        sets = np.zeros((len(ranks), MOST_LABELS), dtype=bool)
        for at, node in zip(in_set[asks_set], nodes[asks_set], strict=True):  # what a model never saw is missing to it
            codes = labels[node["feature_idx"]].astype(int)
            sets[at] = node["missing_go_to_left"]
            sets[at, codes] = np.unpackbits(ranks[at], bitorder="little")[: len(codes)]
        feature = np.where(is_leaf, 0, column[nodes["feature_idx"]])
        others = (nodes["num_threshold"], nodes["missing_go_to_left"], nodes["value"])
        return cls(
            model.n_features_in_,
            float(model._baseline_prediction.item()),
            roots,
            np.column_stack([feature, left, right, in_set, *others]).astype(np.float64),
            np.packbits(sets, axis=1, bitorder="little").view(np.uint32),
        )

    def forward(self, inputs: Tensor) -> Tensor:
        """Predictions, (n,), from columns of numbers and of codes, (n, d)."""
        if inputs.shape[1] != self.n_inputs:
            raise ValueError(f"Trees of {self.n_inputs} columns cannot read {inputs.shape[1]}.")
        if inputs.device.type == "cpu" and not torch.compiler.is_exporting():
            return torch.from_numpy(self._walked(inputs.numpy()))
        return self.tensor("start") + self.tensor("value")[self._leaves(inputs)].sum(dim=1)

    def _leaves(self, inputs: Tensor) -> Tensor:
        """Where each row ends in each tree, (n, trees)."""
        node = self.tensor("roots").expand(inputs.shape[0], -1)
        for _ in range(self.depth):
            x = inputs.gather(1, self.tensor("feature")[node])
            is_missing, goes_left = torch.isnan(x), x <= self.tensor("threshold")[node]
            if len(self.sets):
                at, code = self.tensor("in_set")[node], x.nan_to_num().clamp(0, MOST_LABELS - 1).long()
                in_set = self.tensor("bits").flatten()[at.clamp(min=0) * MOST_LABELS + code] & ~is_missing
                goes_left = ((at < 0) & goes_left) | ((at >= 0) & in_set)
            goes_left = goes_left | (is_missing & self.tensor("missing_left")[node])
            node = torch.where(goes_left, self.tensor("left")[node], self.tensor("right")[node])
        return node

    def _walked(self, inputs: Array) -> Array:
        known = np.full((inputs.shape[1], 8), 2**32 - 1, dtype=np.uint32)
        columns, threads = np.arange(inputs.shape[1], dtype=np.uint32), _openmp_effective_n_threads()
        result = np.full(len(inputs), self.start)
        for tree in self._trees:
            result += tree.predict(inputs, known, columns, threads)
        return result

    @cached_property
    def _trees(self) -> list[Any]:
        """The nodes as scikit-learn's loop reads them."""
        nodes = np.zeros(len(self.value), dtype=PREDICTOR_RECORD_DTYPE)
        root = np.repeat(self.roots, np.diff(self.roots, append=len(nodes)))
        nodes["left"], nodes["right"], nodes["value"] = self.left - root, self.right - root, self.value
        nodes["is_leaf"] = self.left == np.arange(len(nodes))
        nodes["feature_idx"], nodes["num_threshold"] = self.feature, self.threshold
        nodes["missing_go_to_left"], nodes["is_categorical"] = self.missing_left, self.in_set >= 0
        nodes["bitset_idx"] = self.in_set.clip(min=0)
        return [TreePredictor(part, self.sets, self.sets) for part in np.split(nodes, self.roots[1:])]


PARTS = 5  # each is left out once, and sees the direction of the others
RIDGES = (1e-9, 1e-6, 1e-4, 1e-2, 1.0)  # of the direction, as a share of the mean variance of a column
POINTS = 1000  # of the curve: means of as many groups of neighbours along the index
KNOTS = (4, 7, 12)
STEP_CENTRES = np.linspace(-2, 2, 9)  # where the search for a step starts, in standard deviations of the index
STEP_WIDTHS = np.array([0.1, 0.2, 0.4, 0.8, 1.6, 3.2])
STEP_PARAMETERS = 4


@saved
@dataclass(eq=False, repr=False)
class IndexRegressor(Fields):
    """A curve along one direction of the columns.

    Attributes:
        centre: Means of the columns, (d,).
        direction: b, (d,).
        at: Points along the index, (m,), ascending; predictions are constant beyond the outermost.
        curve: The prediction at each point, (m,).
    """

    centre: Array
    direction: Array
    at: Array
    curve: Array

    @classmethod
    def fit(cls, values: Array, target: Array) -> IndexRegressor:
        """Find the direction by least squares, then the curve.

        Args:
            values: Columns of numbers, (n, d).
            target: Shape (n,).
        """
        centre = values.mean(axis=0)
        part = deal(len(values), PARTS, 0, copies_of(values, target[:, None]))
        direction, index = _direction(values - centre, target - target.mean(), part)
        return cls(centre, direction, *_curve(index, target))

    def forward(self, inputs: Tensor) -> Tensor:
        """The curve at the index of each row, (n,)."""
        index = (inputs - self.tensor("centre")) @ self.tensor("direction")
        return interpolated(index[:, None], self.tensor("at")[None], self.tensor("curve")[None])[:, 0]


def _direction(values: Array, target: Array, part: np.ndarray) -> tuple[Array, Array]:
    """The direction of least squares, (d,), and the index of each row by directions fitted without it, (n,).

    Both are centred. The ridge is the one whose lines fare best on the rows left out.
    """
    n = len(values)
    rows = [np.flatnonzero(part == i) for i in range(part.max() + 1)]
    grams = np.array([values[own].T @ values[own] for own in rows])
    products = np.array([values[own].T @ target[own] for own in rows])
    gram, product = grams.sum(axis=0), products.sum(axis=0)
    indices = np.zeros((n, len(RIDGES)))
    for own, own_gram, own_product in zip(rows, grams, products, strict=True):
        if len(rows) > 1:
            indices[own] = values[own] @ _lines(gram - own_gram, product - own_product)
    best = int(np.argmin(np.square(target[:, None] - indices).sum(axis=0)))
    return _lines(gram, product)[:, best], indices[:, best]


def _lines(gram: Array, product: Array) -> Array:
    """Least squares for each ridge, (d, number of ridges)."""
    energies, axes = np.linalg.eigh(gram)
    scale = max(float(energies.mean()), np.finfo(np.float64).tiny)
    lines: Array = axes @ ((axes.T @ product)[:, None] / (energies.clip(min=0)[:, None] + scale * np.array(RIDGES)))
    return lines


def _curve(index: Array, target: Array) -> tuple[Array, Array]:
    """Points along the index, (m,), and the best curve at them, (m,)."""
    n = len(index)
    order = np.argsort(index, kind="stable")
    starts = np.linspace(0, n, min(POINTS, n), endpoint=False).astype(int)
    weight = np.diff(np.append(starts, n)).astype(np.float64)
    at, means = (np.add.reduceat(z[order], starts) / weight for z in (index, target))
    at = np.maximum.accumulate(at)  # means of equal values may differ by rounding
    mean = float(np.average(target))
    spread = np.sqrt(np.average(np.square(at), weights=weight))
    if at[-1] - at[0] <= 1e-9 * spread or spread == 0:  # no index to follow
        return at[:1], np.array([mean])
    within = float(np.square(target).sum() - (weight * np.square(means)).sum())  # no curve explains this
    floor = 1e-12 * float(np.square(target - mean).sum()) + np.finfo(np.float64).tiny

    def criterion(curve: Array, parameters: int) -> float:
        error = max(within + float((weight * np.square(means - curve)).sum()), floor)
        return float(n * np.log(error) + parameters * np.log(n))

    curves = [(_step(at, means, weight), STEP_PARAMETERS), *_splines(at, means, weight)]
    return at, min(curves, key=lambda pair: criterion(*pair))[0]


def _step(at: Array, means: Array, weight: Array) -> Array:
    """The best a + b tanh((z - c) / s) at the points, (m,)."""
    share = weight / weight.sum()
    centred = at - share @ at
    z = centred / np.sqrt(share @ np.square(centred))
    mean = share @ means

    def fitted(c: Array, s: Array) -> Array:
        """The best a and b for each c and s, (..., m)."""
        step = np.tanh((z - c[..., None]) / s[..., None])
        step -= (step @ share)[..., None]
        slope = step @ (share * (means - mean)) / np.maximum(np.square(step) @ share, np.finfo(np.float64).tiny)
        return mean + slope[..., None] * step

    def residuals(parameters: Array) -> Array:
        return np.sqrt(share) * (means - fitted(parameters[0], np.exp(parameters[1])))

    c, s = (grid.ravel() for grid in np.meshgrid(STEP_CENTRES, STEP_WIDTHS))
    best = np.argmin(np.square(means - fitted(c, s)) @ share)
    widths = np.log(STEP_WIDTHS[[0, -1]]) + np.array([-0.1, 0.5])  # a little beyond where the search starts
    bounds = ([STEP_CENTRES[0] - 1, widths[0]], [STEP_CENTRES[-1] + 1, widths[1]])
    found = least_squares(residuals, [c[best], np.log(s[best])], bounds=bounds, max_nfev=20)
    return fitted(found.x[0], np.exp(found.x[1]))


def _splines(at: Array, means: Array, weight: Array) -> Iterator[tuple[Array, int]]:
    """Cubic splines of each size that the points have room for, (m,), with their number of parameters."""
    for size in KNOTS:
        knots = np.unique(np.quantile(at, np.linspace(0, 1, size)))
        if len(knots) == size and len(at) > 2 * (size + 2):
            padded = np.pad(knots, 3, mode="edge")
            yield make_lsq_spline(at, means, padded, w=np.sqrt(weight))(at), size + 2


N_FOLDS = 5
SMALLEST_VARIANCE = 1e-6  # of a direction of the features, relative to the largest: below, it is rounding


def shrunken(counts: Array, sums: Array, squares: Array) -> Array:
    """Shrunken means m_l of targets, (labels + 1, k); the last row is for unknown labels.

    Args:
        counts: Rows of each label, (labels,).
        sums: Sums of the targets over them, (labels, k).
        squares: Sums of the squares of the targets over all rows, (k,).
    """
    overall, kappa = _prior(counts, sums, squares)
    n_l = counts[:, None]
    averages = sums / n_l.clip(min=1)
    trust = np.divide(n_l, n_l + kappa, out=np.zeros_like(sums), where=(n_l > 0) & np.isfinite(kappa))
    return np.vstack([overall + trust * (averages - overall), overall])


def _prior(counts: Array, sums: Array, squares: Array) -> tuple[Array, Array]:
    """Mean of all rows, (k,), and how many rows it is worth beside the average of a label, (k,).

    With one row a label, or one label, nothing tells the variances apart, and the mean of all is all.
    """
    n, seen = counts.sum(), counts > 0
    overall, n_labels = sums.sum(axis=0) / max(n, 1), int(seen.sum())
    if n_labels < 2 or n <= n_labels:
        return overall, np.full(len(overall), np.inf)
    explained = (sums[seen] ** 2 / counts[seen][:, None]).sum(axis=0)
    within = (squares - explained).clip(min=0) / (n - n_labels)
    between = explained - n * overall**2 - (n_labels - 1) * within
    between = between / (n - (counts**2).sum() / n)
    return overall, np.divide(within, between, out=np.full(len(overall), np.inf), where=between > 0)


def cross_fitted(codes: np.ndarray, targets: Array, n_labels: int, fold_of_row: np.ndarray) -> tuple[Array, Array]:
    """What is known of each label, (labels + 1, 1 + k), and what each row is told of its own, (n, 1 + k).

    That is log(1 + n_l), then the shrunken means: of all rows, and of the folds without the row.

    Args:
        codes: Label of each row, (n,); rows of an unknown one count for none.
        targets: Shape (n, k).
        n_labels: How many labels there are.
        fold_of_row: Shape (n,).
    """

    def totals(rows: np.ndarray) -> tuple[Array, Array, Array]:
        label, z = codes[rows], targets[rows]
        counts = np.bincount(label, minlength=n_labels).astype(np.float64)
        sums = [np.bincount(label, t, minlength=n_labels) for t in z.T]
        return counts, np.stack(sums, axis=1) if sums else np.empty((n_labels, 0)), (z**2).sum(axis=0)

    known = codes != UNKNOWN
    whole = totals(known)
    table = np.hstack([np.log1p(np.append(whole[0], 0.0))[:, None], shrunken(*whole)])
    values = table[codes]
    for fold in np.unique(fold_of_row):
        own = fold_of_row == fold
        left = (total - part for total, part in zip(whole, totals(own & known), strict=True))
        values[own, 1:] = shrunken(*left)[codes[own]]
    return table, values


@saved
@dataclass(eq=False, repr=False)
class LabelMeans(Fields):
    """Means of targets for the labels of each column that has many.

    Attributes:
        columns: Positions of these columns among those of labels.
        tables: For each of them what is known of each label, (labels + 1, 1 + k).
    """

    columns: tuple[int, ...]
    tables: tuple[Array, ...]

    @classmethod
    def fit(cls, variable: Variable, codes: np.ndarray, targets: Array, seed: int) -> tuple[LabelMeans, Array]:
        """Learn the means, and give what its own rows read, by folds that left them out, (n, columns (1 + k)).

        Args:
            variable: Tells how many labels each column has.
            codes: Labels of the rows, (n, columns of labels).
            targets: Shape (n, k).
            seed: Of the folds.
        """
        fold_of_row = np.random.default_rng(seed).permutation(len(codes)) % N_FOLDS
        columns, tables, values = columns_of_many_labels(variable), [], [np.empty((len(codes), 0))]
        for j in columns:
            n_labels = len(variable.labels[j].categories) + variable.labels[j].missing
            table, of_rows = cross_fitted(codes[:, j], targets, n_labels, fold_of_row)
            tables.append(table)
            values.append(of_rows)
        return cls(columns, tuple(tables)), np.hstack(values)

    def forward(self, codes: Tensor) -> Tensor:
        """What rows with these labels read, (n, columns (1 + k)): the rows of each label, and its means of targets."""
        blocks = [codes[:, :0].double()]
        for i, (j, table) in enumerate(zip(self.columns, self.tables, strict=True)):
            code, unknown = codes[:, j], len(table) - 1
            blocks.append(self.tensor("tables", i)[torch.where((code >= 0) & (code < unknown), code, unknown)])
        return torch.cat(blocks, dim=1)

    def read_by(self, target: int) -> list[int]:
        """Which of these a regressor of one target reads: the rows behind the means of it, and these."""
        widths = [table.shape[1] for table in self.tables]
        return [start + j for start in np.cumsum([0, *widths[:-1]])[: len(widths)] for j in (0, 1 + target)]


def columns_of_many_labels(variable: Variable) -> tuple[int, ...]:
    """Positions, among the columns of labels, of those with more labels than can each have an indicator."""
    return tuple(j for j, column in enumerate(variable.labels) if has_many(column))


def rows_of_some_labels(rows: Rows, n_rows: int, seed: int) -> np.ndarray | None:
    """Positions of so many rows with, but for one, all or none of each label; None where labels are few enough for
    rows at random to show what each is like.

    Args:
        rows: All rows.
        n_rows: How many of them; of the column with the most labels.
        seed: Of the choice of labels.
    """
    sizes = {j: len(rows.variable.labels[j].categories) for j in columns_of_many_labels(rows.variable)}
    column = max(sizes, key=lambda j: sizes[j], default=None)
    if column is None or n_rows >= ROWS_A_LABEL * sizes[column]:
        return None
    place = np.random.default_rng(seed).permutation(sizes[column] + 2)  # missing and unknown ones have theirs
    return np.sort(np.argsort(place[rows.table.codes[:, column]], kind="stable")[:n_rows])


def told_apart(rows: Rows, features: Array, found: Array, most: int) -> Array:
    """The functions of another variable that labels of X, or what was already found, tell apart the most.

    Two rows that share a label are alike as far as the label says something: over such pairs, the covariance of
    whitened features of the other variable is that of their conditional means, without the noise of averages. Its
    eigenvectors are the modes of the label and the other variable, its eigenvalues their sigma^2.

    Args:
        rows: Rows of X.
        features: Functions of the other variable on the same rows, (n, d).
        found: Further functions of it, each times its own sigma, (n, k).
        most: How many functions at most.

    Returns:
        The strongest functions first, of mean 0 and unit variance, (n, k).
    """
    strong, unit = [found], _whitened(features)
    for j in columns_of_many_labels(rows.variable):
        energies, directions = np.linalg.eigh(_covariance_of_pairs(rows.table.codes[:, j], unit))
        kept = np.flatnonzero(energies > 0)[-most:]
        strong.append(unit @ (directions[:, kept] * np.sqrt(energies[kept].clip(max=1))))
    return _whitened(np.hstack(strong))[:, ::-1][:, :most]


def _whitened(features: Array) -> Array:
    """Uncorrelated functions of unit variance with the same span, those of the least variance first, (n, r)."""
    centred = features - features.mean(axis=0)
    variances, axes = np.linalg.eigh(centred.T @ centred / len(centred))
    kept = variances > SMALLEST_VARIANCE * max(variances.max(initial=0), np.finfo(np.float64).tiny)
    whitened: Array = centred @ (axes[:, kept] / np.sqrt(variances[kept]))
    return whitened


def _covariance_of_pairs(codes: np.ndarray, features: Array) -> Array:
    """Mean product of the features of two rows that share a label, each label weighted by its rows but one, (d, d)."""
    _, label, counts = np.unique(codes, return_inverse=True, return_counts=True)
    sums = np.stack([np.bincount(label, z) for z in features.T], axis=1)
    pairs = (sums.T / counts) @ sums - (features.T / counts[label]) @ features
    return pairs / max(len(codes) - len(counts), 1)


GROWN_CELLS = 24_000_000  # that all forests of a space are grown on, together: about 20 s of one core
# What predictions may cost: trees that a new row passes through for all functions together, and forests, of a hundred
# trees each, that are averaged where there is a single function.
MOST_TREES, FEWEST_TREES = 220, 20
AVERAGED = 3
FEWEST_GROWN = 2000  # rows of a forest, however many columns they have
MAX_CATEGORIES = 255  # what scikit-learn's trees can split as a set; columns with more are read by their means alone


@saved
@dataclass(eq=False, repr=False)
class Line(Fields):
    """A fitted linear regression."""

    weight: Array
    bias: float

    def forward(self, inputs: Tensor) -> Tensor:
        """Predictions, (n,)."""
        return inputs @ self.tensor("weight") + self.tensor("bias")


@saved
@dataclass(eq=False, repr=False)
class Foreign(Fields):
    """A fitted regressor of the user's own."""

    is_ours = False
    regressor: Regressor

    def forward(self, inputs: Tensor) -> Tensor:
        """Predictions, (n,)."""
        return torch.from_numpy(np.asarray(self.regressor.predict(inputs.cpu().numpy()))).to(inputs)


class Regressor(Protocol):
    """What scikit-learn calls so."""

    def predict(self, X: Any) -> Any:
        """Expectations of the target."""


def fitted(regressor: Any, inputs: Array, target: Array) -> Fields:
    """A copy of a regressor, fitted, as a module: by its numbers alone where they are all that there is to it."""
    if regressor is IndexRegressor:
        return IndexRegressor.fit(inputs, target)
    regressor = clone(regressor).fit(inputs, target)
    if type(regressor) is LinearRegression:
        return Line(regressor.coef_, float(regressor.intercept_))
    forest = Forest.of(regressor) if type(regressor) is HistGradientBoostingRegressor else None
    return Foreign(regressor) if forest is None else forest


@saved
@dataclass(eq=False, repr=False)
class Regressions(Fields):
    """Regressors of several targets.

    Attributes:
        models: One for each target.
        means: The means of the targets for labels of columns that have many; a regressor reads those of its own target
            besides.
    """

    models: tuple[Fields, ...]
    means: LabelMeans

    def forward(self, inputs: Tensor, codes: Tensor) -> Tensor:
        """Predictions of each target, (n, k)."""
        means = self.means.forward(codes)
        read = [torch.cat([inputs, means[:, self.means.read_by(j)]], dim=1) for j in range(len(self.models))]
        found = [model.forward(z) for model, z in zip(self.models, read, strict=True)]
        return torch.stack(found, dim=1) if found else inputs[:, :0]


@saved
@dataclass(eq=False, repr=False)
class RegressorSpace(Space):
    """Conditional expectations of given functions of the other variable, by any scikit-learn regressor.

    Attributes:
        sets: Fitted regressors of all targets; several such sets are averaged.
        encoding: How rows become inputs; None for trees, which read labels and missing values as they are.
    """

    sets: tuple[Regressions, ...]
    encoding: Space | None = None

    @classmethod
    def fit(
        cls,
        rows: Rows,
        targets: Array,
        fold_of_row: np.ndarray,
        regressor: Any = None,
        seed: int = 0,
        encoding: Space | None = None,
    ) -> tuple[RegressorSpace, Array]:
        """Grow the space, and give the features of its own rows as seen by the folds that left them out, (n, k).

        Args:
            rows: Rows of the variable.
            targets: Functions of the other variable on the same rows, (n, k).
            fold_of_row: Fold of each row, (n,).
            regressor: A scikit-learn regressor; boosted trees when None.
            seed: Of the trees.
            encoding: What the regressor reads; standardised columns when None.
        """
        if encoding is None and regressor is not None:
            encoding = Encoding.fit(rows, "standard")
        inputs = as_matrix(rows) if encoding is None else encoding(rows)
        start = trees(rows, seed, **_size(targets.shape[1])) if regressor is None else regressor
        if regressor is None and inputs.size * targets.shape[1] * (fold_of_row.max() + 1) > GROWN_CELLS:
            fold_of_row = fold_of_row % 2  # half of many rows is enough to learn the features of the other half
        folds = np.unique(fold_of_row)
        # Another regressor is asked for by name, and gets all rows.
        width = inputs.shape[1] + 2 * len(columns_of_many_labels(rows.variable))
        most = GROWN_CELLS // max(1, width * targets.shape[1] * (len(folds) + 1)) if regressor is None else None

        def of_rows(index: np.ndarray) -> Regressions:
            means, told = LabelMeans.fit(rows.variable, rows.table.codes[index], targets[index], seed)
            some = _some(np.arange(len(index)), most, seed)  # means cost nothing, and rest on all rows
            at = index[some]
            models = [
                fitted(start, np.hstack([inputs[at], told[some][:, means.read_by(j)]]), target)
                for j, target in enumerate(targets[at].T)
            ]
            return Regressions(tuple(models), means)

        unseen = np.empty_like(targets)
        grown = []
        for i, fold in enumerate(folds):
            tell(f"{_name(start)}, part {i + 1} of {len(folds)}")
            out = fold_of_row == fold
            grown.append(of_rows(np.flatnonzero(~out)))
            unseen[out] = grown[-1].forward(*map(torch.from_numpy, (inputs[out], rows.table.codes[out]))).numpy()
        if targets.shape[1] > 1:
            tell(f"{_name(start)} of all rows")
            grown = [of_rows(np.arange(len(inputs)))]
        return cls(tuple(grown[:AVERAGED]), encoding), unseen

    def forward(self, rows: Rows) -> Tensor:
        """The average over the sets of regressors, (n, k)."""
        inputs = _matrix(rows) if self.encoding is None else self.encoding.forward(rows)
        return torch.stack([regressions.forward(inputs, rows.codes) for regressions in self.sets]).mean(dim=0)


def _size(n_functions: int) -> dict[str, Any]:
    """How many trees a forest has, and how far each goes: with many functions fewer, so that predictions stay fast."""
    n_trees = int(np.clip(MOST_TREES / max(n_functions, 1), FEWEST_TREES, 100))
    return {"max_iter": n_trees, "learning_rate": 10 / n_trees}


def trees(rows: Rows, seed: int, **options: Any) -> HistGradientBoostingRegressor:
    """Boosted trees that take labels as labels; options as scikit-learn has them."""
    n_numbers = rows.table.numbers.shape[1]
    as_sets = [n_numbers + i for i in range(len(_columns_as_sets(rows)))]
    return HistGradientBoostingRegressor(categorical_features=as_sets or None, random_state=seed, **options)


def as_matrix(rows: Rows) -> Array:
    """Numbers and codes side by side, NaN where missing or unknown; without columns of too many labels for a set."""
    matrix: Array = _matrix(rows).numpy()
    return matrix


def _matrix(rows: Rows) -> Tensor:
    codes = rows.codes[:, _columns_as_sets(rows)]
    return torch.cat([rows.numbers, torch.where(codes == UNKNOWN, torch.nan, codes.double())], dim=1)


def _columns_as_sets(rows: Rows) -> list[int]:
    sizes = [len(column.categories) + column.missing for column in rows.variable.labels]
    return [j for j, size in enumerate(sizes) if size <= MAX_CATEGORIES]


def _some(index: np.ndarray, most: int | None, seed: int) -> np.ndarray:
    if most is None or len(index) <= max(most, FEWEST_GROWN):
        return index
    return np.sort(np.random.default_rng(seed).choice(index, max(most, FEWEST_GROWN), replace=False))


def _name(regressor: Any) -> str:
    name = type(regressor).__name__
    return {"HistGradientBoostingRegressor": "trees", "type": "index"}.get(name, name)
