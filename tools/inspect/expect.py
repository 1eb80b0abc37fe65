"""What the header of a rung predicts, as lines that a program reads, and what the microscope has counted.

A line is one of

    /// @expect COUNTER NUMBER[, WORDS]
    /// @expect COUNTER ARITHMETIC = NUMBER[, WORDS]
    /// @expect on OPTIONS
    /// @expect time PROBLEM [DTYPE] NUMBER us|ms|s[, WORDS]

A NUMBER without a point is exact; with one, what is counted must be it when rounded to as many digits. ARITHMETIC of
numbers, + - * / and brackets says where the number comes from, and must give it, rounded likewise; WORDS are for the
reader. The lines are about
the ladder's problem (PROBLEMS), or about the one that the last `on` before them describes by options of
`./ladder compare`. The counters: docs/microscope.md.
"""
import fractions
import json
import pathlib
import re
import typing

ROOT = pathlib.Path(__file__).resolve().parents[2]
RECORD = ROOT / "tests/counted.json"
FEWEST_LINES = 3  # of a CUDA rung

# What a ladder's rungs are compared on: small, and of whole tiles. A rung that does not take it says which it takes.
# Of a ladder that is not here it is the program's example.
AS_PRODUCT = "--n 1 --c 16 --h 16 --w 16 --k 64 --r 3 --s 3 --pad 1"  # of a convolution, in tiles of 32 x 32
PROBLEMS = {
    "conv2d": "--n 1 --c 4 --h 36 --w 68 --k 8 --r 5 --s 5",
    "conv2d_dgrad": AS_PRODUCT,
    "conv2d_wgrad": AS_PRODUCT,
    "gemm": "--m 128 --n 128 --k 64",
    "fft": "--n 32 --length 64",
    "im2col": "--c 4 --size 34,66 --kernel 3,3",
    "col2im": "--c 4 --size 34,66 --kernel 3,3",
    "tile_map": "--tiles 16,16,4 --map row_major",
    "rulebook": "--shape 12,12,12 --sites 512",
    "sparse_conv": "--shape 12,12,12 --sites 512 --cin 32 --cout 32",
    "sparse_dgrad": "--shape 12,12,12 --sites 512 --cin 32 --cout 32",
    "sparse_wgrad": "--shape 12,12,12 --sites 512 --cin 32 --cout 32",
    "sparse_max_pool": "--shape 12,12,12 --sites 512 --cin 32",
    "sparse_max_pool_dgrad": "--shape 12,12,12 --sites 512 --cin 32",
    "sparse_avg_pool": "--shape 12,12,12 --sites 512 --cin 32",
    "sparse_global_pool": "--shape 12,12,12 --sites 512 --cin 32",
    "sparse_to_dense": "--shape 12,12,12 --sites 512 --cin 32",
    "voxelize": "--n 4096 --voxel 1 --range -8,-8,-8,8,8,8",
}


class Table(typing.NamedTuple):
    """What a ladder's page shows of all rungs that take a problem."""
    problem: str
    multiply_adds: int  # of the problem
    inputs: tuple  # arrays

    def counters(self):
        return [*(f"lanes.{space}.{operation}" for space, operation in LOADS),
                *(f"loads_per_output.{array}" for array in self.inputs), "barriers_per_block"]


# Where a thread's loads come from; an asynchronous copy loads, too.
LOADS = (("global", "load"), ("global", "async"), ("shared", "load"), ("constant", "load"))
OF_PRODUCT = 64 * 16 * 3 * 3 * 16 * 16  # multiply-adds
TABLES = {
    "conv2d": (Table(PROBLEMS["conv2d"], 8 * 4 * 5 * 5 * 32 * 64, ("x", "weights")),
               Table(AS_PRODUCT, OF_PRODUCT, ("x", "weights"))),
    "conv2d_dgrad": (Table(AS_PRODUCT, OF_PRODUCT, ("dy", "weights")),),
    "conv2d_wgrad": (Table(AS_PRODUCT, OF_PRODUCT, ("x", "dy")),),
    "gemm": (Table(PROBLEMS["gemm"], 128 * 128 * 64, ("a", "b")),),
}

