"""Proves a handout: its skeleton builds without a warning and says what is not written; its solution is right; nothing
of it is given away.

The build is the student's own, in build/handout/student, where it is kept: the next one compiles what has changed.
"""
import fcntl
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import time

from assignment import ROOT, source_of

STAGE = ROOT / "build/handout/student"
PROVEN = ROOT / "build/handout/proven"  # proofs that held, so that the next student's costs nothing
TOGETHER = 4  # so many lines of a body one after the other give it away
MOST_BYTES, MOST_FILES = 2560 * 1024, 250
MOST_SECONDS = 120  # of a test, once it is built


class Failure(Exception):
    """A proof that fails: why, in a line or more."""


def telling(line):
    """The line without blanks and comments; empty where it tells nothing: brackets, a single word."""
    line = re.sub(r"//.*", "", line)
    return re.sub(r"\s+", "", line) if len(re.findall(r"\w+", line)) > 2 else ""


def telling_lines(text):
    """(number, line) of those that tell something."""
    lines = ((number, telling(line)) for number, line in enumerate(text.split("\n"), 1))
    return [(number, line) for number, line in lines if line]


def leaks_of(handout):
    """Where the handout has as many lines of a body together."""
    runs = {}
    for title, body in handout.bodies.items():
        lines = [line for _, line in telling_lines(body)]
        for i in range(len(lines) - TOGETHER + 1):
            runs[tuple(lines[i:i + TOGETHER])] = title
    leaks = []
    for path, content in sorted(handout.files.items()):
        lines = telling_lines(content.decode(errors="replace"))
        for i in range(len(lines) - TOGETHER + 1):
            title = runs.get(tuple(line for _, line in lines[i:i + TOGETHER]))
            if title:
                leaks.append({"file": path, "line": lines[i][0], "of": title})
    return leaks


def roundtrip(handout):
    """Whether the bodies, put back, give the rungs, but for stripped paragraphs and edits."""
    solution = handout.solution()
    return all(solution[path] == text for path, text in handout.stripped.items())


def removed_lines(handout, blank):
    """Of its body; none of a free file, which was never written."""
    body = handout.bodies.get(blank.title)
    return len(body.strip("\n").split("\n")) if body else 0


class Build:
    """The student's build of a handout."""

    def __init__(self, handout):
        self.builds, self.seconds = 0, 0.0
        self.hunt_rung = handout.assignment.hunt_rung
        STAGE.mkdir(parents=True, exist_ok=True)
        self.lock = (STAGE.parent / "lock").open("w")
        fcntl.flock(self.lock, fcntl.LOCK_EX)  # one proof at a time; given back when the program ends
        self.write(handout.files)
        for path in sorted(STAGE.rglob("*"), reverse=True):  # of another handout
            name = path.relative_to(STAGE).as_posix()
            if path.is_file() and name.split("/")[0] != "build" and name not in handout.files:
                path.unlink()

    def write(self, files):
        """Files that have changed, so that no others are compiled."""
        for name, content in files.items():
            path, content = STAGE / name, content.encode() if isinstance(content, str) else content
            if not path.is_file() or path.read_bytes() != content:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
                path.chmod(0o755 if name == "ladder" else 0o644)

    def write_right_file(self):
        """The hunt's rung as it is without a bug, as if the student had mended it."""
        file = source_of(self.hunt_rung)
        self.write({f"hunt/{file.rsplit('/', 1)[1]}": (ROOT / file).read_bytes()})

    def test(self, *words):
        """`./ladder test WORD...` as a student runs it, and its build."""
        begin = time.monotonic()
        if not (STAGE / "build/build.ninja").is_file():
            self.run(["cmake", "-S", STAGE, "-B", STAGE / "build", "-G", "Ninja"])
        built = self.run(["ninja", "-C", STAGE / "build", "check"])
        self.builds, self.seconds = self.builds + 1, self.seconds + time.monotonic() - begin
        if "warning:" in built.stdout:
            shutil.rmtree(STAGE)  # or the next build would not compile the file, and not warn
            raise Failure("the handout builds with a warning:\n" + "\n".join(
                line for line in built.stdout.split("\n") if "warning:" in line))
        return self.run_within(["./ladder", "test", *words])

    def budgets(self):
        """Lines about counters."""
        begin = time.monotonic()
        self.run(["ninja", "-C", STAGE / "build", "microscope"])
        self.builds, self.seconds = self.builds + 1, self.seconds + time.monotonic() - begin
        return self.run_within(["build/microscope", "budgets"])

    def run_within(self, command):
        try:
            return subprocess.run(command, cwd=STAGE, capture_output=True, text=True, timeout=MOST_SECONDS)
        except subprocess.TimeoutExpired:
            raise Failure(f"{' '.join(command)} in {STAGE} takes more than {MOST_SECONDS} s") from None

    def run(self, command):
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
        if done.returncode != 0:
            lines = (done.stdout + done.stderr).split("\n")
            first = next((i for i, line in enumerate(lines) if re.search("error:|Error|undefined reference", line)), max(0, len(lines) - 20))
            raise Failure("the handout does not build:\n" + "\n".join(lines[first:first + 15]))
        return done


