"""Where each name of the sources is defined, and which files a file includes: what links in shown programs need.

The names come from Doxygen's XML, the includes from the sources themselves.
"""

import collections
import functools
import pathlib
import re
import typing
import xml.etree.ElementTree

INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)
KEPT = {"struct", "class", "union", "namespace", "file"}  # kinds of compounds that hold names


class Name(typing.NamedTuple):
    """A name of the sources, where it is defined."""
    name: str
    scope: str  # "convladder::oracle"; of a member, with its class
    kind: str  # Doxygen's: function, variable, typedef, enum, enumvalue, define, struct, class, union
    file: str
    line: int
    end: int  # last line of its body; its own line where it has none
    brief: str
    member: bool  # of a class


def page_of_file(file):
    """The page that shows a source file."""
    return "file_" + re.sub(r"\W", "_", file) + ".html"


def text_of(element):
    return " ".join("".join(element.itertext()).split()) if element is not None else ""


class CodeIndex:
    """All names that Doxygen has found, and the includes of all files."""

    def __init__(self, xml, root):
        """@param xml the folder of Doxygen's XML; None: includes alone. @param root of the sources"""
        self.root = pathlib.Path(root)
        self.by_name = collections.defaultdict(list)
        self.by_page = {}  # "structX.html" and "structX.html#a12": (file, line)
        self.files = {}  # path: its brief
        seen = set()
        for path in sorted(pathlib.Path(xml).glob("*.xml")) if xml else []:
            if path.name.startswith(("index.", "dir_", "rung_c")):
                continue
            for compound in xml_compounds(path):
                self.add_compound(compound, seen)

    def add_compound(self, compound, seen):
        kind, ident = compound.get("kind"), compound.get("id")
        if kind not in KEPT:
            return
        full = compound.findtext("compoundname")
        place = compound.find("location")
        if place is not None and kind == "file":
            self.by_page[ident + ".html"] = (place.get("file"), 1)
            self.files[place.get("file")] = text_of(compound.find("briefdescription"))
        elif place is not None and kind != "namespace":
            scope, _, name = full.rpartition("::")
            self.add(Name(re.sub("<.*", "", name), scope, kind, place.get("file"), int(place.get("line")), int(place.get("line")),
                          text_of(compound.find("briefdescription")), False), ident + ".html")
        for member in compound.iter("memberdef"):
            if member.get("id") in seen or member.find("location") is None:
                continue
            seen.add(member.get("id"))
            self.add_member(member, full if kind != "file" else "", kind in ("struct", "class", "union"))

    def add_member(self, member, scope, in_class):
        place = member.find("location")
        qualified = member.findtext("qualifiedname")
        scope = qualified.rpartition("::")[0] if qualified else scope
        line, end = int(place.get("line")), int(place.get("bodyend") or -1)
        page, _, anchor = member.get("id").rpartition("_1")
        self.add(Name(member.findtext("name"), scope, member.get("kind"), place.get("file"), line, max(line, end),
                      text_of(member.find("briefdescription")) or text_of(member.find("detaileddescription")), in_class),
                 f"{page}.html#{anchor}")
        for value in member.iter("enumvalue"):
            page, _, anchor = value.get("id").rpartition("_1")
            self.add(Name(value.findtext("name"), f"{scope}::{member.findtext('name')}", "enumvalue", place.get("file"), line, line,
                          text_of(value.find("briefdescription")), True), f"{page}.html#{anchor}")

    def add(self, name, page):
        self.by_name[name.name].append(name)
        self.by_page[page] = (name.file, name.line)

    @functools.cache
    def source(self, file):
        return (self.root / file).read_text(errors="replace")

    @functools.cache
    def includes(self, file):
        """The files of the project that a file includes, directly."""
        found = []
        for name in INCLUDE.findall(self.source(file)):
            for candidate in (name, str(pathlib.PurePosixPath(file).parent / name), f"cuda_on_cpu/include/{name}"):
                if (self.root / candidate).is_file():
                    found.append(candidate)
                    break
        return found

    @functools.cache
    def closure(self, file):
        """A file and all that it includes."""
        found, left = {file}, [file]
        while left:
            for other in self.includes(left.pop()):
                if other not in found:
                    found.add(other)
                    left.append(other)
        return frozenset(found)

    def resolve(self, name, qualifiers, after_dot, called, file, namespace):
        """The definition that a name in a file means; None where several could be meant, or none is included.

        @param qualifiers what stands before it with `::`; @param after_dot whether `.` or `->` does
        @param called whether `(`, `<` or `{` comes next; @param namespace of the place, "convladder::BACKEND"
        """
        found = [other for other in self.by_name.get(name, ()) if other.file in self.closure(file)]
        if qualifiers:
            ends = "::".join(qualifiers)
            found = [other for other in found if other.scope == ends or other.scope.endswith("::" + ends)]
        elif after_dot:
            found = [other for other in found if other.member and other.kind in ("function", "variable")]
        else:
            found = [other for other in found if not other.member and in_scope(other.scope, namespace)
                     and (called or other.kind != "function")]
            nearest = max((len(other.scope) for other in found), default=0)
            found = [other for other in found if len(other.scope) == nearest]
        if len({other.file for other in found}) != 1:
            return None
        if after_dot and len({other.scope for other in found}) != 1:
            return None
        return min(found, key=lambda other: other.line)


def in_scope(scope, namespace):
    """Whether what a scope holds can be named without qualifiers in a namespace."""
    return not scope or namespace == scope or namespace.startswith(scope + "::")


def xml_compounds(path):
    return xml.etree.ElementTree.parse(path).getroot().iter("compounddef")
