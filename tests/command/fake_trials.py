"""Trials without a build: what a submission would do stands in its own text.

A line `// fake: F3.h2 differs` in a file says how a case of its rung ends; `F3.h2@reverse differs` in one order;
`c1 loads_per_output.x=5` what is counted; `c1 race`; `no_build`, `illegal_cuda` of the whole file, which is run all the
same; `stop` ends the grader's process, `sleep 0.5` takes so long.
"""
import os
import re
import time

ORDERS = ("forward", "reverse", "shuffled")
COUNTED = {"loads_per_output.x": 4.0, "barriers_per_block": 6.0}  # others: what full marks ask for
HIDDEN = 2  # cases of a family
SECRET = "hidden shape 17x23, expected 4711"  # the detail of a hidden case


class IsolationMissing(Exception):
    pass


class Trials:
    runs = 0

    def __init__(self, assignment, key, isolation="auto", say=print):
        if isolation == "namespace":
            raise IsolationMissing("isolation = namespace: this machine has it not")
        self.assignment = assignment
        level = "sealed" if isolation == "auto" else isolation
        self.isolation = {"level": level, "landlock": 4, "seccomp": True, "uid": False, "chroot": False, "namespaces": False}

    def run(self, files, folder, cases=None, student=None):
        Trials.runs += 1
        assert folder.is_dir()
        rungs, counters = {}, {}
        for rung in self.assignment.rungs:
            file = next(path for path in self.assignment.submit if path.startswith(rung))
            text = files.get(file, b"NOT_WRITTEN").decode()
            rungs[rung], counters[rung] = self.rung(rung, text, cases)
        hunt = next((content.decode() for path, content in files.items() if path == "hunt/problem.txt"), None)
        return {"rungs": rungs, "counters": counters, "seconds": {"run": 0.0},
                "hunt": hunt and {"problem": {"outcome": "differs" if "good" in hunt else "not_written", "detail": ""},
                                  "mended": {"outcome": "agrees" if "mended" in hunt else "not_written", "detail": ""}}}

    def rung(self, rung, text, wanted):
        said = dict(re.findall(r"// fake: (\S+)(?: (.*))?$", text, re.MULTILINE))
        if "stop" in said:
            os._exit(77)
        if "raise" in said:
            raise RuntimeError("the judge is out of order")
        time.sleep(float(said.get("sleep", 0)))
        build = next((word for word in ("no_build", "illegal_cuda") if word in said), "ok")
        public = [name for name, of, _ in self.assignment.cases if of == rung]
        hidden = sorted({name.split(".")[0] for name in public if name.startswith("F")})
        names = [name for name in public if name.startswith("F")] + [
            f"{family}.h{rungs_first(self.assignment, rung) + i}" for family in hidden for i in range(1, HIDDEN + 1)]
        cases = {}
        if build != "no_build":
            for name in names:
                if wanted is None or name in wanted:
                    cases[name] = self.case(name, said, ".p" in name, "NOT_WRITTEN" in text)
        counted = {name: self.counted(name, said, "NOT_WRITTEN" in text) for name in public
                   if name.startswith("c") and build != "no_build" and (wanted is None or name in wanted)}
        return {"build": build, "message": said.get(build) or "", "cases": cases}, counted

    def case(self, name, said, public, unwritten):
        orders = []
        for order in ORDERS:
            outcome = "not_written" if unwritten else said.get(f"{name}@{order}", said.get(name, said.get("all", "agrees")))
            detail = "" if outcome == "agrees" else "3.1 load_tile" if unwritten else \
                "y[0][1][2][3]: expected 5, found 7" if public else SECRET
            orders.append({"order": order, "outcome": outcome, "detail": detail})
        worst = next((of for of in orders if of["outcome"] != "agrees"), orders[0])
        return {"orders": orders, "outcome": worst["outcome"], "detail": worst["detail"], "public": public}

    def counted(self, name, said, unwritten):
        outcome = "not_written" if unwritten else "agrees"
        numbers = {mark.counter: COUNTED.get(mark.counter, mark.full) for mark in self.assignment.marks
                   if mark.kind == "counter" and mark.case == name}
        of = said.get(name, "")
        for counter, value in re.findall(r"(\S+)=(\S+)", of):
            numbers[counter] = float(value)
        return {"outcome": outcome, "counters": {} if unwritten else numbers, "message": "",
                "races": ["RAW between line 3 and line 5"] if "race" in of else [], "unwritten": []}


def rungs_first(assignment, rung):
    """Hidden names are told apart by their numbers, as public ones are."""
    return HIDDEN * assignment.rungs.index(rung)
