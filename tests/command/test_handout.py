"""Tests of ./ladder handout: what is composed, what the command refuses, and the proof of an assignment.

    python3 test_handout.py

CONVLADDER_HANDOUTS has the names of those that are to be proven as well, each in half a minute or more; "all" for all.
(`./ladder check course` sets it.)
"""
import contextlib
import functools
import io
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import zipfile
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools/handout"))
sys.dont_write_bytecode = True
import assignment as assignments  # noqa: E402
import functions  # noqa: E402
import handout  # noqa: E402
import proof  # noqa: E402
import rung_texts  # noqa: E402
import tree  # noqa: E402

if assignments.tomllib is None:
    print("SKIPPED: Python 3.11 or newer is needed (tomllib)")
    sys.exit(77)

DONE, FAILED, BAD_INPUT = 0, 1, 2
ASKED = os.environ.get("CONVLADDER_HANDOUTS", "").split()
# Its build is what students' commands are tried in.
TRIED = "a3_tile_and_halo"
PROVEN = [name for name in assignments.names() if name in ASKED or ASKED == ["all"]]


@functools.cache
def composed(name):
    """The handout for everybody. (The tests change none of them.)"""
    return tree.Handout(assignments.read(name))


class Composition(unittest.TestCase):
    """Handouts as they are composed, without a build."""

    def setUp(self):
        # The right answers of a1_loops come from a program that takes half a minute to compile.
        if not PROVEN:
            patch = mock.patch.object(tree.golden, "answers", lambda cases, closure: b"not computed here")
            patch.start()
            self.addCleanup(patch.stop)

    def test_the_same_bytes_twice(self):
        for name in assignments.names():
            self.assertEqual(tree.Handout(assignments.read(name)).files, composed(name).files)

    def test_sizes_bodies_and_leaks(self):
        for name in assignments.names():
            made = composed(name)
            self.assertLessEqual(len(made.files), proof.MOST_FILES)
            self.assertLessEqual(sum(map(len, made.files.values())), proof.MOST_BYTES)
            self.assertTrue(proof.roundtrip(made))
            self.assertEqual(proof.leaks_of(made), [])

    def test_a_leak_is_found(self):
        made = tree.Handout(assignments.read("a3_tile_and_halo"))
        title, text = next(iter(made.bodies.items()))
        made.add("notes.md", "here it is:\n" + "\n// between\n".join(text.split("\n")))
        self.assertEqual({(leak["file"], leak["of"]) for leak in proof.leaks_of(made)}, {("notes.md", title)})

    def test_a_student_gets_problems_of_their_own(self):
        assignment = assignments.read("a3_tile_and_halo")
        key = b"k" * 32
        drawn = {student: tree.Handout(assignment, key, student).files for student in map(str, range(12))}
        self.assertGreater(len({files["predictions.json"] for files in drawn.values()}), 4)
        self.assertGreater(len({files["hunt/direct.cu"] for files in drawn.values()}), 2)
        self.assertEqual(drawn["3"], tree.Handout(assignment, key, "3").files)
        for files in drawn.values():
            self.assertTrue(all(entry["value"] is None for entry in json.loads(files["predictions.json"]).values()))
            right = (ROOT / "cuda_naive/conv2d/direct.cu").read_bytes()
            self.assertNotIn(right, files.values())

    def test_a_rung_that_has_changed(self):
        assignment = assignments.read("a3_tile_and_halo")
        assignment.blanks[0].function = "void load_tiles("
        with self.assertRaisesRegex(functions.Mismatch, "conv2d/direct/tiled.cu: function = void load_tiles.: matches no"):
            tree.Handout(assignment)

    def test_every_bug_of_a_hunt_can_be_planted(self):
        for name in assignments.names():
            assignment = assignments.read(name)
            if not assignment.hunt_rung:
                continue
            right = (ROOT / assignments.source_of(assignment.hunt_rung)).read_text()
            for bug in assignment.hunt_bugs:
                self.assertNotEqual(rung_texts.with_bug(assignment.hunt_rung, bug), right)

    def test_each_family_has_three_cases_and_each_budget_a_ramp(self):
        for name in assignments.names():
            assignment = assignments.read(name)
            families = [case.split(".")[0] for case, _, _ in assignment.cases if case.startswith("F")]
            self.assertGreaterEqual(len(set(families)), 6, name)
            for family in set(families):
                self.assertGreaterEqual(families.count(family), 3, f"{name}: {family}")
            for mark in assignment.marks:
                self.assertTrue(mark.kind != "counter" or mark.full < mark.zero, f"{name}: {mark.id}")

    def test_the_manifest(self):
        for name in assignments.names():
            made = composed(name)
            manifest = json.loads(made.files["handout.json"])
            self.assertEqual(manifest["schema"], "convladder-handout-1")
            self.assertEqual(manifest["files"], {path: tree.digest(content) for path, content in made.files.items()
                                                 if path != "handout.json"})
            for blank in manifest["blanks"]:
                line = made.files[blank["file"]].decode().split("\n")[blank["line"] - 1]
                self.assertIn(f'NOT_WRITTEN("{blank["exercise"]} {blank["function"]}");', line)

    def test_pages_tell_how_long_the_bodies_are(self):
        for name in assignments.names():
            page = composed(name).files["handout.md"].decode()
            told = dict(re.findall(r"^\| ([\d.]+) \|.*\| (\d+) \|$", page, re.MULTILINE))
            for title, text in composed(name).bodies.items():
                if (exercise := title.split()[0]) in told:
                    self.assertEqual(int(told[exercise]), len(text.strip("\n").split("\n")), f"{name}: {title}")

    def test_nothing_points_to_this_machine(self):
        for name in assignments.names():
            for path, content in composed(name).files.items():
                self.assertNotIn(str(ROOT).encode(), content, path)


