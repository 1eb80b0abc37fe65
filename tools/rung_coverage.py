#!/usr/bin/env python3
"""Determines which lines and branches of the rungs the suite reaches, and whether the others are listed with a
reason.

    rung_coverage.py BUILD LLVM_PROFDATA LLVM_COV      (./ladder check coverage)

BUILD is a build of the preset `coverage` whose suite has run. Prints a table a ladder and the places that are
not reached. Into BUILD/report go llvm-cov's own pages (html/index.html) and the numbers (coverage.json), which
`./ladder docs` takes along.

A line is reached if it ran, a branch if its condition was both true and false, in any instance of a template.
Conditions that the compiler knows (`if constexpr`) are no branches. tests/not_covered.txt names the places that
are not reached, each with its reason. The status is 1 if a place is not named there, or if one that is named
is reached by now or is gone ("stale").

"""

import collections
import dataclasses
import itertools
import json
import pathlib
import re
import subprocess
import sys
import typing

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDERS = ("cpu_reference", "cuda_naive", "cuda_optimized")
LIST = ROOT / "tests" / "not_covered.txt"

CODE, SKIPPED, GAP = 0, 2, 3  # kinds of llvm-cov's regions
# What a place does not do, in the words of the list.
NOT_RUN, NEVER_TRUE, NEVER_FALSE, NEVER_ASKED = "not run", "never true", "never false", "never asked"

# All instances of a template as one, and both ways of each condition.
AS_ONE = ("-show-instantiations=false", "-show-branches=count")
KINDS = ("lines", "branches", "regions")


@dataclasses.dataclass(frozen=True)
class Place:
    """What is not reached: lines that follow one another, or one way of a condition."""

    path: str
    line: int
    what: str
    text: str  # of the first line, or of the condition; blanks are as good as one
    lines: int = 0  # how many are not reached because of it
    branches: int = 0

    def entry(self):
        """As it stands in the list."""
        return (self.path, self.what, self.text)

    def __str__(self):
        return f"{self.path}:{self.line}: {self.what} | {self.text}"


class Region(typing.NamedTuple):
    """A piece of an instance of a function that runs as a whole, but for the regions within it."""

    start: tuple  # line and column, from 1
    end: tuple  # past the last character
    count: int
    kind: int


def nested(regions):
    """Each region behind those around it."""
    return sorted(regions, key=lambda region: (region.start, [-place for place in region.end]))


def line_counts(regions):
    """How often each line with code ran, as llvm-cov counts: {line: count}. @param regions nested()"""
    counts = {}
    around = []  # the regions that are open where a line begins
    at = 0
    for line in range(regions[0].start[0], regions[0].end[0] + 1):
        while at < len(regions) and regions[at].start < (line, 1):
            while around and around[-1].end <= regions[at].start:
                around.pop()
            around.append(regions[at])
            at += 1
        while around and around[-1].end <= (line, 1):
            around.pop()
        begun = [region for region in itertools.takewhile(lambda r: r.start[0] == line, regions[at:])]
        if (around and around[-1].kind == SKIPPED) or any(region.kind == SKIPPED for region in begun[:1]):
            continue
        found = [region.count for region in [*around[-1:], *(r for r in begun if r.kind != GAP)]]
        if found:
            counts[line] = max(found)
    return counts


def end_of_statement(lines, start):
    """Behind the statement that begins there."""
    depth = 0
    for line in range(start[0], len(lines) + 1):
        text = lines[line - 1]
        for column in range(start[1] if line == start[0] else 1, len(text) + 1):
            depth += {"{": 1, "}": -1, "(": 1, ")": -1}.get(text[column - 1], 0)
            if depth == 0 and text[column - 1] in "};":
                return (line, column + 1)
    return start


