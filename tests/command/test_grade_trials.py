#!/usr/bin/env python3
"""Tests of the programs that examine a student's code: the audit, the sandbox, the checker and its workers (tools/grade, course/grader).

The audit and the sandbox are tried as they are. What needs an assignment's build, some minutes, is for
CONVLADDER_COURSE_ALL=1 (`./ladder check course-all` sets it). Exit status 77: skipped; this machine has no seccomp or no Landlock.
"""
import itertools
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools/handout"), str(ROOT / "tools/grade")]

import assignment as assignments  # noqa: E402
import audit  # noqa: E402
import draw  # noqa: E402
import predictions  # noqa: E402
import tree  # noqa: E402
import trials  # noqa: E402

ALL = os.environ.get("CONVLADDER_COURSE_ALL") == "1"
KEY = b"k" * 32
A3, TILED = "a3_tile_and_halo", "cuda_optimized/conv2d/direct/tiled"
RUNGS = sorted(path for folder in ("cuda_naive", "cuda_optimized") for path in (ROOT / folder).rglob("*.cu"))


def source_of(rung):
    return (ROOT / assignments.source_of(rung)).read_bytes()


class Texts(unittest.TestCase):
    def refused(self, text, says):
        with self.assertRaises(audit.Refused, msg=text) as caught:
            audit.check_source_text({"a.cu": text.encode()})
        self.assertIn(says, str(caught.exception))

    def test_no_rung_is_refused(self):
        self.assertGreater(len(RUNGS), 50)
        judged = {assignments.source_of(rung) for name in assignments.names() for rung in assignments.read(name).rungs}
        for path in RUNGS:
            # A rung of no assignment may ask how many blocks there may be; whoever sets it changes its case.
            if path.relative_to(ROOT).as_posix() not in judged and b"max_strided_blocks" in path.read_bytes():
                continue
            audit.check_source_text({path.relative_to(ROOT).as_posix(): path.read_bytes()})

    def test_directives(self):
        for text, says in (('#include "/etc/passwd"', "/etc/passwd"), ('#include "core/../../x.hpp"', "core/.."),
                           ("#include <unistd.h>", "unistd"), ("#include <fstream>", "fstream"), ("#include WHAT", "WHAT"),
                           ('#include "oracle/reference.hpp"', "oracle"), ("#include_next <vector>", "include_next"),
                           ("#embed <x>", "embed"), ('#line 3 "x"', "line"), ('# 3 "core/x.hpp"', "#3"),
                           ("%:include <fstream>", "%:"), ("#inc\\\nlude <fstream>", "fstream"),
                           ("/* */ #include <fstream>", "fstream"), ("#pragma GCC optimize 3", "pragma"),
                           ("#define K __global__ void", "__global__"), ("#if __has_include(<a>)", "__has_include"),
                           ("#ifdef CUDA_ON_CPU_INSPECT", "CUDA_ON_CPU_INSPECT"), ("void f() { asm(\"\"); }", "asm")):
            self.refused(text, says)

    def test_what_is_no_code_is_no_reason(self):
        audit.check_source_text({"a.cu": b'// #include <fstream>\n/* asm\n#embed */ const char* a = "asm #line";\n#pragma unroll 4\n'
                                         b"#include <vector>\n#include \"core/error.hpp\"  // why\n"})

    def test_what_shared_expands_to_is_no_instrumentation(self):
        text = b"__global__ void k() { __shared__ float t[4]; __shared__ __align__(16) int u[2][2]; t[0] = u[0][0]; }"
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "a.cu"
            file.write_bytes(text)
            done = subprocess.run(["c++", "-std=c++20", "-E", "-x", "c++", "-I", ROOT / "cuda_on_cpu/include", "-include", "cuda_runtime.h",
                                   "a.cu"], cwd=folder, capture_output=True, text=True, check=True)
        self.assertEqual(done.stdout.count("cuda_on_cpu_probe = {}"), 2)
        audit.check_tokens(done.stdout, {"a.cu": text})
        for by_hand in ("int cuda_on_cpu_probe;", "static thread_local cuda_on_cpu::detail::SharedProbe cuda_on_cpu_probe = {};"):
            with self.assertRaisesRegex(audit.Refused, "cuda_on_cpu_probe: it is the instrumentation's own"):
                audit.check_source_text({"a.cu": by_hand.encode()})
            with self.assertRaisesRegex(audit.Refused, "cuda_on_cpu_probe: it is the instrumentation's own"):
                audit.check_tokens(done.stdout + by_hand + "\n", {"a.cu": text})

    def test_tokens_of_own_lines_alone(self):
        given = '# 1 "a.cu"\nint a;\n# 1 "/usr/include/x.h" 1\nasm("x"); __attribute__((section("s"))) int b;\n# 2 "a.cu" 2\n'
        audit.check_tokens(given, {"a.cu": b""})
        for line, says in (("__asm__(\"nop\");", "__asm__"), ("__attribute__((constructor)) void f();", "constructor"),
                           ("[[gnu::section(\"x\")]] int c;", "gnu::section"), ("#pragma GCC poison a", "poison"),
                           ("[[using gnu: used]] int c;", "using gnu"), ("__tsan_func_exit();", "__tsan_func_exit"),
                           ("namespace std { }", "namespace std"), ("namespace a::check { }", "namespace check")):
            with self.assertRaises(audit.Refused, msg=line) as caught:
                audit.check_tokens(given + line + "\n", {"a.cu": b""})
            self.assertIn(says, str(caught.exception))
        audit.check_tokens(given + "[[maybe_unused]] int d[2][[1]]; inline __attribute__((always_inline)) void e();\n"
                                   "struct __attribute__((aligned(16))) F {};\n", {"a.cu": b""})


