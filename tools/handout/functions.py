"""Finds the body of a function in a C++ or CUDA source, by a tokeniser and matching braces.

It knows comments, strings, raw strings, characters and preprocessor branches; it needs no compiler.
"""
import re

LITERAL_OR_COMMENT = re.compile(
    r'//(?:\\\n|[^\n])*'
    r'|/\*.*?\*/'
    r'|(?:u8|[uUL])?R"(?P<fence>[^()\\\s]{0,16})\(.*?\)(?P=fence)"'
    r'|(?:u8|[uUL])?"(?:\\.|[^"\\\n])*"'
    r"|(?<![0-9a-zA-Z_])(?:u8|[uUL])?'(?:\\.|[^'\\\n])+'",  # not the ' between digits: 20'000
    re.DOTALL)
DIRECTIVE = re.compile(r"[ \t]*#[ \t]*(\w*)(?:\\\n|[^\n])*")


class Mismatch(Exception):
    """The source is not as the assignment says."""


def blanked(text):
    """The text with blanks in the place of all characters but line ends."""
    return re.sub(r"[^\n]", " ", text)


def code_of(text):
    """The source, character for character, with blanks where no code is: in comments, literals and directives, and in
    every branch of an #if but the first."""
    text = LITERAL_OR_COMMENT.sub(lambda found: blanked(found.group()), text)
    lines, place, left_out = [], 0, []  # left_out: of each open #if, whether its first branch is over
    while place < len(text):
        directive = DIRECTIVE.match(text, place)
        end = directive.end() if directive else text.find("\n", place)
        end = len(text) if end < 0 else end
        if directive:
            word = directive.group(1)
            if word in ("if", "ifdef", "ifndef"):
                left_out.append(False)
            elif word.startswith("el") and left_out:
                left_out[-1] = True
            elif word == "endif" and left_out:
                left_out.pop()
        line = text[place:end]
        lines.append(blanked(line) if directive or any(left_out) else line)
        lines.append(text[end:end + 1])
        place = end + 1
    return "".join(lines)


def closing(code, begin):
    """The place of the bracket that closes the one at `begin`."""
    pairs = {"(": ")", "{": "}", "[": "]"}
    expected = []
    for place in range(begin, len(code)):
        if code[place] in pairs:
            expected.append(pairs[code[place]])
        elif code[place] in ")}]":
            if not expected or code[place] != expected.pop():
                raise Mismatch(f"brackets do not match at line {code.count(chr(10), 0, place) + 1}")
            if not expected:
                return place
    raise Mismatch(f"the bracket of line {code.count(chr(10), 0, begin) + 1} is never closed")


def body_of(text, declarator):
    """Where the body of the one function begins and ends, without its braces.

    `declarator` is the beginning of its definition, up to and with the bracket of its parameters: "void load_tile(".
    Blanks in it match any blanks.
    """
    if not declarator.endswith("("):
        raise Mismatch(f"function = {declarator}: must end with the bracket of its parameters")
    code = code_of(text)
    words = [re.escape(word) for word in declarator[:-1].split()]
    name = re.compile(r"(?<![\w:.>])" + r"\s+".join(words) + r"\s*\(")
    found = []
    for match in name.finditer(code):
        end = closing(code, match.end() - 1)
        # Between parameters and body: const, noexcept, a type behind ->. Not a call, nor a declaration.
        behind = re.compile(r"(\s|const\b|noexcept\b|->[^;{}()]*)*\{").match(code, end + 1)
        if behind:
            begin = behind.end()
            found.append((begin, closing(code, begin - 1)))
    if len(found) != 1:
        raise Mismatch(f"function = {declarator}: matches {len(found) or 'no'} definitions, and must match one")
    return found[0]


def block_behind(text, statement):
    """Where the block of the one statement begins and ends, without its braces: "for (int c = 0; c < C; ++c)".

    Blanks in it match any blanks.
    """
    code = code_of(text)
    words = [re.escape(word) for word in statement.split()]
    found = []
    for match in re.finditer(r"\s+".join(words) + r"\s*\{", code):
        found.append((match.end(), closing(code, match.end() - 1)))
    if len(found) != 1:
        raise Mismatch(f"block = {statement}: stands {len(found) or 'no'} times before a block, and must once")
    return found[0]
