#!/usr/bin/env python3
"""Operates the pages of the kernel players in a headless browser: step, back, play, other warps and blocks, jumps
from the source and the timeline, the keyboard, a link to a moment.

    drive_players.py PLAYERS      the folder of the pages that ./ladder docs wrote

Prints errors as PAGE: WHAT; the status is 1 if there is one. Without Chromium it reports that it skips.

"""
import html
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

DRIVER = pathlib.Path(__file__).resolve().parents[1] / "docs" / "players" / "drive.js"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def browser_for(what):
    """The browser; None if there is none, after a line that says that `what` is skipped."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        print(f"skipped: {what}, for there is no browser (package chromium)")
    return browser


def opened(browser, folder, address, *options):
    """The browser's process, after it has written the page at `address` to its output, with scripts run and no window.

    @param folder where the browser keeps its files
    """
    return subprocess.run(
        [browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", f"--user-data-dir={folder}/profile",
         *options, "--dump-dom", address], capture_output=True, text=True, timeout=300)


def driven(browser, page, folder):
    """What goes wrong on a page."""
    copy = pathlib.Path(folder) / page.name
    copy.write_text(page.read_text().replace("</body>", f"<script>\n{DRIVER.read_text()}</script></body>"))
    done = opened(browser, folder, f"{copy.as_uri()}#request-3", "--window-size=1300,900", "--virtual-time-budget=20000")
    told = re.search(r'<pre id="driven">(.*?)</pre>', done.stdout, re.S)
    if not told:
        return ["its script did not finish: " + " ".join(done.stderr.split()[-40:])]
    return json.loads(html.unescape(told.group(1)))


def main():
    if len(sys.argv) != 2 or not pathlib.Path(sys.argv[1]).is_dir():
        print("usage: drive_players.py PLAYERS, a folder", file=sys.stderr)
        return 2
    browser = browser_for("the players' script is not tested")
    if browser is None:
        return 0
    pages, wrong = sorted(pathlib.Path(sys.argv[1]).glob("*.html")), 0
    for page in pages:
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            for what in driven(browser, page, folder):
                print(f"{page.name}: {what}")
                wrong += 1
    print(f"{len(pages)} players were operated in {pathlib.Path(browser).name}, {wrong} errors")
    return 1 if wrong or not pages else 0


if __name__ == "__main__":
    sys.exit(main())
