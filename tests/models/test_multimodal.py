"""Many sources, some missing: components, posteriors from any subset, what is identified, and what is refused."""

import copy
import math
import warnings
from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from sklearn.base import clone
from sklearn.datasets import load_wine

import featgeo as fg
from featgeo.paper import multimodal

SHAPES = {2: (4, 3, 3), 3: (3, 2, 3, 3)}
SOURCES = {2: ("a", "b"), 3: ("a", "b", "c")}


def triples(law, n, seed):
    """Rows of the paper's law: both sources and the label."""
    data = multimodal.draw(law, seed, n)
    return data.x1, data.x2, data.y


def rows_of_table(m, n, seed):
    """Rows of a random finite law of m sources and y, by name."""
    rng = np.random.default_rng(seed)
    mass = np.random.default_rng(m).dirichlet(np.full(np.prod(SHAPES[m]), 2.0))
    cells = np.unravel_index(rng.choice(mass.size, size=n, p=mass), SHAPES[m])
    return dict(zip((*SOURCES[m], "y"), cells, strict=True))


def counted(rows, *names):
    return fg.FiniteJoint.from_samples(**{name: rows[name] for name in names})


def every_symbol(m):
    grids = np.indices(SHAPES[m][:-1]).reshape(m, -1)
    return dict(zip(SOURCES[m], grids, strict=True))


def kernels(model, m):
    """The kernel of each order at all symbols, (sources..., y)."""
    f, start, result = model.transform(every_symbol(m)), 0, []
    for component in model.orders_:
        part = slice(start, start + len(component.singular_values_))
        start = part.stop
        values = (f[:, part] * component.singular_values_) @ model.support_.g[:, part].T
        result.append(values.reshape(SHAPES[m]))
    return result


def assert_components(model, exact, m):
    assert len(model.orders_) == len(exact)
    for learned, component, truth in zip(kernels(model, m), model.orders_, exact, strict=True):
        np.testing.assert_allclose(component.singular_values_, truth.sigma, atol=1e-8)
        np.testing.assert_allclose(learned, truth.kernel(), atol=1e-8)


@pytest.mark.parametrize("m", [2, 3])
def test_complete_rows_give_the_components_of_the_table(m):
    rows = rows_of_table(m, 3000, seed=1)
    y = rows.pop("y")
    model = fg.MultimodalDecomposition(max_order=m).fit(rows, y)
    exact = counted({**rows, "y": y}, *rows, "y").multimodal()
    assert model.solver_ == "exact"
    assert_components(model, exact.orders, m)
    np.testing.assert_allclose(model.bivariate_.singular_values_, exact.bivariate.sigma, atol=1e-8)
    np.testing.assert_allclose(model.interaction_.singular_values_, exact.interaction.sigma, atol=1e-8)
    assert model.interaction_.energy_ == pytest.approx(exact.interaction.energy, abs=1e-8)


@pytest.mark.parametrize("m", [2, 3])
def test_pairs_alone_give_the_bivariate_component_of_the_table(m):
    rows = rows_of_table(m, 3000, seed=2)
    pairs = [{name: rows[name] for name in pair} for pair in combinations(rows, 2)]
    model = fg.MultimodalDecomposition(max_order=m).fit_datasets(pairs)
    exact = counted(rows, *rows).multimodal()
    assert_components(model, exact.orders[:1], m)
    assert not model.identified_["a x b"].learned
    with pytest.raises(AttributeError, match="a, b and Y together, got 0"):
        _ = model.interaction_


@pytest.mark.parametrize("m", [2, 3])
def test_rows_of_all_kinds_give_the_components_of_the_heterogeneous_estimate(m):
    complete, first, second, sources_only = (rows_of_table(m, n, seed=n) for n in (2000, 3000, 1500, 700))
    seen = [("a", "y"), ("b", "y") if m == 2 else ("b", "c", "y")]
    parts = [complete, {n: first[n] for n in seen[0]}, {n: second[n] for n in seen[1]}]
    without_y = {name: sources_only[name] for name in SOURCES[m]}
    model = fg.MultimodalDecomposition(max_order=m).fit_datasets([*parts, without_y])
    both = {name: np.concatenate([complete[name], without_y[name]]) for name in SOURCES[m]}
    tables = [counted(complete, *SOURCES[m], "y"), counted(first, *seen[0]), counted(second, *seen[1])]
    estimate = fg.heterogeneous_estimate(tables, "y", sources=counted(both, *SOURCES[m]))
    exact = estimate.multimodal()
    assert_components(model, exact.orders, m)
    np.testing.assert_allclose(model.interaction_.singular_values_, exact.interaction.sigma, atol=1e-8)


