"""Faults inside vector functions, each beside its right form; a wrong line ends in //!."""

CHIP = "Ascend950PR_9589"
COUNT = 512
PARAMETERS = "GM_ADDR x, GM_ADDR y, GM_ADDR z, uint32_t n"
FRAME = """  __ubuf__ float* xu = (__ubuf__ float*)0;
  __ubuf__ float* yu = (__ubuf__ float*)4096;
  __ubuf__ float* zu = (__ubuf__ float*)8192;
  __ubuf__ float* tu = (__ubuf__ float*)16384;
  asc_copy_gm2ub((__ubuf__ void*)xu, (__gm__ void*)x, n * 4);
  asc_copy_gm2ub((__ubuf__ void*)yu, (__gm__ void*)y, n * 4);
  asc_copy_gm2ub((__ubuf__ void*)zu, (__gm__ void*)x, n * 4);
  SetFlag<HardEvent::MTE2_V>(0); WaitFlag<HardEvent::MTE2_V>(0);
  __VEC_SCOPE__ {{
    Reg::RegTensor<float> a, b, c, d;
    Reg::RegTensor<half> h, k;
    Reg::RegTensor<int32_t> s, t;
    Reg::MaskReg all = Reg::CreateMask<float>();
    Reg::MaskReg all16 = Reg::CreateMask<half>();
    {body}
  }}
  SetFlag<HardEvent::V_MTE3>(0); WaitFlag<HardEvent::V_MTE3>(0);
  asc_copy_ub2gm((__gm__ void*)z, (__ubuf__ void*)zu, n * 4);"""
"""A vector function on 512 floats each at xu, yu and zu; the body's line that is wrong ends in //!.
"""
VST_VLD = "Reg::LocalMemBar<Reg::MemType::VEC_STORE, Reg::MemType::VEC_LOAD>();"
VLD_VST = "Reg::LocalMemBar<Reg::MemType::VEC_LOAD, Reg::MemType::VEC_STORE>();"
VST_VST = "Reg::LocalMemBar<Reg::MemType::VEC_STORE, Reg::MemType::VEC_STORE>();"
PASS_ON = """Reg::LoadAlign(a, xu);
    Reg::StoreAlign(tu, a, all);
    {barrier}
    Reg::LoadAlign(b, tu); //!
    Reg::StoreAlign(zu, b, all);"""
CAST = """static constexpr Reg::CastTrait how = {{Reg::RegLayout::{layout}, Reg::SatMode::NO_SAT,
        Reg::MaskMergeMode::{merge}, RoundMode::{rounding}}};
    Reg::LoadAlign(a, xu);
    Reg::Cast<half, float, how>(h, a, all); //!
    Reg::StoreAlign((__ubuf__ half*)zu, h, all16);"""
WIDE = {"layout": "ZERO", "merge": "ZEROING", "rounding": "CAST_RINT"}
LOADS = """__ubuf__ float* p = xu + 3;
    __ubuf__ float* q = yu + 5;
    Reg::UnalignReg u, v;
    {pre}
    for (uint16_t i = 0; i < 4; ++i) {{
      Reg::LoadUnAlign(a, u, p, 64); //!
      Reg::StoreAlign(zu + 64 * i, a, all);
    }}"""
STORES = """__ubuf__ float* p = zu + 3;
    __ubuf__ float* q = tu + 5;
    Reg::UnalignReg u, v;
    Reg::LoadAlign(a, xu);
    for (uint16_t i = 0; i < 4; ++i) {{
      Reg::StoreUnAlign(p, a, u, 50); //!
    }}
    {post}"""
MANY = """Reg::UnalignReg {buffers};
    __ubuf__ float* p = xu + 1;
    {pres}
    {loads}"""


def many(count):
    names = [f"u{n}" for n in range(count)]
    pres = " ".join(f"Reg::LoadUnAlignPre({u}, xu + 1 + {n});" for n, u in enumerate(names[:4]))
    pres += " //ok" + "".join(f"\n    Reg::LoadUnAlignPre({u}, xu + 9); //!" for u in names[4:])
    loads = [
        f"Reg::LoadUnAlign(a, {u}, xu + {n});" for u, n in zip(names, (1, 2, 3, 4, 9), strict=False)
    ]
    return MANY.format(buffers=", ".join(names), pres=pres, loads="\n    ".join(loads))


