#!/usr/bin/env python3
"""Small changes made by a program in every rung: does that rung's tests find them?

    mutants.py [options] BUILD      (./ladder check mutants; BUILD is build/cpu, with everything built)

A mutant is a rung's source, or a file of the rungs' folders that it includes, with one small change of
tools/mutation.py. Its unit is compiled as in the build, takes the place of the original in its folder's
library, and the suite is run on it: the tests of that rung, of rungs that call it, of others that include the
file, then all tests that are no single rung's, and those of the rung once more so that undefined behaviour shows. It is

- caught     if a test fails, the program ends by a signal, or it takes ten times as long as the original;
- survived   if everything passes: a hole in the suite, or a change that makes no difference;
- equivalent if the compiler makes the same code of it, as in the build or with -O2 (Papadakis et al.,
             Trivial Compiler Equivalence, ICSE 2015), or tests/equivalent_mutants.txt says why it is;
- GPU alone  if that list says that nothing but a GPU shows it: not caught, but known;
- invalid    if it does not compile. This one and equivalent ones do not count in the score.

The sample is drawn by a seed, from all rungs and from all operators evenly. Results are kept in
BUILD/mutants/results.jsonl, and a later run goes on from there: what was caught stays so while the rung's
code is the same, what survived while the tests are, too. Exit status 1: some mutant survived; 2: the tool
cannot tell, since an unchanged rung does not pass, for example.
"""
import argparse
import collections
import fnmatch
import hashlib
import itertools
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
import time

sys.dont_write_bytecode = True
import mutation  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDERS = ("cpu_reference", "cuda_naive", "cuda_optimized")
MOST_MEMORY = 6 << 30  # bytes of data of a program under test: a changed size must not take the whole machine
TIMES_AS_LONG = 10
# What of ./ladder check sanitize a single unit can have: undefined behaviour ends the program.
SANITIZED = ("-O1", "-fsanitize=undefined", "-fno-sanitize=vptr", "-fsanitize-undefined-trap-on-error")
# How reasons in the list of equivalent mutants begin that tell of those which only a GPU shows.
GPU_ALONE = ("Large: ", "Blocks: ")
LAST_ONES = "the rest of the suite"


class Trouble(Exception):
    """The tool cannot do its work."""


def digest(*paths):
    return hashlib.sha1(b"".join(pathlib.Path(path).read_bytes() for path in paths)).hexdigest()


# --- Rungs and the files that they are made of ------------------------------------------------------------


def included_files(file, known):
    """The file and all that it includes from the rungs' folders, as paths from the root."""
    if file not in known:
        known[file] = {file}
        for name in re.findall(r'^#include "([^"]+)"', (ROOT / file).read_text(), re.MULTILINE):
            if name.startswith(FOLDERS) and (ROOT / name).is_file():
                known[file] |= included_files(name, known)
    return known[file]


class Rung:
    """A rung, and how the build makes it."""

    def __init__(self, row, commands, known):
        self.name, self.ladder, self.source = row["rung"], row["ladder"], row["source"]
        self.files = sorted(included_files(self.source, known))
        self.where = "cpu" if self.source.endswith(".cpp") else "emulated"
        self.tests = [f"{self.name}.{self.where}", f"{self.name}.{self.where}.identities"]
        self.library = "librungs_" + self.source.rsplit("/", 1)[0].replace("/", "_") + ".so"
        self.command, self.unit = commands[self.source]

    def compile(self, build, source, output, overlay, flags=()):
        """Compiles the unit with `source` for its own file, and headers from `overlay` first. False if it does
        not compile."""
        words = [word for word in self.command if not flags or not re.match(r"-O|-Winvalid-pch", word)]
        if flags and "-include" in words:  # no precompiled header fits other options
            at = words.index("-include")
            del words[at:at + 2]
        words[words.index("-o") + 1] = str(output)
        words[words.index("-c") + 1] = str(source)
        command = [*words, *flags, "-w", "-iquote", str(overlay)]
        return subprocess.run(command, cwd=build, capture_output=True).returncode == 0

    def original_object(self, build):
        return build / self.command[self.command.index("-o") + 1]


