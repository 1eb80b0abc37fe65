"""The committed runs of `./ladder bench`, as tables and pictures: for the pages and for README.md."""

import json
import math
import pathlib

# The problems whose climb is drawn.
CLIMBS = {
    "conv2d": ["B1", "B4", "B10"],
    "conv2d_dgrad": ["B4", "B10"],
    "conv2d_wgrad": ["B4", "B10"],
    "im2col": ["B4"],
    "col2im": ["B4"],
    "gemm": ["cube-4096"],
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
]
COLOURS = {"fp32": "#58a86c", "tf32": "#7d5fa3", "fp32, fewer multiplications": "#b57a2c", "limit": "#8a94a0"}


def newest_run(root):
    """The last run by date, then name, of benchmarks/results; None without any."""
    runs = [
        (json.loads(path.read_text()), path.name)
        for path in sorted((pathlib.Path(root) / "benchmarks" / "results").glob("*.json"))
    ]
    return max(runs, key=lambda run: (run[0]["date"], run[1]))[0] if runs else None


def saves_multiplications(name):
    return "winograd" in name or "fft" in name


def best_baseline(row):
    """(name, microseconds) of the fastest of its kind: plain arithmetic beside plain arithmetic."""
    fair = [
        (us, name)
        for name, us in row["baselines"].items()
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
    cudnn = f", cuDNN {run['cudnn']}" if run["cudnn"] else ""
    return f"{run['gpu']}, driver {run['driver']}, CUDA {run['toolkit']}{cudnn}, {run['date']}, commit {run['commit']}"


def ceilings(run):
    c = run["ceilings"]
    return (
        f"copy {c['copy_tb_s']:.2f} TB/s (inside of the L2 {c['copy_l2_tb_s']:.2f}), multiply-adds in fp32"
        f" {c['fma_tflops']:.1f} TFLOP/s, TF32 on tensor cores {c['tf32_tflops']:.0f} TFLOP/s"
    )


def of(run, **wanted):
    return [row for row in run["rows"] if all(row[key] == value for key, value in wanted.items())]


def readme_table(run):
    """The fastest rung beside the fastest baseline, L2 warm."""
    lines = [
        "| | precision | fastest rung | time | of the limit | fastest library, plain arithmetic | its time |",
        "|---|---|---|---|---|---|---|",
    ]
    for ladder, problem in HEADLINES:
        for dtype in ("fp32", "tf32"):
            rows = of(run, ladder=ladder, problem=problem, dtype=dtype, l2="warm")
            if not rows:
                continue
            row = min(rows, key=lambda row: row["median_us"])
            # Any layout's baseline: a reader compares with the best that there is.
            others = [best for best in map(best_baseline, rows) if best]
            other = min(others, key=lambda best: best[1]) if others else None
            name = row["rung"].rsplit("/", 1)[1]
            lines.append(
                f"| {ladder} {problem}{' (dw and db)' if ladder == 'conv2d_wgrad' else ''} | {dtype} | [{name}]({row['rung']}.cu) | {time_text(row['median_us'])}"
                f" | {100 * row['roofline']:.0f} % | {other[0] if other else ''} | {time_text(other[1]) if other else ''} |"
            )
    return [machine(run) + ", L2 warm:", "", *lines]


def variants(rows):
    """(dtype, layout), in the rows' order."""
    return list(dict.fromkeys((row["dtype"], row["layout"]) for row in rows))


def ladder_table(run, ladder, l2, link):
    """Rungs and the best baselines, a column a problem."""
    rows = of(run, ladder=ladder, l2=l2)
    problems = list(dict.fromkeys(row["problem"] for row in rows))
    if not problems:
        return []
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
                    for name, us in row["baselines"].items()
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
        "| problem | precision, layout | L2 | time | TFLOP/s | of the limit | best library / this | launches"
        " | registers | shared | spills | occupancy |",
        "|---|---|---|---:|---:|---:|---|---:|---:|---:|---:|---:|",
    ]
    for row in rows:
        lines.append(
            f"| {row['problem']} | {row['dtype']}, {row['layout']} | {row['l2']}"
            f" | {time_text(row['median_us'])} +- {time_text(row['spread_us'])}"
            f" | {row['tflops']:.2f} | {100 * row['roofline']:.0f} % | {against_baseline(row)} | {row['launches']}"
            f" | {row['registers']} | {row['shared_bytes']} | {row['spills']} | {100 * row['occupancy']:.0f} % |"
        )
    return lines


