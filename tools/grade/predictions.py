"""Whose handout a submission is, the numbers that it predicts, and what is counted."""
import fcntl
import hashlib
import json
import math
import re
import subprocess

from assignment import ROOT, source_of
from marks import NOT_WRITTEN, Prediction
from tree import Draw, Handout, predictions_of

FILE = "predictions.json"
EVERYBODY = "everybody"  # whose handout one is that was made without --student
BUILD = ROOT / "build/grade"


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
    """Counts the project's own rungs, by the microscope of a student's build with the bodies back in it.

    What was counted once is kept, by what it was counted of.
    """

    def __init__(self, assignment, say):
        self.assignment, self.say = assignment, say
        self.folder = BUILD / assignment.name / "counted"
        handout = Handout(assignment)
        self.files = handout.files | {path: text.encode() for path, text in handout.solution().items()}
        sources = [(path, content) for path, content in sorted(self.files.items()) if path.endswith((".cu", ".cuh", ".cpp", ".hpp"))]
        self.about = hashlib.sha256(repr(sources).encode()).hexdigest()

    def __call__(self, counter, rung, problem):
        about = hashlib.sha256(f"{self.about}|{counter}|{rung}|{problem}".encode()).hexdigest()
        kept = self.folder / f"{about}.json"
        if not kept.is_file():
            self.build()
            counted = self.count(counter, rung, problem)
            temporary = kept.with_suffix(f".{id(self)}.new")
            temporary.write_text(json.dumps(counted))
            temporary.rename(kept)
        return json.loads(kept.read_text())

    def build(self):
        tree = self.folder / "tree"
        tree.mkdir(parents=True, exist_ok=True)
        with (self.folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            state = self.folder / "built"
            if state.is_file() and state.read_text() == self.about:
                return
            self.say("Building the microscope for predictions")
            for path, content in self.files.items():
                file = tree / path
                if not file.is_file() or file.read_bytes() != content:
                    file.parent.mkdir(parents=True, exist_ok=True)
                    file.write_bytes(content)
            self.run(["cmake", "-S", tree, "-B", tree / "build", "-G", "Ninja"])
            self.run(["ninja", "-C", tree / "build", "microscope"])
            state.write_text(self.about)

    def count(self, counter, rung, problem):
        said = self.run([self.folder / "tree/build/microscope", "count", counter, rung, *problem.split()])
        return float(said)

    @staticmethod
    def run(command):
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
        if done.returncode != 0:
            lines = (done.stdout + done.stderr).strip().split("\n")
            first = next((line for line in lines if re.search("error", line)), lines[-1])
            raise CannotCount(f"predictions cannot be counted: {first[:300]}")
        return done.stdout


def project_files(assignment):
    """The project's own files in the place of those that students write."""
    return {blank.file: (ROOT / blank.file).read_bytes() for blank in assignment.blanks}


def right_hunt(assignment):
    """The path of the file to be mended, and the project's own; nothing where there is no hunt."""
    if not assignment.hunt_rung:
        return {}
    file = source_of(assignment.hunt_rung)
    return {f"hunt/{file.rsplit('/', 1)[1]}": (ROOT / file).read_bytes()}
