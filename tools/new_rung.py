#!/usr/bin/env python3
"""Writes the skeleton of a new rung: a copy of the previous rung, for editing.

    new_rung.py LADDER NAME --after RUNG      (./ladder new-rung ...)

RUNG is a rung of the ladder, cuda_optimized/gemm/tiled or just tiled if that is unique. The new file is in the same
folder; after a rung of cuda_naive, in cuda_optimized. It is a copy with an empty header, so that it compiles and
gives correct results from the beginning, and the difference to its neighbour is what you change. A row of the
ladder's table names it, and the ladder's header declares it. `./ladder check files` fails until it contains no TODO.

"""
import argparse
import pathlib
import re
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parent.parent
HEADER = """\
/// @file {file}
/// @brief {ladder}, TODO: the one idea, in a line.
///
/// **The idea.** TODO: two to eight sentences, in the order in which a reader needs them.
///
///     TODO: a small picture
///
/// **Expect.** TODO: the prediction. Loads, bytes, registers; what a profiler would show, and why.
/// **Costs.** TODO: memory, launches, what it declines and why.
/// **Try.** TODO: one exercise.
"""


class Trouble(Exception):
    """What was asked for cannot be done."""


def named(table, ladder, name):
    """The folder and the name of the ladder's rung that is called so: the name below the ladder's folder, "direct/tiled"."""
    rungs = [(folder, "/".join(filter(None, name))) for folder, *name in re.findall(
        r"C(?:PU|UDA)_ROW(?:_IN)?\(\s*(\w+),\s*\w+,\s*(?:(\w+),\s*)?(\w+),\s*\"", table)]
    found = [rung for rung in rungs if name in (rung[1], rung[1].rsplit("/", 1)[-1], f"{rung[0]}/{ladder}/{rung[1]}")]
    if len(found) == 1:
        return found[0]
    known = ", ".join(f"{folder}/{ladder}/{rung}" for folder, rung in (found or rungs))
    raise Trouble(f"after = {name}: must be {'one' if found else 'a rung'} of {known}")


def constant(rung):
    """The C++ constant of a rung: `direct_tiled` of direct/tiled."""
    return rung[1].replace("/", "_")


def words(rung):
    """How a row of the table names a rung below its ladder, as a regular expression."""
    return rung[1].replace("/", r",\s*")


def skeleton(text, ladder, old, new):
    """The text of the new file. @param old, new (folder, name)"""
    lines = text.splitlines(keepends=True)
    header = next(i for i, line in enumerate(lines) if not line.startswith("///"))
    code = "".join(lines[header:])
    suffix = re.search(r"@file \S+\.(\w+)", text).group(1)
    declared = re.search(rf"^(extern const Implementation<\w+> ){constant(old)}(?= =)", code, re.MULTILINE)
    if not declared:
        raise Trouble(f"after = {old[0]}/{ladder}/{old[1]}: has no constant {constant(old)} in the usual form; copy it by hand")
    if old[0] != new[0] and f'#include "{old[0]}/' in code:
        raise Trouble(f"after = {old[0]}/{ladder}/{old[1]}: is made of what {old[0]} alone may include; copy it by hand")
    public = code[code.rindex("}  // namespace\n", 0, declared.start()):declared.start()] if "namespace {" in code else ""
    if re.search(r"^\w.*\) \{", public, re.MULTILINE):
        raise Trouble(f"after = {old[0]}/{ladder}/{old[1]}: defines functions for other files, too; copy it by hand")
    code = code[:declared.start()] + declared.group(1) + constant(new) + code[declared.end():]
    code = re.sub(rf"\b{old[0]}::{ladder} \{{", f"{new[0]}::{ladder} {{", code)
    code = re.sub(rf"(namespace .*){old[0]}::{ladder}$", rf"\g<1>{new[0]}::{ladder}", code, flags=re.MULTILINE)
    return HEADER.format(file=f"{new[1].rsplit('/', 1)[-1]}.{suffix}", ladder=ladder) + code


