"""How sure: tests of independence and of conditional independence, spectra on held-out rows, information."""

from featgeo.evidence.conditional import conditional_independence_test
from featgeo.evidence.halves import HeldOutSpectrum, held_out_spectrum
from featgeo.evidence.independence import independence_test, mode_pvalues
from featgeo.evidence.information import conditional_mutual_information, mutual_information
from featgeo.evidence.shuffling import Evidence

__all__ = [
    "Evidence",
    "HeldOutSpectrum",
    "conditional_independence_test",
    "conditional_mutual_information",
    "held_out_spectrum",
    "independence_test",
    "mode_pvalues",
    "mutual_information",
]