def endings(result):
    """Of each case, how it ended."""
    return dict(re.findall(r"^(F\d+\.p\d+): (.*)$", result.stdout, re.MULTILINE))


def what_proves(handout):
    """All that the proof depends on beside the compiler: the files but for those that only tell the student apart, what
    solves them, and the proof itself."""
    about = {path: content for path, content in handout.files.items() if path not in ("handout.json", "predictions.json")}
    about |= {f"solution/{path}": text.encode() for path, text in handout.solution().items()}
    return about | {"proof": pathlib.Path(__file__).read_bytes()}


def digest_of(files):
    """Of their names and contents, bytes."""
    return hashlib.sha256(b"".join(path.encode() + b"\0" + hashlib.sha256(content).digest()
                                   for path, content in sorted(files.items()))).hexdigest()[:32]


def prove(handout, say):
    """The proof as it is written to --json, perhaps of an earlier call with the very same files. @raises Failure"""
    compiler = subprocess.run([os.environ.get("CXX", "c++"), "--version"], capture_output=True).stdout
    kept = PROVEN / f"{handout.assignment.name}-{digest_of(what_proves(handout) | {'compiler': compiler})}.json"
    if kept.is_file():
        say("Proven before, with the same files and compiler")
        return json.loads(kept.read_text())
    proven = prove_anew(handout, say)
    PROVEN.mkdir(parents=True, exist_ok=True)
    temporary = kept.with_suffix(f".{os.getpid()}")
    temporary.write_text(json.dumps(proven))
    temporary.rename(kept)
    return proven


def prove_anew(handout, say):
    assignment = handout.assignment
    bytes_of_all = sum(map(len, handout.files.values()))
    proof = {"schema": "convladder-handout-proof-1", "assignment": assignment.name, "files": len(handout.files),
             "bytes": bytes_of_all,
             "blanks": [{"file": blank.file, "function": blank.name,
                         "removed_lines": removed_lines(handout, blank)}
                        for blank in assignment.blanks],
             "roundtrip": roundtrip(handout), "leaks": leaks_of(handout)}
    if not proof["roundtrip"]:
        raise Failure("the bodies, put back, do not give the rungs")
    if proof["leaks"]:
        leak = proof["leaks"][0]
        raise Failure(f"{leak['file']}:{leak['line']}: {TOGETHER} lines of {leak['of']}")
    if len(handout.files) > MOST_FILES or bytes_of_all > MOST_BYTES:
        raise Failure(f"{len(handout.files)} files of {bytes_of_all} bytes: at most {MOST_FILES} of {MOST_BYTES}")

    say("Building the student's copy")
    build = Build(handout)
    budgets = sum(mark.kind == "counter" for mark in assignment.marks)
    cases = sum(name.startswith("F") for name, _, _ in assignment.cases)
    proof["skeleton"] = prove_skeleton(handout, build, cases + budgets)
    for blanks in rounds_of(assignment):
        say("Without " + ", ".join(blank.title for blank in blanks))
        prove_without(blanks, handout, build)
    say("With the solution")
    build.write(handout.solution())
    if assignment.hunt_rung:
        build.write_right_file()
    result = build.test("--each")
    wrong = [name for name, ending in endings(result).items() if ending != "agrees"]
    if result.returncode != 0 or wrong or len(endings(result)) != cases:
        raise Failure(f"the solution fails:\n{result.stdout}{result.stderr}")
    if budgets:
        result = build.budgets()
        if result.returncode != 0:
            raise Failure(f"the solution breaks a budget:\n{result.stdout}{result.stderr}")
    if assignment.hunt_rung:
        prove_hunt(handout, build)
    proof["solution"] = {"score": cases + budgets, "max_score": cases + budgets}
    proof["builds"], proof["build_seconds"] = build.builds, round(build.seconds, 1)
    return proof


