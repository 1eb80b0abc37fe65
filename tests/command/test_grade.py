"""Tests of ./ladder grade around the running of student code: reading, marks, diagnosis, formats, the class.

    python3 test_grade.py

What is handed in is tried by fake_trials.py, which does what the submission's text says.
"""
import base64
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
import tempfile
import time
import unittest
import xml.etree.ElementTree as ElementTree
import zipfile
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools/grade"), str(ROOT / "tools/handout"), str(ROOT / "tests/command")]
sys.dont_write_bytecode = True
try:
    import assignment as assignments
except ModuleNotFoundError:
    print("SKIPPED: Python 3.11 or newer is needed (tomllib)")
    sys.exit(77)
import fake_trials  # noqa: E402

sys.modules["trials"] = fake_trials
import diagnosis  # noqa: E402
import formats  # noqa: E402
import grade  # noqa: E402
import marks  # noqa: E402
import predictions  # noqa: E402
import similar  # noqa: E402
import simulate  # noqa: E402
import submission as submissions  # noqa: E402
import tree  # noqa: E402

DONE, FAILED, BAD_INPUT, MISSING, INTERRUPTED = 0, 1, 2, 3, 130
TILE = "a3_tile_and_halo"
KERNEL = "cuda_optimized/conv2d/direct_tiled.cu"
RUNG = "cuda_optimized/conv2d/direct_tiled"
KEY = bytes(range(32))
COUNTS = {"loads_of_x": 4.5, "barriers": 6.0}


def counted_by_id(counter, rung, problem):
    """In the place of the microscope."""
    return {"loads_per_output.x": 4.5, "barriers_per_block": 6.0}[counter]


class FakeCounted:
    about = "the same for all"

    def __init__(self, trials):
        pass

    def __call__(self, *asked):
        return counted_by_id(*asked)


def solved(student, *fake, hunt="good mended", predicted=COUNTS):
    """The files of a student of A3 whose work is right but for what the lines say."""
    assignment = assignments.read(TILE)
    asked = json.loads(tree.predictions_of(assignment, tree.Draw(KEY, TILE, student)))
    for name, value in predicted.items():
        asked[name]["value"] = value
    return {KERNEL: "".join(f"// fake: {line}\n" for line in fake).encode(), "predictions.json": json.dumps(asked).encode(),
            "hunt/problem.txt": hunt.encode(), "hunt/direct.cu": b"// mended"}


def lay(folder, files):
    for path, content in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)


def packed(entries):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, content in entries:
            archive.writestr(path, content)
    return out.getvalue()


class WithFolder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="convladder-test-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.assignment = assignments.read(TILE)


