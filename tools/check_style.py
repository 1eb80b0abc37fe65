"""Checks the wording of comments, headers, pages and messages: CONTRIBUTING.md, "How we write".

    check_style.py [--list]        --list prints all hits, also those that tools/not_yet_plain.txt permits

Each rule of RULES is a word or phrase that has a standard term. A hit is reported in comments and string literals of C++ and
CUDA files, in comments, docstrings and string literals of Python files, in comments of scripts and CMake files, and in the
text of Markdown files outside of code. CHANGELOG.md, which describes earlier versions in their words, is not checked.

tools/not_yet_plain.txt lists folders and files that are not yet clean, with the most hits that each may have. An entry with
fewer hits may be lowered; one without hits must be removed. A rung's one-line summary must be `TECHNIQUE: effect` or contain
a verb.
"""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
NOT_YET = "tools/not_yet_plain.txt"
FIRST_NOT_CHECKED = ("CHANGELOG.md", "LICENSE", "THIRD_PARTY.md", "tools/check_style.py", NOT_YET)
LONGEST_RUNG_HEADER = 25  # lines, without @expect

# (pattern, the term to use). Patterns ignore case; context that makes a word harmless is part of the pattern.
RULES = [
    (r"copy engine", "TMA (descriptors) or asynchronous copy (cp.async)"),
    (r"\bsums? in (?:float|registers|FP32)\b|\bin sums of\b", "accumulators"),
    (r"\b(?:first|second|left|right|both|its|whose|two) factors?\b(?! of| between| by| is about| that is the same)",
     "operand A, operand B"),
    (r"\bturns? of (?:the )?(?:banks|blocks)\b|\bturns where\b|\b\d+ turns\b(?! of a)", "wavefront or wave"),
    (r"\bround of (?:a |the )?(?:barrier|ring)\b", "phase"),
    (r"\bdraft in shared memory\b|\bdrafts of tiles\b", "staging buffer"),
    (r"\bwork places?\b|\bplaces that count on\b", "tile scheduler; CSR layout"),
    (r"\bbring(?:s|ing)? (?:bytes|boxes|tiles|rows|columns|numbers|pixels|a tile|what)\b|\bhand(?:s|ed|ing)? (?:over|out) tiles\b",
     "load, copy, assign"),
    (r"\bnobody(?:'s)?\b|\bto spare\b", "no thread ...; padding columns, out-of-range columns"),
    (r"\bnumbers? of (?:16|8) bits\b|\b(?:16|8)-bit numbers\b", "half precision (fp16, bf16), FP8, 16-bit elements"),
    (r"\bmatrix products?\b(?!:| c = a b)|\bproducts? of matrices\b", "GEMM"),
    (r"\bwarps? that (?:loads?|multipl(?:y|ies))\b", "producer warp, consumer warpgroup"),
    (r"\bblocks that stay\b", "persistent kernel"),
    (r"\bshared memory of another block\b(?!,)", "distributed shared memory"),
    (r"\bearly launch\b|\blate store\b|\ball filters stay\b", "PDL, overlapped epilogue, weight-stationary"),
    (r"\bturn(?:s|ed|ing)? (?:round|over|about)\b|\bthe arrow\b|\bthe other way round\b",
     "transposed, reversed, inverse, exchanged"),
    (r"(?<![\x22\'/])\bjudge[ds]?\b(?! LEVEL| probe)(?![.(/'\x22_])", "checker, compared, verified"),
    (r"\bkernels? (?:wants?|asks?|knows?|speaks?|says?|brings?)\b|\bcompilers? (?:wants?|asks?|thinks?)\b"
     r"|\bwhat .{1,40} asks? of (?:the )?memory\b", "what it does, in technical terms"),
    (r"\bhouse's\b|\bin the house\b", "the project's"),
    (r"\bwhole numbers?\b", "integers"),
    (r"\bbehind (?:a |the |its |that |each )?(?:barrier|array|end|last|row|element|point)\b", "after, beyond"),
    (r"\bfor want of\b|\bfor the sake of\b|\bnevertheless\b|\bin vain\b", "a plain description"),
    (r"\b(?:do|does|is|are|was|has|have|can|must|should|would|could)n't\b|\b(?:it|that|there|what)'s\b|\bcan't\b|\bwon't\b",
     "no contractions"),
    (r"\b(?:optimize|optimization|behavior|neighbor|parallelize|summarize)[ds]?\b(?=[ .,;:)])",
     "British spelling"),
]
PATTERNS = [(re.compile(pattern, re.IGNORECASE), term) for pattern, term in RULES]
NO_TECHNIQUE = re.compile(r"^(?!.*\b\w+(?:s|ed|ing)\b)(?!.*:)")  # a summary without colon and without a verb


