"""Tests of tools/mutants: which changes are made, and what is said of them."""
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools/mutants"))
sys.dont_write_bytecode = True
import built_rungs  # noqa: E402
import equivalents  # noqa: E402
import mutation  # noqa: E402
import operators  # noqa: E402
import report  # noqa: E402
import sample  # noqa: E402
import workplace  # noqa: E402


def changed(operator, text):
    """What becomes of the text, once for each place."""
    return [mutant.mutated for mutant in mutation.mutants_of("a.cu", text) if mutant.operator == operator]


class Operators(unittest.TestCase):
    def expect(self, operator, text, *results):
        self.assertEqual(changed(operator, text), list(results))

    def test_what_does_not_run_is_left_alone(self):
        for text in ("// a[i] + 1", "/* a < b */", "#pragma unroll(4)", "#if A < 4 && \\\n  B < 5", 'f("a < 1");',
                     'R"(a < 1)";', "static_assert(kA < 4);", "template <int kA, bool kB = kA + 1>",
                     "using Tile = ThreadTile<128, 64>;", 'return text("r = ", r + 1);', "enum class A { a = 1 };",
                     "__launch_bounds__(kThreads * 2, 3)", 'throw BadInput(a + 1);', "[[likely]]"):
            self.assertEqual([mutant.mutated for mutant in mutation.mutants_of("a.cu", text)], [], text)

    def test_signs_between_operands_alone(self):
        self.expect("comparison moved", "a < b;", "a <= b;")
        self.expect("comparison moved", "std::vector<int> b;")
        self.expect("comparison turned", "a == b;", "a != b;")
        self.expect("and, or", "auto&& c = a && b;", "auto&& c = a || b;")
        self.expect("times, plus", "float* c = a * b;", "float* c = a + b;")
        self.expect("plus, minus", "x = -a + b;", "x = -a - b;")
        self.expect("bits of another sign", "f(&a, a & b);", "f(&a, a | b);")

    def test_indices(self):
        self.expect("index off by one", "x[n * C + c];", "x[(n + 1) * C + c];", "x[n * C + (c + 1)];")
        self.expect("index off by one", "w[w_at(k, c.h, r)];", "w[w_at((k + 1), c.h, r)];", "w[w_at(k, c.h, (r + 1))];")
        self.expect("index off by one", "auto f = [i] { return i; };")

    def test_constants(self):
        self.expect("constant + 1", "x = 0x1fu + 1'000;", "x = 32u + 1'000;", "x = 0x1fu + 1001;")
        self.expect("constant - 1", "x = 0 + 2;", "x = 0 + 1;")
        for literal, next_one in (("017", "16"), ("07u", "8u"), ("00", "1"), ("0'17L", "16L"), ("0b101", "6"),
                                  ("0B1'1u", "4u"), ("0X1F", "32"), ("10'0ull", "101ull")):
            self.expect("constant + 1", f"x = {literal};", f"x = {next_one};")
        self.expect("constant doubled", "x = k * kStep + 1;", "x = k * (2 * kStep) + 1;")
        self.expect("constant halved", "constexpr int kStep = 8;", "constexpr int kStep = 4;")

    def test_axes(self):
        self.expect("axes swapped", "int h = p * c.step.h;", "int h = q * c.step.h;", "int h = p * c.step.w;")
        self.expect("axes swapped", "blockIdx.x + a.x;", "blockIdx.y + a.x;")

    def test_guards_and_choices(self):
        self.expect("guard always", "if (a < b) f();", "if (true) f();")
        self.expect("guard never", "if (int c = g()) f();")  # a declaration
        self.expect("guard never", "if (g(); c < b) f();", "if (g(); false) f();")
        self.expect("guard never", "if constexpr (kA) f();")
        self.expect("one of two, always", "x = f(a, b) + 1 < c ? d : e;", "x = true ? d : e;", "x = false ? d : e;")

    def test_barriers_and_waits(self):
        self.expect("barrier or wait dropped", "f(); __syncthreads(); g();", "f(); ; g();")
        self.expect("barrier or wait dropped", "a;\nptx::cp_async_wait_group<kStages - 2>();", "a;\n;")
        self.expect("barrier or wait dropped", "ok = __shfl_sync(~0u, a, 0);")
        self.expect("wait one later", "a; ptx::cp_async_wait_group<kStages - 2>();",
                    "a; ptx::cp_async_wait_group<(kStages - 2) + 1>();")

    def test_loops(self):
        loop = "for (int c = c0; c < C; c += kStep) f();"
        self.expect("chunk begins at 0", loop, loop.replace("= c0", "= 0"))
        self.expect("loop skipped", loop, loop.replace("c < C", "false"))
        self.expect("assigned, not added", loop)  # it would never end
        self.expect("assigned, not added", "sum += a;", "sum = a;")

    def test_stages_alignment_and_wrap_around(self):
        self.expect("stage frozen", "s = step % kStages;", "s = step * 0 % kStages;")
        self.expect("stage frozen", "s ^= 1;", "s ^= 0;")
        self.expect("alignment not asked for", "if (C % 4 == 0 && a) f();", "if (C % 1 == 0 && a) f();")
        self.expect("wrap-around missing", "s = (h + 1) & (slots - 1);", "s = (h + 1);")
        self.expect("wrap-around missing", "s = i % conv.C + 1;", "s = i + 1;")

    def test_what_is_forgotten(self):
        self.expect("tail forgotten", "n = ceil_div(f(a, b), kStep);", "n = ((f(a, b)) / (kStep));")
        self.expect("bias or activation left out", "y = activated(conv.activation, a + b);", "y = (a + b);")
        self.expect("bias or activation left out", "y = bias[k];", "y = 0.0f;")

    def test_declines(self):
        text = "Declined supports(const SparsePoolProblem& pool) {\n  return {};\n}"
        self.assertIn('{ if (pool.C % 2 == 1) return "no pool.C % 2 == 1";', changed("declines what it took", text)[0])

    def test_a_mutant_is_known_by_its_lines_wherever_they_are(self):
        one, = [m for m in mutation.mutants_of("a.cu", "f();\n  a < b;\n") if m.operator == "comparison moved"]
        other, = [m for m in mutation.mutants_of("a.cu", "a  < b;\n") if m.operator == "comparison moved"]
        self.assertEqual(one.line_number, 2)
        self.assertEqual((one.before, one.after), (["  a < b;"], ["  a <= b;"]))
        self.assertEqual(one.change, other.change)  # however it is formatted
        first, second = [m for m in mutation.mutants_of("a.cu", "a < b;\na < b;\n") if m.operator == "comparison moved"]
        self.assertEqual(first.change, second.change)
        self.assertNotEqual(first.key, second.key)


