"""Which planted bug a wrong submission is most like: the bug that fails the same cases, in the same way.

The suite plants bugs in the rungs (tests/planted_bugs). Each of those in a file that students write is tried once as if
it had been handed in; what fails then is its signature.
"""
import fcntl
import hashlib
import json
import re
import shutil

from assignment import ROOT, source_of
from predictions import BUILD, project_files

MOST = 5          # bugs that are named
LEAST_MATCH = 0.3
NO_MISTAKE = ("agrees", "not_written", "no_build", "illegal_cuda", "refused")  # outcomes that no planted bug has
PLANTED = re.compile(r"planted_bug\((\w+)\n(.*?)\n  FIND \[==\[(.*?)\]==\]\n  REPLACE \[==\[(.*?)\]==\]", re.DOTALL)


class NotFit(Exception):
    """This machine does not get right what is right."""


def planted_bugs(assignment):
    """name -> (file, text with the bug), of all bugs of the assigned rungs that stand in a file that students write."""
    bugs = {}
    written = project_files(assignment)
    for rung in assignment.rungs:
        table = ROOT / f"tests/planted_bugs/ladders/{rung.split('/')[1]}.cmake"
        for name, options, find, replace in PLANTED.findall(table.read_text() if table.is_file() else ""):
            words = options.split()
            of = dict(zip(words[::2], words[1::2]))
            file = of.get("FILE", source_of(rung))
            if of["RUNG"] != rung or file not in written or name in assignment.bugs_elsewhere:
                continue
            text = written[file].decode()
            if text.count(find) == 1:
                bugs[name] = (file, text.replace(find, replace).encode())
    return bugs


def signature(result):
    """What fails: three lists, each finer than the one before. Empty: nothing does."""
    cases, endings, values = [], [], []
    for rung, entry in result["rungs"].items():
        for case, of in entry["cases"].items():
            if of["outcome"] in NO_MISTAKE:
                continue
            cases.append([rung, case])
            for order in of["orders"]:
                endings.append([rung, case, order["order"], order["outcome"]])
                if order["outcome"] != "agrees":
                    values.append([rung, case, order["order"], order["detail"]])
    for rung, counted in result["counters"].items():
        for case, of in counted.items():
            endings += [[rung, case, what] for what in ("races", "unwritten") if of[what]]
            if of["outcome"] not in NO_MISTAKE:
                endings.append([rung, case, of["outcome"]])
    return [sorted(cases), sorted(endings), sorted(values)]


def similarity(a, b):
    """1 if the same fails in the same way, 0 if nothing in common does: the mean of what both have of what either has."""
    parts = []
    for of_a, of_b in zip(a, b):
        one, other = {tuple(item) for item in of_a}, {tuple(item) for item in of_b}
        if one | other:
            parts.append(len(one & other) / len(one | other))
    return sum(parts) / len(parts) if parts else 0


def nearest(found, signatures):
    """The bugs most like it, best first. `found` and each of `signatures` (by name) are signatures."""
    if not any(found):
        return []
    matches = [(round(similarity(found, of), 2), name) for name, of in signatures.items() if any(of)]
    best = sorted(matches, key=lambda match: (-match[0], match[1]))
    return [{"bug": name, "match": match} for match, name in best if match >= LEAST_MATCH][:MOST]


class Kept:
    """Results of trials of the project's own files, each tried once and kept by what it depends on."""

    def __init__(self, assignment, key, about, trials):
        """`about`: whatever else results depend on: the compiler, the handout's files."""
        self.assignment, self.trials = assignment, trials
        self.about = hashlib.sha256(key + about.encode()).hexdigest()
        self.folder = BUILD / assignment.name / "kept"

    def place(self, files):
        of_files = repr([self.about, sorted(files.items())]).encode()
        return self.folder / f"{hashlib.sha256(of_files).hexdigest()}.json"

    def result(self, files, *, wait=True):
        """What Trials.run says of these files; None if somebody else is trying them and `wait` is false."""
        place = self.place(files)
        if not place.is_file():
            self.folder.mkdir(parents=True, exist_ok=True)
            with place.with_suffix(".lock").open("w") as lock:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
                except BlockingIOError:
                    return None
                if not place.is_file():
                    scratch = place.with_suffix(".tried")
                    scratch.mkdir(exist_ok=True)
                    temporary = place.with_suffix(".new")
                    temporary.write_text(json.dumps(self.trials.run(files, scratch)))
                    temporary.rename(place)
                    shutil.rmtree(scratch, ignore_errors=True)
        return json.loads(place.read_text())

    def reference(self):
        """Of the project's own rungs. @raises NotFit if they are not correct: then nothing can be graded here."""
        result = self.result(project_files(self.assignment))
        for rung, entry in result["rungs"].items():
            if entry["build"] != "ok":
                raise NotFit(f"the project's own {rung} does not build here: {entry['message']}")
            for case, of in [*entry["cases"].items(), *result["counters"].get(rung, {}).items()]:
                if of["outcome"] != "agrees":
                    raise NotFit(f"the project's own {rung} does not agree in case {case} ({of['outcome']}): "
                                 "nothing can be graded here")
        return result

    def signatures(self):
        """The signature of each planted bug. Several processes share the work: each first tries bugs that no other process tries."""
        project, bugs = project_files(self.assignment), planted_bugs(self.assignment)
        handed_in = {name: project | {file: text} for name, (file, text) in bugs.items()}
        for files in handed_in.values():
            self.result(files, wait=False)
        return {name: signature(self.result(files)) for name, files in handed_in.items()}
