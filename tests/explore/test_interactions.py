"""Two columns together about a target: exact where all is finite, the planted pair first, none where there is none."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import featgeo as fg
from featgeo.explore.additive import additive_of
from featgeo.explore.cells import coarser, label_cells, number_cells, places_in
from featgeo.explore.exploration import Exploration
from featgeo.explore.interactions import Products
from featgeo.explore.run import explore
from featgeo.explore.three_way import Interactions

pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")


def _finite_counts(seed, shape=(3, 4, 3)):
    """Rows of each triple of symbols, of a law without structure."""
    return np.random.default_rng(seed).integers(20, 120, size=shape)


def _rows_of(counts):
    rows = np.repeat(list(product(*map(range, counts.shape))), counts.ravel(), axis=0)
    return pd.DataFrame({name: [f"{name}{value}" for value in rows[:, axis]] for axis, name in enumerate("aby")})


def _mixed(seed, n=3000, p=12):
    """Correlated numbers and labels, and standard normal noise."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, p)) + 0.8 * np.repeat(rng.normal(size=(n, p // 4)), 4, axis=1)
    frame = {f"c{i}": z[:, i] for i in range(p)}
    for i in (3, 7, 11):
        z[:, i] = np.digitize(z[:, i], [-0.8, 0.3, 1])
        frame[f"c{i}"] = np.array(list("pqrs"))[z[:, i].astype(int)]
    return pd.DataFrame(frame), z, rng.normal(size=n)


def _first(exploration):
    columns = exploration.interactions.columns
    return {columns["a"][0], columns["b"][0]}, columns["qvalue"][0]


@pytest.mark.parametrize("seed", [0, 1])
def test_the_energy_of_finite_columns_is_that_of_the_exact_interaction(seed):
    counts = _finite_counts(seed)
    exact = fg.FiniteJoint(counts, ("a", "b", "y")).multimodal().interaction.sigma
    found = explore(_rows_of(counts), target="y", verbose=0).interactions
    assert len(found) == 1
    np.testing.assert_allclose(found.columns["fitted_energy"], [np.sum(exact**2)], atol=1e-8)


def test_the_energy_of_a_number_of_two_values_is_exact_too():
    counts = _finite_counts(2, (2, 3, 2))
    frame = _rows_of(counts).assign(y=np.repeat(np.tile([0, 1], 6), counts.ravel()))
    exact = fg.FiniteJoint(counts, ("a", "b", "y")).multimodal().interaction.sigma
    found = explore(frame, target="y", verbose=0).interactions
    np.testing.assert_allclose(found.columns["fitted_energy"], [np.sum(exact**2)], atol=1e-8)


@pytest.mark.parametrize("kind", ["product", "xor", "threshold", "labels"])
def test_the_planted_pair_is_first(kind):
    frame, z, noise = _mixed(5)
    i, j = (3, 11) if kind == "labels" else (1, 6)
    a, b = z[:, i], z[:, j]
    together = {
        "product": a * b / 1.6,
        "xor": np.sign(a * b),
        "threshold": 2.0 * ((a > 0.2) & (b > 0)),
        "labels": np.where((a + b) % 2, 1.0, -1.0),
    }[kind]
    frame["y"] = 0.6 * together + noise + 2 * np.tanh(z[:, 0]) + z[:, 9] ** 2 + (z[:, 7] == 1)
    pair, qvalue = _first(explore(frame, target="y", verbose=0))
    assert pair == {f"c{i}", f"c{j}"}
    assert qvalue < 1e-6


@pytest.mark.parametrize("target", ["sum", "growth", "heavy", "binary", "classes", "spread"])
def test_sums_on_some_scale_are_no_interaction(target):
    frame, z, noise = _mixed(6)
    mean = z[:, 0] + np.where(z[:, 4] > 0, 1.0, -1.0) + z[:, 9] ** 2 / 2 + (z[:, 7] == 1)
    frame["y"] = {
        "sum": mean + noise,
        "growth": np.exp(mean + noise),
        "heavy": mean + np.random.default_rng(1).standard_t(3, size=len(mean)),
        "binary": np.where(mean + 0.5 * np.random.default_rng(1).logistic(size=len(mean)) > 1, "yes", "no"),
        "classes": np.array(list("xyz"))[np.digitize(mean + noise, [0, 1.5])],
        "spread": mean + noise * np.exp(0.4 * z[:, 1] + 0.4 * z[:, 6]),
    }[target]
    found = explore(frame, target="y", verbose=0).interactions
    assert len(found) == 30
    assert min(found.columns["qvalue"]) > 0.05


def test_classes_and_heavy_tails_show_their_pair():
    frame, z, noise = _mixed(7)
    signal = np.sign(z[:, 1] * z[:, 6])
    frame["y"] = np.array(list("uvw"))[np.digitize(0.6 * signal + noise, [-0.5, 0.5])]
    assert _first(explore(frame, target="y", verbose=0))[0] == {"c1", "c6"}
    frame["y"] = signal + np.random.default_rng(2).standard_cauchy(size=len(noise))
    pair, qvalue = _first(explore(frame, target="y", verbose=0))
    assert pair == {"c1", "c6"}
    assert qvalue < 1e-6


