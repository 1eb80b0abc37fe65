#!/usr/bin/env python3
"""Which rungs have changed since all of them passed a check that takes long.

    changed_rungs.py RECORD HASHES                  their names, a line each
    changed_rungs.py RECORD HASHES --write BY       writes the record: all rungs as they are passed, BY whom

RECORD is a JSON file of the repository with the hash of each rung's sources when it passed: tests/sanitized.json, or
tests/verified_on_gpu.json, which the suite writes on a GPU. HASHES is what the build wrote of the sources as they are
(provenance/source_hashes.inc): comments do not count, what a rung includes does. So a check need not repeat what
it has said of unchanged sources; each night everything is asked again.
"""
import argparse
import datetime
import json
import pathlib
import re
import sys


def hashes_of(file):
    """By rung, as the build wrote them."""
    return {source.rsplit(".", 1)[0]: digest for source, digest in re.findall(r'\{"(.*?)", "(\w+)"\}', file.read_text())}


def recorded(file):
    """By rung; nothing without a record."""
    if not file.is_file():
        return {}
    return {row["rung"]: row["source_hash"] for row in json.loads(file.read_text())["rungs"]}


def changed(record, hashes):
    """The rungs that are not as the record has them, those of which it knows nothing among them."""
    return sorted(rung for rung, digest in hashes.items() if record.get(rung) != digest)


def write(file, hashes, by):
    rows = [{"rung": rung, "source_hash": digest} for rung, digest in sorted(hashes.items())]
    lines = ",\n".join("    " + json.dumps(row) for row in rows)
    file.write_text(f'{{\n  "by": {json.dumps(by)},\n  "date": "{datetime.date.today()}",\n  "rungs": [\n{lines}\n  ]\n}}\n')


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("record", type=pathlib.Path)
    parser.add_argument("hashes", type=pathlib.Path)
    parser.add_argument("--write", metavar="BY")
    options = parser.parse_args(arguments)
    hashes = hashes_of(options.hashes)
    if options.write:
        write(options.record, hashes, options.write)
    else:
        print("\n".join(changed(recorded(options.record), hashes)))


if __name__ == "__main__":
    main(sys.argv[1:])
