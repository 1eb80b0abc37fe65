"""End-to-end tests of the command `convladder`: what sparse ladders save, beside NumPy; points and sweeps.

    CONVLADDER_PROGRAM=$PWD/build/cpu/command/convladder python3 -B tests/command/test_sparse.py [CLASS]

CTest runs each class as a test of its own.
"""
import unittest

import numpy as np

import numpy_reference as reference
from program import integers
from sparse_problems import SparseTest, sites


class RulebookFiles(SparseTest):
    """pairs and out_coords, saved by every rung, against NumPy."""

    def test_every_mode_in_one_to_four_dimensions(self):
        for case in self.CASES:
            with self.subTest(case=case):
                words, _, (out_coords, pairs, _) = self.problem(case)
                out, report, _ = self.save("rulebook", *words)
                self.check_saved("rulebook", out, report, {"out_coords": out_coords, "pairs": pairs})

    def check(self, words, coords, shape, out_coords, pairs, **steps):
        """A case by hand: the program and the NumPy reference both give it."""
        coords, out_coords, pairs = (np.array(rows, np.int32) for rows in (coords, out_coords, pairs))
        found = reference.rulebook(coords, shape, **steps)
        np.testing.assert_array_equal(found[0], out_coords)
        np.testing.assert_array_equal(found[1], pairs)
        out, report, _ = self.save("rulebook", "--coords", self.write("coords.npy", coords), "--shape",
                                   ",".join(map(str, shape)), *words)
        self.check_saved("rulebook", out, report, {"out_coords": out_coords, "pairs": pairs})

    def test_cases_by_hand(self):
        # Three sites in a row of five, the first two neighbours; the rows are not in order.
        line = [[0, 4], [0, 1], [0, 0]]
        self.check([], line, (5,), line, [(0, 2, 1), (1, 0, 0), (1, 1, 1), (1, 2, 2), (2, 1, 2)])
        # Windows of two, side by side: sites 0 and 1 share output 0, site 4 has output 2.
        self.check(["--mode", "strided", "--kernel", 2, "--stride", 2], line, (6,), [[0, 0], [0, 2]],
                   [(0, 2, 0), (0, 0, 1), (1, 1, 0)], mode="strided", kernel=2, stride=2)
        self.check(["--mode", "inverse", "--kernel", 2, "--stride", 2], line, (6,), line,
                   [(0, 1, 0), (0, 0, 2), (1, 0, 1)], mode="inverse", kernel=2, stride=2)
        # Each site becomes two.
        self.check(["--mode", "transposed", "--kernel", 2, "--stride", 2], line[:2], (5,),
                   [[0, 2], [0, 3], [0, 8], [0, 9]],
                   [(0, 1, 0), (0, 0, 2), (1, 1, 1), (1, 0, 3)], mode="transposed", kernel=2, stride=2)
        # The same place in two samples of a batch never meets.
        both = [[3, 1, 1], [1, 1, 1], [1, 1, 2]]
        self.check([], both, (3, 3), both,
                   [(3, 1, 2), (4, 0, 0), (4, 1, 1), (4, 2, 2), (5, 2, 1)])

    def test_sites_without_outputs(self):
        # Every fifth place is looked at, and no site is there.
        coords = np.array([[0, 1], [0, 7]], np.int32)
        words = ["--coords", self.write("c.npy", coords), "--kernel", 1, "--stride", 5, "--cin", 3,
                 "--cout", 2]
        nothing = np.zeros((0, 3), np.int32)
        out, report, _ = self.save("rulebook", *words[:-4], "--mode", "strided")
        self.check_saved("rulebook", out, report, {"out_coords": nothing[:, :2], "pairs": nothing})
        out, report, _ = self.save("rulebook", *words[:-4], "--mode", "inverse")
        self.check_saved("rulebook", out, report, {"out_coords": coords, "pairs": nothing})
        for ladder, name, shape in (("sparse_conv", "y", (0, 2)), ("sparse_dgrad", "dx", (2, 3)),
                                    ("sparse_wgrad", "dw", (1, 3, 2))):
            out, report, _ = self.save(ladder, *words, "--mode", "strided")
            self.check_saved(ladder, out, report,
                             {name: np.zeros(shape), "out_coords": nothing[:, :2]})

    def test_shape_and_batch_are_taken_from_the_sites(self):
        coords = np.array([[0, 2, 3], [4, 1, 5]], np.int32)
        out, report, result = self.save("rulebook", "--coords", self.write("coords.npy", coords),
                                        "--mode", "strided", "--kernel", 2)
        out_coords, pairs, _ = reference.rulebook(coords, (3, 6), "strided", 2)
        self.check_saved("rulebook", out, report, {"out_coords": out_coords, "pairs": pairs})
        self.assertIn("3,6", result.stdout)
        self.assertIn("batch 5", result.stdout)
        # No sites: still a problem.
        empty = self.write("empty.npy", np.zeros((0, 3), np.int32))
        for mode in ("subm", "strided", "transposed", "inverse"):
            self.agree("compare", "rulebook", "--coords", empty, "--mode", mode)

    def test_orders_and_types_of_the_file(self):
        coords = sites(self.rng, (4, 5, 6), 2, 40)
        out_coords, pairs, _ = reference.rulebook(coords, (4, 5, 6))
        for array in (np.asfortranarray(coords), coords.astype(np.int64)):
            out, report, _ = self.save("rulebook", "--coords", self.write("coords.npy", array),
                                       "--shape", "4,5,6")
            self.check_saved("rulebook", out, report, {"out_coords": out_coords, "pairs": pairs})

    def test_the_example_and_the_kind_of_data(self):
        for words in ([], ["--mode", "strided"], ["--shape", "30"], ["--shape", "3,3,3,3"],
                      ["--batch", 3], ["--data", "real"], ["--data", "integer"], ["--stride", "1"],
                      ["--shape", "2,2"], ["--kernel", "3,5"]):
            _, report, _ = self.save("rulebook", *words)
            for row in report["ladders"][0]["rungs"]:
                self.assertIn(row["exact"], (True, None))


