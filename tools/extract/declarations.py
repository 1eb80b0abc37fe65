"""Splits formatted C++ into its declarations, and keeps those that a program reaches.

A declaration is kept if the program, or a kept declaration, contains an identifier with its name: by name alone, so
more may be kept than the compiler needs. Two things are removed: overloads whose parameter types are not reached, and
unused members: functions, and for problems also data.
"""
import dataclasses
import re

# In this order: what looks like a comment in a string is none.
HIDDEN = re.compile(r'R"(?P<end>[^(]*)\(.*?\)(?P=end)"|"(?:\\.|[^"\\\n])*"|//[^\n]*|/\*.*?\*/'
                    r"|(?<![0-9A-Za-z_])'(?:\\.|[^'\\\n])+'", re.S)
NAMESPACE = re.compile(r"(?:inline\s+)?namespace\s*([\w:]*)\s*\{")
TEMPLATE = re.compile(r"\s*template\s*<")
TYPE = re.compile(r"\s*(?:typedef\s+)?(class|struct|union|enum(?:\s+class)?)\b")
BEFORE_NAME = re.compile(r"\b(?:__launch_bounds__|__cluster_dims__|__attribute__|alignas|decltype|noexcept|requires|explicit)\s*$")
DIRECTIVE = re.compile(r"[ \t]*#[ \t]*(\w+)(?:[^\n]*\\\n)*[^\n]*")
IDENTIFIER = re.compile(r"(?<![\w.])(?<!->)[A-Za-z_]\w*")
ANY_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
ATTRIBUTE = re.compile(r"\[\[[^\]]*\]\]\s*")
ACCESSED = re.compile(r"(?:(?<!\d)(?<!\barrays)\.|->)\s*([A-Za-z_]\w*)")
USING = re.compile(r"\s*using\s[^=]*;")
PARAMETER = re.compile(r"[<,]\s*(?:class|typename)\s+(\w+)(?=\s*[,>])")
ARGUMENT = re.compile(r"[(,]\s*(\w+)(?=\s*[,)])")
MACRO_CALL = re.compile(r"\b[A-Z][A-Z_0-9]{3,}\([^;{}]*")
PASTED = re.compile(r"\b(\w+)##")
LABEL = re.compile(r"\s*(?:public|private|protected):(?!:)")


@dataclasses.dataclass(eq=False)
class Declaration:
    """A declaration with the comments before it."""
    text: str
    code: str  # the same without comments and strings
    file: str
    namespaces: tuple  # each as it is written: "convladder::gpu", or "" for one without a name
    guards: tuple  # (number of the group, number of the branch, its directives), the outermost first
    names: frozenset
    kind: str  # "function", "type", "include" or "other"
    blank: bool  # whether an empty line stands before it
    owner: str = ""  # of a member that is defined outside of its class
    parameters: str = ""  # of a function, and the arguments of a specialisation
    templates: frozenset = frozenset()  # the names of its template's parameters
    defines: bool = True  # not only declares
    hopper: bool = False  # whether it has instructions of compute capability 9.0
    members: tuple = ()  # of a class: (begin, end, names, whether they are data) of the members that may be left out

    def scope(self):
        """Its namespace."""
        return "::".join(name for name in self.namespaces if name)


def hidden(text):
    """The text with blanks for comments and strings."""
    return HIDDEN.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), text)


def closing(code, at):
    """Behind the bracket that closes the one at `at`."""
    depth = 0
    for match in re.compile(r"[(\[{}\])]").finditer(code, at):
        depth += 1 if match.group() in "([{" else -1
        if depth == 0:
            return match.end()
    raise ValueError("a bracket is not closed: " + code[at:at + 80])


