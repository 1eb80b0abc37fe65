#!/usr/bin/env python3
"""Compares the microscope's counts with the newest profile in benchmarks/counters/.

    compare_counters.py BUILD [--microbenchmarks | --rung GLOB...]

BUILD is a build without nvcc (build/cpu). Counts the microbenchmarks, and each rung on the problem on which it was
profiled (ten minutes on two cores), and writes both numbers side by side to benchmarks/counters/comparison.json, and
those that differ to differences.json beside it, where each needs a cause (counter_differences.py). How many agree is
printed for all rungs, also without joining (docs/microscope.md), and for those of the course's assignments. With --rung, only these rungs are counted again; what was counted of each is kept in BUILD/inspect/RUNG/counted.json. With
--microbenchmarks nothing is written. Exit status 1 if a microbenchmark differs, or a cause is missing.

"""
import argparse
import concurrent.futures
import fnmatch
import json
import os
import pathlib
import subprocess
import sys

TOOLS = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(TOOLS / "extract"), str(TOOLS / "inspect")]
import counter_differences  # noqa: E402
import expect  # noqa: E402
import extract  # noqa: E402
import prepare  # noqa: E402
from counter_differences import COMPARISON, FOLDER  # noqa: E402
from measure_counters import base_name  # noqa: E402

# The counters that both provide: names of the microscope's counts whose sum it is, and of the profiler's
# (measure_counters.py). For shared memory the microscope's counts are those after merging adjacent accesses. A
# profiler counts the sectors of asynchronous copies as loads, and has a separate name for ldmatrix; "theoretical" is
# derived by it from addresses alone. A copy whose lanes all fill in zeros does not access global memory, but is an
# instruction, so copies are counted at their destination. A barrier of the grid is an atomic addition per block.
# Tensor cores that read their operands directly (wgmma) take one wavefront per 128 bytes.
SHARED = ("shared.load.", "shared.store.", "shared.async.")
COUNTERS = {
    "global loads": (["global.load.requests"], ["global.load.requests"]),
    "global stores": (["global.store.requests"], ["global.store.requests"]),
    "atomics": (["global.atomic.requests", "grid.barriers"], ["global.atomic.requests"]),
    "asynchronous copies": (["shared.async.requests"], ["global.async.requests"]),
    "sectors loaded": (["global.load.sectors", "global.async.sectors"], ["global.load.sectors"]),
    "sectors stored": (["global.store.sectors"], ["global.store.sectors"]),
    "shared loads": (["shared.load.requests"], ["shared.load.requests", "matrix.load.requests"]),
    "shared stores": (["shared.store.requests"], ["shared.store.requests"]),
    "wavefronts of shared memory": ([*(space + "wavefronts" for space in SHARED), "operands"], ["theoretical.shared.wavefronts"]),
    "wavefronts without conflicts": ([*(space + "ideal" for space in SHARED), "operands"], ["theoretical.shared.wavefronts_ideal"]),
}
# A rung may adapt its launches to the device: the emulated device gets as many multiprocessors as the profiled one.
MULTIPROCESSORS = {"NVIDIA H100 80GB HBM3": 132, "NVIDIA H200": 132}
# Bytes per lane of the widest load, store or asynchronous copy. Wider accesses are TMA's, whose requests these
# counters do not include.
WIDEST = 16
BYTES_PER_WAVEFRONT = 128  # of the 32 banks
AS_WRITTEN = "as written: "  # before the names of counts


def flat(totals):
    """{"global.load.requests": ...} of the microscope's totals by space and operation."""
    counts = {}
    for space, operations in totals.items():
        for operation, counters in operations.items():
            add_counts(counts, space, operation, counters, 1)
    return counts


def of_kernel(kernel):
    """The same of a kernel in the file that `inspect --json` writes, for all its blocks."""
    counts, scale = {}, expect.blocks_per_counted(kernel)
    for site in kernel["sites"]:
        if site["op"] != "async" or site["width"] <= WIDEST:
            add_counts(counts, site["space"], site["op"], site, scale)
    counts["grid.barriers"] = scale * kernel["grid_barriers"]
    counts["operands"] = scale * kernel["factor_bytes"] / BYTES_PER_WAVEFRONT
    return counts


def add_counts(counts, space, operation, counters, scale):
    """Adds the counts after merging adjacent accesses and, under AS_WRITTEN, those of the source."""
    for prefix, numbers in (("", counters.get("joined") or counters), (AS_WRITTEN, counters)):
        of_site = {counter: numbers[counter] for counter in ("requests", "sectors", "wavefronts", "excess")
                   if numbers.get(counter) is not None}
        if space == "shared":
            of_site["ideal"] = of_site["wavefronts"] - of_site["excess"]
        for counter, value in of_site.items():
            name = f"{prefix}{space}.{operation}.{counter}"
            counts[name] = counts.get(name, 0) + scale * value


def added(several):
    total = {}
    for counters in several:
        for counter, value in counters.items():
            total[counter] = total.get(counter, 0) + value
    return total


