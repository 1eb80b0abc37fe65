"""The verdict on a mutant."""
import collections
import json
import subprocess
import threading
import time

from built_rungs import ROOT, Trouble, digest

TIMES_AS_LONG = 10
# What of ./ladder check sanitize a single unit can have: undefined behaviour ends the program.
SANITIZED = ("-O1", "-fsanitize=undefined", "-fno-sanitize=vptr", "-fsanitize-undefined-trap-on-error")


class Judge:
    """Decides on mutants, and remembers on disk."""

    def __init__(self, build, rungs, results_file, most_others, quick):
        self.build, self.rungs, self.most_others, self.quick = build, rungs, most_others, quick
        self.results_file = results_file
        self.lock = threading.Lock()
        self.controls = collections.defaultdict(threading.Lock)
        # The program finds its libraries beside each other.
        libraries = [build / f"lib/libconvladder_{part}.so" for part in ("checks", "oracle", "cuda_on_cpu")]
        self.tests_stamp = digest(build / "tests/suite", *libraries)
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
        suites = "limits,tile_maps,all rungs"
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
