"""What identifies what: which components of a dependence the rows at hand can tell, before anything is learned.

Rows with a source and Y identify the dependence of the two. Rows of two sources together, with or without Y, say how
these depend on each other; with all such pairs, sums of functions of the sources are identified, and with them every
posterior given some of them. Rows with several sources and Y at once identify their interaction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from featgeo.card import Card, Shown
from featgeo.learning.data import Incomplete
from featgeo.learning.learned import N_FOLDS
from featgeo.schema import saved

FEWEST_ROWS = 2 * N_FOLDS  # with fewer, two for each fold, nothing is learned

Group = tuple[str, ...]


@saved
@dataclass(frozen=True, repr=False)
class Identified(Shown):
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

    def knows(self, group: Group) -> bool:
        """Whether functions of these sources together are among them."""
        return any(group in groups for groups in self.orders)

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
    friends = {a: {b for b in with_y if b != a and rows(a, b) >= FEWEST_ROWS} for a in with_y}
    teams = [
        _team(tuple(source for source in sources if source in clique), max_order, rows)
        for clique in sorted(_cliques(friends, set(), set(with_y), set()), key=lambda team: (-len(team), team))
    ]
    for name, group in groups.items():
        known = found[name].learned and any(team.knows(group) for team in teams)
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
        if min(with_y, together) < FEWEST_ROWS:
            break
        orders.append(groups)
    return Team(members, tuple(orders))


def _verdict(name: str, n: int, needed: Group) -> Identified:
    if n >= FEWEST_ROWS:
        return Identified(name, True, n, f"{n} rows with {_listed(needed)}")
    return Identified(name, False, n, f"it needs at least {FEWEST_ROWS} rows with {_listed(needed)} together, got {n}")


def _missing_pair(sources: Group, with_y: Group, friends: dict[str, set[str]]) -> str:
    without = [source for source in sources if source not in with_y]
    if without:
        return f"{_listed(without)} never came with Y often enough"
    a, b = next((a, b) for a, b in combinations(sources, 2) if b not in friends[a])
    return f"it needs rows with {a} and {b} together"


def _listed(names: Sequence[str]) -> str:
    return " and ".join(names) if len(names) < 3 else f"{', '.join(names[:-1])} and {names[-1]}"


def _cliques(friends: dict[str, set[str]], chosen: set[str], left: set[str], done: set[str]) -> Iterator[Group]:
    """All largest sets of sources that are friends pair by pair (Bron and Kerbosch)."""
    if not left and not done:
        if chosen:
            yield tuple(sorted(chosen))
        return
    # Any largest set holds the source with the most friends, or one that is no friend of it.
    pivot = max(sorted(left | done), key=lambda source: len(left & friends[source]))
    for source in sorted(left - friends[pivot]):
        yield from _cliques(friends, chosen | {source}, left & friends[source], done & friends[source])
        left, done = left - {source}, done | {source}
