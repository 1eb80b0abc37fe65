"""Users' own arrays: equal numbers, very large and very small ones, NaN and infinity."""
import unittest

import numpy as np

from program import AGREE, ProgramTest, run

LARGEST = np.finfo(np.float32).max


def full(shape, value):
    return np.full(shape, value, np.float32)


class _OwnArrays(ProgramTest):
    def rows(self, ladder, *options, expected=AGREE, **arrays):
        """What became of each rung that is there, by its name; and the table."""
        files = [word for name, array in arrays.items()
                 for word in (f"--{name}", self.write(f"{name}.npy", array.astype(np.float32)))]
        out = self.folder / "out.json"
        result = run("compare", ladder, *files, *options, "--json", out)
        self.assertEqual(result.returncode, expected, result.stdout + result.stderr)
        rows = [row for entry in self.load_json(out)["ladders"] for row in entry["rungs"] if row["status"] != "skipped"]
        self.assertGreater(sum(row["status"] == "agrees" for row in rows), 0)
        return rows, result.stdout

    def overflowing(self, rows):
        return {row["rung"].split("/", 2)[2] for row in rows
                if row["status"] == "declined" and row["reason"] == "these values overflow its transform"}


class OwnData(_OwnArrays):
    def test_roundings_of_equal_numbers_add_up(self):
        small = np.tile(self.rng.random((1, 2, 1, 1)), (1, 1, 28, 28))
        for ladder, options, arrays in (
                ("gemm", [], {"a": full((1, 200), .1), "b": np.ones((200, 4))}),
                ("conv2d", [], {"x": full((1, 16, 6, 6), .1), "weights": full((2, 16, 3, 3), 1 / 144)}),
                ("conv2d_wgrad", ["--r", 3, "--s", 3, "--pad", 1], {"x": small, "dy": full((1, 3, 28, 28), 1 / 784)})):
            with self.subTest(ladder=ladder):
                rows, table = self.rows(ladder, *options, **arrays)
                remarks = [row["remark"] for row in rows if row["remark"] is not None]
                self.assertTrue(remarks)
                self.assertEqual(set(remarks), {"roundings add up"})
                self.assertIn("roundings add up", table)

    def test_random_numbers_need_no_remark(self):
        rows, table = self.rows("gemm", a=self.rng.uniform(-1, 1, (20, 200)), b=self.rng.uniform(-1, 1, (200, 9)))
        self.assertEqual({row["remark"] for row in rows}, {None})
        self.assertNotIn("roundings", table)

    def test_one_pixel_far_above_the_others(self):
        x = np.ones((1, 1, 16, 16))
        x[0, 0, 5, 7] = 1e12
        rows, table = self.rows("conv2d", x=x, weights=full((1, 1, 3, 3), 1 / 8))
        self.assertEqual(self.overflowing(rows), set())
        self.assertIn("* error relative to the tile's largest value, or to the image's norm", " ".join(table.split()))

    def test_a_transform_that_would_overflow_is_declined(self):
        x = np.copysign(full((1, 2, 16, 16), 1e38), self.rng.uniform(-1, 1, (1, 2, 16, 16)))
        rows, _ = self.rows("conv2d", x=x, weights=full((2, 2, 3, 3), 1e-3))
        names = self.overflowing(rows)
        self.assertTrue({"winograd_2x2", "winograd/4x4", "winograd/3xtf32", "fft/fused", "fft/3xtf32"} <= names, names)
        self.assertFalse({"direct", "direct/tiled", "implicit_gemm/tiled", "fft_whole_image"} & names, names)

    def test_a_number_for_no_data(self):
        x = self.rng.uniform(0, 1, (1, 1, 32, 32))
        x[0, 0, :4, :4] = -LARGEST
        binomial = np.array([1, 4, 6, 4, 1])
        rows, _ = self.rows("conv2d", "--pad", 2, x=x, weights=np.outer(binomial, binomial)[None, None] / 512)
        self.assertTrue(self.overflowing(rows) <= {"winograd_split_rows", "winograd/split_rows", "fft/fused", "fft/3xtf32"})

    def test_numbers_about_the_smallest(self):
        numbers = self.rng.standard_normal
        for size, filters in ((1e-41, numbers((2, 2, 3, 3))), (1e-38, numbers((2, 2, 3, 3))), (1, full((2, 2, 3, 3), 5e-42))):
            with self.subTest(size=size):
                rows, _ = self.rows("conv2d", x=numbers((1, 2, 16, 16)) * size, weights=filters)
                self.assertEqual(self.overflowing(rows), set())

    def test_products_lose_bits_where_numbers_do_not(self):
        numbers = self.rng.standard_normal
        for size, filters in ((1e-20, 1e-21), (1e-21, 1e-23), (1e-5, 1e-36), (1e-36, 1e-6)):
            for groups in (1, 2):
                with self.subTest(size=size, filters=filters, groups=groups):
                    rows, _ = self.rows("conv2d", "--pad", 1, "--groups", groups, x=numbers((3, 4, 20, 20)) * size,
                                        weights=numbers((4, 4 // groups, 3, 3)) * filters)
                    self.assertEqual(self.overflowing(rows), set())

    def test_an_eighth_of_a_turn_adds_two_large_parts(self):
        x = np.zeros((2, 64, 2))
        x[:, 3] = 2.3e38  # all outputs have this size times the root of 2, which float has
        lines = np.zeros((2, 64))
        lines[:, 0] = 2e38, 1e38
        for options, points in (([], x), (["--input", "real"], lines)):
            with self.subTest(options=options):
                rows, _ = self.rows("fft", *options, x=points)
                self.assertNotIn("dft", self.overflowing(rows))
        rows, _ = self.rows("fft", x=x / 4)
        self.assertTrue(self.overflowing(rows) <= {"bluestein"})  # whose transforms are longer

    def test_a_transform_that_does_not_overflow_is_not_declined(self):
        numbers = self.rng.standard_normal
        rows, _ = self.rows("conv2d", "--pad", 1, x=numbers((1, 2, 16, 16)) * 1e32, weights=numbers((2, 2, 3, 3)))
        self.assertEqual(self.overflowing(rows), set())

    def test_the_largest_number(self):
        arrays = {"a": full((16, 16), LARGEST), "b": np.eye(16) / 2}
        rows, _ = self.rows("gemm", **arrays)
        self.assertEqual(self.overflowing(rows), {"tf32/mma_3xtf32", "tf32/wgmma_3xtf32"})
        rows, _ = self.rows("gemm", "--dtype", "tf32", **arrays)
        self.assertEqual(self.overflowing(rows),
                         {"tf32/mma_3xtf32", "tf32/wgmma_3xtf32", "tf32/mma", "tf32/wgmma", "tf32/swap_ab"})

    def test_sums_beyond_the_largest_number_are_refused(self):
        self.bad_input("compare", "gemm", "--a", self.write("a.npy", full((2, 9), LARGEST)),
                       "--b", self.write("b.npy", full((9, 2), 1)), says=["c", "too large", "float32"])


class NotFinite(_OwnArrays):
    """Where NaN and infinity arrive, by the definition and by what docs/oracle.md promises."""

    def convolved(self, x, weights, *options):
        rows, _ = self.rows("conv2d", *options, "--save", self.folder / "out", x=x, weights=weights)
        return {row["rung"]: np.load(self.folder / "out/conv2d" / row["rung"].replace("/", ".") / row["where"] / "y.npy")
                for row in rows if row["status"] == "agrees"}

    def test_they_arrive_in_the_outputs_that_have_them(self):
        x, weights = self.rng.standard_normal((2, 2, 12, 12)), self.rng.standard_normal((3, 2, 3, 3))
        x[0, 1, 5, 5], x[1, 0, 0, 0] = np.nan, np.inf
        for rung, y in self.convolved(x, weights, "--pad", 1).items():
            with self.subTest(rung=rung):
                self.assertTrue(np.isnan(y[0, :, 4:7, 4:7]).all())
                self.assertFalse(np.isfinite(y[1, :, :2, :2]).any())
                self.assertTrue(np.isfinite(y[1, :, 8:, 8:]).all() or "fft" in rung)
                if "winograd" not in rung and "fft" not in rung:
                    self.assertEqual(np.isnan(y[0]).sum(), 27)
                    self.assertEqual((~np.isfinite(y[1])).sum(), 12)

    def test_whole_numbers_beside_them_stay_exact(self):
        a, b = self.rng.integers(-4, 5, (40, 33)).astype(float), self.rng.integers(-4, 5, (33, 20)).astype(float)
        a[3, 4], a[7, 2] = np.nan, -np.inf
        rows, _ = self.rows("gemm", a=a, b=b, expected=AGREE)
        self.assertTrue(all(row["exact"] for row in rows if row["status"] == "agrees" and "3xtf32" not in row["rung"]))

    def test_every_ladder_takes_them(self):
        numbers = self.rng.standard_normal
        dy, weights, line = numbers((2, 3, 12, 12)), numbers((3, 2, 3, 3)), numbers((3, 64, 2))
        dy[1, 2, 3, 4], weights[1, 1, 1, 1], line[1, 3, 0] = np.nan, -np.inf, np.inf
        same = ["--pad", 1]
        for ladder, options, arrays in (
                ("conv2d", same, {"x": numbers((2, 2, 12, 12)), "weights": weights}),
                ("conv2d_dgrad", [*same, "--h", 12, "--w", 12], {"dy": dy, "weights": numbers((3, 2, 3, 3))}),
                ("conv2d_wgrad", [*same, "--r", 3, "--s", 3], {"x": numbers((2, 2, 12, 12)), "dy": dy}),
                ("conv2d", ["--groups", 2, *same], {"x": np.where(dy[:, :2] > 2, np.nan, dy[:, :2]), "weights": numbers((4, 1, 3, 3))}),
                ("im2col", ["--kernel", 3], {"x": dy}),
                ("fft", [], {"x": line}),
                ("fft", ["--input", "real"], {"x": line[:, :, 0]})):
            with self.subTest(ladder=ladder, options=options):
                self.rows(ladder, *options, **arrays)

    def test_relu_makes_zeros_of_negative_infinities(self):
        numbers = self.rng.standard_normal
        x, weights = numbers((2, 2, 12, 12)), numbers((3, 2, 3, 3))
        x[0, 1, 5, 5], x[1, 0, 0, 0] = np.inf, -np.inf
        for options in ([], ["--dtype", "tf32"], ["--dtype", "fp16", "--layout", "nhwc"]):
            with self.subTest(options=options):
                self.rows("conv2d", "--activation", "relu", "--pad", 1, *options, x=x, weights=weights)
        a, b = numbers((8, 16)), numbers((16, 5))
        a[3, 4] = np.inf
        for dtype in ("fp32", "tf32", "bf16"):
            with self.subTest(dtype=dtype):
                self.rows("gemm", "--activation", "relu", "--bias", "--dtype", dtype, a=a, b=b)
        coords = np.array([[0, y, x] for y in range(5) for x in range(4)], np.int32)
        self.rows("sparse_conv", "--coords", self.write("coords.npy", coords), "--activation", "relu", "--bias",
                  self.write("bias.npy", np.array([-np.inf, 1, 2], np.float32)),
                  features=numbers((20, 4)), weights=numbers((9, 4, 3)))

    def test_infinity_times_a_number_that_tf32_has_no_digits_for(self):
        a, b = np.ones((8, 16)), np.ones((16, 5))
        a[3, 4], b[4, 2] = np.inf, 1e-42
        self.rows("gemm", "--dtype", "tf32", a=a, b=b)

    def test_rows_of_features(self):
        coords = np.array([[0, y, x] for y in range(5) for x in range(4) if (x + y) % 3])
        features = self.rng.standard_normal((len(coords), 4)).astype(np.float32)
        features[2, 1], features[7, 3] = np.nan, np.inf
        sites = ["--coords", self.write("coords.npy", coords.astype(np.int32)), "--cout", 3]
        rows, _ = self.rows("sparse_conv", *sites, features=features)
        weights = self.rng.standard_normal((9, 4, 3))
        weights[5, 2, 1] = np.nan
        self.rows("sparse_conv", *sites, features=self.rng.standard_normal(features.shape), weights=weights)

    def test_real_points_of_which_a_frequency_is_no_part(self):
        for length in (5, 8, 64):
            for place in ((0, 0), (0, 1), (1, 0), (1, 1), (length // 2, 0)):
                for value in (np.nan, -np.inf):
                    with self.subTest(length=length, place=place, value=value):
                        half = self.rng.standard_normal((3, length // 2 + 1, 2))
                        half[2][place] = value
                        self.rows("fft", "--direction", "inverse", "--input", "real", "--length", length, x=half)

    def test_an_image_of_them(self):
        for value in (np.nan, np.inf):
            with self.subTest(value=value):
                self.rows("conv2d", x=full((1, 1, 9, 9), value), weights=self.rng.standard_normal((1, 1, 3, 3)))


if __name__ == "__main__":
    unittest.main()
