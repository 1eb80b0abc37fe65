"""Pictures for the page "Fewer multiplications": which way wins where, and how errors grow."""

import math
import re

from benchmark_run import short_name

# An H200, as docs/examples/winograd_tiles.cpp has it: multiply-adds and bytes a second.
MULTIPLY_ADDS, BYTES = 32.5e12, 4.2e12
PIXELS = 32 * 56 * 56  # of a layer, as B4 has them: the more, the less do transformed filters cost
FILTERS = [1, 3, 5, 7, 9, 11, 15, 21, 31]
CHANNELS = [2**i for i in range(11)]
WAYS = {"definition": "var(--zero)", "Winograd": "var(--y)", "Fourier": "var(--x)"}
WINOGRAD_TILES = {3: 4, 5: 2}  # filter: outputs of a tile; more points than six round too much
FOURIER_TILES = [16, 32, 64]


def seconds(multiply_adds, numbers):
    """Of a kernel for one pixel: what takes longer, arithmetic or float32 in memory."""
    return max(multiply_adds / MULTIPLY_ADDS, 4 * numbers / BYTES)


def by_tiles(channels, kept, points, products, transform):
    """The filters' transform, then three kernels: transform, products, transform back.

    @param kept outputs of a tile
    @param points numbers of a transformed tile
    @param products real products of a tile and a pair of channels
    @param transform multiply-adds of a tile's transform
    """
    larger, filters = points / kept, channels**2 * points / PIXELS
    one = seconds(channels * transform / kept, channels * (1 + larger))
    return seconds(0, filters) + 2 * one + seconds(channels**2 * products / kept, channels * 2 * larger + filters)


def times(filter_size, channels):
    """Seconds a pixel by way, with as many filters as channels."""
    found = {"definition": seconds(channels**2 * filter_size**2, 2 * channels)}
    if filter_size in WINOGRAD_TILES:
        m = WINOGRAD_TILES[filter_size]
        n = m + filter_size - 1
        found["Winograd"] = by_tiles(channels, m * m, n * n, n * n, 2 * n**3)
    found["Fourier"] = min(
        # Half of a real tile's complex numbers, three products each; 5 L L log2(L L) operations a complex transform.
        by_tiles(channels, (size - filter_size + 1) ** 2, size**2, 1.5 * size**2, 2.5 * size**2 * math.log2(size))
        for size in FOURIER_TILES if size > filter_size)
    return found


def way_of(rung):
    name = short_name(rung)
    return "Winograd" if name.startswith("winograd") else "Fourier" if name.startswith("fft") else "definition"


def layers(text):
    """name: (filter, channels of a group) of the square layers without stride in benchmarks/ladders/conv2d.cpp."""
    found = {}
    for name, words in re.findall(r'\{"(B\d+)", make\(([\d, ]+)\)', text):
        _, c, _, _, _, r, s, _, stride, *groups = map(int, words.split(","))
        if r == s and stride == 1:
            found[name] = (r, c // (groups[0] if groups else 1))
    return found


def measured(run, text):
    """name: (filter, channels, the fastest rung's way) in float32."""
    found = {}
    for name, layer in layers(text).items():
        rows = [row for row in run["rows"] if (row["ladder"], row["problem"], row["dtype"], row["layout"], row["l2"]) ==
                ("conv2d", name, "fp32", "nchw", "warm")]
        if rows:
            found[name] = (*layer, way_of(min(rows, key=lambda row: row["median_us"])["rung"]))
    return found


def which_wins(picture_type, run, text):
    """The way that is predicted to be fastest by filter and channels; names are layers of the committed run, in the colour of their fastest rung."""
    p = picture_type(720, 516)
    left, top, width, height = 70, 50, 58, 38
    p.text(left, 24, "the fastest algorithm: predicted, and measured where a name is given", "title", "start")
    for i, channels in enumerate(CHANNELS):
        y = top + height * (len(CHANNELS) - 1 - i)
        p.text(left - 8, y + height / 2 + 5, channels, "small", "end")
        for j, size in enumerate(FILTERS):
            found = times(size, channels)
            best = min(found, key=found.get)
            p.rect(left + width * j, y, width, height, WAYS[best], "var(--paper)", 0)
            if best != "definition":
                p.text(left + width * j + width - 5, y + height - 6, f"{found['definition'] / found[best]:.1f}x", "small", "end")
    for j, size in enumerate(FILTERS):
        p.text(left + width * (j + 0.5), top + height * len(CHANNELS) + 18, f"{size} x {size}", "small")
    p.text(left + width * len(FILTERS) / 2, top + height * len(CHANNELS) + 38, "filter size; upwards: channels per group (and as many filters)", "small")
    shared = {}
    for name, (size, channels, way) in measured(run, text).items():
        j = min(range(len(FILTERS)), key=lambda j: abs(FILTERS[j] - size))
        i = min(range(len(CHANNELS)), key=lambda i: abs(math.log2(CHANNELS[i] / channels)))
        shared.setdefault((i, j), []).append((name, way))
    for (i, j), names in shared.items():
        x, y = left + width * j + 6, top + height * (len(CHANNELS) - 1 - i) + 3
        way = names[0][1]
        p.rect(x, y, 7.5 * len(" ".join(name for name, _ in names)) + 8, 17, WAYS[way], "var(--ink)", 6)
        p.text(x + 4, y + 13, " ".join(name for name, _ in names), "note", "start")
    for k, (way, colour) in enumerate(WAYS.items()):
        y = top + 24 * k
        p.rect(left + width * len(FILTERS) + 14, y, 16, 16, colour)
        p.text(left + width * len(FILTERS) + 36, y + 13, way, "note", "start")
    return p


GROWTH = re.compile(r"^ +channels +definition(.*?)\n((?: +\d+(?: +[\d.]+)+\n)+)", re.MULTILINE)


def error_growth(picture_type, printed):
    """Errors by channels, a curve a tile: what docs/examples/winograd_tiles.cpp printed."""
    tiles, rows = GROWTH.search(printed).groups()
    names = ["definition", *tiles.split()]
    rows = [list(map(float, row.split())) for row in rows.strip().split("\n")]
    p = picture_type(720, 380)
    left, top, width, height, low, high = 80, 40, 480, 280, -2, 3

    def place(channels, value):
        along = math.log2(channels) / math.log2(rows[-1][0])
        return left + width * along, top + height * (high - math.log10(value)) / (high - low)

    p.text(left, 24, "rounding error of a sum, in millionths of the root mean square of the sums", "title", "start")
    for power in range(low, high + 1):
        p.line([place(1, 10**power), place(rows[-1][0], 10**power)], "var(--line)", 1)
        p.text(left - 10, place(1, 10**power)[1] + 5, f"{10**power:g}", "small", "end")
    for row in rows:
        p.text(place(row[0], 1)[0], top + height + 20, f"{row[0]:.0f}", "small")
    p.text(left + width / 2, top + height + 42, "channels", "small")
    colours = ["var(--ink)", "var(--y)", "var(--x)", "var(--w)", "var(--hot)"]
    for column, (name, colour) in enumerate(zip(names, colours), 1):
        p.line([place(row[0], row[column]) for row in rows], colour, 3)
        shift = 10 if name == "F(2x2)" else -2 if name == "definition" else 4
        p.text(left + width + 12, place(rows[-1][0], rows[-1][column])[1] + shift, name, "note", "start")
    return p