def discarded(lines, regions):
    """What `if constexpr` leaves out of this instance: [(start, end)]. There, clang has a region of the first word alone."""
    found = []
    for region in regions:
        if region.kind == CODE and region.count == 0:
            text = text_between(lines, region.start, region.end)
            before = " ".join(lines[max(0, region.start[0] - 2):region.start[0] - 1])
            before = (before + " " + lines[region.start[0] - 1][:region.start[1] - 1]).rstrip()
            if text == "{" or (re.fullmatch(r"\w+", text) and before.endswith((")", "else"))):
                found.append((region.start, end_of_statement(lines, region.start)))
    return found


def lines_within(lines, start, end):
    """The lines that a statement has for itself."""
    first = start[0] if not lines[start[0] - 1][:start[1] - 1].strip() else start[0] + 1
    last = end[0] if not lines[end[0] - 1][end[1] - 1:].strip(" ;,)") else end[0] - 1
    return range(first, last + 1)


def plain(text):
    return " ".join(text.split())


def text_between(lines, start, end):
    """The source from one place to another, as one line."""
    if start[0] == end[0]:
        return plain(lines[start[0] - 1][start[1] - 1:end[1] - 1])
    middle = lines[start[0]:end[0] - 1]
    return plain(" ".join([lines[start[0] - 1][start[1] - 1:], *middle, lines[end[0] - 1][:end[1] - 1]]))


def lines_of_inner_functions(extents):
    """The lines of lambdas, by the beginning of the function that they stand in: they have regions of their own."""
    return {
        start: {
            line
            for other in extents
            if start < other[0] and other[1] <= end
            for line in range(other[0][0] + 1, other[1][0] + 1)
        }
        for start, end in extents
    }


class Coverage:
    """What is reached of one file, by any instance of a template.

    (llvm-cov has such a sum, too. But it lays the regions of all instances over one another, and they differ where
    `if constexpr` has left something out.)
    """

    def __init__(self, path, instances, asked, source):
        """@param instances of functions: their regions and branches, as llvm-cov exports them"""
        self.path = path
        self.source = source.splitlines()
        self.lines = collections.Counter()
        self.regions = collections.Counter()
        self.branches = {}
        instances = [
            (nested(Region((r[0], r[1]), (r[2], r[3]), r[4], r[7]) for r in regions), branches)
            for regions, branches in instances
        ]
        extents = {(regions[0].start, regions[0].end) for regions, _ in instances}
        inner = lines_of_inner_functions(extents)
        self.function_of = {}  # a line's: where the function begins that stands in no other
        for start, end in sorted(extents):
            for line in range(start[0], end[0] + 1):
                self.function_of.setdefault(line, start)
        for regions, branches in instances:
            self.add(regions, discarded(self.source, regions), inner[regions[0].start])
            for row in branches:
                start, end = (row[0], row[1]), (row[2], row[3])
                if start in asked and not self.is_of_switch(*start):
                    ways = self.branches.setdefault((start, end), [0, 0])
                    ways[0] += row[4]
                    ways[1] += row[5]

    def add(self, regions, left_out, not_mine):
        """An instance."""
        counts = line_counts(regions)
        for statement in left_out:
            counts |= dict.fromkeys(lines_within(self.source, *statement), 0)
        for line, count in counts.items():
            if line not in not_mine and not re.match(r"\s*(//|#|$)", self.source[line - 1]):
                self.lines[line] += count
        beginnings = {start for start, _ in left_out}
        for region in regions:
            if region.kind == CODE and region.start not in beginnings:
                self.regions[region.start, region.end] += region.count

    def is_of_switch(self, line, column):
        """Whether this is the way past all cases of a `switch` without default: the compiler warns where there is one."""
        return self.source[line - 1][:column - 1].endswith("switch (")

    def places(self):
        """All that is not reached."""
        found = []
        place_of = {}  # of lines that did not run, the first one of those that follow one another
        before = None
        for line, count in sorted(self.lines.items()):
            if count == 0:
                goes_on = before in place_of and self.function_of[before] == self.function_of[line]
                place_of[line] = place_of[before] if goes_on else line
            before = line
        inside = collections.Counter()
        for (start, end), ways in sorted(self.branches.items()):
            if start[0] in place_of:
                inside[place_of[start[0]]] += 2
            elif not all(ways):
                what = NEVER_ASKED if not any(ways) else NEVER_FALSE if ways[0] else NEVER_TRUE
                text = text_between(self.source, start, end)
                found.append(Place(self.path, start[0], what, text, branches=ways.count(0)))
        for first, lines in collections.Counter(place_of.values()).items():
            text = plain(self.source[first - 1])
            found.append(Place(self.path, first, NOT_RUN, text, lines=lines, branches=inside[first]))
        return sorted(found, key=lambda place: (place.line, place.what))

    def numbers(self):
        """Reached and all: of lines, branches (two of each condition) and regions."""
        ways = [count for both in self.branches.values() for count in both]
        counted = {"lines": self.lines.values(), "branches": ways, "regions": self.regions.values()}
        return {name: [sum(count > 0 for count in counts), len(counts)] for name, counts in counted.items()}


