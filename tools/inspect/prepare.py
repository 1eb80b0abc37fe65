#!/usr/bin/env python3
"""Compiles a rung for the microscope, and prints the library's path.

    prepare.py BUILD RUNG [--source FILE]...      (./ladder inspect RUNG [--source FILE] ...)

Options that it does not know are the problem's, and ignored. The library is kept in BUILD/inspect, and made anew if a
file that it was made of has changed. Prints nothing if there is no such CUDA rung or file, which `convladder inspect`
then says. Exit status: 0; 3 if the rung cannot be compiled.
"""
import argparse
import fcntl
import functools
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "extract"))
import extract  # noqa: E402  (which files a rung needs)

ROOT = extract.ROOT


def library_of(build, rung, source):
    """Configures and builds the library. What lies beside a stand-in by its path in the project stands in, too."""
    needed = [file for file in extract.needed_sources(extract.sources_by_need(build), rung["source"])
              if file.endswith(".cu")]
    sources = [ROOT / file for file in needed]
    if source:
        beside = [source if file == rung["source"] else source.parent / file for file in needed]
        sources = [mine if mine.is_file() else theirs for mine, theirs in zip(beside, sources)]
    name = rung["rung"].replace("/", "_") + ("_stand_in" if source else "")
    options = [f"-DHEADERS={headers_of(build)}", f"-DBESIDE={source.parent if source else ''}", "-DSOURCES=" + ";".join(map(str, sources))]
    return built(build, name, options) / "libinspected.so"


@functools.cache
def headers_of(build):
    """The folder in which what most rungs include is compiled, once for all of them."""
    return built(build, "headers", [])


def built(build, name, options):
    """Configures and builds tools/inspect in the folder, which it returns."""
    folder = build.resolve() / "inspect" / name
    options = [f"-DCONVLADDER_BUILD={build.resolve()}", *options]
    state = folder / "configured"
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # of several that want it at once, one makes it
        if not state.is_file() or state.read_text() != "\n".join(options):
            run(["cmake", "-S", ROOT / "tools/inspect", "-B", folder, "-G", "Ninja", *options])
            state.write_text("\n".join(options))
        run(["cmake", "--build", folder])
    return folder


def run(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode == 0:
        return
    lines = [line for line in (done.stdout + done.stderr).split("\n") if re.search(r"\berror\b|undefined reference", line)]
    print("ladder: the rung cannot be compiled:", file=sys.stderr)
    for line in lines[:5] or (done.stdout + done.stderr).split("\n")[-10:]:
        print(f"  | {line[:200]}", file=sys.stderr)
    sys.exit(3)


def main():
    parser = argparse.ArgumentParser(usage="./ladder inspect RUNG [PROBLEM OPTION...]", allow_abbrev=False)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("rung")
    parser.add_argument("--source", type=pathlib.Path)
    arguments, _ = parser.parse_known_args()
    try:
        rung = extract.rung_named(extract.table_of(arguments.build), arguments.rung, say=False)
    except extract.Trouble:
        return  # the program says it better
    if rung["backend"] != "cuda" or (arguments.source and not arguments.source.is_file()):
        return
    try:
        print(library_of(arguments.build, rung, arguments.source and arguments.source.resolve()))
    except extract.Trouble as error:
        print(f"ladder: {error}", file=sys.stderr)
        sys.exit(3)


if __name__ == "__main__":
    main()
