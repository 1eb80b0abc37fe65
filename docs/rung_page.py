"""The page of one rung: its idea, the inner loop, the program with its changes, predictions beside what was measured and counted,
limits, an exercise, and notes (all times, what was tried, and the tests that guard it), which are folded.

Programs and loops are put in by finish_pages.py, which knows what each name in them means.
"""

import pathlib
import re
import sys

import benchmark_pictures
import benchmark_run
import benchmark_tables
import counted_tables
import predicted_times
import solutions
from benchmark_run import constant_name, short_name
from counted_tables import expect, shown
from spine_tables import TYPES, part_of, problem_of


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
    """A folded part of a page."""
    return ["\\htmlonly[block]", f"<details><summary>{title}</summary>", "\\endhtmlonly", "", *lines, "", "\\htmlonly[block]", "</details>",
            "\\endhtmlonly", ""]


def put(what, rung=""):
    """A place that finish_pages.py fills."""
    of = f' data-rung="{rung}"' if rung else ""
    return ["\\htmlonly[block]", f'<div class="put-{what}"{of}></div>', "\\endhtmlonly", ""]


def without_title(lines, title):
    """A part of a header below a heading of its own."""
    return [re.sub(rf"^\*\*{title}\.\*\* *", "", line) if place == 0 else line for place, line in enumerate(lines)]


def named_problem(text, problems):
    """The problem that a prediction in words is about: the first that it names; None if it names none.

    A GEMM is named by its id, or as in "at 4096": 1024 cycles are none.
    """
    found = []
    for problem in problems:
        name = re.escape(problem)
        pattern = rf"(?<![\w-]){name}(?![\w-])"
        if problem.startswith("cube-") and problem.removeprefix("cube-").isdigit():
            size = problem.removeprefix("cube-")
            pattern += rf"|\bat {size}\b(?! (?:cycles|bytes|threads))|\b{size} x {size} x {size}\b"
        if match := re.search(pattern, text):
            found.append((match.start(), problem))
    return min(found)[1] if found else None