@pytest.mark.parametrize("m", [2, 3])
def test_every_subset_of_the_sources_has_its_own_posterior(m):
    rows = rows_of_table(m, 4000, seed=3)
    y = rows.pop("y")
    model = fg.MultimodalDecomposition(max_order=m).fit(rows, y)
    table = counted({**rows, "y": y}, *rows, "y")
    for size in range(1, m + 1):
        for names in combinations(SOURCES[m], size):
            mass = table.probability(*names, "y")
            symbols = np.indices(mass.shape[:-1]).reshape(size, -1)
            posterior = model.given(**dict(zip(names, symbols, strict=True))).proba()
            truth = (mass / mass.sum(axis=-1, keepdims=True)).reshape(-1, mass.shape[-1])
            np.testing.assert_allclose(posterior, truth, atol=1e-8)  # Prop. pred:est:mm
            psi = np.random.default_rng(0).normal(size=mass.shape[-1])
            mean = model.given(**dict(zip(names, symbols, strict=True))).mean(lambda values, psi=psi: psi[values])
            np.testing.assert_allclose(mean, truth @ psi, atol=1e-8)


def test_rows_are_answered_from_what_they_have():
    rows = rows_of_table(2, 2000, seed=4)
    model = fg.MultimodalDecomposition().fit({"a": rows["a"], "b": rows["b"]}, rows["y"])
    a, b = np.array([0.0, np.nan, 2.0, np.nan]), np.array([1.0, 2.0, np.nan, np.nan])
    mixed = model.given(a=a, b=b).proba()
    np.testing.assert_allclose(mixed[0], model.given(a=[0], b=[1]).proba()[0], atol=1e-12)
    np.testing.assert_allclose(mixed[1], model.given(b=[2]).proba()[0], atol=1e-12)
    np.testing.assert_allclose(mixed[2], model.given(a=[2]).proba()[0], atol=1e-12)
    np.testing.assert_allclose(mixed[3], np.bincount(rows["y"]) / 2000, atol=1e-12)
    np.testing.assert_allclose(model.given(a=None, b=[2]).proba(), model.given(b=[2]).proba(), atol=1e-12)


def test_missing_cells_and_separate_data_sets_are_the_same():
    rows = rows_of_table(2, 3000, seed=5)
    holes = {name: np.where(np.arange(3000) % 5 == i, np.nan, rows[name]) for i, name in enumerate(rows)}
    y = holes.pop("y")
    cells = fg.MultimodalDecomposition().fit(holes, y)
    kinds = np.arange(3000) % 5
    sets = [{"b": rows["b"][kinds == 0], "y": rows["y"][kinds == 0]},
            {"a": rows["a"][kinds == 1], "y": rows["y"][kinds == 1]},
            {"a": rows["a"][kinds == 2], "b": rows["b"][kinds == 2]},
            {name: rows[name][kinds > 2] for name in ("a", "b", "y")}]  # fmt: skip
    apart = fg.MultimodalDecomposition().fit_datasets(sets)
    for one, other in zip(cells.orders_, apart.orders_, strict=True):
        np.testing.assert_allclose(one.singular_values_, other.singular_values_, atol=1e-10)
    whole = {"a": rows["a"], "b": rows["b"]}
    masks = {name: np.arange(3000) % 5 != i for i, name in enumerate(("a", "b", "y"))}
    masked = fg.MultimodalDecomposition().fit(whole, rows["y"], present=masks)
    np.testing.assert_allclose(masked.bivariate_.singular_values_, cells.bivariate_.singular_values_, atol=1e-10)


def smooth_rows(n, seed, interaction=0.5):
    rng = np.random.default_rng(seed)
    a = rng.normal(size=n)
    b = 0.5 * a + rng.normal(size=n)
    y = np.sin(a) + 0.5 * b + interaction * a * b + 0.5 * rng.normal(size=n)
    return a, b, y


