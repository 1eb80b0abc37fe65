"""What the command's results are compared with: the formulas once more, in NumPy and double precision.

Independent of the C++ reference: every tap is one slice of the padded input, for any number of axes.
"""
import itertools

import numpy as np


def output_extents(size, kernel, pad, stride, dilation):
    """pad: (before, after) an axis."""
    return [(extent + sum(p) - (taps - 1) * d - 1) // s + 1
            for extent, taps, p, s, d in zip(size, kernel, pad, stride, dilation)]


def taps(kernel):
    return itertools.product(*(range(extent) for extent in kernel))


def slice_of_tap(tap, out, stride, dilation):
    """Where in the padded input each window's tap lies."""
    return tuple(slice(t * d, t * d + (o - 1) * s + 1, s)
                 for t, o, s, d in zip(tap, out, stride, dilation))


def pad_spatially(x, pad):
    return np.pad(x, [(0, 0), (0, 0)] + list(pad))


def im2col(x, kernel, pad, stride, dilation):
    x = x.astype(np.float64)
    out = output_extents(x.shape[2:], kernel, pad, stride, dilation)
    padded = pad_spatially(x, pad)
    rows = [padded[(slice(None), slice(None)) + slice_of_tap(tap, out, stride, dilation)]
            for tap in taps(kernel)]
    col = np.stack(rows, axis=2)  # [n][c][tap][window...]
    n, c, volume = col.shape[:3]
    return col.reshape(n, c * volume, int(np.prod(out)))


def col2im(col, channels, size, kernel, pad, stride, dilation):
    out = output_extents(size, kernel, pad, stride, dilation)
    n = col.shape[0]
    col = col.astype(np.float64).reshape([n, channels, int(np.prod(kernel))] + out)
    padded = np.zeros([n, channels] + [extent + sum(p) for extent, p in zip(size, pad)])
    for index, tap in enumerate(taps(kernel)):
        padded[(slice(None), slice(None)) + slice_of_tap(tap, out, stride, dilation)] += col[:, :, index]
    return padded[(slice(None), slice(None)) +
                  tuple(slice(p[0], p[0] + extent) for extent, p in zip(size, pad))]


def conv2d(x, w, bias=None, pad=((0, 0), (0, 0)), stride=(1, 1), dilation=(1, 1), groups=1):
    n, c = x.shape[:2]
    k, group_c, r, s = w.shape
    p, q = output_extents(x.shape[2:], (r, s), pad, stride, dilation)
    col = im2col(x, (r, s), pad, stride, dilation).reshape(n, groups, group_c * r * s, p * q)
    filters = w.astype(np.float64).reshape(groups, k // groups, group_c * r * s)
    y = np.einsum("gkr,ngrw->ngkw", filters, col).reshape(n, k, p, q)
    return y if bias is None else y + bias.astype(np.float64)[None, :, None, None]


def conv2d_dgrad(dy, w, size, pad=((0, 0), (0, 0)), stride=(1, 1), dilation=(1, 1), groups=1):
    n, k = dy.shape[:2]
    group_c, r, s = w.shape[1:]
    windows = dy.shape[2] * dy.shape[3]
    filters = w.astype(np.float64).reshape(groups, k // groups, group_c * r * s)
    gradient = dy.astype(np.float64).reshape(n, groups, k // groups, windows)
    col = np.einsum("gkr,ngkw->ngrw", filters, gradient).reshape(n, groups * group_c * r * s, windows)
    return col2im(col, groups * group_c, size, (r, s), pad, stride, dilation)


def conv2d_wgrad(x, dy, kernel, pad=((0, 0), (0, 0)), stride=(1, 1), dilation=(1, 1), groups=1):
    n, c = x.shape[:2]
    k = dy.shape[1]
    rows = c // groups * kernel[0] * kernel[1]
    windows = dy.shape[2] * dy.shape[3]
    col = im2col(x, kernel, pad, stride, dilation).reshape(n, groups, rows, windows)
    gradient = dy.astype(np.float64).reshape(n, groups, k // groups, windows)
    dw = np.einsum("ngkw,ngrw->gkr", gradient, col).reshape(k, c // groups, *kernel)
    return dw, dy.astype(np.float64).sum(axis=(0, 2, 3))
