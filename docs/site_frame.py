"""The frame of every page: header, search, menu, landmarks; and what Doxygen's HTML lacks of good HTML."""

import functools
import html
import json
import pathlib
import re

TITLE = "ConvLadder"
BRIEF = "Convolution on GPUs, step by step"
FORMULA = re.compile(r"\\\(|\\\[")
KATEX = """<link rel="stylesheet" href="{0}/katex.min.css">
<script defer src="{0}/katex.min.js"></script>
<script defer src="{1}" onload="renderMathInElement(document.body, {{delimiters: [
  {{left: '\\\\(', right: '\\\\)', display: false}}, {{left: '\\\\[', right: '\\\\]', display: true}}]}})"></script>
"""
WIDE = 5  # columns from which on a table keeps its first one in sight
HEADING = re.compile(r"<(/?)h([1-6])\b([^>]*)>")
LIVE_PICTURES = re.compile(r"^(climb_|run\.)")  # charts whose points have tooltips


class Menu:
    """The menu: pages in groups (menu.json), then the ladders, with the rungs of the one that a page belongs to."""

    def __init__(self, docs, site):
        """@param site what make_pages.py has written: ladders and rungs"""
        self.site = site
        self.titles = {}
        for path in sorted(docs.glob("*.md")):
            if found := re.match(r"# (.*) \{#(\w+)\}", path.read_text()):
                self.titles["index" if found.group(2) == "mainpage" else found.group(2)] = plain_title(found.group(1))
        self.titles.update(site["more pages"])
        self.groups = json.loads((docs / "menu.json").read_text())
        listed = {page for pages in self.groups.values() for page in pages}
        if unknown := listed - set(self.titles):
            raise SystemExit(f"docs/menu.json: there is no page {', '.join(sorted(unknown))}")
        self.groups["More"] = [page for page in self.titles if page not in listed and not page.startswith("benchmarks_")]

    def item(self, page, title, current):
        mark = ' aria-current="page"' if page == current else ""
        shown = re.sub(r"([/_])", r"\1<wbr>", html.escape(title, quote=False))
        return f'<li><a href="{page}.html"{mark}>{shown}</a></li>'

    @functools.cache
    def of(self, current, ladder):
        """The menu of a page. @param ladder whose rungs it lists, or None"""
        parts = []
        for place, (group, pages) in enumerate(self.groups.items()):
            if pages:
                parts += [f"<h2>{group}</h2><ul>", *(self.item(page, self.titles[page], current) for page in pages), "</ul>"]
            if place == 0:
                parts += ["<h2>Ladders</h2><ul>", *(self.ladder(of, current, ladder) for of in self.site["ladders"]), "</ul>"]
        return "\n".join(parts)

    def ladder(self, of, current, ladder):
        item = self.item(of["page"], of["name"], current)
        if of["name"] != ladder:
            return item
        rungs = []
        for title, members in of["groups"]:
            rungs.append(f'<li class="group">{title}</li>')
            rungs += [self.item(page, f"{number}. {short}" if number else short, current) for page, short, number in members]
        return item.removesuffix("</li>") + "<ul>" + "".join(rungs) + "</ul></li>"


def plain_title(text):
    return re.sub(r"`", "", html.unescape(text))


class Frame:
    """Puts pages into the frame."""

    def __init__(self, menu, katex, search):
        """@param katex its folder, seen from the pages; @param search (index, lunr), seen from the pages, or None"""
        self.menu, self.katex, self.search = menu, katex, search

    def page(self, name, title, contents, ladder=None, katex_is_local=True):
        """A whole page. @param name of its file, without .html"""
        auto_render = f"{self.katex}/contrib/auto-render{'' if katex_is_local else '.min'}.js"
        head = KATEX.format(self.katex, auto_render) if FORMULA.search(contents) else ""
        data = f' data-index="{self.search[0]}" data-lunr="{self.search[1]}"' if self.search else ""
        shown = html.escape(title, quote=False)
        whole = shown if name == "index" else f"{shown} · {TITLE}"
        return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{whole}</title>
