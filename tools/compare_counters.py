#!/usr/bin/env python3
"""Holds the microscope's counts against the newest profile in benchmarks/counters/.

    compare_counters.py BUILD [--microbenchmarks]

BUILD is a build without nvcc (build/cpu). Counts the microbenchmarks, and each rung on the problem on which it was
profiled (ten minutes on two cores), and writes both numbers side by side to benchmarks/counters/comparison.json.
With --microbenchmarks it counts these alone, and writes nothing. Exit status 1 if one of them differs.
"""
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import tempfile

TOOLS = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(TOOLS / "extract"), str(TOOLS / "inspect")]
import extract  # noqa: E402
import prepare  # noqa: E402
from measure_counters import base_name  # noqa: E402

FOLDER = TOOLS.parent / "benchmarks" / "counters"
# What both count: names of the microscope's counts whose sum it is, and of the profiler's (measure_counters.py).
# A profiler counts the sectors of asynchronous copies among those of loads, and has a name of its own for ldmatrix;
# "theoretical" is what it derives from addresses alone, without waiting for others.
SHARED = ("shared.load.", "shared.store.", "shared.async.")
COUNTERS = {
    "global loads": (["global.load.requests"], ["global.load.requests"]),
    "global stores": (["global.store.requests"], ["global.store.requests"]),
    "atomics": (["global.atomic.requests"], ["global.atomic.requests"]),
    "asynchronous copies": (["global.async.requests"], ["global.async.requests"]),
    "sectors loaded": (["global.load.sectors", "global.async.sectors"], ["global.load.sectors"]),
    "sectors stored": (["global.store.sectors"], ["global.store.sectors"]),
    "shared loads": (["shared.load.requests"], ["shared.load.requests", "matrix.load.requests"]),
    "shared stores": (["shared.store.requests"], ["shared.store.requests"]),
    "turns of shared memory": ([space + "wavefronts" for space in SHARED], ["theoretical.shared.wavefronts"]),
    "turns without conflicts": ([space + "ideal" for space in SHARED], ["theoretical.shared.wavefronts_ideal"]),
}
TOLERANCE = 0.05


def flat(totals):
    """{"global.load.requests": ...} of the microscope's totals by space and operation."""
    counts = {}
    for space, operations in totals.items():
        for operation, counters in operations.items():
            for counter, value in counters.items():
                counts[f"{space}.{operation}.{counter}"] = value or 0
            if space == "shared":
                counts[f"{space}.{operation}.ideal"] = counters["wavefronts"] - counters["excess"]
    return counts


def added(several):
    total = {}
    for counters in several:
        for counter, value in counters.items():
            total[counter] = total.get(counter, 0) + value
    return total


def inspected(build, rung, options):
    """Of each kernel, by its name: what the microscope counts."""
    library = prepare.library_of(build, rung, None)
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "inspect.json"
        command = [build / "command/convladder", "inspect", rung["rung"], *options.split(), "--json", file]
        done = subprocess.run(command, capture_output=True, text=True,
                              env={**os.environ, "CONVLADDER_INSPECTED": str(library)})
        if done.returncode != 0:
            sys.exit(f"compare_counters.py: {rung['rung']} {options}: {done.stdout[-500:]}{done.stderr}")
        seen = json.loads(file.read_text())
    # Of a problem that is too large only some blocks are counted, spread evenly.
    share = seen["blocks"]["counted"] / seen["blocks"]["run"]
    kernels = {}
    for kernel in seen["kernels"]:
        kernels.setdefault(base_name(kernel["name"]), []).append(flat(kernel["totals"]))
    return {name: {counter: round(value / share) for counter, value in added(several).items()}
            for name, several in kernels.items()}


def pairs_of(ours, theirs):
    """Both numbers of each counter of which either saw anything."""
    pairs = {}
    for counter, (our_names, their_names) in COUNTERS.items():
        pair = [sum(ours.get(name, 0) for name in our_names), sum(theirs.get(name, 0) for name in their_names)]
        if any(pair):
            pairs[counter] = pair
    return pairs


def agree(ours, theirs):
    return abs(ours - theirs) <= TOLERANCE * max(ours, theirs)


def of_microbenchmarks(build, record):
    """Both numbers of each counter, by microbenchmark."""
    counted = {one["name"]: flat(one["totals"]) for one in
               json.loads(subprocess.run([build / "benchmarks/counted"], check=True, stdout=subprocess.PIPE).stdout)}
    return {run["microbenchmark"]: pairs_of(counted[run["microbenchmark"]], added(run["kernels"].values()))
            for run in record["runs"] if "microbenchmark" in run}


def of_rungs(build, record):
    """Both numbers of each counter, by rung, of the kernels that both name; beside them, the others."""
    table = {rung["rung"]: rung for rung in extract.table_of(build)}
    runs = [run for run in record["runs"] if "rung" in run]
    extract.sources_by_need(build)  # once, before the threads ask for it
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as threads:
        looks = list(threads.map(lambda run: inspected(build, table[run["rung"]], run["options"]), runs))
    result = {}
    for run, ours in zip(runs, looks):
        both = ours.keys() & run["kernels"].keys()
        result[run["rung"]] = {
            "source_hash": run["source_hash"], "options": run["options"], "kernels": sorted(both),
            "not_compared": sorted(ours.keys() ^ run["kernels"].keys()),
            "counters": pairs_of(added(ours[name] for name in both), added(run["kernels"][name] for name in both))}
    return result


def main():
    if len(sys.argv) not in (2, 3) or sys.argv[2:] not in ([], ["--microbenchmarks"]):
        sys.exit(__doc__)
    build = pathlib.Path(sys.argv[1])
    profile = max(file for file in FOLDER.glob("*.json") if file.name != "comparison.json")
    record = json.loads(profile.read_text())
    micro = of_microbenchmarks(build, record)
    pairs = [(name, counter, pair) for name, counters in micro.items() for counter, pair in counters.items()]
    differing = [pair for pair in pairs if pair[2][0] != pair[2][1]]
    print(f"microbenchmarks: {len(pairs) - len(differing)} of {len(pairs)} counters are equal")
    for name, counter, (ours, theirs) in differing:
        print(f"  {name}, {counter}: the microscope counts {ours}, the profiler {theirs}")
    if len(sys.argv) == 2:
        rungs = of_rungs(build, record)
        result = {"profile": profile.name, "tolerance": TOLERANCE, "microbenchmarks": micro, "rungs": rungs}
        (FOLDER / "comparison.json").write_text(json.dumps(result, indent=1) + "\n")
        pairs = [pair for rung in rungs.values() for pair in rung["counters"].values()]
        print(f"rungs: {sum(agree(*pair) for pair in pairs)} of {len(pairs)} counters within {TOLERANCE:.0%}")
    sys.exit(1 if differing else 0)


if __name__ == "__main__":
    main()