class SparseConvFiles(SparseTest):
    """y, dx and dw, saved by every rung, against NumPy."""

    def channels(self, case):
        index = self.CASES.index(case)
        return 1 + 3 * index % 7, 1 + 5 * index % 6

    def test_forward(self):
        for case in self.CASES:
            with self.subTest(case=case):
                words, _, (out_coords, pairs, inputs) = self.problem(case)
                cin, cout = self.channels(case)
                features = integers(self.rng, inputs, cin)
                weights = integers(self.rng, self.volume(case), cin, cout)
                out, report, _ = self.save(
                    "sparse_conv", *words, "--features", self.write("f.npy", features), "--weights",
                    self.write("w.npy", weights))
                y = reference.sparse_conv(features, weights, pairs, len(out_coords))
                self.check_saved("sparse_conv", out, report, {"y": y, "out_coords": out_coords})

    def test_input_gradient(self):
        for case in self.CASES:
            with self.subTest(case=case):
                words, _, (out_coords, pairs, inputs) = self.problem(case)
                cin, cout = self.channels(case)
                dy = integers(self.rng, len(out_coords), cout)
                weights = integers(self.rng, self.volume(case), cin, cout)
                out, report, _ = self.save("sparse_dgrad", *words, "--dy", self.write("dy.npy", dy),
                                           "--weights", self.write("w.npy", weights))
                dx = reference.sparse_dgrad(dy, weights, pairs, inputs)
                self.check_saved("sparse_dgrad", out, report, {"dx": dx, "out_coords": out_coords})

    def test_weight_gradient(self):
        for case in self.CASES:
            with self.subTest(case=case):
                words, _, (out_coords, pairs, inputs) = self.problem(case)
                cin, cout = self.channels(case)
                features = integers(self.rng, inputs, cin)
                dy = integers(self.rng, len(out_coords), cout)
                out, report, _ = self.save("sparse_wgrad", *words, "--features",
                                           self.write("f.npy", features), "--dy",
                                           self.write("dy.npy", dy))
                dw = reference.sparse_wgrad(features, dy, pairs, self.volume(case))
                self.check_saved("sparse_wgrad", out, report, {"dw": dw, "out_coords": out_coords})

    def test_what_is_not_given_is_made_up(self):
        for ladder in ("sparse_conv", "sparse_dgrad", "sparse_wgrad"):
            for words in ([], ["--cin", 5, "--cout", 3], ["--mode", "inverse", "--data", "real"],
                          ["--mode", "transposed", "--stride", 2]):
                self.agree("compare", ladder, *words)

    def test_real_numbers_are_close(self):
        coords = sites(self.rng, (6, 6, 6), 1, 80)
        _, pairs, _ = reference.rulebook(coords, (6, 6, 6))
        features = self.rng.standard_normal((80, 8)).astype(np.float32)
        weights = self.rng.standard_normal((27, 8, 4)).astype(np.float32)
        out, _, _ = self.save("sparse_conv", "--coords", self.write("c.npy", coords), "--features",
                              self.write("f.npy", features), "--weights", self.write("w.npy", weights))
        saved = list(out.rglob("y.npy"))
        self.assertTrue(saved)
        for path in saved:
            np.testing.assert_allclose(np.load(path),
                                       reference.sparse_conv(features, weights, pairs, 80), rtol=0,
                                       atol=2e-5, err_msg=str(path))


