"""Kernels of threads with one fault each: every one is found, by the kind that it is.

Twenty were written beside the checks. Twenty others, held out, were written when the checks stood.
"""

import numpy as np
import pytest

import cubecore
from frontends.cpp.cpp_kernels import needs_compiler

pytestmark = needs_compiler
TEXT = """
// barrier in branch | simt-barrier | 1 64
if(threadIdx.x<40) asc_syncthreads();
x[threadIdx.x]=1;
// barrier behind return | simt-barrier | 1 64
if(threadIdx.x>=40) return;
asc_syncthreads();
x[threadIdx.x]=1;
// barrier in loop of other length | simt-barrier | 1 64
for(int i=0;i<=int(threadIdx.x/32);++i) asc_syncthreads();
x[threadIdx.x]=1;
// race: shared neighbour | simt-race | 1 64
__ubuf__ int s[64];
s[threadIdx.x]=1;
x[threadIdx.x]=s[(threadIdx.x+1)%64];
// race: second barrier missing | simt-race | 1 64
__ubuf__ int s[64];
s[threadIdx.x]=1;
asc_syncthreads();
int v=s[(threadIdx.x+1)%64];
s[threadIdx.x]=v;
x[threadIdx.x]=v;
// race: all write one | simt-race | 1 64
x[0]=threadIdx.x;
// race: counter without atomic | simt-race | 1 64
x[threadIdx.x%4]+=1;
// race: atomic and plain | simt-race | 1 64
asc_atomic_add(&x[0],1);
if(threadIdx.x==5) x[0]=3;
// race: blocks overlap | simt-race | 4 32
x[blockIdx.x*16+threadIdx.x]=1;
// race: blocks read what others write | simt-race | 4 32
x[blockIdx.x*32+threadIdx.x]=x[((blockIdx.x+1)%gridDim.x)*32+threadIdx.x];
// race: flag without fence | simt-race | 2 1
if(blockIdx.x==0){x[8]=3;
asc_atomic_exch(&x[0],1);
} else if(asc_atomic_add(&x[0],0)==1) x[16]=x[8];
// stale line | simt-stale | 2 1
if(blockIdx.x==0){x[8]=3;
asc_threadfence();
asc_atomic_exch(&x[64],1);
} else {x[70]=x[9];
if(asc_atomic_add(&x[64],0)==1) x[72]=x[8];
}
// out of bounds behind | out-of-bounds | 2 64
x[threadIdx.x+blockIdx.x*64+65]=1;
// out of bounds before | out-of-bounds | 1 64
x[int(threadIdx.x)-1]=1;
// null pointer | out-of-bounds | 1 64
int* p=nullptr;
if(threadIdx.x==3) p[0]=1;
x[threadIdx.x]=1;
// shared memory too small | out-of-bounds | 1 64 128
extern __ubuf__ int s[];
s[threadIdx.x]=1;
x[threadIdx.x]=s[threadIdx.x];
// uninitialised shared | uninitialised | 1 64
__ubuf__ int s[64];
if(threadIdx.x<32) s[threadIdx.x]=1;
asc_syncthreads();
x[threadIdx.x]=s[threadIdx.x];
// inactive lane | simt-lane | 1 32
if(threadIdx.x>7) x[threadIdx.x]=asc_shfl(int(threadIdx.x),0);
// misaligned | misaligned | 1 1
*(long*)(x+1)=1;
// a struct of 80 bytes past the end | out-of-bounds | 1 1
struct Many { int values[20]; };
*(Many*)(x + 120) = *(Many*)x;
// a struct of 80 bytes that all write | simt-race | 1 2
struct Many { int values[20]; };
*(Many*)(x + 40) = *(Many*)(x + threadIdx.x);
// half atomic value | simt-atomic-value | 1 32
half* h=(half*)x;
half v=asc_atomic_add(h,half(1.0f));
h[2+threadIdx.x]=v;
"""
"""Bodies of kernels behind their names, the kinds of their faults, and their sizes."""
HELD_OUT = """
// tree sum without a barrier between its levels | simt-race | 1 128
__ubuf__ int s[128];
s[threadIdx.x] = x[threadIdx.x];
asc_syncthreads();
for (int by = 64; by > 0; by /= 2)
if (int(threadIdx.x) < by) s[threadIdx.x] += s[threadIdx.x + by];
if (threadIdx.x == 0) x[0] = s[0];
// prefix sum in place with one barrier a step | simt-race | 1 128
__ubuf__ int s[128];
s[threadIdx.x] = x[threadIdx.x];
asc_syncthreads();
for (int by = 1; by < 128; by *= 2) {
if (int(threadIdx.x) >= by) s[threadIdx.x] += s[threadIdx.x - by];
asc_syncthreads();
}
x[threadIdx.x] = s[threadIdx.x];
// bins of UB without atomics | simt-race | 1 128
__ubuf__ int bins[8];
if (threadIdx.x < 8) bins[threadIdx.x] = 0;
asc_syncthreads();
bins[threadIdx.x * 7 % 8]++;
asc_syncthreads();
if (threadIdx.x < 8) x[threadIdx.x] = bins[threadIdx.x];
// one thread sets a word of UB that all read | simt-race | 1 64
__ubuf__ int length;
if (threadIdx.x == 0) length = x[0] + 5;
x[threadIdx.x + 1] = length;
// largest of all blocks by a comparison | simt-race | 4 32
int v = int(blockIdx.x * 32 + threadIdx.x);
if (v > x[0]) x[0] = v;
// halo: a block writes one element past its part | simt-race | 4 32
int at = blockIdx.x * 32 + threadIdx.x;
x[at] = 1;
if (threadIdx.x == 31 && blockIdx.x < 3) x[at + 1] = 2;
// the last block adds up parts that no fence released | simt-race | 4 32
if (threadIdx.x == 0) {
  x[32 + blockIdx.x] = int(blockIdx.x);
  if (asc_atomic_add(&x[0], 1) == int(gridDim.x) - 1)
    for (int n = 0; n < int(gridDim.x); ++n) x[64] += x[32 + n];
}
// barrier in a loop over a number that is no multiple of the threads | simt-barrier | 1 64
for (int at = threadIdx.x; at < 100; at += blockDim.x) { x[at] = at; asc_syncthreads(); }
// warps that wait at two barriers | simt-barrier | 1 64
if (threadIdx.x / 32 == 0) {
x[threadIdx.x] = 1;
asc_syncthreads();
} else {
x[threadIdx.x] = 2;
asc_syncthreads();
x[threadIdx.x] = 3;
}
// barrier in a helper that only some threads call | simt-barrier | 1 64
if (x[threadIdx.x] % 3 == 0) x[threadIdx.x] = helper(x[threadIdx.x]);
else x[threadIdx.x] = 0;
// a word beside one that was loaded before the other block's store | simt-stale | 2 1
if (blockIdx.x == 0) { x[2] = 7; asc_threadfence(); asc_atomic_max(&x[96], 1); }
else {
int before = asc_ldca(&x[20]);
while (asc_atomic_or(&x[96], 0) == 0) {}
x[100] = before + asc_ldca(&x[2]);
}
// tail without a test of its end | out-of-bounds | 3 96
int at = blockIdx.x * blockDim.x + threadIdx.x;
x[at] = x[at] * 2;
// rows and columns exchanged | out-of-bounds | 1 128
int row = threadIdx.x / 8, column = threadIdx.x % 8;
x[column * 32 + row] = 1;
// one row too many of a tile | out-of-bounds | 1 33
__ubuf__ int tile[32][4];
tile[threadIdx.x][0] = 1;
asc_syncthreads();
x[threadIdx.x] = tile[threadIdx.x][0];
// an index that was read is negative | out-of-bounds | 1 32
x[threadIdx.x] = x[x[threadIdx.x] - 8];
// dynamic memory for halves that holds floats | out-of-bounds | 1 64 128
extern __ubuf__ float part[];
part[threadIdx.x] = float(x[threadIdx.x]);
asc_syncthreads();
x[threadIdx.x] = int(part[63 - threadIdx.x]);
// bins that are not set to 0 first | uninitialised | 1 64
__ubuf__ int bins[8];
asc_atomic_add(&bins[threadIdx.x % 8], 1);
asc_syncthreads();
if (threadIdx.x < 8) x[threadIdx.x] = bins[threadIdx.x];
// sums of warps that do not exist | uninitialised | 1 64
__ubuf__ int sums[32];
int sum = asc_reduce_add(x[threadIdx.x]);
if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum;
asc_syncthreads();
int all = threadIdx.x < 32 ? asc_reduce_add(sums[threadIdx.x]) : 0;
if (threadIdx.x == 0) x[0] = all;
// sum by shuffles behind a return | simt-lane | 1 32
if (threadIdx.x >= 20) return;
int v = x[threadIdx.x];
for (int by = 16; by > 0; by /= 2) v += asc_shfl_down(v, by);
if (threadIdx.x == 0) x[0] = v;
// four floats at a time from the second one on | misaligned | 1 8
float4* from = reinterpret_cast<float4*>(x + 1);
float4* to = reinterpret_cast<float4*>(x + 64);
to[threadIdx.x] = from[threadIdx.x];
"""
HELPER = "__simt_callee__ int helper(int v) { asc_syncthreads(); return v + 1; }"
FAULTS = [
    fault.split("\n", 1)
    for text in (TEXT, HELD_OUT)
    for fault in text.strip().removeprefix("// ").split("\n// ")
]


@pytest.fixture(scope="module")
def module():
    kernels = "\n".join(
        f"__global__ void k{number}(int* x) {{ {body} }}" for number, (_, body) in enumerate(FAULTS)
    )
    text = f'#include "simt_api/asc_simt.h"\n{HELPER}\n{kernels}'
    return cubecore.inline(text, chip="Ascend950PR_9589")


@pytest.mark.parametrize("number", range(len(FAULTS)), ids=[head for head, _ in FAULTS])
def test_each_fault_is_found(module, number):
    _, kind, size = FAULTS[number][0].split(" | ")
    run = getattr(module, f"k{number}")[tuple(map(int, size.split()))](np.arange(128, dtype="i4"))
    assert kind in {found.id for found in run.findings}