def rungs_of(build):
    """All rungs of the table, by the build's compile commands."""
    commands = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        file = pathlib.Path(entry["file"])
        source = file
        if "_objects.cuda_on_cpu/" in entry["file"] and not file.name.startswith("marker_"):
            source = pathlib.Path(re.search(r'#include "(.*)"', file.read_text()).group(1))  # of a .cu file
        if source.is_relative_to(ROOT) and source.relative_to(ROOT).parts[0] in FOLDERS:
            commands[source.relative_to(ROOT).as_posix()] = (shlex.split(entry["command"]), file.name)
    with tempfile.TemporaryDirectory() as folder:
        table = pathlib.Path(folder) / "list.json"
        subprocess.run([build / "command/convladder", "list", "--json", table], check=True,
                       stdout=subprocess.DEVNULL)
        rows = json.loads(table.read_text())
    known = {}
    return [Rung(row, commands, known) for row in rows]


# --- Compiling, linking and running -----------------------------------------------------------------------


class Workplace:
    """A folder in which one mutant at a time is made and run."""

    def __init__(self, build, folder):
        self.build, self.folder = build, folder
        shutil.rmtree(folder, ignore_errors=True)
        (folder / "unit").mkdir(parents=True)
        self.markers = None

    def compile(self, rung, file, text, output, flags=()):
        """Compiles the rung with `text` for one of its files. False if it does not compile."""
        overlay = self.folder / "overlay"
        shutil.rmtree(overlay, ignore_errors=True)
        copy = overlay / file
        copy.parent.mkdir(parents=True)
        # Messages, and what asks for its place in the source, name the original.
        copy.write_text(f'#line 1 "{ROOT / file}"\n{text}')
        own = copy if file == rung.source else ROOT / rung.source
        unit = self.folder / "unit" / rung.unit
        if rung.where == "emulated":
            unit.write_text(f'#include "{own}"\n')
        elif file == rung.source:
            shutil.copy(copy, unit)
        else:
            unit = own
        return rung.compile(self.build, unit, output, overlay, flags)

    def marker_objects(self, rung):
        """Between these two stands a unit with static shared memory, see cuda_on_cpu_kernels.cmake."""
        if self.markers is None:
            self.markers = []
            for name, text in (
                    ("begin", "extern constinit thread_local unsigned char cuda_on_cpu_marker_mutant_begin;\n"
                              "constinit thread_local unsigned char cuda_on_cpu_marker_mutant_begin = 0;\n"),
                    ("end", "#include <cuda_on_cpu/static_shared.hpp>\n"
                            "extern constinit thread_local unsigned char cuda_on_cpu_marker_mutant_begin;\n"
                            "constinit thread_local unsigned char cuda_on_cpu_marker_mutant_end = 0;\n"
                            "namespace {\n"
                            "const cuda_on_cpu::detail::StaticSharedRange range(\n"
                            "    [] { return &cuda_on_cpu_marker_mutant_begin; },\n"
                            "    [] { return &cuda_on_cpu_marker_mutant_end; });\n"
                            "}\n")):
                source, made = self.folder / f"{name}.cpp", self.folder / f"{name}.o"
                source.write_text(text)
                if not rung.compile(self.build, source, made, self.folder, ("-O1",)):
                    raise Trouble("a marker does not compile")
                self.markers.append(str(made))
        return self.markers

    def link(self, rung, made):
        """A folder with all libraries, the rung's with the object that was made instead of its own."""
        libraries = self.folder / "lib"
        shutil.rmtree(libraries, ignore_errors=True)
        libraries.mkdir()
        for library in (self.build / "lib").glob("*.so"):
            if library.name != rung.library:
                (libraries / library.name).symlink_to(library)
        asked = subprocess.run(["ninja", "-C", self.build, "-t", "commands", "-s", f"lib/{rung.library}"], check=True,
                               capture_output=True, text=True).stdout
        words = shlex.split(asked.strip().splitlines()[-1].removeprefix(": && ").removesuffix(" && :"))
        at = words.index("-o") + 2
        words[at - 1] = str(libraries / rung.library)
        words.remove(rung.command[rung.command.index("-o") + 1])
        mutated = [str(made)]
        if rung.where == "emulated":
            begin, end = self.marker_objects(rung)
            mutated = [begin, str(made), end]
        words[at:at] = mutated  # first: of functions that several units have, the linker takes the first
        linked = subprocess.run(words, cwd=self.build, capture_output=True, text=True)
        return linked.returncode == 0

    def run(self, filters, seconds):
        """Runs the suite with the libraries in lib/. Returns how it ended (None: everything passed), and the
        seconds that it took on a core."""
        output = self.folder / "output.txt"
        command = ["timeout", "--signal=KILL", str(int(4 * seconds) + 30),
                   "prlimit", f"--cpu={int(seconds)}:{int(seconds) + 1}", f"--data={MOST_MEMORY}", "--core=0",
                   f"--fsize={64 << 20}", self.build / "tests/suite", "--abort-after=1", *filters]
        # One thread, and data by one seed: the same verdict every time.
        environment = {**os.environ, "LD_LIBRARY_PATH": str(self.folder / "lib"), "CONVLADDER_SEED": "1",
                       "CUDA_ON_CPU_THREADS": "1"}
        environment.pop("CONVLADDER_REPORT_DIR", None)
        with output.open("wb") as stream:
            program = subprocess.Popen(command, stdout=stream, stderr=stream, cwd=self.folder, env=environment)
            _, status, usage = os.wait4(program.pid, 0)
        program.returncode = os.waitstatus_to_exitcode(status)
        taken = usage.ru_utime + usage.ru_stime
        return how_it_ended(program.returncode, output.read_text(errors="replace")), taken


