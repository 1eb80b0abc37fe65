"""Runs the program `convladder` and looks at what it left behind."""
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import numpy as np

PROGRAM = os.environ.get("CONVLADDER_PROGRAM", "convladder")
HAS_GPU = shutil.which("nvidia-smi") is not None and subprocess.run(
    ["nvidia-smi", "-L"], capture_output=True).stdout.startswith(b"GPU")

AGREE, DIFFER, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130

LADDERS = [
    "conv2d", "conv2d_dgrad", "conv2d_wgrad", "im2col", "col2im",
    "gemm",
    "tile_map",
    "rulebook",
    "sparse_conv", "sparse_dgrad", "sparse_wgrad", "sparse_max_pool", "sparse_max_pool_dgrad", "sparse_avg_pool",
    "sparse_global_pool", "sparse_to_dense",
    "voxelize",
    "fft",
]
SMALL_GEMM = ["gemm", "--m", "5", "--n", "6", "--k", "7"]


def run(*arguments, env=None, cwd=None, timeout=120):
    environment = {name: value for name, value in os.environ.items()
                   if name != "CONVLADDER_REQUIRE_GPU"}
    environment.update(env or {})
    return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True,
                          env=environment, cwd=cwd, timeout=timeout)


def integers(rng, *shape):
    """Small integers, whose sums float32 holds exactly, as float32."""
    return rng.integers(-4, 5, size=shape).astype(np.float32)


class ProgramTest(unittest.TestCase):
    """A test with a folder of its own."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="convladder-test-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.rng = np.random.default_rng(7)

    def write(self, name, array):
        path = self.folder / name
        np.save(path, array)
        return path

    def agree(self, *arguments, **options):
        """The program agrees with itself, and has nothing to complain about."""
        result = run(*arguments, **options)
        self.assertEqual(result.returncode, AGREE,
                         f"{arguments}\n{result.stdout}\n{result.stderr}")
        return result

    def save(self, *arguments, **options):
        """Runs `compare` with --save and --json; returns the folder and what the JSON file says."""
        out = self.folder / "out"
        result = self.agree("compare", *arguments, "--save", out, "--json", self.folder / "out.json",
                            **options)
        return out, self.load_json(self.folder / "out.json"), result

    def load_json(self, path):
        def refuse(constant):
            raise AssertionError(f"{constant} is no JSON")
        return json.loads(pathlib.Path(path).read_text(encoding="utf-8"), parse_constant=refuse)

    def check_saved(self, ladder, out, report, expected):
        """Every rung that ran has saved `expected` (name -> array), to the bit, and no other array;
        the others nothing."""
        rows = [row for entry in report["ladders"] for row in entry["rungs"]]
        ran = 0
        for row in rows:
            place = out / ladder / row["rung"].replace("/", ".") / row["where"]
            if row["status"] != "agrees":
                self.assertIn(row["status"], ("declined", "skipped"), row)
                self.assertFalse(list(place.glob("*.npy")), f"{place} was not to be there")
                continue
            ran += 1
            self.assertEqual(sorted(path.stem for path in place.glob("*.npy")), sorted(expected))
            for name, array in expected.items():
                found = np.load(place / f"{name}.npy", allow_pickle=False)
                integer = np.issubdtype(array.dtype, np.integer)
                self.assertEqual(found.dtype, np.int32 if integer else np.float32, place)
                self.assertEqual(found.shape, array.shape, f"{place}/{name}")
                np.testing.assert_array_equal(found.astype(np.float64), array, f"{place}/{name}")
        self.assertGreater(ran, 0)
        return ran

    def bad_input(self, *arguments, says=(), env=None):
        """Refused with one clear line (a second may name the nearest word), and nothing written."""
        before = sorted(self.folder.rglob("*"))
        result = run(*arguments, env=env)
        message = f"{arguments}: exit {result.returncode}\n{result.stdout}\n{result.stderr}"
        self.assertEqual(result.returncode, BAD_INPUT, message)
        lines = result.stderr.splitlines()
        self.assertIn(len(lines), (1, 2), message)
        self.assertGreater(len(lines[0]), 10, message)
        if len(lines) == 2:
            self.assertIn("nearest", lines[1], message)
        for part in says:
            self.assertIn(part, result.stderr, message)
        self.assertNotIn("\x1b", result.stderr, "colours in a pipe")
        self.assertEqual(result.stdout, "", "something was printed before the error")
        self.assertNotRegex(lines[0].partition(": ")[2].partition(": ")[0], r" = [^,(]* = ", "a parameter has one value")
        self.assertEqual(sorted(self.folder.rglob("*")), before, "something was written")
        return result
