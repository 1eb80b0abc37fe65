#!/usr/bin/env python3
"""Counts the predictions in the headers of rungs, and compares.

    check_expect.py [--rung GLOB]... [--record] BUILD      (./ladder check expect [--rung GLOB]... [--record])

Each CUDA rung whose file has lines `@expect` (expect.py says which there are) runs under the microscope on the problems
that they name, and on those of its ladder's tables. --rung '*/gemm/*' looks at some rungs. --record also looks at what
the rungs after it predict, which must differ, and writes what was counted to tests/counted.json: for those rungs whose
entry there is not of their present source, or lacks a counter, unless --rung names them. Exit status: 0, or 1 if a
prediction is not what was counted.

"""
import argparse
import concurrent.futures
import fnmatch
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "extract"))
import expect  # noqa: E402
import extract  # noqa: E402
import prepare  # noqa: E402


def report_of(build, rung, problem):
    """What `inspect --json` writes of a rung on a problem; None if the rung declines it."""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "report.json"
        done = subprocess.run([build / "command/convladder", "inspect", rung["rung"], *problem.split(), "--json", file],
                              capture_output=True, text=True,
                              env={**os.environ, "CONVLADDER_INSPECTED": str(prepare.library_of(build, rung, None))})
        if done.returncode == 2:
            return None
        if done.returncode != 0:
            says = (done.stderr or done.stdout).strip()[-300:]
            raise expect.Mistake(f"{rung['source']}: under the microscope, on {problem}: {says}")
        return json.loads(file.read_text())


def counts_of(build, rung, wanted):
    """{problem: {counter: value}} of the counters that are wanted of each problem; None for one that the rung declines."""
    counts = {}
    for problem, counters in wanted.items():
        report = report_of(build, rung, problem)
        counts[problem] = report and {counter: expect.counted(report, counter) for counter in counters}
    return counts


def compared(lines, entry):
    """A line of text for each prediction, and whether all are met."""
    text, all_met = [], True
    for line in lines:
        value = expect.count_in(entry, line)
        met = line.is_met_by(value)
        all_met &= met
        text.append(f"  {line.counter} {line.number}: " + ("as counted" if met else
                    f"{'nothing' if value is None else value} was counted on {line.problem} ({line.place})"))
    return text, all_met


def write_record(record, rungs):
    ordered = {rung["rung"]: record[rung["rung"]] for rung in rungs if rung["rung"] in record}
    text = json.dumps(ordered, indent=1)
    # A problem a line.
    text = re.sub(r"\{\n {4}([^{}]*)\n {3}\}", lambda found: "{" + re.sub(r"\n +", " ", found.group(1)) + "}", text)
    expect.RECORD.write_text(text + "\n")


def main():
    parser = argparse.ArgumentParser(usage="./ladder check expect [--rung GLOB]... [--record]")
    parser.add_argument("--rung", metavar="GLOB", action="append")
    parser.add_argument("--record", action="store_true")
    parser.add_argument("build", type=pathlib.Path)
    options = parser.parse_args()
    rungs = [rung for rung in extract.table_of(options.build) if rung["backend"] == "cuda"]
    hashes, record = expect.hashes_of(options.build), expect.read_record()
    lines, mistakes = expect.all_lines(rungs)
    extract.sources_by_need(options.build)  # once, for all threads

    def look(rung):
        """The rung's entry in the record; None for a rung that is left out."""
        # The lines of the rungs after it are of use to the record alone.
        wanted = expect.wanted(rung, rungs if options.record else [], lines)
        if rung["rung"] not in lines or not wanted or not any(fnmatch.fnmatchcase(rung["rung"], name) for name in options.rung or ["*"]):
            return None
        source_hash = hashes[rung["source"]]
        if options.record and not options.rung and not expect.is_stale(record.get(rung["rung"]), source_hash, wanted):
            return None
        return {"source_hash": source_hash, "counted": counts_of(options.build, rung, wanted)}

    print("\n".join(mistakes), end="\n" if mistakes else "", file=sys.stderr)
    status = 1 if mistakes else 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as workers:
        for rung, job in [(rung, workers.submit(look, rung)) for rung in rungs]:
            try:
                entry = job.result()
            except (expect.Mistake, SystemExit) as mistake:
                print(mistake, file=sys.stderr)
                status = 1
                continue
            if entry:
                record[rung["rung"]] = entry
                text, met = compared(lines[rung["rung"]], entry)
                print("\n".join([rung["rung"], *text]), flush=True)
                status |= not met
    if options.record:
        write_record(record, rungs)
    sys.exit(status)


if __name__ == "__main__":
    main()
