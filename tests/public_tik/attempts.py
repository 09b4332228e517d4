"""Arguments of ours for public operators that have none at hand, or that take another way.

They say only how large the tensors are; where an operator asks for sizes of one network, it is
those.
"""

from typing import Any

from .attempt import Attempt
from .attempts_elsewhere import ELSEWHERE
from .case import CONTRIB, F16, F32, I32, tensor

CONTRIB_PACKAGE = "ops/contrib/tbe"
SAMPLE = "tools/custom_operator_sample/TIK"


def _op(module: str, *arguments: Any, **more: Any) -> Attempt:
    """Return an attempt of the vendor's; the function is called as the module unless named."""
    more.setdefault("function", module.rpartition(".")[2])
    return Attempt(module=module, arguments=arguments, **more)


def _contrib(module: str, *arguments: Any, **more: Any) -> Attempt:
    return _op(module, *arguments, folder=CONTRIB, soc="Ascend310", **more)


def _package(module: str, *arguments: Any, **more: Any) -> Attempt:
    """Return an attempt of a contributed operator that imports others of its package."""
    return _op(f"impl.{module}", *arguments, folder=CONTRIB_PACKAGE, soc="Ascend310", **more)


def _relayouts() -> list[Attempt]:
    """Return what changes the layout of weights."""
    z_c04 = tensor((3, 2, 16, 16), layout="FRACTAL_Z_C04")
    hwcn = tensor((3, 3, 32, 64), layout="HWCN")
    z_g = tensor((36, 4, 16, 16), layout="FRACTAL_Z")
    return [
        _op("impl.hwcn_2_fractal_z_c04", tensor((3, 3, 3, 32)), z_c04, "HWCN", "FRACTAL_Z_C04"),
        _op("impl.nchw_2_fractal_z_c04", tensor((32, 3, 3, 3)), z_c04, "NCHW", "FRACTAL_Z_C04"),
        _op("impl.nhwc_2_fractal_z_c04", tensor((32, 3, 3, 3)), z_c04, "NHWC", "FRACTAL_Z_C04"),
        _op("impl.hwcn_2_fractal_z_g", hwcn, z_g, "HWCN", "FRACTAL_Z", 2),
        _op("impl.zng_2_nchw_hwcn", z_g, hwcn, "FRACTAL_Z", "HWCN", 2),
        _op(
            "impl.transpose_d_014253_big",
            tensor((2, 3, 20, 300, 40, 30)),
            tensor((2, 3, 40, 20, 30, 300)),
            (0, 1, 4, 2, 5, 3),
        ),
    ]


def _slices() -> list[Attempt]:
    """Return slices and padding."""
    narrow = (640, 32)
    return [
        _op(
            "impl.strided_slice_for_last_dim",
            narrow,
            F16,
            (640, 4),
            [0, 5],
            [640, 9],
            [1, 1],
            "kernel",
            function="strided_slice_last_dim",
        ),
        _op(
            "impl.strided_slice_for_last_dim_mte",
            (2400, 100),
            F16,
            (2400, 40),
            [0, 5],
            "kernel",
            function="strided_slice_last_dim_mte",
        ),
        _op("impl.strided_slice_last_dim_one", narrow, F32, (640, 1), [0, 5], "kernel"),
        _op(
            "impl.strided_slice_last_dim_with_vreducev2",
            narrow,
            F16,
            [0, 5],
            [640, 9],
            [1, 1],
            "kernel",
            soc="Ascend310P3",
        ),
        _op("impl.pad_align_reorder_ub", [64, 64], [[0, 0], [16, 16]], F16, function="pad_align"),
        _op(
            "impl.pad_v2_align_reorder_ub", [64, 64], [[0, 0], [16, 16]], F16, function="pad_align"
        ),
    ]


