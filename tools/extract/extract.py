#!/usr/bin/env python3
"""Writes a rung into one file: with all that it includes, and a main() that runs it and checks what it computes.

    extract.py BUILD RUNG FILE [PROBLEM OPTION...]      (./ladder extract RUNG FILE [PROBLEM OPTION...])

RUNG is a rung's name, cuda_optimized/gemm/tiled, or its end, gemm/tiled, where one rung is called so. The problem's
options are those of `./ladder compare`; without any, the first of a few small problems that the rung takes. Which
files the rung needs beside its headers, the objects in BUILD tell: whoever defines what an object leaves undefined.
"""
import argparse
import functools
import json
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
INCLUDE = re.compile(r'^\s*#include "([^"]+)"')
# What this header reaches is compiled for sm_90a, in the build as well: see cmake/RungsOnGpu.cmake.
OF_SM_90A = "cuda_optimized/gemm/wgmma_tile.cuh"

# What example.hpp calls.
OF_MAIN = ["core/arguments.cpp", "core/implementation.cpp"]

# Small problems for the ladders: a rung gets the first that it takes; of others, the ladder's example.
DENSE = ["--n 1 --c 3 --h 6 --w 7 --k 4 --r 3 --s 3 --pad 1",
         "--n 1 --c 4 --h 8 --w 8 --k 4 --r 3 --s 3 --groups 4",
         "--n 1 --c 8 --h 6 --w 8 --k 8 --r 3 --s 3 --pad 1 --layout nhwc",
         "--n 1 --c 16 --h 6 --w 8 --k 16 --r 3 --s 3 --dtype tf32",
         "--n 1 --c 32 --h 6 --w 8 --k 64 --r 1 --s 1 --layout nhwc --dtype tf32",
         "--n 1 --c 8 --h 6 --w 8 --k 8 --r 3 --s 3 --groups 8 --layout nhwc",
         "--n 1 --c 64 --h 6 --w 8 --k 64 --r 1 --s 1 --layout nhwc --dtype bf16",
         "--n 1 --c 8 --h 6 --w 8 --k 8 --r 3 --s 3 --pad 1 --dtype bf16",
         "--n 1 --c 2 --h 8 --w 9 --k 2 --r 4 --s 4",
         "--n 1 --c 72 --h 2 --w 2 --k 8 --r 1 --s 1 --layout nhwc --dtype bf16",
         "--n 1 --c 8 --h 2 --w 2 --k 72 --r 1 --s 1 --layout nhwc --dtype bf16",
         "--n 1 --c 8 --h 3 --w 4 --k 8 --r 1 --s 1 --stride 2 --layout nhwc --dtype bf16"]
SPARSE = ["--shape 5,6,7 --sites 20 --cin 4 --cout 5", "--shape 5,6,7 --sites 20 --cin 32 --cout 32",
          "--shape 5,6,7 --sites 20 --cin 16 --cout 16 --dtype fp16",
          "--shape 5,6,7 --sites 20 --cin 32 --cout 32 --dtype tf32"]
