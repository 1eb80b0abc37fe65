"""End-to-end tests of the command `convladder`: exit statuses, help, and Ctrl-C.

    CONVLADDER_PROGRAM=$PWD/build/cpu/command/convladder python3 -B tests/command/test_exit_status.py [CLASS]

CTest runs each class as a test of its own.
"""
import pathlib
import signal
import subprocess
import time
import unittest

from program import DIFFER, HAS_GPU, INTERRUPTED, PROGRAM, SMALL_GEMM, ProgramTest, run


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
        # Nobody asked for the GPU here.
        self.agree("compare", *SMALL_GEMM, "--backend", "cpu", env={"CONVLADDER_REQUIRE_GPU": "1"})

    def test_plain_lines_in_a_pipe(self):
        result = self.agree("compare", *SMALL_GEMM)
        self.assertNotIn("\x1b", result.stdout + result.stderr)
        self.assertNotIn("\r", result.stdout + result.stderr)


class Interrupt(ProgramTest):
    """Ctrl-C ends the program with 130, and leaves nothing half-written."""

    LONG = ["compare", "conv2d", "--c", "64", "--h", "400", "--w", "400", "--k", "64", "--r", "7",
            "--s", "7", "--pad", "3"]

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
