"""The index of techniques: techniques.json names for each the rung that introduces it, then others that use it.

An entry has `technique`, `group`, `rungs` and, where it helps, `also` (other words for it, which the search finds) and `page`, which
explains it. A rung may have its former name, as long as the rung table knows it.
"""

import json
import re


def slug(text):
    return re.sub(r"\W+", "_", text).strip("_").lower()


class Techniques:
    def __init__(self, pages):
        """@param pages make_pages.Pages"""
        self.pages = pages
        path = pages.root / "docs/techniques.json"
        self.entries = json.loads(path.read_text())
        former = {old: rung for rung, row in pages.rows.items() for old in row.get("was") or []}
        for entry in self.entries:
            named = entry["rungs"]
            entry["rungs"] = [rung if rung in pages.rows else former.get(rung) for rung in named]
            if None in entry["rungs"]:
                raise SystemExit(f"{path}: {entry['technique']}: {named[entry['rungs'].index(None)]} is no rung")

    def named(self, rung):
        """A rung's name, with its ladder."""
        folder, ladder, name = rung.split("/", 2)
        plain = {"cpu_reference": " (C++)", "cuda_naive": " (naive)"}.get(folder, "")
        return self.pages.link(rung, f"{ladder}: {name}{plain}")

    def table(self):
        """All techniques, group by group."""
        lines, group = ['<div class="techniques">', ""], None
        for entry in self.entries:
            if entry["group"] != group:
                group = entry["group"]
                lines += ["", f"## {group} {{#techniques_{slug(group)}}}", "", "| technique | introduced by | also in |", "|---|---|---|"]
            first, *others = entry["rungs"]
            words = ", ".join(entry.get("also", []))
            also = ", ".join(map(self.named, others))
            if "page" in entry:
                also += ("; " if also else "") + f"\\ref {entry['page']}"
            lines.append(f"| {entry['technique']}" + (f"<br/><small>{words}</small>" if words else "") + f" | {self.named(first)} | {also} |")
        return [*lines, "", "</div>", ""]

    def for_search(self, page_of):
        """[technique, the page of the rung that introduces it, words to be found by]."""
        return [[entry["technique"], page_of(entry["rungs"][0]), " ".join([*entry.get("also", []), entry["group"]])] for entry in self.entries]
