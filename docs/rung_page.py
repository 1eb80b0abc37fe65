"""The page of one rung: its idea, its program in pieces, what changed, the prediction beside what was measured, and
an exercise; folded below: all times, what was tried (docs/ladders/LADDER/RUNG.md), and the tests that guard it."""

import difflib
import html
import pathlib
import re

import benchmark_run
import benchmark_tables
import counted_tables
from benchmark_run import constant_name, short_name
from counted_tables import expect
from spine_tables import part_of

# Below this likeness a diff shows two files, not a change; longer ones are folded, too.
LEAST_LIKENESS = 0.35
LONGEST_CHANGE = 120  # lines
# Which pieces a program has, by what stands in a declaration.
PIECES = {"constants": "Constants", "device": "What the kernel calls", "kernel": "The kernel", "host": "On the host"}


def page_id(rung):
    return "rung_" + rung.replace("/", "_")


def split_source(text):
    """The leading `///` comment and the rest, as lists of lines."""
    lines = text.splitlines()
    end = next((i for i, line in enumerate(lines) if not line.startswith("///")), len(lines))
    return lines[:end], lines[end:]


class Header:
    """A rung's header comment, in its parts."""

    def __init__(self, comment):
        lines = [line[3:].removeprefix(" ") for line in comment]
        start = next((i for i, line in enumerate(lines) if line.startswith("@brief")), None)
        end = next((i for i in range(start, len(lines)) if not lines[i].strip()), len(lines)) if start is not None else 0
        self.brief = " ".join(line.strip() for line in lines[start or 0:end]).removeprefix("@brief").strip()
        # Paragraphs that begin with a word in bold letters; "" is what comes before the first.
        self.parts = {"": []}
        part = ""
        neighbours = False
        for line in lines[end:]:
            neighbours = bool(re.match(r"- (Before|After):", line)) or (neighbours and line.startswith("  "))
            if neighbours or expect.STARTS.match(line):
                continue  # the page says itself where the rung stands, and has a table of what is counted
            if found := re.match(r"\*\*(\w[\w ]*)\.\*\*", line):
                part = found.group(1)
                self.parts[part] = []
            self.parts[part].append(line)

    def take(self, name):
        """The lines of a part; empty if it has none."""
        return self.parts.pop(name, [])


def folded(title, lines):
    """What a reader opens if it is wanted."""
    return [
        "\\htmlonly[block]",
        f"<details><summary>{title}</summary>",
        "\\endhtmlonly",
        "",
        *lines,
        "",
        "\\htmlonly[block]",
        "</details>",
        "\\endhtmlonly",
        "",
    ]


def kind_of(chunk):
    """Which piece a declaration belongs to; empty for what belongs to its neighbours."""
    code = "\n".join(line for line in chunk if not line.lstrip().startswith("//"))
    if re.fullmatch(r"(\s*(#include.*|namespace.*\{|\}  // namespace.*|\s*))*", code):
        return ""
    if "__global__" in code:
        return "kernel"
    if "__device__" in code:
        return "device"
    names_something = re.search(r"^(template .*|inline |\[\[maybe_unused\]\] )*(constexpr|struct|enum|using)\b", code, re.M)
    has_function = re.search(r"^(?!constexpr).*\) \{$", code, re.M)
    return "constants" if names_something and not has_function else "host"


def pieces_of(body):
    """The program in its pieces: [(title, index of the first line, index after the last one)]. They begin and end at
    blank lines between declarations."""
    chunks, start, depth = [], 0, 0
    for i, line in enumerate(body):
        code = re.sub(r"//.*", "", line)
        if not re.match(r"namespace\b.*\{|\}  // namespace", line):
            depth += code.count("{") - code.count("}")
        if not line.strip() and depth == 0:
            chunks.append((start, i))
            start = i + 1
    chunks.append((start, len(body)))
    pieces = []
    for start, end in chunks:
        kind = kind_of(body[start:end])
        before = pieces[-1][0] if pieces else ""
        if kind == "constants" and any(other == "kernel" for other, _, _ in pieces):
            kind = "host"  # such as variants that the host chooses among
        if pieces and (not before or (kind in ("", before) and kind != "kernel")):
            _, start, _ = pieces.pop()
            kind = before or kind
        pieces.append((kind, start, end))
    named = []
    for kind, start, end in pieces:
        title = PIECES.get(kind, "The program")
        if kind == "kernel":
            code = "\n".join(line for line in body[start:end] if not line.lstrip().startswith("//"))
            code = re.sub(r"__launch_bounds__\((?:[^()]|\([^()]*\))*\)", "", code[code.index("__global__"):])
            title += " " + re.search(r"(\w+)\(", code).group(1)
        named.append((title, start, end))
    if not any(kind in ("kernel", "device") for kind, _, _ in pieces):
        return [("", 0, len(body))]  # a program in one piece
    return named