class Axes:
    """A picture with two logarithmic axes, or one."""

    def __init__(self, picture, box, x_range, y_range):
        self.p, self.box, self.x_range, self.y_range = picture, box, x_range, y_range

    def x(self, value):
        low, high = self.x_range
        left, _, width, _ = self.box
        return left + width * (math.log(value) - math.log(low)) / (math.log(high) - math.log(low))

    def y(self, value):
        low, high = self.y_range
        _, top, _, height = self.box
        return top + height * (math.log(high) - math.log(value)) / (math.log(high) - math.log(low))

    def y_ticks(self, text):
        left, top, width, height = self.box
        self.p.rect(left, top, width, height, round=0)
        for value in ticks(*self.y_range):
            self.p.line([(left, self.y(value)), (left + width, self.y(value))], "var(--zero)", 1)
            self.p.text(left - 8, self.y(value) + 4, text(value), "small", "end")


def ticks(low, high):
    """1, 2, 5, 10, ... between; only powers of ten where those are many."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    steps = (1, 2, 5) if len(decades) <= 4 else (1,)
    return [m * 10.0**d for d in decades for m in steps if low <= m * 10.0**d <= high]


def climb(Picture, run, ladder, problem, order):
    """A ladder's rungs on one problem from left to right, times upwards, libraries and the limit as lines."""
    rows = of(run, ladder=ladder, problem=problem, l2="warm")
    rungs = [rung for rung in order if any(row["rung"] == rung for row in rows)]
    lines = {}  # kind: (us, name)
    for row in rows:
        for name, us in row["baselines"].items():
            kind = "fp32, fewer multiplications" if saves_multiplications(name) else row["dtype"]
            lines[kind] = min(lines.get(kind, (math.inf, "")), (us, name))
        limit = row["roofline"] * row["median_us"]
        if limit > 0:
            kind = f"limit {row['dtype']}"
            lines[kind] = min(lines.get(kind, (math.inf, "")), (limit, "limit"))
    times = [row["median_us"] for row in rows] + [us for us, _ in lines.values()]
    step = 58
    width = 90 + step * max(len(rungs), 4) + 260
    p = Picture(width, 400)
    box = (80, 40, step * max(len(rungs), 4), 220)
    axes = Axes(p, box, (1, 2), (min(times) / 1.3, max(times) * 1.3))
    p.text(20, 24, f"{ladder} {problem}: time of each rung, L2 warm", "title", "start")
    axes.y_ticks(time_text)
    right = box[0] + box[2]
    taken = []
    for kind, (us, name) in sorted(lines.items(), key=lambda item: item[1]):
        colour = COLOURS["limit" if kind.startswith("limit") else kind]
        p.line([(box[0], axes.y(us)), (right, axes.y(us))], colour, 1.5, dash="6 4" if kind.startswith("limit") else None)
        label = axes.y(us) + 4
        while any(abs(label - other) < 14 for other in taken):
            label -= 14 if label > box[1] else -14
        taken.append(label)
        words = f"{kind} {time_text(us)}" if kind.startswith("limit") else f"{name} {kind.split(',')[0]} {time_text(us)}"
        p.text(right + 6, label, words, "small", "start")
    for index, rung in enumerate(rungs):
        x = box[0] + (index + 0.5) * step
        for row in (row for row in rows if row["rung"] == rung):
            y = axes.y(row["median_us"])
            p.parts.append(f'<circle cx="{x:g}" cy="{y:g}" r="5" style="fill:{COLOURS[row["dtype"]]}"/>')
        fastest = min(row["median_us"] for row in rows if row["rung"] == rung)
        p.text(x, axes.y(fastest) - 9, time_text(fastest), "small")
        name = rung.split("/")[0].removeprefix("cuda_")[0] + " " + rung.rsplit("/", 1)[1]
        p.parts.append(
            f'<text x="{x:g}" y="{box[1] + box[3] + 14:g}" text-anchor="end" class="small"'
            f' transform="rotate(-35 {x:g} {box[1] + box[3] + 14:g})">{name[2:]}</text>'
        )
    return p


