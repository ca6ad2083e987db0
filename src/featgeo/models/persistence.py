"""Fitted models in files: tensors and JSON, never pickle.

A file is an archive (`featgeo.models.archive`) of `manifest.json` (what the model is made of), `tensors.safetensors`
(all arrays and long lists), and, for objects of the user's own types, one `.skops` member each. Loading creates the
classes listed here and in `featgeo.models.objects`, each with fields of the types that it declares, and nothing else:
no other class, no function, nothing by a name that a file brings, unless the user names it. A network of the user is
saved by its parameters alone, and handed in again at load.
"""

from __future__ import annotations

import copy
import dataclasses
import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy
import torch
from sklearn.base import BaseEstimator

from featgeo.assembly import calibration, links, support
from featgeo.features import (
    blocks,
    centred,
    columns,
    combined,
    encoding,
    forest,
    functions,
    given,
    index,
    label_means,
    networks,
    spaces,
    trees,
    variables,
    windows,
)
from featgeo.geometry import observed, spans
from featgeo.learning import learned, options, sources
from featgeo.models import (
    components,
    diagnostics,
    energies,
    foreign,
    given_s,
    identification,
    objects,
    side_posterior,
)
from featgeo.models.archive import Readable, RefusedError, damaged, parse, read_archive, write_archive
from featgeo.models.conditional import ConditionalDecomposition
from featgeo.models.modal import ModalDecomposition
from featgeo.models.multimodal import MultimodalDecomposition
from featgeo.models.predictors import FeatureClassifier, FeatureRegressor
from featgeo.models.sequential import SequentialDecomposition
from featgeo.schema import check, field_types

_TENSORS = "tensors.safetensors"
MODELS = {
    cls.__name__: cls
    for cls in (
        ModalDecomposition,
        FeatureClassifier,
        FeatureRegressor,
        ConditionalDecomposition,
        SequentialDecomposition,
        MultimodalDecomposition,
    )
}
RECORDS: dict[str, Any] = {
    cls.__name__: cls
    for cls in (
        columns.Column,
        variables.Variable,
        encoding.Encoding,
        spaces.TableSpace,
        spaces.SplineSpace,
        spaces.KernelSpace,
        spaces.TransformerSpace,
        spaces.NetworkSpace,
        combined.Sum,
        combined.Joint,
        combined.ColumnsSpace,
        forest.Forest,
        index.IndexRegressor,
        trees.Line,
        trees.Foreign,
        trees.Regressions,
        trees.RegressorSpace,
        label_means.LabelMeans,
        windows.WindowSpace,
        functions.SpanFunction,
        functions.TableFunction,
        spans.AffineFeatures,
        blocks.PartSpace,
        blocks.SideBySide,
        blocks.ScaledSpace,
        blocks.ProductSpace,
        centred.CentredSpace,
        observed.Metric,
        sources.SourceFeatures,
        sources.LearnedSources,
        identification.Identified,
        identification.Team,
        energies.Energy,
        energies.Energies,
        given.FunctionSpace,
        learned.Component,
        learned.Learned,
        support.Support,
        links.LinearLink,
        links.ExponentialLink,
        links.Recalibration,
        calibration.Calibration,
        options.Training,
        components.DependenceComponent,
        diagnostics.Panel,
        diagnostics.Report,
        given_s.FeaturesModel,
        given_s.WithResiduals,
        side_posterior.Posterior,
    )
}
_NOT_SAVED = {"unseen", "folds", "memo"}  # rows and moments of the fit, and what can be computed again
LONG = 64  # lists of more plain values than this are kept among the tensors, where they take less
LABEL = None | bool | int | float | str | bytes | datetime
# What attributes of fitted models are, where they have them.
ATTRIBUTES: dict[str, Any] = {
    "x_variable_": variables.Variable,
    "y_variable_": variables.Variable,
    "s_variable_": variables.Variable,
    "variables_": dict[str, variables.Variable],
    "sources_": tuple[str, ...],
    "teams_": tuple[identification.Team, ...],
    "identified_": dict[str, identification.Identified],
    "energies_": np.ndarray | energies.Energies | None,
    "symbol_": columns.Column,
    "orders_": tuple[int, ...] | tuple[components.DependenceComponent, ...],
    "alphabet_": np.ndarray | None,
    "feature_names_in_": np.ndarray,
    "n_features_in_": int,
    "classes_": np.ndarray,
    "learned_": learned.Learned | tuple[sources.LearnedSources, ...],
    "support_": support.Support,
    "aligned_support_g_": np.ndarray,
    "singular_values_": np.ndarray,
    "held_out_singular_values_": np.ndarray,
    "held_out_energies_": np.ndarray,
    "components_": dict[Any, components.DependenceComponent],
    "markov_": components.DependenceComponent,
    "conditional_": components.DependenceComponent,
    "interaction_component_": components.DependenceComponent | None,
    "strengths_": dict,
    "removed_": float,
    "n_modes_": int,
    "solver_": str,
    "spaces_": tuple,
    "calibration_": calibration.Calibration,
    "aligned_calibration_": calibration.Calibration,
    "report_": diagnostics.Report,
    "panels_": tuple[diagnostics.Panel, ...],
    "g_range_": np.ndarray,
    "y_given_s_": BaseEstimator | given_s.WithResiduals | None,
    "y_given_features_": given_s.FeaturesModel | None,
    "posterior_": side_posterior.Posterior,
}
# Without these a fitted model can answer nothing; what else it has depends on how it was fitted.
NEEDED: dict[str, set[str]] = {
    "ModalDecomposition": {"x_variable_", "y_variable_", "calibration_", "singular_values_"},
    "FeatureClassifier": {"x_variable_", "y_variable_", "calibration_", "singular_values_", "classes_"},
    "FeatureRegressor": {"x_variable_", "y_variable_", "calibration_", "singular_values_"},
    "ConditionalDecomposition": {"x_variable_", "y_variable_", "s_variable_", "posterior_"},
    "MultimodalDecomposition": {"variables_", "y_variable_", "teams_", "sources_", "strengths_"},
    "SequentialDecomposition": {"symbol_", "orders_", "calibration_"},
}
NEEDED_BY_ALL = {"support_", "components_", "solver_", "learned_"}
# What types of fields do not say.
RULES: dict[str, Callable[[Any], bool]] = {
    "Column": lambda made: all(isinstance(label, LABEL) for label in made.categories),
    "Foreign": lambda made: hasattr(made.regressor, "predict"),
    "TransformerSpace": lambda made: hasattr(made.transformer, "transform"),
}


