#!/usr/bin/env python3
"""Searches the built pages in a browser without a window, from file://, for words that a visitor would type.

    try_search.py HTML      the folder that ./ladder docs wrote

Each technique of docs/techniques.json must be among the first results for its own name. Prints what went wrong as WORDS: WHAT; the
status is 1 if something did. Without Chromium, or where the pages were built without lunr, it says that it skips.
"""
import html
import json
import pathlib
import re
import sys
import tempfile

from drive_players import browser_for, opened

ROOT = pathlib.Path(__file__).resolve().parents[1]
FIRST = 6  # results among which it must be
# All words are searched on one page: the browser starts once.
DRIVER = """
<script>
addEventListener("load", () => {
  const field = document.getElementById("search-field"), out = document.createElement("pre"), words = %s, found = {};
  out.id = "searched";
  field.focus();
  const wait = setInterval(() => {
    if (!window.lunr || typeof SEARCH === "undefined") return;
    clearInterval(wait);
    for (const word of words) {
      field.value = word;
      field.dispatchEvent(new Event("input"));
      found[word] = [...document.querySelectorAll("#found a")].map(link => link.getAttribute("href"));
    }
    out.textContent = JSON.stringify(found);
    document.body.append(out);
  }, 50);
});
</script>
"""


def searched(browser, site, words):
    """{words: addresses of what was found}."""
    page = (site / "index.html").read_text().replace("</body>", DRIVER % json.dumps(words) + "</body>")
    copy = site / "try_search.html"  # beside the pages, since the index is one of them
    try:
        copy.write_text(page)
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            done = opened(browser, folder, copy.as_uri(), "--virtual-time-budget=30000")
    finally:
        copy.unlink()
    told = re.search(r'<pre id="searched">(.*?)</pre>', done.stdout, re.S)
    return json.loads(html.unescape(told.group(1))) if told else None


def main():
    if len(sys.argv) != 2 or not pathlib.Path(sys.argv[1]).is_dir():
        print("usage: try_search.py HTML, a folder", file=sys.stderr)
        return 2
    site = pathlib.Path(sys.argv[1]).resolve()
    if not (site / "search/index.js").exists():
        print("skipped: the search is not tried, for the pages were built without lunr (packages libjs-lunr, python3-lunr)")
        return 0
    browser = browser_for("the search is not tried")
    if browser is None:
        return 0
    wanted = {technique: page for technique, page, _ in json.loads((site.parent / "generated/site.json").read_text())["techniques"]}
    found = searched(browser, site, list(wanted))
    if found is None:
        print("the search's script did not come to its end")
        return 1
    wrong = [f"{words}: {page} is not among the first {FIRST} results: {' '.join(found[words][:FIRST]) or 'none'}"
             for words, page in wanted.items() if page not in found[words][:FIRST]]
    print(*wrong, f"{len(wanted)} searches, {len(wrong)} things went wrong", sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
