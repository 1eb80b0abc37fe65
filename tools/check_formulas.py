#!/usr/bin/env python3
"""Opens each page with formulas in a headless browser, and reports formulas that KaTeX did not render.

    check_formulas.py HTML      the folder of the pages that ./ladder docs wrote

Prints errors as PAGE: WHAT; the status is 1 if there is one. Without Chromium it reports that it skips.

"""
import html
import pathlib
import re
import sys
import tempfile

from drive_players import browser_for, opened


def problems_of(browser, page, folder):
    done = opened(browser, folder, page.as_uri(), "--virtual-time-budget=10000")
    shown = re.sub(r"<(script|annotation|pre|code)\b.*?</\1>", "", done.stdout, flags=re.S)
    wrong = [f"KaTeX refuses a formula: {html.unescape(title)}" for title in re.findall(r'class="katex-error" title="([^"]*)"', shown)]
    if 'class="katex"' not in shown:
        wrong.append("no formula was rendered")
    wrong += [f"a formula is shown as it was written: {raw}" for raw in re.findall(r"\\[(\[][^<]{0,60}", shown)]
    return wrong


def main():
    if len(sys.argv) != 2 or not pathlib.Path(sys.argv[1]).is_dir():
        print("usage: check_formulas.py HTML, a folder", file=sys.stderr)
        return 2
    browser = browser_for("formulas are not checked")
    if browser is None:
        return 0
    pages = [page for page in sorted(pathlib.Path(sys.argv[1]).resolve().glob("*.html")) if "katex.min.js" in page.read_text(errors="replace")]
    wrong = 0
    for page in pages:
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            for what in problems_of(browser, page, folder):
                print(f"{page.name}: {what}")
                wrong += 1
    print(f"{len(pages)} pages with formulas, {wrong} errors")
    return 1 if wrong or not pages else 0


if __name__ == "__main__":
    sys.exit(main())
