"""Tests of what ./ladder handout does to a rung's text: it finds functions and blocks, and leaves paragraphs out.

    python3 test_handout_texts.py
"""
import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools/handout"))
sys.dont_write_bytecode = True
import functions  # noqa: E402
import rung_texts  # noqa: E402


def body(text, declarator):
    begin, end = functions.body_of(text, declarator)
    return text[begin:end]


class Matcher(unittest.TestCase):
    def test_the_body_of_one_definition(self):
        text = "void f(int a);\nvoid f(int a) {\n  g();\n}\nvoid g() { f(1); }\n"
        self.assertEqual(body(text, "void f("), "\n  g();\n")
        self.assertEqual(body(text, "g("), " f(1); ")

    def test_braces_that_are_no_code(self):
        for inside in ('"}"', '"\\"}"', "'}'", "'\\''", 'R"(})"', 'R"x()" } )x"', "// }\n", "/* } */", "20'000 + '}'",
                       "// it's\n", 'u8"}"', "L'}'", "// goes on \\\n }\n"):
            text = f"int f() {{ {inside} ; }}\nint g() {{ }}\n"
            self.assertEqual(body(text, "int f("), f" {inside} ; ", inside)

    def test_branches_of_the_preprocessor(self):
        text = "void f() {\n#if A\n  if (a) {\n#elif B\n  if (b) {\n#else\n  if (c) {\n#endif\n  }\n}\nvoid g() {}\n"
        self.assertTrue(body(text, "void f(").endswith("  }\n"))
        text = "#ifdef A\nvoid f() { 1; }\n#else\nvoid f() { 2; }\n#endif\n"
        self.assertEqual(body(text, "void f("), " 1; ")

    def test_between_parameters_and_body(self):
        for between in ("", " const", " noexcept", " const noexcept", " -> std::vector<int>", "\n   "):
            self.assertEqual(body(f"auto f(int a = g(1)){between} {{ x }}", "auto f("), " x ")

    def test_what_is_no_definition(self):
        for text in ("", "void f(int);", "void g() { f(1); }", "void other_f() { }", "// void f() { }", '"void f() { }"',
                     "launch(f, {1, 2});"):
            with self.assertRaises(functions.Mismatch, msg=text):
                functions.body_of(text, "f(")

    def test_two_definitions(self):
        with self.assertRaisesRegex(functions.Mismatch, "matches 2 definitions"):
            functions.body_of("void f(int) {}\nvoid f(float) {}\n", "void f(")

    def test_brackets_that_do_not_match(self):
        for text in ("void f() {", "void f() { ( } )", "void f( {}"):
            with self.assertRaises(functions.Mismatch):
                functions.body_of(text, "void f(")

    def test_the_block_behind_a_statement(self):
        text = "void f() {\n  for (int c = 0;  c < C; ++c) {\n    g({c});\n  }\n}\n"
        begin, end = functions.block_behind(text, "for (int c = 0; c < C; ++c)")
        self.assertEqual(text[begin:end], "\n    g({c});\n  ")
        for statement in ("for (int d = 0; d < C; ++d)", "while (true)"):
            with self.assertRaisesRegex(functions.Mismatch, "stands no times"):
                functions.block_behind(text, statement)

    def test_every_function_of_every_rung_is_found_again(self):
        # What stands between the braces of a kernel, put into its place, changes nothing.
        for path in sorted((ROOT / "cuda_naive").rglob("*.cu")):
            text = path.read_text()
            self.assertEqual(len(functions.code_of(text)), len(text))
            if "\nDeclined supports(" not in text:
                continue
            begin, end = functions.body_of(text, "Declined supports(")
            self.assertEqual((text[begin - 1], text[end]), ("{", "}"), path)


class Paragraphs(unittest.TestCase):
    TEXT = "/// @file a.cu\n///\n/// **Idea.** One.\n/// **Expect.** Two\n/// and a **word.**\n/// **Try.** Three.\nint a;\n"

    def test_one_is_taken_out(self):
        self.assertEqual(rung_texts.without_paragraphs(self.TEXT, ["Expect"]),
                         "/// @file a.cu\n///\n/// **Idea.** One.\n/// **Try.** Three.\nint a;\n")

    def test_one_that_is_not_there(self):
        with self.assertRaises(functions.Mismatch):
            rung_texts.without_paragraphs(self.TEXT, ["Costs"])


if __name__ == "__main__":
    unittest.main()