EXAMPLES = {
    "conv2d": DENSE, "conv2d_dgrad": DENSE, "conv2d_wgrad": DENSE,
    "im2col": ["--c 3 --size 6,7 --kernel 3,3 --pad 1", "--c 3 --size 6,7 --kernel 3,3 --layout nhwc"],
    "col2im": ["--c 3 --size 6,7 --kernel 3,3 --pad 1", "--c 3 --size 6,7 --kernel 3,3 --layout nhwc"],
    "gemm": ["--m 19 --n 21 --k 34", "--m 32 --n 32 --k 32", "--m 32 --n 32 --k 32 --dtype tf32", "--m 32 --n 32 --k 32 --dtype bf16",
             "--m 20 --n 24 --k 160 --dtype fp8"],
    "fft": ["--n 3 --length 16 --ring mersenne", "--n 3 --length 64 --ring mersenne",
            "--n 3 --length 16 --input real --ring mersenne",
            "--n 3 --length 16 --input real --direction inverse --ring mersenne", "--n 3 --length 8,16 --ring mersenne",
            "--n 3 --length 13"],
    "tile_map": ["--tiles 5,3,4 --map grouped", "--tiles 5,3,4 --map row_major"],
    "rulebook": [f"--shape 5,6,7 --sites 20 --mode {mode} {more} --form {form}"
                 for mode, more in (("subm", ""), ("strided", "--stride 2 --pad 1"), ("transposed", "--stride 2"),
                                    ("inverse", "--stride 2 --pad 1"))
                 for form in ("pairs", "table", "sorted", "split")],
    "sparse_conv": SPARSE, "sparse_dgrad": SPARSE, "sparse_wgrad": SPARSE,
    "sparse_max_pool": ["--shape 5,6,7 --sites 20 --cin 4"], "sparse_max_pool_dgrad": ["--shape 5,6,7 --sites 20 --cin 4"],
    "sparse_avg_pool": ["--shape 5,6,7 --sites 20 --cin 4"],
    "sparse_global_pool": [f"--shape 5,6,7 --batch 2 --sites 20 --cin 4 --reduce {reduce}" for reduce in ("max", "mean")],
    "sparse_to_dense": ["--shape 5,6,7 --sites 20 --cin 4"],
    "voxelize": ["--n 60 --voxel 4"],
}


def examples_of(ladder):
    """Options of `./ladder compare`, for one problem each."""
    return [example.split() for example in EXAMPLES.get(ladder, [""])]


ABOUT = """\
// {rung}, a rung of ConvLadder, in one file.
//
//     {compile}
//{emulated}
// Written by `./ladder extract`: {source} is below, after all that it includes.
// main(), at the end, runs it on one problem and checks every number that it computes.
"""
EMULATED = """
// Without a GPU it runs on cuda_on_cpu, a folder of ConvLadder that needs nothing else of it; in a
// CMakeLists.txt:
//
//     add_subdirectory(cuda_on_cpu)
//     cuda_on_cpu_add_kernels(kernels {file})
//     add_executable(program)
//     target_link_libraries(program PRIVATE kernels)
//"""


class Trouble(Exception):
    pass


def rung_named(rungs, name):
    found = [rung for rung in rungs if rung["rung"] == name or rung["rung"].endswith("/" + name)]
    if len(found) != 1:
        which = ", ".join(rung["rung"] for rung in found) or "no rung"
        raise Trouble(f"rung = {name}: {which} is called so (./ladder list)")
    return found[0]


def symbols(objects, *options):
    """(object, name) of the project's functions and variables; functions of one name differ in their parameters."""
    command = ["nm", "--demangle", "--print-file-name", "--format=posix", *options, *objects]
    for line in subprocess.run(command, check=True, capture_output=True, text=True).stdout.split("\n"):
        file, _, rest = line.partition(": ")
        name = re.sub(r" [A-Za-z]( [0-9a-f]+)*\s*$", "", rest)
        if name.startswith("convladder::"):
            yield file, name


def source_of(object_file, build):
    """The source that an object is made of; None for what is generated."""
    inside = re.search(r"\.dir/(.*)\.o$", object_file).group(1)
    if ".cuda_on_cpu/" in inside:  # a unit that includes a .cu file
        source = re.search(r'#include "(.*)"', (build / inside).read_text()).group(1)
        return pathlib.Path(source).relative_to(ROOT).as_posix()
    return inside if (ROOT / inside).is_file() else None


@functools.cache
def sources_by_need(build):
    """Of each source, those that define what it needs."""
    # Of the build as it is: there may be objects, too, of files that have moved since.
    commands = json.loads((build / "compile_commands.json").read_text())
    objects = [str(build / path) for command in commands
               for path in re.findall(r" -o (CMakeFiles/(?:core\.dir|core_kernels_emulated|rungs_)\S*\.o) ", command["command"])
               if "marker_" not in path]
    sources = {path: source_of(path, build) for path in objects}
    sources = {path: name for path, name in sources.items() if name}
    defined = {}
    for path, name in symbols(sources, "--defined-only", "--extern-only"):
        defined.setdefault(name, sources[path])
    needs = {name: [] for name in sources.values()}
    for path, name in symbols(sources, "--undefined-only"):
        source = sources[path]
        if defined.get(name, source) not in (source, *needs[source]):
            needs[source].append(defined[name])
    return needs


