"""Tests of the lines @expect in the headers of rungs: how they are read, what a counter is, and one rung a ladder counted.

    BUILD=FOLDER python3 test_expect.py
"""
import os
import pathlib
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools/extract"), str(ROOT / "tools/inspect")]
sys.dont_write_bytecode = True
import check_expect  # noqa: E402
import expect  # noqa: E402
import extract  # noqa: E402

BUILD = pathlib.Path(os.environ["BUILD"])
EVERYTHING = os.environ.get("CONVLADDER_INSPECT_ALL") == "1"
FILE = expect.ROOT / "cuda_naive/conv2d/rung.cu"


def read(*lines):
    return expect.lines_of(FILE, "conv2d", "\n".join(lines))


def site(array, op, space="global", **counts):
    return {"array": array, "op": op, "space": space, **dict.fromkeys(expect.COUNTS), **counts}


REPORT = {
    "blocks": {"run": 9, "counted": 5}, "outputs": 1024, "races": [{"severity": "note"}, {"severity": "error"}],
    "per_output": {"loads": {"x": 1.328125}}, "footprint": {"x": 1360},
    "kernels": [
        {"launches": 2, "block": [32, 8, 1], "blocks": {"run": 8, "counted": 4}, "barriers": 96, "sites": [
            site("x", "load", requests=32, lanes=1024, bytes=16384, sectors=512),
            site("x", "async", requests=1, lanes=16, bytes=256, sectors=8),
            site("dynamic shared memory", "load", "shared", requests=64, lanes=2048, wavefronts=80, excess=16)]},
        {"launches": 1, "block": [40, 1, 1], "blocks": {"run": 1, "counted": 1}, "barriers": 0, "sites": [
            site("x", "load", requests=32, lanes=512, bytes=2048, sectors=128),
            site(None, "load", "shared", requests=16, lanes=512, wavefronts=16, excess=0)]}]}


class Lines(unittest.TestCase):
    def test_a_line_is_a_counter_and_a_number(self):
        [line] = read("/// @file rung.cu", "/// @expect loads_per_output.x 1.33", "int code;")
        self.assertEqual(line[:4], ("loads_per_output.x", "", "1.33", expect.PROBLEMS["conv2d"]))
        self.assertEqual(line.place, "cuda_naive/conv2d/rung.cu:2")

    def test_a_new_ladder_has_the_programs_example(self):
        [line] = expect.lines_of(FILE, "no_such_ladder", "/// @expect blocks 2")
        self.assertEqual(line.problem, "")

    def test_arithmetic_must_give_the_number(self):
        [line] = read("/// @expect loads_per_output.x 340 / 256 = 1.33")
        self.assertEqual((line.arithmetic, line.number), ("340 / 256", "1.33"))
        self.assertEqual(read("/// @expect blocks 2 * (3 + 1) - 1 = 7")[0].number, "7")
        self.assertEqual(read("/// @expect blocks 2 * 4 = 8, two, of four")[0].words, "two, of four")
        self.mistake("340 / 256 is 1.32812, not 1.34", "/// @expect loads_per_output.x 340 / 256 = 1.34")
        self.mistake("not 1", "/// @expect loads_per_output.x 340 / 256 = 1")
        for nonsense in ("1 / 0", "2 ** 9", "7 // 2", "(1", "2 3", "x", ""):
            self.mistake("is no arithmetic", f"/// @expect blocks {nonsense} = 7")

    def test_a_problem_holds_until_the_next(self):
        lines = read("/// @expect on --n 1 --c 3", "/// @expect blocks 8", "/// @expect races 0", "/// @expect on --n 2",
                     "/// @expect blocks 9")
        self.assertEqual([line.problem for line in lines], ["--n 1 --c 3", "--n 1 --c 3", "--n 2"])
        self.mistake("rung.cu:1: @expect on OPTIONS", "/// @expect on 1x3x64x96")

    def test_mistakes_name_file_line_and_rule(self):
        self.mistake("cuda_naive/conv2d/rung.cu:2: @expect COUNTER NUMBER: there is no counter 'loads'", "", "/// @expect loads 3")
        self.mistake("there is no counter 'lanes.x.loads'", "/// @expect lanes.x.loads 3")
        self.mistake("'about 3' is no number", "/// @expect blocks about 3")
        self.mistake("'' is no number", "/// @expect blocks")
        self.mistake("blocks has a line already", "/// @expect blocks 3", "/// @expect blocks 3")

    def test_a_number_with_a_point_is_rounded(self):
        for number, counted, met in (("1.33", 1.328125, True), ("1.3", 1.328125, True), ("1.32", 1.328125, False),
                                     ("4", 4, True), ("4", 4.1, False), ("4.0", 4.04, True), ("0", 0, True), ("0", None, False)):
            self.assertEqual(expect.agrees(number, counted), met, (number, counted))

    def mistake(self, says, *lines):
        with self.assertRaises(expect.Mistake) as caught:
            read(*lines)
        self.assertIn(says, str(caught.exception))


