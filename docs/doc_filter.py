#!/usr/bin/env python3
"""Doxygen's input filter: gives the comment of `int H = 1, W = 1;  ///< extents` to H and to W.

Doxygen would give it to W alone. Lines keep their numbers.
"""

import pathlib
import re
import sys

SEVERAL = re.compile(r"^(\s*)((?:const )?[\w:<>]+[*&]?(?: const)?)\s+(\*?\w+[^;()]*,[^;()]*);\s*///<\s*(.*)$")


def split_declaration(line):
    found = SEVERAL.match(line)
    if not found:
        return line
    indent, kind, names, comment = found.groups()
    return indent + " ".join(f"{kind} {name.strip()}; /**< {comment} */" for name in names.split(","))


if __name__ == "__main__":
    text = pathlib.Path(sys.argv[1]).read_text()
    sys.stdout.write("\n".join(split_declaration(line) for line in text.split("\n")))
