"""Conditional distributions assembled from features."""

from featgeo.assembly.conditional import Conditional

__all__ = ["Conditional"]
