"""Tests of ./ladder grade: the whole command on a class, with fake trials; simulated classes; parts of a class.

    python3 test_grade_class.py
"""
import contextlib
import csv
import io
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import time
import unittest
from unittest import mock

from handed_in import (  # first: it says where the grader is
    BAD_INPUT, DONE, FAILED, FakeCounted, KERNEL, KEY, MISSING, ROOT, RUNG, TILE, WithFolder, assignments, lay,
    packed, solved)
import diagnosis  # noqa: E402
import fake_trials  # noqa: E402
import grade  # noqa: E402
import predictions  # noqa: E402
import similar  # noqa: E402
import simulate  # noqa: E402
import submission as submissions  # noqa: E402


class Simulated(WithFolder):
    """A class that is written by a program."""

    def content(self, folder):
        return {path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}

    def test_the_same_class_twice(self):
        for name, seed in (("one", 1), ("again", 1), ("other", 2)):
            (self.folder / name).mkdir()
            truth = simulate.simulate(self.assignment, self.folder / name, 12, seed, KEY)
            kinds = [of["kind"] for of in truth.values()]
            self.assertEqual((kinds.count("right"), kinds.count("hostile") + kinds.count("attack")), (8, 1))
            self.assertEqual(len(list((self.folder / name).iterdir())), 12)
        self.assertEqual(self.content(self.folder / "one"), self.content(self.folder / "again"))
        self.assertNotEqual(self.content(self.folder / "one"), self.content(self.folder / "other"))

    def test_a_large_class_has_all_kinds_and_each_planted_bug(self):
        for name in assignments.names():
            assignment = assignments.read(name)
            bugs = set(diagnosis.planted_bugs(assignment))
            kinds = simulate.kinds_of(120, bugs, {"fork": {}}, random.Random(1))
            self.assertEqual(len(kinds), 120)
            self.assertEqual([sum(kind == of for kind, _ in kinds) for of in ("right",)], [80])
            self.assertEqual({which for kind, which in kinds if kind == "planted"}, bugs)
            self.assertIn(("attack", "fork"), kinds)
            for kind in ("partial", "broken"):
                self.assertIn((kind, ""), kinds)

    def test_attacks_are_handed_in_as_the_file_that_they_are_about(self):
        attacks = simulate.attacks_of(self.assignment)
        self.assertGreater(len(attacks), 20)
        self.assertEqual({path for files in attacks.values() for path in files}, {KERNEL})

    def test_right_work_in_other_words_keeps_what_is_not_the_student_s(self):
        dice = random.Random(4)
        project = predictions.project_files(self.assignment)[KERNEL].decode()
        texts = {simulate.right(self.assignment, dice, "ada")[KERNEL].decode() for _ in range(20)}
        self.assertGreater(len(texts), 15)
        for text in texts:
            self.assertEqual(text[:text.index("namespace")], project[:project.index("namespace")])
            self.assertEqual(text.count("{"), text.count("}"))
        self.assertEqual(simulate.renamed("{ int a = b.a; f(a); }", random.Random(1)), "{ int a = b.a; f(a); }")
        self.assertRegex(simulate.renamed("{ int a = 1; f(a, x.y); } // a", random.Random(1)), r"{ int (a_\w+) = 1; f\(\1, x.y\); } // a")

    def test_hostile_ones_are_refused_or_only_words(self):
        files = solved("ada")
        for kind in simulate.HOSTILE:
            (self.folder / kind).mkdir()
            simulate.write_hostile(self.folder / kind / "s1", kind, files)
            for path in (self.folder / kind).iterdir():
                found = submissions.read(path, self.assignment.submit)
                self.assertEqual(bool(found.refused), kind != "words", kind)


