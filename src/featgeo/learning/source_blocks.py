"""Which functions of each source, and of several together, a dependence on many sources may use.

A source that is a single number or finite brings its span as it is. One of many columns, an image or a sequence is
first reduced to its modes with the target, by the same engine that learns two variables; rows of the fit then count
with the features that were learned without them. Functions of several sources are products of functions of each, and,
where these were learned, modes of all of them together with the target.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from scipy.fft import dct

from featgeo.features.combined import PartSpace, ProductSpace, products_of
from featgeo.features.recipes import FREQUENT, MEANS, TABLE, Recipe, recipes
from featgeo.features.space import Space
from featgeo.features.spaces import MOST_SYMBOLS, SideBySide, SpanFunction, SplineSpace
from featgeo.features.trees import OF_ALL
from featgeo.features.variables import Candidate, Parts, Rows, distinct, preferred, symbol_keys
from featgeo.geometry.moments import Moments
from featgeo.geometry.spans import AffineFeatures
from featgeo.geometry.validation import Array
from featgeo.learning.closed import SPACE_ROWS, Bank, Task
from featgeo.learning.data import Incomplete, Pairs, some_rows
from featgeo.learning.exact import table_of
from featgeo.learning.learn import learn
from featgeo.learning.neural import joint_network
from featgeo.learning.setting import Block, ModeCount, Plan, Setting, Step, Training
from featgeo.learning.solve import Search, Solution
from featgeo.tuning import in_force

SELECTION_ROWS = 16_384  # rows that choose between spaces, and between groups of sources: bounds time
LEADING_ROWS = 8192  # rows that tell which functions vary most: bounds time
KEPT_ROWS = 20_000  # whose features are kept, of more they are evaluated whenever asked for: bounds memory
Group = tuple[str, ...]


class SourceBlocks:
    """Blocks of functions of groups of sources, made when first asked for.

    Attributes:
        of: For each block the sources that it reads; "y" for that of y.
        spaces: The functions of each block.
        exact: Whether all functions of finite variables are allowed, and their counts are the answer.
        networks: Whether some functions are networks.
    """

    def __init__(
        self,
        data: Incomplete,
        spaces: Mapping[str, Any],
        y_space: Any,
        groups: Sequence[Group],
        plan: Plan,
    ) -> None:
        """Get ready.

        Args:
            data: Rows of the sources and of "y".
            spaces: Functions of each source to allow.
            y_space: Functions of y to allow.
            groups: All groups of sources that will be asked for.
            plan: How to learn.
        """
        self.data, self.plan, self.seed = data, plan, plan.seed
        self.asked = {**spaces, "y": y_space}
        self.of: dict[str, Group] = {}
        self.spaces: dict[str, Space] = {}
        self.factors: dict[str, list[list[tuple[str, AffineFeatures]]]] = {}
        self.own: dict[str, tuple[np.ndarray, Array]] = {}  # features of rows of the fit, learned without them
        self.kept: dict[str, Array] = {}
        self.banks: dict[str, Bank] = {}
        self.networks = False
        self.apart = _apart(data, plan.training, plan.seed)
        endless = [name for name in self.asked if self._recipes(name)[0] not in (TABLE, FREQUENT)]
        if plan.solver == "exact" and endless:
            raise ValueError(
                f"The exact solver allows all functions of finite variables, and {endless} are not finite. Use "
                "solver='closed'."
            )
        self.exact = plan.solver == "exact" or (plan.solver == "auto" and not endless and self._repeat_often(groups))
        self.y_recipe = self._y_recipe()
        self._keep("y", ("y",), self._fitted(("y",), self.y_recipe))

    # --- the blocks of a group of sources

    def of_group(self, group: Group) -> list[str]:
        """Names of the blocks of a single source, or of the table of several."""
        names = [name for name, of in self.of.items() if of == group]
        if names:
            return names
        if self.exact or not self._is_learned(group[0]):
            recipe = TABLE if self.exact else self._best_recipe(group[0])
            return [self._keep(" x ".join(group), group, self._fitted(group, recipe))]
        (source,) = group
        rows, names = self.data.rows[source], [self._learned(source, group, self.asked[source])]
        if self.asked[source] == "auto" and not rows.variable.is_tensor:
            splines = SplineSpace.fit(rows)
            if splines(rows.take(slice(0, 1))).shape[1] <= in_force.get().additive_functions:
                names.append(self._keep(f"{source}, additive", group, PartSpace(group, splines)))
        return names

    def _repeat_often(self, groups: Sequence[Group]) -> bool:
        """Whether the symbols of all groups occur often enough that counts need no smoothing."""
        for group in groups:
            index = self.data.having(*group, "y")
            keys = symbol_keys(self.data.take(index, *group).of(*group).table)
            if len(distinct(keys)[0]) > min(MOST_SYMBOLS, len(index) / max(in_force.get().symbol_rows, 1)):
                return False
        return True

    def products(self, group: Group) -> str:
        """The block of products of one function of each source."""
        name = " x ".join(group)
        if name not in self.factors:
            options, n_rows = in_force.get(), len(self.data.having(*group, "y"))
            n_products = min(options.group_functions, n_rows / max(options.group_rows, 1))
            n_leading = max(2, int(n_products ** (1 / len(group)) + 1e-9))
            self.factors[name] = [self._leading(source, n_leading) for source in group]
            factors = tuple(
                SideBySide(tuple(SpanFunction(self.spaces[block], affine) for block, affine in factor))
                for factor in self.factors[name]
            )
            self._keep(name, group, ProductSpace(factors, (False,) * len(factors)))
        return name

    def may_join(self, group: Group) -> bool:
        """Whether functions of several sources together can be learned, and not only made of products."""
        # A network of the user's own sees one source; and tables and images are not read together.
        own_network = any(isinstance(self.asked[source], torch.nn.Module) for source in group)
        alike = len({self.data.rows[source].variable.is_tensor for source in group}) == 1
        n_rows = len(np.setdiff1d(self.data.having(*group, "y"), self.apart))
        enough = n_rows >= in_force.get().joint_rows
        return enough and alike and not own_network and any(map(self._is_learned, group))

    def joint(self, group: Group) -> str:
        """Modes of several sources together: products of what each knows alone can miss what only both know."""
        rows = [self.data.rows[source] for source in group]
        name, spaces = f"({', '.join(group)})", [self.asked[source] for source in group]
        if rows[0].variable.is_tensor:
            return self._learned(name, group, joint_network(spaces, rows, self.seed))
        same = all(isinstance(space, str) and space == spaces[0] for space in spaces)
        return self._learned(name, group, spaces[0] if same else "auto")

    def _keep(self, name: str, group: Group, space: Space) -> str:
        self.of[name], self.spaces[name] = group, space
        return name

    def _leading(self, source: str, n: int) -> list[tuple[str, AffineFeatures]]:
        """The functions of a source that enter products: those of each of its blocks that vary most."""
        sample = self.data.take(self.some(self.data.having(source), LEADING_ROWS), source)
        blocks, kept = self.of_group((source,)), []
        for name in blocks:
            moments = Moments.from_features({"z": self.spaces[name](sample)})
            energies, directions = np.linalg.eigh(moments.covariance("z"))
            order = np.argsort(energies)[::-1][: max(1, n // len(blocks))]
            order = order[energies[order] > 1e-10 * energies.max()]
            # Mixed evenly, so that products of smooth functions stay stronger than those of rough ones: a ridge reads
            # smoothness from how features of unit variance vary together.
            weight = directions[:, order] @ dct(np.eye(len(order)), norm="ortho")
            kept.append((name, AffineFeatures(moments.mean("z"), weight, np.zeros(len(order)))))
        return kept

    # --- spaces that are given

    def _fitted(self, group: Group, recipe: Recipe) -> Space:
        """A space of some variables, fitted to rows that have them all."""
        rows = self.data.take(self.some(self.data.having(*group), SPACE_ROWS), *group)
        space = Block(recipe, of=group).fitted(recipe, rows, self.seed + (group == ("y",)))
        table = table_of(space)
        if table is not None and len(table.shares) > MOST_SYMBOLS:
            raise ValueError(
                f"{' and '.join(group)} have {len(table.shares)} different values, tables are made for {MOST_SYMBOLS}. "
                "Group the rare ones, use solver='closed', or a smaller `max_order`."
            )
        return space

    def _y_recipe(self) -> Recipe:
        """The functions of y: where there is a choice, those that see most of any source."""
        if self.data.rows["y"].variable.is_tensor:
            raise ValueError(
                f"Y must be labels or columns of numbers, got rows of shape {self.data.rows['y'].variable.shape}. "
                "Flatten them, or make the images a source and what they tell about Y."
            )
        choices = self._given("y")
        if not choices:
            raise ValueError(f"`y_space` must be a space that is given, got {self.asked['y']!r}. Use 'kernel'.")
        sources = [name for name in self.asked if name != "y" and self._given(name) and not self._is_learned(name)]
        if len(choices) == 1 or self.exact or not sources:
            return choices[0]
        found = []
        for y in choices:
            pairs = [[self._pair(source, x, y) for x in self._finest(source)] for source in sources]
            best = [max(of_source, key=lambda pair: pair.held_out_score) for of_source in pairs]
            found.append(Candidate(y, 1, np.sum([pair.held_out_scores for pair in best], axis=0)))
        return preferred(found).what

    def _recipes(self, name: str) -> list[Recipe]:
        return _tried(self.asked[name], self.data.rows[name])

    def _given(self, name: str) -> list[Recipe]:
        """The spaces that a source, or y, may have, of those that are given."""
        return [recipe for recipe in self._recipes(name) if not recipe.learned]

    def _finest(self, source: str) -> list[Recipe]:
        """Those of a source to choose from: by default a single one, with a ridge of its own as smooth as need be."""
        return self._given(source)[-1 if self.asked[source] == "auto" else 0 :]

    def _best_recipe(self, source: str) -> Recipe:
        """The space of a source that sees most of y on held-out rows."""
        choices = self._finest(source)
        if len(choices) == 1:
            return choices[0]
        found = [(recipe, self._pair(source, recipe, self.y_recipe)) for recipe in choices]
        return preferred([Candidate(recipe, pair.size, pair.held_out_scores) for recipe, pair in found]).what

    def _pair(self, source: str, x: Recipe, y: Recipe) -> Solution:
        """The modes of a source and y alone, in some spaces, on some rows."""
        if source not in self.banks:
            index = self.some(self.data.having(source, "y"), SELECTION_ROWS)
            setting = Setting.bivariate("auto", self.asked[source], self.asked["y"])
            self.banks[source] = Bank(Task(self.data.pairs(index, (source,)), setting, self.plan, {}))
        return self.banks[source].pair({"x": x, "y": y})

    def some(self, index: np.ndarray, n: int) -> np.ndarray:
        """At most so many of the rows, at random."""
        return np.asarray(index[some_rows(len(index), self.seed, n)])

    # --- spaces that are learned together with y

    def _is_learned(self, source: str) -> bool:
        """Whether a source is reduced to its modes with y first."""
        trained = self.data.rows[source].variable.is_tensor or self.plan.solver == "neural"
        return trained or any(recipe.learned and recipe is not MEANS for recipe in self._recipes(source))

    def _learned(self, name: str, group: Group, space: Any) -> str:
        """Modes of a group of sources with y, as a space of their own."""
        index = self.data.having(*group, "y")
        pairs = self.data.pairs(index, group)
        plan = replace(self.plan, apart=np.flatnonzero(np.isin(index, self.apart)))
        blocks = {name: Block(self._sought_in(space, pairs))}, {"y": Block(self.asked["y"])}
        learned = learn(pairs, Setting(*blocks, (Step(self._n_learned(), (name,), ("y",)),)), plan, judged=False)
        (component,) = learned.components
        self.networks |= learned.solver == "neural"
        if learned.unseen is not None:
            self.own[name] = index[learned.unseen.rows], learned.unseen.f / component.sigma
        return self._keep(name, group, PartSpace(group, component.f))

    def _sought_in(self, space: Any, pairs: Pairs) -> Any:
        """What a source's modes are sought in: beside sums of splines a kernel and boosted trees are enough."""
        rows = pairs.x.of("x")
        if space != "auto" or rows.variable.is_tensor:
            return space
        return [recipe for recipe in _tried(space, rows) if recipe.name != "index"]

    def _n_learned(self) -> ModeCount:
        """All functions of y where they are few."""
        table = table_of(self.spaces["y"])
        return "auto" if table is None else max(1, min(len(table.shares) - 1, max(in_force.get().mode_counts)))

    def counts(self, n_modes: ModeCount, first: bool) -> Sequence[int | None]:
        """The numbers of modes of a level to choose from; of finite y the first level tells all labels apart."""
        n_modes = self._n_learned() if n_modes == "auto" and first else n_modes
        counts = Search.of(n_modes).counts
        return counts if first or n_modes != "auto" else [0, *counts]

    # --- features of all rows

    def features(self, wanted: Sequence[str]) -> Iterator[dict[str, Array]]:
        """Features of all rows, by the blocks that they carry, of those wanted."""
        for group, names in self.data.groups():
            there, index = [name for name in wanted if set(self.of[name]) <= set(names)], self.judging(group)
            if there and len(index):
                yield self.features_of(there, index)

    def features_of(self, wanted: Sequence[str], index: np.ndarray) -> dict[str, Array]:
        """Features of some rows that have all that is wanted; products come after what they are made of."""
        rows = self.data.take(index, *dict.fromkeys(source for name in wanted for source in self.of[name]))
        chunk: dict[str, Array] = {}
        for name in wanted:
            chunk[name] = self._values(name, rows, index, chunk)
        return chunk

    def judging(self, index: np.ndarray) -> np.ndarray:
        """Where there are networks, the rows that none of them was trained on."""
        return index[np.isin(index, self.apart)] if self.networks else index

    def _values(self, name: str, rows: Parts, index: np.ndarray, known_blocks: Mapping[str, Array]) -> Array:
        if name in self.factors:  # products of what is already there
            factors = [np.hstack([map_(known_blocks[block]) for block, map_ in f]) for f in self.factors[name]]
            return products_of(factors)
        if len(self.data) > KEPT_ROWS:
            return self._evaluated(name, rows, index)
        if name not in self.kept:
            having = self.data.having(*self.of[name])
            values = self._evaluated(name, self.data.take(having, *self.of[name]), having)
            self.kept[name] = np.full((len(self.data), values.shape[1]), np.nan)
            self.kept[name][having] = values
        return self.kept[name][index]

    def _evaluated(self, name: str, rows: Parts, index: np.ndarray) -> Array:
        """Features of a block at some rows; of those of the fit by what was learned without them."""
        values = self.spaces[name](rows)
        if name in self.own:
            own_rows, own = self.own[name]
            _, here, there = np.intersect1d(index, own_rows, assume_unique=True, return_indices=True)
            values[here] = own[there]
        return values


def _apart(data: Incomplete, training: Training, seed: int) -> np.ndarray:
    """Rows that no network is trained on: some of every kind, and most of kinds that are rare."""
    rng, options = np.random.default_rng(seed), in_force.get()
    share = max(training.share_apart(len(data)), min(options.apart_rows / len(data), 1 / 3))
    chosen = []
    for index, _ in data.groups():
        rare = min(2 * len(index) // 3, options.apart_rows_of_a_kind) if len(index) < len(data) / 4 else 1
        chosen.append(rng.permutation(index)[: max(round(share * len(index)), rare)])
    return np.sort(np.concatenate(chosen))


def _tried(space: Any, rows: Rows) -> list[Recipe]:
    """The spaces that an argument stands for; regressors of all functions together are not tried beside sums."""
    return [one for one in recipes(space, rows) if space != "auto" or one.argument not in OF_ALL]
