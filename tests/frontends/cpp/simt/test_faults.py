"""Twenty kernels of threads with one fault each: every one is found, by the kind that it is."""

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
// half atomic value | simt-atomic-value | 1 32
half* h=(half*)x;
half v=asc_atomic_add(h,half(1.0f));
h[2+threadIdx.x]=v;
"""
"""Bodies of kernels behind their names, the kinds of their faults, and their sizes."""
FAULTS = [fault.split("\n", 1) for fault in TEXT.strip().removeprefix("// ").split("\n// ")]


@pytest.fixture(scope="module")
def module():
    kernels = "\n".join(
        f"__global__ void k{number}(int* x) {{ {body} }}" for number, (_, body) in enumerate(FAULTS)
    )
    return cubecore.inline(f'#include "simt_api/asc_simt.h"\n{kernels}', chip="Ascend950PR_9589")


@pytest.mark.parametrize("number", range(len(FAULTS)), ids=[head for head, _ in FAULTS])
def test_each_fault_is_found(module, number):
    _, kind, size = FAULTS[number][0].split(" | ")
    run = getattr(module, f"k{number}")[tuple(map(int, size.split()))](np.zeros(128, "i4"))
    assert kind in {found.id for found in run.findings}
