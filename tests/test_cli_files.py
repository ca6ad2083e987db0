"""`fit`, `predict` and `test` on small files: what they find, what they write, and what they refuse."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import featgeo
from featgeo import cli
from featgeo.cli import predictions
from featgeo.cli.scores import NumberScore

COMMAND = [sys.executable, "-c", "from featgeo.cli import main; main()"]


def run(*words, code=0, stdin=None):
    found = CliRunner().invoke(cli.main, [str(word) for word in words], input=stdin)
    assert found.exit_code == code, found.output
    return found


def told(*words, stdin=None):
    return json.loads(run(*words, "--json", stdin=stdin).stdout)


def table(n=600, seed=0):
    """y depends on a, [b] and when; both sexes have their own level; keys say nothing."""
    rng = np.random.default_rng(seed)
    a, b, sex = rng.normal(size=n), rng.choice(["u", "v,w"], n), rng.choice(["f", "m"], n)
    day = rng.integers(0, 700, n)
    y = a**2 + (b == "u") + (sex == "m") + np.sin(day / 111) + 0.3 * rng.normal(size=n)
    when = (pd.Timestamp("2020-01-01") + pd.to_timedelta(day, unit="D")).strftime("%d/%m/%Y")
    label = np.where(y > np.median(y), "high", "low [it]")
    return pd.DataFrame(
        {"key": [f"k{i}" for i in range(n)], "a": a, "[b]": b, "when": when, "sex": sex, "y": y, "level": label}
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A file to learn from, one of other rows, and a model of numbers and one of labels."""
    folder = tmp_path_factory.mktemp("files")
    known = table()
    known.loc[::10, "a"] = np.nan
    known.loc[:4, "y"] = np.nan
    known.to_csv(folder / "known.csv", index=False)
    fresh = table(seed=1)
    fresh.to_csv(folder / "fresh.csv", index=False)
    x = ["--x", "a,[b],when"]
    numbers = told("fit", folder / "known.csv", "--target", "y", *x, "-o", folder / "y.fg")
    labels = told(
        "fit", folder / "known.csv", "--target", "level", *x, "--orthogonal-to", "sex", "-o", folder / "level.fg"
    )
    (folder / "said.json").write_text(json.dumps({"numbers": numbers, "labels": labels}))
    return folder


def test_a_fit_says_what_it_learned_and_the_model_is_that_of_the_library(folder):
    said = json.loads((folder / "said.json").read_text())["numbers"]
    assert said["x"] == {"a": "number", "[b]": "label", "when": "date"}
    assert (said["predicts"], said["rows"], said["rows_in_file"]) == ("numbers", 595, 600)
    assert "5 rows have no 'y', and were left out." in said["notes"]
    model = featgeo.load(folder / "y.fg")
    assert isinstance(model, featgeo.FeatureRegressor)
    assert said["held_out_score"] == model.held_out_score_ > 0.5
    assert [mode["sigma"] for mode in said["modes"]] == model.singular_values_.tolist()
    assert model.target_name_ == "y"
    assert model.date_forms_ == {"when": "%d/%m/%Y"}


def test_predictions_are_those_of_the_model_row_by_row(folder, tmp_path):
    out = tmp_path / "out.csv"
    words = ["predict", folder / "y.fg", folder / "fresh.csv", "-o", out]
    said = told(*words, "--quantiles", "0.05,0.5,0.95", "--keep", "key,when")
    fresh, written = table(seed=1), pd.read_csv(out)
    assert list(written) == ["key", "when", "prediction", "quantile_0.05", "quantile_0.5", "quantile_0.95"]
    pd.testing.assert_frame_equal(written[["key", "when"]], fresh[["key", "when"]])
    x = fresh[["a", "[b]", "when"]].assign(when=pd.to_datetime(fresh["when"], format="%d/%m/%Y").astype("M8[us]"))
    given = featgeo.load(folder / "y.fg").given(x)
    np.testing.assert_allclose(written["prediction"], given.mean(), rtol=1e-9)
    np.testing.assert_allclose(written.filter(like="quantile"), given.quantile([0.05, 0.5, 0.95]), rtol=1e-9)
    score = said["score"]
    assert score["rows"] == said["rows"] == 600
    lost = np.sum((fresh["y"] - written["prediction"]) ** 2) / np.sum((fresh["y"] - fresh["y"].mean()) ** 2)
    assert score["value"] == pytest.approx(1 - lost)
    assert score["value"] > 0.5
    shares = [part["share_below"] for part in score["quantiles"]]
    assert shares == pytest.approx([np.mean(fresh["y"] <= written[f"quantile_{q}"]) for q in (0.05, 0.5, 0.95)])
    assert said["ignored"] == ["sex", "level"]


