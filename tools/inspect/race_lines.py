"""How many lines lie between a planted bug and what the microscope says of it (tests/planted_bugs/races.json).

A barrier that is missing in one function parts what is done in others. So an end of a race is also where its function
is called; and as a loop goes round, also where a loop that holds the bug begins and ends. A block in braces is near if
its first or its last line is. Where the bug is in a header, the microscope names the line of the rung's file that calls
what the header has: then that line is the end, and it is near if the bug lies in a function that it calls.
"""
import functools
import os
import re

import extract

NEAR = 3


def bare(line):
    """Without its comment."""
    return re.sub(r"\s*//.*", "", line)


@functools.cache
def blocks_of(lines):
    """First and last line of each block in braces, with the statement that it belongs to."""
    blocks, open_at = [], []
    for i, line in enumerate(lines):
        for character in re.sub(r'"[^"]*"|\'.\'', "", bare(line)):
            if character == "{":
                open_at.append(i)
            elif character == "}" and open_at:
                first = open_at.pop()
                while first > 0 and goes_on(lines[first - 1]):
                    first -= 1
                blocks.append((first, i))
    return blocks


def goes_on(line):
    """Whether a statement goes on behind this line."""
    return bare(line).strip() and not re.search(r"[;{}]\s*$", bare(line)) and not line.lstrip().startswith(("#", "//"))


def function_at(lines, i):
    """The innermost function, or lambda with a name, around a line; None if there is none."""
    found = None
    for first, last in blocks_of(lines):
        if first <= i <= last:
            head = " ".join(map(bare, lines[first:first + 6]))
            name = (re.match(r"\s*(?:template *<[^{]*?> *)?(?:__device__|HOST_DEVICE)[^{;=]*?(\w+)\([^{]*", head)
                    or re.match(r"\s*const auto (\w+) = \[", head))
            if name and (found is None or first > found[0]):
                found = first, name.group(1)
    return found and found[1]


def callers(files, name):
    return [(file, i) for file, lines in files.items() for i, line in enumerate(lines)
            if re.search(rf"\b{name}\b(<[^;()]*>)?\(", bare(line))]


def included(name, files):
    """The file and what it includes of the rungs' folders: {name: lines}."""
    if name not in files and (extract.ROOT / name).is_file():
        files[name] = tuple((extract.ROOT / name).read_text().split("\n"))
        for header in re.findall(r'#include "(cuda_[^"]+)"', "\n".join(files[name])):
            included(header, files)
    return files


def changed_lines(bug, lines):
    """First and last line of what is other with the bug."""
    same = len(os.path.commonprefix([bug.find, bug.replace]))
    behind = len(os.path.commonprefix([bug.find[same:][::-1], bug.replace[same:][::-1]]))
    text = "\n".join(lines)
    begin, end = text.index(bug.find) + same, text.index(bug.find) + len(bug.find) - behind
    return text[:begin].count("\n"), text[:max(begin, end - 1)].count("\n")


def between(bug, said):
    """Lines between the bug and an end of a race. @param said what stands in the end's line @return None: not found"""
    if said in map(str.strip, map(bare, bug.replace.split("\n"))):
        return 0
    files = included(bug.source, {})
    lines = files[bug.file]
    first, last = changed_lines(bug, lines)
    places = {(file, i) for file, own in files.items() for i, line in enumerate(own) if bare(line).strip() == said}
    upwards = {(bug.file, first)}
    nearest, seen = None, set()
    for _ in range(4):  # calls up to here
        if bug.file != bug.source and places & upwards - {(bug.file, first)}:
            return 0
        for file, i in places - seen:
            if file == bug.file:
                lies = lines_between(lines, i, first, last)
                nearest = lies if nearest is None else min(nearest, lies)
        seen |= places
        if nearest is not None or bug.file == bug.source:
            places = {place for file, i in places if (name := function_at(files[file], i)) for place in callers(files, name)}
        upwards |= {place for file, i in upwards if (name := function_at(files[file], i)) for place in callers(files, name)}
    return nearest


def lines_between(lines, i, first, last):
    """From line i, or the largest block around it without the bug, to the bug, or the ends of a loop that holds it."""
    def holds(block):
        return block[0] <= first and last <= block[1]

    blocks = blocks_of(lines)
    own = [block for block in blocks if block[0] <= i <= block[1] and not holds(block)]
    begin, end = min([i, *(block[0] for block in own)]), max([i, *(block[1] for block in own)])
    ends = [line for block in blocks if holds(block) and re.match(r"\s*(for|while|do)\b", lines[block[0]]) for line in block]
    return min(max(a - end, begin - b, 0) for a, b in [(first, last), *((line, line) for line in ends)])
