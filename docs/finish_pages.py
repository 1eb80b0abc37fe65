#!/usr/bin/env python3
"""Makes the site of what Doxygen has written: pages of prose get the site's frame, programs and links; pages of classes and
files are replaced by the sources themselves.

    finish_pages.py --generated DIR --raw DIR --xml DIR --html DIR --root ROOT --katex KATEX [--lunr FILE]

- A link to a class, a function or a file leads to the line of the source that defines it (page file_*.html, made here).
- `<div class="put-program" data-rung="R">` becomes the program of a rung with its changes since the one before,
  `<div class="put-loop" ...>` the inner loop.
- Words of the glossary are linked (link_terms.py), formulas are left to KaTeX.
- files.html and names.html list all headers and what they define; search/index.js is the index of the search.
"""

import argparse
import collections
import html
import json
import pathlib
import re
import shutil

import inner_loop
import link_terms
import search_index
from code_index import CodeIndex, page_of_file
from show_code import LEAST_CHANGED, Shown, change, changed_program, header_end
from site_frame import Frame, Menu, improved, parts_of

DOCS = pathlib.Path(__file__).resolve().parent
SHOWN_FOLDERS = ("core/", "ladders/", "oracle/", "cpu_reference/", "cuda_naive/", "cuda_optimized/", "cuda_on_cpu/include/")
KINDS = {"function": "function", "typedef": "type", "enum": "type", "struct": "type", "class": "type", "union": "type", "variable": "constant",
         "define": "macro"}


