"""The `featgeo` command: one file for each command or two, and the manners that all of them have.

Nothing here imports what takes time before it is needed, so that help comes at once.
"""

from __future__ import annotations

import sys
from typing import Annotated

import featgeo

try:
    import rich  # noqa: F401 (all commands print by it)
    import typer
except ModuleNotFoundError as missing:
    sys.stderr.write(
        f"The featgeo command needs its extra ({missing.name} is missing). Run: pip install 'featgeo[cli]'\n"
    )
    sys.exit(2)

from featgeo.cli.exploring import explore
from featgeo.cli.fitting import fit
from featgeo.cli.independence import independence
from featgeo.cli.predicting import predict
from featgeo.cli.showcase import demo, reproduce

main = typer.Typer(no_args_is_help=True, help=featgeo.__doc__, pretty_exceptions_show_locals=False)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"featgeo {featgeo.__version__}")
        raise typer.Exit


@main.callback()
def every_command(
    version: Annotated[bool, typer.Option("--version", callback=_print_version, help="Print the version.")] = False,
) -> None:
    """Options of all commands."""


main.command("explore")(explore)
main.command("fit")(fit)
main.command("predict")(predict)
main.command("test")(independence)
main.command("demo")(demo)
main.command("reproduce")(reproduce)
