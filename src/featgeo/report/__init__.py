"""Figures and the page, from results only: nothing here computes."""

from types import ModuleType


def charts() -> ModuleType:
    """The figures of models, where matplotlib is there."""
    try:
        from featgeo.report import figures
    except ModuleNotFoundError as error:
        raise ImportError(f"Plots need {error.name}. Run: pip install 'featgeo[plot]'") from error
    return figures
