"""The block that ``atc --mode=6`` prints about a model."""

from __future__ import annotations

from pathlib import Path

from ge.proto import ge_ir_pb2 as pb
from om_format.partitions import PartitionType
from om_format.reader import open_model

OM_INFO_NAMES = (
    "weight_data_size",
    "tbe_kernels_size",
    "cust_aicpu_kernel_store_size",
    "task_info_size",
    "so_store_size",
)
"""What the five integers of the model attribute ``om_info_list`` are."""


def display_block(path: str | Path) -> list[str]:
    """Return the lines about the model in ``path``: where it comes from, what it needs, what the file consists of.

    Integers that the model does not have are shown as -1. Raises E10041 for a file that is no model.
    """
    file = open_model(path)
    model = file.model_def()
    return [
        "============ Display Model Info start ============",
        f"Original Atc command line: {_text(model, 'atc_cmdline')}",
        f"system   info: atc_version[{_text(model, 'atc_version')}], soc_version[{_text(model, 'soc_version')}], "
        f"framework_type[{_text(model, 'framework_type')}].",
        f"resource info: memory_size[{_number(model, 'memory_size')} B], "
        f"weight_size[{_number(model, 'weight_size')} B], stream_num[{_number(model, 'stream_num')}], "
        f"event_num[{_number(model, 'event_num')}].",
        _om_info(model, file.block.size_of(PartitionType.MODEL_DEF)),
        "============ Display Model Info end   ============",
    ]


def _om_info(model: pb.ModelDef, model_def_size: int) -> str:
    sizes = list(model.attr["om_info_list"].list.i) if "om_info_list" in model.attr else []
    if len(sizes) != len(OM_INFO_NAMES):
        return (
            f"om       info: not available, the model attribute om_info_list must hold {len(OM_INFO_NAMES)} integers "
            f"but has {len(sizes)}."
        )
    named = [("modeldef_size", model_def_size), *zip(OM_INFO_NAMES, sizes, strict=True)]
    return f"om       info: {', '.join(f'{name}[{size} B]' for name, size in named)}."


def _text(model: pb.ModelDef, name: str) -> str:
    """One line of printable text, whatever the file says."""
    text = model.attr[name].s.decode("utf-8", "replace") if name in model.attr else ""
    return "".join(c if c.isprintable() else "?" for c in text)


def _number(model: pb.ModelDef, name: str) -> int:
    found = name in model.attr and model.attr[name].WhichOneof("value") == "i"
    return model.attr[name].i if found else -1
