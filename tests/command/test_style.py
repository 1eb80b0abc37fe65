"""Tests of tools/check_style.py: which words of a text it reports, and which it permits."""
import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
sys.dont_write_bytecode = True
import check_style  # noqa: E402


class Style(unittest.TestCase):
    def terms(self, name, text):
        return [(line, words) for line, words, _ in check_style.hits_in(name, text)]

    def test_words_with_a_standard_term(self):
        self.assertEqual(self.terms("a.md", "One.\nThe matrix\nproduct, in whole numbers.\n"), [(2, "matrix product"), (3, "whole numbers")])
        self.assertEqual(self.terms("a.cu", "int judged;  // is judged\n"), [(1, "judged")])

    def test_code_and_program_names_are_permitted(self):
        self.assertEqual(self.terms("a.md", "`matrix product`\n\n    whole numbers\n"), [])
        for text in ("/// judge LEVEL UID    or    judge probe", '"judge: %s"', "// judge.cpp"):
            self.assertEqual(self.terms("a.cpp", text + "\n"), [], text)


if __name__ == "__main__":
    unittest.main()
