"""Reads course/<assignment>/assignment.toml."""
import dataclasses
import difflib
import json
import pathlib
import re

import functions

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10: files in JSON stand in (gradescope.py)
    tomllib = None

ROOT = pathlib.Path(__file__).resolve().parents[2]
COURSE = ROOT / "course"
MARK_KINDS = ("exact", "robust", "counter", "predict", "hunt", "manual")


def constant_of(rung):
    """`direct_tiled` of cuda_optimized/conv2d/direct/tiled: its C++ constant."""
    return rung.split("/", 2)[2].replace("/", "_")


class BadInput(Exception):
    """One line that names the parameter, its value and the rule."""


@dataclasses.dataclass
class Blank:
    """A function that the student writes, or the block of a statement."""
    file: str
    exercise: str
    hint: str
    function: str = ""  # the beginning of its definition, up to the bracket of its parameters
    block: str = ""  # or a statement with a block: all of it before the brace
    called: str = ""  # what messages call that block
    stub: str = ""  # what follows NOT_WRITTEN, where nvcc needs a value
    rung: str = ""  # whose cases try it; empty: that of the file

    @property
    def name(self):
        """load_tile"""
        return self.called or re.search(r"(\w+)\s*\($", self.function).group(1)

    def place_in(self, text):
        """Where what is taken out begins and ends."""
        if self.function:
            return functions.body_of(text, self.function)
        return functions.block_behind(text, self.block)

    @property
    def title(self):
        """What NOT_WRITTEN says: "3.1 load_tile"."""
        return f"{self.exercise} {self.name}"


@dataclasses.dataclass
class Edit:
    """A text of a rung's file, once in it, that another one stands in for before blanks are taken out."""
    file: str
    find: str
    replace: str


@dataclasses.dataclass
class Mark:
    """Points for one thing. `full` and `zero` bound a counter: between them the points fall in a line."""
    id: str
    points: int
    kind: str
    rung: str = ""
    case: str = ""
    counter: str = ""
    full: float = 0
    zero: float = 0


@dataclasses.dataclass
class Prediction:
    """A number that the student predicts for a problem of their own."""
    id: str
    question: str
    rung: str
    counter: str
    problem: str  # with {names}, each drawn from the list of that name
    draw: dict


@dataclasses.dataclass
class Assignment:
    name: str
    title: str
    rungs: list
    given: list
    submit: list
    strip_header: list  # (rung or "", titles): paragraphs of the headers of that rung, or of all, that are left out
    blanks: list
    marks: list
    cases: list  # (name, rung, words)
    predictions: list
    hunt_rung: str = ""
    hunt_bugs: list = dataclasses.field(default_factory=list)  # names in tests/planted_bugs, or {name, find, replace}
    expected: bool = False  # right answers in files, because the reference would be the solution
    properties: list = dataclasses.field(default_factory=list)  # functions of check/assignment.hpp
    edits: list = dataclasses.field(default_factory=list)
    solution: str = ""  # of an assignment whose file is free: a rung that solves it
    bugs_elsewhere: list = dataclasses.field(default_factory=list)  # planted in what a file has beside the blanks, and no case tries

    @property
    def folder(self):
        return COURSE / self.name

    def rung_of(self, blank):
        """The rung whose cases try it."""
        return blank.rung or blank.file.rsplit(".", 1)[0]


def tables_of(file):
    """What a TOML file says; without tomllib, what the JSON file beside it says."""
    if tomllib:
        return tomllib.loads(file.read_text())
    beside = file.with_suffix(".json")
    if not beside.is_file():
        raise BadInput(f"{file.relative_to(ROOT)}: Python 3.11 or newer is needed (tomllib)")
    return json.loads(beside.read_text())


def names():
    """The assignments that there are."""
    return sorted(path.parent.name for path in COURSE.glob("*/assignment.toml"))


def read(name):
    if name not in names():
        nearest = difflib.get_close_matches(name, names(), 1, 0)
        raise BadInput(f"assignment = {name}: there is none of that name (nearest: {', '.join(nearest) or 'none'})")
    file = COURSE / name / "assignment.toml"
    try:
        tables = tables_of(file)
        about = tables["assignment"]
        hunt = tables.get("hunt", {"rung": "", "bugs": []})
        cases = [(case, rung, words) for rung, of in tables["cases"].items() for case, words in of.items()]
        assignment = Assignment(
            name, about["title"], about["rungs"], about["given"], about["submit"], strip_of(tables, about),
            [Blank(**table) for table in tables["blank"]], [Mark(**table) for table in tables["mark"]], cases,
            [Prediction(**table) for table in tables.get("predict", [])], hunt["rung"], hunt["bugs"] + hunt.get("bug", []),
            about.get("expected", False), about.get("properties", []),
            [Edit(**table) for table in tables.get("edit", [])], about.get("solution", ""), about.get("bugs_elsewhere", []))
    except (ValueError, KeyError, TypeError) as error:
        raise BadInput(f"{file.relative_to(ROOT)}: {error}") from None
    check(assignment)
    return assignment


def strip_of(tables, about):
    """A list of titles for all rungs, or [[strip_header]] tables, each with its titles and perhaps a rung."""
    if "strip_header" in about:
        return [("", about["strip_header"])]
    return [(table.get("rung", ""), table["titles"]) for table in tables.get("strip_header", [])]


def check(assignment):
    """That the parts agree with one another."""
    def require(holds, what, value, rule):
        if not holds:
            raise BadInput(f"course/{assignment.name}/assignment.toml: {what} = {value}: {rule}")

    for rung in (*assignment.rungs, *assignment.given, *filter(None, [assignment.hunt_rung])):
        require(source_of(rung) is not None, "rung", rung, "has no source file")
    for blank in assignment.blanks:
        require(assignment.rung_of(blank) in assignment.rungs, "rung", assignment.rung_of(blank), "is not in rungs")
        require(blank.file in assignment.submit, "file", blank.file, "is not in submit")
        require(bool(blank.function) != bool(blank.block and blank.called), "blank", blank.exercise,
                "must have a function, or a block and what it is called")
    case_names = [name for name, _, _ in assignment.cases]
    require(len(set(case_names)) == len(case_names), "cases", case_names, "two have one name")
    for name, rung, _ in assignment.cases:
        require(re.fullmatch(r"F([1-9]|10)\.p[1-9]\d*|c[1-9]\d*", name), "case", name, "must be as F3.p2 or c1")
        require(rung in assignment.rungs, "case", name, f"{rung} is not in rungs")
    for mark in assignment.marks:
        require(mark.kind in MARK_KINDS, "kind", mark.kind, f"must be one of {', '.join(MARK_KINDS)}")
        require(mark.kind != "counter" or mark.case in case_names, "case", mark.case, "there is no such case")
    total = sum(mark.points for mark in assignment.marks)
    require(total == 100, "points", total, "all marks together must be 100")


def source_of(rung):
    """The path of a rung's file from the root, or in an assignment's files/; None if there is none."""
    for suffix in (".cu", ".cpp"):
        if (ROOT / (rung + suffix)).is_file() or any(COURSE.glob(f"*/files/{rung}{suffix}")):
            return rung + suffix
    return None


def gpu():
    """The GPU of model times: course/course.toml."""
    return tables_of(COURSE / "course.toml")["gpu"]
