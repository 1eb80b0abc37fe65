"""Leaves out of an extracted program what its one problem does not need, as g++ --coverage finds it.

The program is compiled for the emulator and run once. Of what gcov then counts, three kinds of text are left out:
- branches of `if constexpr` that no instance of a template has, on the host and on the device;
- branches of other `if` of the host's functions that the run did not take: choices for other problems. Those of the
  device's functions stay, bounds checks above all;
- functions, and members of classes, of which no code was made.
What is left must compile and compute the same; a name that the compiler misses stays in the next attempt.
"""
import atexit
import dataclasses
import functools
import json
import os
import pathlib
import re
import subprocess
import tempfile

import declarations

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
ON_DEVICE = re.compile(r"\b(?:__device__|__global__|HOST_DEVICE|__host__)\b")
IF = re.compile(r"\bif\b")
CHOICE = re.compile(r"\b(?:if|while|for)\b")
BREAK = "\n/*|*/"  # where a line of code is broken so that each branch has lines of its own
EFFECT = re.compile(r"\+\+|--|[(,]\s*&\w|(?<![=!<>])=(?!=)|\b(?:insert|emplace|push|pop|erase|exchange|take|next|atomic)\w*\s*\(")
ALWAYS = re.compile(r"\([\w.]*\bmap == TileMap::row_major\)")  # where there is no other map
LOCAL = re.compile(r"(?m)^[ \t]+(?:const(?:expr)?\s+)?[A-Za-z_][\w:]*(?:<[^;=(){}]*>)?(?:\s+const)?\s*[*&]?\s+[*&]?(\w+)\s*(?:=|\{)[^;{}]*(?:\{[^;{}]*\}[^;{}]*)*;[^\n]*\n")
# What cuda_on_cpu_add_kernels() puts around a file, see cuda_on_cpu/cmake.
BEFORE = """
extern constinit thread_local unsigned char marker_0;
constinit thread_local unsigned char marker_0 = 0;
"""
BEHIND = """
#include <cuda_on_cpu/static_shared.hpp>
extern constinit thread_local unsigned char marker_0, marker_1;
constinit thread_local unsigned char marker_1 = 0;
const cuda_on_cpu::detail::StaticSharedRange range([] { return &marker_0; }, [] { return &marker_1; });
"""


class Failed(Exception):
    """The compiler's messages, or why the program's result is not right."""


@dataclasses.dataclass
class Branch:
    """An if with its branches, or a loop, as positions in a text."""
    begin: int
    condition: tuple
    is_constexpr: bool
    then: tuple
    otherwise: tuple  # or None
    end: int


@dataclasses.dataclass
class Coverage:
    """What gcov says of one file, and of all functions."""
    counts: dict  # of each line of which there is code
    instances: dict  # of each function of cuda_on_cpu's ptx.hpp, its template arguments
    has_one_map: bool = False  # whether the program knows one TileMap alone

    def of(self, lines):
        return [self.counts[line] for line in lines if line in self.counts]


class Toolchain:
    """g++ with the emulator of the build, where both are found."""

    def __init__(self, build, cuda):
        self.compiler, self.cuda = os.environ.get("CXX", "g++"), cuda
        self.library = pathlib.Path(build).resolve() / "lib/libconvladder_cuda_on_cpu.so"

    def is_found(self):
        try:
            for tool in (self.compiler, "gcov"):
                subprocess.run([tool, "--version"], check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError):
            return False
        return not self.cuda or self.library.is_file()

    def coverage(self, text):
        """Compiles the text and runs it. @throws Failed if it does not compile, or is not right."""
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            (folder / "program.inc").write_text(text)
            (folder / "program.cpp").write_text('#include "program.inc"\n')
            flags = ["-std=c++20", "-w", "-O0", "--coverage", "-fmax-errors=20", "-I/usr/include/eigen3"]
            parts = ["program.cpp"]
            if self.cuda:
                flags += [f"-I{ROOT}/cuda_on_cpu/include"]
                before, behind = around(self.compiler)
                parts = [before, *parts, behind, str(self.library), f"-Wl,-rpath,{self.library.parent}", "-lboost_context", "-lpthread"]
            made = subprocess.run([self.compiler, *flags, *parts, "-o", "program"], cwd=folder, capture_output=True, text=True)
            if made.returncode != 0:
                raise Failed(made.stderr)
            try:
                ran = subprocess.run([folder / "program"], cwd=folder, capture_output=True, text=True, timeout=120)
            except subprocess.TimeoutExpired:
                raise Failed("the program does not end") from None
            if ran.returncode != 0:
                raise Failed("the program's result is not right: " + ran.stdout[-500:] + ran.stderr[-500:])
            data = next(folder.glob("*program.gcda"))
            found = subprocess.run(["gcov", "--json-format", "--stdout", data.name], cwd=folder, check=True, capture_output=True, text=True)
            return read(found.stdout)


