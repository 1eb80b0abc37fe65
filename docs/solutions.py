"""Hints and solutions of the exercises of rungs: docs/solutions/LADDER.md, with a heading for each rung and below it paragraphs
that begin with **Hint.** and **Solution.**"""

import re

TITLES = ("Hint", "Solution")


def read(root, rows):
    """{rung: {"Hint": lines, "Solution": lines}}. @param rows of the rung table, by name"""
    former = {old: rung for rung, row in rows.items() for old in row.get("was") or []}
    found = {}
    for path in sorted((root / "docs/solutions").glob("*.md")):
        rung, title = None, None
        for number, line in enumerate(path.read_text().split("\n"), 1):
            if heading := re.match(r"## (\S+)$", line):
                rung = heading.group(1) if heading.group(1) in rows else former.get(heading.group(1))
                if rung is None:
                    raise SystemExit(f"{path}:{number}: {heading.group(1)} is no rung")
                title, found[rung] = None, {}
            elif start := re.match(rf"\*\*({'|'.join(TITLES)})\.\*\* *(.*)", line):
                title = start.group(1)
                found[rung][title] = [start.group(2)]
            elif title:
                found[rung][title].append(line)
    return found
