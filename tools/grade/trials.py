"""Tries a submission: builds it in a sandbox, runs it on cases drawn by a key, counts its memory requests.

    class Trials:
        def __init__(self, assignment, key, isolation="auto", say=print)
            assignment   what tools/handout/assignment.py has read
            isolation    limits, sealed, user, namespace, or auto: the highest that this machine has
            Builds what all submissions share, once, in build/grade/<assignment>; several processes may.
            Raises IsolationMissing before any student's code runs.
        isolation    {level, landlock, seccomp, uid, chroot, namespaces}: what holds
        def run(self, files, folder, cases=None, student=None)
            files     {path: bytes} of the assignment's `submit` files that were handed in; the handout's own stand in
                      for others
            folder    an empty work folder of this submission
            cases     names of the cases to run, hidden and counted ones among them; None: all
            student   whose bug the hunt is about; None: any of the assignment's bugs will do
            returns   {"rungs": {rung: {"build": ok|no_build|illegal_cuda|refused, "message",  # illegal_cuda is run all the same
                                        "cases": {case: {"orders": [{"order", "outcome", "detail"}], "outcome", "detail",
                                                         "public"}}}},
                       "counters": {rung: {case: {"outcome", "counters": {name: number}, "races": [sentence],
                                                  "unwritten": [sentence], "message"}}},
                       "hunt": {"problem": {"outcome", "detail"}, "mended": {"outcome", "detail"}} or None,
                       "seconds": {"build", "run", "count", "hunt", "cpu"}}

An outcome is agrees, differs (detail: array, first wrong index, expected, found), declined, timeout, crashed, memory,
ended_early, output_missing, not_written (detail: the blank's name), or that of the build: no_build, refused; of a counted
case also illegal_cuda, where the microscope does not see what is called. Seconds are the only thing that depends on time or on what runs beside.

"""
import fcntl
import hashlib
import json
import os
import pathlib
import re
import subprocess
import time

from assignment import COURSE, ROOT, source_of
from tree import Draw as DrawOfHandout
from tree import Handout, with_bug

import draw
import tables
import workers

LEVELS = ("limits", "sealed", "user", "namespace")
ORDERS = ("forward", "reverse", "shuffled")
MOST_TIMEOUTS = 2   # of a rung: what is behind them is not run
FIRST_UID = 61000   # of workers at the level user; one a process that grades
MOST_OUTPUTS = 4096  # of a hunt's problem


class IsolationMissing(Exception):
    """This machine does not have the level that is asked for."""


class Judge:
    """The checker's process: a line for a case, a line for its answer."""

    def __init__(self, program, level, folder):
        empty = folder / "empty"
        empty.mkdir(exist_ok=True)
        empty.chmod(0o755)
        uid = FIRST_UID + os.getpid() % 4000
        self.process = subprocess.Popen([program, level, str(uid), empty], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True, env={}, cwd="/")
        self.cpu_seconds = 0.0

    def ask(self, name, worker, rung, words, seed, order=0, counters=(), most_outputs=0):
        program, symbols = worker
        fields = (name, program, symbols, rung, words, seed, order, " ".join(counters), most_outputs)
        self.process.stdin.write("\t".join(map(str, fields)) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"the checker ended with status {self.process.wait()} in case {name}")
        answer = json.loads(line)
        self.cpu_seconds += answer["cpu_seconds"]
        return answer

    def __enter__(self):
        return self

    def __exit__(self, *failure):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()


def write_tree(folder, files):
    """These files, and no others, in the folder; those that have not changed stay untouched."""
    for path, content in files.items():
        file, content = folder / path, content if isinstance(content, bytes) else content.encode()
        if not file.is_file() or file.read_bytes() != content:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
    for file in folder.rglob("*"):
        if file.is_file() and file.relative_to(folder).as_posix() not in files:
            file.unlink()