def files():
    listed = subprocess.run(["git", "-C", ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard"], check=True,
                            capture_output=True, text=True).stdout.split("\0")
    return [name for name in sorted(filter(None, listed)) if (ROOT / name).is_file() and name not in FIRST_NOT_CHECKED]


def prose_of_cpp(text):
    """(offset, text) of each comment and string literal."""
    token = re.compile(r'//[^\n]*|/\*.*?\*/|R"([^()\\ ]{0,16})\((?:.*?)\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL)
    for found in token.finditer(text):
        literal = found.group()
        if literal.startswith("'") or text[max(0, text.rfind("\n", 0, found.start()) + 1):found.start()].lstrip().startswith("#"):
            continue
        yield found.start(), literal


def prose_of_python(text, strings=True):
    token = re.compile(r'"""(?:.*?)"""|#[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL)
    for found in token.finditer(text):
        if strings or found.group().startswith(('"""', "#")):
            yield found.start(), found.group()


def prose_of_script(text):
    for found in re.finditer(r"(?m)(?:^|\s)#[^\n]*", text):
        yield found.start(), found.group()


def prose_of_markdown(text):
    without_code = re.sub(r"```.*?```|`[^`\n]*`|^(?: {4}|\t)[^\n]*$", lambda found: re.sub(r"[^\n]", " ", found.group()), text,
                          flags=re.DOTALL | re.MULTILINE)
    yield 0, without_code


def prose(name, text):
    suffix = pathlib.PurePath(name).suffix
    if suffix in (".cpp", ".hpp", ".cu", ".cuh", ".h"):
        return prose_of_cpp(text)
    if suffix == ".py" or text.startswith("#!/usr/bin/env python3"):
        return prose_of_python(text, strings=not name.startswith("tests/"))  # those of tests are data
    if suffix == ".md":
        return prose_of_markdown(text)
    if suffix in (".cmake", ".yml", ".yaml", ".sh", ".bash", ".toml") or name.endswith("CMakeLists.txt") or name in ("ladder",):
        return prose_of_script(text)
    return ()


def hits_in(name, text):
    """(line, words, term) of each hit in a file."""
    found = []
    for offset, piece in prose(name, text):
        joined = re.sub(r"\n(\s*)(?:///?<?|#|\*)? ?", lambda end: " " * len(end.group()), piece)  # phrases may span lines
        for pattern, term in PATTERNS:
            for hit in pattern.finditer(joined):
                found.append((text.count("\n", 0, offset + hit.start()) + 1, " ".join(hit.group().split()), term))
    return sorted(found)


def entries():
    """{folder or file: the most hits}, of tools/not_yet_plain.txt."""
    lines = [line for line in (ROOT / NOT_YET).read_text().splitlines() if line and not line.startswith("#")]
    return {name: int(most) for name, _, most in (line.partition(" | ") for line in lines)}


def problems(rows=()):
    """Sentences about hits that are not permitted, about entries that can go, and about summaries of rungs."""
    permitted, said = entries(), []
    found = {name: [] for name in permitted}
    for name in files():
        try:
            hits = hits_in(name, (ROOT / name).read_text())
        except UnicodeDecodeError:
            continue
        sentences = [f"{name}:{line}: {words!r}: write {term} (CONTRIBUTING.md, How we write)" for line, words, term in hits]
        entry = max((entry for entry in permitted if name == entry or name.startswith(entry.rstrip("/") + "/")), key=len, default=None)
        (said if entry is None else found[entry]).extend(sentences)
    for entry, sentences in found.items():
        if len(sentences) > permitted[entry]:
            said += [*sentences, f"{NOT_YET}: {entry} has {len(sentences)} hits, and may have {permitted[entry]}"]
        elif not sentences:
            said.append(f"{NOT_YET}: {entry} has no hits: remove the entry")
    for row in rows:
        if NO_TECHNIQUE.match(row["idea"]):
            said.append(f"{row['source']}: the summary {row['idea']!r} names no technique and has no verb")
    return said


if __name__ == "__main__":
    if "--list" in sys.argv:
        for name in files():
            try:
                for line, words, term in hits_in(name, (ROOT / name).read_text()):
                    print(f"{name}:{line}: {words}")
            except UnicodeDecodeError:
                pass
    else:
        print("\n".join(problems()))