# Rungs whose counts are those of the rung before, and why.
ALIKE = {
    "cuda_optimized/col2im/col2im_strided_steps": "it saves divisions and steps of a loop, in which nothing was loaded",
    "cuda_optimized/gemm/warp_tiles": "which lanes load one address together is not counted",
    "cuda_optimized/gemm/hopper/pdl": "when a kernel begins is not counted",
    "cuda_optimized/gemm/overlapped_epilogue": "it stores as much, and later",
}

SPACES = ("global", "shared", "constant")
OPERATIONS = ("load", "store", "atomic", "async")
COUNTS = ("requests", "lanes", "bytes", "sectors", "sectors_ideal", "wavefronts", "excess")
UNITS = ("request", "lane", "output", "block")
OF_REQUESTS = re.compile(rf"({'|'.join(COUNTS)})(?:_per_({'|'.join(UNITS)}))?\.(\w+)\.({'|'.join(OPERATIONS)})$")
OF_ARRAYS = re.compile(r"(loads_per_output|footprint)\.(\w+)$")
OF_ALL = ("barriers_per_block", "blocks", "launches", "races")
STARTS = re.compile(r"\s*(?://[/!]<?)?\s*[@\\]expect\b\s*(.*)$")
NUMBER = re.compile(r"\d+(?:\.(\d+))?$")
TIME = re.compile(r"time (?P<problem>[\w-]+)(?: (?P<dtype>int32|fp32|tf32|fp16|bf16|fp8))? (?P<text>\d+(?:\.\d+)? (?:us|ms|s))(?:, (?P<words>.*))?$")


class Mistake(Exception):
    """A line that breaks the rules. What it says begins with file and line."""


class Time(typing.NamedTuple):
    """The time that is predicted on one of the problems of ./ladder bench, on an H200. The pages of rungs show it beside the
    measurement; nothing counts it."""
    problem: str
    dtype: str  # None: any
    text: str  # "85 us"
    words: str


class Line(typing.NamedTuple):
    """A prediction."""
    counter: str
    arithmetic: str  # where the number comes from; empty if that is not said
    number: str  # as it is written
    problem: str  # options of compare
    words: str  # for the reader
    place: str  # file:line

    def is_met_by(self, counted):
        return agrees(self.number, counted)


def agrees(number, value):
    """Whether a number is a value, exactly, or rounded to the digits that are written. None is no number."""
    if value is None:
        return False
    digits = NUMBER.match(number).group(1)
    slack = fractions.Fraction(1, 2 * 10 ** len(digits)) if digits else 0
    # Counts are kept with six decimal places.
    return abs(fractions.Fraction(number) - fractions.Fraction(value)) <= slack + fractions.Fraction(1, 10 ** 6)


def value_of(arithmetic):
    """Of numbers, + - * / and brackets, exactly. @throws ValueError"""
    if not re.fullmatch(r"[\d.\s+*/()-]+", arithmetic) or "**" in arithmetic or "//" in arithmetic:
        raise ValueError(arithmetic)
    exact = re.sub(r"\d+(?:\.\d+)?", lambda found: f"F('{found.group()}')", arithmetic)
    try:
        return fractions.Fraction(eval(exact, {"__builtins__": {}, "F": fractions.Fraction}))
    except (SyntaxError, TypeError, ZeroDivisionError) as error:
        raise ValueError(arithmetic) from error


def is_counter(name):
    return bool(name in OF_ALL or OF_REQUESTS.match(name) or OF_ARRAYS.match(name))


def lines_of(path, ladder, text=None):
    """The predictions of a rung's file. @throws Mistake"""
    lines, problem = [], PROBLEMS.get(ladder, "")
    for number, line in enumerate((path.read_text() if text is None else text).split("\n"), 1):
        found = STARTS.match(line)
        if not found:
            continue
        place = f"{path.relative_to(ROOT) if path.is_relative_to(ROOT) else path}:{number}"
        what = found.group(1).strip()
        if what == "time" or what.startswith("time "):
            if not TIME.match(what):
                raise Mistake(f"{place}: @expect time PROBLEM [DTYPE] NUMBER us|ms|s[, WORDS], as in @expect time B4 fp32 85 us")
        elif what == "on" or what.startswith("on "):
            problem = what[2:].strip()
            if not problem.startswith("--"):
                raise Mistake(f"{place}: @expect on OPTIONS: the options of ./ladder compare, as in {PROBLEMS['conv2d']}")
        else:
            lines.append(parsed(what, problem, place))
            if any(other[:1] + other[3:4] == lines[-1][:1] + lines[-1][3:4] for other in lines[:-1]):
                raise Mistake(f"{place}: {lines[-1].counter} has a line already")
    return lines