class Command(WithFolder):
    """The whole command, with fake trials."""

    def setUp(self):
        super().setUp()
        (self.folder / "key").write_bytes(KEY)
        self.classroom = self.folder / "class"
        for name, lines in {"ada": [], "grace": ["F3.h1 differs"], "linus": ["no_build expected ;"]}.items():
            lay(self.classroom / name, solved(name, *lines))
        (self.classroom / "mallory.zip").write_bytes(packed([("../../etc/passwd", b"x")]))
        self.out = self.folder / "out"

    def grade(self, *arguments, status=DONE):
        """Standard output and error."""
        words = ["grade.py", *map(str, arguments)]
        out, err = io.StringIO(), io.StringIO()
        handler = signal.getsignal(signal.SIGTERM)
        with mock.patch.object(diagnosis, "BUILD", self.folder / "build"), mock.patch.object(predictions, "BUILD", self.folder / "build"), \
                mock.patch.object(predictions, "Counted", FakeCounted), mock.patch.object(sys, "argv", words), \
                contextlib.redirect_stderr(err), contextlib.redirect_stdout(out):
            found = grade.main()
        signal.signal(signal.SIGTERM, handler)
        self.assertEqual(found, status, err.getvalue())
        return out.getvalue(), err.getvalue()

    def whole(self, *arguments, out=None, status=DONE):
        return self.grade(TILE, "--class", self.classroom, "--out", out or self.out, "--key", self.folder / "key", *arguments,
                          status=status)

    def content(self, folder, but=("log.json",)):
        return {path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*"))
                if path.is_file() and path.name not in but}

    def rows(self, out=None):
        with ((out or self.out) / "class.csv").open(newline="") as file:
            return {row["name"]: row for row in csv.DictReader(file)}

    def test_a_class(self):
        said, err = self.whole()
        self.assertIn("4 of 4 graded, 1 with full marks", said)
        self.assertEqual(len(re.findall(r"^\[\d/4\]", err, re.MULTILINE)), 4)
        rows = self.rows()
        self.assertEqual(list(rows), ["ada", "grace", "linus", "mallory"])
        self.assertEqual([row["status"] for row in rows.values()], ["graded", "graded", "no_build", "refused"])
        self.assertEqual([float(row["score"]) for row in rows.values()], [100, 94.5, 20, 0])
        for name in rows:
            self.assertEqual({path.name for path in (self.out / name).iterdir()}, {
                "results.json", "report.json", "junit.xml", "classroom.json", "feedback.txt", "log.json"})
            report = json.loads((self.out / name / "report.json").read_text())
            self.assertEqual(set(report), {"schema", "assignment", "version", "submission", "status", "score", "max_score",
                                           "isolation", "marks", "diagnosis", "flags"})
            for mark in report["marks"]:
                self.assertEqual(set(mark), {"id", "number", "name", "kind", "score", "max_score", "status", "visibility",
                                             "message", "cases", "counter"})
            for file in ("results.json", "feedback.txt", "junit.xml", "classroom.json"):
                self.assertNotIn(fake_trials.SECRET, (self.out / name / file).read_text())
        self.assertEqual(json.loads((self.out / "class.json").read_text())["families"]["F3"], ["grace", "linus"])
        self.assertEqual(json.loads((self.out / "grace/report.json").read_text())["submission"]["name"], "grace")

    def test_the_same_bytes_with_any_number_of_jobs(self):
        for jobs in (1, 3):
            self.whole("--jobs", jobs, out=self.folder / str(jobs))
        self.assertEqual(self.content(self.folder / "1"), self.content(self.folder / "3"))
        self.whole(out=self.folder / "1")
        self.assertEqual(self.content(self.folder / "1"), self.content(self.folder / "3"))

    def test_one_that_goes_wrong_stops_no_other(self):
        lay(self.classroom / "eve", solved("eve", "stop"))
        lay(self.classroom / "fred", solved("fred", "raise"))
        said, err = self.whole("--jobs", 2, status=FAILED)
        self.assertIn("4 of 6 graded", said)
        self.assertEqual([self.rows()[name]["status"] for name in ("ada", "eve", "fred", "grace")], ["graded", "failed", "failed", "graded"])
        self.assertIn("out of order", (self.out / "fred/log.json").read_text())
        self.assertEqual(json.loads((self.out / "eve/results.json").read_text())["tests"][0]["score"], 0)
        self.assertFalse((self.out / "state/eve.done").exists())

    def test_resume_grades_what_has_changed(self):
        self.whole()
        before = self.content(self.out)
        lay(self.classroom / "ada", solved("ada", "F4.h1 differs"))
        _, err = self.whole("--resume")
        self.assertEqual(err.count("as before"), 3)
        self.assertIn("ada: 94.5", err)
        lay(self.classroom / "ada", solved("ada"))
        self.whole("--resume")
        self.assertEqual(self.content(self.out), before)

    def test_resume_after_a_kill(self):
        for i in range(6):
            lay(self.classroom / f"s{i}", solved(f"s{i}", "sleep 0.2"))
        self.whole(out=self.folder / "whole")
        script = self.folder / "run.py"
        script.write_text(f"import sys\nsys.path.insert(0, {str(pathlib.Path(__file__).parent)!r})\nimport test_grade_class as t, pathlib\n"
                          f"c = t.Command()\nc.folder = pathlib.Path({str(self.folder)!r})\n"
                          "c.classroom, c.out = c.folder / 'class', c.folder / 'out'\nc.whole('--jobs', 2)\n")
        process = subprocess.Popen([sys.executable, "-B", script])
        limit = time.monotonic() + 60
        while not list(self.out.glob("state/s*.done")) and time.monotonic() < limit:
            time.sleep(0.01)
        process.kill()
        process.wait()
        self.assertFalse((self.out / "class.csv").exists())
        time.sleep(0.1)
        _, err = self.whole("--resume", "--jobs", 2)
        self.assertGreater(err.count("as before"), 0)
        self.assertEqual(self.content(self.out), self.content(self.folder / "whole"))

    def test_parts_put_together(self):
        self.whole()
        for part, names in (("p", ["ada", "mallory"]), ("q", ["grace", "linus"])):
            self.whole(*[word for name in names for word in ("--submission", name)], out=self.folder / part)
        self.grade("--merge", self.folder / "p", self.folder / "q", "--out", self.folder / "all")
        self.assertEqual(self.content(self.folder / "all", ("log.json", "lock")), self.content(self.out, ("log.json", "lock")))
        for arguments, says in (((self.folder / "p", self.folder / "p"), "and so has"), ((self.classroom,), "holds no grades")):
            _, err = self.grade("--merge", *arguments, "--out", self.folder / "again", status=BAD_INPUT)
            self.assertIn(says, err)
            self.assertFalse((self.folder / "again").exists())

    def test_strict(self):
        self.whole("--strict", status=FAILED)
        self.grade(TILE, self.classroom / "ada", "--out", self.folder / "one", "--key", self.folder / "key", "--strict")

    def test_one_case(self):
        said, _ = self.whole("--case", "F3.h1", "--submission", "grace")
        self.assertIn("differs", said)
        self.assertIn(fake_trials.SECRET, said)
        self.assertEqual(list(self.out.glob("*/report.json")), [])
        said, _ = self.grade(TILE, self.classroom / "grace", "--case", "c1", "--key", self.folder / "key")
        self.assertIn("loads_per_output.x: 4", said)
        _, err = self.whole("--case", "F3.x1", status=BAD_INPUT)
        self.assertIn("case = F3.x1", err)

    def test_what_is_kept(self):
        self.whole("--keep")
        self.assertTrue((self.out / "state/ada.tried").is_dir())

    def test_isolation(self):
        _, err = self.whole("--isolation", "namespace", status=MISSING)
        self.assertIn("isolation = namespace", err)
        _, err = self.whole("--require-isolation", "user", status=MISSING)
        self.assertIn("require-isolation = user", err)
        self.assertFalse((self.out / "ada").exists())
        self.whole("--require-isolation", "sealed")

    def refused(self, says, *arguments):
        before = self.content(self.folder)
        _, err = self.grade(*arguments, status=BAD_INPUT)
        self.assertIn(says, err)
        self.assertEqual(len([line for line in err.split("\n") if line.startswith("ladder:")]), 1, err)
        self.assertEqual(self.content(self.folder), before)

    def test_bad_input(self):
        ada, out = self.classroom / "ada", ["--out", self.out]
        self.refused("assignment", *out)
        self.refused("nearest: a3_tile_and_halo", "a3_tile_and_hallo", ada, *out)
        self.refused("submission", TILE, *out)
        self.refused("there is no such folder or zip", TILE, self.folder / "none", *out)
        self.refused("there is no such folder", TILE, "--class", self.folder / "none", *out)
        self.refused("goes without SUBMISSION", TILE, ada, "--class", self.classroom, *out)
        self.refused("has the name of", TILE, ada, ada, *out)
        self.refused("submission = nobody", TILE, "--class", self.classroom, "--submission", "nobody", *out)
        self.refused("out:", TILE, ada)
        self.refused("holds no grades", TILE, ada, "--out", self.classroom)
        self.refused("the folder above it", TILE, ada, "--out", self.folder / "a/b")
        self.refused("jobs = 0", TILE, ada, "--jobs", "0", *out)
        self.refused("--jobs", TILE, ada, "--jobs", "many", *out)
        self.refused("--isolation", TILE, ada, "--isolation", "strong", *out)
        self.refused("key =", TILE, ada, "--key", self.folder / "none", *out)
        self.refused("--quick", TILE, ada, "--quick", *out)
        self.refused("merge", TILE, "--merge", self.classroom)

    def test_grades_of_another_assignment(self):
        self.whole()
        _, err = self.grade("a2_first_kernel", self.classroom / "ada", "--out", self.out, status=BAD_INPUT)
        self.assertIn("holds grades of a3_tile_and_halo", err)

    def test_a_machine_on_which_the_project_is_wrong(self):
        with mock.patch.object(diagnosis, "project_files", lambda assignment: {KERNEL: b"// fake: F3.h1 differs"}):
            _, err = self.whole(status=MISSING)
        self.assertIn(f"the project's own {RUNG} does not agree in case F3.h1", err)
        self.assertFalse((self.out / "ada").exists())

    def test_similarity(self):
        self.whole()
        out = io.StringIO()
        for words in ([], ["--moss"]):
            with mock.patch.object(sys, "argv", ["similar.py", str(self.out), *words]), contextlib.redirect_stdout(out), \
                    contextlib.redirect_stderr(io.StringIO()), mock.patch.dict(os.environ):
                os.environ.pop("JPLAG_JAR", None)
                self.assertEqual(similar.main(), DONE)
        jplag, moss = out.getvalue().splitlines()
        self.assertRegex(jplag, r"^java -jar jplag.jar -l cpp .*-bc \S+/base -old \S+/old -new \S+/new --normalize")
        self.assertRegex(moss, r"^moss -l cc -d -b \S+/base/\S+ ")
        folder = self.out / "state/similarity"
        self.assertEqual((folder / "new/grace" / KERNEL).read_bytes(), solved("grace", "F3.h1 differs")[KERNEL])
        self.assertEqual((folder / "old/project" / KERNEL).read_bytes(), predictions.project_files(self.assignment)[KERNEL])
        self.assertIn("NOT_WRITTEN", (folder / "base" / KERNEL).read_text())
        with mock.patch.object(sys, "argv", ["similar.py", str(self.classroom)]), contextlib.redirect_stderr(io.StringIO()):
            self.assertEqual(similar.main(), BAD_INPUT)

    def test_without_a_key_and_without_a_gpu(self):
        with mock.patch.object(shutil, "which", lambda name: None):
            _, err = self.grade(TILE, self.classroom / "ada", "--out", self.out, "--time")
        self.assertIn("a key that everybody knows", err)
        self.assertIn("there is no GPU here", err)


