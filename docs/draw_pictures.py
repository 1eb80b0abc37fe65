#!/usr/bin/env python3
"""Draws the diagrams of the documentation as SVG.

    draw_pictures.py --convladder PROGRAM --out DIR

Everything that follows from a formula is computed here; the orders of the tile maps are what the program
writes. Colours mean the same in all pictures: blue is x, orange weights, green y, purple columns.
"""

import argparse
import ast
import html
import pathlib
import struct
import subprocess
import tempfile

STYLE = """
svg { color-scheme: light dark; }  /* as the pages: else a browser lays white below it in the dark */
svg { --ink: #1f2933; --soft: #6b7785; --line: #b8c1cc; --paper: #ffffff; --zero: #eef1f4;
      --x: #7fb2e5; --w: #f0b463; --y: #8bcf9b; --col: #c3a6e0; --hot: #e2574c; }
@media (prefers-color-scheme: dark) {
  svg { --ink: #e6eaef; --soft: #9aa5b1; --line: #55606c; --paper: #22272e; --zero: #2c333b;
        --x: #3f77b0; --w: #b57a2c; --y: #3f8a55; --col: #7d5fa3; --hot: #f0766c; }
}
text { font: 14px system-ui, "DejaVu Sans", sans-serif; fill: var(--ink); }
.small { font-size: 12px; fill: var(--soft); }
.note, .value { font-size: 12px; }
.code { font: 13px ui-monospace, "DejaVu Sans Mono", monospace; }
.title { font-weight: 600; }
"""


class Picture:
    def __init__(self, width, height):
        self.width, self.height, self.parts = width, height, []

    def rect(self, x, y, width, height, fill="none", stroke="var(--line)", round=2, dash=None, thick=1):
        dash = f' stroke-dasharray="{dash}"' if dash else ""
        self.parts.append(
            f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="{round}"'
            f' style="fill:{fill};stroke:{stroke};stroke-width:{thick}"{dash}/>'
        )

    def text(self, x, y, words, kind="", anchor="middle"):
        self.parts.append(
            f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" class="{kind}">{html.escape(str(words))}</text>'
        )

    def line(self, points, stroke="var(--soft)", thick=1.5, arrow=False, dash=None):
        path = " ".join(f"{x:g},{y:g}" for x, y in points)
        marker = ' marker-end="url(#arrow)"' if arrow else ""
        dash = f' stroke-dasharray="{dash}"' if dash else ""
        self.parts.append(
            f'<polyline points="{path}" style="fill:none;stroke:{stroke};stroke-width:{thick}"{marker}{dash}/>'
        )

    def cells(self, x, y, rows, columns, size, fill, label=None, kind="code"):
        """A grid of cells; `fill` and `label` are functions of row and column."""
        for r in range(rows):
            for c in range(columns):
                self.rect(x + c * size, y + r * size, size, size, fill(r, c), round=0)
                if label and label(r, c) is not None:
                    self.text(x + (c + 0.5) * size, y + (r + 0.5) * size + 5, label(r, c), kind)

    def svg(self):
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}"'
            f' width="{self.width}" height="{self.height}"><style>{STYLE}</style>'
            '<defs><marker id="arrow" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7"'
            ' orient="auto-start-reverse"><path d="M0,0 L10,5 L0,10 z" style="fill:var(--soft)"/></marker></defs>'
            + "\n".join(self.parts)
            + "</svg>\n"
        )