class Reading(WithFolder):
    """Of a folder or zip the listed files; anything odd is refused, with a reason."""

    def read(self, path):
        return submissions.read(path, self.assignment.submit)

    def put(self, entries, name="ada.zip"):
        (self.folder / name).write_bytes(packed(entries))
        return self.read(self.folder / name)

    def refused(self, found, says):
        self.assertIn(says, found.refused)
        self.assertEqual(found.files, {})
        self.assertNotIn("\n", found.refused)

    def test_folders_and_zips_alike(self):
        files = solved("ada")
        lay(self.folder / "ada", files | {"core/device.cpp": b"#error", "CMakeLists.txt": b"?"})
        self.assertEqual(self.read(self.folder / "ada").files, files)
        for prefix in ("", "ada-main/"):
            found = self.put([(prefix + path, content) for path, content in files.items()])
            self.assertEqual((found.files, found.refused, found.name), (files, "", "ada"))
        flat = self.put([(path.rsplit("/", 1)[-1], content) for path, content in files.items()])
        self.assertEqual(flat.files, files)

    def test_a_file_that_is_missing_is_noted(self):
        found = self.put([(KERNEL, b"//")])
        self.assertEqual(set(found.files), {KERNEL})
        self.assertEqual(len(found.notes), len(self.assignment.submit) - 1)

    def test_links_and_pipes(self):
        for what in ("link", "pipe", "folder", "linked folder"):
            with self.subTest(what):
                root = self.folder / what
                place = root / KERNEL
                place.parent.mkdir(parents=True)
                (self.folder / "secret").write_text("secret")
                if what == "link":
                    place.symlink_to(self.folder / "secret")
                elif what == "pipe":
                    os.mkfifo(place)
                elif what == "folder":
                    place.mkdir()
                else:
                    shutil.rmtree(root / "cuda_optimized")
                    (root / "cuda_optimized").symlink_to(self.folder)
                self.refused(self.read(root), "ordinary file")
        (self.folder / "alias").symlink_to(self.folder)
        self.refused(self.read(self.folder / "alias"), "neither a folder nor a zip")

    def test_odd_zips(self):
        self.refused(self.put([(f"{i}.cu", b"") for i in range(65)]), "65 entries")
        self.refused(self.put([("../" + KERNEL, b"//")]), "leads out of it")
        self.refused(self.put([("/etc/passwd", b"//")]), "leads out of it")
        self.refused(self.put([("a\\..\\..\\b", b"//")]), "leads out of it")
        with self.assertWarns(UserWarning):
            self.refused(self.put([(KERNEL, b"//"), (KERNEL, b"//")]), "twice")
        self.refused(self.put([(KERNEL, b"\0" * 10 ** 7)]), "more than 262144 bytes")
        link = zipfile.ZipInfo(KERNEL)
        link.external_attr = 0o120777 << 16
        self.refused(self.put([(link, b"/etc/passwd")]), "no ordinary file")
        for content in (b"", b"PK", b"PK\3\4" + bytes(100), packed([(KERNEL, b"//" * 999)])[:-30]):
            (self.folder / "x.zip").write_bytes(content)
            self.refused(self.read(self.folder / "x.zip"), "no zip")
        (self.folder / "x.zip").write_bytes(bytes(submissions.MOST_BYTES_OF_ZIP + 1))
        self.refused(self.read(self.folder / "x.zip"), "more than 4194304 bytes")

    def test_bytes_that_a_zip_lies_about(self):
        good = packed([(KERNEL, b"//" * 999)])
        dice = random.Random(5)
        for _ in range(300):
            bad = bytearray(good)
            for _ in range(dice.randint(1, 4)):
                bad[dice.randrange(len(bad))] = dice.randrange(256)
            (self.folder / "x.zip").write_bytes(bad)
            found = self.read(self.folder / "x.zip")
            self.assertTrue(found.refused or set(found.files) == {KERNEL})

    def test_what_is_no_plain_text(self):
        for content, says in ((b"\xff", "UTF-8"), (b"a\0b", "zero byte"), ("// \u202e".encode(), "U+202E"),
                              (b"x" * (256 * 1024 + 1), "262144")):
            self.refused(self.put([(KERNEL, content)]), says)
        self.refused(self.put([(KERNEL, b"//"), ("predictions.json", b" " * 4097)]), "4096")

    def test_many_files_in_a_folder(self):
        lay(self.folder / "ada", solved("ada"))
        for i in range(300):
            (self.folder / f"ada/{i}").touch()
        self.assertEqual(self.read(self.folder / "ada").refused, "")

    def test_none_of_the_files(self):
        self.refused(self.put([]), "none of the files")
        (self.folder / "empty").mkdir()
        self.refused(self.read(self.folder / "empty"), "none of the files")

    def test_names(self):
        for name in ("a b", "\x1b[31mred", "=cmd()", "state", "class.csv", ".hidden", "<b>", "\n", "ä\udcff", "x" * 200):
            safe = submissions.name_of(pathlib.Path(name))
            self.assertRegex(safe, r"\A[\w@+=,.%~ -]{1,125}\Z")
            self.assertNotIn(safe, submissions.OUR_NAMES)


