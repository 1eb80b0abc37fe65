"""End-to-end tests of the command `convladder`: words, sizes and sparse problems that make no sense.

    CONVLADDER_PROGRAM=$PWD/build/cpu/command/convladder python3 -B tests/command/test_bad_input.py [CLASS]

CTest runs each class as a test of its own.
"""
import time
import unittest

import numpy as np

from program import AGREE, BAD_INPUT, HAS_GPU, SMALL_GEMM, ProgramTest, run
from sparse_problems import SparseTest


class BadWords(ProgramTest):
    """Unknown words and impossible sizes: each refused in a line that names the culprit."""

    def test_unknown_words_name_the_nearest(self):
        for arguments, says in (
                (["compare", "conv3d"], ["conv3d", "conv2d"]),
                (["compare", "gem"], ["gemm"]),
                (["comparre"], ["comparre", "compare"]),
                (["list", "--ladder", "im2cols"], ["im2col"]),
                (["compare", "gemm", "--kk", "3"], ["--kk"]),
                (["compare", "gemm", "--rungs", "x"], ["--rung"]),
                (["compare", "gemm", "--backend", "cpus"], ["cpu"]),
                (["compare", "gemm", "--backend", "cuda"], ["cuda"]),
                (["compare", "gemm", "--data", "reals"], ["real"]),
                (["compare", "tile_map", "--map", "hilbart"], ["hilbert"]),
                (["compare", "conv2d", "--map", "hilbart"], ["hilbert"]),
                (["compare", "col2im", "--request", "adds"], ["add"]),
                (["compare", "gemm", "--rung", "cuda_naive/gemm/dirct"], ["cuda_naive/gemm/direct"]),
                (["compare", "gemm", "--rung", "nothing*"], ["nothing*"]),
                (["compare", "conv2d", "--rung", "*/winograd_chunks"], ["nearest: cuda_optimized/conv2d/winograd/4x4"]),
                (["compare", "rulebook", "--rung", "ranked_bit_grid"], ["nearest: cuda_optimized/rulebook/submanifold/paged_bricks"]),
                (["compare", "gemm", "conv2d"], ["conv2d"]),
                (["-x"], ["-x"])):
            with self.subTest(arguments=arguments):
                self.bad_input(*arguments, says=says)

    def test_impossible_sizes(self):
        for arguments, says in (
                (["conv2d", "--n", "-1"], ["n = -1"]),
                (["conv2d", "--c", "0"], ["c = 0"]),
                (["conv2d", "--h", "0"], ["h = 0"]),
                (["conv2d", "--h", "4", "--r", "5"], ["does not fit"]),
                (["conv2d", "--h", "5", "--w", "5", "--r", "6", "--s", "6", "--stride", "2"],
                 ["does not fit"]),
                (["conv2d", "--stride", "0"], ["stride = 0"]),
                (["conv2d", "--dilation", "0,1"], ["dilation = 0"]),
                (["conv2d", "--pad", "-1"], ["pad = -1"]),
                (["conv2d", "--pad", "1,2,3"], ["pad", "or same"]),
                (["conv2d", "--pad", "valid"], ["pad = valid", "same"]),
                (["im2col", "--pad", "Same"], ["pad = Same", "same"]),
                (["conv2d", "--pad", "same", "--stride", "0"], ["stride = 0"]),
                (["conv2d", "--pad", "same", "--r", "2147483647", "--dilation", "9"], ["pad = same", "less than 2^31"]),
                (["conv2d", "--stride", "1,2,3"], ["stride"]),
                (["conv2d", "--c", "4", "--groups", "3"], ["groups"]),
                (["conv2d", "--activation", "rule"], ["activation = rule", "relu"]),
                (["conv2d_dgrad", "--activation", "relu"], ["activation"]),
                (["conv2d_wgrad", "--activation", "relu"], ["activation"]),
                (["im2col", "--layout", "nchv"], ["layout = nchv", "nchw"]),
                (["conv2d", "--groups", "0"], ["groups = 0"]),
                (["conv2d", "--n", "two"], ["two"]),
                (["conv2d", "--n", "1.5"], ["1.5"]),
                (["conv2d", "--n", ""], ["n"]),
                (["conv2d", "--n", "99999999999999999999"], ["99999999999999999999"]),
                (["conv2d", "--n", "4294967297"], ["4294967297"]),
                (["conv2d", "--pad", "2147483647"], []),
                (["conv2d_dgrad", "--map", "hilbert"], ["map = hilbert"]),
                (["gemm", "--m", "0"], ["m = 0"]),
                (["gemm", "--seed", "-1"], ["seed"]),
                (["gemm", "--c", "3"], ["c"]),
                (["im2col", "--size", "1,2,3,4"], ["size"]),
                (["im2col", "--size", "5,5", "--kernel", "1,2,3"], ["kernel"]),
                (["im2col", "--size", "5", "--kernel", "6"], ["does not fit"]),
                (["im2col", "--size", "5,5", "--into", "x.npy"], ["into"]),
                (["fft", "--length", "0"], ["length = 0"]),
                (["fft", "--length", "0,8"], ["length = 0,8"]),
                (["fft", "--length", "1,2,3"], ["length = 1,2,3", "H,L"]),
                (["fft", "--length", "8,12", "--ring", "mersenne"], ["length = 8,12", "power of two"]),
                (["fft", "--input", "reel"], ["input = reel", "real"]),
                (["tile_map", "--tiles", "4"], ["tiles"]),
                (["tile_map", "--tiles", "0,4"], []),
                (["tile_map", "--tiles", "4,4,2", "--map", "split_k", "--splits", "3"], ["splits"]),
                (["tile_map", "--tiles", "4,4,2", "--map", "hilbert", "--splits", "2"], ["splits"]),
                (["tile_map", "--tiles", "4,4", "--batch", "0"], ["batch"]),
                (["tile_map", "--tiles", "70000,3", "--map", "horizontal"], ["65535"])):
            with self.subTest(arguments=arguments):
                self.bad_input("compare", *arguments, "--save", self.folder / "out", "--json",
                               self.folder / "out.json", says=says)

    def test_too_large_for_the_memory(self):
        for arguments in (["gemm", "--m", "2000000", "--n", "2000000", "--k", "1"],
                          ["conv2d", "--n", "100000", "--c", "1000", "--h", "1000", "--w", "1000"],
                          ["conv2d", "--n", "2000000000", "--c", "2000000000", "--h", "2000000000"],
                          ["im2col", "--size", "2000000,2000000"]):
            with self.subTest(arguments=arguments):
                started = time.monotonic()
                self.bad_input("compare", *arguments, "--save", self.folder / "out")
                self.assertLess(time.monotonic() - started, 30, "refused before it is tried")

    def test_gpu_asked_for_without_one(self):
        if HAS_GPU:
            self.skipTest("there is a GPU")
        self.bad_input("compare", *SMALL_GEMM, "--backend", "gpu", says=["gpu"])

    def test_places_that_cannot_be_written(self):
        file = self.folder / "file"
        file.write_text("in the way")
        self.bad_input("compare", *SMALL_GEMM, "--save", file / "below", says=["save"])
        self.bad_input("compare", *SMALL_GEMM, "--json", file / "below.json", says=["json"])
        self.bad_input("compare", *SMALL_GEMM, "--json", self.folder, says=["json"])
        self.bad_input("list", "--json", file / "below.json", says=["json"])


