#!/usr/bin/env python3
"""Checks the consistency of files, which no compiler checks.

    check_files.py [--fix] CONVLADDER      CONVLADDER is the program that contains the rung table

- text files end with a newline and have no tabs, trailing blanks or carriage returns;
- no source and no page of a ladder contains TODO, which skeletons do;
- links in Markdown files have existing targets;
- notebooks are committed without outputs;
- every rung's file is in the table; its header has the required parts and at most 25 lines, refers to existing files,
  and
  names the rungs before and after it in the table (--fix writes these lines);
- a step of a spine keeps most lines of the previous rung (tools/likeness.py, which is printed); otherwise it is a
  branch;
- the files of rungs are short, and the simplest kernel includes little of core;
- a rung of a dense ladder includes few headers of rungs, directly or through others (tools/likeness.py prints their
  number for the spines);
- a CUDA rung's header predicts numbers (`@expect`) that agree with the counts for its present source and do not all
  hold
  for the previous rung (tools/inspect/expect.py);
- the microscope's counts of a rung agree with a profiler's, or benchmarks/counters/differences.json gives the reason
  (tools/inspect/counter_differences.py), and the recorded races of planted bugs are up to date
  (tools/inspect/planted_races.py);
- no measured time is typed into a rung's file or its notebook (docs/ladders/LADDER/RUNG.md); times come from the
  newest
  committed run;
- the generated tables in README.md and docs/cards.md and the chart of times are up to date (--fix writes them);
- comments, messages and pages use the standard terms (tools/check_style.py; CONTRIBUTING.md, "How we write");
- CITATION.cff is complete, and its version is that of CMakeLists.txt and CHANGELOG.md.

"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import yaml

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "docs"), str(ROOT / "tools/inspect")]
sys.dont_write_bytecode = True
import benchmark_pictures  # noqa: E402
import benchmark_run  # noqa: E402
import cards  # noqa: E402
import check_style  # noqa: E402
import counter_differences  # noqa: E402
import expect  # noqa: E402
import likeness  # noqa: E402
import planted_races  # noqa: E402
from draw_pictures import Picture  # noqa: E402
from spine_tables import by_ladder, groups, part_of, problem_of, spine_table  # noqa: E402

IMPLEMENTATIONS = ("cpu_reference", "cuda_naive", "cuda_optimized")
BINARY = {".png", ".npy", ".svg"}
NOT_OURS = {"build", "out", "__pycache__"}
LONGEST_HEADER = {"cpu_reference": 25, "cuda_naive": 25, "cuda_optimized": 30}  # lines of a rung's header, without @expect
LONGEST_LINE = 100
LONGEST_RUNG = 310  # lines of a rung's file, without #include and @expect
LONGEST_SHARED_HEADER = 310  # lines of a header beside rungs
LEAST_LIKENESS = 0.5  # of a step relative to the previous rung
README_SPINES = ("conv2d", "gemm")  # spines whose times README.md shows
LARGE_STEPS = ROOT / "tools/large_steps.txt"
MANY_FILES = ROOT / "tools/many_files.txt"
DENSE_LADDERS = ("gemm", "conv2d", "conv2d_dgrad", "conv2d_wgrad")  # whose rungs are read with few other files open
MOST_FILES_OF_SPINE, MOST_FILES = 3, 5  # headers of rungs that a rung may include, directly or through others
SIMPLEST_KERNEL = "cuda_naive/conv2d/direct.cu"
MOST_CORE_HEADERS, MOST_CORE_LINES = 6, 500  # limits for its includes, directly or through others
TYPED_TIME = re.compile(r"\d\s?(us|ms|ns|microseconds?|milliseconds?)\b")

problems = []


def problem(path, line, says):
    place = path.relative_to(ROOT) if path.is_absolute() else path
    problems.append(f"{place}:{line}: {says}" if line else f"{place}: {says}")


def our_files():
    """The files that git tracks or would add; outside of a repository, files that are neither hidden nor built."""
    command = ["git", "-C", ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split("\0")
        return [ROOT / name for name in sorted(listed) if name and (ROOT / name).is_file()]
    except (OSError, subprocess.CalledProcessError):
        names = (path.relative_to(ROOT).parts for path in sorted(ROOT.rglob("*")) if path.is_file())
        return [
            ROOT.joinpath(*parts)
            for parts in names
            if not NOT_OURS.intersection(parts) and not any(part.startswith(".") for part in parts)
        ]


def check_text(path, text):
    if text and not text.endswith("\n"):
        problem(path, 0, "no newline at the end")
    for number, line in enumerate(text.split("\n"), 1):
        if line != line.rstrip():
            problem(path, number, "blanks or a carriage return at the end of the line")
        if "\t" in line:
            problem(path, number, "a tab")


def check_todo(path, text):
    """TODO marks the places of a skeleton that must be written."""
    if path.suffix in (".cpp", ".hpp", ".cu", ".cuh") or path.parent == ROOT / "docs" / "ladders":
        for number, line in enumerate(text.split("\n"), 1):
            if re.search(r"\bTODO\b", line):
                problem(path, number, "contains TODO")


def check_comments(path, text):
    """Doxygen interprets a line that begins with a number and a point as a list item."""
    before = ""
    for number, line in enumerate(text.split("\n"), 1):
        comment = re.match(r"\s*///<? ?(.*)", line)
        prose = comment.group(1) if comment else ""
        if re.match(r"\d+[.)] ", prose) and before.strip() and not before.startswith((" ", "-")) and not re.match(r"\d+[.)] ", before):
            problem(path, number, "a line of prose looks like a list item")
        before = prose


def check_links(path, text):
    without_code = re.sub(r"```.*?```|`[^`]*`", "", text, flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", without_code):
        if re.match(r"[a-z]+:|#", target):
            continue
        target = target.split("#")[0]
        # The pages' pictures are drawn when they are built, or lie in docs/pictures.
        drawn = (ROOT / "docs") in path.parents and target.endswith(".svg")
        places = [path.parent / target, ROOT / "docs" / "pictures" / target]
        if not drawn and not any(place.exists() for place in places):
            problem(path, 0, f"the link target {target} does not exist")


def check_notebook(path, text):
    notebook = json.loads(text)
    for number, cell in enumerate(notebook["cells"], 1):
        if cell.get("outputs") or cell.get("execution_count"):
            problem(path, 0, f"cell {number} has outputs; notebooks are committed without them")
    canonical = json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"
    if text != canonical:
        problem(path, 0, "not as Jupyter writes it (json, indent 1)")


def read_table(program):
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "list.json"
        subprocess.run([program, "list", "--json", file], check=True, stdout=subprocess.DEVNULL)
        return json.loads(file.read_text())


def check_rungs(rows, fix):
    sources = {row["source"] for row in rows}
    for folder in IMPLEMENTATIONS:
        for path in sorted((ROOT / folder).rglob("*.c[pu]*")):
            check_times(path)
            if path.suffix not in (".cpp", ".cu"):
                continue
            name = path.relative_to(ROOT).as_posix()
            if "Implementation<" in path.read_text() and name not in sources:
                problem(path, 0, "defines a rung that is in no ladder's table")
    for row in rows:
        path = ROOT / row["source"]
        check_neighbours(path, row, rows, fix)
        check_rung_header(path)
    names = {(row["ladder"], benchmark_run.constant_name(row["rung"])) for row in rows}
    for path in sorted((ROOT / "docs" / "ladders").glob("*/*.md")):
        if (path.parent.name, path.stem) not in names:
            problem(path, 0, "is the notebook of a rung that does not exist")
        check_times(path)


def header_of(path):
    """The leading comment, as lines without slashes."""
    header = []
    for line in path.read_text().splitlines():
        if not line.startswith("///"):
            break
        header.append(line[3:].removeprefix(" "))
    return header


def neighbours(row, rows):
    """The lines of a header that name the previous and the following rungs."""
    folder = row["source"].rsplit("/", 1)[0]
    ladder_folder = "/".join(row["source"].split("/")[:2])

    def named(sources):
        return [source.removeprefix(folder + "/").removeprefix(ladder_folder + "/") for source in sources]

    sources = {other["rung"]: other["source"] for other in rows}
    lines = []
    for word, names in (("Before", named([sources[row["previous"]]] if row["previous"] else [])),
                        ("After", named([other["source"] for other in rows if other["previous"] == row["rung"]]))):
        line = f"- {word}:"
        for i, name in enumerate(names):
            name = f" {name}" + ("," if i + 1 < len(names) else "")
            if len("/// " + line + name) > LONGEST_LINE:
                lines.append(line)
                line = " "
            line += name
        if names:
            lines.append(line)
    return lines


def check_neighbours(path, row, rows, fix):
    header = header_of(path)
    begin = header.index("") if "" in header else len(header)  # after @file and @brief
    rest, ours = [], False
    for line in header[begin + 1:]:
        ours = bool(re.match(r"- (Before|After):", line)) or (ours and line.startswith("  "))
        if not ours:
            rest.append(line)
    listed = neighbours(row, rows)
    between = [""] if listed and rest and not rest[0].startswith(("- ", "  ")) and rest[0] else []
    wanted = header[: begin + 1] + listed + between + rest
    if wanted == header:
        return
    if not fix:
        problem(path, 0, "the header's lines Before and After differ from the table: run ./ladder format")
        return
    text = path.read_text().splitlines()[len(header):]
    path.write_text("\n".join([*(f"/// {line}".rstrip() for line in wanted), *text]) + "\n")


def entries_of(path):
    """The lines "WHAT | REASON" of a list, without comments."""
    return dict(line.split(" | ", 1) for line in path.read_text().split("\n") if line and not line.startswith("#"))


def check_steps(rows):
    """Prints the likeness of each step. A step from C++ to CUDA is a translation, which has few lines in common."""
    sources = {row["rung"]: row["source"] for row in rows}
    low = {}
    for row, alike in likeness.of_table([row for row in rows if row["level"] == "spine"], sources):
        translated = row["backend"] == "cuda" and sources[row["previous"]].endswith(".cpp")
        print(f"{alike:.2f}  {row['rung']}{'  (from C++)' if translated else ''}", file=sys.stderr)
        if alike < LEAST_LIKENESS and not translated:
            low[row["rung"]] = (row["source"], f"the likeness of this step to {row['previous']} is {alike:.2f}, which is less than "
                                               f"{LEAST_LIKENESS}")
    check_exceptions(low, entries_of(LARGE_STEPS), LARGE_STEPS, "is not a step with low likeness")


def check_files_to_open(rows, many, opened_of=likeness.files_to_open):
    """Prints how many headers each rung of a spine includes. @param many exceptions: {rung: reason}"""
    above = {}
    for row in rows:
        if row["ladder"] not in DENSE_LADDERS or row["backend"] != "cuda":
            continue
        spine = row["level"] == "spine"
        opened, most = opened_of(row["source"]), MOST_FILES_OF_SPINE if spine else MOST_FILES
        if spine:
            print(f"{len(opened):2} headers  {row['rung']}", file=sys.stderr)
        if len(opened) > most:
            above[row["rung"]] = row["source"], f"it includes {len(opened)} headers of rungs ({', '.join(opened)}), more than {most}"
    check_exceptions(above, many, MANY_FILES, "includes few headers")


def check_exceptions(found, reasons, file, otherwise):
    """Checks that each rung beyond a limit has a reason, and that each reason is needed.

    @param found {rung: (its source, what is beyond the limit)}
    @param reasons {rung: reason}, the entries of `file`
    @param otherwise what is true of a rung within the limit
    """
    for rung, (source, what) in found.items():
        if rung not in reasons:
            problem(ROOT / source, 0, f"{what}; give the reason in {file.name}")
    for rung in sorted(set(reasons) - set(found)):
        problem(file, 0, f"{rung} {otherwise}: remove the entry")


def check_lengths(rows):
    """Checks the lengths of rungs and their headers; tools/long_files.txt lists exceptions with reasons."""
    allowed = entries_of(ROOT / "tools/long_files.txt")
    shared = [str(path.relative_to(ROOT)) for top in IMPLEMENTATIONS for path in (ROOT / top).rglob("*.cuh")]
    for path in sorted(set(row["source"] for row in rows) | set(shared)):
        lines = sum(not line.startswith("#include") and not expect.STARTS.match(line)
                    for line in (ROOT / path).read_text().split("\n")[:-1])
        most = LONGEST_SHARED_HEADER if path.endswith(".cuh") else LONGEST_RUNG
        if lines > most and path not in allowed:
            problem(ROOT / path, 0, f"has {lines} lines; the limit is {most}, unless tools/long_files.txt gives a reason")
        if lines <= most and path in allowed:
            problem(ROOT / "tools/long_files.txt", 0, f"{path} has only {lines} lines: remove the entry")
    for path in allowed:
        if not (ROOT / path).exists():
            problem(ROOT / "tools/long_files.txt", 0, f"{path} does not exist")
    headers = [path for path in likeness.headers_of(SIMPLEST_KERNEL, pattern=likeness.ANY_INCLUDE) if path.startswith("core/")]
    lines = sum((ROOT / path).read_text().count("\n") for path in headers)
    if len(headers) > MOST_CORE_HEADERS or lines > MOST_CORE_LINES:
        problem(ROOT / SIMPLEST_KERNEL, 0, f"includes {len(headers)} headers of core with {lines} lines; the limits are "
                                           f"{MOST_CORE_HEADERS} headers and {MOST_CORE_LINES} lines")


def check_times(path):
    """No measured time is typed. Predicted times are allowed in a header's **Expect.**, and in a notebook under a
    heading with "predict"."""
    expected = False
    markdown = path.suffix == ".md"
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if path.suffix != ".md" and "//" not in line:
            continue
        if markdown and line.startswith("#"):
            expected = "predict" in line
        elif re.search(r"\*\*\w[\w ]*\.\*\*", line):
            expected = "**Expect.**" in line
        elif not line.startswith("///") and not markdown:
            expected = False
        comment = line if markdown else line.split("//", 1)[1]
        if TYPED_TIME.search(comment) and not expected:
            problem(path, number, "a typed time: describe it in words, or take it from the run ({{time PROBLEM}} in docs/ladders)")
        if re.search(r"\bMeasured\b|\(M\)", comment) and not markdown:
            problem(path, number, "a measured value in a rung's file: measurements are shown by the generated pages")


def check_rung_header(path):
    header = [line.strip() for line in header_of(path)]
    if f"@file {path.name}" not in header:
        problem(path, 0, f"the header does not begin with @file {path.name}")
    prose = sum(not expect.STARTS.match(line) for line in header)
    longest = LONGEST_HEADER[path.relative_to(ROOT).parts[0]]
    if prose > longest:
        problem(path, 0, f"the header has {prose} lines; the limit is {longest}")
    text = "\n".join(header)
    for part in ("@brief", "**The idea.**", "**Expect.**", *(("**Costs.**", "**Try.**") if path.suffix == ".cu" else ())):
        if part not in text:
            problem(path, 0, f"the header has no {part}")
    for number, line in enumerate(header, 1):
        if not re.match(r"- [A-Z][\w ]*:", line):
            continue
        for name in re.findall(r"[\w/]+\.(?:cuh?|[ch]pp)\b|[\w]+/[\w/]*/(?=[\s,)])", line):
            ladder_folder = ROOT.joinpath(*path.relative_to(ROOT).parts[:2])  # names are relative to it, or to the file's folder
            if not any((folder / name).exists() for folder in (ROOT, path.parent, ladder_folder)):
                problem(path, number, f"the header names {name}, which does not exist")


def source_link(row):
    """A rung's link to its source, for README.md."""
    return f"[{benchmark_run.short_name(row['rung'])}]({row['source']})"