def house():
    """The folders and who uses whom."""
    p = Picture(800, 392)

    def box(x, y, width, name, says, fill):
        p.rect(x, y, width, 52, fill, "none", round=8)
        p.text(x + width / 2, y + 22, name, "code title")
        p.text(x + width / 2, y + 41, says, "note")

    box(20, 16, 150, "notebooks/", "lessons", "var(--zero)")
    box(205, 16, 170, "command/", "./ladder compare ...", "var(--zero)")
    box(390, 16, 170, "tests/", "one suite for every rung", "var(--zero)")
    box(205, 108, 355, "oracle/", "test data, references, checker", "var(--zero)")
    box(205, 188, 355, "ladders/", "the table of all rungs", "var(--zero)")
    box(20, 268, 172, "cpu_reference/", "the definitions", "var(--x)")
    box(202, 268, 172, "cuda_naive/", "first GPU version", "var(--w)")
    box(384, 268, 176, "cuda_optimized/", "one idea per rung", "var(--y)")
    box(20, 330, 540, "core/", "problems, arrays, the rung's interface, launch()", "var(--zero)")
    box(600, 108, 145, "cuda_on_cpu/", "CUDA on the CPU", "var(--col)")
    box(600, 188, 145, "CUDA toolkit", "if there is one", "var(--zero)")

    p.line([(172, 42), (201, 42)], arrow=True)
    for x in (290, 475):
        p.line([(x, 70), (x, 104)], arrow=True)
    p.line([(382, 162), (382, 184)], arrow=True)
    p.line([(230, 242), (230, 254), (106, 254), (106, 264)], arrow=True)
    p.line([(300, 242), (300, 264)], arrow=True)
    p.line([(470, 242), (470, 264)], arrow=True)
    p.text(20, 134, "every folder may use core;", "small", "start")
    p.text(20, 150, "core uses no other folder", "small", "start")
    p.line([(560, 294), (640, 294), (640, 244)], arrow=True)
    p.line([(560, 282), (580, 282), (580, 134), (596, 134)], arrow=True)
    p.text(652, 278, "the same .cu files,", "small", "start")
    p.text(652, 294, "compiled twice", "small", "start")
    return p


def window():
    """A 3 x 3 window with stride 2 and padding 1 over a 5 x 6 image."""
    p = Picture(700, 300)
    H, W, R, S, pad, stride, size = 5, 6, 3, 3, 1, 2, 30
    P, Q = (H + 2 * pad - R) // stride + 1, (W + 2 * pad - S) // stride + 1
    here_p, here_q = 1, 2
    top = here_p * stride  # in padded coordinates

    def fill(r, c):
        inside = pad <= r < H + pad and pad <= c < W + pad
        return "var(--x)" if inside else "var(--zero)"

    x0, y0 = 20, 46
    p.text(x0 + size * (W + 2) / 2, 30, f"x: {H} x {W}, padding {pad}", "title")
    p.cells(x0, y0, H + 2 * pad, W + 2 * pad, size, fill, lambda r, c: None if fill(r, c) == "var(--x)" else "0")
    for q in range(Q):
        dash = None if q == here_q else "4 3"
        p.rect(x0 + q * stride * size, y0 + top * size, S * size, R * size, "none",
               "var(--hot)" if q == here_q else "var(--soft)", dash=dash, thick=2.5 if q == here_q else 1.5)
    p.text(x0, y0 + (H + 2) * size + 22, f"stride {stride}: the window of y[{here_p},{here_q}] begins at row",
           "small", "start")
    p.text(x0, y0 + (H + 2) * size + 38, f"{here_p} * {stride} - {pad} = {here_p * stride - pad}, column "
           f"{here_q} * {stride} - {pad} = {here_q * stride - pad}", "small", "start")

    w0 = 330
    p.text(w0 + size * S / 2, 30, "w: 3 x 3", "title")
    p.cells(w0, y0 + 60, R, S, size, lambda r, c: "var(--w)")
    p.text(w0 - 22, y0 + 60 + size * 1.5 + 6, "*", "title")
    p.text(w0 + S * size + 30, y0 + 60 + size * 1.5 + 6, "=", "title")
    q0 = 480
    p.text(q0 + size * Q / 2, 30, f"y: {P} x {Q}", "title")
    p.cells(q0, y0 + 60, P, Q, size, lambda r, c: "var(--y)")
    p.rect(q0 + here_q * size, y0 + 60 + here_p * size, size, size, "none", "var(--hot)", thick=2.5)
    p.text(q0, y0 + 60 + P * size + 22, f"P = floor(({H} + 2 - {R}) / {stride}) + 1 = {P}", "small", "start")
    p.text(q0, y0 + 60 + P * size + 38, f"Q = floor(({W} + 2 - {S}) / {stride}) + 1 = {Q}", "small", "start")
    return p


