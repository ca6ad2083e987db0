"""A hostile input and what must come of it: a case is one line, and one test runs them all.

`Case(name, call, raises="words")`: the call must be refused, by an exception that featgeo itself raises and whose
message has the words (a regular expression). An exception from deep inside another library names none of the user's
arguments, so that it does not count.

`Case(name, call, gives=value)`: the call is legal and must give this. A function is called for the value: mostly the same
question about an input that is clean. Numbers are compared to a relative 1e-9, or to `rtol`.

Warnings are allowed. A case that takes longer than ten seconds fails.
"""

from __future__ import annotations

import re
import signal
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import featgeo

SECONDS = 10
HOME = Path(featgeo.__file__).parent
# Where other libraries may raise: their words are a contract, or name the argument.
ALLOWED = {
    "check_is_fitted": "scikit-learn's NotFittedError, which its own tools look for",
    "_check_n_features": "scikit-learn's words for another number of columns, which its own checks look for",
    "_check_feature_names": "scikit-learn's words for other names of columns, which its own checks look for",
    "check_classification_targets": "scikit-learn's words for labels that are continuous, which its checks look for",
}
NOTHING = object()


@dataclass(frozen=True)
class Case:
    """What is called, and what must come of it."""

    name: str
    call: Callable[[], Any]
    raises: str | None = None
    gives: Any = NOTHING
    rtol: float = 1e-9

    def __post_init__(self) -> None:
        assert (self.raises is None) != (self.gives is NOTHING), f"{self.name}: say either `raises` or `gives`"

    def run(self) -> None:
        """Check the case, in ten seconds at most."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            previous = signal.signal(signal.SIGALRM, _too_long)
            signal.setitimer(signal.ITIMER_REAL, SECONDS)
            try:
                self._refused() if self.raises is not None else self._answered()
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
                signal.signal(signal.SIGALRM, previous)

    def _refused(self) -> None:
        try:
            result = self.call()
        except Exception as error:
            frame = traceback.extract_tb(error.__traceback__)[-1]
            own = HOME in Path(frame.filename).parents and frame.line is not None and "raise" in _statement(frame)
            names_its_file = isinstance(error, OSError) and error.filename is not None
            if not own and not names_its_file and frame.name not in ALLOWED:
                where = f"{frame.filename}:{frame.lineno} in {frame.name}"
                raise AssertionError(f"unclear: {type(error).__name__} from {where}: {error}") from error
            if not re.search(self.raises or "", str(error)):
                raise AssertionError(f"expected {self.raises!r}, got: {error}") from error
        else:
            raise AssertionError(f"expected to be refused with {self.raises!r}, got {result!r}")

    def _answered(self) -> None:
        result, expected = self.call(), self.gives() if callable(self.gives) else self.gives
        if isinstance(expected, list | np.ndarray | float):
            np.testing.assert_allclose(np.asarray(result, dtype=float), expected, rtol=self.rtol, atol=1e-12)
        else:
            assert result == expected


def _statement(frame: traceback.FrameSummary) -> str:
    """The lines of a statement that spans several."""
    lines = Path(frame.filename).read_text(encoding="utf-8").splitlines()
    first, last = (frame.lineno or 1) - 1, frame.end_lineno or frame.lineno or 1
    return "\n".join(lines[first:last])


def _too_long(signum: int, frame: Any) -> None:
    raise TimeoutError(f"longer than {SECONDS} s")
