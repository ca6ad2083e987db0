"""Functions and small classes: finite alphabets, moments, scores, nestings, tests, data sets, the command."""

from __future__ import annotations

import numpy as np
import torch
from hostile_case import Case
from hostile_data import FLAGS, HOLES, JOINT, LABELS, THREE, WHOLE, X, Y, modal
from scipy import sparse
from typer.testing import CliRunner

import featgeo as fg
from featgeo import FiniteJoint, Level, Moments, Nesting, h_score, nested_h_score
from featgeo.cli import main
from featgeo.datasets import hair_eye_color, titanic

F = torch.tensor(X[:, :2])
G = torch.tensor(np.c_[Y, Y**2])
BLOCKS = Moments.from_features({"x": X, "y": Y, "f": X[:, :2], "g": np.c_[Y, Y**2]})
COUNTS = np.array([[5, 1], [2, 8]])
CODES = WHOLE % 3


def command(*words: str) -> str:
    """What the command prints; it must end with a word of its own, and not with a traceback."""
    result = CliRunner().invoke(main, list(words))
    assert result.exception is None or isinstance(result.exception, SystemExit), repr(result.exception)
    return f"exit {result.exit_code}"


# fmt: off
FINITE = [
    Case("FiniteJoint: negative", lambda: FiniteJoint([[1, -1], [1, 1]]), raises="non-negative"),
    Case("options: a text", lambda: fg.options(finite_values="many").__enter__(), raises="whole number"),
    Case("Options: less than nothing", lambda: fg.Options(confidence=-1.0), raises="not negative"),
    Case("FiniteJoint: NaN", lambda: FiniteJoint([[1, np.nan]]), raises="NaN or infinite"),
    Case("FiniteJoint: inf", lambda: FiniteJoint([[1, np.inf]]), raises="NaN or infinite"),
    Case("FiniteJoint: zeros", lambda: FiniteJoint(np.zeros((2, 2))), raises="all zero"),
    Case("FiniteJoint: nothing", lambda: FiniteJoint([]), raises="all zero|empty"),
    Case("FiniteJoint: a number", lambda: FiniteJoint(3), raises="at least one variable"),
    Case("FiniteJoint: text", lambda: FiniteJoint([["a", "b"]]), raises="real numbers"),
    Case("FiniteJoint: complex", lambda: FiniteJoint([[1j, 1]]), raises="real numbers"),
    Case("FiniteJoint: None", lambda: FiniteJoint(None), raises="real numbers"),
    Case("FiniteJoint: ragged", lambda: FiniteJoint([[1, 2], [3]]), raises="ragged"),
    Case("FiniteJoint: masked", lambda: FiniteJoint(np.ma.masked_array(COUNTS, True)), raises="masked"),
    Case("FiniteJoint: more than a float can hold", lambda: FiniteJoint([[1e308, 1e308], [1e308, 1]]), raises="more than a float"),
    Case("FiniteJoint: one name for two axes", lambda: FiniteJoint(COUNTS, names=["x"]), raises="Name each axis"),
    Case("FiniteJoint: a name twice", lambda: FiniteJoint(COUNTS, names=["x", "x"]), raises="differ"),
    Case("FiniteJoint: names that are numbers", lambda: FiniteJoint(COUNTS, names=[1, 2]), raises="Names must be text"),
    Case("FiniteJoint: names a number", lambda: FiniteJoint(COUNTS, names=3), raises="Names must be text"),
    Case("FiniteJoint: too few categories", lambda: FiniteJoint(COUNTS, categories=[["a"], ["b", "c"]]), raises="one label"),
    Case("FiniteJoint: scaled by 1e300", lambda: FiniteJoint(COUNTS * 1e300).modes().sigma, gives=lambda: FiniteJoint(COUNTS).modes().sigma),
    Case("FiniteJoint: scaled by 1e-300", lambda: FiniteJoint(COUNTS * 1e-300).modes().sigma, gives=lambda: FiniteJoint(COUNTS).modes().sigma),
    Case("FiniteJoint: sparse", lambda: FiniteJoint(sparse.csr_array(COUNTS)).modes().sigma, gives=lambda: FiniteJoint(COUNTS).modes().sigma),
    Case("FiniteJoint: uint8 counts", lambda: FiniteJoint((COUNTS * 25).astype(np.uint8)).modes().sigma, gives=lambda: FiniteJoint(COUNTS).modes().sigma),
    Case("FiniteJoint: an empty row", lambda: FiniteJoint([[5, 1], [0, 0], [2, 8]]).modes().sigma, gives=lambda: FiniteJoint(COUNTS).modes().sigma),
    Case("FiniteJoint: closed form of two by two", lambda: FiniteJoint(COUNTS).modes().sigma, gives=[38 / np.sqrt(6 * 10 * 7 * 9)]),
    Case("FiniteJoint: from_samples of other lengths", lambda: FiniteJoint.from_samples(x=LABELS, y=FLAGS[:5]), raises="same length"),
    Case("FiniteJoint: from_samples of nothing", lambda: FiniteJoint.from_samples(), raises="Samples must be"),
    Case("FiniteJoint: from_samples with None", lambda: FiniteJoint.from_samples(x=[None, "a"], y=[1, 2]), raises="missing"),
    Case("FiniteJoint: from_samples with NaN", lambda: FiniteJoint.from_samples(x=[np.nan, 1.0], y=[1, 2]), raises="missing"),
    Case("FiniteJoint: from_samples of mixed labels", lambda: FiniteJoint.from_samples(x=["a", 1], y=[1, 2]), raises="put in order"),
    Case("FiniteJoint: from_samples is the exact solver", lambda: FiniteJoint.from_samples(x=LABELS, y=FLAGS).modes(1).sigma, gives=lambda: fg.ModalDecomposition(1).fit(LABELS, FLAGS).singular_values_),
    *[Case(f"FiniteJoint: modes {k!r}", lambda k=k: JOINT.modes(k), raises="number of modes") for k in (0, -1, 1.5, "x", True)],
    Case("FiniteJoint: more modes than there are", lambda: JOINT.modes(5), raises="rank 1"),
    Case("FiniteJoint: modes of independence", lambda: FiniteJoint(np.ones((2, 2))).modes(1), raises="rank 0"),
    Case("FiniteJoint: strongest of too many", lambda: len(JOINT.strongest(5)), gives=1),
    Case("FiniteJoint: marginal of no variable", lambda: JOINT.marginal("z"), raises="no variable 'z'"),
    Case("FiniteJoint: x and y the same", lambda: JOINT.modes(x="x", y="x"), raises="different variables"),
    Case("FiniteJoint: a number as variable", lambda: JOINT.modes(x=3), raises="Names must be text"),
    Case("FiniteJoint: density ratio of another shape", lambda: JOINT.density_ratio(np.ones((3, 3))), raises="`reference`"),
    Case("FiniteJoint: density ratio against zeros", lambda: JOINT.density_ratio([[1, 0, 0], [0, 1, 1]]), raises="infinite"),
    Case("FiniteJoint: conditional on no variable", lambda: THREE.conditional("x1", "y", "z"), raises="no variable 'z'"),
    Case("FiniteJoint: multimodal of one source", lambda: JOINT.multimodal(), raises="at least two sources"),
    Case("FiniteJoint: space of another shape", lambda: JOINT.modes(x_space=np.ones((5, 1))), raises="must have shape"),
    Case("FiniteJoint: space of NaN", lambda: JOINT.modes(x_space=np.full((2, 1), np.nan)), raises="NaN or infinite"),
    Case("FiniteJoint: space of text", lambda: JOINT.modes(x_space=np.array(["a", "b"])), raises="real numbers"),
    Case("FiniteJoint: components of unequal lists", lambda: JOINT.components([None], [None, None]), raises="same length"),
    Case("FiniteJoint: cca of another length", lambda: JOINT.cca([1, 2, 3], [1, 2, 3]), raises="must have shape"),
    Case("FiniteJoint: margins of no variable", lambda: THREE.maximum_entropy([["z"]]), raises="no variable 'z'"),
    Case("Modes: top 0", lambda: JOINT.modes().top(0), raises="number of modes"),
    Case("Modes: top of all", lambda: JOINT.modes().top(None).sigma, gives=lambda: JOINT.modes().sigma),
    Case("heterogeneous_estimate of nothing", lambda: fg.heterogeneous_estimate([], "y"), raises="at least one table"),
    Case("heterogeneous_estimate of no target", lambda: fg.heterogeneous_estimate([JOINT], "z"), raises="must hold 'z'"),
    Case("heterogeneous_estimate of other alphabets", lambda: fg.heterogeneous_estimate([JOINT, FiniteJoint(COUNTS)], "y"), raises="same symbols"),
    Case("heterogeneous_estimate of an array", lambda: fg.heterogeneous_estimate([COUNTS], "y"), raises="FiniteJoint"),
    Case("HeterogeneousEstimate of one table is that table", lambda: fg.heterogeneous_estimate([JOINT], "y").table, gives=lambda: JOINT.probability()),
]