class Site:
    def __init__(self, arguments):
        self.raw, self.out, self.root = arguments.raw, arguments.html, arguments.root
        self.data = json.loads((arguments.generated / "site.json").read_text())
        self.index = CodeIndex(arguments.xml, arguments.root)
        self.rungs = self.data["rungs"]
        self.pages_of_rungs = {rung["source"]: rung["page"] + ".html" for rung in self.rungs.values()}
        for folder in ("cpu_reference", "cuda_naive", "cuda_optimized"):  # programs that are no rungs, such as shared kernels
            for path in sorted((arguments.root / folder).rglob("*.c[up]*")):
                file = path.relative_to(arguments.root).as_posix()
                if file not in self.pages_of_rungs and file not in self.index.files:
                    brief = re.search(r"@brief (.*?)\n///\s*\n", path.read_text(), re.S)
                    self.index.files[file] = " ".join(brief.group(1).replace("///", " ").split()) if brief else ""
        self.of_page = {rung["page"]: rung["ladder"] for rung in self.rungs.values()}
        self.of_page.update({ladder["page"]: ladder["name"] for ladder in self.data["ladders"]})
        self.of_page.update({f"benchmarks_{ladder['name']}": ladder["name"] for ladder in self.data["ladders"]})
        search = ("search/index.js", "search/lunr.js") if arguments.lunr else None
        self.frame = Frame(Menu(DOCS, self.data), arguments.katex, search)
        self.katex_is_local = (arguments.html / arguments.katex).is_dir()
        self.missing = set()
        self.entries = []

    def shown(self, file, here=None):
        return Shown(self.index, file, self.pages_of_rungs, here)

    # --- What stands in the place of Doxygen's pages of classes and files

    def header_files(self):
        """Headers that have a page, in their order."""
        return sorted(file for file in self.index.files if file.startswith(SHOWN_FOLDERS) and file not in self.pages_of_rungs)

    def file_pages(self):
        users = collections.defaultdict(list)
        for rung in self.rungs.values():
            for file in self.index.includes(rung["source"]):
                users[file].append(rung["page"])
        for file in self.header_files():
            shown = self.shown(file)
            brief = self.index.files[file]
            parts = [f"<p>{html.escape(brief)}</p>"] if brief else []
            if users[file]:
                links = ", ".join(f'<a href="{page}.html">{self.short(page)}</a>' for page in users[file])
                parts.append(f"<details><summary>Included by {len(users[file])} rungs</summary><p>{links}</p></details>")
            parts.append(shown.block(1, shown.last_line()))
            yield page_of_file(file)[:-5], file, "".join(parts), brief

    def short(self, page):
        rung = next(name for name, rung in self.rungs.items() if rung["page"] == page)
        return rung.replace("/", " / ")

    def files_page(self):
        rows = []
        folder = ""
        for file in self.header_files():
            path = pathlib.PurePosixPath(file)
            if str(path.parent) != folder:
                folder = str(path.parent)
                rows.append(f'<tr><th colspan="2" scope="colgroup">{folder}/</th></tr>')
            rows.append(f'<tr><td><a href="{page_of_file(file)}">{path.name}</a></td><td>{html.escape(self.index.files[file])}</td></tr>')
        return ("<p>The headers, by folder. The program of each rung is on the page of the rung: see the <a href=\"map.html\">map</a>.</p>"
                f'<div class="table"><table>{"".join(rows)}</table></div>')

    def names_page(self):
        """Types, functions, constants and macros that headers define for others."""
        found = collections.defaultdict(dict)
        for name, places in self.index.by_name.items():
            for place in places:
                if place.member or place.kind not in KINDS or place.file not in self.index.files or place.file in self.pages_of_rungs:
                    continue
                found[name[0].upper() if name[0].isalpha() else "_"].setdefault((name.lower(), name, place.file), place)
        parts = ["<p>Types, functions, constants and macros that headers define for other files, with links to their definitions.</p>",
                 '<p class="letters">' + " ".join(f'<a href="#letter_{letter}">{letter}</a>' for letter in sorted(found)) + "</p>"]
        for letter in sorted(found):
            rows = [f'<tr><td><a href="{page_of_file(place.file)}#l{place.line}"><code>{place.name}</code></a></td><td>{KINDS[place.kind]}</td>'
                    f"<td>{place.file}</td><td>{html.escape(place.brief[:160])}</td></tr>" for _, place in sorted(found[letter].items())]
            parts += [f'<h2 id="letter_{letter}">{letter}</h2>', '<div class="table"><table><tr><th>name</th><th>kind</th><th>file</th><th>description</th></tr>',
                      *rows, "</table></div>"]
        return "".join(parts)

    def linked(self, contents):
        """Links to Doxygen's pages of code lead to sources; those that nothing is known of are text."""

        def link(match):
            page, anchor, attributes, words = match.group(1), match.group(2) or "", match.group(3), match.group(4)
            if page in self.kept:
                return match.group(0)
            place = self.index.by_page.get(page + anchor) or self.index.by_page.get(page)
            if place is None or place[0] not in self.index.files:
                self.missing.add(page)
                return words
            file, line = place
            title = (re.search(r' title="[^"]*"', attributes) or [""])[0]
            target = self.pages_of_rungs.get(file) or page_of_file(file)
            return f'<a class="el" href="{target}{f"#l{line}" if line > 1 else ""}"{title}>{words}</a>'

        return re.sub(r'<a class="(?:el|code[^"]*)" href="([\w-]+\.html)(#\w+)?"([^>]*)>(.*?)</a>', link, contents)

    # --- Programs

    def program(self, rung):
        """The program of a rung, with what changed since the one before."""
        entry = self.rungs[rung]
        shown = self.shown(entry["source"])
        before = entry["previous"]
        first = header_end(shown.text) + 1
        if not before:
            return shown.block(first, shown.last_line())
        found = change(self.index.source(self.rungs[before]["source"]), shown.text)
        if not found.added and not found.removed:
            return shown.block(first, shown.last_line())
        name, page = before.replace("/", " / "), self.rungs[before]["page"]
        share = f"{found.added} of {found.added + found.same} lines are new"
        if found.likeness < LEAST_CHANGED:
            share += ", most of the file"
        box = f'show_{entry["page"]}'
        legend = (f'<label for="{box}">show the {found.removed} removed lines</label>' if found.removed else "")
        check = f'<input class="show-removed" type="checkbox" id="{box}">' if found.removed else ""
        return (f'<p class="legend"><span class="added">Highlighted</span>: lines that differ from <a href="{page}.html">{name}</a>; {share}.</p>'
                f"{check} {legend}{changed_program(shown, found)}")

    def loop(self, rung):
        """The inner loop of a rung, wherever it lies."""
        source = self.rungs[rung]["source"]
        parts = []
        for file, first, last, function in inner_loop.of_program(self.index, source):
            shown = self.shown(file, source)
            if file == source:
                where = f'Lines <a href="#l{first}">{first}</a> to {last} of <a href="#{self.rungs[rung]["page"]}_program">the program</a>, in <code>{function}()</code>:'
            else:
                how = "includes" if file in self.index.closure(source) else "calls"
                where = (f'<code>{function}()</code> of <a href="{shown.page_of(file)}#l{first}">{file}</a>, which the program {how}, lines {first}'
                         f" to {last}:")
            parts.append(f"<p>{where}</p>" + shown.block(first, last, ids=False))
        return "".join(parts) or "<p>The program has no inner loop: it calls a library.</p>"

    def filled(self, contents):
        contents = re.sub(r'<div class="put-program" data-rung="([^"]*)"></div>', lambda match: self.program(match.group(1)), contents)
        return re.sub(r'<div class="put-loop" data-rung="([^"]*)"></div>',
                      lambda match: self.loop(match.group(1)), contents)

    # --- All pages

    def write(self, name, title, contents, ladder=None):
        (self.out / f"{name}.html").write_text(self.frame.page(name, title, contents, ladder, self.katex_is_local), encoding="utf-8")

    def remember(self, page, title, beside, contents, boost=1):
        self.entries.append({"page": page, "title": title, "beside": beside, "text": search_index.plain(contents),
                             "names": search_index.names_in(contents), "boost": boost})

    def finish(self):
        pages = {}
        for path in sorted(self.raw.glob("*.html")):
            parts = parts_of(path.read_text(encoding="utf-8"))
            if parts and path.stem != "pages":
                pages[path.stem] = parts
        self.kept = {f"{name}.html" for name in pages} | {"files.html", "names.html"}
        for path in self.raw.iterdir():
            if path.suffix in (".svg", ".png") and path.stem not in DOXYGENS_PICTURES:
                shutil.copy(path, self.out / path.name)
        meanings, rows = link_terms.terms(pages["glossary"][1])
        for name, (title, contents) in pages.items():
            contents = improved(self.filled(self.linked(contents)))
            if name == "glossary":
                contents = link_terms.with_anchors(contents)
            else:
                contents = link_terms.linked_page(name, contents, meanings)
            ladder = self.of_page.get(name)
            self.write(name, title, contents, ladder)
            rung = next((key for key, entry in self.rungs.items() if entry["page"] == name), None)
            beside = self.rungs[rung]["idea"] if rung else "" if not name.startswith("ladder_") else "ladder"
            self.remember(f"{name}.html", title, beside, contents, 1 if rung or name.startswith("benchmarks") else 3)
        for name, file, contents, brief in self.file_pages():
            self.write(name, file, contents)
            self.remember(f"{name}.html", file, "", contents, 0.5)
        self.write("files", "Files", self.files_page())
        self.write("names", "Names", self.names_page())
        for term, meaning in rows:
            self.entries.append({"page": f"glossary.html#{link_terms.anchor(term)}", "title": term, "beside": "glossary", "text": meaning, "boost": 4})
        for technique, page, words in self.data["techniques"]:
            self.entries.append({"page": page, "title": technique, "beside": "technique", "text": words, "boost": 6})


# Pictures of Doxygen's own look.
DOXYGENS_PICTURES = {"bc_s", "bdwn", "closed", "doc", "folderclosed", "folderopen", "nav_f", "nav_g", "nav_h", "open", "splitbar", "sync_off", "sync_on",
                     "tab_a", "tab_b", "tab_h", "tab_s", "doxygen"}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    for name in ("--generated", "--raw", "--xml", "--html", "--root"):
        parser.add_argument(name, required=True, type=pathlib.Path)
    parser.add_argument("--katex", required=True, help="its folder or address, seen from the pages")
    parser.add_argument("--lunr", type=pathlib.Path, help="lunr.js; without it there is no search")
    arguments = parser.parse_args()
    site = Site(arguments)
    site.finish()
    for name in ("style.css", "site.js"):
        shutil.copy(DOCS / name, site.out / name)
    if arguments.lunr:
        search_index.written(site.out / "search/index.js", site.entries)
        shutil.copy(arguments.lunr, site.out / "search/lunr.js")


if __name__ == "__main__":
    main()