class BadNumbers(ProgramTest):
    """Arrays with numbers that a problem cannot have: refused before a table begins."""

    def refuse(self, ladder, name, array, *words, says):
        with self.subTest(ladder=ladder, words=words, says=says):
            path = self.write(f"{name}.npy", array)
            self.bad_input("compare", ladder, f"--{name}", path, *words, "--save", self.folder / "out", "--json",
                           self.folder / "out.json", says=says)

    def test_the_ring_has_whole_numbers_up_to_2_to_the_24(self):
        lines, planes = np.zeros((2, 8, 2), np.float32), np.zeros((1, 4, 8), np.float32)
        for value in (0.5, -1e-40, 2.0**24 + 2, -2.0**31, 2.0**33, 1e30):
            for x, place, words in ((lines, (1, 3, 1), []), (planes, (0, 3, 7), ["--input", "real"])):
                x = x.copy()
                x[place] = value
                for more in ([], ["--data", "integer"], ["--backend", "cpu"]):
                    self.refuse("fft", "x", x, "--ring", "mersenne", *words, *more, says=["x = ", "an integer", "2^24", str(place[-1])])
        lines[:] = self.rng.integers(-2**24, 2**24, lines.shape, endpoint=True)
        lines[0, 0], lines[1, 7] = 2.0**24, -2.0**24
        self.agree("compare", "fft", "--ring", "mersenne", "--x", self.write("x.npy", lines))

    def test_numbers_that_do_not_fit_the_type(self):
        x = np.zeros((1, 2, 4, 5), np.float32)
        x[0, 1, 2, 3] = 70000
        large = x.copy()
        large[0, 1, 2, 3] = 3.4028235e38
        for array, dtype, says in ((x, "fp16", ["x = 70000", "n=0, c=1, h=2, w=3", "float16", "65504"]),
                                   (-x, "fp16", ["x = -70000"]), (large, "fp16", ["float16"]),
                                   (large, "bf16", ["x = 3.40282", "n=0, c=1, h=2, w=3", "bfloat16", "3.38953"])):
            for ladder in ("conv2d", "conv2d_wgrad"):
                self.refuse(ladder, "x", array, "--dtype", dtype, says=says)
        self.refuse("gemm", "b", x[0, 1], "--dtype", "fp16", says=["b = 70000", "k=2, n=3", "65504"])
        self.refuse("sparse_conv", "features", np.full((3, 2), 7e4, np.float32), "--dtype", "fp16", "--coords",
                    self.write("coords.npy", np.array([[0, 1], [0, 2], [0, 3]], np.int32)), says=["features = 70000", "65504"])
        x[0, 1, 2, 3] = 65504
        self.agree("compare", "conv2d", "--x", self.write("x.npy", x), "--dtype", "fp16", "--rung", "cpu*", "--k", 1)

    def test_sums_that_do_not_fit(self):
        self.refuse("gemm", "a", np.full((2, 4), 3e38, np.float32), "--b", self.write("b.npy", np.full((4, 2), 2, np.float32)),
                    says=["c = ", "too large"])

    def test_points_in_three_axes_are_real_or_have_two_parts(self):
        for shape, hint in (((2, 8, 4), True), ((2, 8, 1), True), ((2, 4, 8, 3), False)):
            result = self.bad_input("compare", "fft", "--x", self.write("x.npy", np.zeros(shape, np.float32)), says=["x.npy", "real and an imaginary part"])
            self.assertEqual("--input real" in result.stderr, hint)
        self.agree("compare", "fft", "--x", self.write("x.npy", np.zeros((2, 8, 4), np.float32)), "--input", "real", "--backend", "cpu")

    def test_an_intensity_that_is_none_has_one_name(self):
        points = self.write("p.npy", np.array([[0.5, 0.5, 0.5, np.nan]], np.float32))
        result = run("compare", "voxelize", "--points", points, "--voxel", 1, "--range", "0,0,0,1,1,1", "--backend", "cpu")
        self.assertIn(result.returncode, (AGREE, BAD_INPUT))
        self.assertNotRegex(result.stderr, r" = .* = ")

    def test_paddings_of_columns(self):
        for rank, sizes in ((1, "9"), (2, "9,8"), (3, "5,6,7")):
            for count in range(1, 8):
                words = ["im2col", "--size", sizes, "--backend", "cpu", "--pad", ",".join("1" * count)]
                if count in (1, rank, 2 * rank):
                    self.agree("compare", *words)
                else:
                    self.bad_input("compare", *words, says=["pad = "])
        self.bad_input("compare", "im2col", "--size", "9", "--pad", 2**31 - 1, says=["pad (width) = ", "2^31"])
        self.bad_input("compare", "conv2d", "--pad", 2**31 - 1, says=["pad = ", "2^31"])
        self.assertIn("before,after of each axis", run("compare", "--help").stdout)


