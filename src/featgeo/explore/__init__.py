"""A whole table at once: files of any size, all pairs of columns from one set of counts."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from featgeo.explore.exploration import Exploration, explore

__all__ = ["Exploration", "explore"]


def __getattr__(name: str) -> Any:
    """Import what explores when it is first used: files are opened, and refused, without torch."""
    if name not in __all__:
        raise AttributeError(f"module 'featgeo.explore' has no attribute {name!r}")
    from featgeo.explore import exploration

    globals()[name] = value = getattr(exploration, name)
    return value
