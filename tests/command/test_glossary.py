"""Tests of docs/link_terms.py and tools/check_words.py: links to the glossary, and words without an explanation."""
import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "docs"), str(ROOT / "tools")]
sys.dont_write_bytecode = True
import check_words  # noqa: E402
import link_terms  # noqa: E402

MEANINGS = {"bank": "a part of shared memory", "bank conflict": "lanes take turns", "SM": "runs <blocks>"}


def page(text):
    return f'<div class="contents"><div class="textblock">{text}</div></div><p>bank</p>'


class Glossary(unittest.TestCase):
    def linked(self, text):
        return link_terms.linked(page(text), MEANINGS)

    def test_the_first_use_of_a_term_leads_to_it(self):
        self.assertEqual(self.linked("<p>A bank, and banks.</p>"),
                         page('<p>A <a class="term" href="glossary.html#term_bank" title="a part of shared memory">bank</a>, and banks.</p>'))

    def test_the_longest_term_wins(self):
        self.assertIn('<a class="term" href="glossary.html#term_bank_conflict" title="lanes take turns">Bank conflicts</a>',
                      self.linked("<p>Bank conflicts</p>"))

    def test_abbreviations_are_written_as_they_are(self):
        self.assertIn("sm <a", self.linked("<p>sm SM</p>"))
        self.assertIn('title="runs &lt;blocks&gt;"', self.linked("<p>SM</p>"))

    def test_code_links_headings_and_other_words_stay(self):
        for text in ("<code>bank</code>", '<a href="x.html">bank</a>', "<h2>bank</h2>", "<pre>bank</pre>", '<div class="fragment">bank</div>',
                     "embankment bank-like bank.cu", "<!-- bank -->"):
            self.assertEqual(self.linked(text), page(text))

    def test_rows_of_the_glossary(self):
        glossary = ('<h2><a class="anchor" id="glossary_gpu"></a>A GPU</h2><table><tr class="odd"><td class="l">bank</td>'
                    '<td class="l">a <em>part</em></td></tr></table>')
        (section, term, meaning, place), = link_terms.rows(glossary)
        self.assertEqual((section, term, meaning, glossary[place:place + 3]), ("glossary_gpu", "bank", "a part", "<tr"))

    def test_words_and_what_they_are_forms_of(self):
        self.assertEqual(list(check_words.words("Don't stop: TF32 of `a_b.cu` and kTileM, half-done in B4 (2.5 MB).")),
                         ["Don't", "stop", "TF32", "of", "and", "half", "done", "in", "MB"])
        for form, word in (("planned", "plan"), ("copies", "copy"), ("storing", "store"), ("tiles", "tile"), ("reader's", "reader")):
            self.assertIn(word, list(check_words.stems(form)))

    def test_prose_leaves_out_code_and_what_is_folded(self):
        text = page('<p>seen <a class="term" href="g" title="t">bank</a></p><details><p>folded</p></details><pre>code</pre>')
        self.assertEqual(check_words.prose(text).split(), ["seen", "bank"])

    def test_a_term_is_linked_where_it_means_that(self):
        meanings = {"line": "of fft", "bank": "a part of shared memory"}
        self.assertIn("term_line", link_terms.linked_page("ladder_fft", "<p>a line</p>", meanings))
        self.assertEqual(link_terms.linked_page("ladder_gemm", "<p>a line</p>", meanings), "<p>a line</p>")
        self.assertFalse(link_terms.in_scope("where", "ladder_gemm"))

    def test_rows_of_the_glossary_can_be_linked_to(self):
        glossary = '<table><tr class="odd"><td>bank</td><td>a part</td></tr><tr><td>bank</td><td>again</td></tr></table>'
        self.assertEqual(link_terms.with_anchors(glossary).count('id="term_bank"'), 1)

    def test_plain_words_are_words_once(self):
        words = [word for line in (ROOT / "docs/plain_words.txt").read_text().splitlines() for word in line.split("#")[0].split()]
        self.assertEqual([word for word in words if not word.isalnum() or word != word.lower()], [])
        self.assertEqual(sorted({word for word in words if words.count(word) > 1}), [])


if __name__ == "__main__":
    unittest.main()
