"""Tests of ./ladder extract: every rung can be written into one file, and such files compile and run.

    CXX=g++ BUILD=FOLDER CUDA_ON_CPU="LIBRARY..." python3 test_extract.py

With CONVLADDER_EXTRACT_ALL=1 all of them are compiled, which takes minutes.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools/extract"))
sys.dont_write_bytecode = True
import declarations  # noqa: E402
import extract  # noqa: E402

BUILD = pathlib.Path(os.environ["BUILD"])
# Static shared memory; arrays that a rung creates; a function of another folder's rung; files whose names clash; wgmma.
SAMPLE = ("cuda_optimized/gemm/tiled", "cuda_naive/rulebook/dense_grid", "cpu_reference/conv2d/im2col_gemm",
          "cpu_reference/fft/bluestein", "cpu_reference/gemm/blocked", "cuda_naive/tile_map/row_major",
          "cuda_optimized/col2im/col2im_vectorized", "cuda_optimized/gemm/persistent")
# The most lines of a file: of rungs that readers take first, and of a ladder's others.
MOST_LINES = {"cuda_naive/gemm/direct": 300, "cuda_naive/conv2d/direct": 300, "cuda_optimized/gemm/tiled": 300,
              "cuda_optimized/conv2d/direct/tiled": 450, "cuda_optimized/gemm/persistent": 1400,
              "cuda_optimized/conv2d/implicit_gemm/halo_tile": 2150}
MOST_LINES_OF = {
    "cpu_reference": {"col2im": 400, "conv2d": 850, "conv2d_dgrad": 750, "conv2d_wgrad": 800, "fft": 450, "gemm": 550, "im2col":
        400, "rulebook": 700, "sparse_avg_pool": 250, "sparse_conv": 450, "sparse_dgrad": 450, "sparse_global_pool": 250,
        "sparse_max_pool": 300, "sparse_max_pool_dgrad": 300, "sparse_to_dense": 300, "sparse_wgrad": 450, "tile_map": 400,
        "voxelize": 350},
    "cuda_naive": {"col2im": 450, "conv2d": 1000, "conv2d_dgrad": 350, "conv2d_wgrad": 600, "fft": 550, "gemm": 300, "im2col":
        450, "rulebook": 1200, "sparse_avg_pool": 400, "sparse_conv": 450, "sparse_dgrad": 400, "sparse_global_pool": 400,
        "sparse_max_pool": 450, "sparse_max_pool_dgrad": 350, "sparse_to_dense": 400, "sparse_wgrad": 400, "tile_map": 250,
        "voxelize": 800},
    "cuda_optimized": {"col2im": 800, "conv2d": 2400, "conv2d_dgrad": 2900, "conv2d_wgrad": 2300, "fft": 850, "gemm": 1800,
        "im2col": 550, "rulebook": 2400, "sparse_avg_pool": 400, "sparse_conv": 2350, "sparse_dgrad": 2350, "sparse_global_pool":
        450, "sparse_max_pool": 400, "sparse_max_pool_dgrad": 400, "sparse_to_dense": 450, "sparse_wgrad": 1850, "tile_map": 550,
        "voxelize": 1050},
}
# What cuda_on_cpu_add_kernels() puts around a file, see cuda_on_cpu/cmake.
BEFORE = """
extern constinit thread_local unsigned char marker_0;
constinit thread_local unsigned char marker_0 = 0;
"""
BEHIND = """
#include <cuda_on_cpu/static_shared.hpp>
extern constinit thread_local unsigned char marker_0, marker_1;
constinit thread_local unsigned char marker_1 = 0;
const cuda_on_cpu::detail::StaticSharedRange range([] { return &marker_0; }, [] { return &marker_1; });
"""


class Extract(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.rungs = extract.table_of(BUILD)
        cls.needs = extract.sources_by_need(BUILD)
        cls.folder = tempfile.TemporaryDirectory()

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def write(self, rung):
        name = rung["rung"].replace("/", ".") + (".cu" if rung["backend"] == "cuda" else ".cpp")
        file = pathlib.Path(self.folder.name) / name
        file.write_text(extract.extracted(BUILD, self.needs, rung, file))
        return file

    def compiled_and_run(self, file):
        """What the program prints."""
        folder = pathlib.Path(self.folder.name)
        (folder / "before.cpp").write_text(BEFORE)
        (folder / "behind.cpp").write_text(BEHIND)
        (folder / "kernel.cpp").write_text(f'#include "{file}"\n')
        command = [os.environ.get("CXX", "g++"), "-std=c++20", "-w", "-o", folder / "program"]
        if file.suffix == ".cu":
            command += [f"-I{ROOT}/cuda_on_cpu/include", *(folder / f"{part}.cpp" for part in ("before", "kernel", "behind")),
                        *os.environ["CUDA_ON_CPU"].split()]
        else:
            command += ["-I/usr/include/eigen3", file]
        subprocess.run(command, check=True)
        result = subprocess.run([folder / "program"], capture_output=True, text=True)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        return result.stdout

    def test_every_rung_in_one_file(self):
        for rung in self.rungs:
            with self.subTest(rung["rung"]):
                text = self.write(rung).read_text()
                self.assertNotRegex(text, r'(?m)^\s*#include "')
                self.assertEqual(text.count(f"// ===== {rung['source']} "), 1)
                self.assertIn(".holds" if rung["ladder"] in ("rulebook", "tile_map", "voxelize") else "is_right(\"", text)
                folder, ladder, *_ = rung["rung"].split("/")
                self.assertLessEqual(text.count("\n"), MOST_LINES.get(rung["rung"], MOST_LINES_OF[folder][ladder]))

    def test_only_what_calls_wgmma_is_compiled_for_sm_90a(self):
        compiled_for = {}
        for rung in self.rungs:
            if rung["backend"] == "cuda":
                text = self.write(rung).read_text()
                parts = re.split(r"(?m)^// ===== (\S+) =+$", text)
                own = re.sub(r"//.*", "", dict(zip(parts[1::2], parts[2::2]))[rung["source"]])
                compiled_for[rung["rung"]] = re.search(r"-arch=(\w+) ", text).group(1)
                with self.subTest(rung["rung"]):
                    if re.search(r"\bwgmma(_\w+)?(<[^;]*>)?\(|setmaxnreg_", own):
                        self.assertEqual(compiled_for[rung["rung"]], "sm_90a")
        self.assertLess(30, list(compiled_for.values()).count("sm_90a"))
        self.assertLess(140, list(compiled_for.values()).count("native"))
        for name, architecture in (("conv2d/depthwise/nchw", "native"), ("conv2d/direct/mma", "native"), ("gemm/ldmatrix", "native"),
                                   ("gemm/cp_async", "native"), ("gemm/hopper/ping_pong", "sm_90a"), ("conv2d/winograd/3xtf32", "sm_90a")):
            self.assertEqual(compiled_for["cuda_optimized/" + name], architecture, name)

    def test_files_compile_and_are_right(self):
        every = os.environ.get("CONVLADDER_EXTRACT_ALL", "0") != "0"
        for rung in self.rungs:
            if every or rung["rung"] in SAMPLE:
                with self.subTest(rung["rung"]):
                    self.assertIn("is right", self.compiled_and_run(self.write(rung)))

    def test_a_wrong_rung_is_seen(self):
        for name, right, wrong in (("gemm/triple_loop", "sum += to_float(a[m * K + k])", "sum -= to_float(a[m * K + k])"),
                                   ("fft/bluestein", "{scale * sum.re, scale * sum.im}", "{scale * sum.im, scale * sum.re}")):
            with self.subTest(name):
                file = self.write(extract.rung_named(self.rungs, "cpu_reference/" + name))
                text = file.read_text()
                self.assertEqual(text.count(right), 1)
                file.write_text(text.replace(right, wrong))
                with self.assertRaisesRegex(AssertionError, "DIFFERS"):
                    self.compiled_and_run(file)

    def test_only_what_is_reached(self):
        found, _ = declarations.split("""/// @file x.hpp