def behind_template(code, at):
    """Behind `template <...>`, if that begins at `at`."""
    while match := TEMPLATE.match(code, at):
        depth, at = 1, match.end()
        while depth:
            if code[at] in "([{":
                at = closing(code, at)
                continue
            depth += {"<": 1, ">": -1}.get(code[at], 0)
            at += 1
        requires = re.compile(r"\s*requires\s*\(").match(code, at)
        if requires:
            at = closing(code, requires.end() - 1)
    return at


def end_of(code, at):
    """Behind the declaration that begins at `at`."""
    at = behind_template(code, at)
    is_type, assigned, begin = TYPE.match(code, at), False, at
    while True:
        char = code[at]
        if char == ";":
            return at + 1
        if char == "=" and not code[begin:at].rstrip().endswith("operator"):
            assigned = True
        if char in "([":
            at = closing(code, at)
            continue
        if char == "{":
            at = closing(code, at)
            rest = code[at:].lstrip()
            if rest.startswith(";") or assigned or (is_type and "(" not in code[begin:at].split("{")[0]):
                continue
            if rest.startswith((",", "{")) and ":" in code[begin:at]:  # of a list of initialisers
                continue
            return at
        at += 1


def name_and_parameters(code):
    """(kind, names, owner, parameters, template parameters, whether it defines) of a declaration without comments."""
    begin = behind_template(code, 0)
    templates = frozenset(re.findall(r"(\w+)\s*(?=[,>=]|\.\.\.)", code[:begin])) if begin else frozenset()
    templates |= frozenset(re.findall(r"(?:class|typename)\s*(?:\.\.\.)?\s*(\w+)", code[:begin]))
    head = ATTRIBUTE.sub("", code[begin:])
    if match := TYPE.match(head):
        at = match.end()
        if aligned := re.compile(r"\s*alignas\(").match(head, at):
            at = closing(head, aligned.end() - 1)
        named = re.compile(r"\s*([\w:]+)\s*(<[^{;]*>)?").match(head, at)
        names = {named.group(1).split("::")[-1]} if named else set()
        if match.group(1).startswith("enum"):
            names |= set(re.findall(r"[A-Za-z_]\w*", head.partition("{")[2])) if "class" not in match.group(1) else set()
        return "type", frozenset(names), "", named and named.group(2) or "", templates, "{" in head
    if match := re.match(r"\s*using\s+namespace\b|\s*static_assert\b", head):
        return "always", frozenset(), "", "", templates, True
    if match := re.match(r"\s*(?:using|namespace)\s+([^=;]+)", head):
        return "type", frozenset(name.strip().split("::")[-1] for name in match.group(1).split(",")), "", "", templates, True
    at = 0
    while at < len(head) and head[at] not in "={;":
        if head[at] == "(":
            if not BEFORE_NAME.search(head[:at]):
                if re.search(r"\boperator\b", head[:at]):
                    return "function", frozenset({"operator"}), "", head[at:closing(head, at)], templates, "{" in head
                special = re.search(r"([\w:~]+)\s*(<[^;{}]*>)?\s*$", head[:at])
                path = special.group(1).split("::")
                owner = path[-2] if len(path) > 1 and path[0] and path[-2] not in ("std",) else ""
                return ("function", frozenset({path[-1]}), owner, (special.group(2) or "") + head[at:closing(head, at)],
                        templates, bool(re.search(r"\{", head[closing(head, at):])))
            at = closing(head, at)
            continue
        at += 1
    before = re.sub(r"\[[^\]]*\]", "", re.sub(r"alignas\([^)]*\)", "", head[:at]))
    names = set(re.findall(r"(\w+)\s*(?:<[^=;]*>\s*)?$", before))
    names |= set(re.findall(r",\s*[*&]*\s*([A-Za-z_]\w*)\s*(?==|\{|;|,)", head))  # of one type
    return "other", frozenset(names), "", "", templates, "extern" not in head or "=" in head


