"""Predictions of a model for a file, batch by batch: columns to write, how good they are, what was unlike the fit."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]

from featgeo.cli.options import check_known
from featgeo.cli.scores import LabelScore, NumberScore
from featgeo.cli.tables import AsTheModelKnows
from featgeo.features.columns import Column
from featgeo.files import writing_whole
from featgeo.reading.arrow import csv, pa, parquet
from featgeo.watch import tell

if TYPE_CHECKING:
    from featgeo.reading.source import Source

PREDICTION = "prediction"
CELLS_AT_ONCE = 4_000_000  # probabilities of rows that are computed together: bounds memory
SHOWN_NAMES = 5  # of columns that a note names


@dataclass(eq=False)
class Asked:
    """A model, and what is wanted of it.

    Attributes:
        model: A classifier or a regressor.
        levels: Quantiles of numbers.
        proba: Whether probabilities of labels are wanted.
        kept: Columns of the file to copy.
        ignored: Columns of the file that nobody asks for, once they are known.
    """

    model: Any
    levels: tuple[float, ...]
    proba: bool
    kept: tuple[str, ...]
    ignored: tuple[str, ...] = ()

    @classmethod
    def of(cls, model: Any, levels: Sequence[float], proba: bool, kept: tuple[str, ...]) -> Asked:
        """What was asked for, where the model can give it."""
        from featgeo.models import FeatureClassifier, FeatureRegressor

        if not isinstance(model, FeatureClassifier | FeatureRegressor):
            raise ValueError(
                f"Predictions need a model that `featgeo fit` wrote, a FeatureClassifier or a FeatureRegressor, got a "
                f"{type(model).__name__}."
            )
        if not model.x_variable_.named:
            raise ValueError("The model was fitted to columns without names, so none can be found in a file.")
        labels = isinstance(model, FeatureClassifier)
        if labels and levels:
            raise ValueError("--quantiles are those of numbers, and this model predicts labels. Say --proba instead.")
        if proba and not labels:
            raise ValueError("--proba is for labels, and this model predicts numbers. Say --quantiles instead.")
        if len(set(levels)) < len(levels):
            raise ValueError("--quantiles names a level twice. Name each once.")
        outside = next((level for level in levels if not 0 < level < 1), None)
        if outside is not None:
            raise ValueError(f"--quantiles must be between 0 and 1, got {outside:g}.")
        return cls(model, tuple(levels), proba, kept)

    @property
    def is_number(self) -> bool:
        """Whether numbers are predicted, and not labels."""
        return not hasattr(self.model, "classes_")

    @property
    def variables(self) -> list[Any]:
        """X, and Z where the fit had it."""
        return [getattr(self.model, name) for name in ("x_variable_", "z_variable_") if hasattr(self.model, name)]

    @property
    def target(self) -> str | None:
        """What the model predicts, where its fit knew the name."""
        return getattr(self.model, "target_name_", None)

    def columns(self, names: Sequence[str]) -> list[str]:
        """Columns to read, of all names of a file."""
        needed = {column.name for variable in self.variables for column in variable.columns}
        missing = sorted(needed - set(names))
        if missing:
            more = f" and {len(missing) - 5} others" if len(missing) > 5 else ""
            raise ValueError(
                f"The file must have the columns that the model was fitted to, and lacks "
                f"{', '.join(map(repr, missing[:5]))}{more}. Add them, or rename those that are called otherwise."
            )
        check_known(self.kept, names, "--keep")
        taken = sorted(set(self.kept) & set(self.answers))
        if taken:
            raise ValueError(f"--keep names {taken[0]!r}, which is what a column of predictions is called. Rename it.")
        aside = {name for variable in self.variables for name in variable.came}
        wanted = needed | {*self.kept, self.target}
        self.ignored = tuple(name for name in names if name not in wanted | aside)
        return [name for name in names if name in wanted]

    @property
    def answers(self) -> list[str]:
        """What the columns of predictions are called."""
        classes = [f"probability_{label}" for label in self.model.classes_.tolist()] if self.proba else []
        return [PREDICTION, *(f"quantile_{level:g}" for level in self.levels), *classes]


class Predictions:
    """Predictions for the rows of a source.

    Args:
        asked: The model, and what is wanted of it.
        source: The file, opened with the columns of `asked`.

    Attributes:
        rows: How many rows were predicted so far.
        score: How good they are; None where the file does not have the target.
    """

    def __init__(self, asked: Asked, source: Source) -> None:
        self._asked, self._source, self.rows = asked, source, 0
        model = asked.model
        columns = {column.name: column for variable in asked.variables for column in variable.columns}
        forms = getattr(model, "date_forms_", {})
        self._x = AsTheModelKnows(tuple(columns.values()), forms, source.types)
        self.score = None
        if asked.target in source.names:
            self.score = NumberScore(asked.levels) if asked.is_number else LabelScore()
            target = Column(str(asked.target), "number") if asked.is_number else _as_column(asked)
            self._y = AsTheModelKnows((target,), forms, source.types)

    @property
    def schema(self) -> Any:
        """Of the columns to write."""
        model, numbers = self._asked.model, pa.float64()
        value = numbers if self._asked.is_number else pa.array(model.classes_.tolist()).type
        kept = [(name, _plain_type(self._source.types[name])) for name in self._asked.kept]
        prediction, *others = self._asked.answers
        return pa.schema([*kept, (prediction, value), *((name, numbers) for name in others)])

    def batches(self) -> Iterator[Any]:
        """Record batches of the columns to write; refused in the end where a column could not be read at all."""
        step = max(1, CELLS_AT_ONCE // self._asked.model.support_.m) if self._asked.proba else sys.maxsize
        for batch in self._source.batches():
            for start in range(0, batch.num_rows, step):
                some = batch.slice(start, step)
                yield self._predicted(some)
                self.rows += some.num_rows
                tell(f"{self.rows:,} rows")
        self._x.check_all_read()

    def summary(self) -> dict[str, Any]:
        """What there is to say of all rows."""
        return {
            "rows": self.rows,
            "columns": self.schema.names,
            "target": self._asked.target,
            "score": None if self.score is None or not self.score.rows else self.score.as_data(),
            "ignored": self._asked.ignored,
            "unread": {name: count for name, count in self._x.unread.items() if count},
            "unknown_labels": {name: count for name, count in self._x.unknown.items() if count},
        }

    def remarks(self) -> list[str]:
        """What was unlike the fit, and what nobody asked for."""
        ignored, remarks = self._asked.ignored, self._x.remarks()
        if ignored:
            more = f" and {len(ignored) - SHOWN_NAMES:,} others" if len(ignored) > SHOWN_NAMES else ""
            shown = ", ".join(map(repr, ignored[:SHOWN_NAMES]))
            remarks.append(f"Columns that the model does not know were ignored: {shown}{more}.")
        if self.score is not None and self.score.rows < self.rows:
            remarks.append(f"{self.rows - self.score.rows:,} rows have no {self._asked.target!r} to be judged by.")
        return remarks

    def _predicted(self, batch: Any) -> Any:
        frame = self._x.frame(batch)
        x, *z = (_as_it_came(frame, variable) for variable in self._asked.variables)
        given = self._asked.model.given(x, Z=z[0] if z else None)
        quantiles = given.quantile(list(self._asked.levels)) if self._asked.levels else np.empty((len(frame), 0))
        predicted = given.mean() if self._asked.is_number else given.map()
        if self.score is not None:
            self._judge(batch, predicted, quantiles)
        mass = given.proba() if self._asked.proba else np.empty((len(frame), 0))
        kept = [batch.column(name) for name in self._asked.kept]
        columns = [*kept, predicted.tolist(), *quantiles.T, *mass.T]
        schema = self.schema
        arrays = [_as_type(column, kind) for column, kind in zip(columns, schema.types, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    def _judge(self, batch: Any, predicted: np.ndarray, quantiles: np.ndarray) -> None:
        happened = self._y.frame(batch)[self._asked.target]
        known = happened.notna().to_numpy()
        values = happened.to_numpy()[known]
        if isinstance(self.score, NumberScore):
            self.score.add(values, predicted[known], quantiles[known])
        elif self.score is not None:
            self.score.add(values, predicted[known])


def written(predictions: Predictions, path: Path | None) -> None:
    """Write all predictions to a file, whole or not at all; to standard output where there is none."""
    with _writer(path, predictions.schema) as write:
        for batch in predictions.batches():
            write(batch)


@contextmanager
def _writer(path: Path | None, schema: Any) -> Iterator[Any]:
    options = csv.WriteOptions(quoting_style="needed")
    if path is None:
        with csv.CSVWriter(sys.stdout.buffer, schema, write_options=options) as writer:
            yield writer.write_batch
        return
    with writing_whole(path) as file:
        if path.suffix.lower() == ".csv":
            with csv.CSVWriter(file, schema, write_options=options) as writer:
                yield writer.write_batch
        else:
            with parquet.ParquetWriter(file, schema) as writer:
                yield writer.write_batch


def _as_it_came(frame: pd.DataFrame, variable: Any) -> pd.DataFrame:
    """The columns of a variable in their order, with empty ones for those that identified rows and were set aside."""
    names = variable.came or [column.name for column in variable.columns]
    return frame.reindex(columns=list(names))


def _as_column(asked: Asked) -> Column:
    """The target as a column: labels of the fit."""
    return Column(str(asked.target), "label", tuple(asked.model.classes_.tolist()))


def _plain_type(kind: Any) -> Any:
    """The type in which a column is copied: dictionaries as what they hold."""
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _as_type(column: Any, kind: Any) -> Any:
    return column.cast(kind) if isinstance(column, pa.Array) else pa.array(column, type=kind)
