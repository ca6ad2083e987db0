"""Lighter SVG: what matplotlib writes, without what cannot be seen."""

from __future__ import annotations

import base64
import io
import re

import numpy as np
from PIL import Image

PALETTE = 256  # colours of a small image


def lighter(text: str) -> str:
    """The same figure in fewer bytes: rounded coordinates, no turns by nothing, images of few colours by palette."""
    text = re.sub(r'\n(?= *(?:L|M|C|Q|z)\b|")', "", text)  # paths on one line
    text = re.sub(r' transform="rotate\(-?0 [^)]*\)"', "", text)
    text = re.sub(r"(<g[^>]*)>\s*((?:<use [^>]*/>\s*)+)</g>", _styled_once, text)
    text = re.sub(r' (?:d|x|y|width|height)="[^"]*"', lambda found: _rounded(found[0], 2), text)
    text = re.sub(
        r' d="[ML\d. z-]*"', lambda found: found[0].replace(" L ", " "), text
    )  # after M, lines are understood
    text = re.sub(r' transform="[^"]*"', lambda found: _rounded(found[0], 4), text)
    return re.sub(r"(?<=data:image/png;base64,)[^\"]*", lambda found: _smaller(found[0]), text)


def _styled_once(group: re.Match[str]) -> str:
    """Marks that look the same say so once, for their group."""
    opening, marks = group[1], group[2]
    styles = set(re.findall(r' style="[^"]*"', marks))
    if len(styles) != 1 or " style=" in opening or marks.count(" style=") != marks.count("<use "):
        return group[0]
    (style,) = styles
    return f"{opening}{style}>{''.join(line.strip() for line in marks.replace(style, '').splitlines())}</g>"


def _rounded(attribute: str, digits: int) -> str:
    return re.sub(rf"\d+\.\d{{{digits + 1},}}", lambda number: f"{float(number[0]):.{digits}f}", attribute)


def _smaller(encoded: str) -> str:
    """An image written by palette: without any change where it has few colours, and close to it where it has more."""
    image = Image.open(io.BytesIO(base64.b64decode(encoded))).convert("RGBA")
    pixels = np.asarray(image)
    colours, index = np.unique(pixels.reshape(-1, 4), axis=0, return_inverse=True)
    if len(colours) > PALETTE or (colours[:, 3] < 255).any():
        image = image.quantize(PALETTE, Image.Quantize.FASTOCTREE)
    else:
        image = Image.fromarray(index.reshape(pixels.shape[:2]).astype(np.uint8), mode="P")
        image.putpalette(colours[:, :3].tobytes())
    data = io.BytesIO()
    image.save(data, "png", optimize=True)
    return base64.b64encode(data.getvalue()).decode()
