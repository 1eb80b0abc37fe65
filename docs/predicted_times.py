"""The times that rungs predict: of a line `@expect time` in their header, or of predicted_times.txt for those that say it in words."""

import re

from counted_tables import expect

LINE = re.compile(r"(?P<rung>\S+) \| (?P<what>[\w-]+ \w+) \| (?P<text>[\d.]+ (?:us|ms|s))$")


def read(root, rows):
    """({rung: [expect.Time]}, what is wrong). @param rows of the rung table, by name"""
    former = {old: rung for rung, row in rows.items() for old in row.get("was") or []}
    path = root / "docs/predicted_times.txt"
    found, wrong = {}, []
    for number, line in enumerate(path.read_text().split("\n"), 1):
        if not line or line.startswith("#"):
            continue
        match = LINE.match(line)
        rung = match and (match["rung"] if match["rung"] in rows else former.get(match["rung"]))
        if not rung:
            wrong.append(f"{path.name}:{number}: {'no such rung' if match else 'RUNG | PROBLEM TYPE | TIME'}: {line}")
            continue
        problem, dtype = match["what"].split()
        header = " ".join(line for line in (root / rows[rung]["source"]).read_text().split("\n") if line.startswith("///"))
        if not re.search(rf"(?<![\d.]){re.escape(match['text'].split()[0])}(?![\d.]*\d)", header):
            wrong.append(f"{path.name}:{number}: the header of {rung} does not say {match['text']}")
            continue
        found[rung] = [expect.Time(problem, dtype, match["text"], None)]
    for rung, row in rows.items():
        if times := expect.times_of(root / row["source"]):
            found[rung] = times
    return found, wrong
