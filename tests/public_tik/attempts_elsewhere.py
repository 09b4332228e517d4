"""Arguments of ours for operators of other repositories than the vendor's library.

IndexSDK's are the sizes that its own model generators write, for few vectors.
"""

from typing import Any

from .attempt import Attempt
from .case import AI_CORE, F16, F32, GEKOWA, I32, INDEX, INDEX_FOLDER, SAMPLES, tensor

_NZ = "FRACTAL_NZ"
_SP = "ivfsp_utils/src/ops_IVFSP/tbe"
_BLAST = "best_practices/contrib/blast-code/blast_tik/tbe/impl"
MINDSPORE, MINDSPORE_FOLDER = "kungfu-team/mindspore", "mindspore/ops/_op_impl/_custom_op"
AIBENCH, AIBENCH_FOLDER = "Tinkerver/AIBench", "operator_generate"

_U8, _U16, _U32, _U64, _I8, _I64 = "uint8", "uint16", "uint32", "uint64", "int8", "int64"
_Tensors = tuple[tuple[tuple[int, ...], str], ...]
_N = 4096
_CODES = ((16, 64), F16), ((_N // 16, 4, 16, 16), _U8)
_SQ8_TAIL = ((2, 8), _U32), ((16, _N), F16), ((16, _N // 32), F16), ((16, 16), _U16)
_MASK = ((16, _N // 8), _U8)
_INDEX: dict[str, _Tensors] = {
    "distance_flat_hamming": (
        *(((16, 16), _U8), ((16384, 4, 16, 4), _U8), ((8,), _U32)),
        *(((4194304,), F16), ((524288,), F16), ((16,), _U16)),
    ),
    "distance_flat_l2_mins_at": (
        *(((2, 8, 32, 16), F16), ((8, 8, 512, 16), F16), ((16,), F32), ((8, 1, 512, 16), F32)),
        *(((16, _N), F16), ((16, _N // 32), F16), ((2, 16), _U16)),
    ),
    "distance_l2_mins_int8_at": (
        *(((2, 2, 32, 32), _I8), ((8, 2, 512, 32), _I8), ((16,), I32), ((8, 1, 512, 16), I32)),
        *(((16, _N), F16), ((16, _N // 32), F16), ((2, 16), _U16)),
    ),
    "l2_norm_typing_int8": (
        *(((16, 64), _I8), ((256, 16), I32), ((2, 8), _U32)),
        *(((16,), I32), ((1, 2, 32, 32), _I8)),
    ),
    "subcent_accum": (
        *(((1, 8, 64, 256), F16), ((1, 8, 64), "int16"), ((16,), _U16)),
        *(((64, 256), F16), ((64,), "int16"), ((2, 16), _U16)),
    ),
    "distance_int8_cos_maxs_filter": (
        *(((16, 64), _I8), _MASK, ((_N // 16, 2, 16, 32), _I8), ((16,), F16), ((_N,), F16)),
        *(((2, 8), _U32), ((16, 32), F16), ((16, _N), F16), ((16, 128), F16), ((16, 16), _U16)),
    ),
    "distance_ivf_sq8_ip": (*_CODES, ((64,), F16), ((64,), F16), *_SQ8_TAIL),
    "distance_sq8_ip_maxs": (*_CODES, ((64,), F16), ((64,), F16), *_SQ8_TAIL),
    "distance_sq8_ip_maxs_dim64": (*_CODES, ((64,), F16), ((64,), F16), *_SQ8_TAIL),
    "distance_masked_sq8_ip_maxs_dim64": (
        *(_CODES[0], _MASK, _CODES[1], ((64,), F16), ((64,), F16)),
        *_SQ8_TAIL,
    ),
    "distance_masked_sq8_l2_mins": (
        *(_CODES[0], _MASK, _CODES[1], ((_N,), F32), ((64,), F16), ((64,), F16)),
        *_SQ8_TAIL,
    ),
    "distance_ivf_sq8_ip4": (
        *(((16, 64), F16), *[((512, 4, 16, 16), _U8)] * 4, ((2, 64), F16), ((8,), _U32)),
        *(((32768,), F16), ((4096,), F16), ((2, 32), _U16)),
    ),
    "distance_ivf_sq8_ip8": (
        *(((16, 64), F16), ((2097152,), _U8), ((8,), _U64), ((2, 64), F16), ((8,), _U32)),
        *(((8, 32768), F16), ((8, 2048), F16), ((2, 32), _U16)),
    ),
    "distance_ivf_sq8_ip8_accum": (
        *(((1, 64), F16), ((2097152,), _U8), ((16,), _I64), ((2, 64), F16), ((16,), _I64)),
        *(((8,), _U32), ((16,), _U64), ((16,), _I64), ((16,), _I64), ((16,), _I64)),
    ),
    "distance_ivf_sq8_l2": (
        *(((16, 64), F16), ((4096, 4, 16, 16), _U8), ((65536,), F32), ((64,), F16), ((64,), F16)),
        *(((2, 8), _U32), ((16, 65536), F16), ((16, 4096), F16), ((16, 16), _U16)),
    ),
    "distance_ivf_sq8_ipx": (
        *(((4, 64), F16), ((262144,), _U8), ((4, 32), _U64), ((2, 64), F16)),
        *(((4, 2048), F16), ((4, 256), F16), ((2, 16), _U16)),
    ),
    "distance_mask_generator": (
        *(((8,), I32), ((4,), _U8), ((262144,), I32), ((262144,), I32), ((524288,), _U8)),
        ((32768,), _U8),
    ),
    "distance_batch_mask_generator": (
        *(((16, 8), I32), ((16, 4), _U8), ((262144,), I32), ((262144,), I32), ((524288,), _U8)),
        ((16, 32768), _U8),
    ),
    "cid_filter": (
        *(((1024,), _U8), ((1024, 4), I32), ((1024,), I32), ((128, 4), I32), ((2, 4), I32)),
        *(((128,), F16), ((16,), F16), ((128,), _U8), ((16,), _U16)),
    ),
    "linear_transform": (((32, 64), F16), ((64, 64), F16), ((64,), F32), ((32, 64), F16)),
}
"""IndexSDK's operators, by the tensors that they are built for."""

_LOW, _BATCH, _CODES_OF_LIST = 32, 64, 16384
_CODEBOOK = ((_LOW * 16 // 16, 64 // 16, 16, 16), F16)
_LISTS = ((_BATCH,), _U32), *[((_BATCH,), _U64)] * 3
_LIST_CODES = ((_CODES_OF_LIST * _LOW,), _U8)
_LIST_TAIL = (
    *(((_BATCH, _CODES_OF_LIST), F16), ((_BATCH, _CODES_OF_LIST // 32), F16)),
    ((8, 16), _U16),
)
_SPARSE: _Tensors = (
    *(((1, 64), F16), _CODEBOOK, _LIST_CODES, ((_CODES_OF_LIST,), F32)),
    *(((_LOW,), F16), ((_LOW,), F16), *_LISTS, *_LIST_TAIL),
)
_MASKED: _Tensors = (
    *(((1, 64), F16), _CODEBOOK, _LIST_CODES, ((_BATCH, _CODES_OF_LIST // 8), _U8)),
    *(((_CODES_OF_LIST,), F32), ((2, _LOW), F16), *_LISTS, *_LIST_TAIL),
)


def _index(module: str, tensors: _Tensors, folder: str = INDEX_FOLDER) -> Attempt:
    return Attempt(
        repository=INDEX,
        folder=folder,
        module=f"impl.{module}",
        function=module,
        arguments=tuple(tensor(shape, dtype) for shape, dtype in tensors),
        soc="Ascend310P3",
        source="ours, as its model generators have them" if module in _INDEX else "ours",
    )


def _gekowa(module: str, *arguments: Any, function: str = "") -> Attempt:
    return Attempt(
        repository=GEKOWA,
        folder=AI_CORE,
        module=f"impl.{module}",
        function=function or module.rpartition(".")[2],
        arguments=arguments,
    )


def _mindspore(module: str, function: str, *arguments: Any) -> Attempt:
    return Attempt(
        repository=MINDSPORE,
        folder=MINDSPORE_FOLDER,
        module=module,
        function=function,
        arguments=arguments,
    )


def _open(rank: int, dtype: str = F16) -> dict[str, Any]:
    """Return a tensor whose sizes the launch decides."""
    return tensor((-1,) * rank, dtype, range=[(1, None)] * rank)


_GENERATORS = (
    *("compute_scalar_generate", "generate int mat", "generate", "l12ub测试generate"),
    *("ub2ub传输generate(复件)", "测试l2buffer是否影响在gm的读数generate(复件)"),
    "矩阵matmul相关测试generate(复件)",
)
"""AIBench's programs that write operators, each from one number."""
_ONE = tensor((1,), F32)
ELSEWHERE: tuple[Attempt, ...] = (
    *(_index(module, tensors) for module, tensors in _INDEX.items()),
    _index(
        "corr_compute",
        (((1, 64, 128, 16), F16), ((2,), _U64), ((128, 128), F16), ((2, 16), _U16)),
        _SP,
    ),
    _index("distance_ivf_sp_int_l2_mins", _SPARSE, _SP),
    _index("distance_masked_ivf_sp_int_l2_mins", _MASKED, _SP),
    Attempt(
        repository=SAMPLES,
        folder=_BLAST,
        module="blast_tik",
        function="blast_tik",
        arguments=tuple(tensor(s, "int16") for s in ((16,), (32, 16), (400,), (32,))),
        soc="Ascend310",
    ),
    *(
        Attempt(
            repository=AIBENCH,
            folder=AIBENCH_FOLDER,
            module=module,
            function="tg",
            arguments=(None, None),
            generator=("2",),
        )
        for module in _GENERATORS
    ),
    _gekowa(
        "concat_v2_d",
        *([tensor((400, 16), F32), tensor((400, 12), F32)], tensor((400, 28), F32), -1),
    ),
    _gekowa("dynamic.concat_v2_d", [_open(2), _open(2)], _open(2), 1),
    _gekowa("dynamic.strided_slice_grad", *[_open(1, I32)] * 4, _open(3), _open(3)),
    _gekowa("dynamic.transpose_d", tensor((64, 32, 48), F32), tensor((64, 48, 32), F32), [0, 2, 1]),
    _mindspore(
        "matmul_cube_fracz_right_mul_impl",
        "CusMatMulCubeFraczRightMul",
        *(tensor((4, 4, 16, 16), layout=_NZ), tensor((4, 4, 16, 16), layout=_NZ), _ONE),
        *(None, tensor((4, 4, 16, 16), F32, _NZ)),
    ),
    _mindspore(
        "matmul_cube_dense_left_impl",
        "CusMatMulCubeDenseLeft",
        *(tensor((8, 8, 16, 16), layout=_NZ), tensor((8, 8, 16, 16), layout=_NZ), None),
        *(tensor((8, 8, 16, 16), layout=_NZ), False, False),
    ),
    _mindspore(
        "cholesky_trsm_impl",
        "CusCholeskyTrsm",
        *(tensor((128, 128), F32), tensor((1, 128, 128), F32), "kernel"),
    ),
)