def how_it_ended(code, output):
    """None if all tests passed, else who found what: ("problems", "ReLU after a bias: ...")."""
    if code < 0:
        code = 128 - code
    if code == 0:
        if not re.search(r"test cases: +[1-9]\d* \|", output):
            raise Trouble("no test was run:\n" + output[-2000:])
        return None
    if code in (2, 125, 126, 127):
        raise Trouble("the suite does not start:\n" + output[-2000:])
    if code in (124, 128 + 9, 128 + 24):
        return "time", "takes too long"
    cases = re.findall(r"^TEST CASE: +(.*)", output, re.MULTILINE)
    by = LAST_ONES
    if cases:
        by = ("identities" if cases[-1].endswith(".identities") else "problems" if cases[-1].startswith(FOLDERS)
              else LAST_ONES)
    error = re.search(r"ERROR: (.*)", output)
    what = error.group(1) if error else output.strip().splitlines()[-1] if output.strip() else ""
    if code > 128 or not error:
        by, what = "crash", f"status {code}: {what}"
    return by, what[:300]


# --- The verdict on a mutant ------------------------------------------------------------------------------


class Judge:
    """Decides on mutants, and remembers on disk."""

    def __init__(self, build, rungs, results_file, most_others, quick):
        self.build, self.rungs, self.most_others, self.quick = build, rungs, most_others, quick
        self.results_file = results_file
        self.lock = threading.Lock()
        self.controls = collections.defaultdict(threading.Lock)
        # The program finds its libraries beside each other.
        self.tests_stamp = digest(build / "tests/suite", build / "lib/libchecks.so", build / "lib/liboracle.so")
        self.stamps, self.symbols = {}, {}
        self.known = {}
        if results_file.is_file():
            for line in results_file.read_text().splitlines():
                result = json.loads(line)
                self.known[result["key"]] = result

    def stamp(self, rung):
        if rung.name not in self.stamps:
            self.stamps[rung.name] = digest(rung.original_object(self.build))
        return self.stamps[rung.name]

    def remember(self, key, **result):
        result = {"key": key, **result}
        with self.lock:
            self.known[key] = result
            with self.results_file.open("a") as stream:
                stream.write(json.dumps(result) + "\n")
        return result

    def remembered(self, key, rung):
        with self.lock:
            result = self.known.get(key)
        if not result or result["code"] != self.stamp(rung):
            return None
        lasts = (result["verdict"] in ("caught", "invalid")
                 or (result["tests"] == self.tests_stamp and self.quick >= result.get("quick", False)))
        return result if lasts else None

    def control(self, place, rung, filters=None, flags=()):
        """The seconds that the unchanged rung takes, which must pass."""
        key = "\n".join(["unchanged", *([rung.name] if filters is None or flags else []), *(filters or []), *flags])
        with self.controls[key]:
            known = self.remembered(key, rung)
            if known:
                return known["seconds"]
            made = place.folder / "control.o"
            text = (ROOT / rung.source).read_text()
            if not place.compile(rung, rung.source, text, made, flags) or not place.link(rung, made):
                raise Trouble(f"the unchanged {rung.name} does not compile")
            if not flags and digest(made) != self.stamp(rung):
                raise Trouble(f"the unchanged {rung.name} compiles to other code than in the build")
            end, seconds = place.run(filters or self.filters(rung), 600)
            if end:
                raise Trouble(f"the unchanged {rung.name} does not pass: {', '.join(end)}")
            self.remember(key, verdict="passed", seconds=seconds, code=self.stamp(rung), tests=self.tests_stamp)
            return seconds

    def callers(self, rung):
        """The rungs that call a function of this rung's unit, such as launch_implicit_gemm()."""
        with self.lock:
            if not self.symbols:
                for each in self.rungs:
                    listed = subprocess.run(["nm", "--extern-only", each.original_object(self.build)], check=True,
                                            capture_output=True, text=True).stdout
                    words = [line.split()[-2:] for line in listed.splitlines()]
                    self.symbols[each] = tuple({name for kind, name in words if kind == wanted} for wanted in "TU")
        defined = self.symbols[rung][0]
        return [each for each in self.rungs if each is not rung and defined & self.symbols[each][1]]

    def suites_beside(self, rung):
        """Doctest's suites that call rungs, beside those with two tests for each rung."""
        suites = "limits,tile_maps"
        if not self.quick:
            sparse = rung.ladder == "rulebook" or rung.ladder.startswith("sparse")
            suites += ",sparse,sparse pool" if sparse else ",defects"
        return suites

    @staticmethod
    def filters(*rungs):
        return ["--test-case=" + ",".join(test for rung in rungs for test in rung.tests)]

    def judge(self, place, mutant, drawn_for):
        """The result for a mutant that was drawn for a rung."""
        known = self.remembered(mutant.key, drawn_for)
        if known:
            return known
        begin = time.monotonic()
        verdict, rung, by, what = self.verdict(place, mutant, drawn_for)
        return self.remember(mutant.key, verdict=verdict, by=by, what=what, rung=rung.name, drawn_for=drawn_for.name,
                             ladder=drawn_for.ladder, operator=mutant.operator, file=mutant.file,
                             line=mutant.line_number, before=mutant.before, after=mutant.after,
                             seconds=round(time.monotonic() - begin, 2), code=self.stamp(drawn_for),
                             tests=self.tests_stamp, quick=self.quick)

    def verdict(self, place, mutant, drawn_for):
        """What became of it, the rung and the tests that said so, and what they said."""
        others = [rung for rung in self.rungs if mutant.file in rung.files and rung is not drawn_for]
        # First the file's neighbours, and of those the ones that are small: their tests take less time.
        others.sort(key=lambda rung: (rung.source.rsplit("/", 1)[0] != mutant.file.rsplit("/", 1)[0],
                                      rung.ladder != drawn_for.ladder, rung.original_object(self.build).stat().st_size))
        made, differs = place.folder / "mutant.o", []
        for rung in [drawn_for, *others]:
            if len(differs) > self.most_others:
                break
            if not place.compile(rung, mutant.file, mutant.mutated, made):
                if rung is drawn_for:
                    return "invalid", rung, "", ""
                continue  # some other instance of a template
            if digest(made) == self.stamp(rung):
                continue
            seconds = self.control(place, rung)
            if not place.link(rung, made):
                return "invalid", rung, "", ""
            end, _ = place.run(self.filters(rung), TIMES_AS_LONG * seconds + 2)
            if end:
                return "caught", rung, *end
            for caller in self.callers(rung):
                seconds = self.control(place, caller)
                if not place.link(rung, made):
                    raise Trouble("what was linked before cannot be linked again")
                end, _ = place.run(self.filters(caller), TIMES_AS_LONG * seconds + 2)
                if end:
                    return "caught", caller, *end
            differs.append(rung)
        differs = [rung for rung in differs if not self.same_code(place, mutant, rung)]
        if not differs:
            return "equivalent", drawn_for, "compiler", ""
        rung = differs[0]
        for filters, flags in (([f"--test-suite={self.suites_beside(rung)}"], ()),
                               (self.filters(rung, *self.callers(rung)), SANITIZED)):
            seconds = self.control(place, rung, filters, flags)
            if not place.compile(rung, mutant.file, mutant.mutated, made, flags) or not place.link(rung, made):
                raise Trouble("what compiled before does not compile again")
            end, _ = place.run(filters, TIMES_AS_LONG * seconds + 2)
            if end:
                return "caught", rung, "sanitizer" if flags else end[0], end[1]
        return "survived", differs[0], "", ""

    def same_code(self, place, mutant, rung):
        """Whether the compiler makes the same code of both, beyond what the build asks of it."""
        made = [place.folder / "original-O2.o", place.folder / "mutant-O2.o"]
        texts = [(ROOT / mutant.file).read_text(), mutant.mutated]
        return (all(place.compile(rung, mutant.file, text, to, ("-O2",)) for text, to in zip(texts, made))
                and digest(made[0]) == digest(made[1]))


