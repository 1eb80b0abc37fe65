#!/usr/bin/env python3
"""Tests tensors of PyTorch, CuPy and JAX on a GPU, computed in place, against PyTorch's own convolutions and
gradients.

    ./ladder check python-gpu        builds the module with nvcc, and runs this

It needs a GPU, a module built with CUDA, and PyTorch, and reports what it skips; CuPy and JAX are tested if they
are installed. Data are small integers, so an error is 1 or more. Sums are exact, except with Winograd or Fourier
transforms, which round; the expected values are computed in double precision.

"""
import importlib.util
import os
import pathlib
import sys
import unittest

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # else JAX takes most of the GPU's memory

import convladder  # noqa: E402
import numpy  # noqa: E402

if importlib.util.find_spec("torch"):
    import torch
    import torch.nn.functional as F
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "examples"))
    import torch_layer


def why_not():
    """The reason why nothing can be tested; None if tests can run."""
    if not importlib.util.find_spec("torch"):
        return "PyTorch is not installed"
    if not torch.cuda.is_available():
        return "no GPU"
    if not any("gpu" in row["where"] for row in convladder.rungs()):
        return "this build of the module has no rungs for GPUs (./ladder check python-gpu makes one)"
    return None


def setUpModule():
    if why := why_not():
        raise unittest.SkipTest(why)
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False


def whole_numbers(*shape, seed=0, dtype=None):
    """Small integers on the GPU, after synchronisation."""
    generator = torch.Generator().manual_seed(seed)
    made = torch.randint(-4, 5, shape, generator=generator).to("cuda", dtype or torch.float32)
    torch.cuda.synchronize()
    return made


