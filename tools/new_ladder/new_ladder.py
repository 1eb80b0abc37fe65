#!/usr/bin/env python3
"""Writes the skeleton of a new ladder: all files that it needs, for editing.

    new_ladder.py NAME      (./ladder new-ladder ...)

The skeleton copies numbers. It has a C++ rung and its first CUDA version, a reference, a problem with one size, and
tests; so it builds and is correct from the beginning. Its files are those of skeleton/, with the ladder's name; and
the tables of each program get a row. `./ladder check files` fails until no file contains TODO.

"""
import argparse
import pathlib
import re
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parents[2]
SKELETON = pathlib.Path(__file__).resolve().parent / "skeleton"

# What is written, and of which file of the skeleton.
FILES = {
    "core/{name}_problem.hpp": "problem.hpp",
    "core/{name}_problem.cpp": "problem.cpp",
    "cpu_reference/{name}/direct.cpp": "rung.cpp",
    "cuda_naive/{name}/direct.cu": "rung.cu",
    "ladders/{name}.hpp": "table.hpp",
    "ladders/{name}.cpp": "table.cpp",
    "oracle/ladders/{name}.cpp": "reference.cpp",
    "command/ladders/{name}.cpp": "command.cpp",
    "command/ladders/drawn_{name}.cpp": "drawn.cpp",
    "tests/ladders/{name}.cpp": "tests.cpp",
    "docs/ladders/{name}.md": "page.md",
}
# The tables: lines of which form, and the new ladder's. It comes where the order of letters wants it in a list that has
# that order, else at the end.
LINES = {
    "core/problem.hpp": [(r'#include "core/\w+_problem\.hpp"', '#include "core/{name}_problem.hpp"')],
    "core/array_names.hpp": [(r'#include "core/\w+_problem\.hpp"', '#include "core/{name}_problem.hpp"')],
    "ladders/tables.hpp": [(r"Ladder \w+_ladder\(\); +///.*", "Ladder {name}_ladder();  ///< ladders/{name}.cpp")],
    "ladders/ladders.cpp": [(r"      \w+_ladder\(\),", "      {name}_ladder(),")],
    "oracle/ladders/ladders.cpp": [
        (r"Definition \w+_definition\(\);", "Definition {name}_definition();"),
        (r'      \{"\w+", \w+_definition\(\)\},', '      {{"{name}", {name}_definition()}},')],
    "command/ladders/ladders.cpp": [
        (r"LadderCommand \w+_command\(\);", "LadderCommand {name}_command();"),
        (r'      \{"\w+", \w+_command\(\)\},', '      {{"{name}", {name}_command()}},')],
    "command/ladders/drawn_ladders.cpp": [
        (r"DrawnLadder drawn_\w+\(\);", "DrawnLadder drawn_{name}();"),
        (r'      \{"\w+", drawn_\w+\(\)\},', '      {{"{name}", drawn_{name}()}},')],
    "tests/ladders/ladders.cpp": [
        (r"LadderTests \w+_tests\(\);", "LadderTests {name}_tests();"),
        (r'        \{"\w+", \w+_tests\(\)\},', '        {{"{name}", {name}_tests()}},')],
    "tests/planted_bugs/planted_bugs.cpp": [
        (r"using \w+_arrays = \w+Arrays;", "using {name}_arrays = {Name}Arrays;")],
    "tests/command/program.py": [(r'    "\w+",', '    "{name}",')],
}
# What is no list of lines: a pattern, and what comes in its place.
PLACES = {
    "core/problem.hpp": (r"(using Problem =\s+std::variant<[^>]*)>;", r"\1, {Name}Problem>;"),
    "core/array_names.hpp": (
        r"(\n}}  // namespace convladder\n)\Z",
        "\n/// The same.\ntemplate <class Visit>\nvoid for_each_array({Name}Arrays& arrays, const Visit& visit) {{\n"
        '  visit("x", arrays.x);\n  visit("y", arrays.y);\n}}\n\\1'),
    "core/complete.cpp": (
        r"(\n}}  // namespace convladder\n)\Z",
        "void require_complete(const {Name}Problem& problem, const {Name}Arrays& arrays) {{\n"
        "  check(problem, arrays, {name}_signature);\n}}\n\\1"),
    "docs/reading_paths.json": (r'("builds on": \{{\n)', '\\1  "{name}": [],\n'),
}
# Words of C++, and names that the sources use everywhere.
TAKEN = set("""
    alignas and asm auto bool break case catch char class concept const continue default delete do double else enum
    explicit export extern false float for friend goto if inline int long mutable namespace new not operator or private
    protected public register requires return short signed sizeof static struct switch template this throw true try
    typedef union unsigned using virtual void volatile while xor
    convladder std gpu emulated planted cpu_reference cuda_naive cuda_optimized""".split())