# --- Which mutants ----------------------------------------------------------------------------------------


def sequence(rungs, mutants, seed):
    """Pairs (rung, mutant) in the order in which they are drawn: each time for the rung, and then by the operator
    that have had the fewest. An edit of one file leaves the others' mutants where they are, or nearly so, since
    the order comes from what they say and not from a row of dice."""

    def place(*words):
        return hashlib.sha1("\n".join(map(str, (seed, *words))).encode()).digest()

    left = {}
    for rung in rungs:
        left[rung] = collections.defaultdict(list)
        for file in rung.files:
            for mutant in mutants[file]:
                left[rung][mutant.operator].append(mutant)
        for choices in left[rung].values():
            choices.sort(key=lambda mutant: place(mutant.key))
    drawn = set()
    of_rung, of_operator = collections.Counter(), collections.Counter()
    while left:
        rung = min(left, key=lambda rung: (of_rung[rung], place(rung.name, of_rung[rung])))
        operators = left[rung]
        name = min(operators, key=lambda name: (of_operator[name], place(rung.name, name, of_operator[name])),
                   default=None)
        if name is None:
            del left[rung]
            continue
        mutant = operators[name].pop()
        if not operators[name]:
            del operators[name]
        if mutant.key in drawn:  # for another rung that includes the file
            continue
        drawn.add(mutant.key)
        of_rung[rung] += 1
        of_operator[name] += 1
        yield rung, mutant