@functools.cache
def around(compiler):
    """The objects that stand before and behind that of a program."""
    folder = tempfile.TemporaryDirectory(prefix="convladder_extract_")
    atexit.register(folder.cleanup)
    for name, text in (("before", BEFORE), ("behind", BEHIND)):
        (pathlib.Path(folder.name) / f"{name}.cpp").write_text(text)
        subprocess.run([compiler, "-std=c++20", "-w", f"-I{ROOT}/cuda_on_cpu/include", "-c", f"{name}.cpp"], cwd=folder.name, check=True)
    return [f"{folder.name}/{name}.o" for name in ("before", "behind")]


def read(output):
    counts, instances = {}, {}
    for line in output.splitlines():
        for file in json.loads(line)["files"]:
            if file["file"].endswith("program.inc"):
                for one in file["lines"]:
                    counts[one["line_number"]] = max(counts.get(one["line_number"], 0), one["count"])
            for one in file["functions"]:
                match = re.search(r"cuda_on_cpu::ptx::(\w+)<(.*?)>\(", one["demangled_name"])
                if match:
                    instances.setdefault(match.group(1), set()).add(tuple(part.strip() for part in match.group(2).split(",")))
    return Coverage(counts, instances)


def bare(text):
    """The text without comments, strings, and the ends of a macro's lines."""
    return declarations.hidden(text).replace("\\\n", " \n")


def end_of_statement(code, at):
    """Behind the statement that begins at `at`."""
    at = re.compile(r"\s*").match(code, at).end()
    while code[at] == "#":
        at = re.compile(r"[^\n]*\n\s*").match(code, at).end()
    if code[at] == "{":
        return declarations.closing(code, at)
    if IF.match(code, at):
        return branch_at(code, at).end
    if loop := re.compile(r"(?:for|while|switch)\b\s*").match(code, at):
        return end_of_statement(code, declarations.closing(code, loop.end()))
    if code.startswith("do ", at):
        at = end_of_statement(code, at + 2)
    while code[at] != ";":
        at = declarations.closing(code, at) if code[at] in "([{" else at + 1
    return at + 1


def branch_at(code, at):
    head = re.compile(r"(?:if|while|for)\b\s*(constexpr\b)?\s*").match(code, at)
    if code[head.end()] != "(":
        raise ValueError("no condition")
    condition = head.end(), declarations.closing(code, head.end())
    gap = re.compile(r"\s*")
    begin = gap.match(code, condition[1]).end()
    then = begin, end_of_statement(code, begin)
    otherwise, end = None, then[1]
    if IF.match(code, at) and (found := re.compile(r"\s*else\b\s*").match(code, end)):
        otherwise = found.end(), end_of_statement(code, found.end())
        end = otherwise[1]
    return Branch(at, condition, bool(head.group(1)), then, otherwise, end)


def branches(code, begin, end):
    """The ifs and loops between the two positions that are not inside of another."""
    at = begin
    while match := CHOICE.search(code, at, end):
        line = code.rfind("\n", 0, match.start()) + 1
        if code[line:match.start()].strip().startswith("#"):
            at = match.end()
            continue
        try:
            one = branch_at(code, match.start())
        except (ValueError, IndexError):
            return
        yield one
        at = one.end


def with_breaks(text):
    """The text with a line break before each branch that begins on its if's line."""
    code, places = bare(text), []

    def add(begin, end):
        for one in branches(code, begin, end):
            for part in (one.then, one.otherwise):
                if part:
                    word = code[part[0]]
                    if word != "{" and not IF.match(code, part[0]) and "\n" not in code[one.condition[1] if part is one.then else one.then[1]:part[0]]:
                        places.append(part[0])
                    add(*part)
            add(*one.condition)

    if not text.startswith("#"):
        add(0, len(code))
    for place in sorted(places, reverse=True):
        text = text[:place] + BREAK + text[place:]
    return text


