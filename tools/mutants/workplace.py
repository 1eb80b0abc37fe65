"""Makes a mutant, and runs the suite on it."""
import os
import pathlib
import re
import shlex
import shutil
import subprocess

from built_rungs import FOLDERS, ROOT, Trouble

MOST_MEMORY = 6 << 30  # bytes of data of a program under test: a changed size must not take the whole machine
LAST_ONES = "the rest of the suite"


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
            generated = pathlib.Path(rung.command[rung.command.index("-c") + 1]).read_text()
            unit.write_text(generated.replace(f'"{ROOT / rung.source}"', f'"{own}"'))
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
