#!/usr/bin/env python3
"""The compile commands of a build in a form that clang-tidy can use.

    lint_commands.py BUILD        writes BUILD/lint/compile_commands.json

clang cannot read the precompiled headers of g++, and several files that CMake has made one unit of have no command
of their own: here each gets that of its unit, without precompiled headers.

"""
import json
import pathlib
import re
import sys


def files_of(entry):
    """What a unit is made of; a file that is none, itself."""
    path = pathlib.Path(entry["file"])
    if not re.fullmatch(r"unity_.*\.cxx", path.name):
        return [entry["file"]]
    return re.findall(r'^#include "(.+)"$', path.read_text(), re.MULTILINE)


def main(build):
    out = build / "lint" / "compile_commands.json"
    entries = []
    for entry in json.loads((build / "compile_commands.json").read_text()):
        command = re.sub(r" (-Winvalid-pch|-include \S*/cmake_pch\.hxx)", "", entry["command"])
        for file in files_of(entry):
            entries.append({**entry, "file": file, "command": command.replace(entry["file"], file)})
    out.parent.mkdir(exist_ok=True)
    out.write_text(json.dumps(entries, indent=1) + "\n")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
