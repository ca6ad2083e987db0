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

import copy
import io
import os
import warnings
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from featgeo.assembly.links import ExponentialLink, Link, LocatedLink, MixedLink, Recalibration, Support, edges_of
from featgeo.features.columns import UNKNOWN
from featgeo.features.space import Fields, Space, interpolated
from featgeo.features.variables import Rows, Table, Variable
from featgeo.files import write_whole
from featgeo.models.modal import ModalDecomposition

Part = Literal["f", "g", "posterior"]
ANY_ROWS = ({0: torch.export.Dim("rows")},)


def as_module(model: ModalDecomposition, part: Part) -> nn.Module:
    """A part of a fitted model as a torch module.

    Args:
        model: A fitted `ModalDecomposition`, `FeatureClassifier` or `FeatureRegressor`.
        part: "f", the features of X, (n, k), as `transform` gives them; "g", those of Y; or "posterior", the
            probability of each of the values `support_.values` of Y given X, (n, m), as `given(X).proba()` gives them.

    Returns:
        A module from the tensor that `encode_inputs` makes to the part's values, in double precision.

    Raises:
        NotImplementedError: If the features are made by objects of scikit-learn or functions of the user's own, or read
            given rows besides.
    """
    variable = _variable(model, part)
    function: Space = model._main.g if part == "g" else model._main.f
    if part == "posterior" and model.learned_.mean is not None:
        function = model.learned_.mean.beside(model._main.f)
    _check_ours(function, variable, with_given=hasattr(model, "z_variable_") and part != "g")
    module = _OfInputs(variable, copy.deepcopy(function).cpu())
    return (_Posterior(module, model) if part == "posterior" else module).eval().requires_grad_(False)


def encode_inputs(model: ModalDecomposition, X: Any, part: Part = "posterior") -> Tensor:
    """The tensor that a part's module reads, as the docstring of this file describes it.

    Args:
        model: A fitted model.
        X: Rows of X, as for `transform`; rows of Y where the part is "g".
        part: What the tensor is for.
    """
    variable = _variable(model, part)
    rows = variable.rows(model._as_y(X) if part == "g" else X)
    if variable.is_tensor:
        return rows.tensor.float()
    return torch.from_numpy(np.hstack([rows.table.numbers, rows.table.codes])[:, _order(variable)])


def to_torch(model: ModalDecomposition, part: Part, path: str | os.PathLike[str]) -> None:
    """Write a part of a fitted model, as in `as_module`, to a file that `torch.export.load` reads.

    A file that is there already is replaced only once the new one is whole.
    """
    with io.BytesIO() as buffer, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's own, about its internals
        torch.export.save(torch.export.export(*_example(model, part), dynamic_shapes=ANY_ROWS), buffer)
        write_whole(path, buffer.getvalue())


def to_onnx(model: ModalDecomposition, part: Part, path: str | os.PathLike[str]) -> None:
    """Write a part of a fitted model, as in `as_module`, to an ONNX file; its input is "inputs", its output the part.

    A file that is there already is replaced only once the new one is whole.
    """
    try:
        import onnxscript  # noqa: F401 (torch.onnx needs it)
    except ImportError as error:
        raise ImportError("ONNX files need further packages. Run: pip install 'featgeo[export]'.") from error
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's own, about its internals
        program: Any = torch.onnx.export(
            *_example(model, part),
            dynamo=True,
            dynamic_shapes=ANY_ROWS,
            input_names=["inputs"],
            output_names=[part],
            verbose=False,
        )
    write_whole(path, program.model_proto.SerializeToString())


