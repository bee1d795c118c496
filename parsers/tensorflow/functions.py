"""The function library of a graph: FunctionDefs as bodies, their attributes filled in.

Nodes of a function read its arguments by name and each other as ``node:output_arg:index``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from ge.errors import ReportedError
from parsers.tensorflow import graph_def_pb2 as pb
from parsers.tensorflow.control_flow import raise_body
from parsers.tensorflow.custom import custom_operator
from parsers.tensorflow.tf_graph import Reference, TfBody, TfNode, read_reference

Attributes = Mapping[str, pb.AttrValue]

MAX_ARGUMENTS = 65536
"""Tensors that one argument of a function may stand for."""

_OUTPUTS = {
    "_FusedBatchNormEx": "y batch_mean batch_variance reserve_space_1 reserve_space_2 reserve_space_3",
    "BlockLSTM": "i cs f o ci co h",
    "BlockLSTMV2": "i cs f o ci co h",
    "CombinedNonMaxSuppression": "nmsed_boxes nmsed_scores nmsed_classes valid_detections",
    "CTCGreedyDecoder": "decoded_indices decoded_values decoded_shape log_probability",
    "CudnnRNN": "output output_h output_c reserve_space",
    "FractionalAvgPool": "output row_pooling_sequence col_pooling_sequence",
    "FractionalMaxPool": "output row_pooling_sequence col_pooling_sequence",
    "FusedBatchNorm": "y batch_mean batch_variance reserve_space_1 reserve_space_2",
    "FusedBatchNormV2": "y batch_mean batch_variance reserve_space_1 reserve_space_2",
    "FusedBatchNormV3": "y batch_mean batch_variance reserve_space_1 reserve_space_2 reserve_space_3",
    "GRUBlockCell": "r u c h",
    "InstanceNorm": "y mean variance",
    "LayerNorm": "y mean variance",
    "LSTMBlockCell": "i cs f o ci co h",
    "ListDiff": "out idx",
    "LogMatrixDeterminant": "sign log_abs_determinant",
    "Lu": "lu p",
    "MaxPoolWithArgmax": "output argmax",
    "Merge": "output value_index",
    "NonMaxSuppressionV4": "selected_indices valid_outputs",
    "NonMaxSuppressionV5": "selected_indices selected_scores valid_outputs",
    "Qr": "q r",
    "QuantizeV2": "output output_min output_max",
    "QuantizedConv2D": "output min_output max_output",
    "QuantizedMatMul": "out min_out max_out",
    "RefMerge": "output value_index",
    "RefSwitch": "output_false output_true",
    "Requantize": "output output_min output_max",
    "SampleDistortedBoundingBox": "begin size bboxes",
    "SampleDistortedBoundingBoxV2": "begin size bboxes",
    "SelfAdjointEigV2": "e v",
    "SoftmaxCrossEntropyWithLogits": "loss backprop",
    "SparseReshape": "output_indices output_shape",
    "SparseSoftmaxCrossEntropyWithLogits": "loss backprop",
    "Svd": "s u v",
    "Switch": "output_false output_true",
    "TensorArrayConcatV3": "value lengths",
    "TensorArrayV3": "handle flow",
    "TensorListConcat": "tensor lengths",
    "TensorListConcatV2": "tensor lengths",
    "TensorListPopBack": "output_handle tensor",
    "TopK": "values indices",
    "TopKV2": "values indices",
    "Unique": "y idx",
    "UniqueV2": "y idx",
    "UniqueWithCounts": "y idx count",
    "UniqueWithCountsV2": "y idx count",
}
"""The outputs of operators that have several. All others have one, which may be a list."""


@dataclass(frozen=True, eq=False)
class Called:
    """A function that an attribute names, with the attributes that it is given."""

    name: str
    attributes: Attributes = field(default_factory=dict)

    def key(self) -> tuple[str, tuple[tuple[str, bytes], ...]]:
        """Return what tells this call's body from that of others."""
        given = sorted((name, value.SerializeToString(deterministic=True)) for name, value in self.attributes.items())
        return self.name, tuple(given)


def functions_in(node: TfNode) -> Iterator[Called]:
    """Return the functions that the attributes of a node name."""
    for value in node.attributes.values():
        kind = value.WhichOneof("value")
        if kind == "func":
            yield Called(value.func.name, dict(value.func.attr))
        elif kind == "list":
            for func in value.list.func:
                yield Called(func.name, dict(func.attr))


class FunctionLibrary:
    """The functions of a file by name."""

    def __init__(self, functions: Mapping[str, pb.FunctionDef]) -> None:
        self._functions = functions
        self._bodies: dict[object, TfBody] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._functions

    def nodes(self, name: str) -> tuple[list[TfNode], set[str]]:
        """Return the nodes of a function as they are written, and the names that they can read; for checks.

        Raises E12013 for a function that is not there.
        """
        reader = _Reader(self._find(name), self._functions, None)
        nodes = [reader.node(proto) for proto in reader.function.node_def]
        return nodes, {*reader.arguments, *(node.name for node in nodes)}

    def body(self, called: Called) -> TfBody:
        """Return what runs when a function is called: its control flow raised, what its results do not need left out.

        Raises E12013 for a function that is not there, E11010 for arguments or results that cannot be made out.
        """
        key = called.key()
        if key not in self._bodies:
            self._bodies[key] = _Reader(self._find(called.name), self._functions, called.attributes).body()
        return self._bodies[key]

    def _find(self, name: str) -> pb.FunctionDef:
        function = self._functions.get(name)
        if function is None:
            raise ReportedError("E12013", functionname=name)
        return function