def read_equivalents(path):
    """The changes that make no difference, each with the reason, as Mutant.change has them. An entry is

        FILE: OPERATOR         or "FILE: *" for any operator
        - the line before
        + the line after       or "+ *" for any change of that line
          the reason, in one or more lines that are indented by two blanks
    """
    entries, entry = {}, None
    for number, line in enumerate(path.read_text().splitlines() if path.is_file() else [], 1):
        if line.startswith("#") or not line.strip():
            continue
        if line.startswith("- ") and entry:
            entry[2] = " ".join(line[2:].split())
        elif line.startswith("+ ") and entry:
            entry[3] = " ".join(line[2:].split())
        elif line.startswith("  ") and entry and all(entry):
            entries[tuple(entry)] = (entries.get(tuple(entry), "") + " " + line.strip()).strip()
        elif re.match(r"\S+: \S", line):
            entry = [*line.split(": ", 1), "", ""]
        else:
            raise Trouble(f"{path}:{number}: this line is no part of an entry")
    return entries


def reason_for(change, equivalents):
    """Why the change makes no difference; empty if the list does not say so."""
    file, name, before, after = change
    for operator, to in itertools.product((name, "*"), (after, "*")):
        if (file, operator, before, to) in equivalents:
            return equivalents[file, operator, before, to]
    return ""


