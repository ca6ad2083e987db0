"""Proposition max:corr:const: constrained modes solve the constrained maximal correlation problem; CCA is a case."""

import numpy as np
import pytest
import torch
from sklearn.cross_decomposition import CCA
from support import SEEDS, ascend, assert_reached_never_passed, random_counts, random_functions, rows

from featgeo import FiniteJoint


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("i", [0, 1])
def test_constrained_mode_maximises_correlation_inside_the_subspaces(seed, i):
    joint = FiniteJoint(random_counts(seed, (6, 5)))
    p_xy, p_x, p_y = (torch.from_numpy(joint.probability(*names)) for names in (("x", "y"), ("x",), ("y",)))
    phi, psi = random_functions(seed, 6, 3), random_functions(seed + 50, 5, 3)
    modes = joint.modes(x_space=phi, y_space=psi)
    earlier_f, earlier_g = torch.from_numpy(modes.f[:, :i]), torch.from_numpy(modes.g[:, :i])

    def unit(function, mass, earlier):
        function = function - earlier @ (earlier.T @ (mass * function))
        return function / (mass @ function**2).sqrt()

    def covariance(a, b):
        f = unit(torch.from_numpy(phi) @ a, p_x, earlier_f)
        g = unit(torch.from_numpy(psi) @ b, p_y, earlier_g)
        return f @ p_xy @ g - (p_x @ f) * (p_y @ g)

    a, b = assert_reached_never_passed(ascend(covariance, [(3,), (3,)]), modes.sigma[i])
    f = unit(torch.from_numpy(phi) @ a, p_x, earlier_f).numpy()
    g = unit(torch.from_numpy(psi) @ b, p_y, earlier_g).numpy()
    sign = np.sign(f @ (p_x.numpy() * modes.f[:, i]))
    np.testing.assert_allclose(sign * f, modes.f[:, i], atol=1e-5)
    np.testing.assert_allclose(sign * g, modes.g[:, i], atol=1e-5)
    own = modes.f[:, i] @ joint.probability() @ modes.g[:, i]
    own -= (p_x.numpy() @ modes.f[:, i]) * (p_y.numpy() @ modes.g[:, i])
    assert own == pytest.approx(modes.sigma[i], abs=1e-13)


@pytest.mark.parametrize("seed", SEEDS)
def test_canonical_correlation_analysis_is_the_linear_case(seed):
    counts = random_counts(seed, (6, 5))
    x_values, y_values = random_functions(seed, 6, 3), random_functions(seed + 50, 5, 2)
    modes = FiniteJoint(counts[None], names=("one", "x", "y")).cca(x_values, y_values, x="x", y="y")
    x, y = rows(counts)
    reference = CCA(n_components=2, max_iter=20_000, tol=1e-14).fit(x_values[x], y_values[y])
    scores = reference.transform(x_values[x], y_values[y])
    for i in range(2):
        correlation = np.corrcoef(scores[0][:, i], scores[1][:, i])[0, 1]
        assert modes.sigma[i] == pytest.approx(correlation, abs=1e-6)
        assert abs(np.corrcoef(scores[0][:, i], modes.f[x, i])[0, 1]) == pytest.approx(1, abs=1e-6)
