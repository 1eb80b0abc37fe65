#!/usr/bin/env python3
"""Makes the pages that follow from the rung table.

    make_pages.py --list LIST.json --hashes HASHES.inc --root ROOT --out DIR

LIST.json is what `convladder list --json` wrote, HASHES.inc what `hash_sources` did. Into DIR go, for Doxygen:
- pages/rung_*.md: one page a rung: its header comment as prose, its program, and what changed since
  the rung before;
- pages/*.md: the pages of ROOT/docs, in which `<!-- rungs: LADDER -->` becomes the ladder's map and table,
  `<!-- ladders -->` the table of all ladders, `<!-- file: PATH -->` a Markdown file without its title,
  `<!-- output: NAME -->` what the program NAME of ROOT/docs/examples printed into DIR,
  `<!-- planted bugs -->`, `<!-- verified -->`, `<!-- traffic -->`, `<!-- non finite -->`,
  `<!-- tile waste -->` and `<!-- benchmarks -->` what tests and runs left;
- pages/coverage.md, if `./ladder check coverage` has left its report in ROOT/build: the page that leads to it;
- pictures/: the climbs of the benchmarks;
- programs/: the sources as the pages show them.
"""

import argparse
import difflib
import html
import json
import pathlib
import re

import benchmark_tables
import coverage_tables
import traffic_tables
import waste_tables
from draw_pictures import Picture

FOLDERS = {"cpu_reference": "CPU", "cuda_naive": "CUDA", "cuda_optimized": "CUDA"}
COLOURS = {"cpu_reference": "#9aa5b1", "cuda_naive": "#e0a34a", "cuda_optimized": "#58a86c"}
# Below this likeness a diff shows two files, not a change.
LEAST_LIKENESS = 0.35


def page_id(rung):
    return "rung_" + rung.replace("/", "_")


def short_name(rung):
    """`direct_tiled` of cuda_optimized/conv2d/direct_tiled."""
    return rung.rsplit("/", 1)[1]


def split_source(text):
    """The leading `///` comment and the rest, as lists of lines."""
    lines = text.splitlines()
    end = next((i for i, line in enumerate(lines) if not line.startswith("///")), len(lines))
    return lines[:end], lines[end:]


def strip_slashes(lines):
    return [line[3:].removeprefix(" ") for line in lines]


def brief_and_prose(header):
    """The text of @brief, which may run over lines, and what follows it."""
    lines = strip_slashes(header)
    start = next((i for i, line in enumerate(lines) if line.startswith("@brief")), None)
    if start is None:
        return "", lines
    end = next((i for i in range(start, len(lines)) if not lines[i].strip()), len(lines))
    brief = " ".join(line.strip() for line in lines[start:end]).removeprefix("@brief").strip()
    return brief, lines[end:]


