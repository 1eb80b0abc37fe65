"""Ways through the pages: which to read one after the other, how long it takes, and the map of all rungs.

reading_paths.json names the stops of each path, and which ladders each ladder builds on. A stop is a rung, `page ID`, or
`spine LADDER [PART]`: the rungs of a ladder's spine in their order, of which `... 1-8` takes the first eight.
"""

import json
import re

import lesson_pages
from benchmark_run import short_name
from rung_page import folded
from spine_tables import groups, pill

WORDS_A_MINUTE = 150  # prose in a second language, with a look at its picture
LINES_A_MINUTE = 10  # of code that is new


class ReadingPaths:
    def __init__(self, pages):
        """@param pages make_pages.Pages"""
        self.pages = pages
        docs = pages.root / "docs"
        data = json.loads((docs / "reading_paths.json").read_text())
        self.paths, self.builds_on = data["paths"], data["builds on"]
        # The first line of a page has its title and its name.
        self.titles = {}
        self.texts = {}
        for path in [*docs.glob("*.md"), *(docs / "ladders").glob("*.md")]:
            text = path.read_text()
            if found := re.match(r"# (.*) \{#(\w+)\}", text):
                self.titles[found.group(2)], self.texts[found.group(2)] = found.group(1), text
        for key, path in self.paths.items():
            path["stops"] = [rung for stop in path["stops"] for rung in self.rungs_of(stop)]
            for stop in path["stops"]:
                if stop not in pages.rows and stop.removeprefix("page ") not in self.titles:
                    raise SystemExit(f"reading_paths.json: {key}: there is no page of {stop}")
        if set(self.builds_on) != set(pages.ladders):
            raise SystemExit("reading_paths.json: 'builds on' must name every ladder, and no other")

    def rungs_of(self, stop):
        """The stop itself; of a spine, its rungs."""
        if not stop.startswith("spine "):
            return [stop]
        ladder, *words = stop.split()[1:]
        steps = words.pop() if words and re.fullmatch(r"\d+-\d+", words[-1]) else None
        rungs = [row["rung"] for row in self.pages.ladders.get(ladder, [])
                 if row["level"] == "spine" and (not words or row["part"] == words[0])]
        first, last = map(int, steps.split("-")) if steps else (1, len(rungs))
        if not 1 <= first <= last <= len(rungs):
            raise SystemExit(f"reading_paths.json: {stop}: there is no such spine, or it has fewer steps")
        return rungs[first - 1:last]

    def minutes(self, stop):
        """An estimate, from what there is to read."""
        if stop in self.pages.rows:
            lines = self.pages.source_text(stop).splitlines()
            prose = " ".join(line for line in lines if line.startswith("///"))
            code = sum(bool(line.strip()) and not line.startswith(("///", "#include")) for line in lines)
        else:
            prose, code = self.texts[stop.removeprefix("page ")], 0
        return max(2, round(len(prose.split()) / WORDS_A_MINUTE + code / LINES_A_MINUTE))

    def link(self, stop):
        if stop in self.pages.rows:
            return self.pages.link(stop, stop.replace("/", " / "))
        name = stop.removeprefix("page ")
        return f'\\ref {name} "{self.titles[name]}"'

    def overview(self):
        """Each path with its stops."""
        lines = []
        for key, path in self.paths.items():
            total = sum(map(self.minutes, path["stops"]))
            lines += [f"## {path['title']} {{#path_{key}}}", "", f"{path['what']} About {round(total / 60)} hours of reading,"
                      f" without exercises. The first page is {self.link(path['stops'][0])}.", ""]
            table = ["| | page | minutes |", "|---:|---|---:|"]
            table += [f"| {number} | {self.link(stop)} | {self.minutes(stop)} |" for number, stop in enumerate(path["stops"], 1)]
            lines += folded(f"All {len(path['stops'])} pages", table)
        return lines

    def lessons(self):
        """The table of notebooks; each leads to its page, and to what it printed and plotted, if `./ladder notebooks` has run."""
        executed = self.pages.root / "out" / "notebooks"

        def link(match):
            title, name = match.groups()
            ran = f', <a href="notebooks/{name}.html">with its output</a>' if (executed / f"{name}.html").exists() else ""
            return f'\\ref {lesson_pages.page_name(name)} "{title}"{ran}'

        text = (self.pages.root / "notebooks" / "README.md").read_text().split("\n", 1)[1]
        return re.sub(r"\[([^]]*)\]\((\w+)\.ipynb\)", link, text).splitlines()

    def marks(self, rung):
        """The paths that a rung is on, as small letters."""
        letters = [f'<span class="path {key}">{path["title"][0]}</span>' for key, path in self.paths.items() if rung in path["stops"]]
        return "".join(letters)

    def entry(self, row):
        """A rung on the map: its link, how long it takes to read, and the paths that it is on."""
        rung = row["rung"]
        number = f'{row["spine"]}. ' if row["spine"] else ""
        return (number + pill(rung, self.pages.link(rung, short_name(rung)))
                + f'<span class="minutes">{self.minutes(rung)} min {self.marks(rung)}</span>')

    def map(self):
        """All rungs: of each ladder its spines, then the alternatives and the advanced rungs."""
        lines = []
        for ladder, rows in self.pages.ladders.items():
            on = self.builds_on[ladder]
            lines += [f'<div class="ladder-map"><div class="ladder-name">\\ref ladder_{ladder} "{ladder}"'
                      + (f' <span class="minutes">builds on {", ".join(on)}</span>' if on else "") + "</div>"]
            for title, rungs in groups(rows):
                lines += [f'<div class="level">{title}</div>', *(f"<div>{self.entry(row)}</div>" for row in rungs)]
            lines += ["</div>"]
        return lines

    def next_pages(self, stop):
        """The end of a page on a path: what to read next. Lines of Markdown."""
        places = self.places(stop)
        return ["", "---", *(line for path, place in places for line in ("", f"{path}: {place}."))] if places else []

    def places(self, stop):
        """Where a page stands on each path, and what comes next there: lines of Markdown."""
        places = []
        for key, path in self.paths.items():
            if stop not in path["stops"]:
                continue
            at = path["stops"].index(stop)
            after = f"; next: {self.link(path['stops'][at + 1])}" if at + 1 < len(path["stops"]) else "; the last page"
            places.append((f"\\ref path_{key} \"{path['title']}\"", f"page {at + 1} of {len(path['stops'])}{after}"))
        return places
