"""End-to-end tests of the command `convladder`: standard output as a file, a reader that leaves, narrow terminals.

    CONVLADDER_PROGRAM=$PWD/build/cpu/command/convladder python3 -B tests/command/test_terminal.py [CLASS]

CTest runs each class as a test of its own.
"""
import json
import os
import subprocess
import unittest

from program import HAS_GPU, PROGRAM, SMALL_GEMM, ProgramTest, run

COMMANDS = {"list": ["list"], "compare": ["compare", *SMALL_GEMM], "bench": ["bench", "gemm"],
            "fuzz": ["fuzz", "gemm", "--rung", "cpu_reference/*", "--problems", "2", "--seconds", "5"]}


class StandardOutput(ProgramTest):
    def test_json_is_all_of_standard_output(self):
        for name, command in COMMANDS.items():
            if name == "bench" and HAS_GPU:
                continue  # it would measure
            with self.subTest(name):
                result = run(*command, "--json", "-", cwd=self.folder)
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertTrue(json.loads(result.stdout))
                self.assertIn("gemm", result.stderr)  # the table
                self.assertEqual(list(self.folder.iterdir()), [])
                plain = run(*command, "--json", "file.json", cwd=self.folder)
                self.assertEqual(plain.stderr, "")
                from_file = json.loads((self.folder / "file.json").read_text())
                self.assertEqual(type(from_file), type(json.loads(result.stdout)))
                self.assertEqual(len(from_file), len(json.loads(result.stdout)))
                for path in self.folder.iterdir():  # bench draws beside it
                    path.unlink()

    def test_a_file_is_added_to_where_the_shell_says_so(self):
        out = self.folder / "out.json"
        out.write_text("before\n")
        with out.open("a") as stream:
            subprocess.run([PROGRAM, "list", "--json", "-"], stdout=stream, stderr=subprocess.DEVNULL, check=True)
        before, _, rest = out.read_text().partition("\n")
        self.assertEqual(before, "before")
        self.assertTrue(json.loads(rest))

    def test_a_full_disk_is_said(self):
        with open("/dev/full", "w") as full:
            result = subprocess.run([PROGRAM, "list", "--json", "-"], stdout=full, stderr=subprocess.PIPE, text=True)
        self.assertEqual(result.returncode, 2)
        self.assertIn("convladder: json = -: cannot be written: No space left", result.stderr)

    def test_a_reader_that_leaves_is_no_error(self):
        for more in ([], ["--json", "-"]):
            with self.subTest(more):
                reader, writer = os.pipe()
                os.close(reader)  # no reader
                for command in (["list"], ["compare", *SMALL_GEMM]):
                    process = subprocess.run([PROGRAM, *command, *more], stdout=writer, stderr=subprocess.PIPE, text=True)
                    self.assertEqual(process.returncode, 0)
                    self.assertNotIn("convladder:", process.stderr)
                    if not more:
                        self.assertEqual(process.stderr, "")
                os.close(writer)


class Narrow(ProgramTest):
    def lines(self, columns, *command):
        return self.agree(*command, env={"COLUMNS": str(columns)}).stdout.splitlines()

    def test_no_line_is_wider_than_the_terminal(self):
        for columns in (40, 60, 80, 95, 120):
            for command in (["list"], ["list", "--ladder", "conv2d"]):
                for line in self.lines(columns, *command):
                    self.assertLessEqual(len(line), max(columns, len(line.split()[-1]) + len(line) - len(line.lstrip(" 0123456789")) + 2) if line else 0, (columns, line))
        for columns in (60, 80, 95, 120):
            for line in self.lines(columns, "compare", "conv2d", "--c", 3, "--h", 8, "--w", 9, "--k", 4, "--r", 3, "--s", 3,
                                   "--rung", "*naive*", "--rung", "cpu_*", "--rung", "*wgmma_filters_as_rows"):
                self.assertLessEqual(len(line), columns, (columns, line))

    def test_nothing_is_left_out(self):
        wide = " ".join(" ".join(self.lines(1000, "list")).split())
        for columns in (40, 60, 100):
            self.assertEqual(" ".join(" ".join(self.lines(columns, "list")).split()), wide)
        words = sorted(" ".join(self.lines(1000, "compare", *SMALL_GEMM, "--rung", "*tiled")).split())
        narrow = sorted(" ".join(self.lines(60, "compare", *SMALL_GEMM, "--rung", "*tiled")).split())
        self.assertEqual([word for word in words if "/" in word or word in ("agrees", "declined", "emulated")],
                         [word for word in narrow if "/" in word or word in ("agrees", "declined", "emulated")])

    def test_columns_that_are_no_number_do_not_count(self):
        plain = self.agree("list").stdout
        for columns in ("", "0", "-5", "wide", "60x"):
            self.assertEqual(self.agree("list", env={"COLUMNS": columns}).stdout, plain)


if __name__ == "__main__":
    unittest.main()
