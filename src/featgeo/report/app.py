"""Pages that are a program and its data in one file: a browser runs the one script whose hash the page names, no other.

The program is bundled from `report/explore/` (`make page`), and comes with the package: nobody needs Node to use it.
"""

from __future__ import annotations

import base64
import hashlib
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
<script type="application/json" id="data">{data}</script>
<script>{script}</script>
</body>
</html>
"""


def page_of(title: str, document: str) -> str:
    """The page that shows an exploration.

    Args:
        title: Of the page.
        document: What it shows, as JSON.
    """
    script, style = (_part(name) for name in ("page.js", "page.css"))
    policy = (
        f"default-src 'none'; script-src '{_sha256(script)}'; style-src '{_sha256(style)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    return _PAGE.format(
        policy=policy, title=escape(title), style=style, script=script, data=document.translate(_ESCAPED)
    )


@cache
def _part(name: str) -> str:
    return files("featgeo.report").joinpath("explore", name).read_text(encoding="utf-8")


def _sha256(text: str) -> str:
    """What allows this text, and no other, to run or to give style."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
