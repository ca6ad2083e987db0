"""`featgeo fit`: a model that predicts one column of a file from others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from featgeo.cli import options
from featgeo.cli.manners import polite, working
from featgeo.cli.options import AsJson, Delimiter, Encoding, File, Types, columns_option
from featgeo.cli.printing import Grid, answer, number
from featgeo.files import check_can_be_written
from featgeo.watch import tell

if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-untyped]

    from featgeo.cli.tables import Loaded

SEED = 0  # of folds and samples: the same file gives the same model
FEW_VALUES = 10  # whole numbers of so few values may be labels, and the user is told how to say so


@polite
def fit(
    file: File,
    target: Annotated[str, columns_option("The column to predict.", several=False)],
    output: Annotated[Path, typer.Option("--output", "-o", help="The file for the model.", metavar="MODEL")],
    x: Annotated[str | None, columns_option("Columns to predict from; all others when not given.")] = None,
    orthogonal_to: Annotated[
        str | None,
        columns_option("Columns to be uncorrelated with, which are due in predictions as well."),
    ] = None,
    types: Types = None,
    rows: Annotated[
        int | None, typer.Option(min=2, help="Fit to so many rows, drawn at random from the whole file.", metavar="N")
    ] = None,
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    as_json: AsJson = False,
) -> None:
    """Learn to predict a column of a file, and save the model.

    A column of labels is predicted by its most probable label, one of numbers by its mean.
    Rows without the target are left out.
    """
    given = options.listed(orthogonal_to, "--orthogonal-to")
    roles = Roles(target, tuple(options.listed(x, "--x")), tuple(given), options.kinds_of(types))
    options.check_not_the_same(output, file)
    check_can_be_written(output)
    with working("fit") as notes:
        from featgeo.cli.tables import loaded
        from featgeo.reading.source import open_source

        with open_source(file, columns=roles.columns, encoding=encoding, delimiter=delimiter) as source:
            data = loaded(source, roles.types, rows, SEED)
        model, frame = _learned(data, roles)
        model.save(output)
    found = _found(model, frame, data, roles) | {"model": str(output)}
    answer(found, _shown(found), [*data.notes, *_remarks(data, roles), *notes], as_json)


@dataclass(frozen=True)
class Roles:
    """Which columns play which part.

    Attributes:
        target: What is predicted.
        x: What it is predicted from; all other columns where none is named.
        given: What predictions are to be uncorrelated with.
        types: Kinds of columns that the user says.
    """

    target: str
    x: tuple[str, ...]
    given: tuple[str, ...]
    types: dict[str, str]

    def columns(self, names: Sequence[str]) -> list[str]:
        """Those to read, of all names of a file."""
        options.check_known([self.target], names, "--target")
        options.check_known(self.x, names, "--x")
        options.check_known(self.given, names, "--orthogonal-to")
        options.check_known(list(self.types), names, "--types")
        options.check_not_skipped([self.target, *self.x, *self.given], self.types)
        options.check_apart({"--target": [self.target], "--x": self.x})
        options.check_apart({"--target": [self.target], "--orthogonal-to": self.given})
        skipped = {name for name, kind in self.types.items() if kind == "skip"}
        wanted = {*(self.x or names), self.target, *self.given} - skipped
        if not self.x and not wanted - {self.target, *self.given}:
            raise ValueError("A prediction needs columns to predict from, and none is left. Name some by --x.")
        return [name for name in names if name in wanted]

    def of_x(self, frame: pd.DataFrame) -> list[str]:
        """The columns to predict from, of those that were read."""
        return list(self.x) or [name for name in frame.columns if name not in {self.target, *self.given}]


def _learned(data: Loaded, roles: Roles) -> tuple[Any, pd.DataFrame]:
    """A fitted model, and the rows it was fitted to."""
    column = data.sketch.columns[roles.target]
    if column.kind == "date":
        raise ValueError(
            f"The target must hold numbers or labels, and {roles.target!r} holds dates. Make a number of it, such as "
            "days since the first."
        )
    frame = data.frame[data.frame[roles.target].notna()].reset_index(drop=True)
    if frame.empty:
        raise ValueError(f"A fit needs rows that have the target, and {roles.target!r} is missing in all. Check it.")
    if column.kind == "label" and 2 * column.n_distinct > len(frame):
        raise ValueError(
            f"Labels to predict must repeat, and {roles.target!r} has {column.n_distinct:,} different ones in "
            f"{len(frame):,} rows. Choose another target, or --types {roles.target}=number if they are numbers."
        )
    tell("learning")
    from featgeo.models import FeatureClassifier, FeatureRegressor  # torch, once the file is read

    kind = FeatureClassifier if column.kind == "label" else FeatureRegressor
    given = frame[list(roles.given)] if roles.given else None
    y = frame[roles.target].astype(object) if column.kind == "label" else frame[roles.target]
    model = kind(random_state=SEED).fit(frame[roles.of_x(frame)], y, given)
    model.date_forms_ = data.date_forms
    return model, frame


def _remarks(data: Loaded, roles: Roles) -> list[str]:
    column = data.sketch.columns[roles.target]
    remarks = []
    if column.kind == "number" and column.whole and column.n_distinct <= FEW_VALUES and column.distinct_exact:
        remarks.append(
            f"{roles.target!r} holds {column.n_distinct} different whole numbers, and is predicted as a number. If "
            f"they are labels, say --types {roles.target}=label."
        )
    without = int(data.frame[roles.target].isna().sum())
    if without:
        remarks.append(f"{without:,} rows have no {roles.target!r}, and were left out.")
    return remarks


def _found(model: Any, frame: pd.DataFrame, data: Loaded, roles: Roles) -> dict[str, Any]:
    """What is to be said of a fit."""
    report = model.report()
    labels = hasattr(model, "classes_")
    strengths = (report.sigma, report.held_out_sigma, report.held_out_error, report.effective_rows)
    heads = ("sigma", "held_out", "held_out_error", "rows_behind")
    x = roles.of_x(frame)
    return {
        "target": roles.target,
        "predicts": "labels" if labels else "numbers",
        "classes": model.classes_ if labels else None,
        "rows": len(frame),
        "rows_in_file": data.sketch.n_rows,
        "x": {name: data.kinds[name] for name in x},
        "orthogonal_to": {name: data.kinds[name] for name in roles.given},
        "modes": [dict(zip(heads, map(float, mode), strict=True)) for mode in zip(*strengths, strict=True)],
        "solver": report.solver,
        "spaces": {"x": report.spaces[0], "y": report.spaces[1]},
        "ridge": report.ridge,
        "score": "accuracy" if labels else "R2",
        "held_out_score": getattr(model, "held_out_score_", None),
        "held_out_h_score": report.held_out_score,
        "doubts": report.doubts,
    }


def _shown(found: dict[str, Any]) -> list[str | Grid]:
    beyond = f", beyond {', '.join(found['orthogonal_to'])}" if found["orthogonal_to"] else ""
    rows = [
        (str(i), number(mode["sigma"]), number(mode["held_out"]), number(mode["held_out_error"], 2),
         f"{mode['rows_behind']:.0f}")
        for i, mode in enumerate(found["modes"], start=1)
    ]  # fmt: skip
    return [
        f"{found['target']} ({found['predicts']}) from {len(found['x'])} columns{beyond}, {found['rows']:,} rows",
        Grid(("mode", "sigma", "held-out", "(s.e.)", "rows behind"), rows, words=0),
        f"spaces: {found['spaces']['x']} | {found['spaces']['y']} (solver {found['solver']}, ridge {found['ridge']:g})",
        f"held-out {found['score']}: {number(found['held_out_score'])}, held-out H-score: "
        f"{number(found['held_out_h_score'])}",
        *(f"! {doubt}" for doubt in found["doubts"]),
        f"Saved to {found['model']}",
    ]