class Pages:
    def __init__(self, rows, hashes, root, out):
        self.hashes = hashes
        self.benchmarks = benchmark_tables.newest_run(root)
        self.coverage = coverage_tables.newest_report(root)
        self.root = root
        self.out = out
        self.rows = {row["rung"]: row for row in rows}
        self.by_source = {row["source"]: row["rung"] for row in rows}
        self.ladders = {}
        for row in rows:
            self.ladders.setdefault(row["ladder"], []).append(row)
        self.drawn = self.draw_benchmarks()

    def source_text(self, rung):
        return (self.root / self.rows[rung]["source"]).read_text()

    def link(self, rung, text=None):
        return f'\\ref {page_id(rung)} "{text or rung}"'

    def linked(self, prose, folder):
        """Prose in which the names of rungs' files are links; pictures (indented lines) stay as they are."""

        def replace(match):
            name = match.group(0)
            for candidate in (name, f"{folder}/{name}"):
                if candidate in self.by_source:
                    return self.link(self.by_source[candidate], name)
            return name

        lines = []
        for line in prose:
            if line.startswith("**") and lines and lines[-1]:
                lines.append("")  # **Costs.** and its like begin a paragraph
            in_picture = line.startswith("    ")
            lines.append(line if in_picture else re.sub(r"[\w/]+\.(?:cuh?|[ch]pp)\b", replace, line))
        return lines

    def rung_page(self, rung):
        row = self.rows[rung]
        ladder = row["ladder"]
        header, _ = split_source(self.source_text(rung))
        brief, prose = brief_and_prose(header)
        previous = row.get("previous")

        number = 1 + [other["rung"] for other in self.ladders[ladder]].index(rung)
        lines = [f"# {number} · {rung.split('/')[0]} / {short_name(rung)} {{#{page_id(rung)}}}", ""]
        lines += [f"**{brief}**", ""]
        lines += ["| | |", "|---|---|"]
        lines += [f"| Ladder | \\ref ladder_{ladder} \"{ladder}\", rung {number} of {len(self.ladders[ladder])} |"]
        lines += [f"| Source | `{row['source']}` |"]
        if not row.get("deterministic", True):
            lines += ["| Deterministic | no: the order of the result may differ from run to run |"]
        if self.coverage is not None:
            lines += [f"| Reached by the suite | {coverage_tables.of_file(self.coverage, row['source'])} |"]
        lines += [f"| Try it | `./ladder compare {ladder} --rung {rung}` |", ""]

        prose = self.linked(prose, pathlib.PurePosixPath(row["source"]).parent.as_posix())
        expected, rest = self.split_after_expectation(prose)
        lines += expected + self.counters(rung, expected) + rest
        lines += self.all_times(rung)
        lines += ["", "## The program", "", f"\\include{{lineno}} programs/{row['source']}", ""]
        if previous:
            lines += self.change(previous, rung)
        return "\n".join(lines) + "\n"

    def is_stale(self, row):
        return self.hashes.get(row["rung"]) != row["source_hash"]

    def split_after_expectation(self, prose):
        """A header's prose up to the end of its paragraph **Expect.**, and the rest; all where it has none."""
        start = next((i for i, line in enumerate(prose) if line.startswith("**Expect.")), None)
        if start is None:
            return prose, []
        # Another paragraph in bold letters ends it.
        end = next((i for i in range(start + 1, len(prose)) if prose[i].startswith("**")), len(prose))
        return prose[:end], prose[end:]

    def counters(self, rung, expected):
        """What was measured, to stand beside what was `expected`."""
        ladder = self.rows[rung]["ladder"]
        run = self.benchmarks
        if run is None or not rung.startswith("cuda_"):
            return []
        problems = benchmark_tables.problems_of(run, ladder)
        if not problems:
            return ["", f"**Measured.** The benchmarks have no problems of this ladder; what its rungs cost stands on \\ref ladder_{ladder}.", ""]
        start = next((i for i, line in enumerate(expected) if line.startswith("**Expect.")), len(expected))
        expectation = "\n".join(expected[start:])
        named = re.findall(r"\bB\d+\b", expectation)
        named += [p for p in problems if "-" in p and re.search(rf"(?<![\w-]){re.escape(p)}(?![\w-])", expectation)]
        # Matrix products are named by their size.
        named += [p for p in problems if p.startswith("cube-") and p.removeprefix("cube-") in expectation]
        table = benchmark_tables.counters(run, rung, ladder, named)
        where = f"\\ref benchmark_run \"{run['gpu']}, {run['date']}\""
        if not table:
            return ["", f"**Measured.** Nothing yet: the run ({where}) has no row of this rung.", ""]
        lines = ["", f"**Measured** ({where}), the problems named above first:", "", *table, ""]
        if self.stale_rows(rung):
            lines += ["**Stale**: the rung has changed since; the numbers are those of the earlier version.", ""]
        timed = {row["problem"] for row in run["rows"] if row["rung"] == rung}
        missing = [problem for problem in problems if problem not in timed]
        if missing:
            lines += [f"Not in the run, mostly because the rung declines them: {', '.join(missing)}.", ""]
        return lines

    def stale_rows(self, rung):
        return [row for row in self.benchmarks["rows"] if row["rung"] == rung and self.is_stale(row)]

    def all_times(self, rung):
        """The rows of a rung in the newest committed run."""
        if self.benchmarks is None:
            return []
        table = benchmark_tables.rung_table(self.benchmarks, rung)
        if not table:
            return []
        lines = ["", f"## All times {{#{page_id(rung)}_measured}}", "", benchmark_tables.machine(self.benchmarks)]
        lines[-1] += "; see \\ref benchmarks for how."
        if self.stale_rows(rung):
            lines[-1] += " **Stale**: the rung has changed since it was timed."
        return [*lines, "", *table]

    def draw_benchmarks(self):
        """The benchmarks' pictures as files. @returns their names"""
        if self.benchmarks is None:
            return []
        orders = {ladder: [row["rung"] for row in rows] for ladder, rows in self.ladders.items()}
        drawn = benchmark_tables.pictures(Picture, self.benchmarks, orders)
        for name, picture in drawn.items():
            write(self.out / "pictures" / f"{name}.svg", picture.svg())
        return list(drawn)

    def climbs(self, ladder):
        """The pictures of a ladder's times."""
        lines = []
        for problem in benchmark_tables.CLIMBS.get(ladder, []):
            name = benchmark_tables.climb_name(ladder, problem)
            if name in self.drawn:
                lines += [f"![{ladder}, {problem}: the time of each rung]({name}.svg)", ""]
        return lines

    def benchmark_page(self):
        """The tables and pictures of the newest committed run."""
        run = self.benchmarks
        if run is None:
            return ["No run has been committed yet."]
        stale = sorted({row["rung"] for row in run["rows"] if self.is_stale(row)})
        lines = ["# The run {#benchmark_run}", "", benchmark_tables.machine(run) + ".", ""]
        lines += [f"Ceilings: {benchmark_tables.ceilings(run)}.", ""]
        if stale:
            names = ", ".join(self.link(rung) if rung in self.rows else rung for rung in stale)
            lines += [f"**Stale**: changed since they were timed: {names}.", ""]
        for picture, what in (("run.roofline.png", "dense"), ("run.sparse_roofline.png", "sparse")):
            if (self.out / "pictures" / picture).exists():
                lines += [f"![The fastest {what} rungs under the ceilings]({picture})", ""]

        def link(rung):
            mark = " (stale)" if rung in stale else ""
            return (self.link(rung, short_name(rung)) if rung in self.rows else rung) + mark

        lines += ["# The fastest rung beside the fastest library {#benchmark_contests}", ""]
        lines += [
            "Plain arithmetic on both sides, L2 warm. The library's time is that of its fastest algorithm or engine, in any"
            " layout unless the title names one. More than 1 in the last column: the rung is faster. Where TF32 is allowed, a"
            " rung in fp32 may be the fastest, too.",
            "",
        ]
        lines += [*benchmark_tables.contests(run, link), ""]

        waste = waste_tables.newest_run(self.root)
        if waste is not None:
            lines += ["# Useful and executed {#benchmark_executed}", ""]
            lines += [
                "A tile of rows executes a tap for all of them if one has it. TFLOP/s elsewhere on this page are useful ones;"
                " here the executed ones stand beside them, by the counts of the figure at \\ref ladder_sparse_conv.",
                "",
            ]
            lines += [*waste_tables.executed_rates(waste, run, link), ""]

        for ladder in dict.fromkeys(row["ladder"] for row in run["rows"]):
            lines += [f"# {ladder} {{#benchmark_{ladder}}}", ""]
            lines += self.climbs(ladder)
            for l2 in ("warm", "cold"):
                table = benchmark_tables.ladder_table(run, ladder, l2, link)
                if table:
                    lines += [f"**L2 {l2}**", "", *table, ""]
        return lines

    def change(self, before, after):
        """What changed from one rung to the next, if they are alike enough for that to say something."""
        old = split_source(self.source_text(before))[1]
        new = split_source(self.source_text(after))[1]
        if difflib.SequenceMatcher(None, old, new, autojunk=False).ratio() < LEAST_LIKENESS:
            return []
        shown = []
        for line in difflib.unified_diff(old, new, lineterm="", n=3):
            if line.startswith(("---", "+++")):
                continue
            kind = {"+": "added", "-": "removed", "@": "place"}.get(line[0], "same")
            if kind == "place":
                line = "" if not shown else "..."
            shown.append(f'<span class="{kind}">{html.escape(line) or " "}</span>')
        return [
            f"## What changed since {short_name(before)} {{#{page_id(after)}_change}}",
            "",
            f"Compared with {self.link(before)}, header comments left out:",
            "",
            "\\htmlonly[block]",
            '<pre class="change">' + "\n".join(shown) + "</pre>",
            "\\endhtmlonly",
            "",
        ]

    def rung_table(self, ladder):
        lines = ["| | rung | the one idea | improves on |", "|---|---|---|---|"]
        for number, row in enumerate(self.ladders[ladder], 1):
            previous = row.get("previous")
            lines.append(
                f"| {number} | \\subpage {page_id(row['rung'])} \"{row['rung'].replace('/' + ladder + '/', ' / ')}\""
                f" | {row['idea']} | {self.link(previous, short_name(previous)) if previous else ''} |"
            )
        return lines

    def rung_map(self, ladder):
        """The rungs as a graph: an arrow leads from a rung to those that improve on it."""
        lines = [
            "\\dot",
            f"digraph {ladder} {{",
            '  rankdir=LR; size="8.2,8"; bgcolor="transparent"; nodesep=0.25; ranksep=0.3;',
            '  node [shape=box style="rounded,filled" fontname="Helvetica" fontsize=11 height=0.35'
            ' color="#00000000" fontcolor="#101418"];',
            '  edge [color="#8a94a0" arrowsize=0.7];',
        ]
        for row in self.ladders[ladder]:
            colour = COLOURS[row["rung"].split("/")[0]]
            lines.append(
                f'  "{row["rung"]}" [label="{short_name(row["rung"])}" fillcolor="{colour}"'
                f' URL="\\ref {page_id(row["rung"])}" tooltip="{row["idea"]}"];'
            )
            if row.get("previous"):
                lines.append(f'  "{row["previous"]}" -> "{row["rung"]}";')
        lines += ["}", "\\enddot", ""]
        legend = ", ".join(
            f'<span class="swatch" style="background:{colour}"></span> {folder}'
            for folder, colour in COLOURS.items()
        )
        return lines + ["\\htmlonly[block]", f'<p class="legend">{legend}</p>', "\\endhtmlonly", ""]

    def ladder_table(self):
        lines = ["| ladder | rungs | CPU | CUDA, naive | CUDA, optimised |", "|---|---|---|---|---|"]
        for ladder, rows in self.ladders.items():
            cells = []
            for folder in FOLDERS:
                names = [row["rung"] for row in rows if row["rung"].startswith(folder + "/")]
                cells.append(", ".join(self.link(name, short_name(name)) for name in names))
            lines.append(f"| \\subpage ladder_{ladder} \"{ladder}\" | {len(rows)} | {' | '.join(cells)} |")
        return lines

    def planted_bugs(self):
        """What the bugs are that the suite must find, from the file that plants them."""
        text = (self.root / "tests" / "planted_bugs" / "bugs.cmake").read_text()
        found = re.findall(r'^planted_bug\((\w+)\s+RUNG (\S+).*?TEACHES "(.*?)"\)', text, re.DOTALL | re.MULTILINE)
        if not found:
            raise SystemExit("make_pages.py: no planted bug in tests/planted_bugs/bugs.cmake")
        lines = ["| planted in a copy of | the mistake | what finding it takes |", "|---|---|---|"]
        for name, rung, teaches in found:
            lines.append(f"| {self.link(rung)} | {name.replace('_', ' ')} | {teaches} |")
        return lines

    def verified(self):
        """The last run of the suite on a GPU."""
        path = self.root / "tests" / "verified_on_gpu.json"
        if not path.exists():
            return ["No run has been recorded yet."]
        run = json.loads(path.read_text())
        lines = [
            f"{run['gpu']}, driver {run['driver']}, CUDA {run['toolkit']}, {run['date']}, at commit"
            f" {run['commit']}:",
            "",
            "| rung | problems | comparisons | identities |",
            "|---|---|---|---|",
        ]
        verified = {row["rung"]: row for row in run["rungs"]}
        for rung in self.rows:
            if rung in verified:
                row = verified[rung]
                counts = " | ".join(str(row[key]) for key in ("problems", "comparisons", "identities"))
                lines.append(f"| {self.link(rung)} | {counts} |")
        return lines

    def non_finite(self):
        """Which rungs spread NaN and infinity further than the definition."""
        kinds = {
            "zeros": "NaN where a zero stands for what is not there",
            "groups": "the same in outputs of other groups, whose channels share its tile",
            "nan": "NaN where infinity is right",
        }
        record = json.loads((self.root / "tests" / "non_finite.json").read_text())
        lines = ["| NaN or infinity in | makes | in these rungs |", "|---|---|---|"]
        for kind, what in kinds.items():
            for name, rungs in record.get(kind, {}).items():
                lines.append(f"| {name} | {what} | {', '.join(self.link(rung) for rung in rungs)} |")
        return lines

    def traffic(self):
        """What tools/measure_traffic.py counted, beside the simulator's predictions."""
        run = traffic_tables.newest_run(self.root)
        if run is None:
            return ["No run has been committed yet."]
        return traffic_tables.tables(run, self.link, {row: self.hashes.get(row) for row in self.rows})

    def tile_waste(self):
        """What benchmarks/tile_waste.cpp counted, as a picture and a table."""
        run = waste_tables.newest_run(self.root)
        if run is None:
            return ["No run has been committed yet."]
        write(self.out / "pictures" / "tile_waste.svg", waste_tables.picture(run).svg())
        return waste_tables.tables(run)

    def output(self, match):
        """What a program of docs/examples printed, as a block of code."""
        return f"```\n{(self.out / (match.group(1) + '.txt')).read_text().rstrip()}\n```"

    def filled(self, page):
        """A hand-written page with its generated parts."""

        def rungs(match):
            ladder = match.group(1)
            return "\n".join(self.rung_map(ladder) + self.rung_table(ladder) + ["", *self.climbs(ladder)])

        def file(match):
            return (self.root / match.group(1)).read_text().split("\n", 1)[1]

        page = re.sub(r"<!-- rungs: (\w+) -->", rungs, page)
        page = re.sub(r"<!-- file: (\S+) -->", file, page)
        page = re.sub(r"<!-- output: (\w+) -->", self.output, page)
        tables = {
            "ladders": self.ladder_table,
            "planted bugs": self.planted_bugs,
            "verified": self.verified,
            "non finite": self.non_finite,
            "traffic": self.traffic,
            "tile waste": self.tile_waste,
            "benchmarks": self.benchmark_page,
        }
        for name, make in tables.items():
            if f"<!-- {name} -->" in page:
                page = page.replace(f"<!-- {name} -->", "\n".join(make()))
        return page

    def program(self, rung):
        """The source as the page shows it: Doxygen leaves out `///` comments but counts their lines, so the
        header, which is the page's prose, keeps its slashes, and all others lose one."""
        header, body = split_source(self.source_text(rung))
        return "\n".join(header + [re.sub(r"///<?", "//", line) for line in body]) + "\n"


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--list", required=True, type=pathlib.Path)
    parser.add_argument("--hashes", required=True, type=pathlib.Path)
    parser.add_argument("--root", required=True, type=pathlib.Path)
    parser.add_argument("--out", required=True, type=pathlib.Path)
    arguments = parser.parse_args()

    hashes = dict(re.findall(r'\{"(.*?)\.cu", "(\w+)"\}', arguments.hashes.read_text()))
    pages = Pages(json.loads(arguments.list.read_text()), hashes, arguments.root, arguments.out)
    docs = arguments.root / "docs"
    for page in [*sorted(docs.glob("*.md")), *sorted((docs / "ladders").glob("*.md"))]:
        write(arguments.out / "pages" / page.name, pages.filled(page.read_text()))
    for rung, row in pages.rows.items():
        write(arguments.out / "pages" / f"{page_id(rung)}.md", pages.rung_page(rung))
        write(arguments.out / "programs" / row["source"], pages.program(rung))
    if pages.coverage is not None:
        write(arguments.out / "pages" / "coverage.md", coverage_tables.page(pages.coverage))


if __name__ == "__main__":
    main()
