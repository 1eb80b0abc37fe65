"""Tests tools/build_time.py on logs whose CPU-seconds can be counted by hand."""
import contextlib
import io
import os
import pathlib
import sys
import tempfile
import unittest
import unittest.mock

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))
sys.dont_write_bytecode = True
import build_time  # noqa: E402


def log_of(*lines):
    """A file like ninja's, of (begin, end, output, command)."""
    file = pathlib.Path(tempfile.mkstemp(suffix=".ninja_log")[1])
    rows = ["\t".join(map(str, (begin, end, 0, output, command))) for begin, end, output, command in lines]
    file.write_text("\n".join(["# ninja log v5", *rows]) + "\n")
    return file


class BuildTime(unittest.TestCase):
    def seconds(self, *lines, cores=2):
        log = log_of(*lines)
        self.addCleanup(log.unlink)
        return [dict(build_time.cpu_seconds(run, cores)) for run in build_time.steps_of(log)]

    def test_steps_that_have_a_core_each(self):
        self.assertEqual(self.seconds((0, 2000, "a.o", "1"), (0, 3000, "b.o", "2")), [{"a.o": 2, "b.o": 3}])

    def test_three_steps_share_two_cores(self):
        (run,) = self.seconds((0, 3000, "a.o", "1"), (0, 3000, "b.o", "2"), (0, 3000, "c.o", "3"))
        for seconds in run.values():
            self.assertAlmostEqual(seconds, 2)

    def test_a_step_with_two_outputs_counts_once(self):
        (run,) = self.seconds((0, 1000, "a.c", "1"), (0, 1000, "a.h", "1"))
        self.assertEqual(list(run.values()), [1])

    def test_what_was_built_twice_counts_as_the_last_time(self):
        runs = self.seconds((0, 5000, "a.o", "1"), (0, 1000, "a.o", "9"))
        self.assertEqual(runs, [{}, {"a.o": 1}])

    def test_parts(self):
        for output, part in (
                ("CMakeFiles/rungs_cuda_optimized_conv2d_objects.dir/x.cuda_on_cpu/2_a.cpp.o", "rungs, CUDA: dense ladders"),
                ("lib/libconvladder_rungs_cuda_naive_sparse_conv.so", "rungs, CUDA: sparse ladders and rulebook"),
                ("CMakeFiles/rungs_cpu_reference_gemm_objects.dir/eigen.cpp.o", "rungs, CPU"),
                ("tests/planted_bugs/copies/a/rung.cu", "planted bugs"),
                ("cuda_on_cpu/tests/CMakeFiles/cuda_on_cpu_tests.dir/a.cpp.o", "tests of cuda_on_cpu"),
                ("gpu_code/cuda_naive/conv2d/direct.cubin", "for GPUs: kernels")):
            self.assertEqual(build_time.part_of(output), part)

    def test_rungs(self):
        for output, rung in (
                ("CMakeFiles/rungs_cuda_optimized_conv2d_objects.dir/x.cuda_on_cpu/2_direct.tiled.cpp.o", "cuda_optimized/conv2d/direct/tiled"),
                ("CMakeFiles/rungs_cuda_optimized_gemm_called_objects.dir/x.cuda_on_cpu/0_gemm.tiled.cpp.o", "cuda_optimized/gemm/tiled"),
                ("CMakeFiles/rungs_cpu_reference_conv2d_objects.dir/cpu_reference/conv2d/direct.cpp.o", "cpu_reference/conv2d/direct"),
                ("CMakeFiles/rungs_cuda_naive_gemm_objects.dir/x.cuda_on_cpu/marker_1.cpp.o", None),
                ("lib/libconvladder_rungs_cuda_naive_gemm.so", None)):
            self.assertEqual(build_time.rung_of(output), rung)

    def test_a_rung_over_its_budget_fails_in_continuous_integration(self):
        output = "CMakeFiles/rungs_cuda_naive_gemm_objects.dir/x.cuda_on_cpu/0_gemm.direct.cpp.o"
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        over = build_time.COMPILE_BUDGET + 1
        for build, seconds, ci, status in (("cpu", build_time.COMPILE_BUDGET, "true", 0), ("cpu", over, "true", 1),
                                           ("cpu", over, "", 0), ("sanitize", over, "true", 0)):
            log = pathlib.Path(folder.name, build, ".ninja_log")
            log.parent.mkdir(exist_ok=True)
            log_of((0, seconds * 1000, output, "1")).replace(log)
            with unittest.mock.patch.dict(os.environ, {"CI": ci}), contextlib.redirect_stdout(io.StringIO()), \
                    contextlib.redirect_stderr(io.StringIO()) as errors:
                self.assertEqual(build_time.main([log]), status)
            self.assertEqual("cuda_naive/gemm/direct" in errors.getvalue(), build == "cpu" and seconds == over)

    def test_tests_of_a_rung_are_added_up(self):
        with tempfile.TemporaryDirectory() as folder:
            costs = pathlib.Path(folder, "CTestCostData.txt")
            costs.write_text("a/b/c.emulated 2 55\na/b/c.emulated.identities 1 6.5\ncommand.Tour 1 99\n---\nx/y/z.cpu\n")
            tested = build_time.test_seconds(costs)
        self.assertEqual(tested, {"a/b/c": 61.5})
        self.assertEqual(build_time.over_budget({}, tested),
                         ["testing a/b/c takes 61.5 seconds; the budget of a rung is 60"])


if __name__ == "__main__":
    unittest.main()
