#!/usr/bin/env python3
"""Which rungs have changed since they passed a check that takes long.

    changed_rungs.py RECORD HASHES      their names, a line each

RECORD is a JSON file of the repository with the hash of each rung's sources when it passed: tests/verified_on_gpu.json,
which the suite writes on a GPU. HASHES is what the build wrote of the sources as they are
(provenance/source_hashes.inc): comments do not count, what a rung includes does. So a check need not repeat what
it has said of unchanged sources; each night everything is asked again.
"""
import argparse
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


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("record", type=pathlib.Path)
    parser.add_argument("hashes", type=pathlib.Path)
    options = parser.parse_args(arguments)
    print("\n".join(changed(recorded(options.record), hashes_of(options.hashes))))


if __name__ == "__main__":
    main(sys.argv[1:])
