"""E[h|s]: the one regression on S, of tests given S and of functions that are to have mean 0 given S.

It is kernel ridge regression beside terms that go without a penalty. With K = U diag(lambda) U^T the centred kernel
matrix of S, a target t is predicted by U diag(lambda / (lambda + ridge)) U^T t: one decomposition serves every target
and every ridge. The ridge of each target is a tenth of the one that minimises its generalised cross-validation: that
one balances the error's variance, which products of residuals forgive, with its bias, which X and Y may have in common.

A penalty leaves a share of the same function of S in X and in Y, which then look dependent, and a kernel on a few
hundred rows would miss most of many labels. So what is simple and often there goes without one, as eigenvectors of
infinite eigenvalue:

- lines in the numbers as they are and, where these differ, in their normal scores; the mean of each label;
- waves along *indices* of the targets: combinations of lines, or of curves of single columns where rows allow, chosen
  so that waves along them explain most, since many variables follow one combination of others, in whatever way;
- waves along single columns, more of them as rows allow;
- jumps along columns and indices that are too clear for chance.

All of them are spaces, and what is found is a function in their span: it has values at other rows, moves to devices and
is kept in files as every function is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from featgeo.features.scored import (
    NumberSpace,
    Ranks,
    RankSpace,
    Scored,
    Symbols,
    cosines_of,
    frequent,
    joint_symbols,
    landmark_features,
    landmarks,
    mid_ranks,
    orthonormal,
    scored_columns,
    whitening,
)
from featgeo.features.space import Space, normal_quantile
from featgeo.features.spaces import SideBySide, SpanFunction, TableSpace, table_function
from featgeo.features.trees import out_of_bag
from featgeo.features.variables import Rows
from featgeo.geometry.spans import COLLINEAR, AffineFeatures
from featgeo.geometry.validation import Array
from featgeo.schema import saved
from featgeo.tuning import in_force

# What the spaces below are, also those in files: two symbols lie as far apart as numbers two deviations apart; a narrow
# kernel has a fifth of the width and half the weight of the wide ones, on a grid that reaches 99 % of all rows.
SYMBOL_DISTANCE = 4.0
INDEX_WIDTH, INDEX_SHARE = 0.2, 0.5
INDEX_GRID = np.arange(-9, 10) * 0.3

Column = RankSpace | TableSpace


@saved
@dataclass(eq=False, repr=False)
class LandmarkSpace(Space):
    """The kernel of smooth functions of S, sums of functions of single columns foremost, with some points.

    Attributes:
        columns: What is read.
        points: Normal scores, and positions of symbols, (m, columns).
        widths: Of the Gaussian kernels where there is one column, in normal scores; those of several have width 1.
    """

    columns: tuple[Column, ...]
    points: Array
    widths: tuple[float, ...]

    def forward(self, rows: Rows) -> Tensor:
        """The kernel of each row and each point, (n, m)."""
        points = zip(self.columns, self.tensor("points").T, strict=True)
        distances = (_squared_distance(column, rows, point) for column, point in points)
        first = next(distances)
        if len(self.columns) == 1:
            return torch.stack([gaussian(first, width) for width in self.widths]).sum(dim=0)
        additive, total = gaussian(first), first
        for distance in distances:
            additive += gaussian(distance)
            total += distance
        return additive.div_(len(self.columns)).add_(gaussian(total, math.sqrt(len(self.columns))))


@saved
@dataclass(eq=False, repr=False)
class AlongSpace(Space):
    """Functions of a rank.

    Attributes:
        rank: Along a column or an index.
        waves: How many half-waves.
        powers: Those of the normal score that are there.
        narrow: Whether features of a narrow kernel are.
        jump: The rank beyond which an indicator is 1; None for no indicator.
    """

    rank: RankSpace
    waves: int = 0
    powers: tuple[int, ...] = ()
    narrow: bool = False
    jump: float | None = None

    def forward(self, rows: Rows) -> Tensor:
        """All of them, (n, d)."""
        return along(self.rank.forward(rows), self.waves, self.powers, self.narrow, self.jump)


def along(
    rank: Tensor, waves: int = 0, powers: tuple[int, ...] = (), narrow: bool = False, jump: float | None = None
) -> Tensor:
    """Functions of a rank, (n, 1), as `AlongSpace` has them."""
    half_waves = torch.arange(1, waves + 1, dtype=rank.dtype, device=rank.device)
    blocks = [(math.sqrt(2) * torch.cos(math.pi * half_waves * rank)).nan_to_num()]
    score = normal_quantile(rank).nan_to_num() if powers or narrow else rank
    blocks += [score**power for power in powers]
    if narrow:
        grid = torch.as_tensor(INDEX_GRID, device=rank.device)
        root = torch.linalg.cholesky(gaussian((grid[:, None] - grid).square(), INDEX_WIDTH))  # of their own kernel
        at_grid = gaussian((score - grid).square(), INDEX_WIDTH)
        blocks.append(math.sqrt(INDEX_SHARE) * torch.linalg.solve_triangular(root, at_grid.T, upper=False).T)
    if jump is not None:
        blocks.append((~(rank <= jump)).double())
    return torch.cat(blocks, dim=1)


def scored(column: Column, rows: Rows) -> Tensor:
    """Where a standard normal has the ranks, a missing number counts as average; or positions of symbols; (n, 1)."""
    if isinstance(column, TableSpace):
        return column.position(rows)[:, None]
    return normal_quantile(column.forward(rows)).nan_to_num()


def _squared_distance(column: Column, rows: Rows, points: Tensor) -> Tensor:
    """Of each row and each point, (n, m)."""
    at = scored(column, rows)
    return (at - points).square_() if isinstance(column, RankSpace) else (at != points).double().mul_(SYMBOL_DISTANCE)


def gaussian(squared_distances: Tensor, width: float = 1.0) -> Tensor:
    """The kernel of some width, from squared distances."""
    return (squared_distances / (-2 * width**2)).exp_()


RIDGES = np.geomspace(1e-7, 1.0, 15)  # over the largest eigenvalue: half a decade changes no fit by much
HARDLY = 0.05  # share of an eigenvector that a regression takes out; it bounds the time
STEPS = 5  # of Gauss and Newton, at most; it bounds the time
NEGLIGIBLE = 1e-3  # share of an error, or of the energy of a step, with which steps end; it bounds the time
ROUNDING = np.sqrt(np.finfo(np.float64).eps)  # relative to the largest: smaller directions of targets are that
DIRECTION_ROWS = 1000  # by which random directions are compared; it bounds the time
_TINY = 1e-12  # no division by zero


@dataclass(frozen=True, eq=False)
class Known:
    """Functions of S.

    Attributes:
        values: At the rows, (n, d); of a rank (n,).
        made: Their space, for other rows, once it is asked for.
    """

    values: Array
    made: Callable[[], Any]

    @cached_property
    def space(self) -> Any:
        """The space of the functions."""
        return self.made()

    def along(self, **functions: Any) -> Known:
        """Functions of a rank, as `AlongSpace` has them."""
        values = along(torch.from_numpy(self.values)[:, None], **functions).numpy()
        return Known(values, lambda: AlongSpace(self.space, **functions))

    def mapped(self, affine: AffineFeatures) -> Known:
        """Other functions in their span."""
        values = affine.offset + (self.values - affine.centre) @ affine.weight
        return Known(values, lambda: SpanFunction(self.space, affine))


def side_by_side(*parts: Known) -> Known:
    """Functions of all parts."""
    values = np.hstack([part.values for part in parts])
    return Known(values, lambda: SideBySide(tuple(part.space for part in parts)))


def spanned(*parts: Known) -> Known:
    """An orthonormal basis of the span of several, the strongest functions first."""
    together = side_by_side(*parts)
    return together.mapped(whitening(together.values)[0])


def ranks_of(column: Ranks) -> Known:
    """Ranks along a column, (n,)."""
    return Known(column.values, lambda: column.space)


def lines_of(column: Scored, most: int) -> list[Known]:
    """A number and, where these are another line, its normal scores; or indicators of symbols, `most` but not all."""
    if isinstance(column, Symbols):
        chosen, symbols = frequent(column, min(column.size - 1, most)), np.arange(column.size)[:, None]
        values = (column.codes[:, None] == chosen).astype(np.float64)
        return [Known(values, lambda: table_function(column.space, (symbols == chosen).astype(np.float64)))]
    number = Known(np.nan_to_num(column.numbers)[:, None], lambda: NumberSpace(column.at, column.mean, filled=True))
    likeness = np.corrcoef(number.values[:, 0], column.scores)[0, 1] ** 2
    return [number] if likeness > in_force.get().same_line else [number, ranks_of(column).along(powers=(1,))]


class Condition:
    """S, with all that regressions on it share.

    Args:
        rows: Its rows.
        seed: Of the kernel's landmarks.
        columns: Those to read, that vary; each by itself when None.
        fine: Whether the kernel of a single column is finer than in tests.
    """

    def __init__(self, rows: Rows, seed: int, columns: list[Scored] | None = None, fine: bool = False) -> None:
        self.rows, self.seed = rows, seed
        self.widths = in_force.get().fine_widths if fine else in_force.get().smooth_widths
        self.columns = scored_columns(rows.table) if columns is None else columns

    @cached_property
    def numbers(self) -> list[Known]:
        """Ranks along each column that is a number, (n,)."""
        return [ranks_of(column) for column in self.columns if isinstance(column, Ranks)]

    @cached_property
    def lines(self) -> Known:
        """An orthonormal basis of its lines and labels, (n, r)."""
        most = max(1, int(in_force.get().most_free * len(self.rows)) // len(self.columns))
        return spanned(*(part for column in self.columns for part in lines_of(column, most)))

    @cached_property
    def curves(self) -> Known | None:
        """One of lines and curves of single columns, (n, c); None where rows are too few, or no column is a number."""
        options = in_force.get()
        waves = min(options.curve_waves, len(self.rows) // len(self.columns) // options.rows_per_curve)
        if waves < 2 or not self.numbers:
            return None
        return spanned(self.lines, *(number.along(waves=waves, powers=(2, 3)) for number in self.numbers))

    @cached_property
    def positions(self) -> Array:
        """Normal scores, and positions of symbols, (n, columns)."""
        at = [column.scores if isinstance(column, Ranks) else column.codes for column in self.columns]
        return np.column_stack(at).astype(np.float64)

    @cached_property
    def kernel(self) -> Known:
        """Features of the kernel of its smooth functions, (n, m)."""
        chosen = landmarks(len(self.rows), self.seed)
        space = LandmarkSpace(tuple(column.space for column in self.columns), self.positions[chosen], self.widths)
        kernel = Known(space(self.rows), lambda: space)
        return kernel.mapped(landmark_features(kernel.values, chosen))

    def indices(self, target: Array) -> list[Known]:
        """Ranks along the combinations of columns that a target, (n,), follows: of lines, and of sums of curves."""
        if len(self.columns) == 1 and self.numbers:
            return self.numbers
        straight = index_of(self.lines, target, even=True)
        return [straight] if self.curves is None else [straight, index_of(self.curves, target, even=False)]

    def free_terms(self, indices: Sequence[Known], target: Array) -> Known:
        """All that goes without penalty for the sake of a target, (n,): an orthonormal basis, (n, r)."""
        options = in_force.get()
        n, width = len(self.rows), len(self.columns)
        most = int(options.most_free * n) - self.lines.values.shape[1]
        waves = max(0, min(options.index_waves, most // len(indices)))
        rest = most - waves * len(indices)
        single = max(0, min(options.column_waves, n // (options.rows_per_wave * width), rest // width))
        ranks = [(index, waves) for index in indices] + [(number, single) for number in self.numbers]
        terms = spanned(self.lines, *(rank.along(waves=count) for rank, count in ranks))
        if int(options.most_free * n) - terms.values.shape[1] < options.most_jumps:
            return terms
        jumps = jumps_of(terms, self.lines, self.numbers if width == 1 else [*self.numbers, *indices], target)
        return spanned(terms, *jumps) if jumps else terms

    def regress(self, targets: Array) -> tuple[Residuals, Known]:
        """What S leaves of targets, (n, k), and their means given S.

        For the sake of the first target terms go without penalty.
        """
        indices = self.indices(targets[:, 0])
        narrow = indices if len(self.columns) > 1 and len(self.rows) >= in_force.get().narrow_rows else []
        smooth = side_by_side(self.kernel, *(index.along(narrow=True) for index in narrow))
        free, centre = self.free_terms(indices, targets[:, 0]), smooth.values.mean(axis=0)
        left, weight = residuals(smooth.values - centre, free.values, targets)
        affine = AffineFeatures(np.append(np.zeros(free.values.shape[1]), centre), weight, targets.mean(axis=0))
        return left, Known(targets - left.values, lambda: SpanFunction(side_by_side(free, smooth).space, affine))

    def by_trees(self, targets: Array) -> Array:
        """What trees of other rows say of targets of mean 0, (n, k), shrunk as far as it does not hold."""
        said = out_of_bag(self.positions, targets)
        said -= said.mean(axis=0)
        holds = np.sum(said * targets, axis=0) / np.maximum(np.square(said).sum(axis=0), _TINY)
        return said * holds.clip(0, 1)


@dataclass(frozen=True, eq=False)
class Residuals:
    """What a regression leaves of its targets.

    Attributes:
        values: Shape (n, k).
        vectors: The constant and the eigenvectors of which it takes out more than hardly any, orthonormal, (n, r).
        taken: The share that it takes out of the variance of each of them in each target, (r, k).
        of_rows: The share that it takes out of the variance of each row in each target, (n, k).
        error: The generalised cross-validation of all targets together.
    """

    values: Array
    vectors: Array
    taken: Array
    of_rows: Array
    error: float = 0.0

    def left_of(self, functions: Array) -> Array:
        """What the regressions leave of other functions, one for each target, (n, k)."""
        taken_out = 1 - np.sqrt(1 - self.taken)
        return functions - self.vectors @ (taken_out * (self.vectors.T @ functions)) / len(functions)


def residuals(features: Array, free: Array, targets: Array) -> tuple[Residuals, Array]:
    """Targets, centred, less what a regression predicts of them; and the weights of its predictions, (q + m, k).

    Args:
        features: Those of the kernel, centred, (n, m).
        free: Terms without penalty, orthonormal, (n, q).
        targets: Shape (n, k).
    """
    n, q, targets = len(free), free.shape[1], targets - targets.mean(axis=0)
    shared = free.T @ features / n
    rest = features - free @ shared
    energies, rotation = np.linalg.eigh(rest.T @ rest)
    # Of the others no ridge takes out more than hardly any; and what is close to rounding is nothing.
    rounding = np.finfo(float).eps * np.square(features).sum()
    kept = energies > max(HARDLY * RIDGES[0] * energies[-1], 1e3 * rounding)
    rotation = rotation[:, kept] * np.sqrt(n / energies[kept])
    eigenvalues = np.concatenate([np.full(q, np.inf), energies[kept]])
    coefficients = np.vstack([free.T @ targets, rotation.T @ (rest.T @ targets)]) / n
    left, error = _shares_left(eigenvalues, coefficients, np.square(targets).mean(axis=0), n)
    predicted = (1 - left) * coefficients
    smooth_weight = rotation @ predicted[q:]
    values = targets - free @ predicted[:q] - rest @ smooth_weight
    taken = 1 - left**2
    seen = taken.max(axis=1) > HARDLY
    # Single precision takes half the time, and six digits are enough for variances.
    smooth = rest.astype(np.float32) @ rotation[:, seen[q:]].astype(np.float32)
    vectors = np.hstack([np.ones((n, 1), np.float32), free.astype(np.float32), smooth])
    taken = np.vstack([np.ones((1, taken.shape[1])), taken[seen]])
    of_rows = (np.square(vectors) @ taken.astype(np.float32)).astype(np.float64) / n
    weight = np.vstack([predicted[:q] - shared @ smooth_weight, smooth_weight])
    return Residuals(values, vectors, taken, of_rows, error), weight


def _shares_left(eigenvalues: Array, coefficients: Array, variances: Array, n: int) -> tuple[Array, float]:
    """The share that the ridge of each target leaves of each eigenvector, (r, k), and the least criterion of all."""
    options = in_force.get()
    ridges = RIDGES * np.max(eigenvalues, where=np.isfinite(eigenvalues), initial=1e-300)
    left = ridges / (eigenvalues[:, None] + ridges)  # (r, ridges)
    degrees = 1 + (1 - left).sum(axis=0)
    unexplained = variances - (1 - left**2).T @ coefficients**2
    allowed = (degrees <= options.most_degrees * n) | (ridges == ridges[-1])
    criterion = unexplained / (1 - np.minimum(degrees / n, options.most_degrees))[:, None] ** 2
    criterion = np.where(allowed[:, None], criterion, np.inf)
    chosen = np.maximum(np.argmin(criterion, axis=0) - options.undersmoothing, np.argmax(allowed))
    return left[:, chosen], float(criterion.min(axis=0).sum())


def index_of(terms: Known, target: Array, even: bool) -> Known:
    """Ranks along the combination of orthonormal terms, (n, d), that waves along it explain best.

    Gauss-Newton steps from the best straight fit, and, where rows suffice, from the direction of the strongest
    curvature, which finds what is `even` along a line, and from the best of some random ones, which finds what is
    faster than either shows. (Curves are even and fast themselves.)
    """
    z, (n, d), n_waves = terms.values, terms.values.shape, in_force.get().index_waves
    target = target - target.mean()
    starts = [z.T @ target]
    if even and n > 2 * d * d:
        energies, axes = np.linalg.eigh((z * target[:, None]).T @ z)
        starts += [axes[:, np.argmax(np.abs(energies))], best_at_random(z, target)]
    best, least = np.zeros(d), np.inf
    for direction in starts:
        before = np.inf
        for _ in range(STEPS + 1):
            direction = direction / max(float(np.linalg.norm(direction)), _TINY)
            along = z @ direction
            order = np.argsort(along)
            rising, sought = along[order], target[order]
            twice = np.searchsorted(rising, rising) + np.searchsorted(rising, rising, side="right")  # the mid-ranks
            waves, slopes = (values[twice] for values in wave_table(n, n_waves))
            # Ties may make waves collinear.
            gram = waves.T @ waves + COLLINEAR * n * np.eye(n_waves)
            curve = np.linalg.solve(gram, waves.T @ sought)
            rest = sought - waves @ curve
            error = float(rest @ rest)
            if error < least:
                best, least = direction, error
            if error >= (1 - NEGLIGIBLE) * before:
                break
            before = error
            moves = (slopes @ curve * density(rising))[:, None] * z[order]
            gram = moves.T @ moves
            gram[np.diag_indices(d)] += NEGLIGIBLE * np.trace(gram) / d + _TINY
            direction = direction + np.linalg.solve(gram, moves.T @ rest)
    line = terms.mapped(AffineFeatures(np.zeros(d), best[:, None], np.zeros(1)))
    ranks = mid_ranks(line.values[:, 0])
    return Known(ranks, lambda: RankSpace.fit(line.space, line.values[:, 0], ranks))


def best_at_random(z: Array, target: Array) -> Array:
    """The one of some random directions, (d,), along which waves explain most of a target, (n,)."""
    options, rng = in_force.get(), np.random.default_rng(0)
    some = rng.permutation(len(z))[:DIRECTION_ROWS]
    ways = rng.standard_normal((z.shape[1], options.index_starts))
    ways /= np.linalg.norm(ways, axis=0)
    waves = wave_table(len(some), options.index_waves)[0][1::2]
    told = waves.T @ target[some][np.argsort(z[some] @ ways, axis=0)]
    return ways[:, np.argmax(np.square(told).sum(axis=0))]


@lru_cache(maxsize=4)
def wave_table(n: int, count: int) -> tuple[Array, Array]:
    """Waves and their derivatives wherever mid-ranks of n rows may lie, (2 n, count) each."""
    at, orders = np.arange(2 * n) / (2 * n), np.arange(1, count + 1)
    return cosines_of(at, count), -np.sqrt(2) * np.pi * np.sin(np.pi * np.outer(at, orders)) * orders


def density(rising: Array) -> Array:
    """How fast ranks rise along values in order, (n,): neighbours on either side over the distance between them."""
    n, reach = len(rising), int(np.sqrt(len(rising)))
    low, high = (np.arange(n) - reach).clip(min=0), (np.arange(n) + reach).clip(max=n - 1)
    return (high - low) / n / np.maximum(rising[high] - rising[low], _TINY)


def jumps_of(terms: Known, lines: Known, along: Sequence[Known], target: Array) -> list[Known]:
    """Indicators of the rows beyond the clearest jumps of a target, (n,), along some ranks.

    Jumps are sought in what lines leave of the target, where they are sharp, and taken where they explain what all
    terms so far do not, more than the largest of as many chance jumps would.
    """
    if not along:
        return []
    n, bases, found = len(target), [terms.values, lines.values], []
    before = np.arange(1, n)
    weight = n / (before * (n - before))
    fewest = max(1, in_force.get().ample_count)  # on either side of a jump: means of fewer are not nearly normal
    weight[: fewest - 1] = weight[n - fewest :] = 0
    orders = np.array([np.argsort(one.values) for one in along])
    ordered = [one.values[order] for one, order in zip(along, orders, strict=True)]
    edges = np.array([np.where(np.isnan(at[1:]), at[:-1], (at[:-1] + at[1:]) / 2) for at in ordered])
    weights = np.where(np.isnan(edges), 0, weight)  # rows that miss are alike
    noise = np.square(_left(bases[0], target)).mean()
    for _ in range(in_force.get().most_jumps):
        rest = _left(bases[1], target)
        gains = np.square(np.cumsum(rest[orders], axis=1)[:, :-1]) * weights
        which, where = map(int, np.unravel_index(np.argmax(gains), gains.shape))
        beyond = np.ones((n, 1))
        beyond[orders[which, : where + 1]] = 0
        new = _left(bases[0], beyond[:, 0])
        if (new @ target) ** 2 / max(float(new @ new), _TINY) < 2 * np.log(n * len(orders)) * noise:
            break
        jump = along[which].along(jump=float(edges[which, where]))
        found.append(replace(jump, values=beyond))  # ties in the order in which they came
        bases = [orthonormal(np.hstack([basis, beyond]))[0] for basis in bases]
    return found


def _left(basis: Array, target: Array) -> Array:
    """What an orthonormal basis leaves of a target, centred, (n,)."""
    centred = target - target.mean()
    return centred - basis @ (basis.T @ centred) / len(basis)


MOST_ROWS = 20_000  # that means are learned from; it bounds the time


def mean_given(name: str, side: Any, targets: Array, seed: int) -> SpanFunction:
    """Conditional means given a variable; those of its symbols where they are few.

    Args:
        name: The variable that is given, among those of a side.
        side: Rows of the side.
        targets: Functions on the same rows, (n, k).
        seed: Of the choice of rows and of landmarks.
    """
    rows: Rows = side.of(name)
    if len(rows) > MOST_ROWS:
        some = np.random.default_rng(seed).choice(len(rows), MOST_ROWS, replace=False)
        rows, targets = rows.take(some), targets[some]
    # Uncorrelated functions of equal variance, each with a ridge of its own: so the error of every sum of the
    # targets is small beside that very sum.
    left, scale, right = np.linalg.svd(targets - targets.mean(axis=0), full_matrices=False)
    unit = left[:, scale > ROUNDING * scale[0]] * np.sqrt(len(left))
    back = (scale[:, None] * right)[scale > ROUNDING * scale[0]] / np.sqrt(len(left))
    symbols = joint_symbols(rows)
    columns: list[Scored] = scored_columns(rows.table) if symbols is None else [symbols]
    kernels = (False, True) if len(columns) == 1 and symbols is None else (False,)
    found = (Condition(rows, seed, columns, fine).regress(unit) for fine in kernels)
    _, mean = min(found, key=lambda regression: regression[0].error)
    return SpanFunction(mean.space, AffineFeatures(np.zeros(len(back)), back, targets.mean(axis=0)), (name,))


@saved
@dataclass(eq=False, repr=False)
class CentredSpace(Space):
    """Functions of a side less their means given one of its variables.

    What depends on Y given S must not be mistaken for a function of s, however fine.

    Attributes:
        space: The functions.
        mean: Their means.
    """

    space: Space
    mean: SpanFunction

    @classmethod
    def fit(cls, space: Space, name: str, side: Any, seed: int) -> Space:
        """Learn the means, from rows of the side; images and sequences are no variables to regress on."""
        if side.of(name).variable.is_tensor:
            return space
        return cls(space, mean_given(name, side, space(side), seed))

    def forward(self, rows: Any) -> Tensor:
        """Features of mean 0 given the variable, (n, d)."""
        return self.space.forward(rows) - self.mean.forward(rows)