def _variable(model: Any, part: Part) -> Variable:
    """The variable that a part of a model reads."""
    if not isinstance(model, ModalDecomposition):
        raise NotImplementedError(
            "A ModalDecomposition, FeatureClassifier or FeatureRegressor can be exported, got a "
            f"{type(model).__name__}. Keep the model itself with `save`."
        )
    check_is_fitted(model)
    if part not in ("f", "g", "posterior"):
        raise ValueError(f"`part` must be 'f', 'g' or 'posterior', got {part!r}.")
    variable: Variable = model.y_variable_ if part == "g" else model.x_variable_
    for column in variable.columns:
        if column.origin or column.exponent:
            raise NotImplementedError(
                f"Column {column.name!r} of {variable.name} holds numbers too large or too small for a tensor of them "
                "to be exact. Subtract what they have in common, or scale them, and fit again."
            )
    return variable


def _order(variable: Variable) -> np.ndarray:
    """Where numbers and then codes stand in inputs: there they are in the order of the columns."""
    return np.argsort(np.concatenate(variable.owners), kind="stable")


def _example(model: ModalDecomposition, part: Part) -> tuple[nn.Module, tuple[Tensor]]:
    """A part as a module, and inputs that it can be traced with."""
    module, variable = as_module(model, part), _variable(model, part)
    shape, kind = (variable.shape, None) if variable.is_tensor else ((len(_order(variable)),), torch.float64)
    return module, (torch.zeros(2, *shape, dtype=kind),)


def _check_ours(function: Space, variable: Variable, with_given: bool) -> None:
    """Refuse functions of what is not ours, or of more than the tensor of inputs."""
    foreign = [type(part).__name__ for part in function.modules() if isinstance(part, Fields) and not part.is_ours]
    if foreign or with_given:
        raise NotImplementedError(
            f"Spaces of featgeo's own can be exported, and the functions of {variable.name} are of "
            f"{'given rows besides' if with_given else f'a {foreign[0]}'}: transformers and regressors of "
            "scikit-learn, functions of your own and models with given rows Z cannot. Fit with "
            f"{variable.name.lower()}_space='kernel' or another that has a name, or keep the model itself with `save`."
        )


class _OfInputs(Fields):
    """A function of a variable as one of the input tensor."""

    def __init__(self, variable: Variable, function: Space) -> None:
        self.variable, self.function = variable, function
        self.order = _order(variable).argsort().tolist() if variable.columns else []
        # Where labels missed in the fit, missing is a label of its own.
        codes = [len(column.categories) if column.missing else UNKNOWN for column in variable.labels]
        self.missing_codes = np.array(codes, dtype=np.float64)

    def forward(self, inputs: Tensor) -> Tensor:
        shape = self.variable.shape or (len(self.order),)
        if tuple(inputs.shape[1:]) != shape:
            raise ValueError(
                f"The input must have rows of shape {shape} as in the fit, got {tuple(inputs.shape)}. `encode_inputs` "
                "makes it."
            )
        rows = Rows(self.variable, None, inputs.device)
        rows.__dict__["tensor"] = inputs
        if not self.variable.is_tensor:
            n_numbers = len(self.order) - len(self.missing_codes)
            numbers, codes = inputs.double()[:, self.order].tensor_split([n_numbers], dim=1)
            codes = torch.where(torch.isnan(codes), self.tensor("missing_codes"), codes).long()
            as_read: Any = (numbers, codes)
            rows.__dict__.update(tensor=numbers, table=Table(*as_read))
        return self.function.forward(rows)


class _Posterior(Fields):
    """Features of X, links to density ratios, and the prior."""

    def __init__(self, f: nn.Module, model: ModalDecomposition) -> None:
        link, recalibration = model.link_, model.recalibration_
        links, shares = (link.links, link.shares) if isinstance(link, MixedLink) else ((link,), np.ones(1))
        self.f, self.mass, self.prior, self.shares = f, model.support_.mass, model._prior, shares
        support = model._read_support
        sigma = np.append(np.ones(support.g.shape[1] - model.n_modes_), model.singular_values_)
        self.ratios = tuple(_ratio(one, support, sigma) for one in links)
        self.recalibration = recalibration
        if recalibration is not None and recalibration.along is not None:
            scaled = recalibration.along.weight * np.append(1.0, sigma)
            self.recalibration = replace(recalibration, along=replace(recalibration.along, weight=scaled))

    def forward(self, inputs: Tensor) -> Tensor:
        f, shares = self.f(inputs), self.tensor("shares")
        weights = sum(shares[i] * ratio(f) for i, ratio in enumerate(self.ratios)) * self.tensor("mass")
        if self.recalibration is not None:
            weights = recalibrated(weights, self.recalibration, f)
        if self.prior is not None:
            weights = weights * (self.tensor("prior") / self.tensor("mass"))
            weights = torch.where(weights.sum(dim=1, keepdim=True) > 0, weights, self.tensor("prior"))
        return weights / weights.sum(dim=1, keepdim=True)