@pytest.mark.parametrize("kinds", ["complete", "heterogeneous"])
def test_interactions_are_orthogonal_to_all_functions_of_one_source(kinds):
    a, b, y = smooth_rows(3000, 0)
    if kinds == "complete":
        model = fg.MultimodalDecomposition(random_state=0).fit({"a": a, "b": b}, y)
    else:
        a1, _, y1 = smooth_rows(2000, 1)
        model = fg.MultimodalDecomposition(random_state=0).fit_datasets([{"a": a, "b": b, "y": y}, {"a": a1, "y": y1}])
    f = model.transform({"a": a, "b": b})[:, len(model.bivariate_.singular_values_) :]
    assert f.shape[1] >= 1
    learned = model.learned_[0]
    for source, values in (("a", a), ("b", b)):
        rows = model.variables_[source].rows(values)
        functions = learned.features.spaces[source](rows)  # all that the model knows of one source
        products = (functions - functions.mean(axis=0)).T @ f / len(f)
        assert (
            np.abs(products / functions.std(axis=0)[:, None].clip(min=1e-12)).max() < 1e-5
        )  # what a Gram matrix resolves


@pytest.mark.parametrize(("law", "energy"), [("valid", 1 / 18), ("pairwise", 0.0)])
def test_a_real_interaction_is_found_and_an_absent_one_is_not(law, energy):
    x1, x2, y = triples(law, 10_000, 2)
    model = fg.MultimodalDecomposition(random_state=0).fit({"a": x1, "b": x2}, y)
    assert model.interaction_.held_out_energy_ == pytest.approx(energy, abs=0.015)
    x1, x2, y = triples(law, 10_000, 3)
    both, one = model.score({"a": x1, "b": x2}, y), model.score({"a": x1}, y)
    truth = multimodal.truth(law)
    assert both == pytest.approx((truth.sigma[0] ** 2 + energy) / 2, abs=0.015)
    assert one == pytest.approx(truth.sigma[0] ** 2 / 4, abs=0.015)  # x1 alone knows half of it


def test_numbers_are_predicted_from_any_source():
    a, b, y = smooth_rows(4000, 5, interaction=0.0)
    model = fg.MultimodalDecomposition(random_state=0).fit({"a": a, "b": b}, y)
    at = np.linspace(-1.5, 1.5, 7)
    # a alone: b is then 0.5 a + noise; b alone: E[a|b] = 0.4 b and E[sin a|b] = sin(0.4 b) exp(-0.4).
    np.testing.assert_allclose(model.given(a=at).mean(), np.sin(at) + 0.25 * at, atol=0.12)
    np.testing.assert_allclose(model.given(b=at).mean(), 0.5 * at + np.sin(0.4 * at) * np.exp(-0.4), atol=0.15)
    np.testing.assert_allclose(model.given(a=at, b=at).mean(), np.sin(at) + 0.5 * at, atol=0.15)
    intervals = model.given(a=a[:500], b=b[:500]).interval(0.8)
    covered = np.mean((intervals[:, 0] <= y[:500]) & (y[:500] <= intervals[:, 1]))
    assert 0.65 < covered < 0.95


def test_more_rows_of_one_source_make_its_posterior_better():
    at = np.linspace(-1, 1, 41)
    truth = multimodal.truth("pairwise").single(at)
    gains = []
    for seed in range(5):
        x1, x2, y = triples("pairwise", 300, seed)
        more_x1, _, more_y = triples("pairwise", 6000, 100 + seed)
        few = fg.MultimodalDecomposition(random_state=0).fit({"a": x1, "b": x2}, y)
        sets = [{"a": x1, "b": x2, "y": y}, {"a": more_x1, "y": more_y}]
        many = fg.MultimodalDecomposition(random_state=0).fit_datasets(sets)
        errors = [np.mean((model.given(a=at).proba()[:, 1] - truth) ** 2) for model in (few, many)]
        gains.append(errors[0] / errors[1])
    assert np.median(gains) > 3


