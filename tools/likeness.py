#!/usr/bin/env python3
"""The likeness of a rung to the previous one, and the number of headers that its reader opens.

    likeness.py TABLE.json [LADDER]      TABLE.json is what `convladder list --json` writes

Likeness is 2 * (common lines, in order) / (lines of both), from 0 to 1. Comments and blank lines are excluded. A
rung's own headers (those in the rungs' folders, not in core) count if only one of the two includes them: a loop that
was moved to a header is new to a reader of the step. The files to open are the headers below cuda_naive and
cuda_optimized that a rung includes, directly or through others.

"""

import difflib
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
RUNGS_INCLUDE = re.compile(r'^\s*#include "((?:cuda_naive|cuda_optimized|cpu_reference)/[^"]+)"', re.MULTILINE)
ANY_INCLUDE = re.compile(r'^\s*#include "([^"]+)"', re.MULTILINE)


def code_lines(path):
    """The lines of a file that are code, without what indents them."""
    text = re.sub(r"//[^\n]*|/\*.*?\*/", "", (ROOT / path).read_text(), flags=re.DOTALL)
    lines = (" ".join(line.split()) for line in text.split("\n"))
    return [line for line in lines if line and not line.startswith(("#include", "#pragma"))]


def headers_of(path, found=None, pattern=RUNGS_INCLUDE):
    """The headers that a file includes, directly or through others, in their order: of rungs, or by another pattern."""
    found = {} if found is None else found
    for header in pattern.findall((ROOT / path).read_text()):
        if header not in found and (ROOT / header).exists():
            found[header] = True
            headers_of(header, found, pattern)
    return list(found)


def files_to_open(source):
    """Beside a rung's own file: the headers of rungs in CUDA that it includes, in their order."""
    return [header for header in headers_of(source) if header.startswith("cuda_")]


def likeness(old, new):
    """Of two rungs' sources."""
    headers = {path: headers_of(path) for path in (old, new)}
    sides = []
    for path, other in ((old, new), (new, old)):
        lines = code_lines(path)
        for header in headers[path]:
            if header not in headers[other]:
                lines += code_lines(header)
        sides.append(lines)
    return difflib.SequenceMatcher(None, *sides, autojunk=False).ratio()


def of_table(rungs, sources):
    """(rung, likeness to its `previous`) for each that has one. @param sources by the names of all rungs"""
    return [(rung, likeness(sources[rung["previous"]], rung["source"])) for rung in rungs if rung["previous"]]


def main():
    rungs = json.loads(pathlib.Path(sys.argv[1]).read_text())
    for rung, alike in of_table(rungs, {rung["rung"]: rung["source"] for rung in rungs}):
        if len(sys.argv) < 3 or rung["ladder"] == sys.argv[2]:
            lines = len((ROOT / rung["source"]).read_text().split("\n"))
            opened = len(files_to_open(rung["source"]))
            print(f"{alike:.2f}  {rung['level']:11}  {lines:4} lines  {opened:2} headers  {rung['rung']}  <- {rung['previous']}")


if __name__ == "__main__":
    main()
