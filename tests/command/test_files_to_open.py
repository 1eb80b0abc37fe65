"""./ladder check files asks that who reads a dense rung opens few headers beside it.

    python3 -B tests/command/test_files_to_open.py [CLASS]
"""
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
try:
    import check_files
except ModuleNotFoundError as missing:  # yaml
    sys.exit(print(f"SKIPPED: {missing}") or 77)
import likeness  # noqa: E402


class FilesToOpen(unittest.TestCase):
    def row(self, rung, **other):
        return {"rung": rung, "source": f"{rung}.cu", "ladder": "gemm", "backend": "cuda", "level": "spine", **other}

    def problems_of(self, row, opened, many):
        check_files.problems.clear()
        check_files.check_files_to_open([row], many, lambda source: [f"{i}.cuh" for i in range(opened)])
        return list(check_files.problems)

    def test_limits(self):
        spine, other = self.row("a"), self.row("a", level="advanced")
        self.assertEqual([self.problems_of(spine, n, {}) != [] for n in (3, 4)], [False, True])
        self.assertEqual([self.problems_of(other, n, {}) != [] for n in (5, 6)], [False, True])
        self.assertIn("includes 4 headers of rungs (0.cuh, 1.cuh, 2.cuh, 3.cuh), more than 3", self.problems_of(spine, 4, {})[0])

    def test_exceptions(self):
        spine = self.row("a")
        self.assertEqual(self.problems_of(spine, 4, {"a": "a reason"}), [])
        self.assertIn("a includes few headers: remove the entry", self.problems_of(spine, 3, {"a": "a reason"})[0])
        self.assertIn("b includes few headers", self.problems_of(spine, 3, {"b": "a reason"})[0])

    def test_other_ladders_and_programs_in_cpp(self):
        self.assertEqual(self.problems_of(self.row("a", ladder="fft"), 9, {}), [])
        self.assertEqual(self.problems_of(self.row("a", backend="cpu"), 9, {}), [])

    def test_headers_count_once_and_through_others(self):
        before = likeness.ROOT
        with tempfile.TemporaryDirectory() as folder:
            try:
                likeness.ROOT = pathlib.Path(folder)
                (likeness.ROOT / "cuda_optimized").mkdir()
                for name, includes in (("a.cu", ("b.cuh", "c.cuh")), ("b.cuh", ("c.cuh",)), ("c.cuh", ("d.cuh",)), ("d.cuh", ())):
                    text = '#include "core/half.hpp"\n' + "".join(f'#include "cuda_optimized/{other}"\n' for other in includes)
                    (likeness.ROOT / "cuda_optimized" / name).write_text(text)
                self.assertEqual(likeness.files_to_open("cuda_optimized/a.cu"), [f"cuda_optimized/{name}.cuh" for name in "bcd"])
            finally:
                likeness.ROOT = before


if __name__ == "__main__":
    unittest.main()
