"""One joint distribution from tables that each observe only some of the sources (eq. L:bi).

With R = R_X R_Y the metric distribution, the estimate minimises, over all densities 1 + l on the support of R,

    L(l) = sum_D  eta_D || l_D - tau_D(l) ||^2,

where dataset D with share eta_D of the samples has density ratio l_D against R, and tau_D averages a function over the
sources that D does not see: the projection onto functions of those it sees. The minimiser solves a linear system on the
x side alone,  (sum_D eta_D tau_D) l = sum_D eta_D l_D.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from featgeo.geometry.alphabet import Alphabet, Space, canonical_ratio, from_canonical, kernel_components
from featgeo.geometry.components import MultimodalComponents
from featgeo.geometry.finite import FiniteJoint
from featgeo.geometry.modes import Modes
from featgeo.geometry.validation import Array


@dataclass(frozen=True, eq=False)
class HeterogeneousEstimate:
    """The minimiser of eq. L:bi.

    Attributes:
        x: Alphabet of all sources together, with the metric distribution R_X.
        y: Alphabet of the target, with R_Y.
        kernel: Coefficients of the density ratio in the canonical basis, on the supports.
    """

    x: Alphabet
    y: Alphabet
    kernel: Array

    @property
    def density(self) -> Array:
        """The density ratio l(x, y), (*shape of x, *shape of y)."""
        return from_canonical(self.kernel, self.x, self.y)

    @property
    def table(self) -> Array:
        """The estimated joint R (1 + l). It sums to 1; see `negative_mass` for entries below zero."""
        return np.multiply.outer(self.x.mass, self.y.mass) * (1 + self.density)

    @property
    def negative_mass(self) -> float:
        """Total size of the negative entries; where it is 0 the estimate is a distribution.

        The minimiser over signed densities is what the heterogeneous H-score attains (Theorem hsbih), so it is
        reported and not clipped.
        """
        return float(-self.table.clip(max=0).sum())

    def components(self, x_spaces: Sequence[Space]) -> tuple[Modes, ...]:
        """Split the density by levels of growing spaces of functions of x; all functions of y are allowed."""
        return kernel_components(self.kernel, self.x, self.y, x_spaces, [None] * len(x_spaces))

    def multimodal(self) -> MultimodalComponents:
        """Split the dependence by interaction order, as `FiniteJoint.multimodal` does.

        The density also says where the marginals of the tables differ from R_X and R_Y. What is split here is the rest:
        its part of mean 0 in x for each y, and in y for each x.
        """
        x_root, y_root = self.x.root_mass, self.y.root_mass
        kernel = self.kernel - np.outer(x_root, x_root @ self.kernel)
        kernel = kernel - np.outer(kernel @ y_root, y_root)
        names = self.x.names
        spaces: list[Space] = [list(combinations(names, size)) for size in range(1, len(names))]

        def split(x_spaces: list[Space]) -> tuple[Modes, ...]:
            return kernel_components(kernel, self.x, self.y, x_spaces, [None] * len(x_spaces))

        orders = split([*spaces, None])
        interaction = orders[1] if len(orders) == 2 else split([spaces[0], None])[1]
        return MultimodalComponents(orders[0], interaction, orders)


def heterogeneous_estimate(
    datasets: Sequence[FiniteJoint], y: str, sources: FiniteJoint | None = None
) -> HeterogeneousEstimate:
    """Estimate the joint distribution of all sources and y from tables of counts that each see some of the sources.

    Args:
        datasets: Count tables, each over y and one or more sources; variables are matched by name. Their totals give
            the shares eta.
        y: Name of the target.
        sources: The joint distribution R_X of all sources; from the tables that see all of them when None.

    Raises:
        ValueError: If R_X cannot be had, or a table holds symbols that R_X never shows.
    """
    if not isinstance(datasets, list | tuple):
        raise ValueError(f"`datasets` must be a list of FiniteJoint, got {type(datasets).__name__}.")
    if not isinstance(y, str):
        raise ValueError(f"`y` must be the name of the target, got {str(y)[:80]}.")
    _check_alphabets([*datasets, *([] if sources is None else [sources])])
    x, target = _metric(datasets, y, sources)
    total = sum(dataset.total for dataset in datasets)
    n = len(x.root_mass)
    identified, system, right = np.zeros((n, n)), np.zeros((n, n)), np.zeros((n, len(target.root_mass)))
    for dataset in datasets:
        seen = tuple(name for name in x.names if name in dataset.names)
        side = Alphabet(seen, FiniteJoint(x.mass, x.names).probability(*seen))
        joint = dataset.probability(*seen, y)
        if (joint[side.mass == 0] > 0).any():
            raise ValueError(
                f"The table of {dataset.names} holds symbols of {seen} that the joint of all sources never shows. "
                "Pass `sources` with every symbol in it."
            )
        basis = x.coarsening(seen)  # functions of what the dataset sees: tau_D = basis basis^T
        share = dataset.total / total
        identified += basis @ basis.T
        system += share * (basis @ basis.T)
        right += share * (basis @ canonical_ratio(joint, side, target))
    # Where no table sees all sources together, their interaction is open; it is set to 0. What is identified does not
    # depend on the sizes of the tables, so the rank is read off without them.
    energies, directions = np.linalg.eigh(identified)
    span = directions[:, energies > 1e-10]
    solution = span @ np.linalg.solve(span.T @ system @ span, span.T @ right)
    return HeterogeneousEstimate(x, target, solution)


def _check_alphabets(tables: Sequence[FiniteJoint]) -> None:
    """Check that a variable has the same symbols, in the same order, wherever it occurs."""
    for table in tables:
        if not isinstance(table, FiniteJoint):
            raise ValueError(
                f"Tables must be FiniteJoint, got {type(table).__name__}. Write FiniteJoint(counts, names)."
            )
    first: dict[str, FiniteJoint] = {}
    for table in tables:
        for name in table.names:
            known = first.setdefault(name, table).marginal(name)
            own = table.marginal(name)
            labels = (known.categories, own.categories)
            if known.shape != own.shape or (None not in labels and labels[0] != labels[1]):
                raise ValueError(
                    f"All tables must give {name!r} the same symbols in the same order, got {_symbols(known)} and "
                    f"{_symbols(own)}. Count every table over one list of symbols."
                )


def _symbols(variable: FiniteJoint) -> str:
    return f"{variable.shape[0]} symbols" if variable.categories is None else str(variable.categories[0])


def _metric(datasets: Sequence[FiniteJoint], y: str, sources: FiniteJoint | None) -> tuple[Alphabet, Alphabet]:
    """R_X from the complete tables, R_Y from all of them, each weighted by its number of samples."""
    if not datasets:
        raise ValueError("An estimate needs at least one table, got none. Pass one or more FiniteJoint of counts.")
    for dataset in datasets:
        if y not in dataset.names or len(dataset.names) < 2:
            raise ValueError(
                f"Each table must hold {y!r} and at least one source, got {dataset.names}. Add what misses."
            )
    names = tuple(dict.fromkeys(name for dataset in datasets for name in dataset.names if name != y))
    if sources is not None:
        if set(sources.names) != set(names):
            raise ValueError(f"`sources` must be a table of exactly {names}, got {sources.names}. Use its marginal.")
        x_mass = sources.probability(*names)
    else:
        complete = [dataset for dataset in datasets if set(dataset.names) == {*names, y}]
        if not complete:
            raise ValueError(f"No table sees all of {names} together. Pass their joint distribution as `sources`.")
        x_mass = _pooled(complete, names)
    return Alphabet(names, x_mass), Alphabet((y,), _pooled(datasets, (y,)))


def _pooled(tables: Sequence[FiniteJoint], names: tuple[str, ...]) -> Array:
    """The marginal of all samples together."""
    total = sum(table.total for table in tables)
    return np.asarray(sum(table.total / total * table.probability(*names) for table in tables))
