"""Tests of ./ladder grade: from what trials say to points, and to the files that others read.

    python3 test_grade_marks.py
"""
import base64
import csv
import io
import json
import random
import unittest
import xml.etree.ElementTree as ElementTree

from handed_in import (  # first: it says where the grader is
    KEY, RUNG, TILE, WithFolder, assignments, counted_by_id, solved)
import fake_trials  # noqa: E402
import formats  # noqa: E402
import marks  # noqa: E402
import predictions  # noqa: E402
import tree  # noqa: E402


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
        self.assertEqual({mark["status"] for mark in given.values()}, {"passed"})

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

    def test_what_nvcc_would_not_take_costs_robustness_alone(self):
        given = self.marks("illegal_cuda calls printf")
        self.assertIn("printf", given["robust"]["message"])
        self.assertEqual({case["outcome"] for case in given["robust"]["cases"]}, {"illegal_cuda"})
        self.assertEqual(marks.total(list(given.values())), (90, 100))
        self.assertNotIn("printf", given["exact"]["message"])
        self.assertAlmostEqual(self.scores("illegal_cuda calls printf", "F3.h1 differs")["exact"], 49.5)

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
        self.assertEqual(given["x_loads_3x3"]["counter"],
                         {"name": "loads_per_output.x", "value": 8.85, "full": 4.2, "zero": 13.5})
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
        for content in (b"", b"[]", b"{", b"[" * 4000, b'{"loads_of_x": 1e999}', b'{"loads_of_x": {"value": 1e999}}',
                        b'{"loads_of_x": NaN}', b'{"barriers": {"value": {}}}'):
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
        self.assertEqual(set(results), {"tests", "output", "output_format", "visibility", "stdout_visibility", "extra_data",
                                        "leaderboard"})
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


if __name__ == "__main__":
    unittest.main()
