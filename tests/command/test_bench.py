"""End-to-end tests of the command `convladder`: `bench`, on a GPU and without one.

    CONVLADDER_PROGRAM=$PWD/build/cpu/command/convladder python3 -B tests/command/test_bench.py [CLASS]

CTest runs each class as a test of its own.
"""
import json
import pathlib
import subprocess
import sys
import unittest

import numpy as np

from pictures import png_size
from program import DIFFER, HAS_GPU, ProgramTest, run


class Bench(ProgramTest):
    """`bench` measures on a GPU; elsewhere it shows the newest committed run."""

    KEYS = ["gpu", "driver", "toolkit", "cudnn", "spconv", "date", "commit", "ceilings", "rows"]
    ROW_KEYS = ["ladder", "rung", "source_hash", "problem", "dtype", "layout", "l2", "median_us",
                "spread_us", "host_us", "tflops", "roofline", "bytes", "launches", "host_syncs",
                "registers", "shared_bytes", "spills", "occupancy", "baselines", "limits"]
    RESULTS = pathlib.Path(__file__).resolve().parents[2] / "benchmarks" / "results"

    def check_run(self, run):
        self.assertEqual(list(run), self.KEYS)
        for row in run["rows"]:
            self.assertEqual([key for key in row if key != "memory_bytes"], self.ROW_KEYS)
            self.assertGreater(row["median_us"], 0)
            self.assertIn(row["l2"], ("warm", "cold"))
            self.assertIn(row["dtype"], ("fp32", "tf32", "fp16", "bf16", "fp8", "int32"))

    @unittest.skipIf(HAS_GPU, "there is a GPU")
    def test_without_a_gpu_the_committed_run(self):
        result = self.agree("bench")
        self.assertTrue(result.stdout.startswith("No GPU"), result.stdout)
        self.assertEqual(result.stderr, "")
        committed = sorted(self.RESULTS.glob("*.json"))
        if not committed:
            self.assertIn("No run has been committed yet", result.stdout)
            return
        runs = [self.load_json(path) for path in committed]
        for measured in runs:
            self.check_run(measured)
        newest = max(runs, key=lambda run: run["date"])
        self.assertIn(newest["gpu"], result.stdout)
        self.assertIn(newest["date"], result.stdout)
        for ladder, drawn in (("gemm", "dense"), ("sparse_conv", "sparse"), ("rulebook", None)):
            with self.subTest(ladder=ladder):
                row = next(row for row in newest["rows"] if row["ladder"] == ladder)
                part = self.agree("bench", ladder, "--problem", row["problem"], "--json",
                                  self.folder / f"{ladder}.json")
                self.assertIn(row["rung"], part.stdout)
                shown = self.load_json(self.folder / f"{ladder}.json")
                self.check_run(shown)
                self.assertEqual({(ladder, row["problem"])},
                                 {(other["ladder"], other["problem"]) for other in shown["rows"]})
                for kind, ending in (("dense", "roofline.png"), ("sparse", "sparse_roofline.png")):
                    picture = self.folder / f"{ladder}.{ending}"
                    self.assertEqual(picture.exists(), kind == drawn)
                    if kind == drawn:
                        self.assertGreater(min(png_size(picture.read_bytes())), 0)

    @unittest.skipIf(HAS_GPU, "there is a GPU")
    def test_without_a_gpu_an_earlier_file_stays(self):
        path = self.folder / "run.json"
        path.write_text("{}")
        result = run("bench", "gemm", "--json", path)
        self.assertEqual(result.returncode, 2)
        self.assertEqual(path.read_text(), "{}")

    @unittest.skipIf(HAS_GPU, "there is a GPU")
    def test_a_gpu_that_must_be_there(self):
        result = run("bench", "gemm", env={"CONVLADDER_REQUIRE_GPU": "1"})
        self.assertEqual(result.returncode, DIFFER, result.stderr)
        self.assertEqual(len(result.stderr.splitlines()), 1)

    def test_unknown_words_name_the_nearest(self):
        for arguments, nearest in ((["conv2d", "--problem", "b4"], "B4"),
                                   (["gemm", "--problem", "cube4096"], "cube-4096"),
                                   (["--problem", "B99"], "B9"),
                                   (["gemm", "--rung", "tild"], "cuda_optimized/gemm/tiled"),
                                   (["tile_map"], "col2im"),
                                   (["conv2"], "conv2d")):
            with self.subTest(arguments=arguments):
                result = run("bench", *arguments)
                self.assertEqual(result.returncode, 2, result.stdout)
                lines = result.stderr.splitlines()
                self.assertEqual(len(lines), 2, result.stderr)
                self.assertEqual(lines[1], f"nearest: {nearest}")

    def test_sites_for_other_programs(self):
        folder = self.folder / "sites"
        self.agree("bench", "--problem", "cube-10-subm3-table", "--problem", "shell-64-subm3-table",
                   "--export-sites", folder)
        self.assertEqual(sorted(path.name for path in folder.iterdir()),
                         ["cube-10.npy", "problems.json", "shell-64.npy"])
        cube = np.load(folder / "cube-10.npy")
        self.assertEqual((cube.shape, cube.dtype), ((1000, 4), np.int32))
        shell, problem = self.load_json(folder / "problems.json")
        self.assertEqual({shell["id"], problem["id"]},
                         {"cube-10-subm3-table", "shell-64-subm3-table"})
        if problem["sites"] != "cube-10":
            problem = shell
        self.assertEqual((problem["shape"], problem["kernel"], problem["pad"]),
                         ([10] * 3, [3] * 3, [1] * 3))
        self.assertEqual((problem["mode"], problem["form"]), ("subm", "table"))
        self.assertEqual((problem["outputs"], problem["pairs"]), (1000, 28 ** 3))
        result = run("bench", "gemm", "--export-sites", folder)
        self.assertEqual(result.returncode, 2)

    def test_times_of_spconv_become_baselines(self):
        tool = self.RESULTS.parents[1] / "tools" / "benchmark_spconv.py"
        row = dict.fromkeys(self.ROW_KEYS, 0)
        row |= {"ladder": "rulebook", "problem": "sweep-subm3-table", "dtype": "int32", "l2": "warm",
                "baselines": {"spconv of before": 1.0}, "limits": {"copy": 2.0}}
        others = [row | {"l2": "cold"}, row | {"problem": "sweep-subm3-pairs"},
                  row | {"ladder": "sparse_dgrad", "problem": "sweep-64-subm3", "dtype": "fp16"}]
        keys = dict.fromkeys(self.KEYS, "") | {"gpu": "NVIDIA H200", "rows": [row, *others]}
        (self.folder / "run.json").write_text(json.dumps(keys))
        both = "spconv native, dgrad and wgrad"
        (self.folder / "times.json").write_text(json.dumps({
            "gpu": "NVIDIA H200", "spconv": "2.3.8", "rows": [
                {"ladder": "rulebook", "problem": "sweep-subm3-table", "dtype": "int32",
                 "times": {"spconv implicit_gemm": 60.0, "spconv implicit_gemm, host clock": 134.0}},
                {"ladder": "sparse_dgrad", "problem": "sweep-64-subm3", "dtype": "fp16",
                 "times": {both: 333.0}}]}))
        for _ in range(2):  # the second time changes nothing
            subprocess.run([sys.executable, tool, "add", self.folder / "times.json",
                            self.folder / "run.json"], check=True, stdout=subprocess.PIPE)
            run_now = self.load_json(self.folder / "run.json")
            self.assertEqual(list(run_now), self.KEYS)
            self.assertEqual(run_now["spconv"], "2.3.8")
            warm, cold, pairs, gradient = run_now["rows"]
            self.assertEqual(warm["baselines"], {"spconv implicit_gemm": 60.0,
                                                 "spconv implicit_gemm, host clock": 134.0})
            self.assertEqual(warm["limits"], {"copy": 2.0})
            self.assertEqual((cold["baselines"], pairs["baselines"]), ({}, {}))
            self.assertEqual(gradient["limits"], {"copy": 2.0, both: 333.0})

    def test_rungs_that_do_not_run_on_a_gpu(self):
        result = run("bench", "gemm", "--rung", "cpu_reference/*")
        self.assertEqual(result.returncode, 2)
        self.assertEqual(len(result.stderr.splitlines()), 1)

    @unittest.skipUnless(HAS_GPU, "there is no GPU")
    def test_a_run_and_going_on_with_it(self):
        path = self.folder / "run.json"
        arguments = ["bench", "gemm", "--problem", "cube-1024", "--json", path]
        self.agree(*arguments, "--rung", "cuda_naive/*")
        first = self.load_json(path)
        self.check_run(first)
        self.assertEqual({row["rung"] for row in first["rows"]}, {"cuda_naive/gemm/direct"})
        self.agree(*arguments)
        second = self.load_json(path)
        self.check_run(second)
        self.assertGreater(min(png_size((self.folder / "run.roofline.png").read_bytes())), 0)
        for row in first["rows"]:
            self.assertIn(row, second["rows"])
        self.assertGreater(len(second["rows"]), len(first["rows"]))


if __name__ == "__main__":
    unittest.main()
