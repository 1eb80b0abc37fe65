"""What the command's results are compared with: the formulas once more, in NumPy and double precision.

Independent of the C++ reference: every tap is one slice of the padded input, for any number of axes.
"""
import itertools

import numpy as np


def output_extents(size, kernel, pad, stride, dilation):
    """pad: (before, after) an axis."""
    return [(extent + sum(p) - (taps - 1) * d - 1) // s + 1
            for extent, taps, p, s, d in zip(size, kernel, pad, stride, dilation)]


def same_padding(size, kernel, stride, dilation):
    """TensorFlow's SAME, (before, after) an axis; at stride 1 also PyTorch's 'same'."""
    pad = []
    for extent, taps, s, d in zip(size, kernel, stride, dilation):
        last = (-(-extent // s) - 1) * s + (taps - 1) * d  # what the last window reads last
        total = max(last + 1 - extent, 0)
        pad.append((total // 2, total - total // 2))
    return tuple(pad)


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


def conv2d_transpose(x, w, bias=None, pad=((0, 0), (0, 0)), stride=(1, 1), dilation=(1, 1), groups=1, out_padding=(0, 0)):
    """PyTorch's conv_transpose2d: each pixel of x adds its multiple of a filter; w [C][K/groups][R][S]."""
    n, c = x.shape[:2]
    group_k, kernel = w.shape[1], w.shape[2:]
    x = x.astype(np.float64).reshape(n, groups, c // groups, *x.shape[2:])
    filters = w.astype(np.float64).reshape(groups, c // groups, group_k, *kernel)
    size = [(extent - 1) * s + d * (taps - 1) + 1 + more
            for extent, s, d, taps, more in zip(x.shape[3:], stride, dilation, kernel, out_padding)]
    y = np.zeros((n, groups, group_k, *size))
    for tap in taps(kernel):
        y[(..., *slice_of_tap(tap, x.shape[3:], stride, dilation))] += np.einsum(
            "ngchw,gck->ngkhw", x, filters[(..., *tap)])
    y = y.reshape(n, groups * group_k, *size)[
        (..., *(slice(before, extent - after) for (before, after), extent in zip(pad, size)))]
    return y if bias is None else y + bias.astype(np.float64)[None, :, None, None]


def conv2d_wgrad(x, dy, kernel, pad=((0, 0), (0, 0)), stride=(1, 1), dilation=(1, 1), groups=1):
    n, c = x.shape[:2]
    k = dy.shape[1]
    rows = c // groups * kernel[0] * kernel[1]
    windows = dy.shape[2] * dy.shape[3]
    col = im2col(x, kernel, pad, stride, dilation).reshape(n, groups, rows, windows)
    gradient = dy.astype(np.float64).reshape(n, groups, k // groups, windows)
    dw = np.einsum("ngkw,ngrw->gkr", gradient, col).reshape(k, c // groups, *kernel)
    return dw, dy.astype(np.float64).sum(axis=(0, 2, 3))


def per_axis(value, ndim):
    return (value,) * ndim if isinstance(value, int) else tuple(value)


def rulebook(coords, shape, mode="subm", kernel=3, stride=1, pad=0, dilation=1, out_padding=0):
    """out_coords [M][1 + ndim] and pairs [n][3] (k, in, out), by dictionaries of sites."""
    ndim = len(shape)
    kernel, stride, dilation, out_padding = (
        per_axis(value, ndim) for value in (kernel, stride, dilation, out_padding))
    pad = per_axis(pad, ndim)
    after = pad
    if len(pad) == 2 * ndim:  # before and after, axis by axis
        pad, after = pad[::2], pad[1::2]
    if mode == "subm":
        pad = after = tuple(d * (extent // 2) for d, extent in zip(dilation, kernel))
    reach = [d * (extent - 1) for d, extent in zip(dilation, kernel)]
    if mode == "transposed":
        out_shape = [(extent - 1) * s - p - q + r + 1 + more for extent, s, p, q, r, more
                     in zip(shape, stride, pad, after, reach, out_padding)]
    else:
        out_shape = [(extent + p + q - r - 1) // s + 1
                     for extent, s, p, q, r in zip(shape, stride, pad, after, reach)]

    meetings = []  # tap, row of coords, the site that it meets
    for row, (batch, *at) in enumerate(coords.tolist()):
        for k, tap in enumerate(taps(kernel)):
            met = []
            for x, t, s, p, d, extent in zip(at, tap, stride, pad, dilation, out_shape):
                if mode == "transposed":
                    out = x * s - p + t * d
                else:
                    out, rest = divmod(x + p - t * d, s)
                    if rest:
                        break
                if not 0 <= out < extent:
                    break
                met.append(out)
            else:
                meetings.append((k, row, (batch, *met)))
    if mode == "subm":
        rows = {tuple(site): row for row, site in enumerate(coords.tolist())}
    else:
        rows = {site: row for row, site in enumerate(sorted({site for _, _, site in meetings}))}
    pairs = [(k, row, rows[site]) for k, row, site in meetings if site in rows]
    out_coords = coords
    if mode == "inverse":
        pairs = [(k, out, row) for k, row, out in pairs]
    elif mode != "subm":
        out_coords = np.array(sorted(rows), np.int32).reshape(len(rows), 1 + ndim)
    pairs.sort(key=lambda pair: (pair[0], pair[2]))
    inputs = len(rows) if mode == "inverse" else len(coords)
    return out_coords, np.array(pairs, np.int32).reshape(len(pairs), 3), inputs


def sparse_conv(features, weights, pairs, outputs):
    y = np.zeros((outputs, weights.shape[2]))
    for k, i, o in pairs:
        y[o] += features[i].astype(np.float64) @ weights[k]
    return y


def sparse_dgrad(dy, weights, pairs, inputs):
    dx = np.zeros((inputs, weights.shape[1]))
    for k, i, o in pairs:
        dx[i] += weights[k].astype(np.float64) @ dy[o]
    return dx


def sparse_wgrad(features, dy, pairs, taps_of_kernel):
    dw = np.zeros((taps_of_kernel, features.shape[1], dy.shape[1]))
    for k, i, o in pairs:
        dw[k] += np.outer(features[i].astype(np.float64), dy[o])
    return dw


def sparse_max_pool(features, pairs, outputs):
    """y and argmax: pairs come by tap, so that of equal features the first one stays."""
    y = np.zeros((outputs, features.shape[1]), np.float32)
    argmax = np.full(y.shape, -1, np.int32)
    for _, i, o in pairs:
        better = (argmax[o] < 0) | (features[i] > y[o])
        y[o] = np.where(better, features[i], y[o])
        argmax[o] = np.where(better, i, argmax[o])
    return y, argmax


def sparse_max_pool_dgrad(dy, argmax, inputs):
    dx = np.zeros((inputs, dy.shape[1]))
    rows, channels = np.nonzero(argmax >= 0)
    np.add.at(dx, (argmax[rows, channels], channels), dy[rows, channels])
    return dx


def sparse_avg_pool(features, pairs, outputs):
    """The mean of each output's rows, rounded to float32 once; 0 where there is none."""
    y, counts = np.zeros((outputs, features.shape[1])), np.zeros((outputs, 1))
    np.add.at(y, pairs[:, 2], features[pairs[:, 1]])
    np.add.at(counts, pairs[:, 2], 1)
    return (y / np.maximum(counts, 1)).astype(np.float32)


def sparse_global_pool(features, coords, reduce, batch):
    """The maximum or the mean of each image's rows, rounded to float32 once; 0 where there is none."""
    y = np.zeros((batch, features.shape[1]), np.float32)
    for n in np.unique(coords[:, 0]):
        rows = features[coords[:, 0] == n].astype(np.float64)
        y[n] = rows.max(0) if reduce == "max" else rows.mean(0)
    return y


def sparse_to_dense(features, coords, shape, batch):
    x = np.zeros((batch, features.shape[1], *shape), np.float32)
    x[(coords[:, 0], slice(None), *coords[:, 1:].T)] = features
    return x


def voxels(points, low, high, voxel):
    """Sites [n][4] of points [n][3], and the grid's shape, in float32. voxel: one side, or three."""
    places, shape, _ = places_of(points, low, high, voxel)
    sites = sorted({(0, z, y, x) for x, y, z in places.tolist()})
    return np.array(sites, np.int32).reshape(len(sites), 4), tuple(shape[::-1].tolist())


def places_of(points, low, high, voxel):
    """Voxels [m][3], x first, of the points that have one, the grid's shape, and which points those are."""
    quotient = np.subtract(high, low) / np.asarray(voxel, np.float64)
    nearest = np.round(quotient)
    shape = np.where(np.abs(quotient - nearest) < 1e-4, nearest, np.ceil(quotient)).astype(np.int64)
    points, low, high = (np.asarray(values, np.float32) for values in (points, low, high))
    rows = np.flatnonzero(((points >= low) & (points < high)).all(axis=1))
    places = np.floor((points[rows] - low) / np.asarray(voxel, np.float32)).astype(np.int64)
    return np.minimum(places, shape - 1), shape, rows


def voxelize(points, low, high, voxel):
    """(out_coords [M][4], features [M][columns]) of points [n][columns], with means in float64, rounded once."""
    places, _, rows = places_of(points[:, :3], low, high, voxel)
    held = {}
    for place, row in zip(places.tolist(), rows.tolist()):
        held.setdefault((0, *reversed(place)), []).append(row)
    sites = sorted(held)
    means = [points[held[site]].astype(np.float64).sum(axis=0) / len(held[site]) for site in sites]
    return (np.array(sites, np.int32).reshape(len(sites), 4),
            np.array(means).astype(np.float32).reshape(len(sites), points.shape[1]))