class Marks(WithFolder):
    """From what trials say to points."""

    def result(self, *lines, files=None):
        (self.folder / "tried").mkdir(exist_ok=True)
        return fake_trials.Trials(self.assignment, KEY).run(files or solved("ada", *lines), self.folder / "tried")

    def marks(self, *lines, files=None, asked=None):
        files = files or solved("ada", *lines)
        found = predictions.predictions(self.assignment, KEY, "ada", files, counted_by_id)
        given = marks.Marker(self.assignment, self.result(), self.result(files=files), found).all()
        return {mark["id"]: mark for mark in given}

    def scores(self, *lines, files=None):
        return {name: mark["score"] for name, mark in self.marks(*lines, files=files).items()}

    def test_all_right(self):
        given = self.marks()
        self.assertEqual(marks.total(list(given.values())), (100, 100))
        self.assertTrue(all(mark["status"] == "passed" and mark["message"] in ("", mark["message"]) for mark in given.values()))

    def test_a_family_is_all_or_nothing_and_public_cases_carry_no_marks(self):
        full = self.scores()
        for lines, lost in ((["F3.h1 differs"], 5.5), (["F3.h1 differs", "F3.h2 crashed"], 5.5), (["F3.p1 differs"], 0),
                            (["F3.h1 declined", "F4.h2 timeout"], 11)):
            self.assertAlmostEqual(full["exact"] - self.scores(*lines)["exact"], lost)

    def test_nothing_is_written(self):
        given = self.marks(files={path: content for path, content in tree.Handout(self.assignment, KEY, "ada").files.items()
                                  if path in self.assignment.submit})
        self.assertEqual(marks.total(list(given.values()))[0], 0)
        self.assertIn("not written yet: 3.1 load_tile", given["exact"]["message"])
        for name, mark in given.items():
            self.assertEqual(mark["status"], "failed")
            self.assertIn("not written yet", mark["message"], name)

    def test_robust_parts(self):
        third = 10 / 3
        for lines, lost in ((["F2.h1@reverse differs"], third), (["F2.h1 crashed"], third), (["F10.h1 differs"], third),
                            (["c1 race"], third), (["F2.h1@reverse differs", "F10.h2 differs", "c2 race"], 10),
                            (["F2.h1 differs"], 0), (["illegal_cuda calls printf"], 10), (["no_build expected ;"], 10),
                            (["all differs"], 10)):
            self.assertAlmostEqual(10 - self.scores(*lines)["robust"], lost, 1, lines)
        self.assertIn("printf", self.marks("illegal_cuda calls printf")["robust"]["message"])

    def test_an_order_that_is_wrong_costs_robustness_alone(self):
        given = self.scores("F2.h1@reverse differs")
        self.assertEqual(given["exact"], 55)
        self.assertLess(given["robust"], 10)

    def test_a_ramp(self):
        self.assertEqual([marks.on_ramp(value, 4, 8, 10) for value in (0, 4, 5, 6, 8, 9)], [10, 10, 7.5, 5, 0, 0])
        self.assertEqual([marks.on_ramp(value, 0.9, 0.1, 8) for value in (1, 0.9, 0.5, 0.1, 0)], [8, 8, 4, 0, 0])
        self.assertEqual((marks.on_ramp(1, 1, 1, 3), marks.on_ramp(2, 1, 1, 3), marks.on_ramp(float("nan"), 1, 2, 3)), (3, 0, 0))
        dice = random.Random(1)
        for _ in range(1000):
            full, zero, points = dice.uniform(-9, 9), dice.uniform(-9, 9), dice.randint(1, 30)
            values = sorted(dice.uniform(-20, 20) for _ in range(5))
            scores = [marks.on_ramp(value, full, zero, points) for value in values]
            self.assertEqual(scores, sorted(scores, reverse=full < zero))
            self.assertTrue(all(0 <= score <= points for score in scores))

    def test_bounds_relative_to_the_rung(self):
        self.assertEqual([marks.bound(word, 4.0) for word in ("1.05 rung", "3 rung", 5.5, "7")], [4.2, 12.0, 5.5, 7.0])

    def test_counters(self):
        given = self.marks("c1 loads_per_output.x=8.85")
        self.assertEqual(given["x_loads_3x3"]["score"], 2.5)
        self.assertEqual(given["x_loads_3x3"]["counter"], {"name": "loads_per_output.x", "value": 8.85, "full": 4.2, "zero": 13.5})
        self.assertIn("./ladder inspect", given["x_loads_3x3"]["message"])
        self.assertEqual(given["x_loads_6x6"]["score"], 4)

    def test_a_counter_counts_on_an_exact_case_only(self):
        result = self.result()
        result["counters"][RUNG]["c1"]["outcome"] = "differs"
        given = marks.Marker(self.assignment, self.result(), result, []).all()
        self.assertEqual([mark["score"] for mark in given if mark["counter"] and mark["cases"][0]["id"] == "c1"], [0, 0, 0])

    def test_predictions(self):
        for value, right in ((4.5, True), (4.545, True), (4.4551, True), (4.56, False), (0, False), (-4.5, False),
                             (10 ** 400, False), ("4.5", False), (True, False), (None, False), ([4.5], False)):
            given = self.marks(files=solved("ada", predicted={"loads_of_x": value, "barriers": 6}))["predictions"]
            self.assertEqual(given["score"], 10 if right else 5, value)
            self.assertEqual(given["message"] == "", right, value)
        for content in (b"", b"[]", b"{", b"[" * 4000, b'{"loads_of_x": 1e999}', b'{"loads_of_x": {"value": 1e999}}', b'{"loads_of_x": NaN}', b'{"barriers": {"value": {}}}'):
            given = self.marks(files=solved("ada") | {"predictions.json": content})["predictions"]
            self.assertEqual(given["score"], 0)
            self.assertNotEqual(given["message"], "")

    def test_hunts(self):
        for hunt, score in (("good mended", 10), ("good", 7), ("mended", 3), ("nothing", 0)):
            self.assertEqual(self.scores(files=solved("ada", hunt=hunt))["hunt"], score)

    def test_points_for_a_person_are_no_part_of_the_sum(self):
        self.assignment.marks[-1].kind = "manual"
        given = self.marks()
        self.assertIsNone(given["hunt"]["score"])
        self.assertEqual(given["hunt"]["status"], "not_run")
        self.assertEqual(marks.total(list(given.values())), (90, 90))

    def test_what_the_student_reads_of_a_family(self):
        message = self.marks("F3.h1 differs", "F3.h2 differs", "F3.p2 differs", "F4.h1 timeout")["exact"]["message"]
        self.assertIn(f"F3 of {RUNG}: 2 of 2 hidden cases differ; try F3.p2: y[0][1][2][3]: expected 5, found 7", message)
        self.assertIn("F4 of", message)
        self.assertIn("take too long", message)
        self.assertNotIn(fake_trials.SECRET, message)

    def test_a_file_that_does_not_compile_costs_its_own_marks(self):
        assignment = assignments.read("a2_first_kernel")
        tried = self.folder / "two"
        tried.mkdir()
        trials = fake_trials.Trials(assignment, KEY)
        files = {path: b"" for path in assignment.submit if path.endswith(".cu")}
        reference = trials.run(files, tried)
        broken = trials.run(files | {"cuda_naive/im2col/im2col.cu": b"// fake: no_build line 3: expected ;"}, tried)
        exact = marks.Marker(assignment, reference, broken, []).all()[0]
        self.assertIn("cuda_naive/im2col/im2col: line 3: expected ;", exact["message"])
        self.assertTrue(20 < exact["score"] < 55)
        self.assertEqual(sum(case["outcome"] == "no_build" for case in exact["cases"]),
                         len(reference["rungs"]["cuda_naive/im2col/im2col"]["cases"]))


