"""Tests tools/rung_coverage.py on records like llvm-cov's, of programs so short that one can count."""
import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))
sys.dont_write_bytecode = True
import rung_coverage  # noqa: E402
from rung_coverage import NEVER_ASKED, NEVER_FALSE, NEVER_TRUE, NOT_RUN  # noqa: E402

PROGRAM = """\
int f(int a,  int b) {
  if (a ||
      b) {
    a = 1;

    b = 2;
  }
  return a;
}

int g() { return 1; }
"""


CODE, GAP = rung_coverage.CODE, rung_coverage.GAP


def region(start, end, count, kind=CODE):
    return [*start, *end, count, 0, 0, kind]


def branch(start, end, true, false):
    return [*start, *end, true, false, 0, 0, 4]


def f_of(f=1, a=(1, 1), b=(1, 1), body=1):
    """As llvm-cov exports an instance of f: how often it and its body ran, and how often a and b were true and false."""
    regions = [region((1, 22), (9, 2), f), region((2, 7), (3, 8), f), region((3, 7), (3, 8), sum(b)),
               region((3, 9), (3, 10), body, GAP), region((3, 10), (7, 4), body)]
    return regions, [branch((2, 7), (2, 8), *a), branch((3, 7), (3, 8), *b)]


def g_of(count=1):
    return [region((11, 9), (11, 22), count)], []


def coverage(*instances, asked=((2, 7), (3, 7)), source=PROGRAM):
    return rung_coverage.Coverage("folder/ladder/f.cpp", instances, asked, source)


def entries(file):
    return [place.entry()[1:] for place in file.places()]


class Places(unittest.TestCase):
    def test_all_is_reached(self):
        file = coverage(f_of(), g_of())
        self.assertEqual(file.places(), [])
        # Blank lines do not count.
        self.assertEqual(file.numbers(), {"lines": [9, 9], "branches": [4, 4], "regions": [5, 5]})

    def test_a_function_that_is_not_called(self):
        file = coverage(f_of(), g_of(0))
        self.assertEqual(str(*file.places()), "folder/ladder/f.cpp:11: not run | int g() { return 1; }")
        self.assertEqual(file.numbers()["lines"], [8, 9])

    def test_a_body_that_is_not_entered(self):
        file = coverage(f_of(a=(0, 1), b=(0, 1), body=0))
        self.assertEqual([(place.line, place.what, place.text, place.lines) for place in file.places()], [
            (2, NEVER_TRUE, "a", 0), (3, NEVER_TRUE, "b", 0), (4, NOT_RUN, "a = 1;", 3)])

    def test_a_condition_that_is_not_asked(self):
        self.assertEqual(entries(coverage(f_of(a=(1, 0), b=(0, 0)))), [(NEVER_FALSE, "a"), (NEVER_ASKED, "b")])

    def test_branches_in_lines_that_do_not_run(self):
        (place,) = coverage(f_of(f=0, a=(0, 0), b=(0, 0), body=0)).places()
        self.assertEqual((place.what, place.text), (NOT_RUN, "int f(int a, int b) {"))
        self.assertEqual((place.lines, place.branches), (8, 4))

    def test_functions_that_do_not_run_are_two_places(self):
        file = coverage(f_of(f=0, a=(0, 0), b=(0, 0), body=0), g_of(0))
        self.assertEqual([place.line for place in file.places()], [1, 11])

    def test_instances_of_a_template_are_one(self):
        # One finds a true, the other false.
        self.assertEqual(entries(coverage(f_of(a=(1, 0)), f_of(a=(0, 1)))), [])

    def test_what_the_compiler_knows_is_no_branch(self):
        file = coverage(f_of(a=(0, 0)), asked=((3, 7),))
        self.assertEqual(file.places(), [])
        self.assertEqual(file.numbers()["branches"], [2, 2])

    def test_the_way_past_all_cases_is_no_branch(self):
        instance = [region((1, 1), (1, 14), 5)], [branch((1, 9), (1, 10), 0, 5)]
        self.assertEqual(coverage(instance, asked=((1, 9),), source="switch (a) {}").places(), [])

    def test_a_condition_over_lines(self):
        lines = ["if (a +", "      b  > 0)"]
        self.assertEqual(rung_coverage.text_between(lines, (1, 5), (2, 13)), "a + b > 0")

    def test_a_lambda_that_is_not_called(self):
        source = "void f() {\n  g([] {\n    h();\n  });\n}"
        file = coverage(([region((1, 10), (5, 2), 1)], []), ([region((2, 8), (4, 4), 0)], []), source=source)
        self.assertEqual(entries(file), [(NOT_RUN, "h();")])
        self.assertEqual(file.lines, {1: 1, 2: 1, 3: 0, 4: 0, 5: 1})

    CONSTEXPR = "{\n  if constexpr (a) {\n    f();\n    return;\n  }\n  g();\n}"

    def test_what_an_instance_leaves_out_is_not_reached_by_it(self):
        without = [region((1, 1), (7, 2), 5), region((2, 20), (2, 21), 0)], []
        file = coverage(without, source=self.CONSTEXPR)
        self.assertEqual(entries(file), [(NOT_RUN, "f();")])
        self.assertEqual(file.lines, {1: 5, 2: 5, 3: 0, 4: 0, 5: 0, 6: 5, 7: 5})

    def test_what_follows_a_return_that_an_instance_leaves_out_is_reached_by_it(self):
        without = [region((1, 1), (7, 2), 5), region((2, 20), (2, 21), 0)], []
        within = [region((1, 1), (7, 2), 3), region((2, 20), (5, 4), 3), region((5, 4), (6, 3), 0, GAP),
                  region((6, 3), (6, 7), 0)], []
        self.assertEqual(entries(coverage(without, within, source=self.CONSTEXPR)), [])


