"""Fitted models as plain torch modules, and as files that run without this library: torch.export and ONNX.

What a module reads is one tensor, a row a sample; `encode_inputs` makes it:

- For a table, shape (n, columns), in double precision, with the columns in the order of the fit. Numbers are as they
  are; a label is its position among the `categories` of its `Column`, and -1 where the fit never saw it. NaN means
  missing, for numbers and for labels. A date takes several columns: days since 1970, then those of month (1 to 12),
  weekday (Monday is 0) and hour that varied in the fit.
- For images, sequences and other tensors, the tensor itself, in single precision; whole numbers too.
- For g of a classifier, one column: the position of the label among `classes_`.

All is computed in double precision but networks, which stay as they are. Modules have no control flow that depends on
data, so that one graph serves all inputs; and their numbers are buffers, because ONNX makes Python's own numbers single
precision, unless they are exact there.
"""

from __future__ import annotations

import io
import os
import warnings
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from featgeo.assembly.links import ExponentialLink, LinearLink, Link
from featgeo.assembly.support import Support
from featgeo.features.functions import FeatureFunction, SpanFunction, TableFunction
from featgeo.features.spaces import KernelSpace, LinearSpace, NetworkSpace, Space, SplineSpace, TableSpace
from featgeo.features.variables import Variable
from featgeo.files import write_whole
from featgeo.geometry.validation import Array
from featgeo.models.torch_parts import (
    AffineModule,
    EncodedNetwork,
    EncodingModule,
    ExponentialLinkModule,
    KernelModule,
    LinearLinkModule,
    NetworkModule,
    OfColumns,
    Posterior,
    SplinesModule,
    SymbolIndicators,
    SymbolValues,
    are_labels,
    frozen,
)

if TYPE_CHECKING:
    from featgeo.models.modal import ModalDecomposition

Part = Literal["f", "g", "posterior"]


def as_module(model: ModalDecomposition, part: Part) -> nn.Module:
    """A part of a fitted model as a torch module.

    Args:
        model: A fitted `ModalDecomposition`, `FeatureClassifier` or `FeatureRegressor`.
        part: "f", the features of X, (n, k), as `transform` gives them; "g", those of Y; or "posterior", the
            probability of each of the values `support_.values` of Y given X, (n, m), as `given(X).proba()` gives them.

    Returns:
        A module from the tensor that `encode_inputs` makes to the part's values, in double precision.

    Raises:
        NotImplementedError: If the features are made by trees or by objects of scikit-learn, or leave given ones out.
    """
    _check_kind(model)
    variable = _variable(model, part)
    function = _function(model._main.g if part == "g" else model._main.f, variable)
    if part == "posterior":
        link = _link(model.link_, model.support_, model.singular_values_)
        return frozen(Posterior(function, link, model.support_, model.recalibration_))
    return frozen(function)


def encode_inputs(model: ModalDecomposition, X: Any, part: Part = "posterior") -> Tensor:
    """The tensor that a part's module reads, as the docstring of this file describes it.

    Args:
        model: A fitted model.
        X: Rows of X, as for `transform`; rows of Y where the part is "g".
        part: What the tensor is for.
    """
    _check_kind(model)
    variable = _variable(model, part)
    rows = variable.rows(model._as_y(X) if part == "g" else X)
    if variable.is_tensor:
        return rows.tensor.float()
    numbers, codes = iter(rows.table.numbers.T), iter(rows.table.codes.T.astype(np.float64))
    columns = [next(codes if is_label else numbers) for is_label in are_labels(variable)]
    return torch.from_numpy(np.stack(columns, axis=1))


def to_torch(model: ModalDecomposition, part: Part, path: str | os.PathLike[str]) -> None:
    """Write a part of a fitted model, as in `as_module`, to a file that `torch.export.load` reads.

    A file that is there already is replaced only once the new one is whole.
    """
    with warnings.catch_warnings(), io.BytesIO() as buffer:
        warnings.simplefilter("ignore")  # torch's own, about its internals
        program = torch.export.export(
            as_module(model, part), (_example(_variable(model, part)),), dynamic_shapes=_any_number_of_rows()
        )
        torch.export.save(program, buffer)
        content = buffer.getvalue()
    write_whole(path, content)