class Students(WithFolder):
    """For whom a handout was drawn."""

    def student(self, name, files, manifest=None):
        return predictions.student_of(self.assignment, KEY, submissions.Submission(name, files, "", manifest or {}))

    def test_by_name_or_for_everybody(self):
        for student in ("ada", "grace", "everybody"):
            name = "ada" if student == "everybody" else student
            self.assertEqual(self.student(name, solved(student)), (student, []))
            variant = tree.Draw(KEY, TILE, student).variant()
            self.assertEqual(self.student(name, {}, {"variant": variant}), (student, []))

    def test_another_student_s(self):
        student, flags = self.student("grace", solved("ada"))
        self.assertEqual((student, len(flags)), ("grace", 1))


class Diagnosis(WithFolder):
    def test_planted_bugs_are_read_as_the_suite_reads_them(self):
        for name in assignments.names():
            assignment = assignments.read(name)
            bugs = diagnosis.planted_bugs(assignment)
            text = "".join((ROOT / f"tests/planted_bugs/ladders/{ladder}.cmake").read_text()
                           for ladder in {rung.split("/")[1] for rung in assignment.rungs})
            entries = re.findall(r"planted_bug\((\w+)\n  RUNG (\S+)", text)
            expected = {bug for bug, rung in entries if rung in assignment.rungs}
            self.assertLessEqual(set(bugs), expected)
            self.assertGreater(len(bugs), 0, name)
            for file, content in bugs.values():
                self.assertNotEqual(content, predictions.project_files(assignment)[file])

    def signature(self, *lines):
        return diagnosis.signature(fake_trials.Trials(self.assignment, KEY).run(solved("ada", *lines), self.folder))

    def test_the_nearest_first(self):
        bugs = {"halo": self.signature("F2.h1 differs", "F3.h1 differs", "F3.h2 differs"),
                "barrier": self.signature("F2.h1@reverse differs", "c1 race"), "none": self.signature(),
                "group": self.signature("F6.h1 differs", "F6.h2 differs")}
        for name in ("halo", "barrier", "group"):
            self.assertEqual(diagnosis.nearest(bugs[name], bugs)[0], {"bug": name, "match": 1.0})
        near = diagnosis.nearest(self.signature("F3.h1 differs", "F3.h2 differs"), bugs)
        self.assertEqual(near[0]["bug"], "halo")
        self.assertTrue(0.3 < near[0]["match"] < 1)
        self.assertEqual(diagnosis.nearest(self.signature(), bugs), [])
        self.assertEqual(diagnosis.nearest(self.signature("all not_written"), bugs), [])
        self.assertEqual(diagnosis.nearest(self.signature("no_build expected ;"), bugs), [])
        self.assertEqual(len(diagnosis.nearest(bugs["halo"], {str(i): bugs["halo"] for i in range(9)})), 5)

    def test_what_was_tried_once_is_kept(self):
        with mock.patch.object(diagnosis, "BUILD", self.folder):
            before = fake_trials.Trials.runs
            for key, runs in ((KEY, 1), (KEY, 1), (b"x" * 32, 2)):
                kept = diagnosis.Kept(self.assignment, key, "about", fake_trials.Trials(self.assignment, key))
                self.assertIn(RUNG, kept.reference()["rungs"])
                self.assertEqual(fake_trials.Trials.runs - before, runs)