class PyTorch(unittest.TestCase):
    def assert_equal(self, found, right, within=1e-3):
        self.assertEqual(found.shape, right.shape)
        self.assertLessEqual(float((found.detach() - right.detach()).abs().max()), within)

    def test_convolutions_and_gradients_are_pytorchs(self):
        for stride, dilation, groups in ((1, 1, 1), (2, 1, 1), (1, 2, 2), (2, 1, 4)):
            with self.subTest(stride=stride, dilation=dilation, groups=groups):
                x = whole_numbers(2, 8, 29, 31).requires_grad_()
                w = whole_numbers(12, 8 // groups, 3, 3, seed=1).requires_grad_()
                bias = whole_numbers(12, seed=2).requires_grad_()
                options = dict(stride=stride, dilation=dilation, groups=groups)
                right = F.conv2d(x.double(), w.double(), bias.double(), padding=1, **options)
                y = convladder.conv2d(x, w, bias, pad=1, **options)
                self.assert_equal(y, right)
                self.assertEqual((y.where, y.device.type), ("gpu", "cuda"))
                dy = whole_numbers(*right.shape, seed=3)
                dx, dw, db = torch.autograd.grad(right, (x, w, bias), dy.double())
                self.assert_equal(convladder.conv2d_dgrad(dy, w, x.shape, pad=1, **options), dx)
                found = convladder.conv2d_wgrad(x, dy, (3, 3), pad=1, **options)
                self.assert_equal(found[0], dw)
                self.assert_equal(found[1], db)

    def test_every_rung_of_the_gpu_does_so(self):
        x, w = whole_numbers(2, 8, 29, 31), whole_numbers(12, 8, 3, 3, seed=1)
        right = F.conv2d(x.double(), w.double(), padding=1)
        ran = []
        for row in convladder.rungs():
            if row["ladder"] != "conv2d" or "gpu" not in row["where"]:
                continue
            try:
                y = convladder.conv2d(x, w, pad=1, rung=row["name"])
            except convladder.UnsupportedProblem:
                continue
            ran.append(row["name"])
            with self.subTest(row["name"]):
                self.assert_equal(y, right, 1e-3 if "winograd" in row["name"] or "fft" in row["name"] else 0)
        self.assertGreater(len(ran), 10)

    def test_a_layer_has_pytorchs_gradients_and_learns(self):
        x, w = whole_numbers(2, 8, 16, 16).requires_grad_(), whole_numbers(8, 8, 3, 3, seed=1).requires_grad_()
        right = torch.autograd.grad(F.conv2d(x.double(), w.double(), padding=1).sum(), (x, w))
        for found, gradient in zip(torch.autograd.grad(torch_layer.Conv2d.apply(x, w, 1).sum(), (x, w)), right):
            self.assert_equal(found, gradient)
        right, found = torch_layer.learned(device="cuda")
        self.assertLess(float((found - right).abs().max()), 1e-3)

    def test_16_bits_are_the_tensors_own(self):
        for dtype in (torch.float16, torch.bfloat16):
            a, b = whole_numbers(200, 64, dtype=dtype), whole_numbers(64, 136, seed=1, dtype=dtype)
            c = convladder.gemm(a, b)
            self.assertEqual(c.dtype, dtype)
            self.assertTrue(torch.equal(c, (a.double() @ b.double()).to(dtype)))

    def test_it_runs_in_the_current_stream_and_does_not_wait(self):
        a, b = whole_numbers(512, 512), whole_numbers(512, 512, seed=1)
        right = a.double() @ b.double()
        convladder.gemm(a, b)  # loads the kernel, which waits
        stream = torch.cuda.Stream()
        torch.cuda.synchronize()
        with torch.cuda.stream(stream):
            late = torch.zeros_like(a)
            torch.cuda._sleep(400_000_000)  # some 200 ms: a call that is not ordered in the stream would read zeros
            late.copy_(a)
            c = convladder.gemm(late, b)
            self.assertFalse(stream.query(), "the call returned after all work was done")
        stream.synchronize()
        self.assert_equal(c, right, 0)

    def test_nothing_is_copied(self):
        x = whole_numbers(16, 64, 128, 128)
        w = whole_numbers(64, 64, 1, 1, seed=1)
        convladder.conv2d(x, w, rung="cuda_naive/conv2d/direct")
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        y = convladder.conv2d(x, w, rung="cuda_naive/conv2d/direct")
        self.assertLess(torch.cuda.max_memory_allocated() - before, 1.5 * y.nbytes)

    def test_sparse_layers_over_a_rulebook(self):
        cells = torch.randperm(2 * 20 * 20 * 20, generator=torch.Generator().manual_seed(1))[:3000]
        coords = torch.stack(torch.unravel_index(cells, (2, 20, 20, 20)), 1).to("cuda", torch.int32)
        book = convladder.rulebook(coords, (20, 20, 20))
        features, weights = whole_numbers(3000, 16), whole_numbers(27, 16, 16, seed=1)
        y = convladder.sparse_conv(features, weights, book)
        dense = convladder.sparse_to_dense(features, coords, (20, 20, 20))
        filters = weights.reshape(3, 3, 3, 16, 16).permute(4, 3, 0, 1, 2).contiguous()
        right = F.conv3d(dense.double(), filters.double(), padding=1)
        b, i, j, k = coords.long().T
        self.assert_equal(y, right[b, :, i, j, k], 0)
        # A dense sum of the features over that of ones is the mean over the existing sites.
        ones = convladder.sparse_to_dense(torch.ones_like(features), coords, (20, 20, 20))
        sums, counts = (F.avg_pool3d(grid, 3, 1, 1, divisor_override=1) for grid in (dense, ones))
        self.assert_equal(convladder.sparse_avg_pool(features, book), (sums / counts)[b, :, i, j, k], 0)
        dy = whole_numbers(3000, 16, seed=2)
        dw = convladder.sparse_wgrad(features, dy, book)
        dx = convladder.sparse_dgrad(dy, weights, book)
        product = (y.double() * dy.double()).sum()
        self.assertEqual((dx.double() * features.double()).sum(), product)
        self.assertEqual((dw.double() * weights.double()).sum(), product)

    def test_what_does_not_fit_is_refused(self):
        x, w = whole_numbers(1, 4, 8, 8), whole_numbers(4, 4, 3, 3, seed=1)
        cases = {"x": lambda: convladder.conv2d(x.transpose(2, 3), w), "w": lambda: convladder.conv2d(x, w.cpu()),
                 "where": lambda: convladder.conv2d(x, w, where="cpu"),
                 "dy": lambda: convladder.conv2d_dgrad(x.half(), w, (1, 4, 10, 10))}
        for parameter, call in cases.items():
            with self.subTest(parameter), self.assertRaises(convladder.BadInput) as caught:
                call()
            self.assertEqual(caught.exception.parameter, parameter, str(caught.exception))

    def test_indices_are_checked_before_a_kernel_uses_them(self):
        coords = torch.tensor([[0, 1, 1], [0, 2, 3]], dtype=torch.int32, device="cuda")
        features = whole_numbers(2, 4)
        book = convladder.rulebook(coords, (4, 4))
        y, argmax = convladder.sparse_max_pool(features, book)
        line = whole_numbers(1, 8, 2)
        for parameter, array, call in (
                ("coords", coords, lambda wrong: convladder.sparse_to_dense(features, wrong, (4, 4), batch=1)),
                ("coords", coords, lambda wrong: convladder.sparse_global_pool(features, wrong, (4, 4), batch=1)),
                ("coords", coords, lambda wrong: convladder.rulebook(wrong, (4, 4), batch=1)),
                ("argmax", argmax, lambda wrong: convladder.sparse_max_pool_dgrad(y, wrong, book))):
            call(array)
            for value in (-1, 4, 10**9, -2**31):
                with self.subTest(parameter, value=value), self.assertRaises(convladder.BadInput) as caught:
                    wrong = array.clone()
                    wrong[1, 1] = value
                    call(wrong)
                self.assertEqual(caught.exception.parameter, parameter, str(caught.exception))
        convladder.fft(line, ring="mersenne")
        with self.assertRaises(convladder.BadInput) as caught:
            convladder.fft(line + 0.5, ring="mersenne")
        self.assertEqual(caught.exception.parameter, "x")

    def test_transforms_are_chosen_only_where_they_are_allowed(self):
        x, w = whole_numbers(2, 64, 56, 56), whole_numbers(64, 64, 3, 3, seed=1)
        transforms = {row["name"] for row in convladder.rungs() if row["transforms"]}
        y = convladder.conv2d(x, w, pad=1)
        self.assertNotIn(y.rung, transforms)
        self.assertNotIn(convladder.conv2d_dgrad(y, w, x.shape, pad=1).rung, transforms)
        self.assertNotIn(convladder.conv2d_wgrad(x, y, 3, pad=1)[0].rung, transforms)
        self.assert_equal(y, F.conv2d(x.double(), w.double(), padding=1), 0)

    def test_a_table_of_all_rungs(self):
        x, w = whole_numbers(1, 3, 20, 20), whole_numbers(4, 3, 3, 3, seed=1)
        table = convladder.compare(convladder.conv2d, x, w, where="gpu", rungs=["direct/tiled", "implicit_gemm/tiled"])
        self.assertEqual([(row.status, row.max_error) for row in table], 2 * [("ran", 0)])


def last(tensor):
    return tensor.contiguous(memory_format=torch.channels_last)


def is_last(tensor):
    return tensor.is_contiguous(memory_format=torch.channels_last) and not tensor.is_contiguous()


class Layouts(unittest.TestCase):
    """NCHW, channels_last, and calls computed in the other layout."""

    GEOMETRIES = (dict(), dict(stride=2), dict(dilation=2), dict(groups=2), dict(groups=4, stride=2), dict(groups=64))

    def problem(self, dtype, N=4, C=64, K=64, groups=1, stride=1, dilation=1, seed=0):
        """(x, w, bias, dy, options, PyTorch's results in double precision: y, dx, dw, db)"""
        x = whole_numbers(N, C, 29, 31, seed=seed, dtype=dtype)
        w = whole_numbers(K, C // groups, 3, 3, seed=seed + 1, dtype=dtype)
        bias = whole_numbers(K, seed=seed + 2)
        options = dict(stride=stride, dilation=dilation, groups=groups)
        double = [tensor.double().requires_grad_() for tensor in (x, w, bias)]
        y = F.conv2d(*double, padding=1, **options)
        dy = whole_numbers(*y.shape, seed=seed + 3, dtype=dtype)
        return x, w, bias, dy, dict(pad=1, **options), [y.detach(), *torch.autograd.grad(y, double, dy.double())]

    def assert_equal(self, found, right, channels_last, dtype):
        self.assertEqual((found.shape, found.dtype, found.where), (right.shape, dtype, "gpu"))
        if found.ndim == 4:
            self.assertEqual(is_last(found), channels_last, found.stride())
        error = (found.double() - right.to(dtype).double()).abs()  # one rounding, of sums that are exact
        self.assertEqual(float(error.max()) if error.numel() else 0, 0, found.rung)

    def assert_calls(self, problem, dtype, channels_last, weights_last, **more):
        x, w, bias, dy, options, (y, dx, dw, db) = problem
        options = {**options, **more}
        if channels_last:
            x, dy = last(x), last(dy)
        w = last(w) if weights_last else w
        self.assert_equal(convladder.conv2d(x, w, bias, **options), y, channels_last, dtype)
        self.assert_equal(convladder.conv2d_dgrad(dy, w, x.shape, **options), dx, channels_last, dtype)
        found = convladder.conv2d_wgrad(x, dy, 3, **options)
        self.assert_equal(found[0], dw, channels_last and dw.shape[1] > 1, torch.float32)
        self.assert_equal(found[1], db, False, torch.float32)

    def test_convolutions_and_gradients(self):
        for dtype in (torch.float32, torch.float16, torch.bfloat16):
            for geometry in self.GEOMETRIES:
                problem = self.problem(dtype, **geometry)
                for channels_last in (False, True):
                    for weights_last in (False, True):
                        with self.subTest(dtype=dtype, channels_last=channels_last, weights_last=weights_last, **geometry):
                            self.assert_calls(problem, dtype, channels_last, weights_last)

    def test_tf32(self):
        for geometry in self.GEOMETRIES:
            problem = self.problem(torch.float32, **geometry)
            for channels_last in (False, True):
                with self.subTest(channels_last=channels_last, **geometry):
                    self.assert_calls(problem, torch.float32, channels_last, False, precision="tf32")

    def test_few_and_odd_channels(self):
        for dtype in (torch.float32, torch.bfloat16):
            for C, K in ((1, 8), (3, 64), (5, 7), (24, 40)):
                problem = self.problem(dtype, N=2, C=C, K=K)
                x, w, bias, dy, options, (y, dx, dw, _) = problem
                for image, gradient in ((x, dy), (last(x), last(dy))):
                    with self.subTest(dtype=dtype, C=C, K=K, strides=image.stride()):
                        for found, right, of in ((convladder.conv2d(image, w, bias, **options), y, dtype),
                                                 (convladder.conv2d_dgrad(gradient, w, x.shape, **options), dx, dtype),
                                                 (convladder.conv2d_wgrad(image, gradient, 3, **options)[0], dw, torch.float32)):
                            self.assertTrue(torch.equal(found, right.to(of)), found.rung)

    def test_an_empty_batch(self):
        for dtype in (torch.float32, torch.bfloat16):
            for order in (lambda tensor: tensor, last):
                x, w = order(torch.empty(0, 16, 8, 9, dtype=dtype, device="cuda")), whole_numbers(24, 16, 3, 3, dtype=dtype)
                y = convladder.conv2d(x, w, pad=1)
                self.assertEqual((y.shape, y.dtype), ((0, 24, 8, 9), dtype))
                self.assertEqual(convladder.conv2d_dgrad(y, w, x.shape, pad=1).shape, x.shape)
                dw, db = convladder.conv2d_wgrad(x, y, 3, pad=1)
                self.assertFalse(dw.any() or db.any())

    def test_16_bits_in_nchw_are_computed_in_nhwc(self):
        x, w = whole_numbers(32, 64, 56, 56, dtype=torch.bfloat16), whole_numbers(64, 64, 3, 3, seed=1, dtype=torch.bfloat16)
        y = convladder.conv2d(x, w, pad=1)
        self.assertNotIn("naive", y.rung)
        with self.assertRaisesRegex(convladder.UnsupportedProblem, "nhwc"):
            convladder.conv2d(x, w, pad=1, rung="implicit_gemm/halo_tile")
        self.assertTrue(y.is_contiguous())
        self.assertTrue(torch.equal(y, F.conv2d(x.float(), w.float(), padding=1).to(torch.bfloat16)))
        z = convladder.conv2d(last(x), w, pad=1)
        self.assertEqual(z.rung, y.rung)
        self.assertTrue(torch.equal(z, y))

    def test_float32_that_is_channels_last_is_computed_in_nchw(self):
        x, w = whole_numbers(4, 64, 56, 56), whole_numbers(64, 64, 3, 3, seed=1)
        y, z = convladder.conv2d(x, w, pad=1), convladder.conv2d(last(x), last(w), pad=1)
        self.assertEqual(z.rung, y.rung)
        self.assertTrue(is_last(z) and torch.equal(z, y))

    def test_nothing_is_copied_of_images_that_are_channels_last(self):
        x = last(whole_numbers(16, 64, 128, 128, dtype=torch.bfloat16))
        w = whole_numbers(64, 64, 3, 3, seed=1, dtype=torch.bfloat16)
        options = dict(pad=1, rung="implicit_gemm/halo_tile")
        convladder.conv2d(x, w, **options)
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        y = convladder.conv2d(x, w, **options)
        self.assertLess(torch.cuda.max_memory_allocated() - before, 1.5 * y.nbytes)

    def test_weights_that_change_are_converted_again(self):
        x, w = last(whole_numbers(2, 64, 20, 20, dtype=torch.float16)), whole_numbers(64, 64, 3, 3, seed=1, dtype=torch.float16)
        first = convladder.conv2d(x, w)
        self.assertTrue(torch.equal(convladder.conv2d(x, w), first))
        w.neg_()
        self.assertTrue(torch.equal(convladder.conv2d(x, w), -first))
        with torch.no_grad():
            w[0] = 0
        self.assertFalse(convladder.conv2d(x, w)[:, 0].any())

    def test_two_streams(self):
        dtype = torch.bfloat16
        x, w = (whole_numbers(*shape, seed=seed, dtype=dtype) for seed, shape in enumerate(((4, 64, 30, 30), (64, 64, 3, 3))))
        right = F.conv2d(x.float(), w.float(), padding=1).to(dtype)
        for order in (lambda tensor: tensor, last):
            convladder.conv2d(order(x), w, pad=1)  # loads the kernels, which waits
            torch.cuda.synchronize()
            found = []
            for _ in range(3):
                for stream in (torch.cuda.Stream(), torch.cuda.Stream()):
                    with torch.cuda.stream(stream):
                        late = torch.zeros_like(order(x))
                        torch.cuda._sleep(20_000_000)  # some 10 ms: a call that is not ordered in the stream would read zeros
                        late.copy_(x)
                        found.append(convladder.conv2d(late, w, pad=1))
            torch.cuda.synchronize()
            for y in found:
                self.assertTrue(torch.equal(y, right))

    def test_the_layer_learns_in_channels_last(self):
        x, w = last(whole_numbers(2, 8, 16, 16)).requires_grad_(), whole_numbers(8, 8, 3, 3, seed=1).requires_grad_()
        right = torch.autograd.grad(F.conv2d(x.double(), w.double(), padding=1).square().sum(), (x, w))
        for found, gradient in zip(torch.autograd.grad(torch_layer.Conv2d.apply(x, w, 1).square().sum(), (x, w)), right):
            self.assertTrue(torch.equal(found, gradient))

    def test_a_transposed_convolution(self):
        for dtype in (torch.float32, torch.float16):
            x, w, bias = whole_numbers(2, 64, 9, 8, dtype=dtype), whole_numbers(64, 32, 3, 3, seed=1, dtype=dtype), whole_numbers(32, seed=2)
            right = F.conv_transpose2d(x.double(), w.double(), stride=2, padding=1, output_padding=1).to(dtype)
            right = (right.float() + bias[:, None, None]).to(dtype)
            for image in (x, last(x)):
                y = convladder.conv2d_transpose(image, w, bias, stride=2, pad=1, out_padding=1)
                self.assertEqual(is_last(y), is_last(image))
                self.assertTrue(torch.equal(y, right), y.rung)

    def test_layout_says_what_shapes_mean(self):
        x, w = whole_numbers(2, 20, 21, 64, dtype=torch.float16), whole_numbers(32, 3, 3, 64, seed=1, dtype=torch.float16)
        y = convladder.conv2d(x, w, layout="nhwc")
        right = F.conv2d(x.permute(0, 3, 1, 2).float(), w.permute(0, 3, 1, 2).float()).to(torch.float16)
        self.assertTrue(y.is_contiguous() and torch.equal(y, right.permute(0, 2, 3, 1)))

    def test_what_is_neither_is_refused(self):
        x, w, dy = whole_numbers(1, 4, 8, 8), whole_numbers(4, 4, 3, 3, seed=1), whole_numbers(1, 4, 6, 6)
        cases = (("x", r"x\.contiguous", lambda: convladder.conv2d(x.transpose(2, 3), w)),
                 ("x", r"x\.contiguous", lambda: convladder.conv2d(x[..., ::2], w)),
                 ("x", r"x\.contiguous", lambda: convladder.conv2d(x[:, :1].expand(1, 4, 8, 8), w)),
                 ("w", r"w\.contiguous", lambda: convladder.conv2d(x, w.transpose(2, 3))),
                 ("x", "channels_last is supported without layout=", lambda: convladder.conv2d(last(x), w, layout="nchw")),
                 ("dy", r"dy\.contiguous\(memory_format", lambda: convladder.conv2d_wgrad(last(x), dy, 3)),
                 ("dy", r"dy\.contiguous\(\)", lambda: convladder.conv2d_wgrad(x, last(dy), 3)),
                 ("w", "an array on the host: x is on a GPU", lambda: convladder.conv2d(last(x), w.cpu())),
                 ("x", "an array on the host: w is on a GPU", lambda: convladder.conv2d(x.cpu(), w)),
                 ("bias", "an array on the host", lambda: convladder.conv2d(last(x), w, numpy.zeros(4, numpy.float32))),
                 ("w", "krsc", lambda: convladder.conv2d(last(x), w[:, :2].contiguous())),
                 ("w", "float16", lambda: convladder.conv2d(last(x), w.half())),
                 ("a", "contiguous", lambda: convladder.gemm(x[0, 0].T, x[0, 1])))
        for parameter, words, call in cases:
            with self.subTest(parameter, words=words):
                with self.assertRaisesRegex(convladder.BadInput, words) as caught:
                    call()
                self.assertEqual(caught.exception.parameter, parameter, str(caught.exception))

    @unittest.skipUnless(importlib.util.find_spec("torch") and torch.cuda.device_count() > 1, "one GPU")
    def test_another_gpu_is_refused(self):
        x, w = whole_numbers(1, 4, 8, 8), whole_numbers(4, 4, 3, 3, seed=1)
        for parameter, call in (("x", lambda: convladder.conv2d(x.to("cuda:1"), w.to("cuda:1"))),
                                ("w", lambda: convladder.conv2d(last(x), w.to("cuda:1")))):
            with self.assertRaisesRegex(convladder.BadInput, "GPU 1: it must be on GPU 0") as caught:
                call()
            self.assertEqual(caught.exception.parameter, parameter)

    def test_numpys_arrays_go_the_same_way(self):
        x, w = (whole_numbers(*shape, seed=seed).cpu().numpy() for seed, shape in enumerate(((2, 64, 20, 21), (64, 64, 3, 3))))
        right = convladder.conv2d(x, w, where="cpu")
        for dtype in ("float32", "float16"):
            y = convladder.conv2d(x, w, dtype=dtype, where="gpu")
            z = convladder.conv2d(x.transpose(0, 2, 3, 1), w.transpose(0, 2, 3, 1), dtype=dtype, where="gpu", layout="nhwc")
            self.assertNotIn("naive", y.rung)
            numpy.testing.assert_array_equal(y, right.astype(dtype))
            numpy.testing.assert_array_equal(z.transpose(0, 3, 1, 2), y)


class Others(unittest.TestCase):
    @unittest.skipUnless(importlib.util.find_spec("cupy"), "CuPy is not installed")
    def test_cupys_arrays(self):
        import cupy
        a, b = (cupy.asarray(whole_numbers(65, 65, seed=seed)) for seed in (1, 2))
        right = a @ b
        cupy.cuda.runtime.deviceSynchronize()
        with cupy.cuda.Stream(non_blocking=True):
            c = convladder.gemm(a, b)
            self.assertIsInstance(c, cupy.ndarray)
            self.assertTrue(bool((c == right).all()))

    @unittest.skipUnless(importlib.util.find_spec("jax"), "JAX is not installed")
    def test_jaxs_arrays(self):
        import jax
        x, w = (jax.numpy.asarray(whole_numbers(*shape, seed=1).cpu().numpy()) for shape in ((2, 3, 9, 9), (4, 3, 3, 3)))
        y = convladder.conv2d(x, w)
        self.assertIsInstance(y, jax.Array)
        right = convladder.conv2d(numpy.asarray(x), numpy.asarray(w), where="cpu")
        numpy.testing.assert_allclose(numpy.asarray(y), right, rtol=0, atol=1e-3)


if __name__ == "__main__":
    if why := why_not():
        print(f"skipped: {why}")
        sys.exit(0)
    unittest.main(verbosity=2)
