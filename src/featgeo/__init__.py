"""Feature geometry: what depends on what, as pairs of functions f(x), g(y) with strengths sigma."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # what a name is, for editors and type checkers; who uses it imports it
    from featgeo.assembly import Conditional
    from featgeo.evidence import (
        conditional_independence_test,
        conditional_mutual_information,
        held_out_spectrum,
        independence_test,
        mode_pvalues,
        mutual_information,
    )
    from featgeo.explore import Exploration, explore
    from featgeo.features.combined import Joint, Sum
    from featgeo.geometry import (
        FiniteJoint,
        HeterogeneousEstimate,
        Modes,
        Moments,
        SpanModes,
        complement,
        decompose,
        heterogeneous_estimate,
        project,
    )
    from featgeo.learning.setting import Training
    from featgeo.models import (
        ConditionalDecomposition,
        FeatureClassifier,
        FeatureRegressor,
        FitWarning,
        ModalDecomposition,
        MultimodalDecomposition,
        SequentialDecomposition,
        leakage,
        load,
    )
    from featgeo.nesting import Level, Nesting, h_score, moments_h_score, nested_h_score, single_sided_h_score
    from featgeo.tuning import Options, options

__version__ = "0.1.0"

__all__ = [
    "Conditional",
    "ConditionalDecomposition",
    "Exploration",
    "FeatureClassifier",
    "FeatureRegressor",
    "FiniteJoint",
    "FitWarning",
    "HeterogeneousEstimate",
    "Joint",
    "Level",
    "ModalDecomposition",
    "Modes",
    "Moments",
    "MultimodalDecomposition",
    "Nesting",
    "Options",
    "SequentialDecomposition",
    "SpanModes",
    "Sum",
    "Training",
    "complement",
    "conditional_independence_test",
    "conditional_mutual_information",
    "decompose",
    "explore",
    "h_score",
    "held_out_spectrum",
    "heterogeneous_estimate",
    "independence_test",
    "leakage",
    "load",
    "mode_pvalues",
    "moments_h_score",
    "mutual_information",
    "nested_h_score",
    "options",
    "project",
    "single_sided_h_score",
]

_ROOMS = {
    "assembly": ("Conditional",),
    "evidence": (
        "conditional_independence_test",
        "conditional_mutual_information",
        "held_out_spectrum",
        "independence_test",
        "mode_pvalues",
        "mutual_information",
    ),
    "explore": ("Exploration", "explore"),
    "features.combined": ("Joint", "Sum"),
    "geometry": (
        "FiniteJoint",
        "HeterogeneousEstimate",
        "Modes",
        "Moments",
        "SpanModes",
        "complement",
        "decompose",
        "heterogeneous_estimate",
        "project",
    ),
    "learning.setting": ("Training",),
    "nesting": ("Level", "Nesting", "h_score", "moments_h_score", "nested_h_score", "single_sided_h_score"),
    "tuning": ("Options", "options"),
}
_ROOM_OF = {name: room for room, names in _ROOMS.items() for name in names}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: torch and scikit-learn take seconds."""
    if name not in __all__:
        raise AttributeError(f"module 'featgeo' has no attribute {name!r}")
    globals()[name] = value = getattr(import_module(f"featgeo.{_ROOM_OF.get(name, 'models')}"), name)
    return value


def __dir__() -> list[str]:
    return [*globals(), *__all__]
