"""The list of changes that make no difference (tests/equivalent_mutants.txt)."""
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

    In the file and in both lines, "..." stands for anything.
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


def _fits(entry, change):
    """Whether an entry of the list is about the change."""
    file, operator, before, after = entry
    return (operator in ("*", change[1]) and (after == "*" or _is_like(after, change[3]))
            and _is_like(before, change[2]) and _is_like(file, change[0]))


def _is_like(pattern, text):
    if "..." not in pattern:
        return pattern == text
    return re.fullmatch(".*".join(map(re.escape, pattern.split("..."))), text) is not None


def reason_for(change, equivalents):
    """Why the change makes no difference; empty if the list does not say so."""
    return next((reason for entry, reason in equivalents.items() if _fits(entry, change)), "")


def stale_entries(equivalents, files, mutants):
    """Entries of the list that no mutant is like any more. `mutants` has those of a file."""
    return [entry for entry in equivalents
            if not any(_fits(entry, mutant.change) for file in files if _is_like(entry[0], file)
                       for mutant in mutants[file])]
