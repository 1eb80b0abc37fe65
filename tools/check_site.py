#!/usr/bin/env python3
"""Checks the built pages: links, names in programs, headings, texts of pictures, labels of charts, contrast, sizes.

    check_site.py HTML      the folder that ./ladder docs wrote

Links and anchors lead somewhere. A name in a shown program leads to a file that the program includes. Terms of the glossary are linked
where they mean what the glossary says. Each page has a language, one h1, headings in order, a main part and a link that skips to it;
each picture has a text. Labels in charts stand beside the points of their own numbers. Comments in programs have enough contrast. Every rung
is at most three clicks away from the main page. Pages and the site are not too large, nor too many.

Prints each finding as PAGE: WHAT, and how many pages and links there are. The status is 1 if there is a finding. Links to other
sites are counted, and not followed.

"""
import collections
import html.parser
import pathlib
import posixpath
import re
import sys
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "docs"))
import benchmark_pictures  # noqa: E402
import benchmark_run  # noqa: E402
import link_terms  # noqa: E402
from code_index import CodeIndex, page_of_file  # noqa: E402

MOST_BYTES_OF_PAGE = 1 << 20
MOST_BYTES_OF_SITE = 43_000_000  # of it 3 MB are outputs of the lessons, where they have been run
MOST_PAGES = 1000
MOST_CLICKS = 3
LEAST_CONTRAST = 4.5
NEAR = 3  # pixels between a label of a chart and the height of its point
OTHERS = ("coverage/", "notebooks/", "katex/")  # pages that other programs made, of which links alone are looked at
FRAMELESS = ("players/",)  # pages with a frame of their own


