"""Many sources, some missing: the dependence of several sources and Y, as a scikit-learn style estimator."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

import numpy as np

from featgeo.assembly import Conditional
from featgeo.card import Card
from featgeo.features.columns import counted, present, rows_of, taken
from featgeo.features.variables import Parts, Rows, Variable
from featgeo.geometry.validation import Array, check_same_rows, check_whole, seed_of
from featgeo.learning.data import Incomplete, rows_by_pattern
from featgeo.learning.setting import Solver
from featgeo.learning.source_blocks import SourceBlocks
from featgeo.learning.sources import LearnedSources, learn_sources
from featgeo.models.base import (
    ComponentsReport,
    Decomposition,
    DependenceComponent,
    h_score_on,
    support_of,
    warn_of_doubts,
)
from featgeo.models.identification import (
    Energies,
    Energy,
    Identified,
    Team,
    by_source,
    energies,
    identify,
    n_rows_of,
    read_rows,
    shown,
)
from featgeo.models.importance import Importance, importance_of
from featgeo.records import Result
from featgeo.schema import saved
from featgeo.watch import watched

# Of three sources or more. Each brings up to 64 functions, and every fold decomposes the Gram matrix of all of them:
# with 6,400, half a gigabyte and minutes.
MOST_GROUPS = 100


@dataclass(frozen=True, eq=False, repr=False)
class OptimalTransformations(Result):
    """The optimal transformations of Breiman and Friedman: psi(Y) is best predicted by the sum of all phi.

    Attributes:
        phi: For each source its transformation at each row, (n,), of mean 0 on the rows of the fit.
        psi: That of Y, (n,), of mean 0 and variance 1 on the rows of the fit; None where Y was not passed.
        explained: Share of the variance of psi(Y) that the sum explains, sigma_1^2: what is left is 1 - sigma_1^2.
    """

    phi: dict[str, Array]
    psi: Array | None
    explained: float

    def card(self) -> Card:
        """In one line."""
        sources = " + ".join(f"phi({name})" for name in self.phi)
        return Card([f"{sources} explains {self.explained:.1%} of the variance of psi(Y)"])


@saved
@dataclass(eq=False, repr=False)
class MultimodalDecomposition(Decomposition):
    """The dependence of several sources X_1, X_2, ... and Y, split into what sums of functions of single sources hold
    (the bivariate component) and what only functions of several together do (interactions).

    Cells may miss anywhere, those of Y too. One fit answers from any subset of the sources: features of what is missing
    are replaced by their conditional expectations given what is there.

    Args:
        n_modes: How many modes of the bivariate component to keep at most, or "auto": as many as raise the H-score on
            held-out rows (all, for finite alphabets).
        n_interaction_modes: The same for each order of interaction; "auto" may keep none.
        max_order: How many sources may interact; 1 for sums of functions of single sources only.
        solver: As in `ModalDecomposition`.
        spaces: Functions of each source to allow, as `x_space` of `ModalDecomposition`: one for all, or a mapping from
            source to space; sources that it does not name have "auto".
        y_space: Functions of Y to allow.
        sources: Which columns of a table belong to each source, by its name: a column, or a list of them, by name or
            position. Rows then come as one frame or array, as scikit-learn's searches and cross-validation pass them;
            columns that no source has are not read. When None, rows come as a mapping from source to rows.
        random_state, training, device, ridge, time_limit, verbose: By name, as every estimator has them, see
            `featgeo.models.base.Decomposition`.

    Attributes:
        sources_: Names of the sources.
        identified_: For each component, by name, whether it was learned and why.
        components_: The components that were learned, by name.
        bivariate_: What sums of functions of single sources hold.
        interaction_: What is beyond them.
        orders_: The component of each interaction order, first the bivariate one.
        strengths_: For each component how strong each of its modes is on held-out rows, as a share of what it seems to
            be, (k,); `given` counts it by that much.
        removed_: Share of energy by which moments of different rows did not fit together; 0 for complete rows. Values
            well above 0 mean that too few rows have sources together.
        solver_: The solver that was used.
    """

    n_modes: int | Literal["auto"] = "auto"
    n_interaction_modes: int | Literal["auto"] = "auto"
    max_order: int = 2
    solver: Solver = "auto"
    spaces: Any = "auto"
    y_space: Any = "auto"
    sources: Mapping[str, Any] | None = None

    sources_: tuple[str, ...] = field(init=False)
    variables_: dict[str, Variable] = field(init=False)
    teams_: tuple[Team, ...] = field(init=False)
    identified_: dict[str, Identified] = field(init=False)
    learned_: tuple[LearnedSources, ...] = field(init=False)
    energies_: Energies | None = field(init=False)

    counts: ClassVar[Mapping[str, tuple[str, ...]]] = {"n_modes": ("auto",), "n_interaction_modes": ("auto",)}
    feature_name: ClassVar[str] = "{} {}"

    def fit(
        self, X: Any, y: Any, present: Mapping[str, Any] | None = None, sample_weight: Any = None
    ) -> MultimodalDecomposition:
        """Learn from rows of all sources and of Y.

        Args:
            X: Rows of each source by name, in the same order: arrays, tensors, frames, series or lists; or one table,
                where `sources` says which columns are whose. A row misses a source where all of its cells there are
                missing (NaN, None); where only some are, they count as average.
            y: Rows of Y; missing ones say nothing about Y, but still how the sources depend on each other.
            present: For sources that cannot hold NaN, such as images of whole numbers: by name, which rows are there,
                boolean (n,); "y" may be among the names.
            sample_weight: How often each row counts, whole numbers, (n,): a weight of 2 is the row twice.
        """
        sources = by_source(X, self.sources, every=True)
        if "y" in sources:
            raise ValueError("'y' is what Y is called, and cannot be a source as well. Rename the source.")
        rows, masks = {**sources, "y": y}, {} if present is None else present
        if sample_weight is not None:
            named = {**rows, **{f"present {name}": mask for name, mask in masks.items()}}
            rows = dict(zip(named, counted(sample_weight, **named), strict=True))
            masks = {name: rows.pop(f"present {name}") for name in masks}
        return self._fit([rows], masks)

    def fit_datasets(self, datasets: Sequence[Mapping[str, Any]]) -> MultimodalDecomposition:
        """Learn from separate sets of rows, each with variables of its own.

        Args:
            datasets: Each a mapping from name to rows, those of one set in the same order; Y is called "y". Pairs such
                as {"a": ..., "y": ...}, {"b": ..., "y": ...} and {"a": ..., "b": ...} are enough for the bivariate
                component.
        """
        datasets = [datasets] if isinstance(datasets, Mapping) else datasets
        if (
            not isinstance(datasets, list | tuple)
            or not datasets
            or not all(isinstance(part, Mapping) for part in datasets)
        ):
            raise ValueError("`datasets` must be a list of mappings from name to rows, one for each set of rows.")
        return self._fit([dict(part) for part in datasets if part], {})

    @property
    def strengths_(self) -> dict[str, Array]:
        """For each component how strong its modes are on held-out rows, as a share of what they seem to be, (k,)."""
        return dict(zip(self._names, (part for learned in self._learned for part in learned.amplitudes), strict=True))

    @property
    def orders_(self) -> tuple[DependenceComponent, ...]:
        """The component of each interaction order, first the bivariate one; none where sources were never together."""
        if self.teams_[0].sources != self.sources_:
            return ()
        parts = self.learned_[0].components
        labels = ["bivariate", *("interaction" if len(parts) == 2 else f"order {i}" for i in range(2, len(parts) + 1))]
        return tuple(DependenceComponent.of(label, part) for label, part in zip(labels, parts, strict=True))

    @property
    def removed_(self) -> float:
        """Share of energy by which moments of different rows did not fit together."""
        return max(learned.removed for learned in self.learned_)

    @property
    def bivariate_(self) -> DependenceComponent:
        """What sums of functions of single sources hold of the dependence."""
        return self._component(0)

    @property
    def interaction_(self) -> DependenceComponent:
        """What is beyond sums of functions of single sources, all orders together."""
        self._component(1)
        learned = self.learned_[0]
        first, *others = learned.components[1:]
        if not others:
            return self.orders_[1]
        # Its modes mix those of all orders, so none of them was held out.
        mixed = replace(
            first,
            sigma=learned.interaction_sigma,
            held_out_sigma=np.empty((0, len(learned.interaction_sigma))),
            held_out_energies=np.sum([part.held_out_energies for part in (first, *others)], axis=0),
        )
        return DependenceComponent.of("interaction", mixed)

    def given(self, X: Any = None, /, prior: Any = None, calibrated: bool = True, **sources: Any) -> Conditional:
        """The distribution of Y for each row, from whatever is there: `given(a=A)`, `given(b=B)`, `given(a=A, b=B)`.

        Args:
            X: Rows of some of the sources as a mapping, or as a table where `sources` says which columns are whose;
                sources of which a frame has no column miss.
            prior: Another distribution of Y than that of the fit, as in `ModalDecomposition.given`.
            calibrated: Whether each mode counts as strongly as held-out rows show (`strengths_`); else it is the plain
                formula, with singular values as on the rows of the fit. The same where `solver_` is "exact".
            **sources: The same by name. Rows of which some sources miss are answered from the others, and rows of
                which all miss by the prior.
        """
        if X is not None and sources:
            raise ValueError(f"Rows came twice, as a whole and by name, {list(sources)}. Pass either.")
        sigma = self._shown_sigma if calibrated else self._sigma
        return Conditional(self.support_, self.transform(sources if X is None else X) * sigma, prior)

    def transform(self, X: Any) -> Array:
        """Normalised features, (n, k): those of the bivariate component, then those of each order of interaction.

        Where sources miss, conditional expectations of the features given the others. Each row speaks through the first
        team that knows all it has.
        """
        sources = by_source(X, self.sources)
        names = self._named(sources)
        values = {name: rows_of(sources[name], name) for name in names}
        n_rows_of(values)
        has = np.stack([present(values[name], shown(name)) for name in names], axis=1)
        ends = np.cumsum([0, *(learned.features.weight.shape[1] for learned in self.learned_)])
        result = np.zeros((len(has), ends[-1]))
        for pattern, index in rows_by_pattern(has):
            there = tuple(name for name, is_there in zip(names, pattern, strict=True) if is_there)
            if not there:
                continue
            team = self._team(there)
            rows = Parts({name: self.variables_[name].rows(taken(values[name], index)) for name in there})
            result[index, ends[team] : ends[team + 1]] = self.learned_[team].features(rows)
        return result

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """H-score on the given rows: half the energy of the dependence that is captured there, from what they have."""
        sources = by_source(X, self.sources)
        if sample_weight is not None:
            *values, y = counted(sample_weight, **sources, y=y)
            sources = dict(zip(sources, values, strict=True))
        f, there, y_rows = self._with_y(sources, y)
        return h_score_on(y_rows, f[there], self._g, self._sigma)

    def importance(self, X: Any, y: Any) -> Importance:
        """Which columns of the sources matter: what each holds alone, adds to all others, and shares.

        Args:
            X: Rows of sources, not those of the fit.
            y: Rows of Y.
        """
        sources = by_source(X, self.sources)
        f, there, y_rows = self._with_y(sources, y)
        parts = {name: self.variables_[name].rows(sources[name]).take(there) for name in self._named(sources)}
        return importance_of(
            Parts(parts).of(*parts), f[there] * self._shown_sigma, self._g(y_rows), seed_of(self.random_state)
        )

    def _with_y(self, sources: Mapping[str, Any], y: Any) -> tuple[Array, np.ndarray, Rows]:
        """Features of all rows, (n, k), positions of those that have Y, and Y there."""
        f, values = self.transform(sources), rows_of(y, "Y")
        check_same_rows(sources=f, Y=values)
        there = np.flatnonzero(present(values, "Y"))
        if not len(there):
            raise ValueError("Y is missing in every row: there is nothing to score. Pass rows of Y.")
        return f, there, self.y_variable_.rows(taken(values, there))

    @property
    def _shown_sigma(self) -> Array:
        """Singular values, each as strong as held-out rows show it."""
        return self._sigma * np.concatenate(list(self.strengths_.values()))

    def optimal_transformations(self, X: Any, y: Any = None) -> OptimalTransformations:
        """The transformations phi_a(a) + phi_b(b) + ... and psi(Y) that fit each other best (Prop. opt:tran).

        They are the strongest mode of the bivariate component: no other rows are needed.

        Args:
            X: Rows of all sources, none missing.
            y: Rows of Y.
        """
        sources = by_source(X, self.sources)
        self._component(0)
        learned, component = self.learned_[0], self._parts[0]
        names = self._named(sources, every=True)
        for name, values in {**{name: sources[name] for name in names}, **({} if y is None else {"y": y})}.items():
            if not present(rows_of(values, shown(name)), shown(name)).all():
                raise ValueError(f"{shown(name)} is missing in some rows, which have no transformation. Drop them.")
        rows = Parts({name: self.variables_[name].rows(sources[name]) for name in names})
        if not len(component):
            raise ValueError("The bivariate component has no mode: Y depends on no sum of functions of the sources.")
        parts = learned.features.parts(rows)
        psi = None if y is None else component.g(self.y_variable_.rows(y))[:, 0]
        sigma = float(component.sigma[0])
        return OptimalTransformations({name: sigma * value[:, 0] for name, value in parts.items()}, psi, sigma**2)

    def energies(self) -> Energies:
        """How much each source, their sum and each interaction knows about Y, and each source after all others.

        Computed when first asked for, and kept.
        """
        if self.energies_ is None:
            rows: dict[str, Energy] = {}
            for team, learned in zip(self.teams_, self.learned_, strict=True):
                for row in energies(learned, team.sources, [group for order in team.orders[1:] for group in order]):
                    rows.setdefault(row.name, row)  # the largest team speaks first
            self.energies_ = Energies(tuple(rows.values()))
        return self.energies_

    def report(self) -> ComponentsReport:
        """What was learned, how strong it is on held-out rows, and what was left out as they did not confirm it."""
        report = super().report()
        mended = f"moments of different rows mended by {self.removed_:.1e} of their energy"
        strengths = [f"strengths of {name}: {np.round(part, 2).tolist()}" for name, part in self.strengths_.items()]
        absent = [str(verdict) for verdict in self.identified_.values() if not verdict.learned]
        return replace(report, notes=(mended, *strengths, *absent))

    def _drawn_energies(self) -> Iterator[tuple[str, float, float, tuple[float, float]]]:
        return ((row.name, row.energy, row.held_out, row.interval) for row in self.energies())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to a file of tensors and JSON; `featgeo.load` reads it."""
        self.energies()  # they need the moments of the fit, which stay behind
        super().save(path)

    # --- the fit

    @watched
    def _fit(self, datasets: list[dict[str, Any]], masks: Mapping[str, Any]) -> MultimodalDecomposition:
        plan, max_order = self._begin(), check_whole(self.max_order, "max_order", 1, "Use 2.")
        data = read_rows(datasets, masks)
        self.sources_ = tuple(name for name in data.rows if name != "y")
        _check_groups(len(self.sources_), max_order)
        self.variables_ = {name: data.rows[name].variable for name in self.sources_}
        self.y_variable_ = data.rows["y"].variable
        self.teams_, self.identified_ = identify(data, self.sources_, max_order)
        if not self.teams_:
            raise ValueError(
                "Nothing can be learned: "
                + "; ".join(str(self.identified_[source]) for source in self.sources_)
                + ". Pass rows that have a source and Y together."
            )
        groups = list(dict.fromkeys(group for team in self.teams_ for order in team.orders for group in order))
        known = (*(source for source in self.sources_ if self.identified_[source].learned), "y")
        own = Incomplete({name: data.rows[name] for name in known}, {name: data.where[name] for name in known})
        wanted = {name: space for name, space in self._spaces().items() if name in known}
        blocks = SourceBlocks(own, wanted, self.y_space, groups, plan)
        counts = [self.n_modes, *[self.n_interaction_modes] * (max_order - 1)]
        self.learned_ = tuple(learn_sources(blocks, team.orders, counts[: len(team.orders)]) for team in self.teams_)
        warn_of_doubts(self.components_.values(), "`given` is the distribution of Y over all rows")
        self.energies_ = None
        self.support_ = support_of(self.y_variable_, data.rows["y"], self._g, plan.seed)
        return self

    def _spaces(self) -> dict[str, Any]:
        if not isinstance(self.spaces, Mapping):
            return dict.fromkeys(self.sources_, self.spaces)
        unknown = set(self.spaces) - set(self.sources_)
        if unknown:
            raise ValueError(f"`spaces` names {sorted(unknown)}, and the sources are {list(self.sources_)}.")
        return {name: self.spaces.get(name, "auto") for name in self.sources_}

    @property
    def _names(self) -> tuple[str, ...]:
        of_teams = zip(self.teams_, self._learned, strict=True)
        return tuple(team.name(i + 1) for team, learned in of_teams for i in range(len(learned.components)))

    # --- rows that come later

    def _named(self, sources: Mapping[str, Any], every: bool = False) -> list[str]:
        """The sources that were passed, in the order of the fit."""
        unknown = [name for name in sources if name not in self.sources_]
        if unknown:
            raise ValueError(f"The fit had no source {unknown[0]!r}. Its sources are {list(self.sources_)}.")
        names = [name for name in self.sources_ if sources.get(name) is not None]
        if not names or (every and len(names) < len(self.sources_)):
            needed = f"all of {list(self.sources_)}" if every else f"at least one of {list(self.sources_)}"
            raise ValueError(f"Pass rows of {needed}, got {names}.")
        return names

    def _team(self, there: tuple[str, ...]) -> int:
        """The team that knows most about the sources that are there."""
        able = [i for i, team in enumerate(self.teams_) if set(there) <= set(team.sources)]
        if able:
            return max(able, key=lambda i: self.teams_[i].knowledge(there))
        for source in there:
            if not self.identified_[source].learned:
                raise ValueError(
                    f"Nothing is known about Y given {source}: {self.identified_[source].reason}. Leave it out."
                )
        raise ValueError(
            f"Y given {' and '.join(there)} is not identified: these sources were not all seen together, pair by pair. "
            "Pass fewer of them, or fit with rows where they meet."
        )

    def _component(self, order: int) -> DependenceComponent:
        if order < len(self.orders_):
            return self.orders_[order]
        everything = " + ".join(self.sources_)
        asked = not self.orders_ or self.max_order > order
        groups = [name for name in self.identified_ if " x " in name] if self.orders_ else [everything]
        absent = [str(self.identified_[name]) for name in groups if not self.identified_[name].learned]
        reason = [*absent, "they cannot all be told apart"][0] if asked else f"max_order={self.max_order} asks for none"
        raise AttributeError(
            f"There is no such component in {everything}: {reason}. `identified_` says more, and `components_` holds "
            f"{list(self.components_)}."
        )


def _check_groups(n_sources: int, max_order: int) -> None:
    """Refuse more groups of sources than can be learned: with their size their number grows exponentially."""
    sizes = [math.comb(n_sources, size) for size in range(3, min(max_order, n_sources) + 1)]
    if sum(sizes) > MOST_GROUPS:
        best = max(order for order in range(2, max_order) if sum(sizes[: order - 2]) <= MOST_GROUPS)
        raise ValueError(
            f"max_order={max_order} of {n_sources} sources asks for functions of {sum(sizes)} groups of three sources "
            f"or more, and at most {MOST_GROUPS} can be learned. Use max_order={best}, or put sources together."
        )
