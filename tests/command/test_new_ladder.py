"""Tests of tools/new_ladder: what it writes, that it compiles, and that its rungs are right.

    CXX=g++ python3 test_new_ladder.py
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools/new_ladder"))
sys.path.insert(0, str(ROOT / "tools"))
sys.dont_write_bytecode = True
import new_ladder  # noqa: E402
import new_rung  # noqa: E402

SOURCES = ("core", "ladders", "oracle", "command", "tests/ladders", "tests/planted_bugs", "docs/ladders")
# The first rung on a few numbers.
PROGRAM = """
#include <cstdio>

#include "ladders/copied_numbers.hpp"

int main() {
  using namespace convladder;
  const CopiedNumbersProblem problem = validated(CopiedNumbersProblem{.N = 3});
  const float x[] = {1, 2, 4};
  float y[3] = {};
  cpu_reference::copied_numbers::direct(problem, {x, y});
  std::printf("%s: %g %g %g\\n", describe(problem).c_str(), y[0], y[1], y[2]);
}
"""


def texts(root):
    return {path: path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


class NewLadder(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.root = pathlib.Path(self.folder.name)
        for folder in SOURCES:
            shutil.copytree(ROOT / folder, self.root / folder)
        for file in ("cpu_reference", "cuda_naive", "cuda_optimized", "tests/command"):
            (self.root / file).mkdir()
        for file in sorted((ROOT / "tests").glob("*.hpp")) + [ROOT / "tests/command/program.py",
                                                                    ROOT / "docs/reading_paths.json"]:
            shutil.copy(file, self.root / file.relative_to(ROOT))

    def tearDown(self):
        self.folder.cleanup()

    def compile(self, *words):
        command = [os.environ.get("CXX", "g++"), "-std=c++20", "-I", self.root, "-I", ROOT / "cuda_on_cpu/include", *words]
        made = subprocess.run(command, capture_output=True, text=True)
        self.assertEqual(made.returncode, 0, made.stderr)

    def test_files_and_a_row_in_each_table(self):
        files, tables = new_ladder.write_ladder(self.root, "copied_numbers")
        for file in files:
            self.assertIn("copied_numbers", str(file))
            self.assertIn("TODO", file.read_text() + (self.root / "ladders/copied_numbers.cpp").read_text())
            self.assertNotIn("@", file.read_text().replace("@file", "").replace("@brief", "").replace("@throws", ""))
        for table in tables:
            self.assertRegex(table.read_text(), r"copied_numbers|CopiedNumbers")
        paths = json.loads((self.root / "docs/reading_paths.json").read_text())
        self.assertEqual(paths["builds on"]["copied_numbers"], [])
        ours = (self.root / "oracle/ladders/ladders.cpp").read_text()
        self.assertLess(ours.index('"conv2d"'), ours.index('"copied_numbers"'))
        self.assertLess(ours.index('"copied_numbers"'), ours.index('"gemm"'))
        for file in files:
            if file.suffix in (".cpp", ".cu") and "tests" not in file.parts:
                self.compile("-fsyntax-only", "-x", "c++", file)

    def test_its_first_rung_runs_and_another_follows(self):
        new_ladder.write_ladder(self.root, "copied_numbers")
        (self.root / "program.cpp").write_text(PROGRAM)
        self.compile("-ffunction-sections", "-Wl,--gc-sections", "-o", self.root / "program", self.root / "program.cpp", self.root / "core/copied_numbers_problem.cpp",
                     self.root / "core/implementation.cpp", self.root / "core/complete.cpp", self.root / "core/array.cpp",
                     self.root / "cpu_reference/copied_numbers/direct.cpp")
        done = subprocess.run([self.root / "program"], capture_output=True, text=True)
        self.assertEqual(done.stdout, "n 3: 1 2 4\n")
        file, _ = new_rung.write_rung(self.root, "copied_numbers", "faster", "cuda_naive/copied_numbers/direct")
        self.assertEqual(file, self.root / "cuda_optimized/copied_numbers/faster.cu")
        self.compile("-fsyntax-only", "-x", "c++", file)

    def test_a_bad_name_writes_nothing(self):
        before = texts(self.root)
        for name, says in (("Sum", "small letters"), ("2d", "small letters"), ("a__b", "small letters"), ("sum_", "letters"),
                           ("double", "word of C++"), ("gemm", "is there already"), ("ladders", "is there already"),
                           ("sparse_to_dense", "is there already"), ("conv2d_", "letters"), ("", "letters"),
                           ("sparse", "is there already"), ("sparse_pool", "is there already")):
            with self.assertRaises(new_ladder.Trouble, msg=name) as trouble:
                new_ladder.write_ladder(self.root, name)
            self.assertIn(says, str(trouble.exception))
            self.assertEqual(len(str(trouble.exception).split("\n")), 1)
        self.assertEqual(texts(self.root), before)
        refused = subprocess.run([sys.executable, ROOT / "tools/new_ladder/new_ladder.py", "Sum"], capture_output=True, text=True)
        self.assertEqual((refused.returncode, refused.stdout, refused.stderr.count("\n")), (2, "", 1))


if __name__ == "__main__":
    unittest.main()
