#!/usr/bin/env python3
"""Grades submissions to an assignment of the course (course/README.md).

    grade.py ASSIGNMENT SUBMISSION... | --class DIR  --out OUT [--key FILE] [--jobs N] [--resume] [--isolation LEVEL]
             [--require-isolation LEVEL] [--case ID] [--submission NAME] [--keep] [--time] [--strict]
    grade.py --merge OUT... --out ALL

A SUBMISSION is a folder or a zip. Exit status: 0 all are graded, whatever the marks; 1 some could not be graded, or with
--strict some has not full marks; 2 bad input; 3 set-up failed, or the isolation that is required is missing; 4 our error.
"""
import argparse
import fcntl
import json
import pathlib
import shutil
import signal
import sys
import time
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "handout"))
import assignment as assignments  # noqa: E402
import batch  # noqa: E402
import diagnosis  # noqa: E402
import formats  # noqa: E402
import functions  # noqa: E402
import merge  # noqa: E402
import predictions  # noqa: E402
import report  # noqa: E402
import submission as submissions  # noqa: E402
import trials  # noqa: E402
import workers  # noqa: E402
from assignment import BadInput  # noqa: E402
from handout import key_of  # noqa: E402
from tree import PUBLIC_KEY  # noqa: E402

LEVELS = ("limits", "sealed", "user", "namespace")  # the weakest first
SECONDS_OF_DYING = 2


class Parser(argparse.ArgumentParser):
    def error(self, message):
        raise BadInput(message)


def say(line):
    print(line, file=sys.stderr, flush=True)


def parser():
    of = Parser(usage="./ladder grade ASSIGNMENT SUBMISSION... | --class DIR  --out OUT [--key FILE] [--jobs N] [--resume] "
                      "[--isolation LEVEL] [--require-isolation LEVEL] [--case ID] [--submission NAME] [--keep] [--time] "
                      "[--strict]; ./ladder grade --merge OUT... --out ALL", allow_abbrev=False)
    of.add_argument("assignment", nargs="?")
    of.add_argument("submissions", nargs="*", type=pathlib.Path)
    of.add_argument("--class", dest="folder", type=pathlib.Path)
    of.add_argument("--submission", action="append", default=[])
    of.add_argument("--out", type=pathlib.Path)
    of.add_argument("--key", type=pathlib.Path)
    of.add_argument("--jobs", type=int, default=1)
    of.add_argument("--resume", action="store_true")
    of.add_argument("--isolation", choices=("auto", *LEVELS), default="auto")
    of.add_argument("--require-isolation", choices=LEVELS, default=LEVELS[0])
    of.add_argument("--case")
    of.add_argument("--keep", action="store_true")
    of.add_argument("--time", action="store_true")
    of.add_argument("--strict", action="store_true")
    of.add_argument("--merge", nargs="+", type=pathlib.Path)
    return of


def paths_of(options):
    """What is to be graded: sorted by name, each name once."""
    if options.folder and options.submissions:
        raise BadInput("class: goes without SUBMISSION")
    if options.folder:
        if not options.folder.is_dir():
            raise BadInput(f"class = {options.folder}: there is no such folder")
        paths = [path for path in options.folder.iterdir() if not path.name.startswith(".")]
        for path in sorted(paths):
            if path.is_file() and not path.is_symlink() and path.suffix.lower() != ".zip":
                say(f"{submissions.clean(path.name)}: is neither a folder nor a zip, and is left out")
                paths.remove(path)
    else:
        paths = [path.resolve() if path.name in ("", "..") else path for path in options.submissions]
        for path in paths:
            if not path.exists() and not path.is_symlink():
                raise BadInput(f"submission = {path}: there is no such folder or zip")
    by_name = {}
    for path in paths:
        name = submissions.name_of(path)
        if name in by_name:
            raise BadInput(f"submission = {path}: has the name of {by_name[name]}")
        by_name[name] = path
    for name in options.submission:
        if name not in by_name:
            raise BadInput(f"submission = {name}: there is none of that name")
    if options.submission:
        by_name = {name: by_name[name] for name in options.submission}
    if not by_name:
        raise BadInput("submission: there is none")
    return [by_name[name] for name in sorted(by_name)]


def prepared_out(options, assignment):
    """OUT, if it is empty, or holds grades of this assignment."""
    out = options.out
    if out is None:
        raise BadInput("out: must name a folder")
    if not out.resolve().parent.is_dir():
        raise BadInput(f"out = {out}: the folder above it is not there")
    if out.exists():
        if not out.is_dir() or (any(out.iterdir()) and not (out / "state").is_dir()):
            raise BadInput(f"out = {out}: is not empty, and holds no grades")
        for graded in batch.reports_in(out)[:1]:
            if graded["assignment"] != assignment.name:
                raise BadInput(f"out = {out}: holds grades of {graded['assignment']}")
    return out


def made_trials(options, assignment, key):
    """@raises trials.IsolationMissing"""
    made = trials.Trials(assignment, key, options.isolation, say=say)
    level = made.isolation["level"]
    if LEVELS.index(level) < LEVELS.index(options.require_isolation):
        raise trials.IsolationMissing(f"require-isolation = {options.require_isolation}: this machine has {level} only")
    return made