def test_energies_are_those_of_the_table():
    rows = rows_of_table(3, 5000, seed=6)
    table = counted(rows, *rows)
    y = rows.pop("y")
    found = fg.MultimodalDecomposition(max_order=3).fit(rows, y).energies()
    total = table.mean_square_contingency()
    for source, others in (("a", ("b", "c")), ("b", ("a", "c")), ("c", ("a", "b"))):
        assert found[f"{source} alone"].energy == pytest.approx(table.mean_square_contingency(source, "y"), abs=1e-8)
        left = total - table.mean_square_contingency(others, "y")
        assert found[f"{source} after the others"].energy == pytest.approx(left, abs=1e-8)
    orders = table.multimodal().orders
    assert found["a + b + c"].energy == pytest.approx(orders[0].energy, abs=1e-8)
    assert found["all interactions of 2"].energy == pytest.approx(orders[1].energy, abs=1e-8)
    assert found["a x b x c"].energy == pytest.approx(orders[2].energy, abs=1e-8)
    for row in found:
        assert row.interval[0] <= row.held_out <= row.interval[1]
        assert row.held_out <= row.energy + 1e-9
    assert "a after the others" in str(found)
    with pytest.raises(KeyError, match="The steps are"):
        found["d alone"]


def test_held_out_energies_of_nothing_are_about_nothing():
    rng = np.random.default_rng(7)
    with pytest.warns(UserWarning, match="confirm no mode"):
        model = fg.MultimodalDecomposition(random_state=0).fit(
            {"a": rng.normal(size=1500), "b": rng.normal(size=1500)}, rng.normal(size=1500)
        )
    assert all(row.interval[0] < 0.005 for row in model.energies())


def test_optimal_transformations_are_the_first_bivariate_mode():
    rows = rows_of_table(2, 3000, seed=8)
    table = counted(rows, "a", "b", "y")
    model = fg.MultimodalDecomposition().fit({"a": rows["a"], "b": rows["b"]}, rows["y"])
    found = model.optimal_transformations({"a": rows["a"], "b": rows["b"]}, rows["y"])
    left = found.psi - found.phi["a"] - found.phi["b"]
    sigma = table.multimodal().bivariate.sigma[0]
    assert np.mean(left**2) == pytest.approx(1 - sigma**2, abs=1e-8)  # Prop. opt:tran
    assert found.explained == pytest.approx(sigma**2, abs=1e-8)
    assert np.mean(found.psi**2) == pytest.approx(1, abs=1e-8)
    for values in (found.psi, *found.phi.values()):
        assert np.mean(values) == pytest.approx(0, abs=1e-8)


def test_sources_that_never_meet_speak_for_themselves():
    rows, more = rows_of_table(2, 500, seed=9), rows_of_table(2, 500, seed=10)
    model = fg.MultimodalDecomposition().fit_datasets(
        [{"a": rows["a"], "y": rows["y"]}, {"b": more["b"], "y": more["y"]}]
    )
    mass = counted(rows, "a", "y").probability()
    # The prior is that of all rows with Y; to first order the posterior is that of the rows with a.
    np.testing.assert_allclose(model.given(a=np.arange(4)).proba(), mass / mass.sum(axis=1, keepdims=True), atol=0.05)
    with pytest.raises(ValueError, match="not all seen together"):
        model.given(a=[0], b=[1])
    with pytest.raises(AttributeError, match="needs rows with a and b together"):
        _ = model.bivariate_
    assert not model.identified_["a + b"].learned
    assert "never" not in model.identified_["a + b"].reason


def test_a_source_that_never_comes_with_y_is_absent():
    rows = rows_of_table(2, 500, seed=11)
    model = fg.MultimodalDecomposition().fit_datasets(
        [{"a": rows["a"], "y": rows["y"]}, {"a": rows["a"], "b": rows["b"]}]
    )
    assert model.identified_["a"].learned
    assert not model.identified_["b"].learned
    with pytest.raises(ValueError, match="Nothing is known about Y given b"):
        model.given(b=[0])
    model.given(a=[0, 1])


