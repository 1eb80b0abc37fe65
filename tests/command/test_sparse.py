"""End-to-end tests of the command `convladder`: what sparse ladders save, beside NumPy; points and sweeps.

    CONVLADDER_PROGRAM=$PWD/build/cpu/command/convladder python3 -B tests/command/test_sparse.py [CLASS]

CTest runs each class as a test of its own.
"""
import shutil
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
            four[:, 3] = np.nan  # the intensity is not read
            path.write_bytes(four.astype("<f4").tobytes())
            with self.subTest(voxel=voxel, path=path.name):
                self.check(path, voxel, expected, shape)

    def test_points_that_are_not_finite_have_no_voxel(self):
        points = self.points(200)
        expected, shape = reference.voxels(points, self.LOW, self.HIGH, 0.5)
        points = np.concatenate([points, [[np.nan, 0, 0], [0, np.inf, 0], [0, 0, -np.inf]]]).astype(np.float32)
        said = self.check(self.write("p.npy", points), 0.5, expected, shape)
        self.assertIn("of 203 points lie outside of the range or are not finite", said)

    def test_a_side_for_each_axis(self):
        points, voxel = self.points(300), (0.5, 0.3, 0.2)
        expected, shape = reference.voxels(points, self.LOW, self.HIGH, voxel)
        self.check(self.write("p.npy", points), ",".join(map(str, voxel)), expected, shape)

    def test_ranges_of_whole_voxels(self):
        path = self.write("p.npy", np.zeros((1, 3), np.float32))
        for voxel, low, high, shape in ((0.32, (-76.8, -76.8, -4), (76.8, 76.8, 6), (32, 480, 480)),
                                        ("0.05,0.05,0.1", (0, -40, -3), (70.4, 40, 1), (40, 1600, 1408)),
                                        ("0.075,0.075,0.2", (-54, -54, -5), (54, 54, 3), (40, 1440, 1440))):
            box = ",".join(map(str, (*low, *high)))
            for ladder in ("rulebook", "voxelize"):
                said = self.agree("compare", ladder, "--points", path, "--voxel", voxel, f"--range={box}",
                                  "--rung", "*hash_map").stdout
                self.assertIn("x".join(map(str, shape)), said)

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
    """Poolings, the gradient of one and dense tensors, saved by every rung, against NumPy."""

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
                out, report, _ = self.save("sparse_avg_pool", *words, "--features", path)
                self.check_saved("sparse_avg_pool", out, report, {
                    "y": reference.sparse_avg_pool(features, pairs, len(out_coords)), "out_coords": out_coords})
                dy = integers(self.rng, len(out_coords), channels)
                out, report, _ = self.save("sparse_max_pool_dgrad", *words, "--features", path, "--dy",
                                           self.write("dy.npy", dy))
                dx = reference.sparse_max_pool_dgrad(dy, argmax, inputs)
                self.check_saved("sparse_max_pool_dgrad", out, report,
                                 {"dx": dx, "out_coords": out_coords})

    def test_global_pooling(self):
        for shape, batch, count, channels in (((9,), 2, 5, 3), ((6, 7), 1, 30, 33), ((5, 6, 7), 40, 60, 4),
                                              ((30, 40), 3, 500, 40), ((4, 5), 2, 0, 2)):
            for reduce in ("max", "mean"):
                with self.subTest(shape=shape, reduce=reduce):
                    coords = sites(self.rng, shape, batch, count)
                    features = integers(self.rng, count, channels)
                    out, report, _ = self.save(
                        "sparse_global_pool", "--coords", self.write("c.npy", coords), "--features",
                        self.write("f.npy", features), "--shape", ",".join(map(str, shape)), "--batch", batch,
                        "--cin", channels, "--reduce", reduce)
                    y = reference.sparse_global_pool(features, coords, reduce, batch)
                    self.check_saved("sparse_global_pool", out, report, {"y": y})

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
        for ladder in ("sparse_max_pool", "sparse_max_pool_dgrad", "sparse_avg_pool"):
            for words in ([], ["--cin", 5], ["--mode", "inverse", "--data", "real"], ["--lidar", 300],
                          ["--mode", "strided", "--kernel", 2, "--stride", 2, "--seed", 3]):
                self.agree("compare", ladder, *words)
        for words in ([], ["--cin", 5], ["--shape", "40", "--data", "real"]):
            self.agree("compare", "sparse_to_dense", *words)
            for reduce in ("max", "mean"):
                self.agree("compare", "sparse_global_pool", *words, "--batch", 3, "--reduce", reduce)

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
                ("sparse_avg_pool", ["--cin", 0], ["cin = 0"]),
                ("sparse_avg_pool", ["--cout", 3], ["cout = 3", "sparse_avg_pool"]),
                ("sparse_avg_pool", ["--features", features], ["f.npy", "4 x 2"]),
                ("sparse_max_pool_dgrad", ["--dy", dy, "--cin", 2], ["cin", "dy.npy"]),
                ("sparse_global_pool", ["--kernel", 3], ["kernel = 3", "sparse_global_pool"]),
                ("sparse_global_pool", ["--reduce", "sum"], ["reduce = sum", "max", "mean"]),
                ("sparse_global_pool", ["--features", features], ["f.npy", "4 x 2"]),
                ("sparse_global_pool", ["--batch", 0], ["batch = 0"]),
                ("sparse_to_dense", ["--reduce", "max"], ["reduce = max", "sparse_to_dense"]),
                ("sparse_to_dense", ["--kernel", 3], ["kernel = 3", "sparse_to_dense"]),
                ("sparse_to_dense", ["--mode", "subm"], ["mode = subm", "sparse_to_dense"]),
                ("sparse_to_dense", ["--features", features], ["f.npy", "4 x 2"]),
                ("sparse_to_dense", ["--shape", "2,2"], ["coords", "outside"])):
            with self.subTest(ladder=ladder, words=words):
                self.bad_input("compare", ladder, "--coords", coords, *words, says=says)
        for ladder in ("sparse_max_pool", "sparse_max_pool_dgrad", "sparse_avg_pool", "sparse_global_pool",
                       "sparse_to_dense"):
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

    def test_a_side_for_each_axis_and_any_number_of_columns(self):
        for columns in (3, 5, 6, 9):
            with self.subTest(columns=columns):
                points = np.concatenate([self.points(300, 4)[:, :3], integers(self.rng, 300, columns - 3)], axis=1)
                for path in (self.write("p.npy", points), self.folder / "p.bin"):
                    more = [] if path.suffix == ".npy" else ["--columns", columns]
                    if more:
                        path.write_bytes(points.astype("<f4").tobytes())
                    out, report, _ = self.save("voxelize", "--points", path, *more, "--voxel", "1,0.5,0.25",
                                               f"--range={self.RANGE}")
                    out_coords, features = reference.voxelize(points, self.LOW, self.HIGH, (1, 0.5, 0.25))
                    self.check_saved("voxelize", out, report, {"out_coords": out_coords, "features": features})

    def sweep(self, columns, points=500):
        """A sweep in no order: x, y, z, an intensity, a ring index, times."""
        ranges = [(-50, 50), (-50, 50), (-3, 1), (0, 1), (0, 31), *[(0, 0.5)] * 11][:columns]
        rows = np.stack([self.rng.uniform(*ends, points) for ends in ranges], axis=1)
        rows[:, 4:5] = np.round(rows[:, 4:5])
        return rows.astype("<f4")

    def test_no_file_is_read_with_other_columns_without_a_word(self):
        path, box = self.folder / "sweep.bin", "--range=-60,-60,-4,60,60,2"

        def said(*words):
            return self.agree("compare", "voxelize", "--points", path, "--voxel", 2, box, "--rung", "*hash_map",
                              *words).stdout
        for columns in (3, 5, 6, 7, 8, 9, 10):
            for points in (60, 500):
                rows = self.sweep(columns, points * 4)
                path.write_bytes(rows.tobytes())
                with self.subTest(columns=columns, points=len(rows)):
                    self.assertIn(f"perhaps --columns {columns} is right", said())
                    self.assertNotIn("perhaps", said("--columns", columns))
        rows = self.sweep(4, 500)
        path.write_bytes(rows.tobytes())
        self.assertIn("read as points of 4 numbers", said())
        self.assertNotIn("perhaps", said())
        self.assertNotIn("ring", said())
        path.write_bytes(self.sweep(5).tobytes())
        self.assertIn("number 5 of each point is an integer up to 31: if it is a ring index", said("--columns", 5))
        path.write_bytes(self.sweep(5)[:, [0, 1, 2, 4]].tobytes())
        self.assertIn("number 4 of each point is an integer", said())

    def means(self, points, voxel, box, *words):
        """What each rung saves, of which all agree."""
        shutil.rmtree(self.folder / "out", ignore_errors=True)
        out, _, result = self.save("voxelize", "--points", self.write("p.npy", points), "--voxel", voxel,
                                   f"--range={box}", *words)
        coords = [np.load(path) for path in sorted(out.rglob("out_coords.npy"))]
        features = [np.load(path) for path in sorted(out.rglob("features.npy"))]
        self.assertTrue(features)
        for found in coords:
            np.testing.assert_array_equal(found, coords[0])
        return coords[0], features, result.stdout

    def test_means_far_from_the_origin(self):
        x, y = np.meshgrid(206494.75 + 0.05 * np.arange(101), -3 + 0.05 * np.arange(41), indexing="ij")
        points = np.stack([x.ravel(), y.ravel(), np.full(x.size, 5.0)], axis=1)
        low, high = (206490, -10, 0), (206510, 10, 10)
        box = ",".join(map(str, (*low, *high)))
        rounded = points.astype(np.float32)
        coords, features, _ = self.means(rounded, 1, box)
        out_coords, right = reference.voxelize(rounded, low, high, 1)
        np.testing.assert_array_equal(coords, out_coords)
        for found in features:
            np.testing.assert_array_max_ulp(found, right, 1)
        # And of the same in float64, a mean is the nearest float32.
        coords, features, _ = self.means(points, 1, box)
        places = np.floor(points - low).astype(int)[:, ::-1]
        for found in features:
            for coord, mean in zip(coords, found):
                held = points[(places == coord[1:]).all(axis=1)]
                if 30 < len(held):  # not the rows at borders
                    np.testing.assert_allclose(mean, held.mean(axis=0), rtol=2**-23)

    def test_means_of_many_points(self):
        points = np.full((1000, 3), 0.5, np.float32)
        points[:, 0] = 70.1
        for found in self.means(points, 1, "0,0,0,100,1,1")[1]:
            np.testing.assert_array_equal(found, points[:1])
        points = np.full((300_000, 4), 0.5, np.float32)
        points[:, 3] = self.rng.uniform(250, 320, 300_000)
        # point_lists compares all points of a voxel with all others: of so many that takes a minute.
        rungs = [word for name in ("*hash_map", "*sorted_points", "*bit_grid") for word in ("--rung", name)]
        for found in self.means(points, 1, "0,0,0,1,1,1", *rungs)[1]:
            np.testing.assert_array_max_ulp(found, points.astype(np.float64).mean(axis=0, keepdims=True).astype(np.float32), 1)
        for found in self.means(points[:8000], 1, "0,0,0,1,1,1")[1]:
            np.testing.assert_array_max_ulp(found, points[:8000].astype(np.float64).mean(axis=0, keepdims=True).astype(np.float32), 1)

    def test_map_coordinates_in_float64(self):
        points = np.array([[500000.03, y, 1] for y in (4649776.20, 4649776.35, 4649776.70, 4649776.55)])
        box = "500000,4649776,0,500010,4649786,10"
        coords, features, said = self.means(points, 0.05, box)
        self.assertEqual(len(coords), 4)
        self.assertIn("the means of y are float32, whose numbers are 0.5 apart", said)
        for found in features:
            np.testing.assert_array_equal(found, points[np.argsort(points[:, 1])].astype(np.float32))
        book = self.agree("compare", "rulebook", "--points", self.write("p.npy", points), "--voxel", 0.05,
                          "--range", box, "--rung", "*hash_map").stdout
        self.assertIn("4 points lie in 4 voxels", book)
        for ladder in ("voxelize", "rulebook"):
            self.bad_input("compare", ladder, "--points", self.write("f.npy", points.astype(np.float32)), "--voxel",
                           0.05, "--range", box, says=["voxel = 0.05", "float32", "float64"])
            self.bad_input("compare", ladder, "--points", self.folder / "p.npy", "--voxel", 1e-10, "--range", box,
                           says=["voxel = 1e-10"])

    def test_a_range_far_away_has_the_voxels_of_one_near_by(self):
        near = self.rng.integers(0, 2**20, size=(400, 3)) / 2**20 * (8, 4, 2)
        coords, near_means, _ = self.means(near, "0.5,0.25,0.2", "0,0,0,8,4,2")
        for move in ((500000, 4649776, 4096), (-300000, -65536, 12), (-4, 0, -2**30)):
            x0, y0, z0 = move
            with self.subTest(move=move):
                moved, means, _ = self.means(near + move, "0.5,0.25,0.2",
                                             f"{x0},{y0},{z0},{x0 + 8},{y0 + 4},{z0 + 2}")
                np.testing.assert_array_equal(moved, coords)
                for found in means:
                    np.testing.assert_allclose(found, near_means[0].astype(np.float64) + move, rtol=2**-23, atol=1e-6)

    def test_an_intensity_that_is_not_finite_arrives_in_its_mean(self):
        points = np.concatenate([self.points(300, 4), integers(self.rng, 300, 2)], axis=1)
        points[3::7, 3], points[5::11, 4], points[::29, 5] = np.nan, np.inf, -np.inf
        with np.errstate(invalid="ignore"):
            self.check(self.write("p.npy", points), points, 1)

    def test_what_is_not_given_is_made_up(self):
        for words in ([], ["--n", 0], ["--n", 70, "--c", 3, "--voxel", 0.3], ["--data", "real", "--range", "-1,-1,-1,1,1,1"],
                      ["--lidar", 300], ["--lidar", 200, "--voxel", 0.5, "--range", "-20,-20,-2,20,20,2"]):
            self.agree("compare", "voxelize", *words)

    def test_bad_input(self):
        points = self.write("p.npy", np.ones((3, 4), np.float32))
        five = self.folder / "five.bin"
        five.write_bytes(np.ones((3, 5), "<f4").tobytes())
        there = ["--voxel", 1, "--range", "0,0,0,2,2,2"]
        for words, says in ((["--points", points], ["points", "--voxel"]), (["--points", points, *there, "--n", 3], ["n = 3"]),
                            (["--points", points, "--voxel", 0, "--range", "0,0,0,2,2,2"], ["voxel = 0"]),
                            (["--c", 2], ["c = 2"]), (["--lidar", "--n", 3], ["n = 3", "lidar"]),
                            (["--columns", 5], ["columns = 5", "--points"]),
                            (["--points", points, *there, "--columns", 3], ["columns = 3", "p.npy has 4 columns"]),
                            (["--points", five, *there], ["five.bin", "60 bytes", "--columns"]),
                            (["--points", five, *there, "--columns", 2], ["columns = 2"]),
                            (["--points", five, "--voxel", "1,0,1", "--range", "0,0,0,2,2,2"], ["voxel = 0"]),
                            (["--voxel", "1,2"], ["voxel"]), (["--range", "1,2"], ["range"]), (["--n", -1], ["n = -1"]),
                            (["--kernel", 3], ["kernel = 3", "voxelize"])):
            with self.subTest(words=words):
                self.bad_input("compare", "voxelize", *words, says=says)


if __name__ == "__main__":
    unittest.main()