class Sweeps(SparseTest):
    """Sites from points, and from the simulated LiDAR."""

    RANGE = "-4,-2.5,-1,4.25,2.5,1"
    LOW, HIGH = (-4, -2.5, -1), (4.25, 2.5, 1)

    def points(self, count):
        """Points, a few outside, many of them two in a voxel or on a voxel's border."""
        points = self.rng.uniform((-4.5, -3, -1.2), (4.5, 3, 1.2), size=(count, 3))
        points[::5] = np.round(points[::5] * 4) / 4
        return points.astype(np.float32)

    def check(self, path, voxel, expected, shape, *words):
        out, report, result = self.save("rulebook", "--points", path, "--voxel", voxel, "--range",
                                        self.RANGE, *words)
        found = np.load(next(out.rglob("out_coords.npy")))
        np.testing.assert_array_equal(found, expected)
        out_coords, pairs, _ = reference.rulebook(expected, shape)
        self.check_saved("rulebook", out, report, {"out_coords": out_coords, "pairs": pairs})
        self.assertIn("x".join(map(str, shape)), result.stdout)
        return result.stdout

    def test_points(self):
        for voxel in (0.25, 0.1, 0.3, 3):
            points = self.points(400)
            expected, shape = reference.voxels(points, self.LOW, self.HIGH, voxel)
            four = np.concatenate([points, self.points(400)[:, :1]], axis=1)
            for path in (self.write("p3.npy", points), self.write("p4.npy", four)):
                with self.subTest(voxel=voxel, path=path.name):
                    said = self.check(path, voxel, expected, shape)
                    self.assertIn("outside", said)
                    self.assertIn(f"{len(expected)} voxels", said)
            path = self.folder / "sweep.bin"
            four[:, 3] = np.nan  # nobody reads the intensity
            path.write_bytes(four.astype("<f4").tobytes())
            with self.subTest(voxel=voxel, path=path.name):
                self.check(path, voxel, expected, shape)

    def test_no_points(self):
        path = self.folder / "none.bin"
        path.write_bytes(b"")
        self.check(path, 1, np.zeros((0, 4), np.int32), (2, 5, 9))

    def test_points_under_a_convolution(self):
        points = self.points(200)
        expected, _ = reference.voxels(points, self.LOW, self.HIGH, 0.25)
        out, _, _ = self.save("sparse_conv", "--points", self.write("p.npy", points), "--voxel", 0.25,
                              "--range", self.RANGE, "--cin", 4, "--cout", 3)
        np.testing.assert_array_equal(np.load(next(out.rglob("out_coords.npy"))), expected)

    def sweep(self, *words):
        out, _, _ = self.save("rulebook", "--lidar", *words, "--backend", "cpu", "--rung",
                              "*/hash_map")
        return np.load(next(out.rglob("out_coords.npy"))), np.load(next(out.rglob("pairs.npy")))

    def check_sites(self, coords):
        self.assertEqual(coords.dtype, np.int32)
        self.assertTrue(((coords >= 0) & (coords < (1, 80, 1600, 1600))).all())
        keys = np.ravel_multi_index(tuple(coords.T), (1, 80, 1600, 1600))
        self.assertTrue((np.diff(keys) > 0).all(), "ascending, each once")

    def test_lidar(self):
        coords, pairs = self.sweep()
        self.check_sites(coords)
        self.assertAlmostEqual(len(coords), 120000, delta=6000)
        self.assertAlmostEqual(len(pairs) / len(coords), 6.5, delta=0.5)
        for count in (1, 1000, 20000, 150000):
            coords, _ = self.sweep(count)
            self.check_sites(coords)
            self.assertEqual(len(coords), count)

    def test_the_seed_is_the_scene(self):
        first, again, other = (self.sweep(2000, "--seed", seed)[0] for seed in (1, 1, 2))
        np.testing.assert_array_equal(first, again)
        self.assertFalse(np.array_equal(first, other))

    def test_lidar_in_every_ladder(self):
        for ladder in ("sparse_conv", "sparse_dgrad", "sparse_wgrad"):
            result = self.agree("compare", ladder, "--lidar", 300, "--cin", 3, "--cout", 4, "--mode",
                                "strided", "--stride", 2, "--pad", 1)
            self.assertIn("300 sites", result.stdout)


