"""Tests of `fuzz`: that it finds what is broken, makes it simple, and prints what can be pasted.

    CONVLADDER_PROGRAM=build/command/convladder BROKEN_RUNGS=build/tests/command/broken_rungs python3 test_fuzz.py
"""
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import time
import unittest

import numpy as np

from program import AGREE, BAD_INPUT, DIFFER, INTERRUPTED, LADDERS, PROGRAM, ProgramTest, run

RUNG = "cuda_naive/gemm/direct"
LAST_LINE = re.compile(r"(\d+) problems, (\d+) runs, (\d+) failures, seed (\d+)")


class Fuzz(ProgramTest):
    def fuzz(self, how, *arguments):
        """Runs it with a broken rung; returns the report, and what it printed."""
        report = self.folder / "fuzz.json"
        program = os.environ["BROKEN_RUNGS"] if how else PROGRAM
        result = subprocess.run(
            [program, "fuzz", "gemm", "--rung", RUNG, "--backend", "emulated", "--seed", "5",
             "--json", report, *arguments],
            capture_output=True, text=True, timeout=300, env={**os.environ, "CONVLADDER_BROKEN": how})
        self.assertIn(result.returncode, (AGREE, DIFFER), result.stderr)
        found = json.loads(report.read_text())
        problems, runs, failures, seed = map(int, LAST_LINE.fullmatch(
            result.stdout.splitlines()[-1]).groups())
        self.assertEqual((problems, runs, failures, seed),
                         (found["problems"], found["runs"], len(found["failures"]), 5))
        self.assertEqual(result.returncode, DIFFER if failures else AGREE)
        report.unlink()
        return found, result.stdout

    def pasted(self, how, command):
        """The exit status of a line as it was printed."""
        words = shlex.split(command)
        self.assertEqual(words[:2], ["./ladder", "compare"])
        return subprocess.run([os.environ["BROKEN_RUNGS"], *words[1:]], capture_output=True,
                              env={**os.environ, "CONVLADDER_BROKEN": how}).returncode

    def test_nothing_is_found_where_nothing_is_wrong(self):
        found, _ = self.fuzz("", "--problems", "30")
        self.assertEqual(found["failures"], [])
        self.assertGreaterEqual(found["problems"], 30)

    def test_a_wrong_result_is_made_simple(self):
        found, out = self.fuzz("wrong", "--problems", "60")
        for failure in found["failures"]:
            self.assertTrue(failure["shrunk"])
            self.assertEqual((failure["ladder"], failure["rung"], failure["where"]),
                             ("gemm", RUNG, "emulated"))
            self.assertEqual(failure["command"],
                             f"./ladder compare gemm --k 1 --m 1 --n 33 --rung {RUNG} --backend emulated")
            self.assertIn(failure["command"], out)
            self.assertEqual(self.pasted("wrong", failure["command"]), DIFFER)
        # It is enough to see a rung fail a few times.
        self.assertEqual(len(found["failures"]), 3)

    def test_a_process_that_ends_is_a_failure(self):
        found, _ = self.fuzz("crash", "--seconds", "2")
        self.assertGreaterEqual(len(found["failures"]), 1)
        for failure in found["failures"]:
            self.assertIn("Aborted", failure["message"])
            self.assertIn("--m 20 ", failure["command"])
            self.assertTrue(failure["shrunk"])
            self.assertLess(self.pasted("crash", failure["command"]), 0)

    def test_a_rung_that_does_not_end_is_a_failure(self):
        found, _ = self.fuzz("hang", "--seconds", "3", "--limit", "1")
        self.assertGreaterEqual(len(found["failures"]), 1)
        for failure in found["failures"]:
            self.assertIn("does not finish within 1 s", failure["message"])

    def test_it_ends_with_its_time_whatever_runs(self):
        began = time.monotonic()
        found, _ = self.fuzz("hang", "--seconds", "1")  # the run that never ends tells nothing by then
        self.assertLess(time.monotonic() - began, 30)
        self.assertEqual(found["failures"], [])

    def test_an_interrupted_one_says_what_it_did(self):
        running = subprocess.Popen([PROGRAM, "fuzz", "gemm", "--rung", RUNG, "--seed", "5", "--seconds", "200"],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        time.sleep(2)
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=60)
        self.assertEqual(running.returncode, INTERRUPTED, err)
        self.assertRegex(out.splitlines()[-1], LAST_LINE)

    def test_both_sides_of_a_choice_are_met(self):
        # One problem in thousands: found only where the choice changes.
        found, _ = self.fuzz("choice", "--problems", "100")
        self.assertGreaterEqual(len(found["failures"]), 1)
        command = shlex.split(found["failures"][0]["command"])
        m, n = (int(command[command.index(name) + 1]) for name in ("--m", "--n"))
        self.assertEqual((m, n), (20, 19))
        choices = {choice["choice"]: choice["met"] for choice in found["choices"]}
        self.assertEqual(set(choices), {"tall", "wide"})
        self.assertEqual(sum(choices.values()), found["runs"])

    def test_the_same_seed_draws_the_same_problems(self):
        first, second = (self.fuzz("", "--problems", "20")[0] for _ in range(2))
        for report in (first, second):
            del report["seconds"]
        self.assertEqual(first, second)

    def test_bad_input(self):
        for arguments, words in (
                (["gem"], "gem"), (["--seconds", "0"], "seconds = 0"), (["--problems", "x"], "problems = x"),
                (["gemm", "--rung", "*nothing"], "rung = *nothing"), (["--backend", "cpus"], "backend"),
                (["--limit", "0"], "limit = 0")):
            result = run("fuzz", *arguments)
            self.assertEqual(result.returncode, BAD_INPUT, arguments)
            self.assertIn(words, result.stderr)
            self.assertEqual(result.stderr.count("convladder: "), 1)

    def test_every_ladder_a_little(self):
        result = self.agree("fuzz", "--problems", "2", "--seed", "1", timeout=300)
        self.assertRegex(result.stdout.splitlines()[-1], LAST_LINE)
        self.assertEqual([line.split()[0] for line in result.stdout.splitlines()[:-1]], sorted(LADDERS))


