"""Tests of ./ladder grade: what is read of a submission, for whom it was handed out, and to which planted bug it is near.

    python3 test_grade.py
"""
import os
import pathlib
import random
import re
import shutil
import unittest
import zipfile
from unittest import mock

from handed_in import (  # first: it says where the grader is
    KERNEL, KEY, ROOT, RUNG, TILE, WithFolder, assignments, lay, packed, solved)
import diagnosis  # noqa: E402
import fake_trials  # noqa: E402
import predictions  # noqa: E402
import submission as submissions  # noqa: E402
import tree  # noqa: E402


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
            self.assertLessEqual(set(assignment.bugs_elsewhere), expected)
            expected -= set(assignment.bugs_elsewhere)
            self.assertLessEqual(set(bugs), expected)
            self.assertGreaterEqual(len(bugs), len(expected) / 2, name)  # others stand in files that are given
            for file, content in bugs.values():
                self.assertIn(file, assignment.submit)  # of others, nothing is looked at
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


if __name__ == "__main__":
    unittest.main()