def halo():
    """Two neighbouring tiles of outputs and the inputs that they read."""
    p = Picture(700, 264)
    tile, R, size = 5, 3, 22
    inputs = tile + R - 1
    for index, x0 in enumerate((20, 20 + tile * size)):
        colour = ("var(--hot)", "var(--ink)")[index]
        if index == 0:
            p.cells(x0, 40, inputs, inputs + tile, size,
                    lambda r, c: "var(--x)")
        p.rect(x0 + index * 2, 40 + index * 2, inputs * size - 4 * index, inputs * size - 4 * index, "none", colour, thick=2.5)
    p.rect(20 + tile * size, 40, (R - 1) * size, inputs * size, "var(--w)", "none")
    p.text(20, 26, "x: inputs of two adjacent blocks", "title", "start")
    p.text(20, 40 + inputs * size + 22, f"orange: read by both, the halo. A block of {tile} x {tile} outputs with a", "small", "start")
    p.text(20, 40 + inputs * size + 38, f"{R} x {R} filter reads {inputs} x {inputs} = {inputs ** 2} inputs, not {tile ** 2} * {R * R} = {tile ** 2 * R * R}.",
           "small", "start")
    x1 = 430
    p.text(x1, 26, "y: outputs of both blocks", "title", "start")
    p.cells(x1, 40 + size, tile, 2 * tile, size, lambda r, c: "var(--y)")
    p.rect(x1, 40 + size, tile * size, tile * size, "none", "var(--hot)", thick=2.5)
    p.rect(x1 + tile * size + 2, 42 + size, tile * size - 4, tile * size - 4, "none", "var(--ink)", thick=2.5)
    p.line([(20 + (inputs + tile) * size + 12, 118), (x1 - 12, 118)], arrow=True)
    return p


def im2col():
    """A 3 x 3 image, its four 2 x 2 windows, and the column matrix."""
    p = Picture(700, 236)
    size, H, W, R, S = 36, 3, 3, 2, 2
    letters = "abcdefghi"
    P, Q = H - R + 1, W - S + 1
    p.text(20 + 1.5 * size, 28, "x", "title")
    p.cells(20, 44, H, W, size, lambda r, c: "var(--x)", lambda r, c: letters[r * W + c])
    p.rect(20 + size, 44, S * size, R * size, "none", "var(--hot)", thick=2.5)
    p.text(20, 44 + H * size + 24, f"{R} x {S} windows, stride 1:", "small", "start")
    p.text(20, 44 + H * size + 40, f"{P} x {Q} of them", "small", "start")
    p.line([(150, 98), (258, 98)], arrow=True)
    p.text(204, 88, "im2col", "code")
    p.line([(258, 122), (150, 122)], arrow=True)
    p.text(204, 142, "col2im: adds", "code small")
    x0 = 360
    taps = [(r, s) for r in range(R) for s in range(S)]
    windows = [(o, q) for o in range(P) for q in range(Q)]
    p.cells(x0, 44, len(taps), len(windows), size, lambda r, c: "var(--col)",
            lambda r, c: letters[(windows[c][0] + taps[r][0]) * W + windows[c][1] + taps[r][1]])
    p.rect(x0 + size, 44, size, len(taps) * size, "none", "var(--hot)", thick=2.5)
    for i, tap in enumerate(taps):
        p.text(x0 - 10, 44 + (i + 0.5) * size + 5, f"tap {tap}", "small", "end")
    p.text(x0 + 2 * size, 28, "col: one column per window", "title")
    for i, at in enumerate(windows):
        p.text(x0 + (i + 0.5) * size, 44 + 4 * size + 18, f"{at[0]},{at[1]}", "small")
    p.text(x0 + 4 * size + 24, 44 + 1.5 * size, "e is in all", "small", "start")
    p.text(x0 + 4 * size + 24, 44 + 1.5 * size + 16, "in four windows,", "small", "start")
    p.text(x0 + 4 * size + 24, 44 + 1.5 * size + 32, "so stored four times", "small", "start")
    p.text(x0 + 4 * size + 24, 44 + 1.5 * size + 48, "in col", "small", "start")
    return p


