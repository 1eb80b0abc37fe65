"""End-to-end tests of the command `convladder`: exit statuses, help, and Ctrl-C.

    CONVLADDER_PROGRAM=$PWD/build/cpu/command/convladder python3 -B tests/command/test_exit_status.py [CLASS]

CTest runs each class as a test of its own.
"""
import os
import pathlib
import pty
import re
import signal
import subprocess
import time
import unittest

from program import BAD_INPUT, DIFFER, HAS_GPU, INTERRUPTED, PROGRAM, SMALL_GEMM, ProgramTest, run


class ExitStatus(ProgramTest):
    def test_help_is_success(self):
        for arguments in ([], ["--help"], ["help"], ["compare", "--help"], ["list", "--help"]):
            result = self.agree(*arguments)
            self.assertIn("./ladder", result.stdout)
            self.assertEqual(result.stderr, "")

    def test_agreement_is_success(self):
        result = self.agree("compare", *SMALL_GEMM)
        self.assertIn("cpu_reference/gemm/triple_loop", result.stdout)

    def test_a_failed_build_is_a_failed_set_up(self):
        libraries = pathlib.Path(PROGRAM).parent.parent / "lib"
        if not list(libraries.glob("libconvladder_rungs_*")):
            self.skipTest("this program is linked with all rungs")
        (self.folder / "failed").touch()
        result = run("compare", *SMALL_GEMM, env={"CONVLADDER_BUILD": str(self.folder)})
        self.assertEqual(result.returncode, 3)
        self.assertIn("the build failed", result.stderr)

    def test_a_gpu_that_must_be_there(self):
        if HAS_GPU:
            self.skipTest("there is a GPU")
        result = run("compare", *SMALL_GEMM, env={"CONVLADDER_REQUIRE_GPU": "1"})
        self.assertEqual(result.returncode, DIFFER, result.stderr)
        self.assertEqual(len(result.stderr.splitlines()), 1)
        for value in ("0", ""):
            self.agree("compare", *SMALL_GEMM, env={"CONVLADDER_REQUIRE_GPU": value})
        # The GPU was not requested here.
        self.agree("compare", *SMALL_GEMM, "--backend", "cpu", env={"CONVLADDER_REQUIRE_GPU": "1"})

    def test_plain_lines_in_a_pipe(self):
        result = self.agree("compare", *SMALL_GEMM)
        self.assertNotIn("\x1b", result.stdout + result.stderr)
        self.assertNotIn("\r", result.stdout + result.stderr)