class Rung:
    def __init__(self, name, *files):
        self.name, self.files = name, files


class Mutants(unittest.TestCase):
    def test_the_sample_is_even_over_rungs_and_operators_and_the_same_by_its_seed(self):
        def draw(seed):
            text = "for (int i = c0; i < n + 1; i += 2) sum += a[i] * b[i];\nif (a < b) f(1, 2, 3, 4, 5, 6);\n"
            of = {file: mutation.mutants_of(file, text) for file in ("a", "b", "shared")}
            rungs = [Rung("a", "a", "shared"), Rung("b", "b", "shared")]
            return [(rung.name, mutant.key) for rung, mutant in sample.sequence(rungs, of, seed)]

        pairs = draw(1)
        self.assertEqual(pairs, draw(1))
        self.assertNotEqual(pairs, draw(2))
        self.assertEqual(len({key for _, key in pairs}), len(pairs))  # what two rungs include is drawn once
        self.assertEqual(sum(name == "a" for name, _ in pairs[:10]), 5)
        names = [key.split("\n")[1] for _, key in pairs[:10]]
        self.assertEqual(len(set(names)), 10)

    def equivalents(self, text):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "list.txt"
            path.write_text(text)
            return equivalents.read_equivalents(path)

    def test_the_list_of_equivalent_mutants(self):
        found = self.equivalents("# About.\n\na.cu: comparison moved\n- a  < b;\n+ a <= b;\n  Because\n  of c.\n\n"
                                 "a.cu: *\n- int c = 4;\n+ *\n  Speed.\n")
        self.assertEqual(found["a.cu", "comparison moved", "a < b;", "a <= b;"], "Because of c.")
        self.assertEqual(equivalents.reason_for(("a.cu", "constant + 1", "int c = 4;", "int c = 5;"), found), "Speed.")
        self.assertEqual(equivalents.reason_for(("a.cu", "comparison moved", "a < b;", "a > b;"), found), "")
        found = self.equivalents("cuda/...: *\n- ...(a, kMost)...\n+ ...(2 * kMost)...\n  Grids.\n")
        fitting = ["cuda/b.cu", "constant doubled", "f(a, kMost);", "f(a, (2 * kMost));"]
        self.assertEqual(equivalents.reason_for(fitting, found), "Grids.")
        for place, other in enumerate(("cpu/b.cu", "constant doubled", "f(b, kMost);", "f(a, 2);")):
            changed = [*fitting[:place], other, *fitting[place + 1:]]
            self.assertEqual(equivalents.reason_for(changed, found), "Grids." if place == 1 else "")
        found = self.equivalents("a.cu: comparison moved\n- a  < b;\n+ a <= b;\n  Because.\n\n"
                                 "a.cu: *\n- int c = 4;\n+ *\n  Speed.\n")
        of = {"a.cu": mutation.mutants_of("a.cu", "int c = 4;\n")}
        self.assertEqual(equivalents.stale_entries(found, ["a.cu"], of), [("a.cu", "comparison moved", "a < b;", "a <= b;")])
        with self.assertRaises(built_rungs.Trouble):
            self.equivalents("- a line without a file\n")

    def test_all_files_have_mutants_and_every_entry_of_ours_is_of_one(self):
        ours = equivalents.read_equivalents(ROOT / "tests/equivalent_mutants.txt")
        files = sorted(path.relative_to(ROOT).as_posix() for folder in built_rungs.FOLDERS
                       for path in (ROOT / folder).rglob("*") if path.suffix in (".cpp", ".hpp", ".cu", ".cuh"))

        mutants = {file: mutation.mutants_of(file, (ROOT / file).read_text()) for file in files}
        self.assertLess(100_000, sum(map(len, mutants.values())))
        self.assertEqual({mutant.operator for of in mutants.values() for mutant in of}, set(operators.OPERATORS))
        self.assertEqual(equivalents.stale_entries(ours, files, mutants), [])

    def test_how_a_run_ended(self):
        passed = "[doctest] test cases:  2 |  2 passed | 0 failed | 9 skipped\n"
        self.assertIsNone(workplace.how_it_ended(0, passed))
        with self.assertRaises(built_rungs.Trouble):
            workplace.how_it_ended(0, passed.replace("2", "0"))
        with self.assertRaises(built_rungs.Trouble):
            workplace.how_it_ended(127, "")
        failed = "TEST CASE:  cuda_naive/gemm/direct.emulated{}\n\nx.cpp:63: ERROR: primes: differs\n"
        self.assertEqual(workplace.how_it_ended(1, failed.format("")), ("problems", "primes: differs"))
        self.assertEqual(workplace.how_it_ended(1, failed.format(".identities"))[0], "identities")
        self.assertEqual(workplace.how_it_ended(1, failed.replace("cuda_naive/", "").format(""))[0], workplace.LAST_ONES)
        self.assertEqual(workplace.how_it_ended(-11, "")[0], "crash")
        self.assertEqual(workplace.how_it_ended(137, "")[0], "time")

    def test_the_score_leaves_equivalent_ones_out(self):
        row = {"drawn_for": "r", "operator": "o", "ladder": "l", "by": "problems", "file": "f", "line": 7, "rung": "r",
               "before": ["a"], "after": ["b"]}
        text = report.report([{**row, "verdict": verdict} for verdict in
                               ("caught", "caught", "caught", "survived", "equivalent", "GPU alone")])
        self.assertIn("| all | 3 | 5 | 60 % | 1 | 1 |", text)
        self.assertIn("SURVIVED f:7: o\n  (tests of r)\n- a\n+ b", text)


if __name__ == "__main__":
    unittest.main()
