"""From the pairs of a table to what its figures show. Pairs that may be chance are not drawn as if they were found."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.sparse import coo_array
from scipy.sparse.csgraph import shortest_path
from scipy.spatial.distance import pdist, squareform

from featgeo.geometry.validation import Array
from featgeo.report import charts

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from featgeo.explore.exploration import Exploration
    from featgeo.records import Records

ROUNDS = 200  # of moving points to where their distances fit: more change nothing that can be seen
ORDERED = 200  # columns whose order is the best one of their tree: finding it takes the cube of their number


def heatmap_of(exploration: Exploration, most: int) -> Figure:
    """The strengths of pairs, columns that go together beside each other."""
    names, strength, found, chance = _matrix(exploration, exploration.pairs)
    _check_most(most)
    kept = np.sort(np.argsort(-(strength * found).max(axis=1, initial=0.0), kind="stable")[:most])
    kept = kept[clustered((strength * found)[np.ix_(kept, kept)])]
    shown = np.where(found, strength, np.nan)[np.ix_(kept, kept)]
    title = f"{len(kept)} of {len(names)} columns" if len(kept) < len(names) else f"{len(names)} columns"
    charts()  # says what to install where nothing draws
    from featgeo.report import dependence

    title += f"; a dot: may be chance, at a rate of {exploration.rate:.0%}"
    return dependence.heatmap([names[i] for i in kept], shown, chance[np.ix_(kept, kept)], title)


def graph_of(exploration: Exploration, most: int, direct: bool) -> Figure:
    """The pairs that depend, or those that do so given all other columns, as lines between columns."""
    names, strength, found, _ = _matrix(exploration, exploration.direct if direct else exploration.pairs)
    _check_most(most)
    lines = np.argwhere(np.triu(found))
    every = len(lines)
    lines = lines[np.argsort(-strength[lines[:, 0], lines[:, 1]], kind="stable")[:most]]
    kept, ends = np.unique(lines, return_inverse=True)
    ends = ends.reshape(-1, 2)
    own = strength[kept[ends[:, 0]], kept[ends[:, 1]]]
    shown = (
        f"the {len(lines)} strongest of {every:,} pairs that depend" if every > most else f"{every} pairs that depend"
    )
    alone = len(names) - len(kept)
    shown += " given all other columns" if direct else ""
    title = f"{shown[0].upper()}{shown[1:]}, at a rate of {exploration.rate:.0%}" + (
        f"; {alone} columns are in none" if alone else ""
    )
    charts()
    from featgeo.report import dependence

    return dependence.graph([names[i] for i in kept], placed(len(kept), ends, own), ends, own, title)


def _check_most(most: int) -> None:
    if isinstance(most, bool) or not isinstance(most, int | np.integer) or most < 2:
        raise ValueError(f"`most` must be a whole number from 2 on, got {most!r}. Pass 40.")


def _matrix(exploration: Exploration, pairs: Records) -> tuple[list[str], Array, np.ndarray, np.ndarray]:
    """Names of the columns; of pairs, (p, p) each, strengths not below 0, which are found, and which may be chance."""
    names = [column.name for column in exploration.compared]
    place = {name: i for i, name in enumerate(names)}
    strength = np.zeros((len(names), len(names)))
    found, chance = (np.zeros(strength.shape, dtype=bool) for _ in range(2))
    for pair in pairs:
        i, j = place[pair["a"]], place[pair["b"]]
        strength[i, j] = strength[j, i] = max(pair["strength"], 0.0)
        found[i, j] = found[j, i] = pair["qvalue"] <= exploration.rate
        chance[i, j] = chance[j, i] = not found[i, j]
    return names, strength, found, chance


def clustered(strength: Array) -> np.ndarray:
    """The order in which columns that depend on each other are neighbours, (p,)."""
    if len(strength) < 3:
        return np.arange(len(strength))
    distance = 1 - strength.clip(0, 1)
    np.fill_diagonal(distance, 0)
    tree = linkage(squareform(distance, checks=False), "average", optimal_ordering=len(strength) <= ORDERED)
    return leaves_list(tree)


def placed(p: int, lines: np.ndarray, strength: Array) -> Array:
    """Points on a plane whose distances are about those along the graph, (p, 2): strong lines are short.

    Points move by majorisation of the stress (J. de Leeuw (1977)), from a circle: nothing is drawn at random.
    """
    length = 1.5 - strength.clip(0, 1)
    graph = coo_array((length, (lines[:, 0], lines[:, 1])), shape=(p, p))
    wanted = shortest_path(graph.tocsr(), directed=False) if p else np.empty((0, 0))
    wanted[np.isinf(wanted)] = 1.0 + wanted[np.isfinite(wanted)].max(initial=1.0)  # parts that nothing connects
    weights = 1 / np.maximum(wanted, 1e-9) ** 2 * (1 - np.eye(p))
    laplacian = np.diag(weights.sum(axis=1)) - weights
    inverse = np.linalg.pinv(laplacian)
    close = np.zeros((p, p))
    close[lines[:, 0], lines[:, 1]] = close[lines[:, 1], lines[:, 0]] = strength
    angle = np.empty(p)
    angle[clustered(close)] = 2 * np.pi * np.arange(p) / max(p, 1)
    at = np.column_stack([np.cos(angle), np.sin(angle)])
    for _ in range(ROUNDS if p > 2 else 0):
        distance = squareform(pdist(at)) + np.eye(p)
        pull = -weights * wanted / np.maximum(distance, 1e-9)
        pull -= np.diag(pull.sum(axis=1))
        at = inverse @ pull @ at
    return at
