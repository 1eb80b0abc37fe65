"""Tests of the library: the examples are built as a user would, from an installed tree, and do what they say.

    CXX=g++ BUILD=FOLDER GENERATOR=Ninja CUDA=0 python3 test_library.py

CUDA=1: the build has nvcc; photograph_on_gpu runs where there is a GPU.
"""
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PHOTOGRAPH = ROOT / "data/chelsea.png"


def run(*command, **options):
    result = subprocess.run(command, capture_output=True, text=True, **options)
    if result.returncode != 0:
        raise AssertionError(f"{command} ended with {result.returncode}:\n{result.stdout}\n{result.stderr}")
    return result.stdout


class Library(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.root = pathlib.Path(cls.folder.name)
        # Elsewhere than where it was installed first: nothing in it may know its own place.
        run("cmake", "--install", os.environ["BUILD"], "--prefix", cls.root / "first")
        cls.prefix = shutil.move(cls.root / "first", cls.root / "installed")
        cls.build = cls.root / "build"
        run("cmake", "-S", ROOT / "examples", "-B", cls.build, "-G", os.environ["GENERATOR"],
            f"-DCMAKE_CXX_COMPILER={os.environ['CXX']}", f"-DCMAKE_PREFIX_PATH={cls.prefix}")
        run("cmake", "--build", cls.build)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_a_photograph_is_the_same_on_both(self):
        sharp = self.root / "sharp.png"
        run(self.build / "photograph_on_cpu", PHOTOGRAPH, sharp)
        self.assertNotEqual(sharp.read_bytes(), PHOTOGRAPH.read_bytes())
        if os.environ["CUDA"] == "1" and subprocess.run(["nvidia-smi"], capture_output=True).returncode != 0:
            self.skipTest("no GPU")
        again = self.root / "again.png"
        run(self.build / "photograph_on_gpu", PHOTOGRAPH, again)
        self.assertEqual(sharp.read_bytes(), again.read_bytes())

    def test_a_sparse_layer_counts_neighbours(self):
        points = self.root / "points.txt"
        points.write_text("1 1 1\n1 1 2\n5 5 5\n1 2 3\n")
        self.assertEqual(run(self.build / "sparse_layer", points), "1 1 1: 2\n1 1 2: 3\n5 5 5: 1\n1 2 3: 2\n")

    @unittest.skipIf(os.environ["CUDA"] == "1", "the microscope is installed where the emulator is")
    def test_a_kernel_of_ones_own_under_the_microscope(self):
        self.assertEqual(run(self.build / "under_the_microscope"),
                         "line 10: load of from, 8 sectors a request\nline 10: store of to, 4 sectors a request\n")

    def compile(self, text, *options, compiler=None):
        """Compiles a program's text as a user of the installed tree would who wants to see all warnings."""
        source = self.root / "program.cpp"
        source.write_text(text)
        return subprocess.run([compiler or os.environ["CXX"], "-std=c++20", "-Wall", "-Wextra", "-Werror", "-I", self.prefix / "include",
                               *options, "-fsyntax-only", source], capture_output=True, text=True)

    def test_the_page_s_program_has_no_warning(self):
        page = (ROOT / "docs/library.md").read_text()
        include, rest = re.search(r"```cpp\n(#include .*?\n)(.*?)```", page, re.DOTALL).groups()
        for rung in ("gpu::cuda_optimized::conv2d::direct_tiled", "cpu_reference::conv2d::reordered"):
            text = (f"{include}void call(const float* x, const float* weights, float* y, CUstream_st* stream) {{\n" +
                    rest.replace("gpu::cuda_optimized::conv2d::direct_tiled", rung) + "}\n")
            self.assertIn(rung, text)
            for compiler in (os.environ["CXX"], *filter(shutil.which, ("clang++-16",))):
                result = self.compile(text, compiler=compiler)
                self.assertEqual((result.returncode, result.stderr), (0, ""))

    def test_every_header_alone_with_a_program_s_own_headers_of_the_same_names(self):
        own = self.root / "own"
        for name in ("core/types.hpp", "core/implementation.hpp", "core/error.hpp", "ladders/declare.hpp", "types.hpp", "declare.hpp"):
            (own / name).parent.mkdir(parents=True, exist_ok=True)
            (own / name).write_text("#error this is another header\n")
        include = self.prefix / "include"
        self.assertEqual([path.name for path in include.iterdir()], ["convladder"])
        ladders = {path.stem for path in (ROOT / "docs/ladders").glob("*.md")}
        self.assertTrue(ladders)
        self.assertLessEqual(ladders, {path.stem for path in (include / "convladder").glob("*.hpp")})
        for ladder in sorted(ladders):
            with self.subTest(ladder):
                result = self.compile(f"#include <convladder/{ladder}.hpp>\n"
                                      "int main() try { throw convladder::UnsupportedProblem(\"\"); }\n"
                                      "catch (const convladder::BadInput&) {} catch (const convladder::DeviceError&) {}\n", "-I", own)
                self.assertEqual((result.returncode, result.stderr), (0, ""))

    def test_no_other_library_comes_in_the_place_of_ours(self):
        libraries = list((self.prefix / "lib").rglob("*.so")) + list((self.prefix / "lib").rglob("*.a"))
        self.assertTrue(libraries)
        for library in libraries:
            self.assertTrue(library.name.startswith("libconvladder_"), library)
        if os.environ["CUDA"] == "1":
            return
        for library in libraries:
            dynamic = run("readelf", "-d", library)
            self.assertIn(f"soname: [{library.name}]", dynamic)
            self.assertIn("[$ORIGIN]", dynamic)
        foreign = []
        for name in ("core", "ladders", "oracle", "cuda_on_cpu"):
            library = self.root / f"foreign/lib{name}.so"
            library.parent.mkdir(exist_ok=True)
            run(os.environ["CXX"], "-shared", "-fPIC", "-x", "c++", "/dev/null", "-o", library, f"-Wl,-soname,lib{name}.so")
            foreign.append(str(library))
        points = self.root / "points.txt"
        points.write_text("1 1 1\n")
        self.assertEqual(run(self.build / "sparse_layer", points, env={**os.environ, "LD_PRELOAD": ":".join(foreign)}), "1 1 1: 1\n")

    def test_nothing_of_the_python_module_is_installed(self):
        self.assertEqual(sorted(path.name for path in self.prefix.iterdir()), ["include", "lib", "share"])
        self.assertEqual(list(self.prefix.rglob("*.py*")) + list(self.prefix.rglob("_core*")), [])

    def test_licences_are_installed(self):
        self.assertEqual({path.name for path in (self.prefix / "share").rglob("*") if path.is_file()}, {"LICENSE", "THIRD_PARTY.md"})

    def test_an_old_compiler_is_told_what_is_needed(self):
        old = shutil.which("clang++-14") or shutil.which("g++-11")
        if old is None:
            self.skipTest("no old compiler")
        project = self.root / "old"
        project.mkdir()
        (project / "CMakeLists.txt").write_text("cmake_minimum_required(VERSION 3.25)\nproject(P LANGUAGES CXX)\nfind_package(ConvLadder REQUIRED)\n")
        result = subprocess.run(["cmake", "-S", project, "-B", project / "build", "-G", os.environ["GENERATOR"], f"-DCMAKE_CXX_COMPILER={old}",
                                 f"-DCMAKE_PREFIX_PATH={self.prefix}"], capture_output=True, text=True)
        self.assertNotEqual(result.returncode, 0)
        self.assertEqual(result.stderr.count("CMake Error"), 1, result.stderr)
        self.assertIn("g++ 12 or clang++ 16 or newer is needed", " ".join(result.stderr.split()))

    def test_bad_sites_are_refused(self):
        points = self.root / "points.txt"
        points.write_text("1 1 1\n1 1 64\n")
        result = subprocess.run([self.build / "sparse_layer", points], capture_output=True, text=True)
        self.assertEqual(result.returncode, 1)
        self.assertIn("coords", result.stdout)

    def test_a_component_that_is_not_there_is_named(self):
        project = self.root / "project"
        project.mkdir()
        missing = "emulated" if os.environ["CUDA"] == "1" else "cuda"
        (project / "CMakeLists.txt").write_text(
            "cmake_minimum_required(VERSION 3.25)\nproject(P LANGUAGES CXX)\n"
            f"find_package(ConvLadder REQUIRED COMPONENTS {missing})\n")
        result = subprocess.run(["cmake", "-S", project, "-B", project / "build", "-G", os.environ["GENERATOR"], f"-DCMAKE_PREFIX_PATH={self.prefix}"],
                                capture_output=True, text=True)
        self.assertNotEqual(result.returncode, 0)
        self.assertIn(missing, result.stderr)


if __name__ == "__main__":
    unittest.main()
