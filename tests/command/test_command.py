"""End-to-end tests of the command `convladder`: exit codes, JSON, saved files, bad input.

    CONVLADDER_PROGRAM=build/command/convladder python3 test_command.py [CLASS]

CTest runs each class as a test of its own.
"""
import io
import json
import os
import pathlib
import signal
import struct
import subprocess
import sys
import time
import unittest
import zlib

import numpy as np

import numpy_reference as reference
from program import (AGREE, DIFFER, HAS_GPU, INTERRUPTED, PROGRAM, ProgramTest, integers, run)
from sparse_problems import SparseTest, sites

LADDERS = ["conv2d", "conv2d_dgrad", "conv2d_wgrad", "im2col", "col2im", "gemm", "tile_map", "rulebook",
           "sparse_conv", "sparse_dgrad", "sparse_wgrad", "sparse_max_pool", "sparse_max_pool_dgrad",
           "sparse_to_dense"]
MAPS = ["row_major", "identity1", "identity2", "identity4", "identity8", "horizontal", "grouped",
        "hilbert", "split_k", "batched", "stream_k"]
SMALL_GEMM = ["gemm", "--m", "5", "--n", "6", "--k", "7"]


def png_bytes(image, mangle=None):
    """An 8-bit PNG: image [h][w] grey or [h][w][3]."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    height, width = image.shape[:2]
    colour = 0 if image.ndim == 2 else 2
    rows = b"".join(b"\0" + image[row].tobytes() for row in range(height))
    return (b"\x89PNG\r\n\x1a\n"
            + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, colour, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def png_size(data):
    assert data[:8] == b"\x89PNG\r\n\x1a\n" and data[12:16] == b"IHDR"
    return struct.unpack(">II", data[16:24])


class ExitStatus(ProgramTest):
    def test_help_is_success(self):
        for arguments in ([], ["--help"], ["help"], ["compare", "--help"], ["list", "--help"]):
            result = self.agree(*arguments)
            self.assertIn("./ladder", result.stdout)
            self.assertEqual(result.stderr, "")

    def test_agreement_is_success(self):
        result = self.agree("compare", *SMALL_GEMM)
        self.assertIn("cpu_reference/gemm/triple_loop", result.stdout)

    def test_a_failed_build_is_a_failed_set_up(self):
        libraries = pathlib.Path(PROGRAM).parent.parent / "lib"
        if not list(libraries.glob("librungs_*")):
            self.skipTest("this program is linked with all rungs")
        (self.folder / "failed").touch()
        result = run("compare", *SMALL_GEMM, env={"CONVLADDER_BUILD": str(self.folder)})
        self.assertEqual(result.returncode, 3)
        self.assertIn("the build failed", result.stderr)

    def test_a_gpu_that_must_be_there(self):
        if HAS_GPU:
            self.skipTest("there is a GPU")
        result = run("compare", *SMALL_GEMM, env={"CONVLADDER_REQUIRE_GPU": "1"})
        self.assertEqual(result.returncode, DIFFER, result.stderr)
        self.assertEqual(len(result.stderr.splitlines()), 1)
        for value in ("0", ""):
            self.agree("compare", *SMALL_GEMM, env={"CONVLADDER_REQUIRE_GPU": value})
        # Nobody asked for the GPU here.
        self.agree("compare", *SMALL_GEMM, "--backend", "cpu", env={"CONVLADDER_REQUIRE_GPU": "1"})

    def test_plain_lines_in_a_pipe(self):
        result = self.agree("compare", *SMALL_GEMM)
        self.assertNotIn("\x1b", result.stdout + result.stderr)
        self.assertNotIn("\r", result.stdout + result.stderr)


class ListJson(ProgramTest):
    KEYS = ["ladder", "rung", "backend", "idea", "previous", "source", "deterministic"]

    def rungs(self, *arguments):
        path = self.folder / "list.json"
        self.agree("list", *arguments, "--json", path)
        return self.load_json(path)

    def test_schema(self):
        rungs = self.rungs()
        names = set()
        for rung in rungs:
            self.assertEqual(list(rung), self.KEYS)
            self.assertIn(rung["ladder"], LADDERS)
            self.assertIn(rung["backend"], ("cpu", "cuda"))
            self.assertIsInstance(rung["deterministic"], bool)
            self.assertEqual(rung["source"].rsplit(".", 1)[0], rung["rung"])
            self.assertEqual(rung["source"].endswith(".cu"), rung["backend"] == "cuda")
            self.assertTrue(rung["idea"])
            if rung["previous"]:
                self.assertIn(rung["previous"], names, "a rung stands above the one before it")
            self.assertNotIn(rung["rung"], names)
            names.add(rung["rung"])
        self.assertEqual(sorted({rung["ladder"] for rung in rungs}), sorted(LADDERS))
        root = pathlib.Path(__file__).resolve().parents[2]
        for rung in rungs:
            self.assertTrue((root / rung["source"]).is_file(), rung["source"])

    def test_one_ladder(self):
        for ladder in LADDERS:
            rungs = self.rungs("--ladder", ladder)
            self.assertTrue(rungs)
            self.assertEqual({rung["ladder"] for rung in rungs}, {ladder})

    def test_all_rungs_are_printed(self):
        printed = self.agree("list").stdout
        for rung in self.rungs():
            self.assertIn(rung["rung"], printed)


class CompareJson(ProgramTest):
    ROW = ["rung", "where", "status", "reason", "exact", "max_error", "milliseconds"]

    def check(self, report, ladder):
        self.assertEqual(list(report), ["gpu", "ladders"])
        self.assertTrue(report["gpu"] is None or isinstance(report["gpu"], str))
        self.assertEqual(report["gpu"] is not None, HAS_GPU)
        self.assertEqual([entry["ladder"] for entry in report["ladders"]], [ladder])
        for entry in report["ladders"]:
            self.assertEqual(list(entry), ["ladder", "problem", "rungs"])
            for row in entry["rungs"]:
                self.assertEqual(list(row), self.ROW)
                self.assertIn(row["where"], ("cpu", "emulated", "gpu"))
                self.assertIn(row["status"], ("agrees", "differs", "declined", "skipped"))
                self.assertIsInstance(row["reason"], str)
                if row["status"] == "agrees":
                    self.assertIsInstance(row["exact"], bool)
                    self.assertGreaterEqual(row["max_error"], 0)
                    self.assertGreaterEqual(row["milliseconds"], 0)
                elif row["status"] in ("declined", "skipped"):
                    self.assertTrue(row["reason"])
                    for name in ("exact", "max_error", "milliseconds"):
                        self.assertIsNone(row[name])
        return [(row["rung"], row["where"]) for row in report["ladders"][0]["rungs"]]

    def test_schema_and_one_row_for_each_rung_and_place(self):
        rungs_path = self.folder / "rungs.json"
        self.agree("list", "--json", rungs_path)
        rungs = self.load_json(rungs_path)
        problems = {"conv2d": ["--c", 2, "--h", 6, "--w", 7, "--k", 2],
                    "conv2d_dgrad": ["--c", 2, "--h", 6, "--w", 7, "--k", 2],
                    "conv2d_wgrad": ["--c", 2, "--h", 6, "--w", 7, "--k", 2],
                    "im2col": ["--size", "6,7"], "col2im": ["--size", "6,7"],
                    "gemm": ["--m", 5, "--n", 6, "--k", 7],
                    "tile_map": ["--tiles", "4,3", "--map", "hilbert"],
                    "rulebook": ["--shape", "5,6,7"],
                    "sparse_conv": ["--shape", "5,6,7", "--cin", 3, "--cout", 2],
                    "sparse_dgrad": ["--shape", "5,6,7", "--cin", 3, "--cout", 2],
                    "sparse_wgrad": ["--shape", "5,6,7", "--cin", 3, "--cout", 2],
                    "sparse_max_pool": ["--shape", "5,6,7", "--cin", 3],
                    "sparse_max_pool_dgrad": ["--shape", "5,6,7", "--cin", 3],
                    "sparse_to_dense": ["--shape", "5,6,7", "--cin", 3]}
        self.assertEqual(sorted(problems), sorted(LADDERS))
        for ladder, problem in problems.items():
            path = self.folder / f"{ladder}.json"
            self.agree("compare", ladder, *problem, "--json", path)
            found = self.check(self.load_json(path), ladder)
            expected = [(rung["rung"], where) for rung in rungs if rung["ladder"] == ladder
                        for where in (("cpu",) if rung["backend"] == "cpu" else ("emulated", "gpu"))]
            self.assertEqual(sorted(found), sorted(expected))

    def test_integer_data_are_exact_and_real_data_are_not(self):
        for data, exact in (("integer", True), ("real", False)):
            path = self.folder / f"{data}.json"
            self.agree("compare", "conv2d", "--data", data, "--backend", "cpu", "--json", path)
            rows = self.load_json(path)["ladders"][0]["rungs"]
            self.assertTrue(rows)
            for row in rows:
                self.assertEqual(row["status"], "agrees")
                self.assertEqual(row["exact"], exact, row)
                self.assertEqual(row["max_error"] == 0, exact)

    def test_backends_and_rungs_select_rows(self):
        path = self.folder / "out.json"
        self.agree("compare", *SMALL_GEMM, "--backend", "cpu", "--json", path)
        self.assertEqual({where for _, where in self.check(self.load_json(path), "gemm")}, {"cpu"})
        self.agree("compare", *SMALL_GEMM, "--backend", "cpu", "--backend", "emulated", "--json", path)
        self.assertEqual({where for _, where in self.check(self.load_json(path), "gemm")},
                         {"cpu", "emulated"})
        self.agree("compare", *SMALL_GEMM, "--rung", "cuda_naive/*", "--rung", "*/triple_loop",
                   "--backend", "cpu", "--backend", "emulated", "--json", path)
        self.assertEqual({rung for rung, _ in self.check(self.load_json(path), "gemm")},
                         {"cuda_naive/gemm/direct", "cpu_reference/gemm/triple_loop"})

    def test_without_a_gpu_its_rows_are_skipped(self):
        if HAS_GPU:
            self.skipTest("there is a GPU")
        path = self.folder / "out.json"
        self.agree("compare", *SMALL_GEMM, "--json", path)
        gpu_rows = [row for row in self.load_json(path)["ladders"][0]["rungs"] if row["where"] == "gpu"]
        self.assertTrue(gpu_rows)
        for row in gpu_rows:
            self.assertEqual(row["status"], "skipped")

    def test_the_same_seed_gives_the_same_data(self):
        saved = []
        for i, seed in enumerate((1, 1, 2)):
            out = self.folder / str(i)
            self.agree("compare", "gemm", "--seed", seed, "--backend", "cpu", "--rung", "*/triple_loop",
                       "--save", out)
            saved.append((out / "gemm/cpu_reference.gemm.triple_loop/cpu/c.npy").read_bytes())
        self.assertEqual(saved[0], saved[1])
        self.assertNotEqual(saved[0], saved[2])


class Conv2dFiles(ProgramTest):
    """y, dx, dw and db, saved by every rung, against NumPy."""

    # n, c, h, w, k, r, s, --pad, its meaning, stride, dilation, groups, bias
    CASES = [
        (1, 1, 1, 1, 1, 1, 1, None, ((0, 0), (0, 0)), (1, 1), (1, 1), 1, False),
        (2, 3, 9, 7, 4, 3, 3, "1", ((1, 1), (1, 1)), (1, 1), (1, 1), 1, True),
        (2, 3, 9, 12, 4, 3, 2, "2,1", ((2, 2), (1, 1)), (2, 1), (1, 2), 1, True),
        (1, 2, 8, 9, 3, 2, 2, "0,1,2,0", ((0, 1), (2, 0)), (1, 3), (1, 1), 1, False),
        (2, 6, 10, 11, 9, 3, 3, "1", ((1, 1), (1, 1)), (2, 2), (2, 2), 3, True),
        (1, 5, 7, 33, 5, 3, 5, "1,2", ((1, 1), (2, 2)), (1, 1), (1, 1), 5, True),
        (1, 2, 9, 9, 3, 1, 1, None, ((0, 0), (0, 0)), (4, 4), (1, 1), 1, False),
        (1, 1, 3, 3, 2, 3, 3, "6", ((6, 6), (6, 6)), (1, 1), (1, 1), 1, True),
        (0, 3, 8, 8, 4, 3, 3, "1", ((1, 1), (1, 1)), (1, 1), (1, 1), 1, True),
    ]

    @staticmethod
    def steps(pad, stride, dilation, groups):
        words = [] if pad is None else ["--pad", pad]
        if stride != (1, 1):
            words += ["--stride", f"{stride[0]},{stride[1]}"]
        if dilation != (1, 1):
            words += ["--dilation", f"{dilation[0]},{dilation[1]}"]
        return words + (["--groups", groups] if groups != 1 else [])

    def test_forward(self):
        for case in self.CASES:
            n, c, h, w, k, r, s, pad, pads, stride, dilation, groups, bias = case
            with self.subTest(case=case):
                x = integers(self.rng, n, c, h, w)
                weights = integers(self.rng, k, c // groups, r, s)
                b = integers(self.rng, k) if bias else None
                words = ["--x", self.write("x.npy", x), "--weights", self.write("w.npy", weights)]
                if bias:
                    words += ["--bias", self.write("b.npy", b)]
                out, report, _ = self.save("conv2d", *words, *self.steps(pad, stride, dilation, groups))
                y = reference.conv2d(x, weights, b, pads, stride, dilation, groups)
                ran = self.check_saved("conv2d", out, report, {"y": y})
                self.assertGreaterEqual(ran, 8)

    def test_relu(self):
        for case in self.CASES:
            n, c, h, w, k, r, s, pad, pads, stride, dilation, groups, bias = case
            with self.subTest(case=case):
                x = integers(self.rng, n, c, h, w)
                weights = integers(self.rng, k, c // groups, r, s)
                b = integers(self.rng, k) if bias else None
                words = ["--x", self.write("x.npy", x), "--weights", self.write("w.npy", weights),
                         "--activation", "relu"]
                if bias:
                    words += ["--bias", self.write("b.npy", b)]
                out, report, _ = self.save("conv2d", *words, *self.steps(pad, stride, dilation, groups))
                y = reference.conv2d(x, weights, b, pads, stride, dilation, groups)
                ran = self.check_saved("conv2d", out, report, {"y": np.maximum(y, 0)})
                self.assertGreaterEqual(ran, 8)

    def test_every_map(self):
        x, weights = integers(self.rng, 2, 4, 7, 9), integers(self.rng, 70, 2, 3, 3)
        y = reference.conv2d(x, weights, None, ((0, 0), (0, 0)), (1, 1), (1, 1), 2)
        for name in MAPS:
            with self.subTest(map=name):
                out, report, _ = self.save("conv2d", "--x", self.write("x.npy", x), "--weights",
                                           self.write("w.npy", weights), "--groups", "2", "--map", name)
                self.check_saved("conv2d", out, report, {"y": y})

    def test_input_gradient(self):
        for case in self.CASES:
            n, c, h, w, k, r, s, pad, pads, stride, dilation, groups, _ = case
            with self.subTest(case=case):
                p, q = reference.output_extents((h, w), (r, s), pads, stride, dilation)
                dy = integers(self.rng, n, k, p, q)
                weights = integers(self.rng, k, c // groups, r, s)
                out, report, _ = self.save(
                    "conv2d_dgrad", "--dy", self.write("dy.npy", dy), "--weights",
                    self.write("w.npy", weights), "--h", h, "--w", w,
                    *self.steps(pad, stride, dilation, groups))
                dx = reference.conv2d_dgrad(dy, weights, (h, w), pads, stride, dilation, groups)
                self.check_saved("conv2d_dgrad", out, report, {"dx": dx})

    def test_weight_gradient(self):
        for case in self.CASES:
            n, c, h, w, k, r, s, pad, pads, stride, dilation, groups, _ = case
            with self.subTest(case=case):
                p, q = reference.output_extents((h, w), (r, s), pads, stride, dilation)
                dy = integers(self.rng, n, k, p, q)
                x = integers(self.rng, n, c, h, w)
                out, report, _ = self.save(
                    "conv2d_wgrad", "--x", self.write("x.npy", x), "--dy", self.write("dy.npy", dy),
                    "--r", r, "--s", s, *self.steps(pad, stride, dilation, groups))
                dw, db = reference.conv2d_wgrad(x, dy, (r, s), pads, stride, dilation, groups)
                self.check_saved("conv2d_wgrad", out, report, {"dw": dw, "db": db})

    def test_real_numbers_are_close(self):
        x = self.rng.standard_normal((2, 5, 14, 13)).astype(np.float32)
        weights = self.rng.standard_normal((6, 5, 3, 3)).astype(np.float32)
        out, report, _ = self.save("conv2d", "--x", self.write("x.npy", x), "--weights",
                                   self.write("w.npy", weights), "--pad", 1)
        expected = reference.conv2d(x, weights, None, ((1, 1), (1, 1)))
        saved = list(out.rglob("y.npy"))
        self.assertGreaterEqual(len(saved), 8)
        for path in saved:
            np.testing.assert_allclose(np.load(path), expected, rtol=0, atol=2e-5, err_msg=str(path))

    def test_a_second_run_replaces_the_first(self):
        for value in (1.0, 2.0):
            x = np.full((1, 1, 4, 4), value, np.float32)
            out, report, _ = self.save("conv2d", "--x", self.write("x.npy", x), "--weights",
                                       self.write("w.npy", np.ones((1, 1, 2, 2), np.float32)))
            self.check_saved("conv2d", out, report, {"y": np.full((1, 1, 3, 3), 4 * value)})


class ColumnFiles(ProgramTest):
    """col and x of im2col and col2im, in one, two and three dimensions, with each request."""

    # size, kernel, pad, stride, dilation
    CASES = [
        ((11,), (1,), (0,), (3,), (1,)),
        ((20,), (4,), (2,), (2,), (3,)),
        ((9, 12), (3, 2), (1, 0), (2, 1), (1, 3)),
        ((7, 5), (1, 1), (0, 0), (1, 1), (1, 1)),
        ((5, 6, 7), (3, 3, 3), (0, 0, 0), (1, 1, 1), (1, 1, 1)),
        ((5, 6, 7), (2, 3, 1), (1, 0, 2), (2, 1, 3), (1, 2, 1)),
    ]

    @staticmethod
    def words(case):
        size, kernel, pad, stride, dilation = case
        def text(values):
            return ",".join(map(str, values))
        return ["--kernel", text(kernel), "--pad", text(pad), "--stride", text(stride), "--dilation",
                text(dilation)]

    @staticmethod
    def parameters(case):
        size, kernel, pad, stride, dilation = case
        return kernel, [(p, p) for p in pad], stride, dilation

    def test_im2col(self):
        for case in self.CASES:
            for request in ("write", "add", "none"):
                with self.subTest(case=case, request=request):
                    x = integers(self.rng, 2, 3, *case[0])
                    col = reference.im2col(x, *self.parameters(case))
                    into = integers(self.rng, *col.shape)
                    words = ["--x", self.write("x.npy", x), *self.words(case), "--request", request]
                    if request != "write":
                        words += ["--into", self.write("into.npy", into)]
                    out, report, _ = self.save("im2col", *words)
                    expected = {"write": col, "add": into + col, "none": into}[request]
                    self.check_saved("im2col", out, report, {"col": expected})

    def test_im2col_with_channels_innermost_in_memory(self):
        for case in self.CASES:
            with self.subTest(case=case):
                x = integers(self.rng, 2, 4, *case[0])
                col = reference.im2col(x, *self.parameters(case))
                out, report, _ = self.save("im2col", "--x", self.write("x.npy", x), *self.words(case),
                                           "--layout", "nhwc")
                # Files keep their order.
                ran = self.check_saved("im2col", out, report, {"col": col})
                self.assertGreaterEqual(ran, 2)

    def test_col2im(self):
        for case in self.CASES:
            for request in ("write", "add", "none"):
                with self.subTest(case=case, request=request):
                    size, kernel, pad, stride, dilation = case
                    windows = np.prod(reference.output_extents(size, *self.parameters(case)))
                    col = integers(self.rng, 2, 3 * int(np.prod(kernel)), int(windows))
                    x = reference.col2im(col, 3, size, *self.parameters(case))
                    into = integers(self.rng, 2, 3, *size)
                    words = ["--col", self.write("col.npy", col), "--c", 3, "--size",
                             ",".join(map(str, size)), *self.words(case), "--request", request]
                    if request != "write":
                        words += ["--into", self.write("into.npy", into)]
                    out, report, _ = self.save("col2im", *words)
                    expected = {"write": x, "add": into + x, "none": into}[request]
                    self.check_saved("col2im", out, report, {"x": expected})

    def test_one_number_counts_for_all_axes(self):
        x = integers(self.rng, 1, 2, 6, 7, 8)
        out, report, _ = self.save("im2col", "--x", self.write("x.npy", x), "--kernel", 2, "--pad", 1,
                                   "--stride", 2)
        col = reference.im2col(x, (2, 2, 2), [(1, 1)] * 3, (2, 2, 2), (1, 1, 1))
        self.check_saved("im2col", out, report, {"col": col})

    def test_an_empty_batch(self):
        x = np.zeros((0, 2, 5), np.float32)
        out, report, _ = self.save("im2col", "--x", self.write("x.npy", x), "--kernel", 2)
        self.check_saved("im2col", out, report, {"col": np.zeros((0, 4, 4))})


class GemmFiles(ProgramTest):
    def test_product(self):
        for m, n, k in ((1, 1, 1), (5, 7, 3), (33, 65, 17), (1, 40, 100)):
            with self.subTest(m=m, n=n, k=k):
                a, b = integers(self.rng, m, k), integers(self.rng, k, n)
                out, report, _ = self.save("gemm", "--a", self.write("a.npy", a), "--b",
                                           self.write("b.npy", b))
                self.check_saved("gemm", out, report, {"c": a.astype(np.float64) @ b})

    def test_every_map(self):
        a, b = integers(self.rng, 70, 9), integers(self.rng, 9, 100)
        for name in MAPS:
            with self.subTest(map=name):
                out, report, _ = self.save("gemm", "--a", self.write("a.npy", a), "--b",
                                           self.write("b.npy", b), "--map", name)
                self.check_saved("gemm", out, report, {"c": a.astype(np.float64) @ b})


class RulebookFiles(SparseTest):
    """pairs and out_coords, saved by every rung, against NumPy."""

    def test_every_mode_in_one_to_four_dimensions(self):
        for case in self.CASES:
            with self.subTest(case=case):
                words, _, (out_coords, pairs, _) = self.problem(case)
                out, report, _ = self.save("rulebook", *words)
                self.check_saved("rulebook", out, report, {"out_coords": out_coords, "pairs": pairs})

    def check(self, words, coords, shape, out_coords, pairs, **steps):
        """A case by hand: the program and the NumPy reference both give it."""
        coords, out_coords, pairs = (np.array(rows, np.int32) for rows in (coords, out_coords, pairs))
        found = reference.rulebook(coords, shape, **steps)
        np.testing.assert_array_equal(found[0], out_coords)
        np.testing.assert_array_equal(found[1], pairs)
        out, report, _ = self.save("rulebook", "--coords", self.write("coords.npy", coords), "--shape",
                                   ",".join(map(str, shape)), *words)
        self.check_saved("rulebook", out, report, {"out_coords": out_coords, "pairs": pairs})

    def test_cases_by_hand(self):
        # Three sites in a row of five, the first two neighbours; the rows are not in order.
        line = [[0, 4], [0, 1], [0, 0]]
        self.check([], line, (5,), line, [(0, 2, 1), (1, 0, 0), (1, 1, 1), (1, 2, 2), (2, 1, 2)])
        # Windows of two, side by side: sites 0 and 1 share output 0, site 4 has output 2.
        self.check(["--mode", "strided", "--kernel", 2, "--stride", 2], line, (6,), [[0, 0], [0, 2]],
                   [(0, 2, 0), (0, 0, 1), (1, 1, 0)], mode="strided", kernel=2, stride=2)
        self.check(["--mode", "inverse", "--kernel", 2, "--stride", 2], line, (6,), line,
                   [(0, 1, 0), (0, 0, 2), (1, 0, 1)], mode="inverse", kernel=2, stride=2)
        # Each site becomes two.
        self.check(["--mode", "transposed", "--kernel", 2, "--stride", 2], line[:2], (5,),
                   [[0, 2], [0, 3], [0, 8], [0, 9]],
                   [(0, 1, 0), (0, 0, 2), (1, 1, 1), (1, 0, 3)], mode="transposed", kernel=2, stride=2)
        # The same place in two samples of a batch never meets.
        both = [[3, 1, 1], [1, 1, 1], [1, 1, 2]]
        self.check([], both, (3, 3), both,
                   [(3, 1, 2), (4, 0, 0), (4, 1, 1), (4, 2, 2), (5, 2, 1)])

    def test_sites_without_outputs(self):
        # Every fifth place is looked at, and no site is there.
        coords = np.array([[0, 1], [0, 7]], np.int32)
        words = ["--coords", self.write("c.npy", coords), "--kernel", 1, "--stride", 5, "--cin", 3,
                 "--cout", 2]
        nothing = np.zeros((0, 3), np.int32)
        out, report, _ = self.save("rulebook", *words[:-4], "--mode", "strided")
        self.check_saved("rulebook", out, report, {"out_coords": nothing[:, :2], "pairs": nothing})
        out, report, _ = self.save("rulebook", *words[:-4], "--mode", "inverse")
        self.check_saved("rulebook", out, report, {"out_coords": coords, "pairs": nothing})
        for ladder, name, shape in (("sparse_conv", "y", (0, 2)), ("sparse_dgrad", "dx", (2, 3)),
                                    ("sparse_wgrad", "dw", (1, 3, 2))):
            out, report, _ = self.save(ladder, *words, "--mode", "strided")
            self.check_saved(ladder, out, report,
                             {name: np.zeros(shape), "out_coords": nothing[:, :2]})

    def test_shape_and_batch_are_taken_from_the_sites(self):
        coords = np.array([[0, 2, 3], [4, 1, 5]], np.int32)
        out, report, result = self.save("rulebook", "--coords", self.write("coords.npy", coords),
                                        "--mode", "strided", "--kernel", 2)
        out_coords, pairs, _ = reference.rulebook(coords, (3, 6), "strided", 2)
        self.check_saved("rulebook", out, report, {"out_coords": out_coords, "pairs": pairs})
        self.assertIn("3,6", result.stdout)
        self.assertIn("batch 5", result.stdout)
        # No sites: still a problem.
        empty = self.write("empty.npy", np.zeros((0, 3), np.int32))
        for mode in ("subm", "strided", "transposed", "inverse"):
            self.agree("compare", "rulebook", "--coords", empty, "--mode", mode)

    def test_orders_and_types_of_the_file(self):
        coords = sites(self.rng, (4, 5, 6), 2, 40)
        out_coords, pairs, _ = reference.rulebook(coords, (4, 5, 6))
        for array in (np.asfortranarray(coords), coords.astype(np.int64)):
            out, report, _ = self.save("rulebook", "--coords", self.write("coords.npy", array),
                                       "--shape", "4,5,6")
            self.check_saved("rulebook", out, report, {"out_coords": out_coords, "pairs": pairs})

    def test_the_example_and_the_kind_of_data(self):
        for words in ([], ["--mode", "strided"], ["--shape", "30"], ["--shape", "3,3,3,3"],
                      ["--batch", 3], ["--data", "real"], ["--data", "integer"], ["--stride", "1"],
                      ["--shape", "2,2"], ["--kernel", "3,5"]):
            _, report, _ = self.save("rulebook", *words)
            for row in report["ladders"][0]["rungs"]:
                self.assertIn(row["exact"], (True, None))


class SparseConvFiles(SparseTest):
    """y, dx and dw, saved by every rung, against NumPy."""

    def channels(self, case):
        index = self.CASES.index(case)
        return 1 + 3 * index % 7, 1 + 5 * index % 6

    def test_forward(self):
        for case in self.CASES:
            with self.subTest(case=case):
                words, _, (out_coords, pairs, inputs) = self.problem(case)
                cin, cout = self.channels(case)
                features = integers(self.rng, inputs, cin)
                weights = integers(self.rng, self.volume(case), cin, cout)
                out, report, _ = self.save(
                    "sparse_conv", *words, "--features", self.write("f.npy", features), "--weights",
                    self.write("w.npy", weights))
                y = reference.sparse_conv(features, weights, pairs, len(out_coords))
                self.check_saved("sparse_conv", out, report, {"y": y, "out_coords": out_coords})

    def test_input_gradient(self):
        for case in self.CASES:
            with self.subTest(case=case):
                words, _, (out_coords, pairs, inputs) = self.problem(case)
                cin, cout = self.channels(case)
                dy = integers(self.rng, len(out_coords), cout)
                weights = integers(self.rng, self.volume(case), cin, cout)
                out, report, _ = self.save("sparse_dgrad", *words, "--dy", self.write("dy.npy", dy),
                                           "--weights", self.write("w.npy", weights))
                dx = reference.sparse_dgrad(dy, weights, pairs, inputs)
                self.check_saved("sparse_dgrad", out, report, {"dx": dx, "out_coords": out_coords})

    def test_weight_gradient(self):
        for case in self.CASES:
            with self.subTest(case=case):
                words, _, (out_coords, pairs, inputs) = self.problem(case)
                cin, cout = self.channels(case)
                features = integers(self.rng, inputs, cin)
                dy = integers(self.rng, len(out_coords), cout)
                out, report, _ = self.save("sparse_wgrad", *words, "--features",
                                           self.write("f.npy", features), "--dy",
                                           self.write("dy.npy", dy))
                dw = reference.sparse_wgrad(features, dy, pairs, self.volume(case))
                self.check_saved("sparse_wgrad", out, report, {"dw": dw, "out_coords": out_coords})

    def test_what_is_not_given_is_made_up(self):
        for ladder in ("sparse_conv", "sparse_dgrad", "sparse_wgrad"):
            for words in ([], ["--cin", 5, "--cout", 3], ["--mode", "inverse", "--data", "real"],
                          ["--mode", "transposed", "--stride", 2]):
                self.agree("compare", ladder, *words)

    def test_real_numbers_are_close(self):
        coords = sites(self.rng, (6, 6, 6), 1, 80)
        _, pairs, _ = reference.rulebook(coords, (6, 6, 6))
        features = self.rng.standard_normal((80, 8)).astype(np.float32)
        weights = self.rng.standard_normal((27, 8, 4)).astype(np.float32)
        out, _, _ = self.save("sparse_conv", "--coords", self.write("c.npy", coords), "--features",
                              self.write("f.npy", features), "--weights", self.write("w.npy", weights))
        saved = list(out.rglob("y.npy"))
        self.assertTrue(saved)
        for path in saved:
            np.testing.assert_allclose(np.load(path),
                                       reference.sparse_conv(features, weights, pairs, 80), rtol=0,
                                       atol=2e-5, err_msg=str(path))


class Sweeps(SparseTest):
    """Sites from points, and from the simulated LiDAR."""

    RANGE = "-4,-2.5,-1,4.25,2.5,1"
    LOW, HIGH = (-4, -2.5, -1), (4.25, 2.5, 1)

    def points(self, count):
        """Points, a few outside, many of them two in a voxel or on a voxel's border."""
        points = self.rng.uniform((-4.5, -3, -1.2), (4.5, 3, 1.2), size=(count, 3))
        points[::5] = np.round(points[::5] * 4) / 4
        return points.astype(np.float32)

    def check(self, path, voxel, expected, shape, *words):
        out, report, result = self.save("rulebook", "--points", path, "--voxel", voxel, "--range",
                                        self.RANGE, *words)
        found = np.load(next(out.rglob("out_coords.npy")))
        np.testing.assert_array_equal(found, expected)
        out_coords, pairs, _ = reference.rulebook(expected, shape)
        self.check_saved("rulebook", out, report, {"out_coords": out_coords, "pairs": pairs})
        self.assertIn("x".join(map(str, shape)), result.stdout)
        return result.stdout

    def test_points(self):
        for voxel in (0.25, 0.1, 0.3, 3):
            points = self.points(400)
            expected, shape = reference.voxels(points, self.LOW, self.HIGH, voxel)
            four = np.concatenate([points, self.points(400)[:, :1]], axis=1)
            for path in (self.write("p3.npy", points), self.write("p4.npy", four)):
                with self.subTest(voxel=voxel, path=path.name):
                    said = self.check(path, voxel, expected, shape)
                    self.assertIn("outside", said)
                    self.assertIn(f"{len(expected)} voxels", said)
            path = self.folder / "sweep.bin"
            four[:, 3] = np.nan  # nobody reads the intensity
            path.write_bytes(four.astype("<f4").tobytes())
            with self.subTest(voxel=voxel, path=path.name):
                self.check(path, voxel, expected, shape)

    def test_no_points(self):
        path = self.folder / "none.bin"
        path.write_bytes(b"")
        self.check(path, 1, np.zeros((0, 4), np.int32), (2, 5, 9))

    def test_points_under_a_convolution(self):
        points = self.points(200)
        expected, _ = reference.voxels(points, self.LOW, self.HIGH, 0.25)
        out, _, _ = self.save("sparse_conv", "--points", self.write("p.npy", points), "--voxel", 0.25,
                              "--range", self.RANGE, "--cin", 4, "--cout", 3)
        np.testing.assert_array_equal(np.load(next(out.rglob("out_coords.npy"))), expected)

    def sweep(self, *words):
        out, _, _ = self.save("rulebook", "--lidar", *words, "--backend", "cpu", "--rung",
                              "*/hash_map")
        return np.load(next(out.rglob("out_coords.npy"))), np.load(next(out.rglob("pairs.npy")))

    def check_sites(self, coords):
        self.assertEqual(coords.dtype, np.int32)
        self.assertTrue(((coords >= 0) & (coords < (1, 80, 1600, 1600))).all())
        keys = np.ravel_multi_index(tuple(coords.T), (1, 80, 1600, 1600))
        self.assertTrue((np.diff(keys) > 0).all(), "ascending, each once")

    def test_lidar(self):
        coords, pairs = self.sweep()
        self.check_sites(coords)
        self.assertAlmostEqual(len(coords), 120000, delta=6000)
        self.assertAlmostEqual(len(pairs) / len(coords), 6.5, delta=0.5)
        for count in (1, 1000, 20000, 150000):
            coords, _ = self.sweep(count)
            self.check_sites(coords)
            self.assertEqual(len(coords), count)

    def test_the_seed_is_the_scene(self):
        first, again, other = (self.sweep(2000, "--seed", seed)[0] for seed in (1, 1, 2))
        np.testing.assert_array_equal(first, again)
        self.assertFalse(np.array_equal(first, other))

    def test_lidar_in_every_ladder(self):
        for ladder in ("sparse_conv", "sparse_dgrad", "sparse_wgrad"):
            result = self.agree("compare", ladder, "--lidar", 300, "--cin", 3, "--cout", 4, "--mode",
                                "strided", "--stride", 2, "--pad", 1)
            self.assertIn("300 sites", result.stdout)


