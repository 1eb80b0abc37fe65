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
        self.build = pathlib.Path(folder.name)
        (self.build / "provenance").mkdir()
        self.now({"cuda_naive/gemm/a.cu": "1a", "cuda_naive/gemm/b.cu": "2b"})

    def now(self, hashes):
        text = "".join(f'{{"{source}", "{digest}"}},\n' for source, digest in hashes.items())
        (self.build / "provenance/source_hashes.inc").write_text(text)

    def run_tool(self, *options):
        done = subprocess.run([sys.executable, "-B", TOOL, self.record, self.build, *options], check=True,
                              capture_output=True, text=True)
        return done.stdout.split()

    def test_without_a_record_all_have_changed(self):
        self.assertEqual(self.run_tool(), ["cuda_naive/gemm/a", "cuda_naive/gemm/b"])

    def test_what_was_written_has_not_changed(self):
        self.run_tool("--write", "clang 16")
        self.assertEqual(json.loads(self.record.read_text())["by"], "clang 16")
        self.assertEqual(self.run_tool(), [])
        self.now({"cuda_naive/gemm/a.cu": "1a", "cuda_naive/gemm/b.cu": "3c"})
        self.assertEqual(self.run_tool(), ["cuda_naive/gemm/b"])

    def test_a_folder_counts_as_a_rung_and_only_its_sources_do(self):
        folder = self.build / "tests"
        (folder / "deep").mkdir(parents=True)
        (folder / "deep/a.cpp").write_text("one")
        (folder / "notes.json").write_text("one")
        self.run_tool("--with", folder, "--write", "g++ 12")
        (folder / "notes.json").write_text("another")
        self.assertEqual(self.run_tool("--with", folder), [])
        (folder / "deep/a.cpp").write_text("another")
        self.assertEqual(self.run_tool("--with", folder), ["tests"])
        (folder / "deep/a.cpp").rename(folder / "deep/b.cpp")
        self.assertEqual(self.run_tool("--with", folder), ["tests"])

    def test_without_hashes_it_fails(self):
        (self.build / "provenance/source_hashes.inc").unlink()
        with self.assertRaises(subprocess.CalledProcessError):
            self.run_tool()

    def test_what_is_recorded_has_not_changed_but_edits_and_new_rungs_have(self):
        self.record.write_text(json.dumps({"gpu": "H200", "rungs": [
            {"rung": "cuda_naive/gemm/a", "source_hash": "1a", "problems": 3},
            {"rung": "cuda_naive/gemm/b", "source_hash": "2b", "problems": 3},
            {"rung": "cuda_naive/gemm/gone", "source_hash": "5e", "problems": 3}]}))
        self.now({"cuda_naive/gemm/a.cu": "1a", "cuda_naive/gemm/b.cu": "3c", "cuda_naive/gemm/c.cu": "4d"})
        self.assertEqual(self.run_tool(), ["cuda_naive/gemm/b", "cuda_naive/gemm/c"])


if __name__ == "__main__":
    unittest.main()
