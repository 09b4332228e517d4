"""LoadImageToLocal with SetAippFunctions."""

import numpy as np
import pytest

from cubecore.errors import CubecoreError
from frontends.cpp.cpp_kernels import kernels, needs_compiler

pytestmark = needs_compiler

ROWS, COLUMNS = 8, 10
PLANE = ROWS * COLUMNS
LOADED = """
  GlobalTensor<uint8_t> image;
  image.SetGlobalBuffer((__gm__ uint8_t*)x);
  LocalTensor<{type}> to(TPosition::A1, 0, 8192);
  AippParams<{type}> config;
  LoadImageToLocalParams load;
  load.horizSize = 4; load.vertSize = 3; load.srcHorizSize = 10;
  load.horizStartPos = 2; load.vertStartPos = 2;
  {set}
  LoadImageToLocal(to, load);
  PipeBarrier<PIPE_ALL>();
  asc_copy_l12gm((__gm__ {type}*)z, (__cbuf__ {type}*)to.GetPhyAddr(), 1, {blocks}, 0, 0);
"""
BODIES = {
    "gray": LOADED.format(
        type="half",
        blocks=12 + 2 * 3,
        set="""config.paddingParams = {0, half(7), half(8), half(9), half(0)};
        config.cPaddingParams = {0, half(-1)};
        config.dtcParams.dtcMeanCh0 = 5; config.dtcParams.dtcVarCh0 = half(0.5);
        load.leftPadSize = 1; load.rightPadSize = 1;
        SetAippFunctions(image, AippInputFormat::YUV400_U8, config);""",
    ),
    "rgb": LOADED.format(
        type="int8_t",
        blocks=12,
        set="""config.swapParams.isSwapRB = true;
        config.dtcParams.dtcMeanCh0 = 128; config.dtcParams.dtcMeanCh2 = 100;
        SetAippFunctions(image, AippInputFormat::RGB888_U8, config);""",
    ),
    "xrgb": LOADED.format(
        type="int8_t",
        blocks=1,
        set="""config.swapParams.isSwapAX = true; load.vertSize = 2;
        config.cPaddingParams.cPaddingMode = 1;
        SetAippFunctions(image, AippInputFormat::XRGB8888_U8, config);""",
    ),
    "yuv": LOADED.format(
        type="int8_t",
        blocks=4,
        set=f"""config.singleLineParams.isSingleLineCopy = true;
        SetAippFunctions(image, image[{PLANE}], AippInputFormat::YUV420SP_U8, config);""",
    ),
    "colours": LOADED.format(
        type="half",
        blocks=1,
        set="""config.cscParams.isEnableCsc = true;
        SetAippFunctions(image, AippInputFormat::RGB888_U8, config);""",
    ),
    "unset": LOADED.format(type="half", blocks=1, set=""),
    "plane": LOADED.format(
        type="half",
        blocks=1,
        set="SetAippFunctions(image, AippInputFormat::YUV420SP_U8, config);",
    ),
    "mixed": LOADED.format(
        type="half",
        blocks=1,
        set="""AippParams<int8_t> other;
        SetAippFunctions(image, AippInputFormat::YUV400_U8, other);""",
    ),
    "padded": LOADED.format(
        type="half",
        blocks=1,
        set="""load.topPadSize = 2;
        SetAippFunctions(image, AippInputFormat::YUV400_U8, config);""",
    ),
}


@pytest.fixture(scope="module")
def module():
    """Kernels that load a crop of 3 x 4 pixels from (2, 2) of an image of 8 x 10."""
    return kernels(BODIES, "GM_ADDR x, GM_ADDR z")


def loaded(module, name, of):
    """An image of random bytes, and what a kernel loads of it."""
    image = np.random.default_rng(3).integers(0, 256, PLANE * 4, np.uint8)
    z = np.zeros(1024, of)
    ran = getattr(module, name)[1](image, z)
    return image, z, [f"{f.id}: {f.message}" for f in ran.findings]


def test_gray_pixels_in_half_between_constants(module):
    image, z, found = loaded(module, "gray", np.float16)
    crop = image[:PLANE].reshape(ROWS, COLUMNS)[2:5, 2:6]
    wanted = np.full((3, 6, 16), -1, np.float16)
    wanted[:, :, 0] = 7
    wanted[:, 1:5, 0] = (crop.astype(np.float32) - 5) / 2
    assert found == []
    assert np.array_equal(z[: wanted.size], wanted.reshape(-1))


def test_red_and_blue_change_places(module):
    image, z, found = loaded(module, "rgb", np.int8)
    crop = image[: 3 * PLANE].reshape(ROWS, COLUMNS, 3)[2:5, 2:6, ::-1].astype(int)
    wanted = np.zeros((3, 4, 32), int)
    wanted[:, :, :3] = (crop - [128, 0, 100]).clip(-128, 127)
    assert found == []
    assert np.array_equal(z[: wanted.size], wanted.reshape(-1))


def test_the_first_of_four_bytes_is_dropped(module):
    image, z, found = loaded(module, "xrgb", np.int8)
    crop = image.reshape(ROWS, COLUMNS, 4)[2:4, 2:6, 1:].astype(int)
    wanted = np.zeros((2, 4, 4), int)
    wanted[:, :, :3] = crop.clip(-128, 127)
    assert found == []
    assert np.array_equal(z[: wanted.size], wanted.reshape(-1))


def test_one_row_of_luma_and_chroma(module):
    image, z, found = loaded(module, "yuv", np.int8)
    luma = image[:PLANE].reshape(ROWS, COLUMNS)[2, 2:6]
    pairs = image[PLANE : PLANE + PLANE // 2].reshape(ROWS // 2, COLUMNS // 2, 2)[1, 1:3]
    wanted = np.zeros((4, 32), int)
    wanted[:, 0], wanted[:, 1:3] = luma, np.repeat(pairs, 2, axis=0)
    assert found == []
    assert np.array_equal(z[:128], wanted.clip(-128, 127).reshape(-1))


REFUSED = {
    "colours": "SetAippFunctions must leave isEnableCsc false, got true; its formulas are pictures "
    "that the public pages lack",
    "unset": "LoadImageToLocal must follow a SetAippFunctions, got none",
    "plane": "SetAippFunctions must have the plane of U and V of a YUV420SP image, got one tensor",
    "mixed": "LoadImageToLocal.dst must have the type of SetAippFunctions' config, got float16",
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_use_that_is_refused(module, name):
    with pytest.raises(CubecoreError) as refused:
        loaded(module, name, np.float16)
    assert REFUSED[name] in str(refused.value)


def test_constants_lie_beside_the_image_alone(module):
    assert (
        "parameter: load_image_gray.pad_top must be 0 where pad_mode is 0, got 2"
        in loaded(module, "padded", np.float16)[2]
    )