def members_of(text, code, with_data):
    """(begin, end, names, whether they are data) of each member function that has a name, with its comments; and of data."""
    open_brace = code.index("{")
    at, before, found = open_brace + 1, open_brace + 1, []
    end = closing(code, open_brace) - 1
    while True:
        gap = re.compile(r"\s*").match(code, at).end()
        if gap >= end:
            return tuple(found)
        if label := LABEL.match(code, at):
            at = before = label.end()
            continue
        if code[gap] == "#":
            return ()  # branches of the preprocessor
        trailing = re.compile(r"[^\n]*\n").match(text, at)
        before = trailing.end() if trailing and not code[at:trailing.end()].strip() else at
        at = end_of(code, gap)
        if code[at:at + 1] == ";":
            at += 1
        line = re.compile(r"[^\n]*\n").match(text, at)
        stop = line.end() if line and not code[at:line.end()].strip() else at
        member = code[gap:at]
        kind, names, _, _, _, _ = name_and_parameters(member)
        name = next(iter(names), "")
        if kind == "function" and name not in ("operator", "", "begin", "end") and not name.startswith("~") and "virtual" not in member and "override" not in member:
            is_constructor = re.match(r"(?:template\s*<.*?>\s*)?(?:requires.*?\)\s*)?(?:explicit\s+|constexpr\s+|HOST_DEVICE\s+|__device__\s+|inline\s+)*" + re.escape(name) + r"\s*\(", member, re.S)
            if not is_constructor:
                found.append((before, stop, names, False))
        if kind == "other" and with_data and not re.match(r"\s*(static|using|friend)", member):
            found.append((before, stop, names, True))


def changed(one, text):
    """The declaration with another text."""
    code = hidden(text)
    head = code.split("{")[0]
    is_class = one.kind == "type" and one.defines and "{" in code and not re.search(r"\b(enum|using)\b", head)
    members = members_of(text, code, min(one.names, default="").endswith(("Problem", "Context", "LaunchConfig"))) if is_class else ()
    return dataclasses.replace(one, text=text, code=code, members=members)


def split(text, file):
    """The declarations of a file, in its order, and the comment at its top."""
    code = hidden(text)
    found, count = [], [0]
    top = re.match(r"(?:///[^\n]*\n)+", text)

    def parse(at, end, namespaces, guards):
        namespaces, begin = list(namespaces), at
        while True:
            start = re.compile(r"\s*").match(code, at).end()
            if start >= end:
                return
            if code[start] == "}":
                namespaces.pop()
                at = begin = text.find("\n", start) + 1 or end
                continue
            directive = DIRECTIVE.match(code, start) if code[start] == "#" else None
            if directive and directive.group(1).startswith("if"):
                at = begin = branches(start, namespaces, guards)
                continue
            if directive:
                kind = directive.group(1)
                stop = directive.end()
                if kind == "include":
                    found.append(Declaration(text[start:stop], text[start:stop], file, tuple(namespaces), guards, frozenset(), "include", False))
                elif kind == "define":
                    name = re.match(r"\s*#\s*define\s+(\w+)", code[start:stop]).group(1)
                    add(begin, start, stop, namespaces, guards, ("other", frozenset({name}), "", "", frozenset(), True))
                elif kind == "undef":
                    name = re.match(r"\s*#\s*undef\s+(\w+)", code[start:stop]).group(1)
                    add(begin, start, stop, namespaces, guards, ("other", frozenset({name}), "", "", frozenset(), True))
                elif "once" not in text[start:stop]:
                    raise ValueError(f"{file}: {text[start:stop]}")
                at = begin = stop
                continue
            opened = NAMESPACE.match(code, start)
            if opened:
                namespaces.append(opened.group(1))
                at = begin = opened.end()
                continue
            stop = end_of(code, start)
            line = text.find("\n", stop)
            line = end if line < 0 else line
            begin, at = add(begin, start, line if not code[stop:line].strip() else stop, namespaces, guards,
                            name_and_parameters(code[start:stop])), stop
            at = begin

    def add(begin, start, stop, namespaces, guards, about):
        comments = text[begin:start]
        if file_comment := re.match(r"\s*(?:///[^\n]*\n)*/// @file", comments):
            comments = comments[re.compile(r"\s*(?:///[^\n]*\n)*").match(comments).end():]
        whole = comments.strip() + "\n" + text[start:stop] if comments.strip() else text[start:stop]
        blank = bool(re.match(r"[ \t]*\n[ \t]*\n", ("\n" if text[begin - 1:begin] == "\n" else "") + comments)) or begin == 0 or bool(file_comment)
        kind, names, owner, parameters, templates, defines = about
        found.append(changed(Declaration(whole, "", file, tuple(namespaces), guards, names, kind, blank, owner, parameters, templates, defines), whole))
        return stop

    def branches(at, namespaces, guards):
        """A group from #if to #endif."""
        count[0] += 1
        number, depth, parts, lines, here = count[0], 0, [], [], at
        for directive in DIRECTIVE.finditer(code, at):
            if text[:directive.start()].rsplit("\n", 1)[-1].strip():
                continue
            kind = directive.group(1)
            if kind.startswith("if"):
                depth += 1
            if depth == 1 and kind.startswith(("if", "el", "endif")):
                if lines:
                    parts.append((here, directive.start()))
                lines.append(text[directive.start():text.find("\n", directive.start())])
                here = text.find("\n", directive.start()) + 1
            if kind == "endif":
                depth -= 1
                if depth == 0:
                    break
        for branch, (begin, end) in enumerate(parts):
            parse(begin, end, namespaces, (*guards, (f"{file}:{number}", branch, tuple(lines))))
        return here

    parse(top.end() if top else 0, len(text), [], ())
    return found, top.group().rstrip("\n") if top else ""


