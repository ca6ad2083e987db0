"""The demo: a real table, explored, and real data, decomposed, on a page each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_diabetes

from featgeo import datasets
from featgeo.explore import explore
from featgeo.files import make_folder, write_whole
from featgeo.geometry import FiniteJoint
from featgeo.models import FeatureRegressor, ModalDecomposition
from featgeo.report import figures
from featgeo.report.contents import Section
from featgeo.report.html import write_page

INTRODUCTION = (
    "featgeo writes the dependence of two variables as a sum of modes: pairs of functions f(x) and g(y), each pair "
    "with a strength sigma between 0 and 1. Sums of squared strengths, called energies, measure how much dependence "
    "there is, in all or in any part of it. Variables with finitely many values are decomposed exactly, others by "
    "functions learned from the rows."
)


# What scikit-learn's table calls bmi, s1, s2, ... in its description.
NAMES = {
    "bmi": "body mass",
    "bp": "blood pressure",
    "s1": "cholesterol",
    "s2": "LDL",
    "s3": "HDL",
    "s4": "cholesterol / HDL",
    "s5": "log triglycerides",
    "s6": "glucose",
    "target": "progression",
}


def explore_patients(folder: Path) -> Path:
    """Write a page of all dependences between what is known of 442 patients with diabetes, and return its path."""
    # The table says 1 and 2, and not which is which.
    found = explore(_patients(), target="progression", given=["age", "sex"], types={"sex": "label"})
    page = make_folder(folder) / "explore.html"
    write_whole(page, found.to_html("Diabetes: what depends on what in 442 patients"))
    return page


def demonstrate(folder: Path) -> Path:
    """Write the page into a folder and return its path."""
    sections, page = [hair_and_eyes(), titanic(), diabetes(), measurements()], folder / "index.html"
    pictures = {f"{section.slug}.svg": section.figure for section in sections}
    title = "What depends on what, and how"
    write_page(page, "page.html.j2", pictures, title=title, introduction=INTRODUCTION, sections=sections)
    return page


def hair_and_eyes() -> Section:
    """Modes of hair and eye colour, and how much knowing the sex adds."""
    joint = FiniteJoint(*datasets.hair_eye_color())
    modes = joint.modes(x="hair", y="eye")
    given_sex = joint.conditional("hair", "eye", "sex").conditional
    hair, eye, _ = joint.categories or ()
    shares = modes.sigma**2 / modes.energy
    rows = [
        ["sigma", *(f"{sigma:.4f}" for sigma in modes.sigma)],
        ["share of the dependence", *(f"{share:.1%}" for share in shares)],
    ]
    rows += [[f"f({label} hair)", *_signed(values)] for label, values in zip(hair, modes.f, strict=True)]
    rows += [[f"g({label} eyes)", *_signed(values)] for label, values in zip(eye, modes.g, strict=True)]
    return Section(
        slug="hair-eye",
        title="Hair and eye colour of 592 students",
        lead=[
            f"The strongest mode has sigma = {modes.sigma[0]:.3f}: no function of the hair correlates more with any "
            f"function of the eyes. It orders people from dark to fair and holds {shares[0]:.0%} of the "
            "dependence; the second sets red hair and green or hazel eyes apart. On the map, a hair colour lies in the "
            "direction of the eye colours that it makes more likely.",
            f"Does sex matter? Ignoring it, hair and eyes share an energy of {modes.energy:.3f}; given it, "
            f"{given_sex.energy:.3f}: almost the same picture for men and women.",
        ],
        figure=figures.mode_map(
            dict(zip(hair, modes.f * modes.sigma, strict=True)),
            dict(zip(eye, modes.g * modes.sigma, strict=True)),
            shares.tolist(),
            ("hair", "eyes"),
        ),
        alt="Map of hair and eye colours by the first two modes: black hair lies with brown eyes, blond hair with blue "
        "eyes, red hair with hazel and green eyes.",
        columns=["", *(f"mode {i + 1}" for i in range(len(modes)))],
        rows=rows,
        code=HAIR_EYE_CODE,
    )


HAIR_EYE_CODE = """\
import featgeo as fg
from featgeo import datasets

