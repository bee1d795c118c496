"""Graphs under construction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any

import numpy as np

from ge.call_tree import parent_slot
from ge.error import GeError
from ge.es.scopes import attr_scope, control_dependency_scope, current_attrs, current_dependencies
from ge.es.tensor_holder import TensorHolder
from ge.graph.graph import Graph
from ge.graph.node import Node, NodeOut
from ge.graph.tensor import Tensor
from ge.graph.tensor_desc import TensorDesc, checked_dims
from ge.graph.types import DataType, Format, numpy_dtype

__all__ = ["GraphBuilder", "InputType", "attr_scope", "control_dependency_scope"]


class InputType(Enum):
    """Operator types of graph inputs."""

    DATA = "Data"
    REF_DATA = "RefData"
    AIPP_DATA = "AippData"
    ANY_DATA = "AnyData"


class GraphBuilder:
    """Builds one graph. After :meth:`build_and_reset` every further call is a ``RuntimeError``.

    Nodes are named ``<Type>_<n>`` with one counter. Arguments of other types are ``TypeError``s, tensors of another
    builder and values that do not fit ``ValueError``s.
    """

    def __init__(self, name: str | None = None) -> None:
        self._graph = Graph("graph" if name is None else name)
        self._count = 0
        self._inputs: dict[int, Node] = {}
        self._outputs: dict[int, NodeOut] = {}
        self._is_built = False

    def __copy__(self) -> GraphBuilder:
        raise GeError("a GraphBuilder cannot be copied")

    def __deepcopy__(self, memo: dict[int, Any]) -> GraphBuilder:
        raise GeError("a GraphBuilder cannot be copied")

    @property
    def name(self) -> str:
        """The name of the graph."""
        return self._graph.name

    def _check_usable(self, action: str) -> None:
        if self._is_built:
            raise GeError(f"cannot {action}: the graph {self.name} is built already, use a new GraphBuilder")

    def _check_own(self, tensor: object, what: str = "tensor") -> TensorHolder:
        if not isinstance(tensor, TensorHolder):
            raise TypeError(f"{what} must be a TensorHolder, not {type(tensor).__name__}")
        if tensor.get_owner_builder() is not self:
            raise ValueError(f"{what} {tensor.name} belongs to the builder {tensor.get_owner_builder().name}")
        return tensor

    # -- inputs ----------------------------------------------------------------------------------------------------
    def create_input(
        self,
        index: int,
        *,
        name: str | None = None,
        type_str: InputType = InputType.DATA,
        data_type: DataType = DataType.DT_FLOAT,
        format: Format = Format.FORMAT_ND,
        shape: list[int] | None = None,
    ) -> TensorHolder:
        """Add the graph input ``index`` (contiguous from 0 when the graph is built). ``shape`` ``None`` is a scalar."""
        self._check_usable("create an input")
        _checked(index, int, "index")
        _checked(type_str, InputType, "type_str")
        node_name = f"input_{index}" if name is None else _checked(name, str, "name")
        desc = TensorDesc(() if shape is None else checked_dims(shape), format, data_type)
        if index < 0 or index in self._inputs:
            reason = "is negative" if index < 0 else f"is taken by {self._inputs[index].name}"
            raise GeError(f"graph {self.name}: input index {index} {reason}")
        holder = self._add_node(type_str.value, node_name, attrs={"index": index}, descs=[desc])
        self._inputs[index] = holder._get_node_snapshot()
        return holder

    def create_inputs(self, num: int, start_index: int = 0) -> list[TensorHolder]:
        """Add ``num`` float scalar inputs, the first of them at ``start_index``."""
        self._check_usable("create inputs")
        if not isinstance(num, int) or num <= 0:
            raise TypeError(f"num must be a positive int, not {num!r}")
        if not isinstance(start_index, int) or start_index < 0:
            raise TypeError(f"start_index must be an int of at least 0, not {start_index!r}")
        return [self.create_input(index) for index in range(start_index, start_index + num)]

    def create_variable(self, index: int, name: str) -> TensorHolder:
        """Add a node of the type Variable. It has no value here: compiled models hold constants only."""
        self._check_usable("create a variable")
        attrs = {"index": _checked(index, int, "index")}
        return self._add_node("Variable", _checked(name, str, "name"), attrs=attrs)

    # -- constants -------------------------------------------------------------------------------------------------
    # ``value`` is a number or a flat list; ``shape`` ``None`` is a scalar for a number and [n] for a list of n.
    def create_const_int64(self, value: int | list[int], shape: list[int] | None = None) -> TensorHolder:
        """Add an int64 constant."""
        return self._constant(DataType.DT_INT64, value, shape)

    def create_const_int32(self, value: int | list[int], shape: list[int] | None = None) -> TensorHolder:
        """Add an int32 constant."""
        return self._constant(DataType.DT_INT32, value, shape)

    def create_const_uint64(self, value: int | list[int], shape: list[int] | None = None) -> TensorHolder:
        """Add a uint64 constant."""
        return self._constant(DataType.DT_UINT64, value, shape)

    def create_const_uint32(self, value: int | list[int], shape: list[int] | None = None) -> TensorHolder:
        """Add a uint32 constant."""
        return self._constant(DataType.DT_UINT32, value, shape)

    def create_const_float(
        self, value: float | list[float] | list[int | float], shape: list[int] | None = None
    ) -> TensorHolder:
        """Add a float constant."""
        return self._constant(DataType.DT_FLOAT, value, shape)

    def create_vector_int64(self, value: list[int]) -> TensorHolder:
        """Add an int64 constant of one dim."""
        return self._constant(DataType.DT_INT64, _checked(value, list, "value"), None)

    def create_scalar_int64(self, value: int) -> TensorHolder:
        """Add an int64 constant without dims."""
        return self._constant(DataType.DT_INT64, _number(value), None)

    def create_scalar_int32(self, value: int) -> TensorHolder:
        """Add an int32 constant without dims."""
        return self._constant(DataType.DT_INT32, _number(value), None)

    def create_scalar_uint64(self, value: int) -> TensorHolder:
        """Add a uint64 constant without dims."""
        return self._constant(DataType.DT_UINT64, _number(value), None)

    def create_scalar_uint32(self, value: int) -> TensorHolder:
        """Add a uint32 constant without dims."""
        return self._constant(DataType.DT_UINT32, _number(value), None)

    def create_scalar_float(self, value: float) -> TensorHolder:
        """Add a float constant without dims."""
        return self._constant(DataType.DT_FLOAT, _number(value), None)

    def _constant(self, data_type: DataType, value: Any, shape: list[int] | None) -> TensorHolder:
        self._check_usable("create a constant")
        values = value if isinstance(value, list) else [value]
        allowed = (int, float) if data_type is DataType.DT_FLOAT else int
        if not all(isinstance(v, allowed) for v in values):
            raise TypeError(f"a {data_type.name} constant is made of numbers of that kind, not of {value!r}")
        implied = [len(values)] if isinstance(value, list) else []
        dims = checked_dims(implied if shape is None else shape)
        if dims.elements != len(values):
            raise ValueError(f"shape {dims} has {dims.elements} elements, {len(values)} values are given")
        target = numpy_dtype(data_type)
        if target.kind in "iu":
            limits = np.iinfo(target)
            outside = [v for v in values if not limits.min <= v <= limits.max]
            if outside:
                raise ValueError(f"{outside[0]} is outside the range of {data_type.name}")
        try:
            with np.errstate(over="ignore"):  # a float beyond the range of float32 is infinite there
                tensor = Tensor.of(np.array(values, dtype=target).reshape(dims))
        except OverflowError as fault:
            raise ValueError(f"a value does not fit into {data_type.name}: {fault}") from None
        return self._add_node("Const", self._next_name("Const"), attrs={"value": tensor}, descs=[tensor.desc.copy()])

    # -- nodes -----------------------------------------------------------------------------------------------------
    def _next_name(self, type: str) -> str:
        while True:
            name = f"{type}_{self._count}"
            self._count += 1
            if name not in self._graph:
                return name

    def _add_node(
        self,
        type: str,
        name: str,
        inputs: Sequence[NodeOut | None] = (),
        attrs: Mapping[str, Any] | None = None,
        descs: Sequence[TensorDesc] | None = None,
        n_outputs: int = 1,
    ) -> TensorHolder:
        """Add a node under the scopes in force and return the holder of its first output (of the node without any)."""
        node = self._graph.add_node(type, name, inputs, attrs, n_outputs, descs)
        for key, value in current_attrs.get().items():
            node.set_attr(key, value)
        holder = TensorHolder._of(self, node, 0 if node.output_descs else -1)
        if current_dependencies.get():
            self.add_control_dependency(holder, list(current_dependencies.get()))
        return holder

    def _add_operator(
        self,
        type: str,
        inputs: Sequence[TensorHolder | None],
        attrs: Mapping[str, Any],
        n_outputs: int,
        bodies: Sequence[tuple[str, Graph]] = (),
    ) -> list[TensorHolder]:
        """Add an operator and return a holder per output, for one without outputs a holder of the node.

        ``inputs`` are flat; ``bodies`` are ``(name in the signature, graph)``, whose graphs the builder takes over.
        """
        self._check_usable(f"create a {type}")
        sources = [None if x is None else self._check_own(x)._output() for x in inputs]
        name = self._next_name(type)
        for _, body in bodies:
            self._adopt(body)
        first = self._add_node(type, name, sources, attrs, n_outputs=n_outputs)
        node = first._get_node_snapshot()
        node.subgraphs = [(formal, body.name) for formal, body in bodies]
        for _, body in bodies:
            for data in body.data_nodes():
                data.attrs["_parent_node_index"] = parent_slot(data, node)
        if isinstance(attrs.get("value"), Tensor):
            node.set_attr("value", attrs["value"])  # a Const made as an operator: its descriptor follows
        return [TensorHolder._of(self, node, index) for index in range(n_outputs)] if n_outputs else [first]

    def _adopt(self, body: Graph) -> None:
        """Take over a built graph. Its nodes get its name in front: node names are unique per model."""
        self._graph.add_subgraph(body)
        for node in body.get_direct_nodes():
            body.rename(node, f"{body.name}/{node.name}")

    # -- outputs and attributes ------------------------------------------------------------------------------------
    def set_graph_output(self, tensor: TensorHolder, output_index: int) -> None:
        """Make ``tensor`` the graph output ``output_index`` (contiguous from 0 when the graph is built)."""
        self._check_usable("set a graph output")
        out = self._check_own(tensor)._output()
        if _checked(output_index, int, "output_index") < 0 or output_index in self._outputs:
            reason = "is negative" if output_index < 0 else f"is taken by {self._outputs[output_index]}"
            raise GeError(f"graph {self.name}: output index {output_index} {reason}")
        self._outputs[output_index] = out

    def set_graph_attr_int64(self, attr_name: str, value: int) -> None:
        """Set an int attribute of the graph."""
        self._set_graph_attr(attr_name, value, int)

    def set_graph_attr_string(self, attr_name: str, value: str) -> None:
        """Set a string attribute of the graph."""
        self._set_graph_attr(attr_name, value, str)

    def set_graph_attr_bool(self, attr_name: str, value: bool) -> None:
        """Set a bool attribute of the graph."""
        self._set_graph_attr(attr_name, value, bool)

    def set_tensor_attr_int64(self, tensor: TensorHolder, attr_name: str, value: int) -> None:
        """Set an int attribute of the tensor's descriptor."""
        self._set_tensor_attr(tensor, attr_name, value, int)

    def set_tensor_attr_string(self, tensor: TensorHolder, attr_name: str, value: str) -> None:
        """Set a string attribute of the tensor's descriptor."""
        self._set_tensor_attr(tensor, attr_name, value, str)

    def set_tensor_attr_bool(self, tensor: TensorHolder, attr_name: str, value: bool) -> None:
        """Set a bool attribute of the tensor's descriptor."""
        self._set_tensor_attr(tensor, attr_name, value, bool)

    def set_node_attr_int64(self, tensor: TensorHolder, attr_name: str, value: int) -> None:
        """Set an int attribute of the node that makes the tensor."""
        self._set_node_attr(tensor, attr_name, value, int)

    def set_node_attr_string(self, tensor: TensorHolder, attr_name: str, value: str) -> None:
        """Set a string attribute of the node that makes the tensor."""
        self._set_node_attr(tensor, attr_name, value, str)

    def set_node_attr_bool(self, tensor: TensorHolder, attr_name: str, value: bool) -> None:
        """Set a bool attribute of the node that makes the tensor."""
        self._set_node_attr(tensor, attr_name, value, bool)

    def _set_graph_attr(self, name: str, value: object, kind: type[Any]) -> None:
        self._check_usable("set a graph attribute")
        self._graph.set_attr(name, _checked(value, kind, "value"))

    def _set_tensor_attr(self, tensor: TensorHolder, name: str, value: object, kind: type[Any]) -> None:
        self._check_usable("set a tensor attribute")
        out = self._check_own(tensor)._output()
        out.node.set_output_attr(name, out.index, _checked(value, kind, "value"))

    def _set_node_attr(self, tensor: TensorHolder, name: str, value: object, kind: type[Any]) -> None:
        self._check_usable("set a node attribute")
        node = self._check_own(tensor)._get_node_snapshot()
        node.set_attr(name, _checked(value, kind, "value"))

    def add_control_dependency(self, dst_tensor: TensorHolder, src_tensors: list[TensorHolder]) -> None:
        """Let the node of ``dst_tensor`` run after the nodes of ``src_tensors``."""
        self._check_usable("add a control dependency")
        after = self._check_own(dst_tensor, "dst_tensor")._get_node_snapshot()
        for tensor in _checked(src_tensors, list, "src_tensors"):
            self._graph.add_control_edge(self._check_own(tensor, "src_tensors")._get_node_snapshot(), after)

    def build_and_reset(self, outputs: list[TensorHolder] | None = None) -> Graph:
        """Return the graph. ``outputs``, if given, become its outputs from 0 on.

        Raises ``RuntimeError`` when indexes of inputs or outputs have gaps. Holders stay good for looking at nodes.
        """
        self._check_usable("build")
        if outputs is not None:
            if not isinstance(outputs, list | tuple):
                raise TypeError(f"outputs must be a list of TensorHolder, not {type(outputs).__name__}")
            for index, tensor in enumerate(outputs):
                self.set_graph_output(tensor, index)
        for what, taken in (("input", self._inputs), ("output", self._outputs)):
            missing = next((i for i in range(len(taken)) if i not in taken), None)
            if missing is not None:
                raise GeError(f"graph {self.name} has {len(taken)} {what}s but no {what} {missing}")
        if self._outputs:
            results = [self._outputs[index] for index in range(len(self._outputs))]
            name = self._graph.unique_name(f"NetOutput_{self.name}")
            self._graph.add_node("NetOutput", name, results, output_descs=[])
        self._is_built = True
        return self._graph


def _checked(value: Any, kind: type[Any], what: str) -> Any:
    if not isinstance(value, kind):
        raise TypeError(f"{what} must be {kind.__name__}, not {type(value).__name__}")
    return value


def _number(value: Any) -> Any:
    if not isinstance(value, int | float):
        raise TypeError(f"value must be a number, not {type(value).__name__}")
    return value