def without_breaks(text):
    return text.replace(BREAK, "")


def functions_of(one):
    """(begin, end) of the functions of a declaration, and whether each is for the device."""
    code = one.code
    if one.kind == "function":
        return [(0, len(code), bool(ON_DEVICE.search(code[:code.find("{")] if "{" in code else code)))]
    if one.kind != "type" or "{" not in code:
        return [(0, len(code), True)]
    found = []
    begin = at = code.index("{") + 1
    end = declarations.closing(code, at - 1) - 1
    while (at := re.compile(r"\s*").match(code, at).end()) < end:
        if label := declarations.LABEL.match(code, at):
            at = label.end()
            continue
        if code[at] == "#":
            at = code.find("\n", at) + 1 or end
            continue
        stop = declarations.end_of(code, at)
        head = code[at:stop].split("{")[0]
        found.append((at, stop, bool(ON_DEVICE.search(head))))
        at = stop + (code[stop:stop + 1] == ";")
    return found


def is_compiled(one):
    """Whether the emulator's compiler sees the declaration: not what is for nvcc."""
    for _, branch, lines in one.guards:
        head = lines[branch] if branch == 0 else lines[0]
        negative = "ifndef" in lines[0]
        if "__CUDACC__" in head and (branch == 0) != negative:
            return False
        if "__CUDA_ARCH" in head and branch == 0:
            return False
    return True


def conditional_ranges(code):
    """Where in a text the preprocessor chooses."""
    found, depth, begin = [], 0, 0
    for match in re.finditer(r"(?m)^[ \t]*#[ \t]*(if|endif)\w*[^\n]*", code):
        if match.group(1) == "if":
            begin = match.start() if depth == 0 else begin
            depth += 1
        else:
            depth -= 1
            if depth == 0:
                found.append((begin, match.end()))
    return found


def truth(condition, bindings):
    """The values that a condition has for these values of a template's parameters; None: it says more."""
    python = re.sub(r"!(?!=)", " not ", condition).replace("&&", " and ").replace("||", " or ")
    python = re.sub(r"\btrue\b", "True", re.sub(r"\bfalse\b", "False", python)).replace("\n", " ")
    values = set()
    for binding in bindings:
        try:
            values.add(bool(eval(python, {"__builtins__": {}}, dict(binding))))  # of the project's own code
        except Exception:  # noqa: BLE001  (a condition of other names)
            return None
    return values