def with_declaration(header, ladder, old, new, cuda):
    """The ladder's header with a declaration behind that of the old rung."""
    kind = "CUDA" if cuda else "CPU"
    arrays = re.search(rf"C(?:PU|UDA)_RUNG\((\w+), {old[0]}, {ladder}, {constant(old)}\)\n", header)
    at = arrays.end()
    return header[:at] + f"{kind}_RUNG({arrays.group(1)}, {new[0]}, {ladder}, {constant(new)})\n" + header[at:]


def with_row(table, ladder, old, new, cuda):
    """The ladder's table with a row behind that of the old rung, in the same group."""
    kind = "CUDA" if cuda else "CPU"
    # What a row may be wrapped in has an argument before it: winograd(2, ...), needs("sm_80", ...).
    row = re.search(r"(?m)^( *)((?:\w+\((?:[^()\"]|\"[^\"]*\")*?,?\s*)*)"
                    rf"C(?:PU|UDA)_ROW(?:_IN)?\(\s*{old[0]},\s*{ladder},\s*{words(old)},(?:[^\"()]|\"[^\"]*\")*\)", table)
    indent, wrappers = row.group(1), row.group(2)
    end = row.end() + len(re.match(r"\)*", table[row.end():].replace("\n", "")).group(0)[:wrappers.count("(")])
    macro = f"{kind}_ROW_IN" if "/" in new[1] else f"{kind}_ROW"
    path = new[1].replace("/", ", ")
    fresh = f'{indent}{macro}({new[0]}, {ladder}, {path}, "{old[0]}/{ladder}/{old[1]}",\n{indent}         "TODO: the one idea, in a line"),'
    return table[:end] + ",\n" + fresh + table[end:].removeprefix(",")


def write_rung(root, ladder, name, after):
    """Writes the file, its declaration and its row. Returns the paths of the file and of the table."""
    tables = root / "ladders"
    path = tables / f"{ladder}.cpp"
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise Trouble(f"name = {name}: must be small letters, digits and _, a letter first")
    if ladder in ("ladders", "rung_libraries") or not path.is_file():
        known = sorted(p.stem for p in tables.glob("*.cpp") if p.stem not in ("ladders", "rung_libraries"))
        raise Trouble(f"ladder = {ladder}: must be one of {', '.join(known)}")
    table = path.read_text()
    old = named(table, ladder, after)
    family = old[1].rpartition("/")[0]
    new = ("cuda_optimized" if old[0] == "cuda_naive" else old[0], f"{family}/{name}".lstrip("/"))
    source = next(p for p in (root / old[0] / ladder).glob(f"{old[1]}.*") if p.suffix in (".cpp", ".cu"))
    file = root / new[0] / ladder / (new[1] + source.suffix)
    if re.search(rf"_ROW(?:_IN)?\(\s*{new[0]},\s*{ladder},\s*{words(new)},", table) or file.exists():
        raise Trouble(f"name = {name}: {new[0]}/{ladder}/{new[1]} is there already")
    text = skeleton(source.read_text(), ladder, old, new)
    table = with_row(table, ladder, old, new, source.suffix == ".cu")
    header = path.with_suffix(".hpp")
    declarations = with_declaration(header.read_text(), ladder, old, new, source.suffix == ".cu")
    file.parent.mkdir(exist_ok=True)  # of a ladder's first optimised rung
    file.write_text(text)
    path.write_text(table)
    header.write_text(declarations)
    return file, path


def main():
    parser = argparse.ArgumentParser(prog="./ladder new-rung", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ladder")
    parser.add_argument("name")
    parser.add_argument("--after", required=True, metavar="RUNG")
    options = parser.parse_args()
    try:
        file, table = write_rung(ROOT, options.ladder, options.name, options.after)
    except Trouble as trouble:
        print(f"new-rung: {trouble}", file=sys.stderr)
        return 2
    file, table = file.relative_to(ROOT), table.relative_to(ROOT)
    print(textwrap.dedent(f"""\
        {file}: a copy of the rung before it; its header says TODO where you write
        {table}: its row, with the idea to be told; {table.with_suffix('.hpp').name}: its declaration

        ./ladder compare {options.ladder} --rung {file.with_suffix('')}     is it right?
        ./ladder test -R {file.with_suffix('')}     its own tests
        ./ladder format && ./ladder check files     what is still missing
        CONTRIBUTING.md has the checklist."""))
    return 0


if __name__ == "__main__":
    sys.exit(main())
