"""The committed runs of `./ladder bench`, as tables and pictures: for the pages and for README.md."""

import json
import math
import pathlib
import re

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
DTYPES = ("int32", "fp32", "tf32", "fp16", "bf16")
# Words in the names of such algorithms; the program reads the same file.
FEWER_MULTIPLICATIONS = (
    (pathlib.Path(__file__).resolve().parents[1] / "benchmarks" / "fewer_multiplications.txt").read_text().split()
)
COLOURS = {
    "fp32": "#58a86c",
    "tf32": "#7d5fa3",
    "fp16": "#c25b6f",
    "bf16": "#3f8fb5",
    "int32": "#58a86c",
    "fp32, fewer multiplications": "#b57a2c",
    "limit": "#8a94a0",
}
# Behind the name of a library's time on the host's clock, and of a time for both gradients.
HOST = ", host clock"
BOTH = ", dgrad and wgrad"


def newest_run(root):
    """The last run by date, then name, of benchmarks/results; None without any."""
    runs = [
        (json.loads(path.read_text()), path.name)
        for path in sorted((pathlib.Path(root) / "benchmarks" / "results").glob("*.json"))
    ]
    return max(runs, key=lambda run: (run[0]["date"], run[1]))[0] if runs else None


def saves_multiplications(name):
    return any(word in name for word in FEWER_MULTIPLICATIONS)


def on_gpu(times):
    """Those that are times on the GPU's clock."""
    return {name: us for name, us in times.items() if not name.endswith(HOST)}


def best_baseline(row):
    """(name, microseconds) of the fastest of its kind: plain arithmetic beside plain arithmetic."""
    fair = [
        (us, name)
        for name, us in on_gpu(row["baselines"]).items()
        if saves_multiplications(row["rung"]) or not saves_multiplications(name)
    ]
    return (min(fair)[1], min(fair)[0]) if fair else None


def time_text(us):
    """Three significant digits, as the command prints them."""
    for unit, size in (("us", 1), ("ms", 1e3), ("s", 1e6)):
        if us < 1000 * size or unit == "s":
            value = us / size
            digits = max(0, 2 - int(math.floor(math.log10(value)))) if value > 0 else 0
            return f"{value:.{digits}f} {unit}"


def against_baseline(row):
    best = best_baseline(row)
    return f"{best[1] / row['median_us']:.2f} x {best[0]}" if best else ""


def machine(run):
    libraries = f", cuDNN {run['cudnn']}" if run["cudnn"] else ""
    libraries += f", spconv {run['spconv']}" if run["spconv"] else ""
    return f"{run['gpu']}, driver {run['driver']}, CUDA {run['toolkit']}{libraries}, {run['date']}, commit {run['commit']}"


def ceilings(run):
    c = run["ceilings"]
    halves = f", fp16 on tensor cores {c['fp16_tflops']:.0f} TFLOP/s" if c.get("fp16_tflops") else ""
    return (
        f"copy {c['copy_tb_s']:.2f} TB/s (inside of the L2 {c['copy_l2_tb_s']:.2f}), multiply-adds in fp32"
        f" {c['fma_tflops']:.1f} TFLOP/s, TF32 on tensor cores {c['tf32_tflops']:.0f} TFLOP/s{halves}"
    )


def of(run, **wanted):
    return [row for row in run["rows"] if all(row[key] == value for key, value in wanted.items())]


def headlines(run):
    """(what, the fastest rung's row, the fastest library's (name, microseconds)) of README.md's chart, L2 warm."""
    for ladder, problem in HEADLINES:
        for dtype in DTYPES:
            rows = of(run, ladder=ladder, problem=problem, dtype=dtype, l2="warm")
            # Any layout's baseline: a reader compares with the best that there is.
            others = [best for best in map(best_baseline, rows) if best]
            if others:
                row = min(rows, key=lambda row: row["median_us"])
                yield f"{ladder} {problem}, {dtype}", row, min(others, key=lambda best: best[1])


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
    picture.text(20, bottom + 40, "The fastest rung beside the fastest library (cuDNN, cuBLAS, spconv), plain arithmetic on both sides.",
                 "small", "start")
    return picture


