"""Pages from templates: one file that needs no other and asks nobody.

Numbers as readers see them: four digits that count, a true minus sign, powers of ten for what is tiny.
"""

from __future__ import annotations

import base64
import hashlib
import math
import re
from collections.abc import Mapping
from html import unescape
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from jinja2 import Environment, PackageLoader, StrictUndefined
from latex2mathml.converter import convert_to_element
from markupsafe import Markup

from featgeo.files import make_folder, write_whole

DIGITS = 4
SMALLEST, LARGEST = 1e-3, 1e6  # beyond these, powers of ten
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def numeral(value: float | None) -> str:
    """The number in four digits that count; nothing for None."""
    if value is None:
        return ""
    if not math.isfinite(value):
        return "not a number" if math.isnan(value) else _signed("∞", value)
    if value == 0:
        return "0"
    mantissa, exponent = f"{abs(value):.{DIGITS - 1}e}".split("e")  # rounds first: 0.99999 is 1.000
    if SMALLEST <= float(f"{mantissa}e{exponent}") < LARGEST:
        return _signed(f"{abs(value):.{max(0, DIGITS - 1 - int(exponent))}f}", value)
    return _signed(f"{mantissa}×10{str(int(exponent)).translate(_RAISED)}", value)


def at_most(value: float | None) -> str:
    """A bound that somebody chose: as `numeral`, without zeros at the end."""
    digits, times, power = numeral(value).partition("×")
    return (digits.rstrip("0").rstrip(".") if "." in digits else digits) + times + power


def _signed(digits: str, value: float) -> str:
    return f"−{digits}" if value < 0 else digits


POINT = 4 / 3  # pixels


def write_page(path: Path, template: str, figures: Mapping[str, str], **values: Any) -> None:
    """Write a page that needs no other file, and its figures as files of their own; each appears whole or not at all.

    Args:
        path: The page; its folder is made where it is missing.
        template: Name of the template.
        figures: SVG text by its path from the page; the template may show them.
        values: What else the template shows.
    """
    environment = Environment(
        loader=PackageLoader("featgeo.report", "templates"), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    environment.filters |= {
        "data_uri": _data_uri, "pixels": _pixels, "mathml": _mathml, "numeral": numeral, "at_most": at_most,
        "sha256": _sha256,
    }  # fmt: skip
    html = environment.get_template(template).render(figures=figures, **values)
    for place, content in {**figures, path.name: html}.items():
        write_whole(make_folder((path.parent / place).parent) / Path(place).name, content)


def _data_uri(svg: str) -> str:
    return "data:image/svg+xml;base64," + base64.b64encode(svg.encode()).decode()


def _pixels(svg: str, side: str) -> int | None:
    """Width or height that the figure asks for; None where it asks for none."""
    found = re.search(rf'<svg[^>]* {side}="([\d.]+)pt"', svg)
    return round(float(found[1]) * POINT) if found else None


def _mathml(formula: str) -> Markup:
    """The formula as elements, escaped here: what the converter itself writes leaves text as it came."""
    element = convert_to_element(formula, display="block")
    for part in element.iter():
        part.text = unescape(part.text or "")
    return Markup(ElementTree.tostring(element, encoding="unicode"))  # noqa: S704


def _sha256(script: str) -> str:
    """What allows this script, and no other, to run."""
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