def ladder_table(rows):
    """README.md's table: one row per ladder."""
    lines = ["| ladder | computes | spine | other rungs | from | to |", "|---|---|---:|---:|---|---|"]
    for ladder, rungs in by_ladder(rows).items():
        spine = [rung for rung in rungs if rung["level"] == "spine"]
        first, last = map(source_link, (spine[0], spine[-1]))
        lines.append(f"| [{ladder}](docs/ladders/{ladder}.md) | {rungs[0]['computes']} | {len(spine)} | {len(rungs) - len(spine)}"
                     f" | {first} | {last} |")
    return "\n".join(lines)


def spine_tables_of(rows, hashes, run):
    """README.md's tables of the gain of each step, for the spines in README_SPINES."""
    def is_stale(timed):
        return hashes.get(sources.get(timed["rung"])) != timed["source_hash"]

    sources = {row["rung"]: row["source"] for row in rows}
    lines = []
    for ladder in README_SPINES:
        for _, rungs in groups(by_ladder(rows)[ladder]):
            if rungs[0]["level"] == "spine":
                name = ", ".join(filter(None, (ladder, part_of(rungs[0]))))
                lines += [f"**{name}** ({problem_of(rungs[0])}, {run['gpu']}, {run['date']})", "",
                          *spine_table(run, rungs, is_stale, source_link), ""]
    return "\n".join(lines)