def test_rows_that_miss_either_column_are_left_out():
    frame, z, noise = _mixed(8)
    frame["y"] = np.sign(z[:, 1] * z[:, 6]) + noise
    frame.loc[frame.index % 3 == 0, "c1"] = np.nan
    frame.loc[frame.index % 5 == 0, "c6"] = np.nan
    frame.loc[frame.index % 7 == 0, "y"] = np.nan
    found = explore(frame, target="y", verbose=0).interactions
    assert {found.columns["a"][0], found.columns["b"][0]} == {"c1", "c6"}
    assert found.columns["rows"][0] == int(frame[["c1", "c6"]].notna().all(axis=1).sum())


def test_merged_halves_are_one_run_with_the_same_pairs():
    frame, z, noise = _mixed(9)
    frame["y"] = np.sign(z[:, 1] * z[:, 6]) + noise
    whole = explore(frame, target="y", verbose=0)
    halves = [explore(part, like=whole, verbose=0) for part in (frame[:1100], frame[1100:])]
    merged = halves[0].merge(halves[1])
    for name, values in whole.interactions.columns.items():
        np.testing.assert_array_equal(merged.interactions.columns[name], values)
    with pytest.raises(ValueError, match="merge about one target, got 'y' and 'c1'"):
        halves[0].merge(explore(frame[1100:], target="c1", like=whole, verbose=0))


def test_a_saved_exploration_tells_the_same(tmp_path):
    frame, z, noise = _mixed(9)
    frame["y"] = np.where(np.sign(z[:, 1] * z[:, 6]) + noise > 0, "up", "down")
    known = explore(frame, target="y", verbose=0)
    known.save(tmp_path / "e.featgeo")
    again = fg.load(tmp_path / "e.featgeo")
    assert isinstance(again, Exploration)
    assert again.interactions.to_dict() == known.interactions.to_dict()
    assert again.interaction("c6", "c1").to_dict() == known.interaction("c1", "c6").to_dict()


def test_cells_say_where_the_target_differs():
    rng = np.random.default_rng(3)
    a, b = rng.choice(["left", "right"], 4000), rng.choice(["up", "down"], 4000)
    same = (a == "left") == (b == "up")
    frame = pd.DataFrame({"a": a, "b": b, "y": np.where(rng.random(4000) < np.where(same, 0.8, 0.2), "hit", "miss")})
    known = explore(frame, target="y", verbose=0)
    cells = known.interaction("a", "b").to_dict()
    assert len(cells) == 4
    for cell in cells:
        assert cell["y hit (share)"] == pytest.approx(
            0.3 if (cell["a"] == "left") == (cell["b"] == "up") else -0.3, abs=0.03
        )
        assert cell["y hit (share)"] == pytest.approx(-cell["y miss (share)"])
    assert sum(cell["share"] for cell in cells) == pytest.approx(1)
    assert (
        "y hit (share)" in known.interactions.columns["where"][0] or "y miss" in known.interactions.columns["where"][0]
    )


def test_without_a_target_the_title_says_so():
    frame, _, noise = _mixed(1, n=200)
    known = explore(frame, verbose=0)
    assert len(known.interactions) == 0
    assert "no target was named" in str(known.interactions)
    with pytest.raises(ValueError, match="Name a target"):
        known.interaction("c1", "c2")
    two = explore(frame[["c1"]].assign(y=noise), target="y", verbose=0)
    assert "there are no two other columns" in str(two.interactions)


@pytest.mark.parametrize("n", [45, 100])
def test_few_rows_tell_nothing_and_do_not_fail(n):
    frame, _, noise = _mixed(2, n=n)
    for target in (noise, np.where(noise > 0, "a", "b")):
        found = explore(frame.assign(y=target), target="y", verbose=0).interactions
        assert all(qvalue > 0.01 for qvalue in found.columns["qvalue"])


def test_a_copy_of_the_target_leaves_no_interaction():
    frame, z, noise = _mixed(3, n=1000)
    frame["y"] = z[:, 0] * z[:, 1] + noise
    frame["copy"] = frame["y"]
    found = explore(frame, target="y", verbose=0).interactions
    assert not any("copy" in (row["a"], row["b"]) and row["qvalue"] <= 0.05 for row in found)


