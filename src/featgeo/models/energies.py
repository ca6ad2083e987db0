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
from featgeo.learning.sources import BEFORE, LearnedSources
from featgeo.models.base import mean_and_error
from featgeo.models.identification import Group
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
    last = Search((None,)) if exact else Search((0, *MODE_COUNTS))
    searches = [Search((None,)) if exact else BEFORE] * (len(levels) - 1) + [last]
    tau_ridge = None if exact else learned.features.ridge
    solution = solve(learned.folds, [(level, "y") for level in levels], searches, tau_ridges=(tau_ridge,))
    folds = solution.held_out_energies(-1)
    mean, error = (float(part[0]) for part in mean_and_error(folds[:, None]))
    reach = float(student.ppf(0.975, max(len(folds) - 1, 1))) * error
    return Energy(name, beyond, solution.levels[-1].energy, mean, error, (mean - reach, mean + reach))