#pragma once
#include <vector>

namespace convladder {

/// Its comment.
int f(A a) { return g(a).second(); }
int f(B b);
int unreached(A a);

/// A struct.
struct A {
  int first() const { return h(); }  ///< Not called.
  /// Called.
  int second() const { return kSize; }
};

struct B {};

namespace {

constexpr int kSize = 2, kOther = 3;  // sizes
constexpr int kUnreached = 1;

}  // namespace

#ifdef __CUDACC__
A g(A a);
#else
inline A g(A a) { return a; }
inline int h() { return 0; }
#endif

}  // namespace convladder
""", "x.hpp")
        kept = declarations.written(declarations.reached(found, "f(A{});", core={"convladder"}), {})
        self.assertEqual(kept, """
// ===== x.hpp ===================================================================================
namespace convladder {

/// Its comment.
int f(A a) { return g(a).second(); }

/// A struct.
struct A {
  /// Called.
  int second() const { return kSize; }
};

namespace {

constexpr int kSize = 2, kOther = 3;  // sizes

}  // namespace

#ifdef __CUDACC__
A g(A a);
#else
inline A g(A a) { return a; }
#endif

}  // namespace convladder""")

    def test_a_file_that_is_there_stays(self):
        file = pathlib.Path(self.folder.name) / "there.cu"
        file.write_text("mine")
        result = subprocess.run([sys.executable, ROOT / "tools/extract/extract.py", BUILD, "cuda_optimized/gemm/tiled", file],
                                capture_output=True, text=True)
        self.assertEqual((result.returncode, result.stdout, result.stderr),
                         (2, "", f"ladder: file = {file}: must not exist yet; remove it, or give another name\n"))
        self.assertEqual(file.read_text(), "mine")

    def test_bad_input_is_said(self):
        with self.assertRaisesRegex(extract.Trouble, "gemm/nothing: no rung is called so"):
            extract.rung_named(self.rungs, "gemm/nothing")
        with self.assertRaisesRegex(extract.Trouble, "tiled, .*tiled is called so|is called so"):
            extract.rung_named(self.rungs, "im2col_gemm")
        rung = extract.rung_named(self.rungs, "gemm/tiled")
        with self.assertRaisesRegex(extract.Trouble, r"file = x.cpp: .* needs a file that ends in .cu"):
            extract.extracted(BUILD, self.needs, rung, pathlib.Path("x.cpp"))
        with self.assertRaisesRegex(extract.Trouble, "numbers = .*: too many for a source file"):
            extract.extracted(BUILD, self.needs, rung, pathlib.Path("x.cu"), ["--m", "512", "--n", "512", "--k", "512"])
        for options in (["--batch", "2"], ["--batch=2"]):
            with self.assertRaisesRegex(extract.Trouble, "batch = 2: a file has one product of row-major matrices"):
                extract.extracted(BUILD, self.needs, rung, pathlib.Path("x.cu"), options)
        with self.assertRaisesRegex(extract.Trouble, "m = -1"):
            extract.extracted(BUILD, self.needs, rung, pathlib.Path("x.cu"), ["--m=-1"])


if __name__ == "__main__":
    unittest.main()