class Conditions(ProgramTest):
    """What fuzz's lines need of `compare`."""

    def test_conditions_make_no_difference(self):
        self.agree("compare", "gemm", "--m", 9, "--n", 33, "--k", 5, "--offset", "a:4,c:12",
                   "--thread-order", "shuffled", "--most-blocks", 2, "--backend", "emulated")

    def test_a_made_up_bias_is_added(self):
        small = ("conv2d", "--n", 1, "--c", 1, "--k", 2, "--h", 3, "--w", 3, "--rung", "*/conv2d/direct")
        out, _, _ = self.save(*small, "--bias")
        with_bias = np.load(out / "conv2d/cpu_reference.conv2d.direct/cpu/y.npy")
        self.agree("compare", *small, "--save", self.folder / "without")
        without = np.load(self.folder / "without/conv2d/cpu_reference.conv2d.direct/cpu/y.npy")
        for channel in (with_bias - without)[0]:  # one number an output channel
            self.assertEqual(len(np.unique(channel)), 1)
        self.assertTrue(np.any(with_bias != without))

    def test_bad_sites_are_refused(self):
        for form in ("pairs", "sorted"):
            for bad in ("repeated:3", "outside:2"):
                self.agree("compare", "rulebook", "--shape", "6,7,8", "--sites", 30, "--form", form, "--bad-sites", bad)
        command = ["compare", "rulebook", "--backend", "emulated", "--rung", "*two_phases", "--mode", "strided",
                   "--bad-sites", "repeated:1"]
        result = subprocess.run([os.environ["BROKEN_RUNGS"], *command], capture_output=True, text=True,
                                env={**os.environ, "CONVLADDER_BROKEN": "blind"})
        self.assertEqual(result.returncode, DIFFER)
        self.assertIn("accepts inputs that it must reject: coords: 1 of 200 rows repeat", result.stdout)

    def coords(self, *arguments):
        out, _, _ = self.save("rulebook", "--rung", "cpu_reference/rulebook/hash_map", *arguments)
        return np.load(out / "rulebook/cpu_reference.rulebook.hash_map/cpu/out_coords.npy")

    def test_made_up_sites_lie_where_they_shall(self):
        grid = ("--shape", "30,40", "--batch", 2, "--sites", 20)
        for places in ("scattered", "cluster", "block", "plane", "line", "corners"):
            for order in ("drawn", "sorted", "reversed", "innermost"):
                coords = self.coords(*grid, "--places", places, "--order", order)
                rows = [tuple(row) for row in coords.tolist()]
                self.assertEqual(len(rows), len(set(rows)))
                self.assertTrue(all(b in (0, 1) and 0 <= y < 30 and 0 <= x < 40 for b, y, x in rows))
                self.assertTrue(places == "corners" and 10 <= len(rows) <= 20 or len(rows) == 20)
                if places in ("plane", "line"):  # of two axes both are lines
                    self.assertEqual(min(len(np.unique(coords[:, axis])) for axis in (1, 2)), 1)
                if places in ("cluster", "block"):
                    self.assertLessEqual(max(np.ptp(coords[:, axis]) for axis in (1, 2)), 7)
                expected = {"sorted": sorted(rows), "reversed": sorted(rows, reverse=True),
                            "innermost": sorted(rows, key=lambda row: (row[2], row))}.get(order, rows)
                self.assertEqual(rows, expected, (places, order))
                shutil.rmtree(self.folder / "out")

    def test_bad_input(self):
        for arguments, words in (
                (("gemm", "--offset", "3"), "offset = 3: must be a multiple of 4"),
                (("gemm", "--offset", "q:4"), "offset = q: must be one of a, b, c"),
                (("gemm", "--offset", "256"), "offset = 256"), (("gemm", "--offset", "a:4,8"), "offset = a:4,8"),
                (("gemm", "--most-blocks", "0"), "most-blocks = 0: must be at least 1"),
                (("gemm", "--thread-order", "back"), "thread-order = back"),
                (("gemm", "--sites", "3"), "sites"), (("gemm", "--bad-sites", "outside:1"), "bad-sites"),
                (("rulebook", "--bad-sites", "3"), "bad-sites = 3: must be repeated:COUNT or"),
                (("rulebook", "--bad-sites", "outside:0"), "bad-sites = 0: must be at least 1"),
                (("sparse_conv", "--sites", "-1"), "sites = -1: must be at least 0"),
                (("sparse_conv", "--places", "there"), "places = there"),
                (("sparse_conv", "--lidar", "--sites", "3"), "sites = 3: the sites are already given by lidar"),
                (("sparse_conv", "--lidar", "--order", "sorted"), "order = sorted")):
            result = run("compare", *arguments)
            self.assertEqual(result.returncode, BAD_INPUT, arguments)
            self.assertIn(words, result.stderr)


if __name__ == "__main__":
    unittest.main()