def test_interactions_that_cannot_be_told_apart_are_learned_by_those_who_can():
    rows = rows_of_table(3, 900, seed=12)
    pairs = [{**{n: rows[n] for n in pair}, "y": rows["y"]} for pair in combinations(SOURCES[3], 2)]
    model = fg.MultimodalDecomposition().fit_datasets(pairs)
    assert model.identified_["a + b + c"].learned
    assert len(model.orders_) == 1  # products of a and b were never seen with c
    with pytest.raises(AttributeError, match="cannot all be told apart"):
        _ = model.interaction_
    model.given(a=[0], b=[1], c=[2])
    assert model.identified_["a x b"].learned
    a, b = np.indices((3, 2)).reshape(2, -1)
    mass = counted(rows, "a", "b", "y").probability()
    truth = (mass / mass.sum(axis=-1, keepdims=True)).reshape(-1, 3)
    np.testing.assert_allclose(model.given(a=a, b=b).proba(), truth, atol=0.02)
    names = model.get_feature_names_out()
    assert len(set(names)) == len(names)
    assert {row.name for row in model.energies()} >= {"a alone", "a x b", "b x c", "a + b + c"}


def test_a_further_source_does_not_take_an_interaction_away():
    rng = np.random.default_rng(22)
    a, b, c = rng.normal(size=(3, 1200))
    y = a * b + 0.2 * rng.normal(size=1200)
    kind = np.arange(1200) % 3
    a_, b_, c_ = np.where(kind == 1, np.nan, a), np.where(kind == 2, np.nan, b), np.where(kind == 0, np.nan, c)
    errors = []
    for sources in ({"a": a_, "b": b_}, {"a": a_, "b": b_, "c": c_}):
        model = fg.MultimodalDecomposition(random_state=0).fit(sources, y)
        errors.append(np.mean((model.given(a=a, b=b).mean() - a * b) ** 2))
    assert errors[0] < 0.5
    assert errors[1] == pytest.approx(errors[0], rel=0.3)


def test_a_symbol_that_the_fit_never_saw_counts_as_missing():
    rows = rows_of_table(2, 800, seed=13)
    model = fg.MultimodalDecomposition().fit({"a": rows["a"].astype(str), "b": rows["b"]}, rows["y"])
    known = model.given(b=[1]).proba()
    np.testing.assert_allclose(model.given(a=["never seen"], b=[1]).proba(), known, atol=1e-12)
    np.testing.assert_allclose(model.given(a=["never seen"]).proba()[0], np.bincount(rows["y"]) / 800, atol=1e-12)


def test_a_pair_of_symbols_that_never_met_has_no_interaction():
    rng = np.random.default_rng(14)
    a, b, y = rng.integers(0, 3, 900), rng.integers(0, 3, 900), rng.integers(0, 2, 900)
    kept = ~((a == 2) & (b == 2))
    model = fg.MultimodalDecomposition().fit({"a": a[kept], "b": b[kept]}, y[kept])
    k = len(model.bivariate_.singular_values_)
    np.testing.assert_allclose(model.transform({"a": [2], "b": [2]})[:, k:], 0, atol=1e-8)


def test_a_duplicated_source_adds_nothing():
    rows = rows_of_table(2, 1500, seed=15)
    model = fg.MultimodalDecomposition().fit({"a": rows["a"], "again": rows["a"]}, rows["y"])
    assert model.energies()["again after the others"].energy == pytest.approx(0, abs=1e-8)
    alone = counted(rows, "a", "y").modes()
    np.testing.assert_allclose(model.bivariate_.singular_values_, alone.sigma, atol=1e-8)


GOOD = {"a": [0, 1, 2, 3] * 10, "b": [0, 1, 1, 0] * 10}
Y = [0, 1] * 20


