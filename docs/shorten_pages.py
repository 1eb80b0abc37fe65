#!/usr/bin/env python3
"""Leaves out what Doxygen writes twice: a line of code is an anchor by its id, and by its name for browsers from before HTML5.

    shorten_pages.py HTML      the folder that Doxygen wrote; its pages are changed
"""
import pathlib
import re
import sys

TWICE = re.compile(r'(<a id="(l\d+)") name="\2"')


def main():
    for path in pathlib.Path(sys.argv[1]).glob("*.html"):
        page = path.read_text(encoding="utf-8")
        shorter = TWICE.sub(r"\1", page)
        if shorter != page:
            path.write_text(shorter, encoding="utf-8")


if __name__ == "__main__":
    main()
