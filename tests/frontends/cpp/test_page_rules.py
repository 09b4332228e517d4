"""Rules of the class API's pages that a kernel in a line breaks: the first finding of each."""

import re

import numpy as np
import pytest

from frontends.cpp.cpp_kernels import kernels, needs_compiler

pytestmark = needs_compiler
BARE = ""
GIVEN = """TPipe pipe; TBuf<TPosition::VECCALC> all; pipe.InitBuffer(all, 16384);
auto a = all.Get<float>(), c = a[1024];
auto h = a.ReinterpretCast<half>(); auto u = c.ReinterpretCast<uint32_t>();
GlobalTensor<float> g; g.SetGlobalBuffer((__gm__ float*)x, 4096);
Duplicate(a, 1.0f, 4096); PipeBarrier<PIPE_ALL>();
"""
QUEUED = """TPipe pipe; TQue<TPosition::VECIN, 1> q;
GlobalTensor<float> g; g.SetGlobalBuffer((__gm__ float*)x, 4096);
"""
RULES = {
    "an empty queue": (
        QUEUED,
        "pipe.InitBuffer(q, 1, 256); LocalTensor<float> t = q.DeQue<float>();",
        "queue-empty",
        "DeQue: a queue must hold a tensor, got an empty queue",
    ),
    "an event": (
        BARE,
        "SetFlag<HardEvent::V_MTE3>(8); WaitFlag<HardEvent::V_MTE3>(8);",
        "flag-parameter",
        "set_flag.event_id must be in [0, 7], got 8",
    ),
    "a wait for another event": (
        BARE,
        "SetFlag<HardEvent::V_MTE3>(1); WaitFlag<HardEvent::V_MTE2>(1);",
        "flag-unmet",
        "MTE2 waits at {line} (k) for flag V -> MTE2 1, which no set_flag sets",
    ),
    "a wait without its flag": (
        BARE,
        "WaitFlag<HardEvent::V_MTE3>(1);",
        "flag-unmet",
        "MTE3 waits at {line} (k) for flag V -> MTE3 1, which no set_flag sets",
    ),
    "a barrier of the scalar unit": (
        BARE,
        "PipeBarrier<PIPE_S>();",
        "flag-parameter",
        "pipe_barrier.on must be one of V, M, MTE1, MTE2, MTE3, FIX, ALL, got 'S'",
    ),
    "a flag between cores": (
        BARE,
        "CrossCoreSetFlag<0, PIPE_MTE3>(16);",
        "flag-parameter",
        "ffts_cross_core_sync.flag_id must be in [0, 15], got 16",
    ),
    "the start of a copy in UB": (
        GIVEN,
        "DataCopy(a[1], g, 8);",
        "misaligned",
        "copy_gm_to_ubuf.dst must start at a multiple of 32 B in UB, got 4",
    ),
    "the length of a copy": (
        GIVEN,
        "DataCopy(a, g, 9);",
        "parameter",
        "DataCopy: count must be a multiple of 8 for float (32 B), got 9: the last 4 B are not copied; DataCopyPad copies them",  # noqa: E501
    ),
    "copies that meet in UB": (
        GIVEN,
        "DataCopy(a, g, 64); DataCopy(a[8], g[64], 64);",
        "race-waw",
        "copy_gm_to_ubuf.dst must write bytes [32, 256) of UB after copy_gm_to_ubuf.dst wrote them, got both on MTE2 ({line} (k) and {line} (k)) with no pipe_barrier(MTE2) between them; put one there",  # noqa: E501
    ),
    "blocks of a copy": (
        GIVEN,
        "DataCopy(a, g, DataCopyParams(4096,1,0,0));",
        "parameter",
        "copy_gm_to_ubuf.n_burst must be in [1, 4095], got 4096",
    ),
    "padding at the left": (
        GIVEN,
        "DataCopyPad(a, g, DataCopyExtParams(1,4,0,0,0), DataCopyPadExtParams<float>(true,9,0,0.f));",  # noqa: E501
        "parameter",
        "copy_gm_to_ubuf_align.left_padding_num must fill at most 32 B, got 36 B",
    ),
    "padding at the right": (
        GIVEN,
        "DataCopyPad(a, g, DataCopyExtParams(1,4,0,0,0), DataCopyPadExtParams<float>(true,0,9,0.f));",  # noqa: E501
        "parameter",
        "copy_gm_to_ubuf_align.right_padding_num must fill at most 32 B, got 36 B",
    ),
    "parts of an element": (
        GIVEN,
        "DataCopyPad(a, g, DataCopyExtParams(1,6,0,0,0), DataCopyPadExtParams<float>(false,0,0,0.f));",  # noqa: E501
        "parameter",
        "copy_gm_to_ubuf_align.len_burst must be a multiple of float32's 4 B, got 6; it is a "
        "number of bytes",
    ),
    "blocks of a padded store": (
        GIVEN,
        "DataCopyPad(g, a, DataCopyExtParams(4096,4,0,0,0));",
        "parameter",
        "copy_ubuf_to_gm_align.n_burst must be in [0, 4095], got 4096",
    ),
    "the start of a vector": (
        GIVEN,
        "Adds(c[1], a, 1.f, 8);",
        "misaligned",
        "vadds.dst must start at a multiple of 32 B in UB, got 4100",
    ),
    "operands that meet within a repeat": (
        GIVEN,
        "Adds(a[8], a, 1.f, 64, 1, {1,1,8,8});",
        "overlap",
        "vadds.dst must coincide with src, or keep apart from it, within a repeat, got repeat 0",
    ),
    "operands that meet between repeats": (
        GIVEN,
        "Adds(a[64], a, 1.f, 256);",
        "overlap",
        "vadds.dst must not be src of a later repeat, got repeats 0 and 1",
    ),
    "a broadcast onto itself": (
        GIVEN,
        "Brcb(a, a, 1, {1,8});",
        "overlap",
        "vbrcb.dst must keep apart from src, got both at 0",
    ),
    "a gather onto itself": (
        GIVEN,
        "Duplicate(u, 0u, 64); PipeBarrier<PIPE_V>(); Gather(a, a, u, 0, 64);",
        "overlap",
        "vgather.dst must keep apart from src, got both at 0",
    ),
    "a gather from within a block": (
        GIVEN,
        "Duplicate(u, 0u, 64); PipeBarrier<PIPE_V>(); Gather(c[1024], a[1], u, 0, 64);",
        "misaligned",
        "Gather: src must start at a multiple of 32 B in UB, got 4",
    ),
    "an offset beyond UB": (
        GIVEN,
        "Duplicate(u, 1u<<20, 64); PipeBarrier<PIPE_V>(); Gather(c[1024], a, u, 0, 64);",
        "out-of-bounds",
        "vgather.src must stay inside UB (0 to 196608 B), got bytes [1048576, 1048580)",
    ),
    "an offset off its type": (
        GIVEN,
        "Duplicate(u, 2u, 64); PipeBarrier<PIPE_V>(); Gather(c[1024], a, u, 0, 64);",
        "parameter",
        "vgather: the offsets must be multiples of 4 B, got 2 at [0, 0]",
    ),
    "operands of two types that meet": (
        GIVEN,
        "Axpy(a, h, half(1), 64);",
        "overlap",
        "vaxpy.dst must coincide with src, or keep apart from it, within a repeat, got repeat 0",
    ),
    "a conversion onto itself": (
        GIVEN,
        "Cast(a, h, RoundMode::CAST_NONE, 64);",
        "overlap",
        "vconv_f162f32.dst must coincide with src, or keep apart from it, within a repeat, got repeat 0",  # noqa: E501
    ),
    "a merge onto itself": (
        GIVEN,
        "uint16_t len[4]={32,32,32,32}; MrgSort(a, MrgSortSrcList<float>(a, a[64], a[128], a[192]), MrgSort4Info(len, false, 15, 1));",  # noqa: E501
        "overlap",
        "vmrgsort4.dst must keep apart from src0, got both at 0",
    ),
    "counter mode at the end": (
        GIVEN,
        "SetMaskCount();",
        "mode-left",
        "counter mode must be off at the end of the kernel, got on since {line} (k); call asc_set_mask_norm",  # noqa: E501
    ),
    "atomic stores at the end": (
        GIVEN,
        "SetAtomicAdd<float>();",
        "mode-left",
        "atomic add of float32 must be off at the end of the kernel, got on since {line} (k); call asc_set_atomic_none",  # noqa: E501
    ),
    "an odd count of four bits": (
        GIVEN,
        "Cast(a.ReinterpretCast<int4b_t>(), h, RoundMode::CAST_RINT, 3);",
        "parameter",
        "vconv_f162s4: the vector mask must count an even number, got 3",
    ),
    "the start of block results": (
        GIVEN,
        "BlockReduceSum(c.ReinterpretCast<half>()[1], h, 1, 128, 1, 1, 8);",
        "misaligned",
        "vcgadd.dst must start at a multiple of 16 B in UB, got 4098",
    ),
    "the start of pair results": (
        GIVEN,
        "PairReduceSum(c[1], a, 1, 64, 1, 1, 8);",
        "misaligned",
        "vcpadd.dst must start at a multiple of 32 B in UB, got 4100",
    ),
    "an access beyond global memory": (
        GIVEN,
        "DataCopy(a, g[4090], 16);",
        "out-of-bounds",
        "copy_gm_to_ubuf.src must stay inside x (0 to 16384 B), got bytes [16360, 16424)",
    ),
    "repeats of a reduction": (
        GIVEN,
        "WholeReduceSum(c, a, 64, 256, 1, 1, 0);",
        "parameter",
        "WholeReduceSum: repeatTime must be at most 255, got 256",
    ),
    "buffers beyond UB": (
        BARE,
        "TPipe pipe; TBuf<TPosition::VECCALC> b; pipe.InitBuffer(b, 300*1024);",
        "capacity",
        "InitBuffer: the buffers must fit 196608 B, got 307200 B",
    ),
    "a tensor that is not freed": (
        QUEUED,
        "pipe.InitBuffer(q,1,256); auto t=q.AllocTensor<float>(); DataCopy(t,g,64); q.EnQue(t); t=q.DeQue<float>(); t=q.AllocTensor<float>();",  # noqa: E501
        "queue-full",
        "AllocTensor: a queue must have a free buffer, got every buffer in use",
    ),
    "a tensor freed twice": (
        QUEUED,
        "pipe.InitBuffer(q,1,256); auto t=q.AllocTensor<float>(); q.FreeTensor(t); q.FreeTensor(t);",  # noqa: E501
        "tensor-freed",
        "FreeTensor: a tensor must be freed once, by the queue that gave it, got another",
    ),
    "a tensor of no queue": (
        QUEUED,
        "pipe.InitBuffer(q,1,256); LocalTensor<float> t(TPosition::VECCALC,1024,64); q.EnQue(t);",
        "queue-order",
        "EnQue: a tensor must come from AllocTensor of the queue, got another",
    ),
    "a tensor that is in the queue": (
        QUEUED,
        "pipe.InitBuffer(q,2,256); auto t=q.AllocTensor<float>(); q.EnQue(t); q.EnQue(t);"
        "t=q.DeQue<float>(); q.FreeTensor(t);",
        "queue-order",
        "EnQue: a tensor must enter a queue once until DeQue takes it out, got it again",
    ),
    "a tensor that was freed": (
        QUEUED,
        "pipe.InitBuffer(q,1,256); auto t=q.AllocTensor<float>(); q.FreeTensor(t); q.EnQue(t);"
        "t=q.DeQue<float>(); q.FreeTensor(t);",
        "queue-order",
        "EnQue: a tensor must be in use, got one that FreeTensor has given back",
    ),
    "a distance": (
        GIVEN,
        "ShiftRight(u, u, 40u, 64);",
        "parameter",
        "vshr.distance must be at most the 32 bits of uint32, got 40",
    ),
    "an offset of a buffer": (
        GIVEN,
        "auto z = all.GetWithOffset<float>(8, 20); Duplicate(z, 1.0f, 8);",
        "misaligned",
        "vector_dup.dst must start at a multiple of 32 B in UB, got 20",
    ),
    "events of a position": (
        BARE,
        "TPipe pipe; TQue<TPosition::VECIN,9> q; pipe.InitBuffer(q,9,32); LocalTensor<float> t[9]; for(auto& e:t) e=q.AllocTensor<float>(); for(auto& e:t) q.EnQue(e); for(auto& e:t) e=q.DeQue<float>(); for(auto& e:t) q.FreeTensor(e);",  # noqa: E501
        "events-used-up",
        "AllocEventID: a pair of pipes must have at most 8 events in use, got 9",
    ),
}


@pytest.fixture(scope="module")
def module():
    """Return the kernels, compiled together."""
    bodies = {f"k{n}": frame + body for n, (frame, body, *_) in enumerate(RULES.values())}
    return kernels(bodies)


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_that_is_broken_is_found(module, rule):
    _, _, kind, sentence = RULES[rule]
    left = module[f"k{list(RULES).index(rule)}"][1](np.zeros(4096, np.float32))
    found = left.findings[0]
    said = re.sub(r"inline\.cpp:\d+", "{line}", found.message)
    said = re.sub(r"\(k\d+\)", "(k)", said)
    assert (found.id, said) == (kind, sentence)
