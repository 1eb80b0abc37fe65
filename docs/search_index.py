"""The index of the search: lunr's (https://lunrjs.com), made here by its Python twin, so that a browser only reads it."""

import html
import json
import re

MOST_NAMES = 400  # of a program, that the search finds it by


def plain(contents):
    """HTML without its tags, programs and formulas."""
    contents = re.sub(r"<(pre|script|style|nav)\b.*?</\1>|<!--.*?-->", " ", contents, flags=re.S)
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", contents)).split())


def names_in(contents):
    """The names in the programs of a page, each once."""
    code = " ".join(re.findall(r'<pre class="program[^>]*>(.*?)</pre>', contents, re.S))
    return list(dict.fromkeys(re.findall(r"[A-Za-z_]\w{3,}", html.unescape(re.sub(r"<[^>]*>", " ", code)))))[:MOST_NAMES]


def written(path, entries):
    """Writes a script that sets SEARCH to the index and to what is shown of each entry.

    @param entries dicts with page, title, beside (what is shown behind the title), text, names, boost
    """
    from lunr import lunr  # python3-lunr, which only the search needs

    documents = [({"id": str(number), "title": entry["title"], "text": entry.get("text", ""), "names": " ".join(entry.get("names", []))},
                  {"boost": entry.get("boost", 1)}) for number, entry in enumerate(entries)]
    index = lunr(ref="id", fields=[{"field_name": "title", "boost": 12}, {"field_name": "text", "boost": 2}, {"field_name": "names"}],
                 documents=documents)
    pages = [[entry["page"], entry["title"], entry["beside"]] for entry in entries]
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"const SEARCH = {json.dumps({'index': index.serialize(), 'pages': pages}, separators=(',', ':'))};\n")
