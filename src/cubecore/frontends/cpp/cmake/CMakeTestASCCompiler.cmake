# The compiler says by itself what it lacks.
set(CMAKE_ASC_COMPILER_WORKS 1 CACHE INTERNAL "")
