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


def heading(row):
    """What stands above the rungs of a spine or of a level."""
    if row["level"] == "spine":
        return f"The spine: {row['part'].replace('_', ' ')}" if row["part"] else "The spine"
    return {"alternative": "Alternatives", "advanced": "Advanced"}[row["level"]]


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


def measured(run, rows, is_stale):
    """Of a spine's rungs, by name: (time and type, percent of the library's speed, gain over the step before), as texts.

    The library's time is that of the same run, problem and type. The step before is the rung of `previous`.
    """
    times = {row["rung"]: timed(run, row, is_stale) for row in rows}
    texts = {}
    for row in rows:
        mine, before = times[row["rung"]], times.get(row["previous"])
        if mine is None:
            texts[row["rung"]] = ("", "", "")
            continue
        library = best_baseline(mine)
        texts[row["rung"]] = (
            f"{time_text(mine['median_us'])} {mine['dtype'] if mine['dtype'] != 'int32' else ''}".strip(),
            f"{100 * library[1] / mine['median_us']:.0f} %" if library else "",
            f"{before['median_us'] / mine['median_us']:.2f} x" if before else "",
        )
    return texts


def libraries(run, rows, is_stale):
    """The names of the libraries that the rungs' times stand against: "cuDNN"."""
    spelled = {"cudnn": "cuDNN", "cublas": "cuBLAS", "cufft": "cuFFT"}
    found = (best_baseline(row) for row in (timed(run, row, is_stale) for row in rows) if row)
    return ", ".join(sorted({spelled.get(best[0].split()[0], best[0].split()[0]) for best in found if best}))


def spine_table(run, rows, is_stale, link):
    """Lines of Markdown: the rungs of one spine. @param link the text of a rung's link, by its row"""
    texts = measured(run, rows, is_stale)
    library = libraries(run, rows, is_stale)
    timed_columns = [("time", 0), *([(f"speed, {library} = 100 %", 1)] if library else []), ("gain", 2)]
    if not any(text[0] for text in texts.values()):
        timed_columns = []
    lines = ["| | rung |" + "".join(f" {title} |" for title, _ in timed_columns), "|---:|---|" + "---:|" * len(timed_columns)]
    for row in rows:
        cells = "".join(f" {texts[row['rung']][column]} |" for _, column in timed_columns)
        lines.append(f"| {row['spine']} | {link(row)}<br/>{row['idea']} |{cells}")
    return lines