def variants(rows):
    """(dtype, layout), in the rows' order."""
    return list(dict.fromkeys((row["dtype"], row["layout"]) for row in rows))


def column_groups(problems):
    """Problems whose columns have room beside each other: those of sparse ladders by their sites."""
    groups = {}
    for problem in problems:
        sites = re.match(r"(sweep|large|half|quarter|eighth|shell|random|cube)-(?!\d+$)", problem)
        kind = sites.group(1) if sites else ""
        kind = {"half": "backbone", "quarter": "backbone", "eighth": "backbone"}.get(kind, kind)
        kind = {"shell": "sizes", "random": "sizes", "cube": "sizes"}.get(kind, kind)
        groups.setdefault(kind, []).append(problem)
    return list(groups.values())


def ladder_table(run, ladder, l2, link):
    """Rungs and the best baselines, a column a problem; several tables where there are many."""
    rows = of(run, ladder=ladder, l2=l2)
    lines = []
    for problems in column_groups(dict.fromkeys(row["problem"] for row in rows)):
        lines += [""] if lines else []
        lines += columns_table([row for row in rows if row["problem"] in problems], problems, link)
    return lines


def columns_table(rows, problems, link):
    """One of them."""
    lines = ["| | " + " | ".join(problems) + " |", "|---|" + "---:|" * len(problems)]
    for dtype, layout in variants(rows):
        mine = [row for row in rows if (row["dtype"], row["layout"]) == (dtype, layout)]
        lines.append(f"| **{dtype}, {layout}** |" + " |" * len(problems))
        cells = {}
        for row in mine:
            cells.setdefault(row["rung"], {})[row["problem"]] = row["median_us"]
        best = {p: min(row["median_us"] for row in mine if row["problem"] == p) for p in {row["problem"] for row in mine}}
        for rung, times in cells.items():
            texts = []
            for problem in problems:
                us = times.get(problem)
                mark = "**" if us is not None and us == best[problem] else ""
                texts.append(f"{mark}{time_text(us)}{mark}" if us is not None else "")
            lines.append(f"| {link(rung)} | " + " | ".join(texts) + " |")
        kinds = {"*library, plain arithmetic*": False, "*library, fewer multiplications*": True}
        for title, saving in kinds.items():
            texts = []
            for problem in problems:
                found = [
                    (us, name)
                    for row in mine
                    if row["problem"] == problem
                    for name, us in on_gpu(row["baselines"]).items()
                    if saves_multiplications(name) == saving
                ]
                texts.append(f"{time_text(min(found)[0])} {min(found)[1]}" if found else "")
            if any(texts):
                lines.append(f"| {title} | " + " | ".join(texts) + " |")
        texts = []
        for problem in problems:
            found = [row["roofline"] * row["median_us"] for row in mine if row["problem"] == problem]
            texts.append(time_text(min(found)) if found and min(found) > 0 else "")
        lines.append("| *limit* | " + " | ".join(texts) + " |")
    return lines


def rung_table(run, rung):
    """All rows of a rung."""
    rows = [row for row in run["rows"] if row["rung"] == rung]
    if not rows:
        return []
    lines = [
        "| problem | precision, layout | L2 | time | TFLOP/s | of the limit | best library / this |",
        "|---|---|---|---:|---:|---:|---|",
    ]
    for row in rows:
        rate = f"{row['tflops']:.2f}" if row["tflops"] else "-"
        lines.append(
            f"| {row['problem']} | {row['dtype']}, {row['layout']} | {row['l2']}"
            f" | {time_text(row['median_us'])} +- {time_text(row['spread_us'])}"
            f" | {rate} | {100 * row['roofline']:.0f} % | {against_baseline(row)} |"
        )
    return lines


def problems_of(run, ladder):
    """Of the run, in its order."""
    return list(dict.fromkeys(row["problem"] for row in of(run, ladder=ladder)))


