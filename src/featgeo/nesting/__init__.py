"""Nesting configurations and the H-scores they define."""

from featgeo.nesting.nesting import Level, Nesting
from featgeo.nesting.scores import h_score, moments_h_score, nested_h_score, single_sided_h_score

__all__ = ["Level", "Nesting", "h_score", "moments_h_score", "nested_h_score", "single_sided_h_score"]
