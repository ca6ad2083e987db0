"""Several variables side by side, and tensors as they come."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch

from featgeo.features.columns import tensor_of
from featgeo.features.variables import Parts, Variable

RNG = np.random.default_rng(0)


def rows(values, name):
    return Variable.seen(values, name).rows(values)


def test_tables_side_by_side_have_the_columns_of_all():
    frame = pd.DataFrame({"u": RNG.standard_normal(6), "v": list("ababab")})
    numbers = RNG.standard_normal((6, 2))
    parts = Parts({"a": rows(frame, "A"), "b": rows(numbers, "B")})
    both = parts.of("a", "b")
    assert len(parts) == len(both) == 6
    assert parts.cells == 24
    assert [column.name for column in both.variable.columns][:2] == ["A u", "A v"]
    assert both.variable.name == "(A, B)"
    np.testing.assert_array_equal(both.table.numbers, np.column_stack([frame.u, numbers]))
    np.testing.assert_array_equal(both.table.codes[:, 0], [0, 1] * 3)
    assert parts.of("a", "b") is both
    assert parts.of("a") is parts.rows["a"]
    assert parts.of() is parts
    some = parts.take(np.array([4, 1]))
    np.testing.assert_array_equal(some.of("b", "a").table.numbers, np.column_stack([numbers, frame.u])[[4, 1]])


def test_tensors_side_by_side_are_flattened():
    images, series = RNG.standard_normal((5, 2, 3)), RNG.standard_normal((5, 4, 2, 2))
    both = Parts({"a": rows(images, "A"), "b": rows(series, "B")}).of("a", "b")
    assert both.variable.is_tensor
    assert both.variable.shape == (22,)
    expected = np.hstack([images.reshape(5, 6), series.reshape(5, 16)])
    np.testing.assert_allclose(both.tensor.numpy(), expected, rtol=1e-6)


def test_parts_must_have_the_same_rows():
    with pytest.raises(ValueError, match=r"inconsistent numbers of samples: {'A': 5, 'B': 4}"):
        Parts({"a": rows(np.arange(5.0), "A"), "b": rows(np.arange(4.0), "B")})


@pytest.mark.parametrize(
    ("came", "becomes"),
    [("f4", "f4"), ("f8", "f8"), (">f4", "f4"), (">i2", "i2"), ("u1", "u1"), ("?", "?"), ("g", "f8")],
)
def test_tensors_keep_their_type_as_far_as_torch_has_it(came, becomes):
    values = RNG.integers(0, 2, (3, 2, 2)).astype(came)[::-1]
    found = tensor_of(values, "X").numpy()
    assert found.dtype == becomes
    np.testing.assert_array_equal(found, values.astype(becomes))


def test_what_is_no_tensor_of_real_numbers_is_said():
    own = torch.ones((2, 2, 2), requires_grad=True)
    assert not tensor_of(own, "X").requires_grad
    with pytest.raises(ValueError, match="real numbers, got complex128"):
        tensor_of(np.ones((2, 2, 2), dtype=complex), "X")
    with pytest.raises(ValueError, match=r"X of shape \(1, 1, 1\) must hold numbers"):
        tensor_of(np.array([[["a"]]]), "X")
