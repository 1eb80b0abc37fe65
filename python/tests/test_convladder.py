#!/usr/bin/env python3
"""Tests the module convladder against NumPy and SciPy, on problems that Hypothesis draws.

    ./ladder check python        builds the module, and runs this;  ./ladder check pip: installs it first
"""
import ast
import concurrent.futures
import dataclasses
import importlib.util
import inspect
import pathlib
import re
import subprocess
import sys
import time
import unittest
import unittest.mock

import convladder
import numpy
import scipy.signal
from convladder import _layouts, _run
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

settings.register_profile("suite", max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
settings.load_profile("suite")


def whole_numbers(shape, seed, largest=8):
    """Small integers as float32, so that all sums are exact in any order."""
    return numpy.random.default_rng(seed).integers(-largest, largest + 1, shape).astype(numpy.float32)


def dilated(w, dilation):
    """The filters with zeros between their taps."""
    (dh, dw), (K, C, R, S) = dilation, w.shape
    wide = numpy.zeros((K, C, (R - 1) * dh + 1, (S - 1) * dw + 1), w.dtype)
    wide[:, :, ::dh, ::dw] = w
    return wide


def scipy_conv2d(x, w, bias, pad, stride, dilation, groups, relu):
    """The same computed by scipy.signal.correlate."""
    top, bottom, left, right = pad
    x = numpy.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right)))
    w = dilated(w, dilation)
    K, C = w.shape[:2]
    y = []
    for k in range(K):
        first = k // (K // groups) * C
        image = [scipy.signal.correlate(one[first:first + C], w[k], "valid", "direct")[0] for one in x]
        y.append(numpy.stack(image) if image else numpy.zeros((0, x.shape[2] - w.shape[2] + 1, x.shape[3] - w.shape[3] + 1)))
    y = numpy.stack(y, 1)[:, :, ::stride[0], ::stride[1]]
    if bias is not None:
        y = y + bias[:, None, None]
    return numpy.maximum(y, 0) if relu else y