class SparsePoolFiles(SparseTest):
    """Max pooling, its gradient and dense tensors, saved by every rung, against NumPy."""

    def test_forward_and_gradient(self):
        for number, case in enumerate(self.CASES):
            with self.subTest(case=case):
                words, _, (out_coords, pairs, inputs) = self.problem(case)
                channels = 1 + 3 * number % 7
                features = integers(self.rng, inputs, channels)
                path = self.write("f.npy", features)
                y, argmax = reference.sparse_max_pool(features, pairs, len(out_coords))
                out, report, _ = self.save("sparse_max_pool", *words, "--features", path)
                self.check_saved("sparse_max_pool", out, report,
                                 {"y": y, "argmax": argmax, "out_coords": out_coords})
                dy = integers(self.rng, len(out_coords), channels)
                out, report, _ = self.save("sparse_max_pool_dgrad", *words, "--features", path, "--dy",
                                           self.write("dy.npy", dy))
                dx = reference.sparse_max_pool_dgrad(dy, argmax, inputs)
                self.check_saved("sparse_max_pool_dgrad", out, report,
                                 {"dx": dx, "out_coords": out_coords})

    def test_to_dense(self):
        for shape, batch, count, channels in (((9,), 2, 5, 3), ((6, 7), 1, 30, 33),
                                              ((5, 6, 7), 3, 60, 4), ((3, 4, 3, 4), 1, 40, 1),
                                              ((4, 5), 2, 0, 2)):
            with self.subTest(shape=shape):
                coords = sites(self.rng, shape, batch, count)
                features = integers(self.rng, count, channels)
                out, report, _ = self.save(
                    "sparse_to_dense", "--coords", self.write("c.npy", coords), "--features",
                    self.write("f.npy", features), "--shape", ",".join(map(str, shape)), "--batch", batch,
                    "--cin", channels)
                x = reference.sparse_to_dense(features, coords, shape, batch)
                self.check_saved("sparse_to_dense", out, report, {"x": x})

    def test_what_is_not_given_is_made_up(self):
        for ladder in ("sparse_max_pool", "sparse_max_pool_dgrad"):
            for words in ([], ["--cin", 5], ["--mode", "inverse", "--data", "real"], ["--lidar", 300],
                          ["--mode", "strided", "--kernel", 2, "--stride", 2, "--seed", 3]):
                self.agree("compare", ladder, *words)
        for words in ([], ["--cin", 5], ["--shape", "40", "--data", "real"]):
            self.agree("compare", "sparse_to_dense", *words)

    def test_bad_input(self):
        coords = self.write("coords.npy", np.array([[0, 1, 1], [0, 2, 1], [0, 2, 2]], np.int32))
        twice = self.write("twice.npy", np.array([[0, 1, 1], [0, 1, 1]], np.int32))
        features = self.write("f.npy", np.zeros((4, 2), np.float32))
        dy = self.write("dy.npy", np.zeros((3, 3), np.float32))
        for ladder, words, says in (
                ("sparse_max_pool", ["--cin", 0], ["cin = 0"]),
                ("sparse_max_pool", ["--cout", 3], ["cout = 3", "sparse_max_pool"]),
                ("sparse_max_pool", ["--dtype", "fp16"], ["dtype = fp16"]),
                ("sparse_max_pool", ["--features", features], ["f.npy", "4 x 2"]),
                ("sparse_max_pool_dgrad", ["--features", features], ["f.npy", "4 x 2"]),
                ("sparse_max_pool_dgrad", ["--dy", dy, "--cin", 2], ["cin", "dy.npy"]),
                ("sparse_to_dense", ["--kernel", 3], ["kernel = 3", "sparse_to_dense"]),
                ("sparse_to_dense", ["--mode", "subm"], ["mode = subm", "sparse_to_dense"]),
                ("sparse_to_dense", ["--features", features], ["f.npy", "4 x 2"]),
                ("sparse_to_dense", ["--shape", "2,2"], ["coords", "outside"])):
            with self.subTest(ladder=ladder, words=words):
                self.bad_input("compare", ladder, "--coords", coords, *words, says=says)
        for ladder in ("sparse_max_pool", "sparse_max_pool_dgrad", "sparse_to_dense"):
            self.bad_input("compare", ladder, "--coords", twice, says=["repeat"])
        self.bad_input("compare", "sparse_to_dense", "--shape", "100000,100000,100", "--cin", 64,
                       says=["memory"])


