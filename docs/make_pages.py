#!/usr/bin/env python3
"""Makes the pages that follow from the rung table.

    make_pages.py --list LIST.json --hashes HASHES.inc --root ROOT --out DIR [--players DIR]

LIST.json is what `convladder list --json` wrote, HASHES.inc what `hash_sources` did. Into DIR go, for Doxygen:
- pages/rung_*.md: one page a rung, see rung_page.py;
- pages/benchmarks_*.md: the times of each ladder; pages/lesson_*.md: the notebooks, see lesson_pages.py;
- pages/*.md: the pages of ROOT/docs, in which `<!-- rungs: LADDER -->` becomes the ladder's rungs as a tree,
  `<!-- ladders -->` the table of all ladders, `<!-- counted: LADDER -->` what the ladder's rungs load,
  `<!-- file: PATH -->` a Markdown file without its title,
  `<!-- profiled: RUNG -->` what a profiler counted, `<!-- sass: RUNG -->` some of its main loop, `<!-- sass machine -->` and `<!-- sass table -->` all such loops,
  `<!-- output: NAME -->` what the program NAME of ROOT/docs/examples printed into DIR,
  `<!-- planted bugs -->`, `<!-- verified -->`, `<!-- traffic -->`, `<!-- non finite -->`, `<!-- ladders' problems -->`,
  `<!-- tile waste -->`, `<!-- benchmarks -->`, `<!-- benchmark problems -->` and `<!-- results -->` what tests and runs left, `<!-- which way wins -->` and `<!-- error growth -->`
  pictures of fewer_pictures.py, `<!-- reading paths -->`, `<!-- map -->` and
  `<!-- lessons -->` what reading_paths.py makes, `<!-- spines -->` all spines, `<!-- techniques -->` what techniques.py makes, `<!-- players -->` links to what make_players.py has made; a page on a path says where
  it stands there;
- pages/coverage.md, if `./ladder check coverage` has left its report in ROOT/build: the page that leads to it;
- pictures/: the climbs of the benchmarks;
- site.json: ladders, rungs and techniques, for finish_pages.py.
"""

import argparse
import functools
import html
import json
import pathlib
import re

import benchmark_contests
import benchmark_pictures
import benchmark_run
import benchmark_tables
import counted_tables
import coverage_tables
import fewer_pictures
import forge_links
import lesson_pages
import make_players
import network_tables
import planted_races  # in tools/inspect, which counted_tables has put on the path
import profile_tables
import sass_tables
import traffic_tables
import waste_tables
from benchmark_run import constant_name, short_name
from draw_pictures import Picture
from reading_paths import ReadingPaths
from rung_page import RungPages, folded, page_id
from spine_tables import TYPES, by_ladder, groups, part_of, pill, problem_of, spine_table
from techniques import Techniques

FOLDERS = ("cpu_reference", "cuda_naive", "cuda_optimized")


