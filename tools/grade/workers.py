"""Builds a worker from a student's file, in a sandbox: what looks at the file, and what compiles it."""
import re
import subprocess
import typing

import audit

COMPILER_SECONDS = 60
WALL_SECONDS = 600  # of a machine on which much else runs; what counts is the processor's time
READABLE = ("/usr", "/lib", "/lib64", "/bin", "/etc/ld.so.cache", "/etc/alternatives", "/dev/null", "/dev/urandom")
FLAGS = ("-std=c++20", "-w", "-pipe", "-fmax-errors=1", "-fdiagnostics-color=never", "-ftemplate-depth=256",
         "-fconstexpr-ops-limit=10000000", "-fconstexpr-loop-limit=100000", "-DNDEBUG")
# As cuda_on_cpu_add_kernels(... INSPECT) compiles.
WATCHED_FLAGS = ("-O0", "-g1", "-fsanitize=thread", "-fsanitize-coverage=trace-pc", "-DCUDA_ON_CPU_INSPECT")
# Only the student's own copies are told to the microscope.
HOOKED = ("memcpy", "memmove", "memset")


class NoBuild(Exception):
    """The student's file does not become a worker."""

    def __init__(self, kind, message):
        super().__init__(message)
        self.kind, self.message = kind, message


class Failed(Exception):
    """A tool does not work here."""


class Made(typing.NamedTuple):
    """The worker of a file and its watching twin (None of a CPU rung), each with its symbols; and what nvcc would not take."""
    plain: tuple
    watching: tuple | None
    illegal: str = ""  # a sentence: what a kernel calls that is no device function
    unseen: bool = False  # whether it does so where the microscope does not see it


class Jail:
    """Runs the compiler and binutils on a student's files."""

    def __init__(self, program, level, tree, objects):
        self.program, self.level = program, level
        self.readable = (*READABLE, tree, objects)

    def run(self, command, folder):
        """What it does in the folder, where it may write."""
        words = [self.program, self.level, COMPILER_SECONDS]
        for path in self.readable:
            words += ["--read", path]
        words += ["--write", folder, "--", *command]
        try:
            done = subprocess.run(list(map(str, words)), cwd=folder, capture_output=True, text=True, timeout=WALL_SECONDS,
                                  env={"PATH": "/usr/bin:/bin", "LC_ALL": "C", "TMPDIR": str(folder)}, errors="replace")
        except subprocess.TimeoutExpired:
            raise NoBuild("no_build", f"takes more than {WALL_SECONDS} s to compile") from None
        if done.returncode == 125:
            raise Failed(str(done.stderr))
        return done


def first_error(done):
    """The compiler's first error, in its words."""
    lines = [line for line in done.stderr.split("\n") if line]
    first = next((i for i, line in enumerate(lines) if re.search(r"error:|multiple definition|undefined reference|cannot find|ld: ", line)), 0)
    if done.returncode < 0 or not lines:
        return "it takes more time or memory than a file may take"
    return "\n".join(lines[first:first + 3])[:600]