def _boxes() -> list[Attempt]:
    """Return operators of detection networks."""
    return [
        _contrib(
            "fasterrcnn_cropandresize_tik",
            tensor((1, 64, 38, 64, 16)),
            tensor((100, 4)),
            tensor((100, 64, 14, 14, 16)),
        ),
        _package(
            "fasterrcnn_first_stage_processor_tik",
            tensor((1, 29184, 2)),
            tensor((1, 29184, 1, 4)),
            tensor((1, 29184, 1, 4)),
            tensor((1, 100, 4)),
        ),
        _package("fasterrcnn_map1_tik", tensor((1, 100, 4)), tensor((1, 100, 4))),
        _package("fasterrcnn_map_tik", tensor((1, 100, 4)), tensor((1, 100, 4))),
        _contrib(
            "interpv2", tensor((1, 32, 8, 8)), tensor((1, 32, 16, 16)), tensor((1, 32, 16, 16))
        ),
        _package(
            "r_oi_align_tik",
            tensor((1, 2, 32, 32, 16)),
            tensor((16, 5, 1, 1)),
            tensor((16, 2, 7, 7, 16)),
            7,
            7,
            0.0625,
        ),
        _op("impl.roi_align_vbi", tensor((1, 16, 40, 64, 16)), tensor((64, 4)), soc="Ascend310P3"),
        _package(
            "yolov2_post_process",
            tensor((1, 1808, 16)),
            tensor((1, 1808, 16)),
            tensor((1808, 16)),
            tensor((100, 8)),
        ),
        _package(
            "yolov3_post_processor",
            tensor((1, 169, 288)),
            tensor((1, 676, 288)),
            tensor((1, 2704, 288)),
            *_grids(),
            tensor((512,)),
            tensor((80, 128)),
            tensor((100, 8)),
        ),
        _op(
            "impl.proposal_d",
            tensor((1, 18, 23, 77)),
            tensor((1, 36, 23, 77)),
            tensor((1, 3)),
            tensor((1, 36, 23, 77)),
            tensor((1, 5, 304)),
            tensor((1, 8)),
            16.0,
            16.0,
            10.0,
            (0.5, 1.0, 2.0),
            (8.0, 16.0, 32.0),
            3000,
            304,
            0.7,
            True,
        ),
        _op(
            "impl.rpn_proposals_d",
            tensor((7200, 4)),
            tensor((7200, 1)),
            tensor((16, 4)),
            (720, 1280),
            0.0,
            0,
            0.0,
            0.7,
            16,
        ),
        _op(
            "impl.rpn_proposals_d",
            tensor((7200, 4)),
            tensor((7200, 1)),
            tensor((16, 4)),
            (720, 1280),
            0.0,
            0,
            0.0,
            0.7,
            16,
            soc="Ascend310P3",
        ),
    ]


def _grids() -> list[dict[str, Any]]:
    """Return the anchors and grids of three levels."""
    return [tensor((count, 512)) for count in (2, 8, 32, 2, 2, 2)]


def _open(rank: int, dtype: str = F16, layout: str = "ND") -> dict[str, Any]:
    """Return a tensor whose sizes the launch decides."""
    return tensor((-1,) * rank, dtype, layout, range=[(1, None)] * rank)


def _at_launch() -> list[Attempt]:
    """Return operators whose sizes the launch decides."""
    atoms = tensor((4,), I32)
    matrix, cube, ints = _open(2, F32), _open(3, F32), _open(2, I32)
    deep = {"soc": "Ascend310P3"}
    describe = *[matrix] * 4, ints, atoms, _open(1, I32), *[matrix] * 4, -1.0, 6.0, 0.5, [46, 92]
    bounds = -1.0, 6.0, 0.5, [46, 92], [], 1, 0
    environment = matrix, ints, atoms, matrix, ints, *[matrix] * 5, ints
    codes = _open(2, "uint8"), _open(1, I32), _open(1), _open(1, I32), _open(1, "int64"), _open(3)
    places = tensor((1,), I32), _open(1), _open(1), _open(1, I32), _open(1, I32)
    virial = *[matrix] * 3, ints, atoms, matrix, matrix
    grads = matrix, tensor((6,), F32), matrix, cube, cube, cube, matrix, cube
    many = tensor((-1, -1, 4, -1), range=[(1, None), (1, None), (4, 4), (1, None)])
    best = tensor((-1, 4, 25)), tensor((-1, 25)), tensor((-1, 25)), tensor((-1,)), 0, 0.7, 25, 25
    return [
        _op(
            "impl.dynamic.batch_multi_class_non_max_suppression",
            *(many, _open(3), None, None, *best, False, False),
            soc="Ascend910B3",
        ),
        _op("impl.dynamic.get_shape", [matrix], tensor((8,), I32)),
        _op("impl.dynamic.gather_elements", matrix, ints, matrix, 0),
        _op(
            "impl.dynamic.as_strided",
            *(_open(3), *[tensor((2,), "int64")] * 2, tensor((1,), "int64"), _open(2)),
        ),
        _op("impl.dynamic.prod_env_mat_a", *environment, *bounds, **deep),
        _op("impl.dynamic.prod_env_mat_a_calc_descrpt", *describe, [], **deep),
        _op(
            "impl.dynamic.prod_force_se_a",
            *(matrix, matrix, ints, atoms, matrix, 138, 0, 1, 0),
            **deep,
        ),
        _op("impl.dynamic.prod_virial_se_a", *virial, 138, 0, 1, 0, **deep),
        _op(
            "impl.dynamic.tabulate_fusion",
            *(matrix, tensor((6,), F32), matrix, cube, cube, 128, 1, 0),
            **deep,
        ),
        _op("impl.dynamic.tabulate_fusion_grad", *grads, 1, 0, **deep),
        _op("impl.dynamic.scan_pq_codes", *codes, *places, 1024, 64, 0, 1, 0, **deep),
        _op(
            "impl.dynamic.gen_adc",
            *(tensor((64,)), tensor((16, 256, 4)), tensor((1000, 64)), tensor((-1,), I32)),
            *(tensor((-1, 16, 256)), "l2sqr"),
            **deep,
        ),
    ]