class Page(html.parser.HTMLParser):
    """The links and anchors of a page, and what is wrong within it."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.anchors, self.links, self.findings, self.headings = set(), [], [], []
        self.language, self.landmarks, self.terms = None, collections.Counter(), []
        self.programs = []  # (file, [links of names])
        self.in_contents_only = []  # links of the page's own part
        self.in_main = False
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.anchors.update(values[key] for key in ("id", "name") if values.get(key))
        classes = (values.get("class") or "").split()
        if tag == "html":
            self.language = values.get("lang")
        if tag in ("main", "nav", "header"):
            self.landmarks[tag] += 1
            self.in_main = self.in_main or tag == "main"
        if tag == "pre" and "program" in classes:
            self.programs.append((values.get("data-source"), []))
        if re.fullmatch("h[1-6]", tag):
            self.headings.append(int(tag[1]))
        if tag in ("a", "area", "link") and values.get("href"):
            self.links.append(values["href"])
            if tag == "a" and "name" in classes and self.programs:
                self.programs[-1][1].append(values["href"])
            if "term" in classes:
                self.terms.append(values["href"].partition("#")[2])
        if tag in ("img", "script", "iframe", "embed") and values.get("src"):
            self.links.append(values["src"])
        if tag == "object" and values.get("data"):
            self.links.append(values["data"])
            if not values.get("aria-label"):
                self.findings.append(f"a picture without a text: {values['data']}")
        if tag == "img" and not values.get("alt"):
            self.findings.append(f"a picture without a text: {values.get('src')}")

    handle_startendtag = handle_starttag

    def structure(self):
        """What is wrong with its headings and landmarks."""
        if not self.language:
            yield "no lang"
        if self.headings.count(1) != 1:
            yield f"{self.headings.count(1)} headings h1"
        for before, after in zip(self.headings, self.headings[1:]):
            if after > before + 1 and before:
                yield f"a heading h{after} below a heading h{before}"
        for landmark in ("main", "nav", "header"):
            if not self.landmarks[landmark]:
                yield f"no <{landmark}>"


# --- Programs

def wrong_names(page, index, pages_of_rungs):
    """Links of names in the programs of a page that lead to what these do not include."""
    for file, links in page.programs:
        if file is None or not (index.root / file).is_file():
            yield f"a program of no known file: {file}"
            continue
        allowed = {page_of_file(other) for other in index.closure(file)} | {pages_of_rungs.get(other) for other in index.closure(file)}
        for link in links:
            target = link.partition("#")[0]
            if target and target not in allowed:
                yield f"a name in {file} leads to {link}, which it does not include"


def pages_of_rungs():
    """{source: page} of all rungs, by their files."""
    found = {}
    for folder, suffix in (("cpu_reference", ".cpp"), ("cuda_naive", ".cu"), ("cuda_optimized", ".cu")):
        for path in (ROOT / folder).rglob("*" + suffix):
            file = path.relative_to(ROOT).as_posix()
            found[file] = "rung_" + file[:-len(suffix)].replace("/", "_") + ".html"
    return found


# --- Terms

def wrong_terms(name, page, terms):
    """Terms that are linked on a page where they mean something else. @param terms {anchor: term}"""
    for anchor in page.terms:
        term = terms.get(anchor)
        if term is None:
            yield f"a word that the glossary does not have is linked: {anchor}"
        elif not link_terms.in_scope(term, name):
            yield f"'{term}' is linked to the glossary, and means something else there"


# --- Pictures

def wrong_labels(svg):
    """Labels in a climb chart that do not stand beside a point of their own number."""
    points = [(float(x), float(y), title) for x, y, title in
              re.findall(r'<circle cx="([\d.]+)" cy="([\d.]+)"[^>]*><title>([^<]*)</title>', svg)]
    for x, y, words in re.findall(r'<text x="([\d.]+)" y="([\d.]+)"[^>]*class="value"[^>]*>([^<]*)</text>', svg):
        beside = [title for px, py, title in points if abs(py + 4 - float(y)) <= NEAR and 0 < abs(float(x) - px) <= 14]
        if not any(title.endswith(": " + words) for title in beside):
            yield f"the label {words} stands beside no point of that number"


def wrong_points(svg, texts):
    """Points of a climb chart that are none of the committed run. @param texts what its rows say"""
    for title in re.findall(r"<circle [^>]*><title>([^<]*: [^<]*)</title>", svg):
        if title not in texts:
            yield f"a point of {title}, which is not in the committed run"


def texts_of_run():
    """{name of the chart: what its points may say}, of the newest committed run."""
    found = collections.defaultdict(set)
    run = benchmark_run.newest_run(ROOT)
    for row in run["rows"] if run else []:
        name = benchmark_pictures.climb_name(row["ladder"], row["problem"])
        found[name].add(f"{row['dtype']}, {row['layout']}: {benchmark_run.time_text(row['median_us'])}")
    return found


# --- Colours

def luminance(colour):
    digits = colour.lstrip("#")
    digits = "".join(2 * digit for digit in digits) if len(digits) == 3 else digits[:6]
    parts = [int(digits[i:i + 2], 16) / 255 for i in (0, 2, 4)]
    red, green, blue = (part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one, other):
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def weak_colours(style):
    """Colours of text in programs and on the page that are too faint on their ground, light and dark."""
    schemes = [dict(re.findall(r"--([\w-]+): (#[0-9a-fA-F]+)", block)) for block in re.findall(r":root \{(.*?)\}", style, re.S)]
    if len(schemes) < 2:
        yield "style.css has no two schemes of colours"
    for number, scheme in enumerate(schemes):
        pairs = [(ink, ground) for ink in ("comment", "keyword", "string", "number", "directive", "ink", "soft") for ground in ("code", "added", "removed")]
        pairs += [(ink, ground) for ink in ("ink", "soft", "link") for ground in ("paper", "panel")]
        for ink, ground in pairs:
            if ink in scheme and ground in scheme and contrast(scheme[ink], scheme[ground]) < LEAST_CONTRAST:
                yield (f"{'dark' if number else 'light'}: --{ink} on --{ground} has a contrast of {contrast(scheme[ink], scheme[ground]):.2f},"
                       f" less than {LEAST_CONTRAST}")


# --- The whole site

def clicks_from(start, pages):
    """How many clicks each page is away."""
    away, left = {start: 0}, collections.deque([start])
    while left:
        name = left.popleft()
        for link in pages[name].links:
            target = posixpath.normpath(pathlib.PurePosixPath(name).parent / urllib.parse.urlsplit(link).path)
            if target in pages and target not in away:
                away[target] = away[name] + 1
                left.append(target)
    return away


def findings_of(site):
    """(page, what) of all, the pages and their sizes, numbers of links within the site and to others, and bytes of all."""
    pages = {path.relative_to(site).as_posix(): Page(path.read_text(errors="replace")) for path in sorted(site.rglob("*.html"))}
    files = {path.relative_to(site).as_posix(): path.stat().st_size for path in site.rglob("*") if path.is_file()}
    index, rungs = CodeIndex(None, ROOT), pages_of_rungs()
    glossary = site / "glossary.html"
    terms = {link_terms.anchor(term): term for _, term, _, _ in link_terms.rows(glossary.read_text())} if glossary.exists() else {}
    findings, inside, outside = [], 0, 0
    for name, page in pages.items():
        if not name.startswith(OTHERS):
            findings += [(name, what) for what in page.findings]
            findings += [(name, what) for what in wrong_names(page, index, rungs)]
            findings += [(name, what) for what in wrong_terms(name.removesuffix(".html"), page, terms)]
            findings += [(name, what) for what in page.structure() if not (name.startswith(FRAMELESS) and what.startswith("no <"))]
        if files[name] > MOST_BYTES_OF_PAGE:
            findings.append((name, f"{files[name]} bytes, more than {MOST_BYTES_OF_PAGE}"))
        for link in page.links:
            url = urllib.parse.urlsplit(link)
            if url.scheme or url.netloc:
                outside += url.scheme in ("http", "https")
                continue
            inside += 1
            path = urllib.parse.unquote(url.path)
            folder = pathlib.PurePosixPath(name).parent
            target = posixpath.normpath(folder / path) if path else name
            anchor = urllib.parse.unquote(url.fragment)
            if target not in files:
                findings.append((name, f"a link to {link}, which does not exist"))
            elif anchor and target in pages and anchor not in pages[target].anchors:
                findings.append((name, f"a link to {link}: {target} has no such anchor"))
    texts = texts_of_run()
    for path in sorted(site.glob("climb_*.svg")):
        findings += [(path.name, what) for what in [*wrong_labels(path.read_text()), *wrong_points(path.read_text(), texts[path.stem])]]
    if (site / "style.css").exists():
        findings += [("style.css", what) for what in weak_colours((site / "style.css").read_text())]
    if "index.html" in pages:
        away = clicks_from("index.html", pages)
        for name in pages:
            if name.startswith("rung_") and away.get(name, MOST_CLICKS + 1) > MOST_CLICKS:
                findings.append((name, f"more than {MOST_CLICKS} clicks from the main page"))
    site_bytes = sum(files.values())
    if site_bytes > MOST_BYTES_OF_SITE:
        findings.append(("the site", f"{site_bytes} bytes, more than {MOST_BYTES_OF_SITE}"))
    own = [name for name in pages if not name.startswith(OTHERS)]
    if len(own) > MOST_PAGES:
        findings.append(("the site", f"{len(own)} pages, more than {MOST_PAGES}"))
    return findings, {name: files[name] for name in pages}, inside, outside, site_bytes, pages


def main():
    if len(sys.argv) != 2 or not pathlib.Path(sys.argv[1]).is_dir():
        print("usage: check_site.py HTML, a folder", file=sys.stderr)
        return 2
    findings, sizes, inside, outside, site_bytes, pages = findings_of(pathlib.Path(sys.argv[1]))
    for (page, what), times in collections.Counter(findings).items():
        print(f"{page}: {what}" + (f" ({times} times)" if times > 1 else ""))
    if not pages:
        print("no page at all", file=sys.stderr)
        return 1
    names = sum(len(links) for page in pages.values() for _, links in page.programs)
    terms = sum(len(page.terms) for page in pages.values())
    largest = max(sizes, key=sizes.get)
    print(f"{len(pages)} pages, {inside} links within, {outside} to other sites (not followed)")
    print(f"{names} names in programs and {terms} terms of the glossary lead where they should" if not findings else f"{len(findings)} findings")
    print(f"{site_bytes / 1e6:.1f} MB; the largest page is {largest}, {sizes[largest] / 1e6:.2f} MB")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
