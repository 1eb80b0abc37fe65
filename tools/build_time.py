#!/usr/bin/env python3
"""What the last builds took, part by part, from ninja's logs.

    build_time.py build/cpu/.ninja_log [another log...]      (./ladder check build-time)

ninja notes when each step began and ended. Where more steps ran at once than there are cores, each had
its share of them: a step's CPU-seconds are the integral of min(1, cores / steps that run). That is an
estimate; it counts other programs' work and waiting for the disk as the step's own.
"""
import os
import pathlib
import re
import sys

# The part of a step is the first whose expression matches the path of its output.
PARTS = [
    ("planted bugs", r"planted_bugs/"),
    ("tests of cuda_on_cpu", r"cuda_on_cpu/tests/"),
    ("suite", r"^tests/|lib(checks|suite)"),
    ("for GPUs: benchmarks", r"benchmarks_gpu|gpu_code/benchmarks"),
    ("for GPUs: kernels", r"kernels_(gpu|sm90a)|^gpu_code/"),
    ("rungs, CPU", r"rungs_cpu_reference"),
    ("rungs, CUDA: sparse ladders and rulebook", r"rungs_cuda_\w+_(sparse|rulebook)"),
    ("rungs, CUDA: dense ladders", r"rungs_cuda"),
    ("cuda_on_cpu", r"cuda_on_cpu"),
    ("core, ladders, oracle", r"core|ladders|oracle|program_headers"),
    ("command, benchmarks, provenance", r"command|benchmarks|provenance|convladder"),
    ("docs", r"^docs"),
]


def steps_of(log):
    """Runs of ninja, each a list of (begin, end, output) in seconds: in a run, ends only grow. What
    was built more than once counts as in the last run."""
    runs = []
    previous_end = None
    last = {}
    for line in log.read_text().splitlines():
        if line.startswith("#"):
            continue
        begin, end, _, output, command = line.split("\t")
        begin, end = int(begin) / 1000, int(end) / 1000
        if previous_end is None or end < previous_end:
            runs.append([])
        previous_end = end
        runs[-1].append((begin, end, command, output))
        last[output] = len(runs) - 1
    # A step with several outputs has a line for each.
    return [sorted({(begin, end, command): (begin, end, output)
                    for begin, end, command, output in run if last[output] == number}.values())
            for number, run in enumerate(runs)]


def cpu_seconds(run, cores):
    """Pairs (output, CPU-seconds) of a run."""
    changes = sorted([(begin, 1) for begin, _, _ in run] + [(end, -1) for _, end, _ in run])
    times, work = [0.0], [0.0]  # work: CPU-seconds that a step has had which ran from the beginning
    running = 0
    for time, change in changes:
        share = min(1.0, cores / running) if running else 0.0
        work.append(work[-1] + share * (time - times[-1]))
        times.append(time)
        running += change
    at = dict(zip(times, work))
    return [(output, at[end] - at[begin]) for begin, end, output in run]


def part_of(output):
    for part, expression in PARTS:
        if re.search(expression, output):
            return part
    return "other"


def main(logs):
    cores = os.cpu_count() or 1
    for log in logs:
        runs = steps_of(log)
        parts = {}
        for run in runs:
            for output, seconds in cpu_seconds(run, cores):
                steps, total = parts.get(part_of(output), (0, 0.0))
                parts[part_of(output)] = (steps + 1, total + seconds)
        if not parts:
            continue
        print(f"{log.parent} ({cores} cores)\n\n| part | steps | CPU-seconds |\n|---|---:|---:|")
        for part, (steps, seconds) in sorted(parts.items(), key=lambda item: -item[1][1]):
            print(f"| {part} | {steps} | {seconds:.0f} |")
        steps, seconds = (sum(column) for column in zip(*parts.values()))
        print(f"| all | {steps} | {seconds:.0f} |\n")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main([pathlib.Path(name) for name in sys.argv[1:] if pathlib.Path(name).is_file()])