def bytes_text(count):
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("KB", 1e3)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count:.0f} B"


def filled(text, run, rung, path):
    """A page in which `{{time PROBLEM [DTYPE [RUNG]]}}` and its like are numbers of the run, L2 warm, the rung's faster
    layout. `time`: of this rung, or of another; `library`: of the fastest library; `registers` and `limit` (of what is
    possible, in percent): of the rung."""

    def replace(match):
        kind, problem, *more = match.group(1).split()
        other = more[1] if len(more) > 1 else rung
        rows = of(run, rung=other, problem=problem, l2="warm") if run else []
        if more:
            rows = [row for row in rows if row["dtype"] == more[0]]
        if not rows or len({row["dtype"] for row in rows}) > 1:
            raise SystemExit(f"{path}: {match.group(0)}: the newest run has {'several types' if rows else 'no such row'}")
        row = min(rows, key=lambda row: row["median_us"])
        if kind == "library":
            best = best_baseline(row)
            if best is None:
                raise SystemExit(f"{path}: {match.group(0)}: no library was timed")
            return f"{time_text(best[1])} ({best[0]})"
        kinds = {
            "time": lambda: time_text(row["median_us"]),
            "registers": lambda: str(row["registers"]),
            "limit": lambda: f"{100 * row['roofline']:.0f} %",
        }
        if kind not in kinds:
            raise SystemExit(f"{path}: {match.group(0)}: no such macro")
        return kinds[kind]()

    return re.sub(r"\{\{(.*?)\}\}", replace, text)


def counters(run, rung, ladder, named):
    """What was measured of a rung on one problem: the first that is `named` in its header, or one of the ladder's usual
    ones; L2 warm, in the rung's faster layout."""
    fastest = {}
    for row in of(run, rung=rung, l2="warm"):
        if row["problem"] not in fastest or row["median_us"] < fastest[row["problem"]]["median_us"]:
            fastest[row["problem"]] = row
    wanted = list(dict.fromkeys([*named, *CLIMBS.get(ladder, []), *fastest]))
    rows = [fastest[problem] for problem in wanted if problem in fastest][:1]
    if not rows:
        return []
    cold = {
        (row["problem"], row["dtype"], row["layout"]): row["median_us"] for row in of(run, rung=rung, l2="cold")
    }

    def cold_time(row):
        us = cold.get((row["problem"], row["dtype"], row["layout"]))
        return time_text(us) if us else "not timed"

    kinds = {
        "time, L2 warm": lambda row: f"**{time_text(row['median_us'])}**",
        "time, L2 cold": cold_time,
        "on the host's clock": lambda row: time_text(row["host_us"]),
        "TFLOP/s": lambda row: f"{row['tflops']:.2f}" if row["tflops"] else "no arithmetic",
        "share of the roofline": lambda row: f"{100 * row['roofline']:.0f} %",
        "bytes of all arrays": lambda row: bytes_text(row["bytes"]),
        "fastest library": lambda row: (best_baseline(row) or ("none",))[0].replace(" ", "<br>", 1),
        "its time / this": lambda row: f"{best_baseline(row)[1] / row['median_us']:.2f}" if best_baseline(row) else "",
        "launches": lambda row: row["launches"],
        "waits of the host": lambda row: row["host_syncs"],
        "scratch memory": lambda row: bytes_text(row["memory_bytes"]) if "memory_bytes" in row else "",
        "registers a thread": lambda row: row["registers"],
        "shared memory a block": lambda row: bytes_text(row["shared_bytes"]),
        "spills a thread": lambda row: bytes_text(row["spills"]),
        "occupancy": lambda row: f"{100 * row['occupancy']:.0f} %",
    }
    lines = ["| measured | " + " | ".join(f"{row['problem']}, {row['dtype']}, {row['layout']}" for row in rows) + " |"]
    lines += ["|---|" + "---:|" * len(rows)]
    for name, value in kinds.items():
        # One line a name: the columns share what is left.
        lines.append(f"| {name.replace(' ', '&nbsp;')} | " + " | ".join(str(value(row)) for row in rows) + " |")
    return lines


