"""The paper's experiments: each file states a law, its exact truth, two ways to learn it, and how close they come."""

from typing import Literal

Recipe = Literal["fast", "published"]
SEED = 20_230_606  # the paper's, for its random laws; draws count on from here
DRAWS = 5
