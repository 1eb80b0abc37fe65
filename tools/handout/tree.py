"""Composes the student's repository: the path of each file, and its bytes."""
import hashlib
import hmac
import json
import re
import subprocess

import functions
import golden
from assignment import COURSE, ROOT, BadInput, source_of

PUBLIC_KEY = b"ConvLadder: the public key, which everybody knows"
INCLUDE = re.compile(r'^\s*#include "([^"]+)"', re.MULTILINE)
MOST_BYTES = {"predictions.json": 4096}  # of a submitted file
MOST_BYTES_OTHERWISE = 256 * 1024
EXECUTABLE = {"ladder"}

# What the check is made of, beside what it includes: the runner, the judge, and how `inspect` prints.
ROOTS = ["oracle/runner.cpp", "oracle/reference.cpp", "core/device.cpp", "core/cuda/device.cu", "core/arguments.cpp",
         "ladders/declare.hpp", "command/inspect/listing.cpp", "command/inspect/text.cpp", "command/terminal.cpp"]
CARRIED = ["LICENSE", "cuda_on_cpu/CMakeLists.txt", "cuda_on_cpu/README.md"]
CARRIED_FOLDERS = ["cuda_on_cpu/cmake", "cuda_on_cpu/include", "cuda_on_cpu/microscope", "cuda_on_cpu/src"]

# Of each ladder: its header, its arrays, its problem, the function that tells the arrays of a problem.
LADDERS = {
    "conv2d": ("core/conv2d_problem.hpp", "Conv2dArrays", "Conv2dProblem", "conv2d_signature"),
    "im2col": ("core/im2col_problem.hpp", "Im2colArrays", "Im2colProblem", "im2col_signature"),
    "col2im": ("core/im2col_problem.hpp", "Col2imArrays", "Im2colProblem", "col2im_signature"),
    "conv2d_wgrad": ("core/conv2d_gradients.hpp", "Conv2dWgradArrays", "Conv2dProblem", "conv2d_wgrad_signature"),
    "gemm": ("core/gemm_problem.hpp", "GemmArrays", "GemmProblem", "gemm_signature"),
    "tile_map": ("core/tile_map_problem.hpp", "TileMapArrays", "TileMapProblem", "tile_map_signature"),
    "rulebook": ("core/rulebook_problem.hpp", "RulebookArrays", "RulebookProblem", "rulebook_signature"),
}


# The file of each property.
PROPERTY_FILES = {"adjoint": "check/adjoint.cpp"}


class Draw:
    """What differs from student to student, the same for the same key."""

    def __init__(self, key, assignment, student):
        self.key, self.about = key, f"{assignment}|{student}"

    def number(self, what, count):
        """One of 0 ... count - 1."""
        digest = hmac.new(self.key, f"{self.about}|{what}".encode(), hashlib.sha256).digest()
        return int.from_bytes(digest[:8], "big") % count

    def one_of(self, what, choices):
        return choices[self.number(what, len(choices))]

    def variant(self):
        return hmac.new(self.key, f"{self.about}|variant".encode(), hashlib.sha256).hexdigest()[:16]


def closure(roots, without=()):
    """The files, what they include, and the sources of what they include in core/ and oracle/; but for those `without`."""
    done, waiting = set(), list(roots)
    while waiting:
        path = waiting.pop()
        if path in done or path in without:
            continue
        done.add(path)
        for header in INCLUDE.findall((ROOT / path).read_text()):
            if header.startswith("check/") or not (ROOT / header).is_file():
                continue
            waiting.append(header)
            if header.startswith(("core/", "oracle/")):
                stem = header.rsplit(".", 1)[0]
                waiting += [stem + suffix for suffix in (".cpp", ".cu") if (ROOT / (stem + suffix)).is_file()]
    return done


def without_paragraphs(text, titles):
    """The source without these paragraphs of its header: **Title.** up to the next such one."""
    header = re.match(r"(///.*\n)*", text).group()
    for title in titles:
        header, count = re.subn(rf"^/// \*\*{title}\.\*\*.*\n(?:^///(?! \*\*[A-Z]\w+\.\*\*).*\n)*", "", header, flags=re.M)
        if count != 1:
            raise functions.Mismatch(f"strip_header = {title}: the header has {count or 'no'} such paragraphs")
    return header + text[re.match(r"(///.*\n)*", text).end():]


