"""The paper's experiments: each file states a distribution, its exact truth, and how close the library comes."""