class BadSparse(SparseTest):
    """Sparse problems that make no sense: each refused in a line that names the culprit."""

    def refuse(self, *words, says=(), ladder="rulebook"):
        with self.subTest(ladder=ladder, words=words):
            self.bad_input("compare", ladder, *words, "--save", self.folder / "out", "--json",
                           self.folder / "out.json", says=says)

    def test_parameters(self):
        for words, says in (
                (["--pad", 1], ["pad = 1", "subm"]),
                (["--mode", "subm", "--pad", 0], ["pad = 0", "subm"]),
                (["--kernel", 2], ["kernel = 2", "odd"]),
                (["--kernel", "3,4,3"], ["kernel = 4", "odd"]),
                (["--stride", 2], ["stride = 2"]),
                (["--out-padding", 1], ["out-padding = 1", "transposed"]),
                (["--mode", "transposed", "--stride", 2, "--out-padding", 2], ["out-padding = 2"]),
                (["--mode", "transposed", "--kernel", 1, "--shape", 1, "--pad", 3], ["pad = 3"]),
                (["--mode", "stridd"], ["stridd", "nearest", "strided"]),
                (["--mode", "strided", "--shape", "2,2", "--kernel", 3], ["does not fit"]),
                (["--shape", "1,2,3,4,5"], ["shape = 1,2,3,4,5", "5 axes"]),
                (["--shape", "3,0"], ["shape = 0"]), (["--shape", "3,-1"], ["shape = -1"]),
                (["--shape", "a"], ["shape", "a"]), (["--shape", "3000000,3000000,3000000"], ["2^63"]),
                (["--shape", "3,3", "--kernel", "3,3,3"], ["kernel = 3,3,3"]),
                (["--kernel", "1,1,1,1,1"], ["5"]),
                (["--kernel", 0], ["kernel = 0"]), (["--dilation", 0], ["dilation = 0"]),
                (["--mode", "strided", "--stride", 0], ["stride = 0"]),
                (["--mode", "strided", "--pad", -1], ["pad = -1"]),
                (["--batch", 0], ["batch = 0"]), (["--batch", "two"], ["two"]),
                (["--cin", 3], ["cin"]), (["--h", 3], ["h = 3", "rulebook"]),
                (["--features", "f.npy"], ["features"]), (["--size", 3], ["size"]),
                (["--kernel", 1291], []), (["--kernel", 1001], ["memory"]),
                (["--lidar", 0], ["lidar = 0"]), (["--lidar", "many"], ["many"]),
                (["--lidar", 100000000], ["lidar"]), (["--lidar", "--shape", "3,3,3"], ["shape"]),
                (["--voxel", 1], ["voxel", "points"]), (["--lidar", "--range", "0,0,0,1,1,1"],
                                                        ["range", "points"])):
            self.refuse(*words, says=says)
        for ladder, words, says in (
                ("sparse_conv", ["--cin", 0], ["cin = 0"]), ("sparse_conv", ["--cout", -1], ["cout"]),
                ("sparse_conv", ["--dy", "dy.npy"], ["dy"]), ("sparse_conv", ["--c", 3], ["c = 3"]),
                ("sparse_dgrad", ["--features", "f.npy"], ["features"]),
                ("sparse_wgrad", ["--weights", "w.npy"], ["weights"]),
                ("conv2d", ["--coords", "c.npy"], ["coords"]), ("gemm", ["--lidar"], ["lidar"])):
            self.refuse(*words, says=says, ladder=ladder)

    def coords(self, rows, dtype=np.int32):
        return self.write("coords.npy", np.array(rows, dtype))

    def test_sites(self):
        for rows, words, says in (
                ([[0, 1, 2], [0, 3, 4], [0, 1, 2], [0, 1, 2]], [], ["2 of 4", "row 2", "0,1,2"]),
                ([[0, 1, 2], [0, -3, 4], [0, 1, -2]], [], ["2 of 3", "row 1", "0,-3,4"]),
                ([[0, 1, 2], [0, 3, 9]], ["--shape", "9,9"], ["1 of 2", "row 1", "0,3,9"]),
                ([[0, 1, 2], [2, 3, 4]], ["--batch", 2], ["1 of 2", "row 1", "2,3,4"]),
                ([[-1, 1, 2]], [], ["1 of 1", "-1,1,2"]),
                ([[0, 2**31 - 1]], [], ["2147483647"]),
                ([[0, 1, 2]], ["--shape", "3"], ["shape = 3"]),
                ([[0, 1, 2]], ["--shape", "3,3,3"], ["shape = 3,3,3"]),
                ([[0]], [], ["coords.npy", "1 column"]), ([0, 1], [], ["coords.npy", "1 axis"]),
                ([[0, 1, 2, 3, 4, 5]], [], ["coords.npy", "6 columns"]),
                ([[[0, 1]]], [], ["coords.npy", "3 axes"])):
            self.refuse("--coords", self.coords(rows), *words, says=says)
            self.refuse("--coords", self.coords(rows), *words, says=says, ladder="sparse_conv")
        for dtype in (np.float32, np.float64):
            self.refuse("--coords", self.coords([[0, 1]], dtype),
                        says=["coords.npy", np.dtype(dtype).name, "int32"])
        self.refuse("--coords", self.coords([[0, 2**40]], np.int64), says=["coords.npy", "int32"])
        for dtype in (np.int16, np.uint32, np.bool_):
            self.refuse("--coords", self.coords([[0, 1]], dtype), says=["coords.npy"])
        self.refuse("--coords", self.folder / "none.npy", says=["none.npy"])
        self.refuse("--coords", self.coords([[0, 1]]), "--lidar", says=["coords", "lidar"])

    def test_arrays(self):
        coords = self.coords([[0, 1, 2], [0, 1, 3], [0, 4, 2]])
        def file(name, *shape, dtype=np.float32):
            return self.write(name + ".npy", np.zeros(shape, dtype))
        for ladder, words, says in (
                ("sparse_conv", ["--features", file("f", 2, 4)], ["f.npy", "2 x 4", "3 x 4"]),
                ("sparse_conv", ["--features", file("g", 3)], ["g.npy"]),
                ("sparse_conv", ["--features", file("h", 3, 4, dtype=np.int32)], ["h.npy", "int32"]),
                ("sparse_conv", ["--features", file("i", 3, 4), "--cin", 5], ["cin", "i.npy"]),
                ("sparse_conv", ["--features", file("j", 3, 4), "--weights", file("w", 9, 5, 2)],
                 ["cin", "w.npy", "j.npy"]),
                ("sparse_conv", ["--weights", file("v", 8, 4, 2)], ["v.npy", "9 taps"]),
                ("sparse_conv", ["--weights", file("u", 9, 4, 2), "--cout", 3], ["cout", "u.npy"]),
                ("sparse_conv", ["--features", file("z", 3, 0)], ["cin = 0"]),
                ("sparse_dgrad", ["--dy", file("dy", 4, 2)], ["dy.npy", "3 x 2"]),
                ("sparse_dgrad", ["--dy", file("dy2", 3, 2), "--weights", file("t", 9, 4, 3)],
                 ["cout", "dy2.npy"]),
                ("sparse_wgrad", ["--features", file("k", 3, 4), "--dy", file("dy3", 2, 4)],
                 ["dy3.npy"])):
            self.refuse("--coords", coords, *words, says=says, ladder=ladder)
        bad = self.write("nan.npy", np.full((3, 4), np.nan, np.float32))
        self.refuse("--coords", coords, "--features", bad, says=["nan.npy"], ladder="sparse_conv")

    def test_points(self):
        def points(rows, dtype=np.float32):
            return self.write("points.npy", np.array(rows, dtype))
        good, box = [[0.5, 0.5, 0.5]], ["--range", "0,0,0,1,1,1"]
        for rows, words, says in (
                (good, box, ["voxel"]), (good, ["--voxel", 1], ["range"]),
                (good, ["--voxel", 0, *box], ["voxel = 0"]),
                (good, ["--voxel", -1, *box], ["voxel = -1"]),
                (good, ["--voxel", "nan", *box], ["voxel = nan"]),
                (good, ["--voxel", "inf", *box], ["voxel = inf"]),
                (good, ["--voxel", "1e99", *box], ["voxel = 1e99"]),
                (good, ["--voxel", "x", *box], ["voxel = x"]),
                (good, ["--voxel", "1,2", *box], ["voxel = 1,2"]),
                (good, ["--voxel", "1e-30", *box], ["voxel"]),
                (good, ["--voxel", "1e-7", *box], ["2^63"]),
                (good, ["--voxel", 1, "--range", "0,0,0,1,1"], ["range = 0,0,0,1,1"]),
                (good, ["--voxel", 1, "--range", "0,0,2,1,1,1"], ["range", "z", "2 to 1"]),
                (good, ["--voxel", 1, "--range", "0,1,0,1,1,1"], ["range", "y"]),
                (good, ["--voxel", 1, "--range", "0,0,0,1,1,nan"], ["range"]),
                (good, ["--voxel", 1, "--range", "0,0,0,1,1,"], ["range"]),
                (good, ["--voxel", 1, *box, "--shape", "1,1,1"], ["shape"]),
                (good, ["--voxel", 1, *box, "--lidar"], ["lidar", "points"]),
                ([[0, 0, 0], [0, np.nan, 0]], ["--voxel", 1, *box], ["points", "point 1", "finite"]),
                ([[0, 0, np.inf]], ["--voxel", 1, *box], ["points", "point 0", "finite"]),
                ([[0, 0]], ["--voxel", 1, *box], ["points.npy", "1 x 2"]),
                ([0, 0, 0], ["--voxel", 1, *box], ["points.npy"])):
            self.refuse("--points", points(rows), *words, says=says)
        self.refuse("--points", points(good, np.int32), "--voxel", 1, *box, says=["points.npy", "int32"])
        cut = self.folder / "cut.bin"
        cut.write_bytes(b"\0" * 30)
        self.refuse("--points", cut, "--voxel", 1, *box, says=["cut.bin", "30 bytes"])
        self.refuse("--points", self.folder / "none.bin", "--voxel", 1, *box, says=["none.bin"])
        other = self.folder / "points.txt"
        other.write_text("0 0 0")
        self.refuse("--points", other, "--voxel", 1, *box, says=["points.txt", ".bin"])