def to_onnx(model: ModalDecomposition, part: Part, path: str | os.PathLike[str]) -> None:
    """Write a part of a fitted model, as in `as_module`, to an ONNX file; its input is "inputs", its output the part.

    A file that is there already is replaced only once the new one is whole.
    """
    try:
        import onnxscript  # noqa: F401 (torch.onnx needs it)
    except ImportError as error:
        raise ImportError("ONNX files need further packages. Run: pip install 'featgeo[export]'.") from error
    module = as_module(model, part)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's own, about its internals
        program = torch.onnx.export(
            module,
            (_example(_variable(model, part)),),
            dynamo=True,
            dynamic_shapes=_any_number_of_rows(),
            input_names=["inputs"],
            output_names=[part],
            verbose=False,
        )
    if program is None:
        raise RuntimeError("torch.onnx.export gave no program. Upgrade torch.")
    write_whole(path, program.model_proto.SerializeToString())


def _check_kind(model: Any) -> None:
    from featgeo.models.modal import ModalDecomposition

    if not isinstance(model, ModalDecomposition):
        raise NotImplementedError(
            "A ModalDecomposition, FeatureClassifier or FeatureRegressor can be exported, got a "
            f"{type(model).__name__}. Keep the model itself with `save`."
        )
    check_is_fitted(model)


def _variable(model: ModalDecomposition, part: Part) -> Variable:
    if part not in ("f", "g", "posterior"):
        raise ValueError(f"`part` must be 'f', 'g' or 'posterior', got {part!r}.")
    if not hasattr(model, "_main"):
        raise ValueError(
            f"ModalDecomposition, FeatureClassifier and FeatureRegressor can be exported, got {type(model).__name__}. "
            "Keep the model itself with `save`."
        )
    variable: Variable = model.y_variable_ if part == "g" else model.x_variable_
    for column in variable.columns:
        if column.origin or column.exponent:
            raise NotImplementedError(
                f"Column {column.name!r} of {variable.name} holds numbers too large or too small for a tensor of them "
                "to be exact. Subtract what they have in common, or scale them, and fit again."
            )
    return variable


def _example(variable: Variable) -> Tensor:
    if variable.is_tensor:
        return torch.zeros(2, *variable.shape)
    return torch.zeros(2, len(are_labels(variable)), dtype=torch.float64)


def _any_number_of_rows() -> tuple[dict[int, Any]]:
    return ({0: torch.export.Dim("rows")},)


def _function(function: FeatureFunction, variable: Variable) -> nn.Module:
    if isinstance(function, TableFunction):
        return OfColumns(variable, SymbolValues(function))
    if isinstance(function, SpanFunction):
        return nn.Sequential(_space(function.space, variable), AffineModule(function))
    raise NotImplementedError(
        f"Only functions inside a space and tables of values can be exported, got {type(function).__name__}. Keep the "
        "model itself with `save`."
    )


def _space(space: Space, variable: Variable) -> nn.Module:
    if isinstance(space, NetworkSpace) and space.encoding is None:
        return NetworkModule(space.module, variable.shape or (len(are_labels(variable)),))
    return OfColumns(variable, _space_of_columns(space, variable.name))


def _space_of_columns(space: Space, name: str) -> nn.Module:
    if isinstance(space, TableSpace):
        return SymbolIndicators(space)
    if isinstance(space, LinearSpace):
        return EncodingModule(space.encoding)
    if isinstance(space, SplineSpace):
        return SplinesModule(space)
    if isinstance(space, KernelSpace):
        return KernelModule(space)
    if isinstance(space, NetworkSpace) and space.encoding is not None:
        return EncodedNetwork(space.module, space.encoding)
    raise NotImplementedError(
        f"Tables, linear spaces, splines, kernels and networks can be exported, and the functions of {name} are of a "
        f"{type(space).__name__}: trees, indices, windows, regressors, transformers of scikit-learn and models with "
        f"given features cannot. Fit with {name.lower()}_space='kernel' or another of those, or keep the model itself "
        "with `save`."
    )


def _link(link: Link, support: Support, sigma: Array) -> nn.Module:
    # sigma goes into the weights: onnxruntime would make a factor of a matrix product single precision.
    if isinstance(link, LinearLink):
        return LinearLinkModule(link, support, sigma)
    if isinstance(link, ExponentialLink):
        return ExponentialLinkModule(link, sigma)
    raise NotImplementedError(
        f"LinearLink and ExponentialLink can be exported, got {type(link).__name__}. Export part 'f' and assemble the "
        "probabilities yourself."
    )


__all__ = ["as_module", "encode_inputs", "to_onnx", "to_torch"]