def values(count):
    """Load so many registers, and then add them up; the line of the first that is too many."""
    text = f"Reg::RegTensor<float> r[{count}];"
    for n in range(count):
        text += f"\n    Reg::LoadAlign(r[{n}], xu + {8 * n});" + (" //!" if n == 32 else "")
    text += "\n    a = r[0];"
    for n in range(1, count):
        text += f"\n    Reg::Add(a, a, r[{n}], all);"
    return text + "\n    Reg::StoreAlign(zu, a, all);"


def both(form, right, wrong):
    return form.format(**right), form.format(**wrong)


TAIL = """Reg::LoadAlign(a, xu);
    Reg::Adds(b, a, 1.0f, all);
    """
PAIRS = {
    # order
    "store_then_load": ("vf-race", *both(PASS_ON, {"barrier": VST_VLD}, {"barrier": ""})),
    "barrier_of_others": ("vf-race", *both(PASS_ON, {"barrier": VST_VLD}, {"barrier": VLD_VST})),
    "in_c": (
        "vf-race",
        *both(
            """asc_loadalign(a, xu);
    asc_storealign(tu, a, all);
    {barrier}
    asc_loadalign(b, tu); //!
    asc_storealign(zu, b, all);""",
            {"barrier": "asc_mem_bar(VST_VLD);"},
            {"barrier": "asc_mem_bar(VST_LD);"},
        ),
    ),
    "all_vector": (
        "vf-race",
        *both(PASS_ON, {"barrier": "mem_bar(VV_ALL);"}, {"barrier": "asc_mem_bar(VS_ALL);"}),
    ),
    "two_stores": (
        "vf-store-order",
        *both(
            """Reg::LoadAlign(a, xu); Reg::LoadAlign(b, yu);
    Reg::StoreAlign(zu, a, all);
    {barrier}
    Reg::StoreAlign(zu + 8, b, all); //!""",
            {"barrier": VST_VST},
            {"barrier": ""},
        ),
    ),
    "load_then_store": (
        "vf-race",
        *both(
            """Reg::LoadAlign(a, zu); Reg::LoadAlign(b, yu);
    {barrier}
    Reg::StoreAlign(zu, b, all); //!
    Reg::StoreAlign(zu + 64, a, all);""",
            {"barrier": VLD_VST},
            {"barrier": ""},
        ),
    ),
    "next_trip": (
        "vf-race",
        *both(
            """for (uint16_t i = 0; i < 7; ++i) {{
      Reg::LoadAlign(a, zu + 64 * i); //!
      Reg::Adds(b, a, 1.0f, all);
      Reg::StoreAlign(zu + 64 * i + 64, b, all);
      {barrier}
    }}""",
            {"barrier": VST_VLD},
            {"barrier": ""},
        ),
    ),
    "two_loops": (
        "vf-race",
        *both(
            """for (uint16_t i = 0; i < 8; ++i) {{
      Reg::LoadAlign(a, xu + 64 * i);
      Reg::StoreAlign(tu + 64 * i, a, all);
    }}
    {barrier}
    for (uint16_t i = 0; i < 8; ++i) {{
      Reg::LoadAlign(b, tu + 64 * i); //!
      Reg::StoreAlign(zu + 64 * i, b, all);
    }}""",
            {"barrier": VST_VLD},
            {"barrier": ""},
        ),
    ),
    "broadcast_beside": (
        "vf-race",
        *both(
            """Reg::LoadAlign(a, xu);
    Reg::StoreAlign<float, Reg::StoreDist::DIST_FIRST_ELEMENT_B32>(tu + 8, a, all);
    Reg::LoadAlign<float, Reg::LoadDist::DIST_BRC_B32>(b, {from}); //!
    Reg::StoreAlign(zu, b, all);""",
            {"from": "xu + 1"},
            {"from": "tu + 9"},
        ),
    ),
    "sum_and_spread": (
        "vf-race",
        *both(
            """Reg::LoadAlign(a, xu);
    Reg::Reduce<Reg::ReduceType::SUM>(b, a, all);
    Reg::StoreAlign<float, Reg::StoreDist::DIST_FIRST_ELEMENT_B32>(tu, b, all);
    {barrier}
    Reg::LoadAlign<float, Reg::LoadDist::DIST_BRC_B32>(c, tu); //!
    Reg::StoreAlign(zu, c, all);""",
            {"barrier": VST_VLD},
            {"barrier": ""},
        ),
    ),
    "data_of_another": (
        "vf-race",
        *both(
            """for (uint16_t i = 0; i < 8; ++i) {{
      Reg::LoadAlign(a, zu + 64 * i);
      Reg::LoadAlign(b, yu + 64 * i);
      Reg::Adds(c, {of}, 1.0f, all);
      Reg::StoreAlign(zu + 64 * i, c, all); //!
      Reg::StoreAlign(tu + 64 * i, a, all);
    }}""",
            {"of": "a"},
            {"of": "b"},
        ),
    ),
    "same_variable": (
        "vf-store-order",
        """Reg::LoadAlign(a, xu);
    Reg::StoreAlign(zu, a, all);
    Reg::LoadAlign(a, yu);
    Reg::StoreAlign(zu + 8, a, all);""",
        """Reg::LoadAlign(a, xu);
    Reg::StoreAlign(zu, a, all);
    Reg::LoadAlign(b, yu);
    Reg::StoreAlign(zu + 8, b, all); //!""",
    ),
    "strided_blocks": (
        "vf-race",
        *both(
            """Reg::LoadAlign(a, xu);
    Reg::StoreAlign<float, Reg::DataCopyMode::DATA_BLOCK_COPY>(tu, a, 2, all);
    {barrier}
    Reg::LoadAlign(b, tu); //!
    Reg::StoreAlign(zu, b, Reg::CreateMask<float, Reg::MaskPattern::VL8>());""",
            {"barrier": VST_VLD},
            {"barrier": ""},
        ),
    ),
    # alignment and distribution
    "unaligned_load": (
        "misaligned",
        TAIL + "Reg::StoreAlign(zu, b, all);",
        "Reg::LoadAlign(a, xu + 1); //!\n    Reg::StoreAlign(zu, a, all);",
    ),
    "unaligned_store": (
        "misaligned",
        TAIL + "Reg::StoreAlign(zu + 8, b, all);",
        TAIL + "Reg::StoreAlign(zu + 4, b, all); //!",
    ),
    "stride_breaks": (
        "misaligned",
        *both(
            """__ubuf__ float* p = xu;
    for (uint16_t i = 0; i < 4; ++i) {{
      Reg::LoadAlign<float, Reg::PostLiteral::POST_MODE_UPDATE>(a, p, {stride}); //!
      Reg::StoreAlign(zu + 64 * i, a, all);
    }}""",
            {"stride": 64},
            {"stride": 50},
        ),
    ),
    "element_by_element": (
        "misaligned",
        *both(
            """Reg::LoadAlign<half, Reg::LoadDist::DIST_E2B_B16>(h, (__ubuf__ half*)xu + {at}); //!
    Reg::StoreAlign((__ubuf__ half*)zu, h, all16);""",
            {"at": 8},
            {"at": 4},
        ),
    ),
    "wrong_distribution": (
        "misaligned",
        *both(
            """for (uint16_t i = 0; i < 8; ++i) {{
      Reg::LoadAlign<float, Reg::LoadDist::DIST_{dist}>(a, xu + i); //!
      Reg::StoreAlign(zu + 64 * i, a, all);
    }}""",
            {"dist": "BRC_B32"},
            {"dist": "BLK"},
        ),
    ),
    "first_element": (
        "misaligned",
        *both(
            """Reg::LoadAlign(a, xu);
    for (uint16_t i = 0; i < 8; ++i) {{
      Reg::StoreAlign<float, Reg::StoreDist::DIST_{dist}>(zu + i, a, all); //!
    }}""",
            {"dist": "FIRST_ELEMENT_B32"},
            {"dist": "PACK_B32"},
        ),
    ),
    "elements_of_another_width": (
        "parameter",
        *both(
            """Reg::LoadAlign<float, Reg::LoadDist::DIST_{dist}>(a, xu); //!
    Reg::StoreAlign(zu, a, all);""",
            {"dist": "BRC_B32"},
            {"dist": "BRC_B16"},
        ),
    ),
    "pairs_of_another_width": (
        "parameter",
        *both(
            """Reg::LoadAlign<float, Reg::LoadDist::DIST_{dist}>(a, b, xu); //!
    Reg::Add(c, a, b, all);
    Reg::StoreAlign(zu, c, all);""",
            {"dist": "DINTLV_B32"},
            {"dist": "DINTLV_B16"},
        ),
    ),
    "mask_address": (
        "misaligned",
        *both(
            """Reg::LoadAlign(a, xu);
    Reg::MaskReg m;
    Reg::CompareScalar<float, CMPMODE::GT>(m, a, 0.0f, all);
    Reg::StoreAlign((__ubuf__ uint32_t*)tu + {at}, m); //!
    Reg::StoreAlign(zu, a, all);""",
            {"at": 8},
            {"at": 4},
        ),
    ),
    # registers
    "never_loaded": (
        "register-uninitialised",
        TAIL + "Reg::StoreAlign(zu, b, all);",
        "Reg::LoadAlign(a, xu);\n    Reg::Add(b, a, c, all); //!\n    Reg::StoreAlign(zu, b, all);",
    ),
    "never_computed": (
        "register-uninitialised",
        TAIL + "Reg::StoreAlign(zu, b, all);",
        TAIL + "Reg::StoreAlign(zu, c, all); //!",
    ),
    "sum_from_nothing": (
        "register-uninitialised",
        *both(
            """{first}
    for (uint16_t i = 0; i < 8; ++i) {{
      Reg::LoadAlign(a, xu + 64 * i);
      Reg::Add(b, b, a, all); //!
    }}
    Reg::StoreAlign(zu, b, all);""",
            {"first": "Reg::Duplicate(b, 0.0f, all);"},
            {"first": ""},
        ),
    ),
    "product_onto_nothing": (
        "register-uninitialised",
        *both(
            """Reg::LoadAlign(a, xu);
    {first}
    Reg::MulAddDst(c, a, a, all); //!
    Reg::StoreAlign(zu, c, all);""",
            {"first": "Reg::LoadAlign(c, yu);"},
            {"first": ""},
        ),
    ),
    "mask_never_made": (
        "register-uninitialised",
        *both(
            """Reg::LoadAlign(a, xu);
    Reg::MaskReg m;
    {first}
    Reg::Adds(b, a, 1.0f, m); //!
    Reg::StoreAlign(zu, b, all);""",
            {"first": "m = Reg::CreateMask<float, Reg::MaskPattern::VL8>();"},
            {"first": ""},
        ),
    ),
    "never_loaded_in_c": (
        "register-uninitialised",
        "vector_float e;\n    asc_loadalign(e, xu);\n    asc_storealign(zu, e, all);",
        "vector_float e;\n    asc_storealign(zu, e, all); //!",
    ),
    # masks
    "mask_of_16_bits": (
        "mask-width",
        TAIL + "Reg::StoreAlign(zu, b, all);",
        "Reg::LoadAlign(a, xu);\n    Reg::MaskReg m = Reg::CreateMask<half, Reg::MaskPattern::VL32>"
        "();\n    Reg::Adds(b, a, 1.0f, m); //!\n    Reg::StoreAlign(zu, b, all);",
    ),
    "mask_of_32_bits": (
        "mask-width",
        "Reg::LoadAlign(h, (__ubuf__ half*)xu);\n    Reg::Adds(k, h, (half)1, all16);\n"
        "    Reg::StoreAlign((__ubuf__ half*)zu, k, all16);",
        "Reg::LoadAlign(h, (__ubuf__ half*)xu);\n    Reg::Adds(k, h, (half)1, all); //!\n"
        "    Reg::StoreAlign((__ubuf__ half*)zu, k, all16);",
    ),
    "count_of_another": (
        "mask-width",
        *both(
            """uint32_t left = 40;
    Reg::MaskReg m = Reg::UpdateMask<{type}>(left);
    Reg::LoadAlign(a, xu);
    Reg::StoreAlign(zu, a, m); //!""",
            {"type": "float"},
            {"type": "half"},
        ),
    ),
    "merged_product": (
        "mask-merge",
        *both(
            """Reg::LoadAlign(a, xu); Reg::LoadAlign(c, yu);
    Reg::{call}(c, a, a, all); //!
    Reg::StoreAlign(zu, c, all);""",
            {"call": "Add<float, Reg::MaskMergeMode::MERGING>"},
            {"call": "Mul<float, Reg::MaskMergeMode::MERGING>"},
        ),
    ),
    "merged_cast": ("mask-merge", *both(CAST, WIDE, {**WIDE, "merge": "MERGING"})),
    "merged_sum": (
        "mask-merge",
        *both(
            """Reg::LoadAlign(a, xu);
    Reg::Reduce<Reg::ReduceType::SUM, float, float, Reg::MaskMergeMode::{mode}>(b, a, all); //!
    Reg::StoreAlign(zu, b, all);""",
            {"mode": "ZEROING"},
            {"mode": "MERGING"},
        ),
    ),
    # unaligned streams
    "no_pre": (
        "unalign-protocol",
        *both(LOADS, {"pre": "Reg::LoadUnAlignPre(u, p);"}, {"pre": ""}),
    ),
    "pre_of_another": (
        "unalign-protocol",
        *both(LOADS, {"pre": "Reg::LoadUnAlignPre(u, p);"}, {"pre": "Reg::LoadUnAlignPre(v, p);"}),
    ),
    "pre_elsewhere": (
        "unalign-protocol",
        *both(LOADS, {"pre": "Reg::LoadUnAlignPre(u, p);"}, {"pre": "Reg::LoadUnAlignPre(u, q);"}),
    ),
    "no_post": (
        "unalign-protocol",
        *both(STORES, {"post": "Reg::StoreUnAlignPost(p, u, 0);"}, {"post": ""}),
    ),
    "two_streams_of_loads": (
        "unalign-protocol",
        *both(
            """__ubuf__ float *p = xu + 1, *q = yu + 2;
    Reg::UnalignReg u, v;
    Reg::LoadUnAlignPre(u, p);
    {pre}
    for (uint16_t i = 0; i < 4; ++i) {{
      Reg::LoadUnAlign(a, u, p, 64); {first}
      Reg::LoadUnAlign(b, {of}, q, 64); {second}
      Reg::Add(c, a, b, all);
      Reg::StoreAlign(zu + 64 * i, c, all);
    }}""",
            {"pre": "Reg::LoadUnAlignPre(v, q);", "of": "v", "first": "", "second": ""},
            {"pre": "", "of": "u", "first": "//!", "second": "//!"},
        ),
    ),
    "two_streams_of_stores": (
        "unalign-protocol",
        *both(
            """__ubuf__ float *p = zu + 1, *q = tu + 2;
    Reg::UnalignReg u, v;
    Reg::LoadAlign(a, xu);
    Reg::StoreUnAlign(p, a, u, 30);
    Reg::StoreUnAlign(q, a, {of}, 30); //!
    Reg::StoreUnAlignPost({end}, {of}, 0);
    {post}""",
            {"of": "v", "end": "q", "post": "Reg::StoreUnAlignPost(p, u, 0);"},
            {"of": "u", "end": "q", "post": ""},
        ),
    ),
    "five_buffers": ("unalign-protocol", many(4), many(5)),
    "no_pre_in_c": (
        "unalign-protocol",
        *both(
            """vector_load_unalign u;
    vector_float e;
    {pre}
    asc_loadunalign(e, u, xu + 1); //!
    asc_storealign(zu, e, all);""",
            {"pre": "asc_loadunalign_pre(u, xu + 1);"},
            {"pre": ""},
        ),
    ),
    "no_post_in_c": (
        "unalign-protocol",
        *both(
            """vector_store_unalign u;
    vector_float e;
    asc_loadalign(e, xu);
    asc_storeunalign(zu + 1, u, e, 40); //!
    {post}""",
            {"post": "asc_storeunalign_post(zu + 1, u, 40);"},
            {"post": ""},
        ),
    ),
    # conversions and others
    "layout_beyond": ("cast-form", *both(CAST, WIDE, {**WIDE, "layout": "TWO"})),
    "rounding_that_lacks": ("cast-form", *both(CAST, WIDE, {**WIDE, "rounding": "CAST_HYBRID"})),
    "types_that_lack": (
        "cast-form",
        *both(
            """static constexpr Reg::CastTrait how = {{Reg::RegLayout::ZERO, Reg::SatMode::NO_SAT,
        Reg::MaskMergeMode::ZEROING, RoundMode::CAST_RINT}};
    Reg::RegTensor<{type}> e;
    Reg::LoadAlign(a, xu);
    Reg::Cast<{type}, float, how>(e, a, all); //!""",
            {"type": "int32_t"},
            {"type": "uint32_t"},
        ),
    ),
    "shift_backwards": (
        "shift-amount",
        *both(
            """Reg::LoadAlign(s, (__ubuf__ int32_t*)xu);
    Reg::ShiftLefts(t, s, (int16_t){amount}, all); //!
    Reg::StoreAlign((__ubuf__ int32_t*)zu, t, all);""",
            {"amount": 3},
            {"amount": -3},
        ),
    ),
    "shift_by_lanes_backwards": (
        "shift-amount",
        *both(
            """Reg::LoadAlign(s, (__ubuf__ int32_t*)xu);
    Reg::Duplicate(t, {amount}, all);
    Reg::ShiftRight(t, s, t, all); //!
    Reg::StoreAlign((__ubuf__ int32_t*)zu, t, all);""",
            {"amount": 3},
            {"amount": -3},
        ),
    ),
    "results_in_one": (
        "overlap",
        *both(
            """Reg::LoadAlign(a, xu); Reg::LoadAlign(b, yu);
    Reg::DeInterleave(c, {second}, a, b); //!
    Reg::StoreAlign(zu, c, all);""",
            {"second": "d"},
            {"second": "c"},
        ),
    ),
    "forty_values": ("registers-spilled", values(30), values(40)),
    "behind_ub": (
        "out-of-bounds",
        *both(
            """Reg::LoadAlign(a, xu);
    Reg::LoadAlign(b, xu + {at}); //!
    Reg::Add(c, a, b, all);
    Reg::StoreAlign(zu, c, all);""",
            {"at": 64},
            {"at": 65536},
        ),
    ),
}


