"""Right answers of cases, computed by the project's reference, for a handout in which it would be the solution."""
import hashlib
import os
import subprocess

from assignment import COURSE, ROOT

KEPT = ROOT / "build/handout/golden"  # the program, by the digest of what it is made of
SOURCES = ["tools/handout/write_golden.cpp", "oracle/reference.cpp", "oracle/data.cpp",
           *(f"oracle/ladders/{ladder}.cpp" for ladder in ("conv2d", "im2col", "col2im"))]
STUDENT_SOURCES = ["check/golden.cpp", "check/options.cpp", "check/trial.cpp"]


class Failure(Exception):
    """The answers could not be made."""


def files_of(closure):
    """What the program is made of. `closure`: tree.closure."""
    return sorted(closure(SOURCES)) + sorted(path.relative_to(ROOT).as_posix() for path in (COURSE / "student/check").iterdir())


def digest(files):
    return hashlib.sha256(b"".join(path.encode() + (ROOT / path).read_bytes() for path in files)).hexdigest()[:16]


def program(closure):
    """The program, compiled anew if one of its files has changed."""
    student, files = COURSE / "student", files_of(closure)
    key = digest(files)
    made = KEPT / key
    if made.is_file():
        return made
    KEPT.mkdir(parents=True, exist_ok=True)
    sources = [ROOT / path for path in files if path.startswith(("oracle/", "core/", "tools/")) and path.endswith(".cpp")]
    sources += [student / path for path in STUDENT_SOURCES]
    temporary = KEPT / f".{key}.{os.getpid()}"
    # All as one unit, which takes a sixth of the time.
    done = subprocess.run([os.environ.get("CXX", "c++"), "-std=c++20", "-O0", "-DCHECK_WITHOUT_SITES", "-I", ROOT, "-I", student,
                           "-I", ROOT / "cuda_on_cpu/include", "-x", "c++", "-", "-o", temporary],
                          input="".join(f'#include "{path}"\n' for path in sources), capture_output=True, text=True)
    if done.returncode != 0:
        raise Failure(f"the program that writes right answers does not compile:\n{done.stderr[:2000]}")
    temporary.rename(made)  # found whole, or not at all
    return made


def answers(cases, closure):
    """expected/answers.txt, as bytes. `cases`: the text of check/cases.txt."""
    done = subprocess.run([program(closure)], input=cases.encode(), capture_output=True)
    if done.returncode != 0:
        raise Failure(done.stderr.decode().strip())
    return done.stdout
