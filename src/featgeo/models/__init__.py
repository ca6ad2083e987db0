"""What users import: scikit-learn style estimators over one engine."""

from featgeo.models.base import FitWarning, Report
from featgeo.models.conditional import ConditionalDecomposition
from featgeo.models.leakage import Leakage, leakage
from featgeo.models.modal import ModalDecomposition
from featgeo.models.multimodal import MultimodalDecomposition
from featgeo.models.persistence import load
from featgeo.models.predictors import FeatureClassifier, FeatureRegressor
from featgeo.models.sequential import SequentialDecomposition

__all__ = [
    "ConditionalDecomposition",
    "FeatureClassifier",
    "FeatureRegressor",
    "FitWarning",
    "Leakage",
    "ModalDecomposition",
    "MultimodalDecomposition",
    "Report",
    "SequentialDecomposition",
    "leakage",
    "load",
]