<link rel="stylesheet" href="style.css">
{head}</head>
<body>
<a class="skip" href="#content">Skip to the content</a>
<header><a class="name" href="index.html">{TITLE}</a> <span class="brief">{BRIEF}</span>
<button id="menu-button" type="button" aria-controls="menu" aria-expanded="false" hidden>Menu</button>
<form id="search" role="search"{data} hidden><label class="sr" for="search-field">Search all pages</label>
<input id="search-field" type="search" placeholder="Search: press /" autocomplete="off" aria-controls="found" aria-expanded="false">
<ul id="found" hidden></ul></form></header>
<div class="frame">
<nav id="menu" aria-label="All pages">
{self.menu.of(name, ladder)}
</nav>
<main id="content" tabindex="-1">
<h1>{shown}</h1>
<div class="contents"><div class="textblock">
{contents}
</div></div>
</main>
</div>
<script defer src="site.js"></script>
</body>
</html>
"""


def parts_of(page):
    """(title, contents) of a page that Doxygen wrote; None of one that is no page of prose."""
    if "<!-- PageDoc -->" not in page:
        return None
    title = re.search(r'<div class="title">(.*?)\s*(?:<div|</div>)', page, re.S)
    contents = page.partition('<div class="contents">')[2].partition("</div><!-- contents -->")[0]
    contents = re.sub(r'<div class="textblock">', "", contents, count=1).rstrip().removesuffix("</div>")
    return html.unescape(re.sub("<[^>]*>", "", title.group(1) if title else "")).strip(), contents


def in_order(contents):
    """Headings from h2 on, none of which is two levels below the one before."""
    above = []  # (level as it was written, level as it is) of the headings that the next one may stand below

    def heading(match):
        closing, level, rest = match.groups()
        if not closing:
            while above and above[-1][0] >= int(level):
                above.pop()
            above.append((int(level), min((above[-1][1] if above else 1) + 1, 6)))
        return f"<{closing}h{above[-1][1]}{rest}>" if above else match.group(0)

    return HEADING.sub(heading, contents)


PICTURE = re.compile(r'<div class="image">\s*(?:<object [^>]*data="([^"]*)"[^>]*>(?:.*?)</object>|<img src="([^"]*)"[^>]*>)\s*'
                     r'(?:<div class="caption">\s*(.*?)</div>)?\s*</div>', re.S)


def picture(match):
    source, words = match.group(1) or match.group(2), (match.group(3) or "").strip()
    text = html.escape(html.unescape(re.sub("<[^>]*>", "", words)))
    caption = f"<figcaption>{words}</figcaption>" if words else ""
    if LIVE_PICTURES.match(source):
        return f'<figure class="image"><object type="image/svg+xml" data="{source}" role="img" aria-label="{text}"></object>{caption}</figure>'
    return f'<figure class="image"><img src="{source}" alt="{text}" loading="lazy">{caption}</figure>'


def table(match):
    text = match.group(0)
    columns = text.partition("</tr>")[0].count("<th")
    wide = ' wide" tabindex="0" role="region" aria-label="Table' if columns >= WIDE else ""
    return f'<div class="table{wide}">{text}</div>'


def improved(contents):
    """Doxygen's HTML with what it lacks."""
    contents = re.sub(r'<div class="toc"><h3>Table of Contents</h3>\s*(<ul>.*?</ul>)\s*</div>',
                      r'<nav class="toc" aria-label="On this page"><p class="toc-title">On this page</p>\1</nav>', contents, flags=re.S)
    contents = PICTURE.sub(picture, contents)
    contents = re.sub(r'<img src="([^"]*)" alt="" class="inline" title="([^"]*)"/?>', r'<img src="\1" alt="\2" loading="lazy">', contents)
    contents = re.sub(r'<div class="ttc".*\n', "", contents)  # tooltips of names in excerpts, whose links stay
    contents = re.sub(r"<table class=\"markdownTable\">.*?</table>", table, contents, flags=re.S)
    contents = re.sub(r"<p >", "<p>", contents)
    contents = re.sub(r'<p>(<a class="anchor" id="md_[^"]*"></a>)?\s*</p>', "", contents)
    contents = contents.replace('<pre class="fragment">', '<pre class="fragment" tabindex="0">')
    return with_contents_list(in_order(contents))


def with_contents_list(contents):
    """Fills the place of a list of the page's sections."""
    sections = re.findall(r'<h2[^>]*>\s*<a class="anchor" id="(\w+)"></a>\s*(.*?)</h2>', contents, re.S)
    items = "".join(f'<li><a href="#{anchor}">{re.sub("<[^>]*>", "", title).strip()}</a></li>' for anchor, title in sections)
    return contents.replace('<div class="put-contents"></div>',
                            f'<nav class="toc" aria-label="On this page"><p class="toc-title">On this page</p><ul>{items}</ul></nav>')
