"""The numbers that steer a result and that nothing derives: one object, with defaults that all figures are measured at.

    with fg.options(finite_values=64):
        model.fit(x, y)

What only bounds memory or time stays beside the code that it bounds.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, fields, replace
from typing import Any


@dataclass(frozen=True)
class Options:
    """All numbers with their defaults: none is negative, whole ones stay whole, a tuple is a grid to choose from."""

    # Rows that miss blocks
    more_pairs: float = 2.0  # blocks stand by their complete rows, unless each pair is seen so many times more often

    # Spaces of features
    finite_values: int = 32  # a variable of no more values (and no more than the root of n) is a finite alphabet; a
    # column of no more labels has an indicator of each, one of more labels as many for its frequent ones
    shared_labels: float = 0.05  # share of the rows, at least, that have a label of others too: else it names the row
    rows_a_function: int = 10  # at least, for each label or function that is learned by itself: fewer show noise. So
    # many that say nothing are added to each leaf of a boosted tree, which then has half as many at least
    folds: int = 5  # parts of the rows that are left out once: more cost more, fewer leave less to learn from
    chance_copies: float = 0.1  # rows that would equal a given one by chance: with fewer, equal rows are copies
    ample_count: int = 5  # rows that each cell must be expected to have for limits and counts to speak for it (Cochran)
    ample_share: float = 0.8  # of the cells of a table that must, while the others may have as few as one
    outer_share: float = 0.002  # of the rows lie outside of either end that "bounded" numbers are measured by
    outer_reach: float = 4.0  # they end so many times as far from the middle: 11 deviations of a bell curve
    kernel_gammas: tuple[float, ...] = (0.1, 0.3, 1.0, 3.0)  # inverse squared widths of kernels, the smoothest first
    joint_gamma: float = 0.3  # of several columns together, beside which "auto" learns a metric
    kernel_features: int = 48  # of one number: as many as the sharpest kernel needs
    joint_kernel_features: int = 200  # of several columns together
    metric_gammas: tuple[float, ...] = (0.3, 1.0, 3.0)  # the same in a learned metric, which may be sharper
    metric_ridges: tuple[float, ...] = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1)  # of regressions in it, over all variance
    normal_knots: int = 5  # of splines of normal scores: few, so that their cubics can follow Hermite polynomials
    uniform_knots: int = 8  # of splines of uniform scores, which need no room beyond the knots
    rows_beyond_knots: int = 300  # of normal scores, on either side: no piece of a spline rests on fewer
    longest_window: int = 4  # symbols: the width of the paper's convolution of sequences
    forest_trees: int = 150  # that a new row passes through for all functions together
    bagged_trees: int = 25  # of a forest of deep trees for all functions together
    bagged_columns: float = 0.5  # share of the columns that a split of theirs is chosen from
    averaged_forests: int = 3  # of a hundred trees each, where there is a single function
    leaves_a_root: float = 0.4  # leaves of a boosted tree for each root of the rows: more follow the noise of few rows
    index_ridges: tuple[float, ...] = (1e-9, 1e-6, 1e-4, 1e-2, 1.0)  # of a direction, shares of the mean variance
    index_knots: tuple[int, ...] = (4, 7, 12)  # of the curves along an index: from nearly a line to waves
    curve_folds: int = 10  # of the points along an index: curves are fitted in no time, so each may leave out fewer

    # Distributions
    calibrating_rows: int = 50  # held-out rows to calibrate by; frequencies of fewer are off by more than 0.07
    mean_waves: int = 4  # half-waves along predicted means that recalibration follows: finer ones cannot be told
    tail_rows: int = 10  # held-out rows beyond a quantile that recalibration maps on its own
    atom_rows: float = 3.0  # a number with so many times the rows of others keeps its mass to itself
    density_shares: tuple[float, ...] = (0.12, 0.06, 0.03, 0.015, 0.008, 0.004)  # of Y that curves of densities cover
    unseen_ratio: float = 1e-6  # density ratio of a label that no held-out row shows: rare, not impossible
    told_sigma: float = 0.02  # held-out strength of modes whose information is asked
    told_new: float = 0.2  # share of a mode's variance that those before it leave, for it to be asked as well
    told_share: float = 0.05  # of what was told so far, that a further mode must seem to add to be asked
    least_probability: float = 1e-9  # of what was never seen: no single row outweighs all others in a log loss
    rows_a_history: float = 1.25  # of a sequence, for a table of them; with fewer next to no history comes back

    # Reports
    doubt_errors: float = 2.0  # standard errors by which held-out rows must differ before that counts
    confidence: float = 0.95  # of limits and intervals that no argument sets
    halved_rows: int = 1000  # that leaks are learned on halves of; thirds of fewer rows are held out
    erased_share: float = 1e-6  # of the variance: a copy of Z that erasers leave in smaller combinations is rounding

    # Learning: what held-out rows choose from. Few each: what they say is flat around its maximum
    ridges: tuple[float, ...] = (1e-6, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)  # beside features of unit variance
    weak_ridges: tuple[float, ...] = (1e-2, 1e-1, 1.0)  # of functions that are many and weak: less would fit noise
    mode_counts: tuple[int, ...] = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 25, 32)  # where the number is "auto"
    tried_modes: int = 8  # of a pair of spaces that is tried before the number of modes is chosen
    least_seen: float = 0.05  # share of a function that rows with missing sources must see to judge it
    label_rows: tuple[float, ...] = (1.0, 4.0, 16.0, 64.0)  # added to each label of a thin table
    # Rows that a shorter history is worth beside those of a longer one.
    history_rows: tuple[float, ...] = (0.01, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1e3, 1e4, 1e5)
    history_discounts: tuple[float, ...] = (0.0, 0.1, 0.25, 0.5, 0.75, 0.9)  # taken off each count after a history
    history_uniform: tuple[float, ...] = (0.0, 0.1, 0.3, 1.0)  # shares of the uniform beside the shorter history
    empty_count: float = 50.0  # rows that an empty cell of histories must be expected to have to be called impossible

    # Learning: when more is tried
    tree_rows: int = 500  # boosting and indices are tried from so many rows on: with fewer, trees only memorise
    worth_more: float = 0.01  # share of its H-score that small trees must add to a solution before large ones are grown
    few_rows: int = 150  # the same of regressors that learn all functions together
    targets: int = 12  # functions of the other side that regressors learn to predict, at most
    least_strength: float = 0.01  # the sigma of functions that no pilot found: they are wanted last
    group_errors: float = 3.0  # as `doubt_errors`, for what a group of sources knows together: groups are many
    group_functions: int = 64  # products of functions of a group of sources, at most
    group_rows: int = 40  # rows for each of them
    symbol_rows: int = 25  # rows for each symbol of finite sources: with fewer, counts are half chance
    additive_functions: int = 40  # splines of a source, beside what is learned of it, at most
    wild: float = 0.5  # exact answers that lose more of the smooth ones' held-out score to rare symbols are not taken
    apart_rows: int = 300  # that networks of sources are not trained on, at least (a third of few)
    apart_rows_of_a_kind: int = 30  # the same of rows that have the same sources
    joint_rows: int = 50  # that have several sources, to learn functions of them together from

    # Tests of independence
    test_waves: int = 12  # half-waves of a number: rougher functions take more rows than tests get
    test_features: int = 24  # of single columns together, of a column of labels, and of a kernel
    own_waves: int = 2  # of each of several numbers by itself: the smoothest are enough to find which columns depend
    rows_per_feature: int = 4  # at least: the roughest features of few rows are noise
    test_gamma: float = 0.3  # inverse squared width of the kernel of several columns, over their total variance
    added_variance: float = 0.2  # of the energy of a block, over that of chi-square, up to which a limit is trusted

    # Tests given S
    probe_waves: int = 6  # of a number of X or Y, and twice as many functions of several columns
    probe_decay: float = 1.5  # power with which their weights fall: most dependence shows in the first
    probe_symbols: int = 16  # of a column, the rarer ones count as one; and functions of S, at most
    determined: float = 1e-3  # share of its variance that S leaves of a function, with which it says nothing more
    unordered_values: int = 3  # of a number of X or Y; with more values their order counts
    modulating_waves: int = 2  # of each column of S: where a dependence changes, it does so smoothly
    modulation: float = 0.75  # weight of all functions of S that multiply residuals; the constant has weight 1
    doubted: float = 0.2  # p-values up to which trees seek what regressions on S missed: larger ones are no evidence
    modulated_probes: int = 4  # of X and of Y: all of them times all functions of S would drown the rest

    # Regression on S
    undersmoothing: int = 2  # steps of half a decade below the ridge of least cross-validation: less bias
    most_degrees: float = 0.5  # of freedom, over n: beyond, cross-validation takes interpolation for a good fit
    most_free: float = 0.25  # terms without penalty, over n; beyond, the rarest labels of a column count as one
    same_line: float = 0.97  # squared correlation of a number and its normal score from which one of them does
    index_waves: int = 5  # half-waves along an index: a curve that turns up to four times
    index_starts: int = 300  # random directions that an index is sought from: of five columns they miss none by much
    column_waves: int = 8  # along a column, at most: what is rougher is left to the kernel
    rows_per_wave: int = 80  # along a column: each wave adds variance
    curve_waves: int = 4  # of the columns whose sum is an index
    rows_per_curve: int = 50  # of each: with fewer a combination of them follows the noise
    narrow_rows: int = 500  # from so many on, functions along indices may be narrow
    most_jumps: int = 4  # of a target: more are no longer simple
    smooth_widths: tuple[float, ...] = (0.3, 1.0)  # of kernels of one column, in normal scores: rows suffice for both
    fine_widths: tuple[float, ...] = (0.1,)  # tried beside them where means are taken off: they may be fine

    # Exploring
    explore_cells: int = 256  # of a number, at most; fewer where columns are many
    explore_waves: tuple[int, ...] = (4, 12, 34)  # functions of a number at three resolutions, few, more and many
    explore_steps: int = 12  # intervals of a number on which a function may be constant, at most
    labels_at_once: int = 8  # functions of labels that are tested together, since none is smoother than another; beyond
    # them are those of rarer labels, which would hide what these show
    equal_rows: int = 4  # rows that are equal to a row, on average, up to which folds are dealt by what rows hold
    least_gain: float = 1e-3  # over what those before hold, for a column to be among the fewest that tell of a target
    redundant: float = 0.98  # strength, or share told by another column, from which a column says little of its own
    sum_functions: int = 8  # of a column, in sums of functions of all columns that tell of a target
    normal_scale: float = 0.2  # share of variance that sums must tell more of than of a number's normal score
    same_scale: float = 0.8  # squared correlation of a number with that scale, from which it counts as it is, too
    target_classes: int = 6  # of a target of labels, in interactions: the others count as one of them
    interaction_pairs: int = 30  # whose interaction is measured on all rows: those that a sample finds the strongest
    interaction_functions: int = 3  # of a column whose products with others' are looked at for all pairs
    interaction_cells: int = 8  # of each of two columns, for what both tell together
    interaction_rows: int = 20  # of each cell of both, at least
    own_cells: int = 64  # of each of two columns, for what it tells by itself
    least_ratio: float = 0.01  # that a density over the product of its margins is taken to be, for information

    # Side information
    side_s_features: int = 24  # of S, and
    side_y_features: int = 12  # of Y: few enough that all their products stay a few hundred
    side_additive: int = 80  # splines of all columns; beyond, functions linear in the columns
    least_together: float = 0.2  # that 1 + f.g of x and s is taken to be: pairs that are seen are rarely less likely
    features_model_rows: int = 200  # for a model of features of x beside s, at least

    def __post_init__(self) -> None:
        for field in fields(self):
            _check(field.name, getattr(self, field.name), field.default)


def _check(name: str, value: Any, default: Any) -> None:
    """Refuse what is not of its default's kind."""
    if isinstance(default, tuple):
        if not isinstance(value, tuple) or not value:
            raise ValueError(f"`{name}` must be a tuple of numbers such as {default}, got {value!r}.")
        for entry in value:
            _check(name, entry, default[0])
        return
    kind = int if isinstance(default, int) else (int, float)
    if not isinstance(value, kind) or isinstance(value, bool) or not 0 <= value < math.inf:
        raise ValueError(
            f"`{name}` must be a {'whole ' * (kind is int)}number, finite and not negative, got {value!r}. "
            f"The default is {default}."
        )


in_force: ContextVar[Options] = ContextVar("options", default=Options())  # noqa: B039 - it is frozen


@contextmanager
def options(**numbers: Any) -> Iterator[Options]:
    """Other numbers inside a `with` block, for its thread; blocks add up.

    Args:
        **numbers: Fields of `Options`.

    Yields:
        The options in force.
    """
    with under(replace(in_force.get(), **numbers)) as given:
        yield given


@contextmanager
def under(given: Options) -> Iterator[Options]:
    """All of these numbers inside a `with` block: what a fit puts off is done as it would have been then."""
    token = in_force.set(given)
    try:
        yield given
    finally:
        in_force.reset(token)
