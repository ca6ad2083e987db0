"""What identifies what: which components of a dependence the rows at hand can tell, before anything is learned.

Rows with a source and Y identify the dependence of the two. Rows of two sources together, with or without Y, say how
these depend on each other; with all such pairs, sums of functions of the sources are identified, and with them every
posterior given some of them. Rows with several sources and Y at once identify their interaction.

Rows of several sources and of Y as users hand them in: in one table with missing cells, whose columns may be cut into
sources, or in several data sets.

How much each source and each interaction knows about Y: energies of parts of the dependence.

Every line is the energy of one step: what some functions hold of the dependence beyond others. All come from the same
moments; on held-out rows they are estimates from below, about 0 where there is nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import narwhals.stable.v1 as nw
import numpy as np

from featgeo.card import Card
from featgeo.features.columns import check_unique_names, present, rows_of, shape_of, stacked, taken
from featgeo.features.combined import as_columns
from featgeo.features.variables import Rows
from featgeo.geometry.validation import n_rows_in
from featgeo.learning.data import Incomplete, Pairs
from featgeo.learning.solve import Search, solve
from featgeo.learning.sources import LearnedSources, smooth_search
from featgeo.models.base import check_varying, interval_of, mean_and_error
from featgeo.records import Records, Result, as_plain
from featgeo.schema import saved
from featgeo.tuning import in_force

RESERVED = ("y", "prior", "calibrated")  # what `fit` and `given` call other things
MARKS = (" + ", " x ", ", ", "(", ")")  # what names of components are made with


def by_source(X: Any, sources: Any, every: bool = False) -> Mapping[str, Any]:
    """Rows of each source by name: of a mapping as they are, of a table its columns.

    Args:
        X: What a user handed in.
        sources: The columns of each source, by its name; None where X must be a mapping.
        every: Whether all sources are due; else those are left out of which a frame has no column.
    """
    if isinstance(X, Mapping):
        return X
    if not isinstance(sources, Mapping):
        raise ValueError(
            f"Rows of several sources must be a mapping from name to rows, got {type(X).__name__}. Pass "
            "{'name': rows, ...}, or say which columns of a table belong to each: MultimodalDecomposition(sources="
            "{'name': ['column', ...], ...}); for a single source use ModalDecomposition."
        )
    table = rows_of(X, "X")
    if len(shape_of(table, "X")) != 2:
        raise ValueError(f"X must have columns to be cut into sources, got shape {shape_of(table, 'X')}. Pass a frame.")
    named = nw.dependencies.is_into_dataframe(table)
    if named:
        check_unique_names(table, "X")
        table = nw.from_native(table, eager_only=True)
    names: list[Any] = list(table.columns) if named else list(range(table.shape[1]))
    wanted = {source: as_columns(columns) for source, columns in sources.items()}
    there = {source: [_position(column, names) for column in columns] for source, columns in wanted.items()}
    for source, positions in there.items():
        if not positions or (None in positions and (every or not named or set(positions) != {None})):
            raise ValueError(
                f"The source {source!r} must have columns of X, got {list(wanted[source])}, and X has {names}. Correct "
                "`sources`, or pass the missing columns."
            )
    parts = {source: table[:, positions] for source, positions in there.items() if None not in positions}
    return {source: part.to_native() if named else part for source, part in parts.items()}


def _position(column: str | int, names: list[Any]) -> int | None:
    """Where a column is, by name, or by position from either end; None where it is not."""
    if column in names:
        return names.index(column)
    return range(len(names))[column] if isinstance(column, int) and -len(names) <= column < len(names) else None


def read_rows(datasets: Sequence[Mapping[str, Any]], masks: Mapping[str, Any]) -> Incomplete:
    """All rows, one data set after the other, with where each variable is there.

    Args:
        datasets: Rows by name, those of one data set in the same order; Y is called "y".
        masks: By name, which rows are there, for a single data set.
    """
    names = list(dict.fromkeys(name for part in datasets for name in part))
    _check_names(names)
    if not isinstance(masks, Mapping):
        raise ValueError(f"`present` must be a mapping from name to a boolean array, got {type(masks).__name__}.")
    unknown = set(masks) - set(names)
    if unknown:
        raise ValueError(f"`present` names {sorted(unknown)}, which are no variables here: {names}.")
    n_rows = [n_rows_of(part, f" in the data set at position {i}") for i, part in enumerate(datasets)]
    rows, where = {}, {}
    for name in names:
        came = [rows_of(part[name], shown(name)) if name in part else None for part in datasets]
        has = [
            np.zeros(n, dtype=bool) if values is None else _present(values, name, masks.get(name))
            for values, n in zip(came, n_rows, strict=True)
        ]
        pieces = [
            values if there.all() else taken(values, np.flatnonzero(there))
            for values, there in zip(came, has, strict=True)
            if there.any()
        ]
        if not pieces:
            raise ValueError(
                f"{shown(name)} is missing in every row: nothing can be learned from it. "
                + ("Pass rows of Y." if name == "y" else "Leave it out.")
            )
        values, there = stacked(pieces, shown(name)), np.concatenate(has)
        rows[name] = Rows.seen(values, shown(name))
        where[name] = np.where(there, np.cumsum(there) - 1, -1)
    check_varying(**{shown(name): part for name, part in rows.items()})
    Pairs(rows["y"], rows["y"]).check_y()
    return Incomplete(rows, where).in_order()


def n_rows_of(part: Mapping[str, Any], where: str = "") -> int:
    """How many rows the variables of a data set have, all of them the same."""
    lengths = {name: n_rows_in(rows_of(values, shown(name))) for name, values in part.items()}
    if len(set(lengths.values())) != 1:
        raise ValueError(
            f"All variables must have the same rows, got inconsistent numbers of samples{where}: {lengths}. Align them "
            "row by row, or pass data sets of their own to fit_datasets."
        )
    return next(iter(lengths.values()))


def shown(name: str) -> str:
    """What messages call a variable."""
    return "Y" if name == "y" else name


def _present(values: Any, name: str, mask: Any) -> np.ndarray:
    there = present(values, shown(name))
    if mask is None:
        return there
    given = np.asarray(mask)
    if given.dtype != bool or given.shape != there.shape:
        raise ValueError(
            f"`present[{name!r}]` must be boolean of shape {there.shape}, got {given.dtype} of shape {given.shape}."
        )
    return there & given


def _check_names(names: list[str]) -> None:
    bad = [
        name
        for name in names
        if not isinstance(name, str) or not name or name in RESERVED[1:] or any(mark in name for mark in MARKS)
    ]
    if bad:
        raise ValueError(
            f"Sources need names that are texts other than {RESERVED}, without any of {MARKS}, got {bad[0]!r}. "
            "Rename it."
        )
    sources = [name for name in names if name != "y"]
    if "y" not in names:
        raise ValueError(f"No data set has Y, got {names}. Call it 'y'.")
    if len(sources) < 2:
        raise ValueError(
            f"A multimodal decomposition needs at least two sources, got {sources}. For a single one use "
            "ModalDecomposition."
        )


Group = tuple[str, ...]


@saved
@dataclass(frozen=True, repr=False)
class Identified(Result):
    """Whether a component was learned, and why.

    Attributes:
        name: The source alone ("a"), sums of functions of several ("a + b"), or their interaction ("a x b").
        learned: Whether it was.
        rows: How many rows identify it: the fewest of those that it needs.
        reason: What identifies it, or what misses.
    """

    name: str
    learned: bool
    rows: int
    reason: str

    def card(self) -> Card:
        """The verdict in one line."""
        return Card([f"{self.name}: {'learned' if self.learned else 'absent'}, {self.reason}"])


@saved
@dataclass(frozen=True)
class Team:
    """Sources that were seen together, pair by pair, and with Y.

    Attributes:
        sources: Their names.
        orders: For each interaction order the groups of sources whose functions are identified.
    """

    sources: Group
    orders: tuple[tuple[Group, ...], ...]

    def name(self, order: int) -> str:
        """What the component of an interaction order is called."""
        if order == 1:
            return " + ".join(self.sources)
        whole = order == len(self.sources)
        return " x ".join(self.sources) if whole else f"interactions of {order} in {' + '.join(self.sources)}"

    def knowledge(self, there: Group) -> tuple[int, int]:
        """How many functions of sources that are there it has, and how large it is: the better one answers."""
        known = sum(set(group) <= set(there) for groups in self.orders for group in groups)
        return known, len(self.sources)


def identify(data: Incomplete, sources: Group, max_order: int) -> tuple[tuple[Team, ...], dict[str, Identified]]:
    """The teams of sources to learn from, the largest first, and what is known of every component.

    A team is a largest set of sources that were seen together pair by pair. Where its interactions cannot all be told
    apart, groups of sources that can be on their own are teams as well.
    """

    def rows(*names: str) -> int:
        return len(data.having(*names))

    sizes = range(1, min(max_order, len(sources)) + 1)
    groups = {" x ".join(group): group for size in sizes for group in combinations(sources, size)}
    found = {name: _verdict(name, rows(*group, "y"), (*group, "Y")) for name, group in groups.items()}
    with_y = tuple(source for source in sources if found[source].learned)
    friends = {a: {b for b in with_y if b != a and rows(a, b) >= in_force.get().rows_a_function} for a in with_y}
    cliques: set[frozenset[str]] = {frozenset()}  # the largest sets of friends, of more and more sources
    for source in with_y:
        grown = cliques | {clique & friends[source] | {source} for clique in cliques}
        cliques = {clique for clique in grown if not any(clique < other for other in grown)}
    teams = [
        _team(tuple(source for source in sources if source in clique), max_order, rows)
        for clique in sorted(cliques if with_y else (), key=lambda team: (-len(team), sorted(team)))
    ]
    for name, group in groups.items():
        known = found[name].learned and any(group in order for team in teams for order in team.orders)
        alone = _team(group, max_order, rows) if set(group) <= set(with_y) and not known else None
        if alone is not None and len(alone.orders) == len(group):
            teams.append(alone)
        elif found[name].learned and not known:
            found[name] = replace(found[name], learned=False, reason="functions of fewer of these sources are absent")
    for team in teams:
        if len(team.sources) > 1:
            fewest = min(rows(a, b) for a, b in combinations((*team.sources, "y"), 2))
            reason = "every pair of these sources, and each with Y, was seen"
            found[team.name(1)] = Identified(team.name(1), True, fewest, reason)
    everything = " + ".join(sources)
    if everything not in found:
        found[everything] = Identified(everything, False, 0, _missing_pair(sources, with_y, friends))
    return tuple(teams), found


def _team(members: Group, max_order: int, rows: Callable[..., int]) -> Team:
    """The interaction orders of some sources that are identified: all groups of an order, or none.

    Every two of the functions must have been seen together, else they cannot be told apart.
    """
    orders: list[tuple[Group, ...]] = [tuple((source,) for source in members)]
    for order in range(2, min(max_order, len(members)) + 1):
        groups = tuple(combinations(members, order))
        before = [group for earlier in orders for group in earlier]
        with_y = min(rows(*group, "y") for group in groups)
        together = min(rows(*dict.fromkeys((*group, *other))) for group in groups for other in (*before, *groups))
        if min(with_y, together) < in_force.get().rows_a_function:
            break
        orders.append(groups)
    return Team(members, tuple(orders))


def _verdict(name: str, n: int, needed: Group) -> Identified:
    lacks = f"it needs at least {in_force.get().rows_a_function} rows with {_listed(needed)} together, got {n}"
    return Identified(
        name,
        n >= in_force.get().rows_a_function,
        n,
        f"{n} rows with {_listed(needed)}" if n >= in_force.get().rows_a_function else lacks,
    )


def _missing_pair(sources: Group, with_y: Group, friends: dict[str, set[str]]) -> str:
    without = [source for source in sources if source not in with_y]
    if without:
        return f"{_listed(without)} never came with Y often enough"
    a, b = next((a, b) for a, b in combinations(sources, 2) if b not in friends[a])
    return f"it needs rows with {a} and {b} together"


def _listed(names: Sequence[str]) -> str:
    return " and ".join(names) if len(names) < 3 else f"{', '.join(names[:-1])} and {names[-1]}"


@saved
@dataclass(frozen=True, repr=False)
class Energy(Result):
    """The energy of one step; print it for a line of text.

    Attributes:
        name: What is added.
        beyond: What it is added to; "" for nothing.
        energy: On the rows of the fit.
        held_out: On rows that were held out from learning it.
        error: Standard error of the latter.
        interval: Its 95 % confidence interval, from the folds.
    """

    name: str
    beyond: str
    energy: float
    held_out: float
    error: float
    interval: tuple[float, float]

    def card(self) -> Card:
        """In one line."""
        low, high = self.interval
        beyond = f" beyond {self.beyond}" if self.beyond else ""
        held_out = f"{self.held_out:.4f} on held-out rows, {low:.4f} to {high:.4f}"
        return Card([f"{self.name}{beyond}: energy {self.energy:.4f} ({held_out})"])


@saved
@dataclass(frozen=True, repr=False)
class Energies(Result):
    """Energies of all steps; print it for a table, index it by name.

    Attributes:
        rows: One a step.
    """

    rows: tuple[Energy, ...]

    def __iter__(self) -> Iterator[Energy]:
        return iter(self.rows)

    def __getitem__(self, name: str) -> Energy:
        named = {row.name: row for row in self.rows}
        if name not in named:
            raise KeyError(f"There is no step {name!r}. The steps are {list(named)}.")
        return named[name]

    def records(self) -> Records:
        """A row for each step."""
        told = [as_plain(row) for row in self.rows]
        names = [name for name in (told[0] if told else ()) if not isinstance(told[0][name], list | dict)]
        columns: dict[str, list[Any]] = {name: [row[name] for row in told] for name in names}
        for end, name in enumerate(("low", "high")):
            columns[name] = [row.interval[end] for row in self.rows]
        return Records("Energies", columns)

    def card(self) -> Card:
        """A row for each step."""
        rows = [
            (row.name, f"{row.energy:.4f}", f"{row.held_out:.4f}", "[{:.4f}, {:.4f}]".format(*row.interval))
            for row in self.rows
        ]
        return Card((), ("", "energy", "held-out", "95 % interval"), rows)


def energies(learned: LearnedSources, sources: Sequence[str], groups: Sequence[tuple[str, ...]]) -> list[Energy]:
    """Each source alone, all together, each interaction, each order, and each source after all others.

    Args:
        learned: The components.
        sources: The sources, in order.
        groups: Those of several sources whose interaction was looked for; where nothing was found, it is 0.
    """
    every = list(dict.fromkeys(learned.features.of.values()))
    of_size = {n: [group for group in every if len(group) == n] for n in range(1, 1 + max(map(len, every)))}
    result = [_energy(learned, f"{source} alone", "", [], [(source,)]) for source in sources]
    if len(sources) > 1:
        result.append(_energy(learned, " + ".join(sources), "", [], of_size[1]))
    steps = [(" x ".join(group), len(group), [group]) for group in groups]
    if len(sources) > 2:
        steps += [(f"all interactions of {n}", n, part) for n, part in of_size.items() if n > 1]
    for name, size, added in steps:
        before = [group for group in every if len(group) < size]
        result.append(_energy(learned, name, "sums of functions of fewer", before, added))
    for source in sources if len(sources) > 1 else ():
        before, added = ([group for group in every if (source in group) is there] for there in (False, True))
        result.append(_energy(learned, f"{source} after the others", "all functions of the others", before, added))
    return result


def _energy(learned: LearnedSources, name: str, beyond: str, before: list[Group], added: list[Group]) -> Energy:
    if learned.folds is None:
        raise ValueError("Energies come from the moments of the fit, which are not there any more. Fit again.")
    first, more = ([block for block, group in learned.features.of.items() if group in part] for part in (before, added))
    if not more:
        return Energy(name, beyond, 0.0, 0.0, 0.0, (0.0, 0.0))
    exact = learned.solver == "exact"
    levels = [first, [*first, *more]] if first else [more]
    last = Search((None,)) if exact else Search((0, *in_force.get().mode_counts))
    searches = [Search((None,)) if exact else smooth_search()] * (len(levels) - 1) + [last]
    tau_ridges = () if exact else (learned.features.ridge,)
    solution = solve(learned.folds, [(level, "y") for level in levels], searches, tau_ridges=tau_ridges)
    folds = solution.held_out_energies(-1)
    mean, error = map(float, mean_and_error(folds))
    return Energy(name, beyond, solution.levels[-1].energy, mean, error, interval_of(folds))
