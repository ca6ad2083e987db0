"""How sure: tests of independence, and spectra on held-out rows."""

from featgeo.evidence.independence import independence_test
from featgeo.evidence.null import weighted_chi_square_tail
from featgeo.evidence.result import Evidence
from featgeo.evidence.spectra import HeldOutSpectrum, held_out_spectrum, mode_pvalues

__all__ = [
    "Evidence",
    "HeldOutSpectrum",
    "held_out_spectrum",
    "independence_test",
    "mode_pvalues",
    "weighted_chi_square_tail",
]
