"""A whole table at once: files of any size, all pairs of columns from one set of counts."""

from featgeo.explore.exploration import Exploration, explore

__all__ = ["Exploration", "explore"]