def convolutions(first, last):
    return [f"B{i}" for i in range(first, last + 1)]


CUBES = ["cube-2048", "cube-4096", "cube-8192"]
COLUMNS = ["B3", "B4", "B9", "B10"]
# Which fastest rung is held against which fastest library, by title: the ladder and its problems, the precision that is
# allowed, and where these do not say it all:
# layout: of both; otherwise any, of each on its own.
# part: the work of the library's limits with that ending, or of the limit of that name.
# only, without: a pattern of the rungs' names.
# clock: "host", for both sides' time on the host's clock.
# BACKWARD has the sum of both gradients' rungs beside one call that makes both.
CONTESTS = {
    "Direct convolution, fp32": dict(ladder="conv2d", problems=convolutions(1, 2), dtype="fp32"),
    "Depthwise, fp32": dict(ladder="conv2d", problems=["B12"], dtype="fp32"),
    "Depthwise, fp32, input gradient": dict(ladder="conv2d_dgrad", problems=["B12"], dtype="fp32"),
    "Depthwise, fp32, weight gradient": dict(ladder="conv2d_wgrad", problems=["B12"], dtype="fp32", part=", dw alone"),
    "im2col, and a copy of as many bytes": dict(ladder="im2col", problems=COLUMNS, dtype="fp32", part="copy"),
    "col2im, and a copy of as many bytes": dict(ladder="col2im", problems=COLUMNS, dtype="fp32", part="copy"),
    "Matrix product, fp32, without tensor cores": dict(ladder="gemm", problems=CUBES, dtype="fp32", without="mma"),
    "Matrix product, fp32": dict(ladder="gemm", problems=CUBES, dtype="fp32"),
    "Convolution, fp32": dict(ladder="conv2d", problems=convolutions(3, 11), dtype="fp32"),
    "Input gradient, fp32": dict(ladder="conv2d_dgrad", problems=convolutions(3, 10), dtype="fp32"),
    "Weight gradient, fp32": dict(
        ladder="conv2d_wgrad", problems=convolutions(3, 10), dtype="fp32", part=", dw alone"
    ),
    "Convolution, TF32, by `mma.sync`": dict(
        ladder="conv2d", problems=["B10"], dtype="tf32", only=r"mma_tf32", without="wgmma"
    ),
    "Convolution, TF32, NHWC": dict(ladder="conv2d", problems=convolutions(4, 10), dtype="tf32", layout="nhwc"),
    "Few channels, TF32": dict(ladder="conv2d", problems=["B3", "B11"], dtype="tf32"),
    "Input gradient, TF32": dict(ladder="conv2d_dgrad", problems=convolutions(4, 10), dtype="tf32"),
    "Weight gradient, TF32": dict(
        ladder="conv2d_wgrad", problems=convolutions(4, 10), dtype="tf32", part=", dw alone"
    ),
    "Matrix product, TF32": dict(ladder="gemm", problems=CUBES, dtype="tf32"),
}


def sparse_problems(pattern):
    """Over the sweep and over the large one."""
    return [pattern.replace("*", sites) for sites in ("sweep", "large")]


SUBM = [f"{sites}-{channels}-subm3" for sites in ("sweep", "large") for channels in (32, 64, 128)]
for title, ends in {
    "Rulebook, submanifold 3^3": ["*-subm3-table", "*-subm3-sorted", "*-subm3-pairs"],
    "Rulebook, strided": ["*-k3s2-table", "*-k3s2-pairs", "*-k2s2-table", "*-k3s1-table", "*-k3s1-pairs"],
}.items():
    problems = [problem for end in ends for problem in sparse_problems(end)]
    CONTESTS[title] = dict(ladder="rulebook", problems=problems, dtype="int32")
    CONTESTS[f"{title}, on the host's clock"] = dict(CONTESTS[title], clock="host")