class Symbols(unittest.TestCase):
    OWN = "_ZN10convladder8emulated14cuda_optimized6conv2d12direct_tiledE"

    def check(self, kind, mangled, name=None, needed=()):
        audit.check_symbols([(kind, mangled, name or mangled)], f"{TILED}.cu", needed)

    def test_its_own_names(self):
        self.check("D", self.OWN)
        self.check("W", "_ZN10convladder8emulated5checkEv")
        self.check("t", "anything_local")
        for kind, name in (("T", "memcmp"), ("W", "_Znwm"), ("T", "main"), ("B", "environ"), ("V", "memcpy"),
                           ("T", "_ZN10convladder8emulated10cuda_naive6conv2d1fEv"), ("T", "_ZN10convladder5textEv")):
            with self.assertRaises(audit.Refused, msg=name):
                self.check(kind, name)

    def test_what_it_may_ask_for(self):
        for name in ("memcpy", "printf", "operator new(unsigned long)", "std::ostream::operator<<(int)", "fmaf", "sqrt",
                     "convladder::current_stream()", "cuda_on_cpu::detail::launch(int)", "cuda_on_cpu::threadIdx",
                     "cuda_on_cpu::control::last_report[abi:cxx11]()", "vtable for __cxxabiv1::__si_class_type_info"):
            self.check("U", name)
        for name in ("fork", "open", "fopen", "syscall", "mprotect", "dlsym", "kill", "getenv", "environ", "ptrace", "mmap",
                     "std::thread::_M_start_thread(int)", "std::__basic_file<char>::sys_open(int, int)", "std::filesystem::status(int)",
                     "cuda_on_cpu::control::set_nan_fill(bool)", "cuda_on_cpu::DeviceArena::open()", "cuda_on_cpu::inspect::set_watcher(int)",
                     "convladder::device_at(convladder::Where)", "convladder::emulated::cuda_device()",
                     "convladder::check::take_reached_blank[abi:cxx11]()", "convladder::cpu_reference::conv2d::direct",
                     "convladder::emulated::cuda_naive::conv2d::direct"):
            with self.assertRaises(audit.Refused, msg=name):
                self.check("U", name)

    def test_copies_where_the_projects_rung_makes_them(self):
        name = "cuda_on_cpu::cudaMemcpyAsync(void*, void const*)"
        with self.assertRaisesRegex(audit.Refused, "cudaMemcpyAsync: .* stay on the device"):
            self.check("U", name)
        self.check("U", name, needed={name})

    def test_calls(self):
        def listing(**calls):
            return "".join(f"0000 <{name}>:\n" + "".join(f"   1:\tcall   5 <{name}+0x5>\n\t\t\t5: R_X86_64_PLT32\t{called}-0x4\n" for called in of)
                           for name, of in calls.items())
        text = ["__global__ void __launch_bounds__(kThreads)\n    tile(int n) {}"]

        def illegal(**calls):
            try:
                audit.check_calls(listing(**calls), text, lambda names: names)
            except audit.IllegalCuda as found:
                return str(found) + (", unseen" if found.unseen else "")
            return ""
        self.assertEqual(illegal(tile=["__tsan_read4", "fmaf", "helper"], helper=["memcpy"], run=["malloc"]), "")
        self.assertIn("malloc: tile calls malloc", illegal(tile=["malloc"]))
        self.assertIn("printf: tile calls helper calls printf", illegal(tile=["helper"], helper=["printf"]))
        shared = listing(tile=["fmaf"]) + "\t\t\t9: R_X86_64_DTPOFF32\t_ZZ4tileiE6before\n\t\t\t9: R_X86_64_TLSLD\t_ZZ4tileiE6before-0x4\n"
        audit.check_calls(shared, text, lambda names: [name.replace("_ZZ4tileiE6before", "tile(int)::before") for name in names])
        for unseen, below in (("strlen", True), ("printf", False), ("own", False)):
            says = illegal(tile=["malloc", "helper"], helper=[unseen], own=["fmaf"])
            self.assertEqual(says.endswith("unseen"), below, says)