def test_cells_are_merged_and_found_again():
    rng = np.random.default_rng(0)
    numbers = number_cells("x", "number", rng.normal(size=5000), 5000, 64)
    cells = numbers.of_numbers(rng.normal(size=5000))
    merged = coarser(numbers, np.bincount(cells, minlength=numbers.size), 8)
    values = rng.normal(size=100)
    assert merged.n_values == 8
    np.testing.assert_array_equal(places_in(numbers, merged)[numbers.of_numbers(values)], merged.of_numbers(values))
    labels = label_cells("l", {letter: 100 - i for i, letter in enumerate("abcdefghijkl")}, 64)
    few = coarser(labels, np.r_[np.full(12, 10), 0, 0], 4)
    assert few.labels == ("a", "b", "c")
    assert places_in(labels, few).tolist() == [0, 1, 2, *[3] * 10, 4]


def test_residuals_are_orthogonal_to_the_functions_that_were_summed():
    _, z, noise = _mixed(4, n=2000)
    columns = [number_cells(f"c{i}", "number", z[:, i], 2000, 64) for i in (0, 1, 4)]
    y = z[:, 0] + z[:, 1] ** 2 + noise
    columns.append(number_cells("y", "number", y, 2000, 64))
    cells = [column.of_numbers(values) for column, values in zip(columns, [*z[:, [0, 1, 4]].T, y], strict=True)]
    additive, sums = additive_of(columns, cells, 3)
    left = additive.residuals(cells)
    used = np.isin(sums.column, additive.used)
    assert set(additive.used) >= {0, 1}
    assert np.abs(sums.values[:, used].T @ left[:, 0] / 2000).max() < 2e-3
    assert left[:, 0].var() < 0.45


def test_tables_that_were_explored_apart_do_not_merge_their_interactions():
    frame = _rows_of(_finite_counts(0, (2, 2, 3)))
    frames = [frame, frame.assign(y=frame["y"].sample(frac=1, random_state=0).to_numpy())]
    first, second = (explore(frame, target="y", verbose=0) for frame in frames)
    with pytest.raises(ValueError, match=r"merge where the same interactions were looked at.*like=first"):
        first.merge(second)
    assert first.merge(explore(frames[1], like=first, verbose=0)).n_rows == sum(map(len, frames))


def test_a_target_that_the_sample_hardly_sees_tells_nothing():
    cells = [np.zeros(50, dtype=np.int64), np.arange(50) % 3, np.arange(50) % 2]
    columns = tuple(
        number_cells(name, "number", np.arange(k, dtype=float).repeat(20), 20 * k, 8)
        for name, k in zip("yab", (2, 3, 2), strict=True)
    )
    sums = Interactions.planned(columns, cells, 0, 10_000)
    sums.add(cells, np.zeros(50, dtype=np.int64))
    assert len(sums.pairs) == 0


def test_huge_numbers_and_dates_are_targets_like_others():
    frame, z, noise = _mixed(9, n=1500)
    signal = 2 * np.sign(z[:, 1] * z[:, 6]) + noise
    for target in (1e150 * signal, pd.Timestamp("2020-01-01") + pd.to_timedelta(signal, unit="D")):
        assert _first(explore(frame.assign(y=target), target="y", verbose=0))[0] == {"c1", "c6"}


def test_a_date_does_not_interact_with_its_parts_nor_given_columns_with_themselves_together():
    frame, z, noise = _mixed(9, n=1500)
    frame["when"] = pd.Timestamp("2020-01-01") + pd.to_timedelta(np.random.default_rng(0).integers(0, 900, 1500), "D")
    frame["y"] = noise + np.sign(z[:, 1] * z[:, 6])
    known = explore(frame, target="y", given=["c0", "c3"], verbose=0)
    names = {frozenset((row["a"], row["b"])) for row in known.interactions}
    assert frozenset(("c1", "c6")) in names
    assert all(sum(name.startswith("when") for name in pair) < 2 for pair in names)
    assert set().union(*names) <= {column.name for column in known.compared}


def test_products_are_orthogonal_to_functions_of_either_column_and_sums_agree_with_rows():
    frame, z, noise = _mixed(4, n=4000)
    frame["y"] = noise + z[:, 0] * z[:, 5]
    known = explore(frame, target="y", verbose=0)
    sums = known.three_way
    place = next(k for k, pair in enumerate(sums.pairs) if set(pair) == {0, 5})
    i, j = sums.pairs[place]
    assert known.counts.columns[i].n_values > 64
    products = Products.of(sums, known.counts, i, j)
    cells = [known.counts.columns[k].of_numbers(frame[f"c{k}"].to_numpy()) for k in (i, j)]
    own = [places_in(sums.columns[k], sums.own[k])[at] for k, at in zip((i, j), cells, strict=True)]
    values = products.values[own[0], own[1]]
    for side in own:
        means = np.eye(65)[side].T @ values
        np.testing.assert_allclose(means, 0, atol=1e-7)
    every = [
        column.of_numbers(frame[column.name].to_numpy())
        if column.kind == "number"
        else column.of_labels(*pd.factorize(frame[column.name])[:2])
        for column in known.counts.columns
    ]
    left = sums.additive.residuals(every)[:, 0]
    np.testing.assert_allclose(products.moments(sums, place, 0).sum(axis=0), values.T @ left, atol=1e-6)
