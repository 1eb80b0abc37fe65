"""Programs as HTML: coloured, each line with its number, names linked to where what the program includes defines them."""

import difflib
import html
import re

from code_index import page_of_file

KEYWORDS = set("""alignas alignof auto bool break case catch char class concept const consteval constexpr constinit const_cast continue
decltype default delete do double dynamic_cast else enum explicit extern false float for friend goto if inline int long mutable namespace
new noexcept nullptr operator private protected public reinterpret_cast requires return short signed sizeof static static_assert
static_cast struct switch template this throw true try typedef typename union unsigned using virtual void volatile while
__global__ __device__ __host__ __shared__ __constant__ __forceinline__ __restrict__ __launch_bounds__ __grid_constant__ __align__
HOST_DEVICE""".split())
TOKEN = re.compile(r"""(?P<comment>//[^\n]*|/\*.*?\*/)|(?P<string>(?:u8|[LuUR])?"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])+')
    |(?P<directive>^[ \t]*\#[ \t]*\w+)|(?P<number>\b(?:0[xX][\da-fA-F']+|\d[\d'.]*(?:[eE][+-]?\d+)?)[uUlLfF]*\b)
    |(?P<name>[A-Za-z_]\w*)|(?P<space>\s+)|(?P<other>.)""", re.X | re.S | re.M)
OPENED = re.compile(r"^\s*(?:inline\s+)?namespace(?:\s+([\w:]+))?\s*\{")
CLOSED = re.compile(r"^\}\s*//\s*namespace")
INCLUDED = re.compile(r'^(\s*#\s*include\s+)"([^"]+)"')
STRUCT = re.compile(r"^struct \w+[^{;]*\{(.*?)^\};", re.S | re.M)
# Members of the standard library's types, too: what stands before the dot is not known here.
OF_STANDARD_TYPES = set("""size data begin end empty push_back emplace_back resize clear first second value value_or has_value get reset find insert erase
count front back at swap str c_str length substr load store x y z w""".split())
LEAST_CHANGED = 0.35  # of likeness, below which a diff shows two files


def namespaces(text):
    """The namespace at each line, from the opening and closing lines that clang-format writes."""
    inside, found = [], []
    for line in text.split("\n"):
        if opened := OPENED.match(line):
            inside.append(opened.group(1) or "")
        found.append("::".join(filter(None, inside)))
        if CLOSED.match(line) and inside:
            inside.pop()
    return found


def declared_here(text):
    """Names that a file itself declares: variables, parameters, those of templates, its own types and functions. Such a name
    means what the file says, whatever an included file calls by it."""
    variables = re.findall(r"[\w>&*\]]\s*[&*]*\s+[&*]*([a-z_]\w*)\s*(?:=|;|,|\)|\[|\{|:(?!:))", text)
    types = re.findall(r"\b(?:class|typename|struct|enum|using|int|bool|unsigned|auto)\s+(?:\.\.\.\s*)?([A-Z]\w*)\s*(?:[,>={:]|$)", text, re.M)
    constants = re.findall(r"\bconstexpr\s+[\w:<>, ]+?\s[&*]*(k[A-Z]\w*)\s*[=\[{]", text)
    functions = re.findall(r"^(?!return|\s|//|#|\}).*?\b(\w+)\((?!.*;$)", text, re.M)
    return {*variables, *types, *constants, *functions}


def members_declared_here(text):
    """Names of members of a file's own types."""
    return set(re.findall(r"(\w+)\s*(?:=[^;]*|\[[^;]*|\([^;]*)?[;,{]", " ".join(STRUCT.findall(text))))


