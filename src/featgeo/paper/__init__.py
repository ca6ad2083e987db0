"""The paper's experiments: each file states a law, its exact truth, two ways to learn it, and how close they come."""