joint = fg.FiniteJoint(*datasets.hair_eye_color())
modes = joint.modes(x="hair", y="eye")
modes.sigma, modes.f, modes.g
joint.conditional("hair", "eye", "sex").conditional.energy"""


def titanic() -> Section:
    """What class, sex and age know about survival, alone and together."""
    joint = FiniteJoint(*datasets.titanic())
    sources = ("class", "sex", "age")
    parts = joint.multimodal(sources, "survived")
    total = joint.mean_square_contingency(sources, "survived")
    alone = {name: joint.mean_square_contingency(name, "survived") for name in sources}
    labels = ("each by itself, added up", "two together", "all three together")
    orders = {label: order.energy for label, order in zip(labels, parts.orders, strict=True)}
    energies = alone | orders | {"all": total}
    return Section(
        slug="titanic",
        title="Who survived the Titanic",
        lead=[
            f"Class, sex and age together hold an energy of {total:.3f} about survival; 1 would mean that they decide "
            f"it. Sex alone holds {alone['sex']:.3f}. Sums of a function of class, one of sex and one of age reach "
            f"{parts.bivariate.energy:.3f}; the rest, {parts.interaction.energy:.3f}, is interaction: the rescue of "
            "women and children was not the same in every class.",
        ],
        figure=figures.energy_bars([alone, orders], total, "energy of the dependence on survival"),
        alt="Bars of energies: class, sex and age alone, then by the number of sources that act together.",
        columns=["component", "energy", "share of all"],
        rows=[[name, f"{value:.4f}", f"{value / total:.1%}"] for name, value in energies.items()],
        code=TITANIC_CODE,
    )


TITANIC_CODE = """\
joint = fg.FiniteJoint(*datasets.titanic())
parts = joint.multimodal(["class", "sex", "age"], "survived")
parts.bivariate.energy, parts.interaction.energy
[order.energy for order in parts.orders]"""


def diabetes() -> Section:
    """Modes of body mass and the progression of diabetes, and distributions that follow from them."""
    X, y = load_diabetes(return_X_y=True, scaled=False)
    model = ModalDecomposition(2, random_state=0).fit(X[:, 2], y)
    report = model.report()
    at = np.array([20.0, 25.0, 30.0, 35.0])
    given = model.given(at)
    columns = zip(at, given.mean(), *given.interval(0.8).T, given.mean(lambda value: value > 200), strict=True)
    return Section(
        slug="diabetes",
        title="What body mass tells of diabetes",
        lead=[
            "442 patients, their body mass index (X) and how far the disease went within a year (Y). The first mode "
            f"has sigma = {report.sigma[0]:.2f}, and {report.held_out_sigma[0]:.2f} on patients it was not learned "
            "from. Its two functions go the same way, so heavier patients fare worse. The second, with "
            f"{report.sigma[1]:.2f} and {report.held_out_sigma[1]:.2f}, sets both ends apart from the middle.",
            "One fit answers every question about the distribution of one given the other.",
        ],
        figure=figures.svg(model.plot()),
        alt="Functions of body mass (above) and of the progression of diabetes (below) of two modes; those of the "
        "first go the same way all along, those of the second bend.",
        columns=["body mass index", "expected progression", "80 % interval", "P(above 200)"],
        rows=[[f"{m:.0f}", f"{mean:.0f}", f"{low:.0f} to {high:.0f}", f"{p:.0%}"] for m, mean, low, high, p in columns],
        code=DIABETES_CODE,
    )


DIABETES_CODE = """\
from sklearn.datasets import load_diabetes

X, y = load_diabetes(return_X_y=True, scaled=False)
model = fg.ModalDecomposition(2, random_state=0).fit(X[:, 2], y)
print(model.report())
given = model.given([20, 25, 30, 35])
given.mean(), given.interval(0.8), given.mean(lambda y: y > 200)
model.plot()"""


def measurements() -> Section:
    """Which of ten measurements matter for the progression of diabetes, and how it goes along them."""
    X = _patients()
    model = FeatureRegressor(random_state=0).fit(X, X.pop("progression"))
    found = model.importance()
    leading = [found.columns[i] for i in found.order[:2]]
    rows = [[found.columns[i], *(f"{value:.3f}" for value in found.totals[i])] for i in found.order]
    return Section(
        slug="effects",
        title="Which measurements matter",
        lead=[
            f"All ten at once, on patients that had no part in the fit. Most is told by {leading[0]} alone, then by "
            f"{leading[1]}. A column that adds nothing may still tell: others tell the same.",
            "The figure shows the modes and the expected progression along the columns that matter, with two standard "
            "errors, over how many patients there are.",
        ],
        figure=figures.svg(model.plot("effects")),
        alt="The first two modes and the expected progression along the columns that matter most.",
        columns=["column", "alone", "(s.e.)", "added to all others", "(s.e.)"],
        rows=rows,
        code=MEASUREMENTS_CODE,
    )


MEASUREMENTS_CODE = """\
X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
model = fg.FeatureRegressor(random_state=0).fit(X, y)
model.importance()
model.plot("effects")"""


def _patients() -> Any:
    return load_diabetes(as_frame=True, scaled=False).frame.rename(columns=NAMES)


def _signed(values: np.ndarray) -> list[str]:
    return [f"{value:+.2f}".replace("-", "−") for value in values]
