"""Parameters of estimators, and questions to fitted ones: each has its rule, and says it."""

from __future__ import annotations

import numpy as np
import torch
from hostile_case import Case
from hostile_data import (
    FLAGS,
    FRAME,
    LABELS,
    LINEAR,
    WHOLE,
    X,
    Y,
    classifier,
    conditional,
    fitted,
    fitted_labels,
    labels,
    modal,
    multimodal,
    numbers,
    regressor,
    sequential,
    sigma,
)
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.preprocessing import StandardScaler

import featgeo as fg

CODES = WHOLE % 3
SOURCES = {"one": LABELS, "two": CODES}
TEXT = "abacabadabacabaabacabad" * 4

FITS = {
    "ModalDecomposition": lambda **o: modal(**o).fit(X, Y),
    "FeatureClassifier": lambda **o: fg.FeatureClassifier(**{"x_space": "linear", **o}).fit(X, LABELS),
    "FeatureRegressor": lambda **o: fg.FeatureRegressor(**{**LINEAR, **o}).fit(X, Y),
    "ConditionalDecomposition": lambda **o: fg.ConditionalDecomposition(**o).fit(LABELS, FLAGS, CODES),
    "MultimodalDecomposition": lambda **o: fg.MultimodalDecomposition(**o).fit(SOURCES, FLAGS),
    "SequentialDecomposition": lambda **o: fg.SequentialDecomposition(**o).fit(TEXT),
}
SEEDS = [-1, "x", 1.5, float("nan"), [1, 2], True, np.array([1])]
COUNTS = [True, 0, -1, 1.5, "many", None, [2]]

