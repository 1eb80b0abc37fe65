"""Tests of the list of counters that are not the profiler's: it must be complete, and have nothing else.

    python3 test_counters.py
"""
import copy
import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools/inspect"))
sys.dont_write_bytecode = True
import counter_differences as differences  # noqa: E402

CAUSE = next(iter(differences.CAUSES))
COMPARISON = {"rungs": {"a": {"counters": {"global loads": [100, 95], "atomics": [8, 0]}, "as_written": {"global loads": 400}},
                        "b": {"counters": {"global loads": [3, 4]}, "as_written": {}}}}
ENTRIES = [{"rung": "a", "counter": "atomics", "ours": 8, "profiler": 0, "ratio": None, "cause": CAUSE, "because": "seen"},
           {"rung": "b", "counter": "global loads", "ours": 3, "profiler": 4, "ratio": 0.75, "cause": CAUSE, "because": "seen"}]


class Counters(unittest.TestCase):
    def changed(self, number, **values):
        entries = copy.deepcopy(ENTRIES)
        entries[number].update(values)
        return differences.problems_of(COMPARISON, entries)

    def test_the_committed_list_is_that_of_the_comparison(self):
        self.assertEqual(differences.problems_of_record(), [])
        self.assertEqual({entry["cause"] for entry in differences.read()}, set(differences.CAUSES))

    def test_a_complete_list_has_no_problem(self):
        self.assertEqual(differences.problems_of(COMPARISON, ENTRIES), [])

    def test_what_is_missing_or_within_is_told(self):
        [problem] = differences.problems_of(COMPARISON, ENTRIES[:1])
        self.assertIn("b, global loads", problem)
        [problem] = differences.problems_of(COMPARISON, [*ENTRIES, {**ENTRIES[0], "counter": "global loads"}])
        self.assertIn("within 5%", problem)

    def test_what_is_written_is_compared_where_it_is_not_joined(self):
        self.assertEqual(differences.differing_as_written(COMPARISON), {
            ("a", "global loads"): (400, 95), ("a", "atomics"): (8, 0), ("b", "global loads"): (3, 4)})

    def test_each_has_its_numbers_and_a_known_cause(self):
        self.assertEqual(len(self.changed(0, ours=9)), 1)
        self.assertEqual(len(self.changed(1, ratio=0.8)), 1)
        self.assertEqual(len(self.changed(1, cause="the weather")), 1)
        self.assertEqual(len(self.changed(1, because=None)), 1)


if __name__ == "__main__":
    unittest.main()
