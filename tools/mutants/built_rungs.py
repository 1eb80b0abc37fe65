"""The rungs, the files that they are made of, and how the build makes them."""
import hashlib
import json
import pathlib
import re
import shlex
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = ("cpu_reference", "cuda_naive", "cuda_optimized")


class Trouble(Exception):
    """The tool cannot do its work."""


def digest(*paths):
    return hashlib.sha1(b"".join(pathlib.Path(path).read_bytes() for path in paths)).hexdigest()


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
        self.command, self.unit = commands[self.source]
        made = self.command[self.command.index("-o") + 1]
        self.library = "libconvladder_" + re.search(r"/(rungs_\w+)_objects\.dir/", made).group(1) + ".so"

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
