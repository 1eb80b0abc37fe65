"""End-to-end tests of the command `convladder`: NPY files that are read, written or refused.

    CONVLADDER_PROGRAM=$PWD/build/cpu/command/convladder python3 -B tests/command/test_npy.py [CLASS]

CTest runs each class as a test of its own.
"""
import io
import struct
import unittest

import numpy as np

from program import AGREE, ProgramTest, integers, run


class NpyFormats(ProgramTest):
    """What is read: versions 1 to 3, C and Fortran order, and some conversions."""

    def product(self, a_file, a):
        b = integers(self.rng, a.shape[1], 3)
        out, report, result = self.save("gemm", "--a", a_file, "--b", self.write("b.npy", b),
                                        "--backend", "cpu")
        self.check_saved("gemm", out, report, {"c": a.astype(np.float64) @ b})
        return result.stdout + result.stderr

    def test_versions(self):
        a = integers(self.rng, 4, 5)
        for version in ((1, 0), (2, 0), (3, 0)):
            path = self.folder / "a.npy"
            with open(path, "wb") as file:
                np.lib.format.write_array(file, a, version=version)
            self.product(path, a)

    def test_fortran_order(self):
        a = integers(self.rng, 4, 5)
        self.product(self.write("a.npy", np.asfortranarray(a)), a)

    def test_conversions_are_said(self):
        a = integers(self.rng, 4, 5)
        for dtype in (np.float64, np.float16):
            said = self.product(self.write("a.npy", a.astype(dtype)), a)
            self.assertIn(np.dtype(dtype).name, said)
        self.assertNotIn("convert", self.product(self.write("a.npy", a), a))

    def test_what_is_written_is_plain(self):
        a, b = integers(self.rng, 4, 5), integers(self.rng, 5, 6)
        out, _, _ = self.save("gemm", "--a", self.write("a.npy", a), "--b", self.write("b.npy", b))
        for path in out.rglob("*.npy"):
            data = path.read_bytes()
            self.assertEqual(data[:8], b"\x93NUMPY\x01\x00")
            header = data[10:10 + struct.unpack("<H", data[8:10])[0]]
            self.assertIn(b"'fortran_order': False", header)
            self.assertEqual((10 + len(header)) % 64, 0)


class BadFiles(ProgramTest):
    """Arrays that are broken, lie, or do not fit."""

    def refuse(self, data, says=()):
        path = self.folder / "a.npy"
        path.write_bytes(data)
        self.bad_input("compare", "gemm", "--a", path, "--save", self.folder / "out", "--json",
                       self.folder / "out.json", says=["a.npy", *says])

    @staticmethod
    def npy(header, body=b"\0" * 80, version=b"\x01\x00"):
        text = header.encode("latin1")
        text += b" " * (64 - (11 + len(text)) % 64) + b"\n"
        return b"\x93NUMPY" + version + struct.pack("<H", len(text)) + text + body

    def test_broken_files(self):
        stream = io.BytesIO()
        np.save(stream, np.zeros((4, 5), np.float32))
        good = stream.getvalue()
        path = self.folder / "good.npy"
        path.write_bytes(good)
        self.agree("compare", "gemm", "--a", path, "--n", 3, "--backend", "cpu")
        for name, data in (("empty", b""), ("text", b"a,b,c\n1,2,3\n" * 20), ("cut", good[:-4]),
                           ("long", good + b"\0\0\0\0"), ("header only", good[:64]),
                           ("magic only", good[:6]), ("wrong magic", b"\x92" + good[1:]),
                           ("version 9", good[:6] + b"\x09" + good[7:]),
                           ("header length", good[:8] + b"\xff\xff" + good[10:])):
            with self.subTest(name):
                self.refuse(data)

    def test_headers_that_lie_or_make_no_sense(self):
        for header in ("{'descr': '<f4', 'fortran_order': False, 'shape': (40, 50), }",
                       "{'descr': '<f4', 'fortran_order': False, 'shape': (-4, -5), }",
                       "{'descr': '<f4', 'fortran_order': False, 'shape': (4.0, 5), }",
                       "{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296), }",
                       "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999, 1), }",
                       "{'descr': '<f4', 'fortran_order': False, 'shape': (4, 5), 'more': 1}",
                       "{'descr': '<f4', 'fortran_order': False}",
                       "{'descr': '<f4', 'shape': (4, 5)}",
                       "{'fortran_order': False, 'shape': (4, 5)}",
                       "{'descr': '<f4', 'fortran_order': Maybe, 'shape': (4, 5)}",
                       "{'descr': '<f4', 'fortran_order': False, 'shape': (4, 5)",
                       "'descr'", "", "{}"):
            with self.subTest(header=header):
                self.refuse(self.npy(header))

    def test_element_types_that_are_not_read(self):
        for descr in ("'>f4'", "'<c8'", "'|O'", "'<u4'", "'<U3'", "'|b1'", "[('a', '<f4')]"):
            with self.subTest(descr=descr):
                self.refuse(self.npy(f"{{'descr': {descr}, 'fortran_order': False, 'shape': (4, 5), }}"))

    def test_integers_are_no_matrix(self):
        stream = io.BytesIO()
        np.save(stream, np.ones((4, 5), np.int32))
        self.refuse(stream.getvalue())

    def test_missing_file_and_folder(self):
        self.bad_input("compare", "gemm", "--a", self.folder / "none.npy", says=["none.npy"])
        self.bad_input("compare", "gemm", "--a", self.folder, says=[str(self.folder)])

    def test_wrong_ranks_and_shapes(self):
        def file(name, *shape):
            return self.write(name + ".npy", np.zeros(shape, np.float32))
        flat, matrix, image = file("flat", 4), file("matrix", 4, 5), file("image", 1, 2, 6, 7)
        weights = file("weights", 3, 2, 3, 3)
        for arguments in (["gemm", "--a", flat], ["gemm", "--a", image],
                          ["gemm", "--a", matrix, "--b", matrix],
                          ["gemm", "--a", matrix, "--k", "6"],
                          ["conv2d", "--x", matrix], ["conv2d", "--x", image, "--weights", matrix],
                          ["conv2d", "--x", image, "--weights", file("three", 3, 3, 3, 3)],
                          ["conv2d", "--x", image, "--weights", weights, "--h", "8"],
                          ["conv2d", "--x", image, "--weights", weights, "--bias", file("b", 4)],
                          ["conv2d", "--x", image, "--weights", file("large", 3, 2, 7, 3)],
                          ["conv2d_dgrad", "--dy", file("dy", 1, 3, 9, 9), "--weights", weights, "--h",
                           "6", "--w", "7"],
                          ["conv2d_wgrad", "--x", image, "--dy", file("dy2", 1, 3, 9, 9), "--r", "3",
                           "--s", "3"],
                          ["im2col", "--x", flat], ["im2col", "--x", file("five", 1, 1, 1, 1, 1, 1)],
                          ["col2im", "--col", file("col", 1, 9, 7), "--c", "1", "--size", "5,5"],
                          ["col2im", "--col", file("col2", 1, 8, 9), "--c", "1", "--size", "5,5"]):
            with self.subTest(arguments=arguments):
                self.bad_input("compare", *arguments, "--save", self.folder / "out")

if __name__ == "__main__":
    unittest.main()
