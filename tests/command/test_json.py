"""End-to-end tests of the command `convladder`: what `list` and `compare` write into JSON files.

    CONVLADDER_PROGRAM=$PWD/build/cpu/command/convladder python3 -B tests/command/test_json.py [CLASS]

CTest runs each class as a test of its own.
"""
import pathlib
import unittest

from program import HAS_GPU, LADDERS, SMALL_GEMM, ProgramTest


class ListJson(ProgramTest):
    KEYS = ["ladder", "rung", "backend", "idea", "previous", "source", "deterministic", "computes", "kind",
            "spine", "part", "level", "needs", "family", "was"]

    def rungs(self, *arguments):
        path = self.folder / "list.json"
        self.agree("list", *arguments, "--json", path)
        return self.load_json(path)

    def test_schema(self):
        rungs = self.rungs()
        names = set()
        for rung in rungs:
            self.assertEqual(list(rung), self.KEYS)
            self.assertIn(rung["ladder"], LADDERS)
            self.assertIn(rung["backend"], ("cpu", "cuda"))
            self.assertIsInstance(rung["deterministic"], bool)
            self.assertEqual(rung["source"].rsplit(".", 1)[0], rung["rung"])
            self.assertEqual(rung["source"].endswith(".cu"), rung["backend"] == "cuda")
            self.assertTrue(rung["idea"])
            self.assertEqual(rung["kind"], "start" if not rung["previous"] else "step" if rung["spine"] else "branch")
            self.assertEqual(rung["level"] == "spine", rung["spine"] is not None)
            self.assertIn(rung["level"], ("spine", "alternative", "advanced"))
            folders = rung["rung"].split("/")[2:-1]
            self.assertEqual(rung["family"], "/".join(folders) or None)
            self.assertTrue(all(name not in names for name in rung["was"]), "an earlier name is none of today's")
            self.assertRegex(rung["needs"], "^cpu$" if rung["backend"] == "cpu" else "^sm_[0-9]+a?$")
            if rung["spine"] and rung["spine"] > 1:
                self.assertIn(rung["previous"], names, "on a spine a rung stands above the one that it comes from")
            self.assertNotIn(rung["rung"], names)
            names.add(rung["rung"])
        self.assertEqual(sorted({rung["ladder"] for rung in rungs}), sorted(LADDERS))
        root = pathlib.Path(__file__).resolve().parents[2]
        for rung in rungs:
            self.assertTrue((root / rung["source"]).is_file(), rung["source"])

    def test_one_ladder(self):
        for ladder in LADDERS:
            rungs = self.rungs("--ladder", ladder)
            self.assertTrue(rungs)
            self.assertEqual({rung["ladder"] for rung in rungs}, {ladder})

    def test_all_rungs_are_printed(self):
        printed = self.agree("list").stdout
        for rung in self.rungs():
            self.assertIn(rung["rung"], printed)


