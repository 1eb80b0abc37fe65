"""The zip that Gradescope builds its autograder from: the project's parts that grade, and two scripts at the root.

Gradescope's image is Ubuntu 22.04, whose Python has no tomllib: so the assignment is there in JSON, too.
"""
import json
import subprocess
import zipfile

import assignment as assignments
from assignment import ROOT, BadInput

PARTS = ["CMakeLists.txt", "LICENSE", "ladder", "command", "core", "course", "cpu_reference", "cuda_naive", "cuda_on_cpu",
         "cuda_optimized", "ladders", "oracle", "tests/planted_bugs", "tools/grade", "tools/handout"]
KEY = "term.key"
LONG_AGO = (1980, 1, 1, 0, 0, 0)  # of all files, so that the same commit gives the same bytes

SETUP = """#!/usr/bin/env bash
# Gradescope runs this once, with a network, when it builds the image.
set -euo pipefail
cd /autograder/source
apt-get update
apt-get install -y --no-install-recommends g++-12 cmake ninja-build libboost-context-dev python3
export CXX=g++-12
chmod 0600 {key}
# Graded once, the handout leaves all that is built for every submission.
mkdir -p /tmp/skeleton && cp -r skeleton /tmp/skeleton/everybody
python3 -B tools/grade/grade.py {name} /tmp/skeleton/everybody --out /tmp/warm --key {key}
"""

RUN = """#!/usr/bin/env bash
# Gradescope runs this for each submission, without a network.
set -euo pipefail
cd /autograder/source
export CXX=g++-12
# A submission is graded for the student whose id is its folder's name: as in the roster of ./ladder handout.
id=$(python3 - <<'END'
import json, pathlib, re
about = pathlib.Path("/autograder/submission_metadata.json")
users = json.loads(about.read_text()).get("users", []) if about.is_file() else []
first = users[0] if users else {{}}
name = str(first.get("sid") or first.get("email") or "everybody")
print(name if re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._@-]{{0,63}}", name) else "everybody")
END
)
work=$(mktemp -d)
cp -r /autograder/submission "$work/$id"
mkdir -p /autograder/results
status=0
python3 -B tools/grade/grade.py {name} "$work/$id" --out "$work/out" --key {key} || status=$?
if [[ -f "$work/out/$id/results.json" ]]; then
  cp "$work/out/$id/results.json" /autograder/results/results.json
else
  printf '{{"score": 0, "output": "The autograder failed (status %s). Tell your teacher."}}' "$status" \\
    >/autograder/results/results.json
fi
"""


def tracked():
    """The project's files that grade."""
    listed = subprocess.run(["git", "-C", ROOT, "ls-files", "--cached", "--others", "--exclude-standard", "--", *PARTS],
                            capture_output=True, text=True)
    if listed.returncode != 0:
        raise BadInput(f"gradescope: the project's files cannot be listed: {listed.stderr.strip()}")
    return [path for path in sorted(listed.stdout.split("\n")) if path and (ROOT / path).is_file()]


def require_possible(path):
    """Before anything is made."""
    if path.exists() or not path.resolve().parent.is_dir():
        raise BadInput(f"gradescope = {path}: must be a new file in a folder that is there")
    if not (ROOT / "tools/grade/grade.py").is_file():
        raise BadInput(f"gradescope = {path}: this copy of the project has no grader (tools/grade)")
    tracked()


def write(handout, key, path):
    """The zip. `handout`: the one for everybody, which is graded once while the image is built."""
    name = handout.assignment.name
    words = {"name": name, "key": KEY}
    files = {"setup.sh": SETUP.format(**words).encode(), "run_autograder": RUN.format(**words).encode(), KEY: key}
    files |= {file: (ROOT / file).read_bytes() for file in tracked()}
    for table in (f"course/{name}/assignment.toml", "course/course.toml"):
        as_json = json.dumps(assignments.tables_of(ROOT / table), indent=1) + "\n"
        files[table.replace(".toml", ".json")] = as_json.encode()
    files |= {f"skeleton/{file}": content for file, content in handout.files.items()}
    temporary = path.with_name(f".{path.name}.new")
    with zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as made:
        for file, content in sorted(files.items()):
            entry = zipfile.ZipInfo(file, LONG_AGO)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.create_system = 3  # Unix: the upper half of external_attr is the mode
            entry.external_attr = (0o100600 if file == KEY else 0o100755 if runs(file) else 0o100644) << 16
            made.writestr(entry, content)
    temporary.rename(path)


def runs(file):
    return file in ("setup.sh", "run_autograder", "ladder", "skeleton/ladder")
