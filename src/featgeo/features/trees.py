"""Spaces that regressors learn: conditional expectations of given functions of the other variable.

Given functions t(Y) of the other variable, the best function of X for each is its conditional expectation E[t(Y)|X]
(this is one half-step of alternating conditional expectations). Any regressor can estimate it; four are ours.

*Boosted trees* read all columns at once, with labels and missing values as they are, and see interactions that sums and
kernels miss. They are kept as tensors of their nodes (`Forest`): so they are saved, exported and run on a GPU. There
all rows go down all trees at once, one step for each level, by looking up where they stand. On the CPU scikit-learn's
own loop over the same nodes is several times faster, since each row there takes no more steps than it needs.

*An index* is a direction b of many columns and a curve h along it, E[t(Y)|x] = h(b.x). Least squares finds b up to its
length for any curve where columns are elliptical, such as Gaussian ones (Brillinger 1982), and nearly so for many
others; along b.x only a function of one number is left to learn, which takes few rows. The curve is one of a few, as
points left out prefer: cubic splines of some sizes, or a step a + b tanh((z - c) / s), which is what
evidence for one of two hidden causes adds up to: the true mode of two Gaussians of the same covariance, and of the
paper's sequences (Prop. seq). A direction that was fitted to a row explains some of its noise, and does so along a
line: judged on the same rows, a line would look better than the true curve. So the curve is fitted to indices of rows
by directions that never saw them.

*A kernel in a metric* takes (x - z)' M (x - z) for the squared distance of rows, and so sees the columns, or the
directions, that M says; a plain kernel of many columns drowns the few that matter in those that do not. What matters
shows in the gradients of the regression itself,

    M = sum_j E[ grad h_j(X) grad h_j(X)' ],    h_j(x) = E[t_j(Y) | x]

(Haerdle and Stoker 1989, Xia et al. 2002). For functions along few directions its range is spanned by these, and for
functions of few columns its diagonal is zero elsewhere. So: a kernel regression in the metric at hand, M from its
gradients, and again (recursive feature machines, Radhakrishnan et al. 2024). M with all directions suits indices; its
diagonal alone suits columns, and takes fewer rows: half of the rows learn both, and the other half chooses. All targets
share the metric, so many of them take hardly longer than one.

*Deep trees* for all targets together, averaged (`BaggedTrees`), follow jumps.

What was said of an index holds for all that regressors say about the rows they were fitted to: it is too good. So
features of the rows of a fit come from regressors of the other folds (`cross_fitted`). New rows meet the average over
some of the folds where there is a single function, or one regressor for all of them, since averages of trees are better
than single ones; else trees grown on all rows, the fewer for each function the more there are. So predictions take not
much longer than boosting's.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any, Protocol

import numpy as np
import torch
from scipy.interpolate import BSpline
from scipy.linalg import eigh, lstsq
from scipy.optimize import leastsq
from sklearn import config_context
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.ensemble._hist_gradient_boosting.common import PREDICTOR_RECORD_DTYPE
from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor
from sklearn.linear_model import LinearRegression
from sklearn.tree import DecisionTreeRegressor
from sklearn.tree._tree import Tree
from sklearn.utils._openmp_helpers import _openmp_effective_n_threads
from torch import Tensor

from featgeo.features.columns import UNKNOWN
from featgeo.features.labels import LabelMeans
from featgeo.features.space import Fields, Space, interpolated
from featgeo.features.spaces import Encoding
from featgeo.features.variables import Candidate, Rows, copies_of, cross_fitted, deal, preferred
from featgeo.geometry.spans import COLLINEAR
from featgeo.geometry.validation import Array
from featgeo.schema import saved
from featgeo.tuning import in_force
from featgeo.watch import tell

BAGGED_ROWS = 4000  # that each of many trees is grown on, at most: bounds time
MOST_LABELS = 256  # bits of a set, as scikit-learn has them
MAX_CATEGORIES = MOST_LABELS - 1  # labels that can be split as a set; columns with more are read by their means alone


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
            return torch.from_numpy(sum(self.walked(inputs.numpy()), np.full(len(inputs), self.start)))
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

    def walked(self, inputs: Array) -> Iterator[Array]:
        """What each tree says of each row, (n,)."""
        known = np.full((inputs.shape[1], 8), 2**32 - 1, dtype=np.uint32)
        columns, threads = np.arange(inputs.shape[1], dtype=np.uint32), _openmp_effective_n_threads()
        return (tree.predict(inputs, known, columns, threads) for tree in self._trees)

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


@saved
@dataclass(eq=False, repr=False)
class BaggedTrees(Fields):
    """The mean of deep trees for all targets together, each grown on rows drawn with replacement.

    Boosting needs a forest for each target; here a tree splits where it helps most of them. They suit jumps, and few
    columns out of many.

    Attributes:
        trees: Where rows go.
        said: What each node says of each target, (nodes, k).
    """

    trees: Forest
    said: Array

    def __post_init__(self) -> None:
        if self.said.ndim != 2 or len(self.said) != len(self.trees.nodes):
            raise ValueError("nodes of trees that do not go together")

    @classmethod
    def fit(cls, values: Array, targets: Array) -> BaggedTrees:
        """Grow the trees.

        Args:
            values: Columns of numbers, (n, d).
            targets: Shape (n, k).
        """
        trees = [tree for tree, _ in _bagged(values, targets)]
        roots = np.cumsum([0, *(tree.node_count for tree in trees)])
        left, right = (
            np.concatenate([getattr(tree, side) + root for tree, root in zip(trees, roots, strict=False)])
            for side in ("children_left", "children_right")
        )
        column, threshold = (
            np.concatenate([getattr(tree, part) for tree in trees]) for part in ("feature", "threshold")
        )
        own, is_leaf = np.arange(roots[-1]), column < 0
        left, right = np.where(is_leaf, own, left), np.where(is_leaf, own, right)
        nothing = np.zeros(len(own))
        nodes = np.column_stack([np.where(is_leaf, 0, column), left, right, nothing - 1, threshold, nothing, own])
        said = np.concatenate([tree.value[:, :, 0] for tree in trees]) / len(trees)
        sets = np.empty((0, MOST_LABELS // 32), dtype=np.uint32)
        return cls(Forest(values.shape[1], 0.0, roots[:-1], nodes, sets), said)

    def forward(self, inputs: Tensor) -> Tensor:
        """Predictions of each target, (n, k)."""
        said = self.tensor("said")
        if inputs.device.type != "cpu" or torch.compiler.is_exporting():
            return said[self.trees._leaves(inputs)].sum(dim=1)
        result = inputs.new_zeros((len(inputs), said.shape[1]))
        for leaves in self.trees.walked(inputs.numpy()):
            result += said[torch.from_numpy(leaves.astype(np.int64))]
        return result


def _bagged(values: Array, targets: Array) -> list[tuple[Tree, np.ndarray]]:
    """Trees, and which rows each has seen, (n,).

    They are those of scikit-learn's forest, which spends most of its time on small tables on checking and copying
    settings that are the same for all of its trees.
    """
    options, (n, k), grown = in_force.get(), targets.shape, []
    inputs, targets = values.astype(np.float32), np.ascontiguousarray(targets if k > 1 else targets[:, 0])
    leaf, random = max(1, options.rows_a_function // 2), np.random.RandomState(0)
    with config_context(assume_finite=True, skip_parameter_validation=True):
        for seed in random.randint(np.iinfo(np.int32).max, size=options.bagged_trees):
            random.seed(seed)
            times = np.bincount(random.randint(n, size=min(n, BAGGED_ROWS), dtype=np.int32), minlength=n)
            random.seed(seed)
            tree = DecisionTreeRegressor(
                min_samples_leaf=leaf, max_features=options.bagged_columns, random_state=random
            )
            tree.fit(inputs, targets, sample_weight=times.astype(np.float64), check_input=False)
            grown.append((tree.tree_, times > 0))
    return grown


def out_of_bag(values: Array, targets: Array) -> Array:
    """What deep trees that have not seen a row say of its targets, (n, k); 0 where all have seen it.

    Args:
        values: Columns of numbers, (n, d).
        targets: Shape (n, k).
    """
    inputs, said, count = values.astype(np.float32), np.zeros(targets.shape), np.zeros(len(values))
    for tree, seen in _bagged(values, targets):
        if not seen.all():
            said[~seen] += tree.predict(inputs[~seen]).reshape(-1, targets.shape[1])
            count += ~seen
    return said / np.maximum(count, 1)[:, None]


MOST_POINTS = 1000  # of a curve, means of as many groups of neighbours along the index: bounds time
# Where the search for a step starts, in standard deviations of the index: it ends where squares are least.
STEP_CENTRES, STEP_WIDTHS = np.linspace(-2, 2, 9), np.log(0.1 * 2.0 ** np.arange(6))


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
        part = deal(len(values), in_force.get().folds, 0, copies_of(values, target[:, None]))
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
    both, ridges = np.column_stack([values, target]), np.array(in_force.get().index_ridges)
    whole = values.T @ both

    def without(rows: np.ndarray) -> Array:
        """Least squares for each ridge, as a share of the mean variance of a column, (d, number of ridges)."""
        gram, product = np.split(whole - values[rows].T @ both[rows], [-1], axis=1)
        energies, axes = np.linalg.eigh(gram)
        scale = max(float(energies.mean()), np.finfo(np.float64).tiny)
        return axes @ ((axes.T @ product) / (energies.clip(min=0)[:, None] + scale * ridges))

    _, indices = cross_fitted(part, without, lambda lines, rows: values[rows] @ lines)
    lost = enumerate(np.square(target - indices.T))
    best = preferred([Candidate(i, 1, np.bincount(part, -each).astype(float)) for i, each in lost]).what
    return without(part[:0])[:, best], indices[:, best]


def _curve(index: Array, target: Array) -> tuple[Array, Array]:
    """Points along the index, (m,), and the curve at them that points left out prefer, (m,)."""
    n, order = len(index), np.argsort(index, kind="stable")
    starts = np.linspace(0, n, min(MOST_POINTS, n), endpoint=False).astype(int)
    weight = np.diff(np.append(starts, n)).astype(np.float64)
    at, means = (np.add.reduceat(z[order], starts) / weight for z in (index, target))
    at = np.maximum.accumulate(at)  # means of equal values may differ by rounding
    spread = np.sqrt(np.average(np.square(at), weights=weight))
    if at[-1] - at[0] <= 1e-9 * spread or spread == 0:  # no index to follow
        return at[:1], np.array([np.average(target)])
    sizes = [size for size in in_force.get().index_knots if len(at) > 2 * (size + 2)]
    knots = [np.pad(np.quantile(at, np.linspace(0, 1, size)), 3, mode="edge") for size in sizes]
    cubics = [BSpline.design_matrix(at, each, 3).toarray() for each in knots]
    start = _step(at, means, weight)[1]

    def without(points: np.ndarray) -> Array:
        """A curve of each kind that has not seen some of the points, (m, kinds)."""
        seen = weight.copy()
        seen[points] = 0
        splines = [cubic @ lstsq((cubic.T * seen) @ cubic, (cubic.T * seen) @ means)[0] for cubic in cubics]
        return np.stack([_step(at, means, seen, start)[0], *splines], axis=1)

    def told(curves: Array, points: np.ndarray) -> Array:
        others = np.delete(np.arange(len(at)), points)  # of which the outermost stand for what is beyond
        return np.stack([np.interp(at[points], at[others], curve[others]) for curve in curves.T], axis=1)

    part = deal(len(at), in_force.get().curve_folds, 0)
    _, unseen = cross_fitted(part, without, told)
    costs = [4, *(size + 2 for size in sizes)]  # parameters: a step has a, b, c and s
    # Each point is judged for itself: few folds would hardly say how far their mean is off.
    found = zip(without(part[:0]).T, costs, -weight * np.square(means - unseen.T), strict=True)
    return at, preferred([Candidate(curve, cost, scores) for curve, cost, scores in found]).what


def _step(at: Array, means: Array, weight: Array, start: Array | None = None) -> tuple[Array, Array]:
    """The best a + b tanh((z - c) / s) at the points, (m,), and c and log s; searched for from such, or everywhere."""
    share = weight / weight.sum()
    centred = at - share @ at
    z = centred / np.sqrt(share @ np.square(centred)).clip(min=np.finfo(np.float64).tiny)
    mean = share @ means

    def fitted(c: Array, log_s: Array) -> Array:
        """The best a and b for each c and log s, (..., m); far from where the search starts all are the same."""
        c, log_s = c.clip(STEP_CENTRES[0] - 1, STEP_CENTRES[-1] + 1), log_s.clip(STEP_WIDTHS[0], STEP_WIDTHS[-1] + 0.5)
        step = np.tanh((z - c[..., None]) / np.exp(log_s)[..., None])
        step -= (step @ share)[..., None]
        slope = step @ (share * (means - mean)) / np.maximum(np.square(step) @ share, np.finfo(np.float64).tiny)
        return mean + slope[..., None] * step

    if start is None:
        grid = np.reshape(np.meshgrid(STEP_CENTRES, STEP_WIDTHS), (2, -1))
        start = grid[:, np.argmin(np.square(means - fitted(*grid)) @ share)]
    found = leastsq(lambda way: np.sqrt(share) * (means - fitted(*way)), start, full_output=True, maxfev=60)[0]
    return fitted(*found), found


METRIC_ROWS = 2000  # that a metric is learned from, at most: bounds time
METRIC_CENTRES = 100  # of kernels while it is learned: bounds time
ROUNDS = 3  # of learning it: bounds time; most is found in the first


@saved
@dataclass(eq=False, repr=False)
class MetricRegressor(Fields):
    """Kernel regressions of several targets in a metric M = L L'.

    Attributes:
        centre: Means of the columns, (d,).
        metric: L, scaled by the root of gamma, (d, r).
        points: Rows that kernels are around, less the centre, times L, (m, r).
        weight: From the kernels at a row to the predictions, (m, k).
        offset: What is added, (k,).
    """

    centre: Array
    metric: Array
    points: Array
    weight: Array
    offset: Array

    @classmethod
    def fit(cls, values: Array, targets: Array, form: MetricForm | None = None) -> MetricRegressor:
        """Learn the metric, and the regressions in it.

        Args:
            values: Columns of numbers, (n, d).
            targets: Shape (n, k).
            form: What kind of metric; chosen when None.
        """
        form = MetricForm.of(values, targets) if form is None else form
        centre, order = values.mean(axis=0), np.random.default_rng(0).permutation(len(values))
        values, targets = (values - centre)[order], targets[order]
        metric = form.metric(values[:METRIC_ROWS], targets[:METRIC_ROWS]) * np.sqrt(form.gamma)
        placed = values @ metric
        best = _Fit.of(placed, placed[: in_force.get().joint_kernel_features], targets)
        return cls(centre, metric, best.points, best.weight, best.offset)

    def forward(self, inputs: Tensor) -> Tensor:
        """Predictions of each target, (n, k)."""
        placed, points = (inputs - self.tensor("centre")) @ self.tensor("metric"), self.tensor("points")
        squares = placed.square().sum(dim=1, keepdim=True) + points.square().sum(dim=1) - 2 * placed @ points.T
        return (-squares.clamp(min=0)).exp() @ self.tensor("weight") + self.tensor("offset")


@dataclass(frozen=True)
class MetricForm:
    """What kind of metric to learn.

    Attributes:
        n_rounds: How often to learn it from the regression in the one before; 0 for columns that are all alike.
        diagonal: Whether it weighs columns, not directions of them.
        gamma: How sharp kernels in it are, beside rows of total variance 1.
    """

    n_rounds: int
    diagonal: bool
    gamma: float = 1.0

    @classmethod
    def of(cls, values: Array, targets: Array) -> MetricForm:
        """The form by which one half of the rows tells the most of the other."""
        order = np.random.default_rng(0).permutation(len(values))[:METRIC_ROWS]
        values, targets = (values - values.mean(axis=0))[order], targets[order]
        own, others = slice(0, len(order) // 2), slice(len(order) // 2, None)

        def told(metric: Array) -> float:
            placed = values[others] @ metric
            return _Fit.of(placed, placed[:METRIC_CENTRES], targets[others]).gain

        found = [
            (told(metric), -n_rounds, diagonal, metric)
            for diagonal in (True, False)
            for n_rounds, metric in enumerate(_metrics(values[own], targets[own], diagonal))
        ]
        _, n_rounds, diagonal, metric = max(found, key=lambda one: one[:3])
        gammas = in_force.get().metric_gammas
        gains = [told(metric * np.sqrt(gamma)) for gamma in gammas]
        return cls(-n_rounds, diagonal, gammas[int(np.argmax(gains))])

    def metric(self, values: Array, targets: Array) -> Array:
        """L, (d, r), in which rows have total variance 1."""
        return next(islice(_metrics(values, targets, self.diagonal), self.n_rounds, None))


def _metrics(values: Array, targets: Array, diagonal: bool) -> Iterator[Array]:
    """First one of columns that are all alike, then others from the gradients of a regression in the one before."""
    metric = _scaled(np.eye(values.shape[1]), values)
    yield metric
    for _ in range(ROUNDS if values.shape[1] > 1 else 0):
        placed = values @ metric
        learned = metric @ _Fit.of(placed, placed[:METRIC_CENTRES], targets).gradients(placed) @ metric.T
        energies, axes = eigh(np.diag(np.diag(learned)) if diagonal else learned)
        kept = energies > COLLINEAR * max(energies[-1], np.finfo(float).tiny)
        metric = _scaled(axes[:, kept] * np.sqrt(energies[kept]), values)
        yield metric


def _scaled(metric: Array, values: Array) -> Array:
    """The metric in which rows have total variance 1."""
    total = np.sqrt(np.square(values @ metric).sum() / len(values))
    return metric / (total if total > 0 else 1.0)


@dataclass(frozen=True, eq=False)
class _Fit:
    """A kernel regression, with what rows left out say of it: how much of the targets' variance it explains."""

    gain: float
    points: Array
    weight: Array
    offset: Array

    @classmethod
    def of(cls, placed: Array, points: Array, targets: Array) -> _Fit:
        """For each target the ridge that rows left out one at a time prefer.

        Args:
            placed: The rows in their metric, (n, r).
            points: Those that kernels are around, (m, r).
            targets: Shape (n, k).
        """
        energies, axes = eigh(_kernel(points, points))
        kept = energies > COLLINEAR * energies[-1]
        normalization = axes[:, kept] / np.sqrt(energies[kept])
        kernels = _kernel(placed, points)
        means, aim = kernels.mean(axis=0), targets.mean(axis=0)
        kernels, left = kernels - means, targets - aim
        energies, axes = eigh(normalization.T @ (kernels.T @ kernels) @ normalization)
        energies, axes = energies.clip(min=0), normalization @ axes
        turned = kernels @ axes
        size = max(float(energies.sum()), COLLINEAR * len(left))  # of constant columns nothing is left but rounding
        product = turned.T @ left
        shrunk = 1 / (energies[:, None] + size * np.array(in_force.get().metric_ridges))
        told = np.einsum("nm,mrk->nrk", turned, shrunk[:, :, None] * product[:, None], optimize=True)
        own = (np.square(turned) @ shrunk + 1 / len(left)).clip(max=1 - 1e-9)  # what a row says of itself
        lost = np.square((left[:, None] - told) / (1 - own)[:, :, None]).sum(axis=0)
        weight = axes @ (shrunk[:, np.argmin(lost, axis=0)] * product)
        gain = 1 - lost.min(axis=0).sum() / max(np.square(left).sum(), np.finfo(float).tiny)
        return cls(float(gain), points, weight, aim - means @ weight)

    def gradients(self, placed: Array) -> Array:
        """The mean outer product of the gradients of all predictions, in the coordinates of the metric, (r, r)."""
        slopes = -2 * _kernel(placed, self.points)
        result = np.zeros((placed.shape[1], placed.shape[1]))
        for weight in self.weight.T:
            pulled = slopes * weight
            gradient = pulled.sum(axis=1, keepdims=True) * placed - pulled @ self.points
            result += gradient.T @ gradient
        return result / len(placed)


