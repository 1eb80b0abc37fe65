#!/usr/bin/env python3
"""Counts the instructions of the main loop that nvcc makes of each rung of the gemm ladder: benchmarks/sass/gemm.json.

    read_sass.py BUILD [--nvcc NVCC] [--nvdisasm NVDISASM]

BUILD is a build without nvcc (build/cpu), for the hashes of sources. nvdisasm comes with the CUDA Toolkit, or from PyPI
(nvidia-cuda-nvdisasm). Of a rung with several instances of its kernel, the one counts whose loop multiplies most; of
an instance, the loop with the most products that has no other such loop inside. docs/sass.md reads the file.
"""
import argparse
import collections
import datetime
import json
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tools/extract"), str(ROOT / "tools/inspect")]
import expect  # noqa: E402  (hashes of sources)

FILE = ROOT / "benchmarks/sass/gemm.json"
RUNGS = ["cuda_naive/gemm/direct", *(f"cuda_optimized/gemm/{name}" for name in (
    "tiled", "register_tile", "vectorized", "warp_tiles", "double_buffered", "cp_async", "tf32/mma", "tf32/wgmma", "ldmatrix", "persistent", "setmaxnreg"))]
KINDS = {  # of instructions, by the beginning of their names
    "multiply": ("FFMA", "HMMA", "HGMMA"),
    "shared memory": ("LDS", "STS", "LDSM"),
    "global memory": ("LDG", "STG", "LDGSTS", "LD.", "ST."),
    "wait": ("BAR", "DEPBAR", "LDGDEPBAR", "SYNCS", "WARPSYNC", "WARPGROUP", "NANOSLEEP"),
}
EXCERPT = 26  # instructions


def functions_of(text):
    """Name and body of each kernel in what nvdisasm prints."""
    parts = re.split(r"^\.text\.(\S+):$", text, flags=re.M)
    for name, body in zip(parts[1::2], parts[2::2]):
        yield name, body.split("\n\t.section", 1)[0]


def instructions_of(body):
    """Instructions in their order, and for each label the number of the one behind it."""
    found, labels = [], {}
    for line in body.split("\n"):
        if match := re.match(r"(\.L_x_\d+):", line):
            labels[match.group(1)] = len(found)
        elif match := re.search(r"/\*[0-9a-f]{4,6}\*/\s+(.*?)\s*;", line):
            found.append(re.sub(r"\s+", " ", match.group(1)))
    return found, labels


def loops_of(found, labels):
    """(first, last) of each: a branch back, and where it leads. A branch to itself ends a kernel."""
    loops = []
    for i, instruction in enumerate(found):
        match = re.search(r"\bBRA\b.*`\((\.L_x_\d+)\)", instruction)
        if match and labels.get(match.group(1), i) < i:
            loops.append((labels[match.group(1)], i))
    return loops


def name_of(instruction):
    """"LDS.128" of "@!P0 LDS.128 R4, [R2+UR4]"."""
    return re.sub(r"^@!?U?PT?\d*\s+", "", instruction).split(" ", 1)[0]


def kind_of(name):
    for kind, beginnings in KINDS.items():
        if any(name == begin or name.startswith(begin.rstrip(".") + ".") for begin in beginnings):
            return kind
    return "other"


def products_of(name):
    """Multiply-adds that a warp (of HGMMA: four warps) starts with one such instruction."""
    if name.split(".")[0] == "FFMA":
        return 32
    if match := re.match(r"HGMMA\.(\d+)x(\d+)x(\d+)", name):
        m, n, k = map(int, match.groups())
        return m * n * k
    if match := re.match(r"HMMA\.16(8)(16|8|4)\b", name):
        return 16 * int(match.group(1)) * int(match.group(2))
    return 0


def products(loop):
    return sum(products_of(name_of(instruction)) for instruction in loop)


def main_loop(found, labels):
    """The instructions of the loop that multiplies most and has no other such loop inside; of equals, the shortest."""
    loops = [(first, last) for first, last in loops_of(found, labels) if products(found[first:last + 1])]
    inner = [(first, last) for first, last in loops
             if not any(first <= begin and end <= last and (begin, end) != (first, last) for begin, end in loops)]
    return max((found[first:last + 1] for first, last in inner), key=lambda loop: (products(loop), -len(loop)), default=[])


def entry_of(rung, nvcc, nvdisasm):
    with tempfile.TemporaryDirectory() as folder:
        cubin = pathlib.Path(folder) / "rung.cubin"
        subprocess.run([nvcc, "-std=c++20", "-arch=sm_90a", "-cubin", "-DBACKEND=gpu", "--expt-relaxed-constexpr", f"-I{ROOT}", "-o", cubin,
                        ROOT / f"{rung}.cu"], check=True)
        text = subprocess.run([nvdisasm, cubin], check=True, capture_output=True, text=True).stdout
    loops = [main_loop(*instructions_of(body)) for _, body in functions_of(text)]
    loop = max(loops, key=lambda loop: (products(loop), -len(loop)))
    if not loop:
        raise SystemExit(f"read_sass.py: {rung}: no loop that multiplies")
    kinds = collections.Counter(kind_of(name_of(instruction)) for instruction in loop)
    first = next(i for i, instruction in enumerate(loop) if products_of(name_of(instruction)))
    begin = max(0, min(first - EXCERPT // 2, len(loop) - EXCERPT))
    return {"instructions": len(loop), "products": products(loop), "kinds": {kind: kinds[kind] for kind in [*KINDS, "other"]},
            "excerpt": loop[begin:begin + EXCERPT]}


def read_record():
    return json.loads(FILE.read_text())


def main():
    parser = argparse.ArgumentParser(usage="read_sass.py BUILD [--nvcc NVCC] [--nvdisasm NVDISASM]")
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--nvcc", default="nvcc")
    parser.add_argument("--nvdisasm", default="nvdisasm")
    arguments = parser.parse_args()
    version = subprocess.run([arguments.nvcc, "--version"], check=True, capture_output=True, text=True).stdout
    hashes = expect.hashes_of(arguments.build)
    rungs = {rung: {"source_hash": hashes[f"{rung}.cu"], **entry_of(rung, arguments.nvcc, arguments.nvdisasm)} for rung in RUNGS}
    FILE.parent.mkdir(parents=True, exist_ok=True)
    FILE.write_text(json.dumps({"toolkit": re.search(r"V(\d+\.\d+\.\d+)", version).group(1), "architecture": "sm_90a",
                                "date": datetime.date.today().isoformat(), "rungs": rungs}, indent=1) + "\n")


if __name__ == "__main__":
    main()