class Parts(WithFolder):
    """A class that is divided among machines."""

    def test_each_submission_is_in_one_part(self):
        project, handed_in = self.folder / "project", self.folder / "handed in"
        project.mkdir()
        (project / "ladder").write_text("#!/bin/sh\nshift 2\nfor word; do [ \"$word\" = --out ] && break; echo \"$word\"; done\n")
        (project / "ladder").chmod(0o755)
        git = ["git", "-C", project, "-c", "user.name=a", "-c", "user.email=a@b.c"]
        for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "a"]):
            subprocess.run([*git, *words], check=True)
        for i in range(10):
            (handed_in / f"student {i}").mkdir(parents=True)
        (handed_in / "late.zip").touch()
        (handed_in / ".git").mkdir()
        (handed_in / "grades.txt").touch()
        graded = []
        for part in range(3):
            done = subprocess.run(["bash", ROOT / "course/slurm/grade.sbatch", TILE, handed_in, self.folder / "out", "key", "3"],
                                  capture_output=True, text=True, cwd=project, env=os.environ | {"SLURM_ARRAY_TASK_ID": str(part)})
            self.assertEqual(done.returncode, DONE, done.stderr)
            names = [pathlib.Path(line).name for line in done.stdout.splitlines()]
            self.assertIn(len(names), (3, 4))
            graded += names
        self.assertEqual(sorted(graded), ["late.zip", *(f"student {i}" for i in range(10))])

    def test_a_call_without_all_words(self):
        done = subprocess.run(["bash", ROOT / "course/slurm/grade.sbatch", TILE], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr.count("\n")), (BAD_INPUT, 1))


if __name__ == "__main__":
    unittest.main()