def stale_entries(equivalents, mutants):
    """Entries of the list that no mutant is like any more."""
    changes = {mutant.change for of_file in mutants.values() for mutant in of_file}
    some = {(file, operator, before, to) for file, name, before, after in changes
            for operator in (name, "*") for to in (after, "*")}
    return [entry for entry in equivalents if entry not in some]


# --- What comes of it -------------------------------------------------------------------------------------


def table(title, groups):
    """Rows of a table in Markdown: caught of those that are not equivalent."""
    lines = [f"| {title} | caught | of | score | GPU alone | equivalent |", "|---|---:|---:|---:|---:|---:|"]
    for name, verdicts in groups:
        caught, known = verdicts["caught"], verdicts["GPU alone"]
        count = caught + known + verdicts["survived"]
        score = f"{100 * caught / count:.0f} %" if count else ""
        lines.append(f"| {name} | {caught} | {count} | {score} | {known} | {verdicts['equivalent']} |")
    return "\n".join(lines)


def report(results):
    """The tables, and the survivors with their places."""
    parts = []
    for title, key in (("rung", "drawn_for"), ("operator", "operator"), ("ladder", "ladder")):
        groups = collections.defaultdict(collections.Counter)
        for result in results:
            groups[result[key]][result["verdict"]] += 1
        rows = sorted(groups.items())
        if key == "ladder":
            rows.append(("all", sum(groups.values(), collections.Counter())))
        parts.append(table(title, rows))
    by = collections.Counter(result["by"] for result in results if result["verdict"] == "caught")
    parts.append("Caught by " + ", ".join(f"{name}: {count}" for name, count in by.most_common()))
    for result in results:
        if result["verdict"] == "survived":
            parts.append("\n".join([f"SURVIVED {result['file']}:{result['line']}: {result['operator']}",
                                    f"  (tests of {result['rung']})",
                                    *(f"- {line}" for line in result["before"]),
                                    *(f"+ {line}" for line in result["after"])]))
    return "\n\n".join(parts)


class Sample:
    """Mutants one after the other, until as many were tested as were asked for."""

    def __init__(self, pairs, most, seconds):
        self.pairs, self.most = pairs, most
        self.end = time.monotonic() + seconds if seconds else None
        self.condition = threading.Condition()
        self.results, self.under_way, self.trouble, self.ended = [], 0, None, False

    def count(self):
        return sum(result["verdict"] in ("caught", "survived") for result in self.results)

    def draw(self):
        """The next pair; None at the end."""
        with self.condition:
            while True:
                late = self.end is not None and time.monotonic() > self.end
                if self.trouble or self.ended or late or self.count() >= self.most:
                    return None
                if self.count() + self.under_way < self.most:
                    break
                self.condition.wait()
            pair = next(self.pairs, None)
            self.ended = pair is None
            self.under_way += pair is not None
            return pair

    def add(self, result):
        with self.condition:
            self.under_way -= 1
            self.results.append(result)
            if result["verdict"] != "invalid":
                by = f" ({result['by']})" if result["by"] else ""
                print(f"[{self.count()}] {result['verdict']}{by} {result['seconds']:.1f} s  "
                      f"{result['file']}:{result['line']}: {result['operator']}", flush=True)
            self.condition.notify_all()

    def fail(self, trouble):
        with self.condition:
            self.under_way -= 1
            self.trouble = self.trouble or trouble
            self.condition.notify_all()


