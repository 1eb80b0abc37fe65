#!/usr/bin/env python3
"""What the microscope says of planted bugs of synchronisation: tests/planted_bugs/races.json.

    planted_races.py [--bug GLOB]... [--record] BUILD

Plants each bug of PROBLEMS in a copy, and looks at it with `convladder inspect --source`. What orders threads is
missing, so there must be a race, told with two lines. --record writes what was said, for docs/mistakes.md. Exit status: 0, or 1 if a bug is not found, or something else is said than is recorded.
"""
import argparse
import fnmatch
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import typing

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "extract"))
import expect  # noqa: E402
import extract  # noqa: E402
import prepare  # noqa: E402

ROOT = extract.ROOT
RECORD = ROOT / "tests/planted_bugs/races.json"

DENSE = "--n 2 --c 6 --h 30 --w 40 --k 6 --r 3 --s 3 --pad 1"
ODD = "--n 1 --c 64 --h 19 --w 19 --k 64 --r 3 --s 3 --pad 1"
PRODUCT = "--m 70 --n 90 --k 100"
SITES = "--shape 5,6,7 --sites 20"
SPARSE = SITES + " --cin 4 --cout 5"
TENSOR = "--n 1 --c 64 --h 20 --w 20 --k 64 --r 3 --s 3 --pad 1 --dtype tf32"
# Those of tests/planted_bugs where something is missing that orders threads, and a problem on which it matters.
PROBLEMS = {
    "dropped_barrier_before_the_reads": DENSE, "dropped_barrier_before_the_writes": DENSE,
    "prefetch_into_the_tile_in_use": DENSE, "async_copy_not_waited_for": DENSE, "empty_group_left_out": DENSE,
    "pass_read_too_early": DENSE, "columns_used_before_all_are_gathered": DENSE,
    "sums_of_a_warp_read_before_they_are_there": ODD, "draft_read_before_it_is_written": ODD + " --dtype tf32",
    "filters_read_before_they_are_turned": "--n 1 --c 8 --h 5 --w 9 --k 8 --r 3 --s 3 --pad 1 --groups 8 --layout nhwc",
    "stage_read_before_its_copies_landed": DENSE, "empty_groups_not_counted": DENSE, "dropped_barrier_in_a_tree": DENSE,
    "tiles_written_while_read": DENSE, "copies_not_waited_for": DENSE,
    "dropped_barrier_after_the_product": PRODUCT, "waits_for_one_group_too_few": PRODUCT,
    "stage_multiplied_before_it_has_landed": PRODUCT + " --dtype tf32",
    "next_stage_waited_for_too_early": "--m 1300 --n 120 --k 520 --dtype bf16",
    "aggregated_place_read_too_early": SITES, "tile_ranked_before_it_is_there": SITES,
    "looked_up_before_all_have_entered": SITES + " --form table",
    "warp_sums_read_too_early": "--shape 20,20,20 --sites 3000",
    "row_fetched_before_its_number_is_there": SPARSE, "rows_multiplied_before_they_have_landed": SPARSE,
    "sums_added_without_atomics": SPARSE, "gathered_rows_not_waited_for": SPARSE,
    "inputs_of_other_lanes_not_waited_for": SPARSE, "chunk_read_before_it_is_there": SPARSE,
    "tile_turned_before_it_is_complete": SITES + " --cin 4",
    "patch_rounded_before_it_has_landed": TENSOR,
    "rows_of_pairs_not_waited_for": "--shape 9,10,11 --sites 600 --cin 64 --cout 64",
    "staged_pairs_read_too_early": "--shape 20,20,20 --sites 3000",
    "stage_filled_before_it_is_read": "--shape 2100 --kernel 1 --sites 2100 --cin 40 --cout 64 --dtype fp16",
    "keys_read_before_they_are_there": SITES + " --cin 4 --cout 5 --dtype fp16",
    # Here the result is right, whatever the order of the threads: a race is all that there is to see.
    "stage_given_back_while_it_is_read": "--shape 9,10,11 --sites 500 --cin 128 --cout 128 --dtype tf32",
}


class Bug(typing.NamedTuple):
    name: str
    rung: str
    file: str  # that is changed
    find: str
    replace: str

    def hash(self, hashes):
        """Of what the record's entry is about. @param hashes of all sources"""
        parts = [PROBLEMS[self.name], self.find, self.replace, *(hashes[file] for file in sorted({self.source, self.file} & hashes.keys()))]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]

    @property
    def source(self):
        return self.rung + ".cu"


def bugs():
    """Those of PROBLEMS."""
    return [planted_bug(name) for name in PROBLEMS]


