"""Columns of many labels: means of given functions for each label, in linear time.

The best function of a label l for a target t is its conditional mean E[t|l]. With few rows of a label its average is
mostly noise, so it is shrunk towards the mean mu of all rows, as far as the rows tell. With n_l rows and the sum S_l,

    m_l = (S_l + kappa mu) / (n_l + kappa),    kappa = variance within labels / variance between labels,

the posterior mean where labels have normal means of their own. Both variances come from the analysis of variance; kappa
is infinite where labels differ no more than noise would. A label that was not seen has mu.

The average of a label contains the row itself, and says too much about it. So the rows that means are learned from get
those of the folds without them. Sums are kept by fold, and leaving one out is a subtraction. How frequent a label is
goes with it, as log(1 + n_l): that may matter, too, and trees can trust the means of frequent ones more. It says
nothing of a row's own target, so it counts all rows: leaving some out would make labels rarer than new rows see them,
and trees learn sharp steps in it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from featgeo.features.columns import UNKNOWN
from featgeo.features.space import Fields, at_code
from featgeo.features.variables import Rows, Variable, cross_fitted, deal
from featgeo.geometry.spans import COLLINEAR
from featgeo.geometry.validation import Array
from featgeo.schema import saved
from featgeo.tuning import in_force


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


def label_means(codes: np.ndarray, targets: Array, n_labels: int, fold_of_row: np.ndarray) -> tuple[Array, Array]:
    """What is known of each label, (labels + 1, 1 + k), and what each row is told of its own, (n, 1 + k).

    That is log(1 + n_l), then the shrunken means: of all rows, and of the folds without the row.

    Args:
        codes: Label of each row, (n,); rows of an unknown one count for none.
        targets: Shape (n, k).
        n_labels: How many labels there are.
        fold_of_row: Shape (n,).
    """

    def totals(rows: np.ndarray) -> tuple[Array, Array, Array]:
        rows = rows[codes[rows] != UNKNOWN]
        label, z = codes[rows], targets[rows]
        counts, *sums = (np.bincount(label, t, n_labels).astype(np.float64) for t in (np.ones(len(z)), *z.T))
        return counts, np.reshape(sums, (-1, n_labels)).T, (z**2).sum(axis=0)

    def without(rows: np.ndarray) -> Array:
        return shrunken(*(total - part for total, part in zip(whole, totals(rows), strict=True)))

    whole = totals(np.arange(len(codes)))
    table = np.hstack([np.log1p(np.append(whole[0], 0.0))[:, None], shrunken(*whole)])
    _, means = cross_fitted(fold_of_row, without, lambda means, rows: means[codes[rows]])
    return table, np.hstack([table[codes, :1], means])


@saved
@dataclass(eq=False, repr=False)
class LabelMeans(Fields):
    """Means of targets for the labels of each column that has many.

    Attributes:
        columns: Positions of these columns among those of labels; at least one.
        tables: For each of them what is known of each label, (labels + 1, 1 + k).
    """

    columns: tuple[int, ...]
    tables: tuple[Array, ...]

    @classmethod
    def fit(cls, variable: Variable, codes: np.ndarray, targets: Array, seed: int) -> tuple[LabelMeans, Array]:
        """Learn the means, and give what its own rows read, by folds that left them out, (n, columns, 1 + k).

        Args:
            variable: Tells how many labels each column has.
            codes: Labels of the rows, (n, columns of labels).
            targets: Shape (n, k).
            seed: Of the folds.
        """
        fold_of_row = deal(len(codes), in_force.get().folds, seed)
        found = [
            label_means(codes[:, j], targets, variable.labels[j].n_labels, fold_of_row) for j in variable.many_labels
        ]
        return cls(variable.many_labels, tuple(table for table, _ in found)), np.stack(
            [own for _, own in found], axis=1
        )

    def forward(self, codes: Tensor) -> Tensor:
        """What rows with these labels read, (n, columns, 1 + k): the rows of each label, and its means of targets."""
        return torch.stack([at_code(self.tensor("tables", i), codes[:, j]) for i, j in enumerate(self.columns)], dim=1)


def rows_of_some_labels(rows: Rows, n_rows: int, seed: int) -> np.ndarray | None:
    """Positions of so many rows with, but for one, all or none of each label; None where labels are few enough for
    rows at random to show what each is like.

    Args:
        rows: All rows.
        n_rows: How many of them; of the column with the most labels.
        seed: Of the choice of labels.
    """
    sizes = {j: len(rows.variable.labels[j].categories) for j in rows.variable.many_labels}
    column = max(sizes, key=lambda j: sizes[j], default=None)
    if column is None or n_rows >= in_force.get().rows_a_function * sizes[column]:
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
    for j in rows.variable.many_labels:
        energies, directions = np.linalg.eigh(_covariance_of_pairs(rows.table.codes[:, j], unit))
        kept = np.flatnonzero(energies > 0)[-most:]
        strong.append(unit @ (directions[:, kept] * np.sqrt(energies[kept].clip(max=1))))
    return _whitened(np.hstack(strong))[:, ::-1][:, :most]


def _whitened(features: Array) -> Array:
    """Uncorrelated functions of unit variance with the same span, those of the least variance first, (n, r)."""
    centred = features - features.mean(axis=0)
    variances, axes = np.linalg.eigh(centred.T @ centred / len(centred))
    kept = variances > COLLINEAR * max(variances.max(initial=0), np.finfo(np.float64).tiny)
    return centred @ (axes[:, kept] / np.sqrt(variances[kept]))


def _covariance_of_pairs(codes: np.ndarray, features: Array) -> Array:
    """Mean product of the features of two rows that share a label, each label weighted by its rows but one, (d, d)."""
    _, label, counts = np.unique(codes, return_inverse=True, return_counts=True)
    sums = np.stack([np.bincount(label, z) for z in features.T], axis=1)
    pairs = (sums.T / counts) @ sums - (features.T / counts[label]) @ features
    return pairs / max(len(codes) - len(counts), 1)