class NpyFormats(ProgramTest):
    """What is read: versions 1 to 3, C and Fortran order, and some conversions."""

    def product(self, a_file, a):
        b = integers(self.rng, a.shape[1], 3)
        out, report, result = self.save("gemm", "--a", a_file, "--b", self.write("b.npy", b),
                                        "--backend", "cpu")
        self.check_saved("gemm", out, report, {"c": a.astype(np.float64) @ b})
        return result.stdout + result.stderr

    def test_versions(self):
        a = integers(self.rng, 4, 5)
        for version in ((1, 0), (2, 0), (3, 0)):
            path = self.folder / "a.npy"
            with open(path, "wb") as file:
                np.lib.format.write_array(file, a, version=version)
            self.product(path, a)

    def test_fortran_order(self):
        a = integers(self.rng, 4, 5)
        self.product(self.write("a.npy", np.asfortranarray(a)), a)

    def test_conversions_are_said(self):
        a = integers(self.rng, 4, 5)
        for dtype in (np.float64, np.float16):
            said = self.product(self.write("a.npy", a.astype(dtype)), a)
            self.assertIn(np.dtype(dtype).name, said)
        self.assertNotIn("convert", self.product(self.write("a.npy", a), a))

    def test_what_is_written_is_plain(self):
        a, b = integers(self.rng, 4, 5), integers(self.rng, 5, 6)
        out, _, _ = self.save("gemm", "--a", self.write("a.npy", a), "--b", self.write("b.npy", b))
        for path in out.rglob("*.npy"):
            data = path.read_bytes()
            self.assertEqual(data[:8], b"\x93NUMPY\x01\x00")
            header = data[10:10 + struct.unpack("<H", data[8:10])[0]]
            self.assertIn(b"'fortran_order': False", header)
            self.assertEqual((10 + len(header)) % 64, 0)


