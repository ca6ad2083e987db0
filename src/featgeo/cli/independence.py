"""`featgeo test`: are columns of a file independent of each other, given others?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from featgeo.cli import options
from featgeo.cli.manners import polite, working
from featgeo.cli.options import AsJson, Delimiter, Encoding, File, Types, columns_option, complete_columns
from featgeo.cli.printing import Grid, answer, number
from featgeo.watch import tell

if TYPE_CHECKING:
    from featgeo.evidence.shuffling import Evidence

SEED = 0  # of arrangements of the rows: the same file gives the same p-value


@polite
def independence(
    file: File,
    a: Annotated[
        str,
        typer.Argument(
            help="A column, or several with commas between them.", metavar="A", autocompletion=complete_columns
        ),
    ],
    b: Annotated[str, typer.Argument(help="Another, or several.", metavar="B", autocompletion=complete_columns)],
    given: Annotated[str | None, columns_option("Columns that are known: independence given these.")] = None,
    types: Types = None,
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    as_json: AsJson = False,
) -> None:
    """Test whether columns of a file are independent, given others if any are named.

    Prints the p-value: how often chance alone would show as much dependence.
    Every dependence is looked for, not only a linear one. Missing values count as values of their own.
    """
    sides = {"A": options.listed(a, "A"), "B": options.listed(b, "B"), "--given": options.listed(given, "--given")}
    options.check_apart(sides)
    kinds = options.kinds_of(types)

    def columns(names: tuple[str, ...]) -> list[str]:
        for option, wanted in sides.items():
            options.check_known(wanted, names, option)
        tested = [name for name in names if any(name in side for side in sides.values())]
        options.check_known(list(kinds), tested, "--types", "the test")
        options.check_not_skipped(tested, kinds)
        return tested

    with working("test") as notes:
        from featgeo.cli.tables import loaded
        from featgeo.reading.source import open_source

        with open_source(file, columns=columns, encoding=encoding, delimiter=delimiter) as source:
            data = loaded(source, kinds)
        found = _tested(*(data.frame[names] if names else None for names in sides.values()))
    names = {"a": sides["A"], "b": sides["B"], "given": sides["--given"]}
    numbers = {"pvalue": found.pvalue, "statistic": found.statistic, "method": found.method, "rows": len(data.frame)}
    doubts = ["doubtful: regressions on what is given miss what A and B share of it"] if found.doubtful else []
    cells = [*(", ".join(side) for side in names.values()), found.method, number(found.pvalue, 3)]
    heads = ("A", "B", "given", "method", "p-value", "statistic", "rows")
    grid = Grid(heads, [[*cells, number(found.statistic), str(len(data.frame))]], words=4)
    answer(names | {"kinds": data.kinds} | numbers, [grid], [*data.notes, *doubts, *notes], as_json)


def _tested(x: Any, y: Any, given: Any) -> Evidence:
    """What the rows of two sides say, given a third if there is one."""
    tell("testing")
    from featgeo.evidence import conditional_independence_test, independence_test  # torch, once the file is read

    if given is None:
        return independence_test(x, y, random_state=SEED)
    return conditional_independence_test(x, y, given, random_state=SEED)