def marked(header, body, pieces):
    """The program as the page includes it: Doxygen leaves out `///` comments but counts their lines, so the header,
    which is the page's prose, keeps its slashes, and all others lose one. Blank lines between pieces carry the marks by
    which each is included, so that lines keep their numbers."""
    lines = header + [re.sub(r"///<?", "//", line) for line in body]
    begin = len(header) - 1  # instead of the header's last line
    for number, (_, _, end) in enumerate(pieces):
        place = len(header) + end
        lines[begin] = f"{lines[begin] if number else ''}//! [piece {number}]"
        begin = place
        if place >= len(lines):
            lines.append("")
        lines[place] = f"//! [piece {number}] "
    return "\n".join(line.rstrip() for line in lines) + "\n"


class RungPages:
    """The pages of all rungs."""

    def __init__(self, pages, bugs):
        """@param bugs (name, rung, what it teaches) of each planted bug"""
        self.pages = pages
        self.bugs = bugs

    def write(self, rung, write):
        row = self.pages.rows[rung]
        header, body = split_source(self.pages.source_text(rung))
        pieces = pieces_of(body)
        out = self.pages.out
        write(out / "programs" / row["source"], marked(header, body, pieces))
        kernels = self.included_kernels("\n".join(body))
        for name in kernels:
            text = (self.pages.root / name).read_text()
            write(out / "programs" / name, re.sub(r"///<?", "//", text))
        write(out / "pages" / f"{page_id(rung)}.md", "\n".join(self.page(row, Header(header), pieces, kernels)) + "\n")

    def included_kernels(self, body):
        """The building blocks with kernels that a program includes, if it has none of its own."""
        if "__global__" in body:
            return []
        named = re.findall(r'^#include "(c\w+_\w+/[^"]+\.cuh)"', body, re.MULTILINE)
        return [name for name in named if "__global__" in (self.pages.root / name).read_text()]

    def page(self, row, header, pieces, kernels):
        rung, ladder = row["rung"], row["ladder"]
        folder = pathlib.PurePosixPath(row["source"]).parent.as_posix()

        def part(name):
            return self.linked(header.take(name), folder)

        lines = [f"# {short_name(rung)} · {rung.split('/')[0]} {{#{page_id(rung)}}}", ""]
        lines += [f"**{header.brief}**", ""]
        lines += self.place(row)
        before_idea = part("")
        lines += [*before_idea, "", *part("The idea"), ""]
        expected, costs, exercise = part("Expect"), part("Costs"), part("Try")
        for name in list(header.parts):
            lines += [*part(name), ""]
        lines += ["## The program", "", f"`{row['source']}`, from the includes to the last line:", ""]
        for i, (title, _, _) in enumerate(pieces):
            lines += [*([f"### {title}", ""] if title else []), f"\\snippetlineno programs/{row['source']} piece {i}", ""]
        for name in kernels:
            lines += folded(f"{name}, with the kernel", [f"\\include{{lineno}} programs/{name}"])
        if row.get("previous"):
            lines += self.change(row["previous"], rung)
        lines += ["## Prediction and measurement", "", *expected, "", *self.counted(row), *self.measured(row, expected), *costs,
                  ""]
        if exercise:
            lines += ["## Try", "", re.sub(r"^\*\*Try\.\*\* *", "", exercise[0]), *exercise[1:], ""]
        lines += self.all_times(rung) + self.notebook(rung, folder) + self.guards(rung) + self.pages.paths.next_pages(rung)
        return lines

    def place(self, row):
        """A table of where the rung stands."""
        rung, ladder = row["rung"], row["ladder"]
        rows = [("Ladder", f"\\ref ladder_{ladder} \"{ladder}\"")]
        if row["level"] == "spine":
            spine = [other for other in self.pages.ladders[ladder] if other["spine"] and other["part"] == row["part"]]
            part = f", {part_of(row)}" if row["part"] else ""
            after = f"; next: {self.pages.link(spine[row['spine']]['rung'])}" if row["spine"] < len(spine) else ""
            rows += [("Spine", f"step {row['spine']} of {len(spine)}{part}{after}")]
        else:
            rows += [("Level", row["level"])]
        if row["previous"]:
            rows += [("Builds on", self.pages.link(row["previous"]))]
        rows += [("Needs", row["needs"])]
        after = [other["rung"] for other in self.pages.ladders[ladder] if other.get("previous") == rung]
        if after:
            rows += [("After it", ", ".join(self.pages.link(other) for other in after))]
        if not row.get("deterministic", True):
            rows += [("Deterministic", "no: the order of the result may differ from run to run")]
        rows += self.pages.paths.places(rung)
        if players := self.pages.players_of(rung):
            rows += [("Watch it", ", ".join(players))]
        rows += [("Run it", f"`./ladder compare {ladder} --rung {rung}{self.problem_for(row)}`")]
        return ["| | |", "|---|---|", *(f"| {name} | {what} |" for name, what in rows), ""]

    def problem_for(self, row):
        """Of a rung that declines the ladder's example for its type or layout: the problem of its predictions."""
        predictions = counted_tables.predictions(self.pages.root, row)
        needs = predictions and re.search(r"--(dtype|layout) ", predictions[0].problem)
        return f" {predictions[0].problem}" if needs else ""

    def linked(self, prose, folder):
        """Prose in which the names of rungs' files are links; pictures (indented lines) stay as they are."""
        sources = self.pages.by_source

        def replace(match):
            name = match.group(0)
            ladder_folder = "/".join(folder.split("/")[:2])  # names begin there, or in the rung's own folder
            for candidate in (name, f"{folder}/{name}", f"{ladder_folder}/{name}"):
                if candidate in sources:
                    return self.pages.link(sources[candidate], name)
            return name

        return [
            line if line.startswith("    ") else re.sub(r"[\w/]+\.(?:cuh?|[ch]pp)\b", replace, line) for line in prose
        ]

    def counted(self, row):
        """What the header predicts line by line, beside what the microscope has counted; and that beside a profiler's."""
        entry = self.pages.counts.get(row["rung"])
        table = counted_tables.of_rung(self.pages.root, row, entry)
        profile = self.pages.profile.of_rung(row["rung"], self.pages.is_stale)
        if not table and not profile:
            return []
        stale = ["**Stale**: the rung has changed since it was counted.", ""] if entry and self.pages.is_stale(entry | row) else []
        return ["**Counted** by the \\ref microscope \"microscope\":", "", *table, *stale, *profile]

    def measured(self, row, expected):
        """What was measured on one problem, to stand beside what was `expected`."""
        rung, ladder = row["rung"], row["ladder"]
        run = self.pages.benchmarks
        if run is None or not rung.startswith("cuda_"):
            return []
        problems = benchmark_run.problems_of(run, ladder)
        if not problems:
            return [f"**Measured.** The benchmarks have no problems of this ladder; what its rungs cost stands on"
                    f" \\ref ladder_{ladder}.", ""]
        expectation = "\n".join(expected)
        named = re.findall(r"\bB\d+\b", expectation)
        named += [p for p in problems if "-" in p and re.search(rf"(?<![\w-]){re.escape(p)}(?![\w-])", expectation)]
        # Matrix products are named by their size.
        named += [p for p in problems if p.startswith("cube-") and p.removeprefix("cube-") in expectation]
        table = benchmark_tables.counters(run, rung, ladder, named)
        where = f"\\ref benchmark_run \"{run['gpu']}, {run['date']}\""
        if not table:
            return [f"**Measured.** Nothing yet: the run ({where}) has no row of this rung.", ""]
        stale = ["**Stale**: the rung has changed since; the numbers are those of the earlier version.", ""]
        return [f"**Measured** ({where}):", "", *table, "", *(stale if self.pages.stale_rows(rung) else [])]

    def all_times(self, rung):
        """The rows of a rung in the newest committed run."""
        run = self.pages.benchmarks
        table = benchmark_tables.rung_table(run, rung) if run else []
        if not table:
            return []
        stale = " **Stale**: the rung has changed since it was timed." if self.pages.stale_rows(rung) else ""
        lines = [f"{benchmark_run.machine(run)}; see \\ref benchmarks for how.{stale}", "", *table]
        problems = benchmark_run.problems_of(run, self.pages.rows[rung]["ladder"])
        timed = {row["problem"] for row in run["rows"] if row["rung"] == rung}
        missing = [problem for problem in problems if problem not in timed]
        if missing:
            lines += ["", f"Not in the run, mostly because the rung declines them: {', '.join(missing)}."]
        return folded("All times", lines)

    def notebook(self, rung, folder):
        """What was tried and measured, from docs/ladders."""
        ladder, name = rung.split("/")[1], constant_name(rung)
        path = self.pages.root / "docs" / "ladders" / ladder / f"{name}.md"
        if not path.exists() or self.pages.notebook_owner(ladder, name) != rung:
            return []
        text = benchmark_tables.filled(path.read_text(), self.pages.benchmarks, rung, path)
        # Below the page's own headings.
        lines = [re.sub(r"^#", "##", line) for line in text.splitlines()]
        return folded("The notebook: what was tried, and what the profiler said", self.linked(lines, folder))

    def guards(self, rung):
        """What keeps the rung right."""
        ladder = rung.split("/")[1]
        lines = [f"`./ladder test -R {rung}` runs its own tests: the problems of the ladder in three thread orders, and the"
                 f" identities. `./ladder fuzz {ladder} --rung {rung}` draws others."]
        if self.pages.coverage is not None:
            lines += ["", self.pages.reached(rung)]
        bugs = [(name, teaches) for name, of, teaches in self.bugs if of == rung]
        if bugs:
            lines += ["", "| planted in a copy | what finding it takes |", "|---|---|"]
            lines += [f"| {name.replace('_', ' ')} | {teaches} |" for name, teaches in bugs]
        return folded("The tests and the planted bugs that guard it", lines)

    def why_large(self, rung):
        """For a step that keeps few lines of the rung before it: why."""
        for line in (self.pages.root / "tools/large_steps.txt").read_text().split("\n"):
            if line.startswith(rung + " | "):
                return ["", f"A large step. {line.split(' | ', 1)[1]}"]
        return []

    def change(self, before, after):
        """What changed from one rung to the next."""
        old = split_source(self.pages.source_text(before))[1]
        new = split_source(self.pages.source_text(after))[1]
        alike = difflib.SequenceMatcher(None, old, new, autojunk=False).ratio()
        shown = []
        for line in difflib.unified_diff(old, new, lineterm="", n=3):
            if line.startswith(("---", "+++")):
                continue
            kind = {"+": "added", "-": "removed", "@": "place"}.get(line[0], "same")
            if kind == "place":
                line = "" if not shown else "..."
            shown.append(f'<span class="{kind}">{html.escape(line) or " "}</span>')
        change = [
            f"Compared with {self.pages.link(before)}, header comments left out:",
            *self.why_large(after),
            "",
            "\\htmlonly[block]",
            '<pre class="change">' + "\n".join(shown) + "</pre>",
            "\\endhtmlonly",
            "",
        ]
        if alike < LEAST_LIKENESS or len(shown) > LONGEST_CHANGE:
            change = folded(f"{len(shown)} lines" if alike >= LEAST_LIKENESS else f"{len(shown)} lines: most of the file", change)
        return [f"## What is different from {short_name(before)} {{#{page_id(after)}_change}}", "", *change]