def prove_skeleton(handout, build, most):
    result = build.test("--each")
    ended = endings(result)
    crashes = sum(ending not in ("agrees", "differs", "declined", "not written") for ending in ended.values())
    crashes += "the program was ended" in result.stderr
    # A problem without a single output launches nothing, and agrees in any case.
    for blank in handout.assignment.blanks:
        if f"{blank.title} is not written yet" not in result.stdout:
            raise Failure(f"the skeleton does not say that {blank.title} is not written:\n{result.stdout}{result.stderr}")
    wrong = [name for name, ending in ended.items() if ending not in ("agrees", "not written")]
    if result.returncode != 1 or crashes or wrong:
        raise Failure(f"the skeleton must end at what is not written, and nothing else:\n{result.stdout}{result.stderr}")
    return {"score": sum(ending == "agrees" for ending in ended.values()), "max_score": most, "crashes": crashes}


def rounds_of(assignment):
    """The blanks, so that those of a round belong to different rungs: each is the only one of its rung."""
    rounds = []
    for blank in assignment.blanks:
        rung = assignment.rung_of(blank)
        place = sum(assignment.rung_of(other) == rung for blanks in rounds for other in blanks)
        if place == len(rounds):
            rounds.append([])
        rounds[place].append(blank)
    return rounds


def prove_without(blanks, handout, build):
    """With these blanks alone, the test names them and no others; all cases of other rungs agree.

    What several rungs include is a blank of all of them.
    """
    build.write(handout.solution(without=blanks))
    result = build.test("--each")
    named = set(re.findall(r"^([\d.]+ \w+) is not written yet$", result.stdout, re.MULTILINE))
    rungs = {handout.assignment.rung_of(blank) for blank in blanks}
    rung_of_case = {name: rung for name, rung, _ in handout.assignment.cases}
    shared = any(blank.file.endswith(".cuh") for blank in blanks)
    wrong = [name for name, ending in endings(result).items()
             if ending not in ("agrees", "not written")
             or ending != "agrees" and not shared and rung_of_case[name] not in rungs]
    reached = {rung_of_case[name] for name, ending in endings(result).items() if ending == "not written"}
    if result.returncode != 1 or named != {blank.title for blank in blanks} or wrong or not rungs <= reached:
        raise Failure(f"without {', '.join(blank.title for blank in blanks)} alone the test must say so, and said:\n"
                      f"{result.stdout}{result.stderr}")


def prove_hunt(handout, build):
    """With the right file in the bug's place, one of the public problems shows the bug."""
    rung = handout.assignment.hunt_rung
    for _, judged, words in handout.assignment.cases:
        if judged.split("/")[1] == rung.split("/")[1]:
            build.write({"hunt/problem.txt": words + "\n"})
            if build.run_within(["build/check", "hunt"]).returncode == 0:
                return
    raise Failure("no public problem shows the hunt's bug, or the right file does not agree")
