"""Columns of a table beside each other, and what to know of them: each alert on a small table."""

import numpy as np
import pandas as pd
import pytest

from featgeo.explore import explore
from featgeo.explore.overview import told_share


def alerts(frame, **how):
    return explore(frame, **how).alerts


def row(frame, name, **how):
    return next(one for one in explore(frame, **how).columns if one["name"] == name)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def test_a_plain_table_has_no_alerts(rng):
    x = rng.normal(size=500)
    frame = pd.DataFrame({"x": x, "y": x + rng.normal(size=500), "z": rng.choice(list("ab"), 500)})
    assert alerts(frame) == []
    assert row(frame, "x")["strongest_partner"] == "y"
    assert row(frame, "x")["n_partners"] == 1
    assert row(frame, "z")["strongest_partner"] == ""


def test_columns_without_values_or_with_one():
    frame = pd.DataFrame({"x": np.arange(50) % 7, "one": 1, "none": [None] * 50})
    assert alerts(frame)[:2] == [
        "'one' has one value only, and is not compared with others.",
        "'none' has no value at all, and is not compared with others.",
    ]
    assert row(frame, "none")["missing_share"] == 1


def test_identifiers_are_set_aside_and_brought_back(rng):
    n = 300
    frame = pd.DataFrame({"x": rng.normal(size=n), "id": 1000 + rng.permutation(n), "key": [f"k{i}" for i in range(n)]})
    aside = {one["name"]: one["aside"] for one in explore(frame).columns}
    assert aside == {"x": "", "id": "identifier", "key": "identifier"}
    assert any("'id' names its rows" in text and "types={'id': 'number'}" in text for text in alerts(frame))
    assert row(frame, "id", types={"id": "number"})["aside"] == ""
    assert row(frame, "id", target="id")["aside"] == ""


