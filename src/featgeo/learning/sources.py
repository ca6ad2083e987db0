"""Several sources and a target, any of which may miss: the closed form over all rows, by interaction order.

Functions of each source come first, then products of functions of two, and so on (`featgeo.learning.source_blocks`).
All that follows is moments of rows that carry different blocks.

Which interactions of sources are worth a block of functions: what held-out rows say, one group at a time.

Groups of sources are many, and each brings many functions; most know nothing that sums of functions of fewer sources do
not. So each group is first tried on its own, on the rows that have all of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from featgeo.features.space import Space
from featgeo.features.variables import Candidate, Parts, is_within_an_error, preferred
from featgeo.geometry.incomplete import span_problem
from featgeo.geometry.spans import COLLINEAR, Confirmed, Metric, Patterns, SpanModes, factors_of
from featgeo.geometry.validation import Array
from featgeo.learning.closed import clearness
from featgeo.learning.data import rows_by_pattern
from featgeo.learning.exact import table_of
from featgeo.learning.learned import FEW_FOLDS, Learned, from_solution
from featgeo.learning.setting import Block, ModeCount, Setting, Step
from featgeo.learning.solve import Folds, HeldOut, Search, Solution, solve
from featgeo.learning.source_blocks import SELECTION_ROWS, Group, SourceBlocks
from featgeo.schema import NOT_SAVED, saved
from featgeo.tuning import in_force

PROBE_ROWS = 2048  # rows that small trees are grown on, to see whether anything is left over: bounds time
MOST_FUNCTIONS = 128  # of all interactions of one order together: bounds time, beyond it the closed form takes longest
MOST_JOINT = 1  # groups whose functions are learned jointly, each takes as long as a source: bounds time


def smooth_search() -> Search:
    """Modes, and ridge, of functions that a step goes beyond: all that smooth functions hold of y."""
    options = in_force.get()
    return Search((max(options.mode_counts),), options.weak_ridges[:1])


def worthwhile(blocks: SourceBlocks, groups: Sequence[Group]) -> list[str]:
    """Blocks of those groups of one order that held-out rows want, the most useful first; at least of one group."""
    if blocks.exact:
        return [name for group in groups for name in blocks.of_group(group)]
    tried = sorted((_tried(blocks, group) for group in groups), key=lambda one: -one[0].score)
    names: list[str] = []
    n_functions = 0.0
    for found, _ in tried:
        n_functions += found.cost
        is_clear = not is_within_an_error(found, Candidate(found.what, 0, 0 * found.scores))
        if not names or (is_clear and n_functions <= MOST_FUNCTIONS):
            names.append(blocks.products(found.what))
    joint = sorted((one for one in tried if one[1] > in_force.get().group_errors), key=lambda one: -one[1])
    return names + [blocks.joint(found.what) for found, _ in joint[:MOST_JOINT]]


def _tried(blocks: SourceBlocks, group: Group) -> tuple[Candidate[Group], float]:
    """A group, by its number of products and the energy that they add on held-out rows; and what trees still see."""
    index = blocks.some(blocks.judging(blocks.data.having(*group, "y")), SELECTION_ROWS)
    fewer = [name for name, of in blocks.of.items() if set(of) < set(group)]
    products = blocks.products(group)
    features = blocks.features_of([*fewer, products, "y"], index)
    folds = Folds.from_chunks([features], FEW_FOLDS, blocks.seed)
    searches = [smooth_search(), Search((0, *in_force.get().mode_counts), blocks.plan.ridges(weak=True))]
    solution = solve(folds, [(fewer, "y"), ([*fewer, products], "y")], searches)
    left_over = 0.0
    if blocks.may_join(group) and blocks.data.rows[group[0]].variable.is_tensor:
        left_over = np.inf  # networks learn together what they learn at all
    elif blocks.may_join(group):
        probed = blocks.some(np.arange(len(index)), PROBE_ROWS)
        rows = blocks.data.take(index[probed], *group).of(*group)
        left_over = clearness(rows, _residuals(solution, features)[probed], blocks.seed)
    return Candidate(group, features[products].shape[1], solution.held_out_energies(-1)), left_over


def _residuals(solution: Solution, features: dict[str, Array]) -> Array:
    """What the levels leave of the functions of y that they explain, (n, k)."""
    first = solution.levels[0]
    x, y = np.hstack([features[name] for name in first.x]), np.hstack([features[name] for name in first.y])
    g = first.g(y)
    turn = [modes.g.weight.T @ solution.covariance(modes.y) @ first.g.weight for modes in solution.levels]
    explained = [(modes.f(x) * modes.sigma) @ part for modes, part in zip(solution.levels, turn, strict=True)]
    return np.asarray(g - np.sum(explained, axis=0))


CONSISTENT = 1e-9  # share of energy that rounding may cost


@saved
@dataclass(frozen=True, eq=False)
class SourceFeatures:
    """Features of several sources, known from whichever of them a row has.

    Attributes:
        of: For each block of functions the sources that it reads.
        spaces: The functions of each block.
        metric: Inner products of all of them.
        weight: The features as combinations of all functions, (d, k), those of each level side by side.
        filled_from: For each level how many features it has, and the blocks that fill in for what misses.
        ridge: Shrinkage of conditional expectations given some of the sources.
    """

    of: Mapping[str, Group]
    spaces: Mapping[str, Space]
    metric: Metric
    weight: Array
    filled_from: tuple[tuple[int, tuple[str, ...]], ...]
    ridge: float

    def __call__(self, rows: Parts) -> Array:
        """E[f | the sources that are there], (n, k); a symbol that the fit never saw counts as missing."""
        there = [name for name, sources in self.of.items() if set(sources) <= set(rows.rows)]
        known = {name: self._known(name, rows) for name in there}
        for name in there:
            for part, sources in self.of.items():
                if part in known and set(sources) < set(self.of[name]):
                    known[name] = known[name] & known[part]
        result = np.zeros((len(rows), self.weight.shape[1]))
        if not there:
            return result
        for pattern, index in rows_by_pattern(np.stack(list(known.values()), axis=1)):
            names = [name for name, is_known in zip(there, pattern, strict=True) if is_known]
            if names:
                result[index] = self._values(rows if len(index) == len(rows) else rows.take(index), names)
        return result

    def parts(self, rows: Parts) -> dict[str, Array]:
        """What each source adds to the features, (n, k), by source; for rows that have them all.

        Interactions are left out.
        """
        result: dict[str, Array] = {}
        for name, sources in self.of.items():
            if len(sources) == 1:
                columns = self.metric.columns([name])
                value = (self.spaces[name](rows) - self.metric.mean[columns]) @ self.weight[columns]
                result[sources[0]] = result.get(sources[0], 0.0) + value
        return result

    def _known(self, name: str, rows: Parts) -> np.ndarray:
        table = table_of(self.spaces[name])
        return np.ones(len(rows), dtype=bool) if table is None else table.index(rows.of(*self.of[name])) >= 0

    def _values(self, rows: Parts, names: list[str]) -> Array:
        features: dict[str, Array] = {}
        result, start = [np.empty((len(rows), 0))], 0
        for level, (size, reach) in enumerate(self.filled_from):
            weight, start = self.weight[:, start : start + size], start + size
            if not size or not set(names) & set(self.metric.levels[level]):  # orthogonal to all that is there
                result.append(np.zeros((len(rows), size)))
                continue
            read = [name for name in self.metric.names if name in names and name in reach]
            features |= {name: self.spaces[name](rows) for name in read if name not in features}
            values = np.hstack([features[name] for name in read])
            # Where nothing misses, the same functions.
            result.append(self.metric.onto(read, weight, self.ridge, level)(values))
        return np.hstack(result)


@saved
@dataclass(frozen=True, eq=False, kw_only=True)
class LearnedSources(Learned):
    """The components of a dependence by interaction order.

    Attributes:
        features: Features of the sources, all levels side by side.
        amplitudes: How strong each mode of each level is on held-out rows, as a share of what it seems to be.
        levels: The blocks that each level adds.
        interaction_sigma: Singular values of all levels but the first taken as one component.
        removed: Share of energy by which moments of different rows did not fit together.
        folds: The moments behind it.
    """

    features: SourceFeatures
    amplitudes: tuple[Array, ...]
    levels: tuple[tuple[str, ...], ...]
    interaction_sigma: Array
    removed: float
    folds: Folds | None = field(default=None, metadata=NOT_SAVED)


def learn_sources(
    blocks: SourceBlocks, orders: Sequence[Sequence[Group]], n_modes: Sequence[ModeCount]
) -> LearnedSources:
    """Learn the component of each interaction order.

    Args:
        blocks: Where the functions come from.
        orders: For each order the groups of sources whose functions it adds; first each source alone.
        n_modes: How many modes of each order at most, "auto" or "all".
    """
    # All blocks of single sources, and those interactions that are worth it.
    first = tuple(name for group in orders[0] for name in blocks.of_group(group))
    levels = (first, *(tuple(worthwhile(blocks, groups)) for groups in orders[1:]))
    names = sum(levels, ())
    folds = Folds.from_chunks(blocks.features((*names, "y")), in_force.get().folds, blocks.seed)
    spans = [(sum(levels[: i + 1], ()), "y") for i in range(len(levels))]
    solution, exact = _solved(blocks, folds, spans, n_modes)
    of = {name: blocks.of[name] for name in names}
    spaces = {name: blocks.spaces[name] for name in names}
    steps = tuple(Step(n_modes[i], level, ("y",) if i == 0 else ()) for i, level in enumerate(levels))
    setting = Setting({n: Block(None, of=g) for n, g in of.items()}, {"y": Block(None, of=("y",))}, steps)
    solver = "exact" if exact else "neural" if blocks.networks else "closed"
    record = from_solution(solution, setting, {**spaces, "y": blocks.spaces["y"]}, ("", ""), solver, None)
    record = record.without_harm(setting)
    modes = [part.first(len(component)) for part, component in zip(solution.levels, record.components, strict=True)]
    weight = np.hstack([part.f.weight for part in modes])
    reach = [names if exact else read for read, _ in spans]
    filled_from = tuple((len(part), tuple(read)) for part, read in zip(modes, reach, strict=True))
    ridge = 0.0 if exact else projection_ridge(solution, levels[0])
    return LearnedSources(
        **vars(record),
        features=SourceFeatures(of, spaces, solution.problem.x, weight, filled_from, ridge),
        amplitudes=tuple(np.ones(len(m)) if exact else solution.amplitudes(i)[: len(m)] for i, m in enumerate(modes)),
        levels=levels,
        interaction_sigma=_as_one(modes[1:], solution.problem.y.gram),
        # How well the rows fit together shows where the metric is taken for known.
        removed=span_problem(folds.whole, spans[:1]).removed,
        folds=solution.folds,
    )


def _solved(
    blocks: SourceBlocks, folds: Folds, levels: Sequence[tuple[tuple[str, ...], str]], n_modes: Sequence[ModeCount]
) -> tuple[Solution, bool]:
    """The modes of each level, and whether they are those of the counts themselves."""
    if blocks.exact:
        # All functions of a finite alphabet are equal: none is smoother than another, and there is no ridge.
        counts = solve(folds, levels, [Search.of("all" if isinstance(n, str) else n, (0.0,)) for n in n_modes])
        complete = len(folds.whole.parts) == 1
        if blocks.plan.solver == "exact" or (complete and counts.problem.removed < CONSISTENT):
            return counts, True
    # Interactions are often absent: then none is learned.
    searches = [Search(blocks.counts(n, first=i == 0), blocks.plan.ridges()) for i, n in enumerate(n_modes)]
    if len(folds.whole.parts) == 1:
        closed = solve(folds, levels, searches)
    else:
        reduced = folds.reduced(_confirmed(folds, {name: blocks.of[name] for name in levels[0][0]}))
        closed = solve(reduced, levels, searches, tau_ridges=in_force.get().weak_ridges[:-1])
    # Counts of different rows that do not fit together have no exact answer, and rare symbols may have a wild one.
    fits = blocks.exact and counts.problem.removed < CONSISTENT
    wild = fits and closed.held_out_score > 0 and counts.held_out_score < in_force.get().wild * closed.held_out_score
    return (counts, True) if fits and not wild else (closed, False)


def _confirmed(folds: Folds, of: Mapping[str, Group]) -> tuple[Confirmed, ...]:
    """What held-out rows confirm of how sources depend on each other, where few rows have two of them.

    Where as many rows show that as show what either says of y, it is no more of noise than the rest.
    """
    blocks = [tuple(name for name in of if of[name] == group) for group in dict.fromkeys(of.values())]
    options, weight, found = in_force.get(), folds.whole.all.weight, []
    for pair in combinations(blocks, 2):
        (a, *_), (b, *_) = pair
        if weight(a, b) >= max(weight(a, "y"), weight(b, "y")):
            continue
        # Rows of several kinds take the metric for known: a ridge changes no score there, and the least is enough.
        solution = solve(folds, [pair], [Search((0, *options.mode_counts), options.ridges[:1])])
        found.append(Confirmed(pair, solution.choices[0], solution.amplitudes(0)))
    return tuple(found)


def projection_ridge(solution: Solution, singles: Sequence[str]) -> float:
    """The ridge of conditional expectations: by H-scores of the first level from single blocks on held-out rows."""
    if solution.tau_ridge is not None or not solution.problems:
        return solution.tau_ridge or 0.0
    scores, ridges = [], in_force.get().ridges
    for fold, problem in zip(solution.held_out, solution.problems, strict=True):
        unseen = solution.folds.parts[fold].all
        alone = Patterns({frozenset((name, "y")): unseen for name in singles if name in unseen.dims})
        first = problem.best_directions(solution.choices)[:1]  # what comes after it is not to change it
        scores.append([HeldOut.of(problem, alone, ridge).score(factors_of(first)) for ridge in ridges])
    return preferred([Candidate(ridge, 1, np.array(scores)[:, i]) for i, ridge in enumerate(ridges)]).what


def _as_one(levels: Sequence[SpanModes], y_gram: Array) -> Array:
    """Singular values of orthogonal components taken together, the larger ones first."""
    energies, turn = np.linalg.eigh(y_gram)
    root = turn * np.sqrt(energies.clip(min=0))
    rows = [modes.sigma[:, None] * (modes.g.weight.T @ root) for modes in levels]
    sigma = np.linalg.svd(np.vstack([np.empty((0, len(y_gram))), *rows]), compute_uv=False)
    return np.asarray(sigma[sigma > COLLINEAR])