class _Reader:
    """Reads one function. ``given`` are the attributes of a call; without them nodes keep theirs unfilled."""

    def __init__(
        self, function: pb.FunctionDef, functions: Mapping[str, pb.FunctionDef], given: Attributes | None
    ) -> None:
        self.function = function
        self.name = function.signature.name
        self.arguments = {arg.name for arg in function.signature.input_arg}
        self._functions = functions
        self._ops = {node.name: node.op for node in function.node_def}
        self._given = None if given is None else {**_defaults(function), **given}

    def body(self) -> TfBody:
        """Return the function as a body."""
        signature = self.function.signature
        arguments = [(Reference(arg.name, k),) for arg in signature.input_arg for k in range(self._count(arg))]
        nodes = [self.node(node) for node in self.function.node_def]
        results: list[Reference] = []
        for arg in signature.output_arg:
            if arg.name not in self.function.ret:
                raise self._fault(f"nothing says what its result {arg.name} is")
            first = self._reference(self.function.ret[arg.name], f"result {arg.name} of function {self.name}")
            results += [first._replace(output=first.output + k) for k in range(self._count(arg))]
        return TfBody(arguments, raise_body(nodes, results), results, self.name)

    def node(self, proto: pb.NodeDef) -> TfNode:
        """Return a node; references that cannot be read are kept as its faults."""
        inputs: list[Reference] = []
        faults: list[ReportedError] = []
        for text in proto.input:
            if text.startswith("^"):
                continue
            try:
                inputs.append(self._reference(text, f"input {len(inputs)} of node {self.name}/{proto.name}"))
            except ReportedError as fault:
                faults.append(fault)
        controls = dict.fromkeys(text[1:] for text in proto.input if text.startswith("^"))
        attributes = {name: self._filled(name, value) for name, value in proto.attr.items()}
        return TfNode(proto.name, proto.op, tuple(inputs), tuple(controls), attributes, tuple(faults))

    def _reference(self, text: str, owner: str) -> Reference:
        name, *rest = text.split(":")
        if name in self.arguments or len(rest) < 2:
            if len(rest) == 1 and name in self._ops and not rest[0].isdecimal():
                return Reference(name, self._first_output(name, rest[0]))
            return read_reference(text, owner)
        last = read_reference(f"{name}:{rest[-1]}", owner)
        return last._replace(output=last.output + self._first_output(name, ":".join(rest[:-1])))

    def _first_output(self, name: str, output: str) -> int:
        """Return the number of the first tensor of an output of a node."""
        op = self._ops.get(name, "")
        called, custom = self._functions.get(op), custom_operator(op)
        if op in _OUTPUTS:
            names = _OUTPUTS[op].split()
        elif called is not None:
            names = [arg.name for arg in called.signature.output_arg]
        elif custom is not None and len(custom.signature.outputs) > 1:
            names = [port.name for port in custom.signature.outputs]
        else:
            return 0
        if output not in names:
            raise self._fault(f"node {name} ({op}) has no output {output}, but {', '.join(names)}")
        return names.index(output)

    def _count(self, arg: pb.OpDef.ArgDef) -> int:
        """Return how many tensors an argument or a result stands for."""
        wanted = arg.number_attr or arg.type_list_attr
        if not wanted:
            return 1
        value = (self._given or {}).get(wanted)
        kind = None if value is None else value.WhichOneof("value")
        count = -1 if value is None else value.i if kind == "i" else len(value.list.type) if kind == "list" else -1
        if not 0 <= count <= MAX_ARGUMENTS:
            raise self._fault(f"attribute {wanted} does not say how many tensors {arg.name} is")
        return count

    def _filled(self, name: str, value: pb.AttrValue) -> pb.AttrValue:
        """Return an attribute with what the call gives in place of placeholders."""
        if self._given is None:
            return value
        kind = value.WhichOneof("value")
        if kind == "placeholder":
            found = self._given.get(value.placeholder)
            if found is None or found.WhichOneof("value") in (None, "placeholder"):
                raise self._fault(f"its call gives no attribute {value.placeholder}, which {name} of a node stands for")
            return found
        funcs = [value.func] if kind == "func" else list(value.list.func) if kind == "list" else []
        if not any(inner.WhichOneof("value") == "placeholder" for func in funcs for inner in func.attr.values()):
            return value
        filled = pb.AttrValue()
        filled.CopyFrom(value)
        for func in [filled.func] if kind == "func" else filled.list.func:
            for inner_name in list(func.attr):
                func.attr[inner_name].CopyFrom(self._filled(inner_name, func.attr[inner_name]))
        return filled

    def _fault(self, reason: str) -> ReportedError:
        return ReportedError("E11010", opname=self.name, optype="function", reason=reason)


def _defaults(function: pb.FunctionDef) -> dict[str, pb.AttrValue]:
    given = {spec.name: spec.default_value for spec in function.signature.attr if spec.HasField("default_value")}
    given.update(function.attr)
    return given
