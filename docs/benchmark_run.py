"""The committed runs of `./ladder bench`: finding rows in one, and what their rungs and numbers are called."""

import json
import math
import pathlib
import re

DTYPES = ("int32", "fp32", "tf32", "fp16", "bf16", "fp8")
# Words in the names of such algorithms; the program reads the same file.
FEWER_MULTIPLICATIONS = (
    (pathlib.Path(__file__).resolve().parents[1] / "benchmarks" / "fewer_multiplications.txt").read_text().split()
)
# Behind the name of a library's time on the host's clock, and of a time for both gradients.
HOST = ", host clock"
BOTH = ", dgrad and wgrad"


def short_name(rung):
    """`direct/tiled` of cuda_optimized/conv2d/direct/tiled."""
    return rung.split("/", 2)[2]


def constant_name(rung):
    """`direct_tiled` of cuda_optimized/conv2d/direct/tiled: its C++ constant, and its notebook in docs/ladders."""
    return short_name(rung).replace("/", "_")


def newest_run(root, folder="results"):
    """The last run by date, then name, of a folder of benchmarks; None without any."""
    runs = [
        (json.loads(path.read_text()), path.name)
        for path in sorted((pathlib.Path(root) / "benchmarks" / folder).glob("*.json"))
    ]
    return max(runs, key=lambda run: (run[0]["date"], run[1]))[0] if runs else None


def of(run, **wanted):
    return [row for row in run["rows"] if all(row[key] == value for key, value in wanted.items())]


def saves_multiplications(name):
    return any(word in name for word in FEWER_MULTIPLICATIONS)


def mark(rung):
    """Behind the name of a rung whose fp32 is computed on tensor cores."""
    return " (3xTF32)" if re.search("3xtf32", rung) else ""


def allowed(dtype):
    """The types of rungs that may stand against a library in that type: where TF32 is allowed, fp32 is too."""
    return ("fp32", "tf32") if dtype == "tf32" else (dtype,)


def beside(best, rows):
    """Of a problem's `rows`, those whose libraries were timed in the same minutes as the `best`: its own, and those of
    other types and layouts. A run may go on on another day, and then times libraries anew."""
    alike = [(row["dtype"], row["layout"]) == (best["dtype"], best["layout"]) for row in rows]
    return [row for row, is_alike in zip(rows, alike) if row is best or not is_alike]


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


def machine(run):
    libraries = f", cuDNN {run['cudnn']}" if run["cudnn"] else ""
    libraries += f", spconv {run['spconv']}" if run["spconv"] else ""
    return f"{run['gpu']}, driver {run['driver']}, CUDA {run['toolkit']}{libraries}, {run['date']}, commit {run['commit'][:12]}"


def ceilings(run):
    c = run["ceilings"]
    halves = f", fp16 on tensor cores {c['fp16_tflops']:.0f} TFLOP/s" if c.get("fp16_tflops") else ""
    return (
        f"copy {c['copy_tb_s']:.2f} TB/s (in L2: {c['copy_l2_tb_s']:.2f}), multiply-adds in fp32"
        f" {c['fma_tflops']:.1f} TFLOP/s, TF32 on tensor cores {c['tf32_tflops']:.0f} TFLOP/s{halves}"
    )


def problems_of(run, ladder):
    """Of the run, in its order."""
    return list(dict.fromkeys(row["problem"] for row in of(run, ladder=ladder)))


def bytes_text(count):
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("KB", 1e3)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count:.0f} B"


