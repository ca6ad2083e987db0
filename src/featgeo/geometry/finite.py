"""FiniteJoint: exact answers for variables with finite alphabets, from a table of probabilities or counts.

All settings of the paper are components of one function, the canonical dependence kernel (CDK)

    i(x; y) = (P(x, y) - P(x) P(y)) / (P(x) P(y)),

under the metric distribution P_X P_Y, written in the canonical basis as the canonical dependence matrix (CDM). A
setting declares which functions of x and of y each of its levels adds; the decomposition is the same for all.

A dependence on finite alphabets, and the named components into which the paper's settings split it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from scipy import sparse

from featgeo.card import Card, Shown
from featgeo.geometry.alphabet import Alphabet, Space
from featgeo.geometry.spans import Modes, level_modes, sign_of_columns
from featgeo.geometry.sparse import SeenJoint, is_search_cheaper
from featgeo.geometry.validation import Array, as_mass, as_names, as_real, check_mode_count, position


class Projected(NamedTuple):
    """A dependence split by a subspace of functions of x (eq. sspc:dcmp)."""

    aligned: Modes
    orthogonal: Modes


class ConditionalComponents(NamedTuple):
    """The dependence of x on (s, y), split into what s explains and what y adds (eq. side:dcmp:i)."""

    markov: Modes
    conditional: Modes


@dataclass(frozen=True, eq=False)
class MultimodalComponents:
    """The dependence of several sources on y, split by how many sources act together.

    Attributes:
        bivariate: What sums of functions of single sources capture (eq. pib:pii).
        interaction: All that is left.
        orders: The component of each interaction order, from single sources to all of them together.
    """

    bivariate: Modes
    interaction: Modes
    orders: tuple[Modes, ...]


@dataclass(frozen=True, eq=False)
class Dependence:
    """A function on X x Y, by its coefficients in the canonical basis.

    Attributes:
        x: Alphabet of x, with its metric distribution.
        y: Alphabet of y.
        kernel: The coefficients sqrt(p(x) p(y)) gamma(x, y), on the supports, (n_x, n_y).
    """

    x: Alphabet
    y: Alphabet
    kernel: Array

    @classmethod
    def of_joint(cls, joint: Array, x: Alphabet, y: Alphabet) -> Dependence:
        """The centred density ratio of a joint distribution, (*shape of x, *shape of y), against p_x p_y.

        No product of two probabilities is formed, which could underflow.
        """
        seen = joint.reshape(x.mass.size, y.mass.size)[np.ix_(np.flatnonzero(x.mass), np.flatnonzero(y.mass))]
        return cls(x, y, seen / x.root_mass[:, None] / y.root_mass - np.outer(x.root_mass, y.root_mass))

    @property
    def matrix(self) -> Array:
        """The coefficients at all symbols, (|X|, |Y|); 0 where one has probability zero."""
        roots = np.outer(np.sqrt(self.x.mass), np.sqrt(self.y.mass))
        return self.density.reshape(roots.shape) * roots

    @property
    def density(self) -> Array:
        """The function itself, (*shape of x, *shape of y); 0 where a symbol has probability zero."""
        of_y = self.y.values(self.kernel.T).reshape(self.y.mass.size, -1)
        return self.x.values(of_y.T).reshape(*self.x.mass.shape, *self.y.mass.shape)

    def components(self, x_spaces: Sequence[Space], y_spaces: Sequence[Space] | None = None) -> tuple[Modes, ...]:
        """Decompose level by level, each level adding a space on either side.

        Args:
            x_spaces: For each level the functions of x that it adds to the levels before.
            y_spaces: For each level the functions of y that it adds; all functions at once when None.
        """
        y_spaces = [None] * len(x_spaces) if y_spaces is None else y_spaces
        if not (isinstance(x_spaces, list | tuple) and isinstance(y_spaces, list | tuple)):
            raise ValueError(
                f"Spaces must be lists, one space a level, got {type(x_spaces).__name__} and {type(y_spaces).__name__}."
            )
        if len(x_spaces) != len(y_spaces) or not x_spaces:
            raise ValueError(
                f"Each level needs a space on either side, got {len(x_spaces)} of x and {len(y_spaces)} of y. "
                "Give both lists the same length; repeat a space that does not grow."
            )
        x_flag, y_flag = self.x.flag(x_spaces), self.y.flag(y_spaces)
        core = x_flag.basis.T @ self.kernel @ y_flag.basis
        result = []
        for left, sigma, right in level_modes(core, x_flag.ends, y_flag.ends):
            f, g = x_flag.basis @ left, y_flag.basis @ right
            sign = sign_of_columns(f)
            result.append(Modes(sigma, self.x.values(f * sign), self.y.values(g * sign)))
        return tuple(result)

    def multimodal(self) -> MultimodalComponents:
        """Split by interaction order (eq. pib:pii, and beyond two sources).

        What is split is the part of mean 0 in x for each y, and in y for each x: all of a dependence, and of a density
        ratio against another reference what says nothing about the marginals.
        """
        x_root, y_root = self.x.root_mass, self.y.root_mass
        kernel = self.kernel - np.outer(x_root, x_root @ self.kernel)
        centred = Dependence(self.x, self.y, kernel - np.outer(kernel @ y_root, y_root))
        names = self.x.names
        spaces: list[Space] = [list(combinations(names, size)) for size in range(1, len(names))]
        orders = centred.components([*spaces, None])
        interaction = orders[1] if len(orders) == 2 else centred.components([spaces[0], None])[1]
        return MultimodalComponents(orders[0], interaction, orders)


Names: TypeAlias = str | Sequence[str] | None

_DENSE_CELLS = 2**20  # a sparse table with no more cells than this is made dense


class FiniteJoint(Shown):
    """The joint distribution of finitely valued variables, and everything that follows from it exactly.

    Args:
        table: Probabilities or counts, one axis a variable: an array, or a scipy sparse array for large alphabets
            (small ones are dense to whoever reads `table`). It is normalised; `total` keeps its sum.
        names: One name a variable; ("x", "y") for two variables and ("x1", ..., "y") for more when None.
        categories: One sequence of labels a variable, for reports.

    Wherever a method takes `x` and `y`, they name the variables of either side; by default y is the last variable and x
    all the others.
    """

    def __init__(
        self,
        table: Any,
        names: Sequence[str] | None = None,
        categories: Sequence[Sequence[Any]] | None = None,
    ) -> None:
        if sparse.issparse(table):
            # Cast before adding up: repeated cells of small integers would overflow.
            cells = sparse.coo_array((as_real(table.tocoo().data, "table"), table.tocoo().coords), shape=table.shape)
            cells.sum_duplicates()
            as_mass(cells.data)
            cells.eliminate_zeros()
            # The probabilities of one variable are never too many.
            table = cells.toarray() if cells.ndim == 1 else cells
        else:
            table = as_mass(as_real(table, "table"))
        self.total = float(table.sum())
        self._cells: Array | sparse.coo_array = table / self.total  # as they came
        self.shape: tuple[int, ...] = self._cells.shape
        self.names = _variable_names(names, len(self.shape))
        self.categories = _symbol_labels(categories, self.names, self.shape)

    @classmethod
    def from_samples(cls, /, **columns: Any) -> FiniteJoint:
        """Count the rows of labelled columns: `FiniteJoint.from_samples(hair=hair, eye=eye)`.

        The joint is dense while the alphabet is small and sparse beyond.
        """
        coded = {name: _coded(column, name) for name, column in columns.items()}
        lengths = {name: codes.shape for name, (_, codes) in coded.items()}
        if len({*lengths.values()}) != 1 or any(len(shape) != 1 for shape in lengths.values()):
            raise ValueError(f"Samples must be columns of the same length, got shapes {lengths}. Align their rows.")
        return cls._of_labels(coded)

    @classmethod
    def from_rows(cls, rows: Any, columns: Sequence[str] | None = None) -> FiniteJoint:
        """Count the rows of a table of any size: `FiniteJoint.from_rows("people/", ["hair", "eye"])`.

        What `from_samples` gives for its columns; the rows need not fit in memory. Where `distributed` has a Client,
        its workers count partitions, and the files of a folder.

        Args:
            rows: A frame of pandas, polars, Arrow or Dask; a Parquet or Arrow file, a folder of such files, or a list.
            columns: The variables; all columns of the table when None. They stay in its order.
        """
        from featgeo.reading.combinations import combinations
        from featgeo.reading.source import open_source

        with open_source(rows, columns=columns) as source:
            source.check_typed()
            values, counts = combinations(source)
        return cls._of_labels({name: _coded(column, name) for name, column in values.items()}, counts)

    @classmethod
    def _of_labels(
        cls, coded: Mapping[str, tuple[np.ndarray, np.ndarray]], counts: np.ndarray | None = None
    ) -> FiniteJoint:
        """From the labels of each variable and their places in rows, each of which counts so often."""
        labels, codes = zip(*coded.values(), strict=True)
        weights = np.ones(len(codes[0])) if counts is None else counts.astype(np.float64)
        cells = sparse.coo_array((weights, codes), shape=tuple(map(len, labels)))
        return cls(cells, names=tuple(coded), categories=[unique.tolist() for unique in labels])

    @cached_property
    def table(self) -> Array | sparse.coo_array:
        """The probabilities, as an array unless they are kept sparse."""
        cells = self._cells
        return cells if isinstance(cells, np.ndarray) or self.is_sparse else cells.toarray()

    @property
    def is_sparse(self) -> bool:
        """Whether the table is kept sparse."""
        return not isinstance(self._cells, np.ndarray) and math.prod(self.shape) > _DENSE_CELLS

    def marginal(self, *names: str) -> FiniteJoint:
        """The joint distribution of some of the variables, in the order given."""
        axes = [position(name, self.names) for name in as_names(names)]
        categories = None if self.categories is None else [self.categories[axis] for axis in axes]
        cells, shape = sparse.coo_array(self._cells), tuple(self.shape[axis] for axis in axes)
        table = sparse.coo_array((cells.data * self.total, tuple(cells.coords[axis] for axis in axes)), shape=shape)
        return FiniteJoint(table.toarray() if isinstance(self._cells, np.ndarray) else table, names, categories)

    def probability(self, *names: str) -> Array:
        """The probabilities of some of the variables as a dense array, one axis a variable; all when none is named."""
        marginal = self.marginal(*names) if names else self
        if not isinstance(marginal.table, np.ndarray):
            raise ValueError(
                f"This needs a dense table, and this one is sparse, of shape {marginal.shape}. Merge rare symbols and "
                "pass the table as an array."
            )
        return marginal.table.copy() if marginal is self else marginal.table  # the caller may write to it

    def density_ratio(self, reference: Any) -> Array:
        """The centred density ratio (P - R) / R against a reference distribution R of the same shape."""
        ratio_to = as_mass(as_real(reference, "reference"), "reference")
        if ratio_to.shape != self.shape:
            raise ValueError(f"`reference` must have the shape of the table, {self.shape}, got {ratio_to.shape}.")
        ratio_to = ratio_to / ratio_to.sum()
        own = self.probability()
        if (own[ratio_to == 0] > 0).any():
            raise ValueError(
                "The density ratio is infinite where `reference` is 0 and the table is not. Smooth `reference`."
            )
        return np.divide(own - ratio_to, ratio_to, out=np.zeros_like(own), where=ratio_to > 0)

    def cdk(self, x: Names = None, y: Names = None) -> Array:
        """The canonical dependence kernel i(x; y), (*shape of x, *shape of y), eq. cdk:def; 0 where p(x) p(y) = 0."""
        return self._between(x, y).density

    def cdm(self, x: Names = None, y: Names = None) -> Array:
        """The canonical dependence matrix sqrt(p(x) p(y)) i(x; y), (|X|, |Y|), eq. bt:def."""
        return self._between(x, y).matrix

    def mean_square_contingency(self, x: Names = None, y: Names = None) -> float:
        """The energy of the dependence, ||i||^2 = sum_i sigma_i^2: Pearson's phi^2."""
        return self._seen(x, y).measures()[0]

    def mutual_information(self, x: Names = None, y: Names = None) -> float:
        """I(X; Y) in nats; close to half the mean square contingency where the dependence is weak (Lemma mutual)."""
        return self._seen(x, y).measures()[1]

    def rank(self, x: Names = None, y: Names = None) -> int:
        """The number of modes of the dependence."""
        return len(self.components([None], [None], x, y)[0])

    def maximal_correlation(self, x: Names = None, y: Names = None) -> float:
        """The Hirschfeld-Gebelein-Renyi maximal correlation sigma_1; 0 for independent variables."""
        modes = self.strongest(1, x, y)
        return float(modes.sigma[0]) if len(modes) else 0.0

    def modes(
        self,
        k: int | None = None,
        x: Names = None,
        y: Names = None,
        *,
        x_space: Space = None,
        y_space: Space = None,
    ) -> Modes:
        """The modal decomposition of the dependence, or of its part inside subspaces (Prop. md:constraint).

        Args:
            k: Keep the k strongest modes; all when None. Sparse tables need a k.
            x: Variables of the x side.
            y: Variables of the y side.
            x_space: Functions of x to allow; all when None.
            y_space: Functions of y to allow; all when None.

        Raises:
            ValueError: If k is larger than the rank.
        """
        everything = x_space is None and y_space is None
        modes = self.strongest(k, x, y) if everything else self.components([x_space], [y_space], x, y)[0]
        return modes.top(k)

    def strongest(self, k: int | None, x: Names = None, y: Names = None) -> Modes:
        """At most k modes: fewer where the dependence has no more. A sparse table needs a k."""
        if self.is_sparse or (k is not None and self._is_search_cheaper(k, x, y)):
            return self._seen(x, y).top_modes(k)
        return _at_most(self.components([None], [None], x, y)[0], k)

    def _is_search_cheaper(self, k: int, x: Names, y: Names) -> bool:
        """Whether few modes of a dense table are found sooner on the cells that are not empty."""
        shape = [math.prod(self.shape[position(name, self.names)] for name in names) for names in self._split(x, y)]
        most = check_mode_count(k, k)
        return is_search_cheaper((shape[0], shape[1]), sparse.coo_array(self._cells).nnz, most)

    def components(
        self,
        x_spaces: Sequence[Space],
        y_spaces: Sequence[Space],
        x: Names = None,
        y: Names = None,
    ) -> tuple[Modes, ...]:
        """Split the dependence by levels of growing spaces and decompose each component.

        A space is None (all functions), a list of variables or tuples of variables (the sum of their function spaces),
        or an array of function values (*shape, m). Level i adds `x_spaces[i]` and `y_spaces[i]` to the levels before.
        """
        return self._between(x, y).components(x_spaces, y_spaces)

    def cca(self, x_values: Any, y_values: Any, x: Names = None, y: Names = None) -> Modes:
        """Canonical correlation analysis: the modes inside functions linear in numbers attached to the symbols.

        Args:
            x_values: Numbers of each symbol of x, (*shape of x, d_x) or (*shape of x,).
            y_values: Numbers of each symbol of y.
            x: Variables of the x side.
            y: Variables of the y side.
        """
        dependence, levels = self._between(x, y), []
        for side, values, name in ((dependence.x, x_values, "x_values"), (dependence.y, y_values, "y_values")):
            numbers = as_real(values, name)
            numbers = numbers[..., None] if numbers.shape == side.mass.shape else numbers
            levels.append([np.ones((*side.mass.shape, 1)), numbers])
        # The first level takes the constants out, which is what centring does; no dependence lives there.
        return dependence.components(*levels)[1]

    def projected(self, x_space: Space, x: Names = None, y: Names = None) -> Projected:
        """Split the dependence into the part aligned with a space of functions of x and the part orthogonal to it."""
        return Projected(*self.components([x_space, None], [None, None], x, y))

    def conditional(
        self, x: str | Sequence[str], y: str | Sequence[str], s: str | Sequence[str], k: int | None = None
    ) -> ConditionalComponents:
        """Split the dependence of x on (s, y) into the Markov component i(x; s) and the conditional one, i(x; y | s).

        Functions of s and y come with the axes of s first.

        Args:
            x: Variables whose dependence is split.
            y: Variables of interest.
            s: Variables that are known, the side information.
            k: Keep at most k modes of each component; a sparse table needs it.
        """
        x_names, s_names, y_names = as_names(x), as_names(s), as_names(y)
        both = (*s_names, *y_names)
        markov = self.marginal(*x_names, *s_names).strongest(k, x_names, s_names)  # Prop. pim:pic
        if self.is_sparse:
            return ConditionalComponents(markov, self._seen(x_names, both).top_modes(k, s_names))
        _, conditional = self.components([None, None], [[s_names], None], x_names, both)
        return ConditionalComponents(markov, _at_most(conditional, k))

    def multimodal(self, sources: Sequence[str] | None = None, y: Names = None) -> MultimodalComponents:
        """Split the dependence of several sources on y by interaction order (eq. pib:pii, and beyond two sources).

        Order t holds what functions of t sources together capture and sums of functions of fewer do not: a functional
        analysis of variance of the dependence.
        """
        x_names, _ = self._split(None if sources is None else as_names(sources), y)
        if len(x_names) < 2:
            raise ValueError(f"Multimodal components need at least two sources, got {x_names}. Name more sources.")
        return self._between(x_names, y).multimodal()

    def maximum_entropy(self, margins: Sequence[Sequence[str]] | None = None) -> FiniteJoint:
        """The distribution of largest entropy among those that share marginals with this one (eq. pbi:def).

        Args:
            margins: Groups of variables whose joint marginals are kept; all pairs when None.
        """
        pairs = combinations(self.names, min(2, len(self.names)))
        if not isinstance(margins, list | tuple | None):
            raise ValueError(f"`margins` must list groups of variables, got {type(margins).__name__}.")
        groups = pairs if margins is None else [as_names(group) for group in margins]
        axes = [tuple(position(name, self.names) for name in group) for group in groups]
        fitted = _iterative_proportional_fitting(self.probability(), axes)
        return FiniteJoint(fitted * self.total, self.names, self.categories)

    def card(self) -> Card:
        """The variables with the sizes of their alphabets, in one line."""
        variables = ", ".join(f"{name}: {size}" for name, size in zip(self.names, self.shape, strict=True))
        return Card([f"FiniteJoint({variables}; total {self.total:g}{', sparse' if self.is_sparse else ''})"])

    def _split(self, x: Names, y: Names) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Names of the variables on either side."""
        y_names = (self.names[-1],) if y is None else as_names(y)
        x_names = tuple(name for name in self.names if name not in y_names) if x is None else as_names(x)
        for name in (*x_names, *y_names):
            position(name, self.names)
        if not x_names or not y_names or set(x_names) & set(y_names):
            raise ValueError(
                f"x and y must name different variables, at least one each; got x={x_names}, y={y_names} "
                f"of {self.names}."
            )
        return x_names, y_names

    def _between(self, x: Names, y: Names) -> Dependence:
        """The dependence of the variables of either side."""
        x_names, y_names = self._split(x, y)
        joint = self.probability(*x_names, *y_names)
        sides = (Alphabet(names, self.probability(*names)) for names in (x_names, y_names))
        return Dependence.of_joint(joint, *sides)

    def _seen(self, x: Names, y: Names) -> SeenJoint:
        """The same on what occurs, for tables of any size."""
        x_names, y_names = self._split(x, y)
        names = (*x_names, *y_names)
        joint = self if names == self.names else self.marginal(*names)  # whose cells are put in order again
        return SeenJoint.from_cells(sparse.coo_array(joint._cells), x_names, y_names)


def _at_most(modes: Modes, k: int | None) -> Modes:
    return modes if k is None else modes.first(check_mode_count(k, k))


def _variable_names(names: Sequence[str] | None, n_variables: int) -> tuple[str, ...]:
    """The names of the variables of a table; by default y is the last and the others are x, or x1, x2, ..."""
    if n_variables < 1:
        raise ValueError(
            "A table needs at least one variable, got a single number. Pass an array with one axis a variable."
        )
    others = ["x"] if n_variables == 2 else [f"x{i + 1}" for i in range(n_variables - 1)]
    result = (*others, "y") if names is None else as_names(names)
    if len(result) != n_variables:
        raise ValueError(
            f"The table has {n_variables} axes but {len(result)} names came: {result}. Name each axis once."
        )
    return result


def _symbol_labels(
    categories: Sequence[Sequence[Any]] | None, names: tuple[str, ...], shape: tuple[int, ...]
) -> tuple[tuple[Any, ...], ...] | None:
    """The labels of the symbols of each variable, checked against the shape of the table."""
    if categories is None:
        return None
    try:
        result = tuple(tuple(labels) for labels in categories)
    except TypeError as error:
        raise ValueError(f"`categories` must list the labels of each variable, got {str(categories)[:80]}.") from error
    sizes = tuple(len(labels) for labels in result)
    if sizes != shape:
        raise ValueError(f"Each symbol of {names} needs one label: expected {shape} labels, got {sizes}.")
    return result


def _coded(values: Any, name: str) -> tuple[np.ndarray, np.ndarray]:
    """The distinct labels of a column, and for each row the position of its label."""
    if hasattr(values, "dtype"):
        column = np.asarray(values)
    elif isinstance(values, Iterable) and not isinstance(values, str | Mapping):
        column = np.fromiter(values, dtype=object)  # left to itself, numpy would make a missing label the text "nan"
    else:
        raise ValueError(f"Samples must be columns of labels, got {type(values).__name__}. Pass lists or arrays.")
    if column.dtype.kind == "V":
        raise ValueError(f"Samples must be columns of labels, got {column.dtype}. Pass each field as a column.")
    unequal_to_itself, is_none = column != column, column == None  # noqa: E711 - elementwise
    if np.any(unequal_to_itself | is_none):
        raise ValueError(f"Column {name!r} has missing values. Drop these rows, or give missing values a label.")
    try:
        return np.unique(column, return_inverse=True)
    except TypeError as error:
        raise ValueError(f"Labels of {name!r} cannot be put in order ({error}). Convert them to text first.") from error


def _iterative_proportional_fitting(
    target: Array, margins: Sequence[tuple[int, ...]], tolerance: float = 1e-13, max_rounds: int = 100_000
) -> Array:
    """Fit the maximum-entropy table to marginals of a target table.

    Each round rescales the table to each marginal in turn; the limit is the unique distribution of the form
    prod_c u_c(z_c), one factor for each marginal, with those marginals (Csiszar 1975).

    Args:
        target: A probability table.
        margins: Axes of each marginal to keep.
        tolerance: Largest difference between a fitted and a wanted marginal probability.
        max_rounds: Rounds after which to give up.

    Raises:
        ValueError: If the rounds do not suffice; tables with zeros may converge slowly.
    """
    others = [tuple(axis for axis in range(target.ndim) if axis not in kept) for kept in margins]
    wanted = [target.sum(axis=other, keepdims=True) for other in others]
    fitted = np.full(target.shape, 1 / target.size)
    for _ in range(max_rounds):
        worst = 0.0
        for other, marginal in zip(others, wanted, strict=True):
            current = fitted.sum(axis=other, keepdims=True)
            worst = max(worst, float(np.abs(current - marginal).max()))
            fitted = fitted * np.divide(marginal, current, out=np.zeros_like(current), where=current > 0)
        if worst <= tolerance:
            return fitted
    raise ValueError(
        f"Proportional fitting is off by {worst:.1e} after {max_rounds} rounds, above {tolerance:.1e}. "
        "Add a small count to empty cells: a table with zeros may reach its limit only slowly."
    )