def words(code):
    return set(IDENTIFIER.findall(code))


def reached(declarations, program, begin=(), core=()):
    """Those that the program reaches, and those in `begin`, as (declaration, its text) in their order.

    `core` are the namespaces in which overloads are left out for the types of their parameters."""
    types = {name for one in declarations if one.kind == "type" for name in one.names}
    overloads = {}
    for one in declarations:
        if one.kind == "function" or (one.kind == "type" and one.parameters):
            for name in one.names:
                overloads.setdefault(name, set()).add(normal(one.parameters))
    mentioned, anywhere, in_file, pasted, arguments = set(), set(), {}, set(), set()
    kept, members, accessed, inside = set(), {}, set(), {}

    def mention(code, file):
        mentioned.update(words(code) - set(PARAMETER.findall(code)))
        anywhere.update(ANY_IDENTIFIER.findall(code))
        in_file.setdefault(file, set()).update(ANY_IDENTIFIER.findall(code))
        accessed.update(ACCESSED.findall(code))
        pasted.update(PASTED.findall(code))
        for call in MACRO_CALL.findall(code):
            arguments.update(ARGUMENT.findall(call))

    def wanted(one):
        if one.kind == "include":
            return False
        if one.kind == "always":
            return words(one.code) & types <= mentioned if "static_assert" in one.code else one.file in in_file
        needed = words(re.sub(r"=[^,]*", "", one.parameters)) & types - one.templates
        if one.owner:
            return one.owner in mentioned and bool(one.names & anywhere | one.names & {one.owner, "operator"})
        if one.names == {"operator"}:
            return needed <= mentioned
        if one.text.lstrip().startswith("#undef"):
            return False  # the file ends soon enough
        # What a macro puts together: a name whose end is an argument of something.
        if any(name.startswith(begin) and name[len(begin):] in arguments for name in one.names for begin in pasted):
            return True
        # What is in a namespace without a name, its file alone can mention.
        if not one.names & (in_file.get(one.file, set()) if "" in one.namespaces else mentioned):
            return False
        return needed <= mentioned if one.scope() in core and any(len(overloads.get(name, ())) > 1 for name in one.names - unfiltered) else True

    mention(hidden(program), None)
    def passed_over():
        """Names of functions that are mentioned, and of which no overload is kept: what has types of its own for parameters."""
        named = {name for index in kept for name in declarations[index].names}
        return {name for one in declarations if one.kind == "function" and one.defines and not one.owner
                and (name := next(iter(one.names))) in mentioned and name not in named and not "" in one.namespaces}

    grows, unfiltered = True, set()
    while grows or passed_over() - unfiltered:
        if not grows:
            unfiltered |= passed_over()
        grows = False
        for index, one in enumerate(declarations):
            if index in kept:
                left = [member for member in members[index] if member[2] & (accessed | inside[index] if member[3] else anywhere)]
                for first, last, _, is_data in left:
                    mention(one.code[first:last], one.file)
                    inside[index] |= set() if is_data else words(one.code[first:last])
                    grows = True
                members[index] = [member for member in members[index] if member not in left]
            elif one in begin or wanted(one):
                kept.add(index)
                members[index], inside[index] = list(one.members), words(without(one.code, one.members))
                mention(without(one.code, one.members), one.file)
                grows = True
    return without_mere_declarations([(one, without(one.text, members[index])) for index, one in enumerate(declarations) if index in kept])


