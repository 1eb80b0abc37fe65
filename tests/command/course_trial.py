#!/usr/bin/env python3
"""Grades the project's own rungs, skeletons, planted bugs and a simulated class, by the commands that a teacher uses.

    course_trial.py [ASSIGNMENT...] [--count N] [--jobs N] [--class-once] [--folder DIR]

Without ASSIGNMENT, all of them. Minutes of computing each. Prints a table; exit status 1 if something is not as promised:
the solution has full marks, three times and with any number of jobs the same bytes; a skeleton has no exact points and
at most 5; every planted bug loses points of exact or robust, and of ten at least seven are among the first three of
their own diagnosis; of the class, right work has all exact points, broken work less, and nothing is left undone.
"""
import argparse
import csv
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools/grade"), str(ROOT / "tools/handout")]
sys.dont_write_bytecode = True
import assignment as assignments  # noqa: E402
import diagnosis  # noqa: E402
import predictions  # noqa: E402
import simulate  # noqa: E402
import tree  # noqa: E402
import trials  # noqa: E402

MOST_FOR_NOTHING = 5
LEAST_DIAGNOSED = 0.7
problems = []


def require(holds, what):
    if not holds:
        problems.append(what)
        print(f"  NOT AS PROMISED: {what}", flush=True)


def grade(*words):
    """Runs the command. @returns its seconds, on the clock and of computing"""
    begin, before = time.monotonic(), os.times()
    done = subprocess.run([sys.executable, "-B", ROOT / "tools/grade/grade.py", *map(str, words)], capture_output=True, text=True)
    after = os.times()
    require(done.returncode == 0, f"grade ends with {done.returncode}: {done.stderr[-500:]}")
    computing = sum(getattr(after, name) - getattr(before, name) for name in ("children_user", "children_system"))
    return time.monotonic() - begin, computing


def reports_of(out):
    return {file.parent.name: json.loads(file.read_text()) for file in sorted(out.glob("*/report.json"))}


def bytes_of(out):
    return {file.relative_to(out).as_posix(): file.read_bytes() for file in sorted(out.rglob("*"))
            if file.is_file() and file.name not in ("log.json", "lock")}


def points(report, kind):
    return sum(mark["score"] or 0 for mark in report["marks"] if mark["kind"] == kind)


def most_points(report, kind):
    return sum(mark["max_score"] for mark in report["marks"] if mark["kind"] == kind)


def row(name, report):
    kinds = dict.fromkeys(mark["kind"] for mark in report["marks"])
    print(f"  {name:34} {report['score']:6g} of {report['max_score']}  " +
          "  ".join(f"{kind} {points(report, kind):g}" for kind in kinds) +
          ("  " + ", ".join(f"{of['bug']} {of['match']:g}" for of in report["diagnosis"][:3]) if report["diagnosis"] else ""), flush=True)


def known_submissions(assignment, counted, folder):
    """The solution, the skeleton, each planted bug."""
    project = predictions.project_files(assignment)
    handout = tree.Handout(assignment, student=predictions.EVERYBODY)
    rest = {path: handout.files[path] for path in assignment.submit if path not in project}
    if assignment.predictions:
        asked = json.loads(rest["predictions.json"])
        for of in assignment.predictions:
            asked[of.id]["value"] = counted(of.counter, of.rung, asked[of.id]["problem"])
        rest["predictions.json"] = json.dumps(asked).encode()
    if assignment.hunt_rung:
        rest |= predictions.right_hunt(assignment) | {"hunt/problem.txt": simulate.edits_of(assignment)[1].encode()}
    simulate.lay(folder / "solution", rest | project)
    simulate.lay(folder / "skeleton", {path: handout.files[path] for path in assignment.submit})
    bugs = diagnosis.planted_bugs(assignment)
    for name, (file, text) in bugs.items():
        simulate.lay(folder / f"bug {name}", rest | project | {file: text})
    return list(bugs)


