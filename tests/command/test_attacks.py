#!/usr/bin/env python3
"""What submissions may try against the grader: each file of course/attacks is one, and says how it must end.

It is tried as it is, and once more with the audit switched off, so that the sandbox stands alone. Takes minutes, so all
but the reading of the files is for CONVLADDER_COURSE_ALL=1 (`./ladder check course` sets it). Skipped without Landlock or seccomp.
"""
import contextlib
import hashlib
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools/handout"), str(ROOT / "tools/grade")]

import assignment as assignments  # noqa: E402
import audit  # noqa: E402
import trials  # noqa: E402

ATTACKS = sorted((ROOT / "course/attacks").glob("*.cu"))
CHOSEN = tuple(os.environ.get("CONVLADDER_ATTACKS", "").split(","))  # those whose names begin so; else all
OUTCOMES = {"agrees", "differs", "declined", "timeout", "crashed", "memory", "ended_early", "output_missing", "illegal_cuda",
            "refused", "not_written", "no_build"}
TARGET = "cuda_optimized/conv2d/direct/tiled"
COUNTERS = ("16_computes_on_the_host", "20_")  # the counted case is tried, too
MOST_CPU_SECONDS = 10 + 5  # of its runs, all orders together; of wall time, a busy machine takes any
WRITTEN = pathlib.Path("/tmp/convladder_attack_wrote")
ALL = os.environ.get("CONVLADDER_COURSE_ALL") == "1"
LEVELS = ["sealed"] + (["user"] if os.geteuid() == 0 else [])


def ending_of(attack, title):
    """(outcome, what its detail holds) that the attack's header promises."""
    outcome, _, detail = re.search(rf"^/// {title}: (.*)$", attack.read_text(), re.MULTILINE).group(1).partition(", ")
    return outcome, detail


class Files(unittest.TestCase):
    def test_every_row_of_the_threats_has_one(self):
        self.assertEqual({int(attack.name[:2]) for attack in ATTACKS}, set(range(1, 26)))

    def test_each_says_how_it_ends(self):
        for attack in ATTACKS:
            for title in ("Ends as", "Behind the audit"):
                self.assertIn(ending_of(attack, title)[0], OUTCOMES, attack)
            self.assertNotEqual(ending_of(attack, "Ends as")[0], "agrees", attack)

    def test_the_text_of_some_is_enough_to_refuse_it(self):
        for name in ("14_assembler", "14_asks_for_files", "12_writes_from_a_thread", "22_includes_from_outside"):
            with self.assertRaises(audit.Refused, msg=name):
                audit.check_source_text({name: (ROOT / f"course/attacks/{name}.cu").read_bytes()})


def digest_of(folder):
    """Of all files in it."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            digest.update(path.relative_to(folder).as_posix().encode() + b"\0" + hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def processes_of(folder):
    """Those whose program lies there."""
    found = []
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if os.readlink(process / "exe").startswith(str(folder)):
                found.append(process.name)
    return found


@contextlib.contextmanager
def no_audit():
    """The grader without its first defence."""
    names = ("check_source_text", "check_tokens", "check_symbols", "check_calls")
    with contextlib.ExitStack() as stack:
        for name in names:
            stack.enter_context(mock.patch.object(audit, name, lambda *_: None))
        yield


@unittest.skipUnless(ALL, "takes minutes: CONVLADDER_COURSE_ALL=1")
class Attacks(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        assignment = assignments.read("a3_tile_and_halo")
        cls.trials = {level: trials.Trials(assignment, b"k" * 32, level, say=lambda *_: None) for level in LEVELS}

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="convladder-test-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.neighbour = self.folder / "neighbour"
        self.neighbour.mkdir()
        (self.neighbour / "results.json").write_text("{}")

    def attack(self, path, level, made=None):
        """The outcome and detail of a hidden case, and the counted case or None."""
        own = self.folder / "own"
        own.mkdir()
        try:
            result = (made or self.trials[level]).run({f"{TARGET}.cu": path.read_bytes()}, own, {"F2.h1", "c1"} if path.name.startswith(COUNTERS) else {"F2.h1"})
            case = result["rungs"][TARGET]["cases"]["F2.h1"]
            self.assertLess(result["seconds"]["cpu"], MOST_CPU_SECONDS, path.name)
            self.assertEqual(processes_of(own), [], path.name)
            return case["outcome"], case["detail"], result["counters"][TARGET].get("c1")
        finally:
            subprocess.run(["rm", "-r", own], check=True)

    def try_all(self, title):
        watched = [self.neighbour, ROOT / "tools/grade", ROOT / "course", self.trials[LEVELS[0]].folder / "tree"]
        before = [digest_of(folder) for folder in watched]
        for level in LEVELS:
            for path in (path for path in ATTACKS if path.name.startswith(CHOSEN)):
                with self.subTest(attack=path.name, level=level, title=title):
                    begin = time.monotonic()
                    outcome, detail, counted = self.attack(path, level)
                    wanted, holds = ending_of(path, title)
                    print(f"{level:8} {title:18} {path.stem:36} {outcome:12} {detail[:70]} ({time.monotonic() - begin:.1f} s)",
                          file=sys.stderr, flush=True)
                    self.assertEqual(outcome, wanted, detail)
                    self.assertIn(holds, detail)
                    self.assertNotRegex(detail, r"[\x00-\x09\x0b-\x1f\x7f-\xff]|status 42")
                    if counted and wanted != "agrees":  # a counter counts where the case agrees
                        self.assertNotEqual(counted["outcome"], "agrees")
                    self.assertFalse(WRITTEN.exists())
        self.assertEqual([digest_of(folder) for folder in watched], before)

    def test_as_they_are(self):
        self.try_all("Ends as")

    def test_with_the_sandbox_alone(self):
        with no_audit():
            self.try_all("Behind the audit")

    # --- That these tests can fail: without a defence, the attack does what it tries

    def test_without_a_sandbox_files_are_written(self):
        open_to_all = trials.Trials(assignments.read("a3_tile_and_halo"), b"k" * 32, "limits", say=lambda *_: None)
        self.addCleanup(lambda: WRITTEN.unlink(missing_ok=True))
        with no_audit():
            self.attack(ROOT / "course/attacks/07_writes_files.cu", "limits", open_to_all)
        self.assertTrue(WRITTEN.exists())

    def test_without_a_sandbox_the_parent_may_be_killed(self):
        open_to_all = trials.Trials(assignments.read("a3_tile_and_halo"), b"k" * 32, "limits", say=lambda *_: None)
        with no_audit():
            outcome, detail, _ = self.attack(ROOT / "course/attacks/24_kills.cu", "limits", open_to_all)
        self.assertEqual((outcome, "status 42" in detail), ("ended_early", True), detail)


if __name__ == "__main__":
    unittest.main(verbosity=1)
