"""The committed run as pictures: README.md's chart, and the climb of each ladder."""

import math

from benchmark_run import DTYPES, allowed, beside, best_baseline, machine, mark, of, on_gpu, saves_multiplications, short_name, time_text

# The problems whose climb is drawn.
CLIMBS = {
    "conv2d": ["B1", "B4", "B10"],
    "conv2d_dgrad": ["B4", "B10"],
    "conv2d_wgrad": ["B4", "B10"],
    "im2col": ["B4", "B9"],
    "col2im": ["B4", "B9"],
    "gemm": ["cube-4096"],
    "rulebook": ["sweep-subm3-table", "sweep-k3s2-table"],
    "sparse_conv": ["sweep-64-subm3", "large-128-subm3"],
    "sparse_dgrad": ["sweep-64-subm3"],
    "sparse_wgrad": ["sweep-64-subm3"],
    "sparse_max_pool": ["sweep-64-k2s2", "half-64-k3s2"],
    "sparse_max_pool_dgrad": ["sweep-64-k2s2", "half-64-k3s2"],
    "sparse_to_dense": ["eighth-128"],
    "voxelize": ["sweep-points", "shuffled-points"],
}
# README.md's rows.
HEADLINES = [
    ("conv2d", "B1"),
    ("conv2d", "B4"),
    ("conv2d", "B10"),
    ("conv2d", "B12"),
    ("conv2d_dgrad", "B4"),
    ("conv2d_wgrad", "B4"),
    ("gemm", "cube-4096"),
    ("rulebook", "sweep-subm3-table"),
    ("rulebook", "sweep-k3s2-table"),
    ("sparse_conv", "sweep-64-subm3"),
    ("sparse_dgrad", "sweep-64-subm3"),
    ("sparse_wgrad", "sweep-64-subm3"),
]
COLOURS = {
    "fp32": "#58a86c",
    "tf32": "#7d5fa3",
    "fp16": "#c25b6f",
    "bf16": "#3f8fb5",
    "fp8": "#8a7a2c",
    "int32": "#58a86c",
    "fewer multiplications": "#b57a2c",  # in any type
    "limit": "#8a94a0",
}


def headlines(run):
    """(what, the fastest rung's row, the fastest library's (name, microseconds)) of README.md's chart, L2 warm."""
    for ladder, problem in HEADLINES:
        timed = of(run, ladder=ladder, problem=problem, l2="warm")
        for dtype in DTYPES:
            mine = [row for row in timed if row["dtype"] in allowed(dtype)]
            if not any(row["dtype"] == dtype for row in mine):
                continue
            row = min(mine, key=lambda row: row["median_us"])
            # Any layout's baseline: a reader compares with the best that there is.
            theirs = (best_baseline(other) for other in beside(row, timed) if other["dtype"] == dtype)
            others = [best for best in theirs if best]
            if others:
                yield f"{ladder} {problem}, {dtype}{mark(row['rung'])}", row, min(others, key=lambda best: best[1])


def readme_chart(Picture, run):
    """How many times as fast as the fastest library the fastest rung is: a bar a problem, on a logarithmic axis."""
    rows = list(headlines(run))
    left, middle, right, step, top = 250, 500, 760, 24, 46
    ratios = [best[1] / row["median_us"] for _, row, best in rows]
    octave = (right - middle) / max(4, max(abs(math.log2(ratio)) for ratio in ratios))
    picture = Picture(980, top + step * len(rows) + 50)
    picture.text(middle + 6, 18, "the rung is faster", "small", "start")
    picture.text(middle - 6, 18, "the library is faster", "small", "end")
    bottom = top + step * len(rows)
    for power in range(-3, 5):
        x = middle + power * octave
        if left < x <= right + 1:
            picture.line([(x, 26), (x, bottom)], "var(--line)", 1.5 if power == 0 else 0.7)
            picture.text(x, 38, f"{2**power:g} x", "small")
    for i, ((what, row, best), ratio) in enumerate(zip(rows, ratios)):
        y = top + step * i
        x = middle + octave * max(math.log2(ratio), (left - middle) / octave)
        picture.text(left - 10, y + 16, what, "note", "end")
        picture.rect(min(x, middle), y + 4, abs(x - middle), step - 8, "var(--y)" if ratio >= 1 else "var(--w)", "none")
        picture.text(right + 12, y + 16, f"{time_text(row['median_us'])} beside {time_text(best[1])}", "note", "start")
    words = machine(run).rsplit(", commit", 1)[0]
    picture.text(20, bottom + 22, f"{words}; L2 warm.", "small", "start")
    picture.text(20, bottom + 40, "The fastest rung and the fastest library (cuDNN, cuBLAS, spconv), both with or both without fewer multiplications."
                 " For TF32, fp32 rungs are included. 3xTF32: fp32 on tensor cores.", "small", "start")
    return picture