MOMENTS = [
    Case("Moments + 3", lambda: BLOCKS + 3, raises="added to Moments only"),
    Case("Moments + None", lambda: BLOCKS + None, raises="added to Moments only"),
    Case("3 + Moments", lambda: 3 + BLOCKS, raises="added to Moments only"),
    Case("Moments: sum of a list", lambda: sum([BLOCKS, BLOCKS]).weight("x"), gives=160.0),
    Case("Moments of nothing", lambda: Moments.from_features({}), raises="at least one block"),
    Case("Moments of an array", lambda: Moments.from_features(X), raises="by name"),
    Case("Moments of text", lambda: Moments.from_features({"x": LABELS}), raises="real numbers"),
    Case("Moments of NaN", lambda: Moments.from_features({"x": HOLES}), raises="NaN or infinite"),
    Case("Moments of inf", lambda: Moments.from_features({"x": [np.inf, 1.0]}), raises="NaN or infinite"),
    Case("Moments of complex", lambda: Moments.from_features({"x": Y + 1j}), raises="real numbers"),
    Case("Moments of ragged lists", lambda: Moments.from_features({"x": [[1, 2], [3]]}), raises="ragged"),
    Case("Moments of a sparse tensor", lambda: Moments.from_features({"x": F.to_sparse()}), raises="to_dense"),
    Case("Moments of a meta tensor", lambda: Moments.from_features({"x": F.to("meta")}), raises="meta"),
    Case("Moments of a number", lambda: Moments.from_features({"x": 3.0}), raises="one row a sample"),
    Case("Moments of three dimensions", lambda: Moments.from_features({"x": np.zeros((2, 2, 2))}), raises="Flatten"),
    Case("Moments of other lengths", lambda: Moments.from_features({"x": X, "y": Y[:5]}), raises="must have the same rows"),
    Case("Moments of no rows", lambda: Moments.from_features({"x": np.empty((0, 2))}), raises="empty"),
    Case("Moments: negative weights", lambda: Moments.from_features({"x": X}, weights=-np.ones(80)), raises="non-negative"),
    Case("Moments: weights of text", lambda: Moments.from_features({"x": X}, weights=LABELS), raises="real numbers"),
    Case("Moments: weights of another length", lambda: Moments.from_features({"x": X}, weights=[1.0]), raises="one entry a row"),
    Case("Moments: present of numbers", lambda: Moments.from_features({"x": X}, present={"x": CODES}), raises="must be boolean"),
    Case("Moments: present of no block", lambda: Moments.from_features({"x": X}, present={"z": FLAGS}), raises="not passed"),
    Case("Moments: no chunks", lambda: Moments.from_chunks([]), raises="stream of chunks is empty"),
    Case("Moments: no such block", lambda: BLOCKS.mean("z"), raises="no block 'z'"),
    Case("Moments: of sizes that change", lambda: BLOCKS + Moments.from_features({"x": Y}), raises="one dimension everywhere"),
    Case("decompose: no such block", lambda: fg.decompose(BLOCKS, [("z", "y")]), raises="no block 'z'"),
    Case("decompose: no levels", lambda: fg.decompose(BLOCKS, []), raises="level"),
    *[Case(f"decompose: ridge {ridge!r}", lambda ridge=ridge: fg.decompose(BLOCKS, [("x", "y")], ridge=ridge), raises="`ridge` must be") for ridge in ("a", -1, float("nan"), None, True)],
    Case("SpanModes: sigma is that of a fit", lambda: fg.decompose(BLOCKS, [("x", "y")])[0].sigma, gives=lambda: modal().fit(X, Y).singular_values_, rtol=0.01),
    Case("project: no such block", lambda: fg.project(BLOCKS, "z", "x"), raises="no block 'z'"),
    Case("project: ridge 'a'", lambda: fg.project(BLOCKS, "y", "x", ridge="a"), raises="`ridge`"),
    Case("complement: no such block", lambda: fg.complement(BLOCKS, "y", "z"), raises="no block 'z'"),
    Case("complement: a number as block", lambda: fg.complement(BLOCKS, "y", 3), raises="Names must be text"),
    Case("moments_h_score: no such block", lambda: fg.moments_h_score(BLOCKS, f="z"), raises="no block 'z'"),
    Case("moments_h_score: an array", lambda: fg.moments_h_score(X), raises="`moments` must be Moments"),
    Case("moments_h_score is h_score", lambda: fg.moments_h_score(BLOCKS), gives=lambda: float(h_score(F, G))),
]