def _kernel(placed: Array, points: Array) -> Array:
    squares = np.square(placed).sum(axis=1)[:, None] + np.square(points).sum(axis=1) - 2 * placed @ points.T
    return np.exp(-squares.clip(min=0))


GROWN_CELLS = 24_000_000  # that all forests of a space are grown on, together: bounds time to about 20 s of one core
FEW_PARTS = 3  # of the rows that are left out in turn where forests of all rows are grown besides: bounds time
MOST_LEAVES = 31  # of a tree, as scikit-learn has them: bounds time
FEWEST_GROWN = 2000  # rows of a forest that are always afforded, however many columns they have: bounds time


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


OF_ALL = (MetricRegressor, BaggedTrees)  # regressors of ours that learn all targets together, by their class
OWN = (IndexRegressor, *OF_ALL)


class Regressor(Protocol):
    """What scikit-learn calls so."""

    def predict(self, X: Any) -> Any:
        """Expectations of the target."""


def fitted(regressor: Any, inputs: Array, target: Array) -> Fields:
    """A copy of a regressor, fitted, as a module: by its numbers alone where they are all that there is to it."""
    if regressor in OWN:
        return regressor.fit(inputs, target)
    if isinstance(regressor, MetricForm):
        return MetricRegressor.fit(inputs, target, regressor)
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
        models: One for each target, or one for all of them.
        means: The means of the targets for labels of columns that have many, where there are any; a regressor reads
            those of its own target besides.
        of_all: Whether one model is for all targets.
    """

    models: tuple[Fields, ...]
    means: LabelMeans | None
    of_all: bool = False

    def forward(self, inputs: Tensor, codes: Tensor) -> Tensor:
        """Predictions of each target, (n, k)."""
        told = None if self.means is None else self.means.forward(codes)
        if self.of_all:
            return self.models[0].forward(_read_for(None, inputs, told))
        found = [model.forward(_read_for(j, inputs, told)) for j, model in enumerate(self.models)]
        return torch.stack(found, dim=1) if found else inputs[:, :0]


def _read_for(target: int | None, inputs: Tensor, told: Tensor | None) -> Tensor:
    """What the regressor of one target, or of all, reads: beside inputs, how frequent labels are, and their means."""
    if told is None:
        return inputs
    return torch.cat([inputs, (told if target is None else told[:, :, [0, 1 + target]]).flatten(1)], dim=1)


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
        inputs = as_matrix(rows) if encoding is None else encoding.features(rows).cpu()
        name = "trees" if regressor is None else getattr(regressor, "__name__", type(regressor).__name__)
        starts = _starts(rows, inputs, targets, regressor, seed)
        if regressor is None and inputs.numel() * targets.shape[1] * (fold_of_row.max() + 1) > GROWN_CELLS:
            fold_of_row = fold_of_row % 2  # half of many rows is enough to learn the features of the other half
        elif regressor in (None, *OWN) and targets.shape[1] > 1:
            fold_of_row = fold_of_row % FEW_PARTS
        variable, codes = rows.variable, rows.table.codes
        n_cells = (inputs.shape[1] + 2 * len(variable.many_labels)) * targets.shape[1]  # of a row, in all forests
        most = max(FEWEST_GROWN, GROWN_CELLS // max(1, n_cells * (len(np.unique(fold_of_row)) + 1)))

        def without(out: np.ndarray) -> Regressions:
            at = np.delete(np.arange(len(rows)), out)
            means, told = None, None
            if variable.many_labels:
                means, of_rows = LabelMeans.fit(variable, codes[at], targets[at], seed)
                told = torch.from_numpy(of_rows)
            if regressor is None and len(at) > most:  # means cost nothing, and rest on all rows
                some = np.sort(np.random.default_rng(seed).choice(len(at), most, replace=False))
                at, told = at[some], told if told is None else told[some]
            read, aims = inputs[at], targets[at].T
            if regressor in OF_ALL:
                return Regressions((fitted(starts[0], _read_for(None, read, told).numpy(), aims.T),), means, True)
            models = [fitted(starts[min(j, 1)], _read_for(j, read, told).numpy(), aim) for j, aim in enumerate(aims)]
            return Regressions(tuple(models), means)

        grown, unseen = cross_fitted(
            fold_of_row, without, lambda model, out: model.forward(inputs[out], rows.codes[out].cpu()).numpy(), name
        )
        if targets.shape[1] > 1 and regressor not in OF_ALL:
            tell(f"{name} of all rows")
            grown = [without(np.empty(0, dtype=np.int64))]
        return cls(tuple(grown[: in_force.get().averaged_forests]), encoding), unseen

    def forward(self, rows: Rows) -> Tensor:
        """The average over the sets of regressors, (n, k)."""
        inputs = as_matrix(rows) if self.encoding is None else self.encoding.forward(rows)
        return torch.stack([regressions.forward(inputs, rows.codes) for regressions in self.sets]).mean(dim=0)


def _starts(rows: Rows, inputs: Tensor, targets: Array, regressor: Any, seed: int) -> tuple[Any, Any]:
    """What to fit to the most wanted function, or to all together, and to each other; arguments as those of a space.

    With many functions forests have fewer trees, each of which goes further, by a tenth to half of the way: so
    predictions stay fast. What a metric is like is chosen once for all parts of the rows.
    """
    if regressor is not None:
        start = MetricForm.of(inputs.numpy(), targets) if regressor is MetricRegressor else regressor
        return start, start
    most = in_force.get().forest_trees
    others = int(np.clip(most / max(targets.shape[1], 1), 20, 100))
    first, other = (trees(rows, seed, max_iter=n, learning_rate=10 / n) for n in (max(others, most // 3), others))
    return first, other


def trees(rows: Rows, seed: int, **options: Any) -> HistGradientBoostingRegressor:
    """Boosted trees that take labels as labels; options as scikit-learn has them.

    A leaf is a function that is learned by itself: it is shrunk as if it had so many rows more that say nothing, and
    may then have half as many.
    """
    n_numbers, numbers = rows.table.numbers.shape[1], in_force.get()
    as_sets = [n_numbers + i for i in range(len(_columns_as_sets(rows)))]
    settings = {
        "max_leaf_nodes": int(np.clip(numbers.leaves_a_root * np.sqrt(len(rows)), 2, MOST_LEAVES)),
        "min_samples_leaf": max(1, numbers.rows_a_function // 2),
        "l2_regularization": numbers.rows_a_function,
        "categorical_features": as_sets or None,
        "random_state": seed,
    }
    return HistGradientBoostingRegressor(**{**settings, **options})


def as_matrix(rows: Rows) -> Tensor:
    """Numbers and codes side by side, NaN where missing or unknown; without columns of too many labels for a set."""
    codes = rows.codes[:, _columns_as_sets(rows)]
    return torch.cat([rows.numbers, torch.where(codes == UNKNOWN, torch.nan, codes.double())], dim=1)


def _columns_as_sets(rows: Rows) -> list[int]:
    return [j for j, column in enumerate(rows.variable.labels) if column.n_labels <= MAX_CATEGORIES]