SHORT = 500
LAST = """Reg::LoadAlign(a, xu + 448);
    Reg::MaskReg m = {mask};
    """
OF_COUNT = {"mask": "all; { uint32_t left = 52; m = Reg::UpdateMask<float>(left); }"}
OF_ALL = {"mask": "all;"}
SUM = (
    LAST
    + """Reg::Reduce<Reg::ReduceType::SUM>(b, a, m); //!
    Reg::StoreAlign(zu, b, all);"""
)
LARGER = (
    LAST
    + """Reg::MaskReg more;
    Reg::CompareScalar<float, CMPMODE::GT>(more, a, 0.0f, m); //!
    Reg::Reduce<Reg::ReduceType::SUM>(b, a, more); //!
    Reg::StoreAlign(zu, b, all);"""
)
MERGED = """Reg::LoadAlign(a, xu);
    Reg::MaskReg m = Reg::CreateMask<float, Reg::MaskPattern::VL8>();
    {first}
    Reg::Move(b, a, m);
    Reg::StoreAlign(zu, b, {stored}); //!"""
SHORT_PAIRS = {
    "short_sum": (
        "uninitialised",
        SUM.replace("{mask}", OF_COUNT["mask"]),
        SUM.replace("{mask}", "all"),
    ),
    "short_comparison": (
        "uninitialised",
        LARGER.replace("{mask}", OF_COUNT["mask"]),
        LARGER.replace("{mask}", "all"),
    ),
    "merged_lanes": (
        "lanes-stale",
        *both(MERGED, {"first": "", "stored": "m"}, {"first": "", "stored": "all"}),
    ),
    "filled_lanes": (
        "lanes-stale",
        *both(MERGED, {"first": "b = a;", "stored": "all"}, {"first": "", "stored": "all"}),
    ),
}
"""Of 500 floats, so that lanes of the last row were never written in UB."""
ALL_PAIRS = {**PAIRS, **SHORT_PAIRS}
