#!/usr/bin/env python3
"""Writes which rungs were fastest in the newest committed run: fastest.json, ladder -> rungs, the fastest first.

    fastest.py ROOT FILE

A rung's place is the geometric mean of its times, each divided by the shortest of any rung on the same problem, type
and layout, with the L2 warm. So it says what to try first among those that take a problem, and no more than that.
"""
import collections
import json
import math
import pathlib
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


def main():
    root, file = map(pathlib.Path, sys.argv[1:])
    file.write_text(json.dumps(fastest(benchmark_run.newest_run(root)["rows"]), indent=1) + "\n")


if __name__ == "__main__":
    main()