class Pages:
    def __init__(self, rows, hashes, root, out):
        self.hashes = hashes
        self.benchmarks = benchmark_run.newest_run(root)
        self.counts = counted_tables.expect.read_record()
        self.profile = profile_tables.Profile()
        self.coverage = coverage_tables.newest_report(root)
        self.root = root
        self.out = out
        self.rows = {row["rung"]: row for row in rows}
        self.by_source = {row["source"]: row["rung"] for row in rows}
        self.ladders = by_ladder(rows)
        self.paths = ReadingPaths(self)
        self.made_players = []
        self.techniques = Techniques(self)
        self.places = forge_links.Places(root / "docs", {page_id(rung): row["source"] for rung, row in self.rows.items()})
        self.sass = sass_tables.Sass(root, self.link, self.is_stale)

    def source_text(self, rung):
        return (self.root / self.rows[rung]["source"]).read_text()

    def link(self, rung, text=None):
        return f'\\ref {page_id(rung)} "{text or rung}"'

    def is_stale(self, row):
        return self.hashes.get(row["rung"]) != row.get("source_hash")

    def stale_rows(self, rung):
        return [row for row in self.benchmarks["rows"] if row["rung"] == rung and self.is_stale(row)]

    def notebook_owner(self, ladder, name):
        """Of the rungs with that name, the most optimised has the page docs/ladders/LADDER/NAME.md."""
        return max(row["rung"] for row in self.ladders[ladder] if constant_name(row["rung"]) == name)  # cpu, cuda_n, cuda_o

    def reached(self, rung):
        """What the suite reaches of it. @pre there is a report"""
        return "Reached by the suite: " + coverage_tables.of_file(self.coverage, self.rows[rung]["source"])

    @classmethod
    def of_files(cls, listed, hashes, root, out):
        """From what `convladder list --json` and `hash_sources` wrote."""
        hashed = dict(re.findall(r'\{"(.*?)\.cu", "(\w+)"\}', hashes.read_text()))
        return cls(json.loads(listed.read_text()), hashed, root, out)

    @functools.cached_property
    def drawn(self):
        """The names of the benchmarks' pictures, which are drawn when they are first asked for."""
        if self.benchmarks is None:
            return []
        orders = {ladder: [row["rung"] for row in rows] for ladder, rows in self.ladders.items()}
        drawn = benchmark_pictures.pictures(Picture, self.current_run(), orders)
        for name, picture in drawn.items():
            write(self.out / "pictures" / f"{name}.svg", picture.svg())
        return list(drawn)

    def climbs(self, ladder):
        """The pictures of a ladder's times."""
        lines = []
        for problem in benchmark_pictures.CLIMBS.get(ladder, []):
            name = benchmark_pictures.climb_name(ladder, problem)
            if name in self.drawn:
                lines += [f"![{ladder}, {problem}: the time of each rung]({name}.svg)", ""]
        return lines

    def benchmark_page(self):
        """What the newest committed run is, and where its tables are."""
        run = self.benchmarks
        if run is None:
            return ["No run has been committed yet."]
        lines = ["# The run {#benchmark_run}", "", benchmark_run.machine(run) + ".", "", f"Ceilings: {benchmark_run.ceilings(run)}.", ""]
        if stale := sorted({row["rung"] for row in run["rows"] if self.is_stale(row)} & set(self.rows)):
            lines += folded(f"Stale: {len(stale)} rungs have changed since they were timed; their times are omitted", [", ".join(map(self.link, stale)) + "."])
        lines += ["A point above a ceiling is possible where the ceiling is that of a copy through DRAM and the arrays fit into the L2 cache, and where a rung executes"
                  " fewer multiplications than the definition, whose operations are counted (Winograd, FFT), or uses tensor cores for fp32 (3xTF32).", ""]
        for picture, what in (("run.roofline.svg", "dense"), ("run.sparse_roofline.svg", "sparse")):
            if (self.out / "pictures" / picture).exists():
                lines += [f"![The fastest {what} rungs under the ceilings]({picture})", ""]
        lines += ["# The tables {#benchmark_tables}", "", "| page | what it has |", "|---|---|",
                  "| \\ref benchmarks_contests | the fastest rung beside the fastest library, for each kind of work |"]
        if benchmark_run.newest_run(self.root, "networks"):
            lines += ["| \\ref benchmarks_network | all sparse convolutions of a backbone, one after the other |"]
        for ladder in dict.fromkeys(row["ladder"] for row in run["rows"]):
            lines.append(f"| \\ref benchmarks_{ladder} | all rungs of {ladder} on {len(benchmark_run.problems_of(run, ladder))} problems |")
        return [*lines, ""]

    def current_run(self):
        """The newest committed run without the rows of rungs that have changed since, or are none any more."""
        return {**self.benchmarks, "rows": [row for row in self.benchmarks["rows"] if not self.is_stale(row) and row["rung"] in self.rows]}

    def benchmark_pages(self):
        """{name: text} of the pages of times: the contests, a network, and one for each ladder."""
        if self.benchmarks is None:
            return {}
        run = self.current_run()

        def link(rung):
            return self.link(rung, short_name(rung)) + benchmark_run.mark(rung)

        pages = {"contests": [
            "# The fastest rung and the fastest library {#benchmarks_contests}", "", "\\tableofcontents", "",
            "Both sides use plain arithmetic unless a title says fewer multiplications; the L2 cache is warm. The library's time is that of its fastest algorithm or"
            " engine, in any layout unless the title names one. A ratio above 1 means that the rung is faster. In TF32 tables, the fastest rung may be one in"
            " fp32. (3xTF32): fp32 in and out, products on tensor cores. Problems: \\ref benchmark_problems.", "",
            *benchmark_contests.contests(run, link), ""]}
        waste = benchmark_run.newest_run(self.root, "tile_waste")
        if waste is not None:
            pages["contests"] += [
                "## Useful and executed operations {#benchmark_executed}", "",
                "If one row of a tile has a tap, the tile executes it for all of its rows. TFLOP/s on other pages count useful operations; this table also lists"
                " executed operations, which follow from the counts of the figure at \\ref ladder_sparse_conv.", "",
                *waste_tables.executed_rates(waste, run, link), ""]
        network = benchmark_run.newest_run(self.root, "networks")
        if network is not None:
            stale_rungs = [rung for rung, known in network["rungs"].items() if self.hashes.get(rung) != known]

            def named(rung):
                name = rung.partition("/")[2]
                return self.link(rung, name) if rung in self.rows else f"`{name}`"

            pages["network"] = [
                "# A whole network {#benchmarks_network}", "",
                "All sparse convolutions of OpenPCDet's VoxelBackBone8x on a sweep, with their rulebooks, measured by the host clock. `benchmarks/networks/voxel_backbone.cpp`"
                " calls the rungs one after the other and reuses their memory from call to call, as PyTorch does. The sites, rows and gradients of each convolution are"
                " compared with the reference exactly, on integers. spconv is called from Python, and its times include this overhead, which depends on the host."
                " The last column does not include it.", "",
                *network_tables.tables(network, named, stale_rungs), ""]
        for ladder in dict.fromkeys(row["ladder"] for row in run["rows"]):
            lines = [f"# Benchmarks of {ladder} {{#benchmarks_{ladder}}}", "", "\\tableofcontents", "",
                     f"{benchmark_run.machine(run)}. The problems: \\ref benchmark_problems. The method: \\ref benchmark_method. The fastest rung of each problem"
                     f" and type is in bold. (3xTF32): fp32 in and out, products on tensor cores. The rungs: \\ref ladder_{ladder}.", ""]
            if self.climbs(ladder):
                lines += [f"## Pictures {{#benchmarks_{ladder}_pictures}}", "", *self.climbs(ladder)]
            for l2 in ("warm", "cold"):
                if table := benchmark_tables.ladder_table(run, ladder, l2, link):
                    lines += [f"## L2 {l2} {{#benchmarks_{ladder}_{l2}}}", "", *table, ""]
            pages[ladder] = lines
        return pages

    def benchmark_problems(self):
        """The convolutions of the benchmarks, as benchmarks/ladders/conv2d.cpp has them."""
        text = (self.root / "benchmarks/ladders/conv2d.cpp").read_text()
        rows = re.findall(r'\{"(B\d+)", make\(([\d, ]+)\),\s*"([^"]*)"\}', text)
        lines = ["| problem | N x C x H x W | K | R x S | padding | stride | groups | description |", "|---|---|---:|---|---:|---:|---:|---|"]
        for name, sizes, why in rows:
            N, C, H, W, K, R, S, pad, stride, *groups = sizes.replace(" ", "").split(",")
            lines.append(f"| {name} | {N} x {C} x {H} x {W} | {K} | {R} x {S} | {pad} | {stride} | {groups[0] if groups else 1} | {why} |")
        undefined = {row["problem"] for row in self.benchmarks["rows"] if re.match(r"B\d+$", row["problem"])} - {name for name, _, _ in rows} if self.benchmarks else set()
        if undefined:
            raise SystemExit(f"make_pages.py: benchmarks/ladders/conv2d.cpp does not define {', '.join(sorted(undefined))}")
        return lines

    def results(self):
        """The most important numbers, on one screen."""
        if self.benchmarks is None:
            return ["No run has been committed yet."]
        run = self.current_run()
        cells = {}
        for what, row, best in benchmark_pictures.headlines(run):
            problem, _, dtype = what.replace(benchmark_run.mark(row["rung"]) or "\0", "").partition(", ")
            ratio = f"{best[1] / row['median_us']:.2f} x"
            link = f"{self.link(row['rung'], ratio)}, {benchmark_run.time_text(row['median_us'])}{benchmark_run.mark(row['rung'])}"
            cells.setdefault(problem, {})[dtype] = (f"<b>{link}</b>" if best[1] >= row["median_us"] else link).replace(" us", "&nbsp;us").replace(" ms", "&nbsp;ms")
        types = [dtype for dtype in TYPES if any(dtype in found for found in cells.values())]
        lines = ["| problem | " + " | ".join(types) + " |", "|---|" + "---|" * len(types)]
        for problem, found in cells.items():
            ladder, _, name = problem.partition(" ")
            lines.append(f"| \\ref benchmarks_{ladder} \"{ladder}\", {name} | " + " | ".join(found.get(dtype, "") for dtype in types) + " |")
        return [*lines, "", f"{benchmark_run.machine(run)}; L2 warm."]

    def spines(self):
        """The spines of all ladders as links, one line of steps each."""
        lines = []
        for ladder, rows in self.ladders.items():
            lines += [f"<b>\\ref ladder_{ladder} \"{ladder}\"</b>: {rows[0]['computes']}", ""]
            for title, rungs in groups(rows):
                if rungs[0]["level"] == "spine":
                    name = f"<li class=\"part\">{part_of(rungs[0])}</li>" if rungs[0]["part"] else ""
                    steps = " ".join(f"<li>{pill(row['rung'], self.link(row['rung'], short_name(row['rung'])))}</li>" for row in rungs)
                    lines += [f"<ol class=\"spine\">{name}{steps}</ol>", ""]
        return lines

    def site(self):
        """What finish_pages.py needs to know."""
        ladders = []
        for ladder, rows in self.ladders.items():
            members = [(title, [(page_id(row["rung"]), short_name(row["rung"]), row["spine"]) for row in rungs]) for title, rungs in groups(rows)]
            ladders.append({"name": ladder, "page": f"ladder_{ladder}", "groups": members})
        rungs = {rung: {"page": page_id(rung), "source": row["source"], "previous": row.get("previous"), "ladder": row["ladder"],
                        "idea": row["idea"]}
                 for rung, row in self.rows.items()}
        more = {"files": "Files", "names": "Names", "cuda_on_cpu_page": "CUDA on the CPU", "exercise": "Exercises"}
        if self.coverage is not None:
            more["coverage"] = "Coverage"
        return {"ladders": ladders, "rungs": rungs, "more pages": more,
                "techniques": self.techniques.for_search(lambda rung: page_id(rung) + ".html")}

    def which_way_wins(self):
        if self.benchmarks is None:
            return ["No run has been committed yet."]
        layers = (self.root / "benchmarks/ladders/conv2d.cpp").read_text()
        write(self.out / "pictures/which_way_wins.svg", fewer_pictures.which_wins(Picture, self.benchmarks, layers).svg())
        return ["![The fastest algorithm by filter size and channels, predicted and measured](which_way_wins.svg)"]

    def error_growth(self):
        printed = (self.out / "winograd_tiles.txt").read_text()
        write(self.out / "pictures/error_growth.svg", fewer_pictures.error_growth(Picture, printed).svg())
        return ["![Rounding errors of the definition and of four Winograd tiles, by channels](error_growth.svg)"]

    def rungs_in_order(self, ladder):
        """The rungs as tables: each spine, with what its steps gain; the alternatives; the advanced rungs."""
        def link(row):
            return pill(row["rung"], f'\\ref {page_id(row["rung"])} "{short_name(row["rung"])}"')

        legend = " ".join(f'<span class="pill {folder}">{folder}</span>' for folder in FOLDERS)
        lines = ['<div class="rungs">', f'<p class="legend">{legend}</p>', ""]
        for title, rows in groups(self.ladders[ladder]):
            lines += [f"### {title}", ""]
            if rows[0]["level"] == "spine":
                lines += [*spine_table(self.benchmarks, rows, self.is_stale, link), ""]
                if self.benchmarks and any(row["problem"] == problem_of(rows[0]) for row in self.benchmarks["rows"]):
                    lines += [f"Times on {problem_of(rows[0])}, L2 warm, {self.benchmarks['gpu']}, {self.benchmarks['date']}"
                              " (\\ref benchmarks \"committed run\"). *Gain*: speed-up over the rung on which a step is based.", ""]
            else:
                lines += ["| rung | needs |", "|---|---|",
                          *(f"| {link(row)}<br/>{row['idea']} | {row['needs']} |" for row in rows), ""]
        return [*lines, "</div>", ""]

    def ladder_table(self):
        lines = ["| ladder | computes | C++ rungs | CUDA rungs |", "|---|---|---:|---:|"]
        for ladder, rows in self.ladders.items():
            cuda = sum(row["rung"].startswith("cuda_") for row in rows)
            lines.append(f"| \\ref ladder_{ladder} \"{ladder}\" | {rows[0]['computes']} | {len(rows) - cuda} | {cuda} |")
        return [*lines, "", f"ConvLadder has {len(self.rows)} rungs; the \\ref map \"map\" lists all of them."]

    def planted_bugs(self):
        """What the bugs are that the suite must find."""
        lines = ["| rung | planted bug | required to detect it |", "|---|---|---|"]
        for name, rung, teaches in planted_bugs(self.root):
            link = self.link(rung, rung.replace("/", " / "))  # where it may be broken
            lines.append(f"| {link} | {name.replace('_', ' ')} | {teaches} |")
        return lines

    def players(self):
        """Where kernels can be watched."""
        if not self.made_players:
            return ["(Not part of this build: recording them requires a build with `BUILD_SHARED_LIBS`.)"]
        items = [f"<li>{player_link(player)}: <code>{player['rung']}</code></li>" for player in self.made_players]
        return ["\\htmlonly[block]", "<ul>", *items, "</ul>", "\\endhtmlonly"]

    def players_of(self, rung):
        """Links to those that show a rung as it is."""
        return [player_link(player) for player in self.made_players if player["rung"] == rung and "changed" not in player]

    def planted_races(self):
        """What the microscope says of those where something is missing that orders threads."""
        lines = []
        for name, seen in planted_races.read_record().items():
            why = f" ({seen['why']})" if seen["why"] else ""
            lines += [f"**{name.replace('_', ' ')}**, in a copy of {self.link(seen['rung'])}: {seen['kind']} in {seen['array']}{why}", "",
                      "```cpp", seen["first"], seen["second"], "```", ""]
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
            "zeros": "NaN, because a missing element is replaced by a zero",
            "groups": "the same, in outputs of other groups whose channels are in the same tile",
            "nan": "NaN instead of infinity",
            "tiles": "NaN or infinity, of either sign, in all outputs of a Winograd tile that depends on the value",
        }
        record = json.loads((self.root / "tests" / "non_finite.json").read_text())
        lines = ["| NaN or infinity in | result | rungs |", "|---|---|---|"]
        for kind, what in kinds.items():
            for name, rungs in record.get(kind, {}).items():
                lines.append(f"| {name} | {what} | {', '.join(self.link(rung) for rung in rungs)} |")
        return lines

    def traffic(self):
        """What tools/measure_traffic.py counted, beside the simulator's predictions."""
        run = benchmark_run.newest_run(self.root, "traffic")
        if run is None:
            return ["No run has been committed yet."]
        return traffic_tables.tables(run, self.link, {row: self.hashes.get(row) for row in self.rows})

    def tile_waste(self):
        """What benchmarks/tile_waste.cpp counted, as a picture and a table."""
        run = benchmark_run.newest_run(self.root, "tile_waste")
        if run is None:
            return ["No run has been committed yet."]
        write(self.out / "pictures" / "tile_waste.svg", waste_tables.picture(run).svg())
        return waste_tables.tables(run)

    def counted(self, match):
        """What the microscope has counted of a ladder's rungs."""
        ladder = match.group(1)
        rungs = [row["rung"] for row in self.ladders[ladder]]
        return "\n".join(counted_tables.of_ladder(ladder, rungs, self.counts, lambda rung: self.link(rung, short_name(rung))))

    def output(self, match):
        """What a program of docs/examples printed, as a block of code."""
        return f"```\n{(self.out / (match.group(1) + '.txt')).read_text().rstrip()}\n```"

    def filled(self, page, path):
        """A hand-written page with its generated parts."""

        def rungs(match):
            ladder = match.group(1)
            return "\n".join([*self.rungs_in_order(ladder), *self.climbs(ladder)])

        def file(match):
            return (self.root / match.group(1)).read_text().split("\n", 1)[1]

        page = self.places.to_refs(page, path)
        page = re.sub(r"<!-- rungs: (\w+) -->", rungs, page)
        page = re.sub(r"<!-- counted: (\w+) -->", self.counted, page)
        page = re.sub(r"<!-- file: (\S+) -->", file, page)
        page = re.sub(r"<!-- output: (\w+) -->", self.output, page)
        page = re.sub(r"<!-- profiled: (\S+) -->", lambda match: "\n".join(self.profile.of_rung(match.group(1), self.is_stale)), page)
        page = re.sub(r"<!-- sass: (\S+) -->", lambda match: "\n".join(self.sass.excerpt(match.group(1))), page)
        tables = {
            "ladders": self.ladder_table,
            "planted bugs": self.planted_bugs,
            "verified": self.verified,
            "non finite": self.non_finite,
            "traffic": self.traffic,
            "ladders' problems": counted_tables.problems,
            "microscope and profiler": self.profile.agreement,
            "races of planted bugs": self.planted_races,
            "tile waste": self.tile_waste,
            "benchmarks": self.benchmark_page,
            "benchmark problems": self.benchmark_problems,
            "results": self.results,
            "spines": self.spines,
            "techniques": self.techniques.table,
            "reading paths": self.paths.overview,
            "map": self.paths.map,
            "lessons": self.paths.lessons,
            "players": self.players,
            "which way wins": self.which_way_wins,
            "error growth": self.error_growth,
            "sass machine": self.sass.machine,
            "sass table": self.sass.table,
        }
        for name, make in tables.items():
            if f"<!-- {name} -->" in page:
                page = page.replace(f"<!-- {name} -->", "\n".join(make()))
        if name := re.match(r"# .* \{#(\w+)\}", page):
            page += "\n".join(self.paths.next_pages(f"page {name.group(1)}")) + "\n"
        return benchmark_tables.filled(page, self.benchmarks, None, path)


