"""Grades one submission: report.json, in the schema convladder-grade-1."""
import pathlib
import time

import diagnosis
import marks
import predictions
from submission import Submission
from tree import version

SCHEMA = "convladder-grade-1"


class Grader:
    """What all submissions to an assignment are graded by."""

    def __init__(self, assignment, key, trials, kept, counted):
        self.assignment, self.key, self.trials, self.kept, self.counted = assignment, key, trials, kept, counted

    def grade(self, submission: Submission, folder: pathlib.Path):
        """(report, log) of a submission that is tried in `folder`."""
        if submission.refused:
            return self.report(submission, "refused", marks.all_failed(self.assignment, submission.refused)), {"seconds": {}}
        student, flags = predictions.student_of(self.assignment, self.key, submission)
        begin = time.monotonic()
        result = self.trials.run(submission.files, folder, student=student)
        seconds = dict(result["seconds"], trials=round(time.monotonic() - begin, 3))
        begin = time.monotonic()
        found = predictions.predictions(self.assignment, self.key, student, submission.files, self.counted)
        seconds["predictions"] = round(time.monotonic() - begin, 3)
        given = marks.Marker(self.assignment, self.kept.reference(), result, found).all()
        begin = time.monotonic()
        fails = diagnosis.signature(result)
        nearest = diagnosis.nearest(fails, self.kept.signatures()) if any(fails) else []
        seconds["diagnosis"] = round(time.monotonic() - begin, 3)
        builds = [entry["build"] for entry in result["rungs"].values()]
        flags += [f"{rung}: {entry['build']}" for rung, entry in result["rungs"].items() if entry["build"] != "ok"]
        status = "no_build" if builds and all(build == "no_build" for build in builds) else "graded"
        return self.report(submission, status, given, nearest, flags), {"student": student, "seconds": seconds}

    def report(self, submission, status, given, nearest=(), flags=()):
        score, most = marks.total(given)
        return {"schema": SCHEMA, "assignment": self.assignment.name, "version": version(),
                "submission": {"name": submission.name, "files": submission.digests(), "digest": submission.digest()},
                "status": status, "score": score, "max_score": most, "isolation": self.trials.isolation,
                "marks": given, "diagnosis": list(nearest), "flags": [*submission.notes, *flags]}

    def failure(self, submission, why):
        """The report of a submission that could not be graded: our error, not the student's."""
        return self.report(submission, "failed", marks.all_failed(self.assignment, "could not be graded"),
                           flags=[why[:300]])
