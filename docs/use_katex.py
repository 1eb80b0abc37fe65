#!/usr/bin/env python3
"""Lets KaTeX (https://katex.org) render the formulas of Doxygen's pages, which Doxygen leaves to MathJax; pages without
formulas load neither.

    use_katex.py HTML KATEX      the folder that Doxygen wrote, whose pages are changed, and where KaTeX is, seen from there
"""
import pathlib
import re
import sys

MATHJAX = re.compile(r'<script type="text/x-mathjax-config">.*?</script>\s*<script[^>]*MathJax\.js[^>]*></script>\s*', re.S)
FORMULA = re.compile(r"\\\(|\\\[")
LOADED = """<link rel="stylesheet" href="{0}/katex.min.css"/>
<script defer src="{0}/katex.min.js"></script>
<script defer src="{1}" onload="renderMathInElement(document.body, {{delimiters: [
  {{left: '\\\\(', right: '\\\\)', display: false}}, {{left: '\\\\[', right: '\\\\]', display: true}}]}})"></script>
"""


def main():
    site, katex = pathlib.Path(sys.argv[1]), sys.argv[2]
    auto_render = f"{katex}/contrib/auto-render{'' if (site / katex).is_dir() else '.min'}.js"
    for path in site.glob("*.html"):
        page = path.read_text(encoding="utf-8")
        changed = MATHJAX.sub("", page)
        if changed != page and FORMULA.search(changed):
            changed = changed.replace("</head>", LOADED.format(katex, auto_render) + "</head>", 1)
        if changed != page:
            path.write_text(changed, encoding="utf-8")


if __name__ == "__main__":
    main()