def try_known(assignment, folder, jobs, counted):
    bugs = known_submissions(assignment, counted, folder / "known")
    outs = []
    for times, jobs_now in enumerate((jobs, 1, jobs)):
        outs.append(folder / f"known_{times}")
        words = ["--class", folder / "known"] if times == 0 else [folder / "known/solution", folder / "known/skeleton"]
        seconds, computing = grade(assignment.name, *words, "--out", outs[-1], "--jobs", jobs_now)
        if times == 0:
            print(f"  solution, skeleton, {len(bugs)} bugs: {seconds:.0f} s, {computing:.0f} CPU-seconds", flush=True)
    found = reports_of(outs[0])
    for name, report in found.items():
        row(name, report)
    for again in outs[1:]:
        kept = {path: content for path, content in bytes_of(outs[0]).items() if path.split("/")[0] in ("solution", "skeleton")}
        same = {path: content for path, content in bytes_of(again).items() if path.split("/")[0] in ("solution", "skeleton")}
        require(kept == same, f"{assignment.name}: other bytes when graded again")
    solution, skeleton = found["solution"], found["skeleton"]
    require(solution["score"] == solution["max_score"], f"{assignment.name}: the solution has {solution['score']}")
    require(points(skeleton, "exact") == 0 and skeleton["score"] <= MOST_FOR_NOTHING,
            f"{assignment.name}: the skeleton has {skeleton['score']}")
    diagnosed = 0
    for name in bugs:
        report = found[f"bug {name}"]
        lost = sum(most_points(report, kind) - points(report, kind) for kind in ("exact", "robust"))
        require(lost > 0, f"{assignment.name}: {name} loses no points of exact and robust")
        diagnosed += name in [of["bug"] for of in report["diagnosis"][:3]]
    require(diagnosed >= LEAST_DIAGNOSED * len(bugs), f"{assignment.name}: {diagnosed} of {len(bugs)} bugs are diagnosed")
    print(f"  {diagnosed} of {len(bugs)} bugs are among the first three of their diagnosis")


def try_class(assignment, folder, count, jobs, counted, again):
    (folder / "class").mkdir()
    truth = simulate.simulate(assignment, folder / "class", count, 1, tree.PUBLIC_KEY, counted)
    before = {path.relative_to(folder).as_posix(): path.read_bytes() for path in (folder / "class").rglob("*") if path.is_file()}
    out = folder / "grades"
    seconds, computing = grade(assignment.name, "--class", folder / "class", "--out", out, "--jobs", jobs)
    print(f"  a class of {count}: {seconds:.0f} s with {jobs} at once, {computing:.0f} CPU-seconds", flush=True)
    require(before == {path.relative_to(folder).as_posix(): path.read_bytes() for path in (folder / "class").rglob("*")
                       if path.is_file()}, f"{assignment.name}: a submission has changed")
    with (out / "class.csv").open(newline="") as file:
        require(len(list(csv.reader(file))) == count + 1, f"{assignment.name}: class.csv has not {count} rows")
    found = reports_of(out)
    for name, of in truth.items():
        row(f"{name} {of['kind']} {of['of']}".strip(), found[name])
        exact, most = points(found[name], "exact"), most_points(found[name], "exact")
        if of["kind"] == "right":
            robust = points(found[name], "robust") == most_points(found[name], "robust")
            require(exact == most and robust, f"{assignment.name}: {name} is right, and has {exact} of {most}")
        elif of["kind"] in ("partial", "broken"):
            require(exact < most, f"{assignment.name}: {name} is {of['kind']}, and has all exact points")
        elif of["kind"] == "attack":
            require(found[name]["score"] < found[name]["max_score"], f"{assignment.name}: {name} {of['of']} has all points")
        elif of["kind"] == "hostile":
            require(found[name]["status"] != "graded" or of["of"] == "words", f"{assignment.name}: {name} {of['of']} is graded")
    if again:
        grade(assignment.name, "--class", folder / "class", "--out", folder / "again", "--jobs", 1)
        require(bytes_of(out) == bytes_of(folder / "again"), f"{assignment.name}: the class has other bytes when graded again")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("assignments", nargs="*", default=assignments.names())
    parser.add_argument("--count", type=int, default=12)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--class-once", action="store_true",
                        help="the class alone, without solution, skeleton and each planted bug; not graded again for its bytes")
    parser.add_argument("--folder", type=pathlib.Path, help="keeps all that is written")
    options = parser.parse_args()
    folder = options.folder or pathlib.Path(tempfile.mkdtemp(prefix="convladder-course-"))
    for name in options.assignments:
        print(name, flush=True)
        assignment = assignments.read(name)
        counted = predictions.Counted(trials.Trials(assignment, tree.PUBLIC_KEY, say=lambda line: print(f"  {line}", flush=True)))
        (folder / name).mkdir(parents=True)
        if not options.class_once:
            try_known(assignment, folder / name, options.jobs, counted)
        if options.count:
            try_class(assignment, folder / name, options.count, options.jobs, counted, again=not options.class_once)
    if not options.folder:
        shutil.rmtree(folder)
    print(f"{len(problems)} things are not as promised" if problems else "All is as promised.")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
