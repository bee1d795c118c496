"""What the name of a model file says. ONNX models have many names; one that says something else is refused."""

from __future__ import annotations

import os

from ge.errors import ReportedError

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


def check_onnx_suffix(path: str, parameter: str) -> None:
    """Raise E10001 for a file name whose last suffix names another kind of file than an ONNX model.

    ``.onnx``, ``.pb``, no suffix and suffixes that say nothing (``.bin``, ``.v1``, ``.bak``) are left to the content.
    """
    suffix = os.path.splitext(path)[1]
    if suffix.lower() in _BY_SUFFIX:
        meaning, remedy = _BY_SUFFIX[suffix.lower()]
        raise ReportedError(
            "E10001",
            value=path,
            parameter=parameter,
            reason=f"{suffix} is the suffix of {meaning}, but --framework=5 expects an ONNX model (.onnx)",
            solution=f"{remedy} If it is an ONNX model after all, give it a name that ends with .onnx.",
        )