def save(model: BaseEstimator, path: str | os.PathLike[str]) -> None:
    """Write a fitted model to a file; a file that is there already is replaced only once the new one is whole."""
    writer = _Writer()
    state = writer.model(model)
    members = {**writer.members, _TENSORS: safetensors.numpy.save(writer.tensors)}
    write_archive(path, {"featgeo": metadata.version("featgeo"), **state}, members)


def load(file: Readable, modules: Mapping[str, Any] | None = None, trusted: Sequence[str | type] = ()) -> Any:
    """Read a model that `save` wrote.

    Args:
        file: The path, or a binary file that is open for reading, such as `io.BytesIO`.
        modules: For models with networks of the user: modules of the same architecture, by the argument they came from
            ("x", "y", "s", "orthogonal_to", and "y_given_s.x" for the model of Y given S). They are copied, with the
            parameters in the file. For a model that is orthogonal to a function of the user, that function, as
            "orthogonal_to".
        trusted: Types other than those that featgeo itself writes which the file may create, or their full names. Their
            code may run: name them only if you trust whoever made the file.

    Raises:
        ValueError: If the file is not a model, is damaged, holds types that are not trusted, or comes from another
            major version of the format.
    """
    name = os.fspath(file) if isinstance(file, str | os.PathLike) else "The file"
    if isinstance(trusted, str):
        raise ValueError(f"`trusted` must be a list of names, got {trusted!r}. Pass trusted=[{trusted!r}].")
    names = {kind if isinstance(kind, str) else f"{kind.__module__}.{kind.__qualname__}" for kind in trusted}
    try:
        manifest, members = read_archive(file)
        return _decoded(manifest, members, dict(modules or {}), names)
    except FileNotFoundError:
        raise FileNotFoundError(f"There is no file {str(name)!r}. Correct the path.") from None
    except RefusedError as error:
        raise ValueError(f"{name} {error}") from error