def with_made(path, made):
    """The text of a file, with fresh tables between their markers."""
    fresh = path.read_text()
    for name, text in made.items():
        marked = re.compile(rf"(<!-- {name}: made by [^>]*-->\n).*?(<!-- end -->)", re.DOTALL)
        if not marked.search(fresh):
            problem(path, 0, f"the markers of {name} are missing")
        fresh = marked.sub(lambda found: found.group(1) + text + found.group(2), fresh)
    return fresh


def check_readme(rows, hashes, fix):
    path = ROOT / "README.md"
    run = benchmark_run.newest_run(ROOT)
    fresh = with_made(path, {"ladders": ladder_table(rows) + "\n", "cards": cards.card_table(rows),
                             "spines": spine_tables_of(rows, hashes, run) if run else ""})
    check_made(path, fresh, fix)
    path = ROOT / "docs/cards.md"
    fresh = with_made(path, {"cards": cards.card_table(rows), "ladder cards": cards.ladder_card_table(rows),
                             "limits": cards.limit_table()})
    check_made(path, fresh, fix)
    if run:
        chart = benchmark_pictures.readme_chart(Picture, run).svg()
        check_made(ROOT / "docs" / "pictures" / "times.svg", chart, fix)
    for row in rows:
        if not (ROOT / "docs" / "ladders" / f"{row['ladder']}.md").exists():
            problem(ROOT / "docs/ladders", 0, f"there is no page {row['ladder']}.md")


