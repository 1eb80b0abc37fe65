#!/usr/bin/env python3
"""Writes the repository of an assignment that students get, once it is proven (course/README.md).

    handout.py ASSIGNMENT DIR [--key FILE] [--student ID | --roster CSV] [--gradescope ZIP] [--classroom] [--json FILE]
               [--update OLD]

ASSIGNMENT is a folder of course/. DIR must be empty, or not be there. With --roster, a table with a column `id`, each
student's is DIR/<id>/. --gradescope writes the zip of Gradescope's autograder, too; --classroom adds GitHub Classroom's
workflow to the handout. --update OLD writes the newer handout for somebody who has begun in OLD: with what they wrote.

Exit status: 0 done; 1 the proof fails; 2 bad input; 3 set-up failed; 4 our error.
"""
import argparse
import csv
import json
import pathlib
import re
import sys
import tempfile
import traceback

import assignment as assignments
import functions
import golden
import gradescope
import proof
from assignment import BadInput
from tree import EXECUTABLE, PUBLIC_KEY, Handout, digest

STUDENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")


class Parser(argparse.ArgumentParser):
    def error(self, message):
        raise BadInput(message)


def say(line):
    print(line, file=sys.stderr, flush=True)


def key_of(file):
    if file is None:
        return PUBLIC_KEY
    if not file.is_file():
        raise BadInput(f"key = {file}: there is no such file")
    key = file.read_bytes()
    if len(key) < 32:
        raise BadInput(f"key = {file}: has {len(key)} bytes, and must have 32 or more")
    return key


def checked_id(option, student):
    if not STUDENT.fullmatch(student):
        raise BadInput(f"{option} = {student}: must be letters, digits and . _ @ -, at most 64")
    return student


def students_of(roster):
    if not roster.is_file():
        raise BadInput(f"roster = {roster}: there is no such file")
    with roster.open(newline="", encoding="utf-8-sig") as file:
        rows = csv.DictReader(file)
        if "id" not in (rows.fieldnames or []):
            raise BadInput(f"roster = {roster}: must have a column id")
        students = [checked_id("roster", (row["id"] or "").strip()) for row in rows]
    if not students or len(set(students)) != len(students):
        raise BadInput(f"roster = {roster}: must name at least one student, and each once")
    return students


def require_free(folder):
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise BadInput(f"dir = {folder}: is not empty")
    if not folder.resolve().parent.is_dir():
        raise BadInput(f"dir = {folder}: the folder above it is not there")


def changes_of(handout, old):
    """CHANGES.md, and the student's own files.

    What is to be submitted stays as it is in `old`, if the new handout begins from the same.
    """
    try:
        manifest = json.loads((old / "handout.json").read_text())
        before = manifest["files"]
    except (OSError, ValueError, KeyError):
        raise BadInput(f"update = {old}: is no handout (it has no handout.json)") from None
    if manifest.get("assignment") != handout.assignment.name:
        raise BadInput(f"update = {old}: is a handout of {manifest.get('assignment')}")
    now = {path: digest(content) for path, content in handout.files.items() if path != "handout.json"}
    for path in handout.assignment.submit:
        if before.get(path) != now[path]:
            raise proof.Failure(f"{path} of the new handout is not as it was in {old}, and a student's work depends on it")
    lines = [f"# Changes from {manifest['version']} ({manifest['commit'][:12]})", ""]
    for path in sorted(before.keys() | now.keys()):
        if before.get(path) != now.get(path):
            lines.append(f"- {path}: " + ("new" if path not in before else "gone" if path not in now else "changed"))
    own = {path: (old / path).read_bytes() for path in handout.assignment.submit if (old / path).is_file()}
    return own | {"CHANGES.md": ("\n".join(lines) + "\n").encode()}


def write(handout, folder, more):
    for path, content in (handout.files | more).items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
        file.chmod(0o755 if path in EXECUTABLE else 0o644)


def make(options):
    assignment = assignments.read(options.assignment)
    require_free(options.dir)
    if options.roster and options.update:
        raise BadInput("update: goes with one student, not with --roster")
    students = students_of(options.roster) if options.roster else [checked_id("student", options.student)]
    key = key_of(options.key)
    to_output = options.json == pathlib.Path("-")
    if options.json and not to_output and (options.json.is_dir() or not options.json.resolve().parent.is_dir()):
        raise BadInput(f"json = {options.json}: must be a file in a folder that is there")

    if options.gradescope:
        gradescope.require_possible(options.gradescope)

    first = Handout(assignment, key, students[0], options.classroom)
    more = changes_of(first, options.update) if options.update else {}
    if key is PUBLIC_KEY:
        say("No --key: predictions and hunts are drawn by a key that everybody knows.")
    proven = proof.prove(first, say)
    # Created beside DIR, and renamed when it is complete, so that no incomplete handout is visible.
    with tempfile.TemporaryDirectory(dir=options.dir.resolve().parent, prefix=".handout-") as temporary:
        made = pathlib.Path(temporary) / "handout"
        made.mkdir()
        for student in students:
            one = first if student == students[0] else Handout(assignment, key, student, options.classroom)
            write(one, made / student if options.roster else made, more)
        if not options.dir.exists():
            made.rename(options.dir)
        else:  # perhaps somebody stands in it
            for child in sorted(made.iterdir()):
                child.rename(options.dir / child.name)
    if options.gradescope:
        gradescope.write(Handout(assignment, key, "everybody"), key, options.gradescope)
    if options.json:
        (sys.stdout.write if to_output else options.json.write_text)(json.dumps(proven, indent=1) + "\n")
    copies = f", {len(students)} copies" if options.roster else ""
    print(f"{options.dir}: {assignment.name}, {proven['files']} files, {proven['bytes']} bytes{copies}; "
          f"{len(assignment.blanks)} blanks; the skeleton says what is not written, the solution passes",
          file=sys.stderr if to_output else sys.stdout)


def main():
    parser = Parser(usage="./ladder handout ASSIGNMENT DIR [--key FILE] [--student ID | --roster CSV] [--gradescope ZIP] "
                          "[--classroom] [--json FILE] [--update OLD]", allow_abbrev=False)
    parser.add_argument("assignment")
    parser.add_argument("dir", type=pathlib.Path)
    parser.add_argument("--key", type=pathlib.Path)
    whom = parser.add_mutually_exclusive_group()
    whom.add_argument("--student", default="everybody")
    whom.add_argument("--roster", type=pathlib.Path)
    parser.add_argument("--gradescope", type=pathlib.Path)
    parser.add_argument("--classroom", action="store_true")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--update", type=pathlib.Path)
    try:
        make(parser.parse_args())
        return 0
    except (BadInput, functions.Mismatch) as error:
        say(f"ladder: {error}")
        return 2
    except (proof.Failure, golden.Failure) as error:
        say(f"ladder: {error}")
        return 1
    except KeyboardInterrupt:
        return 130
    except OSError as error:
        say(f"ladder: {error}")
        return 3
    except Exception:
        traceback.print_exc()
        return 4


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    sys.exit(main())