def run_all(judge, sample, equivalents, folder, jobs):
    def work(number):
        place = Workplace(judge.build, folder / f"job{number}")
        while (pair := sample.draw()) is not None:
            rung, mutant = pair
            try:
                reason = reason_for(mutant.change, equivalents)
                listed = "GPU alone" if reason.startswith(GPU_ALONE) else "equivalent"
                sample.add({"verdict": listed, "by": "list", "drawn_for": rung.name, "ladder": rung.ladder,
                            "operator": mutant.operator, "file": mutant.file, "line": mutant.line_number,
                            "seconds": 0, "what": reason} if reason else judge.judge(place, mutant, rung))
            except Exception as trouble:  # whatever it is: the other threads must not go on
                sample.fail(trouble)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def options_of(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--rung", action="append",
                        help="only rungs whose names fit, such as '*/gemm/cp_async'; repeatable")
    parser.add_argument("--ladder", help="only rungs of this ladder")
    parser.add_argument("--file", default="*", help="only changes of files whose paths fit")
    parser.add_argument("--operator", default="*", help="only operators whose names fit")
    parser.add_argument("--sample", type=int, default=300, help="how many are tested (300)")
    parser.add_argument("--all", action="store_true", help="all of them: tens of thousands")
    parser.add_argument("--seed", type=int, default=1, help="of the sample (1)")
    parser.add_argument("--seconds", type=float, default=0, help="begin no more after so many")
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1), help="at once (2)")
    parser.add_argument("--others", type=int, default=4,
                        help="how many more rungs that include the file test a survivor (4)")
    parser.add_argument("--quick", action="store_true",
                        help="of the rest of the suite, survivors meet only what takes no time")
    parser.add_argument("--list", action="store_true", help="print the changes, and test nothing")
    return parser.parse_args(arguments)


def main(arguments):
    options = options_of(arguments)
    build = options.build.resolve()
    everything = rungs_of(build)
    rungs = [rung for rung in everything if options.ladder in (None, rung.ladder)
             and any(fnmatch.fnmatch(rung.name, glob) for glob in options.rung or ["*"])]
    if not rungs:
        raise Trouble("no rung is called so")
    files = sorted({file for rung in everything for file in rung.files})
    whole = {file: mutation.mutants_of(file, (ROOT / file).read_text()) for file in files}
    listed = ROOT / "tests/equivalent_mutants.txt"
    equivalents = read_equivalents(listed)
    for file, operator, before, _ in stale_entries(equivalents, whole):
        raise Trouble(f"{listed.relative_to(ROOT)}: {file} has no such change any more: {operator}: {before}")
    mutants = {file: [mutant for mutant in of_file if fnmatch.fnmatch(file, options.file)
                      and fnmatch.fnmatch(mutant.operator, options.operator)] for file, of_file in whole.items()}
    pairs = sequence(rungs, mutants, options.seed)
    if options.list:
        for rung, mutant in pairs if options.all else itertools.islice(pairs, options.sample):
            print(f"{mutant.file}:{mutant.line_number}: {mutant.operator}\n+ {' '.join(mutant.after).strip()}")
        return 0

    most = sum(map(len, mutants.values())) if options.all else options.sample
    print(f"{most} of {sum(map(len, mutants.values()))} mutants of {len(rungs)} rungs, seed {options.seed}", flush=True)
    folder = build / "mutants"
    folder.mkdir(exist_ok=True)
    judge = Judge(build, everything, folder / "results.jsonl", options.others, options.quick)
    sample = Sample(pairs, most, options.seconds)
    run_all(judge, sample, equivalents, folder, options.jobs)
    if sample.trouble:
        raise sample.trouble
    results = sorted((result for result in sample.results if result["verdict"] != "invalid"),
                     key=lambda result: (result["file"], result["line"]))
    print("\n" + report(results))
    return 1 if any(result["verdict"] == "survived" for result in results) else 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except Trouble as trouble:
        print(f"mutants: {trouble}", file=sys.stderr)
        sys.exit(2)
