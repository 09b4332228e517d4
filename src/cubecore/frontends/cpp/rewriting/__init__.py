"""Rewriting of C++ before the compiler sees a file: each piece, and why it is rewritten.

The vendor's compiler takes a dialect of C++: words for address spaces, launches in triple angles,
and some definitions that the standard refuses. A user's g++ or clang takes none of it. So a file is
read by tokens (`tokens`: comments, strings, raw strings, balanced brackets), which is half a parser
of C++ and no more, and copied with the pieces below replaced. A copy keeps its lines, so that the
compiler's errors and a finding's line are those of the user's file; a file without such pieces is
not copied. No type is looked up and no macro expanded: what cannot be told by tokens is left to the
compiler, and to the headers, which define every word that C++ can hold as a macro (`__aicore__`,
`__gm__`, `__global__`: seam/keywords.h).

Before the compiler's first run
===============================

================================  =====================================  ===========================
written                           becomes                                why (module)
================================  =====================================  ===========================
``[aicore]``, ``[host, aicore]``  nothing                                no attribute of C++ has one
                                                                         bracket (scanner)
``f<T><<<8, l, s>>>(x)``          a call of a launch with its arguments  no token of C++ (scanner)
``__ubuf__ float x[64], y[64];``  a member of an array type that has     arrays get addresses in UB,
                                  its memory                             and bounds (scanner)
``(uint64_t)x`` of such an array  the array's plain pointer              a class has no cast
                                                                         (scanner)
functions with ``<<<``, in the    an empty body                          a kernel's library launches
build of a kernel                                                        nothing (scanner)
``GET_TILING_DATA`` before the    the registration before it too         its struct is a type of the
registration of its struct                                               block (scanner)
``template <> void f<int>()``     an overload with a condition; of a     CWG issue 727: g++ refuses
inside a class                    class a partial specialisation         it there (definitions)
``#include "beside.h"``           the same of the rewritten copy         the copies lie elsewhere
                                                                         (source)
================================  =====================================  ===========================

Where the compiler's first run fails
====================================

Four repairs are tried when an error names them, and the compiler runs again.

- ``c ? half_value : 1.0f`` gets a common type: the vendor's half converts both ways (tokens).
- A function that a header for the host and one for kernels define alike is left out at its second
  place (definitions).
- ``Sort<half, false, CONFIG>(to, from)`` with a constant of its class template gets an argument
  that depends on the template: g++ takes other template arguments for it (definitions).
- In host code of an operator project, a function with an error, as the use of a library that is not
  here, gets a body that refuses with the compiler's sentence; only a call of it fails
  (refused_uses).

What else is read
=================

`source` finds a file's entries, the structs of its tiling data and of its project's op_host, and
writes the overlay: the one file that the compiler reads, which includes the copies and names the
entries. `kinds` tells from words (``Mmad``, ``KERNEL_TYPE_MIX_AIC_1_2``) which cores a kernel runs
on. Macros of ``-D`` are not rewritten: `toolchain.user_macros` hides them from cubecore's headers.
"""
