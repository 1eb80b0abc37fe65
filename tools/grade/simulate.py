#!/usr/bin/env python3
"""Writes a simulated class: submissions as students hand them in, to try a grader on.

    simulate.py ASSIGNMENT DIR [--count N] [--seed S] [--key FILE] [--truth FILE] [--counted]

Two thirds are right, in other words: edits of course/simulated_class/ASSIGNMENT.toml, other names, other steps of loops.
The rest are planted bugs, partial work, files that do not compile, and hostile ones, those of course/attacks too. The
same arguments give the same bytes. --truth writes what each is. --counted predicts what the microscope counts, which
takes a build; otherwise predictions are left open. Exit status: 0 done, 2 bad input, 3 the microscope cannot be built.
"""
import argparse
import io
import json
import os
import pathlib
import random
import re
import sys
import tomllib
import zipfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "handout"))
import assignment as assignments  # noqa: E402
import diagnosis  # noqa: E402
import functions  # noqa: E402
import predictions  # noqa: E402
import trials  # noqa: E402
from assignment import COURSE, BadInput  # noqa: E402
from handout import key_of  # noqa: E402
from tree import Handout  # noqa: E402

LOCAL = re.compile(r"\b(?:int|unsigned|float|bool|auto|std::int64_t)\s+(\w+)\s*=")


class Parser(argparse.ArgumentParser):
    def error(self, message):
        raise BadInput(message)


def edits_of(assignment):
    """(table of edits, the hunt's problem) of course/simulated_class."""
    file = COURSE / "simulated_class" / f"{assignment.name}.toml"
    table = tomllib.loads(file.read_text()) if file.is_file() else {}
    return table.get("edit", []), table.get("hunt_problem", "")


# --- Right, in other words

def renamed(text, dice):
    """Local variables under other names."""
    code = functions.code_of(text)
    names = sorted(set(LOCAL.findall(code)))
    fresh = {name: f"{name}_{dice.choice(['of_block', 'here', 'now', '2'])}" for name in names if dice.random() < 0.6}
    # Not where a member has the name, too.
    fresh = {name: other for name, other in fresh.items() if not re.search(rf"[.>]\s*{name}\b", code)}
    for name, other in fresh.items():
        places = [match.span() for match in re.finditer(rf"\b{name}\b", functions.code_of(text))]
        for begin, end in reversed(places):
            text = text[:begin] + other + text[end:]
    return text


def other_steps(text, dice):
    """++i in some loops as i += 1."""
    return re.sub(r"\+\+(\w+)\)", lambda found: f"{found.group(1)} += 1)" if dice.random() < 0.5 else found.group(), text)


def commented(text, dice, student):
    return "".join(line + (f"  // {student}, {dice.randrange(1000)}" if line.endswith(";") and dice.random() < 0.1 else "") + "\n"
                   for line in text.split("\n"))[:-1]


def right(assignment, dice, student):
    """The project's files in other words."""
    files = {path: content.decode() for path, content in predictions.project_files(assignment).items()}
    for edit in edits_of(assignment)[0]:
        find = edit["find"].strip("\n")
        if files[edit["file"]].count(find) != 1:
            raise BadInput(f"course/simulated_class/{assignment.name}.toml: find = {find[:40]}: must stand once in {edit['file']}")
        if dice.random() < 0.5:
            files[edit["file"]] = files[edit["file"]].replace(find, edit["replace"].strip("\n"))
    for path, text in files.items():
        places = [blank.place_in(text) for blank in assignment.blanks if blank.file == path]
        for begin, end in sorted(places, reverse=True):
            body = commented(other_steps(renamed(text[begin:end], dice), dice), dice, student)
            text = text[:begin] + body + text[end:]
        files[path] = text
    return {path: text.encode() for path, text in files.items()}


# --- Wrong

def partial(handout, dice):
    """Some blanks are written, others as they were handed out."""
    blanks = handout.assignment.blanks
    left = dice.sample(blanks, dice.randint(1, max(1, len(blanks) - 1)))
    solved = {path: text.encode() for path, text in handout.solution().items()}
    return solved | {blank.file: handout.files[blank.file] for blank in left}


def broken(files, dice):
    """(files, how) of work that does not compile, or is not whole."""
    path = dice.choice(sorted(files))
    text = files[path].decode()
    how = dice.choice(["semicolon", "brace", "half", "empty", "missing", "unknown name", "binary"])
    semicolons = [match.start() for match in re.finditer(r";\n", functions.code_of(text))]
    changed = {"semicolon": lambda at: text[:at] + text[at + 1:], "brace": lambda at: text[:at] + "}" + text[at:],
               "half": lambda at: text[:at], "empty": lambda at: "",
               "unknown name": lambda at: text[:at] + " + no_such_name" + text[at:]}
    if how == "missing":
        return {name: content for name, content in files.items() if name != path}, how
    if how == "binary":
        return files | {path: bytes(dice.randrange(256) for _ in range(500))}, how
    return files | {path: changed[how](dice.choice(semicolons)).encode()}, how


def attacks_of(assignment):
    """name -> {file: text}: those of course/attacks that take the place of a file of this assignment."""
    written = predictions.project_files(assignment)
    found = {}
    for attack in sorted((COURSE / "attacks").glob("*.cu")):
        text = attack.read_text()
        space = re.search(r"namespace convladder::BACKEND::(\w+)::(\w+) \{", text)
        rung = re.search(r"extern const Implementation<\w+> (\w+)", text)
        file = f"{space.group(1)}/{space.group(2)}/{rung.group(1)}.cu" if space and rung else ""
        if file in written:
            found[attack.stem] = {file: attack.read_bytes()}
    return found