def _ratio(link: Link, support: Support, sigma: np.ndarray) -> Fields:
    """A link as a function of features of unit variance."""
    if isinstance(link, LocatedLink):
        return _Located(link, support, sigma)
    # sigma goes into the weights: onnxruntime would make a factor of a matrix product single precision.
    if isinstance(link, ExponentialLink):
        return _Softmax((link.weight * sigma).T, link.bias)
    return _Linear((support.g * sigma).T, support.mass, getattr(link, "prior_share", 0.0))


class _Linear(Fields):
    """`LinearLink`."""

    def __init__(self, weight: np.ndarray, mass: np.ndarray, prior_share: float) -> None:
        self.weight, self.mass, self.prior_share = weight, mass, float(prior_share)

    def forward(self, f: Tensor) -> Tensor:
        share = self.tensor("prior_share")
        density = nearest_density(1 + f @ self.tensor("weight"), self.tensor("mass"))
        return (1 - share) * density + share


class _Softmax(Fields):
    """`ExponentialLink`."""

    def __init__(self, weight: np.ndarray, bias: np.ndarray) -> None:
        self.weight, self.bias = weight, bias

    def forward(self, f: Tensor) -> Tensor:
        values = f @ self.tensor("weight") + self.tensor("bias")
        return torch.exp(values - values.amax(dim=1, keepdim=True))


class _Located(Fields):
    """`LocatedLink`."""

    def __init__(self, link: LocatedLink, support: Support, sigma: np.ndarray) -> None:
        self.edges, self.mass = edges_of(support, link.by_rank), support.mass
        scaled = np.append(1.0, sigma)
        self.link = replace(link, mean=link.mean * scaled, log_spread=link.log_spread * scaled)

    def forward(self, f: Tensor) -> Tensor:
        return self.link.between(f, self.tensor("edges")) / self.tensor("mass")


def recalibrated(weights: Tensor, recalibration: Recalibration, f: Tensor) -> Tensor:
    """`Recalibration` of probabilities of ordered values, (n, m), of rows with these features, (n, k)."""
    cumulative = torch.cumsum(weights / weights.sum(dim=1, keepdim=True), dim=1).clamp(max=1)
    if recalibration.along is not None:
        shift, stretch = recalibration.along.of(f)
        cumulative = torch.sigmoid((torch.log(cumulative) - torch.log1p(-cumulative) - shift) / stretch)
    predicted, observed = (
        torch.as_tensor(part[None], dtype=f.dtype, device=f.device)
        for part in (recalibration.predicted, recalibration.observed)
    )
    upper = interpolated(cumulative, predicted, observed)
    lower = torch.cat([torch.zeros_like(upper[:, :1]), upper[:, :-1]], dim=1)
    return (upper - lower).clamp(min=0)


def nearest_density(ratio: Tensor, mass: Tensor) -> Tensor:
    """`nearest_density` of each row, (n, m): the largest values stay, as many as lie above the shift that they need."""
    ordered, order = torch.sort(ratio, dim=1, descending=True)
    masses = mass[order]
    shifts = (torch.cumsum(ordered * masses, dim=1) - 1) / torch.cumsum(masses, dim=1)
    kept = (ordered > shifts).sum(dim=1, keepdim=True)
    return (ratio - torch.gather(shifts, 1, kept - 1)).clamp(min=0)


__all__ = ["as_module", "encode_inputs", "to_onnx", "to_torch"]