def _decoded(manifest: dict[str, Any], members: dict[str, bytes], modules: dict[str, Any], trusted: set[str]) -> Any:
    kind = manifest.get("model")
    if not isinstance(kind, str) or kind not in MODELS:
        raise RefusedError(f"holds a {str(kind)[:40]!r}, which this version does not know. Upgrade featgeo.")
    try:
        return _Reader(members, modules, trusted).model({key: manifest[key] for key in _MODEL})
    except (RefusedError, _NotGivenError):
        raise
    except Exception as error:  # whatever a file makes go wrong is that file's fault
        raise damaged(f"{type(error).__name__}: {error}") from error


class _NotGivenError(ValueError):
    """What the user has to hand in."""


_MODEL = ("model", "parameters", "attributes")


class _Writer:
    """Objects as JSON, with arrays, long lists and objects of the user's types put aside."""

    def __init__(self) -> None:
        self.tensors: dict[str, np.ndarray] = {}
        self.members: dict[str, bytes] = {}
        self._known: dict[int, Any] = {}  # objects that several parts share are written once
        self._alive: list[Any] = []

    def encode(self, value: Any) -> Any:
        if value is None or isinstance(value, bool | int | str):
            return value
        if isinstance(value, float):
            return value if math.isfinite(value) else {"float": str(value)}
        if isinstance(value, np.generic) and value.dtype.kind in "biufUS":
            return self.encode(value.item())
        if isinstance(value, tuple | list):
            if len(value) > LONG and all(isinstance(part, None | bool | int | float | str) for part in value):
                return {"long": type(value).__name__, **self._texts(value)}
            return {type(value).__name__: [self.encode(part) for part in value]}
        if isinstance(value, dict):
            return {"dict": [[self.encode(key), self.encode(part)] for key, part in value.items()]}
        if isinstance(value, Path):
            return str(value)
        if isinstance(value, bytes):
            return {"bytes": value.hex()}
        if isinstance(value, datetime):
            return {"datetime": value.isoformat()}
        if isinstance(value, np.random.RandomState | np.random.Generator):
            return None  # where it stood is not part of what was learned
        if id(value) not in self._known:
            self._alive.append(value)
            self._known[id(value)] = self._encode_object(value)
        return self._known[id(value)]

    def model(self, model: BaseEstimator) -> dict[str, Any]:
        """What an estimator is made of."""
        return {
            "model": type(model).__name__,
            "parameters": self.encode(model.get_params(deep=False)),
            "attributes": self.encode({name: value for name, value in vars(model).items() if name.endswith("_")}),
        }

    def _encode_object(self, value: Any) -> Any:
        if type(value).__name__ in MODELS:
            return self.model(value)
        if isinstance(value, np.ndarray):
            return self._array(value)
        if type(value).__name__ in RECORDS and dataclasses.is_dataclass(value):
            fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
            kept = {name: self.encode(part) for name, part in fields.items() if name not in _NOT_SAVED}
            return {"record": type(value).__name__, "fields": kept}
        if isinstance(value, torch.nn.Module):
            return self._module(value)
        found = objects.plain(value)
        if found is not None:
            return {"object": found[0], "state": self.encode(found[1])}
        if isinstance(value, BaseEstimator):
            name = f"object-{len(self.members)}.skops"
            self.members[name] = foreign.pack(value)
            return {"foreign": name}
        if callable(value):
            return {"function": "orthogonal_to"}
        raise ValueError(
            f"A {type(value).__name__} cannot be saved. Parts of a model must be arrays, scikit-learn objects, torch "
            "modules or plain values."
        )

    def _array(self, array: np.ndarray) -> Any:
        if array.dtype.kind in "OUS":
            return {"labels": array.dtype.kind, **self._texts(array.ravel().tolist()), "shape": list(array.shape)}
        if array.dtype.kind in "mM":
            return {"times": self._array(array.view(np.int64)), "dtype": array.dtype.str}
        return {"array": self._tensor(array), "shape": list(array.shape)}

    def _tensor(self, array: np.ndarray) -> str:
        name = f"array-{len(self.tensors)}"
        self.tensors[name] = np.ascontiguousarray(array)
        return name

    def _texts(self, items: Sequence[Any]) -> dict[str, Any]:
        """Plain values as one long text and the length of each; JSON where they are not all texts."""
        as_they_are = all(type(item) is str for item in items)
        texts = items if as_they_are else [json.dumps(self.encode(item), allow_nan=False) for item in items]
        parts = [text.encode("utf-8", "surrogatepass") for text in texts]
        return {
            "text": self._tensor(np.frombuffer(b"".join(parts), dtype=np.uint8)),
            "lengths": self._tensor(np.array([len(part) for part in parts], dtype=np.int64)),
            "json": not as_they_are,
        }

    def _module(self, module: torch.nn.Module) -> Any:
        state = {name: self.encode(tensor.detach().cpu().numpy()) for name, tensor in module.state_dict().items()}
        config = getattr(module, "config", None)
        return {"module": config if isinstance(config, dict) else None, "state": state}


