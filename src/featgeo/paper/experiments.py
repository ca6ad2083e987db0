"""All experiments of the paper by name, in its order."""

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
