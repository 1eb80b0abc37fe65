#!/usr/bin/env python3
"""Lays out graded submissions for a comparison of their texts, and runs JPlag if it is there.

    similar.py OUT [--moss]

OUT is what ./ladder grade wrote. OUT/state/similarity then has new/NAME/ (what was handed in), old/project/ (the
project's own files, which anybody may read) and base/ (the handout, which all share). With JPLAG_JAR set to the path of
jplag.jar (version 6, Java 21) it is run, on this machine. --moss prints the command for MOSS, which sends all files to
a server in the United States; it is not run.

Exit status: 0 done; 2 bad input; 3 JPlag failed; 4 our error.
"""
import argparse
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "handout"))
import assignment as assignments  # noqa: E402
import batch  # noqa: E402
import predictions  # noqa: E402
from assignment import BadInput  # noqa: E402
from tree import Handout  # noqa: E402

SUFFIXES = (".cu", ".cuh", ".cpp", ".hpp")


class Parser(argparse.ArgumentParser):
    def error(self, message):
        raise BadInput(message)


def put(folder, files):
    for path, content in files.items():
        if path.endswith(SUFFIXES):
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(content)


def laid_out(out):
    """The folder with new/, old/ and base/, made anew."""
    reports = batch.reports_in(out) if (out / "state").is_dir() else []
    if not reports:
        raise BadInput(f"out = {out}: holds no grades")
    assignment = assignments.read(reports[0]["assignment"])
    written = {blank.file for blank in assignment.blanks}
    folder = out / "state/similarity"
    shutil.rmtree(folder, ignore_errors=True)
    for report in reports:
        name = report["submission"]["name"]
        kept = out / "state" / f"{name}.files"
        put(folder / "new" / name, {path: (kept / path).read_bytes() for path in report["submission"]["files"] if path in written})
    put(folder / "old/project", predictions.project_files(assignment))
    handed_out = Handout(assignment).files
    put(folder / "base", {path: handed_out[path] for path in written})
    return folder


def jplag(jar, folder):
    return ["java", "-jar", jar, "-l", "cpp", "-p", "cu,cuh,cpp", "-bc", str(folder / "base"), "-old", str(folder / "old"),
            "-new", str(folder / "new"), "--normalize", "--csv-export", "--mode", "RUN", "-r", str(folder / "jplag")]


def moss(folder):
    def files(part):
        return [str(path) for path in sorted((folder / part).rglob("*")) if path.is_file()]
    base = [word for file in files("base") for word in ("-b", file)]
    return ["moss", "-l", "cc", "-d", *base, *files("new"), *files("old")]


def main():
    parser = Parser(usage="./ladder similar OUT [--moss]", allow_abbrev=False)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--moss", action="store_true")
    try:
        options = parser.parse_args()
        folder = laid_out(options.out)
        if options.moss:
            print(shlex.join(moss(folder)))
            print("This sends all files to MOSS's server in the United States. Ask whether you may.", file=sys.stderr)
            return 0
        command = jplag(os.environ.get("JPLAG_JAR", "jplag.jar"), folder)
        if "JPLAG_JAR" not in os.environ:
            print(shlex.join(command))
            print("JPLAG_JAR is not set, so this was not run. JPlag compares on this machine.", file=sys.stderr)
            return 0
        return 0 if subprocess.run(command).returncode == 0 else 3
    except BadInput as error:
        print(f"ladder: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"ladder: {error}", file=sys.stderr)
        return 3
    except KeyboardInterrupt:
        return 130
    except Exception:
        traceback.print_exc()
        return 4


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    sys.exit(main())
