"""Fitted models in files: tensors and JSON, never pickle.

A file is a zip archive: `manifest.json` (what the model is made of, and the checksum of every other member),
`tensors.safetensors` (all arrays), and one `.skops` member for each scikit-learn object. Only classes of this library
and scikit-learn's own types are ever created on loading; others must be named by the user. A network of the user is
saved by its parameters alone, and handed in again at load.
"""

from __future__ import annotations

import copy
import dataclasses
import hashlib
import json
import math
import os
import zipfile
import zlib
from collections.abc import Mapping, Sequence
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
    functions,
    given,
    networks,
    spaces,
    trees,
    variables,
    windows,
)
from featgeo.geometry import observed, spans
from featgeo.learning import learned, options, sources
from featgeo.models import components, diagnostics, energies, given_s, identification, side_posterior
from featgeo.models.conditional import ConditionalDecomposition
from featgeo.models.modal import ModalDecomposition
from featgeo.models.multimodal import MultimodalDecomposition
from featgeo.models.predictors import FeatureClassifier, FeatureRegressor
from featgeo.models.sequential import SequentialDecomposition

FORMAT_VERSION = (1, 0)
_MANIFEST, _TENSORS = "manifest.json", "tensors.safetensors"
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
        spaces.LinearSpace,
        spaces.SplineSpace,
        spaces.KernelSpace,
        spaces.TransformerSpace,
        spaces.NetworkSpace,
        combined.Sum,
        combined.Joint,
        combined.CombinedSpace,
        trees.RegressorSpace,
        windows.WindowSpace,
        functions.SpanFunction,
        functions.TableFunction,
        spans.AffineFeatures,
        blocks.PartSpace,
        blocks.SideBySide,
        blocks.ScaledSpace,
        blocks.NoFunctions,
        blocks.ProductSpace,
        blocks.InteractionSpace,
        centred.MeanGiven,
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
# Our own regressor, and what scikit-learn's estimators hold besides their own types. The function inside a partial is
# checked by itself.
KNOWN_TYPES = (
    "featgeo.features.index.IndexRegressor",
    "functools.partial",
    "scipy._lib.array_api_compat.numpy._aliases.asarray",
    "scipy.interpolate._bsplines.BSpline",
)
_NOT_SAVED = {"unseen", "folds", "memo"}  # rows and moments of the fit, and what can be computed again


def save(model: BaseEstimator, path: str | os.PathLike[str]) -> None:
    """Write a fitted model to a file; a file that is there already is replaced only once the new one is whole."""
    writer = _Writer()
    state = writer.model(model)
    members = {**writer.members, _TENSORS: safetensors.numpy.save(writer.tensors)}
    manifest = {
        "format": "featgeo",
        "version": FORMAT_VERSION,
        "featgeo": metadata.version("featgeo"),
        "members": {name: hashlib.sha256(content).hexdigest() for name, content in members.items()},
        **state,
    }
    target = Path(path)
    partial = target.with_name(f".{target.name}.{os.getpid()}.partial")
    try:
        with zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(_MANIFEST, json.dumps(manifest))
            for name, content in members.items():
                archive.writestr(name, content)
        os.replace(partial, target)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


def load(
    path: str | os.PathLike[str],
    modules: Mapping[str, Any] | None = None,
    trusted: Sequence[str] = (),
) -> Any:
    """Read a model that `save` wrote.

    Args:
        path: The file.
        modules: For models with networks of the user: modules of the same architecture, by the argument they came from
            ("x", "y", "s", "orthogonal_to", and "y_given_s.x" for the model of Y given S). They are copied, with the
            parameters in the file. For a model that is orthogonal to a function of the user, that function, as
            "orthogonal_to".
        trusted: Full names of types other than scikit-learn's own that the file may create.

    Raises:
        ValueError: If the file is not a model, is damaged, or comes from another major version of the format.
    """
    manifest, members = _read(Path(path))
    if manifest["model"] not in MODELS:
        raise ValueError(f"{path} holds a {manifest['model']!r}, which this version does not know. Upgrade featgeo.")
    return _Reader(members, dict(modules or {}), tuple(trusted)).model(manifest)


def _read(path: Path) -> tuple[dict[str, Any], dict[str, bytes]]:
    try:
        with zipfile.ZipFile(path) as archive:
            content = {name: archive.read(name) for name in archive.namelist()}
        manifest = json.loads(content.pop(_MANIFEST))
        kind, version, checksums = manifest["format"], manifest["version"], manifest["members"]
    except FileNotFoundError:
        raise
    except (
        zipfile.BadZipFile,
        zlib.error,
        KeyError,
        ValueError,
        TypeError,
        EOFError,
        OSError,
        NotImplementedError,
    ) as error:
        raise ValueError(
            f"{path} is not a featgeo model, or it is damaged or cut short ({error}). Save the model again."
        ) from error
    if kind != "featgeo" or version[0] != FORMAT_VERSION[0]:
        raise ValueError(
            f"{path} has format version {version} and this featgeo reads version {FORMAT_VERSION[0]}.x. Load it with "
            f"the featgeo that wrote it ({manifest.get('featgeo')}), or fit the model again."
        )
    for name, checksum in checksums.items():
        if hashlib.sha256(content.get(name, b"")).hexdigest() != checksum:
            raise ValueError(
                f"{path} is damaged: {name!r} does not have the checksum of its manifest. Save the model again."
            )
    return manifest, {name: content[name] for name in checksums}