for dtype, name in (("fp32", "fp32"), ("tf32", "TF32"), ("fp16", "fp16")):
    CONTESTS[f"Sparse convolution, {name}"] = dict(ladder="sparse_conv", problems=SUBM, dtype=dtype)
    CONTESTS[f"Sparse convolution, {name}, of a backbone"] = dict(
        ladder="sparse_conv",
        problems=["sweep-16-subm3", "sweep-16-32-k3s2", "half-32-subm3", "half-32-64-k3s2", "quarter-64-subm3",
                  "quarter-64-k3s2", "eighth-64-subm3", "eighth-64-128-k311s211"],
        dtype=dtype,
    )
CONTESTS["Sparse convolution with bias and ReLU, fp16"] = dict(
    ladder="sparse_conv", problems=["sweep-64-subm3-relu"], dtype="fp16"
)
BACKWARD = {
    f"Sparse convolution, both gradients, {name}": dict(problems=[*SUBM, "sweep-16-32-k3s2"], dtype=dtype)
    for dtype, name in (("fp32", "fp32"), ("tf32", "TF32"), ("fp16", "fp16"))
}


def opponent(rows, part, clock):
    """(microseconds, name, layout) of the fastest in plain arithmetic, for the whole work or a part of it."""
    times = []
    for row in rows:
        others = {name: us for name, us in row["baselines"].items() if name.endswith(HOST) == (clock == "host")}
        if part:
            others = {name.removesuffix(part) or name: us for name, us in row["limits"].items() if name.endswith(part)}
        times += [(us, name, row["layout"]) for name, us in others.items() if not saves_multiplications(name)]
    return min(times, default=None)


def allowed(dtype):
    """The types of rungs that may stand against a library in that type: where TF32 is allowed, fp32 is too."""
    return ("fp32", "tf32") if dtype == "tf32" else (dtype,)


def backward_contest(run, link, problems, dtype):
    """As contest()."""
    lines = [
        "| problem | fastest rungs | both together | TFLOP/s | fastest library | its time | its time / ours |",
        "|---|---|---:|---:|---|---:|---:|",
    ]
    ratios = {}
    for problem in problems:
        rows = {ladder: of(run, ladder=ladder, problem=problem, l2="warm") for ladder in ("sparse_dgrad", "sparse_wgrad")}
        mine = [[row for row in some if row["dtype"] in allowed(dtype)] for some in rows.values()]
        if not all(mine):
            continue
        best = [min(some, key=lambda row: row["median_us"]) for some in mine]
        us = sum(row["median_us"] for row in best)
        work = sum(row["tflops"] * row["median_us"] for row in best)
        line = f"| {problem} | {' and '.join(link(row['rung']) for row in best)} | {time_text(us)} | {work / us:.1f}"
        theirs = [
            (time, name.removesuffix(BOTH))
            for some in rows.values()
            for row in some
            if row["dtype"] == dtype
            for name, time in on_gpu(row["limits"]).items()
            if name.endswith(BOTH)
        ]
        if theirs:
            time, name = min(theirs)
            ratios[problem] = time / us
            line += f" | {name} | {time_text(time)} | {ratios[problem]:.2f} |"
        else:
            line += " | none | | |"
        lines.append(line)
    return lines, ratios