SCORES = [
    Case("h_score: numpy", lambda: h_score(X, X), raises="torch tensors"),
    Case("h_score: lists", lambda: h_score([1.0], [1.0]), raises="torch tensors"),
    Case("h_score: sparse", lambda: h_score(F.to_sparse(), G), raises="to_dense"),
    Case("h_score: one of them meta", lambda: h_score(F.to("meta"), G), raises="one device"),
    Case("h_score: complex", lambda: h_score(F + 1j, G), raises="real numbers"),
    Case("h_score: whole numbers", lambda: h_score(F.long(), G), raises="floating point"),
    Case("h_score: other lengths", lambda: h_score(F, G[:5]), raises="same samples"),
    Case("h_score: other widths", lambda: h_score(F, G[:, :1]), raises="same shape"),
    Case("h_score: one dimension", lambda: h_score(F[:, 0], G[:, 0]), raises="matrices"),
    Case("h_score: no rows", lambda: h_score(F[:0], G[:0]), raises="At least 1 rows"),
    Case("h_score: no columns", lambda: h_score(F[:, :0], G[:, :0]), raises="k >= 1"),
    Case("h_score: NaN", lambda: h_score(F * np.nan, G), raises="not finite"),
    Case("h_score: 1e300", lambda: h_score(F * 1e300, G * 1e300), raises="not finite"),
    Case("h_score: unbiased 'yes'", lambda: h_score(F, G, "yes"), raises="`unbiased`"),
    Case("h_score: unbiased of one row", lambda: h_score(F[:1], G[:1], True), raises="At least 2 rows"),
    Case("h_score: of constants", lambda: float(h_score(torch.zeros(5, 1), torch.zeros(5, 1))), gives=0.0),
    Case("nested_h_score: a list", lambda: nested_h_score(F, G, [1, 1]), raises="must be a Nesting"),
    Case("nested_h_score: other widths", lambda: nested_h_score(F, G, Nesting([1, 2])), raises="Make them agree"),
    Case("nested_h_score: mode", lambda: nested_h_score(F, G, Nesting([2]), mode="x"), raises="`mode` must be"),
    Case("nested_h_score: mode None", lambda: nested_h_score(F, G, Nesting([2]), mode=None), raises="`mode` must be"),
    Case("nested_h_score of one level is h_score", lambda: float(nested_h_score(F, G, Nesting([2]))), gives=lambda: float(h_score(F, G))),
    Case("single_sided_h_score: labels of text", lambda: fg.single_sided_h_score(F, LABELS), raises="torch tensors"),
    Case("single_sided_h_score: floats as labels", lambda: fg.single_sided_h_score(F, G[:, 0]), raises="whole-number labels"),
    Case("single_sided_h_score: other lengths", lambda: fg.single_sided_h_score(F, torch.tensor(CODES[:5])), raises="same samples"),
    *[Case(f"Nesting: dims {dims!r}", lambda dims=dims: Nesting(dims), raises="level|dims") for dims in ([], 3, [0], [-1], [1.5], [True], ["a"], None, "ab")],
    Case("Nesting: weights of another length", lambda: Nesting([1, 1], weights=[1.0]), raises="one entry a level"),
    Case("Nesting: weights of 0", lambda: Nesting([1], weights=[0]), raises="strictly positive"),
    Case("Nesting: weights of text", lambda: Nesting([1], weights=["a"]), raises="strictly positive"),
    Case("Nesting: spaces that shrink", lambda: Nesting([1, 1], x=[("a", "b"), "a"]), raises="must grow"),
    Case("Nesting: modes 0", lambda: Nesting.modes(0), raises="at least 1"),
    Case("Level: dim 0", lambda: Level(0), raises="at least 1"),
    Case("Level: weight nan", lambda: Level(1, weight=float("nan")), raises="strictly positive"),
    Case("Level: no blocks", lambda: Level(1, x=()), raises="at least one block"),
    Case("Level: blocks that are numbers", lambda: Level(1, x=3), raises="Names must be text"),
]