def emptied(text, blanks):
    """The source with stubs in the place of these bodies, and the bodies."""
    places = sorted((*blank.place_in(text), blank) for blank in blanks)
    bodies = {blank.title: text[begin:end] for begin, end, blank in places}
    for begin, end, blank in reversed(places):
        stub = f"\n  // {blank.exercise}. {blank.hint}\n  NOT_WRITTEN(\"{blank.title}\");\n"
        stub += f"  {blank.stub}\n" if blank.stub else ""
        text = text[:begin] + stub + text[end:]
    return text, bodies


def filled(text, blanks, bodies):
    """The source with the bodies back in their places."""
    places = sorted((*blank.place_in(text), blank.title) for blank in blanks)
    for begin, end, title in reversed(places):
        text = text[:begin] + bodies[title] + text[end:]
    return text


def planted_bug(rung, name):
    """What tests/planted_bugs replaces, by what."""
    file = ROOT / f"tests/planted_bugs/ladders/{rung.split('/')[1]}.cmake"
    entry = re.search(rf"planted_bug\({name}\n  RUNG {rung}\n(?:  WITH [^\n]*\n)?  FIND \[==\[(.*?)\]==\]\n  REPLACE \[==\[(.*?)\]==\]",
                      file.read_text(), re.DOTALL)
    if not entry:
        raise BadInput(f"hunt: bugs = {name}: {file.relative_to(ROOT)} has no such bug of {rung}")
    return entry.group(1), entry.group(2)


def with_bug(rung, bug):
    """The rung's text with the bug in it: one of tests/planted_bugs by its name, or {name, find, replace}."""
    if isinstance(bug, str):
        name, (find, replace) = bug, planted_bug(rung, bug)
    else:
        name, find, replace = bug["name"], bug["find"], bug["replace"]
    text = (ROOT / source_of(rung)).read_text()
    if text.count(find) != 1:
        raise functions.Mismatch(f"hunt: bugs = {name}: its text is {text.count(find)} times in {rung}")
    return text.replace(find, replace)


def definitions_of(assignment, ladders):
    """The references of these ladders, in C++."""
    if assignment.expected:
        return []
    return ["namespace oracle {", "", *(f"Definition {ladder}_definition();" for ladder in ladders), "",
            "const Definition& definition_of(const std::string& ladder) {",
            "  static const std::map<std::string, Definition> definitions = {",
            *(f'      {{"{ladder}", {ladder}_definition()}},' for ladder in ladders), "  };",
            "  return definitions.at(ladder);", "}", "", "}  // namespace oracle", ""]


def table_of(assignment):
    """check/assignment.cpp: the ladders, the rungs of this folder and the exercises."""
    hunted = assignment.hunt_rung
    ladders = list(dict.fromkeys(rung.split("/")[1] for rung in assignment.rungs + ([hunted] if hunted else [])))
    definition = [] if assignment.expected else ['#include "oracle/ladders/definition.hpp"']

    def constant(rung, folder=None):
        top, ladder, name = rung.split("/")
        space = "emulated::" if source_of(rung).endswith(".cu") else ""
        return f"{space}{folder or top}::{ladder}::{name}"

    def declaration(rung, folder=None):
        top, ladder, name = rung.split("/")
        kind = "CUDA_RUNG" if source_of(rung).endswith(".cu") else "CPU_RUNG"
        return f"{kind}({LADDERS[ladder][1]}, {folder or top}, {ladder}, {name})"

    def row(name, source, code):
        return f'      row("{name}", "{source}", AnyImplementation({code})),'

    def ladder_of(name, rows):
        _, _, problem, signature = LADDERS[name]
        begin = f'{{"{name}", "", [](const Problem& problem) {{ return {signature}(std::get<{problem}>(problem)); }}, {{'
        return "\n".join([begin, *rows, "    }}"])

    text = [f"// Written by `./ladder handout {assignment.name}`.", "#include <map>", "#include <stdexcept>", "",
            '#include "check/assignment.hpp"', *(f'#include "{header}"' for header in
                                                 sorted({LADDERS[ladder][0] for ladder in ladders})),
            '#include "ladders/declare.hpp"', *definition, ""]
    text += [declaration(rung) for rung in assignment.rungs]
    text += [declaration(hunted, folder) for folder in ("hunted", "mended") if hunted]
    text += ["", "namespace convladder {", *definitions_of(assignment, ladders), "namespace check {",
             "namespace {", "", "Rung row(std::string name, std::string source, AnyImplementation code) {",
             '  Rung rung{std::move(name), std::move(source), "", "", true};',
             "  const Where where = rung.is_cuda() ? Where::emulated : Where::cpu;",
             "  rung.code[static_cast<std::size_t>(where)] = std::move(code);", "  return rung;", "}", "",
             "}  // namespace", "", "const std::vector<Ladder>& ladders() {",
             "  static const std::vector<Ladder> all = {"]
    for ladder in ladders:
        rows = [row(rung, source_of(rung), constant(rung)) for rung in assignment.rungs if rung.split("/")[1] == ladder]
        if rows:
            text.append("    " + ladder_of(ladder, rows) + ",")
    text += ["  };", "  return all;", "}", "", "const Ladder& hunt() {"]
    if hunted:
        file = source_of(hunted)
        rows = [row("hunted", f"check/hunted/{file}", constant(hunted, "hunted")),
                row("mended", f"hunt/{file.rsplit('/', 1)[1]}", constant(hunted, "mended"))]
        text.append(f"  static const Ladder ladder = {ladder_of(hunted.split('/')[1], rows)};")
    else:
        text.append("  static const Ladder ladder = {};")
    text += ["  return ladder;", "}", "", "const std::vector<Exercise>& exercises() {",
             "  static const std::vector<Exercise> all = {",
             *(f'      {{"{blank.exercise}", "{blank.name}", "{assignment.rung_of(blank)}"}},'
               for blank in assignment.blanks),
             "  };", "  return all;", "}", "", "const std::vector<Property>& properties() {",
             "  static const std::vector<Property> all = {",
             *(f'      {{"{name}", {name}}},' for name in assignment.properties),
             "  };", "  return all;", "}", "", "}  // namespace check", "}  // namespace convladder", ""]
    return "\n".join(text)


