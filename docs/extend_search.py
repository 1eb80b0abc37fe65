#!/usr/bin/env python3
"""Lets the site's search find pages by any word of their titles, and words of the glossary.

    extend_search.py HTML      the folder that Doxygen wrote, after link_terms.py; its search index is changed

Doxygen's own index has each title once, under its first letter: `Two things called swizzle` is found by `Two`. Its
files search/all_<n>.js have what begins with the n-th character of a string in search/searchdata.js.
"""
import html
import json
import pathlib
import re
import sys

DOCS = pathlib.Path(__file__).resolve().parent
LEAST_LETTERS = 4
LITTLE = {"called", "from", "this", "uses", "what", "will"}  # words that lead nowhere


def key(text):
    """As the index writes a name: 'a b_c' is a_20b_5fc."""
    return "".join(char if char.isalnum() else f"_{ord(char):02x}" for char in text.lower())


def title_of(page):
    found = re.search(r'<div class="title">(.*?)\s*(?:<div|</div>)', page, re.S)
    return html.unescape(re.sub("<[^>]*>", "", found.group(1))).strip()


def entries(site):
    """(what is typed, what is shown, the page, what is shown beside it)."""
    for anchor, term in re.findall(r'<tr id="(term_\w+)"[^>]*>\s*<td[^>]*>(.*?)</td>', (site / "glossary.html").read_text(), re.S):
        term = html.unescape(re.sub("<[^>]*>", "", term)).strip()
        yield term, term, f"glossary.html#{anchor}", "glossary"
    for source in sorted(DOCS.glob("*.md")):
        name = re.match(r"# .* \{#(\w+)\}", source.read_text())
        page = site / f"{name.group(1)}.html" if name else None
        if page and page.exists():
            title = title_of(page.read_text())
            for word in re.findall(r"\w+", title)[1:]:
                if len(word) >= LEAST_LETTERS and word.lower() not in LITTLE:
                    yield word, title, page.name, ""


def extend(site):
    letters = re.search(r'0: "(.*?)"', (site / "search" / "searchdata.js").read_text()).group(1)
    added = {}
    for number, (typed, shown, page, beside) in enumerate(entries(site)):
        place = letters.find(typed[0].lower())
        if place >= 0 and typed.isascii():
            added.setdefault(place, []).append(
                f"  ['{key(typed)}_{100000 + number}',[{json.dumps(shown)},['../{page}',1,{json.dumps(beside)}]]]")
    for place, lines in added.items():
        file = site / "search" / f"all_{place:x}.js"
        begin, found, rest = file.read_text().partition("[\n")
        assert found, file
        file.write_text(begin + found + ",\n".join(lines) + ",\n" + rest)


if __name__ == "__main__":
    extend(pathlib.Path(sys.argv[1]))
