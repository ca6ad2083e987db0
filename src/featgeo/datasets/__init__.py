"""Real data for demos, guides and tests: small tables that come with the library, and public data fetched on use."""

from featgeo.datasets.public import FashionMnist, adult, diamonds, fashion_mnist
from featgeo.datasets.tables import CountTable, hair_eye_color, titanic

__all__ = [
    "CountTable",
    "FashionMnist",
    "adult",
    "diamonds",
    "fashion_mnist",
    "hair_eye_color",
    "titanic",
]