@st.composite
def convolutions(draw):
    """(x, w, bias, options) of valid problems."""
    groups = draw(st.sampled_from([1, 1, 2, 3]))
    R, S = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    dilation = draw(st.integers(1, 2)), draw(st.integers(1, 3))
    pad = [draw(st.integers(0, 3)) for _ in range(4)]
    H = max(1, (R - 1) * dilation[0] + 1 - pad[0] - pad[1]) + draw(st.integers(0, 9))
    W = max(1, (S - 1) * dilation[1] + 1 - pad[2] - pad[3]) + draw(st.integers(0, 40))
    seed = draw(st.integers(0, 2**32))
    x = whole_numbers((draw(st.integers(0, 2)), groups * draw(st.integers(1, 3)), H, W), seed)
    w = whole_numbers((groups * draw(st.integers(1, 3)), x.shape[1] // groups, R, S), seed + 1)
    bias = whole_numbers(len(w), seed + 2) if draw(st.booleans()) else None
    stride = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    return x, w, bias, dict(pad=pad, stride=stride, dilation=dilation, groups=groups)


class Dense(unittest.TestCase):
    @given(convolutions(), st.booleans(), st.sampled_from(["cpu", "emulated"]))
    def test_conv2d_is_scipys(self, problem, relu, where):
        x, w, bias, options = problem
        y = convladder.conv2d(x, w, bias, activation="relu" if relu else None, where=where, **options)
        right = scipy_conv2d(x, w, bias, relu=relu, **options)
        self.assertEqual(y.shape, right.shape)
        numpy.testing.assert_array_equal(y, right)
        self.assertEqual(y.where, where)
        half = convladder.conv2d(x, w, bias, activation="relu" if relu else None, dtype="float16", where=where, **options)
        self.assertEqual(half.dtype, numpy.float16)
        numpy.testing.assert_array_equal(half, right.astype(numpy.float16))

    @given(convolutions(), st.sampled_from(["cpu", "emulated"]))
    def test_gradients_are_adjoint(self, problem, where):
        x, w, _, options = problem
        y = convladder.conv2d(x, w, where=where, **options)
        dy = whole_numbers(y.shape, 5)
        dx = convladder.conv2d_dgrad(dy, w, x.shape, where=where, **options)
        dw, db = convladder.conv2d_wgrad(x, dy, w.shape[2:], where=where, **options)
        product = numpy.vdot(y, dy)  # exact: integers
        self.assertEqual(numpy.vdot(x, dx), product)
        self.assertEqual(numpy.vdot(w, dw), product)
        numpy.testing.assert_array_equal(db, dy.sum((0, 2, 3)))
        short = convladder.conv2d_dgrad(dy, w, x.shape, dtype="bfloat16", where=where, **options)
        numpy.testing.assert_allclose(short, dx, rtol=2**-8)
        for long, right in zip(convladder.conv2d_wgrad(x, dy, w.shape[2:], dtype="bfloat16", where=where, **options), (dw, db)):
            numpy.testing.assert_array_equal(long, right)

    @given(convolutions(), st.sampled_from(["cpu", "emulated"]))
    def test_same_padding_is_tensorflows(self, problem, where):
        x, w, bias, options = problem
        pad = []
        for size, taps, stride, dilation in zip(x.shape[2:], w.shape[2:], options["stride"], options["dilation"]):
            total = max((-(-size // stride) - 1) * stride + (taps - 1) * dilation + 1 - size, 0)
            pad += [total // 2, total - total // 2]
        same, told = {**options, "pad": "same"}, {**options, "pad": pad}
        y = convladder.conv2d(x, w, bias, where=where, **same)
        self.assertEqual(y.shape[2:], tuple(-(-size // stride) for size, stride in zip(x.shape[2:], options["stride"])))
        numpy.testing.assert_array_equal(y, convladder.conv2d(x, w, bias, where=where, **told))
        dy = whole_numbers(y.shape, 5)
        numpy.testing.assert_array_equal(convladder.conv2d_dgrad(dy, w, x.shape, where=where, **same),
                                         convladder.conv2d_dgrad(dy, w, x.shape, where=where, **told))
        for one, other in zip(convladder.conv2d_wgrad(x, dy, w.shape[2:], where=where, **same),
                              convladder.conv2d_wgrad(x, dy, w.shape[2:], where=where, **told)):
            numpy.testing.assert_array_equal(one, other)
        del same["groups"], told["groups"]
        col = convladder.im2col(x, w.shape[2:], where=where, **same)
        numpy.testing.assert_array_equal(col, convladder.im2col(x, w.shape[2:], where=where, **told))
        numpy.testing.assert_array_equal(convladder.col2im(col, x.shape, w.shape[2:], where=where, **same),
                                         convladder.col2im(col, x.shape, w.shape[2:], where=where, **told))

    @given(convolutions(), st.integers(0, 2), st.integers(0, 2), st.sampled_from(["cpu", "emulated"]))
    def test_a_transposed_convolution_is_pytorchs(self, problem, down, across, where):
        _, w, _, options = problem
        stride, dilation, groups = options["stride"], options["dilation"], options["groups"]
        more = min(down, stride[0] - 1), min(across, stride[1] - 1)
        w = w[:len(w) // groups * groups]
        x = whole_numbers((2, len(w), 3, 4), 1)
        K, group_C = w.shape[1], len(w) // groups
        full = numpy.zeros((2, groups * K, *((size - 1) * s + (taps - 1) * d + 1 + m for size, s, taps, d, m
                                             in zip(x.shape[2:], stride, w.shape[2:], dilation, more))))
        for c in range(len(w)):
            wide = dilated(w[c:c + 1], dilation)[0]
            for h in range(3):
                for i in range(4):
                    first = c // group_C * K
                    full[:, first:first + K, h * stride[0]:h * stride[0] + wide.shape[1],
                         i * stride[1]:i * stride[1] + wide.shape[2]] += x[:, c, h, i, None, None, None] * wide
        pad = [min(number, (size - 1) // 2) for number, size in zip(options["pad"], numpy.repeat(full.shape[2:], 2))]
        bias = whole_numbers(groups * K, 3)
        right = full[:, :, pad[0]:full.shape[2] - pad[1], pad[2]:full.shape[3] - pad[3]] + bias[:, None, None]
        y = convladder.conv2d_transpose(x, w, bias, stride=stride, dilation=dilation, groups=groups, pad=pad,
                                        out_padding=more, where=where)
        numpy.testing.assert_array_equal(y, right)
        self.assertIn("/conv2d_dgrad/", y.rung)

    def test_a_transposed_convolution_has_all_rungs_of_the_gradient(self):
        x, w, bias = whole_numbers((1, 4, 5, 6), 1), whole_numbers((4, 3, 3, 3), 2), whole_numbers(3, 3)
        table = convladder.compare(convladder.conv2d_transpose, x, w, bias, stride=2, pad=1, out_padding=1)
        self.assertGreater(len(table), 10)
        ran = [row for row in table if row.status == "ran"]
        self.assertGreater(len(ran), 4)
        self.assertTrue(all(row.max_error == 0 for row in ran))
        y = convladder.conv2d_transpose(x, w, pad="same", stride=2)
        self.assertEqual(y.shape, (1, 3, 10, 12))
        half = convladder.conv2d_transpose(x, w, bias, dtype="float16")
        self.assertEqual(half.dtype, numpy.float16)
        self.assertNotIn("conv2d_transpose", {row["ladder"] for row in convladder.rungs()})

    @given(st.integers(1, 9), st.integers(1, 9), st.integers(0, 9), st.sampled_from([None, 1, 3]), st.booleans(), st.booleans(),
           st.sampled_from(["float32", "float16"]), st.sampled_from(["cpu", "emulated"]))
    def test_products_of_transposed_matrices_and_several_are_numpys(self, M, N, K, batch, transpose_a, transpose_b, dtype, where):
        several = () if batch is None else (batch,)
        a, b, bias = whole_numbers((*several, M, K), 1), whole_numbers((*several, K, N), 2), whole_numbers(N, 3)
        given_a = a.swapaxes(-1, -2) if transpose_a else a
        given_b = b.swapaxes(-1, -2) if transpose_b else b
        c = convladder.gemm(given_a, given_b, bias, transpose_a=transpose_a, transpose_b=transpose_b, activation="relu",
                            dtype=dtype, where=where)
        numpy.testing.assert_array_equal(c, numpy.maximum(a @ b + bias, 0).astype(dtype))

    def test_a_product_of_no_columns_is_the_bias(self):
        a, b, bias = whole_numbers((3, 0), 1), whole_numbers((0, 4), 2), whole_numbers(4, 3)
        numpy.testing.assert_array_equal(convladder.gemm(a, b), numpy.zeros((3, 4)))
        numpy.testing.assert_array_equal(convladder.gemm(a, b, bias, activation="relu"), numpy.maximum(bias, 0) + a @ b)

    @given(st.integers(0, 3), st.sampled_from([1, 2, 3, 8, 12, 32]), st.sampled_from([None, 1, 4, 3]), st.integers(0, 2**32))
    def test_complex_arrays_are_numpys(self, N, L, H, seed):
        shape = (N, L) if H is None else (N, H, L)
        axes = (1,) if H is None else (1, 2)
        points = L * (H or 1)
        parts = numpy.random.default_rng(seed).standard_normal((2, *shape))
        for dtype in (numpy.complex64, numpy.complex128):
            x = (parts[0] + 1j * parts[1]).astype(dtype)
            y, back = convladder.fft(x), convladder.fft(x, direction="inverse")
            self.assertEqual((y.dtype, y.shape, y.where), (numpy.complex64, shape, "cpu"))
            numpy.testing.assert_allclose(y, numpy.fft.fftn(x, axes=axes), atol=1e-5 * points)
            numpy.testing.assert_allclose(back, numpy.fft.ifftn(x, axes=axes) * points, atol=1e-5 * points)
        numpy.testing.assert_array_equal(convladder.fft(x[..., ::-1]), convladder.fft(x[..., ::-1].copy()))

    @given(st.integers(0, 5), st.sampled_from([1, 2, 3, 5, 8, 12, 32, 1024]), st.sampled_from([None, 1, 4, 3]),
           st.sampled_from(["cpu", "emulated"]), st.integers(0, 2**32))
    def test_half_of_the_frequencies_give_real_points(self, N, L, H, where, seed):
        shape = (N, L) if H is None else (N, H, L)
        axes = (1,) if H is None else (1, 2)
        points = numpy.random.default_rng(seed).standard_normal(shape).astype(numpy.float32)
        half = numpy.fft.rfftn(points, axes=axes).astype(numpy.complex64)
        if where == "emulated" and (H is not None or L & (L - 1) or L < 8):
            with self.assertRaises(convladder.UnsupportedProblem):
                convladder.fft(half, direction="inverse", input="real", length=L, where=where)
            return
        y = convladder.fft(half, direction="inverse", input="real", length=L, where=where)
        self.assertEqual((y.dtype, y.shape), (numpy.float32, shape))
        size = L * (H or 1)
        numpy.testing.assert_allclose(y, points * size, atol=1e-5 * size**1.5)
        parts = numpy.stack([half.real, half.imag], -1)
        numpy.testing.assert_array_equal(convladder.fft(parts, direction="inverse", input="real", length=L, where=where), y)
        if L % 2 == 0 or L == 1:
            numpy.testing.assert_array_equal(convladder.fft(half, direction="inverse", input="real", where=where), y)

    def test_complex_elements_where_there_are_none(self):
        x = numpy.ones((2, 8), numpy.complex64)
        for parameter, call in (("x", lambda: convladder.fft(x, input="real")), ("x", lambda: convladder.fft(x[0])),
                                ("x", lambda: convladder.fft(numpy.ma.masked_array(x))), ("a", lambda: convladder.gemm(x, x)),
                                ("x", lambda: convladder.fft(numpy.full((1, 2), 1e300 + 1j))),
                                ("length", lambda: convladder.fft(x, length=8)),
                                ("length", lambda: convladder.fft(x, direction="inverse", input="real", length=16))):
            with self.subTest(parameter), self.assertRaises(convladder.BadInput) as caught:
                call()
            self.assertEqual(caught.exception.parameter, parameter, str(caught.exception))

    @given(convolutions())
    def test_columns_are_windows_and_their_adjoint(self, problem):
        x, w, _, options = problem
        del options["groups"]
        col = convladder.im2col(x, w.shape[2:], **options)
        taps = numpy.eye(x.shape[1] * w.shape[2] * w.shape[3], dtype=numpy.float32)
        one_tap_each = taps.reshape(-1, x.shape[1], *w.shape[2:])
        windows = scipy_conv2d(x, one_tap_each, None, groups=1, relu=False, **options)
        numpy.testing.assert_array_equal(col, windows.reshape(col.shape))
        other = whole_numbers(col.shape, 9)
        back = convladder.col2im(other, x.shape, w.shape[2:], **options)
        self.assertEqual(numpy.vdot(col, other), numpy.vdot(x, back))

    @given(st.integers(1, 70), st.integers(1, 70), st.integers(1, 70), st.sampled_from(["cpu", "emulated"]))
    def test_gemm_is_numpys(self, M, N, K, where):
        a, b = whole_numbers((M, K), 1), whole_numbers((K, N), 2)
        numpy.testing.assert_array_equal(convladder.gemm(a, b, where=where), a @ b)
        half = convladder.gemm(a, b, dtype="float16", where=where)
        self.assertEqual(half.dtype, numpy.float16)
        numpy.testing.assert_array_equal(half, (a @ b).astype(numpy.float16))

    @given(st.integers(1, 70), st.integers(1, 70), st.integers(1, 70), st.sampled_from(["cpu", "emulated"]))
    def test_gemm_adds_a_bias_and_leaves_out_what_is_below_zero(self, M, N, K, where):
        a, b, bias = whole_numbers((M, K), 1), whole_numbers((K, N), 2), whole_numbers(N, 3)
        numpy.testing.assert_array_equal(convladder.gemm(a, b, bias, where=where), a @ b + bias)
        right = numpy.maximum(a @ b + bias, 0)
        numpy.testing.assert_array_equal(convladder.gemm(a, b, bias, activation="relu", where=where), right)
        half = convladder.gemm(a, b, bias, activation="relu", dtype="float16", where=where)
        numpy.testing.assert_array_equal(half, right.astype(numpy.float16))

    @given(st.integers(0, 5), st.integers(1, 70), st.booleans(), st.sampled_from(["cpu", "emulated"]))
    def test_fft_is_numpys(self, N, L, inverse, where):
        parts = numpy.random.default_rng(N).standard_normal((N, L, 2), numpy.float32)
        lines = parts.view("complex64")[..., 0]
        direction = "inverse" if inverse else "forward"
        rung = "cpu_reference/fft/dft" if where == "cpu" else "cuda_naive/fft/dft"  # which support any length
        y = convladder.fft(parts, direction=direction, rung=rung, where=where)
        right = numpy.fft.ifft(lines) * L if inverse else numpy.fft.fft(lines)
        numpy.testing.assert_allclose(y.view("complex64")[..., 0], right, atol=1e-5 * L)

    @given(st.integers(0, 5), st.sampled_from([(1,), (8,), (31,), (1, 4), (4, 1), (6, 5), (8, 16)]),
           st.sampled_from(["cpu", "emulated"]))
    def test_fft_of_planes_and_of_real_points_is_numpys(self, N, lengths, where):
        axes = range(1, 1 + len(lengths))
        rung = "cpu_reference/fft/dft" if where == "cpu" else "cuda_naive/fft/dft"  # which support any length
        random = numpy.random.default_rng(N)
        real = random.standard_normal((N, *lengths), numpy.float32)
        y = convladder.fft(real, input="real", rung=rung, where=where)
        numpy.testing.assert_allclose(y.view("complex64")[..., 0], numpy.fft.rfftn(real, axes=axes), atol=1e-3)
        parts = random.standard_normal((N, *lengths, 2), numpy.float32)
        y = convladder.fft(parts, rung=rung, where=where)
        right = numpy.fft.fftn(parts.view("complex64")[..., 0], axes=axes)
        numpy.testing.assert_allclose(y.view("complex64")[..., 0], right, atol=1e-3)

    def test_fft_takes_an_array_of_two_axes_as_real(self):
        x = whole_numbers((3, 16), 1)
        numpy.testing.assert_array_equal(convladder.fft(x, ring="mersenne"),
                                         convladder.fft(x, ring="mersenne", input="real"))
        with self.assertRaisesRegex(convladder.BadInput, "an array of 2 axes: it must have 3 or 4"):
            convladder.fft(x, input="complex")
        with self.assertRaisesRegex(convladder.BadInput, "direction = .inverse.: x holds real points"):
            convladder.fft(x, direction="inverse")

    @given(st.sampled_from(["row_major", "identity8", "grouped", "hilbert", "stream_k"]), st.integers(1, 9),
           st.integers(1, 9), st.integers(1, 4))
    def test_a_map_hands_out_every_step_once(self, map, tiles_m, tiles_n, k_steps):
        units = convladder.tile_map(map, tiles_m, tiles_n, k_steps)
        seen = sorted((m, n, k) for _, _, m, n, first, last in units.tolist() for k in range(first, last))
        self.assertEqual(seen, [(m, n, k) for m in range(tiles_m) for n in range(tiles_n) for k in range(k_steps)])

    def test_layouts_in_memory_do_not_matter(self):
        x, w = whole_numbers((2, 9, 8, 3), 1).transpose(0, 3, 1, 2), whole_numbers((4, 3, 3, 3), 2)
        y = convladder.conv2d(x, w[::-1])
        numpy.testing.assert_array_equal(y, convladder.conv2d(x.copy(), w[::-1].copy()))
        numpy.testing.assert_array_equal(y, convladder.conv2d(x.astype(numpy.float64), w[::-1]))


@st.composite
def sites(draw):
    """(coords, shape): distinct sites in a grid, in any order."""
    shape = draw(st.lists(st.integers(3, 8), min_size=1, max_size=3))
    cells = 2 * int(numpy.prod(shape))
    chosen = draw(st.lists(st.integers(0, cells - 1), max_size=40, unique=True))
    coords = numpy.stack(numpy.unravel_index(chosen, (2, *shape)), -1) if chosen else numpy.zeros((0, 1 + len(shape)))
    return coords.astype(numpy.int32), shape


class Sparse(unittest.TestCase):
    @given(sites(), st.sampled_from(["cpu", "emulated"]))
    def test_submanifold_convolution_is_the_dense_one_at_the_sites(self, drawn, where):
        coords, shape = drawn
        shape = (1,) * (2 - len(shape)) + tuple(shape) if len(shape) < 2 else tuple(shape)
        if len(shape) > 2 or not len(coords):
            return  # SciPy's convolution above has two axes
        coords = numpy.concatenate([coords[:, :1], numpy.zeros((len(coords), 3 - coords.shape[1]), numpy.int32),
                                    coords[:, 1:]], 1)
        features, weights = whole_numbers((len(coords), 3), 1), whole_numbers((9, 3, 4), 2)
        book = convladder.rulebook(coords, shape, where=where)
        y = convladder.sparse_conv(features, weights, book, where=where)
        x = convladder.sparse_to_dense(features, coords, shape, where=where)
        filters = weights.reshape(3, 3, 3, 4).transpose(3, 2, 0, 1)
        dense = scipy_conv2d(numpy.asarray(x), filters, None, (1, 1, 1, 1), (1, 1), (1, 1), 1, False)
        numpy.testing.assert_array_equal(y, dense[coords[:, 0], :, coords[:, 1], coords[:, 2]])

    @given(sites(), st.sampled_from(["subm", "strided", "transposed"]), st.sampled_from(["cpu", "emulated"]))
    def test_gradients_are_adjoint(self, drawn, mode, where):
        coords, shape = drawn
        options = {} if mode == "subm" else dict(stride=2, pad=1)
        book = convladder.rulebook(coords, shape, mode=mode, batch=2, where=where, **options)
        taps = 3 ** len(shape)
        features, weights = whole_numbers((book.inputs, 5), 1), whole_numbers((taps, 5, 6), 2)
        y = convladder.sparse_conv(features, weights, book, where=where)
        dy = whole_numbers(y.shape, 3)
        dx = convladder.sparse_dgrad(dy, weights, book, where=where)
        dw = convladder.sparse_wgrad(features, dy, book, where=where)
        self.assertEqual(numpy.vdot(features, dx), numpy.vdot(y, dy))
        self.assertEqual(numpy.vdot(weights, dw), numpy.vdot(y, dy))
        self.assertEqual(len(book.coords), book.outputs)
        self.assertEqual(len(book.pairs), int((book.table() >= 0).sum()))

    @given(st.integers(0, 200), st.sampled_from([3, 4]), st.sampled_from(["cpu", "emulated"]))
    def test_voxels_hold_the_means_of_their_points(self, count, columns, where):
        points = whole_numbers((count, columns), 5)
        coords, features = convladder.voxelize(points, 2, (-4, -4, -4, 4, 4, 4), where=where)
        cells = numpy.floor((points[:, 2::-1] + 4) / 2)
        cells = numpy.where(((points[:, 2::-1] >= -4) & (points[:, 2::-1] < 4)).all(1, keepdims=True), cells, -1)
        self.assertEqual(len(coords), len(set(map(tuple, cells)) - {(-1, -1, -1)}))
        for coord, mean in zip(coords, features):
            held = points[(cells == coord[1:]).all(1)]
            numpy.testing.assert_array_equal(mean, (held.sum(0) / numpy.float32(len(held))).astype(numpy.float32))

    @given(st.integers(1, 12), st.sampled_from([3, 4, 5, 9]),
           st.tuples(*[st.sampled_from([0.25, 0.5, 0.75, 1, 3])] * 3), st.sampled_from(["cpu", "emulated"]))
    def test_voxels_have_a_side_for_each_axis_and_points_any_number_of_columns(self, count, columns, sides, where):
        points = whole_numbers((count, columns), 6)
        coords, features = convladder.voxelize(points, sides, (-4, -4, -4, 5, 5, 5), where=where)
        self.assertEqual(features.shape[1], columns)
        cells = numpy.floor((points[:, :3] + 4) / numpy.array(sides, numpy.float32))[:, ::-1]
        cells[~((points[:, :3] >= -4) & (points[:, :3] < 5)).all(1)] = -1
        self.assertEqual(set(map(tuple, coords[:, 1:])), set(map(tuple, cells)) - {(-1, -1, -1)})
        for coord, mean in zip(coords, features):
            held = points[(cells == coord[1:]).all(1)].astype(numpy.float64)
            numpy.testing.assert_array_equal(mean, held.mean(0).astype(numpy.float32))

    def test_points_in_float64_keep_their_voxels_far_from_0(self):
        points = numpy.array([[500000.03, y, 1] for y in (4649776.20, 4649776.35, 4649776.70, 4649776.55)])
        box = (500000, 4649776, 0, 500010, 4649786, 10)
        for where in ("cpu", "emulated"):
            coords, features = convladder.voxelize(points, 0.05, box, where=where, rung="sorted_points")
            self.assertEqual(len(coords), 4)
            numpy.testing.assert_array_equal(features, points[numpy.argsort(points[:, 1])].astype(numpy.float32))
        in_half = numpy.full(points.shape, 60000, numpy.float16)
        for refused in (points.astype(numpy.float32), in_half):
            with self.assertRaisesRegex(convladder.BadInput, "voxel = 0.05: .*float(32|16).*float64"):
                convladder.voxelize(refused, 0.05, box)

    @given(st.floats(-1e6, 1e6), st.integers(1, 3000), st.floats(0, 1e-3))
    def test_a_mean_is_right_wherever_its_points_are(self, middle, count, spread):
        points = numpy.zeros((count, 4), numpy.float32)
        points[:, 3] = middle + spread * numpy.arange(count)
        points[:, 0] = 0.7
        _, features = convladder.voxelize(points, 1, (0, 0, 0, 1, 1, 1))
        right = points.astype(numpy.float64).mean(0, keepdims=True).astype(numpy.float32)
        numpy.testing.assert_array_max_ulp(features, right, 1)

    def test_an_intensity_that_is_nan_arrives_in_its_mean(self):
        points = numpy.array([[0, 0, 0, numpy.nan], [1, 0, 0, 2], [numpy.nan, 0, 0, 1]], numpy.float32)
        for where in ("cpu", "emulated"):
            coords, features = convladder.voxelize(points, 1, (0, 0, 0, 2, 1, 1), where=where)
            numpy.testing.assert_array_equal(features, points[:2])

    def test_what_is_no_voxel_or_range_is_refused_by_name(self):
        points = numpy.zeros((1, 3), numpy.float32)
        for voxel, box, name in (((1, 2), (0, 0, 0, 1, 1, 1), "voxel"), ("1", (0, 0, 0, 1, 1, 1), "voxel"),
                                 ((1, 1, 0), (0, 0, 0, 1, 1, 1), "voxel"), (numpy.nan, (0, 0, 0, 1, 1, 1), "voxel"),
                                 ([[1, 1, 1]], (0, 0, 0, 1, 1, 1), "voxel"), (1, (0, 0, 0, 1, 1), "range"),
                                 (1, None, "range"), (1, (0, 0, 0, 1, 1, numpy.nan), "range")):
            with self.subTest(voxel=voxel, box=box):
                with self.assertRaises(convladder.BadInput) as caught:
                    convladder.voxelize(points, voxel, box)
                self.assertEqual(caught.exception.parameter, name)

    @given(sites())
    def test_pooling_takes_the_largest_of_each_window(self, drawn):
        coords, shape = drawn
        book = convladder.rulebook(coords, shape, mode="strided", kernel=2, stride=2, batch=2)
        features = whole_numbers((len(coords), 3), 4)
        y, argmax = convladder.sparse_max_pool(features, book)
        for row, window in enumerate(book.table().T):
            numpy.testing.assert_array_equal(y[row], features[window[window >= 0]].max(0))
        numpy.testing.assert_array_equal(numpy.take_along_axis(features, argmax, 0) if len(argmax) else y, y)
        dy = whole_numbers(y.shape, 5)
        dx = convladder.sparse_max_pool_dgrad(dy, argmax, book)
        self.assertEqual(numpy.vdot(features, dx), numpy.vdot(y, dy))

    @given(sites(), st.sampled_from(["subm", "strided", "transposed", "inverse"]), st.integers(1, 9),
           st.sampled_from(["cpu", "emulated"]))
    def test_average_pooling_counts_the_sites_that_exist(self, drawn, mode, channels, where):
        coords, shape = drawn
        options = {} if mode == "subm" else dict(kernel=2, stride=3)
        book = convladder.rulebook(coords, shape, mode=mode, batch=2, **options)
        features = whole_numbers((book.inputs, channels), 4)
        right = numpy.zeros((book.outputs, channels), numpy.float32)
        for row, window in enumerate(book.table().T):
            met = features[window[window >= 0]]
            if len(met):
                right[row] = met.sum(0) / numpy.float32(len(met))
        numpy.testing.assert_array_equal(convladder.sparse_avg_pool(features, book, where=where), right)

    @given(sites(), st.sampled_from(["max", "mean"]), st.integers(1, 40), st.sampled_from(["cpu", "emulated"]))
    def test_global_pooling_is_over_the_sites_of_an_image(self, drawn, reduce, channels, where):
        coords, shape = drawn
        features = whole_numbers((len(coords), channels), 4) - 5
        right = numpy.zeros((3, channels), numpy.float32)  # image 2 has no site
        for n in set(coords[:, 0].tolist()):
            rows = features[coords[:, 0] == n].astype(numpy.float64)
            right[n] = rows.max(0) if reduce == "max" else rows.mean(0)
        y = convladder.sparse_global_pool(features, coords, shape, reduce=reduce, batch=3, where=where)
        numpy.testing.assert_array_equal(y, right)

    def test_half_precision_rounds_once(self):
        coords = numpy.array([[0, 1], [0, 2]], numpy.int32)
        book = convladder.rulebook(coords, (4,))
        features, weights = whole_numbers((2, 16), 1), whole_numbers((3, 16, 16), 2)
        y = convladder.sparse_conv(features, weights, book)
        half = convladder.sparse_conv(features, weights, book, dtype="float16")
        self.assertEqual(half.dtype, numpy.float16)
        numpy.testing.assert_array_equal(half, y.astype(numpy.float16))
        numpy.testing.assert_array_equal(convladder.sparse_conv(features, weights, book, dtype="bfloat16").shape, y.shape)


class Calls(unittest.TestCase):
    x, w = whole_numbers((1, 3, 12, 40), 1), whole_numbers((4, 3, 3, 3), 2)

    def test_every_rung_has_a_row_and_runs_somewhere(self):
        rungs = convladder.rungs()
        self.assertGreater(len(rungs), 100)
        self.assertEqual({row["ladder"] for row in rungs} & {"conv2d", "gemm", "rulebook"}, {"conv2d", "gemm", "rulebook"})
        self.assertTrue(all(row["where"] for row in rungs))

    def test_a_result_says_which_rung_it_is_of(self):
        y = convladder.conv2d(self.x, self.w, rung="direct/tiled")
        self.assertEqual((y.rung, y.where), ("cuda_optimized/conv2d/direct/tiled", "emulated"))
        self.assertGreater(y.milliseconds, 0)
        self.assertIs(type(y + 1), numpy.ndarray)

    def test_compare_runs_all_that_take_it(self):
        table = convladder.compare(convladder.conv2d, self.x, self.w, pad=1)
        ran = [row for row in table if row.status == "ran"]
        self.assertGreater(len(ran), 10)
        for row in ran:  # spectra are rounded
            self.assertLessEqual(row.max_error, 1e-3 if "/fft" in row.rung else 0, row.rung)
        self.assertTrue(all(row.reason for row in table if row.status == "declined"))
        self.assertIn("direct/tiled", str(table))
        self.assertIn("<table>", table._repr_html_())

    def test_compare_says_what_the_command_says(self):
        a, b = numpy.full((1, 200), .1, "f4"), numpy.ones((200, 4), "f4")
        table = convladder.compare(convladder.gemm, a, b)
        self.assertEqual({row.verdict for row in table if row.status == "ran"}, {"agrees"})
        self.assertEqual({row.remark for row in table}, {"", "roundings add up"})
        self.assertIn("agrees: roundings add up", str(table))
        x = numpy.copysign(numpy.full((1, 2, 16, 16), 1e38, "f4"), whole_numbers((1, 2, 16, 16), 1))
        reasons = {row.rung.rpartition("/")[2]: row.reason for row in
                   convladder.compare(convladder.conv2d, x, numpy.full((2, 2, 3, 3), 1e-3, "f4"))}
        self.assertEqual(reasons["winograd_4x4"], "these values overflow its transform")
        self.assertEqual(reasons["direct"], "")
        x = numpy.ones((1, 1, 8, 8), "f4")
        x[0, 0, 2, 3] = numpy.nan
        table = convladder.compare(convladder.conv2d, x, numpy.ones((1, 1, 3, 3), "f4"), pad=1)
        self.assertEqual({row.verdict for row in table}, {None, "agrees"})
        with self.assertRaisesRegex(convladder.BadInput, "too large"):
            convladder.compare(convladder.gemm, numpy.full((2, 9), 3e38, "f4"), numpy.ones((9, 2), "f4"))

    def test_compare_takes_every_function(self):
        for name, arguments in examples().items():
            function = getattr(convladder, name)
            if not hasattr(function, "prepare"):
                continue  # it builds a rulebook
            with self.subTest(name):
                arguments = {key: value for key, value in arguments.items() if key not in ("rung", "where")}
                table = convladder.compare(function, **arguments)
                self.assertIn("agrees", {row.verdict for row in table})
                self.assertEqual([row for row in table if row.verdict == "differs"], [])

    def test_the_stub_has_the_functions_parameters(self):
        path = pathlib.Path(convladder.__file__).parent / "__init__.pyi"
        stub = {node.name: node for node in ast.parse(path.read_text()).body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
        self.assertEqual(sorted(stub), sorted(convladder.__all__))
        for name, node in stub.items():
            function = getattr(convladder, name)
            if isinstance(node, ast.ClassDef) or name == "rungs":
                continue
            told = [each.arg for each in node.args.args + [node.args.vararg, *node.args.kwonlyargs, node.args.kwarg] if each]
            self.assertEqual(told, list(inspect.signature(function).parameters), name)

    def test_arrays_can_be_given_by_name(self):
        numpy.testing.assert_array_equal(convladder.conv2d(w=self.w, x=self.x), convladder.conv2d(self.x, self.w))
        self.assertEqual(convladder.tile_map(map="grouped", tiles_m=3, tiles_n=4).shape, (12, 6))

    def test_transforms_are_chosen_only_where_they_are_allowed(self):
        ladders = {"conv2d": (convladder.conv2d, self.x, self.w),
                   "conv2d_dgrad": (convladder.conv2d_dgrad, whole_numbers((1, 4, 10, 38), 3), self.w, self.x.shape),
                   "conv2d_wgrad": (convladder.conv2d_wgrad, self.x, whole_numbers((1, 4, 10, 38), 3), 3)}
        for ladder, (function, *arguments) in ladders.items():
            rows = {row["name"]: row for row in convladder.rungs() if row["ladder"] == ladder}
            transforms = {name for name in rows if "winograd" in name or "/fft" in name}
            self.assertEqual({name for name in rows if rows[name]["transforms"]}, transforms)
            for where in ("cpu", "emulated"):
                there = {name for name in rows if where in rows[name]["where"]}
                self.assertEqual(set(_run.candidates(ladder, where)), there - transforms)
                self.assertEqual(set(_run.candidates(ladder, where, allow_transforms=True)), there)
                call = function.prepare(*arguments)
                self.assertNotIn(_run.choose(call, None, where)[0], transforms)
                call = function.prepare(*arguments, allow_transforms=True)
                first = next(name for name in _run.candidates(ladder, where, call.problem, allow_transforms=True)
                             if _run._core.declines(ladder, name, where, call.problem) is None)
                self.assertEqual(_run.choose(call, None, where)[0], first)
        self.assertIn("winograd", convladder.conv2d(self.x, self.w, rung="winograd_complex", where="cpu").rung)

    def test_the_last_word_of_a_name_is_enough(self):
        self.assertEqual(convladder.conv2d(self.x, self.w, rung="direct", where="cpu").rung, "cpu_reference/conv2d/direct")
        self.assertEqual(len(convladder.compare(convladder.conv2d, self.x, self.w, rungs="direct/tiled")), 1)
        for name, words in (("direct", "cuda_naive/conv2d/direct"), ("direct/tild", "direct/tiled")):
            with self.assertRaisesRegex(convladder.BadInput, words):
                convladder.conv2d(self.x, self.w, rung=name)

    def test_bad_input_names_the_parameter(self):
        coords = numpy.array([[0, 1, 1], [0, 1, 1]], numpy.int32)
        cases = {
            "stride": lambda: convladder.conv2d(self.x, self.w, stride=0),
            "pad": lambda: convladder.conv2d(self.x, self.w, pad="valid"),
            "out_padding": lambda: convladder.conv2d_transpose(self.x, self.w[:3], out_padding=1),
            "length": lambda: convladder.fft(numpy.ones((2, 9), numpy.complex64), direction="inverse", input="real", length=18),
            "direction": lambda: convladder.fft(self.x[0, 0], direction="inverse"),
            "groups": lambda: convladder.conv2d(self.x, self.w, groups=0),
            "w": lambda: convladder.conv2d(self.x, self.w[:, :2]),
            "x": lambda: convladder.conv2d(self.x[0], self.w),
            "bias": lambda: convladder.conv2d(self.x, self.w, numpy.zeros(3, numpy.float32)),
            "dy": lambda: convladder.conv2d_dgrad(self.x, self.w, self.x.shape),
            "activation": lambda: convladder.conv2d(self.x, self.w, activation="tanh"),
            "rung": lambda: convladder.conv2d(self.x, self.w, rung="direct/tilde"),
            "where": lambda: convladder.conv2d(self.x, self.w, where="moon"),
            "b": lambda: convladder.gemm(self.x[0, 0], self.x[0, 0]),
            "map": lambda: convladder.tile_map("spiral", 2, 2),
            "shape": lambda: convladder.rulebook(numpy.zeros((1, 6), numpy.int32), (2,) * 5),
            "coords": lambda: convladder.rulebook(coords, (4, 4)),
            "book": lambda: convladder.sparse_conv(self.x[0, 0], self.w[0], None),
        }
        for parameter, call in cases.items():
            with self.subTest(parameter), self.assertRaises(convladder.BadInput) as caught:
                call()
            self.assertEqual(caught.exception.parameter, parameter, str(caught.exception))
            self.assertNotIn("\n", str(caught.exception))

    def test_a_rung_that_declines_says_why(self):
        with self.assertRaisesRegex(convladder.UnsupportedProblem, "depthwise|groups"):
            convladder.conv2d(self.x, self.w, rung="cuda_optimized/conv2d/depthwise/nchw")

    def test_ctrl_c_does_not_wait_for_a_rung(self):
        script = """
import signal, time, numpy, convladder
def interrupt(number, frame):
    raise KeyboardInterrupt
signal.signal(signal.SIGALRM, interrupt)
x, w = numpy.ones((1, 64, 200, 200), numpy.float32), numpy.ones((64, 64, 7, 7), numpy.float32)
begin = time.monotonic()
signal.alarm(1)
try:
    convladder.conv2d(x, w, rung="cpu_reference/conv2d/direct")
except KeyboardInterrupt:
    print("interrupted" if time.monotonic() - begin < 3 else "late")
print(convladder.gemm([[2.0]], [[3.0]])[0][0])  # others still run
"""
        begin = time.monotonic()
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "interrupted\n6.0\n", ""))
        self.assertLess(time.monotonic() - begin, 10)  # nor does the end of the program

    def test_the_module_tells_its_version_and_its_table(self):
        project = (pathlib.Path(__file__).parents[2] / "CMakeLists.txt").read_text()
        self.assertEqual(convladder.__version__, re.search(r"ConvLadder VERSION (\S+)", project).group(1))
        for word in convladder.rungs()[0]:
            self.assertIn(f"{word}: ", convladder.rungs.__doc__)

    def test_the_module_says_where_it_runs_and_why(self):
        done = subprocess.run([sys.executable, "-m", "convladder"], capture_output=True, text=True)
        version, *places = done.stdout.splitlines()
        self.assertEqual((done.returncode, done.stderr, version), (0, "", f"convladder {convladder.__version__}"))
        self.assertEqual([line.split(":")[0] for line in places], list(_run.PLACES))
        for line in places:
            self.assertRegex(line, r"^\w+: +(\d+ rungs, on .+|not here: .+)$")

    @unittest.skipUnless(sys.platform == "linux", "modules are in another format")
    def test_the_module_uses_the_cpp_library_of_the_process(self):
        self.assertIn(b"\0libstdc++.so.6\0", pathlib.Path(_run._core.__file__).read_bytes())

    def test_threads_do_not_meet(self):
        right = convladder.conv2d(self.x, self.w)
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            for y in pool.map(lambda _: convladder.conv2d(self.x, self.w, rung="direct/tiled"), range(8)):
                numpy.testing.assert_array_equal(y, right)


def in_another_process(script):
    """(exit code, output, errors) of a program in Python."""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


class OnTheHost(unittest.TestCase):
    """C++ rungs read the caller's own arrays, and write new ones."""

    x, w = whole_numbers((2, 3, 12, 40), 1), whole_numbers((4, 3, 3, 3), 2)
    RUNGS = ["cpu_reference/conv2d/" + name for name in ("direct", "im2col_gemm", "im2col_gemm_blocked")]

    def assert_right(self, x, w=w, right=None, **options):
        right = convladder.conv2d(self.x, self.w, rung="direct_tiled", **options) if right is None else right
        for rung in self.RUNGS:
            with self.subTest(rung=rung):
                numpy.testing.assert_array_equal(convladder.conv2d(x, w, rung=rung, **options), right)

    def test_inputs_are_not_copied(self):
        script = """
import resource, numpy, convladder
x, w = numpy.ones((1, 64, 1024, 1024), numpy.float32), numpy.ones((1, 64, 1, 1), numpy.float32)  # 256 MiB
convladder.conv2d(x[:, :, :8], w)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
y = convladder.conv2d(x, w, where="cpu")
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024 < 64, (y == 64).all())
"""
        self.assertEqual(in_another_process(script), (0, "True True\n", ""))

    def test_inputs_stay_as_they_are_and_may_be_read_only(self):
        x, w = self.x.copy(), self.w.copy()
        x.flags.writeable = w.flags.writeable = False
        self.assert_right(x, w)
        numpy.testing.assert_array_equal(x, self.x)
        numpy.testing.assert_array_equal(w, self.w)

    def test_arrays_may_begin_anywhere(self):
        for offset in range(1, 8):
            memory = bytearray(offset) + self.x.tobytes()
            x = numpy.frombuffer(memory, numpy.float32, offset=offset).reshape(self.x.shape)
            self.assertEqual(x.flags.aligned, offset % 4 == 0)
            with self.subTest(offset=offset):
                self.assert_right(x)

    def test_other_orders_and_types_are_converted(self):
        wide = numpy.repeat(self.x, 2, axis=3)
        for name, x in (("columns first", numpy.asfortranarray(self.x)), ("every second", wide[..., ::2]),
                        ("backwards", self.x[..., ::-1].copy()[..., ::-1]), ("float64", self.x.astype(numpy.float64)),
                        ("big-endian", self.x.astype(">f4")), ("a result", convladder.im2col(self.x, 1).reshape(self.x.shape))):
            with self.subTest(name):
                self.assert_right(x)
        right = convladder.conv2d(self.x, self.w, where="emulated", dtype="bfloat16")
        for rung in ("direct", "im2col_gemm_blocked"):
            y = convladder.conv2d(self.x, self.w, rung="cpu_reference/conv2d/" + rung, dtype="bfloat16")
            numpy.testing.assert_array_equal(y, right)

    def test_arrays_without_elements(self):
        self.assert_right(self.x[:0], right=numpy.zeros((0, 4, 10, 38)))
        product = convladder.gemm(numpy.zeros((3, 0), numpy.float32), numpy.zeros((0, 2), numpy.float32), where="cpu")
        numpy.testing.assert_array_equal(product, numpy.zeros((3, 2)))

    def test_outputs_are_new_and_the_callers(self):
        first = convladder.conv2d(self.x, self.w, where="cpu")
        right = numpy.array(first)
        second = convladder.conv2d(-self.x, self.w, where="cpu")
        self.assertFalse(numpy.shares_memory(first, second))
        numpy.testing.assert_array_equal(first, right)
        numpy.testing.assert_array_equal(second, -right)
        second[...] = 0  # it can be written

    def test_a_workspace_serves_calls_of_all_sizes(self):
        for size in (40, 7, 90, 3, 40):
            x = whole_numbers((1, 3, size, size), size)
            y = convladder.conv2d(x, self.w, pad=1, rung="cpu_reference/conv2d/im2col_gemm")
            numpy.testing.assert_array_equal(y, convladder.conv2d(x, self.w, pad=1, rung="cpu_reference/conv2d/direct"))

    def test_what_does_not_fit_is_refused(self):
        call = convladder.conv2d.prepare(self.x, self.w)
        for name, wrong in (("x", self.x[:, :2]), ("x", self.x[0]), ("x", self.x.astype(numpy.int32)),
                            ("x", self.x.astype(numpy.float64)), ("weights", self.w[:, :, :2])):
            with self.subTest(name=name, shape=wrong.shape), self.assertRaises(convladder.BadInput) as caught:
                _run._run(dataclasses.replace(call, arrays={**call.arrays, name: numpy.ascontiguousarray(wrong)}),
                          self.RUNGS[0], "cpu")
            self.assertEqual(caught.exception.parameter, name, str(caught.exception))
        with self.assertRaisesRegex(convladder.BadInput, "weights: it is missing"):
            _run._run(dataclasses.replace(call, arrays={"x": self.x}), self.RUNGS[0], "cpu")
        with self.assertRaisesRegex(convladder.UnsupportedProblem, "float32 only"):
            convladder.conv2d(self.x, self.w, dtype="float16", rung=self.RUNGS[1])

    def test_threads_do_not_meet(self):
        def run(seed):
            rung, size = self.RUNGS[1 + seed % 2], 20 + seed % 3
            x = whole_numbers((2, 16, size, size), seed)
            w = whole_numbers((40, 16, 3, 3), seed + 1)
            right = convladder.conv2d(x, w, rung="cpu_reference/conv2d/direct")
            return all(numpy.array_equal(convladder.conv2d(x, w, rung=rung), right) for _ in range(20))
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            self.assertTrue(all(pool.map(run, range(8))))

    def test_other_threads_run_meanwhile(self):
        x, w = numpy.ones((1, 32, 100, 100), numpy.float32), numpy.ones((32, 32, 3, 3), numpy.float32)
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            long = pool.submit(convladder.conv2d, x, w, rung="cpu_reference/conv2d/direct")
            steps = 0
            while not long.done():
                steps += 1
        self.assertGreater(steps, 1000)

    def test_a_child_process_can_call(self):
        script = """
import os, numpy, convladder
x, w = numpy.ones((8, 64, 28, 28), numpy.float32), numpy.ones((64, 64, 3, 3), numpy.float32)
def right():
    return bool((convladder.conv2d(x, w, where="cpu") == 64 * 9).all())
print(right(), flush=True)
child = os.fork()
if child == 0:
    os._exit(0 if right() else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), right())
"""
        self.assertEqual(in_another_process(script), (0, "True\n0 True\n", ""))

    def test_a_run_that_was_interrupted_keeps_its_arrays(self):
        script = """
import signal, time, weakref, numpy, convladder
def interrupt(number, frame):
    raise KeyboardInterrupt
signal.signal(signal.SIGALRM, interrupt)
x, w = numpy.ones((1, 64, 100, 100), numpy.float32), numpy.ones((64, 64, 5, 5), numpy.float32)
alive = weakref.ref(x)
signal.setitimer(signal.ITIMER_REAL, 0.3)
try:
    convladder.conv2d(x, w, rung="cpu_reference/conv2d/direct")
    print("not interrupted")
except KeyboardInterrupt:
    pass
del x, w
kept = alive() is not None
for _ in range(600):  # each call releases what runs have kept that have ended
    numpy.testing.assert_array_equal(convladder.gemm([[2.0]], [[3.0]], where="cpu"), [[6.0]])
    if alive() is None:
        break
    time.sleep(0.05)
print(kept, alive() is None)
"""
        self.assertEqual(in_another_process(script), (0, "True True\n", ""))


@unittest.skipUnless(importlib.util.find_spec("torch"), "PyTorch is not installed")
class Layer(unittest.TestCase):
    """examples/torch_layer.py on the host."""

    def test_its_gradients_are_pytorchs(self):
        import torch
        sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "examples"))
        import torch_layer
        x, w = (torch.tensor(whole_numbers(shape, 1)).requires_grad_() for shape in ((2, 3, 9, 8), (4, 3, 3, 3)))
        right = torch.nn.functional.conv2d(x, w, padding=1)
        found = torch_layer.Conv2d.apply(x, w, 1)
        self.assertTrue(torch.equal(found, right))
        for pair in zip(torch.autograd.grad(found.square().sum(), (x, w)), torch.autograd.grad(right.square().sum(), (x, w))):
            torch.testing.assert_close(*pair)
        wanted, learned = torch_layer.learned()
        torch.testing.assert_close(learned, wanted)


class OfTheHost:
    """NumPy's arrays in place of GPU tensors, for emulated rungs: they replace the functions of _tensors.py for
    PyTorch and others."""

    stream = 0
    capsule = staticmethod(lambda tensor: tensor)
    empty = staticmethod(numpy.empty)
    finished = staticmethod(lambda tensor, rung: tensor)


class InPlace(unittest.TestCase):
    """The code path of tensors on a GPU, which test_gpu_tensors.py tests on a GPU."""

    def emulated(self, function, *arguments, rung=None, **options):
        call = function.prepare(*arguments, **options)
        name = _run.choose(call, rung, "emulated")[0]
        outputs = _run.run_in_place(call, name, OfTheHost, "emulated")
        return [outputs[name] for name in call.outputs]

    @given(convolutions())
    def test_convolutions_are_those_of_copies(self, problem):
        x, w, bias, options = problem
        y, = self.emulated(convladder.conv2d, x, w, bias, **options)
        numpy.testing.assert_array_equal(y, convladder.conv2d(x, w, bias, **options))
        dy = whole_numbers(y.shape, 4)
        dw, db = self.emulated(convladder.conv2d_wgrad, x, dy, w.shape[2:], **options)
        numpy.testing.assert_array_equal(dw, convladder.conv2d_wgrad(x, dy, w.shape[2:], **options)[0])
        numpy.testing.assert_array_equal(db, dy.sum((0, 2, 3)))

    @given(sites(), st.sampled_from(["subm", "strided"]))
    def test_a_rulebook_keeps_its_forms_there(self, drawn, mode):
        coords, shape = drawn
        book = convladder.rulebook(coords, shape, mode=mode, batch=2, **({} if mode == "subm" else {"stride": 2, "pad": 1}))
        features, weights = whole_numbers((book.inputs, 5), 1), whole_numbers((3 ** len(shape), 5, 6), 2)
        for _ in range(2):
            y, = self.emulated(convladder.sparse_conv, features, weights, book)
            numpy.testing.assert_array_equal(y, convladder.sparse_conv(features, weights, book))
        dx, = self.emulated(convladder.sparse_dgrad, y, weights, book)
        numpy.testing.assert_array_equal(dx, convladder.sparse_dgrad(y, weights, book))

    def test_a_workspace_is_there_where_a_rung_wants_one(self):
        x, w = whole_numbers((2, 3, 9, 8), 1), whole_numbers((4, 3, 3, 3), 2)
        y, = self.emulated(convladder.conv2d, x, w, rung="cuda_naive/conv2d/im2col_gemm")
        numpy.testing.assert_array_equal(y, convladder.conv2d(x, w))

    def test_types_of_16_bits_are_the_arrays_own(self):
        a, b = (whole_numbers((24, 24), seed).astype(numpy.float16) for seed in (1, 2))
        c, = self.emulated(convladder.gemm, a, b)
        self.assertEqual(c.dtype, numpy.float16)
        numpy.testing.assert_array_equal(c, (a.astype(numpy.float32) @ b).astype(numpy.float16))

    def test_what_does_not_fit_is_refused(self):
        x, w = whole_numbers((1, 3, 6, 6), 1), whole_numbers((4, 3, 3, 3), 2)
        call = convladder.conv2d.prepare(x, w)
        for name, wrong in (("x", x.transpose(0, 1, 3, 2)), ("x", x[:, :2]), ("weights", w.astype(numpy.int32)),
                            ("weights", w.astype(numpy.float16))):
            with self.subTest(name=name, shape=wrong.shape), self.assertRaises(convladder.BadInput) as caught:
                _run.run_in_place(dataclasses.replace(call, arrays={**call.arrays, name: wrong}),
                                  "cuda_naive/conv2d/direct", OfTheHost, "emulated")
            self.assertEqual(caught.exception.parameter, name, str(caught.exception))
        with self.assertRaisesRegex(convladder.BadInput, "x = elements of 64 bits"):
            _run.run_in_place(dataclasses.replace(call, arrays={**call.arrays, "x": x.astype(numpy.float64)}),
                              "cuda_naive/conv2d/direct", OfTheHost, "emulated")


def nhwc(array):
    """The same image with its channels innermost."""
    return numpy.ascontiguousarray(array.transpose(0, 2, 3, 1))


def nchw(array):
    return array.transpose(0, 3, 1, 2)


class Layouts(unittest.TestCase):
    """Arrays in NHWC."""

    @given(convolutions(), st.sampled_from([None, "float16"]), st.sampled_from(["cpu", "emulated"]))
    def test_convolutions_and_gradients_are_those_of_nchw(self, problem, dtype, where):
        x, w, bias, options = problem
        told = dict(dtype=dtype, where=where, layout="nhwc", **options)
        y = convladder.conv2d(nhwc(x), nhwc(w), bias, **told)
        right = convladder.conv2d(x, w, bias, **options)
        self.assertEqual((y.dtype, y.where), (dtype or "float32", where))
        self.assertTrue(y.flags.c_contiguous)
        numpy.testing.assert_array_equal(nchw(y), right.astype(y.dtype))
        dy = whole_numbers(right.shape, 5)
        dx = convladder.conv2d_dgrad(nhwc(dy), nhwc(w), nhwc(x).shape, **told)
        numpy.testing.assert_array_equal(nchw(dx), convladder.conv2d_dgrad(dy, w, x.shape, **options).astype(dx.dtype))
        dw, db = convladder.conv2d_wgrad(nhwc(x), nhwc(dy), w.shape[2:], **told)
        rights = convladder.conv2d_wgrad(x, dy, w.shape[2:], **options)
        numpy.testing.assert_array_equal(nchw(dw), rights[0])
        numpy.testing.assert_array_equal(db, rights[1])

    @given(st.integers(0, 2), st.integers(1, 3), st.integers(1, 3), st.integers(1, 3), st.sampled_from(["cpu", "emulated"]))
    def test_a_transposed_convolution_is_that_of_nchw(self, N, groups, stride, dilation, where):
        x, w, bias = whole_numbers((N, 2 * groups, 4, 5), 1), whole_numbers((2 * groups, 3, 3, 2), 2), whole_numbers(3 * groups, 3)
        options = dict(stride=stride, dilation=dilation, groups=groups)
        y = convladder.conv2d_transpose(nhwc(x), nhwc(w), bias, layout="nhwc", where=where, **options)
        numpy.testing.assert_array_equal(nchw(y), convladder.conv2d_transpose(x, w, bias, **options))

    def test_rungs_for_nhwc_can_be_called(self):
        x, w = whole_numbers((2, 9, 8, 16), 1), whole_numbers((16, 3, 3, 16), 2)
        right = convladder.conv2d(nchw(x), nchw(w), pad=1)
        for rung, precision in (("implicit_gemm/mma_tf32", "tf32"), ("direct", "fp32")):
            where = "emulated" if "/" in rung else "cpu"
            y = convladder.conv2d(x, w, pad=1, rung=rung, precision=precision, layout="nhwc", where=where)
            self.assertTrue(y.rung.endswith(rung))
            numpy.testing.assert_array_equal(nchw(y), right)
        with self.assertRaisesRegex(convladder.UnsupportedProblem, "layout nchw only"):
            convladder.conv2d(x, w, rung="direct/tiled", layout="nhwc")
        table = convladder.compare(convladder.conv2d, x, w, pad=1, layout="nhwc", precision="tf32")
        ran = [row for row in table if row.status == "ran"]
        self.assertGreater(len(ran), 2)
        self.assertEqual({row.max_error for row in ran}, {0})

    def test_what_has_only_naive_rungs_is_computed_in_the_other_layout(self):
        x, w = whole_numbers((2, 128, 6, 6), 1), whole_numbers((32, 128, 5, 5), 2)
        self.assertNotIn("cuda_naive", convladder.conv2d(nhwc(x), nhwc(w), layout="nhwc", where="emulated").rung)
        call = convladder.conv2d.prepare(x, w, dtype="float16")
        self.assertIs(_run.in_best_layout(call, None, "emulated"), call)
        self.assertIn("naive", _run.choose(call, None, "emulated")[0])
        other = _run.in_other_layout(call)
        self.assertNotIn("naive", _run.choose(other, None, "emulated")[0])
        self.assertEqual((other.layout, other.moved), ("nhwc", {"x", "weights"}))
        with unittest.mock.patch.object(_run, "place", lambda *_: "gpu"), unittest.mock.patch.object(_run, "_found", {}), \
                unittest.mock.patch.object(_run, "first_that_takes", lambda call, _: "cuda_naive/conv2d/direct_16bit" if
                                           call.layout == "nchw" else "cuda_optimized/conv2d/implicit_gemm/halo_tile"):
            self.assertEqual(_run.in_best_layout(call, None, "gpu").layout, "nhwc")
            self.assertIs(_run.in_best_layout(call, "direct_16bit", "gpu"), call)
        outputs = _run._run(_run.in_memory(other), *_run.choose(other, None, "emulated"))
        y = _run.as_given(outputs, call, other)["y"]
        numpy.testing.assert_array_equal(y, convladder.conv2d(x, w).astype(numpy.float16))
        self.assertTrue(y.flags.c_contiguous)
        self.assertEqual((y.rung, y.where), (_run.choose(other, None, "emulated")[0], "emulated"))

    def test_measured_times_say_which_rung_and_which_layout(self):
        def first(shape, filters, precision, layout="nchw", **options):
            x, w = (numpy.broadcast_to(numpy.float16(0) if precision == "16" else numpy.float32(0), each) for each in (shape, filters))
            if layout == "nhwc":
                x, w = x.transpose(0, 2, 3, 1), w.transpose(0, 2, 3, 1)
            with unittest.mock.patch.object(_layouts, "floats", lambda name, array, *_: array):
                call = convladder.conv2d.prepare(x, w, layout=layout, precision="tf32" if precision == "tf32" else "fp32", **options)
            best = _run.by_measurements(call, "emulated")
            self.assertEqual({layout for layout, _ in best}, {"nchw", "nhwc"})
            return next((layout, rung.split("/", 2)[2]) for layout, rung in best if _run._core.declines(
                "conv2d", rung, "emulated", call.problem if layout == call.layout else call.other()) is None)
        many, few = ((32, 64, 56, 56), (64, 64, 3, 3)), ((1, 3, 600, 800), (3, 3, 3, 3))
        for layout in ("nchw", "nhwc"):
            self.assertEqual(first(*many, "16", layout, pad=1), ("nhwc", "implicit_gemm/halo_tile"))
            self.assertEqual(first(*few, "16", layout, pad=1), ("nchw", "direct/mma"))
            self.assertEqual(first(*many, "fp32", layout, pad=1), ("nchw", "implicit_gemm/cp_async"))
            self.assertEqual(first(*many, "tf32", layout, pad=1)[0], "nhwc")
            self.assertEqual(first((32, 256, 14, 14), (256, 1, 3, 3), "16", layout, groups=256)[0], "nhwc")

    def test_wrong_shapes_are_refused_in_the_callers_layout(self):
        x, w = whole_numbers((1, 6, 7, 4), 1), whole_numbers((5, 3, 3, 4), 2)
        dy = whole_numbers((1, 4, 5, 5), 3)
        for name, call in (("w", lambda: convladder.conv2d(x, w[..., :2], layout="nhwc")),
                           ("w", lambda: convladder.conv2d(x, nchw(w), layout="nhwc")),
                           ("x", lambda: convladder.conv2d(x[0], w, layout="nhwc")),
                           ("layout", lambda: convladder.conv2d(x, w, layout="nhcw")),
                           ("w", lambda: convladder.conv2d(x, w, layout="nchw")),
                           ("dy", lambda: convladder.conv2d_dgrad(dy, w, (1, 6, 8, 4), layout="nhwc")),
                           ("dy", lambda: convladder.conv2d_wgrad(x, dy[:, 1:], 3, layout="nhwc")),
                           ("w", lambda: convladder.conv2d_transpose(x, w, layout="nhwc"))):
            for where in ("cpu", "emulated"):
                with self.subTest(name, where=where), self.assertRaises(convladder.BadInput) as caught:
                    call()
                self.assertEqual(caught.exception.parameter, name, str(caught.exception))
        with self.assertRaisesRegex(convladder.BadInput, r"w = shape 5 x 3 x 3 x 2: the problem has 5 x 3 x 3 x 4 \(krsc\)"):
            convladder.conv2d(x, w[..., :2], layout="nhwc")


class OfTheHostsTorch(OfTheHost):
    """PyTorch's tensors on the host in place of GPU tensors."""

    @staticmethod
    def empty(shape, dtype):
        import torch
        return torch.empty(tuple(shape), dtype=getattr(torch, dtype))

    @staticmethod
    def finished(tensor, rung):
        tensor.rung, tensor.where = rung, "gpu"
        return tensor


@unittest.skipUnless(importlib.util.find_spec("torch"), "PyTorch is not installed")
class ChannelsLast(unittest.TestCase):
    """PyTorch's tensors in the memory format channels_last."""

    def tensors(self, *shapes, dtype="float32"):
        import torch
        return [torch.tensor(whole_numbers(shape, seed)).to(getattr(torch, dtype)) for seed, shape in enumerate(shapes, 1)]

    def last(self, tensor):
        import torch
        return tensor.contiguous(memory_format=torch.channels_last)

    def as_on_a_gpu(self, function, *arguments, **options):
        """The result of a call on a GPU; its rungs are emulated."""
        import torch
        there = lambda array: isinstance(array, torch.Tensor)  # noqa: E731
        with unittest.mock.patch.object(_layouts, "on_gpu", there), \
                unittest.mock.patch("convladder._arguments.on_gpu", there), \
                unittest.mock.patch("torch.cuda.current_stream", lambda *_: unittest.mock.Mock(cuda_stream=0)), \
                unittest.mock.patch("torch.cuda.is_current_stream_capturing", lambda: False):
            call = function.prepare(*arguments, **options)
            with _run.as_called(call.names, call.sizes):
                computed = _run.in_best_layout(call, None, "emulated")
            with _run.as_called(call.names, call.sizes):
                name = _run.choose(computed, None, "emulated")[0]
                outputs = _run.run_in_place(_run.in_memory(computed), name, OfTheHostsTorch, "emulated")
            outputs = _run.as_given(outputs, call, computed)
        return [outputs[name] for name in call.outputs]

    def assert_is(self, found, right, channels_last):
        import torch
        self.assertTrue(torch.equal(found, right.to(found.dtype)))
        if found.ndim == 4 and found.shape[1] > 1 and found.shape[2] * found.shape[3] > 1:
            self.assertEqual(found.is_contiguous(memory_format=torch.channels_last), channels_last)
            self.assertEqual(found.is_contiguous(), not channels_last)
        self.assertTrue(found.rung)

    def test_results_are_channels_last_where_images_are(self):
        import torch
        for dtype in ("float32", "float16", "bfloat16"):
            for groups, stride, dilation in ((1, 1, 1), (2, 2, 1), (8, 1, 2)):
                x, w, bias = self.tensors((2, 8, 11, 9), (16, 8 // groups, 3, 3), (16,), dtype=dtype)
                options = dict(stride=stride, dilation=dilation, groups=groups)
                right = torch.nn.functional.conv2d(x.float(), w.float(), bias.float(), padding=1, **options).requires_grad_()
                dy, = self.tensors(right.shape, dtype=dtype)
                double = [tensor.double().requires_grad_() for tensor in (x, w)]
                y = torch.nn.functional.conv2d(*double, padding=1, **options)
                rights = torch.autograd.grad(y, double, dy.double())
                for way in (lambda f, *arguments, **more: self.as_on_a_gpu(f, *arguments, **more),
                            lambda f, *arguments, **more: f(*arguments, **more)):
                    for image in (x, self.last(x)):
                        is_last = image is not x
                        for filters in (w, self.last(w)):
                            with self.subTest(dtype=dtype, groups=groups, is_last=is_last):
                                as_list = lambda found: list(found) if isinstance(found, (list, tuple)) else [found]  # noqa: E731
                                gradient = self.last(dy) if is_last else dy
                                y, = as_list(way(convladder.conv2d, image, filters, bias.float(), pad=1, **options))
                                self.assert_is(y, right, is_last)
                                dx, = as_list(way(convladder.conv2d_dgrad, gradient, filters, x.shape, pad=1, **options))
                                self.assert_is(dx, rights[0], is_last)
                                dw, db = way(convladder.conv2d_wgrad, image, gradient, 3, pad=1, **options)
                                self.assert_is(dw, rights[1], is_last)
                                self.assert_is(db, dy.sum((0, 2, 3)), is_last)

    def test_empty_batches_and_single_channels(self):
        import torch
        for shape in ((0, 4, 6, 5), (2, 1, 6, 5), (2, 4, 1, 1), (2, 1, 1, 1)):
            x, w = self.tensors(shape, (3, shape[1], 3, 3))
            right = torch.nn.functional.conv2d(x, w, padding=1)
            for image in (x, self.last(x)):
                for filters in (w, self.last(w)):
                    with self.subTest(shape=shape, strides=(image.stride(), filters.stride())):
                        y, = self.as_on_a_gpu(convladder.conv2d, image, filters, pad=1)
                        self.assertTrue(torch.equal(y, right))
                        dw, db = self.as_on_a_gpu(convladder.conv2d_wgrad, image, y, 3, pad=1)
                        self.assertEqual((dw.shape, db.shape), (w.shape, (3,)))
                        z = convladder.conv2d(image, filters, pad=1)
                        self.assertTrue(torch.equal(z, right))
                        self.assertEqual(convladder.conv2d_wgrad(image, z, 3, pad=1)[0].shape, w.shape)

    def test_a_transposed_convolution(self):
        import torch
        x, w, bias = self.tensors((2, 4, 5, 6), (4, 3, 3, 3), (6,))
        right = torch.nn.functional.conv_transpose2d(x, w, bias, stride=2, groups=2)
        for way in (self.as_on_a_gpu, lambda f, *arguments, **options: [f(*arguments, **options)]):
            y, = way(convladder.conv2d_transpose, self.last(x), w, bias, stride=2, groups=2)
            self.assert_is(y, right, True)

    def test_weights_are_converted_once(self):
        import torch
        x, w = self.tensors((1, 16, 6, 6), (16, 16, 3, 3), dtype="float16")
        x = self.last(x)
        first, = self.as_on_a_gpu(convladder.conv2d, x, w)
        copy = _layouts._copies[id(w)][2]
        self.as_on_a_gpu(convladder.conv2d, x, w)
        self.assertIs(_layouts._copies[id(w)][2], copy)
        w.mul_(2)
        second, = self.as_on_a_gpu(convladder.conv2d, x, w)
        self.assertTrue(bool((second == 2 * first).all()))
        w.data = w.data.clone().zero_()
        third, = self.as_on_a_gpu(convladder.conv2d, x, w)
        self.assertFalse(third.any())
        at = id(w)
        del w
        self.assertNotIn(at, _layouts._copies)
        for options in ({}, {"layout": "nchw"}):  # nor does a graph of gradients keep them
            w = torch.ones(16, 16, 3, 3, dtype=torch.float16, requires_grad=True)
            call = unittest.mock.patch.object(_run, "in_best_layout", lambda call, *_: _run.in_other_layout(call))
            with call:
                self.as_on_a_gpu(convladder.conv2d, x.contiguous(), w, **options)
            at = id(w)
            self.assertIn(at, _layouts._copies)
            del w
            self.assertNotIn(at, _layouts._copies)

    def test_what_is_neither_is_refused(self):
        import torch
        x, w, dy = self.tensors((1, 4, 8, 8), (4, 4, 3, 3), (1, 4, 6, 6))
        last = self.last
        cases = (("x", r"x.contiguous\(\)", lambda: self.as_on_a_gpu(convladder.conv2d, x.transpose(2, 3), w)),
                 ("x", r"x.contiguous\(\)", lambda: self.as_on_a_gpu(convladder.conv2d, x[..., ::2], w)),
                 ("x", r"x.contiguous\(\)", lambda: self.as_on_a_gpu(convladder.conv2d, x[:, :1].expand(1, 4, 8, 8), w)),
                 ("w", r"w.contiguous\(\)", lambda: self.as_on_a_gpu(convladder.conv2d, x, w.transpose(2, 3))),
                 ("x", "channels_last is supported without layout=", lambda: self.as_on_a_gpu(convladder.conv2d, last(x), w, layout="nchw")),
                 ("x", r"x.contiguous\(\)", lambda: self.as_on_a_gpu(convladder.conv2d, x.transpose(2, 3), w, layout="nhwc")),
                 ("dy", r"dy.contiguous\(memory_format", lambda: self.as_on_a_gpu(convladder.conv2d_wgrad, last(x), dy, 3)),
                 ("dy", r"dy.contiguous\(\)", lambda: self.as_on_a_gpu(convladder.conv2d_wgrad, x, last(dy), 3)),
                 ("dy", r"dy.contiguous\(\)", lambda: convladder.conv2d_wgrad(x, last(dy), 3)),
                 ("w", "krsc", lambda: self.as_on_a_gpu(convladder.conv2d, last(x), w[:, :2].contiguous())))
        for parameter, words, call in cases:
            with self.subTest(parameter, words=words):
                with self.assertRaisesRegex(convladder.BadInput, words) as caught:
                    call()
                self.assertEqual(caught.exception.parameter, parameter, str(caught.exception))
        self.assertTrue(torch.equal(convladder.conv2d(x.transpose(2, 3), w), convladder.conv2d(x.transpose(2, 3).contiguous(), w)))

    def test_layout_says_what_shapes_mean(self):
        import torch
        x, w = self.tensors((1, 4, 8, 9), (4, 4, 3, 3))
        right = torch.nn.functional.conv2d(x, w)
        given = [tensor.permute(0, 2, 3, 1).contiguous() for tensor in (x, w)]
        for y in (convladder.conv2d(*given, layout="nhwc"), self.as_on_a_gpu(convladder.conv2d, *given, layout="nhwc")[0]):
            self.assertTrue(y.is_contiguous())
            self.assertTrue(torch.equal(y.permute(0, 3, 1, 2), right))

    def test_imports_in_either_order(self):
        for names in ("torch, convladder", "convladder, torch"):
            script = f"import {names}; print(convladder.gemm([[2.0]], [[3.0]])[0][0])"
            done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stdout), (0, "6.0\n"), done.stderr)


def stub():
    """The annotations of every function's parameters, from __init__.pyi: function -> {parameter: annotation}."""
    path = pathlib.Path(convladder.__file__).parent / "__init__.pyi"
    functions = [node for node in ast.parse(path.read_text()).body if isinstance(node, ast.FunctionDef)]
    return {node.name: {each.arg: ast.unparse(each.annotation) for each in node.args.args + node.args.kwonlyargs}
            for node in functions if node.name not in ("compare", "rungs")}


def examples():
    """A call of every function in which every parameter has a value: function -> {parameter: value}."""
    x, w, dy = whole_numbers((2, 4, 6, 7), 1), whole_numbers((4, 2, 3, 3), 2), whole_numbers((2, 4, 6, 7), 3)
    conv = dict(pad=1, stride=1, dilation=1, groups=2, dtype="float32", precision="fp32", allow_transforms=False,
                layout="nchw")
    windows = dict(kernel=(3, 3), pad=(0, 1, 2, 3), stride=1, dilation=1)
    coords = numpy.array([[0, 0, 0], [0, 1, 3], [1, 2, 2], [1, 3, 3]], numpy.int64)
    grid = dict(coords=coords, shape=(4, 5), batch=2)
    book = convladder.rulebook(coords, (4, 5), mode="strided", kernel=2, stride=2)
    features, weights = whole_numbers((4, 3), 4), whole_numbers((4, 3, 2), 5)
    sparse = dict(book=book, dtype="float32", precision="fp32")
    y, argmax = convladder.sparse_max_pool(features, book)
    calls = {
        "conv2d": dict(x=x, w=w, bias=whole_numbers(4, 6), activation="relu", **conv),
        "conv2d_dgrad": dict(dy=dy, w=w, x_shape=x.shape, **conv),
        "conv2d_transpose": dict(x=x, w=w, bias=whole_numbers(4, 6), out_padding=0, **conv),
        "conv2d_wgrad": dict(x=x, dy=dy, kernel=3, **conv),
        "im2col": dict(x=x, **windows),
        "col2im": dict(col=convladder.im2col(x, **windows), x_shape=x.shape, **windows),
        "gemm": dict(a=x[0, 0].T, b=x[0, 0], transpose_a=True, transpose_b=True, bias=whole_numbers(6, 1), activation="relu", map="row_major",
                     dtype="float32", precision="fp32"),
        "fft": dict(x=whole_numbers((2, 4, 5, 2), 7), direction="inverse", ring="mersenne", input="real", length=8),
        "tile_map": dict(map="split_k", tiles_m=3, tiles_n=4, k_steps=5, splits=2, batch=1, blocks=4, group_rows=2),
        "rulebook": dict(**grid, mode="transposed", kernel=3, stride=2, pad=1, dilation=1, out_padding=1),
        "sparse_conv": dict(features=features, weights=weights, bias=whole_numbers(2, 8), activation="relu", **sparse),
        "sparse_dgrad": dict(dy=whole_numbers((book.outputs, 2), 9), weights=weights, **sparse),
        "sparse_wgrad": dict(features=features, dy=whole_numbers((book.outputs, 2), 9), **sparse),
        "sparse_max_pool": dict(features=features, book=book),
        "sparse_max_pool_dgrad": dict(dy=numpy.asarray(y), argmax=numpy.asarray(argmax, numpy.uint64), book=book),
        "sparse_avg_pool": dict(features=features, book=book),
        "sparse_global_pool": dict(features=features, reduce="mean", **grid),
        "sparse_to_dense": dict(features=features, **grid),
        "voxelize": dict(points=whole_numbers((9, 4), 1), voxel=2, range=(-8, -8, -8, 8, 8, 8))}
    return {name: dict(**call, rung=None, where="cpu") for name, call in calls.items()}


# For index arrays: one more than each column's largest element, and whether an element may be repeated.
EXTENTS = {"coords": (2, 4, 5), "argmax": (4, 4, 4)}
NO_NUMBERS = (None, "2", 1.5, float("nan"), float("inf"), True, 2**31, -2**31, 2**40, -2**70, 1j, object(), b"1", {1},
              numpy.float32(1))


def wrong_arrays(right):
    """Values that are not an array of floats with as many axes as `right`."""
    beyond = right.astype(numpy.float64)
    beyond.flat[-1] = 1e300
    return (None, "array", 3.0, [[1.0], [1.0, 2.0]], right[None][None], right.astype(complex), right.astype(numpy.int32),
            right > 0, right.astype(object), right.astype(str), numpy.ma.masked_equal(right, 0), numpy.ma.masked_array(right),
            beyond)


def wrong_indices(right, extents):
    """Arrays with the shape of `right` with an element that is not a valid index, or with another type."""
    for row in range(len(right)):
        for column, extent in enumerate(extents):
            for value in (-1, -2**31, -2**40, extent, 10**9, 2**31 - 1, 2**31, 2**32 + 1, 2**63 - 1):
                wrong = right.astype(numpy.int64)
                wrong[row, column] = value
                yield wrong
    top = right.astype(numpy.uint64)
    top[0, -1] = 2**64 - 1
    lost = right.astype(numpy.float64)
    lost[0, -1] = numpy.nan
    yield from (top, lost, right.astype(numpy.float32), right > 0, right.astype(object), right.astype(str), right.astype(complex),
                numpy.ma.masked_equal(right, 0), right[None], right[:, 0], None, "indices", 3, [[1, 2], [1]])


def wrong_values(name, annotation, right):
    """Values that a parameter with that annotation must reject. @param right its value in the example"""
    optional = annotation.startswith("Optional[")
    kind = annotation[len("Optional["):-1] if optional else annotation
    if kind == "Indices":
        values = list(wrong_indices(right, EXTENTS[name]))
        if name == "coords":
            values += [numpy.concatenate([right[:-1], right[first:first + 1]]) for first in range(len(right) - 1)]
    elif kind == "Array":
        values = wrong_arrays(right)
    elif kind == "int":
        values = (*NO_NUMBERS, [1, 2], numpy.array([1, 2]), -1)
    elif kind in ("Number", "Pad"):
        values = (*NO_NUMBERS, "valid", "Same", [1] * 7, [], [1, None], [1, 2.5], [[1, 2], [1]], [[1, 2], [3, 4]],
                  numpy.ones((2, 2), int), -1, [1, 2**31])
    elif kind == "Sequence[int]":
        values = (*NO_NUMBERS, 3, [1] * 7, [], [None] * len(right), [1.5, *right[1:]], [-1, *right[1:]], [2**31, *right[1:]],
                  [[1, 2], [1]], "12")
    elif kind == "Sequence[float]" or kind == "Union[float, Sequence[float]]":
        several = list(right) if kind == "Sequence[float]" else [right] * 3
        values = (None, "2", float("nan"), float("-inf"), True, 1e300, 1j, object(), -1, 0, [1, 2], [1] * 7, [],
                  ["1", *several[1:]], [float("nan"), *several[1:]], [10**400, *several[1:]], [None, *several[1:]])
    elif kind == "bool":
        values = (None, 1, "yes", numpy.zeros(2))
    elif kind == "Rulebook":
        values = (None, 3, "book", right.pairs)
    elif kind == "Any":  # a type of elements
        values = (3, "float99", numpy.int32, ["float32"], b"float32")
    elif kind == "str" or kind == "Where" or kind in ("Precision", "Layout") or kind.startswith("Literal["):
        values = (3, "nonsense", "", b"fp32", ["fp32"], object(), "\ud800", "a\0b", numpy.zeros(2))
    else:
        raise AssertionError(f"{name}: {annotation}: what must not be passed there?")
    return [value for value in (None, *values) if value is not None or not (optional or kind == "Any")]


class WrongValues(unittest.TestCase):
    """Every parameter of every function, with values that it must reject. The stub lists the parameters and their
    types, so that a new one fails here until it has an example."""

    def calls(self, function, in_place):
        """The ways to call it, by name."""
        ways = {where: lambda where=where, **options: function(**{**options, "where": where}) for where in ("cpu", "emulated")}
        if in_place:
            def emulated(rung, where, **options):
                call = function.prepare(**options)
                rungs = [row["name"] for row in _run._table() if row["ladder"] == call.ladder and "emulated" in row["where"]]
                with _run.as_called(call.names, call.sizes):
                    return _run.run_in_place(call, rungs[0], OfTheHost, "emulated")
            ways["in place"] = emulated
        return ways

    def assert_refused(self, call, options, name, wrong):
        with self.assertRaises(convladder.BadInput) as caught:
            call(**{**options, name: wrong})
        self.assertEqual(caught.exception.parameter, name, str(caught.exception))
        self.assertNotIn("\n", str(caught.exception))

    def test_examples_have_all_parameters_and_are_right(self):
        self.assertEqual(sorted(stub()), sorted(examples()))
        for name, options in examples().items():
            self.assertEqual(set(stub()[name]), set(options), name)
            for call in self.calls(getattr(convladder, name), in_place=False).values():
                call(**options)

    def test_wrong_values_are_refused_by_their_parameters_name(self):
        for function, options in examples().items():
            for name, annotation in stub()[function].items():
                for wrong in wrong_values(name, annotation, options[name]):
                    with self.subTest(function=function, parameter=name, wrong=repr(wrong)):
                        self.assert_refused(getattr(convladder, function), options, name, wrong)

    def test_wrong_indices_are_refused_wherever_a_rung_runs(self):
        met = set()
        for function, options in examples().items():
            for name, annotation in stub()[function].items():
                if annotation != "Indices":
                    continue
                met.add(name)
                for way, call in self.calls(getattr(convladder, function), in_place=function != "rulebook").items():
                    for wrong in wrong_values(name, annotation, options[name]):
                        with self.subTest(function=function, parameter=name, way=way, wrong=repr(wrong)):
                            self.assert_refused(call, options, name, wrong)
        self.assertEqual(met, {"coords", "argmax"})

    def test_the_message_names_row_axis_value_and_limit(self):
        ones = numpy.ones((1, 1), numpy.float32)
        for coords, words in (([[0, 1000000, 0]], "row 0 (0,1000000,0), where axis 0 must be from 0 to 3 and is 1000000"),
                              ([[0, 1, 4]], "row 0 (0,1,4), where axis 1 must be from 0 to 3 and is 4"),
                              ([[0, 2**32 + 1, 1]], "coords = 4294967297: coords[0, 1] does not fit int32")):
            for call in (lambda coords: convladder.sparse_to_dense(ones, coords, (4, 4)),
                         lambda coords: convladder.rulebook(coords, (4, 4))):
                with self.assertRaises(convladder.BadInput) as caught:
                    call(numpy.array(coords))
                self.assertIn(words, str(caught.exception))
        options = examples()["sparse_max_pool_dgrad"]
        for value, words in ((77, "argmax = 77: argmax[m=1, c=2] must be an input row, 0 to 3"),
                             (0, "argmax[m=1, c=2] must be one of the input rows of its output row")):
            argmax = options["argmax"].copy()
            argmax[1, 2] = value
            with self.assertRaises(convladder.BadInput) as caught:
                convladder.sparse_max_pool_dgrad(**{**options, "argmax": argmax})
            self.assertIn(words, str(caught.exception))

    def test_compare_refuses_them_as_well(self):
        x, w = whole_numbers((1, 2, 4, 4), 1), whole_numbers((2, 2, 3, 3), 2)
        for name, wrong in (("where", 3), ("where", ["cpu", 3]), ("where", "moon"), ("rungs", 3), ("rungs", ["nonsense"]),
                            ("pad", 2**40), ("allow_transforms", 3)):
            with self.subTest(name=name, wrong=wrong):
                self.assert_refused(lambda **options: convladder.compare(convladder.conv2d, x, w, **options), {}, name, wrong)
        for wrong in (w[:, :1], w.astype(int)):
            self.assert_refused(lambda w: convladder.compare(convladder.conv2d, x, w), {}, "w", wrong)
        for wrong in (None, len):
            with self.assertRaises(convladder.BadInput) as caught:
                convladder.compare(wrong, x, w)
            self.assertEqual(caught.exception.parameter, "function")

    def test_sizes_that_do_not_fit_are_refused_by_the_array_they_are_of(self):
        x, w = whole_numbers((1, 2, 4, 5), 1), whole_numbers((2, 2, 3, 3), 2)
        book = examples()["sparse_conv"]["book"]
        features = numpy.zeros((4, 0), numpy.float32)
        for parameter, call in (
                ("w", lambda: convladder.conv2d(x[:, :, :2], w)), ("w", lambda: convladder.conv2d(x, w[:, :, :0])),
                ("w", lambda: convladder.conv2d(x, w[:0])), ("x", lambda: convladder.conv2d(x[:, :0], w)),
                ("x", lambda: convladder.conv2d(x[:, :, :, :0], w)), ("pad", lambda: convladder.conv2d(x, w, pad=2**31 - 1)),
                ("x_shape", lambda: convladder.conv2d_dgrad(x, w, (1, 2, 2, 9))),
                ("x_shape", lambda: convladder.conv2d_dgrad(x, w, (1, 2, 0, 9))),
                ("kernel", lambda: convladder.conv2d_wgrad(x, x, 9)), ("kernel", lambda: convladder.conv2d_wgrad(x, x, 0)),
                ("dy", lambda: convladder.conv2d_wgrad(x, x[:, :0], 3)), ("dy", lambda: convladder.conv2d_wgrad(x, x, 3)),
                ("kernel", lambda: convladder.im2col(x, 9)), ("x", lambda: convladder.im2col(x[:, :0], 2)),
                ("x", lambda: convladder.im2col(x[:, :, :0], 2)), ("x_shape", lambda: convladder.col2im(x[0], (1, 2, 0), 2)),
                ("x_shape", lambda: convladder.conv2d_dgrad(x, w, (2**31 - 1,) * 4)),
                ("x_shape", lambda: convladder.col2im(x[0], (2**31 - 1,) * 4, 2)),
                ("w", lambda: convladder.conv2d_dgrad(x, w[:, :, :, :0], (1, 2, 6, 7))),
                ("pad", lambda: convladder.im2col(x, 2, pad=2**31 - 1)), ("a", lambda: convladder.gemm(x[0, 0, :0], x[0, 0].T)),
                ("b", lambda: convladder.gemm(x[0], x[0, 0].T)), ("b", lambda: convladder.gemm(x[0, 0], x[0, 0].T, transpose_b=True)),
                ("a", lambda: convladder.gemm(x[0, :0], x[0, :0], transpose_b=True)),
                ("w", lambda: convladder.conv2d_transpose(x, w[:1])), ("x", lambda: convladder.conv2d_transpose(x[:, :0], w[:0])),
                ("w", lambda: convladder.conv2d_transpose(x, w[:, :0])), ("x", lambda: convladder.conv2d_transpose(x[:, :, :0], w)),
                ("groups", lambda: convladder.conv2d_transpose(x, w, groups=2**31 - 1)),
                ("pad", lambda: convladder.conv2d_transpose(x, w, pad=9)),
                ("pad", lambda: convladder.rulebook(numpy.zeros((1, 3), int), (4, 4), mode="strided", pad="same")),
                ("pad", lambda: convladder.rulebook(numpy.zeros((1, 3), int), (4, 4), mode="strided", pad=(0, 1, -1, 0))),
                ("b", lambda: convladder.gemm(x[0, 0], x[0, 0].T[:, :0])), ("x", lambda: convladder.fft(x[0, :, :0])),
                ("x", lambda: convladder.fft(x[0], ring="mersenne", input="real")),
                ("features", lambda: convladder.sparse_conv(features, whole_numbers((4, 0, 2), 1), book)),
                ("weights", lambda: convladder.sparse_conv(whole_numbers((4, 3), 1), whole_numbers((4, 3, 0), 1), book)),
                ("weights", lambda: convladder.sparse_dgrad(whole_numbers((2, 3), 1), whole_numbers((4, 0, 3), 1), book)),
                ("dy", lambda: convladder.sparse_wgrad(whole_numbers((4, 3), 1), whole_numbers((2, 0), 1), book)),
                ("features", lambda: convladder.sparse_max_pool(features, book)),
                ("features", lambda: convladder.sparse_avg_pool(features, book)),
                ("points", lambda: convladder.voxelize(x[0, 0, :, :2], 1, (0, 0, 0, 1, 1, 1))),
                ("voxel", lambda: convladder.voxelize(x[0, 0, :, :3], 1e-7, (0, 0, 0, 1, 1, 1))),
                ("tiles_m", lambda: convladder.tile_map("row_major", 2**30, 2**30)),
                ("shape", lambda: convladder.rulebook(numpy.zeros((1, 5), int), (2**31 - 1,) * 4)),
                ("coords", lambda: convladder.sparse_to_dense(x[0, 0, :1], numpy.array([[2**31 - 1, 0]]), (4,))),
                ("coords", lambda: convladder.sparse_to_dense(x[0, 0, :1], numpy.array([[10**9, 0]]), (10**6,)))):
            with self.subTest(parameter), self.assertRaises(convladder.BadInput) as caught:
                call()
            self.assertEqual(caught.exception.parameter, parameter, str(caught.exception))

    def test_whole_numbers_of_other_types_are_taken(self):
        x, w = whole_numbers((1, 2, 6, 6), 1), whole_numbers((2, 2, 3, 3), 2)
        right = convladder.conv2d(x, w, pad=1)
        for one in (numpy.int8(1), numpy.uint64(1), numpy.array(1), [numpy.int16(1), 1], numpy.array([1, 1]), (1, 1, 1, 1)):
            numpy.testing.assert_array_equal(convladder.conv2d(x, w, pad=one), right)
        coords, features = numpy.array([[0, 1, 3], [1, 0, 2]]), whole_numbers((2, 3), 1)
        right = convladder.sparse_to_dense(features, coords, (4, 4))
        for dtype in "bBhHiIlLqQ":
            numpy.testing.assert_array_equal(convladder.sparse_to_dense(features, coords.astype(dtype), (4, 4)), right)
            big_endian = coords.astype(numpy.dtype(dtype).newbyteorder(">"))
            numpy.testing.assert_array_equal(convladder.sparse_to_dense(features, big_endian, [numpy.int8(4), 4]), right)

    @given(st.data(), st.lists(st.integers(1, 4), min_size=1, max_size=4), st.integers(0, 6), st.sampled_from("bhilq"),
           st.sampled_from(["cpu", "emulated", "in place"]))
    def test_sites_are_taken_where_they_are_inside_and_distinct(self, data, shape, sites, dtype, way):
        extents = (2, *shape)
        most = data.draw(st.sampled_from([0, 0, 0, 1, 100]))
        rows = [[data.draw(st.integers(-most, extent - 1 + most)) for extent in extents] for _ in range(sites)]
        coords, features = numpy.array(rows, dtype).reshape(sites, len(extents)), whole_numbers((sites, 2), 1)
        right = numpy.zeros((2, 2, *shape), numpy.float32)
        options = dict(features=features, coords=coords, shape=shape, batch=2, rung=None, where="cpu")
        call = self.calls(convladder.sparse_to_dense, in_place=True)[way]
        if (coords < 0).any() or (coords >= extents).any() or len(set(map(tuple, rows))) < sites:
            self.assert_refused(call, options, "coords", coords)
            self.assert_refused(convladder.rulebook, dict(shape=shape, batch=2), "coords", coords)
        else:
            for (n, *at), row in zip(rows, features):
                right[(n, slice(None), *at)] = row
            convladder.rulebook(coords, shape, batch=2)
            if way == "in place":  # the kernels there fill their output first, which requires CUDA's own memory
                _run._require_valid_values(convladder.sparse_to_dense.prepare(features, coords, shape, batch=2))
            else:
                numpy.testing.assert_array_equal(call(**options), right)

    @given(st.data(), sites(), st.sampled_from(["subm", "strided", "inverse"]), st.sampled_from(["cpu", "emulated", "in place"]))
    def test_winners_are_taken_where_their_output_meets_them(self, data, drawn, mode, way):
        coords, shape = drawn
        book = convladder.rulebook(coords, shape, mode=mode, kernel=3, batch=2, **({} if mode == "subm" else {"stride": 4}))
        argmax = numpy.full((book.outputs, 2), -1, numpy.int32)
        for row, met in enumerate(book.table().T):
            for channel in range(2):
                argmax[row, channel] = data.draw(st.sampled_from(sorted(met[met >= 0]) or [-1]))
        if argmax.size and data.draw(st.booleans()):
            argmax.flat[data.draw(st.integers(0, argmax.size - 1))] = data.draw(st.integers(-2, book.inputs + 1))
        dy = whole_numbers(argmax.shape, 3)
        options = dict(dy=dy, argmax=argmax, book=book, rung=None, where="cpu")
        call = self.calls(convladder.sparse_max_pool_dgrad, in_place=True)[way]
        table = book.table()
        if all(winner in (set(table[:, row]) - {-1} or {-1}) for (row, _), winner in numpy.ndenumerate(argmax)):
            right = numpy.zeros((book.inputs, 2), numpy.float32)
            for (row, channel), winner in numpy.ndenumerate(argmax):
                if winner >= 0:
                    right[winner, channel] += dy[row, channel]
            if way == "in place":  # as above
                _run._require_valid_values(convladder.sparse_max_pool_dgrad.prepare(dy, argmax, book))
            else:
                numpy.testing.assert_array_equal(call(**options), right)
        else:
            self.assert_refused(call, options, "argmax", argmax)

    @given(st.lists(st.one_of(st.floats(width=32), st.integers(-2**24, 2**24).map(float),
                              st.sampled_from([0.5, 2.0**24, -2.0**31, 2.0**33, 1e30])), min_size=8, max_size=8),
           st.sampled_from(["cpu", "emulated", "in place"]))
    def test_the_ring_has_whole_numbers_alone(self, numbers, way):
        x = numpy.array(numbers, numpy.float32).reshape(1, 4, 2)
        options = dict(x=x, ring="mersenne", rung=None, where="cpu")
        call = self.calls(convladder.fft, in_place=True)[way]
        if all(abs(number) <= 2**24 and number == int(number) for number in x.flat):
            found = call(**options)
            found = found["y"] if way == "in place" else found
            rows = convladder.compare(convladder.fft, x, ring="mersenne")
            self.assertEqual({row.max_error for row in rows if row.status == "ran"}, {0})
            re, im = x[0].astype(int).sum(0) % (2**17 - 1)  # the frequency 0
            self.assertEqual(found[0, 0].tolist(), [re, im])
        else:
            self.assert_refused(call, options, "x", x)

    @given(st.floats(width=32), st.sampled_from(["float16", "bfloat16"]), st.sampled_from("ab"))
    def test_numbers_must_fit_the_type(self, number, dtype, name):
        factors = {"a": numpy.ones((1, 1), numpy.float32), "b": numpy.ones((1, 1), numpy.float32)}
        factors[name][0, 0] = number
        with numpy.errstate(over="ignore"):
            beyond = numpy.isinf(numpy.float16(number)) if dtype == "float16" else abs(number) >= 2.0**128 - 2.0**119
        if beyond and numpy.isfinite(number):
            self.assert_refused(lambda **options: convladder.gemm(dtype=dtype, **options), factors, name, factors[name])
        else:
            c = convladder.gemm(dtype=dtype, **factors)
            numpy.testing.assert_array_equal(numpy.isfinite(c), numpy.isfinite(number))

    @given(st.one_of(st.integers(), st.floats(), st.text(max_size=3), st.none(), st.booleans(), st.binary(max_size=3),
                     st.lists(st.one_of(st.integers(-3, 2**33), st.floats(), st.none()), max_size=5), st.complex_numbers()))
    def test_numbers_of_any_kind_are_taken_or_refused(self, value):
        x, w = numpy.zeros((0, 1, 3, 3), numpy.float32), numpy.ones((1, 1, 1, 1), numpy.float32)
        numbers = value if isinstance(value, list) and len(value) in (2, 4) else [value]
        if not all(type(number) is int and 0 <= number < 2**30 for number in numbers):
            self.assert_refused(convladder.conv2d, dict(x=x, w=w), "pad", value)
        elif max(numbers) < 2**15:
            self.assertEqual(len(convladder.conv2d(x, w, pad=value)), 0)
        else:  # NumPy cannot create an array of this size, even if it is empty
            try:
                self.assertEqual(len(convladder.conv2d(x, w, pad=value)), 0)
            except convladder.BadInput as error:
                self.assertEqual(error.parameter, "memory")


if __name__ == "__main__":
    unittest.main()
