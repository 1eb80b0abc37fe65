"""Every program in Python starts, also those that only a GPU, a maintainer or a teacher needs: so none falls into decay unseen. And
what is downloaded is pinned by a hash.

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
            # A package's __main__.py runs as python -m alone: the module's own tests try it.
            if '__name__ == "__main__"' in path.read_text() and path.name != "__main__.py":
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

class Pinned(unittest.TestCase):
    COMMIT = r"[0-9a-f]{40}"

    def test_actions(self):
        uses = [line.strip() for path in (ROOT / ".github/workflows").glob("*.yml") for line in path.read_text().splitlines() if "uses:" in line]
        self.assertLess(5, len(uses))
        for line in uses:
            self.assertRegex(line, rf"uses: [\w./-]+@{self.COMMIT}  # v\d")

    def test_libraries(self):
        files = [ROOT / "CMakeLists.txt", *(ROOT / "cmake").glob("*.cmake"), *(ROOT / "cuda_on_cpu").rglob("CMakeLists.txt")]
        text = "\n".join(path.read_text() for path in files)
        declared = re.findall(r"FetchContent_Declare\((.*?)\)", text, re.DOTALL)
        self.assertLess(4, len(declared))
        for one in declared:
            with self.subTest(one.split()[0]):
                self.assertRegex(one, rf"URL_HASH\s+SHA256=[0-9a-f]{{64}}|GIT_TAG\s+{self.COMMIT}")

    def test_every_library_that_is_downloaded_has_its_licence_named(self):
        text = (ROOT / "cmake/Dependencies.cmake").read_text()
        notice = (ROOT / "THIRD_PARTY.md").read_text().lower()
        for name in re.findall(r"FetchContent_Declare\((\w+)", text):
            self.assertIn(re.sub(r"\d+$|_.*", "", name.lower()) if name != "CLI11" else "cli11", notice)
        self.assertIn("THIRD_PARTY.md", (ROOT / "pyproject.toml").read_text())  # and so it is in the wheel


if __name__ == "__main__":
    unittest.main()
