#!/usr/bin/env python3
"""Lists the rung sources that have changed since all rungs passed a long check.

    changed_rungs.py RECORD BUILD                  prints their paths without the suffix, one per line
    changed_rungs.py RECORD BUILD --write BY       writes the record: all rungs have passed, with compiler BY
    changed_rungs.py RECORD BUILD --with FOLDER... [--write BY]   treats each of these folders as one more rung

RECORD has the hash of each rung's sources when it passed: tests/verified_on_gpu.json, which the suite writes on a
GPU, tests/sanitized.json, or tests/planted_bugs/found.json. BUILD is a build folder, which has the present hashes
(provenance/source_hash.hpp: comments are excluded, included files are part of the hash). A check thus need not repeat
its result for the same source; each night everything is checked again. Files of functions that are not rungs are not
in the record of a GPU, and are therefore always listed.

"""
import argparse
import datetime
import hashlib
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "inspect"))
import expect  # noqa: E402  (hashes of sources)

SOURCES = {".cmake", ".cpp", ".cu", ".cuh", ".h", ".hpp", ".inc"}


def changed(record, hashes):
    """Those that the record, rung: hash, does not have so. @param hashes by name, a path without the suffix"""
    return sorted(name for name, digest in hashes.items() if record.get(name) != digest)


def digest_of(folder):
    """Of all that is compiled below a folder, and of what says how."""
    digest = hashlib.sha256()
    for file in sorted(folder.rglob("*")):
        if file.suffix in SOURCES or file.name == "CMakeLists.txt":
            digest.update(f"{file.relative_to(folder)}\0".encode() + file.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def write(file, hashes, by):
    rows = [json.dumps({"rung": name, "source_hash": digest}) for name, digest in sorted(hashes.items())]
    head = f'  "by": {json.dumps(by)},\n  "date": "{datetime.date.today()}",\n'
    file.write_text("{\n" + head + '  "rungs": [\n    ' + ",\n    ".join(rows) + "\n  ]\n}\n")


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("record", type=pathlib.Path)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--write", metavar="BY")
    parser.add_argument("--with", dest="folders", type=pathlib.Path, nargs="+", default=[], metavar="FOLDER")
    options = parser.parse_args(arguments)
    hashes = {source.rsplit(".", 1)[0]: digest for source, digest in expect.hashes_of(options.build).items()}
    hashes |= {folder.name: digest_of(folder) for folder in options.folders}
    if options.write:
        write(options.record, hashes, options.write)
        return
    rows = json.loads(options.record.read_text())["rungs"] if options.record.is_file() else []
    print("\n".join(changed({row["rung"]: row["source_hash"] for row in rows}, hashes)))


if __name__ == "__main__":
    main(sys.argv[1:])