def needed_sources(needs, source):
    """The source, and all that it and main() need, directly or through others."""
    if source not in needs:
        raise Trouble(f"rung = {source}: is not built")
    found = [source, *OF_MAIN]
    for one in found:
        found += [other for other in needs[one] if other not in found]
    return found


def inlined(path, done):
    """The lines of a file, behind those of the project's headers that it includes and nobody did before."""
    before, lines = [], []
    for line in (ROOT / path).read_text().split("\n"):
        header = INCLUDE.match(line)
        if header and (ROOT / header.group(1)).is_file():
            if header.group(1) not in done:
                done.add(header.group(1))
                before += inlined(header.group(1), done)
        elif line != "#pragma once":
            lines.append(line)
    text = re.sub(r"\n{3,}", "\n\n", "\n".join(lines).strip("\n"))
    return [*before, "", f"// ===== {path} " + "=" * max(0, 88 - len(path)), "", *text.split("\n")]


def main_of(build, rung, options):
    """The text of main(): for the given options, or for the first example that the rung takes."""
    program = build / "command/example"
    examples = [options] if options else examples_of(rung["ladder"])
    for example in examples:
        result = subprocess.run([program, rung["rung"], *example], capture_output=True, text=True)
        if result.returncode == 0:
            return result.stdout
        if result.returncode != 2:
            break
    raise Trouble(result.stderr.replace("convladder: ", "").strip())


def formatted(text):
    """main() holds long lists."""
    out = []
    for line in text.split("\n"):
        indent = " " * (len(line) - len(line.lstrip()) + 4)
        words, current = line.split(" "), ""
        for word in words:
            if current and len(current) + 1 + len(word) > 100:
                out.append(current)
                current = indent + word
            else:
                current = current + " " + word if current or word == "" and not current else word
        out.append(current)
    return "\n".join(out)


def table_of(build):
    """The rows of `list --json`."""
    with tempfile.TemporaryDirectory() as folder:
        table = pathlib.Path(folder) / "list.json"
        subprocess.run([build / "command/convladder", "list", "--json", table], check=True, stdout=subprocess.DEVNULL)
        return json.loads(table.read_text())


def extracted(build, needs, rung, file, options=()):
    """The text of the file."""
    cuda = rung["backend"] == "cuda"
    if file.suffix != (".cu" if cuda else ".cpp"):
        raise Trouble(f"file = {file}: {rung['rung']} needs a file that ends in {'.cu' if cuda else '.cpp'}")
    main = main_of(build, rung, options)
    done, lines = set(), []
    for source in reversed(needed_sources(needs, rung["source"])):
        lines += inlined(source, done)
    architecture = "sm_90a" if OF_SM_90A in done else "native"
    lines += inlined("tools/extract/example.hpp", done)
    # The program has one thread, and cuda_on_cpu takes thread-local variables of a kernel file for shared memory.
    text = "\n".join(lines).replace("\nthread_local ", "\n")
    compiler = f"nvcc -std=c++20 -arch={architecture}" if cuda else "g++ -std=c++20 -O2"
    if "#include <Eigen/" in text:
        compiler += " -I/usr/include/eigen3"
    about = ABOUT.format(rung=rung["rung"], source=rung["source"],
                         compile=f"{compiler} {file.name} -o {file.stem} && ./{file.stem}",
                         emulated=EMULATED.format(file=file.name) if cuda else "")
    return about + text + "\n\n// ===== The example " + "=" * 78 + "\n\n" + formatted(main)


def main():
    parser = argparse.ArgumentParser(usage="./ladder extract RUNG FILE [PROBLEM OPTION...]")
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("rung")
    parser.add_argument("file", type=pathlib.Path)
    arguments, options = parser.parse_known_args()
    try:
        rung = rung_named(table_of(arguments.build), arguments.rung)
        text = extracted(arguments.build, sources_by_need(arguments.build), rung, arguments.file, options)
        arguments.file.write_text(text)
        print(f"{arguments.file}: {rung['rung']} in {text.count(chr(10))} lines; its first lines say how to compile it")
    except (Trouble, OSError) as error:
        print(f"ladder: {error}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
