"""A ladder's rungs in the order of reading: its spines with what each step gains, the alternatives, the advanced rungs."""

import itertools

from benchmark_run import best_baseline, of, time_text

# The problem that a spine's table shows: one that all of its rungs were timed on. By ladder, or by (ladder, part).
PROBLEMS = {
    ("conv2d", "direct"): "B1",
    ("conv2d", "implicit_gemm"): "B4",
    "conv2d_dgrad": "B4",
    "conv2d_wgrad": "B4",
    "im2col": "B4",
    "col2im": "B4",
    "gemm": "cube-4096",
    ("rulebook", "submanifold"): "sweep-subm3-pairs",
    ("rulebook", "strided"): "sweep-k3s2-pairs",
    "sparse_conv": "sweep-64-subm3",
    "sparse_dgrad": "sweep-64-subm3",
    "sparse_wgrad": "sweep-64-subm3",
    "sparse_max_pool": "sweep-64-k2s2",
    "sparse_max_pool_dgrad": "sweep-64-k2s2",
    "sparse_avg_pool": "sweep-64-k2s2",
    "sparse_global_pool": "half-64-mean",
    "sparse_to_dense": "eighth-128",
    "voxelize": "sweep-points",
    "fft": "lines-4096",
}
# Of a rung that was timed in several types, the one that is shown.
TYPES = ("int32", "fp32", "tf32", "bf16", "fp16", "fp8")


def part_of(row):
    """The name of a rung's spine, as pages write it; empty where its ladder has one alone."""
    return (row["part"] or "").replace("_", " ")


def heading(row):
    """What stands above the rungs of a spine or of a level."""
    if row["level"] == "spine":
        return f"The spine: {part_of(row)}" if row["part"] else "The spine"
    return {"alternative": "Alternatives", "advanced": "Advanced"}[row["level"]]


def by_ladder(rows):
    """{ladder: its rows}, of `convladder list --json`, in its order."""
    ladders = {}
    for row in rows:
        ladders.setdefault(row["ladder"], []).append(row)
    return ladders


def groups(rows):
    """(heading, rows) of each spine and level, in their order. @param rows of one ladder, of `convladder list --json`"""
    return [(title, list(rungs)) for title, rungs in itertools.groupby(rows, heading)]


def pill(rung, link):
    """A rung's link in the colour of its folder."""
    return f'<span class="pill {rung.split("/")[0]}">{link}</span>'


def problem_of(row):
    return PROBLEMS.get((row["ladder"], row["part"]), PROBLEMS.get(row["ladder"]))


def timed(run, row, is_stale):
    """The rung's time on the spine's problem with the L2 warm, in its faster layout: a row of the run; None if there is
    none that holds."""
    rows = [timed for timed in of(run, ladder=row["ladder"], problem=problem_of(row), rung=row["rung"], l2="warm")
            if not is_stale(timed)] if run else []
    return min(rows, key=lambda found: (TYPES.index(found["dtype"]), found["median_us"]), default=None)


def library_of(best):
    """How the library of a baseline is spelled: "cuDNN"."""
    name = best[0].split()[0]
    return {"cudnn": "cuDNN", "cublas": "cuBLAS", "cufft": "cuFFT"}.get(name, name)


def spine_table(run, rows, is_stale, link):
    """Lines of Markdown: the rungs of one spine, each with its time and type, the library's time in percent of it, and how
    many times as fast it is as the rung that it is built on.

    The library's time is that of the same run, problem and type. A column that no rung has is left out.
    @param link the text of a rung's link, by its row
    """
    times = {row["rung"]: found for row in rows if (found := timed(run, row, is_stale))}
    best = {rung: library for rung, mine in times.items() if (library := best_baseline(mine))}
    columns = {}
    if times:
        columns["time"] = {rung: f"{time_text(mine['median_us'])} {mine['dtype'].replace('int32', '')}".strip()
                           for rung, mine in times.items()}
        if best:
            names = ", ".join(sorted(set(map(library_of, best.values()))))
            columns[f"speed, {names} = 100 %"] = {rung: f"{100 * library[1] / times[rung]['median_us']:.0f} %"
                                                  for rung, library in best.items()}
        columns["gain"] = {row["rung"]: f"{times[row['previous']]['median_us'] / times[row['rung']]['median_us']:.2f} x"
                           for row in rows if row["rung"] in times and row["previous"] in times}
    lines = ["| | rung |" + "".join(f" {title} |" for title in columns), "|---:|---|" + "---:|" * len(columns)]
    for row in rows:
        cells = "".join(f" {texts.get(row['rung'], '')} |" for texts in columns.values())
        lines.append(f"| {row['spine']} | {link(row)}<br/>{row['idea']} |{cells}")
    return lines