# fmt: off (one line a case)
PARAMETERS = [
    *[
        Case(
            f"{name}: random_state {seed!r}",
            lambda fit=fit, seed=seed: fit(random_state=seed),
            raises="`random_state` must be",
        )
        for name, fit in FITS.items()
        for seed in SEEDS
    ],
    *[
        Case(
            f"{name}: n_modes {count!r}",
            lambda fit=fit, count=count: fit(n_modes=count),
            raises="`n_modes` must be a whole number",
        )
        for name, fit in FITS.items()
        for count in COUNTS
    ],
    *[
        Case(f"{name}: solver {solver!r}", lambda fit=fit, solver=solver: fit(solver=solver), raises="`solver` must be")
        for name, fit in FITS.items()
        for solver in ("fast", None, 3)
    ],
    *[
        Case(
            f"{name}: training of another kind",
            lambda fit=fit: fit(training={"max_epochs": 3}),
            raises="`training` must be a Training",
        )
        for name, fit in FITS.items()
    ],
    *[
        Case(f"{name}: not fitted", lambda cls=cls: cls().save("x.fg"), raises="not fitted")
        for name, cls in ((name, getattr(fg, name)) for name in FITS)
    ],
    Case("random_state 2**40 is a seed", lambda: sigma(X, random_state=2**40), gives=lambda: sigma(X), rtol=0.05),
    Case(
        "random_state 2**64 is a seed, for kernels too",
        lambda: sigma(X[:, 0], x_space="kernel", random_state=2**64),
        gives=lambda: sigma(X[:, 0], x_space="kernel"),
        rtol=0.2,
    ),
    Case(
        "random_state np.int64 is a seed",
        lambda: sigma(X, random_state=np.int64(3)),
        gives=lambda: sigma(X, random_state=3),
    ),
    Case(
        "random_state Generator",
        lambda: sigma(X, random_state=np.random.default_rng(3)),
        gives=lambda: sigma(X, random_state=np.random.default_rng(3)),
    ),
    Case(
        "random_state RandomState",
        lambda: sigma(X, random_state=np.random.RandomState(3)),
        gives=lambda: sigma(X, random_state=np.random.RandomState(3)),
    ),
    Case("n_modes np.int64", lambda: sigma(X, n_modes=np.int64(1)), gives=lambda: sigma(X)),
    Case("n_modes more than there are", lambda: len(modal(1000).fit(X, Y).singular_values_), gives=1),
    *[
        Case(f"x_space {str(space)[:30]!r}", lambda space=space: sigma(X, x_space=space), raises="A space must be")
        for space in ([], ["linear"], "lines", 3, None, {}, PCA, LogisticRegression())
    ],
    *[
        Case(f"y_space {str(space)[:30]!r}", lambda space=space: sigma(X, y_space=space), raises="A space must be")
        for space in ([], "lines", 3, None)
    ],
    Case("x_space a transformer", lambda: sigma(X, x_space=StandardScaler()), gives=lambda: sigma(X), rtol=1e-6),
    Case(
        "x_space a table of numbers that never come back",
        lambda: sigma(X, x_space="table", y_space="table", solver="exact"),
        raises="value of its own",
    ),
    Case("x_space linear with the exact solver", lambda: sigma(X, solver="exact"), raises="exact solver"),
    Case(
        "x_space network with the closed solver",
        lambda: sigma(X, x_space="network", solver="closed"),
        raises="closed form",
    ),
    Case(
        "x_space trees with the neural solver",
        lambda: sigma(X, x_space="trees", solver="neural"),
        raises="not trained by gradients",
    ),
    Case(
        "x_space a module of other width",
        lambda: sigma(X, x_space=torch.nn.Linear(7, 4)),
        raises="must read the rows of X",
    ),
    Case(
        "x_space a module that gives no rows",
        lambda: sigma(X, x_space=torch.nn.Flatten(0)),
        raises="must give features",
    ),
    Case("x_space a module of labels", lambda: sigma(FRAME, x_space=torch.nn.Linear(3, 4)), raises="labels or missing"),
    Case("Sum of nothing", lambda: sigma(X, x_space=fg.Sum([])), raises="at least one pair"),
    Case("Sum of text", lambda: sigma(X, x_space=fg.Sum("ab")), raises="at least one pair"),
    Case("Sum of a column that is not there", lambda: sigma(X, x_space=fg.Sum([(7, "linear")])), raises="no columns"),
    Case(
        "Joint of a name that is not there",
        lambda: sigma(FRAME, x_space=fg.Joint([("z", "linear")])),
        raises="no columns",
    ),
    Case(
        "Joint of columns that are none",
        lambda: sigma(X, x_space=fg.Joint([(None, "linear")])),
        raises="Columns must be",
    ),
    Case(
        "Joint of a space that is learned",
        lambda: sigma(X, x_space=fg.Joint([(0, "trees")])),
        raises="space that is given",
    ),
    Case(
        "Sum of all columns",
        lambda: sigma(X, x_space=fg.Sum([(0, "linear"), ([1, 2], "linear")])),
        gives=lambda: sigma(X),
        rtol=1e-6,
    ),
    Case("orthogonal_to a column that is not there", lambda: sigma(FRAME, orthogonal_to="z"), raises="no columns"),
    Case("orthogonal_to values", lambda: sigma(X, orthogonal_to=Y), raises="passed to `fit` as Z"),
    Case("orthogonal_to a class", lambda: sigma(X, orthogonal_to=PCA), raises="Pass an instance"),
    Case("orthogonal_to a predictor", lambda: sigma(X, orthogonal_to=Ridge()), raises="only predicts"),
    Case(
        "orthogonal_to a function that gives text",
        lambda: sigma(X, orthogonal_to=lambda rows: np.full(len(rows), "a")),
        raises="must give numbers",
    ),
    Case(
        "orthogonal_to a function that gives NaN",
        lambda: sigma(X, orthogonal_to=lambda rows: np.full(len(rows), np.nan)),
        raises="not finite",
    ),
    Case(
        "orthogonal_to a function of other length",
        lambda: sigma(X, orthogonal_to=lambda rows: np.ones(3)),
        raises="for each of",
    ),
    Case(
        "orthogonal_to a module of other width",
        lambda: sigma(X, orthogonal_to=torch.nn.Linear(9, 1)),
        raises="must read the rows",
    ),
    Case("Z of another length", lambda: modal().fit(X, Y, Y[:5]), raises="same rows"),
    Case(
        "FeatureClassifier: calibrate 'no'",
        lambda: FITS["FeatureClassifier"](calibrate="no"),
        raises="`calibrate` must be True or False",
    ),
    Case(
        "FeatureRegressor: calibrate None",
        lambda: FITS["FeatureRegressor"](calibrate=None),
        raises="`calibrate` must be True or False",
    ),
    Case(
        "ConditionalDecomposition: n_markov_modes True",
        lambda: FITS["ConditionalDecomposition"](n_markov_modes=True),
        raises="`n_markov_modes`",
    ),
    Case(
        "ConditionalDecomposition: y_given_s a text",
        lambda: FITS["ConditionalDecomposition"](y_given_s="x"),
        raises="`y_given_s` must be a model",
    ),
    Case(
        "ConditionalDecomposition: y_given_s a class",
        lambda: FITS["ConditionalDecomposition"](y_given_s=LogisticRegression),
        raises="`y_given_s` must be a model",
    ),
    Case(
        "ConditionalDecomposition: y_given_s a regressor of labels",
        lambda: FITS["ConditionalDecomposition"](y_given_s=Ridge()),
        raises="Pass a classifier",
    ),
    Case(
        "ConditionalDecomposition: S never varies",
        lambda: fg.ConditionalDecomposition().fit(LABELS, FLAGS, np.ones(80)),
        raises="S never varies",
    ),
    Case(
        "ConditionalDecomposition: S of another length",
        lambda: fg.ConditionalDecomposition().fit(LABELS, FLAGS, CODES[:5]),
        raises="same rows",
    ),
    Case(
        "ConditionalDecomposition: Y missing",
        lambda: fg.ConditionalDecomposition().fit(LABELS, np.full(80, np.nan), CODES),
        raises="Y holds missing",
    ),
    Case(
        "ConditionalDecomposition: Y above 2**53",
        lambda: fg.ConditionalDecomposition().fit(LABELS, 2**60 + np.arange(80), CODES),
        raises=r"2\*\*53",
    ),
    Case(
        "MultimodalDecomposition: max_order True",
        lambda: FITS["MultimodalDecomposition"](max_order=True),
        raises="`max_order`",
    ),
    Case(
        "MultimodalDecomposition: max_order 1.5",
        lambda: FITS["MultimodalDecomposition"](max_order=1.5),
        raises="`max_order`",
    ),
    Case(
        "MultimodalDecomposition: n_interaction_modes 0",
        lambda: FITS["MultimodalDecomposition"](n_interaction_modes=0),
        raises="`n_interaction_modes`",
    ),
    Case(
        "MultimodalDecomposition: spaces of no source",
        lambda: FITS["MultimodalDecomposition"](spaces={"three": "linear"}),
        raises="`spaces` names",
    ),
    Case(
        "MultimodalDecomposition: a space that is none",
        lambda: FITS["MultimodalDecomposition"](spaces="lines"),
        raises="A space must be",
    ),
    Case(
        "MultimodalDecomposition: sources as an array",
        lambda: fg.MultimodalDecomposition().fit(X, Y),
        raises="`sources` must be a mapping",
    ),
    Case(
        "MultimodalDecomposition: one source",
        lambda: fg.MultimodalDecomposition().fit({"one": X}, Y),
        raises="at least two sources",
    ),
    Case(
        "MultimodalDecomposition: no source",
        lambda: fg.MultimodalDecomposition().fit({}, Y),
        raises="at least two sources",
    ),
    Case(
        "MultimodalDecomposition: a source named y",
        lambda: fg.MultimodalDecomposition().fit({"y": X, "two": X}, Y),
        raises="Rename",
    ),
    Case(
        "MultimodalDecomposition: a source named 1",
        lambda: fg.MultimodalDecomposition().fit({1: X, "two": X}, Y),
        raises="names that are texts",
    ),
    Case(
        "MultimodalDecomposition: other lengths",
        lambda: fg.MultimodalDecomposition().fit({"one": X, "two": X[:5]}, Y),
        raises="same rows",
    ),
    Case(
        "MultimodalDecomposition: present of no source",
        lambda: fg.MultimodalDecomposition().fit(SOURCES, FLAGS, {"three": FLAGS}),
        raises="`present` names",
    ),
    Case(
        "MultimodalDecomposition: present an array",
        lambda: fg.MultimodalDecomposition().fit(SOURCES, FLAGS, FLAGS),
        raises="`present` must be a mapping",
    ),
    Case(
        "MultimodalDecomposition: present of numbers",
        lambda: fg.MultimodalDecomposition().fit(SOURCES, FLAGS, {"one": CODES}),
        raises="must be boolean",
    ),
    Case(
        "MultimodalDecomposition: a source always missing",
        lambda: fg.MultimodalDecomposition().fit({**SOURCES, "no": np.full(80, np.nan)}, FLAGS),
        raises="missing in every row",
    ),
    Case(
        "MultimodalDecomposition: Y always missing",
        lambda: fg.MultimodalDecomposition().fit(SOURCES, np.full(80, np.nan)),
        raises="missing in every row",
    ),
    Case(
        "MultimodalDecomposition: a masked source",
        lambda: fg.MultimodalDecomposition().fit({"one": np.ma.masked_array(X, True), "two": X}, Y),
        raises="masked",
    ),
    Case(
        "MultimodalDecomposition: ragged lists",
        lambda: fg.MultimodalDecomposition().fit({"one": [[1, 2], [3]] * 40, "two": X}, Y),
        raises="rows of the same length",
    ),
    Case(
        "MultimodalDecomposition: data sets of nothing",
        lambda: fg.MultimodalDecomposition().fit_datasets([]),
        raises="`datasets` must be",
    ),
    Case(
        "MultimodalDecomposition: data sets that are none",
        lambda: fg.MultimodalDecomposition().fit_datasets([X]),
        raises="`datasets` must be",
    ),
    Case("MultimodalDecomposition: sources by position", lambda: multimodal().given(SOURCES), raises="by name"),
    Case("SequentialDecomposition: order True", lambda: FITS["SequentialDecomposition"](order=True), raises="`order`"),
    Case("SequentialDecomposition: order 0", lambda: FITS["SequentialDecomposition"](order=0), raises="`order`"),
    Case("SequentialDecomposition: order 1.5", lambda: FITS["SequentialDecomposition"](order=1.5), raises="`order`"),
    Case("SequentialDecomposition: order 'x'", lambda: FITS["SequentialDecomposition"](order="x"), raises="`order`"),
    Case(
        "SequentialDecomposition: order that falls",
        lambda: FITS["SequentialDecomposition"](order=[2, 1]),
        raises="must rise",
    ),
    Case(
        "SequentialDecomposition: solver closed",
        lambda: FITS["SequentialDecomposition"](solver="closed"),
        raises="`solver`",
    ),
    Case(
        "SequentialDecomposition: texts 'yes'",
        lambda: FITS["SequentialDecomposition"](texts="yes"),
        raises="`texts` must be",
    ),
    Case(
        "SequentialDecomposition: words or texts",
        lambda: fg.SequentialDecomposition(1).fit(["one", "two"] * 20),
        raises="texts=",
    ),
    Case("SequentialDecomposition: nothing", lambda: fg.SequentialDecomposition(1).fit([]), raises="Pass some"),
    Case("SequentialDecomposition: None", lambda: fg.SequentialDecomposition(1).fit(None), raises="Sequences must be"),
    Case(
        "SequentialDecomposition: shorter than its order",
        lambda: fg.SequentialDecomposition(5).fit("abc"),
        raises="at least order",
    ),
    Case(
        "SequentialDecomposition: one symbol",
        lambda: fg.SequentialDecomposition(1).fit("aaaaaaaaaaaa"),
        raises="never varies",
    ),
    Case(
        "SequentialDecomposition: NaN",
        lambda: fg.SequentialDecomposition(1).fit(np.r_[np.nan, Y]),
        raises="must be finite",
    ),
    Case(
        "SequentialDecomposition: None among symbols",
        lambda: fg.SequentialDecomposition(1).fit([0, 1, None, 1, 0, None] * 10).alphabet_.tolist() == [0, 1, None],
        gives=True,
    ),
    Case(
        "SequentialDecomposition: None among numbers",
        lambda: fg.SequentialDecomposition(1).fit([0.5, None] * 20),
        raises="must be finite",
    ),
    Case(
        "SequentialDecomposition: complex",
        lambda: fg.SequentialDecomposition(1).fit(Y + 1j),
        raises="string or a number",
    ),
    Case(
        "SequentialDecomposition: three dimensions",
        lambda: fg.SequentialDecomposition(1).fit(np.zeros((2, 3, 4))),
        raises="one symbol a step",
    ),
]