class TileMaps(ProgramTest):
    def units(self, out, rung, where, name):
        return np.load(out / "tile_map" / rung.replace("/", ".") / where / f"{name}.npy",
                       allow_pickle=False)

    def check_cover(self, units, tiles_m, tiles_n, steps, batch):
        self.assertEqual(units.dtype, np.int32)
        self.assertEqual(units.shape[1], 6)
        self.assertTrue((np.diff(units[:, 0]) >= 0).all(), "in launch order")
        self.assertTrue((units[:, 4] < units[:, 5]).all(), "no empty units")
        visits = np.zeros((batch, tiles_m, tiles_n, steps), int)
        for _, b, m, n, first, last in units:
            visits[b, m, n, first:last] += 1
        self.assertTrue((visits == 1).all(), "each k-step of each tile once")

    def test_each_map_covers_each_step_once(self):
        for tiles_m, tiles_n, steps, batch in ((10, 6, 4, 1), (1, 1, 1, 1), (5, 9, 3, 2), (17, 3, 7, 1)):
            for name in MAPS:
                with self.subTest(map=name, tiles=(tiles_m, tiles_n, steps, batch)):
                    words = ["--tiles", f"{tiles_m},{tiles_n},{steps}", "--batch", batch, "--map", name]
                    if name == "split_k":
                        words += ["--splits", min(3, steps)]
                    out, report, _ = self.save("tile_map", *words)
                    ran = 0
                    for row in report["ladders"][0]["rungs"]:
                        if row["status"] != "agrees":
                            continue
                        units = self.units(out, row["rung"], row["where"], name)
                        self.check_cover(units, tiles_m, tiles_n, steps, batch)
                        ran += 1
                    self.assertGreaterEqual(ran, 2)

    def test_without_a_map_all_of_them(self):
        out, _, _ = self.save("tile_map", "--tiles", "4,3", "--backend", "cpu")
        found = sorted(path.stem for path in out.rglob("*.npy"))
        self.assertEqual(found, sorted(MAPS))

    def test_cutlass_order_of_identity(self):
        out, _, _ = self.save("tile_map", "--tiles", "2,4", "--map", "identity2", "--backend", "cpu")
        units = np.load(next(out.rglob("identity2.npy")))
        self.assertEqual(units[:, 2:4].tolist(),
                         [[0, 0], [0, 1], [1, 0], [1, 1], [0, 2], [0, 3], [1, 2], [1, 3]])


