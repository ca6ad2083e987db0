"""`featgeo predict`: what a model says of the rows of a file of any size, batch by batch."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from featgeo.cli import options
from featgeo.cli.manners import polite, working
from featgeo.cli.options import AsJson, Delimiter, Encoding, File, columns_option
from featgeo.cli.printing import Grid, answer, number
from featgeo.files import check_can_be_written, check_is_there

ENDINGS = (".parquet", ".csv")


@polite
def predict(
    model: Annotated[Path, typer.Argument(help="A file that `featgeo fit` wrote.", metavar="MODEL")],
    file: File,
    output: Annotated[
        Path,
        typer.Option("--output", "-o", help="OUT.parquet or OUT.csv; - for CSV on standard output.", metavar="OUT"),
    ],
    quantiles: Annotated[
        str | None, typer.Option(help="Of numbers, such as 0.05,0.5,0.95: a column for each.", metavar="Q,...")
    ] = None,
    proba: Annotated[bool, typer.Option("--proba", help="Of labels: a column with the probability of each.")] = False,
    keep: Annotated[str | None, columns_option("Columns of FILE to copy, such as its keys.")] = None,
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    as_json: AsJson = False,
) -> None:
    """Predict the target of a model for each row of a file of any size.

    The rows of OUT are those of FILE, in the same order.
    Where FILE has the target, too, the predictions are scored.
    """
    levels, kept = options.numbers_in(quantiles, "--quantiles"), options.listed(keep, "--keep")
    _check_output(output, file, str(model), as_json)
    with working("predict") as notes:
        check_is_there(model)
        from featgeo.reading.source import open_source, status_of

        if file != "-":
            status_of(file)
        from featgeo.cli.predictions import Asked, Predictions, written
        from featgeo.models import load  # torch, once both files are there

        asked = Asked.of(load(model), levels, proba, tuple(kept))
        with open_source(file, columns=asked.columns, encoding=encoding, delimiter=delimiter) as source:
            made = Predictions(asked, source)
            written(made, None if str(output) == "-" else output)
    found = {"model": str(model), "file": file, "output": str(output)} | made.summary()
    remarks = [*made.remarks(), *notes]
    answer(found, _shown(found), remarks, as_json, sys.stderr if str(output) == "-" else sys.stdout)


def _check_output(output: Path, file: str, model: str, as_json: bool) -> None:
    """Refuse, before any work, an output that cannot be written."""
    if str(output) == "-":
        if as_json:
            raise ValueError("Standard output takes the predictions or a JSON document, not both. Name a file by -o.")
        return
    if output.suffix.lower() not in ENDINGS:
        raise ValueError(f"The output must end in {' or '.join(ENDINGS)}, got {str(output)!r}. Name it so.")
    options.check_not_the_same(output, file, model)
    check_can_be_written(output)


def _shown(found: dict[str, Any]) -> list[str | Grid]:
    """How many rows, and how good where that is known."""
    shown: list[str | Grid] = [f"{found['rows']:,} rows predicted, written to {found['output']}"]
    score = found["score"]
    if score is not None:
        shown.append(f"{score['name']} of {found['target']}: {number(score['value'])} ({score['rows']:,} rows)")
        shares = [(number(part["level"]), number(part["share_below"])) for part in score.get("quantiles", ())]
        shown += [Grid(("quantile", "rows at or below"), shares, words=0)] if shares else []
    return shown
