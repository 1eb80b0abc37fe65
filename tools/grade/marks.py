"""Marks from what the trials found: of each kind of mark, its points and the student's words.

The words that students read (`message`) tell of hidden cases the family and how many failed, never their shapes or
values. What `Trials.run` returns is in trials.py; `reference` is the same of the project's own rungs.
"""
import dataclasses
import re

FAILED_NAMES = {
    "differs": "differ", "declined": "are declined", "timeout": "take too long", "crashed": "crash",
    "memory": "take too much memory", "ended_early": "end before the kernel does",
    "output_missing": "leave outputs unwritten", "illegal_cuda": "call what no kernel may call", "refused": "are refused",
    "not_written": "come to a function that is not written yet", "no_build": "do not compile"}
NOT_WRITTEN = "not written yet"
FEW_BLOCKS = 10                # the family
LEAST_RIGHT = 0.5              # of the hidden cases, before marks for robustness are given
TOLERANCE = 0.01               # of a prediction
HUNT_SHARES = {"problem": 0.7, "mended": 0.3}
# A rung with a bug shows it by a wrong result, or by what the emulator ends it for.
SHOWS_THE_BUG = {"differs", "crashed", "timeout", "memory", "ended_early", "output_missing"}


@dataclasses.dataclass
class Prediction:
    """A number of a student, and what is counted; `trouble` where there is no such number."""
    id: str
    value: float | None
    counted: float | None
    trouble: str = ""

    @property
    def is_right(self):
        return self.value is not None and abs(self.value - self.counted) <= TOLERANCE * abs(self.counted)


def family_of(case):
    """10 of F10.h2; None of c1."""
    found = re.match(r"F(\d+)\.", case)
    return int(found.group(1)) if found else None


def outcome_of(result, rung, case):
    """The entry of a case; one that says why there is none."""
    entry = result["rungs"].get(rung, {"build": "no_build", "cases": {}})
    missing = {"outcome": "no_build" if entry["build"] == "ok" else entry["build"], "detail": "", "orders": [], "public": False}
    return entry["cases"].get(case, missing)


def plain_outcome(entry):
    """How the case ended with the threads in their plain order, which is the first."""
    return entry["orders"][0]["outcome"] if entry["orders"] else entry["outcome"]


def hidden_families(reference):
    """(rung, family) -> names of hidden cases, in the order of rungs and families."""
    families = {}
    for rung, entry in reference["rungs"].items():
        for case, of in sorted(entry["cases"].items()):
            if family_of(case) is not None and not of["public"]:
                families.setdefault((rung, family_of(case)), []).append(case)
    order = list(reference["rungs"])
    return dict(sorted(families.items(), key=lambda item: (order.index(item[0][0]), item[0][1])))


def share(points, passed, parts):
    """Of the points, in equal shares; all of them exactly, if all passed."""
    return points if passed == parts else round(points * passed / parts, 2)


def status_of(score, most):
    return "passed" if score >= most else "failed" if score <= 0 else "partly"


