"""tools/machine_code.py: measurements outlive a change that leaves the machine code as it was, and no other."""
import json
import pathlib
import struct
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import machine_code  # noqa: E402

RECORD = """{
 "gpu": "a GPU",
 "date": "2026-11-01",
 "rows": [
  {"rung":"cuda_naive/gemm/a","source_hash":"1a","median_us":1.50},
  {"rung":"cuda_naive/gemm/b","source_hash":"2b","median_us":2.50}
 ]
}
"""


def elf(**sections):
    """A file of 64 bits with these sections."""
    names, contents = b"\0", b""
    headers = [(0, 0, 0, 0, 0, 0, 0, 0, 0, 0)]
    for name, content in sections.items():
        headers.append((len(names), 1, 0, 0, 64 + len(contents), len(content), 0, 0, 0, 0))
        names += name.encode() + b"\0"
        contents += content
    headers.append((0, 3, 0, 0, 64 + len(contents), len(names), 0, 0, 0, 0))
    contents += names
    start = b"\x7fELF" + bytes(0x24) + struct.pack("<Q", 64 + len(contents)) + bytes(10)
    start += struct.pack("<HHH", 64, len(headers), len(headers) - 1)
    return start + contents + b"".join(struct.pack("<IIQQQQIIQQ", *header) for header in headers)


class MachineCode(unittest.TestCase):
    def test_instructions_without_names_that_the_compiler_makes_up(self):
        first = elf(**{".text._ZN1a9_GLOBAL__N__0e92b5da_9_im2col_cu_612e232b6kernel": b"code", ".debug_line": b"1"})
        second = elf(**{".text._ZN1a9_GLOBAL__N__55f972e0_9_im2col_cu_612e232b6kernel": b"code", ".debug_line": b"2"})
        third = elf(**{".text._ZN1a9_GLOBAL__N__55f972e0_9_im2col_cu_612e232b6kernel": b"other"})
        self.assertEqual(machine_code.instructions(first), {".text._ZN1aanonymous6kernel": [b"code"]})
        self.assertEqual(machine_code.instructions(first), machine_code.instructions(second))
        self.assertNotEqual(machine_code.instructions(first), machine_code.instructions(third))

    def test_files_that_a_hash_is_made_of(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "a.cu").write_text('#include "b.cuh"\n#include <string>\n')
            (root / "b.cuh").write_text('#include "b.cuh"\n')
            (root / "b.cu").write_text('#include "nowhere.hpp"\n')
            self.assertEqual(sorted(machine_code.files_of(root, "a.cu")), ["a.cu", "b.cu", "b.cuh"])

    def test_only_rungs_with_the_same_code_are_carried_over(self):
        old = {"cuda_naive/gemm/a": {"source_hash": "1a", "code": "x"}, "cuda_naive/gemm/b": {"source_hash": "2b", "code": "y"},
               "cuda_naive/gemm/gone": {"source_hash": "3c", "code": "z"}}
        new = {"cuda_naive/gemm/a": {"source_hash": "4d", "code": "x"}, "cuda_naive/gemm/b": {"source_hash": "5e", "code": "other"}}
        hashes = machine_code.kept(old, new)
        self.assertEqual(hashes, {"1a": "4d"})
        text, rungs = machine_code.carry(RECORD, hashes)
        self.assertEqual(rungs, 1)
        self.assertEqual([row["source_hash"] for row in json.loads(text)["rows"]], ["4d", "2b"])
        self.assertIn('"median_us":1.50', text)  # a record's own way of writing stays

    def test_how_many_were_carried_over_is_told_of_all_times(self):
        notes = {}
        machine_code.note(notes, "a.json", 3)
        machine_code.note(notes, "a.json", 2)
        self.assertEqual(notes["a.json"]["rungs"], 5)

    def test_a_record_of_other_sources_stays_as_it_is(self):
        self.assertEqual(machine_code.carry(RECORD, {"9f": "4d"}), (RECORD, 0))


if __name__ == "__main__":
    unittest.main()