def contest(run, link, ladder, problems, dtype, layout=None, part="", only="", without="$^", clock="gpu"):
    """The lines of a table, and how many times as long the library takes, by problem."""
    lines = [
        "| problem | fastest rung | time | TFLOP/s | fastest library | its time | its time / ours |",
        "|---|---|---:|---:|---|---:|---:|",
    ]
    ratios = {}
    for problem in problems:
        rows = [row for row in of(run, ladder=ladder, problem=problem, l2="warm") if layout in (None, row["layout"])]
        mine = [
            row
            for row in rows
            if row["dtype"] in allowed(dtype) and re.search(only, row["rung"]) and not re.search(without, row["rung"])
        ]
        if not mine:
            lines.append(f"| {problem} | none | | | | | |")
            continue
        kind = "host_us" if clock == "host" else "median_us"
        best = min(mine, key=lambda row: row[kind])
        line = f"| {problem} | {link(best['rung'])}, {best['dtype']}, {best['layout']} | {time_text(best[kind])}"
        line += f" | {best['tflops']:.1f}" if best["tflops"] else " |"
        other = opponent([row for row in rows if row["dtype"] == dtype], part, clock)
        if other:
            us, name, at = other
            ratios[problem] = us / best[kind]
            line += f" | {name}, {at} | {time_text(us)} | {ratios[problem]:.2f} |"
        else:
            line += " | none | | |"
        lines.append(line)
    return lines, ratios


def contests(run, link):
    """For each of CONTESTS, the fastest rung beside the fastest library in plain arithmetic, L2 warm; first what comes
    out on the whole."""
    summary = [
        "| | problems | library's time / ours, geometric mean | least | most |",
        "|---|---|---:|---:|---:|",
    ]
    details = []
    for title, what in {**CONTESTS, **BACKWARD}.items():
        table, ratios = (backward_contest if title in BACKWARD else contest)(run, link, **what)
        if not ratios:
            continue
        mean = math.exp(sum(map(math.log, ratios.values())) / len(ratios))
        names = list(what["problems"])
        problems = names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}" if len(names) > 4 else ", ".join(names)
        least, most = (choose(ratios, key=ratios.get) for choose in (min, max))
        ends = f"{ratios[least]:.2f} {least} | {ratios[most]:.2f} {most}" if len(ratios) > 1 else " | "
        summary.append(f"| {title} | {problems} | **{mean:.2f}** | {ends} |")
        note = " (the library computes dw alone, the rung dw and db)" if what.get("part") == ", dw alone" else ""
        details += [f"**{title}**{note}", "", *table, ""]
    return [*summary, "", *details]


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
    low, high = min(times) / 1.4, max(times) * 1.8
    step, left, width = 22, 240, 650
    top = 44 + 16 * len(marks)
    bottom = top + step * len(rungs)
    p = Picture(920, bottom + 36)

    def x_of(us):
        return left + width * math.log(us / low) / math.log(high / low)

    def dot(x, y, colour, title):
        p.parts.append(f'<circle cx="{x:g}" cy="{y:g}" r="4.5" style="fill:{colour}"><title>{title}</title></circle>')

    p.text(20, 24, f"{ladder} {problem}: time of each rung, L2 warm", "title", "start")
    dtypes = [dtype for dtype in DTYPES if any(row["dtype"] == dtype for row in rows)]
    for index, dtype in enumerate(dtypes):
        at = left + width - 60 * (len(dtypes) - index)
        dot(at, 20, COLOURS[dtype], dtype)
        p.text(at + 9, 24, dtype, "small", "start")
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
        p.line([(x, y + 4), (x, bottom)], COLOURS["limit" if is_limit else kind], 1.5, dash="6 4" if is_limit else None)
        words = kind if is_limit else f"{name}, {kind.split(',')[0]}"
        # Towards the middle of the picture.
        anchor = "start" if x < left + width / 2 else "end"
        p.text(x - 2 if anchor == "start" else x + 2, y, f"{words}: {time_text(us)}", "small", anchor)
    for index, rung in enumerate(rungs):
        y = top + (index + 0.5) * step
        mine = sorted((row for row in rows if row["rung"] == rung), key=lambda row: -row["median_us"])
        p.text(left - 8, y + 4, rung.rsplit("/", 1)[1], "note", "end")
        for row in mine:
            x = x_of(row["median_us"])
            dot(x, y, COLOURS[row["dtype"]], f"{row['dtype']}, {row['layout']}: {time_text(row['median_us'])}")
        # The fastest's time, right of the slowest's point.
        p.text(x_of(mine[0]["median_us"]) + 9, y + 4, time_text(mine[-1]["median_us"]), "note", "start")
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
