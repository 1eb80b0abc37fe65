#!/usr/bin/env python3
"""Checks what no compiler checks: that files agree with one another.

    check_files.py [--fix] CONVLADDER      CONVLADDER is the program, which knows the rung table

- text files end with a newline and have no tabs, trailing blanks or carriage returns;
- links in Markdown files lead somewhere;
- notebooks are committed without outputs;
- every rung's file stands in the table, and its header has the agreed parts and names files that exist;
- README.md's table of ladders is the rung table's, and its table of times the newest committed run's (--fix
  writes them);
- CITATION.cff is complete, and its version is CMakeLists.txt's and CHANGELOG.md's.
"""

import json
import pathlib
import re
import subprocess
import sys
import tempfile

import yaml

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "docs"))
sys.dont_write_bytecode = True
import benchmark_tables  # noqa: E402

IMPLEMENTATIONS = ("cpu_reference", "cuda_naive", "cuda_optimized")
BINARY = {".png", ".npy", ".svg"}
NOT_OURS = {"build", "out", "__pycache__"}

problems = []


def problem(path, line, says):
    place = path.relative_to(ROOT) if path.is_absolute() else path
    problems.append(f"{place}:{line}: {says}" if line else f"{place}: {says}")


def our_files():
    """What git knows or would add; outside of a repository, what is neither hidden nor built."""
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
            problem(path, 0, f"the link to {target} leads nowhere")


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


def check_rungs(rows):
    sources = {row["source"] for row in rows}
    for folder in IMPLEMENTATIONS:
        for path in sorted((ROOT / folder).rglob("*.c[pu]*")):
            if path.suffix not in (".cpp", ".cu"):
                continue
            name = path.relative_to(ROOT).as_posix()
            if "Implementation<" in path.read_text() and name not in sources:
                problem(path, 0, "defines a rung that is in no ladder's table")
    for row in rows:
        path = ROOT / row["source"]
        check_rung_header(path)
        # Its hash counts what it includes, but not core/rung.hpp, which includes all problems.
        if path.suffix == ".cu" and not re.search(r'#include "core/\w+_problem\.hpp"', path.read_text()):
            problem(path, 0, "does not include the header of its problem, core/..._problem.hpp")


def check_rung_header(path):
    header = []
    for line in path.read_text().splitlines():
        if not line.startswith("///"):
            break
        header.append(line[3:].strip())
    if f"@file {path.name}" not in header:
        problem(path, 0, f"the header does not begin with @file {path.name}")
    text = "\n".join(header)
    for part in ("@brief", "**The idea.**", "**Expect.**"):
        if part not in text:
            problem(path, 0, f"the header has no {part}")
    for number, line in enumerate(header, 1):
        if not re.match(r"- [A-Z][\w ]*:", line):
            continue
        for name in re.findall(r"[\w/]+\.(?:cuh?|[ch]pp)\b|[\w]+/[\w/]*/(?=[\s,)])", line):
            if not (ROOT / name).exists() and not (path.parent / name).exists():
                problem(path, number, f"the header names {name}, which does not exist")


def ladder_table(rows):
    """README.md's table: a row a ladder, with links to its page and its rungs."""
    ladders = {}
    for row in rows:
        ladders.setdefault(row["ladder"], []).append(row)
    lines = ["| ladder | CPU | CUDA, naive | CUDA, optimised |", "|---|---|---|---|"]
    for ladder, rungs in ladders.items():
        cells = []
        for folder in IMPLEMENTATIONS:
            links = [
                f"[{rung['rung'].rsplit('/', 1)[1]}]({rung['source']})"
                for rung in rungs
                if rung["rung"].startswith(folder + "/")
            ]
            cells.append(", ".join(links))
        lines.append(f"| [{ladder}](docs/ladders/{ladder}.md) | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def check_readme(rows, fix):
    path = ROOT / "README.md"
    text = path.read_text()
    run = benchmark_tables.newest_run(ROOT)
    times = "\n".join(benchmark_tables.readme_table(run)) if run else "No run has been committed yet."
    for name, table in {"ladders": ladder_table(rows), "times": times}.items():
        marked = re.compile(rf"(<!-- {name}: made by [^>]*-->\n).*?(<!-- end -->)", re.DOTALL)
        if not marked.search(text):
            problem(path, 0, f"the markers of the table of {name} are gone")
            continue
        fresh = marked.sub(lambda found: found.group(1) + table + "\n" + found.group(2), text)
        if fresh != text and fix:
            path.write_text(fresh)
        elif fresh != text:
            problem(path, 0, f"the table of {name} is out of date: run ./ladder format")
        text = fresh
    for row in rows:
        if not (ROOT / "docs" / "ladders" / f"{row['ladder']}.md").exists():
            problem(ROOT / "docs/ladders", 0, f"there is no page {row['ladder']}.md")


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
        if path.suffix == ".md":
            check_links(path, text)
        if path.suffix == ".ipynb":
            check_notebook(path, text)
    rows = read_table(program)
    check_rungs(rows)
    check_readme(rows, fix)
    check_versions()
    for line in problems:
        print(line, file=sys.stderr)
    print(f"{len(problems)} problems in files" if problems else "All files agree.", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