class Workers:
    """Makes workers of one assignment's rungs."""

    def __init__(self, build, tree, jail):
        self.build, self.tree, self.jail = build, tree, jail
        self.compiler = (build / "objects/compiler").read_text().strip()
        self.parts = {name: [path for path in (build / "objects" / name).read_text().split() if not path.endswith(".gch")] for name in (
            "core", "core_kernels", "worker", "worker_plain", "worker_watching", "worker_tables", "markers", "given_kernels", "right_kernels",
            "right_loops", "libraries")}
        self.needed = set().union(*(audit.wanted_by(self.symbols_of(right, build)) for kind in ("right_kernels", "right_loops")
                                    for right in self.parts[kind] if "/marker_" not in right))

    def make(self, source, number, folder, own, watching=True):
        """The workers of a rung's file in the folder.

        @param number of the rung's table
        @param watching whether the twin is wanted
        @param own {path: bytes} of the student's files that are there
        @returns Made
        @raises NoBuild
        """
        try:
            return self.make_audited(source, number, folder, own, watching)
        except audit.Refused as refusal:
            raise NoBuild("refused", str(refusal)) from None

    def make_audited(self, source, number, folder, own, watching):
        stem = folder / f"rung_{number}"
        audit.check_source_text(own)
        preprocessed = self.compile(source, folder, ["-O1", "-E"], stem.with_suffix(".ii"))
        audit.check_tokens(preprocessed.read_text(errors="replace"), own)
        plain = self.compile(preprocessed, folder, ["-O1", "-fpreprocessed"], stem.with_suffix(".o"))
        audit.check_symbols(self.symbols_of(plain, folder), source, self.needed)
        watched, illegal = None, ("", False)
        if source.endswith(".cu"):
            watched = self.compile(source, folder, WATCHED_FLAGS, stem.with_name(f"{stem.name}_watched.o"))
            audit.check_symbols(self.symbols_of(watched, folder), source, self.needed)
            texts = [content.decode(errors="replace") for content in own.values()]
            try:
                audit.check_calls(self.listing_of(watched, folder), texts, self.demangled)
            except audit.IllegalCuda as found:
                illegal = (str(found), found.unseen)
            self.tool(["objcopy", *(f"--redefine-sym={name}=__wrap_{name}" for name in HOOKED), watched], folder)
        worker = self.link(plain, number, folder, stem.with_name(f"{stem.name}_worker"), "worker_plain")
        twin = stem.with_name(f"{stem.name}_watching")
        twin = self.link(watched, number, folder, twin, "worker_watching") if watched and watching else None
        return Made(worker, twin, *illegal)

    def compile(self, source, folder, flags, to):
        tree = self.tree
        language = ["-x", "c++"] if not str(source).endswith(".ii") else ["-x", "c++-cpp-output"]
        done = self.jail.run(
            [self.compiler, *FLAGS, *([] if "-E" in flags else ["-c"]), *flags, "-I", ".", "-I", tree, "-I",
             tree / "cuda_on_cpu/include", "-include", tree / "check/not_written.hpp", f"-ffile-prefix-map={folder}=",
             f"-ffile-prefix-map={tree}=", *language, source, "-o", to], folder)
        if done.returncode != 0:
            raise NoBuild("no_build", first_error(done).replace(f"{folder}/", "").replace(f"{tree}/", ""))
        return to

    def link(self, student, number, folder, to, kind):
        tables = [path for path in self.parts["worker_tables"] if path.endswith(f"/worker_{number}.cpp.o")]
        begin, end = self.parts["markers"]
        done = self.jail.run([self.compiler, "-static", "-no-pie", *self.parts["worker"], *self.parts[kind], *tables,
                              *self.parts["core"], *self.parts["core_kernels"], *self.parts["given_kernels"], begin,
                              student, end, "-Wl,--start-group",
                              *self.parts["libraries"], "-Wl,--end-group", "-o", to], folder)
        if done.returncode != 0:
            raise NoBuild("no_build", re.sub(r"^.*/ld: ", "", first_error(done)).replace(f"{folder}/", ""))
        symbols = to.with_suffix(".symbols")
        symbols.write_text(self.symbol_table(student, to, folder, kind == "worker_watching"))
        return to, symbols

    def tool(self, command, folder):
        done = self.jail.run([f"/usr/bin/{command[0]}", *command[1:]], folder)
        if done.returncode != 0:
            raise Failed(f"{command[0]}: {done.stderr[:300]}")
        return done.stdout

    @staticmethod
    def demangled(names):
        return subprocess.run(["c++filt"], input="\n".join(names), capture_output=True, text=True, check=True).stdout.split("\n")

    def symbols_of(self, object_file, folder):
        """[(kind, name, demangled)] of an object."""
        rows = [line.split() for line in self.tool(["nm", "--format=posix", object_file], folder).split("\n") if line]
        return [(row[1], row[0], name) for row, name in zip(rows, self.demangled([row[0] for row in rows]))]

    def listing_of(self, student, folder):
        return self.tool(["objdump", "-dr", "--no-show-raw-insn", student], folder)

    def symbol_table(self, student, worker, folder, lines):
        """own_symbols.hpp: of what the student's object defines."""
        names = {line.split()[0] for line in self.tool(["nm", "--format=posix", "--defined-only", student], folder).split("\n") if line}
        rows = []
        for line in self.tool(["readelf", "--syms", "--wide", worker], folder).split("\n"):
            fields = line.split()
            if len(fields) != 8 or fields[7] not in names or fields[6] == "UND":
                continue
            value, size, kind, name = int(fields[1], 16), int(fields[2], 0), fields[3], fields[7]
            if kind == "FUNC":
                rows.append(f"function {value:x} {name}")
            elif kind in ("TLS", "OBJECT"):
                rows.append(f"{'thread_local' if kind == 'TLS' else 'object'} {value:x} {size:x} {name}")
        return "\n".join(rows + (self.lines_of(worker, folder) if lines else [])) + "\n"

    def lines_of(self, worker, folder):
        rows, file = [], ""
        for line in self.tool(["objdump", "--dwarf=decodedline", "--wide", worker], folder).split("\n"):
            named = re.fullmatch(r"(?:CU: )?(\S+):(?:\[\+\+\])?", line.strip())
            if named:
                file = "/" + named.group(1).removeprefix("./").lstrip("/")
                continue
            row = re.fullmatch(r"\S+\s+(\d+)\s+0x([0-9a-f]+)\b.*", line.strip())
            if row and file:
                rows.append(f"line {row.group(2)} {int(row.group(1)):x} {file}")
        return rows