def products():
    """The three GEMMs of a convolution's training step."""
    p = Picture(790, 390)
    K, CRS, PQ = 60, 92, 150

    def matrix(x, y, rows, columns, name, fill):
        p.rect(x, y, columns, rows, fill, "none", round=4)
        p.text(x + columns / 2, y + rows / 2 + 5, name, "code")

    def sides(x, y, rows, columns, down, across):
        p.text(x - 5, y + rows / 2 + 4, down, "small", "end")
        p.text(x + columns / 2, y - 6, across, "small")

    def row(y, title, a, b, c, note):
        p.text(20, y + 6, title, "title", "start")
        x, height = 240, max(a[0], b[0], c[0])
        for i, (rows, columns, name, fill, down, across) in enumerate((a, b, c)):
            top = y - rows / 2
            matrix(x, top, rows, columns, name, fill)
            sides(x, top, rows, columns, down, across)
            x += columns + 18
            if i < 2:
                p.text(x + 3, y + 5, "x="[i], "title")
                x += 58
        p.text(20, y + 24, note, "small", "start")
        return height

    w = (K, CRS, "w", "var(--w)", "K", "CRS")
    row(76, "forward", w, (CRS, PQ, "im2col(x)", "var(--col)", "CRS", "PQ"), (K, PQ, "y", "var(--y)", "K", "PQ"),
        "many sums with CRS terms")
    row(200, "dgrad", (CRS, K, "wᵀ", "var(--w)", "CRS", "K"), (K, PQ, "dy", "var(--y)", "K", "PQ"),
        (CRS, PQ, "dcol", "var(--col)", "CRS", "PQ"), "then dx = col2im(dcol)")
    row(320, "wgrad", (K, PQ, "dy", "var(--y)", "K", "PQ"), (PQ * 0.7, CRS, "im2col(x)ᵀ", "var(--col)", "PQ", "CRS"),
        (K, CRS, "dw", "var(--w)", "K", "CRS"), "few sums with PQ terms")
    return p


def strided_gradient():
    """Which outputs read which inputs: 1-D, 3 taps, stride 2, padding 1."""
    p = Picture(560, 190)
    W, R, pad, stride, size = 7, 3, 1, 2, 44
    Q = (W + 2 * pad - R) // stride + 1
    x_of = lambda w: 150 + w * size
    q_of = lambda q: 150 + (q * stride - pad + 1) * size
    p.text(20, 62, "dy", "title", "start")
    p.text(20, 162, "dx", "title", "start")
    for q in range(Q):
        p.rect(q_of(q), 40, size - 6, 34, "var(--y)", "none")
        p.text(q_of(q) + size / 2 - 3, 62, f"q={q}", "code")
    for w in range(W):
        p.rect(x_of(w), 140, size - 6, 34, "var(--x)", "none")
        p.text(x_of(w) + size / 2 - 3, 162, f"w={w}", "code")
    for q in range(Q):
        for s in range(R):
            w = q * stride - pad + s
            if 0 <= w < W:
                hot = w in (2, 3)
                p.line([(q_of(q) + size / 2 - 3, 76), (x_of(w) + size / 2 - 3, 136)],
                       "var(--hot)" if hot else "var(--line)", 2 if hot else 1.2, arrow=True)
    return p


def layouts():
    """The elements of a small tensor in the order of memory."""
    p = Picture(740, 300)
    N, C, H, W, size = 2, 3, 2, 2, 29
    shades = ["var(--x)", "var(--w)", "var(--y)"]
    orders = {
        "NCHW": [(n, c, h, w) for n in range(N) for c in range(C) for h in range(H) for w in range(W)],
        "NHWC": [(n, c, h, w) for n in range(N) for h in range(H) for w in range(W) for c in range(C)],
        "CHWN": [(n, c, h, w) for c in range(C) for h in range(H) for w in range(W) for n in range(N)],
    }
    p.text(20, 26, "2 images (the second one framed), 3 channels (colours), 2 x 2 pixels (a b above c d), in memory order:", "small", "start")
    for row, (name, order) in enumerate(orders.items()):
        y = 62 + row * 88
        p.text(20, y - 6, name, "title", "start")
        for i, (n, c, h, w) in enumerate(order):
            x = 20 + i * size
            p.rect(x, y, size - 3, size, shades[c], "none")
            p.text(x + size / 2 - 1.5, y + 19, "abcd"[h * W + w], "code")
            if n == 1:
                p.rect(x + 1, y + 1, size - 5, size - 2, "none", "var(--ink)", thick=1.6)
        strides = {"NCHW": (C * H * W, H * W, W, 1), "NHWC": (H * W * C, 1, W * C, C), "CHWN": (1, H * W * N, W * N, N)}[name]
        p.text(20, y + size + 18, "strides of n, c, h, w: " + ", ".join(map(str, strides)) + " elements", "small", "start")
    return p


