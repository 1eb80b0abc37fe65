"""Composes the student's repository: the path of each file, and its bytes."""
import hashlib
import hmac
import json
import re
import subprocess

import functions
import golden
from assignment import COURSE, ROOT, BadInput, gpu, source_of
from rung_table import table_of
from rung_texts import INCLUDE, emptied, filled, in_one_file, with_bug, without_paragraphs

PUBLIC_KEY = b"ConvLadder: the public key, which everybody knows"
MOST_BYTES = {"predictions.json": 4096}  # of a submitted file
MOST_BYTES_OTHERWISE = 256 * 1024
EXECUTABLE = {"ladder"}

# What the check is made of, beside what it includes: the runner, the comparison, and the output of `inspect`.
ROOTS = ["oracle/runner.cpp", "oracle/reference.cpp", "core/device.cpp", "core/cuda/device.cu", "core/arguments.cpp",
         "ladders/declare.hpp", "command/inspect/listing.cpp", "command/inspect/text.cpp", "command/terminal.cpp"]
CARRIED = ["LICENSE", "cuda_on_cpu/CMakeLists.txt", "cuda_on_cpu/README.md"]
CARRIED_FOLDERS = ["cuda_on_cpu/cmake", "cuda_on_cpu/include", "cuda_on_cpu/microscope", "cuda_on_cpu/src"]

# The file of each property that has one here; others come with their assignment.
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


class ProblemTypes:
    """The types of problems, of which a handout may do without some: those of ladders that are none of its own, and that
    nothing but these files speaks of."""
    FILES = ("core/problem.hpp", "core/array_names.hpp", "core/arguments.hpp", "core/arguments.cpp")

    def __init__(self, left_out):
        """`left_out`: files of core/, such as "fft_problem"."""
        self.headers = [f"core/{name}.hpp" for name in left_out]
        self.files = {f"core/{name}{suffix}" for name in left_out for suffix in (".hpp", ".cpp")}

    def without(self, path, text):
        """A file's text without these types and their arrays."""
        if path not in self.FILES:
            return text
        for header in self.headers:
            text = text.replace(f'#include "{header}"\n', "")
            for name in re.findall(r"^(?:struct|using) (\w+) [{=]", (ROOT / header).read_text(), re.M):
                text = re.sub(rf",\s+{name}\b(?=[,>])", "", text)  # of the variant
                text = re.sub(r"/// The same\.\ntemplate <class Visit>\nvoid for_each_array\("
                              rf"{name}&.*?\n}}\n\n", "", text, flags=re.S)
                text = re.sub(rf"  void find\(std::string_view name, {name}&[^\n]*\n", "", text)
                text = re.sub(rf"void Arguments::find\(std::string_view, {name}&.*?\n}}\n\n", "", text, flags=re.S)
        return text


class Handout:
    """The files of a student's repository, and what was taken out of them."""

    def __init__(self, assignment, key=PUBLIC_KEY, student="", classroom=False, answers=None):
        """`classroom`: with the workflow that GitHub Classroom runs after each push. `answers`: instead of golden.answers."""
        self.answers = answers or golden.answers
        self.assignment = assignment
        self.draw = Draw(key, assignment.name, student)
        self.bodies = {}   # by the blank's title
        self.stripped = {}  # of checked rungs and files with blanks: the text with bodies, edited, without stripped paragraphs
        self.files = {}
        self._add_carried()
        self._add_rungs()
        self._add_check()
        if assignment.hunt_rung:
            self._add_hunt()
        if classroom:
            self.add(".github/workflows/classroom.yml", (COURSE / "classroom/classroom.yml").read_bytes())
        if assignment.predictions:
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

    def is_free(self, path):
        """Whether a file is the assignment's own, and not one of the project."""
        return (self.assignment.folder / "files" / path).is_file()

    def needs(self, name):
        """Whether a file of student/ is for this assignment, too."""
        if name in PROPERTY_FILES.values():
            return any(PROPERTY_FILES.get(property) == name for property in self.assignment.properties)
        return self.assignment.expected or not name.startswith("check/golden")

    def _add_rungs(self):
        rungs = [source_of(rung) for rung in self.assignment.rungs + self.assignment.given
                 if not self.is_free(source_of(rung))]
        hunted = [self.assignment.hunt_rung] if self.assignment.hunt_rung else []
        ladders = {rung.split("/")[1] for rung in self.assignment.rungs + hunted}
        definitions = [f"oracle/ladders/{ladder}.cpp" for ladder in ladders]
        if self.assignment.expected:
            definitions.clear()
        if self.assignment.solution:  # whatever it uses of core/ is there for all
            rungs += [path for path in closure([source_of(self.assignment.solution)]) if path.startswith("core/")]
        if "rulebook" in ladders:
            definitions.append("oracle/made_up_sites.cpp")
        # Of the hunt's rung only what it includes: right, it would tell the bug.
        beside = [path for rung in hunted for path in INCLUDE.findall((ROOT / source_of(rung)).read_text())]
        # The sparse ladders have no such file.
        types = ProblemTypes(["voxelize_problem"] if "rulebook" in ladders else [])
        for path in sorted(closure(ROOTS + rungs + definitions + beside, self.without() | types.files) -
                           {source_of(rung) for rung in hunted}):
            blanks = self.blanks_of(path)
            text = types.without(path, (ROOT / path).read_text())
            rung = path.rsplit(".", 1)[0]
            if blanks or rung in self.assignment.rungs:
                try:
                    self.stripped[path] = self.edited(path, without_paragraphs(text, self.titles_of(rung)))
                    text, bodies = emptied(self.stripped[path], blanks)
                except functions.Mismatch as error:
                    raise functions.Mismatch(f"{path}: {error}") from None
                self.bodies |= bodies
            self.add(path, text)

    def titles_of(self, rung):
        """The paragraphs of its header that are left out."""
        if rung not in self.assignment.rungs:
            return []
        return [title for of, titles in self.assignment.strip_header if of in ("", rung) for title in titles]

    def edited(self, path, text):
        for edit in self.assignment.edits:
            if edit.file == path:
                if text.count(edit.find) != 1:
                    raise functions.Mismatch(f"edit: {edit.find.strip().splitlines()[0]}: is {text.count(edit.find)} times "
                                             "in it, and must be once")
                text = text.replace(edit.find, edit.replace)
        return text

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
        if self.assignment.expected:
            self.add("expected/answers.txt", self.answers(cases, closure))
        lines = ["# What is counted: id, case, counter, and the most that full marks allow.",
                 *(f"budget {mark.id} {mark.case} {mark.counter} {mark.full}" for mark in self.assignment.marks
                   if mark.kind == "counter")]
        self.add("check/cases.txt", cases + ("\n".join(lines) + "\n" if lines[1:] else ""))
        if any(mark.counter == "model_microseconds" for mark in self.assignment.marks):
            self.add("check/gpu.txt", "".join(f"{name} {value}\n" for name, value in gpu().items() if name != "name"))

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
        if self.assignment.solution:
            rung, = self.assignment.rungs
            path = source_of(rung)
            files[path] = self.files[path].decode() if without else in_one_file(self.assignment.solution, rung)
        return files