def times_of(path, text=None):
    """The times that a rung's file predicts."""
    found = (STARTS.match(line) for line in (path.read_text() if text is None else text).split("\n"))
    times = (TIME.match(match.group(1).strip()) for match in found if match)
    return [Time(**match.groupdict()) for match in times if match]


def parsed(what, problem, place):
    counter, _, rest = what.partition(" ")
    if not is_counter(counter):
        raise Mistake(f"{place}: @expect COUNTER NUMBER: there is no counter {counter!r}; docs/microscope.md lists them")
    rest, _, words = rest.partition(",")
    arithmetic, equals, number = (part.strip() for part in rest.rpartition("="))
    if not NUMBER.match(number):
        raise Mistake(f"{place}: @expect COUNTER [ARITHMETIC =] NUMBER[, WORDS]: {number!r} is no number, as in 12 or 1.33")
    if equals:
        try:
            result = value_of(arithmetic)
        except ValueError:
            raise Mistake(f"{place}: {arithmetic!r} is no arithmetic of numbers, + - * / and brackets (another problem"
                          " has a line of its own before: @expect on OPTIONS)") from None
        if not agrees(number, result):
            raise Mistake(f"{place}: {arithmetic} is {float(result):.6g}, not {number}")
    return Line(counter, arithmetic, number, problem, words.strip(), place)


def counted(report, counter):
    """The counter's value in what `inspect --json` wrote; None where it means nothing. Of all blocks, as far as those
    that were looked at tell."""
    kernels, blocks, outputs = report["kernels"], report["blocks"]["run"], report["outputs"]
    if counter in OF_ALL:
        return rounded({"blocks": lambda: blocks,
                        "launches": lambda: sum(kernel["launches"] for kernel in kernels),
                        "races": lambda: sum(race["severity"] == "error" for race in report["races"]),
                        "barriers_per_block": lambda: barriers_of_block(kernels)}[counter]())
    if found := OF_ARRAYS.match(counter):
        what, where = found.groups()
        if what == "footprint":
            return report["footprint"].get(where)
        if where in SPACES:
            lanes = sum(share * site["lanes"] for share, site in sites_of(kernels, where, "load"))
            return rounded(fractions.Fraction(lanes) / outputs) if outputs else None
        return rounded(report["per_output"]["loads"].get(where))
    what, unit, where, operation = OF_REQUESTS.match(counter).groups()
    sites = sites_of(kernels, where, operation)
    if any(site[what] is None for _, site in sites):
        return None
    value = fractions.Fraction(sum(share * site[what] for share, site in sites))
    if unit in ("request", "lane"):
        units = sum(share * site[unit + "s"] for share, site in sites)
    else:
        units = {"output": outputs, "block": blocks, None: 1}[unit]
    return rounded(value / units) if units else None


def sites_of(kernels, where, operation):
    """[(what its counts are multiplied by to stand for all blocks, site)]"""
    return [(blocks_per_counted(kernel), site) for kernel in kernels for site in kernel["sites"]
            if where in (site["space"], site["array"]) and site["op"] == operation]


def blocks_per_counted(kernel):
    """Of a problem that is too large only some blocks are counted, spread evenly."""
    return fractions.Fraction(kernel["blocks"]["run"], max(kernel["blocks"]["counted"], 1))