def planted_bug(name):
    """As the file says that plants it."""
    text = "".join(path.read_text() for path in sorted((ROOT / "tests/planted_bugs/ladders").glob("*.cmake")))
    entry = text[text.index(f"planted_bug({name}\n"):]
    entry = entry[:entry.index("TEACHES")]
    find, replace = re.findall(r"\[==\[(.*?)\]==\]", entry, re.S)
    rung = re.search(r"RUNG (\S+)", entry).group(1)
    file = re.search(r"FILE (\S+)", entry)
    return Bug(name, rung, file.group(1) if file else rung + ".cu", find, replace)


def planted(bug, folder):
    """The rung's file to look at, in a folder. A header that is changed lies below, where the file finds it first."""
    for name in {bug.source, bug.file}:
        text = (ROOT / name).read_text()
        if name == bug.file:
            if text.count(bug.find) != 1:
                raise expect.Mistake(f"{name}: planted bug {bug.name}: its text stands there {text.count(bug.find)} times")
            text = text.replace(bug.find, bug.replace)
        path = folder / (name if name != bug.source else pathlib.PurePosixPath(name).name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder / pathlib.PurePosixPath(bug.source).name


def races_of(build, rungs, bug):
    """The races that are errors, as `inspect --json` writes them, each end with the text of its line."""
    with tempfile.TemporaryDirectory() as folder:
        source = planted(bug, pathlib.Path(folder))
        file = pathlib.Path(folder) / "report.json"
        library = prepare.library_of(build, rungs[bug.rung], source)
        done = subprocess.run([build / "command/convladder", "inspect", bug.rung, *PROBLEMS[bug.name].split(),
                               "--source", source, "--json", file], capture_output=True, text=True,
                              env={**os.environ, "CONVLADDER_INSPECTED": str(library)})
        if done.returncode != 1 or not file.exists():
            raise expect.Mistake(f"planted bug {bug.name}: inspect ended with {done.returncode}: {done.stderr[-300:]}")
        races = [race for race in json.loads(file.read_text())["races"] if race["severity"] == "error"]
        for race in races:
            for end in (race["first"], race["second"]):
                end["text"] = line_of(end)
        return races


def line_of(end):
    """What stands in the line of one end of a race, without its comment; null where there is no such line."""
    path = ROOT / (end["file"] or "")
    if not path.is_file():
        return None
    lines = path.read_text().split("\n")
    return re.sub(r"\s*//.*", "", lines[end["line"] - 1]).strip() if 0 < end["line"] <= len(lines) else None


def entry_of(bug, races, hashes):
    """What the record keeps: the first race."""
    race = races[0]
    return {"rung": bug.rung, "problem": PROBLEMS[bug.name], "hash": bug.hash(hashes), "races": len(races),
            "kind": race["kind"], "array": race["array"] or race["space"] + " memory", "why": race["why"],
            "first": race["first"]["text"], "second": race["second"]["text"]}


def read_record():
    return json.loads(RECORD.read_text()) if RECORD.exists() else {}


def problems_of(hashes):
    """Each a sentence about a bug that is not in the record, or is there as it was before a change."""
    record = read_record()
    found = [f"tests/planted_bugs/races.json: {bug.name} was not looked at as it is now: run"
             f" tools/inspect/planted_races.py --record BUILD" for bug in bugs()
             if record.get(bug.name, {}).get("hash") != bug.hash(hashes)]
    return found + [f"tests/planted_bugs/races.json: {name} is no planted bug" for name in record if name not in PROBLEMS]


def main():
    parser = argparse.ArgumentParser(usage="planted_races.py [--bug GLOB]... [--record] BUILD")
    parser.add_argument("--bug", metavar="GLOB", action="append")
    parser.add_argument("--record", action="store_true")
    parser.add_argument("build", type=pathlib.Path)
    options = parser.parse_args()
    rungs = {rung["rung"]: rung for rung in extract.table_of(options.build)}
    hashes, record, status = expect.hashes_of(options.build), read_record(), 0
    for bug in bugs():
        if not any(fnmatch.fnmatchcase(bug.name, glob) for glob in options.bug or ["*"]):
            continue
        try:
            races = races_of(options.build, rungs, bug)
        except expect.Mistake as mistake:
            print(mistake, file=sys.stderr)
            status = 1
            continue
        if not races or any(not race[end]["text"] for race in races for end in ("first", "second")):
            print(f"planted bug {bug.name}: no race with two lines: {races}", file=sys.stderr)
            status = 1
            continue
        entry = entry_of(bug, races, hashes)
        print(f"{bug.name}: {len(races)}; {entry['kind']} in {entry['array']}: {entry['first']} | {entry['second']}", flush=True)
        if options.record:
            record[bug.name] = entry
        elif entry != record.get(bug.name):
            print(f"planted bug {bug.name}: recorded is {record.get(bug.name)}", file=sys.stderr)
            status = 1
    if options.record:
        RECORD.write_text(json.dumps({name: record[name] for name in PROBLEMS if name in record}, indent=1) + "\n")
    sys.exit(status)


if __name__ == "__main__":
    main()
