"""Links words of the trade to the glossary: on each page of prose the first time that one is used, with what it means as
the text that a browser shows beside it.

The terms are the first cells of the glossary's tables under LINKED. A word that is as often used in its everyday sense is not
linked (EVERYDAY); a term that has its meaning on some pages alone is linked on those (SCOPES).
"""
import html
import re

LINKED = ("glossary_house", "glossary_gpu", "glossary_fast")  # anchors of sections of docs/glossary.md
EVERYDAY = {"reference", "skipped", "where", "window", "tail", "unit", "frequency", "pixel", "U, V, M", "F(m, r)", "gather, scatter", "request",
            "stage", "wave", "scale", "host", "device", "launch", "bias", "activation", "decode", "fragment", "pooling", "u, v", "real line, pair",
            "pass, butterfly"}
# Terms that mean this on some pages alone: a pattern that the page's name must have.
DENSE = r"^(?!.*(rulebook|voxel|sparse|lidar|mistakes|command|python|library))"
FFT = r"fft"
SCOPES = {"line": FFT, "plane": FFT, "ring": FFT, "twiddle factor": FFT, "overlap-save": FFT, "spectrum": r"fft|fewer_multiplications|winograd",
          "grid": DENSE, "panel": r"gemm|conv2d|wgmma|implicit", "block": r"^(?!.*(command|python|library|lidar|blocked))",
          "bank": r"^(?!.*(python|library|lidar))", "predicate": r"^(?!.*(python|library))", "tensor": r"^(?!.*tile_map)"}
NOT_WITHIN = {"a", "code", "pre", "script", "style", "svg", "summary", "h1", "h2", "h3", "h4", "h5", "h6", "map", "nav", "label", "th"}
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


def terms(glossary):
    """({term: meaning} of those that are linked, [(term, meaning)] of all). @param glossary its HTML"""
    found = list(rows(glossary))
    return ({term: meaning for section, term, meaning, _ in found if section in LINKED and term not in EVERYDAY},
            [(term, meaning) for _, term, meaning, _ in found])


def with_anchors(glossary):
    """The glossary with a place to link to at each row."""
    taken = set()
    for _, term, _, place in reversed(list(rows(glossary))):
        if anchor(term) not in taken:
            taken.add(anchor(term))
            glossary = f'{glossary[:place]}<tr id="{anchor(term)}"{glossary[place + len("<tr"):]}'
    return glossary


def in_scope(term, name):
    """Whether a term has its meaning on the page of that name."""
    return term not in EVERYDAY and re.search(SCOPES.get(term, ""), name) is not None


def linked_page(name, contents, meanings):
    """The contents of a page with links. @param name of the page"""
    here = {term: meaning for term, meaning in meanings.items() if in_scope(term, name)}
    return linked(f'<div class="contents">{contents}</div>', here).removeprefix('<div class="contents">').removesuffix("</div>")