def predictions_of(assignment, draw):
    """predictions.json: the student's own problems, with null where a number is to be written."""
    entries = {}
    for prediction in assignment.predictions:
        drawn = {name: draw.one_of(f"predict|{name}", choices) for name, choices in prediction.draw.items()}
        entries[prediction.id] = {"question": prediction.question, "rung": prediction.rung,
                                  "problem": prediction.problem.format(**drawn), "value": None}
    return json.dumps(entries, indent=2) + "\n"


def commit():
    """The commit, with -changed behind it where files differ from it; "unknown" outside of a repository."""
    def git(*words):
        return subprocess.run(["git", "-C", ROOT, *words], capture_output=True, text=True, check=True).stdout.strip()
    try:
        return git("rev-parse", "HEAD") + ("-changed" if git("status", "--porcelain") else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def version():
    return re.search(r"project\(ConvLadder VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text()).group(1)


def digest(content):
    return hashlib.sha256(content).hexdigest()


class Handout:
    """The files of a student's repository, and what was taken out of them."""

    def __init__(self, assignment, key=PUBLIC_KEY, student=""):
        self.assignment = assignment
        self.draw = Draw(key, assignment.name, student)
        self.bodies = {}   # by the blank's title
        self.stripped = {}  # of judged rungs and files with blanks: the text with bodies, without stripped paragraphs
        self.files = {}
        self._add_carried()
        self._add_rungs()
        self._add_check()
        if assignment.hunt_rung:
            self._add_hunt()
        self.add("predictions.json", predictions_of(assignment, self.draw))
        missing = [path for path in assignment.submit if path not in self.files]
        if missing:
            raise BadInput(f"course/{assignment.name}/assignment.toml: submit = {missing[0]}: is no file of the handout")
        self._add_manifest()

    def add(self, path, content):
        self.files[path] = content.encode() if isinstance(content, str) else content

    def _add_carried(self):
        for path in CARRIED:
            self.add(path, (ROOT / path).read_bytes())
        for folder in CARRIED_FOLDERS:
            for path in sorted((ROOT / folder).rglob("*")):
                if path.is_file():
                    self.add(path.relative_to(ROOT).as_posix(), path.read_bytes())
        for path in sorted((COURSE / "student").rglob("*")):
            name = path.relative_to(COURSE / "student").as_posix()
            if path.is_file() and self.needs(name):
                self.add(name, path.read_bytes())
        for path in sorted((self.assignment.folder / "files").rglob("*")):
            if path.is_file():
                self.add(path.relative_to(self.assignment.folder / "files").as_posix(), path.read_bytes())
        self.add("handout.md", (self.assignment.folder / "handout.md").read_bytes())

    def needs(self, name):
        """Whether a file of student/ is for this assignment, too."""
        if name in PROPERTY_FILES.values():
            return any(PROPERTY_FILES[property] == name for property in self.assignment.properties)
        return self.assignment.expected or not name.startswith("check/golden")

    def _add_rungs(self):
        rungs = [source_of(rung) for rung in self.assignment.rungs + self.assignment.given]
        hunted = [self.assignment.hunt_rung] if self.assignment.hunt_rung else []
        ladders = {rung.split("/")[1] for rung in self.assignment.rungs + hunted}
        definitions = [f"oracle/ladders/{ladder}.cpp" for ladder in ladders]
        if self.assignment.expected:
            definitions.clear()
        if "rulebook" in ladders:
            definitions.append("oracle/made_up_sites.cpp")
        # Of the hunt's rung only what it includes: right, it would tell the bug.
        beside = [path for rung in hunted for path in INCLUDE.findall((ROOT / source_of(rung)).read_text())]
        for path in sorted(closure(ROOTS + rungs + definitions + beside, self.without()) - {source_of(rung) for rung in hunted}):
            blanks = self.blanks_of(path)
            text = (ROOT / path).read_text()
            judged = path.rsplit(".", 1)[0] in self.assignment.rungs
            if blanks or judged:
                try:
                    self.stripped[path] = without_paragraphs(text, self.assignment.strip_header if judged else [])
                    text, bodies = emptied(self.stripped[path], blanks)
                except functions.Mismatch as error:
                    raise functions.Mismatch(f"{path}: {error}") from None
                self.bodies |= bodies
            self.add(path, text)

    def without(self):
        """Files that nothing needs here, or that would answer."""
        return {"oracle/samples.cpp"} | ({"oracle/reference.cpp"} if self.assignment.expected else set())

    def blanks_of(self, path):
        return [blank for blank in self.assignment.blanks if blank.file == path]

    def _add_check(self):
        self.add("check/assignment.cpp", table_of(self.assignment))
        lines = ["# The cases: name, rung, problem. F3.p2 is the second public case of family 3; c1 is counted."]
        lines += [f"{name} {rung} {words}" for name, rung, words in self.assignment.cases]
        cases = "\n".join(lines) + "\n"
        self.add("check/cases.txt", cases)
        if self.assignment.expected:
            self.add("expected/answers.txt", golden.answers(cases, closure))
        budgets = [f"{mark.id} {mark.case} {mark.counter} {mark.full}" for mark in self.assignment.marks
                   if mark.kind == "counter"]
        self.add("check/budgets.txt", "".join(line + "\n" for line in budgets))
        self.add("check/submit.txt", "".join(path + "\n" for path in self.assignment.submit))

    def _add_hunt(self):
        rung = self.assignment.hunt_rung
        file = source_of(rung)
        text = with_bug(rung, self.draw.one_of("hunt", self.assignment.hunt_bugs))
        self.add(f"check/hunted/{file}", text)
        self.add(f"hunt/{file.rsplit('/', 1)[1]}", text)
        self.add("hunt/problem.txt", "# The problem on which the rung is wrong, as for ./ladder inspect:\n"
                                     "# --n 1 --c 2 --h 5 ...\n")

    def _add_manifest(self):
        blanks = []
        for blank in self.assignment.blanks:
            text = self.files[blank.file].decode()
            line = text[:text.index(f'NOT_WRITTEN("{blank.title}")')].count("\n") + 1
            blanks.append({"file": blank.file, "function": blank.name, "exercise": blank.exercise,
                           "points": self.points_of_a_blank(), "line": line})
        submit = [{"path": path, "max_bytes": MOST_BYTES.get(path, MOST_BYTES_OTHERWISE)}
                  for path in self.assignment.submit]
        manifest = {"schema": "convladder-handout-1", "assignment": self.assignment.name, "version": version(),
                    "commit": commit(), "variant": self.draw.variant(), "submit": submit, "blanks": blanks,
                    "files": {path: digest(content) for path, content in sorted(self.files.items())}}
        self.add("handout.json", json.dumps(manifest, indent=1) + "\n")

    def points_of_a_blank(self):
        """The exact marks, in equal shares."""
        points = sum(mark.points for mark in self.assignment.marks if mark.kind == "exact")
        return round(points / len(self.assignment.blanks), 2)

    def solution(self, without=()):
        """The files with blanks, with their bodies back; but for the blanks `without`, which stay empty."""
        files = {}
        for path in self.stripped:
            blanks = [blank for blank in self.blanks_of(path) if blank not in without]
            files[path] = filled(self.files[path].decode(), blanks, self.bodies)
        return files