class SparsePoolFiles(SparseTest):
    """Max pooling, its gradient and dense tensors, saved by every rung, against NumPy."""

    def test_forward_and_gradient(self):
        for number, case in enumerate(self.CASES):
            with self.subTest(case=case):
                words, _, (out_coords, pairs, inputs) = self.problem(case)
                channels = 1 + 3 * number % 7
                features = integers(self.rng, inputs, channels)
                path = self.write("f.npy", features)
                y, argmax = reference.sparse_max_pool(features, pairs, len(out_coords))
                out, report, _ = self.save("sparse_max_pool", *words, "--features", path)
                self.check_saved("sparse_max_pool", out, report,
                                 {"y": y, "argmax": argmax, "out_coords": out_coords})
                dy = integers(self.rng, len(out_coords), channels)
                out, report, _ = self.save("sparse_max_pool_dgrad", *words, "--features", path, "--dy",
                                           self.write("dy.npy", dy))
                dx = reference.sparse_max_pool_dgrad(dy, argmax, inputs)
                self.check_saved("sparse_max_pool_dgrad", out, report,
                                 {"dx": dx, "out_coords": out_coords})

    def test_to_dense(self):
        for shape, batch, count, channels in (((9,), 2, 5, 3), ((6, 7), 1, 30, 33),
                                              ((5, 6, 7), 3, 60, 4), ((3, 4, 3, 4), 1, 40, 1),
                                              ((4, 5), 2, 0, 2)):
            with self.subTest(shape=shape):
                coords = sites(self.rng, shape, batch, count)
                features = integers(self.rng, count, channels)
                out, report, _ = self.save(
                    "sparse_to_dense", "--coords", self.write("c.npy", coords), "--features",
                    self.write("f.npy", features), "--shape", ",".join(map(str, shape)), "--batch", batch,
                    "--cin", channels)
                x = reference.sparse_to_dense(features, coords, shape, batch)
                self.check_saved("sparse_to_dense", out, report, {"x": x})

    def test_what_is_not_given_is_made_up(self):
        for ladder in ("sparse_max_pool", "sparse_max_pool_dgrad"):
            for words in ([], ["--cin", 5], ["--mode", "inverse", "--data", "real"], ["--lidar", 300],
                          ["--mode", "strided", "--kernel", 2, "--stride", 2, "--seed", 3]):
                self.agree("compare", ladder, *words)
        for words in ([], ["--cin", 5], ["--shape", "40", "--data", "real"]):
            self.agree("compare", "sparse_to_dense", *words)

    def test_bad_input(self):
        coords = self.write("coords.npy", np.array([[0, 1, 1], [0, 2, 1], [0, 2, 2]], np.int32))
        twice = self.write("twice.npy", np.array([[0, 1, 1], [0, 1, 1]], np.int32))
        features = self.write("f.npy", np.zeros((4, 2), np.float32))
        dy = self.write("dy.npy", np.zeros((3, 3), np.float32))
        for ladder, words, says in (
                ("sparse_max_pool", ["--cin", 0], ["cin = 0"]),
                ("sparse_max_pool", ["--cout", 3], ["cout = 3", "sparse_max_pool"]),
                ("sparse_max_pool", ["--dtype", "fp16"], ["dtype = fp16"]),
                ("sparse_max_pool", ["--features", features], ["f.npy", "4 x 2"]),
                ("sparse_max_pool_dgrad", ["--features", features], ["f.npy", "4 x 2"]),
                ("sparse_max_pool_dgrad", ["--dy", dy, "--cin", 2], ["cin", "dy.npy"]),
                ("sparse_to_dense", ["--kernel", 3], ["kernel = 3", "sparse_to_dense"]),
                ("sparse_to_dense", ["--mode", "subm"], ["mode = subm", "sparse_to_dense"]),
                ("sparse_to_dense", ["--features", features], ["f.npy", "4 x 2"]),
                ("sparse_to_dense", ["--shape", "2,2"], ["coords", "outside"])):
            with self.subTest(ladder=ladder, words=words):
                self.bad_input("compare", ladder, "--coords", coords, *words, says=says)
        for ladder in ("sparse_max_pool", "sparse_max_pool_dgrad", "sparse_to_dense"):
            self.bad_input("compare", ladder, "--coords", twice, says=["repeat"])
        self.bad_input("compare", "sparse_to_dense", "--shape", "100000,100000,100", "--cin", 64,
                       says=["memory"])