HOSTILE = "<script>alert(1)</script>]]>\x1b[31m=cmd()\x00\ufffe&amp;\u202e\"'"


class Formats(WithFolder):
    """A report whose every word is hostile."""

    def report(self):
        mark = {"id": "exact", "number": "1", "name": HOSTILE, "kind": "exact", "score": 3.5, "max_score": 55, "status": "partly",
                "visibility": "visible", "message": HOSTILE * 3, "cases": [{"id": "F3.h1", "public": False, "outcome": "differs",
                "detail": fake_trials.SECRET}], "counter": None}
        manual = mark | {"id": "essay", "kind": "manual", "score": None, "status": "not_run", "number": "2", "cases": []}
        right = mark | {"id": "robust", "score": 10, "max_score": 10, "status": "passed", "number": "3", "cases": []}
        return {"schema": "convladder-grade-1", "assignment": TILE, "version": "1", "submission": {
            "name": "=cmd()", "files": {}, "digest": "-1"}, "status": "graded", "score": 13.5, "max_score": 65,
            "isolation": {"level": "sealed"}, "marks": [mark, manual, right], "diagnosis": [{"bug": "some_bug", "match": 0.5}],
            "flags": ["@flag", HOSTILE]}

    def written(self, file, report=None):
        formats.write_all(self.folder, report or self.report(), {"seconds": {}})
        return (self.folder / file).read_text()

    def test_gradescope(self):
        text = self.written("results.json")
        self.assertNotIn("<", text)
        self.assertNotIn(fake_trials.SECRET, text)
        results = json.loads(text)
        self.assertEqual(set(results), {"tests", "output", "output_format", "visibility", "stdout_visibility", "extra_data", "leaderboard"})
        self.assertEqual(results["stdout_visibility"], "hidden")
        self.assertEqual([test["score"] for test in results["tests"]], [3.5, 10])
        allowed = {"score", "max_score", "status", "name", "number", "output", "output_format", "tags", "visibility"}
        for test in results["tests"]:
            self.assertLessEqual(set(test), allowed)
            self.assertIn(test.get("status", "passed"), ("passed", "failed"))
            self.assertNotRegex(test["output"], "[\x00-\x08\x0b-\x1f\u202e]")
        self.assertNotIn("status", results["tests"][0])

    def test_sizes_are_bounded(self):
        report = self.report()
        for mark in report["marks"]:
            mark["message"] = "ü" * 10 ** 6
        self.assertLess(len(self.written("results.json", report)), 2 ** 20)

    def test_junit(self):
        """The structure of jenkins' junit-10.xsd, as far as it goes for these elements."""
        children = {"testsuites": {"testsuite"}, "testsuite": {"properties", "testcase", "system-out", "system-err"},
                    "testcase": {"skipped", "error", "failure", "system-out", "system-err"},
                    "failure": set(), "skipped": set(), "system-out": set()}
        attributes = {"testsuites": ({"name", "time", "tests", "failures", "disabled", "errors"}, set()),
                      "testsuite": ({"name", "tests", "failures", "errors", "time", "disabled", "skipped", "timestamp", "hostname",
                                     "id", "package"}, {"name"}),
                      "testcase": ({"name", "assertions", "time", "classname", "status", "class", "file", "line"}, {"name"}),
                      "failure": ({"type", "message"}, set()), "skipped": ({"message", "type"}, set()), "system-out": (set(), set())}
        root = ElementTree.fromstring(self.written("junit.xml"))
        self.assertEqual(root.tag, "testsuites")
        for element in root.iter():
            may, must = attributes[element.tag]
            self.assertLessEqual(set(element.attrib), may)
            self.assertLessEqual(must, set(element.attrib))
            self.assertLessEqual({child.tag for child in element}, children[element.tag])
        suite = root[0]
        self.assertEqual([suite.get(name) for name in ("tests", "failures", "errors", "skipped")], ["3", "1", "0", "1"])
        self.assertEqual(suite.find("testcase/failure").get("type"), "partly")
        self.assertIn("]]>", suite.find("testcase").get("name"))
        self.assertNotIn(fake_trials.SECRET, ElementTree.tostring(root, encoding="unicode"))

    def test_classroom(self):
        packed_up = base64.b64encode(self.written("classroom.json").encode())
        told = json.loads(base64.b64decode(packed_up))
        self.assertEqual(set(told), {"version", "status", "max_score", "tests"})
        self.assertEqual((told["status"], told["max_score"], [test["score"] for test in told["tests"]]), ("fail", 65, [3, 10]))
        for test in told["tests"]:
            self.assertEqual(set(test), {"name", "status", "score", "message", "test_code", "filename", "line_no", "duration"})
            self.assertIsInstance(test["score"], int)

    def test_tables(self):
        text = formats.class_table([self.report(), self.report()])
        rows = list(csv.reader(io.StringIO(text)))
        self.assertEqual(len(rows), 3)
        self.assertEqual(rows[0], ["name", "score", "max", "status", "exact", "essay", "robust", "flags", "digest"])
        self.assertEqual(rows[1][:7], ["'=cmd()", "13.5", "65", "graded", "3.5", "", "10"])
        for row in rows[1:]:
            self.assertEqual(len(row), len(rows[0]))
            for value in row:
                self.assertNotRegex(value, r"\A[=+@-]")
                self.assertNotIn("\x1b", value)
        view = formats.class_view([self.report()])
        self.assertEqual((view["families"], view["bugs"]), ({"F3": ["=cmd()"]}, {"some_bug": ["=cmd()"]}))

    def test_feedback(self):
        told = self.written("feedback.txt")
        self.assertNotRegex(told, "[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]")
        self.assertNotIn(fake_trials.SECRET, told)
        self.assertNotIn("some_bug", told)  # the diagnosis is the teacher's

    def test_any_words(self):
        dice = random.Random(3)
        alphabet = ["<", "&", "]]>", "\x1b", "\0", "\r", "\n", ",", '"', "'", "=", "\u202e", "\udcff", "\U0001f600", "a", ";"]
        for _ in range(40):
            report = self.report()
            words = "".join(dice.choice(alphabet) for _ in range(12))
            report["marks"][0]["message"] = report["marks"][0]["name"] = report["flags"][0] = words
            ElementTree.fromstring(self.written("junit.xml", report))
            json.loads((self.folder / "results.json").read_text())
            json.loads((self.folder / "classroom.json").read_text())
            self.assertEqual(len(list(csv.reader(io.StringIO(formats.class_table([report]), newline="")))), 2)


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
        script.write_text(f"import sys\nsys.path.insert(0, {str(pathlib.Path(__file__).parent)!r})\nimport test_grade as t, pathlib\n"
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
        self.assertEqual((folder / "old/project" / KERNEL).read_bytes(), (ROOT / KERNEL).read_bytes())
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