class Shown:
    """The lines of a file as HTML."""

    def __init__(self, index, file, rungs=None, here=None):
        """@param rungs {source: page} of the rungs, whose programs are on their own pages
        @param here the file whose page this is, if another one"""
        self.index, self.file, self.rungs, self.here = index, file, rungs or {}, here or file
        self.text = index.source(file)
        self.explained = set()  # names whose meaning has been said where they stand first
        self.lines = self.marked_up()

    def page_of(self, file):
        return self.rungs.get(file) or page_of_file(file)

    def marked_up(self):
        spaces, own = namespaces(self.text), declared_here(self.text)
        self.own_members = members_declared_here(self.text) if self.file in self.rungs else set()
        out, line = [], 0
        tokens = [(match.lastgroup, match.group()) for match in TOKEN.finditer(self.text)]
        for place, (kind, text) in enumerate(tokens):
            if kind == "name":
                out.append(self.name(tokens, place, spaces[line], own))
            elif kind in ("space", "other"):
                out.append(html.escape(text, quote=False))
            elif kind == "string" and (path := self.included(tokens, place)):
                out.append(f'<a href="{self.page_of(path)}">{html.escape(text)}</a>')
            else:
                # Each line has its own element: a comment may go over several.
                out.append("\n".join(f'<span class="{kind[0]}">{html.escape(part, quote=False)}</span>' for part in text.split("\n")))
            line += text.count("\n")
        return "".join(out).split("\n")

    def included(self, tokens, place):
        """The file that an #include names."""
        before = [text for _, text in tokens[max(0, place - 2):place]]
        if not before or not re.match(r"\s*#\s*include$", "".join(before).strip("\n ")):
            return None
        name = tokens[place][1].strip('"')
        return next((other for other in self.index.includes(self.file) if other.endswith(name)), None)

    def name(self, tokens, place, namespace, own):
        text = tokens[place][1]
        if text in KEYWORDS:
            return f'<span class="k">{text}</span>'
        after_dot, qualifiers, i = False, [], place
        while i >= 3 and tokens[i - 1][1] == ":" and tokens[i - 2][1] == ":" and tokens[i - 3][0] == "name":
            qualifiers.insert(0, tokens[i - 3][1])
            i -= 3
        if not qualifiers and i >= 1:
            after_dot = tokens[i - 1][1] == "." or (i >= 2 and tokens[i - 1][1] == ">" and tokens[i - 2][1] == "-")
            if tokens[i - 1][1] == ":" and i >= 2 and tokens[i - 2][1] == ":":
                return text  # `::name`, or a member of what an expression names
        following = next((token for kind, token in tokens[place + 1:place + 3] if kind != "space"), "")
        if "std" in qualifiers or (after_dot and (text in OF_STANDARD_TYPES or text in self.own_members)):
            return text
        found = self.index.resolve(text, qualifiers, after_dot, following in "(<{" and following != "", self.file, namespace)
        if found is None or (found.file != self.file and not qualifiers and not after_dot and text in own):
            return text
        title = f' title="{html.escape(found.brief)}"' if found.brief and text not in self.explained else ""
        self.explained.add(text)
        page = "" if found.file == self.here else self.page_of(found.file)
        return f'<a class="name" href="{page}#l{found.line}"{title}>{text}</a>'

    def line(self, number, kind="", words=""):
        """A line, by its number from 1. @param kind of a change; @param words for those who do not see colours"""
        text = self.lines[number - 1]
        more = f' <span class="sr">{words}</span>' if words else ""
        return f'<span class="line{" " + kind if kind else ""}" id="l{number}">{text or " "}{more}</span>'

    def block(self, first, last, ids=True):
        """The lines first ... last."""
        lines = [self.line(number) for number in range(first, last + 1)]
        if not ids:
            lines = [re.sub(r' id="l(\d+)"', "", line) for line in lines]
        return opening(self.file, first) + "".join(lines) + "</pre>"

    def last_line(self):
        return len(self.lines) - (not self.lines[-1])


def opening(file, first):
    """The tag before the lines of a file; the style sheet counts them from `first` on."""
    return f'<pre class="program" tabindex="0" data-source="{file}" style="counter-reset: line {first - 1}">'


def header_end(text):
    """The number of lines of a file's leading `///` comment."""
    lines = text.split("\n")
    return next((i for i, line in enumerate(lines) if not line.startswith("///")), len(lines))


class Change(list):
    """(kind, number of a line or text) of a program against the one before: "same" and "added" have numbers, "removed" texts."""
    added = removed = same = 0
    likeness = 0.0


def change(before, after):
    """What differs in a program from the one before; header comments, includes and blank lines count for nothing."""
    old, new = before.split("\n")[header_end(before):], after.split("\n")
    first = header_end(after)
    matcher = difflib.SequenceMatcher(None, [line.strip() for line in old], [line.strip() for line in new[first:]], autojunk=False)
    found = Change()
    found.likeness = matcher.ratio()
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        if tag != "equal":
            for text in old[i1:i2]:
                if text.strip():
                    found.append(("removed", text))
                    found.removed += 1
        for number in range(first + j1 + 1, first + j2 + 1):
            kind = "same" if tag == "equal" or not new[number - 1].strip() else "added"
            found.append((kind, number))
            found.added += kind == "added"
            found.same += kind == "same" and bool(new[number - 1].strip())
    return found


def changed_program(shown, found):
    """The program with its changes in place; what was removed is there, and hidden until it is asked for."""
    lines = []
    for kind, what in found:
        if kind == "removed":
            lines.append(f'<span class="line removed">{html.escape(what)}</span>')
        elif not (isinstance(what, int) and what > shown.last_line()):
            lines.append(shown.line(what, "added" if kind == "added" else "", "(new)" if kind == "added" else ""))
    return opening(shown.file, header_end(shown.text) + 1) + "".join(lines) + "</pre>"
