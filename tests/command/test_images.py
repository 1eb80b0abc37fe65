"""End-to-end tests of the command `convladder`: pictures that are filtered, and pictures that are broken.

    CONVLADDER_PROGRAM=$PWD/build/cpu/command/convladder python3 -B tests/command/test_images.py [CLASS]

CTest runs each class as a test of its own.
"""
import struct
import unittest

import numpy as np

from pictures import png_bytes, png_size
from program import ProgramTest


class Images(ProgramTest):
    def test_a_filtered_photograph(self):
        image = self.rng.integers(0, 256, size=(40, 60, 3)).astype(np.uint8)
        photo = self.folder / "photo.png"
        photo.write_bytes(png_bytes(image))
        for name in ("sobel", "gaussian", "laplacian", "sharpen", "emboss"):
            with self.subTest(filter=name):
                out, report, _ = self.save("conv2d", "--image", photo, "--filter", name, "--backend",
                                           "cpu")
                # Winograd's take filters of 3 x 3 alone.
                self.assertEqual({row["status"] for row in report["ladders"][0]["rungs"] if "winograd" not in row["rung"]}, {"agrees"})
                self.assertLessEqual({row["status"] for row in report["ladders"][0]["rungs"]}, {"agrees", "declined"})
                pictures = list(out.rglob("y.png"))
                self.assertTrue(pictures)
                for picture in pictures:
                    width, height = png_size(picture.read_bytes())
                    self.assertLessEqual(abs(width - 60), 6)  # 7 taps without padding
                    self.assertLessEqual(abs(height - 40), 6)
                self.assertEqual(len({path.read_bytes() for path in out.rglob("y.npy")}), 1)

    def test_grey_and_tiny_images(self):
        for shape in ((9, 8), (3, 3), (5, 30)):
            photo = self.folder / "grey.png"
            photo.write_bytes(png_bytes(self.rng.integers(0, 256, size=shape).astype(np.uint8)))
            self.save("conv2d", "--image", photo, "--filter", "laplacian", "--pad", 2, "--backend", "cpu")

    def test_broken_pictures(self):
        good = png_bytes(self.rng.integers(0, 256, size=(16, 16, 3)).astype(np.uint8))
        broken = {"empty.png": b"", "text.png": b"this is no picture, but some text\n",
                  "cut.png": good[:len(good) // 2], "header.png": good[:20],
                  "flipped.png": good[:60] + bytes([good[60] ^ 0xff]) + good[61:],
                  "huge.png": good[:16] + struct.pack(">II", 2**31 - 1, 2**31 - 1) + good[24:]}
        for name, data in broken.items():
            with self.subTest(name=name):
                (self.folder / name).write_bytes(data)
                self.bad_input("compare", "conv2d", "--image", self.folder / name, "--filter", "sobel",
                               says=[name])

    def test_unknown_filter_and_missing_partner(self):
        photo = self.folder / "photo.png"
        photo.write_bytes(png_bytes(np.zeros((8, 8), np.uint8)))
        self.bad_input("compare", "conv2d", "--image", photo, "--filter", "sobol",
                       says=["sobol", "nearest", "sobel"])
        self.bad_input("compare", "conv2d", "--image", photo)
        self.bad_input("compare", "conv2d", "--image", self.folder / "none.png", "--filter", "sobel",
                       says=["none.png"])


if __name__ == "__main__":
    unittest.main()