def read_list(text):
    """The entries of the list: [(reason, entry)]. @raises ValueError for a line that is none"""
    entries = []
    reason = ""
    for number, line in enumerate(text.splitlines(), 1):
        if not line or line.startswith("#"):
            continue
        if line.startswith("["):
            reason = line.strip("[]")
            continue
        parts = [part.strip() for part in line.split(" | ", 2)]
        if len(parts) != 3 or parts[1] not in (NOT_RUN, NEVER_TRUE, NEVER_FALSE, NEVER_ASKED) or not reason:
            raise ValueError(f"{number}: not '[reason]', nor 'file | {NOT_RUN}, {NEVER_TRUE} ... | text' below one")
        entries.append((reason, (parts[0], parts[1], plain(parts[2]))))
    return entries


def compared(places, entries):
    """Places by the reason why they may not be reached, those without one, and stale entries. A text that stands in
    a file twice needs two entries."""
    reasons = collections.defaultdict(list)
    for reason, entry in entries:
        reasons[entry].append(reason)
    named = collections.defaultdict(list)
    unnamed = []
    for place in places:
        left = reasons[place.entry()]
        (named[left.pop(0)] if left else unnamed).append(place)
    return named, unnamed, [(reason, entry) for entry, left in reasons.items() for reason in left]


def row_of(name, files, named):
    """A row of a table: lines, branches and regions of these files as [reached, named in the list, all]."""
    sums = {what: [0, 0, 0] for what in KINDS}
    for file in files:
        for what, (reached, of) in file.numbers().items():
            sums[what][0] += reached
            sums[what][2] += of
    paths = {file.path for file in files}
    for place in named:
        if place.path in paths:
            sums["lines"][1] += place.lines
            sums["branches"][1] += place.branches
    return name, sums


def table(first_column, rows):
    """The rows as Markdown."""
    lines = [f"| {first_column} | {' | '.join(KINDS)} |", "|---|" + "---:|" * len(KINDS)]
    for name, sums in rows:
        cells = (f"{reached} of {of}" + (f", {named} named" if named else "") for reached, named, of in sums.values())
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def relative(path):
    return pathlib.Path(path).relative_to(ROOT).as_posix()