def _nz(*shape: int, dtype: str = F16, of: tuple[int, ...] | None = None) -> dict[str, Any]:
    """Return a matrix in fractals; `of` is the shape that it has without them."""
    more = {"ori_shape": of, "ori_format": "ND"} if of else {}
    return tensor((*shape, 16, 16), dtype, "FRACTAL_NZ") | more


def _networks() -> list[Attempt]:
    """Return parts of networks, and what stands beside them."""
    status = {"soc": "Ascend910A"}
    flags = tensor((8,), F32)
    probabilities, heads = _nz(2, 4, 8, 8, of=(2, 4, 128, 128)), _nz(2, 4, 4, 8, of=(2, 4, 128, 64))
    weights = _nz(16, 16, of=(256, 256))
    cell = tensor((2, 4, 16, 16), F32), tensor((1, 2, 4, 16, 16), F32)
    softmax = _nz(2, 2, 8, 8), _nz(2, 2, 8, 8, dtype="uint8"), _nz(2, 2, 8, 8), _nz(2, 2, 8, 8)
    return [
        _op(
            "impl.concat_v2_d",
            *([tensor((40, 8), F32), tensor((40, 12), F32)], tensor((40, 20), F32), -1),
        ),
        _op("impl.atomic_addr_clean", [1024, 2048]),
        _op("impl.n_p_u_clear_float_status", flags, flags, **status),
        _op("impl.n_p_u_get_float_status", flags, flags, **status),
        _op("impl.n_p_u_clear_float_status_v2", soc="Ascend910B3"),
        _op(
            "impl.gru_v2_hidden_grad_cell",
            *(cell[0], cell[0], cell[1], cell[1], *[cell[1]] * 4, None, cell[0]),
            *(tensor((1, 6, 4, 16, 16), F32), cell[1]),
        ),
        _op("impl.drop_out_with_muls_and_softmax_grad", *softmax, 0.5, 0.25, [-1]),
        _op(
            "impl.attention_score_grad",
            *(probabilities, _nz(4, 16, of=(256, 256)), heads, heads, heads, tensor((1,))),
            *(_nz(2, 4, 8, 8, dtype="uint8"), *[weights] * 3, 0.9, *[False] * 4, [-1]),
        ),
        _op(
            "impl.segment_sort_v2",
            *(tensor((8192,)), tensor((2048,), I32), tensor((2, 4100, 4)), 64, True),
            soc="Ascend910B3",
        ),
        _op(
            "impl.single_merge_v2",
            *(tensor((4, 1028, 4)), tensor((64,)), tensor((64,), I32), 64, True, True),
            soc="Ascend910B3",
        ),
        _contrib("heatmap2_coord", tensor((1, 1, 17, 24, 16), layout="NC1HWC0"), tensor((1, 34))),
        _contrib("batch_matmul", *[tensor(s) for s in ((16, 32, 48), (16, 48, 16), (16, 32, 16))]),
        _package(
            "resample",
            *(tensor((1, 1, 6, 8, 16), layout="NC1HWC0"), tensor((1, 1, 12, 16, 16))),
            *(12, 16, False, 1),
        ),
    ]


