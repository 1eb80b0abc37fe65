#!/usr/bin/env python3
"""Links words of the trade to the glossary: on each page of prose the first time that one is used, with what it means as
the text that a browser shows beside it.

    link_terms.py HTML      the folder that Doxygen wrote; its pages are changed

The terms are the first cells of the glossary's tables under LINKED, but for those that are as often used in their everyday
sense.
"""
import html
import pathlib
import re
import sys

LINKED = ("glossary_house", "glossary_gpu", "glossary_fast")  # anchors of sections of docs/glossary.md
EVERYDAY = {"reference", "skipped", "where", "window", "tail", "unit", "frequency", "pixel", "U, V, M", "F(m, r)", "gather, scatter"}
# Terms that mean this on some pages alone: a pattern that the page's name must have.
SCOPES = {"line": r"fft", "ring": r"fft", "grid": r"^(?!.*(rulebook|voxel|sparse|lidar))"}
NOT_WITHIN = {"a", "code", "pre", "script", "style", "svg", "summary", "h1", "h2", "h3", "h4", "h5", "h6", "map"}
NOT_OF_CLASS = ("fragment", "toc", "caption", "headertitle", "ladder-map", "formulaDsp")
FORMULA = re.compile(r"(\\\(.*?\\\)|\\\[.*?\\\])", re.S)
TAG = re.compile(r"(<!--.*?-->|<[^>]*>)", re.S)
VOID = {"br", "img", "hr", "input", "link", "meta", "area", "wbr", "col"}


def plain(text):
    """HTML without its tags."""
    return " ".join(html.unescape(re.sub(r"<[^>]*>", "", text)).split())


def rows(glossary):
    """(the anchor of its section, its first cell, its second, where its tag begins) of each row of the glossary's tables."""
    section = ""
    for found in re.finditer(r'<a class="anchor" id="(\w+)"|(<tr\b[^>]*>\s*<td\b[^>]*>)(.*?)</td>\s*<td\b[^>]*>(.*?)</td>', glossary, re.S):
        if found.group(1):
            section = found.group(1)
        else:
            yield section, plain(found.group(3)), plain(found.group(4)), found.start(2)


def anchor(term):
    return "term_" + re.sub(r"\W+", "_", term)


def pieces(page):
    """(text, whether it is prose) of a page, one after the other; tags are text that is no prose."""
    inside, contents = [], False  # of each tag that is open since the contents began: whether prose may stand within
    for piece in TAG.split(page):
        if not piece.startswith("<"):
            yield piece, contents and all(inside)
            continue
        closing, name = re.match(r"<(/?)(\w*)", piece).groups()
        name = name.lower() or "br"  # of a comment, or a declaration: it opens nothing
        if contents and closing and name not in VOID:
            if inside:
                inside.pop()
            contents = bool(inside)
        elif name not in VOID and not piece.endswith("/>") and not closing:
            if contents:
                classes = (re.search(r'class="([^"]*)"', piece) or [None, ""])[1]
                inside.append(name not in NOT_WITHIN and not any(of in classes for of in NOT_OF_CLASS))
            elif 'class="contents"' in piece or 'class="textblock"' in piece:
                contents, inside = True, [True]
        yield piece, False


def linked(page, meanings):
    """The page with links. @param meanings what each term means"""
    left = dict(meanings)
    lower = {term.lower(): term for term in meanings}
    longest_first = sorted(map(re.escape, meanings), key=len, reverse=True)
    any_term = re.compile(rf"(?<![\w.-])({'|'.join(longest_first)})(?:s|es)?(?![\w-]|\.\w)", re.I)

    def link(match):
        found = match.group(1)
        term = lower[found.lower()]
        if term not in left or (term.isupper() and found != term):  # SM, and not sm
            return match.group(0)
        return f'<a class="term" href="glossary.html#{anchor(term)}" title="{html.escape(left.pop(term))}">{match.group(0)}</a>'

    def prose_linked(text):
        """Every second part is a formula, which stays as it is."""
        return "".join(part if i % 2 else any_term.sub(link, part) for i, part in enumerate(FORMULA.split(text)))

    return "".join(prose_linked(text) if prose else text for text, prose in pieces(page))


def main():
    site = pathlib.Path(sys.argv[1])
    path = site / "glossary.html"
    glossary = path.read_text()
    meanings, places = {}, []
    for section, term, meaning, place in rows(glossary):
        if section in LINKED and term not in EVERYDAY:
            places.append((place, anchor(term)))
            meanings[term] = meaning
    for place, name in reversed(places):
        glossary = f'{glossary[:place]}<tr id="{name}"{glossary[place + len("<tr"):]}'
    path.write_text(glossary)
    for page in sorted(site.glob("*.html")):
        # Pages of prose have a text; those of files and classes are lists.
        if page.name != "glossary.html" and 'class="textblock"' in (text := page.read_text()):
            here = {term: meaning for term, meaning in meanings.items() if re.search(SCOPES.get(term, ""), page.name)}
            page.write_text(linked(text, here))


if __name__ == "__main__":
    main()