@pytest.mark.parametrize(
    ("sources", "y", "message"),
    [
        ({"a": [1] * 40, "b": GOOD["b"]}, Y, "a never varies"),
        ({"a": [np.nan] * 40, "b": GOOD["b"]}, Y, "a is missing in every row.*Leave it out"),
        (GOOD, [np.nan] * 40, "Y is missing in every row"),
        (GOOD, [1] * 40, "Y never varies"),
        ({"a": GOOD["a"][:-1], "b": GOOD["b"]}, Y, "'a': 39.*fit_datasets"),
        ({"a": GOOD["a"]}, Y, "at least two sources.*ModalDecomposition"),
        ({**GOOD, "prior": GOOD["a"]}, Y, "names that are texts other than"),
        ({**GOOD, 3: GOOD["a"]}, Y, "names that are texts other than"),
        (np.zeros((40, 2)), Y, "mapping from name to rows"),
        ({**GOOD, "y": GOOD["a"]}, Y, "'y' is what Y is called"),
        ({**GOOD, "a x b": GOOD["a"]}, Y, "without any of"),
        (GOOD, None, "Y must have one row a sample, got NoneType"),
        ({**GOOD, "c": {"d": 1}}, Y, "c must have one row a sample, got dict"),
    ],
)
def test_bad_sources_are_refused(sources, y, message):
    with pytest.raises(ValueError, match=message):
        fg.MultimodalDecomposition().fit(sources, y)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_modes": 0}, "`n_modes` must be a whole number"),
        ({"n_interaction_modes": 1.5}, "`n_interaction_modes` must be a whole number"),
        ({"max_order": 0}, "`max_order` must be a whole number"),
        ({"solver": "magic"}, "`solver` must be"),
        ({"spaces": {"c": "kernel"}}, "`spaces` names \\['c'\\]"),
        ({"spaces": {"a": "magic"}}, "A space must be one of"),
        ({"solver": "exact", "y_space": "kernel"}, "\\['y'\\] are not finite"),
    ],
)
def test_bad_parameters_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        fg.MultimodalDecomposition(**options).fit(GOOD, Y)


def test_bad_questions_are_refused():
    model = fg.MultimodalDecomposition(max_order=1).fit(GOOD, Y)
    with pytest.raises(ValueError, match="no source 'c'"):
        model.given(c=[1])
    with pytest.raises(ValueError, match="at least one of"):
        model.given()
    with pytest.raises(ValueError, match="same rows"):
        model.given(a=[1, 2], b=[1])
    with pytest.raises(ValueError, match="all of"):
        model.optimal_transformations({"a": [1]})
    with pytest.raises(AttributeError, match="max_order=1 asks for none"):
        _ = model.interaction_
    with pytest.raises(ValueError, match="must be boolean of shape"):
        fg.MultimodalDecomposition().fit(GOOD, Y, present={"a": [1] * 40})
    with pytest.raises(ValueError, match="which are no variables here"):
        fg.MultimodalDecomposition().fit(GOOD, Y, present={"c": [True] * 40})
    with pytest.raises(ValueError, match="list of mappings"):
        fg.MultimodalDecomposition().fit_datasets([GOOD["a"], Y])
    with pytest.raises(ValueError, match="mapping from name to rows, got list"):
        model.given([1])
    with pytest.raises(ValueError, match="missing in some rows"):
        model.optimal_transformations({"a": [1, np.nan], "b": [0, 1]})
    with pytest.raises(ValueError, match="of one kind in all data sets"):
        fg.MultimodalDecomposition().fit_datasets([{**GOOD, "y": Y}, {"a": ["u", "v"] * 20, "y": Y}])
    frames = [pd.DataFrame({name: [1, 2] * 10}) for name in "pq"]
    sets = [{"a": frame, "b": [0, 1] * 10, "y": [0, 1] * 10} for frame in frames]
    with pytest.raises(ValueError, match="same columns in all data sets"):
        fg.MultimodalDecomposition().fit_datasets(sets)
    with pytest.raises(ValueError, match="position 1"):
        fg.MultimodalDecomposition().fit_datasets([{**GOOD, "y": Y}, {"a": [1, 2], "y": [0]}])
    with pytest.raises(ValueError, match="No data set has Y"):
        fg.MultimodalDecomposition().fit_datasets([GOOD])
    with pytest.raises(ValueError, match="it needs at least 10 rows with a and Y"):
        fg.MultimodalDecomposition().fit({"a": GOOD["a"][:4], "b": GOOD["b"][:4]}, Y[:4])