class Command(unittest.TestCase):
    """The command, without its build."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="convladder-test-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.dir = self.folder / "dir"
        self.key = self.folder / "key"
        self.key.write_bytes(bytes(range(32)))

    def run_with(self, *arguments, failure=None):
        """Exit status and standard error; the proof finds nothing, or `failure`."""
        def prove(made, say):
            if failure:
                raise proof.Failure(failure)
            return {"files": len(made.files), "bytes": sum(map(len, made.files.values()))}
        words = ["handout.py", *map(str, arguments)]
        err, self.out = io.StringIO(), io.StringIO()
        with mock.patch.object(proof, "prove", prove), mock.patch.object(sys, "argv", words), \
                contextlib.redirect_stderr(err), contextlib.redirect_stdout(self.out):
            status = handout.main()
        return status, err.getvalue()

    def content(self, folder):
        return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}

    def refused(self, says, *arguments):
        before = self.content(self.folder)
        status, err = self.run_with(*arguments)
        self.assertEqual((status, err.count("\n")), (BAD_INPUT, 1), err)
        self.assertIn(says, err)
        self.assertEqual(self.content(self.folder), before)

    def test_the_same_tree_twice(self):
        for name in ("dir", "again"):
            status, err = self.run_with("a3_tile_and_halo", self.folder / name, "--key", self.key, "--student", "ada")
            self.assertEqual(status, DONE, err)
        self.assertEqual(self.content(self.dir), self.content(self.folder / "again"))
        self.assertTrue(os.access(self.dir / "ladder", os.X_OK))

    def test_json_is_all_of_standard_output(self):
        status, err = self.run_with("a3_tile_and_halo", self.dir, "--json", "-")
        self.assertEqual(status, DONE)
        self.assertIn("a3_tile_and_halo, ", err)
        self.assertLess(10, json.loads(self.out.getvalue())["files"])
        self.assertFalse(pathlib.Path("-").exists())

    def test_a_folder_that_is_not_empty(self):
        self.dir.mkdir()
        (self.dir / "mine").write_text("mine")
        self.refused("is not empty", "a3_tile_and_halo", self.dir)
        self.refused("is not empty", "a3_tile_and_halo", self.dir / "mine")

    def test_an_empty_folder(self):
        self.dir.mkdir()
        self.assertEqual(self.run_with("a3_tile_and_halo", self.dir)[0], DONE)
        self.assertTrue((self.dir / "handout.md").is_file())

    def test_the_folder_that_one_stands_in(self):
        self.dir.mkdir()
        before = os.getcwd()
        self.addCleanup(os.chdir, before)
        os.chdir(self.dir)
        self.assertEqual(self.run_with("a3_tile_and_halo", ".")[0], DONE)
        self.assertTrue(os.path.isfile("handout.md"))

    def test_bad_input(self):
        self.refused("nearest: a3_tile_and_halo", "a3_tile_and_hallo", self.dir)
        self.refused("../a3", "../a3", self.dir)
        self.refused("the folder above it", "a3_tile_and_halo", self.dir / "a/b")
        self.refused("there is no such file", "a3_tile_and_halo", self.dir, "--key", self.folder / "none")
        self.refused("json =", "a3_tile_and_halo", self.dir, "--json", self.folder)
        self.refused("json =", "a3_tile_and_halo", self.dir, "--json", self.folder / "a/b.json")
        short = self.folder / "short"
        short.write_bytes(b"x" * 31)
        self.refused("31 bytes", "a3_tile_and_halo", self.dir, "--key", short)
        for student in ("", "a b", "../a", "x" * 65, "-a"):
            self.refused("student", "a3_tile_and_halo", self.dir, f"--student={student}")
        self.refused("not allowed with", "a3_tile_and_halo", self.dir, "--student", "a", "--roster", "b")
        self.refused("gradescope = ", "a3_tile_and_halo", self.dir, "--gradescope", self.folder / "a/b.zip")
        self.refused("gradescope = ", "a3_tile_and_halo", self.dir, "--gradescope", self.key)
        self.refused("required", "a3_tile_and_halo")

    def test_the_zip_for_gradescope(self):
        archive = self.folder / "autograder.zip"
        with mock.patch.object(handout.gradescope, "require_possible"):
            status, err = self.run_with("a3_tile_and_halo", self.dir, "--key", self.key, "--gradescope", archive)
        self.assertEqual(status, DONE, err)
        with zipfile.ZipFile(archive) as made:
            modes = {entry.filename: entry.external_attr >> 16 & 0o777 for entry in made.infolist()}
            self.assertEqual((modes["run_autograder"], modes["setup.sh"], modes["term.key"]), (0o755, 0o755, 0o600))
            self.assertEqual(made.read("term.key"), self.key.read_bytes())
            tables = json.loads(made.read("course/a3_tile_and_halo/assignment.json"))
            self.assertEqual(sum(mark["points"] for mark in tables["mark"]), 100)
            self.assertIn("cuda_optimized/conv2d/direct/tiled.cu", modes)
            for script in ("run_autograder", "setup.sh"):
                checked = subprocess.run(["bash", "-n"], input=made.read(script), capture_output=True)
                self.assertEqual(checked.returncode, 0, checked.stderr)

    def test_without_tomllib_the_file_in_json_is_read(self):
        beside = self.folder / "assignment.json"
        beside.write_text('{"a": 1}')
        with mock.patch.object(assignments, "tomllib", None):
            self.assertEqual(assignments.tables_of(self.folder / "assignment.toml"), {"a": 1})
            with self.assertRaisesRegex(assignments.BadInput, "3.11"):
                assignments.tables_of(ROOT / "course/a3_tile_and_halo/assignment.toml")

    def test_the_workflow_for_classroom(self):
        self.assertEqual(self.run_with("a3_tile_and_halo", self.dir, "--classroom")[0], DONE)
        workflow = (self.dir / ".github/workflows/classroom.yml").read_text()
        self.assertIn("run-autograding-tests:", workflow)
        self.assertIn(".github/workflows/classroom.yml", json.loads((self.dir / "handout.json").read_text())["files"])

    def test_a_roster(self):
        roster = self.folder / "class.csv"
        roster.write_text("name,id\nAda,ada\nGrace,grace\n")
        self.assertEqual(self.run_with("a3_tile_and_halo", self.dir, "--key", self.key, "--roster", roster)[0], DONE)
        self.assertEqual({path.name for path in self.dir.iterdir()}, {"ada", "grace"})
        alone = self.folder / "alone"
        self.run_with("a3_tile_and_halo", alone, "--key", self.key, "--student", "grace")
        self.assertEqual(self.content(self.dir / "grace"), self.content(alone))

    def test_a_roster_that_is_none(self):
        for text, says in (("name\nAda\n", "column id"), ("id\n", "at least one"), ("id\na\na\n", "each once"),
                           ("id\n../a\n", "roster = ../a"), ("", "column id")):
            roster = self.folder / "class.csv"
            roster.write_text(text)
            self.refused(says, "a3_tile_and_halo", self.dir, "--key", self.key, "--roster", roster)

    def test_a_proof_that_fails_leaves_nothing(self):
        status, err = self.run_with("a3_tile_and_halo", self.dir, "--json", self.folder / "proof.json",
                                    failure="a line of the solution")
        self.assertEqual(status, FAILED)
        self.assertIn("a line of the solution", err)
        self.assertEqual(sorted(path.name for path in self.folder.iterdir()), ["key"])

    def test_what_was_proven_is_not_proven_again(self):
        made, calls = composed("a3_tile_and_halo"), []

        def prove_anew(one, say):
            calls.append(one)
            return {"roundtrip": True}
        with mock.patch.object(proof, "PROVEN", self.folder / "proven"), \
                mock.patch.object(proof, "prove_anew", prove_anew):
            said = []
            for one in (made, made, tree.Handout(made.assignment, b"k" * 32, "somebody")):
                self.assertEqual(proof.prove(one, said.append), {"roundtrip": True})
            self.assertEqual(len(said), 3 - len(calls))
            before, other = len(calls), tree.Handout(made.assignment)
            other.add("core/text.hpp", "// another one\n")
            proof.prove(other, said.append)
            self.assertEqual(len(calls), before + 1)

    def test_rounds_leave_each_rung_one_blank(self):
        for name in assignments.names():
            assignment = assignments.read(name)
            rounds = proof.rounds_of(assignment)
            self.assertEqual(sorted(blank.title for blanks in rounds for blank in blanks),
                             sorted(blank.title for blank in assignment.blanks))
            for blanks in rounds:
                rungs = [assignment.rung_of(blank) for blank in blanks]
                self.assertEqual(len(rungs), len(set(rungs)))

    def test_an_update_keeps_what_the_student_wrote(self):
        old = self.folder / "old"
        self.run_with("a3_tile_and_halo", old, "--key", self.key, "--student", "ada")
        kernel = "cuda_optimized/conv2d/direct/tiled.cu"
        (old / kernel).write_text("// solved\n")
        (old / "predictions.json").write_text("{}")
        manifest = json.loads((old / "handout.json").read_text())
        manifest["files"]["README.md"] = "0" * 64  # as if it had been another one
        (old / "handout.json").write_text(json.dumps(manifest))
        status, err = self.run_with("a3_tile_and_halo", self.dir, "--key", self.key, "--student", "ada", "--update", old)
        self.assertEqual(status, DONE, err)
        self.assertEqual((self.dir / kernel).read_text(), "// solved\n")
        self.assertEqual((self.dir / "predictions.json").read_text(), "{}")
        self.assertIn("- README.md: changed", (self.dir / "CHANGES.md").read_text())
        self.assertNotIn("handout.md", (self.dir / "CHANGES.md").read_text())

    def test_an_update_that_would_change_a_blank(self):
        old = self.folder / "old"
        self.run_with("a3_tile_and_halo", old, "--key", self.key, "--student", "ada")
        manifest = json.loads((old / "handout.json").read_text())
        manifest["files"]["cuda_optimized/conv2d/direct/tiled.cu"] = "0" * 64
        (old / "handout.json").write_text(json.dumps(manifest))
        status, err = self.run_with("a3_tile_and_halo", self.dir, "--key", self.key, "--student", "ada", "--update", old)
        self.assertEqual(status, FAILED)
        self.assertIn("conv2d/direct/tiled.cu", err)
        self.assertFalse(self.dir.exists())
        self.refused("is no handout", "a3_tile_and_halo", self.dir, "--update", self.key.parent)
        self.refused("a handout of a3_tile_and_halo", "a2_first_kernel", self.dir, "--update", old)


@unittest.skipUnless(PROVEN, "takes minutes: CONVLADDER_HANDOUTS=all")
class Proofs(unittest.TestCase):
    """The command as it is, with its builds; then the student's commands in what it wrote."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="convladder-test-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def student(self, *words):
        return subprocess.run(["./ladder", *words], cwd=proof.STAGE, capture_output=True, text=True, timeout=300)

    def test_assignments(self):
        for name in PROVEN:
            with self.subTest(name):
                for kept in proof.PROVEN.glob(f"{name}-*.json"):
                    kept.unlink()  # or nothing would be built
                done = subprocess.run([sys.executable, "-B", ROOT / "tools/handout/handout.py", name, self.folder / name,
                                       "--json", self.folder / "proof.json"], capture_output=True, text=True)
                self.assertEqual(done.returncode, DONE, done.stderr)
                proven = json.loads((self.folder / "proof.json").read_text())
                made = tree.Handout(assignments.read(name))
                self.assertEqual(proven["leaks"], [])
                self.assertIs(proven["roundtrip"], True)
                self.assertEqual(proven["skeleton"]["crashes"], 0)
                self.assertEqual(proven["solution"]["score"], proven["solution"]["max_score"])
                self.assertLess(proven["skeleton"]["score"], 0.05 * proven["skeleton"]["max_score"])
                written = {path.relative_to(self.folder / name).as_posix() for path in (self.folder / name).rglob("*")
                           if path.is_file()}
                self.assertEqual(written, set(made.files))
                if name == TRIED:
                    self.students_commands()

    def students_commands(self):
        """The proof has left the solution in its build."""
        tested = self.student("test")
        self.assertEqual(tested.returncode, DONE, tested.stdout + tested.stderr)
        self.assertRegex(tested.stdout, r"(\d+) of \1 public cases agree")
        self.assertIn("at most", tested.stdout)
        inspected = self.student("inspect", "--c", "2", "--h", "10", "--w", "34", "--k", "1")
        self.assertEqual(inspected.returncode, DONE, inspected.stdout + inspected.stderr)
        self.assertIn("no race", inspected.stdout)
        for words, says in ((("test", "9.9"), "must be one of 3.1, 3.2"), (("inspect", "--x", "1"), "--x"),
                            (("inspect", "--c", "two"), "c = two"), (("grade",), "no command 'grade'")):
            refused = self.student(*words)
            self.assertEqual(refused.returncode, BAD_INPUT, refused.stderr)
            self.assertIn(says, refused.stderr)


if __name__ == "__main__":
    unittest.main()