class Cases(unittest.TestCase):
    def test_drawn_by_the_key(self):
        for name in assignments.names():
            assignment = assignments.read(name)
            cases = draw.hidden_cases(assignment, KEY)
            names = [case[0] for case in cases]
            self.assertEqual(len(set(names)), len(names))
            self.assertEqual(cases, draw.hidden_cases(assignment, KEY))
            other = draw.hidden_cases(assignment, b"l" * 32)
            self.assertEqual(names, [case[0] for case in other])
            self.assertFalse({case[3] for case in cases} & {case[3] for case in other})
            public = {words for _, _, words in assignment.cases}
            self.assertGreater(sum(case[2] not in public for case in cases), 0.6 * len(cases))
            for rung in assignment.rungs:
                families = {case.split(".")[0] for case, of, _ in assignment.cases if of == rung and case.startswith("F")}
                for family in families:
                    self.assertEqual(sum(case[0].split(".")[0] == family and case[1] == rung for case in cases), draw.HIDDEN)

    def test_groups_still_divide(self):
        for number in range(50):
            options = dict(draw.options_of(draw.near("conv2d", "--c 6 --h 8 --k 3 --groups 3 --bias", draw.Draw(KEY, str(number)))))
            self.assertEqual((int(options["c"]) % 3, int(options["k"]) % 3, options["bias"]), (0, 0, ""))

    def test_whole_tiles_stay_whole(self):
        for number in range(20):
            options = dict(draw.options_of(draw.near("conv2d", "--c 1 --h 10 --w 34 --k 1", draw.Draw(KEY, str(number)), plain=True)))
            self.assertEqual(((int(options["h"]) - 2) % 8, (int(options["w"]) - 2) % 32), (0, 0))

    def test_a_hunted_problem(self):
        self.assertEqual(trials.hunted_problem(b"# mine\n--c 2 --h 5\n--pad 1,0,2,0 --activation relu\n"),
                         ("--c 2 --h 5 --pad 1,0,2,0 --activation relu", ""))
        self.assertFalse(trials.hunted_problem(b"# nothing yet\n")[0])
        for text in (b"--c $(id)", b"--source /etc/passwd", b"--c 2\t;ls", b"--c " + b"1" * 500, b"\xff\xfe"):
            self.assertTrue(trials.hunted_problem(text)[1], text)


