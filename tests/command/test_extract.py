"""Tests of ./ladder extract: every rung can be written into one file, and such files compile and run.

    CXX=g++ BUILD=FOLDER CUDA_ON_CPU="LIBRARY..." python3 test_extract.py

With CONVLADDER_EXTRACT_ALL=1 all of them are compiled, which takes minutes.
"""
import concurrent.futures
import contextlib
import io
import json
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
import specialise  # noqa: E402

BUILD = pathlib.Path(os.environ["BUILD"])
# Static shared memory; arrays that a rung creates; a function of another folder's rung; files whose names clash; wgmma.
SAMPLE = ("cuda_optimized/gemm/tiled", "cuda_naive/rulebook/dense_grid", "cpu_reference/conv2d/im2col_gemm",
          "cpu_reference/fft/bluestein", "cpu_reference/gemm/blocked", "cuda_naive/tile_map/row_major",
          "cuda_optimized/col2im/col2im_vectorized", "cuda_optimized/gemm/persistent")
# The most lines of a file: of a naive or tiled kernel, of one with wgmma or TMA, and of others.
MOST_LINES_SIMPLE, MOST_LINES_HOPPER, MOST_LINES = 300, 900, 1250
SIMPLE = re.compile(r"cuda_naive/|cuda_optimized/.*(/tiled|/output_stationary)$")
# Those that have more, the first pattern that fits, and why.
EXCEPTIONS = (
    (r"cuda_naive/rulebook/", 1050, "sorting and scans, by CUB and for the emulator"),
    (r"cuda_naive/voxelize/", 600, "sorting and scans, as well"),
    (r"cuda_naive/conv2d/im2col_gemm$", 740, "calls two rungs, and cuts its workspace into columns for each image"),
    (r"cuda_naive/conv2d(_wgrad)?/winograd_2x2$", 480, "three kernels with their transforms"),
    (r"cuda_naive/fft/dft$", 440, "complex numbers in two rings"),
    (r"cuda_naive/conv2d/direct_16bit$", 360, "two number types, whose conversions the emulator has for itself"),
    (r"cuda_optimized/conv2d/(direct|implicit_gemm)/tiled$", 370, "the host fits the tile into shared memory"),
    (r"cuda_optimized/sparse_\w+/output_stationary$", 380, "two kernels, one for vectors"),
    (r"cuda_optimized/rulebook/", 2000, "several launches with hash tables, bit grids or sorting"),
    (r"cuda_optimized/gemm/", 1250, "several tile shapes, clusters, or an epilogue with a staging buffer"),
    (r"cuda_optimized/sparse_", 1700, "row lists that the kernel sorts or gathers, beside the GEMM"),
    (r"cuda_optimized/conv2d(_wgrad)?/", 1720, "addresses of windows or halo tiles in shared headers, beside the GEMM"),
    (r"cuda_optimized/conv2d_dgrad/", 1900, "the same, and the residue classes of the stride"),
)


