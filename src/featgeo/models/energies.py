"""How much each source and each interaction knows about Y: energies of parts of the dependence.

Every line is the energy of one step: what some functions hold of the dependence beyond others. All come from the same
moments; on held-out rows they are estimates from below, about 0 where there is nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from scipy.stats import t as student

from featgeo.card import Card, Shown
from featgeo.learning.solve import MODE_COUNTS, Search, solve
from featgeo.learning.source_screen import BEFORE
from featgeo.learning.sources import LearnedSources
from featgeo.models.components import mean_and_error
from featgeo.schema import saved


@saved
@dataclass(frozen=True)
class Energy:
    """The energy of one step.

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


@saved
@dataclass(frozen=True, repr=False)
class Energies(Shown):
    """Energies of all steps; print it for a table, index it by name.

    Attributes:
        rows: One a step.
    """

    rows: tuple[Energy, ...]

    def __iter__(self) -> Iterator[Energy]:
        return iter(self.rows)

    def __getitem__(self, name: str) -> Energy:
        for row in self.rows:
            if row.name == name:
                return row
        raise KeyError(f"There is no step {name!r}. The steps are {[row.name for row in self.rows]}.")

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
    of = learned.features.of
    singles = [name for name, group in of.items() if len(group) == 1]
    everything = list(of)
    together = " + ".join(sources)
    result = [
        _energy(learned, f"{source} alone", "", [], [name for name in singles if of[name] == (source,)])
        for source in sources
    ]
    if len(sources) > 1:
        result.append(_energy(learned, together, "", [], singles))
    for group in groups:
        before = [name for name in everything if len(of[name]) < len(group)]
        added = [name for name in everything if of[name] == group]
        result.append(_energy(learned, " x ".join(group), "sums of functions of fewer", before, added))
    for order in range(2, 1 + max(len(group) for group in of.values())):
        before = [name for name in everything if len(of[name]) < order]
        added = [name for name in everything if len(of[name]) == order]
        if len(sources) > 2:
            result.append(_energy(learned, f"all interactions of {order}", "sums of functions of fewer", before, added))
    for source in sources if len(sources) > 1 else ():
        before = [name for name in everything if source not in of[name]]
        added = [name for name in everything if source in of[name]]
        result.append(_energy(learned, f"{source} after the others", "all functions of the others", before, added))
    return result


def _energy(learned: LearnedSources, name: str, beyond: str, before: list[str], added: list[str]) -> Energy:
    if learned.folds is None:
        raise ValueError("Energies come from the moments of the fit, which are not there any more. Fit again.")
    if not added:
        return Energy(name, beyond, 0.0, 0.0, 0.0, (0.0, 0.0))
    exact = learned.solver == "exact"
    levels = [before, [*before, *added]] if before else [added]
    last = Search((None,)) if exact else Search((0, *MODE_COUNTS))
    searches = [Search((None,)) if exact else BEFORE] * (len(levels) - 1) + [last]
    tau_ridge = None if exact else learned.features.ridge
    solution = solve(learned.folds, [(level, "y") for level in levels], searches, tau_ridges=(tau_ridge,))
    folds = solution.held_out_energies(-1)
    mean, error = (float(part[0]) for part in mean_and_error(folds[:, None]))
    reach = float(student.ppf(0.975, max(len(folds) - 1, 1))) * error
    return Energy(name, beyond, solution.levels[-1].energy, mean, error, (mean - reach, mean + reach))