class Counters(unittest.TestCase):
    def test_what_is_counted(self):
        for counter, value in {
            "blocks": 9, "launches": 3, "races": 1,
            "barriers_per_block": 3,  # 96, by 8 warps of the 4 blocks that were counted
            "footprint.x": 1360, "footprint.y": None,
            # Half of the first kernel's blocks were counted, and all of the second's.
            "loads_per_output.x": 1.328125, "loads_per_output.shared": 4.5,
            "requests.x.load": 96, "requests.x.async": 2, "sectors_per_request.x.load": 12, "bytes_per_lane.x.load": 13.6,
            "lanes_per_request.x.load": 26.666667, "lanes_per_output.x.load": 2.5, "requests_per_block.shared.load": 16,
            "excess.shared.load": 32, "wavefronts_per_request.shared.load": 1.222222, "sectors.shared.load": None,
            "requests.y.store": 0, "sectors_per_request.y.store": None,
        }.items():
            self.assertTrue(expect.is_counter(counter))
            self.assertEqual(expect.counted(REPORT, counter), value, counter)

    def test_tables_have_counters(self):
        for tables in expect.TABLES.values():
            for table in tables:
                for counter in table.counters():
                    self.assertTrue(expect.is_counter(counter))

    def test_a_record_is_stale_when_the_source_or_a_line_is_new(self):
        rungs = [{"rung": "a", "ladder": "im2col", "previous": ""}, {"rung": "b", "ladder": "im2col", "previous": "a"}]
        lines = {"a": read("/// @expect on --c 1", "/// @expect blocks 8"), "b": read("/// @expect on --c 1", "/// @expect launches 8")}
        self.assertEqual(expect.wanted(rungs[0], rungs, lines), {"--c 1": ["blocks", "launches"]})
        counters = expect.wanted(rungs[1], rungs, {**lines, "b": lines["a"]})
        self.assertEqual(counters, {"--c 1": ["blocks"]})
        entry = {"source_hash": "12", "counted": {"--c 1": {"blocks": 8}}}
        self.assertFalse(expect.is_stale(entry, "12", counters))
        self.assertTrue(expect.is_stale(entry, "13", counters))
        self.assertTrue(expect.is_stale(None, "12", counters))
        self.assertTrue(expect.is_stale(entry, "12", {"--c 1": ["blocks", "races"]}))
        self.assertTrue(expect.is_stale(entry, "12", {"--c 2": ["blocks"]}))
        self.assertFalse(expect.is_stale({"source_hash": "12", "counted": {"--c 1": None}}, "12", counters))

    def test_a_wrong_prediction_is_told(self):
        lines = read("/// @expect blocks 8", "/// @expect races 0")
        text, all_met = check_expect.compared(lines, {"counted": {lines[0].problem: {"blocks": 9, "races": 0}}})
        self.assertFalse(all_met)
        self.assertIn("9 was counted on " + lines[0].problem, text[0])
        self.assertIn("as counted", text[1])


class Rungs(unittest.TestCase):
    def test_the_first_rungs_of_ladders_count_what_they_predict(self):
        """One ladder of each family; with CONVLADDER_INSPECT_ALL=1, all."""
        first = {}
        for rung in extract.table_of(BUILD):
            if rung["backend"] == "cuda" and (EVERYTHING or rung["ladder"] in ("gemm", "rulebook", "sparse_conv")):
                first.setdefault(rung["ladder"], rung["rung"])
        self.assertTrue(first)
        options = [word for rung in first.values() for word in ("--rung", rung)]
        done = subprocess.run([sys.executable, "-B", ROOT / "tools/inspect/check_expect.py", *options, BUILD],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        for rung in first.values():
            self.assertIn(rung + "\n", done.stdout)


if __name__ == "__main__":
    unittest.main()
