"""Convolution on GPUs, step by step: every rung of every ladder, called with NumPy arrays.

    import convladder
    y = convladder.conv2d(x, w, pad=1, activation="relu")
    y.rung                                               # which rung computed it
    print(convladder.compare(convladder.conv2d, x, w))   # all rungs that take this, beside one another

Where rungs run: "cpu" are the readable C++ versions, "emulated" the CUDA rungs on the CPU, thread by thread, and "gpu" the
same on a GPU, in a build that has one. "auto" is gpu where it is there, else cpu. `rung=None` takes, of those that take the
problem, on the CPU the one with the least expected time, elsewhere the one that was fastest in the project's committed
measurements: for a convolution on a GPU, in those of the most similar problem. A rung of Winograd or of Fourier transforms,
which rounds more, is taken only with allow_transforms=True. `python -m convladder` prints the places of this computer.

Bad input raises BadInput, whose `parameter` is the name of the argument that is wrong, or "memory".
"""
from ._core import BadInput, DeviceError, UnsupportedProblem, __version__, rungs
from ._compare import Row, Table, compare
from ._dense import col2im, conv2d, conv2d_dgrad, conv2d_transpose, conv2d_wgrad, fft, gemm, im2col, tile_map
from ._run import Result
from ._sparse import (Rulebook, rulebook, sparse_avg_pool, sparse_conv, sparse_dgrad, sparse_global_pool,
                      sparse_max_pool, sparse_max_pool_dgrad, sparse_to_dense, sparse_wgrad, voxelize)

__all__ = ["BadInput", "DeviceError", "Result", "Row", "Rulebook", "Table", "UnsupportedProblem", "col2im", "compare",
           "conv2d", "conv2d_dgrad", "conv2d_transpose", "conv2d_wgrad", "fft", "gemm", "im2col", "rulebook", "rungs",
           "sparse_avg_pool", "sparse_conv", "sparse_dgrad", "sparse_global_pool", "sparse_max_pool",
           "sparse_max_pool_dgrad", "sparse_to_dense", "sparse_wgrad", "tile_map", "voxelize"]

# The messages begin with the parameter: "stride = 0: must be at least 1", "x: it is missing".
BadInput.parameter = property(lambda error: str(error).split(" ")[0].rstrip(":"), doc="The name of what is wrong.")