def cut(one, text, begin_line, coverage, of_run, bindings):
    """The text without branches that nothing needs."""
    code = bare(text)
    if not CHOICE.search(code) and not bindings:
        return text
    compiled = is_compiled(one)
    functions, chosen = functions_of(one), conditional_ranges(code)

    def lines(begin, end):
        begin = re.compile(r"\s*").match(code, begin).end()
        end = len(code[:end].rstrip())
        return range(begin_line + code.count("\n", 0, begin), begin_line + code.count("\n", 0, end) + 1)

    def inner(part):
        begin, end = part
        return (begin + 1, end - 1) if code[begin] == "{" else part

    def is_dead(branch, part, function, line_of_if):
        """Whether a branch can go."""
        inside = inner(part)
        words = code[slice(*inside)].strip()
        if not words.strip(";") or words.startswith("static_assert"):
            return False
        own = [line for line in lines(*inside) if line not in line_of_if]
        if not own:
            return False
        counts = coverage.of(own)
        if branch.is_constexpr:
            return not counts and bool(coverage.of(lines(*function[:2])))
        if function[2] or not of_run:
            return False
        condition = code[slice(*branch.condition)]
        if re.search("cuda|CUDA", condition):  # the check of a call
            return False
        if EFFECT.search("" if code.startswith("for", branch.begin) else condition) or re.search(rf"\b{re.escape(name_of(one, code, function))}\s*(<|\()", code[function[0]:function[1]].partition("{")[2] or " "):
            return False
        return bool(counts) and max(counts) == 0 and max(coverage.of(lines(*branch.condition)), default=0) > 0

    def render(begin, end, bindings):
        out, at = "", begin
        for branch in branches(code, begin, end):
            gone = at == branch.begin and not out
            out += text[at:branch.begin]
            replacement = rendered(branch, bindings)
            if not replacement.strip():
                # The comment that is about it goes as well.
                out = re.sub(r"(?:\n[ \t]*//[^\n]*)*\n[ \t]*\Z", "\n", out) if not gone else out
                at = branch.end
                if text[at:at + 1] == "\n" and out.endswith("\n"):
                    at += 1
                else:
                    rest = re.compile(r"[ \t]*//[^\n]*\n").match(text, at)
                    at = rest.end() if rest and out.endswith("\n") else at
                continue
            out += replacement
            at = branch.end
        return out + text[at:end]

    def unwrapped(part, bindings):
        """A branch's statements, where the if was."""
        inside = render(*part, bindings)
        if not inside.startswith("{"):
            return inside.replace(BREAK, "")
        column = begin_column(part)
        inside = inside[1:-1]
        shift = None
        for line in inside.split("\n"):
            if line.strip() and not line.startswith("#") and line != "/*|*/":
                spaces = len(line) - len(line.lstrip())
                shift = spaces if shift is None else min(shift, spaces)
        shift = max((shift or 0) - column, 0)
        inside = "\n".join(line[shift:] if line[:shift].isspace() else line for line in inside.split("\n"))
        return re.sub(r"^[\s\\]+|[\s\\]+$", "", inside)

    def begin_column(part):
        line = text.rfind("\n", 0, part[0]) + 1
        return len(text[line:]) - len(text[line:].lstrip())

    def rendered(branch, bindings):
        then, otherwise = branch.then, branch.otherwise
        function = next((each for each in functions if each[0] <= branch.begin < each[1]), (0, len(code), True))
        in_choice = any(begin <= branch.begin < end for begin, end in chosen)
        dead_then = dead_otherwise = False
        behind = bindings  # of them, those that the else has
        if bindings and branch.is_constexpr:
            values = truth(code[branch.condition[0] + 1:branch.condition[1] - 1], bindings)
            if values is not None:
                behind = [each for each in bindings if truth(code[branch.condition[0] + 1:branch.condition[1] - 1], [each]) == {False}]
                dead_then, dead_otherwise = True not in values, False not in values
        elif compiled and not in_choice and not (one.kind == "other"):
            at_if = set(lines(branch.begin, branch.condition[1]))
            dead_then = is_dead(branch, then, function, at_if)
            dead_otherwise = bool(otherwise) and is_dead(branch, otherwise, function, set())
        if coverage.has_one_map and ALWAYS.fullmatch(code[slice(*branch.condition)]):
            dead_otherwise = True
        if dead_then and (dead_otherwise or not otherwise):
            return ""
        if dead_then:
            return unwrapped(otherwise, behind)
        if dead_otherwise and (otherwise or branch.is_constexpr or coverage.has_one_map):
            return unwrapped(then, bindings)
        out = text[branch.begin:branch.condition[0]] + text[slice(*branch.condition)] + text[branch.condition[1]:then[0]] + render(*then, bindings)
        if otherwise:
            rest = render(*otherwise, behind)
            nested = IF.match(code, otherwise[0])
            if nested and not IF.match(rest):
                indent = " " * begin_column((branch.begin, 0))
                rest = rest.strip()
                if not rest:
                    return out
                rest = "{\n" + indent + "  " + rest.replace("\n", "\n  ") + "\n" + indent + "}"
            out += text[then[1]:otherwise[0]] + rest
        return out

    result = render(0, len(code), bindings)
    return aligned(result) if result != text and bindings and "\\\n" in result else result


def aligned(text):
    """The text with the backslashes of its macro in one column."""
    comment = re.match(r"(?:\s*//[^\n]*\n)*", text).group()
    lines = [line.rstrip(" \\") for line in text[len(comment):].split("\n")]
    lines = [line for line in lines if line.strip()]
    width = max(len(line) for line in lines) + 1
    return comment + "\n".join([*(line.ljust(width) + "\\" for line in lines[:-1]), lines[-1]])


def name_of(one, code, function):
    """The name of the function."""
    if one.kind == "function":
        return next(iter(one.names), "?")
    head = re.search(r"(\w+)\s*\(", code[function[0]:function[1]])
    return head.group(1) if head else "?"