def reading_order(rungs):
    """cuda_optimized/LADDER/README.md: all rungs of the ladder in reading order, each with its file and its summary."""
    ladder = rungs[0]["ladder"]
    lines = [f"# {ladder}", "", f"{rungs[0]['computes'][0].upper()}{rungs[0]['computes'][1:]}. Read the numbered rungs of the spine in their order;"
             f" the [page of the ladder](../../docs/ladders/{ladder}.md) has the mathematics.", "",
             f"This list is generated by `./ladder format` from [ladders/{ladder}.cpp](../../ladders/{ladder}.cpp)."]
    for title, rows in groups(rungs):
        lines += ["", f"## {title}", ""]
        for row in rows:
            mark = f"{row['spine']}." if row["spine"] else "-"
            lines.append(f"{mark} {link_from(f'cuda_optimized/{ladder}', row['source'])}: {row['idea']}")
    shared = sorted((ROOT / "cuda_optimized" / ladder / "shared").rglob("*.cuh"))
    if shared:
        lines += ["", "## What several rungs include", ""]
        for path in shared:
            brief = re.search(r"(?s)@brief (.*?)(?:\.|;|:)(?:\s|$)", re.sub(r"\n/// ?", " ", path.read_text())).group(1)
            lines.append(f"- {link_from(f'cuda_optimized/{ladder}', path.relative_to(ROOT).as_posix())}: {brief[0].lower()}{brief[1:]}")
    return "\n".join(lines) + "\n"