def without(text, parts):
    """The text without these parts of it."""
    for begin, end, *_ in sorted(parts, reverse=True):
        text = text[:begin] + text[end:]
    # An empty line at the begin or the end of a class, or two; a label that nothing follows.
    text = re.sub(r"\n *(?:public|private|protected):\n(?=\s*(?:(?:public|private|protected):|\};))", "\n", text)
    text = re.sub(r"\n{3,}", "\n\n", text)
    text = re.sub(r"\{\n\n", "{\n", text)
    return re.sub(r"\n\n(\s*\};?\s*$)", r"\n\1", text) if parts else text


def replaced(declarations, shorter):
    """With the shorter ones in the place of those that have their names and namespaces."""
    def key(one):
        """With the first type of a function's parameters, which tells overloads apart."""
        first = re.search(r"\b(?!const\b|std\b)[A-Za-z_]\w*", one.parameters) if one.kind == "function" else None
        return one.scope(), min(one.names, default=""), first.group() if first else ""

    replacements = {key(one): one for one in shorter if one.names}
    result, done = [], set()
    for one in declarations:
        new = None if one.owner else replacements.get(key(one))
        if new is None:
            result.append(one)
        elif key(one) not in done:
            done.add(key(one))
            result.append(dataclasses.replace(new, file=one.file, guards=(), blank=True))
    return result


def without_mere_declarations(kept):
    """With the shorter declarations in place of those with the same names and namespaces."""
    result = list(kept)
    for index, (one, text) in reversed(list(enumerate(kept))):
        if one.defines or one.kind not in ("function", "type") or "=" in one.parameters or one.owner:
            continue
        name = next(iter(one.names))
        for at, (other, other_text) in enumerate(result):
            if other is one:
                here = at
        defined = None
        for at in range(here + 1, len(result)):
            other, other_text = result[at]
            if (name in other.names and other.defines and other.guards == one.guards and other.kind == one.kind and other.scope() == one.scope()
                    and normal(other.parameters) == normal(one.parameters)):
                defined = at
                break
            if name in words(other.code):
                break
        if defined is None:
            continue
        other, other_text = result[defined]
        if not other_text.startswith("//") and text.startswith("//"):
            comment = re.match(r"(?:[ \t]*//[^\n]*\n|\n)+", text).group()
            result[defined] = (other, comment + other_text)
        del result[here]
    return result