def without_unused_locals(text):
    """Without variables that a function of the host mentions once, where they are set."""
    while True:
        code = declarations.hidden(text)
        for match in LOCAL.finditer(code):
            name = match.group(1)
            if (len(re.findall(rf"\b{name}\b", code)) == 1 and not EFFECT.search(match.group().partition(name)[2].lstrip(" =")) and "check(" not in match.group()
                    and not match.group().strip().startswith(("return", "else", "using", "throw"))):
                comment = re.compile(r"(?:[ \t]*//[^\n]*\n)*\Z").search(text[:match.start()])
                text = text[:comment.start()] + text[match.start() + len(match.group()):]
                break
        else:
            return text


def unused(kept, starts, coverage, keep):
    """Of functions and of members of which there is no code: indices of the declarations, and (index, members)."""
    inactive = set()
    for one, text in kept:
        code = bare(text)
        if not is_compiled(one):
            inactive |= set(declarations.ANY_IDENTIFIER.findall(code))
        for begin, end in conditional_ranges(code):
            inactive |= set(declarations.ANY_IDENTIFIER.findall(code[begin:end]))
        if re.search(r"\bdecltype|\bsizeof|\brequires\b", code):
            for match in re.finditer(r"\b(?:decltype|sizeof|requires)\s*\(", code):
                inactive |= set(declarations.ANY_IDENTIFIER.findall(code[match.start():declarations.closing(code, match.end() - 1)]))

    def code_of(index, begin, end):
        text = kept[index][1]
        first = starts[index] + text.count("\n", 0, begin)
        return coverage.of(range(first, starts[index] + text.count("\n", 0, end) + 1))

    gone, members = set(), {}
    executed = {}
    for index, (one, text) in enumerate(kept):
        if one.kind == "function" and one.defines and max(code_of(index, 0, len(text)), default=0) > 0:
            for name in one.names:
                executed.setdefault(name, []).append(index)
    dropped = set()
    for index, (one, text) in enumerate(kept):
        if not is_compiled(one):
            continue
        code = bare(text)
        if one.kind == "function" and one.defines and not one.names & keep:
            head = code.split("{")[0]
            name = next(iter(one.names))
            counts = code_of(index, 0, len(text))
            if "constexpr" in head or "consteval" in head:
                continue
            if name in ("operator",) or one.owner:
                continue
            if not counts and name not in inactive:
                gone.add(index)
                dropped |= {(name, declarations.normal(one.parameters))}
            elif (counts and max(counts) == 0 and executed.get(name) and not ON_DEVICE.search(head) and "<" not in head.split("(")[0]):
                gone.add(index)
                dropped |= {(name, declarations.normal(one.parameters))}
        elif one.kind == "type" and one.defines and "{" in code and "enum" not in code.split("{")[0]:
            unneeded = []
            for member in one.members:
                begin, end, names, is_data = member
                piece = code[begin:end]
                if is_data or "{" not in piece or "constexpr" in piece.split("{")[0] or names & (keep | inactive):
                    continue
                if not code_of(index, begin + len(piece) - len(piece.lstrip()), end - 1):
                    unneeded.append(member)
            for begin, end, on_device in functions_of(one):
                piece = code[begin:end]
                if re.match(r"(explicit\s+|template\s*<[^>]*>\s*)*(HOST_DEVICE\s+|__device__\s+)?operator\b", piece) and "{" in piece and not code_of(index, begin, end):
                    line = re.compile(r"[ \t]*\n?").match(text, end).end()
                    comment = re.compile(r"(?:[ \t]*//[^\n]*\n)*[ \t]*\Z").search(text[:begin]).start()
                    unneeded.append((comment, line, frozenset({"operator"}), False))
            if unneeded:
                members[index] = unneeded
    for index, (one, text) in enumerate(kept):
        if one.kind == "function" and not one.defines and not one.names & keep and (next(iter(one.names)), declarations.normal(re.sub(r"\s*=[^,)]*", "", one.parameters))) in {
                (name, declarations.normal(re.sub(r"=[^,)]*", "", parameters))) for name, parameters in dropped}:
            gone.add(index)
    return gone, members


def bindings_of(one, text, coverage, of_macros):
    """Values of the template parameters of a function for nvcc that the emulator has, too; for a macro, of all callers."""
    if is_compiled(one):
        return []
    if text.lstrip().startswith(("#define", "//")) and one.kind == "other":
        return of_macros
    if one.kind != "function":
        return []
    name = next(iter(one.names))
    head = re.search(r"template\s*<(.*?)>", one.code, re.S)
    if name not in coverage.instances or not head:
        return []
    parameters = re.findall(r"(?:int|bool|unsigned)\s+(\w+)", head.group(1))
    result = []
    for values in coverage.instances[name]:
        if len(values) >= len(parameters):
            result.append({parameter: {"true": 1, "false": 0}.get(value, int(re.sub(r"\D", "", value) or 0)) for parameter, value in zip(parameters, values)})
    return result