def link_from(folder, source):
    """A Markdown link to a source, as short as possible for a page in `folder`."""
    target = os.path.relpath(source, folder)
    return f"[{target if not target.startswith('..') else source}]({target})"


def advanced_order(ladder, rungs):
    """README.md of a folder with advanced rungs only: their prerequisites and reading order."""
    folder = rungs[0]["rung"].rpartition("/")[0]
    sources = {row["rung"]: row["source"] for row in rungs}
    lines = [f"# {ladder}, {rungs[0]['family']}", "", f"Refinements for GPUs with {rungs[0]['needs']}. Each line names the rung to read before.", "",
             "This list is generated by `./ladder format`.", ""]
    for row in rungs:
        before = sources.get(row["previous"]) or next(f"{row['previous']}{suffix}" for suffix in (".cu", ".cpp")
                                                      if (ROOT / f"{row['previous']}{suffix}").exists())
        lines.append(f"- {link_from(folder, row['source'])}, after {link_from(folder, before)}: {row['idea']}")
    return "\n".join(lines) + "\n"


def check_reading_orders(rows, fix):
    for ladder, rungs in by_ladder(rows).items():
        if (ROOT / "cuda_optimized" / ladder).is_dir():
            check_made(ROOT / "cuda_optimized" / ladder / "README.md", reading_order(rungs), fix)
        for family in {row["family"] for row in rungs if row["family"]}:
            members = [row for row in rungs if row["family"] == family and row["backend"] == "cuda"]
            if all(row["level"] == "advanced" for row in members):
                check_made(ROOT / "cuda_optimized" / ladder / family / "README.md", advanced_order(ladder, members), fix)


