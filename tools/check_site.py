#!/usr/bin/env python3
"""Checks the built pages: link targets and anchors, alternative texts of pictures, page sizes.

    check_site.py HTML      the folder that ./ladder docs wrote

Prints each finding as PAGE: WHAT, and how many pages and links there are. The status is 1 if there is a finding. Links to other
sites are counted, and not followed.

"""
import collections
import html.parser
import pathlib
import posixpath
import sys
import urllib.parse

MOST_BYTES_OF_PAGE = 1 << 20
MOST_BYTES_OF_SITE = 64 << 20
DOXYGENS_OWN = {"nested-classes"}  # anchors that Doxygen 1.9.4 links to where a class has private classes alone


class Page(html.parser.HTMLParser):
    """The links and anchors of a page, and what is wrong within it."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.anchors, self.links, self.findings = set(), [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.anchors.update(values[key] for key in ("id", "name") if values.get(key))
        if tag in ("a", "area", "link") and values.get("href"):
            self.links.append(values["href"])
        if tag in ("img", "script", "iframe", "embed") and values.get("src"):
            self.links.append(values["src"])
        if tag == "object" and values.get("data"):
            self.links.append(values["data"])
        if tag == "img" and "alt" not in values:
            self.findings.append(f"a picture without a text: {values.get('src')}")

    handle_startendtag = handle_starttag


def findings_of(site):
    """(page, what) of all, the pages and their sizes, numbers of links within the site and to others, and bytes of all."""
    pages = {path.relative_to(site).as_posix(): Page(path.read_text(errors="replace")) for path in sorted(site.rglob("*.html"))}
    files = {path.relative_to(site).as_posix(): path.stat().st_size for path in site.rglob("*") if path.is_file()}
    findings, inside, outside = [], 0, 0
    for name, page in pages.items():
        findings += [(name, what) for what in page.findings]
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
            elif anchor and target in pages and anchor not in pages[target].anchors | DOXYGENS_OWN:
                findings.append((name, f"a link to {link}: {target} has no such anchor"))
    site_bytes = sum(files.values())
    if site_bytes > MOST_BYTES_OF_SITE:
        findings.append(("the site", f"{site_bytes} bytes, more than {MOST_BYTES_OF_SITE}"))
    return findings, {name: files[name] for name in pages}, inside, outside, site_bytes


def main():
    if len(sys.argv) != 2 or not pathlib.Path(sys.argv[1]).is_dir():
        print("usage: check_site.py HTML, a folder", file=sys.stderr)
        return 2
    findings, pages, inside, outside, site_bytes = findings_of(pathlib.Path(sys.argv[1]))
    for (page, what), times in collections.Counter(findings).items():
        print(f"{page}: {what}" + (f" ({times} times)" if times > 1 else ""))
    if not pages:
        print("no page at all", file=sys.stderr)
        return 1
    largest = max(pages, key=pages.get)
    print(f"{len(pages)} pages, {inside} links within, {outside} to other sites (not followed)")
    print(f"{site_bytes / 1e6:.1f} MB; the largest page is {largest}, {pages[largest] / 1e6:.2f} MB")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
