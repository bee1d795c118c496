"""The option table and the environment."""

from __future__ import annotations

import pytest

from atc.run_options import RUN_OPTIONS
from ge.errors import ReportedError
from ge.option_table import OPTIONS, Kind, Option, Status
from ge.options import CompileOptions, Environment

# atc_cli.md 1: every option that ATC has
KNOWN = """
help mode raw_ge_options raw_ge_options_ignore_unsupported model weight framework om input_format input_shape
input_shape_range input_hint_shape dynamic_batch_size dynamic_image_size dynamic_dims singleop output output_type
check_report json host_env_os host_env_cpu soc_version virtual_type core_type aicore_num out_nodes input_fp16_nodes
is_input_adjust_hw_layout is_output_adjust_hw_layout insert_op_conf op_name_map external_weight disable_reuse_memory
fusion_switch_file optimization_switch enable_scope_fusion_passes oo_level oo_constant_folding oo_dead_code_elimination
topo_sorting_mode enable_single_stream multi_stream_parallel_mode ac_parallel_enable tiling_schedule_optimize
quant_dumpable buffer_optimize enable_small_channel enable_compress_weight compress_weight_conf
compression_optimize_conf enable_attr_compression sparsity mdl_bank_path op_bank_path cluster_config
hccl_sub_comm_config h2d_overlapped_with_compute static_model_ops_lower_limit precision_mode precision_mode_v2
keep_dtype customize_dtypes modify_mixlist op_precision_mode op_select_implmode optypelist_for_implmode allow_hf32
is_weight_clip jit_compile log dump_mode display_model_info save_original_model export_compile_stat debug_dir
op_debug_level op_debug_config op_compiler_cache_mode op_compiler_cache_dir status_check atomic_clean_policy
deterministic deterministic_level shape_generalized_build_mode auto_tune_mode cal_conf target device_id build_config
"""


# ours: what custom passes need, and the comparison with layouts of the chip
ADDED = "opp pass_timeout format_refinement"


def test_table_is_complete() -> None:
    assert set(OPTIONS) == {*KNOWN.split(), *ADDED.split()}


@pytest.mark.parametrize("option", [*OPTIONS.values(), *RUN_OPTIONS.values()], ids=lambda option: option.name)
def test_row_is_consistent(option: Option) -> None:
    if option.rule.values and option.default:
        assert option.default in option.rule.values
    if option.granted:
        assert option.status is Status.NOT_YET
    if option.default and option.rule.check and option.status is not Status.REFUSED:
        assert option.rule.check(option.default) is None
    if option.rule.kind in (Kind.FLAG, Kind.SWITCH):
        assert option.default in ("", "true", "false")
    assert option.help.rstrip(")").endswith(".") or option.name == "help"


def test_names_of_one_table_do_not_repeat() -> None:
    for table in (OPTIONS, RUN_OPTIONS):
        names = [name for option in table.values() for name in (option.name, *option.aliases)]
        assert len(names) == len(set(names))


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("aicore_num", ["1", "8|", "24|48"], ["0", "|8", "1|2|3", "a", "-1", "8|0", "|"]),
        ("multi_stream_parallel_mode", ["cv", "LoadBalance:1", "MainStream:64"], ["cv:1", "MainStream:65", "x:1"]),
        ("h2d_overlapped_with_compute", ["0", "1", "44,64,68", "44,", ",44"], ["a", ",", "64,44", "4,4", "-1"]),
        ("auto_tune_mode", [], ["RL", "GA"]),
        ("compression_optimize_conf", [], ["some.cfg"]),
        ("host_env_os", ["linux"], ["Linux", "windows"]),
    ],
)
def test_values_of_recorded_options(name: str, good: list[str], bad: list[str]) -> None:
    for value in good:
        OPTIONS[name].check_value(value)
    for value in bad:
        with pytest.raises(ReportedError) as error:
            OPTIONS[name].check_value(value)
        assert error.value.fields["parameter"] == f"--{name}"


def test_environment_is_read_into_fields() -> None:
    environment = Environment.read(
        {"ASCEND_WORK_PATH": "/w", "ATC_NUM_THREADS": "3", "DUMP_GE_GRAPH": "2", "ASCEND_SLOG_PRINT_TO_STDOUT": "1"}
    )
    assert environment == Environment(work_path="/w", num_threads=3, dump_ge_graph="2", log_to_stdout=True)
    assert Environment.read({}) == Environment()


@pytest.mark.parametrize("threads", ["0", "-1", "x", "1.5", "9" * 30])
def test_unusable_thread_count_is_reported(threads: str) -> None:
    with pytest.raises(ReportedError) as error:
        Environment.read({"ATC_NUM_THREADS": threads})
    assert error.value.code == "E13024"


def test_chosen_precision() -> None:
    assert CompileOptions().precision == "origin"
    assert CompileOptions(precision_mode="force_fp16").precision == "fp16"
    assert CompileOptions(precision_mode="allow_fp32_to_fp16").precision == "allow_fp32_to_fp16"
    assert CompileOptions(precision_mode_v2="mixed_float16").precision == "mixed_float16"
