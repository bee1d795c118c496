"""Operators of the domain ai.onnx.ml on features and labels."""

from __future__ import annotations

from typing import Any

import numpy as np

from ge.graph import DataType
from ge.graph.types import FLOATING
from parsers.onnx.mapping import Mapped, maps
from parsers.onnx.node_builder import NodeBuilder

ML = "ai.onnx.ml"


@maps("ArrayFeatureExtractor", domain=ML)
def array_feature_extractor(n: NodeBuilder) -> Mapped:
    """Before: ArrayFeatureExtractor(x, y). After: Reshape(y) to a vector -> GatherV2 along the last axis of x."""
    x = n.need(0)
    if n.rank() == 1:
        x = n.add("Unsqueeze", x, role="Unsqueeze", axes=[0]).output()
    which = n.add("Reshape", n.need(1), n.int64([-1], "Shape"), role="Reshape")
    return n.add("GatherV2", x, which, n.index("Const", -1))


@maps("Binarizer", domain=ML)
def binarizer(n: NodeBuilder) -> Mapped:
    """Before: Binarizer(x). After: Greater(x, threshold) -> Cast; integers are above it when above its floor."""
    x, threshold = n.need(0), n.attr("threshold")
    dtype = n.dtype(x)
    limit = n.scalar("Threshold", threshold if dtype in FLOATING else int(np.floor(threshold)), dtype)
    return n.add("Cast", n.add("Greater", x, limit, role="Greater"), dst_type=int(dtype))


_KINDS = {"int64": np.int64, "float": np.float32, "string": np.object_}
_DEFAULTS = {"i": -1, "u": -1, "f": -0.0, "O": "_Unused"}


@maps("LabelEncoder", domain=ML)
def label_encoder(n: NodeBuilder) -> Mapped:
    """Before: LabelEncoder. After: XLabelEncoder with keys, values and default as Const."""
    if n.since_version == 1:
        classes = _strings(n.attr("classes_strings", []))
        places = np.arange(len(classes), dtype=np.int64)
        is_text = n.dtype(n.need(0)) is DataType.DT_STRING
        keys, values = (classes, places) if is_text else (places, classes)
    else:
        keys, values = _list(n, "keys"), _list(n, "values")
    parts = [
        n.const(role, array) for role, array in (("Keys", keys), ("Values", values), ("Default", _default(n, values)))
    ]
    return n.add("XLabelEncoder", n.need(0), *parts)


def _strings(texts: list[str]) -> Any:
    array = np.empty(len(texts), np.object_)
    array[:] = [text.encode() for text in texts]
    return array


def _list(n: NodeBuilder, name: str) -> Any:
    """Return keys or values from the one attribute that holds them."""
    given = [kind for kind in (*_KINDS, "tensor") if n.has_attr(f"{name}_{kind}{'' if kind == 'tensor' else 's'}")]
    if len(given) != 1:
        raise n.fail(f"exactly one of its attributes {name}_* must be given, not {given}")
    kind = given[0]
    if kind == "tensor":
        return np.ravel(n.attr(f"{name}_tensor"))
    found = n.attr(f"{name}_{kind}s")
    return _strings(found) if kind == "string" else np.asarray(found, _KINDS[kind])


def _default(n: NodeBuilder, values: Any) -> Any:
    if n.has_attr("default_tensor"):
        return np.ravel(n.attr("default_tensor"))
    name = {"int64": "default_int64", "float32": "default_float", "object": "default_string"}.get(values.dtype.name)
    found: Any = _DEFAULTS[values.dtype.kind] if name is None else n.attr(name)
    return _strings([found]) if values.dtype == np.object_ else np.asarray([found], values.dtype)


_TREE_LISTS = {
    "nodes_featureids": "feature_ids",
    "nodes_truenodeids": "true_ids",
    "nodes_falsenodeids": "false_ids",
    "nodes_trueleafs": "true_leafs",
    "nodes_falseleafs": "false_leafs",
    "nodes_missing_value_tracks_true": "missing_true",
    "tree_roots": "roots",
    "leaf_targetids": "target_ids",
}


@maps("TreeEnsemble", domain=ML)
def tree_ensemble(n: NodeBuilder) -> Mapped:
    """Before: TreeEnsemble(x). After: XTreeEnsemble with splits, weights and members as Const."""
    tensors = [("Splits", "nodes_splits"), ("Weights", "leaf_weights"), ("Members", "membership_values")]
    parts = [n.const(role, np.ravel(n.attr(name))) if n.has_attr(name) else None for role, name in tensors]
    attrs = {ge_name: n.attr(name, []) for name, ge_name in _TREE_LISTS.items()}
    return n.add(
        "XTreeEnsemble",
        n.need(0),
        *parts,
        **attrs,
        modes=[int(mode) for mode in np.ravel(n.attr("nodes_modes"))],
        n_targets=n.attr("n_targets", max(attrs["target_ids"], default=0) + 1),
        aggregate_function=n.attr("aggregate_function"),
        post_transform=n.attr("post_transform"),
    )