TRAINING = [
    Case("Training: max_epochs 0", lambda: fg.Training(max_epochs=0), raises="`max_epochs`"),
    Case("Training: max_epochs True", lambda: fg.Training(max_epochs=True), raises="`max_epochs`"),
    Case("Training: batch_size 1", lambda: fg.Training(batch_size=1), raises="`batch_size`"),
    Case("Training: batch_size 'x'", lambda: fg.Training(batch_size="x"), raises="`batch_size`"),
    Case(
        "Training: learning_rate 0", lambda: fg.Training(learning_rate=0), raises="`learning_rate` must be a positive"
    ),
    Case("Training: learning_rate nan", lambda: fg.Training(learning_rate=float("nan")), raises="`learning_rate`"),
    Case("Training: learning_rate True", lambda: fg.Training(learning_rate=True), raises="`learning_rate`"),
    Case("Training: weight_decay 'x'", lambda: fg.Training(weight_decay="x"), raises="`weight_decay`"),
    Case("Training: surplus None", lambda: fg.Training(surplus=None), raises="`surplus`"),
    Case("Training: patience 0", lambda: fg.Training(patience=0), raises="`patience`"),
    Case("Training: validation 1", lambda: fg.Training(validation=1), raises="`validation`"),
    Case("Training: validation '0.1'", lambda: fg.Training(validation="0.1"), raises="`validation`"),
    Case("Training: restarts 0", lambda: fg.Training(restarts=0), raises="`restarts`"),
    Case("Training: num_nodes 1.5", lambda: fg.Training(num_nodes=1.5), raises="`num_nodes`"),
    Case("Training: progress 'yes'", lambda: fg.Training(progress="yes"), raises="`progress`"),
    Case(
        "Training: precision 7-bit",
        lambda: sigma(X, x_space="network", training=fg.Training(precision="7-bit", max_epochs=1)),
        raises="precision.*7-bit",
    ),
    Case(
        "Training: accelerator abacus",
        lambda: sigma(X, x_space="network", training=fg.Training(accelerator="abacus", max_epochs=1)),
        raises="accelerator.*abacus",
    ),
]

