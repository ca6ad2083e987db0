"""The function space: moments, projections, modal decompositions, and finite alphabets solved exactly."""

from featgeo.geometry.finite import ConditionalComponents, FiniteJoint, MultimodalComponents, Projected
from featgeo.geometry.heterogeneous import HeterogeneousEstimate, heterogeneous_estimate
from featgeo.geometry.incomplete import decompose
from featgeo.geometry.moments import Moments
from featgeo.geometry.spans import AffineFeatures, Modes, SpanModes, complement, project

__all__ = [
    "AffineFeatures",
    "ConditionalComponents",
    "FiniteJoint",
    "HeterogeneousEstimate",
    "Modes",
    "Moments",
    "MultimodalComponents",
    "Projected",
    "SpanModes",
    "complement",
    "decompose",
    "heterogeneous_estimate",
    "project",
]
