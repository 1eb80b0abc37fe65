"""Tests of the script `ladder`, of its exit statuses above all: in a folder of its own, with stand-ins
for the build and for the program.

    python3 test_ladder_script.py
"""
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]

CMAKE = """
[ "$1" != --version ] || { echo "cmake version 3.25.1"; exit; }
mkdir -p build/cpu && : >build/cpu/build.ninja
"""
# Everything is built but the libraries of rungs, for which NINJA says what happens.
NINJA = """
[[ " $* " == *" rung_libraries "* ]] || { [[ " $* " != *" rungs_cuda_"* ]] || exit ${LIBRARY:-0}; exit 0; }
[[ " $* " != *" -n "* ]] || { echo "[1/2] Building"; exit; }
echo "[1/2] Building a library"
echo $$ >"$STATE/ninja"
$NINJA
"""
PROGRAM = """
echo "$*" >"$STATE/arguments"
$PROGRAM
"""
DPKG_QUERY = """
for word; do [[ $word == --* ]] || echo "installed $word"; done
"""


class Ladder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="convladder-test-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        for name in ("bin", "state", "build/cpu/command", "cuda_naive/conv2d"):
            (self.folder / name).mkdir(parents=True)
        shutil.copy(ROOT / "ladder", self.folder)
        shutil.copy(ROOT / "CMakeLists.txt", self.folder)
        for name, text in (("bin/cmake", CMAKE), ("bin/ninja", NINJA), ("bin/dpkg-query", DPKG_QUERY),
                           ("bin/apt-get", "exit 1"), ("build/cpu/command/convladder", PROGRAM)):
            path = self.folder / name
            path.write_text("#!/usr/bin/env bash\n" + text)
            path.chmod(0o755)

    def start(self, *arguments, ninja="true", program="true", **environment):
        return subprocess.Popen(
            [self.folder / "ladder", *arguments], text=True, start_new_session=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env={**os.environ, "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}", "CI": "",
                 "CUDACXX": "/no/nvcc", "CUDA_HOME": "/no", "STATE": str(self.folder / "state"),
                 "NINJA": ninja, "PROGRAM": program, **environment})

    def status(self, *arguments, **what):
        process = self.start(*arguments, **what)
        self.out, self.errors = process.communicate(timeout=60)
        return process.returncode

    def wait_for(self, path):
        end = time.monotonic() + 30
        while not path.exists() or not path.read_text():
            self.assertLess(time.monotonic(), end, f"{path} does not come")
            time.sleep(0.05)

    def assert_gone(self, pid):
        end = time.monotonic() + 30
        while pathlib.Path(f"/proc/{pid}").exists():
            self.assertLess(time.monotonic(), end, "the build goes on")
            time.sleep(0.05)

    def test_a_tour_ends_with_the_program_s_status(self):
        for status in (0, 1, 2, 4):
            self.assertEqual(self.status("compare", program=f"exit {status}"), status, status)

    def test_a_tour_beside_a_long_build(self):
        # It agrees, and what is left of the build is waited for; bad input does not wait.
        self.assertEqual(self.status("compare", ninja="sleep 1"), 0)
        begin = time.monotonic()
        self.assertEqual(self.status("compare", "--n", "x", ninja="sleep 20", program="exit 2"), 2)
        self.assertLess(time.monotonic() - begin, 15)
        self.assert_gone((self.folder / "state/ninja").read_text().strip())

    def test_a_build_that_fails_under_a_tour(self):
        waits = "until [ -e $CONVLADDER_BUILD/failed ]; do sleep 0.1; done; exit 3"
        self.assertEqual(self.status("compare", ninja="exit 1", program="eval " + waits), 3)

    def test_an_interrupted_tour(self):
        process = self.start("compare", ninja="sleep 20", program="sleep 20")
        self.wait_for(self.folder / "state/ninja")
        self.wait_for(self.folder / "state/arguments")
        os.killpg(process.pid, signal.SIGINT)
        process.communicate(timeout=15)
        self.assertEqual(process.returncode, 130)
        self.assert_gone((self.folder / "state/ninja").read_text().strip())

    def test_one_ladder(self):
        self.assertEqual(self.status("compare", "conv2d", "--n", "2", program="exit 1"), 1)
        self.assertEqual((self.folder / "state/arguments").read_text(), "compare conv2d --n 2\n")
        self.assertEqual(self.status("compare", "conv2d", LIBRARY="1"), 3)
        self.assertIn("the build failed", self.errors)

    def test_words(self):
        self.assertEqual(self.status("--version"), 0)
        self.assertRegex(self.out, r"^ConvLadder \d+\.\d+\.\d+\n$")
        self.assertEqual(self.status(), 0)
        self.assertIn("./ladder compare", self.out)
        self.assertEqual(self.status("climb"), 2)
        self.assertIn("climb", self.errors)
        self.assertEqual(self.status("check", "nothing"), 2)
        for wrong in (["--show"], ["--serve", "here"], ["--serve", "8000", "now"]):
            self.assertEqual(self.status("docs", *wrong), 2)


if __name__ == "__main__":
    unittest.main()