class CompareJson(ProgramTest):
    ROW = ["rung", "where", "status", "reason", "exact", "max_error", "milliseconds", "remark"]

    def check(self, report, ladder):
        self.assertEqual(list(report), ["gpu", "ladders"])
        self.assertTrue(report["gpu"] is None or isinstance(report["gpu"], str))
        self.assertEqual(report["gpu"] is not None, HAS_GPU)
        self.assertEqual([entry["ladder"] for entry in report["ladders"]], [ladder])
        for entry in report["ladders"]:
            self.assertEqual(list(entry), ["ladder", "problem", "rungs"])
            for row in entry["rungs"]:
                self.assertEqual(list(row), self.ROW)
                self.assertIn(row["where"], ("cpu", "emulated", "gpu"))
                self.assertIn(row["status"], ("agrees", "differs", "declined", "skipped"))
                self.assertIsInstance(row["reason"], str)
                if row["status"] == "agrees":
                    self.assertIsInstance(row["exact"], bool)
                    self.assertGreaterEqual(row["max_error"], 0)
                    self.assertGreaterEqual(row["milliseconds"], 0)
                elif row["status"] in ("declined", "skipped"):
                    self.assertTrue(row["reason"])
                    for name in ("exact", "max_error", "milliseconds"):
                        self.assertIsNone(row[name])
        return [(row["rung"], row["where"]) for row in report["ladders"][0]["rungs"]]

    def test_schema_and_one_row_for_each_rung_and_place(self):
        rungs_path = self.folder / "rungs.json"
        self.agree("list", "--json", rungs_path)
        rungs = self.load_json(rungs_path)
        problems = {"conv2d": ["--c", 2, "--h", 6, "--w", 7, "--k", 2],
                    "conv2d_dgrad": ["--c", 2, "--h", 6, "--w", 7, "--k", 2],
                    "conv2d_wgrad": ["--c", 2, "--h", 6, "--w", 7, "--k", 2],
                    "im2col": ["--size", "6,7"], "col2im": ["--size", "6,7"],
                    "gemm": ["--m", 5, "--n", 6, "--k", 7],
                    "tile_map": ["--tiles", "4,3", "--map", "hilbert"],
                    "rulebook": ["--shape", "5,6,7"],
                    "sparse_conv": ["--shape", "5,6,7", "--cin", 3, "--cout", 2],
                    "sparse_dgrad": ["--shape", "5,6,7", "--cin", 3, "--cout", 2],
                    "sparse_wgrad": ["--shape", "5,6,7", "--cin", 3, "--cout", 2],
                    "sparse_max_pool": ["--shape", "5,6,7", "--cin", 3],
                    "sparse_max_pool_dgrad": ["--shape", "5,6,7", "--cin", 3],
                    "sparse_avg_pool": ["--shape", "5,6,7", "--cin", 3],
                    "sparse_global_pool": ["--shape", "5,6,7", "--cin", 3],
                    "sparse_to_dense": ["--shape", "5,6,7", "--cin", 3]}
        for ladder in LADDERS:
            problem = problems.get(ladder, [])  # else the ladder's example
            path = self.folder / f"{ladder}.json"
            self.agree("compare", ladder, *problem, "--json", path)
            found = self.check(self.load_json(path), ladder)
            expected = [(rung["rung"], where) for rung in rungs if rung["ladder"] == ladder
                        for where in (("cpu",) if rung["backend"] == "cpu" else ("emulated", "gpu"))]
            self.assertEqual(sorted(found), sorted(expected))

    def test_integer_data_are_exact_and_real_data_are_not(self):
        for data, exact in (("integer", True), ("real", False)):
            path = self.folder / f"{data}.json"
            self.agree("compare", "conv2d", "--data", data, "--backend", "cpu", "--json", path)
            rows = self.load_json(path)["ladders"][0]["rungs"]
            # Rungs for larger filters decline the example's.
            rows = [row for row in rows if row["status"] != "declined"]
            self.assertTrue(rows)
            for row in rows:
                self.assertEqual(row["status"], "agrees")
                # What adds up in double, and rounds once, may be exact there, too.
                self.assertTrue(row["exact"] == exact or (data == "real" and "/fft_" in row["rung"]), row)
                self.assertEqual(row["max_error"] == 0, exact)

    def test_backends_and_rungs_select_rows(self):
        path = self.folder / "out.json"
        self.agree("compare", *SMALL_GEMM, "--backend", "cpu", "--json", path)
        self.assertEqual({where for _, where in self.check(self.load_json(path), "gemm")}, {"cpu"})
        self.agree("compare", *SMALL_GEMM, "--backend", "cpu", "--backend", "emulated", "--json", path)
        self.assertEqual({where for _, where in self.check(self.load_json(path), "gemm")},
                         {"cpu", "emulated"})
        self.agree("compare", *SMALL_GEMM, "--rung", "cuda_naive/*", "--rung", "*/triple_loop",
                   "--backend", "cpu", "--backend", "emulated", "--json", path)
        self.assertEqual({rung for rung, _ in self.check(self.load_json(path), "gemm")},
                         {"cuda_naive/gemm/direct", "cpu_reference/gemm/triple_loop"})

    def test_without_a_gpu_its_rows_are_skipped(self):
        if HAS_GPU:
            self.skipTest("there is a GPU")
        path = self.folder / "out.json"
        self.agree("compare", *SMALL_GEMM, "--json", path)
        gpu_rows = [row for row in self.load_json(path)["ladders"][0]["rungs"] if row["where"] == "gpu"]
        self.assertTrue(gpu_rows)
        for row in gpu_rows:
            self.assertEqual(row["status"], "skipped")

    def test_the_same_seed_gives_the_same_data(self):
        saved = []
        for i, seed in enumerate((1, 1, 2)):
            out = self.folder / str(i)
            self.agree("compare", "gemm", "--seed", seed, "--backend", "cpu", "--rung", "*/triple_loop",
                       "--save", out)
            saved.append((out / "gemm/cpu_reference.gemm.triple_loop/cpu/c.npy").read_bytes())
        self.assertEqual(saved[0], saved[1])
        self.assertNotEqual(saved[0], saved[2])


if __name__ == "__main__":
    unittest.main()
