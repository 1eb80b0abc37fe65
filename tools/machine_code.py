#!/usr/bin/env python3
"""Determines which rungs' machine code is unchanged by a change, so that GPU measurements remain valid.

    machine_code.py digest BUILD [CUOBJDUMP] > CODE.json     of all rungs of a build with nvcc
    machine_code.py carry OLD.json NEW.json RECORD...        writes the new hash of each rung that is measured as OLD
                                                             and has the same machine code in NEW, and how many
                                                             these are into benchmarks/same_machine_code.json

A record of a GPU (benchmarks/results, benchmarks/counters, benchmarks/traffic, benchmarks/sass) has the hash of each
rung's source, so that a number of another source is seen. A change of host code or of names alone makes all of them
stale, and changes no instruction. The two builds must be of the same toolkit, for the same architecture. What compilers
make up from a file's place and text, the names of anonymous namespaces, does not count.

CUOBJDUMP is that of the CUDA toolkit (CUDA Binary Utilities, "cuobjdump"); without one, the first on PATH.

"""
import argparse
import datetime
import hashlib
import json
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

TOOLS = pathlib.Path(__file__).resolve().parent
ROOT = TOOLS.parent
NOTES = ROOT / "benchmarks/same_machine_code.json"
sys.path[:0] = [str(TOOLS), str(TOOLS / "inspect")]
import expect  # noqa: E402  (hashes of sources)
import likeness  # noqa: E402  (what a source includes)

ANONYMOUS = re.compile(r"\d+_GLOBAL__N__[0-9a-f]{8}_\d+_\w*?_cu_[0-9a-f]{8}(_\d+)?")


def files_of(root, source, found=None):
    """What the hash of a source is made of: it, the headers that it includes, and with a header the .cu of its name."""
    found = {} if found is None else found
    if source in found or not (root / source).is_file():
        return found
    found[source] = True
    beside = pathlib.PurePath(source).with_suffix(".cu").as_posix()
    for name in (beside, *likeness.ANY_INCLUDE.findall((root / source).read_text())):
        files_of(root, name, found)
    return found


def instructions(elf):
    """Of an ELF file for a GPU: by section, without the names that change with a file's place and text, what it holds."""
    sections = {}
    table, = struct.unpack_from("<Q", elf, 0x28)
    size, count, of_names = struct.unpack_from("<HHH", elf, 0x3A)
    headers = [struct.unpack_from("<IIQQQQIIQQ", elf, table + i * size) for i in range(count)]
    names = elf[headers[of_names][4]:][:headers[of_names][5]]
    for name_at, kind, _, _, at, length, *_ in headers:
        name = names[name_at:names.index(b"\0", name_at)].decode()
        holds_code = name.startswith(".text.") or re.match(r"\.nv\.constant[1-9]", name)
        if holds_code and kind != 8:  # SHT_NOBITS
            sections.setdefault(ANONYMOUS.sub("anonymous", name), []).append(elf[at:at + length])
    return sections


def digest_of(object_file, cuobjdump):
    """Of all machine code in an object file."""
    digest = hashlib.sha256()
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([cuobjdump, "-xelf", "all", object_file.resolve()], cwd=folder, check=True, capture_output=True)
        for file in sorted(pathlib.Path(folder).iterdir(), key=lambda path: path.name.split(".")[-2]):
            for name, parts in sorted(instructions(file.read_bytes()).items()):
                digest.update(name.encode() + b"".join(sorted(parts)))
    return digest.hexdigest()


def digest(build, cuobjdump):
    """By rung: the hash of its source, and a digest of the machine code of all files that the hash is made of."""
    root = pathlib.Path(re.search(r"^CMAKE_HOME_DIRECTORY:INTERNAL=(.*)$", (build / "CMakeCache.txt").read_text(),
                                  re.MULTILINE).group(1))
    objects = {}
    for path in sorted(build.rglob("*.cu.o")):
        source = re.sub(r"^.*\.dir/(.*)\.o$", r"\1", path.relative_to(build).as_posix())
        objects[source] = digest_of(path, cuobjdump)
    code = {}
    for source, source_hash in expect.hashes_of(build).items():
        if source.endswith(".cu"):
            parts = {name: objects[name] for name in files_of(root, source) if name in objects}
            if source not in parts:
                sys.exit(f"machine_code.py: {build} has no object of {source}: was it built with nvcc?")
            code[source.removesuffix(".cu")] = {
                "source_hash": source_hash,
                "code": hashlib.sha256(json.dumps(sorted(parts.items())).encode()).hexdigest()}
    return code


def kept(old, new):
    """Old hash: new hash, of each rung whose machine code is the same."""
    return {then["source_hash"]: new[rung]["source_hash"] for rung, then in old.items()
            if rung in new and then["code"] == new[rung]["code"] and then["source_hash"] != new[rung]["source_hash"]}


def carry(text, hashes):
    """A record with the new hashes; nothing else changes. @return it, and how many rungs have a new hash"""
    there = [then for then in hashes if f'"{then}"' in text]
    for then in there:
        text = text.replace(f'"{then}"', f'"{hashes[then]}"')
    return text, len(there)


def note(notes, record, rungs):
    """Says of a record how many of its hashes are of a later source than was measured, all carries together."""
    before = notes.get(record, {}).get("rungs", 0)
    notes[record] = {"date": str(datetime.date.today()), "rungs": before + rungs}


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    of_build = commands.add_parser("digest")
    of_build.add_argument("build", type=pathlib.Path)
    of_build.add_argument("cuobjdump", nargs="?", default="cuobjdump")
    of_records = commands.add_parser("carry")
    of_records.add_argument("old", type=pathlib.Path)
    of_records.add_argument("new", type=pathlib.Path)
    of_records.add_argument("records", type=pathlib.Path, nargs="+")
    options = parser.parse_args(arguments)
    if options.command == "digest":
        json.dump(digest(options.build, options.cuobjdump), sys.stdout, indent=1)
        return
    old, new = (json.loads(file.read_text()) for file in (options.old, options.new))
    hashes = kept(old, new)
    other = sorted(rung for rung in old if rung in new and old[rung]["code"] != new[rung]["code"])
    print(f"{len(hashes)} rungs have another source and the same machine code; other machine code: {len(other)}")
    print("".join(f"  {rung}\n" for rung in other), end="")
    notes = json.loads(NOTES.read_text()) if NOTES.is_file() else {}
    for file in options.records:
        text, rungs = carry(file.read_text(), hashes)
        print(f"{file}: {rungs} rungs")
        if rungs:
            file.write_text(text)
            note(notes, file.resolve().relative_to(ROOT).as_posix(), rungs)
    NOTES.write_text(json.dumps(notes, indent=2, sort_keys=True) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