def _pools() -> list[Attempt]:
    """Return pooling, its gradients, and resizing."""
    window = [1, 3, 3, 1], [1, 2, 2, 1]
    grad, image = tensor((32, 4, 56, 56, 16)), tensor((32, 4, 112, 112, 16))
    argmax = tensor((32, 4, 9, 197, 16), "uint16")
    whole, half = tensor((1, 1, 16, 16, 16)), tensor((1, 1, 8, 8, 16))
    halved = whole, half, tensor((1, 1, 4, 5, 16), "uint16"), whole
    small = tensor((1, 1, 4, 3, 16), F32, "NC1HWC0")
    large = tensor((1, 1, 8, 6, 16), F32, "NC1HWC0")
    return [
        _op(
            "impl.max_pool_grad_with_argmax_resnet50",
            *(grad, argmax, image, *window, "SAME", "kernel"),
            function="max_pool_grad_with_argmax",
        ),
        _op(
            "impl.max_pool_grad_with_argmax_v2_resnet50",
            *(grad, argmax, image, *window, [1, 1, 1, 1], [1, 1, 1, 1], False, "kernel"),
            function="max_pool_grad_with_argmax",
        ),
        _op(
            "impl.max_pool_with_argmaxv2",
            *(image, grad, argmax, *window, [1, 1, 1, 1]),
            function="max_pool_with_argmax",
        ),
        _op("impl.max_pool_with_argmax", image, grad, argmax, *window, "SAME"),
        _op(
            "impl.max_pool_grad_with_argmaxv1",
            *(*halved, [1, 2, 2, 1], [1, 2, 2, 1], [1, 0, 0, 1]),
            function="max_pool_grad_with_argmax_v1",
        ),
        _op(
            "impl.max_pool_grad_with_argmaxv2",
            *(*halved, [1, 2, 2, 1], [1, 2, 2, 1], [1, 0, 0, 1]),
            function="max_pool_grad_with_argmax",
        ),
        _op("impl.resize_nearest_neighbor_v2_grad_d", large, small, (4, 3)),
        _op("impl.resize_nearest_neighbor_grad_d_h", large, small, (4, 3)),
        _op("impl.dynamic.replication_pad_v3_grad", _open(5), tensor((10,), I32), _open(5)),
        _op(
            "impl.dynamic.nms_with_mask_common",
            *(tensor((-1, 8)), _open(2), _open(1, I32), _open(1, "uint8"), 0.5),
            function="nms_with_mask_single_core",
            soc="Ascend310P3",
        ),
    ]


def _samples() -> list[Attempt]:
    """Return the vendor's samples for frameworks."""
    tensorflow = {"folder": f"{SAMPLE}/Tensorflow/tbe"}
    mindspore = {"folder": f"{SAMPLE}/Mindspore/mindspore/impl"}
    nhwc = tensor((2, 4, 6, 16), layout="NHWC"), None, tensor((2, 2, 3, 64), layout="NHWC"), 2
    batch = tensor((36, 128, 128), F32)
    open_nhwc = _open(4, layout="NHWC")
    return [
        _op("impl.pad", _open(4), _open(2, I32), _open(4), **tensorflow),
        _op("impl.dynamic.pad", _open(4), _open(2, I32), _open(4), **tensorflow),
        _op("impl.space_to_depth", *nhwc, "NHWC", **tensorflow),
        _op("impl.dynamic.space_to_depth", open_nhwc, None, open_nhwc, 2, "NHWC", **tensorflow),
        _op("impl.strided_slice", _open(3), *[_open(1, I32)] * 3, _open(3), **tensorflow),
        _op(
            "impl.unsorted_segment_max",
            *(tensor((64, 16), F32), tensor((64,), I32), tensor((8, 16), F32), 8),
            **tensorflow,
        ),
        _op(
            "impl.dynamic.unsorted_segment_max",
            *(_open(2, F32), _open(1, I32), tensor((1,), I32), _open(2, F32)),
            **tensorflow,
        ),
        _op("batch_matmul_impl", batch, batch, batch, function="batch_matmul", **mindspore),
        _op(
            "cholesky_trsm_impl",
            *(tensor((128, 128), F32), tensor((1, 128, 128), F32)),
            function="cholesky_trsm",
            **mindspore,
        ),
        _op(
            "pt_iou",
            *(tensor((48, 4)), tensor((32, 4)), tensor((32, 48)), "iou"),
            folder=f"{SAMPLE}/PyTorch/tbe/impl",
            function="iou",
        ),
    ]


OWN: tuple[Attempt, ...] = (
    *(*_relayouts(), *_slices(), *_boxes(), *_at_launch(), *_networks(), *_pools(), *_samples()),
    *ELSEWHERE,
)
"""All attempts of ours."""
