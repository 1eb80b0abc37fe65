"""End-to-end tests of the option --device of the command `convladder`: the card that the emulated GPU stands for.

    CONVLADDER_PROGRAM=$PWD/build/cpu/command/convladder python3 -B tests/command/test_device.py [CLASS]

CTest runs each class as a test of its own.
"""
import json
import pathlib
import sys
import unittest

from program import BAD_INPUT, SMALL_GEMM, ProgramTest, run

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))
import cards  # noqa: E402

GEMM = [*SMALL_GEMM, "--dtype", "tf32", "--backend", "emulated"]


class EmulatedCard(ProgramTest):
    def rows_on(self, architecture, *arguments):
        """@return the rows of a comparison by their rungs, and the last line that was printed"""
        file = self.folder / "rows.json"
        result = self.agree("compare", *GEMM, "--device", architecture, "--json", str(file), *arguments)
        rows = json.loads(file.read_text())["ladders"][0]["rungs"]
        return {row["rung"]: row for row in rows}, result.stdout.splitlines()[-1]

    def test_each_card_declines_what_needs_more_and_says_so(self):
        listed = self.folder / "list.json"
        self.agree("list", "--ladder", "gemm", "--json", str(listed))
        needs = {row["rung"]: row["needs"] for row in json.loads(listed.read_text()) if row["backend"] == "cuda"}
        for model in cards.models():
            with self.subTest(model["architecture"]):
                rows, last = self.rows_on(model["architecture"])
                self.assertEqual(rows.keys(), needs.keys())
                lacking = {rung for rung in needs if not cards.runs_on(needs[rung], model["capability"])}
                for rung, row in rows.items():
                    self.assertIn(row["status"], ("agrees", "declined"))
                    if rung in lacking:
                        self.assertEqual(row["status"], "declined")
                        self.assertTrue(row["reason"].startswith(f"needs {needs[rung]}: "), row["reason"])
                        self.assertIn(model["architecture"], row["reason"])
                    else:
                        self.assertNotIn("this device", row["reason"])
                name = f"{model['architecture']} ({model['card']}) "
                self.assertTrue(last.startswith(name), last)
                self.assertIn(f"cannot run {len(lacking)} of {len(needs)} " if lacking else f"can run all {len(needs)} ", last)
                if model["architecture"] == "sm_86":
                    self.assertIn(" need sm_90a (wgmma)", last)

    def test_no_line_without_the_option(self):
        result = self.agree("compare", *GEMM)
        self.assertNotIn("sm_90", result.stdout.splitlines()[-1])

    def test_bad_input(self):
        for architecture, nearest in (("sm_87", "sm_"), ("90", "sm_90"), ("rtx3060", "sm_")):
            result = run("compare", *GEMM, "--device", architecture)
            self.assertEqual(result.returncode, BAD_INPUT)
            self.assertEqual(result.stdout, "")
            self.assertIn("RTX 3060", result.stderr)
            self.assertIn("nearest: " + nearest, result.stderr)
        result = run("compare", *SMALL_GEMM, "--backend", "cpu", "--device", "sm_86")
        self.assertEqual(result.returncode, BAD_INPUT)
        self.assertIn("emulated", result.stderr)

    def test_random_problems(self):
        result = self.agree("fuzz", "gemm", "--device", "sm_75", "--backend", "emulated", "--problems", "3", "--seed", "1")
        self.assertIn("0 failures", result.stdout.splitlines()[-1])


if __name__ == "__main__":
    unittest.main()