def test_probabilities_of_labels_come_with_their_names_and_the_given_column_is_due(folder, tmp_path):
    out = tmp_path / "out.parquet"
    said = told("predict", folder / "level.fg", folder / "fresh.csv", "-o", out, "--proba")
    fresh, written = table(seed=1), pd.read_parquet(out)
    assert list(written) == ["prediction", "probability_high", "probability_low [it]"]
    np.testing.assert_allclose(written.iloc[:, 1:].sum(axis=1), 1)
    assert said["score"]["value"] == np.mean(written["prediction"] == fresh["level"])
    fresh.drop(columns=["sex", "level"]).to_csv(tmp_path / "less.csv", index=False)
    refused = run("predict", folder / "level.fg", tmp_path / "less.csv", "-o", tmp_path / "no.csv", code=2)
    assert "lacks 'sex'. Add" in refused.stderr
    assert not (tmp_path / "no.csv").exists()


def test_batches_of_any_size_give_the_same_file(folder, tmp_path, monkeypatch):
    words = ["predict", folder / "level.fg", folder / "fresh.csv", "--proba", "-o"]
    whole = told(*words, tmp_path / "whole.csv")
    monkeypatch.setattr(predictions, "CELLS_AT_ONCE", 14)  # seven rows at a time
    pieces = told(*words, tmp_path / "pieces.csv")
    assert pieces["score"] == whole["score"]
    a, b = (pd.read_csv(tmp_path / name) for name in ("whole.csv", "pieces.csv"))
    pd.testing.assert_frame_equal(a, b, rtol=1e-12)


def test_the_same_rows_in_parquet_and_on_standard_input_are_predicted_the_same(folder, tmp_path):
    fresh = table(seed=1)
    dated = fresh.assign(when=pd.to_datetime(fresh["when"], format="%d/%m/%Y"))
    dated.astype({"sex": "category", "[b]": "category"}).to_parquet(tmp_path / "fresh.parquet")
    text = (folder / "fresh.csv").read_bytes()
    from_text = run("predict", folder / "y.fg", "-", "-o", "-", stdin=text)
    run("predict", folder / "y.fg", tmp_path / "fresh.parquet", "-o", tmp_path / "out.csv")
    assert from_text.stdout == (tmp_path / "out.csv").read_text()
    assert "600 rows predicted" in from_text.stderr
    assert "R2 of y: " in from_text.stderr


def test_what_is_unlike_the_fit_counts_as_missing_and_is_said(folder, tmp_path):
    strange = table(n=50, seed=2).drop(columns="y").astype({"a": object})
    strange.loc[:2, "a"] = "many"
    strange.loc[:6, "[b]"] = "x"
    strange.loc[7, "when"] = "soon"
    strange.to_csv(tmp_path / "strange.csv", index=False)
    said = told("predict", folder / "y.fg", tmp_path / "strange.csv", "-o", tmp_path / "out.csv")
    assert said["unread"] == {"a": 3, "when": 1}
    assert said["unknown_labels"] == {"[b]": 7}
    assert said["score"] is None
    assert len(said["notes"]) == 4  # and the columns that are ignored
    assert len(pd.read_csv(tmp_path / "out.csv")) == 50


def test_another_column_of_the_same_name_is_refused_and_leaves_what_was_there(folder, tmp_path):
    out = tmp_path / "out.csv"
    out.write_text("old")
    other = table(n=50).assign(a="words")
    other.to_csv(tmp_path / "other.csv", index=False)
    refused = run("predict", folder / "y.fg", tmp_path / "other.csv", "-o", out, code=2)
    assert "Column 'a' held numbers in the fit, and none of its 50 values here is one." in refused.stderr
    other.assign(a=pd.Timestamp("2020-01-01")).to_parquet(tmp_path / "other.parquet")
    refused = run("predict", folder / "y.fg", tmp_path / "other.parquet", "-o", out, code=2)
    assert "held numbers in the fit, and holds timestamp" in refused.stderr
    assert out.read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other.csv", "other.parquet", "out.csv"]