class List(unittest.TestCase):
    TEXT = """\
# A comment.

[no such device]
folder/ladder/f.cpp | never true | a || b
folder/ladder/f.cpp | not run | int g() {  return 1; }
"""

    def test_entries(self):
        self.assertEqual(rung_coverage.read_list(self.TEXT), [
            ("no such device", ("folder/ladder/f.cpp", NEVER_TRUE, "a || b")),
            ("no such device", ("folder/ladder/f.cpp", NOT_RUN, "int g() { return 1; }"))])

    def test_lines_that_are_none(self):
        for text in ("[why]\nfile | not run", "[why]\nfile | perhaps | text", "file | not run | text"):
            with self.assertRaises(ValueError):
                rung_coverage.read_list(text)

    def test_named_places_others_and_stale_entries(self):
        places = coverage(f_of(a=(0, 1)), g_of(0)).places()
        named, unnamed, stale = rung_coverage.compared(places, rung_coverage.read_list(self.TEXT))
        self.assertEqual([place.line for place in named["no such device"]], [11])
        self.assertEqual([str(place) for place in unnamed], ["folder/ladder/f.cpp:2: never true | a"])
        self.assertEqual([entry[2] for _, entry in stale], ["a || b"])

    def test_each_place_has_an_entry_of_its_own(self):
        places = coverage(f_of(), g_of(0)).places() * 2
        named, unnamed, stale = rung_coverage.compared(places, rung_coverage.read_list(self.TEXT)[1:])
        self.assertEqual((len(named["no such device"]), len(unnamed), stale), (1, 1, []))


class Table(unittest.TestCase):
    def test_a_row(self):
        file = coverage(f_of(), g_of(0))
        row = rung_coverage.row_of("f", [file, file], file.places())
        self.assertEqual(rung_coverage.table("ladder", [row]).splitlines()[2:],
                         ["| f | 16 of 18, 1 named | 8 of 8 | 8 of 10 |"])


if __name__ == "__main__":
    unittest.main()
