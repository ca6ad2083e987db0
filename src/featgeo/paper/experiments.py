"""All experiments of the paper by name, in its order."""

from featgeo.paper import (
    cosine,
    discrete,
    gaussian,
    mixture,
    orthogonality,
    sequences,
    sequential,
    side_information,
    two_sources,
)

EXPERIMENTS = {
    experiment.name: experiment
    for experiment in (
        discrete.EXPERIMENT,
        cosine.EXPERIMENT,
        sequences.EXPERIMENT,
        orthogonality.EXPERIMENT,
        side_information.EXPERIMENT,
        two_sources.COMPLETE,
        two_sources.PAIRWISE,
        gaussian.EXPERIMENT,
        mixture.EXPERIMENT,
        sequential.EXPERIMENT,
    )
}