def gemm_tiles():
    """A block's tile of c, and the tiles of a and b that it walks over."""
    p = Picture(560, 290)
    t = 34
    M, N, K = 3, 4, 4
    ax, ay, bx, by = 20, 180, 200, 10
    m, n, step = 1, 2, 1
    p.cells(ax, ay, M, K, t, lambda r, c: "var(--hot)" if (r, c) == (m, step) else "var(--x)" if r == m else "var(--zero)")
    p.text(ax + K * t / 2, ay - 10, "a [M][K]", "code")
    p.cells(bx, by, K, N, t, lambda r, c: "var(--hot)" if (r, c) == (step, n) else "var(--w)" if c == n else "var(--zero)")
    p.text(bx + N * t + 10, by + 60, "b [K][N]", "code", "start")
    p.cells(bx, ay, M, N, t, lambda r, c: "var(--y)" if (r, c) == (m, n) else "var(--zero)")
    p.text(bx + N * t + 10, ay + 56, "c [M][N]", "code", "start")
    p.line([(ax + 6, ay + 1.5 * t), (ax + K * t - 6, ay + 1.5 * t)], arrow=True)
    p.line([(bx + 2.5 * t, by + 6), (bx + 2.5 * t, by + K * t - 6)], arrow=True)
    return p


def read_npy(path):
    """An int32 array [rows][columns] as a list of rows."""
    data = path.read_bytes()
    header_bytes = struct.unpack("<H", data[8:10])[0]
    header = ast.literal_eval(data[10 : 10 + header_bytes].decode("latin1"))
    assert header["descr"] == "<i4" and not header["fortran_order"], header
    rows, columns = header["shape"]
    values = struct.unpack(f"<{rows * columns}i", data[10 + header_bytes :])
    return [values[r * columns : (r + 1) * columns] for r in range(rows)]


def tile_orders(convladder):
    """The order of the tiles under each map that hands out whole tiles, as the program writes it."""
    tiles_m, tiles_n, wave = 12, 16, 36
    maps = ["row_major", "identity1", "identity2", "identity4", "identity8", "horizontal", "grouped", "hilbert"]
    size, gap = 11, 24
    p = Picture(4 * (tiles_n * size + gap) + 10, 2 * (tiles_m * size + 62) + 26)
    p.text(20, 22, f"{tiles_m} x {tiles_n} tiles of c. Green: the first {wave} blocks, which run at the same time, in their order.", "small", "start")
    with tempfile.TemporaryDirectory() as folder:
        for index, name in enumerate(maps):
            subprocess.run(
                [convladder, "compare", "tile_map", "--tiles", f"{tiles_m},{tiles_n}", "--map", name,
                 "--rung", "cpu_reference/*", "--save", folder],
                check=True, stdout=subprocess.DEVNULL)
            [path] = pathlib.Path(folder).rglob(f"{name}.npy")
            units = read_npy(path)
            x0 = 20 + index % 4 * (tiles_n * size + gap)
            y0 = 66 + index // 4 * (tiles_m * size + 62)
            order = {(unit[2], unit[3]): i for i, unit in enumerate(units)}
            p.text(x0, y0 - 8, name, "code", "start")
            p.cells(x0, y0, tiles_m, tiles_n, size,
                    lambda r, c: "var(--y)" if order[(r, c)] < wave else "var(--zero)")
            centre = lambda tile: (x0 + (tile[1] + 0.5) * size, y0 + (tile[0] + 0.5) * size)
            path_points = [centre(tile) for tile, _ in sorted(order.items(), key=lambda item: item[1])][:wave]
            p.line(path_points, "var(--ink)", 1.3, arrow=True)
            rows = {tile[0] for tile, i in order.items() if i < wave}
            columns = {tile[1] for tile, i in order.items() if i < wave}
            p.text(x0, y0 + tiles_m * size + 18, f"{len(rows)} + {len(columns)} = {len(rows) + len(columns)} panels", "small", "start")
    return p


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--convladder", required=True)
    parser.add_argument("--out", required=True, type=pathlib.Path)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    pictures = {
        "house": house(),
        "window": window(),
        "halo": halo(),
        "im2col": im2col(),
        "products": products(),
        "strided_gradient": strided_gradient(),
        "layouts": layouts(),
        "gemm_tiles": gemm_tiles(),
        "tile_orders": tile_orders(arguments.convladder),
    }
    for name, picture in pictures.items():
        (arguments.out / f"{name}.svg").write_text(picture.svg())


if __name__ == "__main__":
    main()
