"""How held-out rows set distributions right.

Few modes of a strong dependence spread Y too widely, noisy ones too narrowly. Neither shows on the rows of the fit, so
distributions are set right by rows that their features have not seen (`Calibration`):

- Numbers: held-out rows choose how much of the theory's formula, and of means and spreads that follow the features,
  distributions are made of, by the ranked score (`mixed_link`). Then they say how often Y fell below each predicted
  quantile, and a map of probabilities makes that as often as it should be (`Recalibration`). Intervals then cover as
  often as they say, on average over x, and where rows suffice to tell for small and for large predictions alike.
- Labels, and numbers of few values: of the theory's formula with some of the prior mixed in, and a softmax of the same
  features, the one of the smallest log loss (`calibrated_link`).
- Vectors have no order and rarely come twice: they keep the formula.

Many fits are for modes and strengths alone, so all this is learned when somebody first asks for it (`Later`).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy.optimize import nnls
from scipy.stats import rankdata

from featgeo.assembly.conditional import Conditional
from featgeo.assembly.links import (
    JUDGING_ROWS,
    TINY,
    Along,
    ExponentialLink,
    LinearLink,
    Link,
    LocatedLink,
    MixedLink,
    Recalibration,
    Smoothing,
    Support,
    best_mixture,
    judging,
    smoothed,
    unit_of,
)
from featgeo.features.variables import Candidate, preferred
from featgeo.geometry.validation import Array
from featgeo.schema import saved
from featgeo.tuning import in_force, under
from featgeo.watch import bounded_threads

CELLS = 4_000_000  # probabilities that a link is judged by, at most, for time: a row has one for each label
FEWEST_JUDGING = 200  # rows that are always afforded, however many labels there are: bounds time


class Later:
    """An object some of whose attributes are learned when one of them is first asked for, under the options of the fit.

    Attributes:
        learned_later: Which.
    """

    learned_later: ClassVar[frozenset[str]]

    def put_off(self, *arguments: Any) -> None:
        """Forget these attributes; `_learned_now` finds them anew from the arguments, once somebody asks."""
        for name in self.learned_later:
            vars(self).pop(name, None)
        vars(self)["put_off_"] = arguments, in_force.get()

    @abstractmethod
    def _learned_now(self, *arguments: Any) -> Mapping[str, Any]:
        """All of them, by name."""

    if not TYPE_CHECKING:  # who knows all attributes

        def __getattr__(self, name: str) -> Any:
            """Learn what was put off; whoever asks meanwhile, in another thread, learns the same."""
            put_off = vars(self).get("put_off_")
            if put_off is not None and name in self.learned_later:
                arguments, options = put_off
                with under(options):
                    vars(self).update(self._learned_now(*arguments))
                vars(self).pop("put_off_", None)
            others = getattr(super(), "__getattr__", object.__getattribute__.__get__(self))
            return others(name)  # there by now, or an error


@saved
@dataclass(frozen=True, eq=False)
class Calibration(Later):
    """From features to distributions, as held-out rows want it; without any, the plain formula 1 + f.g.

    Attributes:
        link: From features to density ratios.
        recalibration: A map of the distribution function, for numbers.
        smoothing: How their masses become densities.
    """

    link: Link = field(default_factory=LinearLink)
    # None by factories: defaults of the class would hide what is yet to be learned.
    recalibration: Recalibration | None = field(default_factory=lambda: None)
    smoothing: Smoothing | None = field(default_factory=lambda: None)

    learned_later: ClassVar[frozenset[str]] = frozenset({"link", "recalibration", "smoothing"})

    @classmethod
    def later(cls, support: Support, f: Array, happened: np.ndarray) -> Calibration:
        """The same as `fit`, under the options of now, but learned when first asked for: many fits are for modes."""
        result = cls.__new__(cls)
        result.put_off(support, f, happened)
        return result

    def _learned_now(self, *arguments: Any) -> Mapping[str, Any]:
        return vars(Calibration.fit(*arguments))

    @classmethod
    def fit(cls, support: Support, f: Array, happened: np.ndarray, link: Link | None = None) -> Calibration:
        """Learn it from rows that the features have not seen; too few of them leave the formula as it is.

        Args:
            support: The values of Y.
            f: Features of those rows, (n, k), each times its singular value; or whatever else the link reads.
            happened: What Y was there, (n,): for continuous numbers itself, else its position in the support.
            link: The one to keep; of labels the best when None.
        """
        enough = len(f) >= in_force.get().calibrating_rows and support.kind != "rows"
        plain = LinearLink() if link is None else link
        with bounded_threads():  # few rows judge
            if not (enough and support.continuous):
                return cls(calibrated_link(f, happened, support) if enough and link is None else plain)
            plain = plain if link is not None else mixed_link(f, happened, support)
            pit = Conditional(support, f, link=plain).pit(happened, spread(happened))
            right = Recalibration.fit(pit, None if link is not None else Along.fit(pit, f, happened), f)
            some = judging(happened, support)
            mass = Conditional(support, f[some], None, plain, right).proba()
            return cls(plain, right, smoothed(mass, happened[some], support, unit_of(support.values)))

    def given(self, support: Support, f: Any, prior: Any = None) -> Conditional:
        """The distributions of rows with these features, (n, k), each times its singular value."""
        return Conditional(replace(support, smoothing=self.smoothing), f, prior, self.link, self.recalibration)


def calibrated_link(f: Array, index: np.ndarray, support: Support) -> Link:
    """The link of the smallest log loss on rows that the features have not seen.

    Args:
        f: Features of those rows, (n, k), each times its singular value.
        index: Position of each row's value of Y in the support, (n,).
        support: The labels.
    """
    some = affordable(len(f), support.m)
    f, index = f[some], index[some]
    linear = LinearLink(best_share(Conditional(support, f).proba(), support.mass, index, support))
    half = np.arange(len(f)) % 2 == 0  # the softmax has parameters: judge it on rows it was not fitted to
    if not f.shape[1] or any(set(index[part]) != set(index) or len(set(index)) < 2 for part in (half, ~half)):
        return linear
    crossed = np.empty(len(f))
    for part in (half, ~half):
        link = ExponentialLink.fit(f[part], index[part], support)
        crossed[~part] = losses(Conditional(support, f[~part], link=link).proba(), index[~part], support)
    lost = losses(Conditional(support, f, link=linear).proba(), index, support)
    links: tuple[Candidate[type[Link]], ...] = (
        Candidate(LinearLink, 1, -lost),
        Candidate(ExponentialLink, 1, -crossed),  # either answers as soon
    )
    return linear if preferred(links).what is LinearLink else ExponentialLink.fit(f, index, support)


def mixed_link(f: Array, happened: Array, support: Support) -> Link:
    """The mean of the theory's formula and of models of Y given f, of the smallest ranked score on held-out rows.

    Args:
        f: Features of those rows, (n, k), each times its singular value.
        happened: What Y was there, (n,).
        support: Continuous numbers.
    """
    ways = tuple(partial(LocatedLink.fit, by_rank=by_rank) for by_rank in (False, True))
    if not f.shape[1] or len(f) < in_force.get().rows_a_function * 2 * (f.shape[1] + 1):
        return LinearLink()
    some = np.linspace(0, len(f) - 1, min(len(f), JUDGING_ROWS)).astype(int)
    half = np.arange(len(f)) % 2 == 0  # models of Y have parameters: judge them on rows they were not fitted to
    missed = np.empty((1 + len(ways), len(some), support.m - 1))
    missed[0] = _missed(Conditional(support, f[some]).proba(), happened[some], support)
    for part in (half, ~half):
        judged = part[some]
        for i, way in enumerate(ways, start=1):
            link = way(f[~part], happened[~part], support)
            mass = Conditional(support, f[some][judged], link=link).proba()
            missed[i, judged] = _missed(mass, happened[some][judged], support)
    weighted = (missed * np.sqrt(np.diff(support.values / unit_of(support.values)))).reshape(len(missed), -1)
    shares = _least_mean_square(weighted @ weighted.T)
    kept = np.flatnonzero(shares > 0)
    links = [LinearLink(), *(way(f, happened, support) if i in kept else LinearLink() for i, way in enumerate(ways, 1))]
    return links[kept[0]] if len(kept) == 1 else MixedLink(tuple(links[i] for i in kept), shares[kept])


def _least_mean_square(products: Array) -> Array:
    """Shares, adding up to 1, of errors with these products, (c, c), whose mean has the least square."""
    size = max(float(np.trace(products)), TINY)
    root = np.linalg.cholesky(products / size + 1e-12 * np.eye(len(products))).T
    shares, _ = nnls(np.vstack([root, np.full(len(root), 1e3)]), np.append(np.zeros(len(root)), 1e3))
    return np.asarray(shares / shares.sum())


def affordable(n: int, m: int) -> np.ndarray:
    """Positions of rows, evenly spread, whose probabilities of all labels are had in little time."""
    return np.unique(np.linspace(0, n - 1, min(n, max(FEWEST_JUDGING, CELLS // m))).astype(int))


def losses(mass: Array, happened: np.ndarray, support: Support) -> Array:
    """How far masses over the support, (n, m), are from what happened, for each row, (n,).

    For labels the log loss, in nats; for continuous numbers the ranked probability score, the squared distance of the
    distribution functions. Both are convex in the masses.

    Args:
        mass: Of each row.
        happened: As in `Calibration.fit`.
        support: The values of Y.
    """
    if support.continuous:
        return _missed(mass, happened, support) ** 2 @ np.diff(support.values)
    return -np.log(mass[np.arange(len(mass)), happened].clip(min=in_force.get().least_probability))


def best_share(mass: Array, alone: Array, happened: np.ndarray, support: Support) -> float:
    """How much of some masses, (n, m) or (m,), to mix into others, (n, m), for the smallest mean loss."""
    alone = np.broadcast_to(alone, mass.shape)
    if support.continuous:
        widths = np.diff(support.values)
        apart = np.cumsum(mass - alone, axis=1)[:, :-1]
        size = float((apart**2 @ widths).sum())
        wanted = float((apart * _missed(mass, happened, support) @ widths).sum())
        return min(max(wanted / size, 0.0), 1.0) if size > 0 else 0.0
    p, q = (part[np.arange(len(mass)), happened].clip(min=in_force.get().least_probability) for part in (mass, alone))
    return best_mixture(p, q)


def _missed(mass: Array, happened: Array, support: Support) -> Array:
    """By how much the distribution function is off between each two neighbouring numbers, (n, m - 1)."""
    return np.cumsum(mass, axis=1)[:, :-1] - (happened[:, None] <= support.values[:-1])


def spread(values: Array) -> Array:
    """Evenly from 0 to 1 over the rows that share a value, in their order: where in the jump of an atom each falls."""
    first, last, own = (rankdata(values, method) for method in ("min", "max", "ordinal"))
    return np.asarray((own - first + 0.5) / (last - first + 1))


def held_out_information(support: Support, f: Array, happened: np.ndarray, calibrated: bool = True) -> Array:
    """Log p(y|x) / p(y) where y happened, (n,), on rows that features have not seen.

    Each half of the rows is judged by what the other says of calibration, and for numbers without its own part in the
    support.

    Args:
        support: The values of Y.
        f: Features of those rows, (n, k), each times its singular value.
        happened: As in `Calibration.fit`.
        calibrated: Whether distributions are calibrated at all.
    """
    told, half = np.empty(len(f)), np.arange(len(f)) % 2 == 0
    for part in (half, ~half):
        others = Calibration.fit(support, f[~part], happened[~part]) if calibrated else Calibration()
        told[part] = others.given(support, f[part])._held_out(happened[part])
    return told
