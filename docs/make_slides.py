#!/usr/bin/env python3
"""Makes the slides of one lecture per ladder from the texts and pictures of the pages.

    make_slides.py --generated DIR --hashes HASHES.inc --root ROOT --out DIR      (./ladder slides)

DIR is what make_pages.py has filled. OUT receives LADDER.html, a self-contained file (by pandoc), and LADDER.pdf if
Chromium is installed. A deck has the mathematics, a table of the steps, one or two slides per step (idea, picture, prediction and
measurement), the times, and exercises.
"""
import argparse
import pathlib
import re
import shutil
import subprocess

import benchmark_run
import benchmark_pictures
from benchmark_run import short_name
from make_pages import Pages
from rung_page import Header, split_source

MOST_STEPS_WITH_TWO = 7  # with more, the prediction is on the slide of the idea
SENTENCES = 3
STYLE = """<style>
html { background: #20262d; } body { background: #fff; }
section { font-family: "DejaVu Sans", Helvetica, Arial, sans-serif; background: #fff; padding: 18px 34px; box-sizing: border-box; }
section h1 { font-size: 30px; margin: 8px 0 14px; text-align: left; color: #101418; text-transform: none; text-shadow: none; }
section.title h1 { font-size: 46px; margin-top: 180px; }
section p, section li { font-size: 19px; line-height: 1.4; color: #101418; text-align: left; margin: 8px 0; padding: 0; }
section ul { position: static; width: auto; margin: 0 0 0 20px; padding: 0; }
section pre { font-size: 12.5px; line-height: 1.3; white-space: pre; background: #f2f5f8; padding: 10px 14px; border-radius: 5px; margin: 10px 0; }
section code { font-family: "DejaVu Sans Mono", monospace; }
section table { font-size: 17px; border-collapse: collapse; } section td, section th { padding: 3px 14px 3px 0; text-align: left; }
section img, section figure img { max-width: 720px; max-height: 440px; } section figcaption { font-size: 14px; color: #5a646e; }
.footnote { font-size: 14px; color: #5a646e; }
@page { size: 800px 600px; margin: 0; }
@media print {
  html, body { position: static !important; width: 800px !important; height: auto !important; margin: 0 !important; overflow: visible !important; transform: none !important; background: #fff; }
  section { position: relative !important; display: block !important; left: 0 !important; top: 0 !important; width: 800px !important; height: 599px !important; margin: 0 !important;
            overflow: hidden; opacity: 1 !important; transform: none !important; page-break-after: always; }
  section * { opacity: 1 !important; }
  section:last-of-type { page-break-after: auto; }
}
</style>
"""


def plain(text):
    """Doxygen's Markdown as pandoc's."""
    text = re.sub(r'\\ref \w+ "([^"]*)"', r"\1", text)
    text = re.sub(r"\\ref (\w+)", r"\1", text)
    text = re.sub(r"(?<!!)\[([^\[\]]+)\]\([\w./-]+\.(?:md|cpp|cu)(?:#[\w-]+)?\)", r"\1", text)
    text = re.sub(r"\\f\[(.*?)\\f\]", lambda found: "$$" + found.group(1).strip() + "$$", text, flags=re.DOTALL)
    return re.sub(r"\\f\$(.*?)\\f\$", r"$\1$", text)


def sentences(text, count):
    """The first ones of a paragraph."""
    return " ".join(re.split(r"(?<=[.!?]) (?=[A-Z0-9`(])", " ".join(text.split()))[:count])


def paragraph_and_picture(lines, title):
    """The prose of a header's part without its title, and its picture, which is indented."""
    text = "\n".join(lines)
    text = text.replace(f"**{title}.**", "", 1)
    picture = [line for line in text.split("\n") if line.startswith("    ")]
    prose = re.split(r"\n\s*\n", re.sub(r"(?m)^    .*$", "", text).strip())[0]
    return prose, "\n".join(picture)