def key(one):
    """What a declaration is known by from round to round."""
    return one.file, one.kind, min(one.names, default=""), declarations.normal(one.parameters)


def round_of(kept, starts, coverage, keep, uncut, of_run):
    """The declarations after one round, as (declaration, text)."""
    of_macros = [binding for one, text in kept if one.kind == "function" for binding in bindings_of(one, text, coverage, []) if "kN" in binding]
    gone, members = unused(kept, starts, coverage, keep)
    result = []
    for index, (one, text) in enumerate(kept):
        if index in gone:
            continue
        if key(one) in uncut:
            result.append((one, text))
            continue
        shorter = cut(one, text, starts[index], coverage, of_run and "all" not in uncut, bindings_of(one, text, coverage, of_macros))
        if index in members:
            if shorter == text:
                shorter = declarations.without(text, members[index])
        if one.kind == "function" and not ON_DEVICE.search(one.code.split("{")[0]) and shorter != text:
            shorter = without_unused_locals(shorter)
        result.append((one, shorter))
    return result


IDENTITY = re.compile(r"[^(){}]*\b(\w+)\((?:const )?[\w:]+&? (\w+)\) \{\s*return \2;\s*\}\s*")


def without_identities(kept):
    """Without functions of the host that return what they are given, now that the rest is gone."""
    for one, _ in list(kept):
        index = next((index for index, (other, _) in enumerate(kept) if other is one), None)
        match = IDENTITY.fullmatch(declarations.hidden(kept[index][1])) if one.kind == "function" and index is not None else None
        if not match or ON_DEVICE.search(match.group()) or "template" in match.group():
            continue
        name = match.group(1)
        call = re.compile(rf"(?<![\w.>])(?:\w+::)*{name}\(([\w.]*)\)")
        rest = kept[:index] + kept[index + 1:]
        if all(len(re.findall(rf"\b{name}\b", declarations.hidden(text))) == len(call.findall(declarations.hidden(text))) for _, text in rest):
            kept = [(other, call.sub(r"\1", text)) for other, text in rest]
    return kept


CHOICE_OF_MAP = re.compile(r"[\w.]*\bmap == TileMap::row_major\s*\?\s*")


def without_other_maps(text):
    """The text with what `map == TileMap::row_major ? this : that` says where there is no other map."""
    at = 0
    while match := CHOICE_OF_MAP.search(code := declarations.hidden(text), at):
        def end_of_part(begin, ends):
            while code[begin] not in ends or code[begin:begin + 2] == "::" or code[begin - 1:begin + 1] == "::":
                begin = declarations.closing(code, begin) if code[begin] in "([{" else begin + 1
            return begin

        colon = end_of_part(match.end(), ":")
        end = end_of_part(colon + 1, ",;)}")
        text = text[:match.start()] + text[match.end():colon].rstrip() + text[end:]
        at = match.start()
    return text


def without_idle_members(kept):
    """Without members of structs that a constructor sets and nothing reads."""
    for index, (one, text) in enumerate(kept):
        if one.kind != "type" or not one.defines:
            continue
        for match in list(re.finditer(r"(?m)^  [\w:]+(?:<[^;]*>)? (\w+);[^\n]*\n", text)):
            name = match.group(1)
            everywhere = sum(len(re.findall(rf"\b{name}\b", declarations.hidden(each))) for _, each in kept)
            code = declarations.hidden(text)
            if everywhere != 2 or not (init := re.search(rf"[:,]\s*{name}\(", code)):
                continue
            end = declarations.closing(code, init.end() - 1)
            if re.match(r"\s*,", code[end:]):  # others follow
                rest = re.compile(r"\s*,\s*").match(code, end).end()
                text = text[:init.end() - len(name) - 1] + text[rest:]
            elif code[init.start()] == ",":
                text = text[:init.start()] + text[end:]
            else:
                text = text[:init.start()].rstrip() + text[end:]
            declaration = text.find(match.group())
            text = text[:declaration] + text[declaration + len(match.group()):]
            kept = [*kept[:index], (one, text), *kept[index + 1:]]
    return kept