class RungPages:
    """The pages of all rungs."""

    def __init__(self, pages, bugs):
        """@param bugs (name, rung, what it teaches) of each planted bug"""
        self.pages = pages
        self.bugs = bugs
        self.solutions = solutions.read(pages.root, pages.rows)
        self.predicted, wrong = predicted_times.read(pages.root, pages.rows)
        for what in wrong:
            print(f"left out: {what}", file=sys.stderr)

    def write(self, rung, write):
        row = self.pages.rows[rung]
        header = Header(split_source(self.pages.source_text(rung))[0])
        write(self.pages.out / "pages" / f"{page_id(rung)}.md", "\n".join(self.page(row, header)) + "\n")

    def page(self, row, header):
        rung = row["rung"]
        folder = pathlib.PurePosixPath(row["source"]).parent.as_posix()
        own = page_id(rung)

        def part(name):
            return without_title(self.linked(header.take(name), folder), name)

        before, idea, expected, costs, exercise = part(""), part("The idea"), part("Expect"), part("Costs"), part("Try")
        others = [line for name in list(header.parts) for line in [*self.linked(header.take(name), folder), ""]]
        lines = [f"# {short_name(rung)} · {row['ladder']}, {rung.split('/')[0]} {{#{own}}}", "", f"**{header.brief}**", ""]
        lines += [*self.steps(row), *self.place(row), *put("contents")]
        lines += [f"## The idea {{#{own}_idea}}", "", *before, "", *idea, "", *others]
        lines += [f"## The inner loop {{#{own}_loop}}", "", *put("loop", rung)]
        lines += [f"## The program {{#{own}_program}}", "", f"`{row['source']}`, from the includes to the last line.", *self.why_large(rung), "",
                  *put("program", rung)]
        lines += [f"## Prediction and measurement {{#{own}_measured}}", "", *expected, "", *self.comparison(row, " ".join(expected)), ""]
        if costs:
            lines += [f"## Limits {{#{own}_limits}}", "", *costs, ""]
        if exercise:
            lines += [f"## Exercise {{#{own}_exercise}}", "", *exercise, "", *self.help_with(row)]
        lines += [f"## Notes {{#{own}_notes}}", "", *self.all_times(rung), *self.notebook(rung, folder), *self.profiled(row), *self.guards(rung)]
        return lines + self.steps(row) + self.pages.paths.next_pages(rung)

    # --- Where the rung stands

    def spine(self, row):
        """The rungs of its spine; none of a rung beside the spines."""
        return [other for other in self.pages.ladders[row["ladder"]]
                if other["level"] == "spine" and other["part"] == row["part"]] if row["level"] == "spine" else []

    def steps(self, row):
        """Links to the previous and the next rung of the spine; of another rung, to what it is built on."""
        spine = self.spine(row)
        at = next((i for i, other in enumerate(spine) if other["rung"] == row["rung"]), None)
        before = spine[at - 1]["rung"] if at else row["previous"] if at is None else None
        after = spine[at + 1]["rung"] if at is not None and at + 1 < len(spine) else None
        word = "Previous" if at is not None else "Built on"
        links = [f"<span>{word}: {self.pages.link(before, self.name_beside(row, before))}</span>" if before else ""]
        links += [f"<span class=\"to\">Next: {self.pages.link(after, self.name_beside(row, after))}</span>" if after else ""]
        return [f'<div class="steps">{"".join(links)}</div>', ""] if any(links) else []

    def name_beside(self, row, other):
        """A rung's name on the page of another one: as short as it is clear."""
        folder, ladder, name = other.split("/", 2)
        return name if other.startswith(row["rung"].rsplit("/", len(row["rung"].split("/")) - 2)[0] + "/") else f"{ladder} / {name} ({folder})"

    def place(self, row):
        """A table of where the rung stands."""
        rung, ladder = row["rung"], row["ladder"]
        spine = self.spine(row)
        where = (f"step {row['spine']} of {len(spine)} of the spine" + (f" *{part_of(row)}*" if row["part"] else "")) if spine else row["level"]
        rows = [("Ladder", f"\\ref ladder_{ladder} \"{ladder}\", {where}")]
        after = [other["rung"] for other in self.pages.ladders[ladder] if other.get("previous") == rung]
        built = f"built on {self.pages.link(row['previous'])}" if row["previous"] else ""
        if after:
            built += ("; " if built else "") + "basis of " + ", ".join(self.pages.link(other, short_name(other)) for other in after)
        if built:
            rows += [("Related rungs", built)]
        rows += [("Needs", row["needs"])]
        if not row.get("deterministic", True):
            rows += [("Deterministic", "no: the order of the result may differ from run to run")]
        rows += [(path, f"{place}") for path, place in self.pages.paths.places(rung)]
        if players := self.pages.players_of(rung):
            rows += [("Animation", ", ".join(players))]
        rows += [("Command", f"`./ladder compare {ladder} --rung {rung}{self.problem_for(row)}`")]
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

        return [line if line.startswith("    ") else re.sub(r"[\w/]+\.(?:cuh?|[ch]pp)\b", replace, line) for line in prose]

    def why_large(self, rung):
        """For a step that keeps few lines of the rung before it: why."""
        for line in (self.pages.root / "tools/large_steps.txt").read_text().split("\n"):
            if line.startswith(rung + " | "):
                return ["", f"This step is large. {line.split(' | ', 1)[1]}"]
        return []

    # --- Numbers

    def comparison(self, row, expected):
        """One table: the rung before, what was predicted, this rung, the library; on the problem of the prediction."""
        head = ["| | previous rung | predicted | this rung | library |", "|---|---:|---:|---:|---:|"]
        timed, words = self.timed_rows(row, expected)
        counted, stale = self.counted_rows(row)
        if not timed and not counted:
            return words
        return [*words, *head, *timed, *counted, "", *stale]

    def timed_rows(self, row, expected):
        """(rows, what is said above them) of the times in the newest committed run."""
        run, rung = self.pages.benchmarks, row["rung"]
        if row["backend"] != "cuda" or run is None:
            return [], []
        here = f"\\ref benchmark_run \"{run['gpu']}, {run['date']}\""
        rows = [timed for timed in benchmark_run.of(run, rung=rung, l2="warm")]
        if not rows:
            return [], [f"Not measured yet: the committed run ({here}) does not contain this rung.", ""]
        if self.pages.stale_rows(rung):
            return [], [f"The rung has changed since the committed run ({here}); its outdated times are omitted.", ""]
        predictions = {(time.problem, time.dtype): time for time in self.predicted.get(rung, [])}
        problem, dtype = next(iter(predictions), (None, None))
        timed_problems = list(dict.fromkeys(timed["problem"] for timed in rows))
        problem = problem or named_problem(expected, timed_problems)
        if problem not in timed_problems:
            usual = [problem_of(row), *benchmark_pictures.CLIMBS.get(row["ladder"], []), *timed_problems]
            problem = next(name for name in usual if name in timed_problems)
        alike = [timed for timed in rows if timed["problem"] == problem and dtype in (None, timed["dtype"])]
        alike = alike or [timed for timed in rows if timed["problem"] == problem]
        mine = min(alike, key=lambda timed: (TYPES.index(timed["dtype"]), timed["median_us"]))
        prediction = predictions.get((problem, mine["dtype"])) or predictions.get((problem, None))
        old = self.row_before(row, mine)
        best = benchmark_run.best_baseline(mine)
        words = [f"On `{problem}`, {mine['dtype']}, {mine['layout']} (\\ref benchmark_problems \"problems\"), L2 warm, {here}:", ""]

        def line(name, before, predicted, here_, library):
            return f"| {name} | {before} | {predicted} | {here_} | {library} |"

        def of(timed, show):
            return show(timed) if timed else ""

        time = benchmark_run.time_text
        note = "" if old is None or old["dtype"] == mine["dtype"] else f" ({old['dtype']})"
        lines = [line("time", of(old, lambda timed: time(timed["median_us"]) + note), prediction.text if prediction else "",
                      f"**{time(mine['median_us'])}**", f"{time(best[1])}<br/>{best[0]}" if best else "")]
        if mine["tflops"]:
            rate = mine["tflops"] * mine["median_us"]
            lines.append(line("TFLOP/s", of(old, lambda timed: f"{timed['tflops']:.3g}"), "", f"{mine['tflops']:.3g}", f"{rate / best[1]:.3g}" if best else ""))
        lines.append(line("fraction of the limit", of(old, lambda timed: f"{100 * timed['roofline']:.0f} %"), "", f"{100 * mine['roofline']:.0f} %",
                          f"{100 * mine['roofline'] * mine['median_us'] / best[1]:.0f} %" if best else ""))
        for name, key, show in (("registers per thread", "registers", str), ("shared memory per block", "shared_bytes", benchmark_run.bytes_text),
                                ("occupancy", "occupancy", lambda value: f"{100 * value:.0f} %")):
            lines.append(line(name, of(old, lambda timed: show(timed[key])), "", show(mine[key]), ""))
        if mine["spills"] or (old and old["spills"]):
            lines.append(line("spilled per thread", of(old, lambda timed: benchmark_run.bytes_text(timed["spills"])), "",
                              benchmark_run.bytes_text(mine["spills"]), ""))
        return lines, words

    def row_before(self, row, mine):
        """The row of the rung before on the same problem: of the same type and layout if there is one."""
        if not row["previous"]:
            return None
        rows = [timed for timed in benchmark_run.of(self.pages.benchmarks, rung=row["previous"], problem=mine["problem"], l2="warm")
                if not self.pages.is_stale(timed)]
        return min(rows, key=lambda timed: (timed["dtype"] != mine["dtype"], timed["layout"] != mine["layout"], timed["median_us"]), default=None)

    def counted_rows(self, row):
        """(rows, a word on stale counts) of what the header predicts line by line and the microscope has counted."""
        entry = self.pages.counts.get(row["rung"])
        before = self.pages.counts.get(row["previous"]) if row["previous"] else None
        rows = []
        lines = counted_tables.predictions(self.pages.root, row)
        for problem in dict.fromkeys(line.problem for line in lines):
            rows.append(f"| <i>counted by the \\ref microscope \"microscope\" on</i> `{problem}` | | | | |")
            for line in lines:
                if line.problem != problem:
                    continue
                what = f"`{line.counter}`" + (f", {line.words}" if line.words else "")
                predicted = f"{line.arithmetic} = {line.number}" if line.arithmetic else line.number
                counts = [shown(expect.count_in(of, line)) if of else "" for of in (before, entry)]
                rows.append(f"| {what} | {counts[0]} | {predicted.replace('*', '&times;')} | {counts[1]} | |")
        stale = bool(entry) and self.pages.is_stale(entry | row)
        return rows, ["The rung has changed since these counts were recorded.", ""] if rows and stale else []

    # --- Exercise and notes

    def help_with(self, row):
        """A hint and a solution, folded, where docs/solutions has them; how to try it."""
        lines = []
        for name, text in self.solutions.get(row["rung"], {}).items():
            lines += folded(name, text)
        source = f"mine.{row['source'].rpartition('.')[2]}"
        if row["backend"] == "cuda":
            how = [f"Copy `{row['source']}` to `{source}`, change the copy, and compare the counts of both:", "",
                   f"    ./ladder inspect {row['rung']}{self.problem_for(row)}",
                   f"    ./ladder inspect {row['rung']}{self.problem_for(row)} --source {source}", "",
                   "To time it on a GPU, change the file itself and run `./ladder compare` as above."]
        else:
            how = [f"Change `{row['source']}`, then compare it with the other rungs:", "", f"    ./ladder compare {row['ladder']} --rung {row['rung']}"]
        return lines + folded("How to run a variant", how)

    def all_times(self, rung):
        """The rows of a rung in the newest committed run."""
        run = self.pages.benchmarks
        table = benchmark_tables.rung_table(run, rung) if run else []
        if not table or self.pages.stale_rows(rung):
            return []
        lines = [f"{benchmark_run.machine(run)}; method: \\ref benchmarks.", "", *table]
        problems = benchmark_run.problems_of(run, self.pages.rows[rung]["ladder"])
        timed = {row["problem"] for row in run["rows"] if row["rung"] == rung}
        missing = [problem for problem in problems if problem not in timed]
        if missing:
            lines += ["", f"Not in the run, in most cases because the rung does not support them: {', '.join(missing)}."]
        return folded("All times", lines)

    def notebook(self, rung, folder):
        """What was tried and measured, from docs/ladders."""
        ladder, name = rung.split("/")[1], constant_name(rung)
        path = self.pages.root / "docs" / "ladders" / ladder / f"{name}.md"
        if not path.exists() or self.pages.notebook_owner(ladder, name) != rung:
            return []
        text = benchmark_tables.filled(self.pages.places.to_refs(path.read_text(), path), self.pages.benchmarks, rung, path)
        # Below the page's own headings.
        lines = [re.sub(r"^#", "###", line) for line in text.splitlines()]
        return folded("Notes: variants, measurements and profiles", self.linked(lines, folder))

    def profiled(self, row):
        """What a profiler counted beside the microscope."""
        lines = self.pages.profile.of_rung(row["rung"], self.pages.is_stale)
        return folded("Counts of the microscope and of a profiler", lines) if lines else []

    def guards(self, rung):
        """What keeps the rung right."""
        ladder = rung.split("/")[1]
        lines = [f"`./ladder test -R {rung}` runs the tests of this rung: the problems of the ladder in three thread orders, and the"
                 f" identities. `./ladder fuzz {ladder} --rung {rung}` tests random problems."]
        if self.pages.coverage is not None:
            lines += ["", self.pages.reached(rung)]
        bugs = [(name, teaches) for name, of, teaches in self.bugs if of == rung]
        if bugs:
            lines += ["", "| planted bug | required to detect it |", "|---|---|"]
            lines += [f"| {name.replace('_', ' ')} | {teaches} |" for name, teaches in bugs]
        return folded("Tests and planted bugs", lines)