def inspected(build, rung, options, multiprocessors):
    """Of each kernel, by its name: what the microscope counts."""
    library = prepare.library_of(build, rung, None)
    file = library.parent / "counted.json"
    command = [build / "command/convladder", "inspect", rung["rung"], *options.split(), "--json", file]
    done = subprocess.run(command, capture_output=True, text=True,
                          env={**os.environ, "CONVLADDER_INSPECTED": str(library),
                               "CUDA_ON_CPU_MULTIPROCESSORS": str(multiprocessors)})
    if done.returncode != 0:
        sys.exit(f"compare_counters.py: {rung['rung']} {options}: {done.stdout[-500:]}{done.stderr}")
    kernels = {}
    for kernel in json.loads(file.read_text())["kernels"]:
        kernels.setdefault(base_name(kernel["name"]), []).append(of_kernel(kernel))
    return {name: {counter: round(value) for counter, value in added(several).items()}
            for name, several in kernels.items()}


def pairs_of(ours, theirs):
    """Both numbers of each counter for which either is not 0."""
    pairs = {}
    for counter, (our_names, their_names) in COUNTERS.items():
        pair = [sum(ours.get(name, 0) for name in our_names), sum(theirs.get(name, 0) for name in their_names)]
        if any(pair):
            pairs[counter] = pair
    return pairs


def as_written_of(ours, pairs):
    """{counter: number} of the counters that merging changes, as in the source."""
    written = {counter: sum(ours.get(AS_WRITTEN + name, ours.get(name, 0)) for name in COUNTERS[counter][0]) for counter in pairs}
    return {counter: number for counter, number in written.items() if number != pairs[counter][0]}


def of_microbenchmarks(build, record):
    """Both numbers of each counter, by microbenchmark."""
    counted = {one["name"]: flat(one["totals"]) for one in
               json.loads(subprocess.run([build / "benchmarks/counted"], check=True, stdout=subprocess.PIPE).stdout)}
    return {run["microbenchmark"]: pairs_of(counted[run["microbenchmark"]], added(run["kernels"].values()))
            for run in record["runs"] if "microbenchmark" in run}


def of_rungs(build, runs, multiprocessors):
    """Both numbers of each counter, by rung, of the kernels that both name; beside them, the others."""
    table = {rung["rung"]: rung for rung in extract.table_of(build)}
    extract.sources_by_need(build)  # once, before the threads ask for it
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as threads:
        looks = list(threads.map(lambda run: inspected(build, table[run["rung"]], run["options"], multiprocessors),
                                  runs))
    result = {}
    for run, ours in zip(runs, looks):
        both = ours.keys() & run["kernels"].keys()
        counted = added(ours[name] for name in both)
        pairs = pairs_of(counted, added(run["kernels"][name] for name in both))
        result[run["rung"]] = {
            "source_hash": run["source_hash"], "options": run["options"], "kernels": sorted(both),
            "not_compared": sorted(ours.keys() ^ run["kernels"].keys()),
            "counters": pairs, "as_written": as_written_of(counted, pairs)}
    return result


def compare_rungs(build, profile, record, micro, globs):
    """Counts rungs, writes the comparison and the differences. @return whether each difference has a cause"""
    runs = [run for run in record["runs"] if "rung" in run]
    old = json.loads(COMPARISON.read_text())["rungs"] if globs else {}
    wanted = [run for run in runs if not globs or any(fnmatch.fnmatchcase(run["rung"], glob) for glob in globs)]
    new = of_rungs(build, wanted, MULTIPROCESSORS[record["gpu"]])
    rungs = {run["rung"]: new.get(run["rung"]) or old[run["rung"]] for run in runs if run["rung"] in old | new}
    comparison = {"profile": profile.name, "tolerance": counter_differences.TOLERANCE, "microbenchmarks": micro, "rungs": rungs}
    COMPARISON.write_text(counter_differences.text_of(comparison))
    differences = counter_differences.refreshed(comparison)
    pairs = sum(len(rung["counters"]) for rung in rungs.values())
    print(f"rungs: {pairs - len(differences)} of {pairs} counters within {counter_differences.TOLERANCE:.0%}; as they are written,"
          f" {pairs - len(counter_differences.differing_as_written(comparison))}")
    print(f"rungs of the assignments: {counter_differences.of_assignments(comparison)}")
    problems = counter_differences.problems_of(comparison, differences)
    print("\n".join(problems), end="\n" if problems else "")
    return not problems


def main():
    parser = argparse.ArgumentParser(usage="compare_counters.py BUILD [--microbenchmarks | --rung GLOB...]")
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--microbenchmarks", action="store_true")
    parser.add_argument("--rung", metavar="GLOB", nargs="+", default=[])
    options = parser.parse_args()
    profiles = {file: json.loads(file.read_text()) for file in FOLDER.glob("nvidia-*.json")}
    profile, record = max(profiles.items(), key=lambda pair: pair[1]["date"])
    micro = of_microbenchmarks(options.build, record)
    pairs = [(name, counter, pair) for name, counters in micro.items() for counter, pair in counters.items()]
    differing = [pair for pair in pairs if pair[2][0] != pair[2][1]]
    print(f"microbenchmarks: {len(pairs) - len(differing)} of {len(pairs)} counters are equal")
    for name, counter, (ours, theirs) in differing:
        print(f"  {name}, {counter}: the microscope counts {ours}, the profiler {theirs}")
    explained = options.microbenchmarks or compare_rungs(options.build, profile, record, micro, options.rung)
    sys.exit(1 if differing or not explained else 0)


if __name__ == "__main__":
    main()
