"""Pages that are a program and its data in one file: a browser runs the one script whose hash the page names, no other.

The program is bundled from `report/explore/` (`make page`), and comes with the package: nobody needs Node to use it.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from functools import cache
from html import escape
from importlib.resources import files

# Inside a script element only these could end it, or begin a comment; JSON strings may write them as escapes.
_ESCAPED = {ord(character): f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"}

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="generator" content="featgeo">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<div id="app"></div>
<noscript><main><h1>{title}</h1><p>This page is drawn by a script that it brings along, and scripts are off. The same is
in the tables of the exploration.</p></main></noscript>
<script type="application/json" id="data">{first}</script>
<script>{script}</script>
{later}
</body>
</html>
"""

_FRAME_STYLE = "width:100%;height:48rem;border:1px solid #8888;resize:vertical"
_LATER = '<script type="text/plain" id="{name}">{part}</script>'


def page_of(title: str, first: str, later: Mapping[str, str]) -> str:
    """The page that shows an exploration.

    Args:
        title: Of the page.
        first: What the program needs to begin, as JSON: it runs, and what it draws is seen, before the rest is read.
        later: What it reads once the file has ended, by name; lines of JSON.
    """
    script, style = (_part(name) for name in ("page.js", "page.css"))
    policy = (
        f"default-src 'none'; script-src '{_sha256(script)}'; style-src '{_sha256(style)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    return _PAGE.format(
        policy=policy,
        title=escape(title),
        style=style,
        script=script,
        first=first.translate(_ESCAPED),
        later="\n".join(_LATER.format(name=name, part=part.translate(_ESCAPED)) for name, part in later.items()),
    )


def frame_of(page: str, title: str) -> str:
    """A page inside another, such as a notebook: it runs its own script, and reaches nothing of what is around it.

    Args:
        page: The page.
        title: What screen readers call it.
    """
    inside = page.replace("&", "&amp;").replace("'", "&#39;")  # all that could end the attribute, or be read otherwise
    return f"<iframe title='{escape(title)}' sandbox='allow-scripts' style='{_FRAME_STYLE}' srcdoc='{inside}'></iframe>"


@cache
def _part(name: str) -> str:
    return files("featgeo.report").joinpath("explore", name).read_text(encoding="utf-8")


def _sha256(text: str) -> str:
    """What allows this text, and no other, to run or to give style."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