class Limit(ProgramTest):
    """What would take longer than --limit is declined, and says for how long it would have run."""

    def rows(self, *arguments):
        self.agree("compare", *arguments, "--json", self.folder / "out.json")
        return self.load_json(self.folder / "out.json")["ladders"][0]["rungs"]

    def declined(self, *arguments, rung, where):
        """The estimate of the one row, in seconds; None if it ran."""
        row, = [row for row in self.rows(*arguments, "--rung", rung) if row["where"] == where]
        if row["status"] == "agrees":
            return None
        self.assertEqual(row["status"], "declined")
        self.assertIsNone(row["milliseconds"])
        return float(re.search(r"would take about (\S+) s, more than the limit of \d+ s", row["reason"])[1])

    # A second at the most for each row that is declined.
    PRODUCT = ["gemm", "--m", "1048577", "--n", "1", "--k", "1"]
    PRIME = ["fft", "--n", "1", "--length", "8191"]

    def test_an_emulated_kernel(self):
        seconds = self.declined(*self.PRODUCT, "--limit", "1", rung="cuda_optimized/gemm/tf32/mma_3xtf32", where="emulated")
        self.assertGreater(seconds, 1)

    def test_a_rung_on_the_cpu_does_not_even_begin(self):
        begun = time.monotonic()
        line = ["fft", "--n", "1", "--length", "131072"]  # by the definition half a minute
        self.assertGreater(self.declined(*line, "--limit", "5", rung="cpu_reference/fft/dft", where="cpu"), 5)
        self.assertLess(time.monotonic() - begun, 20)
        self.assertIsNone(self.declined(*line, "--limit", "60", rung="cpu_reference/fft/bluestein", where="cpu"))

    def test_the_reference(self):
        line = ["fft", "--n", "1", "--length", "1000003"]
        for row in self.rows(*line):
            if row["where"] == "gpu" and not HAS_GPU:
                continue
            self.assertEqual(row["status"], "declined", row)
            self.assertRegex(row["reason"], r"the reference, .*, would take about \S+ s, more than the limit of 20 s")
        maps = self.agree("compare", "tile_map", "--tiles", "3,4", "--limit", "1")
        self.assertIn("agree", maps.stdout)

    def test_without_a_limit_all_run(self):
        for limit in ("0", "none", "600"):
            with self.subTest(limit=limit):
                self.assertIsNone(self.declined(*self.PRIME, "--limit", limit, rung="*/bluestein", where="emulated"))

    def test_a_terminal_shows_how_far_a_kernel_is(self):
        ours, theirs = pty.openpty()
        process = subprocess.Popen([PROGRAM, "compare", "gemm", "--m", "200000", "--n", "1", "--k", "1", "--rung", "*/mma_3xtf32"],
                                   stdout=subprocess.DEVNULL, stderr=theirs, env={**os.environ, "TERM": "xterm", "COLUMNS": "120"})
        os.close(theirs)
        shown = b""
        try:
            while part := os.read(ours, 4096):
                shown += part
        except OSError:  # how Linux tells that the other side is closed
            pass
        os.close(ours)
        self.assertEqual(process.wait(), 0)
        blocks = re.findall(rb"mma_3xtf32 emulated, block (\d+) of (\d+)", shown)
        self.assertTrue(blocks, shown)
        begun = [int(block) for block, _ in blocks]
        self.assertEqual(begun, sorted(begun))
        self.assertEqual(len({total for _, total in blocks}), 1)
        self.assertLessEqual(begun[-1], int(blocks[0][1]))

    def test_a_limit_that_is_none(self):
        for limit in ("-1", "soon", "1e99", ""):
            with self.subTest(limit=limit):
                result = run("compare", *SMALL_GEMM, "--limit", limit)
                self.assertEqual(result.returncode, BAD_INPUT, result.stderr)
                self.assertIn("limit", result.stderr)
                self.assertEqual(result.stdout, "")


class Interrupt(ProgramTest):
    """Ctrl-C ends the program with 130, and leaves nothing half-written."""

    LONG = ["compare", "conv2d", "--c", "64", "--h", "400", "--w", "400", "--k", "64", "--r", "7",
            "--s", "7", "--pad", "3", "--limit", "none"]

    def interrupt_after(self, seconds, *arguments):
        process = subprocess.Popen([PROGRAM, *map(str, arguments)], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, cwd=self.folder)
        time.sleep(seconds)
        self.assertIsNone(process.poll(), "ended before it was interrupted")
        process.send_signal(signal.SIGINT)
        try:
            output, error = process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            self.fail("did not end within a minute")
        # Before the program has its handler, the system ends it; a shell calls that 130 as well.
        self.assertIn(process.returncode, (INTERRUPTED, -signal.SIGINT), output + error)

    def test_nothing_is_left(self):
        for seconds in (0.3, 1.5):
            with self.subTest(seconds=seconds):
                self.interrupt_after(seconds, *self.LONG, "--save", self.folder / "out", "--json",
                                     self.folder / "out.json")
                self.assertEqual(list(self.folder.iterdir()), [])

    def test_an_earlier_result_stays(self):
        out = self.folder / "out"
        self.agree("compare", *SMALL_GEMM, "--save", out)
        before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
        self.assertTrue(before)
        self.interrupt_after(1.0, *self.LONG, "--save", out)
        after = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
        self.assertEqual(before, after)


if __name__ == "__main__":
    unittest.main()
