"""The committed run as tables for the pages, and as single numbers in their text."""

import re

from benchmark_run import best_baseline, of, on_gpu, saves_multiplications, time_text


def against_baseline(row):
    best = best_baseline(row)
    return f"{best[1] / row['median_us']:.2f} x {best[0]}" if best else ""


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
        "| problem | precision, layout | L2 | time | TFLOP/s | fraction of the limit | best library / this rung |",
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