class BadSparse(SparseTest):
    """Sparse problems that make no sense: each refused in a line that names the culprit."""

    def refuse(self, *words, says=(), ladder="rulebook"):
        with self.subTest(ladder=ladder, words=words):
            self.bad_input("compare", ladder, *words, "--save", self.folder / "out", "--json",
                           self.folder / "out.json", says=says)

    def test_parameters(self):
        for words, says in (
                (["--pad", 1], ["pad = 1", "subm"]),
                (["--mode", "subm", "--pad", 0], ["pad = 0", "subm"]),
                (["--kernel", 2], ["kernel = 2", "odd"]),
                (["--kernel", "3,4,3"], ["kernel = 4", "odd"]),
                (["--stride", 2], ["stride = 2"]),
                (["--out-padding", 1], ["out-padding = 1", "transposed"]),
                (["--mode", "transposed", "--stride", 2, "--out-padding", 2], ["out-padding = 2"]),
                (["--mode", "transposed", "--kernel", 1, "--shape", 1, "--pad", 3], ["pad = 3"]),
                (["--mode", "stridd"], ["stridd", "nearest", "strided"]),
                (["--mode", "strided", "--shape", "2,2", "--kernel", 3], ["does not fit"]),
                (["--shape", "1,2,3,4,5"], ["shape = 1,2,3,4,5", "5 axes"]),
                (["--shape", "3,0"], ["shape = 0"]), (["--shape", "3,-1"], ["shape = -1"]),
                (["--shape", "a"], ["shape", "a"]), (["--shape", "3000000,3000000,3000000"], ["2^63"]),
                (["--shape", "3,3", "--kernel", "3,3,3"], ["kernel = 3,3,3"]),
                (["--kernel", "1,1,1,1,1"], ["5"]),
                (["--kernel", 0], ["kernel = 0"]), (["--dilation", 0], ["dilation = 0"]),
                (["--mode", "strided", "--stride", 0], ["stride = 0"]),
                (["--mode", "strided", "--pad", -1], ["pad = -1"]),
                (["--mode", "strided", "--pad", "same"], ["pad = same", "dense"]),
                (["--mode", "strided", "--shape", "9,9", "--pad", "1,0,-2,0"], ["pad = -2"]),
                (["--mode", "strided", "--shape", "9,9", "--pad", "1,0,2"], ["pad = 1,0,2", "2-D", "before and after"]),
                (["--mode", "strided", "--shape", "9,9", "--pad", "1,0,2,0", "--out-padding", 1], ["out-padding = 1", "transposed"]),
                (["--mode", "transposed", "--shape", "9,9", "--pad", "1,0,2,0", "--out-padding", 1], ["out-padding = 1"]),
                (["--batch", 0], ["batch = 0"]), (["--batch", "two"], ["two"]),
                (["--cin", 3], ["cin"]), (["--h", 3], ["h = 3", "rulebook"]),
                (["--features", "f.npy"], ["features"]), (["--size", 3], ["size"]),
                (["--kernel", 1291], []), (["--kernel", 1001], ["memory"]),
                (["--lidar", 0], ["lidar = 0"]), (["--lidar", "many"], ["many"]),
                (["--lidar", 100000000], ["lidar"]), (["--lidar", "--shape", "3,3,3"], ["shape"]),
                (["--voxel", 1], ["voxel", "points"]), (["--lidar", "--range", "0,0,0,1,1,1"],
                                                        ["range", "points"])):
            self.refuse(*words, says=says)
        for ladder, words, says in (
                ("sparse_conv", ["--cin", 0], ["cin = 0"]), ("sparse_conv", ["--cout", -1], ["cout"]),
                ("sparse_conv", ["--dy", "dy.npy"], ["dy"]), ("sparse_conv", ["--c", 3], ["c = 3"]),
                ("sparse_dgrad", ["--features", "f.npy"], ["features"]),
                ("sparse_wgrad", ["--weights", "w.npy"], ["weights"]),
                ("conv2d", ["--coords", "c.npy"], ["coords"]), ("gemm", ["--lidar"], ["lidar"])):
            self.refuse(*words, says=says, ladder=ladder)

    def coords(self, rows, dtype=np.int32):
        return self.write("coords.npy", np.array(rows, dtype))

    def test_sites(self):
        for rows, words, says in (
                ([[0, 1, 2], [0, 3, 4], [0, 1, 2], [0, 1, 2]], [], ["2 of 4", "row 2", "0,1,2"]),
                ([[0, 1, 2], [0, -3, 4], [0, 1, -2]], [], ["2 of 3", "row 1", "0,-3,4"]),
                ([[0, 1, 2], [0, 3, 9]], ["--shape", "9,9"], ["1 of 2", "row 1", "0,3,9", "axis 1", "from 0 to 8 and is 9"]),
                ([[0, 1, 2], [2, 3, 4]], ["--batch", 2], ["1 of 2", "row 1", "2,3,4", "batch index", "from 0 to 1 and is 2"]),
                ([[0, 1000000, 0]], ["--shape", "4,4"], ["row 0", "axis 0", "from 0 to 3 and is 1000000"]),
                ([[-1, 1, 2]], [], ["1 of 1", "-1,1,2"]),
                ([[0, 2**31 - 1]], [], ["2147483647"]),
                ([[0, 1, 2]], ["--shape", "3"], ["shape = 3"]),
                ([[0, 1, 2]], ["--shape", "3,3,3"], ["shape = 3,3,3"]),
                ([[0]], [], ["coords.npy", "1 column"]), ([0, 1], [], ["coords.npy", "1 axis"]),
                ([[0, 1, 2, 3, 4, 5]], [], ["coords.npy", "6 columns"]),
                ([[[0, 1]]], [], ["coords.npy", "3 axes"])):
            self.refuse("--coords", self.coords(rows), *words, says=says)
            for ladder in ("sparse_conv", "sparse_to_dense", "sparse_max_pool_dgrad"):
                self.refuse("--coords", self.coords(rows), *words, says=says, ladder=ladder)
        for dtype in (np.float32, np.float64):
            self.refuse("--coords", self.coords([[0, 1]], dtype),
                        says=["coords.npy", np.dtype(dtype).name, "int32"])
        self.refuse("--coords", self.coords([[0, 2**40]], np.int64), says=["coords.npy", "int32"])
        for dtype in (np.int16, np.uint32, np.bool_):
            self.refuse("--coords", self.coords([[0, 1]], dtype), says=["coords.npy"])
        self.refuse("--coords", self.folder / "none.npy", says=["none.npy"])
        self.refuse("--coords", self.coords([[0, 1]]), "--lidar", says=["coords", "lidar"])

    def test_arrays(self):
        coords = self.coords([[0, 1, 2], [0, 1, 3], [0, 4, 2]])
        def file(name, *shape, dtype=np.float32):
            return self.write(name + ".npy", np.zeros(shape, dtype))
        for ladder, words, says in (
                ("sparse_conv", ["--features", file("f", 2, 4)], ["f.npy", "2 x 4", "3 x 4"]),
                ("sparse_conv", ["--features", file("g", 3)], ["g.npy"]),
                ("sparse_conv", ["--features", file("h", 3, 4, dtype=np.int32)], ["h.npy", "int32"]),
                ("sparse_conv", ["--features", file("i", 3, 4), "--cin", 5], ["cin", "i.npy"]),
                ("sparse_conv", ["--features", file("j", 3, 4), "--weights", file("w", 9, 5, 2)],
                 ["cin", "w.npy", "j.npy"]),
                ("sparse_conv", ["--weights", file("v", 8, 4, 2)], ["v.npy", "9 taps"]),
                ("sparse_conv", ["--weights", file("u", 9, 4, 2), "--cout", 3], ["cout", "u.npy"]),
                ("sparse_conv", ["--features", file("z", 3, 0)], ["cin = 0"]),
                ("sparse_dgrad", ["--dy", file("dy", 4, 2)], ["dy.npy", "3 x 2"]),
                ("sparse_dgrad", ["--dy", file("dy2", 3, 2), "--weights", file("t", 9, 4, 3)],
                 ["cout", "dy2.npy"]),
                ("sparse_wgrad", ["--features", file("k", 3, 4), "--dy", file("dy3", 2, 4)],
                 ["dy3.npy"])):
            self.refuse("--coords", coords, *words, says=says, ladder=ladder)

    def test_points(self):
        def points(rows, dtype=np.float32):
            return self.write("points.npy", np.array(rows, dtype))
        good, box = [[0.5, 0.5, 0.5]], ["--range", "0,0,0,1,1,1"]
        for rows, words, says in (
                (good, box, ["voxel"]), (good, ["--voxel", 1], ["range"]),
                (good, ["--voxel", 0, *box], ["voxel = 0"]),
                (good, ["--voxel", -1, *box], ["voxel = -1"]),
                (good, ["--voxel", "nan", *box], ["voxel = nan"]),
                (good, ["--voxel", "inf", *box], ["voxel = inf"]),
                (good, ["--voxel", "1e99", *box], ["voxel = 1e99"]),
                (good, ["--voxel", "x", *box], ["voxel = x"]),
                (good, ["--voxel", "1,2", *box], ["voxel = 1,2"]),
                (good, ["--voxel", "1e-30", *box], ["voxel"]),
                (good, ["--voxel", "1e-7", *box], ["2^63"]),
                (good, ["--voxel", 1, "--range", "0,0,0,1,1"], ["range = 0,0,0,1,1"]),
                (good, ["--voxel", 1, "--range", "0,0,2,1,1,1"], ["range", "z", "2 to 1"]),
                (good, ["--voxel", 1, "--range", "0,1,0,1,1,1"], ["range", "y"]),
                (good, ["--voxel", 1, "--range", "0,0,0,1,1,nan"], ["range"]),
                (good, ["--voxel", 1, "--range", "0,0,0,1,1,"], ["range"]),
                (good, ["--voxel", 1, *box, "--shape", "1,1,1"], ["shape"]),
                (good, ["--voxel", 1, *box, "--lidar"], ["lidar", "points"]),
                (good, ["--voxel", "1,1,0", *box], ["voxel = 0"]),
                (good, ["--voxel", "1,1,1,1", *box], ["voxel = 1,1,1,1"]),
                (good, ["--voxel", 1, *box, "--columns", "x"], ["columns = x"]),
                (good, ["--voxel", 1, *box, "--columns", 4], ["columns = 4", "has 3 columns"]),
                ([[0, 0]], ["--voxel", 1, *box], ["points.npy", "1 x 2"]),
                ([0, 0, 0], ["--voxel", 1, *box], ["points.npy"])):
            self.refuse("--points", points(rows), *words, says=says)
        self.refuse("--points", points(good, np.int32), "--voxel", 1, *box, says=["points.npy", "int32"])
        cut = self.folder / "cut.bin"
        cut.write_bytes(b"\0" * 30)
        self.refuse("--points", cut, "--voxel", 1, *box, says=["cut.bin", "30 bytes", "--columns"])
        self.refuse("--points", cut, "--voxel", 1, *box, "--columns", 7, says=["cut.bin", "30 bytes", "28 bytes"])
        self.refuse("--columns", 4, says=["columns = 4", "points"])
        self.refuse("--points", self.folder / "none.bin", "--voxel", 1, *box, says=["none.bin"])
        other = self.folder / "points.txt"
        other.write_text("0 0 0")
        self.refuse("--points", other, "--voxel", 1, *box, says=["points.txt", ".bin"])


if __name__ == "__main__":
    unittest.main()