class _Writer:
    """Objects as JSON, with arrays and scikit-learn objects put aside."""

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
        if isinstance(value, np.generic):
            return self.encode(value.item())
        if isinstance(value, tuple | list):
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
        if isinstance(value, BaseEstimator):
            name = f"sklearn-{len(self.members)}.skops"
            from skops import io  # slow to import

            self.members[name] = io.dumps(value)
            return {"sklearn": name}
        if callable(value):
            return {"function": "orthogonal_to"}
        raise ValueError(
            f"A {type(value).__name__} cannot be saved. Parts of a model must be arrays, scikit-learn objects, torch "
            "modules or plain values."
        )

    def _array(self, array: np.ndarray) -> Any:
        if array.dtype.kind in "OUS":
            labels = [self.encode(item) for item in array.ravel().tolist()]
            return {"labels": labels, "dtype": array.dtype.kind, "shape": list(array.shape)}
        if array.dtype.kind in "mM":
            return {"times": self._array(array.view(np.int64)), "dtype": array.dtype.str}
        name = f"array-{len(self.tensors)}"
        self.tensors[name] = np.ascontiguousarray(array)
        return {"array": name, "shape": list(array.shape)}

    def _module(self, module: torch.nn.Module) -> Any:
        state = {name: self.encode(tensor.detach().cpu().numpy()) for name, tensor in module.state_dict().items()}
        config = getattr(module, "config", None)
        return {"module": config if isinstance(config, dict) else None, "state": state}


class _Reader:
    """The way back."""

    def __init__(
        self, members: dict[str, bytes], modules: dict[str, Any], trusted: tuple[str, ...], inside: str = ""
    ) -> None:
        self._members = members
        self._tensors = safetensors.numpy.load(members[_TENSORS])
        self._modules = modules
        self._trusted = trusted
        self._inside = inside  # the argument that holds this model, where it is part of another
        self._objects: dict[str, Any] = {}

    def model(self, value: dict[str, Any]) -> Any:
        """An estimator again."""
        model = MODELS[value["model"]](**self.decode(value["parameters"]))
        for name, part in self.decode(value["attributes"]).items():
            setattr(model, name, part)
        return model

    def decode(self, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        if "float" in value:
            return float(value["float"])
        if "bytes" in value:
            return bytes.fromhex(value["bytes"])
        if "datetime" in value:
            return datetime.fromisoformat(value["datetime"])
        for kind, container in (("tuple", tuple), ("list", list)):
            if kind in value:
                return container(self.decode(part) for part in value[kind])
        if "dict" in value:
            return {self.decode(key): self.decode(part) for key, part in value["dict"]}
        if "array" in value:
            return self._tensors[value["array"]].reshape(value["shape"])
        if "labels" in value:
            return self._labels(value)
        if "times" in value:
            return self.decode(value["times"]).view(value["dtype"])
        if "sklearn" in value:
            return self._sklearn(value["sklearn"])
        if "module" in value:
            return self._module(value)
        if "model" in value:
            inner = _Reader(self._members, self._modules, self._trusted, f"{self._inside}y_given_s.")
            return inner.model(value)
        if "function" in value:
            return self._function(value["function"])
        return self._record(value)

    def _function(self, name: str) -> Any:
        if name not in self._modules:
            raise ValueError(
                f"This model has a function of your own as `{name}`. Pass the same one: load(path, "
                f"modules={{{name!r}: function}})."
            )
        return self._modules[name]

    def _record(self, value: dict[str, Any]) -> Any:
        fields = dict(value["fields"])
        ready: dict[str, Any] = {}
        if value["record"] == "NetworkSpace":  # the only record whose module may be one of the user
            ready["module"] = self._module(fields.pop("module"), fields["side"])
        return RECORDS[value["record"]](**ready, **{name: self.decode(part) for name, part in fields.items()})

    @staticmethod
    def _as_object_array(items: list[Any]) -> np.ndarray:
        array = np.empty(len(items), dtype=object)
        array[:] = items
        return array

    def _labels(self, value: dict[str, Any]) -> np.ndarray:
        items = [self.decode(item) for item in value["labels"]]
        array = self._as_object_array(items) if value["dtype"] == "O" else np.array(items)
        return array.reshape(value["shape"])

    def _sklearn(self, name: str) -> Any:
        if name not in self._objects:
            from skops import io  # slow to import

            content = self._members[name]
            wanted = io.get_untrusted_types(data=content)
            known = {*KNOWN_TYPES, *self._trusted}
            foreign = [kind for kind in wanted if not kind.startswith("sklearn.") and kind not in known]
            if foreign:
                raise ValueError(
                    f"The file wants to create {foreign}, which are not scikit-learn's own types. If you trust its "
                    f"source, pass load(path, trusted={foreign})."
                )
            self._objects[name] = io.loads(content, trusted=wanted)
        return self._objects[name]

    def _module(self, value: dict[str, Any], side: str | None = None) -> torch.nn.Module | None:
        """A network with its parameters; one of the user must be handed in, or stays out where it was a mere option."""
        state = {name: torch.from_numpy(self.decode(part)) for name, part in value["state"].items()}
        module: torch.nn.Module | None
        if value["module"] is not None:
            module = networks.build(value["module"])
        elif side is None:
            return None
        elif self._inside + side in self._modules:
            module = copy.deepcopy(self._modules[self._inside + side])
        else:
            raise ValueError(
                f"This model has a network of your own on the side of {self._inside + side}. Pass one of the same "
                f"architecture: load(path, modules={{{self._inside + side!r}: module}})."
            )
        try:
            module.load_state_dict(state)
        except RuntimeError as error:
            raise ValueError(f"The module for {side!r} has another architecture than the saved one: {error}") from error
        return module.eval()