class Deck:
    def __init__(self, pages, ladder, pictures):
        self.pages, self.ladder, self.pictures = pages, ladder, pictures
        self.steps = [row for row in pages.ladders[ladder] if row["level"] == "spine"]
        self.slides = []

    def add(self, title, *parts):
        self.slides.append(f"# {title}\n\n" + "\n\n".join(part for part in parts if part))

    def measured(self, rung):
        """Its time on the ladder's first picture's problem."""
        problems = benchmark_pictures.CLIMBS.get(self.ladder, [])
        rows = [row for row in self.pages.benchmarks["rows"]
                if row["rung"] == rung and row["l2"] == "warm" and row["problem"] in problems]
        if not rows or self.pages.is_stale(rows[0]):
            return ""
        fastest = min((row for row in rows if row["problem"] == rows[0]["problem"]), key=lambda row: row["median_us"])
        gpu = self.pages.benchmarks["gpu"]
        return f"**Measured** ({fastest['problem']}, {fastest['dtype']}, {gpu}): {benchmark_run.time_text(fastest['median_us'])}"

    def markdown(self, summary):
        page = (self.pages.root / "docs/ladders" / f"{self.ladder}.md").read_text()
        self.slides.append(f"# {self.ladder} {{.title}}\n\n{summary}\n\nConvLadder: convolution on GPUs, step by step")
        maths = re.search(r"## The maths\n(.*?)\n## ", page, re.DOTALL)
        if maths:
            formula = re.search(r"\\f\[.*?\\f\]", maths.group(1), re.DOTALL)
            picture = re.search(r"!\[([^\]]*)\]\((\S+?)\)", maths.group(1))
            drawn = f"![]({self.pictures / picture.group(2)})" if picture and (self.pictures / picture.group(2)).exists() else ""
            before = maths.group(1)[:formula.start()] if formula else maths.group(1)
            self.add("Definition", sentences(plain(before), 2), plain(formula.group(0)) if formula else "", drawn)
        table = ["| step | idea |", "|----------------------|------------------------------------------------------|"]
        table += [f"| {short_name(row['rung'])} | {row['idea']} |" for row in self.steps]
        others = len(self.pages.ladders[self.ladder]) - len(self.steps)
        self.add("The steps", "\n".join(table), f"[The ladder's page has {others} alternatives and advanced rungs.]{{.footnote}}" if others else "")
        exercises = []
        for number, row in enumerate(self.steps, 1):
            header = Header(split_source(self.pages.source_text(row["rung"]))[0])
            idea, picture = paragraph_and_picture(header.take("The idea"), "The idea")
            expected, _ = paragraph_and_picture(header.take("Expect"), "Expect")
            exercise, _ = paragraph_and_picture(header.take("Try"), "Try")
            source = f"[{row['source']}]{{.footnote}}"
            two = len(self.steps) <= MOST_STEPS_WITH_TWO
            prediction = f"**Prediction.** {sentences(expected, SENTENCES if two else 1)}" if expected else ""
            self.add(f"{number} · {short_name(row['rung'])}", sentences(idea, SENTENCES), picture,
                     "" if two else prediction, "" if two else self.measured(row["rung"]), source)
            if two and prediction:
                self.add(f"{number} · {short_name(row['rung'])}: prediction", prediction, self.measured(row["rung"]), source)
            if exercise:
                exercises.append(f"- **{short_name(row['rung'])}**: {sentences(exercise, 2)}")
        for problem in benchmark_pictures.CLIMBS.get(self.ladder, []):
            picture = self.pictures / f"{benchmark_pictures.climb_name(self.ladder, problem)}.svg"
            if picture.exists():
                self.add(f"Times: {problem}", f"![]({picture})", f"[{benchmark_run.machine(self.pages.benchmarks)}]{{.footnote}}")
        for first in range(0, len(exercises), 4):
            self.add("Exercises", "\n".join(exercises[first:first + 4]))
        return plain("\n\n".join(self.slides)) + "\n"


def write_deck(deck, summary, out):
    """OUT/LADDER.html, and .pdf where there is Chromium."""
    style = out / "style.html"
    style.write_text(STYLE)
    html = out / f"{deck.ladder}.html"
    subprocess.run(["pandoc", "-f", "markdown", "-t", "dzslides", "--standalone", "--self-contained", "--mathml", "--slide-level=1",
                    "--metadata", f"pagetitle={deck.ladder}", "-H", style, "-o", html],
                   input=deck.markdown(summary), text=True, check=True)
    style.unlink()
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium:
        subprocess.run([chromium, "--headless", "--no-sandbox", "--disable-gpu", "--no-pdf-header-footer", "--print-to-pdf-no-header",
                        f"--print-to-pdf={html.with_suffix('.pdf')}", html.resolve().as_uri()], check=True, capture_output=True)
    return len(deck.slides)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    for name in ("generated", "hashes", "root", "out"):
        parser.add_argument(f"--{name}", required=True, type=pathlib.Path)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    pages = Pages.of_files(arguments.generated / "list.json", arguments.hashes, arguments.root, arguments.generated)
    for ladder in pages.ladders:
        title = (arguments.root / "docs/ladders" / f"{ladder}.md").read_text().split("\n\n")
        summary = sentences(plain(next(part for part in title if part and part[0] not in "#\\")), 2)
        count = write_deck(Deck(pages, ladder, (arguments.generated / "pictures").resolve()), summary, arguments.out)
        print(f"{arguments.out / ladder}.html: {count} slides")


if __name__ == "__main__":
    main()