def ticks(low, high):
    """1, 2, 5, 10, ... between; only powers of ten where those are many."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    steps = (1, 2, 5) if len(decades) <= 4 else (1,)
    return [m * 10.0**d for d in decades for m in steps if low <= m * 10.0**d <= high]


def climb(Picture, run, ladder, problem, order):
    """A ladder's rungs on one problem, one a line in the order of climbing; times from left to right, libraries and
    the limit as lines."""
    rows = of(run, ladder=ladder, problem=problem, l2="warm")
    rungs = [rung for rung in order if any(row["rung"] == rung for row in rows)]
    marks = {}  # kind: (us, name)
    for row in rows:
        for name, us in on_gpu(row["baselines"]).items():
            kind = f"{row['dtype']}, fewer multiplications" if saves_multiplications(name) else row["dtype"]
            marks[kind] = min(marks.get(kind, (math.inf, "")), (us, name))
        limit = row["roofline"] * row["median_us"]
        if limit > 0:
            kind = f"limit {row['dtype']}"
            marks[kind] = min(marks.get(kind, (math.inf, "")), (limit, "limit"))
    marks.pop("tf32, fewer multiplications", None)  # the same algorithms as in fp32
    times = [row["median_us"] for row in rows] + [us for us, _ in marks.values()]
    low, high = min(times) / 1.8, max(times) * 1.8
    step, left, width = 22, 240, 650
    top = 44 + 16 * len(marks)
    bottom = top + step * len(rungs)
    p = Picture(920, bottom + 36)

    def x_of(us):
        return left + width * math.log(us / low) / math.log(high / low)

    def dot(x, y, colour, title, hollow=False):
        style = f"fill:var(--paper);stroke:{colour};stroke-width:2.5" if hollow else f"fill:{colour}"
        p.parts.append(f'<circle cx="{x:g}" cy="{y:g}" r="4.5" style="{style}"><title>{title}</title></circle>')

    p.text(20, 24, f"{ladder} {problem}: time of each rung, L2 warm", "title", "start")
    dtypes = [dtype for dtype in DTYPES if any(row["dtype"] == dtype for row in rows)]
    for index, dtype in enumerate(dtypes):
        at = left + width - 60 * (len(dtypes) - index)
        dot(at, 20, COLOURS[dtype], dtype)
        p.text(at + 9, 24, dtype, "small", "start")
    if any(mark(rung) for rung in rungs):
        at = left + width - 60 * (len(dtypes) + 1) - 70
        dot(at, 20, COLOURS["fp32"], "3xTF32", hollow=True)
        p.text(at + 9, 24, "fp32 by 3xTF32", "small", "start")
    p.rect(left, top, width, bottom - top, round=0)
    for us in ticks(low, high):
        p.line([(x_of(us), top), (x_of(us), bottom)], "var(--zero)", 1)
        p.text(x_of(us), bottom + 18, time_text(us), "small")
    for index in range(len(rungs)):
        y = top + (index + 0.5) * step
        p.line([(left, y), (left + width, y)], "var(--zero)", 1)
    for line, (kind, (us, name)) in enumerate(sorted(marks.items(), key=lambda item: item[1])):
        is_limit = kind.startswith("limit")
        x, y = x_of(us), 48 + 16 * line
        p.line([(x, y + 4), (x, bottom)], COLOURS["limit" if is_limit else kind.split(", ")[-1]], 1.5, dash="6 4" if is_limit else None)
        words = kind if is_limit else f"{name}, {kind.split(',')[0]}"
        # Towards the middle of the picture.
        anchor = "start" if x < left + width / 2 else "end"
        p.text(x - 2 if anchor == "start" else x + 2, y, f"{words}: {time_text(us)}", "small", anchor)
    for index, rung in enumerate(rungs):
        y = top + (index + 0.5) * step
        mine = sorted((row for row in rows if row["rung"] == rung), key=lambda row: -row["median_us"])
        p.text(left - 8, y + 4, short_name(rung), "note", "end")
        for row in mine:
            x = x_of(row["median_us"])
            dot(x, y, COLOURS[row["dtype"]], f"{row['dtype']}, {row['layout']}: {time_text(row['median_us'])}", bool(mark(rung)))
        # The fastest's time left of its point; the slowest's right of its own, if it is another one.
        slowest, fastest = mine[0], mine[-1]
        p.text(x_of(fastest["median_us"]) - 9, y + 4, time_text(fastest["median_us"]), "value", "end")
        if x_of(slowest["median_us"]) - x_of(fastest["median_us"]) > 12:
            p.text(x_of(slowest["median_us"]) + 9, y + 4, time_text(slowest["median_us"]), "value", "start")
    return p


def climb_name(ladder, problem):
    return f"climb_{ladder}_{problem}".replace("-", "_")


def pictures(Picture, run, orders):
    """The climbs by file name; `orders` are the rungs of each ladder from the bottom up."""
    drawn = {}
    for ladder, problems in CLIMBS.items():
        for problem in problems:
            if of(run, ladder=ladder, problem=problem, l2="warm"):
                drawn[climb_name(ladder, problem)] = climb(
                    Picture, run, ladder, problem, orders.get(ladder, [])
                )
    return drawn
