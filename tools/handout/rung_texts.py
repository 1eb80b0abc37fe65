"""A rung's text, changed: without paragraphs, with empty functions, with a bug, in one file."""
import re

import functions
from assignment import ROOT, BadInput, constant_of, source_of
from rung_table import LADDERS

INCLUDE = re.compile(r'^\s*#include "([^"]+)"', re.MULTILINE)


def without_paragraphs(text, titles):
    """The source without these paragraphs of its header: **Title.** up to the next such one."""
    header = re.match(r"(///.*\n)*", text).group()
    for title in titles:
        header, count = re.subn(rf"^/// \*\*{title}\.\*\*.*\n(?:^///(?! \*\*[A-Z]\w+\.\*\*).*\n)*", "", header, flags=re.M)
        if count != 1:
            raise functions.Mismatch(f"strip_header = {title}: the header has {count or 'no'} such paragraphs")
    return header + text[re.match(r"(///.*\n)*", text).end():]


def emptied(text, blanks):
    """The source with stubs in the place of these bodies, and the bodies."""
    places = sorted((*blank.place_in(text), blank) for blank in blanks)
    bodies = {blank.title: text[begin:end] for begin, end, blank in places}
    for begin, end, blank in reversed(places):
        stub = f"\n  // {blank.exercise}. {blank.hint}\n  NOT_WRITTEN(\"{blank.title}\");\n"
        stub += f"  {blank.stub}\n" if blank.stub else ""
        text = text[:begin] + stub + text[end:]
    return text, bodies


def filled(text, blanks, bodies):
    """The source with the bodies back in their places."""
    places = sorted((*blank.place_in(text), blank.title) for blank in blanks)
    for begin, end, title in reversed(places):
        text = text[:begin] + bodies[title] + text[end:]
    return text


def in_one_file(rung, alias):
    """A rung's text with the text of each header of its kind in the place of its #include; and the rung once more, as `alias`.

    So it is one file that a student could have written.
    """
    seen = set()

    def text_of(path):
        def inlined(match):
            header = match.group(1)
            if not header.startswith("cuda_"):
                return match.group()
            if header in seen:
                return ""
            seen.add(header)
            return text_of(header)
        return INCLUDE.sub(inlined, re.sub(r"^#pragma once\n", "", (ROOT / path).read_text(), flags=re.M))

    folder, ladder = rung.split("/")[:2]
    top, _, own = alias.split("/")
    # What the rung was called is the file's own: a student's defines names of its own namespace only.
    text = re.sub(r"^extern const Implementation<", "const Implementation<", text_of(source_of(rung)), flags=re.M)
    arrays = LADDERS[ladder][1]
    return (f"{text}\nnamespace convladder::BACKEND::{top}::{ladder} {{\n"
            f"extern const Implementation<{arrays}> {own} = {folder}::{ladder}::{constant_of(rung)};\n"
            f"}}  // namespace convladder::BACKEND::{top}::{ladder}\n")


def planted_bug(rung, name):
    """What tests/planted_bugs replaces, by what."""
    file = ROOT / f"tests/planted_bugs/ladders/{rung.split('/')[1]}.cmake"
    entry = re.search(rf"planted_bug\({name}\n  RUNG {rung}\n(?:  WITH [^\n]*\n)?  FIND \[==\[(.*?)\]==\]\n  REPLACE \[==\[(.*?)\]==\]",
                      file.read_text(), re.DOTALL)
    if not entry:
        raise BadInput(f"hunt: bugs = {name}: {file.relative_to(ROOT)} has no such bug of {rung}")
    return entry.group(1), entry.group(2)


def with_bug(rung, bug):
    """The rung's text with the bug in it: one of tests/planted_bugs by its name, or {name, find, replace}."""
    if isinstance(bug, str):
        name, (find, replace) = bug, planted_bug(rung, bug)
    else:
        name, find, replace = bug["name"], bug["find"], bug["replace"]
    text = (ROOT / source_of(rung)).read_text()
    if text.count(find) != 1:
        raise functions.Mismatch(f"hunt: bugs = {name}: its text is {text.count(find)} times in {rung}")
    return text.replace(find, replace)
