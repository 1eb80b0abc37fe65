"""End-to-end tests of the command `convladder`: `compare` without a ladder, the tour of them all.

    CONVLADDER_PROGRAM=$PWD/build/cpu/command/convladder python3 -B tests/command/test_tour.py [CLASS]

CTest runs each class as a test of its own.
"""
import unittest

from pictures import png_size
from program import LADDERS, ProgramTest


class Tour(ProgramTest):
    def test_every_ladder_and_a_picture(self):
        result = self.agree("compare", "--backend", "cpu", "--save", self.folder / "out", "--json",
                            self.folder / "tour.json", timeout=280)
        report = self.load_json(self.folder / "tour.json")
        self.assertEqual({entry["ladder"] for entry in report["ladders"]}, set(LADDERS))
        for ladder in LADDERS:
            self.assertIn(ladder, result.stdout)
        for entry in report["ladders"]:
            for row in entry["rungs"]:
                self.assertIn(row["status"], ("agrees", "declined"), row)
        pictures = list((self.folder / "out").rglob("*.png"))
        self.assertTrue(pictures)
        for picture in pictures:
            width, height = png_size(picture.read_bytes())
            self.assertGreater(min(width, height), 0)


if __name__ == "__main__":
    unittest.main()