class Sandbox(unittest.TestCase):
    """The compiler's, with programs of the system in it."""

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="convladder-test-")
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.jail = cls.folder / "jail"
        subprocess.run([os.environ.get("CXX", "c++"), "-std=c++20", "-I", ROOT, ROOT / "course/grader/jail.cpp",
                        ROOT / "course/grader/sandbox.cpp", "-o", cls.jail], check=True)
        cls.own = cls.folder / "own"
        cls.own.mkdir()

    def run_in(self, level, script, seconds=10):
        words = [self.jail, level, str(seconds), *itertools.chain(*(("--read", path) for path in (
            "/usr", "/lib", "/lib64", "/bin", "/etc/ld.so.cache"))), "--write", self.own, "--"]
        done = subprocess.run([*map(str, words), "/usr/bin/python3", "-I", "-c", script], capture_output=True, text=True, timeout=60)
        if "landlock" in done.stderr or "seccomp:" in done.stderr:
            self.skipTest(done.stderr)
        return done

    def test_what_is_let_through(self):
        done = self.run_in("sealed", f"open('{self.own}/a', 'w').write('x'); print(open('{self.own}/a').read())")
        self.assertEqual((done.returncode, done.stdout), (0, "x\n"), done.stderr)

    def test_what_is_not(self):
        outside = self.folder / "secret"
        outside.write_text("secret")
        for script in (f"open('{outside}').read()", f"open('{self.folder}/new', 'w')", "open('/etc/passwd').read()",
                       "import socket; socket.socket()", "import os; os.kill(os.getppid(), 0)",
                       f"import os; os.link('{outside}', '{self.own}/b'); open('{self.own}/b').read()"):
            done = self.run_in("sealed", script)
            self.assertEqual(done.returncode, 1, f"{script}: {done.stdout}{done.stderr}")
            self.assertRegex(done.stderr, "PermissionError|OSError")
        # That the sandbox is what denies it:
        self.assertEqual(self.run_in("limits", f"open('{outside}').read()").returncode, 0)

    def test_limits(self):
        self.assertIn("File too large", self.run_in("sealed", f"open('{self.own}/big', 'wb').write(bytes(65 << 20))").stderr)
        self.assertIn("MemoryError", self.run_in("sealed", "bytearray(3 << 30)").stderr)
        self.assertLess(self.run_in("sealed", "while True: pass", seconds=1).returncode, 0)


