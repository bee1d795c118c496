"""What the name of a model file says. Models have many names; one that says something else is refused."""

from __future__ import annotations

import os

from ge.errors import ReportedError
from ge.options import Framework
from parsers.tensorflow.model import HOW_TO_FREEZE, kind_of_folder

_EXPORT_TORCH = "Export the network with torch.onnx.export and give the .onnx file."
_CONVERT = "Convert it to ONNX and give the .onnx file."
_EXPORT_AGAIN = "Export the network as a binary .onnx file and give that."
_UNPACK = "Unpack it and give the .onnx file inside."
_NO_MODEL = "Give the .onnx file."

_KINDS: tuple[tuple[str, str, str], ...] = (
    # suffixes, what they name, what to do
    (".om .om2 .exeom", "a model that is compiled already", "Give the model it was made of; om-run runs an .om."),
    (".pt .pth .ckpt .pkl .pickle", "a checkpoint or a pickle, for example of PyTorch", _EXPORT_TORCH),
    (".safetensors .gguf", "weights without a graph", _EXPORT_TORCH),
    (".h5 .hdf5 .keras", "a Keras model", _CONVERT),
    (".tflite", "a TensorFlow Lite model", _CONVERT),
    (".meta .index", "a part of a TensorFlow checkpoint", _CONVERT),
    (".caffemodel .prototxt", "a Caffe model", _CONVERT),
    (".air .mindir .ms", "a MindSpore model", _CONVERT),
    (".pdmodel .pdiparams", "a PaddlePaddle model", _CONVERT),
    (".mlmodel", "a Core ML model", _CONVERT),
    (".ort", "a model in onnxruntime's own format", "Give the .onnx file that it was made of."),
    (".onnx_data", "the weights of an ONNX model beside it", "Give the .onnx file that lies in the same folder."),
    (".pbtxt .textproto .onnxtxt", "the text form of a model", _EXPORT_AGAIN),
    (".zip .tar .gz .tgz .bz2 .xz .7z .rar", "an archive", _UNPACK),
    (".npy .npz", "numpy arrays", f"{_NO_MODEL} Inputs are for om-run."),
    (".txt .md .log .csv .json .yaml .yml .xml .html .cfg .ini .toml", "a text", _NO_MODEL),
    (".py .ipynb .sh .c .cc .cpp .h", "the source text of a program", _NO_MODEL),
    (".jpg .jpeg .png .bmp .gif .webp .tif .tiff .pdf", "a picture or a document", _NO_MODEL),
    (".so .dll .exe .whl", "a program or a library", _NO_MODEL),
)
_BY_SUFFIX = {suffix: (meaning, remedy) for suffixes, meaning, remedy in _KINDS for suffix in suffixes.split()}


_TENSORFLOW_TEXT = frozenset({".pbtxt", ".textproto", ".prototxt", ".txt"})
"""Suffixes of the text form of a frozen graph."""
_TENSORFLOW_SOURCES = frozenset({".h5", ".hdf5", ".keras", ".tflite", ".meta", ".index", ".ckpt"})
"""Suffixes of what a frozen graph can be made of."""


def check_suffix(path: str, parameter: str, framework: Framework) -> None:
    """Raise E10001 for a file name whose last suffix names another kind of file than a model of ``framework``.

    ``.onnx``, ``.pb``, no suffix and suffixes that say nothing (``.bin``, ``.v1``, ``.bak``) are left to the content.
    """
    suffix = os.path.splitext(path)[1]
    is_tensorflow = framework is Framework.TENSORFLOW
    if suffix.lower() not in _BY_SUFFIX or (is_tensorflow and suffix.lower() in _TENSORFLOW_TEXT):
        return
    meaning, remedy = _BY_SUFFIX[suffix.lower()]
    wanted, ending = ("a frozen TensorFlow graph", ".pb") if is_tensorflow else ("an ONNX model", ".onnx")
    if is_tensorflow:
        is_source = suffix.lower() in _TENSORFLOW_SOURCES
        remedy = HOW_TO_FREEZE if is_source else "Give the file of the frozen graph."
    raise ReportedError(
        "E10001",
        value=path,
        parameter=parameter,
        reason=f"{suffix} is the suffix of {meaning}, but --framework={framework.value} expects {wanted} ({ending})",
        solution=f"{remedy} If it is {wanted} after all, give it a name that ends with {ending}.",
    )


def check_is_no_folder(path: str, parameter: str) -> None:
    """Raise E10001 for a directory that TensorFlow wrote: a SavedModel, a checkpoint."""
    kind = kind_of_folder(path)
    if kind:
        reason = f"it is the directory of {kind}, which is no frozen graph"
        raise ReportedError("E10001", value=path, parameter=parameter, reason=reason, solution=HOW_TO_FREEZE)
