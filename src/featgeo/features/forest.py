"""Boosted trees as tensors of their nodes: what is saved, exported and run on a GPU.

All rows go down all trees at once, one step for each level, by looking up where they stand. On the CPU scikit-learn's
own loop over the same nodes is several times faster, since each row there takes no more steps than it needs.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.ensemble._hist_gradient_boosting.common import PREDICTOR_RECORD_DTYPE
from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor
from sklearn.utils._openmp_helpers import _openmp_effective_n_threads
from torch import Tensor

from featgeo.features.space import Fields
from featgeo.geometry.validation import Array
from featgeo.schema import saved

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
