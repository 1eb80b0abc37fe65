"""End-to-end tests of the command `convladder`: pictures that are filtered, and pictures that are broken.

    CONVLADDER_PROGRAM=$PWD/build/cpu/command/convladder python3 -B tests/command/test_images.py [CLASS]

CTest runs each class as a test of its own.
"""
import base64
import struct
import unittest

import numpy as np

from pictures import png_bytes, png_size
from program import ProgramTest, run


# [8][9], grey: four columns of 40, five of 168; of quality 100.
JPEG = base64.b64decode("""
/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAAEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQH/
wAALCAAIAAkBAREA/8QAHwAAAQUBAQEBAQEAAAAAAAAAAAECAwQFBgcICQoL/8QAtRAAAgEDAwIEAwUFBAQAAAF9AQIDAAQRBRIhMUEGE1FhByJxFDKBkaEI
I0KxwRVS0fAkM2JyggkKFhcYGRolJicoKSo0NTY3ODk6Q0RFRkdISUpTVFVWV1hZWmNkZWZnaGlqc3R1dnd4eXqDhIWGh4iJipKTlJWWl5iZmqKjpKWmp6ip
qrKztLW2t7i5usLDxMXGx8jJytLT1NXW19jZ2uHi4+Tl5ufo6erx8vP09fb3+Pn6/9oACAEBAAA/APj/AP4IX/8AN0f/AHRL/wB65X9AFf/Z
""")


def bmp_bytes(image):
    """A 24-bit BMP: image [h][w][3]; its rows stand from the lowest up, blue first, filled up to multiples of four bytes."""
    height, width = image.shape[:2]
    rows = b"".join(row[:, ::-1].tobytes() + bytes(-3 * width % 4) for row in image[::-1])
    return struct.pack("<2sIHHIIiiHHIIiiII", b"BM", 54 + len(rows), 0, 0, 54, 40, width, height, 1, 24, 0, len(rows), 2835, 2835, 0, 0) + rows


class Images(ProgramTest):
    def filtered(self, photo):
        """What a filter makes of it, or None where the program cannot read it."""
        result = run("compare", "conv2d", "--image", photo, "--filter", "sharpen", "--rung", "cpu_reference/conv2d/direct", "--save", self.folder / "out")
        if result.returncode == 2 and "built with TurboJPEG" in result.stderr:
            return None
        self.assertEqual(result.returncode, 0, result.stderr)
        return np.load(self.folder / "out/conv2d/cpu_reference.conv2d.direct/cpu/y.npy")

    def test_jpeg_and_bmp_are_the_same_as_png(self):
        grey = np.where(np.arange(9) < 4, 40, 168).astype(np.uint8) * np.ones((8, 1), np.uint8)
        colours = self.rng.integers(0, 256, size=(13, 10, 3)).astype(np.uint8)
        for name, data, image in (("grey.jpg", JPEG, grey), ("no_suffix", JPEG, grey), ("colours.bmp", bmp_bytes(colours), colours)):
            with self.subTest(name):
                (self.folder / name).write_bytes(data)
                (self.folder / "same.png").write_bytes(png_bytes(image))
                found = self.filtered(self.folder / name)
                if found is None:
                    self.skipTest("built without TurboJPEG")
                np.testing.assert_array_equal(found, self.filtered(self.folder / "same.png"))

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
                  "cut.jpg": JPEG[:len(JPEG) // 2], "header.jpg": JPEG[:3], "cut.bmp": bmp_bytes(np.zeros((9, 9, 3), np.uint8))[:99],
                  "header.bmp": b"BM", "flipped.png": good[:60] + bytes([good[60] ^ 0xff]) + good[61:],
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
