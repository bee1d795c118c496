"""Descriptors and operators of trans-op tests, short."""

from __future__ import annotations

IMAGE = "[1,32,4,4]@NCHW"
LAST = "[1,4,4,32]@NHWC"
BLOCKS = f"{IMAGE} | [1,2,4,4,16]@NC1HWC0"
_NUMBERS = {"f32": 0, "f16": 1, "i8": 2, "i32": 3, "f64": 11, "bool": 12, "bf16": 27}


def cast(source: str, desc: str, *, ctrl: str = "", of_model: bool = False) -> str:
    """A Cast to the type that ``desc`` begins with; the compiler's, unless it is ``of_model``."""
    names = ', _datadump_original_op_names=["Cast_3"]' if of_model else ", _datadump_original_op_names=[]"
    number = _NUMBERS[desc.split("[")[0]]
    return f"Cast({source}) {{dst_type={number}{names}}}{_ctrl(ctrl)} -> {desc}"


def trans(source: str, desc: str, formats: str = "NCHW NC1HWC0", *, ctrl: str = "", label: str = "") -> str:
    """A TransData between two formats."""
    first, second = formats.split()
    stream = f', _stream_label="{label}"' if label else ""
    return f'TransData({source}) {{src_format="{first}", dst_format="{second}"{stream}}}{_ctrl(ctrl)} -> {desc}'


def back(source: str, desc: str) -> str:
    return trans(source, desc, "NC1HWC0 NCHW")


def transpose(source: str, perm: str, desc: str, ctrl: str = "") -> str:
    return f"TransposeD({source}) {{perm=[{perm}]}}{_ctrl(ctrl)} -> {desc}"


def _ctrl(names: str) -> str:
    return f" ctrl({names})" if names else ""