@unittest.skipUnless(ALL, "takes minutes: CONVLADDER_COURSE_ALL=1")
class Trials(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.made = {}

    def trials_of(self, name, level="auto"):
        if (name, level) not in self.made:
            self.made[name, level] = trials.Trials(assignments.read(name), KEY, level, say=lambda *_: None)
        return self.made[name, level]

    def run_files(self, name, files, level="auto", **more):
        with tempfile.TemporaryDirectory(prefix="convladder-test-") as folder:
            result = self.trials_of(name, level).run(files, pathlib.Path(folder), **more)
        self.assertGreater(result.pop("seconds")["cpu"], -1)
        return result

    @staticmethod
    def outcomes(result):
        return {name: case["outcome"] for rung in result["rungs"].values() for name, case in rung["cases"].items()}

    def test_solutions_agree_and_skeletons_are_not_written(self):
        for name in assignments.names():
            with self.subTest(name):
                assignment = assignments.read(name)
                result = self.run_files(name, predictions.project_files(assignment))
                self.assertEqual(set(self.outcomes(result).values()), {"agrees"})
                for rung, counted in result["counters"].items():
                    for case, of in counted.items():
                        self.assertEqual((of["outcome"], of["races"], of["unwritten"]), ("agrees", [], []), f"{rung} {case}")
                outcomes = list(self.outcomes(self.run_files(name, {})).values())
                self.assertLessEqual(set(outcomes), {"agrees", "not_written"})
                self.assertLess(outcomes.count("agrees"), 0.1 * len(outcomes))

    def test_the_same_twice_and_at_each_level(self):
        files = {f"{TILED}.cu": source_of(TILED)}
        cases = {"F3.h1", "F10.p1", "c1"}
        first = self.run_files(A3, files, cases=cases)
        self.assertEqual(self.run_files(A3, files, cases=cases), first)
        for level in ("limits", "sealed"):
            self.assertEqual(self.run_files(A3, files, level, cases=cases), first)

    def test_planted_bugs_differ(self):
        for bug in ("group_offset_forgotten", "last_halo_row_missing"):
            outcomes = self.outcomes(self.run_files(A3, {f"{TILED}.cu": tree.with_bug(TILED, bug).encode()}))
            self.assertIn("differs", outcomes.values(), bug)

    def test_illegal_cuda_is_named(self):
        text = source_of(TILED).decode()
        mark = "  float* tile = dynamic_shared<float>();"
        for header, code, name, outcome in (
                ("algorithm", "std::sort(y, y + 1);", "std::sort", "agrees"), ("new", "delete new float[2];", "new", "agrees"),
                ("cstdio", 'printf("%d", conv.C);', "printf", "agrees"), ("new", "run_all(conv, y);", "run_all", "crashed")):
            changed = text.replace(mark, f"  {code}\n{mark}").replace('#include "core/text.hpp"', f'#include "core/text.hpp"\n#include <{header}>')
            changed = changed.replace("namespace {\n", "namespace {\nvoid run_all(const Conv2dProblem& conv, float* y);\n", 1)
            changed = changed.replace("std::string choice_in_words", "void run_all(const Conv2dProblem& conv, float* y) {\n  launch(conv2d_direct_tiled, {1, 1, 0}, "
                                      "conv, 0u, 0u, y, y, y, y);\n}\n\nstd::string choice_in_words")
            of = self.run_files(A3, {f"{TILED}.cu": changed.encode()}, cases={"F1.p1"})["rungs"][TILED]
            self.assertEqual(of["build"], "illegal_cuda", of["message"])
            self.assertTrue(of["message"].startswith(f"{name}: "), of["message"])
            # Run all the same: it loses marks for robustness.
            self.assertEqual(of["cases"]["F1.p1"]["outcome"], outcome, of["cases"]["F1.p1"]["detail"])

    def test_what_does_not_compile(self):
        of = self.run_files(A3, {f"{TILED}.cu": b"int a = ;\n"}, cases={"F1.p1"})["rungs"][TILED]
        self.assertEqual(of["build"], "no_build")
        self.assertRegex(of["message"], rf"^{TILED}.cu:1:9: error: ")

    def test_the_hunt(self):
        right = source_of("cuda_naive/conv2d/direct")
        problem = b"--n 2 --c 2 --h 5 --w 7 --k 3 --r 2 --s 3 --pad 1,0,2,0 --bias"
        with tempfile.TemporaryDirectory(prefix="convladder-test-") as folder:
            made = self.trials_of(A3)
            with trials.Judge(made.build / "judge", made.isolation["level"], made.folder) as judge:
                good = made._hunt({"hunt/problem.txt": problem, "hunt/direct.cu": right}, pathlib.Path(folder), judge, "ada")
                huge = made._hunt({"hunt/problem.txt": b"--h 3000 --w 3000"}, pathlib.Path(folder), judge, "ada")
        self.assertEqual((good["problem"]["outcome"], good["mended"]["outcome"]), ("differs", "agrees"), good)
        self.assertIn("at most 4096", huge["problem"]["detail"])

    def test_isolation_that_is_not_there(self):
        with self.assertRaises(trials.IsolationMissing):
            self.trials_of(A3)._isolation("sealed", {"landlock": 0, "seccomp": True, "root": True, "namespaces": False})


if __name__ == "__main__":
    unittest.main()
