#!/usr/bin/env python3
"""Checks the course: the checks that take minutes run only if something has changed since all of them passed.

    check_course.py [--all] [--write BY]

The checks are the proofs of the handouts, the attacks on the grader, and the grading of a class of 12.
tests/course.json has a digest of everything that each of them depends on, except the compiler: unchanged ones are
skipped. The class is that of the first assignment; with --all, classes of all assignments are graded, with solutions,
skeletons and planted bugs, and nothing is skipped. --write: if all checks pass, records this in tests/course.json,
with compiler BY. Exit status: 0 all checks pass, 1 a check fails.

"""
import argparse
import datetime
import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tools/handout"), str(ROOT / "tools/grade")]
sys.dont_write_bytecode = True
import assignment as assignments  # noqa: E402
import golden  # noqa: E402
import predictions  # noqa: E402
import proof  # noqa: E402
import tree  # noqa: E402

RECORD = ROOT / "tests/course.json"
ATTACKED = "a3_tile_and_halo"  # the assignment on which tests/command/test_attacks.py tries them
FIRST = "a1_loops"             # whose class takes half a minute
SKIPPED = 77


def what_proves(name):
    """Everything that the proof of an assignment depends on; instead of a1_loops' reference results, the sources that
    compute them."""
    def program(cases, closure):
        return golden.digest(golden.files_of(closure)).encode()
    return proof.what_proves(tree.Handout(assignments.read(name), answers=program))


def contents(*places):
    """path: bytes, for files and for all files below folders."""
    files = [file for place in places for file in ([ROOT / place] if (ROOT / place).is_file() else sorted((ROOT / place).rglob("*")))]
    return {file.relative_to(ROOT).as_posix(): file.read_bytes() for file in files if file.is_file() and file.suffix != ".pyc"}


def digests():
    """name of the check: digest of everything that it depends on."""
    proofs = {name: what_proves(name) for name in assignments.names()}
    # The attacked or graded files, the grader, and the expected results.
    attacks = proofs[ATTACKED] | contents("course/grader", "course/attacks", "oracle", "tests/command/test_attacks.py",
                                          *(f"tools/grade/{name}" for name in predictions.TRIES))
    of_class = proofs[FIRST] | contents("course", "oracle", "tools/grade", "tools/handout",
                                        "tests/command/course_trial.py", "tests/command/handed_in.py")
    return {name: proof.digest_of(files) for name, files in (proofs | {"attacks": attacks, "class": of_class}).items()}


def ask(script, *words, **environment):
    """Runs a program of tests/command. @returns whether all holds; None if this machine cannot say"""
    status = subprocess.run([sys.executable, "-B", ROOT / "tests/command" / script, *words], env=os.environ | environment).returncode
    return None if status == SKIPPED else status == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--write", metavar="BY")
    options = parser.parse_args()
    now = digests()
    held = {} if options.all or not RECORD.is_file() else json.loads(RECORD.read_text())["held"]
    changed = [name for name, digest in now.items() if held.get(name) != digest]
    handouts = [name for name in assignments.names() if name in changed]
    print(f"  handouts to be proven: {', '.join(handouts) or 'none, all are as they were proven'}", flush=True)
    answers = []
    if handouts:
        answers.append(ask("test_handout.py", "Proofs", CONVLADDER_HANDOUTS=" ".join(handouts)))
    if "attacks" in changed:
        answers.append(ask("test_attacks.py", CONVLADDER_COURSE_ALL="1"))
    else:
        print("  attacks: not tried again, nothing that they depend on has changed", flush=True)
    if options.all:
        answers += [ask("test_grade_trials.py", CONVLADDER_COURSE_ALL="1"), ask("course_trial.py")]
    elif "class" in changed:
        answers.append(ask("course_trial.py", FIRST, "--class-once"))
    else:
        print("  class: not graded again, nothing that it depends on has changed", flush=True)
    if options.write and all(answers) and changed:
        about = {"by": options.write, "date": str(datetime.date.today()), "held": now}
        RECORD.write_text(json.dumps(about, indent=2) + "\n")
        print(f"  recorded in {RECORD.relative_to(ROOT)}")
    return 1 if False in answers else 0


if __name__ == "__main__":
    sys.exit(main())
