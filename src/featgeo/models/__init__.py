"""What users import: scikit-learn style estimators over one engine."""

from featgeo.models.diagnostics import Report
from featgeo.models.modal import ModalDecomposition
from featgeo.models.persistence import load
from featgeo.models.predictors import FeatureClassifier, FeatureRegressor

__all__ = ["FeatureClassifier", "FeatureRegressor", "ModalDecomposition", "Report", "load"]
