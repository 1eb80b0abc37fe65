"""The fastest rung beside the fastest library, for each kind of work: the tables of the page of benchmarks."""

import math
import re

from benchmark_run import BOTH, HOST, allowed, beside, of, on_gpu, saves_multiplications, time_text


def convolutions(first, last):
    return [f"B{i}" for i in range(first, last + 1)]


CUBES = ["cube-2048", "cube-4096", "cube-8192"]
COLUMNS = ["B3", "B4", "B9", "B10"]
SAVED = ["B4", "B6", "B7", "B9", "B10"]  # filters of 3 x 3, stride 1
# Which fastest rung is held against which fastest library, by title: the ladder and its problems, the precision that is
# allowed, and where these do not say it all:
# layout: of both; otherwise any, of each on its own.
# part: the work of the library's limits with that ending, or of the limit of that name.
# only, without: a pattern of the rungs' names.
# clock: "host", for both sides' time on the host's clock.
# saving: True, for rungs that save multiplications, beside all that the library has; otherwise plain arithmetic on both
# sides.
# BACKWARD has the sum of both gradients' rungs beside one call that makes both.
CONTESTS = {
    "Direct convolution, fp32": dict(ladder="conv2d", problems=convolutions(1, 2), dtype="fp32"),
    "Depthwise, fp32": dict(ladder="conv2d", problems=["B12"], dtype="fp32"),
    "Depthwise, fp32, input gradient": dict(ladder="conv2d_dgrad", problems=["B12"], dtype="fp32"),
    "Depthwise, fp32, weight gradient": dict(ladder="conv2d_wgrad", problems=["B12"], dtype="fp32", part=", dw alone"),
    "im2col, and a copy of as many bytes": dict(ladder="im2col", problems=COLUMNS, dtype="fp32", part="copy"),
    "col2im, and a copy of as many bytes": dict(ladder="col2im", problems=COLUMNS, dtype="fp32", part="copy"),
    "GEMM, fp32, without tensor cores": dict(ladder="gemm", problems=CUBES, dtype="fp32", without="mma"),
    "GEMM, fp32": dict(ladder="gemm", problems=CUBES, dtype="fp32"),
    "Convolution, fp32": dict(ladder="conv2d", problems=convolutions(3, 11), dtype="fp32"),
    "Convolution, fp32, fewer multiplications": dict(ladder="conv2d", problems=[*SAVED, "B17"], dtype="fp32", saving=True),
    "Input gradient, fp32, fewer multiplications": dict(ladder="conv2d_dgrad", problems=SAVED, dtype="fp32", saving=True),
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
    "Convolution, bf16, NHWC": dict(ladder="conv2d", problems=[*convolutions(4, 10), "B15"], dtype="bf16", layout="nhwc"),
    "Few channels, bf16": dict(ladder="conv2d", problems=["B1", "B2", "B3", "B11"], dtype="bf16"),
    "Input gradient, bf16": dict(ladder="conv2d_dgrad", problems=convolutions(4, 10), dtype="bf16"),
    "Weight gradient, bf16": dict(
        ladder="conv2d_wgrad", problems=convolutions(4, 10), dtype="bf16", part=", dw alone"
    ),
    "GEMM, TF32": dict(ladder="gemm", problems=CUBES, dtype="tf32"),
    "GEMM, fp16": dict(ladder="gemm", problems=["cube-1024", *CUBES], dtype="fp16"),
    "GEMM, bf16": dict(ladder="gemm", problems=["cube-1024", *CUBES], dtype="bf16"),
    "GEMM with bias and ReLU, bf16": dict(
        ladder="gemm", problems=["cube-4096-relu", "rows-131072-relu"], dtype="bf16", part=" of a bias in 16 bits"
    ),
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


def opponent(rows, part, clock, saving):
    """(microseconds, name, layout) of the fastest, for the whole work or a part of it."""
    times = []
    for row in rows:
        others = {name: us for name, us in row["baselines"].items() if name.endswith(HOST) == (clock == "host")}
        if part:
            others = {name.removesuffix(part) or name: us for name, us in row["limits"].items() if name.endswith(part)}
        times += [(us, name, row["layout"]) for name, us in others.items() if saving or not saves_multiplications(name)]
    return min(times, default=None)


def backward_contest(run, link, problems, dtype):
    """As contest()."""
    lines = [
        "| problem | fastest rungs | total time | TFLOP/s | fastest library | library time | library time / rung time |",
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


def contest(run, link, ladder, problems, dtype, layout=None, part="", only="", without="$^", clock="gpu", saving=False):
    """The lines of a table, and how many times as long the library takes, by problem."""
    lines = [
        "| problem | fastest rung | time | TFLOP/s | fastest library | library time | library time / rung time |",
        "|---|---|---:|---:|---|---:|---:|",
    ]
    ratios = {}
    for problem in problems:
        rows = [row for row in of(run, ladder=ladder, problem=problem, l2="warm") if layout in (None, row["layout"])]
        mine = [
            row
            for row in rows
            if row["dtype"] in allowed(dtype) and re.search(only, row["rung"]) and not re.search(without, row["rung"])
            and saves_multiplications(row["rung"]) == saving
        ]
        if not mine:
            lines.append(f"| {problem} | none | | | | | |")
            continue
        kind = "host_us" if clock == "host" else "median_us"
        best = min(mine, key=lambda row: row[kind])
        line = f"| {problem} | {link(best['rung'])}, {best['dtype']}, {best['layout']} | {time_text(best[kind])}"
        line += f" | {best['tflops']:.1f}" if best["tflops"] else " |"
        other = opponent([row for row in beside(best, rows) if row["dtype"] == dtype], part, clock, saving)
        if other:
            us, name, at = other
            ratios[problem] = us / best[kind]
            line += f" | {name}, {at} | {time_text(us)} | {ratios[problem]:.2f} |"
        else:
            line += " | none | | |"
        lines.append(line)
    return lines, ratios


def contests(run, link):
    """For each of CONTESTS, the fastest rung beside the fastest library of its kind, L2 warm; first what comes
    out on the whole."""
    summary = [
        "| | problems | library time / rung time, geometric mean | minimum | maximum |",
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
        name = "contest_" + re.sub(r"\W+", "_", title).strip("_").lower()
        summary.append(f"| \\ref {name} \"{title.replace('`', '')}\" | {problems} | **{mean:.2f}** | {ends} |")
        note = "The library computes dw only; the rung computes dw and db." if what.get("part") == ", dw alone" else ""
        details += [f"## {title.replace('`', '')} {{#{name}}}", "", *([note.strip(), ""] if note else []), *table, ""]
    return [*summary, "", *details]