TESTS = {
    "independence_test": lambda x=X, y=Y, **o: fg.independence_test(x, y, **o),
    "conditional_independence_test": lambda x=X, y=Y, **o: fg.conditional_independence_test(x, y, CODES, **o),
    "mode_pvalues": lambda x=X, y=Y, **o: fg.mode_pvalues(x, y, **o),
    "held_out_spectrum": lambda x=X, y=Y, **o: fg.held_out_spectrum(x, y, modal(), **o),
}
EVIDENCE = [
    *[Case(f"{name}: X complex", lambda test=test: test(x=X + 1j), raises="Complex") for name, test in TESTS.items()],
    *[Case(f"{name}: X ragged", lambda test=test: test(x=[[1, 2], [3]] * 40), raises="rows of the same length") for name, test in TESTS.items()],
    *[Case(f"{name}: X a text", lambda test=test: test(x="x"), raises="one row a sample") for name, test in TESTS.items()],
    *[Case(f"{name}: X of inf", lambda test=test: test(x=np.full(80, np.inf)), raises="infinite") for name, test in TESTS.items()],
    *[Case(f"{name}: other lengths", lambda test=test: test(y=Y[:5]), raises="same rows") for name, test in TESTS.items()],
    *[Case(f"{name}: Y never varies", lambda test=test: test(y=np.ones(80)), raises="never varies") for name, test in TESTS.items()],
    *[Case(f"{name}: random_state {seed!r}", lambda test=test, seed=seed: test(random_state=seed), raises="`random_state` must be") for name, test in TESTS.items() for seed in ("x", -1, 1.5, [1])],
    *[Case(f"{name}: n_permutations {n!r}", lambda test=test, n=n: test(n_permutations=n), raises="`n_permutations` must be") for name, test in TESTS.items() for n in (0, 1.5, True, "x", None, 10**12)],
    *[Case(f"{name}: method", lambda test=test: test(method="x"), raises="`method` must be") for name, test in list(TESTS.items())[:2]],
    Case("independence_test: X above 2**53", lambda: fg.independence_test(2**60 + WHOLE, Y, random_state=0).pvalue, gives=lambda: fg.independence_test(WHOLE, Y, random_state=0).pvalue),
    Case("independence_test: X * 1e-308", lambda: fg.independence_test(X[:, 0] * 2.0**-1000, Y, random_state=0).pvalue, gives=lambda: fg.independence_test(X[:, 0], Y, random_state=0).pvalue),
    Case("independence_test: a category of numbers", lambda: fg.independence_test(np.array(CODES, dtype=object).astype(str), FLAGS, random_state=0).pvalue, gives=lambda: fg.independence_test(CODES, FLAGS, random_state=0).pvalue),
    Case("independence_test: a model without need", lambda: fg.independence_test(X, Y, model=modal()), raises="method='learned'"),
    Case("independence_test: a model that is none", lambda: fg.independence_test(X, Y, method="learned", model="x"), raises="`model` must be"),
    Case("independence_test: images for a table", lambda: fg.independence_test(np.zeros((80, 2, 2)), Y, method="table"), raises="Flatten"),
    Case("independence_test: a table of numbers that never come back", lambda: fg.independence_test(X, Y, method="table"), raises="method='smooth'"),
    Case("independence_test: one row", lambda: fg.independence_test([1], [2]), raises="never varies"),
    Case("mutual_information: one row", lambda: fg.mutual_information([1], [2]), raises="never varies"),
    Case("mutual_information: Y of another length", lambda: fg.mutual_information(X, Y[:5]), raises="same rows"),
    Case("mutual_information: X of inf", lambda: fg.mutual_information(np.full(80, np.inf), Y), raises="X holds infinite"),
    Case("mutual_information: images", lambda: fg.mutual_information(np.zeros((80, 2, 2)), Y), raises="Flatten"),
    Case("conditional_mutual_information: S of another length", lambda: fg.conditional_mutual_information(X, Y, CODES[:5]), raises="same rows"),
    Case("conditional_independence_test: S of another length", lambda: fg.conditional_independence_test(X, Y, CODES[:5]), raises="same rows"),
    Case("conditional_independence_test: S of inf", lambda: fg.conditional_independence_test(X, Y, np.full(80, np.inf)), raises="S holds infinite"),
    Case("conditional_independence_test: three rows", lambda: fg.conditional_independence_test([1, 2, 3], [1, 2, 4], [1, 2, 3]), raises="at least 4 rows"),
    Case("conditional_independence_test: wide S", lambda: fg.conditional_independence_test(Y, FLAGS, np.random.default_rng(0).random((80, 60))), raises="for each column of S"),
    Case("conditional_independence_test: strata of numbers", lambda: fg.conditional_independence_test(X, Y, X[:, 1], method="strata"), raises="method='strata'"),
    Case("conditional_independence_test: S that says nothing", lambda: fg.conditional_independence_test(LABELS, FLAGS, np.ones(80), random_state=0).pvalue, gives=lambda: fg.independence_test(LABELS, FLAGS, random_state=0).pvalue),
    *[Case(f"held_out_spectrum: level {level!r}", lambda level=level: TESTS["held_out_spectrum"](level=level), raises="`level`") for level in (0, 1, 95, "x", None, float("nan"), True)],
    Case("held_out_spectrum: a model that is none", lambda: fg.held_out_spectrum(X, Y, "x"), raises="`model` must be"),
    Case("held_out_spectrum: an estimator of scikit-learn", lambda: fg.held_out_spectrum(X, Y, fg.SequentialDecomposition()), raises="`model` must be"),
    Case("held_out_spectrum: few rows", lambda: fg.held_out_spectrum(X[:4], Y[:4]), raises="at least 20 rows"),
    Case("mode_pvalues: images", lambda: fg.mode_pvalues(np.zeros((80, 2, 2)), Y), raises="Flatten"),
    Case("mode_pvalues: more columns than rows", lambda: fg.mode_pvalues(np.random.default_rng(0).random((80, 90)), Y), raises="columns|dimensions|rows"),
]

OTHERS = [
    Case("datasets: titanic is a table", lambda: FiniteJoint(*titanic()).total, gives=2201.0),
    Case("datasets: hair_eye_color is a table", lambda: FiniteJoint(*hair_eye_color()).total, gives=592.0),
    Case("cli: nothing", lambda: command(), gives="exit 2"),
    Case("cli: an unknown command", lambda: command("fly"), gives="exit 2"),
    Case("cli: --version", lambda: command("--version"), gives="exit 0"),
    Case("cli: reproduce of no experiment", lambda: command("reproduce", "nothing"), gives="exit 2"),
    Case("cli: reproduce by no recipe", lambda: command("reproduce", "--recipe", "x"), gives="exit 2"),
    Case("cli: reproduce of -1 draws", lambda: command("reproduce", "discrete", "--draws", "-1"), gives="exit 2"),
    Case("cli: reproduce with a seed of text", lambda: command("reproduce", "--seed", "x"), gives="exit 2"),
]

CASES = [*FINITE, *MOMENTS, *SCORES, *EVIDENCE, *OTHERS]
