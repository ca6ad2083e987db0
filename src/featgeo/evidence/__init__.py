"""How sure: tests of independence and of conditional independence, and spectra on held-out rows."""

from featgeo.evidence.conditional import conditional_independence_test
from featgeo.evidence.halves import HeldOutSpectrum, held_out_spectrum
from featgeo.evidence.independence import independence_test, mode_pvalues
from featgeo.evidence.shuffling import Evidence

__all__ = [
    "Evidence",
    "HeldOutSpectrum",
    "conditional_independence_test",
    "held_out_spectrum",
    "independence_test",
    "mode_pvalues",
]