def test_numbers_that_do_not_count_the_rows_are_no_identifiers(rng):
    n = 300
    frame = pd.DataFrame({"x": rng.normal(size=n), "gaps": 2 * np.arange(n), "twice": np.arange(n) // 2})
    assert not any("identifier" in text for text in alerts(frame))


def test_rare_labels_are_no_identifiers(rng):
    frame = pd.DataFrame({"x": rng.normal(size=60), "pairs": [f"p{i // 2}" for i in range(60)]})
    assert row(frame, "pairs")["aside"] == "rare"


def test_numbers_of_few_rows(rng):
    frame = pd.DataFrame({"x": rng.normal(size=300), "few": [*rng.normal(size=15), *[np.nan] * 285]})
    assert row(frame, "few")["aside"] == "few rows"
    assert "'few' has too few rows to be cut in two, and is not compared with others." in alerts(frame)
    assert row(pd.DataFrame({"x": rng.normal(size=25), "y": rng.normal(size=25)}), "x")["aside"] == ""
    with pytest.raises(ValueError, match="10 rows to a cell, and none of these 1 does over 12 rows"):
        explore(pd.DataFrame({"x": rng.normal(size=12)}))


def test_columns_that_vary_only_later(rng):
    first = explore(pd.DataFrame({"x": rng.normal(size=100), "late": 1}))
    later = explore(pd.DataFrame({"x": rng.normal(size=100), "late": rng.normal(size=100)}), like=first)
    assert "'late' did not vary in the table that was explored first, and is not compared with others." in later.alerts
    assert "'late' has one value only" not in " ".join(first.merge(later).alerts)


def test_words_among_numbers(rng):
    texts = [str(i % 40) for i in range(400)]
    texts[17] = "oops"
    frame = pd.DataFrame({"x": rng.normal(size=400), "w": texts})
    assert any("'w' has one value that is no number ('oops' in row 17)" in text for text in alerts(frame))
    (text,) = alerts(frame, types={"w": "number"})
    assert text == "'w' has one value that is no number ('oops' in row 17): taken as missing."


def test_copies_and_columns_that_say_the_same(rng):
    n = 2000
    x = rng.normal(size=n)
    frame = pd.DataFrame({
        "celsius": x, "fahrenheit": 32 + 1.8 * x, "near": -x + 0.02 * rng.normal(size=n),
        "yes": np.where(x > 0, "y", "n"), "ja": np.where(x > 0, "j", "n"),
    })  # fmt: skip
    found = alerts(frame)
    assert "'fahrenheit' repeats 'celsius': each of its values goes with one value of 'celsius' alone." in found
    assert "'ja' repeats 'yes': each of its values goes with one value of 'yes' alone." in found
    assert "'celsius', 'fahrenheit' and 'near' tell nearly all of each other: one of them may do." in found
    assert row(frame, "fahrenheit")["duplicate_of"] == "celsius"
    assert row(frame, "celsius")["duplicate_of"] == ""


def test_what_follows_from_another_column_does_not_tell_it_back(rng):
    city = rng.choice(60, 4000)
    frame = pd.DataFrame(
        {"city": np.char.add("city ", city.astype(str)), "state": np.char.add("s", (city % 7).astype(str))}
    )
    explored = explore(frame)
    assert "'state' follows from 'city' nearly always: 100.0% of it is known on held-out rows." in explored.alerts
    told = {one["name"]: one["determined_by"] for one in explored.columns}
    assert told == {"city": "", "state": "city"}
    assert not any("of each other" in text for text in explored.alerts)


def test_guesses_are_made_without_the_rows_that_judge_them():
    """Cells of one row each tell nothing of another row."""
    folds, n = 5, 100
    table = np.zeros((folds, n, 2), dtype=np.int64)
    rng = np.random.default_rng(1)
    table[np.arange(n) % folds, np.arange(n), rng.integers(0, 2, n)] = 1
    assert told_share(table) < 0.3


def test_missing_values_that_depend_on_others(rng):
    n = 2000
    x, noise = rng.normal(size=n), rng.normal(size=n)
    y = np.where(rng.random(n) < np.where(x > 1, 0.5, 0.05), np.nan, noise)
    at_random = np.where(rng.random(n) < 0.1, np.nan, noise**2)
    frame = pd.DataFrame({"x": x, "y": y, "z": rng.normal(size=n), "at random": at_random})
    explored = explore(frame)
    (text,) = [text for text in explored.alerts if text.startswith("Whether")]
    assert text.startswith("Whether 'y' is missing depends on 'x' (strength 0.")
    depends = {one["name"]: one["missing_depends_on"] for one in explored.columns}
    assert depends == {"x": "", "y": "x", "z": "", "at random": ""}


def test_columns_that_are_missing_together(rng):
    n = 500
    gone = rng.random(n) < 0.2
    frame = pd.DataFrame(
        {name: np.where(gone, np.nan, rng.normal(size=n)) for name in "ab"} | {"c": rng.normal(size=n)}
    )
    assert row(frame, "a")["missing_depends_on"] == "b"
    assert row(frame, "a")["missing_strength"] == pytest.approx(1, abs=0.01)


def test_missing_at_random_is_rarely_reported(rng):
    reported = 0
    for _ in range(60):
        x = rng.normal(size=(300, 3))
        x[rng.random(x.shape) < 0.15] = np.nan
        reported += any(text.startswith("Whether") for text in alerts(pd.DataFrame(x, columns=list("abc"))))
    assert reported <= 60 * 0.05 + 3 * np.sqrt(60 * 0.05 * 0.95)


def test_pooled_labels(rng):
    labels = ["often"] * 300 + [f"rare {i // 2}" for i in range(100)]
    frame = pd.DataFrame({"x": rng.normal(size=400), "label": labels})
    assert alerts(frame) == [
        "'label': 50 labels are too rare for cells of their own; their 100 rows (25.0%) count as '(others)'."
    ]


def test_labels_that_came_later(rng):
    def month(labels):
        return pd.DataFrame({"x": rng.normal(size=300), "label": rng.choice(labels, 300)})

    first = explore(month(["a", "b"]))
    table = month(["a", "b", "c"])
    later = explore(table, like=first)
    new = int((table.label == "c").sum())
    expected = f"'label': {new} rows have labels that the first exploration had not seen."
    assert expected in later.alerts
    assert expected in first.merge(later).alerts
    assert first.alerts == []


def test_repeated_rows(rng):
    frame = pd.DataFrame({"x": rng.normal(size=100), "label": rng.choice(["a", "b"], 100)})
    again = pd.concat([frame, frame.iloc[:7]])
    assert alerts(again) == ["7 of the 107 rows are equal to earlier ones."]
    assert alerts(again.assign(id=np.arange(107) * 3)) == []


def test_alerts_stand_on_the_card(rng):
    explored = explore(pd.DataFrame({"x": rng.normal(size=100), "<one>": 1}))
    assert "! '<one>' has one value only" in repr(explored)
    assert "&lt;one&gt;" in explored._repr_html_()