def barriers_of_block(kernels):
    """How many barriers a block has passed; where several kernels have some, of a block of each together."""
    return sum(fractions.Fraction(kernel["barriers"], kernel["blocks"]["counted"] * -(-volume(kernel["block"]) // 32))
               for kernel in kernels if kernel["barriers"])


def volume(extents):
    return extents[0] * extents[1] * extents[2]


def rounded(value):
    """An integer, or a number with six decimal places."""
    if value is None:
        return None
    return int(value) if value == int(value) else round(float(value), 6)


def all_lines(rungs):
    """{rung: lines} of the CUDA rungs among the rows of `list --json`, but for those with mistakes; and the mistakes."""
    lines, mistakes = {}, []
    for rung in rungs:
        if rung["backend"] == "cuda":
            try:
                lines[rung["rung"]] = lines_of(ROOT / rung["source"], rung["ladder"])
            except Mistake as mistake:
                mistakes.append(str(mistake))
    return lines, mistakes


def wanted(rung, rungs, lines):
    """{problem: counters} that a rung is counted for: those of its lines, of its ladder's tables, and of the lines of the
    rungs after it, which must differ. @param rung a row of `rungs` @param lines see all_lines()"""
    counters = {}
    after = [other["rung"] for other in rungs if other["previous"] == rung["rung"]]
    for line in (line for name in (rung["rung"], *after) for line in lines.get(name, ())):
        of_problem = counters.setdefault(line.problem, [])
        of_problem += [line.counter] if line.counter not in of_problem else []
    for table in TABLES.get(rung["ladder"], ()):
        of_problem = counters.setdefault(table.problem, [])
        of_problem += [counter for counter in table.counters() if counter not in of_problem]
    return counters


# --- What was counted, as tests/counted.json keeps it

def read_record():
    """Of each rung the hash of its source, and what was counted: {problem: {counter: value}}, null for a problem that it
    declines."""
    return json.loads(RECORD.read_text()) if RECORD.exists() else {}


def hashes_of(build):
    """Of each source, as the build has hashed it (provenance/source_hash.hpp: comments do not count)."""
    text = (build / "provenance/source_hashes.inc").read_text()
    return dict(re.findall(r'\{"(.*?)", "(\w+)"\}', text))


def is_stale(entry, source_hash, counters):
    """Whether a rung's entry in the record (None: there is none) is not about this source, or lacks a counter."""
    if entry is None or entry["source_hash"] != source_hash:
        return True
    counts = entry["counted"]
    return any(problem not in counts or not set(names) <= set(counts[problem] or names)
               for problem, names in counters.items())


def problems_of(rungs, hashes):
    """Each a sentence about a header that says too little, or something else than what was counted, or about a count that
    is of another source. @param rungs the rows of `list --json`"""
    record = read_record()
    lines, found = all_lines(rungs)
    for rung in rungs:
        mine, entry = lines.get(rung["rung"]), record.get(rung["rung"])
        if mine is None:
            continue
        if len({line.counter for line in mine if line.counter != "races"}) < FEWEST_LINES:
            found.append(f"{rung['source']}: has {len(mine)} lines @expect; there must be {FEWEST_LINES} with counters of their"
                         " own, beside races (docs/microscope.md)")
        if mine and is_stale(entry, hashes[rung["source"]], wanted(rung, rungs, lines)):
            found.append(f"{rung['source']}: what lines @expect predict was not counted of it as it is now: run"
                         " ./ladder check expect --record")
            continue
        found += [f"{line.place}: @expect {line.counter} {line.number}, but {count_in(entry, line)} was counted on"
                  f" {line.problem}" for line in mine if not line.is_met_by(count_in(entry, line))]
        before = record.get(rung["previous"])
        if mine and before and all(line.is_met_by(count_in(before, line)) for line in mine) != (rung["rung"] in ALIKE):
            found.append(f"{rung['source']}: " + (
                "its lines @expect tell it from the rung before: its entry in ALIKE can go" if rung["rung"] in ALIKE else
                f"all its lines @expect are as true of {rung['previous']}: say what differs"))
    for name in record:
        if name not in {rung["rung"] for rung in rungs}:
            found.append(f"{RECORD.relative_to(ROOT)}: {name} is no rung: run ./ladder check expect --record")
    return found


def count_in(entry, line):
    """What the record has for a prediction; None where there is nothing."""
    return (entry["counted"].get(line.problem) or {}).get(line.counter)
