#!/usr/bin/env python3
"""The build times of the last builds, part by part, from ninja's logs.

    build_time.py build/cpu/.ninja_log [another log...]      (./ladder check build-time)

ninja records the start and end of each step. If more steps ran than there are cores, each had a share of them: a
step's CPU-seconds are the integral of min(1, cores / running steps). This is an estimate; it attributes other
programs' work and waiting for the disk to the step.

For each rung it sums the compile time of its file and, from CTest's cost file beside the log, the time of its tests.
The most expensive rungs are printed. With CI set, a rung over its budget in build/cpu is a failure: exit status 1.

"""
import os
import pathlib
import re
import statistics
import sys

# The part of a step is the first one whose expression matches the path of its output.
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

# The budget of a rung: about five times the most expensive rung on an idle machine, because machines differ.
COMPILE_BUDGET = 30  # CPU-seconds of its file
TEST_BUDGET = 60  # seconds of its tests, which CTest runs one per core
BUDGETED_BUILD = "cpu"  # that of ./ladder test without a GPU; a sanitizer's build takes longer
DEAREST_SHOWN = 10


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


def rung_of(output):
    """The rung whose file a step compiles, such as cuda_optimized/gemm/tiled; None of any other step."""
    match = re.search(r"/rungs_(cpu_reference|cuda_naive|cuda_optimized)_(\w+?)(?:_called)?_objects\.dir/"
                      r"(?:.*/)?(?:\d+_(\w+)\.)?(\w+)\.cpp\.o$", "/" + output)
    if match is None or re.fullmatch(r"marker_\d+", match[4]):
        return None
    top, ladder, folder, name = match.groups()  # folder: of a kernel's file, its ladder's or a family's
    return "/".join([top, ladder, *([folder] if folder not in (None, ladder) else []), name])


def test_seconds(costs):
    """Seconds by rung, of all its tests, from CTest's file of costs: lines of name, runs, mean seconds."""
    seconds = {}
    if costs.is_file():
        for line in costs.read_text().splitlines():
            match = re.fullmatch(r"(\w+/\w+/[\w/]+)\.(?:cpu|emulated)(?:\.identities)? \d+ ([\d.e+-]+)", line)
            if match:
                seconds[match[1]] = seconds.get(match[1], 0.0) + float(match[2])
    return seconds


def over_budget(compiled, tested):
    """A sentence for each rung that takes more than its budget."""
    sentences = []
    for what, unit, budget, of_rungs in (("compiling", "CPU-seconds", COMPILE_BUDGET, compiled),
                                         ("testing", "seconds", TEST_BUDGET, tested)):
        sentences += [f"{what} {rung} takes {seconds:.1f} {unit}; the budget of a rung is {budget}"
                      for rung, seconds in sorted(of_rungs.items()) if seconds > budget]
    return sentences


def print_rungs(compiled, tested):
    def row(name, compile_cost, test_cost):
        print(f"| {name} | {compile_cost:.1f} | {test_cost:.1f} |")

    print("| rung | compile, CPU-seconds | tests, seconds |\n|---|---:|---:|")
    total = {rung: compiled.get(rung, 0) + tested.get(rung, 0) for rung in compiled.keys() | tested.keys()}
    for rung in sorted(total, key=total.get, reverse=True)[:DEAREST_SHOWN]:
        row(rung, compiled.get(rung, 0), tested.get(rung, 0))
    row(f"median of {len(total)}", *(statistics.median(costs.values()) if costs else 0 for costs in (compiled, tested)))
    row("budget", COMPILE_BUDGET, TEST_BUDGET)
    print()


def main(logs):
    cores = os.cpu_count() or 1
    over = []
    for log in logs:
        runs = steps_of(log)
        parts, compiled = {}, {}
        for run in runs:
            for output, seconds in cpu_seconds(run, cores):
                if rung := rung_of(output):
                    compiled[rung] = compiled.get(rung, 0.0) + seconds
                steps, total = parts.get(part_of(output), (0, 0.0))
                parts[part_of(output)] = (steps + 1, total + seconds)
        if not parts:
            continue
        print(f"{log.parent} ({cores} cores)\n\n| part | steps | CPU-seconds |\n|---|---:|---:|")
        for part, (steps, seconds) in sorted(parts.items(), key=lambda item: -item[1][1]):
            print(f"| {part} | {steps} | {seconds:.0f} |")
        steps, seconds = (sum(column) for column in zip(*parts.values()))
        print(f"| all | {steps} | {seconds:.0f} |\n")
        tested = test_seconds(log.parent / "Testing/Temporary/CTestCostData.txt")
        if compiled or tested:
            print_rungs(compiled, tested)
            if log.parent.name == BUDGETED_BUILD:
                over += over_budget(compiled, tested)
    for sentence in over:
        print(sentence, file=sys.stderr)
    return 1 if over and os.environ.get("CI") else 0


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.exit(main([pathlib.Path(name) for name in sys.argv[1:] if pathlib.Path(name).is_file()]))