class Voxelize(SparseTest):
    """From points to sites with mean features."""

    RANGE = "-4,-2.5,-1,4.25,2.5,1"
    LOW, HIGH = (-4, -2.5, -1), (4.25, 2.5, 1)

    def points(self, count, columns):
        """Points in quarters, whose sums are exact; a few outside, a few not finite."""
        points = np.round(self.rng.uniform(-4.5, 4.5, size=(count, columns)) * (4, 3, 1, 4)[:columns]) / 4
        points[::17, 0], points[::19, 2] = np.nan, np.inf
        return points.astype(np.float32)

    def check(self, path, points, voxel):
        out, report, result = self.save("voxelize", "--points", path, "--voxel", voxel, "--range", self.RANGE)
        out_coords, features = reference.voxelize(points, self.LOW, self.HIGH, voxel)
        self.check_saved("voxelize", out, report, {"out_coords": out_coords, "features": features})
        left_out = len(points) - len(reference.places_of(points[:, :3], self.LOW, self.HIGH, voxel)[2])
        if left_out:
            self.assertIn(f"{left_out} of {len(points)} points", result.stdout)

    def test_points(self):
        for columns in (3, 4):
            for voxel in (0.25, 0.3, 1, 3):
                with self.subTest(columns=columns, voxel=voxel):
                    points = self.points(300, columns)
                    self.check(self.write("p.npy", points), points, voxel)
                    if columns == 4:
                        path = self.folder / "sweep.bin"
                        path.write_bytes(points.astype("<f4").tobytes())
                        self.check(path, points, voxel)

    def test_no_points(self):
        for points in (np.zeros((0, 4), np.float32), np.full((5, 3), 100, np.float32)):
            self.check(self.write("p.npy", points), points, 1)

    def test_what_is_not_given_is_made_up(self):
        for words in ([], ["--n", 0], ["--n", 70, "--c", 3, "--voxel", 0.3], ["--data", "real", "--range", "-1,-1,-1,1,1,1"],
                      ["--lidar", 300], ["--lidar", 200, "--voxel", 0.5, "--range", "-20,-20,-2,20,20,2"]):
            self.agree("compare", "voxelize", *words)

    def test_bad_input(self):
        points = self.write("p.npy", np.ones((3, 4), np.float32))
        not_finite = self.write("n.npy", np.array([[1, 1, 1, np.nan]], np.float32))
        there = ["--voxel", 1, "--range", "0,0,0,2,2,2"]
        for words, says in ((["--points", points], ["points", "--voxel"]), (["--points", points, *there, "--n", 3], ["n = 3"]),
                            (["--points", not_finite, *there], ["intensity", "finite"]),
                            (["--points", points, "--voxel", 0, "--range", "0,0,0,2,2,2"], ["voxel = 0"]),
                            (["--c", 5], ["c = 5"]), (["--lidar", "--n", 3], ["n = 3", "lidar"]),
                            (["--voxel", "1,2"], ["voxel"]), (["--range", "1,2"], ["range"]), (["--n", -1], ["n = -1"]),
                            (["--kernel", 3], ["kernel = 3", "voxelize"])):
            with self.subTest(words=words):
                self.bad_input("compare", "voxelize", *words, says=says)


if __name__ == "__main__":
    unittest.main()