class Images(ProgramTest):
    def test_a_filtered_photograph(self):
        image = self.rng.integers(0, 256, size=(40, 60, 3)).astype(np.uint8)
        photo = self.folder / "photo.png"
        photo.write_bytes(png_bytes(image))
        for name in ("sobel", "gaussian", "laplacian", "sharpen", "emboss"):
            with self.subTest(filter=name):
                out, report, _ = self.save("conv2d", "--image", photo, "--filter", name, "--backend",
                                           "cpu")
                self.assertEqual({row["status"] for row in report["ladders"][0]["rungs"]}, {"agrees"})
                pictures = list(out.rglob("y.png"))
                self.assertTrue(pictures)
                for picture in pictures:
                    width, height = png_size(picture.read_bytes())
                    self.assertLessEqual(abs(width - 60), 6)  # 7 taps without padding
                    self.assertLessEqual(abs(height - 40), 6)
                self.assertEqual(len({path.read_bytes() for path in out.rglob("y.npy")}), 1)

    def test_grey_and_tiny_images(self):
        for shape in ((9, 8), (3, 3), (5, 30)):
            photo = self.folder / "grey.png"
            photo.write_bytes(png_bytes(self.rng.integers(0, 256, size=shape).astype(np.uint8)))
            self.save("conv2d", "--image", photo, "--filter", "laplacian", "--pad", 2, "--backend", "cpu")

    def test_broken_pictures(self):
        good = png_bytes(self.rng.integers(0, 256, size=(16, 16, 3)).astype(np.uint8))
        broken = {"empty.png": b"", "text.png": b"this is no picture, but some text\n",
                  "cut.png": good[:len(good) // 2], "header.png": good[:20],
                  "flipped.png": good[:60] + bytes([good[60] ^ 0xff]) + good[61:],
                  "huge.png": good[:16] + struct.pack(">II", 2**31 - 1, 2**31 - 1) + good[24:]}
        for name, data in broken.items():
            with self.subTest(name=name):
                (self.folder / name).write_bytes(data)
                self.bad_input("compare", "conv2d", "--image", self.folder / name, "--filter", "sobel",
                               says=[name])

    def test_unknown_filter_and_missing_partner(self):
        photo = self.folder / "photo.png"
        photo.write_bytes(png_bytes(np.zeros((8, 8), np.uint8)))
        self.bad_input("compare", "conv2d", "--image", photo, "--filter", "sobol",
                       says=["sobol", "nearest", "sobel"])
        self.bad_input("compare", "conv2d", "--image", photo)
        self.bad_input("compare", "conv2d", "--image", self.folder / "none.png", "--filter", "sobel",
                       says=["none.png"])


class BadWords(ProgramTest):
    """Unknown words and impossible sizes: each refused in a line that names the culprit."""

    def test_unknown_words_name_the_nearest(self):
        for arguments, says in (
                (["compare", "conv3d"], ["conv3d", "conv2d"]),
                (["compare", "gem"], ["gemm"]),
                (["comparre"], ["comparre", "compare"]),
                (["list", "--ladder", "im2cols"], ["im2col"]),
                (["compare", "gemm", "--kk", "3"], ["--kk"]),
                (["compare", "gemm", "--rungs", "x"], ["--rung"]),
                (["compare", "gemm", "--backend", "cpus"], ["cpu"]),
                (["compare", "gemm", "--backend", "cuda"], ["cuda"]),
                (["compare", "gemm", "--data", "reals"], ["real"]),
                (["compare", "tile_map", "--map", "hilbart"], ["hilbert"]),
                (["compare", "conv2d", "--map", "hilbart"], ["hilbert"]),
                (["compare", "col2im", "--request", "adds"], ["add"]),
                (["compare", "gemm", "--rung", "cuda_naive/gemm/dirct"], ["cuda_naive/gemm/direct"]),
                (["compare", "gemm", "--rung", "nothing*"], ["nothing*"]),
                (["compare", "gemm", "conv2d"], ["conv2d"]),
                (["-x"], ["-x"])):
            with self.subTest(arguments=arguments):
                self.bad_input(*arguments, says=says)

    def test_impossible_sizes(self):
        for arguments, says in (
                (["conv2d", "--n", "-1"], ["n = -1"]),
                (["conv2d", "--c", "0"], ["c = 0"]),
                (["conv2d", "--h", "0"], ["h = 0"]),
                (["conv2d", "--h", "4", "--r", "5"], ["does not fit"]),
                (["conv2d", "--h", "5", "--w", "5", "--r", "6", "--s", "6", "--stride", "2"],
                 ["does not fit"]),
                (["conv2d", "--stride", "0"], ["stride = 0"]),
                (["conv2d", "--dilation", "0,1"], ["dilation = 0"]),
                (["conv2d", "--pad", "-1"], ["pad = -1"]),
                (["conv2d", "--pad", "1,2,3"], ["pad"]),
                (["conv2d", "--stride", "1,2,3"], ["stride"]),
                (["conv2d", "--c", "4", "--groups", "3"], ["groups"]),
                (["conv2d", "--activation", "rule"], ["activation = rule", "relu"]),
                (["conv2d_dgrad", "--activation", "relu"], ["activation"]),
                (["conv2d_wgrad", "--activation", "relu"], ["activation"]),
                (["im2col", "--layout", "nchv"], ["layout = nchv", "nchw"]),
                (["conv2d", "--groups", "0"], ["groups = 0"]),
                (["conv2d", "--n", "two"], ["two"]),
                (["conv2d", "--n", "1.5"], ["1.5"]),
                (["conv2d", "--n", ""], ["n"]),
                (["conv2d", "--n", "99999999999999999999"], ["99999999999999999999"]),
                (["conv2d", "--n", "4294967297"], ["4294967297"]),
                (["conv2d", "--pad", "2147483647"], []),
                (["conv2d_dgrad", "--map", "hilbert"], ["map = hilbert"]),
                (["gemm", "--m", "0"], ["m = 0"]),
                (["gemm", "--seed", "-1"], ["seed"]),
                (["gemm", "--c", "3"], ["c"]),
                (["im2col", "--size", "1,2,3,4"], ["size"]),
                (["im2col", "--size", "5,5", "--kernel", "1,2,3"], ["kernel"]),
                (["im2col", "--size", "5", "--kernel", "6"], ["does not fit"]),
                (["im2col", "--size", "5,5", "--into", "x.npy"], ["into"]),
                (["tile_map", "--tiles", "4"], ["tiles"]),
                (["tile_map", "--tiles", "0,4"], []),
                (["tile_map", "--tiles", "4,4,2", "--map", "split_k", "--splits", "3"], ["splits"]),
                (["tile_map", "--tiles", "4,4,2", "--map", "hilbert", "--splits", "2"], ["splits"]),
                (["tile_map", "--tiles", "4,4", "--batch", "0"], ["batch"]),
                (["tile_map", "--tiles", "70000,3", "--map", "horizontal"], ["65535"])):
            with self.subTest(arguments=arguments):
                self.bad_input("compare", *arguments, "--save", self.folder / "out", "--json",
                               self.folder / "out.json", says=says)

    def test_too_large_for_the_memory(self):
        for arguments in (["gemm", "--m", "2000000", "--n", "2000000", "--k", "1"],
                          ["conv2d", "--n", "100000", "--c", "1000", "--h", "1000", "--w", "1000"],
                          ["conv2d", "--n", "2000000000", "--c", "2000000000", "--h", "2000000000"],
                          ["im2col", "--size", "2000000,2000000"]):
            with self.subTest(arguments=arguments):
                started = time.monotonic()
                self.bad_input("compare", *arguments, "--save", self.folder / "out")
                self.assertLess(time.monotonic() - started, 30, "refused before it is tried")

    def test_gpu_asked_for_without_one(self):
        if HAS_GPU:
            self.skipTest("there is a GPU")
        self.bad_input("compare", *SMALL_GEMM, "--backend", "gpu", says=["gpu"])

    def test_places_that_cannot_be_written(self):
        file = self.folder / "file"
        file.write_text("in the way")
        self.bad_input("compare", *SMALL_GEMM, "--save", file / "below", says=["save"])
        self.bad_input("compare", *SMALL_GEMM, "--json", file / "below.json", says=["json"])
        self.bad_input("compare", *SMALL_GEMM, "--json", self.folder, says=["json"])
        self.bad_input("list", "--json", file / "below.json", says=["json"])


class BadFiles(ProgramTest):
    """Arrays that are broken, lie, or do not fit."""

    def refuse(self, data, says=()):
        path = self.folder / "a.npy"
        path.write_bytes(data)
        self.bad_input("compare", "gemm", "--a", path, "--save", self.folder / "out", "--json",
                       self.folder / "out.json", says=["a.npy", *says])

    @staticmethod
    def npy(header, body=b"\0" * 80, version=b"\x01\x00"):
        text = header.encode("latin1")
        text += b" " * (64 - (11 + len(text)) % 64) + b"\n"
        return b"\x93NUMPY" + version + struct.pack("<H", len(text)) + text + body

    def test_broken_files(self):
        stream = io.BytesIO()
        np.save(stream, np.zeros((4, 5), np.float32))
        good = stream.getvalue()
        path = self.folder / "good.npy"
        path.write_bytes(good)
        self.agree("compare", "gemm", "--a", path, "--n", 3, "--backend", "cpu")
        for name, data in (("empty", b""), ("text", b"a,b,c\n1,2,3\n" * 20), ("cut", good[:-4]),
                           ("long", good + b"\0\0\0\0"), ("header only", good[:64]),
                           ("magic only", good[:6]), ("wrong magic", b"\x92" + good[1:]),
                           ("version 9", good[:6] + b"\x09" + good[7:]),
                           ("header length", good[:8] + b"\xff\xff" + good[10:])):
            with self.subTest(name):
                self.refuse(data)

    def test_headers_that_lie_or_make_no_sense(self):
        for header in ("{'descr': '<f4', 'fortran_order': False, 'shape': (40, 50), }",
                       "{'descr': '<f4', 'fortran_order': False, 'shape': (-4, -5), }",
                       "{'descr': '<f4', 'fortran_order': False, 'shape': (4.0, 5), }",
                       "{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296), }",
                       "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999, 1), }",
                       "{'descr': '<f4', 'fortran_order': False, 'shape': (4, 5), 'more': 1}",
                       "{'descr': '<f4', 'fortran_order': False}",
                       "{'descr': '<f4', 'shape': (4, 5)}",
                       "{'fortran_order': False, 'shape': (4, 5)}",
                       "{'descr': '<f4', 'fortran_order': Maybe, 'shape': (4, 5)}",
                       "{'descr': '<f4', 'fortran_order': False, 'shape': (4, 5)",
                       "'descr'", "", "{}"):
            with self.subTest(header=header):
                self.refuse(self.npy(header))

    def test_element_types_that_are_not_read(self):
        for descr in ("'>f4'", "'<c8'", "'|O'", "'<u4'", "'<U3'", "'|b1'", "[('a', '<f4')]"):
            with self.subTest(descr=descr):
                self.refuse(self.npy(f"{{'descr': {descr}, 'fortran_order': False, 'shape': (4, 5), }}"))

    def test_integers_are_no_matrix(self):
        stream = io.BytesIO()
        np.save(stream, np.ones((4, 5), np.int32))
        self.refuse(stream.getvalue())

    def test_missing_file_and_folder(self):
        self.bad_input("compare", "gemm", "--a", self.folder / "none.npy", says=["none.npy"])
        self.bad_input("compare", "gemm", "--a", self.folder, says=[str(self.folder)])

    def test_wrong_ranks_and_shapes(self):
        def file(name, *shape):
            return self.write(name + ".npy", np.zeros(shape, np.float32))
        flat, matrix, image = file("flat", 4), file("matrix", 4, 5), file("image", 1, 2, 6, 7)
        weights = file("weights", 3, 2, 3, 3)
        for arguments in (["gemm", "--a", flat], ["gemm", "--a", image],
                          ["gemm", "--a", matrix, "--b", matrix],
                          ["gemm", "--a", matrix, "--k", "6"],
                          ["conv2d", "--x", matrix], ["conv2d", "--x", image, "--weights", matrix],
                          ["conv2d", "--x", image, "--weights", file("three", 3, 3, 3, 3)],
                          ["conv2d", "--x", image, "--weights", weights, "--h", "8"],
                          ["conv2d", "--x", image, "--weights", weights, "--bias", file("b", 4)],
                          ["conv2d", "--x", image, "--weights", file("large", 3, 2, 7, 3)],
                          ["conv2d_dgrad", "--dy", file("dy", 1, 3, 9, 9), "--weights", weights, "--h",
                           "6", "--w", "7"],
                          ["conv2d_wgrad", "--x", image, "--dy", file("dy2", 1, 3, 9, 9), "--r", "3",
                           "--s", "3"],
                          ["im2col", "--x", flat], ["im2col", "--x", file("five", 1, 1, 1, 1, 1, 1)],
                          ["col2im", "--col", file("col", 1, 9, 7), "--c", "1", "--size", "5,5"],
                          ["col2im", "--col", file("col2", 1, 8, 9), "--c", "1", "--size", "5,5"]):
            with self.subTest(arguments=arguments):
                self.bad_input("compare", *arguments, "--save", self.folder / "out")

    def test_numbers_that_are_none(self):
        # Whatever the program decides about NaN and infinity, it says so in one line or agrees.
        for value in (np.nan, np.inf):
            a = np.full((3, 3), value, np.float32)
            result = run("compare", "gemm", "--a", self.write("a.npy", a), "--backend", "cpu")
            self.assertIn(result.returncode, (AGREE, 2))
            if result.returncode == 2:
                self.assertEqual(len(result.stderr.splitlines()), 1)


class Interrupt(ProgramTest):
    """Ctrl-C ends the program with 130, and leaves nothing half-written."""

    LONG = ["compare", "conv2d", "--c", "64", "--h", "400", "--w", "400", "--k", "64", "--r", "7",
            "--s", "7", "--pad", "3"]

    def interrupt_after(self, seconds, *arguments):
        process = subprocess.Popen([PROGRAM, *map(str, arguments)], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, cwd=self.folder)
        time.sleep(seconds)
        self.assertIsNone(process.poll(), "ended before it was interrupted")
        process.send_signal(signal.SIGINT)
        try:
            output, error = process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            self.fail("did not end within a minute")
        # Before the program has its handler, the system ends it; a shell calls that 130 as well.
        self.assertIn(process.returncode, (INTERRUPTED, -signal.SIGINT), output + error)

    def test_nothing_is_left(self):
        for seconds in (0.3, 1.5):
            with self.subTest(seconds=seconds):
                self.interrupt_after(seconds, *self.LONG, "--save", self.folder / "out", "--json",
                                     self.folder / "out.json")
                self.assertEqual(list(self.folder.iterdir()), [])

    def test_an_earlier_result_stays(self):
        out = self.folder / "out"
        self.agree("compare", *SMALL_GEMM, "--save", out)
        before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
        self.assertTrue(before)
        self.interrupt_after(1.0, *self.LONG, "--save", out)
        after = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
        self.assertEqual(before, after)


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
            self.assertIn(row["dtype"], ("fp32", "tf32", "fp16", "bf16", "int32"))

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
        for run in runs:
            self.check_run(run)
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


class Tour(ProgramTest):
    def test_every_ladder_and_a_picture(self):
        result = self.agree("compare", "--backend", "cpu", "--save", self.folder / "out", "--json",
                            self.folder / "tour.json", timeout=280)
        report = self.load_json(self.folder / "tour.json")
        self.assertEqual({entry["ladder"] for entry in report["ladders"]}, set(LADDERS))
        for ladder in LADDERS:
            self.assertIn(ladder, result.stdout)
        for entry in report["ladders"]:
            for row in entry["rungs"]:
                self.assertIn(row["status"], ("agrees", "declined"), row)
        pictures = list((self.folder / "out").rglob("*.png"))
        self.assertTrue(pictures)
        for picture in pictures:
            width, height = png_size(picture.read_bytes())
            self.assertGreater(min(width, height), 0)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[1:]], verbosity=1)
