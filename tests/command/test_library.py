"""Tests of the library: the examples are built as a user would, from an installed tree, and do what they say.

    CXX=g++ BUILD=FOLDER GENERATOR=Ninja CUDA=0 python3 test_library.py

CUDA=1: the build has nvcc; photograph_on_gpu runs where there is a GPU.
"""
import os
import pathlib
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