def roofline(Picture, run):
    """The fastest rung of each problem under the measured ceilings."""
    best = {}
    for row in run["rows"]:
        if row["l2"] == "warm" and row["tflops"] > 0:
            key = (row["ladder"], row["problem"], row["dtype"])
            if key not in best or row["median_us"] < best[key]["median_us"]:
                best[key] = row
    if not best:
        return None
    intensity = lambda row: row["tflops"] * 1e6 * row["median_us"] / row["bytes"]
    c = run["ceilings"]
    points = list(best.values())
    x_range = (min(map(intensity, points)) / 1.5, max(map(intensity, points)) * 1.5)
    y_range = (min(row["tflops"] for row in points) / 1.5, max(c["tf32_tflops"], c["fma_tflops"]) * 1.4)
    p = Picture(800, 430)
    box = (70, 40, 690, 330)
    axes = Axes(p, box, x_range, y_range)
    p.text(20, 24, "The fastest rung of each problem, L2 warm, under what the GPU reaches", "title", "start")
    axes.y_ticks(lambda value: f"{value:g}")
    for value in ticks(*x_range):
        p.text(axes.x(value), box[1] + box[3] + 18, f"{value:g}", "small")
    p.text(box[0] + box[2] / 2, box[1] + box[3] + 40, "operations a byte of the arrays", "small")
    p.text(box[0] + 4, box[1] + 14, "TFLOP/s", "small", "start")
    for dtype, peak in (("fp32", c["fma_tflops"]), ("tf32", c["tf32_tflops"])):
        if not peak:
            continue
        for bandwidth, dash in ((c["copy_tb_s"], None), (c["copy_l2_tb_s"], "6 4")):
            corner = peak / bandwidth
            low = max(x_range[0], y_range[0] / bandwidth)
            path = [(low, low * bandwidth), (corner, peak), (x_range[1], peak)]
            p.line([(axes.x(x), axes.y(y)) for x, y in path if x <= x_range[1]], COLOURS[dtype], 1.5, dash=dash)
        p.text(box[0] + box[2] - 6, axes.y(peak) - 6, f"{dtype} {peak:.0f}", "small", "end")
    for row in points:
        x, y = axes.x(intensity(row)), axes.y(row["tflops"])
        p.parts.append(
            f'<circle cx="{x:g}" cy="{y:g}" r="4.5" style="fill:{COLOURS[row["dtype"]]}"><title>{row["ladder"]}'
            f' {row["problem"]} {row["dtype"]}: {row["rung"]}, {row["tflops"]:.1f} TFLOP/s</title></circle>'
        )
        short = {"conv2d": "", "conv2d_dgrad": " dx", "conv2d_wgrad": " dw", "gemm": ""}.get(row["ladder"], "")
        p.text(x + 6, y + 4, row["problem"].removeprefix("cube-") + short, "small", "start")
    return p


def pictures(Picture, run, orders):
    """All pictures by file name; `orders` are the rungs of each ladder from the bottom up."""
    drawn = {}
    for ladder, problems in CLIMBS.items():
        for problem in problems:
            if of(run, ladder=ladder, problem=problem, l2="warm"):
                drawn[f"climb_{ladder}_{problem}".replace("-", "_")] = climb(
                    Picture, run, ladder, problem, orders.get(ladder, [])
                )
    picture = roofline(Picture, run)
    if picture:
        drawn["roofline"] = picture
    return drawn