class Extract(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.rungs = extract.table_of(BUILD)
        cls.needs = extract.sources_by_need(BUILD)
        cls.folder = tempfile.TemporaryDirectory()
        cls.texts = {}

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def write(self, rung):
        name = rung["rung"].replace("/", ".") + (".cu" if rung["backend"] == "cuda" else ".cpp")
        file = pathlib.Path(self.folder.name) / name
        if name not in self.texts:
            self.texts[name] = extract.extracted(BUILD, self.needs, rung, file)
        file.write_text(self.texts[name])
        return file

    def write_all(self):
        """All files, made by as many compilers as there are cores."""
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            return list(zip(self.rungs, pool.map(self.write, self.rungs)))

    def compiled_and_run(self, file):
        """What the program prints."""
        folder = pathlib.Path(self.folder.name)
        (folder / "before.cpp").write_text(specialise.BEFORE)
        (folder / "behind.cpp").write_text(specialise.BEHIND)
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
        for rung, file in self.write_all():
            with self.subTest(rung["rung"]):
                text = file.read_text()
                self.assertNotRegex(text, r'(?m)^\s*#include "')
                self.assertEqual(text.count(f"// ===== {rung['source']} "), 1)
                self.assertIn(".holds" if rung["ladder"] in ("rulebook", "tile_map", "voxelize") else "is_right(\"", text)
                if rung["rung"] != "cuda_optimized/conv2d/fft/3xtf32":  # whose example is too small for tensor cores
                    self.assertIn("for other problems is left out", text)
                most = next((most for pattern, most, _ in EXCEPTIONS if re.match(pattern, rung["rung"])),
                            MOST_LINES_SIMPLE if SIMPLE.match(rung["rung"]) else MOST_LINES_HOPPER if "code=sm_90a" in text else MOST_LINES)
                self.assertLessEqual(text.count("\n"), most)

    def test_what_the_problem_does_not_need(self):
        text = self.write(extract.rung_named(self.rungs, "cuda_optimized/gemm/persistent")).read_text()
        self.assertNotIn("struct GatheredHalves", text)  # the host's choice for rows that TMA cannot take
        self.assertNotIn("wgmma_m64k16_f16", text)  # of the other number type
        self.assertIn("if (code != cudaSuccess) throw", text)  # errors of CUDA are still seen
        self.assertIn("return m < M ? c + m * N : nullptr", text)  # and bounds are checked

    def test_an_earlier_name_is_said_once(self):
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            rung = extract.rung_named(self.rungs, "cpu_reference/conv2d/fft_tiles")
        self.assertEqual(rung["rung"], "cpu_reference/conv2d/fft_overlap_save")
        self.assertEqual(said.getvalue(), "rung = cpu_reference/conv2d/fft_tiles: the present name is cpu_reference/conv2d/fft_overlap_save\n")
        # `inspect` says it itself, behind this step.
        prepare = subprocess.run([sys.executable, ROOT / "tools/inspect/prepare.py", BUILD, "cpu_reference/conv2d/fft_tiles"], capture_output=True, text=True)
        self.assertEqual((prepare.returncode, prepare.stdout, prepare.stderr), (0, "", ""))

    def test_a_build_of_one_ladder(self):
        build = pathlib.Path(self.folder.name) / "part"
        built, missing = ("CMakeFiles/core.dir/core/arithmetic.cpp.o", "CMakeFiles/core.dir/core/text.cpp.o")
        (build / built).parent.mkdir(parents=True)
        subprocess.run([os.environ.get("CXX", "g++"), "-xc++", "-c", "-o", build / built, "-"], input="namespace convladder { void f() {} }", text=True, check=True)
        (build / "compile_commands.json").write_text(json.dumps([{"command": f"g++ -o {path} -c x.cpp"} for path in (built, missing)]))
        self.assertEqual(extract.sources_by_need(build), {"core/arithmetic.cpp": []})
        with self.assertRaisesRegex(extract.Trouble, "core/text.cpp: is not built"):
            extract.needed_sources(extract.sources_by_need(build), "core/text.cpp")

    def test_branches_of_a_function(self):
        text = """void run(int n) {
  // Of a large problem.
  if (n > 100) {
    large(n);
  } else {
    small(n);
  }
  if (error != cudaSuccess) throw 1;
  while (n > 7) n /= 2;
}
"""
        one, = declarations.split(text, "x.cu")[0]
        broken = specialise.with_breaks(one.text)
        counts = {number: 0 if re.search(r"large\(|throw|/= 2", line) else 1 for number, line in enumerate(broken.split("\n"), 1) if line.strip(" }")}
        result = specialise.round_of([(declarations.changed(one, broken), broken)], {0: 1}, specialise.Coverage(counts, {}), set(), set(), True)
        self.assertEqual(specialise.without_breaks(result[0][1]), """void run(int n) {
  // Of a large problem.
  small(n);
  if (error != cudaSuccess) throw 1;
}""")

    def test_only_what_calls_wgmma_is_compiled_for_sm_90a(self):
        compiled_for = {}
        for rung in self.rungs:
            if rung["backend"] == "cuda":
                text = self.write(rung).read_text()
                parts = re.split(r"(?m)^// ===== (\S+) =+$", text)
                own = re.sub(r"//.*", "", dict(zip(parts[1::2], parts[2::2]))[rung["source"]])
                compiled_for[rung["rung"]] = re.search(r"(?:-arch|,code)=(\w+) ", text).group(1)
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
""", "core/x.hpp")
        kept = declarations.written(declarations.reached(found, "f(A{});", core={"convladder"}), {})
        self.assertEqual(kept, """
// ===== core/ ===================================================================================
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

    def test_options_of_a_problem(self):
        file = pathlib.Path(self.folder.name) / "larger.cu"
        result = subprocess.run([sys.executable, ROOT / "tools/extract/extract.py", BUILD, "cuda_naive/conv2d/direct", file, *"--n 1 --c 2 --h 7 --w 9 --k 2 --r 3 --s 3".split()],
                                capture_output=True, text=True)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertIn("is right", self.compiled_and_run(file))
        self.assertIn(".H = 7, .W = 9,", file.read_text())

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
