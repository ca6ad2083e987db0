"""Pages from templates: one file that needs no other and asks nobody."""

from __future__ import annotations

import base64
import hashlib
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
from featgeo.report.numerals import at_most, numeral

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
