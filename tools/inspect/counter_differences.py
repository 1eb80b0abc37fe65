"""Differences between the microscope's counts of rungs and a profiler's, with causes:
benchmarks/counters/differences.json.

For each counter of a rung that is not within TOLERANCE, the file has both numbers, their ratio, and a cause from
CAUSES. compare_counters.py writes the numbers; a person determines the cause from the kernel and nvcc's output, and
`because` describes the observation.
"""
import json
import pathlib
import tomllib

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "benchmarks" / "counters"
COMPARISON = FOLDER / "comparison.json"
DIFFERENCES = FOLDER / "differences.json"
TOLERANCE = 0.05

CAUSES = {
    "merged": "the compiler combines accesses to adjacent elements into one wider instruction, and the microscope does not",
    "split": "the compiler generates several instructions for one access to a vector or a struct",
    "predicated": "a warp executes instructions in which no lane is active; the microscope counts only those with an active lane",
    "branches": "loads of adjacent elements, each in a branch of its own, which the microscope combines and the compiler does not",
    "divergence": "lanes of different branches continue together later than in the order of the source, or not at all",
    "moved": "the compiler moves an access that precedes a branch into the branch, which only some warps execute",
    "order of threads": "the number of attempts of an atomic operation depends on the order of the threads, also in the emulator",
    "unseen structs": "g++ does not report loads of a struct that is passed by value, or stores of a struct that a function returns",
    "wavefronts of copies": "some asynchronous copies of 16 bytes take more wavefronts in the profile than by the rule that all"
                            " microbenchmarks follow; their requests and sectors agree",
    "wavefronts of wide loads": "for loads of 16 bytes the profiler counts other wavefronts than groups of 8 lanes, by a rule that"
                                " the microbenchmarks do not show",
    "operand A in registers": "for `wgmma` with operand A in registers, the profiler counts half of the wavefronts for"
                              " operand B, by a rule that no microbenchmark shows",
    "not found": "no cause was found",
}


def differs(ours, theirs):
    return abs(ours - theirs) > TOLERANCE * max(ours, theirs)


def differing(comparison):
    """{(rung, counter): (ours, theirs)} of the pairs that are not within the tolerance."""
    return {(name, counter): tuple(pair) for name, rung in comparison["rungs"].items()
            for counter, pair in rung["counters"].items() if differs(*pair)}


def differing_as_written(comparison):
    """The same of what is written, where no neighbours are joined (docs/microscope.md)."""
    return differing({"rungs": {name: {"counters": {counter: (rung["as_written"].get(counter, ours), theirs)
                                                    for counter, (ours, theirs) in rung["counters"].items()}}
                                for name, rung in comparison["rungs"].items()}})


def rungs_of_assignments():
    """Those of the course that are counted for marks, and that a free kernel is measured against; and all that an
    assignment names: also those that are given, or have a bug to hunt."""
    marked, named = set(), set()
    for file in (ROOT / "course").glob("*/assignment.toml"):
        course = tomllib.loads(file.read_text())
        assignment = course["assignment"]
        marked.update(assignment["rungs"], [assignment.get("solution")])
        named.update(assignment.get("given", []), [course.get("hunt", {}).get("rung")])
    return marked, marked | named


def of_assignments(comparison):
    """As in "75 of 82 counters within 5%, with those that are given or hunted in 89 of 99"."""
    def near(rungs):
        pairs = [pair for name in rungs for pair in comparison["rungs"].get(name, {"counters": {}})["counters"].values()]
        return f"{sum(not differs(*pair) for pair in pairs)} of {len(pairs)}"

    marked, named = rungs_of_assignments()
    return f"{near(marked)} counters within {TOLERANCE:.0%}, with those that are given or hunted in {near(named)}"


def read():
    return json.loads(DIFFERENCES.read_text()) if DIFFERENCES.exists() else []


def refreshed(comparison):
    """Writes the file with the numbers of a comparison, and returns its entries. Causes are kept; a new difference has
    none yet."""
    old = {(entry["rung"], entry["counter"]): entry for entry in read()}
    entries = []
    for (rung, counter), (ours, theirs) in differing(comparison).items():
        before = old.get((rung, counter), {})
        entries.append({"rung": rung, "counter": counter, "ours": ours, "profiler": theirs, "ratio": ratio(ours, theirs),
                        "cause": before.get("cause"), "because": before.get("because")})
    DIFFERENCES.write_text(text_of(entries))
    return entries


def ratio(ours, theirs):
    return round(ours / theirs, 3) if theirs else None


def problems_of(comparison, entries):
    """Each a sentence about a difference that is not listed with its cause, or about an entry that is none."""
    found, differences = [], differing(comparison)
    for entry in entries:
        pair, name = differences.pop((entry["rung"], entry["counter"]), None), f"{entry['rung']}, {entry['counter']}"
        if pair is None:
            found.append(f"{name}: listed, but within {TOLERANCE:.0%}, or listed twice")
            continue
        if (entry["ours"], entry["profiler"], entry["ratio"]) != (*pair, ratio(*pair)):
            found.append(f"{name}: lists other numbers than {pair[0]} and {pair[1]}")
        if entry["cause"] not in CAUSES or not entry["because"]:
            found.append(f"{name}: {pair[0]} here, {pair[1]} in the profile, and no cause")
    return found + [f"{rung}, {counter}: {ours} here, {theirs} in the profile, but not listed"
                    for (rung, counter), (ours, theirs) in differences.items()]


def problems_of_record():
    return problems_of(json.loads(COMPARISON.read_text()), read())


def text_of(value):
    return json.dumps(value, indent=1) + "\n"