class Marker:
    """All that marks are made of."""

    def __init__(self, assignment, reference, result, predictions):
        self.assignment, self.reference, self.result, self.predictions = assignment, reference, result, predictions

    def all(self):
        grade = {"exact": self.exact, "robust": self.robust, "counter": self.counter, "predict": self.predict,
                 "hunt": self.hunt, "manual": self.manual}
        return [self.entry(number, mark, *grade[mark.kind](mark)) for number, mark in enumerate(self.assignment.marks, 1)]

    def entry(self, number, mark, score, message, cases=(), counter=None):
        return {"id": mark.id, "number": str(number), "name": mark.id.replace("_", " "), "kind": mark.kind,
                "score": score, "max_score": mark.points,
                "status": "not_run" if score is None else status_of(score, mark.points), "visibility": "visible",
                "message": message, "cases": list(cases), "counter": counter}

    # --- Exact

    def exact(self, mark):
        families = hidden_families(self.reference)
        right, lines, cases = 0, [], []
        for (rung, family), names in families.items():
            wrong = [name for name in names if plain_outcome(outcome_of(self.result, rung, name)) != "agrees"]
            right += not wrong
            if wrong:
                lines.append(self.words_of_family(rung, family, names, wrong))
        for rung, entry in self.reference["rungs"].items():
            for name in entry["cases"]:
                found = outcome_of(self.result, rung, name)
                cases.append({"id": name, "public": entry["cases"][name]["public"], "outcome": found["outcome"],
                              "detail": found["detail"]})
        built = [f"{rung}: {entry['message']}" for rung, entry in self.result["rungs"].items()
                 if entry["build"] not in ("ok", "illegal_cuda")]
        return share(mark.points, right, len(families)), "\n".join(built + lines), cases

    def words_of_family(self, rung, family, names, wrong):
        """F3: 3 of 5 hidden cases differ; try F3.p2. And of that public case, what is wrong."""
        outcomes = [plain_outcome(outcome_of(self.result, rung, name)) for name in wrong]
        most = max(dict.fromkeys(outcomes), key=outcomes.count)
        line = f"F{family} of {rung}: {len(wrong)} of {len(names)} hidden cases {FAILED_NAMES[most]}"
        if most in ("no_build", "not_written"):
            blanks = {outcome_of(self.result, rung, name)["detail"] for name in wrong} - {""}
            return line + (": " + ", ".join(sorted(blanks)) if most == "not_written" else "")
        public = [name for name, of, _ in self.assignment.cases if of == rung and family_of(name) == family]
        failing = [name for name in public if outcome_of(self.result, rung, name)["outcome"] not in ("agrees", "no_build")]
        if failing:
            found = outcome_of(self.result, rung, failing[0])
            line += f"; try {failing[0]}: {found['detail'] or FAILED_NAMES[found['outcome']]}"
        elif public:
            line += f"; try problems beside {public[0]}, in other sizes"
        return line

    # --- Robust

    def robust(self, mark):
        """The parts of all rungs that have such cases, in equal shares."""
        parts = [part for rung in self.reference["rungs"] for part in self.parts_of(rung)]
        cases = [{"id": name, "public": of["public"], "outcome": of["outcome"], "detail": of["detail"]}
                 for rung, entry in self.result["rungs"].items() for name, of in entry["cases"].items()
                 if of["outcome"] != "agrees" and plain_outcome(of) == "agrees" and entry["build"] == "ok"]
        cases += [{"id": name, "public": of["public"], "outcome": "illegal_cuda", "detail": entry["message"]}
                  for rung, entry in self.result["rungs"].items() if entry["build"] == "illegal_cuda"
                  for name, of in entry["cases"].items()]
        passed = sum(not trouble for trouble in parts)
        return share(mark.points, passed, len(parts)), "\n".join(dict.fromkeys(filter(None, parts))), cases

    def parts_of(self, rung):
        """Of each part, what is wrong with it; empty where it is right."""
        entry = self.result["rungs"].get(rung, {"build": "no_build", "message": "", "cases": {}})
        names = [name for (of, _), group in hidden_families(self.reference).items() if of == rung for name in group]
        few = [name for name in names if family_of(name) == FEW_BLOCKS]
        counted = self.reference["counters"].get(rung, {})
        parts = 1 + bool(few) + bool(counted)
        if entry["build"] != "ok":
            return [f"{rung}: {FAILED_NAMES.get(entry['build'], entry['build'])}: {entry['message']}"] * parts
        found = [outcome_of(self.result, rung, name) for name in names]
        right = [of for of in found if plain_outcome(of) == "agrees"]
        if len(right) < LEAST_RIGHT * len(names):
            unwritten = any(of["outcome"] == "not_written" for of in found)
            why = NOT_WRITTEN if unwritten else "fewer than half of the hidden cases are right"
            return [f"{rung}: {why}"] * parts
        troubles = [self.trouble_of_orders(rung, right, found)]
        if few:
            wrong = sum(outcome_of(self.result, rung, name)["outcome"] != "agrees" for name in few)
            troubles.append(f"{rung}: {wrong} of {len(few)} hidden cases with few blocks are wrong" if wrong else "")
        if counted:
            troubles.append(self.trouble_under_the_microscope(rung, counted))
        return troubles

    def trouble_of_orders(self, rung, right, found):
        ended = [of["outcome"] for of in found if of["outcome"] in ("crashed", "timeout", "memory", "ended_early")]
        if ended:
            return f"{rung}: {len(ended)} of {len(found)} hidden cases {FAILED_NAMES[ended[0]]}"
        wrong = sum(of["outcome"] != "agrees" for of in right)
        return f"{rung}: {wrong} hidden cases are right in one order of the threads and wrong in another: " \
               f"look for a barrier that is missing (./ladder inspect {rung} names both lines of a race)" if wrong else ""

    def trouble_under_the_microscope(self, rung, counted):
        seen = self.result["counters"].get(rung, {})
        for case in counted:
            of = seen.get(case)
            if of is None or of["outcome"] != "agrees":
                return f"{rung}: {case} {FAILED_NAMES[of['outcome']] if of else 'was not counted'}"
            for sentence in [*of["races"], *of["unwritten"]]:
                return f"{rung}: {case}: {sentence}"
        return ""

    # --- Counters

    def counter(self, mark):
        """In a line from all points at `full` to none at `zero`, of a case that is exact."""
        rung = next(rung for name, rung, _ in self.assignment.cases if name == mark.case)
        of_reference = self.reference["counters"][rung][mark.case]["counters"].get(mark.counter)
        full, zero = bound(mark.full, of_reference), bound(mark.zero, of_reference)
        found = self.result["counters"].get(rung, {}).get(mark.case)
        value = found["counters"].get(mark.counter) if found and found["outcome"] == "agrees" else None
        about = {"name": mark.counter, "value": value, "full": full, "zero": zero}
        cases = [{"id": mark.case, "public": True, "outcome": found["outcome"] if found else "no_build",
                  "detail": found["message"] if found else ""}]
        if value is None:
            outcome = cases[0]["outcome"]
            why = NOT_WRITTEN if outcome == "not_written" else cases[0]["detail"] or FAILED_NAMES.get(outcome, "not counted")
            return 0, f"{mark.case} of {rung}: {why}", cases, about
        score = on_ramp(value, full, zero, mark.points)
        message = f"{mark.counter} of {mark.case} is {value:g}"
        if score < mark.points:
            message += f", and full marks ask for {full:g}; line by line: ./ladder inspect {rung} {self.words_of(mark.case)}"
        return score, message, cases, about

    def words_of(self, case):
        return next(words for name, _, words in self.assignment.cases if name == case)

    # --- Predictions, hunts, and what a person reads

    def predict(self, mark):
        lines = []
        for of in self.predictions:
            if of.value is None:
                lines.append(f"{of.id}: {of.trouble}")
            elif not of.is_right:
                lines.append(f"{of.id}: {of.value:g} is not within 1 % of what is counted; count it: ./ladder inspect")
        right = sum(of.is_right for of in self.predictions)
        return share(mark.points, right, len(self.predictions)) if self.predictions else 0, "\n".join(lines)

    def hunt(self, mark):
        found = self.result["hunt"]
        if found is None:
            return 0, f"hunt: {NOT_WRITTEN}"
        shows = found["problem"]["outcome"] in SHOWS_THE_BUG
        mended = found["mended"]["outcome"] == "agrees"
        lines = []
        if not shows:
            lines.append("hunt/problem.txt: " + self.words_of_hunt(found["problem"], "the file with the bug is right on this problem"))
        if not mended:
            lines.append("the file to be mended: " + self.words_of_hunt(found["mended"], "it is not right yet"))
        score = round(mark.points * (HUNT_SHARES["problem"] * shows + HUNT_SHARES["mended"] * mended), 2)
        return mark.points if shows and mended else score, "\n".join(lines)

    @staticmethod
    def words_of_hunt(found, otherwise):
        return NOT_WRITTEN if found["outcome"] == "not_written" else found["detail"] or otherwise

    def manual(self, mark):
        return None, "a person gives these points"


def bound(of_mark, of_reference):
    """A number, or "1.05 rung": so many times what the project's rung needs, measured on the same machine."""
    found = re.fullmatch(r"([\d.]+) rung", of_mark) if isinstance(of_mark, str) else None
    return float(found.group(1)) * of_reference if found else float(of_mark)


def on_ramp(value, full, zero, points):
    """All points at `full` and beyond, none at `zero`; `zero` may lie on either side."""
    if full == zero:
        return points if value <= full else 0
    part = (zero - value) / (zero - full)
    return points if part >= 1 else 0 if not part > 0 else round(points * part, 2)


def total(marks):
    """(score, max_score), without what a person gives."""
    given = [mark for mark in marks if mark["score"] is not None]
    return round(sum(mark["score"] for mark in given), 2), sum(mark["max_score"] for mark in marks if mark["kind"] != "manual")


def all_failed(assignment, why):
    """The marks of a submission that was not tried: none, and why."""
    marker = Marker(assignment, {"rungs": {}}, {"rungs": {}}, [])
    return [marker.entry(number, mark, None if mark.kind == "manual" else 0, why)
            for number, mark in enumerate(assignment.marks, 1)]
