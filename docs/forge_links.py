#!/usr/bin/env python3
"""Links of Markdown pages in two forms: as a forge shows them, `[text](layouts.md)`, and as Doxygen resolves them,
`\\ref layouts "text"`. make_pages.py turns the first form into the second.

    forge_links.py          rewrites \\ref in docs/*.md and docs/ladders/**/*.md into links that a forge shows, where it can

A link to a page or a section of one, and a link to a rung's program, have both forms. `\\ref` without a text takes the title.
"""

import os
import pathlib
import re
import sys

DOCS = pathlib.Path(__file__).resolve().parent
TITLED = re.compile(r"^#+ (.*?) *\{#(\w+)\}$", re.M)
REF = re.compile(r'\\ref\s+(\w+)(?:\s+"([^"]*)")?')
LINK = re.compile(r"(?<!!)\[([^\[\]]+)\]\(([\w./-]+\.(?:md|cpp|cu))(?:#([\w-]+))?\)")
CODE = re.compile(r"(```.*?```|`[^`\n]*`|^    [^\n]*$)", re.M | re.S)


class Places:
    """Where names of pages, sections and rungs are."""

    def __init__(self, docs, rungs):
        """@param rungs {"rung_...": path of its program below the root}"""
        self.docs, self.root = docs, docs.parent
        self.places, self.first = {}, {}  # {name: (path, title, is a page)}, {path: name of its page}
        for path in [*sorted(docs.glob("*.md")), *sorted((docs / "ladders").glob("*.md"))]:
            for number, (title, name) in enumerate(TITLED.findall(path.read_text())):
                self.places[name] = (path, title, number == 0)
                if number == 0:
                    self.first[path] = name
        self.rungs = rungs
        self.by_source = {(self.root / source).resolve(): name for name, source in rungs.items()}

    def to_links(self, text, path):
        """\\ref as links."""

        def link(match):
            name, words = match.groups()
            if words and re.search(r"[\[\]]", words):
                return match.group(0)
            if name in self.rungs:
                target, title = self.root / self.rungs[name], pathlib.PurePath(self.rungs[name]).with_suffix("").as_posix()
            elif name in self.places:
                target, title, is_page = self.places[name]
                if not is_page:
                    return match.group(0)  # forges make other names of sections
            else:
                return match.group(0)
            return f"[{words or title}]({pathlib.PurePath(os.path.relpath(target, path.parent)).as_posix()})"

        return outside_code(lambda part: REF.sub(link, part), text)

    def to_refs(self, text, path):
        """Links to pages and rungs as \\ref."""

        def ref(match):
            words, target, section = match.groups()
            file = (path.parent / target).resolve()
            name = section if section in self.places else self.first.get(file) or self.by_source.get(file)
            return f'\\ref {name} "{words}"' if name else match.group(0)

        return outside_code(lambda part: LINK.sub(ref, part), text)


def outside_code(change, text):
    return "".join(part if i % 2 else change(part) for i, part in enumerate(CODE.split(text)))


def rungs_of(root):
    """{"rung_...": its program} by the folders."""
    found = {}
    for folder, suffix in (("cpu_reference", ".cpp"), ("cuda_naive", ".cu"), ("cuda_optimized", ".cu")):
        for path in (root / folder).rglob("*" + suffix):
            source = path.relative_to(root).as_posix()
            found["rung_" + source[:-len(suffix)].replace("/", "_")] = source
    return found


def main():
    places = Places(DOCS, rungs_of(DOCS.parent))
    for path in [*sorted(DOCS.glob("*.md")), *sorted((DOCS / "ladders").rglob("*.md"))]:
        text = path.read_text()
        changed = places.to_links(text, path)
        if changed != text:
            path.write_text(changed)
            print(path.relative_to(DOCS.parent), len(REF.findall(text)) - len(REF.findall(changed)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
