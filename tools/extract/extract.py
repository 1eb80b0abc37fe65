#!/usr/bin/env python3
"""Writes a rung into one file, with all code that it needs and a main() that runs it and checks its results.

    extract.py BUILD RUNG FILE [PROBLEM OPTION...]      (./ladder extract RUNG FILE [PROBLEM OPTION...])

RUNG is a rung's name, cuda_optimized/gemm/tiled, or its end, gemm/tiled, if that is unique. The problem's options are
those of `./ladder compare`; without any, the first of a few small problems that the rung supports is used. The
objects in BUILD determine which files the rung needs besides its headers: those that define what an object leaves
undefined. Of their declarations it takes those that run() reaches (declarations.py), a few of them in a shorter form
(short.hpp), and omits what the one problem does not need, if g++, gcov and the emulator's library are found
(specialise.py).
"""
import argparse
import dataclasses
import functools
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools/extract"))
import declarations  # noqa: E402
import example  # noqa: E402
import specialise  # noqa: E402

INCLUDE = re.compile(r'^\s*#include "([^"]+)"')

# Small problems for the ladders: a rung gets the first one that it supports; other ladders use their example.
DENSE = ["--n 1 --c 2 --h 5 --w 6 --k 3 --r 3 --s 3 --pad 1",
         "--n 1 --c 3 --h 6 --w 7 --k 4 --r 3 --s 3 --pad 1",
         "--n 1 --c 4 --h 8 --w 8 --k 4 --r 3 --s 3 --groups 4",
         "--n 1 --c 8 --h 6 --w 8 --k 8 --r 3 --s 3 --pad 1 --layout nhwc",
         "--n 1 --c 16 --h 6 --w 8 --k 16 --r 3 --s 3 --dtype tf32",
         "--n 1 --c 32 --h 6 --w 8 --k 64 --r 1 --s 1 --layout nhwc --dtype tf32",
         "--n 1 --c 8 --h 6 --w 8 --k 8 --r 3 --s 3 --groups 8 --layout nhwc",
         "--n 1 --c 8 --h 3 --w 4 --k 8 --r 3 --s 3 --pad 1 --layout nhwc --dtype bf16",
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
    "gemm": ["--m 2 --n 4 --k 33", "--m 32 --n 32 --k 32", "--m 8 --n 8 --k 40 --dtype tf32", "--m 8 --n 8 --k 72 --dtype bf16", "--m 32 --n 32 --k 32 --dtype tf32", "--m 32 --n 32 --k 32 --dtype bf16",
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
//
// The rung's own source comes after what it needs. main() runs it on one problem and checks every
// number. `./ladder extract` wrote it for this problem: {without}{emulated}
"""
SHORT = "what the host's\n// functions choose for other problems is left out."
LONG = "supports(), which\n// says what run() takes, is left out."
EMULATED = "\n// Without a GPU, cuda_on_cpu_add_kernels() of ConvLadder's folder cuda_on_cpu compiles it."

# What of each header a program may use. One that is not here is kept.
NAMES = {
    "algorithm": r"std::(ranges::)?(max|min|clamp|sort|stable_sort|fill|fill_n|copy|copy_n|find|find_if|equal|any_of|all_of|none_of|"
                 r"transform|reverse|lower_bound|upper_bound|count|count_if|generate|unique|remove_if|swap_ranges|max_element|min_element|"
                 r"rotate|partition|nth_element|is_sorted|binary_search|for_each|minmax|lexicographical_compare|equal_range|merge|inclusive_scan)\b",
    "array": r"std::(array|to_array)\b", "atomic": r"std::atomic|std::memory_order", "bit": r"std::(bit_\w+|countl_|countr_|popcount|has_single_bit|rotl|rotr)",
    "cmath": r"std::(abs|fma|sqrt|floor|ceil|sin|cos|lrint|lround|rint|round|nearbyint|isnan|isfinite|isinf|ldexp|frexp|pow|log\w*|exp\w*|fm\w+|hypot|remainder|signbit|copysign|trunc|nextafter|modf|tan|atan\w*|sinf|cosf)\b",
    "complex": r"std::complex", "cstddef": r"std::(size_t|byte|ptrdiff_t|nullptr_t|max_align_t)\b|offsetof", "cstdint": r"\bu?int(_\w+)?\d+_t|u?intptr_t",
    "cstdio": r"std::(s?n?printf|fprintf|fputs|puts)", "cstdlib": r"std::(abort|malloc|free|getenv|exit|aligned_alloc|strtol)",
    "cstring": r"std::(mem\w+|str\w+)\(", "functional": r"std::(function|plus|minus|less|greater|ref|hash|invoke|equal_to|not_equal_to|multiplies)\b",
    "initializer_list": r"std::initializer_list", "limits": r"std::numeric_limits", "map": r"std::(multi)?map", "memory": r"std::(unique_ptr|shared_ptr|make_unique|make_shared|addressof)",
    "mutex": r"std::(mutex|lock_guard|unique_lock|scoped_lock|once_flag|call_once)", "new": r"std::(bad_alloc|align_val_t|nothrow)|std::launder",
    "numeric": r"std::(accumulate|iota|gcd|lcm|reduce|partial_sum|exclusive_scan|inclusive_scan|inner_product|transform_reduce|midpoint)", "optional": r"std::(optional|nullopt)",
    "source_location": r"std::source_location", "span": r"std::span", "sstream": r"std::\w*stringstream", "stdexcept": r"std::(\w+_error|invalid_argument|out_of_range|domain_error)\b",
    "string": r"std::(string\b|to_string)", "string_view": r"std::string_view", "thread": r"std::(thread|jthread|this_thread)", "tuple": r"std::(tuple|tie|make_tuple|get|apply)\b",
    "type_traits": r"std::(is_\w+|conditional\w*|remove_\w+|enable_if\w*|decay\w*|make_(un)?signed\w*|integral_constant|true_type|false_type|void_t|underlying_type\w*|invoke_result\w*|add_\w+|common_type\w*|bool_constant|type_identity\w*)\b",
    "unordered_map": r"std::unordered_map", "utility": r"std::(pair|move|forward|swap|exchange|make_pair|index_sequence|integer_sequence|make_index_sequence|declval|in_range)\b",
    "variant": r"std::(variant|get_if|visit|monostate)", "vector": r"std::vector", "condition_variable": r"std::condition_variable", "chrono": r"std::chrono",
    "set": r"std::set\b", "deque": r"std::deque", "concepts": r"std::(same_as|integral|floating_point|convertible_to|invocable)", "iterator": r"std::(back_inserter|size|ssize|begin|end|distance|next|prev)\b",
    "exception": r"std::(exception_ptr|current_exception|rethrow_exception|uncaught_exceptions|terminate)\b", "ranges": r"std::(views|ranges)::",
    "cuda.h": r"\bCU[a-z_]|\bCU_|cuuint|\bcu[A-Z]", "cuda_fp16.h": r"half\w*_|_half|\bhalf2?\b|__h[a-z]+2", "cuda_bf16.h": r"bfloat16|bfloat162",
    "cuda_fp8.h": r"__nv_(cvt_)?\w*fp8", "cuda_pipeline.h": r"__pipeline", "cooperative_groups.h": r"cooperative_groups", "mma.h": r"wmma",
    "cuda_on_cpu/control.hpp": r"cuda_on_cpu::control", "cuda_on_cpu/ptx.hpp": r"cuda_on_cpu::ptx", "cuda_on_cpu/inspect.hpp": r"cuda_on_cpu::inspect",
    "cuda_on_cpu/tensor_map.hpp": r"CUtensorMap",
}
# The DType of each type of numbers.
FORMATS = {"float": "f32", "Half": "f16", "BFloat16": "bf16", "Float8": "f8"}
# Namespaces that a single file does not need.
QUALIFIERS = ("convladder", "BACKEND", "cuda_optimized", "cuda_naive", "cpu_reference")
# Of the members of an Implementation, what a program calls that has one problem, which the rung takes.
CALLED = ("run", "workspace_bytes", "finish")


class Trouble(Exception):
    pass


def rung_named(rungs, name, say=True):
    """The rung of that name, or of that earlier name, which it says."""
    found = [rung for rung in rungs if rung["rung"] == name or rung["rung"].endswith("/" + name)]
    if not found:
        found = [rung for rung in rungs for old in rung["was"] if old == name or old.endswith("/" + name)]
        if len(found) == 1 and say:
            print(f"rung = {name}: the present name is {found[0]['rung']}", file=sys.stderr)
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
    # Of the build as it is: there may be objects, too, of files that have moved since; and in a new one, only those of
    # one ladder and what it calls.
    commands = json.loads((build / "compile_commands.json").read_text())
    objects = [str(build / path) for command in commands
               for path in re.findall(r" -o (CMakeFiles/(?:core\.dir|core_kernels_emulated|rungs_)\S*\.o) ", command["command"])
               if "marker_" not in path and (build / path).is_file()]
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
    """The source, and all that it needs, directly or through others."""
    if source not in needs:
        raise Trouble(f"rung = {source}: is not built (./ladder build)")
    found = [source]
    for one in found:
        found += [other for other in needs[one] if other not in found]
    return found


@functools.cache
def declarations_of(path):
    """Those of a file, its project headers' paths, and the comment at its top."""
    text = (ROOT / path).read_text()
    return *declarations.split(text, path), [match.group(1) for match in map(INCLUDE.match, text.split("\n")) if match]


def all_declarations(sources):
    """Of these files, each behind those that it includes; and the comments at their tops."""
    found, tops, done = [], {}, set()

    def add(path):
        if path in done or not (ROOT / path).is_file():
            return
        done.add(path)
        own, tops[path], headers = declarations_of(path)
        for header in headers:
            add(header)
        found.extend(one for one in own if one.kind != "include" or '"' not in one.text)

    for source in sources:
        add(source)
    return found, tops


def shorter(number, row_major):
    """The declarations of short.hpp for problems of that number type, and those for one tile map."""
    text = (ROOT / "tools/extract/short.hpp").read_text()
    found, _ = declarations.split(text.replace("NUMBER", number).replace("FORMAT", FORMATS[number]), "tools/extract/short.hpp")
    if number == "Float8":  # which only the last of the three knows
        found = [one for one in found if not one.names & {"with_float_type", "with_half_type", "ProductOf"}]
    if row_major:
        path = "tools/extract/short_row_major.hpp"
        found += declarations.split((ROOT / path).read_text(), path)[0]
    return found


def includes_of(found, code):
    """The lines that include what the code uses of the headers that its files include."""
    by_guard = {}
    for one in found:
        header = re.search(r"<(.*)>", one.text).group(1) if one.kind == "include" else None
        if header and (header not in NAMES or re.search(NAMES[header], code)):
            guard = tuple((lines, branch) for _, branch, lines in one.guards)
            by_guard.setdefault(guard, set()).add(header)
    plain = by_guard.pop((), set())
    toolkit = {header for header in plain if re.search(r"^(cu|mma|Eigen)", header) or "/" in header}
    out = [f"#include <{header}>" for header in sorted(toolkit)]
    for guard, headers in sorted(by_guard.items()):
        headers -= plain
        if headers:
            out += [line for lines, branch in guard for line in lines[:branch + 1]]
            out += [f"#include <{header}>" for header in sorted(headers)] + ["#endif"] * len(guard)
    return "\n".join([*out, *([""] if out else []), *(f"#include <{header}>" for header in sorted(plain - toolkit))])


def example_of(build, rung, options):
    """A problem and its numbers: of the given options, or the first example that the rung takes."""
    program = build / "command/example"
    examples = [options] if options else examples_of(rung["ladder"])
    for given in examples:
        result = subprocess.run([program, rung["rung"], *given], capture_output=True, text=True)
        if result.returncode == 0:
            return json.loads(result.stdout)
        if result.returncode != 2:
            break
    raise Trouble(result.stderr.replace("convladder: ", "").strip())


def table_of(build):
    """The rows of `list --json`."""
    with tempfile.TemporaryDirectory() as folder:
        table = pathlib.Path(folder) / "list.json"
        subprocess.run([build / "command/convladder", "list", "--json", table], check=True, stdout=subprocess.DEVNULL)
        return json.loads(table.read_text())


# Guards of instructions that the GPU of the program's -arch line has.
ALWAYS = re.compile(r"^#\s*if (?:__CUDA_ARCH__ >= \d+|CONVLADDER_SM90A)\s*$")
HOPPER = re.compile(r"CONVLADDER_SM90A|__CUDA_ARCH__ >= 900")
FROM_EMULATOR = re.compile(r"using ::cuda_on_cpu::ptx::\w+;")


def without_old_gpus(one):
    """The declaration without what it has for GPUs that its rung does not support."""
    lines, stack, hopper = [], [], False
    for line in one.text.split("\n"):
        directive = re.match(r"\s*#\s*(if|else|elif|endif)", line)
        if directive and directive.group(1) == "if":
            stack.append("then" if ALWAYS.match(line.strip()) else "")
            if stack[-1]:
                hopper = hopper or bool(HOPPER.search(line))
                continue
        elif directive and stack and stack[-1]:
            if directive.group(1) == "else":
                stack[-1] = "else"
            elif directive.group(1) == "endif":
                stack.pop()
            continue
        elif directive and directive.group(1) == "endif" and stack:
            stack.pop()
        if "else" not in stack:
            lines.append(line)
    text = "\n".join(lines)
    return dataclasses.replace(declarations.changed(one, text) if text != one.text else one, hopper=hopper)


def is_known(one):
    return "convladder" in one.scope() and one.names


def flattened(one, own):
    """The declaration in convladder itself, where it was in a namespace of a back end, a ladder `own`, or a file."""
    parts = [part for name in one.namespaces for part in name.split("::")]
    if "convladder" not in parts:
        return one
    return dataclasses.replace(one, namespaces=("convladder", *(part for part in parts if part not in {"", *QUALIFIERS, own})))


def unqualified(text, own):
    """The text without these namespaces before its names."""
    names = "|".join([*QUALIFIERS, "gpu", *([own] if own else [])])
    text = re.sub(rf"(?<![\w:<\"/])(?:::)?(?:(?:{names})::)+(?=\w)", "", text)
    text = re.sub(rf"(?<=<)(?:(?:{names})::)+(?=\w)", "", text)
    return re.sub(r"(?m)^\s*using \w+;\n?", "", text)


def with_comments_aligned(text):
    """The text with the comments behind its lines in one column."""
    lines = text.split("\n")
    column = max((len(line.split(" ///<")[0].rstrip()) for line in lines if " ///<" in line and line.split(" ///<")[0].strip()), default=0) + 2
    return "\n".join(line.split(" ///<")[0].rstrip().ljust(column) + "///<" + line.split(" ///<", 1)[1] if " ///<" in line and line.split(" ///<")[0].strip() else line
                     for line in lines)


def without_absent(text, absent, has_halves):
    """The text without paragraphs of its comment that are about what the file does not have."""
    match = re.match(r"(?:[ \t]*//[^\n]*\n)+", text)
    if not match or "///" not in match.group():
        return text
    paragraphs, result = re.split(r"(?m)^[ \t]*///[ \t]*\n", match.group()), []
    for index, paragraph in enumerate(paragraphs):
        named = set(re.findall(r"\b(\w+)\(\)", paragraph)) & absent
        if index > 0 and (named or not has_halves and re.search(r"\b(b?f16|f8|8 bits)\b", paragraph)):
            continue
        result.append(paragraph)
    return "///\n".join(result) + text[match.end():]


class Program:
    """A rung with an example: the declarations of the file, in their order."""

    def __init__(self, needs, rung, numbers, row_major, maps=()):
        """`row_major`: short_row_major.hpp stands for all tile maps; code may mention `maps`, and does not come to them."""
        self.rung, self.numbers, self.cuda = rung, numbers, rung["backend"] == "cuda"
        self.sources = list(reversed(needed_sources(needs, rung["source"])))
        found, tops = all_declarations(self.sources)
        number = next((one["type"] for one in numbers["inputs"] if one["type"] != "std::int32_t"), "float")
        short = shorter(number, row_major)
        if maps:
            short = [declarations.changed(one, one.text.replace("{ row_major }", "{ row_major, " + ", ".join(maps) + " }")) if "TileMap" in one.names else one for one in short]
        found = declarations.replaced(found, short)
        self.found = [without_old_gpus(one) for one in found if not one.names & {"BACKEND"}]
        text = (ROOT / rung["source"]).read_text()
        name = rung["rung"].split("/", 2)[2].replace("/", "_")
        self.arrays, inside = re.search(rf"Implementation<(\w+)>\s+{name}\s*=\s*\{{(.*?)\}};", text, re.S).groups()
        self.functions = {role: function for role, function in re.findall(r"\.(\w+) = ([\w:]+)", inside) if role in CALLED}
        path = "::".join(["convladder", *(["BACKEND"] if self.cuda else []), *rung["rung"].split("/")[:2]])

        def qualified(function):
            """The name in the innermost of the rung's namespaces that has it."""
            scopes = {one.scope() for one in self.found if function in one.names and path.startswith(one.scope())} or {path}
            return max(scopes, key=len).replace("BACKEND", "gpu").replace("convladder::", "", 1) + "::" + function

        self.call = {role: qualified(function) for role, function in self.functions.items()}
        self.structs = {name: one.code for one in self.found if one.kind == "type" and one.defines for name in one.names}
        self.all_members = set(re.findall(r"\b(\w+)(?= =|;)", self.structs[self.arrays]))
        top = re.sub(r"///[ \t]*@expect(?:[^\n]|\n///  )*\n", "", tops[rung["source"]])  # which are for a program of ConvLadder
        self.top = {rung["source"]: re.sub(r"(///[ \t]*\n)?(/// - [A-Z][^\n]*: [^\n]*\n(///   [^\n]*\n)*)+", "", top)}  # other files
        self.listed, self.flat, self.typed, self.trimmed = False, False, False, True
        self.of_run = True
        self.start()

    def start(self):
        """All that the rung may reach."""
        self.members, self.fields = self.all_members, None
        self.prune(self.found)

    def prune(self, found):
        """Keeps of these what the rung's functions and main() reach."""
        begin = [one for one in found if one.file == self.rung["source"] and one.names & set(self.functions.values()) and one.kind == "function"]
        here = {name for one in begin for name in one.names}
        for _ in range(3):
            self.helpers, self.main = example.main_of(self.numbers, self.arrays, self.members, self.structs, self.call["run"], self.call.get("workspace_bytes"),
                                                      self.call.get("finish"), self.cuda, self.fields, self.listed)
            program = re.sub(r"\bgpu(::\w+)+::\w+\(", "(", self.helpers + self.main) + " check " * self.cuda + " ".join(set(self.functions.values()) - here)
            self.kept = declarations.reached(found, program, begin, {"convladder", "convladder::BACKEND"})
            # Of the inputs, those that the rung reads; of the problem, what is mentioned.
            code = "\n".join(declarations.hidden(text) for one, text in self.kept if self.arrays not in one.names)
            members = {member for member in self.members if re.search(rf"\.{member}\b", code)}
            mentioned = "\n".join(declarations.hidden(text) for one, text in self.kept if not min(one.names, default="").endswith("Problem"))
            fields = set(declarations.ACCESSED.findall(mentioned + self.helpers + re.sub(r" problem = \{.*?\};", "", self.main, flags=re.S)))
            for one, text in self.kept:  # a problem's own functions say only a member's name
                if min(one.names, default="").endswith("Problem") and one.kind == "type":
                    one = declarations.changed(one, text)
                    fields |= {name for begin, end, _ in specialise.functions_of(one) if re.search(r"\)\s*(const\s*)?\{", one.code[begin:end])
                               for name in declarations.ANY_IDENTIFIER.findall(one.code[begin:end])}
            if (members, fields) == (self.members, self.fields):
                break
            self.members, self.fields = members, fields

    def text(self):
        """The whole program, without the comment at its top, and the line on which each declaration begins."""
        kept, using = [], set()
        renamed = declarations.renamed_apart(self.kept, self.rung["source"], self.sources)
        present = {name for one, _ in renamed for name in one.names | {name for member in one.members for name in member[2]}}
        absent = {name for one in self.found for name in one.names} - present - set(declarations.ANY_IDENTIFIER.findall(declarations.hidden(self.helpers + self.main)))
        has_halves = bool(present & set(FORMATS) - {"float"})
        for one, text in renamed:
            if FROM_EMULATOR.fullmatch(declarations.hidden(text).strip()):
                if (one.file, one.guards) in using:
                    kept.append((one, None))
                    continue
                using.add((one.file, one.guards))
                text = "using namespace ::cuda_on_cpu::ptx;"
            if self.trimmed:
                text = re.sub(r"(?m)^[ \t]*/// @(?:end)?cond\n", "", text)  # for documentation
            text = re.sub(r"(?m)^thread_local ", "", text)  # cuda_on_cpu takes such variables for shared memory
            kept.append((one, None if one.names == {"HOST_DEVICE"} else without_absent(text, absent, has_halves) if self.trimmed else text))
        order = sorted(range(len(kept)), key=lambda index: declarations.place(kept[index][0]))
        example = "\n\n// ===== The example " + "=" * 78 + "\nusing namespace convladder;\n\n" + self.helpers + self.main
        if self.flat and not self.clashes(kept):
            own = "" if any(one.kind == "type" and re.search(rf"\b{self.rung['ladder']}::", one.code) for one, _ in kept) else self.rung["ladder"]
            kept = [(flattened(one, own), text and unqualified(text, own)) for one, text in kept]
            kept = [(one, None if text and not text.strip() else text) for one, text in kept]
            example = unqualified(example, own)
        if self.typed:
            kept = self.with_types(kept)
            kept, example = self.without_context(kept, example)
        text = declarations.written([kept[index] for index in order if kept[index][1] is not None], self.top)

        def final(text):
            text = text.replace("BACKEND", "gpu").replace("HOST_DEVICE", "__host__ __device__") if self.cuda else text.replace("HOST_DEVICE ", "").replace("cudaStream_t stream", "void* stream")
            return text

        text = final(text) + example
        found = list(self.found)
        for header in ("algorithm", "cmath", "cstddef", "cstdio", "exception", "new", "string", "vector", *(["cuda_runtime.h"] if self.cuda else [])):
            found.append(declarations.Declaration(f"#include <{header}>", "", "", (), (), frozenset(), "include", False))
        text = includes_of(found, declarations.hidden(text)) + "\n\n" + text.lstrip("\n")
        starts, at = {}, 0
        for index in order:
            if kept[index][1] is None:
                starts[index] = 0
                continue
            piece = final(kept[index][1])
            at = text.index(piece, at)
            starts[index] = text.count("\n", 0, at) + 1
            at += len(piece)
        return text, starts

    def with_types(self, kept):
        """With pointers of the example's types in the place of Input and Output, which have any."""
        types = {one["name"]: one["type"] for one in self.numbers["inputs"] + self.numbers["outputs"]}
        if any(text and self.arrays not in one.names and not one.names & {"Elements", "Input", "Output"}
               and re.search(r"\b(Elements|Input|Output)\b", declarations.hidden(text)) for one, text in kept):
            return kept  # another rung's arrays have them, too

        def typed(match):
            const = "const " if match.group(1) == "Input" else ""
            return f"{const}{types.get(match.group(2), 'float')}* {match.group(2)} = nullptr;"

        result = []
        for one, text in kept:
            if text is not None and one.kind == "type" and one.names & {"Elements", "Input", "Output"}:
                text = None
            elif text is not None and self.arrays not in one.names:
                text = re.sub(r"\b(arrays\.\w+)\.as<[^<>;]*(?:<[^<>]*>)?>\(\)", r"\1", text)
            elif text is not None and one.defines:
                text = re.sub(r"\b(Input|Output) (\w+) = \{\};", typed, text)
                if not any(re.search(r"\bProblem\b", declarations.hidden(other)) for another, other in kept if other is not None and another is not one):
                    text = re.sub(r"\n *using Problem = [^\n]*", "", text)
                text = with_comments_aligned(text)
            result.append((one, text))
        return result

    def clashes(self, kept):
        """Whether two namespaces have types or variables of one name."""
        where = {}
        for one, text in kept:
            if text and one.kind in ("type", "other") and one.defines and not one.owner and is_known(one) and not one.parameters:
                for name in one.names:
                    where.setdefault(name, set()).add(flattened(one, self.rung["ladder"]).namespaces + (one.scope(),))
        return any(len({each[:-1] for each in places}) < len(places) for places in where.values())

    def without_context(self, kept, example):
        """Without the parameter for what a run computes with, where its function has no name for it."""
        begin = [index for index, (one, text) in enumerate(kept) if one.file == self.rung["source"] and text and one.names & set(self.functions.values())]
        others = [text for index, (one, text) in enumerate(kept) if text and index not in begin and "Context" not in one.names]
        if any(re.search(r"\bContext\b", declarations.hidden(text)) for text in others) or not all(
                re.search(r",\s*const Context&\)", kept[index][1]) or "Context" not in declarations.hidden(kept[index][1]) for index in begin):
            return kept, example
        result = [(one, re.sub(r",\s*const Context&\)", ")", text) if index in begin else None if "Context" in one.names else text) for index, (one, text) in enumerate(kept)]
        return result, example.replace("(problem, arrays, {});", "(problem, arrays);")

    def kept_kernels(self, kept):
        return [(one, text) for one, text in kept if one.file == self.rung["source"] and one.kind == "function" and "__global__" in one.code]

    def needs_hopper(self):
        return any(one.hopper for one, _ in self.kept)


def specialised(program, tools):
    """Leaves out of the program what its problem does not need. False: it has all that run() may reach."""
    try:
        return is_specialised(program, tools)
    except (ValueError, IndexError, KeyError) as error:  # of code that specialise.py cannot read
        if os.environ.get("CONVLADDER_EXTRACT_VERBOSE"):
            print(f"{program.rung['rung']}: {error!r}", file=sys.stderr)
        program.flat = program.typed = False
        program.start()
        return False


def is_specialised(program, tools):
    names = {name for one, _ in program.kept for name in one.names}
    names |= {name for one, _ in program.kept for member in one.members for name in member[2]}
    program.kept = [(declarations.changed(one, specialise.with_breaks(text)), specialise.with_breaks(text)) for one, text in program.kept]
    program.trimmed = False  # lines of texts are counted
    text, starts = program.text()
    program.trimmed = True
    try:
        coverage = tools.coverage(text)
    except specialise.Failed as failed:
        if os.environ.get("CONVLADDER_EXTRACT_VERBOSE"):
            print(failed, file=sys.stderr)
        program.start()
        return False
    coverage.has_one_map = any(re.search(r"enum class TileMap \{ row_major \};", text) for _, text in program.kept)
    before, keep, uncut = list(program.kept), set(), set()
    program.flat = program.typed = True
    for attempt in range(10):
        program.members, program.fields = program.all_members, None
        kept = specialise.round_of(before, starts, coverage, keep, uncut, attempt < 8 and program.of_run)
        kept = specialise.without_identities([(one, specialise.without_breaks(text)) for one, text in kept])
        if coverage.has_one_map:
            kept = [(one, specialise.without_other_maps(text)) for one, text in kept]
        kept = specialise.without_idle_members(kept)
        kept = [declarations.changed(one, text) for one, text in kept]
        program.prune(kept)
        if lost := {name for one, _ in program.kept_kernels(before) for name in one.names} - {name for one, _ in program.kept_kernels(program.kept) for name in one.names}:
            # The rung's own kernels stay, and so do the functions that reach them.
            for _ in range(8):
                uncut |= {specialise.key(one) for one, text in before if lost & set(declarations.words(one.code))}
                lost |= {name for one, text in before if specialise.key(one) in uncut and one.file == program.rung["source"] for name in one.names} - {"run"}
            continue
        text, new_starts = program.text()
        try:
            tools.coverage(text)
            return True
        except specialise.Failed as failed:
            if os.environ.get("CONVLADDER_EXTRACT_VERBOSE"):
                print(f"{program.rung['rung']} attempt {attempt}: {str(failed)[:1500]}", file=sys.stderr)
            missed = set(re.findall(r"[\u2018'](?:[^\u2019'(]*::)?(\w+)[^\u2019']*[\u2019']", str(failed))) & names - keep
            lines = {int(line) for line in re.findall(r"program\.inc:(\d+):\d+: error", str(failed))}
            wrong = {specialise.key(program.kept[index][0]) for index in new_starts
                     if any(new_starts[index] <= line <= new_starts[index] + program.kept[index][1].count("\n") for line in lines)} - uncut
            if not missed and not wrong and attempt < 7:
                uncut |= {"all"} if "all" not in uncut else set()
            if program.typed and re.search(r"\* to non-class type|Input|Output|Elements|cannot convert|invalid conversion|has no member named .as.|request for member", str(failed)):
                program.typed = False
                continue
            if attempt == 3 or not missed and not wrong:
                program.flat = program.typed = False
            keep |= missed
            uncut |= wrong
    program.flat = program.typed = False
    program.start()
    return False


def extracted(build, needs, rung, file, options=()):
    """The text of the file."""
    cuda = rung["backend"] == "cuda"
    if file.suffix != (".cu" if cuda else ".cpp"):
        raise Trouble(f"file = {file}: {rung['rung']} needs a file that ends in {'.cu' if cuda else '.cpp'}")
    for option, value in zip(options, [*options[1:], ""]) if rung["ladder"] == "gemm" else ():
        if found := re.fullmatch(r"--(batch|transpose)(?:=(.*))?", option):  # not in a rung, see ladders/gemm_batch.hpp
            raise Trouble(f"{found[1]} = {found[2] or value}: a file has one product of row-major matrices, as {rung['rung']} computes it")
    numbers = example_of(build, rung, options)
    is_row_major = rung["ladder"] != "tile_map" and not re.search(r"TileMap::(?!row_major)", numbers["problem"])
    program = Program(needs, rung, numbers, is_row_major)
    others = sorted(set(re.findall(r"TileMap::(?!row_major)(\w+)", "\n".join(text for _, text in program.kept)))) if is_row_major else []
    tools = specialise.Toolchain(build, cuda)
    if others and tools.is_found():
        program = Program(needs, rung, numbers, True, others)
    elif others:
        program = Program(needs, rung, numbers, False)
    hopper, shorter = program.needs_hopper(), tools.is_found() and specialised(program, tools)
    if others and tools.is_found() and not shorter:
        program = Program(needs, rung, numbers, False)
        shorter = specialised(program, tools)
    if shorter and hopper and not program.needs_hopper():  # the problem is too small for what the rung is about
        program.of_run, program.flat, program.typed = False, False, False
        program.start()
        shorter = specialised(program, tools)
    if tools.is_found() and not shorter:
        program.listed = True  # perhaps a plain loop is not what it computes
        program.start()
        shorter = specialised(program, tools)
    text, _ = program.text()
    compiler = f"nvcc -std=c++20 {'-gencode arch=compute_90a,code=sm_90a' if program.needs_hopper() else '-arch=native'}" if cuda else "g++ -std=c++20 -O2"
    if "#include <Eigen/" in text:
        compiler += " -I/usr/include/eigen3"
    about = ABOUT.format(rung=rung["rung"], without=SHORT if shorter and program.of_run else LONG,
                         compile=f"{compiler} {file.name} -o {file.stem} && ./{file.stem}",
                         emulated=EMULATED if cuda else "")
    return about + text


def require_new(file):
    """@throws Trouble if there is such a file: somebody may have changed it."""
    if file.exists():
        raise Trouble(f"file = {file}: must not exist yet; remove it, or give another name")


def main():
    parser = argparse.ArgumentParser(usage="./ladder extract RUNG FILE [PROBLEM OPTION...]", allow_abbrev=False)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("rung")
    parser.add_argument("file", type=pathlib.Path)
    arguments, options = parser.parse_known_args()
    try:
        require_new(arguments.file)
        rung = rung_named(table_of(arguments.build), arguments.rung)
        text = extracted(arguments.build, sources_by_need(arguments.build), rung, arguments.file, options)
        arguments.file.write_text(text)
        print(f"{arguments.file}: {rung['rung']} in {text.count(chr(10))} lines; its first lines say how to compile it")
    except (Trouble, OSError) as error:
        print(f"ladder: {error}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
