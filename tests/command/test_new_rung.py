"""Tests of tools/new_rung.py: what it writes, and that it compiles.

    CXX=g++ python3 test_new_rung.py
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
sys.dont_write_bytecode = True
import new_rung  # noqa: E402


class NewRung(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.root = pathlib.Path(self.folder.name)
        for part in ("ladders", "cpu_reference/gemm", "cuda_naive/gemm", "cuda_optimized/gemm"):
            shutil.copytree(ROOT / part, self.root / part)

    def tearDown(self):
        self.folder.cleanup()

    def test_a_copy_of_the_rung_before_and_a_row_of_the_table(self):
        for after, folder in (("cuda_naive/gemm/direct", "cuda_optimized"), ("register_tile", "cuda_optimized"),
                              ("triple_loop", "cpu_reference")):
            name = "new_" + after.rsplit("/", 1)[-1]
            file, table = new_rung.write_rung(self.root, "gemm", name, after)
            self.assertEqual(file.parent, self.root / folder / "gemm")
            text = file.read_text()
            self.assertIn(f"@file {file.name}", text)
            self.assertIn(f"Implementation<GemmProblem> {name}()", text)
            rows = table.read_text()
            self.assertIn(f"RUNG(GemmProblem, {folder}, gemm, {name})", rows)
            self.assertIn(f'ROW({folder}, gemm, {name}, "', rows)
            compiler = os.environ.get("CXX", "g++")
            made = subprocess.run(
                [compiler, "-std=c++20", "-fsyntax-only", "-x", "c++", "-I", self.root, "-I", ROOT, "-I",
                 ROOT / "cuda_on_cpu/include", file], capture_output=True, text=True)
            self.assertEqual(made.returncode, 0, made.stderr)

    def test_bad_words(self):
        for ladder, name, after, says in (
                ("gem", "fast", "tiled", "ladder = gem"), ("gemm", "Fast", "tiled", "name = Fast"),
                ("gemm", "cp_async", "tiled", "is there already"), ("gemm", "fast", "tield", "after = tield")):
            with self.assertRaises(new_rung.Trouble) as trouble:
                new_rung.write_rung(self.root, ladder, name, after)
            self.assertIn(says, str(trouble.exception))
        self.assertFalse((self.root / "cuda_optimized/gemm/fast.cu").exists())


if __name__ == "__main__":
    unittest.main()
