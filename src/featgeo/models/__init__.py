"""What users import: scikit-learn style estimators over one engine."""

from featgeo.models.modal import ModalDecomposition
from featgeo.models.predictors import FeatureClassifier, FeatureRegressor

__all__ = ["FeatureClassifier", "FeatureRegressor", "ModalDecomposition"]