def show_case(options, assignment, key, made, paths):
    """Runs one case of each submission, and tells the teacher all about it."""
    known = {name for name, _, _ in assignment.cases}
    for path in paths:
        one = submissions.read(path, assignment.submit)
        print(f"{one.name}:")
        if one.refused:
            print(f"  refused: {one.refused}")
            continue
        scratch = (options.out or predictions.BUILD) / "state" / f"{one.name}.{options.case}.tried"
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir(parents=True)
        result = made.run(one.files, scratch, cases=[options.case],
                          student=predictions.student_of(assignment, key, one)[0])
        entries = [(rung, of["cases"][options.case]) for rung, of in result["rungs"].items() if options.case in of["cases"]]
        counted = [(rung, of[options.case]) for rung, of in result["counters"].items() if options.case in of]
        broken = [(rung, of) for rung, of in result["rungs"].items() if of["build"] != "ok"]
        if not entries and not counted and not broken:
            raise BadInput(f"case = {options.case}: there is none of that name (public: {', '.join(sorted(known))})")
        for rung, of in broken:
            print(f"  {rung}: {of['build']}: {submissions.clean(of['message'])}")
        for rung, of in entries:
            print(f"  {options.case} of {rung}: {of['outcome']}")
            for order in of["orders"]:
                print(f"    {order['order']}: {order['outcome']} {submissions.clean(order['detail'])}".rstrip())
        for rung, of in counted:
            print(f"  {options.case} of {rung}, counted: {of['outcome']} {submissions.clean(of['message'])}".rstrip())
            for name, value in sorted(of["counters"].items()):
                print(f"    {name}: {value:g}")
            for sentence in [*of["races"], *of["unwritten"]]:
                print(f"    {submissions.clean(sentence)}")
        if options.keep:
            print(f"  kept: {scratch}")
        else:
            shutil.rmtree(scratch, ignore_errors=True)


def grade(options):
    if options.merge:
        if options.assignment or options.folder or options.out is None:
            raise BadInput("merge: goes with --out alone")
        merge.merge(options.merge, options.out)
        print(f"{options.out}: {len(batch.reports_in(options.out))} submissions")
        return 0
    if options.assignment is None:
        raise BadInput("assignment: must be one of " + ", ".join(assignments.names()))
    assignment = assignments.read(options.assignment)
    if not 1 <= options.jobs <= 256:
        raise BadInput(f"jobs = {options.jobs}: must be 1 to 256")
    key = key_of(options.key)
    paths = paths_of(options)
    out = None if options.case and options.out is None else prepared_out(options, assignment)
    if key is PUBLIC_KEY:
        say("No --key: hidden cases, predictions and hunts are drawn by a key that everybody knows.")
    if options.time:
        say("No times: " + ("this version grades by counters only." if shutil.which("nvidia-smi") else "there is no GPU here."))
    with batch.saying(say, "Building the checker"):
        made = made_trials(options, assignment, key)
    if options.case:
        show_case(options, assignment, key, made, paths)
        return 0

    out.mkdir(exist_ok=True)
    (out / "state").mkdir(exist_ok=True)
    with (out / "state/lock").open("w") as lock:
        take(lock, out)
        counted = predictions.Counted(made)
        kept = diagnosis.Kept(assignment, key, counted.about, made)
        with batch.saying(say, f"Trying the project's own rungs (isolation: {made.isolation['level']})"):
            kept.reference()
        grader = report.Grader(assignment, key, made, kept, counted)
        failed = batch.Batch(grader, out, jobs=options.jobs, resume=options.resume, keep=options.keep, say=say).grade(paths)
        reports = batch.reports_in(out)
        formats.write_class(out, reports)
    names = {submissions.name_of(path) for path in paths}
    mine = [one for one in reports if one["submission"]["name"] in names]
    full = sum(one["score"] == one["max_score"] for one in mine)
    print(f"{out}: {len(mine) - len(failed)} of {len(paths)} graded, {full} with full marks")
    return 1 if failed or (options.strict and full < len(paths)) else 0


def take(lock, out):
    """The folder for this run alone. The processes of a run that was killed end a moment after it. @raises BadInput"""
    for wait in [0.1] * SECONDS_OF_DYING * 10 + [0]:
        try:
            return fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(wait)
    raise BadInput(f"out = {out}: somebody grades into it just now")


def end(*_):
    raise KeyboardInterrupt


def main():
    signal.signal(signal.SIGTERM, end)
    try:
        return grade(parser().parse_args())
    except (BadInput, functions.Mismatch) as error:
        say(f"ladder: {error}")
        return 2
    except (trials.IsolationMissing, workers.Failed, diagnosis.NotFit, predictions.CannotCount, OSError) as error:
        say(f"ladder: {error}")
        return 3
    except KeyboardInterrupt:
        return 130
    except json.JSONDecodeError as error:
        say(f"ladder: OUT holds what this program did not write: {error}")
        return 2
    except Exception:
        traceback.print_exc()
        return 4


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    sys.exit(main())
