"""The function space: moments, projections, modal decompositions, and finite alphabets solved exactly."""

from featgeo.geometry.finite import ConditionalComponents, FiniteJoint, MultimodalComponents, Projected
from featgeo.geometry.heterogeneous import HeterogeneousEstimate, heterogeneous_estimate
from featgeo.geometry.moments import Moments
from featgeo.geometry.projections import complement, decompose, project
from featgeo.geometry.spans import AffineFeatures, Modes, SpanModes

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