WRONG_PREDICTIONS = {
    "an ending": (["y.fg", "-o", "OUT.txt"], "must end in .parquet or .csv"),
    "no folder": (["y.fg", "-o", "no/such/out.csv"], "A file needs a folder that is there"),
    "quantiles of labels": (["level.fg", "-o", "OUT.csv", "--quantiles", "0.5"], "Say --proba instead"),
    "probabilities of numbers": (["y.fg", "-o", "OUT.csv", "--proba"], "Say --quantiles instead"),
    "a level": (["y.fg", "-o", "OUT.csv", "--quantiles", "5,95"], "must be between 0 and 1, got 5"),
    "no level": (["y.fg", "-o", "OUT.csv", "--quantiles", "low"], "must be numbers with commas"),
    "a level twice": (["y.fg", "-o", "OUT.csv", "--quantiles", "0.5,0.50"], "names a level twice"),
    "a column to keep": (["y.fg", "-o", "OUT.csv", "--keep", "kye"], "Is it 'key'?"),
    "no model": (["fresh.csv", "-o", "OUT.csv"], "is not a featgeo model"),
    "a missing model": (["no.fg", "-o", "OUT.csv"], "There is no file"),
    "the input": (["y.fg", "-o", "fresh.csv"], "would replace"),
    "two documents": (["y.fg", "-o", "-", "--json"], "not both"),
}


@pytest.mark.parametrize("words", [("no.fg", "fresh.csv"), ("y.fg", "no.csv")])
def test_files_that_are_not_there_are_missed_at_once(folder, words):
    """Before torch is imported, which takes seconds."""
    arguments = ["predict", *(str(folder / name) for name in words), "-o", str(folder / "out.csv")]
    code = (
        "import sys, typer.testing as t; from featgeo.cli import main; "
        f"print(t.CliRunner().invoke(main, {arguments}).exit_code, 'torch' in sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603
    assert ran.stdout.split() == ["2", "False"]


@pytest.mark.parametrize("case", WRONG_PREDICTIONS)
def test_what_cannot_be_predicted_is_refused_before_anything_is_written(folder, monkeypatch, case):
    monkeypatch.chdir(folder)
    (model, *others), message = WRONG_PREDICTIONS[case]
    before = sorted(folder.iterdir())
    refused = run("predict", model, "fresh.csv", *others, code=2)
    assert message in refused.stderr.replace("\n", " ")
    assert refused.stdout == ""
    assert sorted(folder.iterdir()) == before


WRONG_FITS = {
    "no such target": (["--target", "Y"], "--target must name columns, and the file has no 'Y'. Is it 'y'?"),
    "the target as x": (["--target", "y", "--x", "a,y"], "'y' is in --target and in --x"),
    "a date as target": (["--target", "when", "--x", "a"], "'when' holds dates"),
    "keys as target": (["--target", "key", "--x", "a"], "Labels to predict must repeat"),
    "a kind": (["--target", "y", "--types", "a=words"], "a kind is one of number, label, date, skip"),
    "a kind that does not fit": (["--target", "y", "--types", "sex=number"], "none of its 600 values is one"),
    "a target that is skipped": (["--target", "y", "--types", "y=skip"], "--types skips 'y'"),
    "nothing left": (["--target", "y", "--orthogonal-to", "key,a,[b],when,sex,level"], "none is left"),
    "a missing file": (["--target", "y"], "is not. Check the path"),
    "a folder as model": (["--target", "y", "-o", "."], "is a folder. Add a file name"),
}


@pytest.mark.parametrize("case", WRONG_FITS)
def test_what_cannot_be_fitted_is_refused_and_no_model_is_written(folder, monkeypatch, case):
    monkeypatch.chdir(folder)
    words, message = WRONG_FITS[case]
    file = "no.csv" if case == "a missing file" else "known.csv"
    before = sorted(folder.iterdir())
    refused = run("fit", file, "-o", "new.fg", *words, code=2)
    assert message in refused.stderr.replace("\n", " ")
    assert sorted(folder.iterdir()) == before


def test_a_fit_to_some_rows_takes_them_from_the_whole_file_and_always_the_same(folder, tmp_path):
    words = ["fit", folder / "known.csv", "--target", "y", "--x", "a", "--rows", "200", "-o", tmp_path / "model"]
    first, second = told(*words), told(*words)
    assert first == second
    assert (first["rows_in_file"], first["rows"] <= 200, first["rows"] > 190) == (600, True, True)


def test_a_target_that_is_missing_everywhere_is_refused(tmp_path):
    (tmp_path / "x.csv").write_text("a,y\n" + "1,\n2,NA\n" * 20)
    refused = run("fit", tmp_path / "x.csv", "--target", "y", "-o", tmp_path / "model", code=2)
    assert "'y' is missing in all" in refused.stderr


def test_labels_that_are_written_as_numbers_are_pointed_out(folder, tmp_path):
    known = table(n=200)
    known["grade"] = (known["y"] > 1).astype(int)
    known.to_csv(tmp_path / "known.csv", index=False)
    words = ["fit", tmp_path / "known.csv", "--target", "grade", "--x", "a,sex", "-o", tmp_path / "model"]
    assert any("say --types grade=label" in note for note in told(*words)["notes"])
    said = told(*words, "--types", "grade=label")
    assert said["classes"] == ["0", "1"]
    assert told("predict", tmp_path / "model", tmp_path / "known.csv", "-o", tmp_path / "o.csv")["score"]["rows"] == 200


def test_the_table_of_a_fit_names_what_was_learned(folder, tmp_path):
    said = run("fit", folder / "known.csv", "--target", "level", "--x", "[b]", "-o", tmp_path / "model").stdout
    lines = said.splitlines()
    assert lines[0] == "level (labels) from 1 columns, 600 rows"
    assert lines[1] == "mode\tsigma\theld-out\t(s.e.)\trows behind"
    assert lines[-1] == f"Saved to {tmp_path / 'model'}"
    assert any(line.startswith("held-out accuracy: 0.") for line in lines)


def test_a_test_is_that_of_the_library(folder):
    fresh = table(seed=1)
    said = told("test", folder / "fresh.csv", "a,[b]", "y", "--given", "sex")
    known = featgeo.conditional_independence_test(fresh[["a", "[b]"]], fresh[["y"]], fresh[["sex"]], random_state=0)
    assert (said["pvalue"], said["statistic"]) == pytest.approx((known.pvalue, known.statistic))
    assert said["kinds"] == {"a": "number", "[b]": "label", "sex": "label", "y": "number"}
    plain = run("test", folder / "fresh.csv", "a", "[b]").stdout.splitlines()
    assert plain[0].split("\t") == ["A", "B", "given", "method", "p-value", "statistic", "rows"]
    found = featgeo.independence_test(fresh[["a"]], fresh[["[b]"]], random_state=0)
    assert plain[1].split("\t")[-3:] == [f"{found.pvalue:.3g}", f"{found.statistic:.4g}", "600"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["a", "a"], "A column has one part to play, and 'a' is in A and in B"),
        (["a", "z"], "B must name columns, and the file has no 'z'"),
        (["a", "y", "--types", "sex=label"], "--types must name columns, and the test has no 'sex'"),
        (["a", "y", "--types", "a=skip"], "--types skips 'a'"),
    ],
)
def test_tests_that_are_none_are_refused(folder, words, message):
    assert message in run("test", folder / "fresh.csv", *words, code=2).stderr.replace("\n", " ")