def test_frames_series_and_labels_are_sources():
    rng = np.random.default_rng(16)
    n = 1500
    shape, size = rng.choice(["round", "flat"], n), rng.normal(size=n)
    colour = np.where(rng.random(n) < 0.7, np.where(shape == "round", "red", "blue"), "green").astype(object)
    colour[::7] = None
    frame = pd.DataFrame({"shape": shape, "size": size}, index=np.arange(n) + 100)
    frame.loc[frame.index[::5], :] = None
    y = np.where(rng.random(n) < 0.8, shape == "round", rng.random(n) < 0.5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = fg.MultimodalDecomposition(random_state=0).fit(
            {"look": frame, "colour": pd.Series(colour), "size": pl.Series("size", size)}, pd.Series(y)
        )
        posterior = model.given(colour=["red", "blue", "green", None]).proba()
    assert posterior[0, 1] > 0.7
    assert posterior[1, 1] < 0.3
    np.testing.assert_allclose(posterior[3], [np.mean(~y), np.mean(y)], atol=1e-10)
    right = np.mean(model.given(look=frame, colour=colour, size=size).map() == y)
    assert right > 0.85


def test_sources_of_many_columns_are_reduced_and_still_fit_together():
    X, y = load_wine(return_X_y=True)
    order = np.random.default_rng(17).permutation(len(y))
    X, y = X[order], y[order]
    train, test = slice(0, 130), slice(130, None)
    left, right = X[:, :6].copy(), X[:, 6:].copy()
    left[0:130:4] = np.nan
    right[1:130:4] = np.nan
    model = fg.MultimodalDecomposition(max_order=1, random_state=0).fit({"l": left[train], "r": right[train]}, y[train])
    assert np.mean(model.given(l=left[test], r=right[test]).map() == y[test]) > 0.9
    assert np.mean(model.given(l=left[test]).map() == y[test]) > 0.75
    assert np.mean(model.given(r=right[test]).map() == y[test]) > 0.8


def test_images_are_sources(tmp_path):
    rng = np.random.default_rng(18)
    n = 800
    y = rng.integers(0, 2, n)
    images = rng.normal(size=(2, n, 1, 8, 8)).astype(np.float32)
    images[0, :, :, :4] += (2 * y - 1)[:, None, None, None] * 0.5
    images[1, :, :, :, :4] += (2 * y - 1)[:, None, None, None] * 0.5
    sources = {"top": torch.from_numpy(images[0]), "side": torch.from_numpy(images[1])}
    training = fg.Training(max_epochs=4)
    model = fg.MultimodalDecomposition(1, 1, training=training, random_state=0).fit(
        sources, y, present={"side": np.arange(n) % 4 != 0}
    )
    assert model.solver_ == "neural"
    both = np.mean(model.given(**sources).map() == y)
    assert both > 0.9
    for name in sources:
        assert np.mean(model.given(**{name: sources[name]}).map() == y) > 0.8
    model.save(tmp_path / "model.fg")
    loaded = fg.load(tmp_path / "model.fg")
    np.testing.assert_allclose(loaded.transform(sources), model.transform(sources), atol=1e-12)


def test_a_saved_model_answers_as_before(tmp_path):
    a, b, y = smooth_rows(300, 19)
    a[::3] = np.nan
    model = fg.MultimodalDecomposition(spaces="spline", y_space="spline", random_state=0).fit({"a": a, "b": b}, y)
    model.save(tmp_path / "model.fg")
    loaded = fg.load(tmp_path / "model.fg")
    np.testing.assert_array_equal(loaded.given(a=a, b=b).mean(), model.given(a=a, b=b).mean())
    assert loaded.energies() == model.energies()
    assert loaded.identified_ == model.identified_
    assert str(loaded.bivariate_) == str(model.bivariate_)


def test_a_seed_says_it_all_and_parameters_are_kept():
    a, b, y = smooth_rows(600, 20)
    model = fg.MultimodalDecomposition(2, spaces={"a": "spline"}, random_state=3)
    first = clone(model).fit({"a": a, "b": b}, y).given(a=a).mean()
    again = clone(model).fit({"a": a, "b": b}, y).given(a=a).mean()
    np.testing.assert_array_equal(first, again)
    assert model.get_params()["spaces"] == {"a": "spline"}


def test_energies_have_a_figure():
    figure = fg.MultimodalDecomposition().fit(GOOD, Y).plot()
    (axes,) = figure.axes
    assert [label.get_text() for label in axes.get_yticklabels()][:2] == ["a alone", "b alone"]


def test_names_of_the_features():
    rows = rows_of_table(2, 500, seed=21)
    model = fg.MultimodalDecomposition().fit({"a": rows["a"], "b": rows["b"]}, rows["y"])
    names = model.get_feature_names_out()
    assert len(names) == model.transform({"a": [0], "b": [0]}).shape[1]
    assert names[0] == "a + b 1"
    assert names[-1].startswith("a x b")


def test_tables_that_are_mostly_chance_are_smoothed():
    rng = np.random.default_rng(23)
    a, b, y = rng.integers(0, 60, 1500).astype(str), rng.integers(0, 60, 1500).astype(str), rng.integers(0, 2, 1500)
    with pytest.warns(UserWarning, match="confirm no mode"):
        model = fg.MultimodalDecomposition(random_state=0).fit({"a": a, "b": b}, y)
    assert model.solver_ == "closed"
    chance = model.given(a=a, b=b).proba()
    fresh = rng.integers(0, 2, 1500)
    assert -np.log(chance[np.arange(1500), fresh]).mean() < np.log(2) + 0.05


def test_networks_are_judged_on_rows_that_they_were_not_trained_on():
    rng = np.random.default_rng(24)
    images = rng.normal(size=(2, 1200, 1, 6, 6)).astype(np.float32)
    y = rng.integers(0, 3, 1200)
    training = fg.Training(max_epochs=8)
    with pytest.warns(UserWarning, match="confirm no mode"):
        model = fg.MultimodalDecomposition(training=training, random_state=0).fit({"a": images[0], "b": images[1]}, y)
    component = model.bivariate_
    assert component.held_out_energy_ < 2 * component.held_out_energy_error_ + 0.01
    new = rng.normal(size=(2, 1200, 1, 6, 6)).astype(np.float32)
    proba = model.given(a=new[0], b=new[1]).proba()
    assert -np.log(proba[np.arange(1200), rng.integers(0, 3, 1200)]).mean() < np.log(3) + 0.05


def test_sources_that_meet_in_few_rows_and_are_read_by_networks():
    rng = np.random.default_rng(25)
    n = 1500
    y = rng.integers(0, 2, n)
    images = (rng.normal(size=(2, n, 1, 4, 4)) + y[:, None, None, None]).astype(np.float32)
    side = np.arange(n) % 2 == 0
    both = np.arange(n) % 100 == 0
    images[0, ~side & ~both] = np.nan
    images[1, side & ~both] = np.nan
    model = fg.MultimodalDecomposition(training=fg.Training(max_epochs=3), random_state=0)
    model.fit({"a": images[0], "b": images[1]}, y)
    assert np.mean(model.given(a=images[0], b=images[1]).map() == y) > 0.9
    assert 0 < model.removed_ <= 1  # fifteen rows say little about how the two fit together, and it shows


def test_a_copy_knows_the_energies_too():
    model = fg.MultimodalDecomposition().fit(GOOD, Y)
    copied = copy.deepcopy(model)
    assert copied.energies() == model.energies()
    assert set(model.strengths_) == set(model.components_)


@pytest.mark.parametrize(("n_sources", "max_order", "enough"), [(8, 8, 3), (8, 4, 3), (30, 3, 2), (12, 12, 2)])
def test_groups_without_end_are_refused_with_their_number(n_sources, max_order, enough):
    rng = np.random.default_rng(0)
    sources = {f"s{i}": rng.standard_normal(100) for i in range(n_sources)}
    model = fg.MultimodalDecomposition(max_order=max_order, spaces="linear")
    n_groups = sum(math.comb(n_sources, order) for order in range(3, max_order + 1))
    with pytest.raises(ValueError, match=rf"functions of {n_groups} groups .* Use max_order={enough}, or put"):
        model.fit(sources, rng.standard_normal(100))


@pytest.mark.parametrize("n_modes", [1, 2, "auto"])
def test_as_many_modes_as_are_asked_for(n_modes):
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, 400))
    y = np.digitize(a, [-0.7, 0.0, 0.7]) * 2 + (b > 0)  # eight labels
    model = fg.MultimodalDecomposition(n_modes, max_order=1, spaces="linear", random_state=0).fit({"a": a, "b": b}, y)
    assert len(model.bivariate_.singular_values_) == (2 if n_modes == "auto" else n_modes)  # two columns tell no more


def test_the_team_that_knows_most_answers():
    model = fg.MultimodalDecomposition()
    know = {("a",): (1, 5, 2), ("a", "b"): (7, 0, 3)}
    model.teams_ = tuple(
        SimpleNamespace(sources=("a", "b", "c"), knowledge=lambda there, i=i: know[there][i]) for i in range(3)
    )
    assert [model._team(there) for there in know] == [1, 0]