def renamed_apart(kept, last, sources):
    """Names that source files have in a namespace without a name, and other files use, too, get the file's name behind.

    The file `last` keeps its own."""
    used, more = {}, {}
    for one, _ in kept:
        used.setdefault(one.file, set()).update(ANY_IDENTIFIER.findall(one.code))
    for one, _ in kept:
        if "" in one.namespaces and not one.owner and one.file in sources and one.file != last and not USING.match(one.code):
            elsewhere = set().union(*(names for file, names in used.items() if file != one.file))
            more.setdefault(one.file, set()).update(one.names & elsewhere - {"operator"})
    more = {file: names for file, names in more.items() if names}
    result = []
    for one, text in kept:
        if one.file in more:
            stem = re.sub(r"\W", "_", one.file.rsplit("/", 1)[-1].rsplit(".", 1)[0])
            names = re.compile(r"(?<![\w.:])(?<!->)(" + "|".join(sorted(more[one.file])) + r")\b")
            text = names.sub(rf"\1_of_{stem}", text)
        result.append((one, text))
    return result


def normal(parameters):
    return re.sub(r"\s+", "", parameters)


def place(one):
    """What is written before what: what belongs to no back end needs nothing that does. Of the same number, in their order."""
    if one.scope() == "convladder" and one.kind == "type" and one.names & {"Half", "BFloat16", "Float8"}:
        return 0.5  # arrays have pointers to them
    return ("", "convladder").index(one.scope()) if one.scope() in ("", "convladder") else 2


def written(kept, tops):
    """The kept declarations one behind the other, each file below a line with its name."""
    out, namespaces, guards, file = [], [], [], None

    def close_guards(common):
        while len(guards) > common:
            out.append("#endif")
            guards.pop()

    def close_namespaces(common):
        while len(namespaces) > common:
            name = namespaces.pop()
            if not out[-1].startswith("}  // namespace"):
                out.append("")
            out.append(f"}}  // namespace {name}".rstrip())

    for one, text in kept:
        # The part of the guards and namespaces that continues.
        same = 0
        while (same < min(len(guards), len(one.guards)) and guards[same][0] == one.guards[same][0]
               and guards[same][1] <= one.guards[same][1]):
            same += 1
            if guards[same - 1][1] != one.guards[same - 1][1]:
                break
        common = 0
        while common < min(len(namespaces), len(one.namespaces)) and namespaces[common] == one.namespaces[common]:
            common += 1
        begins = False
        if guards and (same < len(guards)):
            close_guards(same)
        if common < len(namespaces):
            close_guards(0)
            close_namespaces(common)
        where = one.file if one.file in tops else one.file.rsplit("/", 1)[0] + "/"  # of other files, only the folder
        if where != file:
            file = where
            close_guards(0)
            out += ["", f"// ===== {file} " + "=" * max(0, 88 - len(file))]
            if file in tops:
                out += [tops[file]]
            begins = True
        for name in one.namespaces[len(namespaces):]:
            if out[-1] != "" and not out[-1].startswith(("namespace ", "// =====")):
                out.append("")
            out.append(f"namespace {name}".rstrip() + " {")
            namespaces.append(name)
            begins = True
        if begins and not (out[-1].startswith("// =====") and text.startswith("//")):
            out.append("")
        elif out and (one.blank or out[-1] == "#endif") and not begins and out[-1] != "" and guards == [guard[:2] for guard in one.guards][:len(guards)]:
            out.append("")
        if len(one.guards) > len(guards) and not begins and out and out[-1] != "":
            out.append("")
        for depth, (number, branch, lines) in enumerate(one.guards):
            if depth < len(guards):
                if guards[depth][1] != branch:
                    for between in range(guards[depth][1] + 1, branch + 1):
                        out.append(lines[between])
                    guards[depth] = (number, branch)
                continue
            out.append(lines[0])
            for between in range(1, branch + 1):
                out.append(lines[between])
            guards.append((number, branch))
        out += text.split("\n")
    close_guards(0)
    close_namespaces(0)
    return re.sub(r"\n{3,}", "\n\n", "\n".join(out))