def test_a_word_among_numbers_makes_labels_and_is_said(tmp_path):
    frame = pd.DataFrame({"a": [*map(str, range(60)), "none"], "b": np.arange(61) % 7})
    frame.to_csv(tmp_path / "words.csv", index=False)
    said = told("test", tmp_path / "words.csv", "a", "b")
    assert said["kinds"] == {"a": "label", "b": "number"}
    assert "--types a=number" in said["notes"][0]
    said = told("test", tmp_path / "words.csv", "a", "b", "--types", "a=number")
    assert said["kinds"] == {"a": "number", "b": "number"}
    assert "1 of its values are none, such as 'none' in row 61, and count as missing." in said["notes"][0]


def test_whoever_leaves_the_pipe_ends_the_command_quietly(folder, tmp_path):
    table(n=400).assign(key="long " * 200).to_csv(tmp_path / "long.csv", index=False)  # more than a pipe holds
    words = ["predict", folder / "y.fg", tmp_path / "long.csv", "-o", "-", "--keep", "key"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([*COMMAND, *map(str, words)], **pipes) as process:  # noqa: S603 (our own)
        assert process.stdout.readline() == b'"key","prediction"\n'
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141


def test_squares_that_are_merged_keep_their_digits():
    rng = np.random.default_rng(0)
    y = 1e8 + rng.normal(size=1000)
    predicted = y + 0.1 * rng.normal(size=1000)
    score = NumberScore()
    for part in np.array_split(np.arange(1000), 7):
        score.add(y[part], predicted[part], np.empty((len(part), 0)))
    score.add(y[:0], y[:0], np.empty((0, 0)))
    assert score.value == pytest.approx(1 - np.sum((y - predicted) ** 2) / np.sum((y - y.mean()) ** 2), rel=1e-6)
    assert NumberScore().value is None
