"""The list of changes that make no difference (tests/equivalent_mutants.txt)."""
import itertools
import re

from built_rungs import Trouble

# How reasons in the list of equivalent mutants begin that tell of those which only a GPU shows.
GPU_ALONE = ("Large: ", "Blocks: ")


def read_equivalents(path):
    """The changes that make no difference, each with the reason, as Mutant.change has them. An entry is

        FILE: OPERATOR         or "FILE: *" for any operator
        - the line before
        + the line after       or "+ *" for any change of that line
          the reason, in one or more lines that are indented by two blanks
    """
    entries, entry = {}, None
    for number, line in enumerate(path.read_text().splitlines() if path.is_file() else [], 1):
        if line.startswith("#") or not line.strip():
            continue
        if line.startswith("- ") and entry:
            entry[2] = " ".join(line[2:].split())
        elif line.startswith("+ ") and entry:
            entry[3] = " ".join(line[2:].split())
        elif line.startswith("  ") and entry and all(entry):
            entries[tuple(entry)] = (entries.get(tuple(entry), "") + " " + line.strip()).strip()
        elif re.match(r"\S+: \S", line):
            entry = [*line.split(": ", 1), "", ""]
        else:
            raise Trouble(f"{path}:{number}: this line is no part of an entry")
    return entries


def reason_for(change, equivalents):
    """Why the change makes no difference; empty if the list does not say so."""
    file, name, before, after = change
    for operator, to in itertools.product((name, "*"), (after, "*")):
        if (file, operator, before, to) in equivalents:
            return equivalents[file, operator, before, to]
    return ""


def stale_entries(equivalents, mutants):
    """Entries of the list that no mutant is like any more."""
    changes = {mutant.change for of_file in mutants.values() for mutant in of_file}
    some = {(file, operator, before, to) for file, name, before, after in changes
            for operator in (name, "*") for to in (after, "*")}
    return [entry for entry in equivalents if entry not in some]