def llvm_cov(program, verb, profile, suite, *options):
    """What it prints of the rungs' files. (It also warns of functions elsewhere that it knows from headers alone.)"""
    command = [program, verb, *options, suite, f"-instr-profile={profile}", *(ROOT / folder for folder in FOLDERS)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{program} {verb}: {done.stderr}")
    return done.stdout


def exported(program, profile, suite):
    """What llvm-cov says of the instances of the rungs' functions: {path: [(regions, branches)]}."""
    text = llvm_cov(program, "export", profile, suite, "-format=text", "-skip-expansions")
    instances = collections.defaultdict(list)
    for function in json.loads(text)["data"][0]["functions"]:
        if function["filenames"][0].startswith(tuple(f"{ROOT / folder}/" for folder in FOLDERS)):
            # What macros bring stands in other files.
            own = ([row for row in function[rows] if row[file] == 0] for rows, file in (("regions", 5), ("branches", 6)))
            instances[relative(function["filenames"][0])].append(tuple(own))
    return instances


def asked_conditions(program, profile, suite):
    """Where conditions are that the program asks, in some instance of a template: {path: {(line, column)}}. Of the
    others the compiler knows the answer; only llvm-cov's text tells them apart."""
    text = llvm_cov(program, "show", profile, suite, "-use-color=false", *AS_ONE)
    asked = collections.defaultdict(set)
    path = None
    for line in text.splitlines():
        if line.startswith(str(ROOT)) and line.endswith(":"):
            path = relative(line[:-1])
        elif found := re.match(r" +\|  Branch \((\d+):(\d+)\): \[True", line):
            asked[path].add((int(found.group(1)), int(found.group(2))))
    return asked


def programs():
    """The rungs' files. Headers are excluded: a header that no file includes is compiled nowhere."""
    paths = (path for folder in FOLDERS for path in (ROOT / folder).rglob("*.c*"))
    return sorted(relative(path) for path in paths if path.suffix in (".cpp", ".cu"))


def main(build, profdata, cov):
    suite, profile, report = build / "tests" / "suite", build / "suite.profdata", build / "report"
    raw = sorted((build / "profiles").glob("*.profraw"))
    if not raw:
        sys.exit(f"rung_coverage.py: nothing in {build / 'profiles'}: has the suite run?")
    subprocess.run([profdata, "merge", "-sparse", *raw, "-o", profile], check=True)
    asked = asked_conditions(cov, profile, suite)
    files = {
        path: Coverage(path, record, asked[path], (ROOT / path).read_text())
        for path, record in sorted(exported(cov, profile, suite).items())
    }
    try:
        entries = read_list(LIST.read_text())
    except ValueError as error:
        sys.exit(f"{LIST.relative_to(ROOT)}:{error}")
    places = [place for file in files.values() for place in file.places()]
    named, unnamed, stale = compared(places, entries)

    excused = [place for them in named.values() for place in them]
    ladders = {}
    for path, file in files.items():
        ladders.setdefault(path.split("/")[1], []).append(file)
    rows = {}
    for ladder, of_ladder in ladders.items():
        of_files = [row_of(file.path, [file], excused) for file in of_ladder]
        rows |= dict(of_files)
        print(f"{ladder}\n\n{table('file', of_files)}\n")
    sums = [row_of(ladder, of_ladder, excused) for ladder, of_ladder in ladders.items()]
    sums.append(row_of("all", list(files.values()), excused))
    print(f"{table('ladder', sums)}\n")

    for reason, them in named.items():
        print(f"Not reached: {reason}")
        for place in them:
            print(f"  {place}")
    print()
    for place in unnamed:
        print(f"{place}: not in {LIST.relative_to(ROOT)}", file=sys.stderr)
    for reason, entry in stale:
        print(f"stale entry in {LIST.relative_to(ROOT)}: reached or gone: {' | '.join(entry)}", file=sys.stderr)
    missing = [path for path in programs() if path not in files]
    for path in missing:
        print(f"{path}: no line of it is in the suite", file=sys.stderr)

    llvm_cov(cov, "show", profile, suite, "-format=html", f"-output-dir={report / 'html'}", *AS_ONE)
    numbers = {"ladders": dict(sums), "files": rows}
    (report / "coverage.json").write_text(json.dumps(numbers, indent=1) + "\n")
    print(f"The pages: {report / 'html' / 'index.html'}")
    return 1 if unnamed or stale or missing else 0


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    sys.exit(main(pathlib.Path(sys.argv[1]).resolve(), *sys.argv[2:]))
