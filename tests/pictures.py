"""Whether a figure looks as one that was kept, up to what the eye sees."""

from __future__ import annotations

import re
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
CLIP = re.compile(r"\bp[0-9a-f]{10}\b")  # names of frames: the last bits of their sizes, which differ by machine
EYE = 1.5  # units of the figures, of which 72 are an inch

needs_the_version_of_the_kept = pytest.mark.skipif(
    f"matplotlib=={mpl.__version__}\n" not in (ROOT / "constraints.txt").read_text(),
    reason="other versions of matplotlib draw other files",
)


def assert_same_picture(svg: str, path: Path) -> None:
    """The same elements and texts, at the same places."""
    svg, kept = (CLIP.sub("clip", text) for text in (svg, path.read_text()))
    assert NUMBER.sub("", svg) == NUMBER.sub("", kept), f"another {path.name}: look at it, and keep it if it is right"
    ours, theirs = ([float(number) for number in NUMBER.findall(text)] for text in (svg, kept))
    np.testing.assert_allclose(ours, theirs, atol=EYE, err_msg=path.name)
