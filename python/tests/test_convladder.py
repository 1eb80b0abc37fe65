#!/usr/bin/env python3
"""The module convladder beside NumPy and SciPy, on problems that Hypothesis draws.

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

import convladder
import numpy
import scipy.signal
from convladder import _run
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

settings.register_profile("suite", max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
settings.load_profile("suite")


def whole_numbers(shape, seed, largest=8):
    """Small whole numbers as float32, so that all sums are exact, in any order."""
    return numpy.random.default_rng(seed).integers(-largest, largest + 1, shape).astype(numpy.float32)


def dilated(w, dilation):
    """The filters with zeros between their taps."""
    (dh, dw), (K, C, R, S) = dilation, w.shape
    wide = numpy.zeros((K, C, (R - 1) * dh + 1, (S - 1) * dw + 1), w.dtype)
    wide[:, :, ::dh, ::dw] = w
    return wide


def scipy_conv2d(x, w, bias, pad, stride, dilation, groups, relu):
    """The same by scipy.signal.correlate."""
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
    """(x, w, bias, options) of problems that are valid."""
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
        product = numpy.vdot(y, dy)  # exact: whole numbers
        self.assertEqual(numpy.vdot(x, dx), product)
        self.assertEqual(numpy.vdot(w, dw), product)
        numpy.testing.assert_array_equal(db, dy.sum((0, 2, 3)))
        short = convladder.conv2d_dgrad(dy, w, x.shape, dtype="bfloat16", where=where, **options)
        numpy.testing.assert_allclose(short, dx, rtol=2**-8)
        for long, right in zip(convladder.conv2d_wgrad(x, dy, w.shape[2:], dtype="bfloat16", where=where, **options), (dw, db)):
            numpy.testing.assert_array_equal(long, right)

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
        rung = "cpu_reference/fft/dft" if where == "cpu" else "cuda_naive/fft/dft"  # which take any length
        y = convladder.fft(parts, direction=direction, rung=rung, where=where)
        right = numpy.fft.ifft(lines) * L if inverse else numpy.fft.fft(lines)
        numpy.testing.assert_allclose(y.view("complex64")[..., 0], right, atol=1e-5 * L)

    @given(st.integers(0, 5), st.sampled_from([(1,), (8,), (31,), (1, 4), (4, 1), (6, 5), (8, 16)]),
           st.sampled_from(["cpu", "emulated"]))
    def test_fft_of_planes_and_of_real_points_is_numpys(self, N, lengths, where):
        axes = range(1, 1 + len(lengths))
        rung = "cpu_reference/fft/dft" if where == "cpu" else "cuda_naive/fft/dft"  # which take any length
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
        with self.assertRaisesRegex(convladder.BadInput, "direction = inverse: of real input"):
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
        y = convladder.conv2d(self.x, self.w, rung="direct_tiled")
        self.assertEqual((y.rung, y.where), ("cuda_optimized/conv2d/direct_tiled", "emulated"))
        self.assertGreater(y.milliseconds, 0)
        self.assertIs(type(y + 1), numpy.ndarray)

    def test_compare_runs_all_that_take_it(self):
        table = convladder.compare(convladder.conv2d, self.x, self.w, pad=1)
        ran = [row for row in table if row.status == "ran"]
        self.assertGreater(len(ran), 10)
        for row in ran:  # spectra are rounded
            self.assertLessEqual(row.max_error, 1e-3 if "/fft" in row.rung else 0, row.rung)
        self.assertTrue(all(row.reason for row in table if row.status == "declined"))
        self.assertIn("direct_tiled", str(table))
        self.assertIn("<table>", table._repr_html_())

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

    def test_the_cpus_choice_does_not_save_multiplications(self):
        self.assertNotIn("winograd", convladder.conv2d(self.x, self.w, where="cpu").rung)

    def test_the_last_word_of_a_name_is_enough(self):
        self.assertEqual(convladder.conv2d(self.x, self.w, rung="direct", where="cpu").rung, "cpu_reference/conv2d/direct")
        self.assertEqual(len(convladder.compare(convladder.conv2d, self.x, self.w, rungs="direct_tiled")), 1)
        for name, words in (("direct", "cuda_naive/conv2d/direct"), ("direct_tild", "direct_tiled")):
            with self.assertRaisesRegex(convladder.BadInput, words):
                convladder.conv2d(self.x, self.w, rung=name)

    def test_bad_input_names_the_parameter(self):
        coords = numpy.array([[0, 1, 1], [0, 1, 1]], numpy.int32)
        cases = {
            "stride": lambda: convladder.conv2d(self.x, self.w, stride=0),
            "pad": lambda: convladder.conv2d(self.x, self.w, pad="same"),
            "groups": lambda: convladder.conv2d(self.x, self.w, groups=0),
            "w": lambda: convladder.conv2d(self.x, self.w[:, :2]),
            "x": lambda: convladder.conv2d(self.x[0], self.w),
            "bias": lambda: convladder.conv2d(self.x, self.w, numpy.zeros(3, numpy.float32)),
            "dy": lambda: convladder.conv2d_dgrad(self.x, self.w, self.x.shape),
            "activation": lambda: convladder.conv2d(self.x, self.w, activation="tanh"),
            "rung": lambda: convladder.conv2d(self.x, self.w, rung="direct_tilde"),
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
            convladder.conv2d(self.x, self.w, rung="cuda_optimized/conv2d/depthwise")

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

    def test_threads_do_not_meet(self):
        right = convladder.conv2d(self.x, self.w)
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            for y in pool.map(lambda _: convladder.conv2d(self.x, self.w, rung="direct_tiled"), range(8)):
                numpy.testing.assert_array_equal(y, right)


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
    """NumPy's arrays in the place of a GPU's tensors, for emulated rungs: what _tensors.py has for PyTorch and others."""

    stream = 0
    capsule = staticmethod(lambda tensor: tensor)
    empty = staticmethod(numpy.empty)
    finished = staticmethod(lambda tensor, rung: tensor)


class InPlace(unittest.TestCase):
    """The way that tensors on a GPU go, which is tried on one by test_gpu_tensors.py."""

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


if __name__ == "__main__":
    unittest.main()
