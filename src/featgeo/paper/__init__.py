"""The paper's experiments: each file states a law, its exact truth, two ways to learn it, and how close they come."""

from featgeo.paper import (
    cosine,
    discrete,
    gaussian,
    mixture,
    multimodal_complete,
    multimodal_pairwise,
    orthogonality,
    sequences,
    sequential,
    side_information,
)

EXPERIMENTS = {
    module.EXPERIMENT.name: module.EXPERIMENT
    for module in (
        discrete,
        cosine,
        sequences,
        orthogonality,
        side_information,
        multimodal_complete,
        multimodal_pairwise,
        gaussian,
        mixture,
        sequential,
    )
}
