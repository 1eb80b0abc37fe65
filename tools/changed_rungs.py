#!/usr/bin/env python3
"""Which CUDA sources are not as a GPU has verified them.

    changed_rungs.py RECORD BUILD      their paths without the suffix, a line each

RECORD is tests/verified_on_gpu.json, which the suite writes on a GPU: of each rung the hash of its sources. BUILD is a
build folder, which has the hashes as they are (provenance/source_hash.hpp: comments do not count, what a source includes
does). So what nvcc has compiled for that run need not be compiled again; each night everything is. Files of functions that
are no rungs are in no record, and always among them.
"""
import argparse
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "inspect"))
import expect  # noqa: E402  (hashes of sources)


def changed(record, hashes):
    """Those that the record, rung: hash, does not have so. @param hashes by source"""
    return sorted(name for source, digest in hashes.items() if record.get(name := source.rsplit(".", 1)[0]) != digest)


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("record", type=pathlib.Path)
    parser.add_argument("build", type=pathlib.Path)
    options = parser.parse_args(arguments)
    rows = json.loads(options.record.read_text())["rungs"] if options.record.is_file() else []
    record = {row["rung"]: row["source_hash"] for row in rows}
    print("\n".join(changed(record, expect.hashes_of(options.build))))


if __name__ == "__main__":
    main(sys.argv[1:])
