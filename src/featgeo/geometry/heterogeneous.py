"""One joint distribution from tables that each observe only some of the sources (eq. L:bi).

With R = R_X R_Y the metric distribution, the estimate minimises, over all densities 1 + l on the support of R,

    L(l) = sum_D  eta_D || l_D - tau_D(l) ||^2,

where dataset D with share eta_D of the samples has density ratio l_D against R, and tau_D averages a function over the
sources that D does not see: the projection onto functions of those it sees. The minimiser solves a linear system on the
x side alone,  (sum_D eta_D tau_D) l = sum_D eta_D l_D.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from featgeo.geometry.alphabet import Alphabet
from featgeo.geometry.finite import Dependence, FiniteJoint
from featgeo.geometry.validation import Array


class HeterogeneousEstimate(Dependence):
    """The minimiser of eq. L:bi: its `density` is the ratio l(x, y) against the metric R_X R_Y of its alphabets.

    The density also says where the marginals of the tables differ from R_X and R_Y; `multimodal` splits the rest.
    """

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
    system, right = np.zeros((len(x.root_mass),) * 2), np.zeros((len(x.root_mass), len(target.root_mass)))
    carried = [tuple(name for name in x.names if name in dataset.names) for dataset in datasets]
    for dataset, seen in zip(datasets, carried, strict=True):
        side = Alphabet(seen, FiniteJoint(x.mass, x.names).probability(*seen))
        joint = dataset.probability(*seen, y)
        if (joint[side.mass == 0] > 0).any():
            raise ValueError(
                f"The table of {dataset.names} holds symbols of {seen} that the joint of all sources never shows. "
                "Pass `sources` with every symbol in it."
            )
        basis = x.coarsening(seen).toarray()  # functions of what the dataset sees: tau_D = basis basis^T
        share = dataset.total / sum(table.total for table in datasets)
        system += share * (basis @ basis.T)
        right += share * (basis @ Dependence.of_joint(joint, side, target).kernel)
    # Where no table sees all sources together, their interaction is open; it is set to 0. What is identified does not
    # depend on the sizes of the tables: all functions of what one of them sees.
    span = x.flag([carried]).basis
    return HeterogeneousEstimate(x, target, span @ np.linalg.solve(span.T @ system @ span, span.T @ right))


def _check_alphabets(tables: Sequence[FiniteJoint]) -> None:
    """Check that a variable has the same symbols, in the same order, wherever it occurs."""
    first: dict[str, FiniteJoint] = {}
    for table in tables:
        if not isinstance(table, FiniteJoint):
            raise ValueError(
                f"Tables must be FiniteJoint, got {type(table).__name__}. Write FiniteJoint(counts, names)."
            )
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
    if sources is not None and set(sources.names) != set(names):
        raise ValueError(f"`sources` must be a table of exactly {names}, got {sources.names}. Use its marginal.")
    complete = [table for table in datasets if set(table.names) == {*names, y}] if sources is None else [sources]
    if not complete:
        raise ValueError(f"No table sees all of {names} together. Pass their joint distribution as `sources`.")
    return Alphabet(names, _pooled(complete, names)), Alphabet((y,), _pooled(datasets, (y,)))


def _pooled(tables: Sequence[FiniteJoint], names: tuple[str, ...]) -> Array:
    """The marginal of all samples together."""
    return np.average([table.probability(*names) for table in tables], axis=0, weights=[t.total for t in tables])
