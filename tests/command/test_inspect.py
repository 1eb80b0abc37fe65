"""Tests of ./ladder inspect: what it counts where the numbers are known, races, unwritten memory, bad input.

    BUILD=FOLDER python3 test_inspect.py

It speaks to the command alone, through its exit status and its files. With CONVLADDER_INSPECT_ALL=1, every CUDA rung
is looked at, which takes minutes: none may have a race or read unwritten memory.
"""
import json
import os
import pathlib
import resource
import signal
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools/extract"), str(ROOT / "tools/inspect")]
sys.dont_write_bytecode = True
import extract  # noqa: E402
import planted_races  # noqa: E402
import prepare  # noqa: E402
import race_lines  # noqa: E402

BUILD = pathlib.Path(os.environ["BUILD"])
TILED = "cuda_optimized/conv2d/direct/tiled"
# Whole tiles of 8 x 32 outputs, no padding.
WHOLE_TILES = "--n 1 --c 3 --h 66 --w 98 --k 4 --r 3 --s 3".split()
SMALL = "--n 1 --c 2 --h 18 --w 34 --k 2 --r 3 --s 3".split()
EVERYTHING = os.environ.get("CONVLADDER_INSPECT_ALL") == "1"


class Inspect(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.rungs = {rung["rung"]: rung for rung in extract.table_of(BUILD)}
        cls.kept = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.kept.name)

    @classmethod
    def tearDownClass(cls):
        cls.kept.cleanup()

    def run_it(self, rung, *options, source=None, **environment):
        """Its exit status, what it printed, and its JSON or None."""
        library = prepare.library_of(BUILD, self.rungs[rung], source)
        file = self.folder / "inspect.json"
        file.unlink(missing_ok=True)
        command = [BUILD / "command/convladder", "inspect", rung, *options, "--json", file]
        if source:
            command += ["--source", source]
        done = subprocess.run(command, capture_output=True, text=True,
                              env={**os.environ, "CONVLADDER_INSPECTED": str(library), **environment})
        return done.returncode, done.stdout + done.stderr, json.loads(file.read_text()) if file.exists() else None

    def changed(self, rung, find, replace):
        """A copy of the rung's file in which this is replaced; and the line where."""
        text = (ROOT / self.rungs[rung]["source"]).read_text()
        self.assertEqual(text.count(find), 1)
        file = self.folder / "changed.cu"
        file.write_text(text.replace(find, replace))
        return file, text[:text.index(find)].count("\n") + 1

    def test_loads_of_an_output_are_those_of_a_tile_with_its_halo(self):
        for size, filter_, tile in ((WHOLE_TILES, 3, 34 * 10), ("--n 1 --c 3 --h 69 --w 101 --k 4 --r 6 --s 6".split(), 6, 37 * 13)):
            status, _, seen = self.run_it(TILED, *size)
            self.assertEqual(status, 0)
            self.assertEqual(seen["schema"], "convladder-inspect-1")
            self.assertTrue(seen["agrees"])
            self.assertAlmostEqual(seen["per_output"]["loads"]["x"], 3 * tile / 256)
            self.assertEqual(seen["per_output"]["loads"]["weights"], 3 * filter_ * filter_)
            blocks = 3 * 8 * 4
            self.assertEqual(seen["blocks"], {"run": blocks, "counted": blocks})
            self.assertEqual(seen["barriers"], blocks * 3 * 2 * 8)  # channels, two each, warps
            self.assertEqual(seen["footprint"]["x"], (66 if filter_ == 3 else 69) * (98 if filter_ == 3 else 101) * 3 * 4)
            self.assertEqual([seen["races"], seen["unwritten"], seen["unwritten_unused"]], [[], [], []])

    def test_the_order_of_threads_and_the_number_of_workers_make_no_difference(self):
        expected = self.run_it(TILED, *SMALL)[2]
        for options, environment in ((("--thread-order", "reverse"), {}), (("--thread-order", "shuffled"), {}),
                                     ((), {"CUDA_ON_CPU_THREADS": "8"})):
            self.assertEqual(self.run_it(TILED, *SMALL, *options, **environment)[2], expected)

    def test_neighbours_in_a_row_are_stored_in_four_sectors_a_request(self):
        rung = "cuda_naive/conv2d/direct"
        options = "--n 1 --c 1 --h 34 --w 34 --k 1 --r 3 --s 3".split()
        seen = self.run_it(rung, *options)[2]
        stores = [site for kernel in seen["kernels"] for site in kernel["sites"]
                  if site["array"] == "y" and site["op"] == "store"]
        self.assertEqual(len(stores), 1)
        self.assertEqual(stores[0]["lanes"], 32 * 32)
        self.assertEqual(stores[0]["sectors"], 4 * stores[0]["requests"])
        self.assertEqual(stores[0]["file"], self.rungs[rung]["source"])

    def test_four_neighbours_in_a_row_of_a_tile_are_joined(self):
        _, text, seen = self.run_it("cuda_optimized/gemm/tiled", *"--m 32 --n 32 --k 32".split())
        loads = seen["kernels"][0]["totals"]["shared"]["load"]
        self.assertEqual([loads["requests"], loads["wavefronts"]], [32 * 64, 32 * 64])  # warps, numbers
        self.assertEqual(loads["joined"], {"requests": 32 * (8 + 32), "wavefronts": 32 * (8 * 2 + 32), "excess": 0})
        self.assertIn("joined", seen["kernels"][0]["sites"][0])
        self.assertIn("shared memory: a compiler that merges adjacent accesses turns 2112 requests into 1344, ", text)
        self.assertIsNone(seen["kernels"][0]["totals"]["global"]["load"]["joined"])

    def test_a_dropped_barrier_is_a_race_beside_it(self):
        barrier, loop = "__syncthreads();  // between these writes and the reads below\n", " " * 8 + "for (int r = 0; r < conv.R; ++r) {"
        source, _ = self.changed(TILED, barrier + loop, "\n" + loop + "  // <script>alert(1)</script>")
        lines = source.read_text().splitlines()
        ends = {next(i for i, line in enumerate(lines, 1) if part in line) for part in ("tile[i * columns", "sum += line[")}
        page = self.folder / "page.html"
        status, text, seen = self.run_it(TILED, *SMALL, "--html", page, source=source)
        self.assertEqual(status, 1)
        errors = [race for race in seen["races"] if race["severity"] == "error"]
        self.assertTrue(errors)
        self.assertIn("race, ", text)
        self.assertIn("has 17.0 of a warp's 32 lanes active on average", text)
        self.assertEqual(seen["source"], str(source))
        for race in errors:
            self.assertEqual(race["space"], "shared")
            self.assertIn(race["kind"], ("RAW", "WAR", "WAW"))
            self.assertEqual({race["first"]["line"], race["second"]["line"]}, ends)
            for end in ("first", "second"):
                self.assertEqual(race[end]["file"], str(source))
        self.is_one_file_that_asks_nobody(page.read_text())

    def is_one_file_that_asks_nobody(self, html):
        self.assertFalse("<script>alert" in html)
        self.assertTrue("&lt;script&gt;alert" in html)
        for word in ("http://", "https://", "src=", "@import", "url("):
            self.assertFalse(word in html, word)
        self.assertTrue("data-samples=" in html)

    def test_a_tile_without_its_last_row_is_read_where_nobody_wrote(self):
        source, _ = self.changed(TILED, "i < rows; i += blockDim.y", "i < rows - 1; i += blockDim.y")
        status, text, seen = self.run_it(TILED, *SMALL, source=source)
        self.assertEqual(status, 1)
        self.assertFalse(seen["agrees"])
        self.assertEqual({read["array"] for read in seen["unwritten"]}, {"dynamic shared memory"})
        self.assertIn("which no thread has written", text)

    @unittest.skipUnless(EVERYTHING, "CONVLADDER_INSPECT_ALL=1: planted bugs of synchronisation")
    def test_planted_bugs_of_synchronisation_are_races_as_recorded(self):
        done = subprocess.run([sys.executable, "-B", ROOT / "tools/inspect/planted_races.py", BUILD],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_recorded_races_are_told_beside_their_cause(self):
        said = json.loads(planted_races.RECORD.read_text())
        for bug in planted_races.bugs():
            lines = [race_lines.between(bug, said[bug.name][end]) for end in ("first", "second")]
            with self.subTest(bug.name, lines=lines):
                self.assertLessEqual(min(away for away in lines if away is not None), race_lines.NEAR)

    def test_an_asynchronous_copy_that_nobody_waits_for(self):
        rung = "cuda_optimized/gemm/cp_async"
        source, _ = self.changed(rung, "ptx::cp_async_wait_group<", "ptx::cp_async_wait_group<1 + ")
        status, _, seen = self.run_it(rung, *"--m 64 --n 64 --k 128".split(), source=source)
        self.assertEqual(status, 1)
        self.assertIn("RAW", {race["kind"] for race in seen["races"] if race["severity"] == "error"})

    def test_some_blocks_stand_for_all(self):
        whole = self.run_it(TILED, *WHOLE_TILES)[2]
        status, text, seen = self.run_it(TILED, *WHOLE_TILES, "--blocks", "8")
        self.assertEqual(status, 0)
        self.assertEqual(seen["blocks"], {"run": 96, "counted": 8})
        self.assertIn("8 of 96 blocks were counted", text)
        self.assertEqual(seen["per_output"], whole["per_output"])  # whole tiles are all alike
        self.assertEqual([seen["races"], seen["unwritten"]], [[], []])

    def test_too_many_events_are_sampled(self):
        whole = self.run_it(TILED, *WHOLE_TILES)[2]
        most = whole["events"] // 3
        status, text, seen = self.run_it(TILED, *WHOLE_TILES, CONVLADDER_MOST_EVENTS=str(most))
        self.assertEqual(status, 0)
        self.assertLess(seen["blocks"]["counted"], seen["blocks"]["run"])
        self.assertGreater(seen["blocks"]["counted"], 0)
        self.assertIn("blocks were counted, evenly spread", text)
        self.assertLessEqual(seen["events"], most)
        self.assertEqual(seen["per_output"], whole["per_output"])

    @unittest.skipUnless(EVERYTHING, "CONVLADDER_INSPECT_ALL=1: 25 million events")
    def test_twenty_million_events_are_counted(self):
        status, _, seen = self.run_it("cuda_naive/gemm/direct", *"--m 256 --n 256 --k 256".split())
        self.assertEqual(status, 0)
        self.assertLess(seen["blocks"]["counted"], seen["blocks"]["run"])
        self.assertLessEqual(seen["events"], 20_000_000)
        self.assertAlmostEqual(seen["per_output"]["loads"]["a"], 256, delta=2.56)
        self.assertLess(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, 2**20)  # KiB: 1 GiB, compilers too

    def test_a_trace_has_the_requests_that_are_counted(self):
        file = self.folder / "trace.json"
        status, _, seen = self.run_it(TILED, *SMALL, "--trace", str(file))
        self.assertEqual(status, 0)
        trace = json.loads(file.read_text())
        self.assertEqual([trace["schema"], trace["rung"], trace["races"]], ["convladder-trace-1", TILED, []])
        self.assertEqual(trace["arrays"]["x"]["extents"], [1, 2, 18, 34])
        self.assertEqual(len(trace["blocks"]), seen["blocks"]["counted"])
        counted = {(site["line"], site["op"], site["array"]): site["requests"] for site in seen["kernels"][0]["sites"]}
        traced, barriers = dict.fromkeys(counted, 0), 0
        warps = trace["kernels"][0]["block"][0] * trace["kernels"][0]["block"][1] // 32
        for block in trace["blocks"]:
            barriers += (block["intervals"] - 1) * warps
            for interval, warp, line, lanes, first, *_ in block["requests"]:
                line = trace["kernels"][0]["lines"][line]
                traced[line["line"], line["op"], line["array"]] += 1
                self.assertTrue(interval < block["intervals"] and warp < warps and 0 < lanes < 1 << 32)
                if line["array"] in trace["arrays"] and not isinstance(first, list):
                    self.assertLess(first, trace["arrays"][line["array"]]["bytes"])
        self.assertEqual(traced, counted)
        self.assertEqual(barriers, seen["barriers"])

    def test_bad_input_is_told_and_nothing_written(self):
        for words, what in ((["cuda_naive/conv2d/direkt"], "nearest: cuda_naive/conv2d/direct"),
                            (["cpu_reference/conv2d/direct"], "runs on the CPU"),
                            (["implicit_gemm"], "several rungs"),
                            ([TILED, "--blocks", "0"], "blocks = 0"),
                            ([TILED, *SMALL, "--source", "/nowhere.cu"], "/nowhere.cu")):
            file = self.folder / "bad.json"
            done = subprocess.run([BUILD / "command/convladder", "inspect", *words, "--json", file],
                                  capture_output=True, text=True,
                                  env={**os.environ, "CONVLADDER_INSPECTED": "/nowhere.so"})
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(what, done.stderr)
            self.assertFalse(file.exists())

    def test_an_interrupted_look_leaves_nothing(self):
        library = prepare.library_of(BUILD, self.rungs["cuda_naive/gemm/direct"], None)
        with tempfile.TemporaryDirectory() as folder:
            files = [pathlib.Path(folder) / name for name in ("seen.json", "seen.html", "seen.trace")]
            files[0].write_text("of an earlier run")
            options = [word for name, file in zip(("--json", "--html", "--trace"), files) for word in (name, file)]
            command = [BUILD / "command/convladder", "inspect", "cuda_naive/gemm/direct",
                       *"--m 256 --n 256 --k 256".split(), *options]
            running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder,
                                       env={**os.environ, "CONVLADDER_INSPECTED": str(library), "TMPDIR": folder})
            time.sleep(1)  # of several: it counts
            self.assertIsNone(running.poll(), "it has ended before it could be interrupted")
            running.send_signal(signal.SIGINT)
            out, errors = running.communicate(timeout=20)
            self.assertEqual([running.returncode, out], [130, ""])
            self.assertIn("interrupted", errors)
            self.assertEqual(files[0].read_text(), "of an earlier run")
            self.assertEqual([path.name for path in pathlib.Path(folder).iterdir()], ["seen.json"])

    def test_no_rung_has_a_race_or_depends_on_what_nobody_wrote(self):
        sample = ("cuda_optimized/gemm/tiled", "cuda_optimized/rulebook/submanifold/hash_table", "cuda_optimized/conv2d/direct/float4")
        for name, rung in self.rungs.items():
            if rung["backend"] != "cuda" or not (EVERYTHING or name in sample):
                continue
            with self.subTest(rung=name):
                taken = 0
                for problem in extract.examples_of(rung["ladder"]):
                    status, text, seen = self.run_it(name, *problem)
                    if status == 2:
                        continue
                    taken += 1
                    self.assertEqual(status, 0, text)
                    self.assertEqual([race for race in seen["races"] if race["severity"] == "error"], [])
                    self.assertTrue(seen["kernels"])
                self.assertGreater(taken, 0)


if __name__ == "__main__":
    unittest.main()
