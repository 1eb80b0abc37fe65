"""End-to-end tests of the command `convladder`: what dense ladders save, beside NumPy; tile maps.

    CONVLADDER_PROGRAM=$PWD/build/cpu/command/convladder python3 -B tests/command/test_dense.py [CLASS]

CTest runs each class as a test of its own.
"""
import unittest

import numpy as np

import numpy_reference as reference
from program import ProgramTest, integers

MAPS = ["row_major", "identity1", "identity2", "identity4", "identity8", "horizontal", "grouped",
        "hilbert", "split_k", "batched", "stream_k"]


def nearest(values, digits):
    """Rounded to so many binary digits, ties to even."""
    fraction, exponent = np.frexp(values)
    return np.ldexp(np.rint(np.ldexp(fraction, digits)), exponent - digits)


class Conv2dFiles(ProgramTest):
    """y, dx, dw and db, saved by every rung, against NumPy."""

    # n, c, h, w, k, r, s, --pad, its meaning, stride, dilation, groups, bias
    CASES = [
        (1, 1, 1, 1, 1, 1, 1, None, ((0, 0), (0, 0)), (1, 1), (1, 1), 1, False),
        (2, 3, 9, 7, 4, 3, 3, "1", ((1, 1), (1, 1)), (1, 1), (1, 1), 1, True),
        (2, 3, 9, 12, 4, 3, 2, "2,1", ((2, 2), (1, 1)), (2, 1), (1, 2), 1, True),
        (1, 2, 8, 9, 3, 2, 2, "0,1,2,0", ((0, 1), (2, 0)), (1, 3), (1, 1), 1, False),
        (2, 6, 10, 11, 9, 3, 3, "1", ((1, 1), (1, 1)), (2, 2), (2, 2), 3, True),
        (1, 5, 7, 33, 5, 3, 5, "1,2", ((1, 1), (2, 2)), (1, 1), (1, 1), 5, True),
        (1, 2, 9, 9, 3, 1, 1, None, ((0, 0), (0, 0)), (4, 4), (1, 1), 1, False),
        (1, 1, 3, 3, 2, 3, 3, "6", ((6, 6), (6, 6)), (1, 1), (1, 1), 1, True),
        (0, 3, 8, 8, 4, 3, 3, "1", ((1, 1), (1, 1)), (1, 1), (1, 1), 1, True),
        # TensorFlow's SAME: even filters, strides, dilation, a stride beyond the filter.
        (2, 3, 9, 8, 4, 4, 2, "same", ((1, 2), (0, 1)), (2, 1), (1, 1), 1, True),
        (1, 4, 7, 10, 6, 3, 3, "same", ((3, 3), (1, 1)), (2, 3), (3, 1), 2, False),
        (1, 2, 7, 9, 3, 1, 2, "same", ((0, 0), (0, 1)), (4, 4), (1, 1), 1, True),
    ]

    @staticmethod
    def steps(pad, stride, dilation, groups):
        words = [] if pad is None else ["--pad", pad]
        if stride != (1, 1):
            words += ["--stride", f"{stride[0]},{stride[1]}"]
        if dilation != (1, 1):
            words += ["--dilation", f"{dilation[0]},{dilation[1]}"]
        return words + (["--groups", groups] if groups != 1 else [])

    def test_forward(self):
        for case in self.CASES:
            n, c, h, w, k, r, s, pad, pads, stride, dilation, groups, bias = case
            with self.subTest(case=case):
                x = integers(self.rng, n, c, h, w)
                weights = integers(self.rng, k, c // groups, r, s)
                b = integers(self.rng, k) if bias else None
                words = ["--x", self.write("x.npy", x), "--weights", self.write("w.npy", weights)]
                if bias:
                    words += ["--bias", self.write("b.npy", b)]
                out, report, _ = self.save("conv2d", *words, *self.steps(pad, stride, dilation, groups))
                y = reference.conv2d(x, weights, b, pads, stride, dilation, groups)
                ran = self.check_saved("conv2d", out, report, {"y": y})
                self.assertGreaterEqual(ran, 8)

    def test_relu(self):
        for case in self.CASES:
            n, c, h, w, k, r, s, pad, pads, stride, dilation, groups, bias = case
            with self.subTest(case=case):
                x = integers(self.rng, n, c, h, w)
                weights = integers(self.rng, k, c // groups, r, s)
                b = integers(self.rng, k) if bias else None
                words = ["--x", self.write("x.npy", x), "--weights", self.write("w.npy", weights),
                         "--activation", "relu"]
                if bias:
                    words += ["--bias", self.write("b.npy", b)]
                out, report, _ = self.save("conv2d", *words, *self.steps(pad, stride, dilation, groups))
                y = reference.conv2d(x, weights, b, pads, stride, dilation, groups)
                ran = self.check_saved("conv2d", out, report, {"y": np.maximum(y, 0)})
                self.assertGreaterEqual(ran, 8)

    def test_same_padding_of_any_size(self):
        for _ in range(12):
            h, w, r, s = (int(number) for number in self.rng.integers(1, (20, 20, 8, 8)))
            stride, dilation = (tuple(int(number) for number in self.rng.integers(1, most, 2)) for most in (5, 4))
            with self.subTest(size=(h, w), kernel=(r, s), stride=stride, dilation=dilation):
                x, weights = integers(self.rng, 1, 2, h, w), integers(self.rng, 3, 2, r, s)
                out, report, _ = self.save("conv2d", "--x", self.write("x.npy", x), "--weights", self.write("w.npy", weights),
                                           *self.steps("same", stride, dilation, 1), "--backend", "cpu")
                pads = reference.same_padding((h, w), (r, s), stride, dilation)
                y = reference.conv2d(x, weights, None, pads, stride, dilation)
                self.assertEqual(y.shape[2:], (-(-h // stride[0]), -(-w // stride[1])))
                self.check_saved("conv2d", out, report, {"y": y})

    def test_every_map(self):
        x, weights = integers(self.rng, 2, 4, 7, 9), integers(self.rng, 70, 2, 3, 3)
        y = reference.conv2d(x, weights, None, ((0, 0), (0, 0)), (1, 1), (1, 1), 2)
        for name in MAPS:
            with self.subTest(map=name):
                out, report, _ = self.save("conv2d", "--x", self.write("x.npy", x), "--weights",
                                           self.write("w.npy", weights), "--groups", "2", "--map", name)
                self.check_saved("conv2d", out, report, {"y": y})

    def test_input_gradient(self):
        for case in self.CASES:
            n, c, h, w, k, r, s, pad, pads, stride, dilation, groups, _ = case
            with self.subTest(case=case):
                p, q = reference.output_extents((h, w), (r, s), pads, stride, dilation)
                dy = integers(self.rng, n, k, p, q)
                weights = integers(self.rng, k, c // groups, r, s)
                out, report, _ = self.save(
                    "conv2d_dgrad", "--dy", self.write("dy.npy", dy), "--weights",
                    self.write("w.npy", weights), "--h", h, "--w", w,
                    *self.steps(pad, stride, dilation, groups))
                dx = reference.conv2d_dgrad(dy, weights, (h, w), pads, stride, dilation, groups)
                self.check_saved("conv2d_dgrad", out, report, {"dx": dx})

    def test_weight_gradient(self):
        for case in self.CASES:
            n, c, h, w, k, r, s, pad, pads, stride, dilation, groups, _ = case
            with self.subTest(case=case):
                p, q = reference.output_extents((h, w), (r, s), pads, stride, dilation)
                dy = integers(self.rng, n, k, p, q)
                x = integers(self.rng, n, c, h, w)
                out, report, _ = self.save(
                    "conv2d_wgrad", "--x", self.write("x.npy", x), "--dy", self.write("dy.npy", dy),
                    "--r", r, "--s", s, *self.steps(pad, stride, dilation, groups))
                dw, db = reference.conv2d_wgrad(x, dy, (r, s), pads, stride, dilation, groups)
                self.check_saved("conv2d_wgrad", out, report, {"dw": dw, "db": db})

    def test_real_numbers_are_close(self):
        x = self.rng.standard_normal((2, 5, 14, 13)).astype(np.float32)
        weights = self.rng.standard_normal((6, 5, 3, 3)).astype(np.float32)
        out, report, _ = self.save("conv2d", "--x", self.write("x.npy", x), "--weights",
                                   self.write("w.npy", weights), "--pad", 1)
        expected = reference.conv2d(x, weights, None, ((1, 1), (1, 1)))
        saved = list(out.rglob("y.npy"))
        self.assertGreaterEqual(len(saved), 8)
        for path in saved:
            atol = 2e-4 if "winograd" in str(path) else 2e-5  # fewer multiplications, more rounding (docs/oracle.md)
            np.testing.assert_allclose(np.load(path), expected, rtol=0, atol=atol, err_msg=str(path))

    def test_numbers_of_16_bits_are_rounded_once(self):
        x, weights, dy = (self.rng.integers(-20, 21, size=shape).astype(np.float32)
                          for shape in ((2, 8, 9, 7), (16, 8, 3, 3), (2, 16, 7, 5)))
        pads = ((0, 0), (0, 0))
        y = reference.conv2d(x, weights, None, pads)
        dx = reference.conv2d_dgrad(dy, weights, (9, 7), pads)
        dw, db = reference.conv2d_wgrad(x, dy, (3, 3), pads)
        x, weights, dy = self.write("x.npy", x), self.write("w.npy", weights), self.write("dy.npy", dy)
        for dtype, digits in (("fp16", 11), ("bf16", 8)):
            for layout in ("nchw", "nhwc"):
                form = ["--dtype", dtype, "--layout", layout]
                with self.subTest(dtype=dtype, layout=layout):
                    for ladder, words, right in (
                            ("conv2d", ["--x", x, "--weights", weights], {"y": nearest(y, digits)}),
                            ("conv2d_dgrad", ["--dy", dy, "--weights", weights, "--h", 9, "--w", 7],
                             {"dx": nearest(dx, digits)}),
                            ("conv2d_wgrad", ["--x", x, "--dy", dy, "--r", 3, "--s", 3], {"dw": dw, "db": db})):
                        out, report, _ = self.save(ladder, *words, *form)
                        self.assertGreaterEqual(self.check_saved(ladder, out, report, right), 2)

    def test_a_second_run_replaces_the_first(self):
        for value in (1.0, 2.0):
            x = np.full((1, 1, 4, 4), value, np.float32)
            out, report, _ = self.save("conv2d", "--x", self.write("x.npy", x), "--weights",
                                       self.write("w.npy", np.ones((1, 1, 2, 2), np.float32)))
            self.check_saved("conv2d", out, report, {"y": np.full((1, 1, 3, 3), 4 * value)})


class TransposeFiles(ProgramTest):
    """y of conv2d_transpose, saved by every rung of conv2d_dgrad, against PyTorch's definition written out."""

    # n, c, h, w, k, r, s, --pad, its meaning, stride, dilation, groups, --out-padding, bias
    CASES = [
        (1, 1, 1, 1, 1, 1, 1, None, ((0, 0), (0, 0)), (1, 1), (1, 1), 1, (0, 0), False),
        (2, 4, 5, 6, 3, 3, 3, None, ((0, 0), (0, 0)), (1, 1), (1, 1), 1, (0, 0), True),
        (2, 4, 5, 6, 3, 3, 3, "1", ((1, 1), (1, 1)), (2, 2), (1, 1), 1, (1, 1), True),  # doubles the image
        (1, 6, 4, 3, 4, 3, 2, "1,0", ((1, 1), (0, 0)), (3, 2), (1, 2), 2, (2, 0), True),
        (2, 3, 4, 5, 3, 4, 4, "1,2,0,1", ((1, 2), (0, 1)), (2, 1), (1, 1), 3, (0, 0), True),
        (1, 2, 3, 7, 5, 2, 3, None, ((0, 0), (0, 0)), (4, 5), (1, 1), 1, (3, 1), False),  # gaps between filters
        (1, 2, 6, 5, 2, 3, 3, "2", ((2, 2), (2, 2)), (1, 1), (3, 2), 1, (2, 1), True),  # out-padding beyond the stride
        (0, 2, 4, 4, 3, 3, 3, "1", ((1, 1), (1, 1)), (2, 2), (1, 1), 1, (0, 0), True),
        (1, 3, 4, 5, 2, 4, 2, "same", ((1, 1), (0, 0)), (2, 3), (1, 1), 1, (0, 0), True),
    ]

    def test_every_rung(self):
        for case in self.CASES:
            n, c, h, w, k, r, s, pad, pads, stride, dilation, groups, more, bias = case
            with self.subTest(case=case):
                x, weights = integers(self.rng, n, c, h, w), integers(self.rng, c, k // groups if groups > 1 else k, r, s)
                b = integers(self.rng, weights.shape[1] * groups) if bias else None
                words = ["--x", self.write("x.npy", x), "--weights", self.write("w.npy", weights),
                         *Conv2dFiles.steps(pad, stride, dilation, groups)]
                if more != (0, 0):
                    words += ["--out-padding", f"{more[0]},{more[1]}"]
                if bias:
                    words += ["--bias", self.write("b.npy", b)]
                if pad == "same":  # as many pixels as the strides make of x; a filter within its stride leaves zeros
                    more = tuple(max(0, step - (taps - 1) * d - 1)
                                 for step, taps, d in zip(stride, (r, s), dilation))
                y = reference.conv2d_transpose(x, weights, b, pads, stride, dilation, groups, more)
                if pad == "same":
                    self.assertEqual(y.shape[2:], (h * stride[0], w * stride[1]))
                out, report, _ = self.save("conv2d_transpose", *words)
                self.assertGreaterEqual(self.check_saved("conv2d_transpose", out, report, {"y": y}), 4)

    def test_a_bias_is_added_to_rounded_sums(self):
        x, weights, b = (self.rng.integers(-20, 21, size=shape).astype(np.float32)
                         for shape in ((2, 16, 5, 4), (16, 8, 3, 3), (8,)))
        words = ["--x", self.write("x.npy", x), "--weights", self.write("w.npy", weights), "--bias",
                 self.write("b.npy", b), "--stride", 2, "--pad", 1]
        sums = reference.conv2d_transpose(x, weights, None, ((1, 1), (1, 1)), (2, 2))
        for dtype, digits in (("fp16", 11), ("bf16", 8)):
            for layout in ("nchw", "nhwc"):
                with self.subTest(dtype=dtype, layout=layout):
                    out, report, _ = self.save("conv2d_transpose", *words, "--dtype", dtype, "--layout", layout)
                    y = nearest(nearest(sums, digits) + b[None, :, None, None], digits)
                    self.assertGreaterEqual(self.check_saved("conv2d_transpose", out, report, {"y": y}), 2)
        for dtype in ("fp32", "fp16"):
            self.agree("compare", "conv2d_transpose", *words, "--dtype", dtype, "--data", "real")

    def test_random_problems(self):
        for _ in range(10):
            n, c, h, w, k, r, s = (int(number) for number in self.rng.integers(1, (3, 5, 7, 7, 5, 5, 5)))
            stride, dilation = (tuple(int(number) for number in self.rng.integers(1, 4, 2)) for _ in range(2))
            more = tuple(int(self.rng.integers(0, step)) for step in stride)
            reach = [(extent - 1) * st + d * (t - 1) + m for extent, st, d, t, m
                     in zip((h, w), stride, dilation, (r, s), more)]
            pads = tuple(tuple(int(number) for number in self.rng.integers(0, 1 + min(4, most) // 2, 2)) for most in reach)
            with self.subTest(x=(n, c, h, w), weights=(c, k, r, s), pads=pads, stride=stride, dilation=dilation, more=more):
                x, weights, b = integers(self.rng, n, c, h, w), integers(self.rng, c, k, r, s), integers(self.rng, k)
                pad = ",".join(str(number) for both in pads for number in both)
                out, report, _ = self.save(
                    "conv2d_transpose", "--x", self.write("x.npy", x), "--weights", self.write("w.npy", weights), "--bias",
                    self.write("b.npy", b), "--out-padding", f"{more[0]},{more[1]}",
                    *Conv2dFiles.steps(pad, stride, dilation, 1))
                y = reference.conv2d_transpose(x, weights, b, pads, stride, dilation, 1, more)
                self.check_saved("conv2d_transpose", out, report, {"y": y})

    def test_bad_input_in_its_own_terms(self):
        for words, says in (
                (["--c", 4, "--groups", 3], ["groups = 3: must divide c = 4"]),
                (["--k", 4, "--c", 6, "--groups", 3], ["groups = 3: must divide k = 4"]),
                (["--stride", 2, "--out-padding", 2], ["out-padding = 2", "larger of stride and dilation, 2"]),
                (["--out-padding", -1], ["out-padding = -1"]),
                (["--dilation", 2, "--out-padding", 1], ["out-padding = 1", "stride 1", "padding"]),
                (["--out-padding", "0,0,0"], ["out-padding = 0,0,0"]),
                (["--pad", "same", "--stride", 2, "--out-padding", 1], ["out-padding = 1", "same"]),
                (["--h", 2, "--w", 9, "--pad", 2], ["pad = 2,2", "along h"]),
                (["--activation", "relu"], ["activation"]),
                (["--dy", "dy.npy"], ["dy"])):
            with self.subTest(words=words):
                self.bad_input("compare", "conv2d_transpose", *words, says=says)
        x, weights = self.write("x.npy", integers(self.rng, 1, 3, 4, 4)), self.write("w.npy", integers(self.rng, 4, 2, 3, 3))
        self.bad_input("compare", "conv2d_transpose", "--x", x, "--weights", weights, says=["c = 4", "contradicts c = 3"])
        for command in ("list", "bench", "fuzz"):
            options = ["--ladder"] if command == "list" else []
            self.bad_input(command, *options, "conv2d_transpose", says=["conv2d_transpose", "nearest: conv2d_dgrad"])


class ColumnFiles(ProgramTest):
    """col and x of im2col and col2im, in one, two and three dimensions, with each request."""

    # size, kernel, pad, stride, dilation
    CASES = [
        ((11,), (1,), (0,), (3,), (1,)),
        ((20,), (4,), (2,), (2,), (3,)),
        ((9, 12), (3, 2), (1, 0), (2, 1), (1, 3)),
        ((7, 5), (1, 1), (0, 0), (1, 1), (1, 1)),
        ((5, 6, 7), (3, 3, 3), (0, 0, 0), (1, 1, 1), (1, 1, 1)),
        ((5, 6, 7), (2, 3, 1), (1, 0, 2), (2, 1, 3), (1, 2, 1)),
    ]

    @staticmethod
    def words(case):
        size, kernel, pad, stride, dilation = case
        def text(values):
            return ",".join(map(str, values))
        return ["--kernel", text(kernel), "--pad", text(pad), "--stride", text(stride), "--dilation",
                text(dilation)]

    @staticmethod
    def parameters(case):
        size, kernel, pad, stride, dilation = case
        return kernel, [(p, p) for p in pad], stride, dilation

    def test_im2col(self):
        for case in self.CASES:
            for request in ("write", "add", "none"):
                with self.subTest(case=case, request=request):
                    x = integers(self.rng, 2, 3, *case[0])
                    col = reference.im2col(x, *self.parameters(case))
                    into = integers(self.rng, *col.shape)
                    words = ["--x", self.write("x.npy", x), *self.words(case), "--request", request]
                    if request != "write":
                        words += ["--into", self.write("into.npy", into)]
                    out, report, _ = self.save("im2col", *words)
                    expected = {"write": col, "add": into + col, "none": into}[request]
                    self.check_saved("im2col", out, report, {"col": expected})

    def test_im2col_with_channels_innermost_in_memory(self):
        for case in self.CASES:
            with self.subTest(case=case):
                x = integers(self.rng, 2, 4, *case[0])
                col = reference.im2col(x, *self.parameters(case))
                out, report, _ = self.save("im2col", "--x", self.write("x.npy", x), *self.words(case),
                                           "--layout", "nhwc")
                # Files keep their order.
                ran = self.check_saved("im2col", out, report, {"col": col})
                self.assertGreaterEqual(ran, 2)

    def test_col2im(self):
        for case in self.CASES:
            for request in ("write", "add", "none"):
                with self.subTest(case=case, request=request):
                    size, kernel, pad, stride, dilation = case
                    windows = np.prod(reference.output_extents(size, *self.parameters(case)))
                    col = integers(self.rng, 2, 3 * int(np.prod(kernel)), int(windows))
                    x = reference.col2im(col, 3, size, *self.parameters(case))
                    into = integers(self.rng, 2, 3, *size)
                    words = ["--col", self.write("col.npy", col), "--c", 3, "--size",
                             ",".join(map(str, size)), *self.words(case), "--request", request]
                    if request != "write":
                        words += ["--into", self.write("into.npy", into)]
                    out, report, _ = self.save("col2im", *words)
                    expected = {"write": x, "add": into + x, "none": into}[request]
                    self.check_saved("col2im", out, report, {"x": expected})

    def test_same_padding(self):
        for size, kernel, stride, dilation in (((11,), (4,), (3,), (2,)), ((9, 12), (2, 5), (1, 2), (3, 1)),
                                               ((5, 6, 7), (2, 3, 1), (2, 1, 3), (1, 2, 1))):
            with self.subTest(size=size):
                pad = reference.same_padding(size, kernel, stride, dilation)
                words = self.words((size, kernel, (0,) * len(size), stride, dilation))
                words[words.index("--pad") + 1] = "same"
                x = integers(self.rng, 2, 3, *size)
                col = reference.im2col(x, kernel, pad, stride, dilation)
                out, report, _ = self.save("im2col", "--x", self.write("x.npy", x), *words)
                self.check_saved("im2col", out, report, {"col": col})
                back = reference.col2im(col, 3, size, kernel, pad, stride, dilation)
                out, report, _ = self.save("col2im", "--col", self.write("col.npy", col.astype(np.float32)), "--c", 3,
                                           "--size", ",".join(map(str, size)), *words)
                self.check_saved("col2im", out, report, {"x": back})

    def test_one_number_counts_for_all_axes(self):
        x = integers(self.rng, 1, 2, 6, 7, 8)
        out, report, _ = self.save("im2col", "--x", self.write("x.npy", x), "--kernel", 2, "--pad", 1,
                                   "--stride", 2)
        col = reference.im2col(x, (2, 2, 2), [(1, 1)] * 3, (2, 2, 2), (1, 1, 1))
        self.check_saved("im2col", out, report, {"col": col})

    def test_an_empty_batch(self):
        x = np.zeros((0, 2, 5), np.float32)
        out, report, _ = self.save("im2col", "--x", self.write("x.npy", x), "--kernel", 2)
        self.check_saved("im2col", out, report, {"col": np.zeros((0, 4, 4))})


class GemmFiles(ProgramTest):
    def test_product(self):
        for m, n, k in ((1, 1, 1), (5, 7, 3), (33, 65, 17), (1, 40, 100)):
            with self.subTest(m=m, n=n, k=k):
                a, b = integers(self.rng, m, k), integers(self.rng, k, n)
                out, report, _ = self.save("gemm", "--a", self.write("a.npy", a), "--b",
                                           self.write("b.npy", b))
                self.check_saved("gemm", out, report, {"c": a.astype(np.float64) @ b})

    def test_numbers_of_16_bits_are_rounded_once(self):
        a, b = (self.rng.integers(-40, 41, size=shape).astype(np.float32) for shape in ((33, 24), (24, 40)))
        for dtype, digits in (("fp16", 11), ("bf16", 8)):
            with self.subTest(dtype=dtype):
                out, report, _ = self.save("gemm", "--a", self.write("a.npy", a), "--b",
                                           self.write("b.npy", b), "--dtype", dtype)
                c = nearest(a.astype(np.float64) @ b, digits)
                self.assertGreaterEqual(self.check_saved("gemm", out, report, {"c": c}), 5)

    def test_transposed_matrices_and_several_products(self):
        for transpose in (None, "a", "b", "ab"):
            for batch in (None, 1, 3):
                for m, n, k in ((5, 7, 3), (33, 40, 24)):
                    with self.subTest(transpose=transpose, batch=batch, m=m, n=n, k=k):
                        several = () if batch is None else (batch,)
                        a, b, bias = integers(self.rng, *several, m, k), integers(self.rng, *several, k, n), integers(self.rng, n)
                        given_a, given_b = (np.ascontiguousarray(matrix.swapaxes(-1, -2)) if name in (transpose or "") else matrix
                                            for name, matrix in (("a", a), ("b", b)))
                        words = ["--a", self.write("a.npy", given_a), "--b", self.write("b.npy", given_b)]
                        if transpose:
                            words += ["--transpose", transpose]
                        c = a.astype(np.float64) @ b
                        out, report, _ = self.save("gemm", *words)
                        self.assertGreaterEqual(self.check_saved("gemm", out, report, {"c": c}), 8)
                        words += ["--bias", self.write("bias.npy", bias), "--activation", "relu"]
                        for dtype, digits in (("bf16", 8), ("fp8", 24)):
                            out, report, _ = self.save("gemm", *words, "--dtype", dtype)
                            self.assertGreaterEqual(self.check_saved(
                                "gemm", out, report, {"c": nearest(np.maximum(c + bias, 0), digits)}), 2)
        self.agree("compare", "gemm", "--transpose", "ab", "--batch", 2, "--data", "real", "--map", "split_k")

    def test_transposed_bad_input(self):
        a, b = self.write("a.npy", integers(self.rng, 2, 5, 3)), self.write("b.npy", integers(self.rng, 3, 3, 4))
        for words, says in (
                (["--transpose", "c"], ["transpose = c", "a, b, ab"]), (["--batch", 0], ["batch = 0: must be at least 1"]),
                (["--a", a, "--b", b], ["batch = 3", "contradicts batch = 2"]),
                (["--a", a, "--transpose", "a", "--m", 5], ["m = 3", "contradicts m = 5"]),
                (["--a", a, "--batch", 3], ["batch = 2", "contradicts batch = 3"]),
                (["--b", self.write("four.npy", integers(self.rng, 1, 1, 2, 2))], ["4 axes", "[k][n] or [batch][k][n]"])):
            with self.subTest(words=words):
                self.bad_input("compare", "gemm", *words, says=says)

    def test_no_product_to_add(self):
        a, b, bias = integers(self.rng, 5, 0), integers(self.rng, 0, 7), integers(self.rng, 7)
        words = ["--a", self.write("a.npy", a), "--b", self.write("b.npy", b)]
        c = np.zeros((5, 7))
        for options, right in (((), c), (("--bias", self.write("bias.npy", bias)), c + bias),
                               (("--bias", self.write("bias.npy", bias), "--activation", "relu"), c + np.maximum(bias, 0)),
                               (("--dtype", "fp16"), c), (("--dtype", "fp8", "--scale-a", "3"), c)):
            with self.subTest(options=options):
                out, report, _ = self.save("gemm", *words, *options)
                self.assertGreaterEqual(self.check_saved("gemm", out, report, {"c": right}), 2)
                if "--dtype" not in options:
                    tiled, = (row for row in report["ladders"][0]["rungs"]
                              if row["rung"].endswith("/tiled") and row["where"] == "emulated")
                    self.assertIn("k = 0", tiled["reason"])
        self.bad_input("compare", "gemm", "--k", "-1", says=["k = -1: must be at least 0"])

    def test_numbers_of_8_bits_have_a_scale_and_sums_in_float(self):
        a, b = (self.rng.integers(-16, 17, size=shape).astype(np.float32) for shape in ((33, 40), (40, 24)))
        out, report, _ = self.save("gemm", "--a", self.write("a.npy", a), "--b", self.write("b.npy", b),
                                   "--dtype", "fp8", "--scale-a", "0.5", "--scale-b", "3")
        self.assertGreaterEqual(self.check_saved("gemm", out, report, {"c": 1.5 * (a.astype(np.float64) @ b)}), 3)
        for options, message in ((("--scale-a", "2"), "scale-a = 2: only with --dtype fp8"),
                                 (("--dtype", "fp8", "--scale-b", "-1"), "scale-b = -1: must be from 2^-32 to 2^32"),
                                 (("--dtype", "fp8", "--scale-b", "1,2"), "scale-b = 1,2: must be one number"),
                                 (("--dtype", "fp8", "--scale-a", "x"), "scale-a = x: 'x' is not a finite number")):
            with self.subTest(options=options):
                self.bad_input("compare", "gemm", *options, says=[message])
        self.bad_input("compare", "conv2d", "--dtype", "fp8", says=["dtype = fp8: must be one of fp32, tf32, fp16, bf16"])

    def test_bias_and_relu(self):
        a, b, bias = integers(self.rng, 33, 24), integers(self.rng, 24, 40), integers(self.rng, 40)
        c = a.astype(np.float64) @ b + bias
        words = ["--a", self.write("a.npy", a), "--b", self.write("b.npy", b), "--bias", self.write("bias.npy", bias)]
        for options, right in (((), c), (("--activation", "relu"), np.maximum(c, 0)),
                               (("--activation", "relu", "--dtype", "bf16"), nearest(np.maximum(c, 0), 8))):
            with self.subTest(options=options):
                out, report, _ = self.save("gemm", *words, *options)
                self.assertGreaterEqual(self.check_saved("gemm", out, report, {"c": right}), 3)
        self.bad_input("compare", "gemm", *words[-2:], "--n", "39", says=["n = 39", "bias.npy"])
        self.bad_input("compare", "gemm", "--activation", "tanh", says=["activation = tanh"])

    def test_what_is_read_is_rounded_with_a_note(self):
        a, b = np.full((2, 3), 1 / 3, np.float32), integers(self.rng, 3, 4)
        result = self.agree("compare", "gemm", "--a", self.write("a.npy", a), "--b",
                            self.write("b.npy", b), "--dtype", "bf16")
        self.assertIn("a: rounded to bfloat16", result.stdout + result.stderr)
        self.assertNotIn("b: rounded", result.stdout + result.stderr)

    def test_every_map(self):
        a, b = integers(self.rng, 70, 9), integers(self.rng, 9, 100)
        for name in MAPS:
            with self.subTest(map=name):
                out, report, _ = self.save("gemm", "--a", self.write("a.npy", a), "--b",
                                           self.write("b.npy", b), "--map", name)
                self.check_saved("gemm", out, report, {"c": a.astype(np.float64) @ b})


class FftFiles(ProgramTest):
    """y of lines and planes, complex and real, in integers modulo 2^17 - 1: transforms of ones are closed forms."""

    def check(self, x, y, *words):
        out, report, _ = self.save("fft", "--x", self.write("x.npy", x), "--ring", "mersenne", *words)
        return self.check_saved("fft", out, report, {"y": y})

    @staticmethod
    def spectrum_of_ones(*lengths):
        """All of it in the first frequency. `lengths` of y, and their product first."""
        points, N, *extents = lengths
        y = np.zeros((N, *extents, 2))
        y[(slice(None), *(0 for _ in extents), 0)] = points
        return y

    def test_the_axes_of_x_say_what_it_is(self):
        ones = np.ones
        parts = np.zeros((3, 16, 2))
        parts[..., 0] = 1
        planes = np.zeros((2, 8, 16, 2))
        planes[..., 0] = 1
        for x, words, y in (
                (parts, (), self.spectrum_of_ones(16, 3, 16)),
                (planes, (), self.spectrum_of_ones(128, 2, 8, 16)),
                (ones((3, 16)), (), self.spectrum_of_ones(16, 3, 9)),
                (ones((3, 16)), ("--input", "real", "--length", 16), self.spectrum_of_ones(16, 3, 9)),
                (ones((2, 4, 8)), ("--input", "real"), self.spectrum_of_ones(32, 2, 4, 5))):
            with self.subTest(shape=x.shape, words=words):
                self.assertGreaterEqual(self.check(x.astype(np.float32), y, *words), 2)

    def test_what_x_cannot_be(self):
        for shape, words, says in (
                ((3, 16), ("--input", "complex"), ["x = ", "has 2 axes", "[n][length][2]"]),
                ((3, 16, 2, 2), ("--input", "real"), ["x = ", "has 4 axes", "[n][length]"]),
                ((3, 16), ("--direction", "inverse"), ["direction = inverse", "--input real", "[n][length / 2 + 1][2]"]),
                ((3, 16), ("--direction", "inverse", "--input", "real"), ["x = ", "has 2 axes", "[n][length / 2 + 1][2]"]),
                ((3, 9, 2), ("--direction", "inverse", "--input", "real", "--length", "18"), ["length = 18", "16 or 17"]),
                ((3, 9, 3), ("--direction", "inverse", "--input", "real"), ["3 x 9 x 3", "2 numbers"]),
                ((3, 16, 3), (), ["3 x 16 x 3", "--input real"]),
                ((3, 16, 2), ("--length", "4,16"), ["length = 4,16", "holds lines"]),
                ((3, 4, 16, 2), ("--length", "16"), ["length = 16", "holds planes"]),
                ((3, 0, 16, 2), (), ["length = 0,16"]),
                ((3, 16), ("--length", "8"), ["length = 16", "contradicts length = 8"])):
            with self.subTest(shape=shape, words=words):
                x = self.write("x.npy", np.ones(shape, np.float32))
                self.bad_input("compare", "fft", "--x", x, *words, says=says)


class FftToReal(ProgramTest):
    """Real points from half of their frequencies, against numpy.fft.irfft, which divides by the number of points."""

    def check(self, x, length, expected, *words):
        parts = np.stack([x.real, x.imag], axis=-1).astype(np.float32)
        out, report, _ = self.save("fft", "--x", self.write("x.npy", parts), "--direction", "inverse", "--input", "real", *words)
        saved = list(out.rglob("y.npy"))
        self.assertGreaterEqual(len(saved), 1 if length & (length - 1) else 2)
        for path in saved:
            y = np.load(path)
            self.assertEqual(y.shape, expected.shape)
            np.testing.assert_allclose(y, expected, rtol=0, atol=1e-5 * np.abs(x).sum(), err_msg=str(path))

    def spectra(self, *shape):
        return (self.rng.standard_normal(shape) + 1j * self.rng.standard_normal(shape)).astype(np.complex64)

    def test_lines(self):
        for n, length in ((3, 16), (5, 64), (2, 1024), (3, 2), (2, 12), (2, 9), (3, 1), (0, 8)):
            with self.subTest(n=n, length=length):
                x = self.spectra(n, length // 2 + 1)
                expected = np.fft.irfft(x, length, axis=1) * length if length > 1 else x.real
                words = [] if length % 2 == 0 else ["--length", length]
                self.check(x, length, expected, *words)

    def test_planes(self):
        for h, length in ((4, 8), (3, 6), (5, 7), (1, 8)):
            with self.subTest(h=h, length=length):
                x = self.spectra(2, h, length // 2 + 1)
                expected = np.fft.irfft2(x, (h, length), axes=(1, 2)) * h * length
                self.check(x, 3, expected, "--length", f"{h},{length}")

    def test_there_and_back(self):
        points = integers(self.rng, 3, 32)
        out, _, _ = self.save("fft", "--x", self.write("x.npy", points), "--ring", "mersenne")
        spectrum = np.load(next(out.rglob("*dft/cpu/y.npy")))
        out, report, _ = self.save("fft", "--x", self.write("y.npy", spectrum), "--ring", "mersenne",
                                   "--direction", "inverse", "--input", "real")
        self.assertGreaterEqual(self.check_saved("fft", out, report, {"y": (32 * points.astype(np.int64) % (2**17 - 1)).astype(np.float64)}), 3)


class TileMaps(ProgramTest):
    def units(self, out, rung, where, name):
        return np.load(out / "tile_map" / rung.replace("/", ".") / where / f"{name}.npy",
                       allow_pickle=False)

    def check_cover(self, units, tiles_m, tiles_n, steps, batch):
        self.assertEqual(units.dtype, np.int32)
        self.assertEqual(units.shape[1], 6)
        self.assertTrue((np.diff(units[:, 0]) >= 0).all(), "in launch order")
        self.assertTrue((units[:, 4] < units[:, 5]).all(), "no empty units")
        visits = np.zeros((batch, tiles_m, tiles_n, steps), int)
        for _, b, m, n, first, last in units:
            visits[b, m, n, first:last] += 1
        self.assertTrue((visits == 1).all(), "each k-step of each tile once")

    def test_each_map_covers_each_step_once(self):
        for tiles_m, tiles_n, steps, batch in ((10, 6, 4, 1), (1, 1, 1, 1), (5, 9, 3, 2), (17, 3, 7, 1)):
            for name in MAPS:
                with self.subTest(map=name, tiles=(tiles_m, tiles_n, steps, batch)):
                    words = ["--tiles", f"{tiles_m},{tiles_n},{steps}", "--batch", batch, "--map", name]
                    if name == "split_k":
                        words += ["--splits", min(3, steps)]
                    out, report, _ = self.save("tile_map", *words)
                    ran = 0
                    for row in report["ladders"][0]["rungs"]:
                        if row["status"] != "agrees":
                            continue
                        units = self.units(out, row["rung"], row["where"], name)
                        self.check_cover(units, tiles_m, tiles_n, steps, batch)
                        ran += 1
                    self.assertGreaterEqual(ran, 2)

    def test_without_a_map_all_of_them(self):
        out, _, _ = self.save("tile_map", "--tiles", "4,3", "--backend", "cpu")
        found = sorted(path.stem for path in out.rglob("*.npy"))
        self.assertEqual(found, sorted(MAPS))

    def test_cutlass_order_of_identity(self):
        out, _, _ = self.save("tile_map", "--tiles", "2,4", "--map", "identity2", "--backend", "cpu")
        units = np.load(next(out.rglob("identity2.npy")))
        self.assertEqual(units[:, 2:4].tolist(),
                         [[0, 0], [0, 1], [1, 0], [1, 1], [0, 2], [0, 3], [1, 2], [1, 3]])


if __name__ == "__main__":
    unittest.main()
