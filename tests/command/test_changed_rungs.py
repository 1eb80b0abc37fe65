"""tools/changed_rungs.py: which rungs a check that takes long looks at."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

TOOL = pathlib.Path(__file__).resolve().parents[2] / "tools/changed_rungs.py"


class ChangedRungs(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.record = pathlib.Path(folder.name, "record.json")
        self.hashes = pathlib.Path(folder.name, "hashes.inc")
        self.now({"cpu_reference/gemm/a.cpp": "1a", "cuda_naive/gemm/b.cu": "2b"})

    def now(self, hashes):
        self.hashes.write_text("".join(f'{{"{source}", "{digest}"}},\n' for source, digest in hashes.items()))

    def run_tool(self, *options):
        done = subprocess.run([sys.executable, "-B", TOOL, self.record, self.hashes, *options], check=True,
                              capture_output=True, text=True)
        return done.stdout.split()

    def test_without_a_record_all_have_changed(self):
        self.assertEqual(self.run_tool(), ["cpu_reference/gemm/a", "cuda_naive/gemm/b"])

    def test_what_is_recorded_has_not_changed(self):
        self.run_tool("--write", "clang 16")
        self.assertEqual(self.run_tool(), [])
        self.assertEqual(json.loads(self.record.read_text())["by"], "clang 16")

    def test_an_edit_a_new_rung_and_one_that_is_gone(self):
        self.run_tool("--write", "clang 16")
        self.now({"cuda_naive/gemm/b.cu": "3c", "cuda_naive/gemm/c.cu": "4d"})
        self.assertEqual(self.run_tool(), ["cuda_naive/gemm/b", "cuda_naive/gemm/c"])

    def test_the_record_of_a_gpu_is_read_likewise(self):
        self.record.write_text(json.dumps({"gpu": "H200", "rungs": [{"rung": "cuda_naive/gemm/b", "source_hash": "2b",
                                                                      "problems": 3}]}))
        self.assertEqual(self.run_tool(), ["cpu_reference/gemm/a"])


if __name__ == "__main__":
    unittest.main()
