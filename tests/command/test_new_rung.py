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
        shutil.copytree(ROOT / "ladders", self.root / "ladders")
        for ladder in ("conv2d", "gemm"):
            for folder in ("cpu_reference", "cuda_naive", "cuda_optimized"):
                shutil.copytree(ROOT / folder / ladder, self.root / folder / ladder)

    def tearDown(self):
        self.folder.cleanup()

    def test_a_copy_of_the_rung_before_and_a_row_of_the_table(self):
        for ladder, after, folder in (("conv2d", "cuda_naive/conv2d/direct", "cuda_optimized"),
                                      ("conv2d", "direct/tiled", "cuda_optimized"),
                                      ("gemm", "register_tile", "cuda_optimized"), ("gemm", "triple_loop", "cpu_reference")):
            name = "new_" + after.rsplit("/", 1)[-1]
            file, table = new_rung.write_rung(self.root, ladder, name, after)
            family = "direct" if "/tiled" in after else ""
            self.assertEqual(file.parent, self.root / folder / ladder / family)
            constant = f"{family}_{name}".lstrip("_")
            text = file.read_text()
            self.assertIn(f"@file {file.name}", text)
            self.assertRegex(text, rf"extern const Implementation<\w+> {constant} =")
            rows = table.read_text()
            self.assertRegex(table.with_suffix(".hpp").read_text(), rf"RUNG\(\w+, {folder}, {ladder}, {constant}\)")
            self.assertRegex(rows, rf'ROW(_IN)?\({folder}, {ladder}, ({family}, )?{name}, "')
            compiler = os.environ.get("CXX", "g++")
            made = subprocess.run(
                [compiler, "-std=c++20", "-fsyntax-only", "-x", "c++", "-I", self.root, "-I", ROOT, "-I",
                 ROOT / "cuda_on_cpu/include", file], capture_output=True, text=True)
            self.assertEqual(made.returncode, 0, made.stderr)

    def test_bad_words(self):
        for ladder, name, after, says in (
                ("gem", "fast", "tiled", "ladder = gem"), ("gemm", "Fast", "tiled", "name = Fast"),
                ("gemm", "cp_async", "tiled", "is there already"), ("gemm", "fast", "tield", "after = tield"),
                ("conv2d", "fast", "cuda_naive/conv2d/im2col_gemm", "copy it by hand")):
            with self.assertRaises(new_rung.Trouble) as trouble:
                new_rung.write_rung(self.root, ladder, name, after)
            self.assertIn(says, str(trouble.exception))
        self.assertFalse(list(self.root.glob("cuda_*/*/fast.cu")))


if __name__ == "__main__":
    unittest.main()