class _Reader:
    """The way back. What is not exactly what the writer writes is refused."""

    def __init__(self, members: dict[str, bytes], modules: dict[str, Any], trusted: set[str], inside: str = "") -> None:
        self._members = members
        self._tensors = safetensors.numpy.load(members[_TENSORS])
        self._modules = modules
        self._trusted = trusted
        self._inside = inside  # the argument that holds this model, where it is part of another
        self._objects: dict[str, Any] = {}
        self._kinds = {
            ("float",): lambda value: float(value["float"]),
            ("bytes",): lambda value: bytes.fromhex(value["bytes"]),
            ("datetime",): lambda value: datetime.fromisoformat(value["datetime"]),
            ("tuple",): lambda value: tuple(self.decode(part) for part in _a_list(value["tuple"])),
            ("list",): lambda value: [self.decode(part) for part in _a_list(value["list"])],
            ("dict",): self._dict,
            ("json", "lengths", "long", "text"): self._long,
            ("array", "shape"): lambda value: self._tensor(value["array"]).reshape(_a_shape(value["shape"])),
            ("json", "labels", "lengths", "shape", "text"): self._labels,
            ("dtype", "times"): self._times,
            ("object", "state"): self._object,
            ("foreign",): self._foreign,
            ("module", "state"): self._module,
            ("attributes", "model", "parameters"): self._inner_model,
            ("function",): self._function,
            ("fields", "record"): self._record,
        }

    def model(self, value: dict[str, Any]) -> Any:
        """An estimator again."""
        made = MODELS[value["model"]](**self.decode(value["parameters"]))
        attributes = self.decode(value["attributes"])
        for name, part in attributes.items():
            if not name.isidentifier() or not name.endswith("_") or name.startswith("__"):
                raise damaged(f"an attribute {name[:40]!r}")
            setattr(made, name, part)
        missing = (NEEDED[value["model"]] | NEEDED_BY_ALL) - attributes.keys()
        if missing:
            raise damaged(f"a {value['model']} without {sorted(missing)}")
        for name in attributes.keys() & ATTRIBUTES.keys():
            check(attributes[name], ATTRIBUTES[name], name)
        if isinstance(made.learned_, tuple) != isinstance(made, MultimodalDecomposition):
            raise damaged(f"what a {value['model']} learned")
        return made

    def decode(self, value: Any) -> Any:
        if not isinstance(value, dict):
            if isinstance(value, list):
                raise damaged("a list where none is written")
            return value
        kind = self._kinds.get(tuple(sorted(value)))
        if kind is None:
            raise damaged(f"a value of no known kind: {str(sorted(value))[:80]}")
        return kind(value)

    def _dict(self, value: dict[str, Any]) -> dict[Any, Any]:
        return {self.decode(key): self.decode(part) for key, part in _a_list(value["dict"])}

    def _tensor(self, name: str) -> np.ndarray:
        return self._tensors[name]

    def _texts(self, value: dict[str, Any]) -> list[Any]:
        content, lengths = self._tensor(value["text"]).tobytes(), self._tensor(value["lengths"])
        if (lengths < 0).any() or lengths.sum() != len(content):
            raise damaged("texts of other lengths")
        ends = np.cumsum(lengths).tolist()
        parts = (content[end - length : end] for end, length in zip(ends, lengths.tolist(), strict=True))
        if value["json"] is True:
            return [self.decode(parse(part)) for part in parts]
        return [part.decode("utf-8", "surrogatepass") for part in parts]

    def _long(self, value: dict[str, Any]) -> Any:
        return {"tuple": tuple, "list": list}[value["long"]](self._texts(value))

    def _labels(self, value: dict[str, Any]) -> np.ndarray:
        items = self._texts(value)
        if value["labels"] == "O":
            array = np.empty(len(items), dtype=object)
            array[:] = items
        else:
            array = np.array(items, dtype={"U": np.str_, "S": np.bytes_}[value["labels"]])
        return array.reshape(_a_shape(value["shape"]))

    def _times(self, value: dict[str, Any]) -> np.ndarray:
        dtype = np.dtype(value["dtype"])
        if dtype.kind not in "mM":
            raise damaged(f"times of type {dtype}")
        return self.decode(value["times"]).view(dtype)

    def _inner_model(self, value: dict[str, Any]) -> Any:
        return _Reader(self._members, self._modules, self._trusted, f"{self._inside}y_given_s.").model(value)

    def _object(self, value: dict[str, Any]) -> Any:
        if value["object"] not in objects.NAMES:
            raise damaged(f"a {str(value['object'])[:40]!r}, which featgeo never writes")
        return objects.rebuilt(value["object"], self.decode(value["state"]))

    def _foreign(self, value: dict[str, Any]) -> Any:
        name = value["foreign"]
        if name not in self._objects:
            self._objects[name] = foreign.unpack(self._members[name], self._trusted)
        return self._objects[name]

    def _function(self, value: dict[str, Any]) -> Any:
        name = value["function"]
        if name != "orthogonal_to":
            raise damaged(f"a function {str(name)[:40]!r}")
        if name not in self._modules:
            raise _NotGivenError(
                f"This model has a function of your own as `{name}`. Pass the same one: load(path, "
                f"modules={{{name!r}: function}})."
            )
        return self._modules[name]

    def _record(self, value: dict[str, Any]) -> Any:
        cls, fields = RECORDS[value["record"]], dict(value["fields"])
        ready: dict[str, Any] = {}
        if value["record"] == "NetworkSpace":  # the only record whose module may be one of the user
            ready["module"] = self._module(fields.pop("module"), fields["side"])
        ready |= {name: self.decode(part) for name, part in fields.items()}
        for name, hint in field_types(cls).items():
            if name in ready:
                check(ready[name], hint, f"{name} of a {value['record']}")
        made = cls(**ready)
        if not RULES.get(value["record"], lambda _: True)(made):
            raise damaged(f"parts of a {value['record']}")
        return made

    def _module(self, value: dict[str, Any], side: str | None = None) -> torch.nn.Module | None:
        """A network with its parameters; one of the user must be handed in, or stays out where it was a mere option."""
        state = {name: torch.from_numpy(self.decode(part)) for name, part in value["state"].items()}
        if value["module"] is not None:
            return networks.rebuild(value["module"], state).eval()
        if side is None:
            return None
        where = self._inside + side
        if where not in self._modules:
            raise _NotGivenError(
                f"This model has a network of your own on the side of {where}. Pass one of the same architecture: "
                f"load(path, modules={{{where!r}: module}})."
            )
        module: torch.nn.Module = copy.deepcopy(self._modules[where])
        try:
            module.load_state_dict(state)
        except RuntimeError as error:
            raise _NotGivenError(
                f"The module for {where!r} has another architecture than the saved one: {error}. Pass one of the same."
            ) from error
        return module.eval()


def _a_list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise damaged(f"a {type(value).__name__} where a list is written")
    return value


def _a_shape(value: Any) -> list[int]:
    shape = _a_list(value)
    if not all(type(size) is int and size >= 0 for size in shape):
        raise damaged(f"a shape {str(shape)[:40]}")
    return shape