def check_made(path, fresh, fix):
    """A generated file must be up to date."""
    if path.exists() and path.read_text() == fresh:
        return
    if fix:
        path.write_text(fresh)
    else:
        problem(path, 0, "is out of date: run ./ladder format")


def check_versions():
    version = re.search(r"project\(ConvLadder VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text()).group(1)
    path = ROOT / "CITATION.cff"
    citation = yaml.safe_load(path.read_text())
    for key in ("cff-version", "message", "title", "authors", "version", "date-released", "license"):
        if not citation.get(key):
            problem(path, 0, f"{key} is missing")
    for author in citation.get("authors") or []:
        if not author.get("name") and not author.get("family-names"):
            problem(path, 0, "an author without a name")
    if str(citation.get("version")) != version:
        problem(path, 0, f"version {citation.get('version')}, but CMakeLists.txt has {version}")
    if f"## {version}" not in (ROOT / "CHANGELOG.md").read_text():
        problem(ROOT / "CHANGELOG.md", 0, f"no section {version}, CMakeLists.txt's version")


def main(arguments):
    fix = "--fix" in arguments
    [program] = [word for word in arguments if word != "--fix"]
    for path in our_files():
        if path.suffix in BINARY:
            continue
        text = path.read_text()
        check_text(path, text)
        check_todo(path, text)
        check_comments(path, text)
        if path.suffix == ".md":
            check_links(path, text)
        if path.suffix == ".ipynb":
            check_notebook(path, text)
    rows = read_table(program)
    check_rungs(rows, fix)
    check_steps(rows)
    check_files_to_open(rows, entries_of(MANY_FILES))
    check_lengths(rows)
    hashes = expect.hashes_of(pathlib.Path(program).resolve().parents[1])
    problems.extend(expect.problems_of(rows, hashes))
    problems.extend(planted_races.problems_of(hashes))
    problems.extend(counter_differences.problems_of_record())
    check_readme(rows, hashes, fix)
    check_reading_orders(rows, fix)
    problems.extend(check_style.problems(rows))
    check_versions()
    for line in problems:
        print(line, file=sys.stderr)
    print(f"{len(problems)} problems in files" if problems else "All files agree.", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