def hostile_zip(kind, files):
    """What a zip may be, beside a zip."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        def put(name, content):
            entry = zipfile.ZipInfo(name, (2026, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o120777 if kind == "link" else 0o100644) << 16
            archive.writestr(entry, content)
        for name, content in files.items():
            put(name, {"link": b"/etc/passwd", "bomb": b"\0" * 50_000_000}.get(kind, content))
            if kind in ("link", "bomb"):
                break
        if kind == "way out":
            put("../../results.json", b"{}")
        if kind == "many entries":
            for i in range(2000):
                put(f"{i}", b"")
    return out.getvalue()


def write_hostile(folder, kind, files):
    if kind == "pipe":
        path = sorted(files)[0]
        (folder / path).parent.mkdir(parents=True)
        os.mkfifo(folder / path)
    elif kind == "words":
        path = sorted(files)[0]
        lay(folder, files | {path: b'#error "<script>alert(1)</script> ]]> \x1b[31m =cmd()"\n' + files[path]})
    else:
        (folder.with_name(folder.name + ".zip")).write_bytes(hostile_zip(kind, files))


HOSTILE = ["pipe", "link", "bomb", "way out", "many entries", "words"]


# --- The class

def lay(folder, files):
    for path, content in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)


def kinds_of(count, bugs, attacks, dice):
    """(kind, which) of each: two thirds right, a twelfth hostile; the rest bugs, partial work, broken files in turn."""
    hostile = max(1, count // 12)
    wrong = count // 4
    ways = [("hostile", name) for name in HOSTILE] + [("attack", name) for name in sorted(attacks)]
    dice.shuffle(ways)
    chosen = [ways[i % len(ways)] for i in range(hostile)]
    # Each bug once, but room for others.
    most_bugs = max(1, min(wrong * 2 // 3, wrong - 2))
    planted = [("planted", name) for name in sorted(bugs)][:most_bugs]
    chosen += planted
    chosen += [("broken", "") if i % 2 else ("partial", "") for i in range(max(0, wrong - len(planted)))]
    chosen += [("right", "")] * (count - len(chosen))
    dice.shuffle(chosen)
    return chosen[:count]


def simulate(assignment, folder, count, seed, key, counted=None):
    """Writes the submissions. @returns name -> {kind, of}"""
    dice = random.Random(f"{assignment.name}|{seed}")
    bugs, attacks = diagnosis.planted_bugs(assignment), attacks_of(assignment)
    hunt_problem = edits_of(assignment)[1]
    truth = {}
    for number, (kind, which) in enumerate(kinds_of(count, bugs, attacks, dice), 1):
        student = f"s{number:03}"
        handout = Handout(assignment, key, student)
        project = predictions.project_files(assignment)
        own = {path: handout.files[path] for path in assignment.submit}
        if kind == "right":
            own |= right(assignment, dice, student)
        elif kind == "planted":
            file, text = bugs[which]
            own |= project | {file: text}
        elif kind == "attack":
            own |= project | attacks[which]
        elif kind == "partial":
            own |= partial(handout, dice)
        elif kind == "broken":
            files, which = broken(right(assignment, dice, student), dice)
            own = {path: content for path, content in own.items() if path not in project} | files
        if kind in ("right", "planted", "hostile"):
            if assignment.predictions:
                own |= {"predictions.json": predicted(assignment, own["predictions.json"], counted, dice)}
            if assignment.hunt_rung:
                own |= predictions.right_hunt(assignment) | {"hunt/problem.txt": (hunt_problem + "\n").encode()}
        if kind == "hostile":
            write_hostile(folder / student, which, own | project)
        else:
            lay(folder / student, own)
        truth[student] = {"kind": kind, "of": which}
    return truth


def predicted(assignment, content, counted, dice):
    """predictions.json with what is counted in it; one in five is wrong."""
    asked = json.loads(content)
    for of in assignment.predictions:
        if counted:
            value = counted(of.counter, of.rung, asked[of.id]["problem"])
            asked[of.id]["value"] = value * 1.5 + 1 if dice.random() < 0.2 else value
    return (json.dumps(asked, indent=2) + "\n").encode()


def main():
    parser = Parser(usage="simulate.py ASSIGNMENT DIR [--count N] [--seed S] [--key FILE] [--truth FILE] [--counted]",
                    allow_abbrev=False)
    parser.add_argument("assignment")
    parser.add_argument("dir", type=pathlib.Path)
    parser.add_argument("--count", type=int, default=12)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--key", type=pathlib.Path)
    parser.add_argument("--truth", type=pathlib.Path)
    parser.add_argument("--counted", action="store_true")

    def say(line):
        print(line, file=sys.stderr, flush=True)
    try:
        options = parser.parse_args()
        assignment = assignments.read(options.assignment)
        if not 1 <= options.count <= 999:
            raise BadInput(f"count = {options.count}: must be 1 to 999")
        if options.dir.exists() and any(options.dir.iterdir()):
            raise BadInput(f"dir = {options.dir}: is not empty")
        options.dir.mkdir(parents=True, exist_ok=True)
        counted = predictions.Counted(trials.Trials(assignment, key_of(options.key), say=say)) if options.counted else None
        truth = simulate(assignment, options.dir, options.count, options.seed, key_of(options.key), counted)
        if options.truth:
            options.truth.write_text(json.dumps(truth, indent=1) + "\n")
        print(f"{options.dir}: {len(truth)} submissions to {assignment.name}")
        return 0
    except (BadInput, functions.Mismatch) as error:
        say(f"ladder: {error}")
        return 2
    except (predictions.CannotCount, OSError) as error:
        say(f"ladder: {error}")
        return 3


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    sys.exit(main())
