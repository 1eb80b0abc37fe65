"""Tests of the script `ladder`, of its exit statuses above all: in a folder of its own, with stand-ins
for the build and for the program.

    python3 test_ladder_script.py
"""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]

CMAKE = """
[ "$1" != --version ] || { echo "cmake version 3.25.1"; exit; }
echo "$*" >>"$STATE/cmake"
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

    def start(self, *arguments, ninja="true", program="true", user=None, **environment):
        return subprocess.Popen(
            [self.folder / "ladder", *arguments], text=True, start_new_session=True, user=user,
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

    def add(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("#!/usr/bin/env bash\n" + text)
        path.chmod(0o755)

    def test_help_of_every_command_needs_nothing(self):
        (self.folder / "build/cpu/command/convladder").unlink()
        self.add("bin/apt-get", 'echo "$*" >>"$STATE/apt-get"')
        self.add("bin/dpkg-query", "exit 1")  # no package is installed
        text = (ROOT / "ladder").read_text()
        commands = re.findall(r"^  ([a-z][a-z |-]*)\)", text[text.index("\ncase $command in"):], re.MULTILINE)
        commands = [word for line in commands for word in line.split(" | ") if word]
        self.assertLess(20, len(commands))
        steps = re.findall(r"^    ([a-z][a-z |-]*)\)", text[text.index("check_step() {"):], re.MULTILINE)
        steps = [["check", step] for line in steps for step in line.split(" | ")]
        self.assertLess(15, len(steps))
        self.status()
        whole = self.out
        for words in [[command] for command in commands] + steps:
            with self.subTest(words):
                self.assertEqual(self.status(*words, "--help"), 0)
                own = [line for line in whole.splitlines() if line.startswith(f"  ./ladder {words[0]} ")]
                self.assertEqual([line for line in self.out.splitlines() if line.startswith("  ./ladder ")] == own, own != [])
                self.assertEqual(self.out == whole, own == [])
        self.assertEqual(list((self.folder / "state").iterdir()), [])  # no program was called
        # What is there says more.
        self.add("build/cpu/command/convladder", 'echo "all options of $*"')
        self.assertEqual(self.status("compare", "gemm", "--help"), 0)
        self.assertEqual(self.out, "all options of compare --help\n")
        for tool in (["extract"], ["handout"], ["grade"], ["similar"], ["new-rung"], ["new-ladder"], ["check", "mutants"], ["check", "expect"]):
            result = subprocess.run([ROOT / "ladder", *tool, "--help"], capture_output=True, text=True)
            self.assertEqual((result.returncode, result.stdout[:6], result.stderr), (0, "usage:", ""), tool)

    def test_a_clone_that_may_not_be_written_to(self):
        self.assertEqual(self.status("list"), 0)  # is configured
        for name in (".ninja_log", "lib/libconvladder_measurements.so", "lib/libconvladder_rungs_cuda_naive_conv2d.so",
                     "lib/libconvladder_rungs_cpu_reference_conv2d.so"):
            (self.folder / "build/cpu" / name).parent.mkdir(exist_ok=True)
            (self.folder / "build/cpu" / name).touch()
        self.folder.chmod(0o755)
        (self.folder / "state").chmod(0o777)
        folders = [self.folder, *(path for path in self.folder.rglob("*") if path.is_dir() and path.name != "state")]
        user = None
        if os.geteuid() == 0:
            user = 65534  # an unprivileged user
        else:
            for path in folders:
                path.chmod(0o555)
                self.addCleanup(path.chmod, 0o755)
            (self.folder / "build/cpu/.ninja_log").chmod(0o444)
        for command in (["list"], ["compare", "conv2d"], ["compare"], ["bench"], ["fuzz", "conv2d"]):
            with self.subTest(command):
                (self.folder / "state/arguments").unlink(missing_ok=True)
                self.assertEqual(self.status(*command, user=user), 0, self.errors)
                self.assertEqual((self.folder / "state/arguments").read_text(), " ".join(command) + "\n")
                self.assertEqual(self.errors, "")
        for command in (["test"], ["check", "warnings"], ["check", "python"], ["docs"], ["inspect", "cuda_naive/conv2d/direct"],
                        ["compare", "gemm"], ["compare"]):
            with self.subTest(command):
                (self.folder / "state/arguments").unlink(missing_ok=True)
                if command[0] == "compare":  # one folder of rungs is not built
                    for path in (self.folder, self.folder / "cuda_naive"):
                        path.chmod(0o755)
                    (self.folder / "cuda_naive/gemm").mkdir(exist_ok=True)
                self.assertEqual(self.status(*command, user=user), 3, self.errors)
                self.assertIn("no permission to write to", self.errors)
                self.assertFalse((self.folder / "state/arguments").exists())

    def test_a_python_environment_that_is_gone(self):
        self.add("environment/python", "exit ${NANOBIND:-0}")
        recorded = self.folder / "build/cpu/ladder.python"
        recorded.write_text(str(self.folder / "environment/python"))
        self.assertEqual(self.status("list"), 0)
        self.assertIn("-DCONVLADDER_PYTHON=ON", (self.folder / "state/cmake").read_text())
        for gone in (lambda: None, lambda: shutil.rmtree(self.folder / "environment")):
            gone()
            recorded.write_text(str(self.folder / "environment/python"))
            (self.folder / "state/cmake").unlink()
            self.assertEqual(self.status("list", NANOBIND="1"), 0)
            self.assertIn("-DCONVLADDER_PYTHON=OFF", (self.folder / "state/cmake").read_text())
            self.assertFalse(recorded.exists())
            self.assertEqual(self.status("list"), 0)
            (self.folder / "build/cpu/ladder.setup").unlink()

    def test_device_code_for_all_architectures_that_rungs_run_on_and_the_newest(self):
        self.add("nvcc", "[ $1 != --list-gpu-code ] || printf 'sm_%s\\n' 75 80 90 100 120 88 121")
        (self.folder / "build/gpu-code").mkdir()
        self.status("check", "gpu-code-all", CUDACXX=str(self.folder / "nvcc"))
        words = (self.folder / "state/cmake").read_text()
        self.assertIn("-DCONVLADDER_GPU_CODE_ALSO=sm_75;sm_80;sm_100;sm_120;sm_75;sm_121", words)
        self.assertIn("-DCONVLADDER_GPU_CODE_SAMPLE=", words)

    def test_completion(self):
        for folder in ("cpu_reference/gemm", "cuda_naive/gemm", "cuda_optimized/gemm"):
            (self.folder / folder).mkdir(parents=True)
            (self.folder / folder / "tiled.cu").touch()
        script = """
source "$1"; shift
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_convladder "$1" "${@: -1}" "${@: -2:1}"
echo "${COMPREPLY[*]}"
"""
        for line in ("compa compare", "compare ge gemm", "compare gemm --rung cuda_n cuda_naive/gemm/tiled",
                     "inspect cuda_o cuda_optimized/gemm/tiled", "list --ladder ge gemm", "compare --backend em emulated",
                     "compare --device sm_7 sm_75",
                     "check planted-bugs- planted-bugs-all", "docs --se --serve"):
            *words, found = line.split()
            result = subprocess.run(["bash", "-c", script, "bash", ROOT / "tools/completion.bash", self.folder / "ladder", *words],
                                    capture_output=True, text=True)
            self.assertEqual((result.stdout, result.stderr), (found + "\n", ""), line)

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
