"""Operators over boxes: (left, top, right, bottom), or (top, left, bottom, right) by their name."""

import numpy as np

from .case import F16, F32, I32, TENSORFLOW, Array, Case, Drawn, ints, tensor

_ONE = tensor((128, 4))
_NO_SHIFT = ((0.0, 0.0, 0.0, 0.0), (1.0, 1.0, 1.0, 1.0))
"""Means and deviations that change nothing."""


def corners(rng: np.random.Generator, count: int) -> Array:
    """Draw boxes with a side of 4 to 19, their first corner within 9 of the origin."""
    first = rng.integers(0, 9, (count, 2))
    return np.concatenate([first, first + rng.integers(4, 20, (count, 2))], 1).astype(F16)


def centred(boxes: Array) -> tuple[Array, Array, Array, Array]:
    """Return centres and sides of boxes whose last row and column belong to them."""
    left, top, right, bottom = boxes.astype(float).T
    return (left + right) / 2, (top + bottom) / 2, right - left + 1, bottom - top + 1


def encode(anchors: Array, truths: Array) -> Array:
    """Return shifts in sides of the anchor, and logarithms of the ratio of the sides."""
    ax, ay, aw, ah = centred(anchors)
    tx, ty, tw, th = centred(truths)
    return np.stack([(tx - ax) / aw, (ty - ay) / ah, np.log(tw / aw), np.log(th / ah)], 1)


def decode(anchors: Array, deltas: Array) -> Array:
    """Undo `encode`."""
    ax, ay, aw, ah = centred(anchors)
    dx, dy, dw, dh = deltas.astype(float).T
    x, y, w, h = ax + aw * dx, ay + ah * dy, aw * np.exp(dw), ah * np.exp(dh)
    return np.stack([x - (w - 1) / 2, y - (h - 1) / 2, x + (w - 1) / 2, y + (h - 1) / 2], 1)


def decode_yx(deltas: Array, anchors: Array) -> Array:
    """Decode (dy, dx, dh, dw) against (top, left, bottom, right), whose sides are differences."""
    top, left, bottom, right = anchors.astype(float).T
    dy, dx, dh, dw = deltas.astype(float).T
    high, wide = bottom - top, right - left
    y, x = top + high / 2 + dy * high, left + wide / 2 + dx * wide
    h, w = high * np.exp(dh), wide * np.exp(dw)
    return np.stack([y - h / 2, x - w / 2, y + h / 2, x + w / 2], 1)


def decode_points(points: Array, anchors: Array) -> Array:
    """Place four points, given in sides of an anchor from its centre."""
    left, top, right, bottom = anchors.astype(float).T
    across = points[:, 0::2] * (right - left)[:, None] + ((left + right) / 2)[:, None]
    down = points[:, 1::2] * (bottom - top)[:, None] + ((top + bottom) / 2)[:, None]
    return np.stack([across, down], 2).reshape(points.shape)


def kept(boxes: Array, threshold: float) -> Array:
    """Keep a box unless a kept one before it overlaps it by more than the threshold."""
    left, top, right, bottom = boxes[:, :4].astype(float).T
    area = (right - left) * (bottom - top)
    keep = np.ones(len(boxes), "uint8")
    for i in range(len(boxes)):
        for j in range(i) if keep[i] else ():
            wide = min(right[i], right[j]) - max(left[i], left[j])
            high = min(bottom[i], bottom[j]) - max(top[i], top[j])
            both = max(wide, 0) * max(high, 0)
            if keep[j] and both > threshold * (area[i] + area[j] - both):
                keep[i] = 0
    return keep


def overlaps(box: Array, others: Array) -> Array:
    """Return intersection over union of a box with others, sides being differences."""
    left, top, right, bottom = np.concatenate([box[None], others]).astype(float).T
    wide = np.maximum(np.minimum(right[0], right) - np.maximum(left[0], left), 0)
    high = np.maximum(np.minimum(bottom[0], bottom) - np.maximum(top[0], top), 0)
    area, both = (right - left) * (bottom - top), wide * high
    return (both / (area[0] + area - both))[1:]


