#!/usr/bin/env python3
"""Writes the ranking of the rungs in the newest committed run: fastest.json, ladder -> rungs, the fastest first; and
"measured" -> ladder -> the times of each rung of a convolution on each problem.

    fastest.py ROOT FILE

The rank of a rung follows from the geometric mean of its times, each divided by the shortest of any rung on the same
problem, type and layout, with a warm L2. It is only the order in which the rungs that support a problem are tried.

"""
import collections
import json
import math
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "docs"))
import benchmark_run  # noqa: E402


def fastest(rows):
    times = collections.defaultdict(dict)
    for row in rows:
        if row["l2"] == "warm":
            times[row["ladder"], row["problem"], row["dtype"], row["layout"]][row["rung"]] = row["median_us"]
    logs = collections.defaultdict(lambda: collections.defaultdict(list))
    for (ladder, *_), of_rungs in times.items():
        for rung, time in of_rungs.items():
            logs[ladder][rung].append(math.log(time / min(of_rungs.values())))
    return {ladder: sorted(rungs, key=lambda rung: (sum(rungs[rung]) / len(rungs[rung]), rung))
            for ladder, rungs in logs.items()}


def convolutions(root):
    """The sizes of the benchmarks' convolutions by name: N, C, H, W, K, R, S, pad, stride, groups."""
    source = (root / "benchmarks" / "ladders" / "conv2d.cpp").read_text()
    found = {name: [int(number) for number in sizes.split(",")]
             for name, sizes in re.findall(r'\{"(\w+)", make\(([\d, ]+)\)', source)}
    if not found:
        raise SystemExit("benchmarks/ladders/conv2d.cpp: no problems found")
    return {name: sizes + [1] * (10 - len(sizes)) for name, sizes in found.items()}


def measured(rows, sizes):
    """ladder -> [{sizes, type, layout, us: {rung: microseconds}}] with a warm L2. fp16 and bf16 count as one type,
    because they take the same time. The rungs of float32 are also allowed for TF32."""
    times = collections.defaultdict(dict)
    for row in rows:
        if row["l2"] != "warm" or row["problem"] not in sizes or not row["ladder"].startswith("conv2d"):
            continue
        kinds = {"fp32": ("fp32", "tf32"), "tf32": ("tf32",), "fp16": ("16 bits",), "bf16": ("16 bits",)}[row["dtype"]]
        for kind in kinds:
            times[row["ladder"], row["problem"], kind, row["layout"]][row["rung"]] = row["median_us"]
    all_of = collections.defaultdict(list)
    for (ladder, problem, kind, layout), of_rungs in times.items():
        all_of[ladder].append({"sizes": sizes[problem], "type": kind, "layout": layout, "us": of_rungs})
    return all_of


def main():
    root, file = map(pathlib.Path, sys.argv[1:])
    rows = benchmark_run.newest_run(root)["rows"]
    file.write_text(json.dumps({**fastest(rows), "measured": measured(rows, convolutions(root))}, indent=1) + "\n")


if __name__ == "__main__":
    main()
