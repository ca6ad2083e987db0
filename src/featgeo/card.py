"""What a result says of itself: one card, as text in a terminal and as a small page in a notebook."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

BAR, HEIGHT, GAP = 22, 60, 6  # pixels of the picture
BLUE, ORANGE, GREY = "#a6cdea", "#d55e00", "#555555"


@dataclass(frozen=True)
class Card:
    """Sentences, a table, doubts, and a picture of strengths.

    Attributes:
        lines: Sentences; the first is the title.
        columns: Heads of the table.
        rows: Its cells, already written.
        doubts: What speaks against the result.
        bars: Strengths between 0 and 1.
        dots: The same on held-out rows.
    """

    lines: Sequence[str]
    columns: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    doubts: Sequence[str] = ()
    bars: Sequence[float] = ()
    dots: Sequence[float] = ()

    def text(self) -> str:
        """For a terminal: cells are aligned, the first column to the left where it holds words."""
        columns, rows = [one_line(head) for head in self.columns], [[*map(one_line, row)] for row in self.rows]
        widths = [max(map(len, cells)) for cells in zip(columns, *rows, strict=True)]
        words = any(not row[0].strip().isdigit() for row in rows)
        table = []
        for row in (columns, *rows) if columns else ():
            first = f"{row[0]:{'<' if words else '>'}{widths[0]}}"
            table.append("  ".join([first, *(f"{c:>{w}}" for c, w in zip(row[1:], widths[1:], strict=True))]))
        return "\n".join([*self.lines, *table, *(f"! {doubt}" for doubt in self.doubts)])

    def html(self) -> str:
        """For a notebook; no script, and no style but its own."""
        title, *others = map(escape, self.lines or ("",))
        parts = [f"<div><b>{title}</b></div>", *(f"<div>{line}</div>" for line in others), self._picture()]
        if self.columns:
            heads, cells = (_row("th", self.columns), "".join(_row("td", row) for row in self.rows))
            style = 'cellpadding="4" style="text-align:right"'
            parts.append(f"<table {style}><thead>{heads}</thead><tbody>{cells}</tbody></table>")
        parts += [f'<div style="color:{ORANGE}">{escape(doubt)}</div>' for doubt in self.doubts]
        return f'<div class="featgeo">{"".join(parts)}</div>'

    def _picture(self) -> str:
        """Strengths as bars, held-out ones as dots."""
        if not self.bars:
            return ""
        step, marks = BAR + GAP, []
        for i, (bar, dot) in enumerate(zip(self.bars, self.dots, strict=True)):
            x, top = i * step, HEIGHT * (1 - min(max(bar, 0.0), 1.0))
            marks.append(f'<rect x="{x}" y="{top:.1f}" width="{BAR}" height="{HEIGHT - top:.1f}" fill="{BLUE}"/>')
            if dot == dot:  # not NaN: some rows were held out
                y = HEIGHT * (1 - min(max(dot, 0.0), 1.0))
                marks.append(f'<circle cx="{x + BAR / 2}" cy="{y:.1f}" r="3.5" fill="{ORANGE}"/>')
        width = step * len(self.bars)
        floor = f'<line x1="0" x2="{width}" y1="{HEIGHT}" y2="{HEIGHT}" stroke="{GREY}"/>'
        said = "Strengths of the modes on the rows of the fit (bars) and on held-out rows (dots)"
        return (
            f'<svg role="img" aria-label="{said}" width="{width}" height="{HEIGHT + 8}" viewBox="0 -4 {width} '
            f'{HEIGHT + 8}">{"".join(marks)}{floor}</svg>'
        )


def one_line(text: str) -> str:
    """A text in which nothing breaks lines or moves cursors: such characters are written as Python writes them."""
    return text if text.isprintable() else "".join(a if a.isprintable() else repr(a)[1:-1] for a in text)


def _row(kind: str, cells: Sequence[str]) -> str:
    return f"<tr>{''.join(f'<{kind}>{escape(cell.strip())}</{kind}>' for cell in cells)}</tr>"


class Shown(ABC):
    """A result that shows its card wherever it is printed."""

    @abstractmethod
    def card(self) -> Card:
        """What to show."""

    def __repr__(self) -> str:
        return self.card().text()

    def _repr_html_(self) -> str:
        return self.card().html()