def _proposals(rng: np.random.Generator) -> Drawn:
    """Draw boxes in the order of falling scores, no pair so near 0.5 that rounding decides."""
    boxes = np.zeros((0, 4))
    while len(boxes) < 128:
        first = rng.integers(0, 60, 2)
        box = np.concatenate([first, first + rng.integers(4, 40, 2)])
        if (np.abs(overlaps(box, boxes) - 0.5) > 0.02).all():
            boxes = np.concatenate([boxes, box[None]])
    scores = np.arange(127, -1, -1).reshape(128, 1) / 64
    return [np.concatenate([boxes, scores, np.zeros((128, 3))], 1).astype(F16)]


def _nms(soc: str) -> Case:
    boxes = tensor((128, 8)), tensor((128, 5))
    return Case(
        module="impl.nms_with_mask",
        function="nms_with_mask",
        category="nms",
        soc=soc,
        arguments=(*boxes, tensor((128,), I32), tensor((128,), "uint8"), 0.5),
        draw=_proposals,
        oracle=lambda boxes: [boxes[:, :5], np.arange(128), kept(boxes, 0.5)],
        changed="a side had the last row and column at first",
    )


def _yx(folder: str, module: str) -> Case:
    return Case(
        folder=folder,
        module=module,
        function="decode_bbox_v2",
        category="layout",
        soc="Ascend310",
        arguments=(*[tensor((512, 4))] * 3, [1.0, 1.0, 1.0, 1.0], 0.0, False),
        draw=lambda rng: [ints(rng, (512, 4)) / np.float16(16), corners(rng, 512)],
        oracle=decode_yx,
        tolerance=0.03,
    )


CASES = (
    Case(
        module="impl.bounding_box_encode",
        function="bounding_box_encode",
        category="layout",
        arguments=(_ONE, _ONE, _ONE, *_NO_SHIFT),
        draw=lambda rng: [corners(rng, 128), corners(rng, 128)],
        oracle=encode,
        tolerance=0.002,
    ),
    Case(
        module="impl.bounding_box_decode",
        function="bounding_box_decode",
        category="layout",
        arguments=(_ONE, _ONE, _ONE, *_NO_SHIFT, None, 0.016),
        draw=lambda rng: [corners(rng, 128), ints(rng, (128, 4)) / np.float16(16)],
        oracle=decode,
        tolerance=0.03,
    ),
    _yx("ops/built-in/tbe", "impl.decode_bbox_v2"),
    _yx(TENSORFLOW, "decode_bbox_v2"),
    Case(
        module="impl.decode_wheels_target",
        function="decode_wheels_target",
        category="layout",
        arguments=(tensor((32, 8)), tensor((32, 4)), tensor((32, 8))),
        draw=lambda rng: [ints(rng, (32, 8)) / np.float16(8), corners(rng, 32)],
        oracle=decode_points,
        changed="of three readings of a side, that without the last row and column was kept",
    ),
    Case(
        module="impl.clip_boxes_d",
        function="clip_boxes_d",
        category="layout",
        arguments=(tensor((64, 4)), tensor((64, 4)), (40, 50)),
        draw=lambda rng: [ints(rng, (64, 4), F16, -20, 80)],
        oracle=lambda boxes: np.clip(boxes, 0, [50, 40, 50, 40]),
    ),
    Case(
        module="impl.normalize_bbox",
        function="normalize_bbox",
        category="elementwise",
        soc="Ascend310",
        arguments=(tensor((3, 4, 16)), tensor((3, 3), I32), tensor((3, 4, 16)), True),
        draw=lambda rng: [
            ints(rng, (3, 4, 16)),
            np.array([[20, 30, 3], [40, 8, 3], [16, 100, 3]], I32),
        ],
        oracle=lambda boxes, sizes: boxes / sizes[:, [0, 1, 0, 1]][:, :, None],
        tolerance=0.001,
    ),
    Case(
        module="impl.to_absolute_bbox",
        function="to_absolute_bbox",
        category="elementwise",
        soc="Ascend310",
        arguments=(tensor((3, 64, 4)), tensor((4,), I32), tensor((3, 64, 4)), False),
        draw=lambda rng: [ints(rng, (3, 64, 4)) / np.float16(16), np.array([3, 200, 100, 1], I32)],
        oracle=lambda boxes, size: boxes.astype(F32) * size[[1, 2, 1, 2]],
    ),
    _nms("Ascend310P3"),
    _nms("Ascend910A"),
)
