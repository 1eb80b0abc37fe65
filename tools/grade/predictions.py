"""Whose handout a submission is, the numbers that it predicts, and what is counted."""
import hashlib
import json
import math
import os
import re
import subprocess

from assignment import COURSE, ROOT, source_of
from marks import NOT_WRITTEN, Prediction
from submission import MANIFEST
from tree import Draw, Handout, closure, predictions_of

FILE = "predictions.json"
EVERYBODY = "everybody"  # whose handout one is that was made without --student
BUILD = ROOT / "build/grade"
PROBLEMS = [f"core/{name}_problem.cpp" for name in ("conv2d", "im2col", "gemm", "tile_map")]  # that have numbers of their own
TRIES = ("audit.py", "draw.py", "tables.py", "trials.py", "workers.py")  # what of tools/grade results depend on


class CannotCount(Exception):
    """The microscope cannot be built, or does not count."""


def refuse(constant):
    raise ValueError(constant)


def written_in(files):
    """What predictions.json says, and why it says nothing."""
    if FILE not in files:
        return {}, f"{FILE} was not handed in"
    try:
        written = json.loads(files[FILE], parse_constant=refuse)
    except (ValueError, RecursionError):
        return {}, f"{FILE} is no JSON"
    return (written, "") if isinstance(written, dict) else ({}, f"{FILE} must be an object")


def problems_of(assignment, key, student):
    """The problems that this student's handout asks about, by the prediction's id."""
    asked = json.loads(predictions_of(assignment, Draw(key, assignment.name, student)))
    return {name: entry["problem"] for name, entry in asked.items()}


def student_of(assignment, key, submission):
    """(student, flags): for whom the handout was drawn that the submission was written in.

    That of its name, unless its handout.json or the problems in its predictions.json are those of the handout that
    was made for everybody. Neither is believed: they choose between these two only.
    """
    candidates = (submission.name, EVERYBODY)
    variant = submission.manifest.get("variant")
    for student in candidates:
        if Draw(key, assignment.name, student).variant() == variant:
            return student, []
    written, trouble = written_in(submission.files)
    if trouble or not assignment.predictions:
        return candidates[0], []
    found = {name: entry.get("problem") for name, entry in written.items() if isinstance(entry, dict)}
    for student in candidates:
        if problems_of(assignment, key, student) == found:
            return student, []
    return candidates[0], [f"{FILE} has the problems of another handout"]


def number_of(entry):
    """(number, trouble) of an entry of predictions.json."""
    value = entry.get("value") if isinstance(entry, dict) else entry
    if value is None:
        return None, NOT_WRITTEN
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None, "its value must be a number"
    try:
        number = float(value)
    except OverflowError:
        return None, "its value is too large"
    return (number, "") if math.isfinite(number) else (None, "its value is too large")


def predictions(assignment, key, student, files, count):
    """Each prediction beside what `count(counter, rung, problem)` says of the project's rung."""
    written, trouble = written_in(files)
    problems = problems_of(assignment, key, student)
    found = []
    for asked in assignment.predictions:
        number, why = (None, trouble) if trouble else number_of(written.get(asked.id))
        counted = None if number is None else count(asked.counter, asked.rung, problems[asked.id])
        found.append(Prediction(asked.id, number, counted, why))
    return found


class Counted:
    """Counts the project's own rungs, with the judge's microscope. What was counted once is kept."""

    def __init__(self, trials):
        self.trials = trials
        self.folder = BUILD / trials.assignment.name / "counted"
        self.about = about(trials)

    def __call__(self, counter, rung, problem):
        asked = hashlib.sha256(f"{self.about}|{counter}|{rung}|{problem}".encode()).hexdigest()
        kept = self.folder / f"{asked}.json"
        if not kept.is_file():
            number = number_of_problem if counter.startswith("problem.") else self.count
            counted = number(counter, rung, problem)
            self.folder.mkdir(parents=True, exist_ok=True)
            temporary = kept.with_suffix(f".{os.getpid()}")
            temporary.write_text(json.dumps(counted))
            temporary.rename(kept)
        return json.loads(kept.read_text())

    def count(self, counter, rung, problem):
        found = self.trials.count_right(rung, problem, [counter])
        if found["outcome"] != "agrees":
            raise CannotCount(f"the project's own {rung} cannot be counted on {problem}: {found['outcome']} {found['detail']}")
        return found["counters"][counter]


def about(trials):
    """A digest of what results depend on, beside what is handed in: the handout, the project's rungs, the checker, the compiler."""
    judge = sorted((ROOT / "course/grader").iterdir()) + [ROOT / "tools/grade" / name for name in TRIES]
    parts = [(path, content) for path, content in sorted(trials.skeleton.items()) if path != MANIFEST]
    parts += sorted(trials.right.items()) + [(path.name, path.read_bytes()) for path in judge] + [compiler()]
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def compiler():
    return subprocess.run([os.environ.get("CXX", "c++"), "--version"], capture_output=True, text=True).stdout.split("\n")[0]


def number_of_problem(number, rung, problem):
    """What course/grader/number_of_problem.cpp prints, which is compiled the first time."""
    check = COURSE / "student/check"
    files = [COURSE / "grader/number_of_problem.cpp", check / "options.cpp", check / "trial.cpp"]
    files += [ROOT / path for path in sorted(closure(PROBLEMS)) if path.endswith(".cpp")]
    made = BUILD / f"number_of_problem_{hashlib.sha256(b''.join(file.read_bytes() for file in files)).hexdigest()[:16]}"
    if not made.is_file():
        BUILD.mkdir(parents=True, exist_ok=True)
        temporary = made.with_suffix(f".{os.getpid()}")
        run([os.environ.get("CXX", "c++"), "-std=c++20", "-O0", "-DCHECK_WITHOUT_SITES", "-I", ROOT, "-I", COURSE / "student",
             "-I", ROOT / "cuda_on_cpu/include", *files, "-o", temporary])
        temporary.rename(made)
    return float(run([made, rung.split("/")[1], number, *problem.split()]))


def run(command):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    if done.returncode != 0:
        lines = (done.stdout + done.stderr).strip().split("\n")
        first = next((line for line in lines if re.search("error|undefined reference", line)), lines[-1])
        raise CannotCount(f"predictions cannot be counted: {first[:300]}")
    return done.stdout


SOLUTIONS = {}  # of each assignment: composed once


def project_files(assignment):
    """The project's own work in the place of the files that students write."""
    if assignment.name not in SOLUTIONS:
        # solution() has a rung's own file, too, where a header's paragraph is left out and nothing is to be written.
        SOLUTIONS[assignment.name] = {path: text.encode() for path, text in Handout(assignment).solution().items()
                                      if path in assignment.submit}
    return dict(SOLUTIONS[assignment.name])


def right_hunt(assignment):
    """The path of the file to be mended, and the project's own; nothing where there is no hunt."""
    if not assignment.hunt_rung:
        return {}
    file = source_of(assignment.hunt_rung)
    return {f"hunt/{file.rsplit('/', 1)[1]}": (ROOT / file).read_bytes()}
