#!/usr/bin/env python3
"""Checks that the pages on the path "A weekend" explain every word that a C++ programmer without CUDA knowledge may
not know.

    check_words.py HTML             the folder that ./ladder docs wrote
    check_words.py HTML --unknown   prints all unknown words, one per line

Every word of these pages' prose must be in the glossary or in docs/plain_words.txt, which lists words that a
programmer knows, and names of people, programs and rungs. Code, folded text and the ladders' own pages are excluded. Prints each other
word as PAGE: WORD; the status is 1 if there is one. A new technical term belongs in docs/glossary.md with its
meaning.
"""
import html
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "docs"))
import link_terms  # noqa: E402
from make_players import rung_page_name  # noqa: E402

PATH = "weekend"


def pages_of_path(site):
    stops = json.loads((site.parent / "generated" / "reading_paths.json").read_text())[PATH]
    return [f"{stop.removeprefix('page ')}.html" if stop.startswith("page ") else rung_page_name(stop) for stop in stops
            if not stop.startswith("page ladder_")]


def prose(page):
    """The text of a page that is neither code nor a heading nor folded, nor the name of another page."""
    page = re.sub(r"<details.*?</details>", "", page, flags=re.S)
    # What a link of the glossary stands around is prose.
    page = re.sub(r'<a class="term"[^>]*>(.*?)</a>', r"\1", page)
    return html.unescape(" ".join(text for text, is_prose in link_terms.pieces(page) if is_prose))


def words(text):
    """Words, but for names of files, rungs, variables and problems, and numbers with units."""
    for word in re.findall(r"[^\s()\[\]{}\"\u201c\u201d,;:!?=+*/<>|]+", text):
        word = word.strip(".'-\u00b7")
        if re.fullmatch(r"[A-Z]+\d+", word) and not re.fullmatch(r"B\d+", word):  # TF32; but not B4, a problem
            yield word
        elif re.fullmatch(r"[A-Za-z]+(?:['-][A-Za-z]+)*", word) and not re.search(r"[a-z][A-Z]", word):  # nor kTileM
            yield from word.split("-")


def stems(word):
    """The word, and the words of which it may be a form."""
    word = re.sub(r"'s?$", "", word)
    yield word
    for ending, instead in (("s", ""), ("es", ""), ("ies", "y"), ("d", ""), ("ed", ""), ("ied", "y"), ("ing", ""), ("ing", "e"),
                            ("ly", ""), ("er", ""), ("er", "e"), ("est", ""), ("est", "e")):
        if word.endswith(ending) and len(word) > len(ending) + 1:
            stem = word[:-len(ending)] + instead
            yield stem
            if len(stem) > 2 and stem[-1] == stem[-2]:  # planned, running
                yield stem[:-1]


def known_words(site):
    known = {word.lower() for line in (ROOT / "docs" / "plain_words.txt").read_text().splitlines()
             for word in line.split("#")[0].split()}
    for _, term, _, _ in link_terms.rows((site / "glossary.html").read_text()):
        known |= {word.lower() for word in re.findall(r"[\w']+", term)}
    return known


def unknown(site):
    """(page, word) of each unknown word, once per page."""
    known = known_words(site)
    for name in pages_of_path(site):
        seen = set()
        for word in words(prose((site / name).read_text())):
            if word.lower() not in seen and len(word) > 1 and not any(stem in known for stem in stems(word.lower())):
                seen.add(word.lower())
                yield name, word


def main():
    site = pathlib.Path(sys.argv[1])
    found = list(unknown(site))
    if "--unknown" in sys.argv[2:]:
        print("\n".join(sorted({word.lower() for _, word in found})))
    else:
        for page, word in found:
            print(f"{page}: {word}: neither in docs/glossary.md nor in docs/plain_words.txt")
        print(f"{len(pages_of_path(site))} pages of the path, {len(found)} words without an explanation")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
