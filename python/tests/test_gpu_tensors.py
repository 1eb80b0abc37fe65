#!/usr/bin/env python3
"""Tensors of PyTorch, CuPy and JAX on a GPU, computed on where they lie, beside PyTorch's own convolutions and gradients.

It needs a GPU, a module built with CUDA, and PyTorch; CuPy and JAX are asked where they are installed.
"""
import importlib.util
import unittest

import convladder
import numpy
import torch
import torch.nn.functional as F

GPU = torch.device("cuda")
torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False


def whole_numbers(*shape, seed=0, dtype=torch.float32):
    """Small whole numbers, so that all sums are exact, in any order."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(-4, 5, shape, generator=generator).to(GPU, dtype)


class Convolution(torch.autograd.Function):
    """conv2d as a layer of PyTorch: docs/python.md shows this class."""

    @staticmethod
    def forward(ctx, x, w, pad):
        ctx.save_for_backward(x, w)
        ctx.pad = pad
        return convladder.conv2d(x, w, pad=pad)

    @staticmethod
    def backward(ctx, dy):
        x, w = ctx.saved_tensors
        dy = dy.contiguous()
        dw, _ = convladder.conv2d_wgrad(x, dy, w.shape[2:], pad=ctx.pad)
        return convladder.conv2d_dgrad(dy, w, x.shape, pad=ctx.pad), dw, None


class PyTorch(unittest.TestCase):
    def test_convolutions_and_gradients_are_pytorchs(self):
        for stride, dilation, groups in ((1, 1, 1), (2, 1, 1), (1, 2, 2), (2, 1, 4)):
            with self.subTest(stride=stride, dilation=dilation, groups=groups):
                x = whole_numbers(2, 8, 29, 31).requires_grad_()
                w = whole_numbers(12, 8 // groups, 3, 3, seed=1).requires_grad_()
                bias = whole_numbers(12, seed=2).requires_grad_()
                options = dict(stride=stride, dilation=dilation, groups=groups)
                right = F.conv2d(x, w, bias, padding=1, **options)
                y = convladder.conv2d(x, w, bias, pad=1, **options)
                self.assertTrue(torch.equal(y, right))
                self.assertEqual((y.where, y.device.type), ("gpu", "cuda"))
                dy = whole_numbers(*right.shape, seed=3)
                dx, dw, db = torch.autograd.grad(right, (x, w, bias), dy)
                self.assertTrue(torch.equal(convladder.conv2d_dgrad(dy, w, x.shape, pad=1, **options), dx))
                found = convladder.conv2d_wgrad(x, dy, (3, 3), pad=1, **options)
                self.assertTrue(torch.equal(found[0], dw))
                self.assertTrue(torch.equal(found[1], db))

    def test_a_layer_learns_what_pytorchs_does(self):
        x, w = whole_numbers(2, 8, 16, 16).requires_grad_(), whole_numbers(8, 8, 3, 3, seed=1).requires_grad_()
        right = torch.autograd.grad(F.conv2d(x, w, padding=1).sum(), (x, w))
        found = torch.autograd.grad(Convolution.apply(x, w, 1).sum(), (x, w))
        self.assertTrue(all(map(torch.equal, found, right)))

    def test_16_bits_are_the_tensors_own(self):
        for dtype in (torch.float16, torch.bfloat16):
            a, b = whole_numbers(200, 64, dtype=dtype), whole_numbers(64, 136, seed=1, dtype=dtype)
            c = convladder.gemm(a, b)
            self.assertEqual(c.dtype, dtype)
            self.assertTrue(torch.equal(c, (a.double() @ b.double()).to(dtype)))

    def test_it_runs_in_the_current_stream(self):
        a, b = whole_numbers(512, 512), whole_numbers(512, 512, seed=1)
        right = a @ b
        torch.cuda.synchronize()
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            late = torch.zeros_like(a)
            torch.cuda._sleep(100_000_000)  # some 50 ms: a call that did not wait its turn would read zeros
            late.copy_(a)
            c = convladder.gemm(late, b)
        stream.synchronize()
        self.assertTrue(torch.equal(c, right))

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
        coords = torch.stack(torch.unravel_index(cells, (2, 20, 20, 20)), 1).to(GPU, torch.int32)
        book = convladder.rulebook(coords, (20, 20, 20))
        features, weights = whole_numbers(3000, 16), whole_numbers(27, 16, 16, seed=1)
        y = convladder.sparse_conv(features, weights, book)
        dense = convladder.sparse_to_dense(features, coords, (20, 20, 20))
        filters = weights.reshape(3, 3, 3, 16, 16).permute(4, 3, 0, 1, 2).contiguous()
        right = F.conv3d(dense, filters, padding=1)
        b, i, j, k = coords.long().T
        self.assertTrue(torch.equal(y, right[b, :, i, j, k]))
        dy = whole_numbers(3000, 16, seed=2)
        dw = convladder.sparse_wgrad(features, dy, book)
        dx = convladder.sparse_dgrad(dy, weights, book)
        product = (y.double() * dy.double()).sum()
        self.assertEqual((dx.double() * features.double()).sum(), product)
        self.assertEqual((dw.double() * weights.double()).sum(), product)

    def test_what_does_not_fit_is_refused(self):
        x, w = whole_numbers(1, 4, 8, 8), whole_numbers(4, 4, 3, 3, seed=1)
        cases = {"x": lambda: convladder.conv2d(x.transpose(2, 3), w), "weights": lambda: convladder.conv2d(x, w.cpu()),
                 "where": lambda: convladder.conv2d(x, w, where="cpu"), "dy": lambda: convladder.conv2d_dgrad(x.half(), w, (1, 4, 10, 10))}
        for parameter, call in cases.items():
            with self.subTest(parameter), self.assertRaises(convladder.BadInput) as caught:
                call()
            self.assertEqual(caught.exception.parameter, parameter, str(caught.exception))

    def test_tensors_on_the_host_come_back_as_such(self):
        x, w = whole_numbers(1, 4, 8, 8).cpu(), whole_numbers(4, 4, 3, 3, seed=1).cpu()
        y = convladder.conv2d(x, w, where="cpu")
        self.assertIsInstance(y, torch.Tensor)
        self.assertTrue(torch.equal(y, F.conv2d(x, w)))


class Others(unittest.TestCase):
    @unittest.skipUnless(importlib.util.find_spec("cupy"), "CuPy is not installed")
    def test_cupys_arrays(self):
        import cupy
        a, b = (cupy.asarray(whole_numbers(65, 65, seed=seed)) for seed in (1, 2))
        with cupy.cuda.Stream(non_blocking=True):
            c = convladder.gemm(a, b)
            self.assertIsInstance(c, cupy.ndarray)
            self.assertTrue(bool((c == a @ b).all()))

    @unittest.skipUnless(importlib.util.find_spec("jax"), "JAX is not installed")
    def test_jaxs_arrays(self):
        import jax
        x, w = (jax.numpy.asarray(whole_numbers(*shape, seed=1).cpu().numpy()) for shape in ((2, 3, 9, 9), (4, 3, 3, 3)))
        y = convladder.conv2d(x, w)
        self.assertIsInstance(y, jax.Array)
        right = convladder.conv2d(numpy.asarray(x), numpy.asarray(w), where="cpu")
        numpy.testing.assert_array_equal(numpy.asarray(y), right)


if __name__ == "__main__":
    unittest.main()