class Trouble(Exception):
    """What was asked for cannot be done."""


def with_line(text, pattern, line):
    """The text with one more line in its list of such lines, which stand one below the other."""
    lines = text.split("\n")
    places = [i for i, there in enumerate(lines) if re.fullmatch(pattern, there)]
    if not places:
        raise Trouble(f"no line has the form {pattern}")
    there = [lines[i] for i in places]
    later = [i for i in places if lines[i] > line] if there == sorted(there) else []
    lines.insert(later[0] if later else places[-1] + 1, line)
    return "\n".join(lines)


def write_ladder(root, name):
    """Writes the files and the rows, all or nothing. Returns the paths of the files and those of the tables."""
    if not re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", name):
        raise Trouble(f"name = {name}: must be small letters and digits, a letter first, with single _ between words")
    if name in TAKEN:
        raise Trouble(f"name = {name}: is a word of C++ or of these sources; take another")
    camel = "".join(word.capitalize() for word in name.split("_"))
    files = {root / path.format(name=name): SKELETON / f"{source}.in" for path, source in FILES.items()}
    folders = [root / folder / name for folder in ("cpu_reference", "cuda_naive", "cuda_optimized")]
    for path in [*files, *folders]:
        if path.exists():
            raise Trouble(f"name = {name}: {path.relative_to(root)} is there already")
    for header in sorted((root / "core").glob("*.hpp")):
        if re.search(rf"\b{camel}(Problem|Arrays)\b", header.read_text()):
            raise Trouble(f"name = {name}: {header.relative_to(root)} has a type {camel}Problem or {camel}Arrays already")
    texts = {path: source.read_text().replace("@name@", name).replace("@Name@", camel) for path, source in files.items()}
    tables = {}
    for path in {**LINES, **PLACES}:
        text = (root / path).read_text()
        try:
            for pattern, line in LINES.get(path, []):
                text = with_line(text, pattern, line.format(name=name, Name=camel))
        except Trouble as trouble:
            raise Trouble(f"{path}: {trouble}") from None
        if path in PLACES:
            pattern, fresh = (part.format(name=name, Name=camel) for part in PLACES[path])
            text, count = re.subn(pattern, fresh, text)
            if count != 1:
                raise Trouble(f"{path}: nothing, or too much, has the form {pattern}")
        tables[root / path] = text
    for path, text in {**texts, **tables}.items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return list(files), list(tables)


def main():
    parser = argparse.ArgumentParser(prog="./ladder new-ladder", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name")
    name = parser.parse_args().name
    try:
        files, tables = write_ladder(ROOT, name)
    except Trouble as trouble:
        print(f"new-ladder: {trouble}", file=sys.stderr)
        return 2
    print("Written, with TODO where you write:")
    for path in files:
        print(f"  {path.relative_to(ROOT)}")
    print("A row each, in:")
    for path in tables:
        print(f"  {path.relative_to(ROOT)}")
    print(textwrap.dedent(f"""
        ./ladder compare {name}     it copies numbers, and is right
        ./ladder format             brings the new lines into form, and README.md's table up to date
        ./ladder test -R {name}     its tests
        ./ladder new-rung {name} NAME --after cuda_naive/{name}/direct     its next rung
        CONTRIBUTING.md has the checklist."""))
    return 0


if __name__ == "__main__":
    sys.exit(main())
