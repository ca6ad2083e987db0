"""Real data for demos, guides and tests: small tables that come with the library, and public data fetched on use."""

from featgeo.datasets.fetch import (
    FashionMnist,
    LabelledImages,
    MultipleFeatures,
    adult,
    diamonds,
    fashion_mnist,
    mnist,
    multiple_features,
)
from featgeo.datasets.tables import CountTable, hair_eye_color, titanic

__all__ = [
    "CountTable",
    "FashionMnist",
    "LabelledImages",
    "MultipleFeatures",
    "adult",
    "diamonds",
    "fashion_mnist",
    "hair_eye_color",
    "mnist",
    "multiple_features",
    "titanic",
]
