"""Reported errors: one code, one message, one remedy.

Every fault that a user can cause is raised as a :class:`ReportedError`. The catalogue is a table: per code the message
template and the remedy; the command lines print both and nothing else. Codes ``E1xxxx``/``W1xxxx`` are CANN's and keep
CANN's meaning; ``R1xxx`` are those of ``om-run``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from string import Formatter


@dataclass(frozen=True)
class CatalogueEntry:
    """Message template (``str.format`` holes) and remedy of one code."""

    template: str
    solution: str


_MOST_SHOWN = 1000
"""Characters of a value that a message shows; values come from files and command lines, of any length."""
_UNPRINTABLE = re.compile(r"\n(?! )")


def printable(text: str) -> str:
    """Return ``text`` with escapes for what a terminal would obey: control characters, and breaks of the line.

    A line that begins with a blank stays a line: it cannot be taken for one of the program's own.
    """
    if text.isprintable():
        return text
    lines = _UNPRINTABLE.sub(r"\\n", text).split("\n")
    return "\n".join("".join(c if c.isprintable() else _escape(c) for c in line) for line in lines)


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode()


def _shortened(text: str) -> str:
    if len(text) <= _MOST_SHOWN:
        return text
    return f"{text[: _MOST_SHOWN // 2]} ... {text[-_MOST_SHOWN // 4 :]} ({len(text)} characters)"


class ReportedError(Exception):
    """A fault to be shown to the user: ``ReportedError("E10016", opname="y", parameter="--input_shape")``.

    ``solution`` replaces the catalogue's remedy where the place of the fault knows a better one; ``also`` carries
    further errors of the same kind that are printed after this one (all unsupported operators at once, for instance).
    Unknown codes and missing holes are programming errors and raise ``KeyError``.
    """

    def __init__(
        self, code: str, /, *, solution: str | None = None, also: tuple[ReportedError, ...] = (), **fields: object
    ) -> None:
        entry = CATALOGUE[code]
        missing = [hole for _, hole, _, _ in Formatter().parse(entry.template) if hole and hole not in fields]
        if missing:
            raise KeyError(f"{code} needs the fields {missing}")
        self.code = code
        self.fields = fields
        shown = {name: _shortened(printable(str(value))) for name, value in fields.items()}
        self.message = entry.template.format(**shown)
        self.solution = entry.solution.format(**shown) if solution is None else solution
        self.also = also
        super().__init__(f"{code}: {self.message}")

    def lines(self) -> list[str]:
        """Return the printed form: ``CODE: message``, then the remedy, then the errors in ``also``."""
        text = [f"{self.code}: {self.message}"]
        if self.solution:
            text.append(f"        Solution: {self.solution}")
        shown = {tuple(text)}
        for error in self.also:  # two nodes of one name, for instance, say the same
            further = error.lines()
            if tuple(further) not in shown:
                text.extend(further)
            shown.add(tuple(further))
        return text


CATALOGUE: dict[str, CatalogueEntry] = {
    # Options and their values
    "E10001": CatalogueEntry(
        "Value [{value}] for parameter [{parameter}] is invalid. Reason: {reason}",
        "Give the parameter a valid value; 'atc --help' lists the values of every option.",
    ),
    "E10002": CatalogueEntry(
        "The shape [{shape}] in --input_shape is malformed. Reason: {reason}. An example: {sample}",
        "Write name:d0,d1,...;name2:... with whole numbers, and quote the whole value for the shell.",
    ),
    "E10003": CatalogueEntry(
        "Value [{value}] for parameter [{parameter}] is invalid. Reason: {reason}",
        "Give the parameter a value of the kind that the reason names.",
    ),
    "E10004": CatalogueEntry(
        "The value of parameter [{parameter}] is empty.",
        "Add the parameter with a value.",
    ),
    "E10005": CatalogueEntry(
        "Value [{value}] for parameter [{parameter}] is neither true nor false.",
        "Give true or false.",
    ),
    "E10006": CatalogueEntry(
        "Value [{value}] for parameter [{parameter}] is not one of its switch positions.",
        "Give 0 or 1 (--external_weight also knows 2).",
    ),
    "E10007": CatalogueEntry(
        "Parameter [{parameter}] is [{value}], which is not one of its choices: {support}.",
        "Set it to the choice that fits the model file: 5 for an ONNX model, 3 for a frozen TensorFlow graph.",
    ),
    "E10008": CatalogueEntry(
        "A Caffe model (--framework=0) needs its weights, but --weight is not set.",
        "Add --weight=<file>.caffemodel, or correct --framework if the model is not Caffe.",
    ),
    "E10009": CatalogueEntry(
        "--dynamic_batch_size, --dynamic_image_size, --dynamic_dims and --input_shape_range exclude each other, "
        "but more than one is set.",
        "Keep the one that describes how the input varies and drop the others.",
    ),
    "E10010": CatalogueEntry(
        "Log level [{loglevel}] is unknown.",
        "Give debug, info, warning, error or null.",
    ),
    "E10011": CatalogueEntry(
        "The shape [{shape}] holds [{result}]; a static dimension must be at least 1.",
        "Give a positive number, or -1 for a dimension that is unknown until the model runs.",
    ),
    "E10012": CatalogueEntry(
        "--dynamic_batch_size is set, but an input in --input_shape is a scalar and has no batch axis.",
        "Drop that input from the gears, or give it a shape whose first dimension is -1.",
    ),
    "E10013": CatalogueEntry(
        "Value [{value}] for parameter [{parameter}] is outside the range of a 64-bit integer.",
        "Give a smaller number.",
    ),
    "E10014": CatalogueEntry(
        "Value [{value}] for parameter [{parameter}] is not a number where one is needed.",
        "Write decimal digits only.",
    ),
    "E10016": CatalogueEntry(
        "Name [{opname}] in parameter [{parameter}] does not exist in the model.",
        "Take the name from the model: Netron shows all of them, so does 'atc --mode=1 --framework=5 --om=<model>'.",
    ),
    "E10017": CatalogueEntry(
        "Name [{opname}] in parameter [{parameter}] is not an input of the model.",
        "Name a model input; inner nodes and constants cannot be given here.",
    ),
    "E10018": CatalogueEntry(
        "The shape [{shape}] has -1 at position {index}; --dynamic_batch_size allows it at position 0 only.",
        "Fix the other dimensions, or use --dynamic_dims.",
    ),
    "E10019": CatalogueEntry(
        "--dynamic_image_size is set, but an input's -1 dimensions are not exactly its height and width.",
        "Set both H and W of a 4-D input to -1 and fix its other dimensions.",
    ),
    "E10020": CatalogueEntry(
        "The gear [{dynamic_image_size}] in --dynamic_image_size is malformed.",
        "Give two numbers per gear, height,width, and separate gears with ';'.",
    ),
    "E10021": CatalogueEntry(
        "The path in parameter [{parameter}] is longer than {size} characters.",
        "Use a shorter path.",
    ),
    "E10022": CatalogueEntry(
        "The path [{filename}] in parameter [{parameter}] names no file.",
        "End it with a file name; the suffix .om is appended to that of --output.",
    ),
    "E10023": CatalogueEntry(
        "The path [{value}] in parameter [--singleop] is invalid.",
        "Give the path of an existing JSON file.",
    ),
    "E10024": CatalogueEntry(
        "The file [{value}] in parameter [--singleop] cannot be opened.",
        "Check that the file exists and may be read.",
    ),
    "E10025": CatalogueEntry(
        "The file [{realpath}] is not valid JSON. Reason: {errmsg}",
        "Correct the place that the reason names.",
    ),
    "E10026": CatalogueEntry(
        "An entry of the --singleop file names no operator.",
        "Give every entry a non-empty field 'op'.",
    ),
    "E10027": CatalogueEntry(
        "Field [{attr}] of {input_output} {index} of operator [{op_name}] in the --singleop file is invalid.",
        'Use a known data type and format name, for example "type": "float16" and "format": "ND".',
    ),
    "E10029": CatalogueEntry(
        "An attribute of operator [{op_name}] in the --singleop file has no name.",
        "Give every attribute a non-empty field 'name'.",
    ),
    "E10030": CatalogueEntry(
        "The value of attribute [{attrname}] of operator [{op_name}] in the --singleop file does not fit its type.",
        "Give a value of the attribute's field 'type'.",
    ),
    "E10031": CatalogueEntry(
        "--dynamic_batch_size is set, but no input in --input_shape has -1 as its first dimension.",
        "Set the first dimension of at least one input to -1.",
    ),
    "E10032": CatalogueEntry(
        "The JSON file [{file_name}] has the wrong structure. Reason: {reason}",
        "Compare the file with the structure in the documentation of the option that reads it.",
    ),
    "E10034": CatalogueEntry(
        "Input [{opname}] belongs to an AIPP block and is also listed in --input_fp16_nodes.",
        "Remove it from one of the two: AIPP decides the data type of its input.",
    ),
    "E10035": CatalogueEntry(
        "Only {shapesize} gear is given; at least {minshapesize} are needed.",
        "Add gears, or compile with a fixed shape in --input_shape.",
    ),
    "E10036": CatalogueEntry(
        "{shapesize} gears are given; at most {maxshapesize} are allowed.",
        "Give fewer gears.",
    ),
    "E10037": CatalogueEntry(
        "The gears differ in length: {shapesize1} and {shapesize2} values.",
        "Give every gear the same number of values.",
    ),
    "E10038": CatalogueEntry(
        "Gear value [{dim}] is not positive.",
        "Give gear values of at least 1.",
    ),
    "E10039": CatalogueEntry(
        "The same gear is given twice.",
        "Give each gear once.",
    ),
    "E10040": CatalogueEntry(
        "With gears, --input_shape must mark the varying dimensions with -1 and must not hold a range 'a~b'.",
        "Write -1 where the gears vary, and drop the ranges.",
    ),
    "E10041": CatalogueEntry(
        "The model [{parameter}] cannot be loaded. Reason: {reason}",
        "Check that the file is complete and of the kind that the options say.",
    ),
    "E10045": CatalogueEntry(
        "Input [{name}] with shape [{shape}] has a number of -1 dimensions that does not fit --dynamic_dims.",
        "Give one value per -1 in every gear, over all inputs in the order of --input_shape.",
    ),
    "E10046": CatalogueEntry(
        "The inputs together ([{name}] with shape [{shape}] is the last) have a number of -1 dimensions that "
        "differs from the length of a --dynamic_dims gear.",
        "Give one value per -1 in every gear, over all inputs in the order of --input_shape.",
    ),
    "E10047": CatalogueEntry(
        "Parameters [{parameter0}] and [{parameter1}] exclude each other.",
        "Drop one of them.",
    ),
    "E10048": CatalogueEntry(
        "The shape range [{shape_range}] is malformed. Reason: {reason}. An example: {sample}",
        "Name the input and write each dimension as n, -1 or low~high.",
    ),
    "E10049": CatalogueEntry(
        "Input [{opname}]: the range has {shape_range_size} dimensions, the model has {cur_dim_size}.",
        "Give one range per dimension of the model's input.",
    ),
    "E10050": CatalogueEntry(
        "Input [{opname}]: dimension {cur_dim} of the model is outside the range "
        "{shape_range_left}~{shape_range_right}.",
        "Widen the range, or leave that dimension as the model has it.",
    ),
    "E10051": CatalogueEntry(
        "The job id is longer than {length} characters.",
        "Use a shorter job id.",
    ),
    "E10052": CatalogueEntry(
        "The AIPP configuration is invalid. Reason: {reason}",
        "Correct the aipp_op block in the file of --insert_op_conf.",
    ),
    "E10054": CatalogueEntry(
        "The required parameter [{parameter}] is empty.",
        "Add it. If it is on the command line, a value before it with ';' may be missing its quotation marks.",
    ),
    "E10055": CatalogueEntry(
        "The request is not supported. Reason: {reason}",
        "Drop or change what the reason names; 'atc --help' marks the options that are not implemented yet.",
    ),
    "E10056": CatalogueEntry(
        "Parameters [{parameter1}] and [{parameter2}] cannot both be set.",
        "Keep one of them.",
    ),
    "E10057": CatalogueEntry(
        "Parameters [{parameter0}] and [{parameter1}] do not go together in this mode.",
        "Drop the first one, or choose another --mode.",
    ),
    "E10058": CatalogueEntry(
        "Parameter [{parameter}] is not configured.",
        "Give it a value.",
    ),
    "E10059": CatalogueEntry(
        "Stage [{stage}] failed. Reason: {reason}",
        "Mend what the reason names and start again.",
    ),
    "E10060": CatalogueEntry(
        "A parameter is invalid. Reason: {reason}",
        "Give the parameter a valid value.",
    ),
    "E10061": CatalogueEntry(
        "Value [{value}] for parameter [{parameter}] is invalid; expected {expected_value}.",
        "Give the expected value.",
    ),
    "E10062": CatalogueEntry(
        "Call [{interface}] came out of order. Reason: {reason}",
        "Call the interfaces in the documented order.",
    ),
    "E10063": CatalogueEntry(
        "System call [{interface}] failed. Reason: {reason}",
        "Check disk space, memory and permissions.",
    ),
    "E10410": CatalogueEntry(
        "The configuration file [{cfgpath}] does not exist.",
        "Correct the path.",
    ),
    # Operators run with the wrong arguments
    "E10401": CatalogueEntry(
        "Operator [{op_name}] takes {expect_num} inputs, but got {input_num}.",
        "Pass one buffer per input.",
    ),
    "E10402": CatalogueEntry(
        "Input {index} of operator [{op_name}] has {buffer_size} bytes; {expect_size} are needed.",
        "Pass a buffer of the needed size.",
    ),
    "E10403": CatalogueEntry(
        "Operator [{op_name}] takes {expect_num} input descriptions, but got {input_num}.",
        "Pass one description per input.",
    ),
    "E10404": CatalogueEntry(
        "Operator [{op_name}] gives {expect_num} outputs, but room for {output_num} was passed.",
        "Pass one buffer per output.",
    ),
    "E10405": CatalogueEntry(
        "Output {index} of operator [{op_name}] needs {expect_size} bytes; the buffer has {buffer_size}.",
        "Pass a buffer of the needed size.",
    ),
    "E10406": CatalogueEntry(
        "Operator [{op_name}] gives {expect_num} outputs, but {output_num} descriptions were passed.",
        "Pass one description per output.",
    ),
    "E10501": CatalogueEntry(
        "Node [{opname}] has the type [{optype}], for which there is no operator definition.",
        "Replace the node in the model, or declare the operator in a file of <opp>/vendors/<vendor>/custom_ops.",
    ),
    # Caffe models
    "E11001": CatalogueEntry(
        "The model sets both input_dim and input_shape.",
        "Keep one of the two.",
    ),
    "E11003": CatalogueEntry(
        "The model has {input_dim_size} values of input_dim for {input_size} inputs; four per input are needed.",
        "Correct the prototxt.",
    ),
    "E11004": CatalogueEntry(
        "The model has {input_shape_size} entries of input_shape for {input_size} inputs.",
        "Give one input_shape per input.",
    ),
    "E11005": CatalogueEntry(
        "Input [{input}] of the model has no shape.",
        "Give it with --input_shape.",
    ),
    "E11008": CatalogueEntry(
        "The model holds a layer of type DetectionOutput, which names no definite operator.",
        "Map it with --op_name_map, for example DetectionOutput:SSDDetectionOutput.",
    ),
    "E11009": CatalogueEntry(
        "Layer [{opname}] has the type [{optype}], for which there is no Caffe parser.",
        "Replace the layer.",
    ),
    "E11010": CatalogueEntry(
        "Node [{opname}] of type [{optype}] cannot be mapped. Reason: {reason}",
        "Change the node in the model.",
    ),
    "E11012": CatalogueEntry(
        "Bottom [{bottom_blob}] (number {bottom_index}) of layer [{layer}] is produced by no layer.",
        "Correct the name in the prototxt.",
    ),
    "E11014": CatalogueEntry(
        "Layer [{opname}] has no top.",
        "Name its output in the prototxt.",
    ),
    "E11015": CatalogueEntry(
        "Layer [{opname}] has no bottom.",
        "Name its input in the prototxt.",
    ),
    "E11016": CatalogueEntry(
        "An output index in --out_nodes does not exist: [{opname}] has {outputs} outputs, but index {index} is "
        "asked for.",
        "Use an index from 0 to the number of outputs less one.",
    ),
    "E11017": CatalogueEntry(
        "Top [{opname}] in --out_nodes does not exist in the model.",
        "Take the name from the prototxt.",
    ),
    "E11018": CatalogueEntry(
        "The operator name [{opname}] has characters other than letters, digits and '-', '.', '_', '/'.",
        "Rename the operator in the model.",
    ),
    "E11021": CatalogueEntry(
        "The model file [{realpath}] uses the old field 'layers'.",
        "Upgrade it with Caffe's upgrade_net_proto_text.",
    ),
    "E11022": CatalogueEntry(
        "The model file has no layer.",
        "Check that the file is a complete prototxt.",
    ),
    "E11023": CatalogueEntry(
        "The weight file uses the old field 'layers'.",
        "Upgrade it with Caffe's upgrade_net_proto_binary.",
    ),
    "E11024": CatalogueEntry(
        "The weight file has no layer.",
        "Check that the file is a complete caffemodel.",
    ),
    "E11027": CatalogueEntry(
        "Input layer [{layername}] of type [{layertype}] has a dimension of 0.",
        "Give every dimension a positive value.",
    ),
    "E11029": CatalogueEntry(
        "The weights of layer [{opname}] are missing from the weight file.",
        "Use the weight file that belongs to the model.",
    ),
    "E11032": CatalogueEntry(
        "Field [{name}] of message [{message_type}] is invalid. Reason: {reason}",
        "Correct the field in the prototxt.",
    ),
    "E11033": CatalogueEntry(
        "Blob of layer [{opname}] with {blobsize} values is invalid. Reason: {reason}",
        "Use the weight file that belongs to the model.",
    ),
    "E11035": CatalogueEntry(
        "Data layer [{opname}] has {size} tops; exactly 1 is allowed.",
        "Correct the prototxt.",
    ),
    "E11036": CatalogueEntry(
        "Top [{topname}] is produced twice by layers that are not in place.",
        "Give the tops different names.",
    ),
    "E11037": CatalogueEntry(
        "Layer [{opname}] has no outputs.",
        "Name its output in the prototxt.",
    ),
    # TensorFlow models
    "E12004": CatalogueEntry(
        "Input {inputIdx} of node [{opname}] is to become an attribute, but the node has only {inputsize} inputs.",
        "Check that the model was frozen completely.",
    ),
    "E12009": CatalogueEntry(
        "Input [{inputopname}] of node [{opname}] does not exist in the graph.",
        "Check that the model was frozen and trimmed completely.",
    ),
    "E12013": CatalogueEntry(
        "The function [{functionname}] is not in the function library.",
        "Freeze the model together with its library.",
    ),
    "E12029": CatalogueEntry(
        "The function library file graph_def_library.pbtxt is missing beside the model.",
        "Write it with func2graph.py, or convert from a model that holds its library.",
    ),
    # Files and model contents
    "E13000": CatalogueEntry(
        "The path [{path}] is empty or invalid. Reason: {errmsg}",
        "Give an existing path.",
    ),
    "E13001": CatalogueEntry(
        "The file [{file}] cannot be opened. Reason: {errmsg}",
        "Check that the file exists and may be read.",
    ),
    "E13002": CatalogueEntry(
        "The directory [{filepath}] is longer than {size} characters.",
        "Use a shorter path.",
    ),
    "E13003": CatalogueEntry(
        "The file [{file}] cannot be read. Reason: {errmsg}",
        "Check that the file is complete and may be read.",
    ),
    "E13004": CatalogueEntry(
        "The file [{file}] cannot be written. Reason: {errmsg}",
        "Check the directory, its permissions and the free space, or choose another path.",
    ),
    "E13005": CatalogueEntry(
        "The file [{file}] cannot be parsed as a model. Reason: {reason}",
        "Check that the file is complete and that --framework names its kind.",
    ),
    "E13006": CatalogueEntry(
        "The file [{file}] holds the type [{current_type}] where [{expect_type}] is needed.",
        "Correct the file.",
    ),
    "E13009": CatalogueEntry(
        "The name [{opname}] is used by more than one node.",
        "Give every node its own name in the model.",
    ),
    "E13010": CatalogueEntry(
        "No parser for node [{opname}] of type [{optype}].",
        "Replace the node in the model, export it with an opset that has a supported form, or declare the operator in "
        "a file of <opp>/vendors/<vendor>/custom_ops and name <opp> with --opp (ge-opt, atc graph: --custom-ops).",
    ),
    "E13014": CatalogueEntry(
        "Value [{value}] for [{parameter}] of operator [{opname}] is invalid. Reason: {reason}",
        "Change the operator in the model so that the value fits.",
    ),
    "E13015": CatalogueEntry(
        "The file [{file}] has {size} bytes; it must have between 1 and {maxsize}.",
        "Use external data for large weights, and check that the file is complete.",
    ),
    "E13018": CatalogueEntry(
        "The text file [{protofile}] cannot be parsed.",
        "Correct the syntax of the text protobuf.",
    ),
    "E13023": CatalogueEntry(
        "Part [{item}] of the offline model has {size} bytes, more than its limit of {maxsize}.",
        "Make the model smaller, or move its weights out with --external_weight.",
    ),
    "E13024": CatalogueEntry(
        "The environment variable [{env}] has the value [{value}], which cannot be used {situation}.",
        "Unset the variable or give it a valid value.",
    ),
    "E13025": CatalogueEntry(
        "An input tensor is invalid. Reason: {reason}",
        "Correct the tensor that the reason names.",
    ),
    "E13026": CatalogueEntry(
        "The path [{pathname}] is invalid. Reason: {reason}",
        "Give an existing path that may be read.",
    ),
    "E13027": CatalogueEntry(
        "The peer address is invalid.",
        "Give an address of the form host:port.",
    ),
    "E13028": CatalogueEntry(
        "The custom pass [{passname}] failed with {retcode}. Reason: {reason}",
        "Mend the pass, or take it out of the pass folder.",
    ),
    "E13029": CatalogueEntry(
        "The plugin file [{passlibname}] cannot be loaded. Reason: {reason}",
        "Mend the file, or take it out of its folder.",
    ),
    "E13030": CatalogueEntry(
        "The custom pass or operator [{passname}] cannot be registered. Reason: {reason}",
        "Give the pass a name and a stage of its own.",
    ),
    "E13031": CatalogueEntry(
        "An output tensor is invalid. Reason: {reason}",
        "Correct the tensor that the reason names.",
    ),
    "E14001": CatalogueEntry(
        "Argument [{value}] of node [{opname}] of type [{optype}] is invalid. Reason: {reason}",
        "Change the node in the model so that its arguments fit together.",
    ),
    "E14002": CatalogueEntry(
        "Attribute [{attribute}] is invalid. Reason: {reason}",
        "Change the attribute in the model.",
    ),
    # ONNX models
    "E16001": CatalogueEntry(
        "The ONNX graph has no {value}.",
        "Export the model again; a graph needs at least one of them.",
    ),
    "E16002": CatalogueEntry(
        "No parser for ONNX nodes of type [{optype}].",
        "Replace the nodes in the model, or export it with an opset that has a supported form.",
    ),
    "E16004": CatalogueEntry(
        "The ONNX file holds no graph.",
        "Check that the file is a complete ONNX model and not a tensor or a training file.",
    ),
    "E16005": CatalogueEntry(
        "The domain [{domain}] is imported in {domain_version_size} versions, {versions}, by {owner}.",
        "Keep one entry per domain in opset_import, that of the opset which the model was exported with.",
    ),
    # Internal faults, warnings and the engine
    "E19999": CatalogueEntry(
        "Internal Error!\n        {reason}",
        "This is a fault of the compiler: run again with --log=debug and report what it shows.",
    ),
    "W11001": CatalogueEntry(
        "Node [{opname}] runs with a slower kernel than its type usually has.",
        "Nothing needs to be done; the result is right.",
    ),
    "W11002": CatalogueEntry(
        "Nodes [{opnames}] in the file [{filename}] do not exist in the model.",
        "Correct the names in the file.",
    ),
    "W11003": CatalogueEntry(
        "The operator type [{optype}] has no function [{func}].",
        "Nothing needs to be done unless the compile fails.",
    ),
    "E20001": CatalogueEntry(
        "Node [{opname}] of type [{optype}] could not be compiled. Reason: {reason}",
        "Change the node in the model as the reason says.",
    ),
    "E20003": CatalogueEntry(
        "The file [{file}] has invalid contents. Reason: {reason}",
        "Correct the place that the reason names.",
    ),
    "E20101": CatalogueEntry(
        "Value [{value}] for option [{parameter}] is invalid. Reason: {reason}",
        "Correct the value.",
    ),
    "E20103": CatalogueEntry(
        "Value [{value}] for --aicore_num is invalid. Reason: {reason}",
        "Give at most the number of cores that the chip has.",
    ),
    "E21001": CatalogueEntry(
        "The file [{file}] cannot be opened. Reason: {errmsg}",
        "Check that the file exists and may be read.",
    ),
    # om-run: the command line
    "R1001": CatalogueEntry(
        "Value [{value}] for parameter [{parameter}] is invalid. Reason: {reason}",
        "Give a valid value; 'om-run --help' lists the values of every option.",
    ),
    "R1002": CatalogueEntry(
        "The required parameter [{parameter}] is missing.",
        "Add it; 'om-run --help' shows how.",
    ),
    "R1003": CatalogueEntry(
        "The command line cannot be read: {reason}.",
        "'om-run --help' lists the options and how their values are written.",
    ),
    "R1004": CatalogueEntry(
        "Parameter [{parameter}] needs [{needed}] beside it.",
        "Add the missing parameter, or drop the first one.",
    ),
    "R1005": CatalogueEntry(
        "Parameter [{parameter}] is known but not implemented yet.",
        "Drop it; 'om-run --help' marks the options that are still to come.",
    ),
    "R1006": CatalogueEntry(
        "Parameters [{parameter1}] and [{parameter2}] exclude each other.",
        "Keep one of them.",
    ),
    # om-run: the model
    "R1010": CatalogueEntry(
        "The model [{path}] cannot be loaded. Reason: {reason}",
        "Give a complete .om file that atc has written; 'atc --mode=6 --om=<file>' shows whether it can be read.",
    ),
    # om-run: input files and arrays
    "R1020": CatalogueEntry(
        "{files} files do not divide among {inputs} model inputs: {names}.",
        "List the same number of files for every input, all files of the first input first.",
    ),
    "R1021": CatalogueEntry(
        "The number of directories is {directories}, that of the model's inputs {inputs}: {names}.",
        "Give one directory per input, in the order of the inputs.",
    ),
    "R1022": CatalogueEntry(
        "The directory [{path}] holds no input files; only those with the suffix {suffixes} are read.",
        "Put the input files into it, or name another directory.",
    ),
    "R1023": CatalogueEntry(
        "The input file [{file}] cannot be read. Reason: {reason}",
        "Give an existing .npy file, or a .bin file with raw bytes.",
    ),
    "R1024": CatalogueEntry(
        "Input [{name}] ({dtype}{shape}) takes {expected} bytes per run; the file [{file}] has {actual}. Reason: "
        "{reason}",
        "Give files of exactly that size, or of an equal share of it along the first axis to pack several into a "
        "batch.",
    ),
    "R1025": CatalogueEntry(
        "Input [{name}] has the data type {expected}; the file [{file}] holds {actual}.",
        "Convert the array to {expected} before saving it, or add --allow-reinterpret to pass its bytes as they are.",
    ),
    "R1026": CatalogueEntry(
        "Input [{name}] has the shape {expected}; the file [{file}] holds {actual}.",
        "Reshape the array before saving it, or add --allow-reinterpret to pass its bytes as they are.",
    ),
    "R1027": CatalogueEntry(
        "Input [{name}] has {actual} files; input [{first}] has {expected}.",
        "Give every input the same number of files.",
    ),
    "R1028": CatalogueEntry(
        "The list in --input mixes files and directories: [{path}].",
        "Give either files only or one directory per input.",
    ),
    "R1029": CatalogueEntry(
        "The model has no inputs, but --input names {files}.",
        "Drop --input.",
    ),
    "R1030": CatalogueEntry(
        "The number of arrays is {actual}, that of the model's inputs {expected}: {names}.",
        "Pass one array per input, in the order of the inputs.",
    ),
    "R1031": CatalogueEntry(
        "Input [{name}] takes {expected_dtype}{expected_shape} ({expected} bytes), but got "
        "{actual_dtype}{actual_shape} ({actual} bytes).",
        "Convert or reshape the array before passing it.",
    ),
    "R1032": CatalogueEntry(
        "The model has no input or output named [{name}]; it has {names}.",
        "Use one of these names.",
    ),
    "R1033": CatalogueEntry(
        "Input [{name}] takes {expected_dtype}{expected_shape}, but got {actual_dtype}{actual_shape}: {reason}.",
        "Convert or reshape the array, or compile the model with wider ranges in --input_shape.",
    ),
    "R1034": CatalogueEntry(
        "Input [{name}] has open dimensions {shape}: the run must be told which.",
        'Give the shapes, for example --dymShape="{name}:1,..." with a number for every dimension, or '
        "--auto_set_dymshape_mode=true with .npy files in --input.",
    ),
    "R1035": CatalogueEntry(
        "[{source}] gives input [{name}] the shape {actual}, but the input takes {expected}: {reason}.",
        "Give a shape that the input takes, or compile the model with wider ranges in --input_shape.",
    ),
    "R1036": CatalogueEntry(
        "The model has {outputs} outputs ({names}), but --outputSize gives {sizes} sizes.",
        "Give one size in bytes per output, separated by commas, or drop the option: it is not needed here.",
    ),
    "R1037": CatalogueEntry(
        "Output [{name}] takes {actual} bytes, but --outputSize allows {expected}.",
        "Give at least that size, or drop the option: it is not needed here.",
    ),
    # om-run: results
    "R1040": CatalogueEntry(
        "The file [{file}] cannot be written. Reason: {errmsg}",
        "Check the directory in --output, its permissions and the free space.",
    ),
    "R1041": CatalogueEntry(
        "The samples [{first}] and [{second}] would both be saved as [{name}].",
        "Rename one of the files, or run them one after the other with different --output_dirname.",
    ),
    "R1042": CatalogueEntry(
        "Output [{name}] with shape {shape} cannot be divided into {parts} samples along its first axis.",
        "Give one file per run instead of packing {parts} files into a batch.",
    ),
    "R1043": CatalogueEntry(
        "The result [{file}] would take the place of the input file [{input}].",
        "Give another --output_dirname.",
    ),
    "R1044": CatalogueEntry(
        "The dump [{file}] cannot be written. Reason: {errmsg}",
        "Check the directory, its permissions and the free space; --dump_layer and --dump_mode make a dump smaller.",
    ),
    "R1045": CatalogueEntry(
        "The dump file [{file}] is damaged: {reason}.",
        "Give a file as a dump wrote it, and dump again where it was cut off.",
    ),
    "R1046": CatalogueEntry(
        "The configuration [{file}] cannot be followed. Reason: {reason}.",
        "Correct the entry; docs/data_dump.md lists what the file may hold.",
    ),
    "R1050": CatalogueEntry(
        "The model stopped at node [{node}]. Reason: {reason}",
        "Check the values of the inputs; --debug shows the node's inputs.",
    ),
    # om-run: sessions
    "R1051": CatalogueEntry(
        "Node [{node}] of type [{optype}] cannot be run here. Reason: {reason}",
        "Compile the model again with this version, or leave the operator out with --out_nodes.",
    ),
    "R1052": CatalogueEntry(
        "Node [{node}] is of the operator type [{optype}], which is not built in, and {loaded}.",
        "Name the folder with the file that declares {optype}: om-run --custom_ops=<dir>, or "
        "InferSession(..., custom_ops=<dir>). Nothing is loaded by itself.",
    ),
    "R1053": CatalogueEntry(
        "Node [{node}] left {value} at place {place} in the padding of its output {index}, which lies in {format}.",
        "This is a fault of the kernel, not of the model; compile with --format_refinement=0 to "
        "go on without such layouts.",
    ),
    "R1054": CatalogueEntry(
        "Node [{node}] ({optype}): output {output} of the compiled kernel {kernel} is not what the numpy kernel makes: "
        "{reason}.",
        "This is a fault of the compiled kernel, not of the model; set ATC_CODEGEN=off to go on without them.",
    ),
    "R1060": CatalogueEntry(
        "The session of model [{model}] cannot run. Reason: {reason}",
        "Use one InferSession per thread, and none after free_resource().",
    ),
    "R1061": CatalogueEntry(
        "The model was not compiled for the infer mode [{mode}]; it offers: {support}.",
        "Use one of the offered modes, or compile the model for this one.",
    ),
    "R1062": CatalogueEntry(
        "The model needs {needed} bytes for its {purpose}, but this machine has {available} bytes of memory.",
        "Compile the model for a smaller batch or image size, or run it on a larger machine.",
    ),
    "R1063": CatalogueEntry(
        "The list in_out_list is invalid. Reason: {reason}",
        "Give one entry per input: the index of the output to feed back, or -1 to keep the input.",
    ),
    "R1999": CatalogueEntry(
        "Internal Error!\n        {reason}",
        "This is a fault of the simulator: run again with --debug and report what it shows.",
    ),
}