class Trials:
    def __init__(self, assignment, key, isolation="auto", say=print):
        self.assignment, self.key, self.say = assignment, key, say
        self.folder = ROOT / "build/grade" / assignment.name / "trials"
        self.tree, self.build = self.folder / "tree", self.folder / "build"
        handout = Handout(assignment)
        self.skeleton = handout.files
        self.rungs = assignment.rungs + [rung for rung in [assignment.hunt_rung] if rung and rung not in assignment.rungs]
        self._build(handout)
        self.isolation = self._isolation(isolation, json.loads(self._tool([self.build / "judge", "probe"])))
        jail = workers.Jail(self.build / "jail", "limits" if self.isolation["level"] == "limits" else "sealed", self.tree,
                            self.build)
        self.workers = workers.Workers(self.build, self.tree, jail)

    # --- What all submissions share

    def _build(self, handout):
        self.right = handout.solution()
        for rung in self.rungs:
            if source_of(rung) not in self.right:
                self.right[source_of(rung)] = (ROOT / source_of(rung)).read_text()
        given = [path for path in handout.files if path.startswith(("cuda_naive/", "cuda_optimized/")) and path.endswith(".cu")
                 and path.rsplit(".", 1)[0] not in self.rungs]
        sources = {"RIGHT_KERNELS": [self.folder / "right" / source_of(rung) for rung in self.rungs if source_of(rung).endswith(".cu")],
                   "RIGHT_LOOPS": [self.folder / "right" / source_of(rung) for rung in self.rungs if source_of(rung).endswith(".cpp")],
                   "GIVEN_KERNELS": [self.tree / path for path in given]}
        sources["ORACLE_LADDERS"] = [ROOT / f"oracle/ladders/{ladder}.cpp" for ladder in
                                     dict.fromkeys(tables.ladder_of(rung) for rung in self.rungs)]
        lists = "".join(f"set({name} {' '.join(map(str, paths))})\n" for name, paths in sources.items())
        made = {"tree": handout.files, "right": self.right,
                "tables": {"sources.cmake": lists, "gpu.cpp": tables.gpu_table(), "judge.cpp": tables.table(self.rungs, definitions=True)}
                | {f"worker_{i}.cpp": tables.table([rung], definitions=False) for i, rung in enumerate(self.rungs)}}
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            for name, files in made.items():
                write_tree(self.folder / name, files)
            if not (self.build / "build.ninja").is_file():
                self.say("Building what the submissions share; the first time takes a minute.")
                self._tool(["cmake", "-S", COURSE / "grader", "-B", self.build, "-G", "Ninja", f"-DFOLDER={self.folder}"])
            self._tool(["ninja", "-C", self.build])

    @staticmethod
    def _tool(command):
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
        if done.returncode != 0:
            raise workers.Failed(f"{command[0]}: {(done.stdout + done.stderr)[-3000:]}")
        return done.stdout

    @staticmethod
    def _isolation(wanted, offers):
        """What will hold, of what the machine `offers`."""
        has = {"limits": True, "sealed": offers["landlock"] > 0 and offers["seccomp"],
               "user": offers["root"] and offers["seccomp"], "namespace": offers["namespaces"] and offers["seccomp"]}
        level = max((level for level in LEVELS if has[level]), key=LEVELS.index) if wanted == "auto" else wanted
        if not has[level]:
            raise IsolationMissing(f"isolation = {level}: this machine does not have it")
        above = LEVELS.index(level)
        other_user = above >= LEVELS.index("user") and offers["root"]
        return {"level": level, "landlock": offers["landlock"] if above else 0, "seccomp": above > 0 and offers["seccomp"],
                "uid": other_user, "chroot": other_user, "namespaces": level == "namespace"}

    # --- One submission

    def run(self, files, folder, cases=None, student=None):
        begin = time.monotonic()
        folder = pathlib.Path(folder).resolve()
        own = {path: files.get(path, self.skeleton.get(path)) for path in self.assignment.submit
               if path.endswith((".cu", ".cuh", ".cpp", ".hpp")) and not path.startswith("hunt/")}
        source_folder = folder / "source"
        write_tree(source_folder, own)
        seconds = {"build": 0.0, "run": 0.0, "count": 0.0, "hunt": 0.0, "cpu": 0.0}
        result = {"rungs": {}, "counters": {}, "hunt": None, "seconds": seconds}
        with Judge(self.build / "judge", self.isolation["level"], self.folder) as judge:
            for rung in self.assignment.rungs:
                self._run_rung(rung, source_folder, own, judge, cases, result)
            if self.assignment.hunt_rung and cases is None:
                begin_hunt = time.monotonic()
                result["hunt"] = self._hunt(files, folder / "hunt", judge, student)
                seconds["hunt"] = time.monotonic() - begin_hunt
        seconds["cpu"] = judge.cpu_seconds
        seconds["all"] = time.monotonic() - begin
        return result

    def _run_rung(self, rung, folder, own, judge, wanted, result):
        build, message, made = "ok", "", None
        begin = time.monotonic()
        try:
            source = source_of(rung)
            if source not in own:
                own = own | {source: (self.tree / source).read_bytes()}
                write_tree(folder, own)
            made = self.workers.make(source, self.rungs.index(rung), folder, own)
            if made.illegal:
                build, message = "illegal_cuda", made.illegal
        except workers.NoBuild as failure:
            build, message = failure.kind, failure.message
        built = time.monotonic()
        run_all = draw.hidden_cases(self.assignment, self.key) + draw.public_cases(self.assignment, self.key)
        of_rung = [case for case in run_all if case[1] == rung and (wanted is None or case[0] in wanted)]
        cases, timeouts = {}, 0
        for case in of_rung:
            if not case[0].startswith("c"):
                cases[case[0]] = self._run_case(case, made, judge, build, message, timeouts)
                timeouts += cases[case[0]]["outcome"] == "timeout"
        run = time.monotonic()
        counted = {case[0]: self._count(case, made, judge, build, message) for case in of_rung if case[0].startswith("c")}
        result["rungs"][rung] = {"build": build, "message": message, "cases": cases}
        result["counters"][rung] = counted
        for name, spent in (("build", built - begin), ("run", run - built), ("count", time.monotonic() - run)):
            result["seconds"][name] += spent

    def _run_case(self, case, made, judge, build, message, timeouts):
        name, rung, words, seed = case
        orders = []
        for number, order in enumerate(ORDERS if source_of(rung).endswith(".cu") else ORDERS[:1]):
            if made is None:
                outcome, detail = build, message
            elif timeouts >= MOST_TIMEOUTS or any(of["outcome"] == "timeout" for of in orders):
                outcome, detail = "timeout", "not run: others before it took too long"
            else:
                answer = judge.ask(name, made.plain, rung, words, seed, number)
                outcome, detail = answer["outcome"], answer["detail"]
            orders.append({"order": order, "outcome": outcome, "detail": detail})
        worst = next((of for of in orders if of["outcome"] != "agrees"), orders[0])
        return {"orders": orders, "outcome": worst["outcome"], "detail": worst["detail"], "public": ".p" in name}

    def _count(self, case, made, judge, build, message):
        name, rung, words, seed = case
        if made is None or made.watching is None or made.unseen:
            return {"outcome": build, "counters": {}, "races": [], "unwritten": [], "message": message}
        wanted = list(dict.fromkeys(mark.counter for mark in self.assignment.marks
                                    if mark.kind == "counter" and mark.case == name))
        answer = judge.ask(name, made.watching, rung, words, seed, 0, wanted or ["barriers_per_block"])
        counted = {"outcome": answer["outcome"], "counters": answer["counters"], "races": answer["races"],
                   "unwritten": answer["unwritten"], "message": answer["detail"]}
        if answer["outcome"] == "agrees":
            for array, least in self._least_bytes(case, judge).items():
                if answer["footprint"].get(array, 0) < least:
                    counted |= {"outcome": "refused", "counters": {}, "message":
                                f"{array}: fewer bytes were seen to be touched than a right result needs"}
        return counted

    # --- What the project's own rungs do

    def count_right(self, rung, words, counters):
        """{outcome, detail, counters: {name: number}} of the project's own rung on a problem."""
        worker = self._kept_workers(rung, self.right[source_of(rung)])[1]
        with Judge(self.build / "judge", self.isolation["level"], self.folder) as judge:
            return judge.ask("counted", worker, rung, words, 0, 0, counters)

    def _right_files(self):
        """{path: bytes} of the project's own, in the place of files with blanks."""
        return {path: (self.folder / "right" / path).read_bytes() for path in self.right}

    def _kept_workers(self, rung, text):
        """Workers of a file of ours, made once."""
        tree = {path: content for path, content in self.skeleton.items() if path != "handout.json"}
        about = hashlib.sha256(repr((rung, text, sorted(tree.items()))).encode()).hexdigest()[:32]
        folder = self.folder / "kept" / about
        with (self.folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not (folder / "made").is_file():
                own = self._right_files() | {source_of(rung): text.encode()}
                write_tree(folder, own)
                made = self.workers.make(source_of(rung), self.rungs.index(rung), folder, own)
                (folder / "made").write_text(json.dumps([pair and [str(path) for path in pair] for pair in (made.plain, made.watching)]))
        return json.loads((folder / "made").read_text())

    def _least_bytes(self, case, judge):
        """Of each array, the bytes that the project's own rung touches in a counted case."""
        name, rung, words, seed = case
        made = self._kept_workers(rung, self.right[source_of(rung)])
        about = hashlib.sha256(f"{made}|{words}|{seed}".encode()).hexdigest()
        kept = self.folder / "kept" / f"{about}.json"
        if not kept.is_file():
            answer = judge.ask(name, made[1], rung, words, seed, 0, ["barriers_per_block"])
            if answer["outcome"] != "agrees":
                raise RuntimeError(f"{rung} in {name}: {answer['outcome']}: {answer['detail']}")
            least = {array: bytes for array, bytes in answer["footprint"].items() if array != "workspace"}
            temporary = kept.with_suffix(f".{os.getpid()}")
            temporary.write_text(json.dumps(least))
            temporary.rename(kept)
        return json.loads(kept.read_text())

    # --- The hunt: a problem that shows the bug, and the file without it

    def _hunt(self, files, folder, judge, student):
        rung = self.assignment.hunt_rung
        source = source_of(rung)
        mended = f"hunt/{source.rsplit('/', 1)[1]}"
        found = {"problem": {"outcome": "not_written", "detail": "hunt/problem.txt"},
                 "mended": {"outcome": "not_written", "detail": mended}}
        words, why = hunted_problem(files.get("hunt/problem.txt", b""))
        if words:
            found["problem"] = {"outcome": "refused", "detail": why} if why else self._shows_bug(rung, words, judge, student)
        text = files.get(mended)
        if text is not None and text.decode(errors="replace") not in self._buggy_texts(student):
            own = {source: text}
            # What it includes is the project's: a header may be one that students write.
            write_tree(folder, self._right_files() | own)
            found["mended"] = self._mended(rung, own, folder, judge, None if why else words)
        return found

    def _buggy_texts(self, student):
        bugs = self.assignment.hunt_bugs
        if student is not None:
            bugs = [DrawOfHandout(self.key, self.assignment.name, student).one_of("hunt", bugs)]
        return [with_bug(self.assignment.hunt_rung, bug) for bug in bugs]

    def _shows_bug(self, rung, words, judge, student):
        seed = draw.Draw(self.key, f"{self.assignment.name}|hunt").seed()
        answer = {}
        for text in self._buggy_texts(student):
            worker = self._kept_workers(rung, text)[0]
            for order in range(len(ORDERS) if source_of(rung).endswith(".cu") else 1):
                answer = judge.ask("hunt", worker, rung, words, seed, order, most_outputs=MOST_OUTPUTS)
                if answer["outcome"] == "bad_problem":
                    return {"outcome": "refused", "detail": answer["detail"]}
                if answer["outcome"] not in ("agrees", "declined"):
                    return {"outcome": "differs", "detail": answer["detail"]}
        return {"outcome": answer["outcome"], "detail": answer["detail"]}

    def _mended(self, rung, own, folder, judge, problem):
        """The first outcome that is not `agrees`, on a case of each family and on the student's own problem."""
        try:
            worker = self.workers.make(source_of(rung), self.rungs.index(rung), folder, own, watching=False).plain
        except workers.NoBuild as failure:
            return {"outcome": failure.kind, "detail": failure.message}
        ladder = rung.split("/")[1]
        of_ladder = [case for case in draw.hidden_cases(self.assignment, self.key) if case[1].split("/")[1] == ladder]
        cases = {name.split(".")[0]: (words, seed) for name, _, words, seed in of_ladder}  # the last of each family
        if problem:
            cases["own"] = (problem, draw.Draw(self.key, f"{self.assignment.name}|hunt").seed())
        for words, seed in cases.values():
            answer = judge.ask("mended", worker, rung, words, seed)
            if answer["outcome"] not in ("agrees", "bad_problem"):
                return {"outcome": answer["outcome"], "detail": answer["detail"]}
        return {"outcome": "agrees", "detail": ""}


def hunted_problem(text):
    """The words of hunt/problem.txt without its comments, and why they are refused: they go to a parser of ours."""
    words = " ".join(line for line in text.decode(errors="replace").split("\n") if not line.lstrip().startswith("#")).split()
    if sum(map(len, words)) > 400:
        return words, "hunt/problem.txt: is longer than a problem"
    for word in words:
        if not re.fullmatch(r"--[a-z][a-z-]{0,15}|-?[0-9][0-9,]{0,40}|[a-z_]{1,16}", word):
            return words, f"hunt/problem.txt: {word[:40]!r} is no word of a problem"
    return " ".join(words), ""