QUESTIONS = [
    *[
        Case(f"Conditional: quantile {q!r}", lambda q=q: numbers().quantile(q), raises="`q`|levels must lie")
        for q in ("p", None, -0.1, 1.1, float("nan"), [[0.1, 0.2]], [0.1, "a"], True, [[0.1], [0.2, 0.3]])
    ],
    *[
        Case(f"Conditional: cdf {y!r}", lambda y=y: numbers().cdf(y), raises="`y`")
        for y in ("p", None, float("nan"), [[0.1]], [1, "a"], 1j)
    ],
    *[
        Case(
            f"Conditional: interval {level!r}",
            lambda level=level: numbers().interval(level),
            raises="`level` must be a number that lies between",
        )
        for level in (0, 1, 90, -0.5, float("nan"), "0.9", None, True, [0.5, 0.9])
    ],
    *[
        Case(f"Conditional: sample {n!r}", lambda n=n: numbers().sample(n), raises="`n` must be a whole number")
        for n in (-1, 1.5, "x", None, True, [2])
    ],
    *[
        Case(
            f"Conditional: sample with random_state {seed!r}",
            lambda seed=seed: numbers().sample(2, seed),
            raises="`random_state`",
        )
        for seed in (-1, "x", 1.5, [1])
    ],
    *[
        Case(f"Conditional: pit {str(y)[:20]!r}", lambda y=y: numbers().pit(y), raises="`y`")
        for y in ("p", [1.0], [1.0, 2.0, np.nan], [[1.0, 2.0, 3.0]], [1, 2, "a"])
    ],
    *[
        Case(
            f"Conditional: mean of psi {psi!r}", lambda psi=psi: numbers().mean(psi), raises="`psi` must be a function"
        )
        for psi in ("x", 3, [1, 2])
    ],
    *[
        Case(
            f"Conditional: prior {str(prior)[:30]!r}",
            lambda prior=prior: fitted_labels().given(X[:3], prior=prior),
            raises="`prior`",
        )
        for prior in (
            "x",
            3,
            [1, 2],
            [1, 2, -1],
            [0, 0, 0],
            [1, 2, np.nan],
            {"a": 1},
            {"a": 1, "b": 1, "c": 1, "z": 1},
            {"a": "x", "b": 1, "c": 1},
            [[1, 1, 1]],
        )
    ],
    Case(
        "Conditional: prior a function that gives text",
        lambda: fitted_labels().given(X[:3], prior=lambda values: "x"),
        raises="`prior`",
    ),
    Case(
        "Conditional: prior a function of another length",
        lambda: fitted_labels().given(X[:3], prior=lambda values: [1, 2]),
        raises="`prior`",
    ),
    Case("Conditional: sample 1e10", lambda: numbers().sample(10**10), raises="Draw fewer"),
    Case("Conditional: sample of nothing", lambda: numbers().sample(0).shape, gives=(3, 0)),
    Case(
        "Conditional: sample of one seed",
        lambda: numbers().sample(5, 7),
        gives=lambda: numbers().sample(5, np.random.default_rng(7)),
    ),
    Case("Conditional: psi that gives text", lambda: numbers().mean(lambda values: values.astype(str)), raises="psi"),
    Case(
        "Conditional: psi of another length", lambda: numbers().mean(lambda values: values[:2]), raises="psi must give"
    ),
    Case(
        "Conditional: mean of psi",
        lambda: labels().mean(lambda values: values == "a"),
        gives=lambda: labels().proba()[:, 0],
    ),
    Case("Conditional: mean of labels", lambda: labels().mean(), raises="no mean"),
    Case("Conditional: cdf of labels", lambda: labels().cdf(1), raises="numbers in order"),
    Case("Conditional: quantile of labels", lambda: labels().quantile(0.5), raises="numbers in order"),
    Case("Conditional: interval of labels", lambda: labels().interval(0.5), raises="numbers in order"),
    Case("Conditional: pit of labels", lambda: labels().pit([1, 2, 3]), raises="numbers in order"),
    Case("Conditional: cdf at infinity", lambda: numbers().cdf([-np.inf, np.inf]), gives=[[0.0, 1.0]] * 3),
    Case("Conditional: quantiles of 0 and 1", lambda: numbers().cdf(numbers().quantile(1)[0])[0], gives=1.0),
    Case(
        "Conditional: uniform prior",
        lambda: fitted_labels().given(X[:3], prior={"a": 2, "b": 2, "c": 2}).proba(),
        gives=lambda: fitted_labels().given(X[:3], prior=[1, 1, 1]).proba(),
    ),
    Case("given without rows", lambda: fitted().given(np.empty((0, 3))), raises="0 sample"),
    Case("FeatureRegressor: predict_interval 90", lambda: regressor().predict_interval(X[:2], 90), raises="`level`"),
    Case("FeatureClassifier: predict on other columns", lambda: classifier().predict(X[:, :2]), raises="2 features"),
    Case(
        "transform_aligned without given features", lambda: fitted().transform_aligned(X), raises="no aligned component"
    ),
    Case("orthogonal_ without given features", lambda: fitted().orthogonal_, raises="no orthogonal component"),
    Case("plot of something else", lambda: fitted().plot("me"), raises="`what` must be"),
    Case("leakage of nothing given", lambda: fitted().leakage(X), raises="no aligned component"),
    Case("leakage: features of text", lambda: fg.leakage(LABELS, Y), raises="must be numbers"),
    Case(
        "leakage: texts that look like numbers",
        lambda: fg.leakage(np.array(["1_0", "2"] * 40), Y),
        raises="must be numbers",
    ),
    Case("leakage: features of NaN", lambda: fg.leakage(np.full((80, 1), np.nan), Y), raises="must be finite"),
    Case("leakage: other lengths", lambda: fg.leakage(X, Y[:5]), raises="same rows"),
    Case("leakage: few rows", lambda: fg.leakage(X[:3], Y[:3]), raises="at least"),
    Case("leakage: random_state 'x'", lambda: fg.leakage(X, Y, "x"), raises="`random_state`"),
    Case("load what is not there", lambda: fg.load("nothing-here.fg"), raises="nothing-here.fg"),
    Case("SequentialDecomposition: score of other letters", lambda: sequential().score("zz"), raises="."),
    Case(
        "ConditionalDecomposition: conditional_values of other lengths",
        lambda: conditional().conditional_values(CODES, FLAGS[:5]),
        raises="same rows",
    ),
]

CASES = [*PARAMETERS, *TRAINING, *QUESTIONS]
