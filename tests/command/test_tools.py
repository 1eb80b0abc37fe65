"""Every program in Python starts, also those that only a GPU, a maintainer or a teacher needs: so none falls into decay unseen.

    python3 -B tests/command/test_tools.py [CLASS]
"""
import pathlib
import re
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = ("benchmarks", "course", "docs", "notebooks", "provenance", "python", "tools")
# As `python3 FILE`, but for the block behind `if __name__ == "__main__"`.
START = """
import pathlib, runpy, sys
sys.argv = [sys.argv[1]]
sys.path[0] = str(pathlib.Path(sys.argv[0]).parent)
runpy.run_path(sys.argv[0], run_name="started")
"""
# What a machine may lack, and the module that only its own checks have built.
OTHERS = {"PIL", "IPython", "convladder", "cupy", "hypothesis", "jax", "matplotlib", "nbclient", "nbconvert", "nbformat", "numpy", "scipy", "spconv", "torch", "yaml"}


def programs():
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            if '__name__ == "__main__"' in path.read_text():
                yield path


class Tools(unittest.TestCase):
    def test_every_program_starts(self):
        self.assertIn(ROOT / "tools/mutants/mutants.py", list(programs()))
        for path in programs():
            with self.subTest(path.relative_to(ROOT).as_posix()):
                result = subprocess.run([sys.executable, "-B", "-c", START, path], capture_output=True, text=True)
                missing = re.search(r"No module named '(\w+)", result.stderr)
                if not missing or missing.group(1) not in OTHERS:
                    self.assertEqual((result.returncode, result.stderr), (0, ""))


if __name__ == "__main__":
    unittest.main()
