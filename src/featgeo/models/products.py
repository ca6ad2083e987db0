"""Functions of (s, y): products of functions of each, a table of both, or a network that reads both."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

from featgeo.features.recipes import Recipe, is_finite, recipes
from featgeo.features.space import Space
from featgeo.features.spaces import KernelSpace, ProductSpace, SideBySide, SplineSpace
from featgeo.features.variables import Rows
from featgeo.learning.setting import Block

# Few enough functions of each that all products together stay a few hundred.
S_FEATURES, Y_FEATURES = 24, 12
MOST_ADDITIVE = 80  # splines of all columns of S; beyond, functions linear in the columns
NETWORKS = ("network", "image", "sequence", "causal")
# Functions of y alone: all that is needed where y says the same whatever s is, and the safest with few rows.
ALONE = Recipe("alone", lambda rows, seed: SideBySide(()))


def products_block(s_space: Any, y_space: Any, solver: str, s_rows: Rows, y_rows: Rows) -> Block:
    """Functions of s and y together, for spaces of each as the user asked for them."""
    spaces = ((s_space, s_rows), (y_space, y_rows))
    if isinstance(y_space, torch.nn.Module):
        raise ValueError(
            "Functions of S and Y together are learned by a network that reads both, and `y_space` is a module of Y "
            "alone. Use y_space='network'."
        )
    if solver == "exact" or all(_is_table(space, rows) for space, rows in spaces):
        return Block("table", of=("s", "y"))
    if solver == "neural" or any(_is_network(space) for space, _ in spaces):
        return Block("network", of=("s", "y"), centred_given="s")
    s_factors = _factors("s_space", s_space, s_rows, S_FEATURES)
    y_factors = _factors("y_space", y_space, y_rows, Y_FEATURES)
    pairs = [(s, y) for s in s_factors for y in y_factors if len(s_factors) != len(y_factors) or s.kind == y.kind]
    pairs = pairs or [(s_factors[0], y_factors[0])]
    return Block([*(_product(ALONE, y) for y in y_factors), *(_product(s, y) for s, y in pairs)])


def _is_table(space: Any, rows: Rows) -> bool:
    return isinstance(space, str) and (space == "table" or (space == "auto" and is_finite(rows)))


def _is_network(space: Any) -> bool:
    return isinstance(space, torch.nn.Module) or (isinstance(space, str) and space in NETWORKS)


def _factors(argument: str, space: Any, rows: Rows, n_features: int) -> list[Recipe]:
    """Spaces of a few functions of a variable, for products with those of another."""
    if _is_table(space, rows):
        return recipes("table", rows)
    smooth = Recipe("kernel", lambda rows, seed: _small_kernel(rows, n_features, seed))
    if isinstance(space, str) and space == "kernel":
        return [smooth]
    if not isinstance(space, str) or space != "auto":
        given = [recipe for recipe in recipes(space, rows) if recipe.fit is not None]
        if not given:
            raise ValueError(f"`{argument}` must be a space that is given, got {space!r}. Use 'kernel' or 'spline'.")
        return given
    splines = SplineSpace.fit(rows)(rows.take(slice(0, 1))).shape[1]
    additive = "spline" if splines <= MOST_ADDITIVE else "linear"
    return [*recipes(additive, rows), smooth]


def _small_kernel(rows: Rows, n_features: int, seed: int) -> Space:
    return replace(KernelSpace.fit(rows, seed=seed, features=n_features), additive=None)


def _centred(y: Recipe, side: Any, seed: int) -> Space:
    """Functions of y less their means given s; several products share them."""
    block, memo = Block(y, of=("y",), centred_given="s"), side.of("s").memo
    if (y.name, seed) not in memo:
        memo[y.name, seed] = block.centred(block.fitted(y, side, seed), side, seed)
    space: Space = memo[y.name, seed]
    return space


def _product(s: Recipe, y: Recipe) -> Recipe:
    def fit(side: Any, seed: int) -> Space:
        return ProductSpace((Block(s, of=("s",)).fitted(s, side, seed), _centred(y, side, seed)), or_one=(True, False))

    if s is ALONE:
        return Recipe(f"{y.name} of y", fit)
    return Recipe(s.name if s.name == y.name else f"{s.name} x {y.name}", fit)