def player_link(player):
    return f'<a href="players/{player["name"]}.html">{html.escape(player["title"])}</a>'


def planted_bugs(root):
    """(name, rung, what it teaches) of each, from the files that plant them."""
    text = "".join(path.read_text() for path in sorted((root / "tests/planted_bugs/ladders").glob("*.cmake")))
    found = re.findall(r'^planted_bug\((\w+)\s+RUNG (\S+).*?TEACHES "(.*?)"\)', text, re.DOTALL | re.MULTILINE)
    if not found:
        raise SystemExit("make_pages.py: no planted bug in tests/planted_bugs/ladders")
    return found


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--list", required=True, type=pathlib.Path)
    parser.add_argument("--hashes", required=True, type=pathlib.Path)
    parser.add_argument("--root", required=True, type=pathlib.Path)
    parser.add_argument("--out", required=True, type=pathlib.Path)
    parser.add_argument("--players", type=pathlib.Path, help="the folder that make_players.py has written")
    arguments = parser.parse_args()

    pages = Pages.of_files(arguments.list, arguments.hashes, arguments.root, arguments.out)
    if arguments.players:
        pages.made_players = [player for player in make_players.read_players().values()
                              if (arguments.players / f"{player['name']}.html").exists()]
    docs = arguments.root / "docs"
    for page in [*sorted(docs.glob("*.md")), *sorted((docs / "ladders").glob("*.md"))]:
        write(arguments.out / "pages" / page.name, pages.filled(page.read_text(), page))
    for name, lines in pages.benchmark_pages().items():
        write(arguments.out / "pages" / f"benchmarks_{name}.md", "\n".join(lines) + "\n")
    for name, text in lesson_pages.pages(arguments.root, arguments.root / "out/notebooks").items():
        write(arguments.out / "pages" / f"{name}.md", text)
    write(arguments.out / "site.json", json.dumps(pages.site()))
    # For those who check the pages: the stops of each path, spines as their rungs.
    write(arguments.out / "reading_paths.json", json.dumps({key: path["stops"] for key, path in pages.paths.paths.items()}))
    rung_pages = RungPages(pages, planted_bugs(arguments.root))
    for rung in pages.rows:
        rung_pages.write(rung, write)
    if pages.coverage is not None:
        write(arguments.out / "pages" / "coverage.md", coverage_tables.page(pages.coverage))


if __name__ == "__main__":
    main()
