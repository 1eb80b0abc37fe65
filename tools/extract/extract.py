#!/usr/bin/env python3
"""Writes a rung into one file: with all that it needs, and a main() that runs it and checks what it computes.

    extract.py BUILD RUNG FILE [PROBLEM OPTION...]      (./ladder extract RUNG FILE [PROBLEM OPTION...])

RUNG is a rung's name, cuda_optimized/gemm/tiled, or its end, gemm/tiled, where one rung is called so. The problem's
options are those of `./ladder compare`; without any, the first of a few small problems that the rung takes. Which
files the rung needs beside its headers, the objects in BUILD tell: whoever defines what an object leaves undefined.
Of their declarations it takes those that run() reaches (declarations.py), a few of them in a shorter form (short.hpp).
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
sys.path.insert(0, str(ROOT / "tools/extract"))
import declarations  # noqa: E402
import example  # noqa: E402

INCLUDE = re.compile(r'^\s*#include "([^"]+)"')
ONLY_SM_90A = "CONVLADDER_SM90A"  # what guards the instructions of sm_90a

# Small problems for the ladders: a rung gets the first that it takes; of others, the ladder's example.
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
// Written by `./ladder extract`: {source} is below, after what it needs.
// main() runs it on one problem and checks every number. Left out is what only ConvLadder's
// programs call, such as supports(), which says what problems run() takes.{emulated}
"""
EMULATED = " Without a GPU, cuda_on_cpu_add_kernels() of\n// ConvLadder's folder cuda_on_cpu compiles it."

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
# Of the members of an Implementation, what a program calls that has one problem, which the rung takes.
CALLED = ("run", "workspace_bytes", "finish")


class Trouble(Exception):
    pass


def rung_named(rungs, name):
    found = [rung for rung in rungs if rung["rung"] == name or rung["rung"].endswith("/" + name)]
    if not found:
        found = [rung for rung in rungs for old in rung["was"] if old == name or old.endswith("/" + name)]
        if len(found) == 1:
            print(f"rung = {name}: it is called {found[0]['rung']} now", file=sys.stderr)
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
    """The source, and all that it needs, directly or through others."""
    if source not in needs:
        raise Trouble(f"rung = {source}: is not built")
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


def program_of(needs, rung, numbers, row_major):
    """What the rung reaches, (declaration, text), the comment at its top, and the example's functions and main()."""
    cuda = rung["backend"] == "cuda"
    sources = list(reversed(needed_sources(needs, rung["source"])))
    found, tops = all_declarations(sources)
    number = next((one["type"] for one in numbers["inputs"] if one["type"] != "std::int32_t"), "float")
    found = declarations.replaced(found, shorter(number, row_major))
    found = [one for one in found if not one.names & {"BACKEND"}]
    text = (ROOT / rung["source"]).read_text()
    name = rung["rung"].split("/", 2)[2].replace("/", "_")
    arrays, inside = re.search(rf"Implementation<(\w+)>\s+{name}\s*=\s*\{{(.*?)\}};", text, re.S).groups()
    functions = {role: function for role, function in re.findall(r"\.(\w+) = ([\w:]+)", inside) if role in CALLED}
    begin = [one for one in found if one.file == rung["source"] and one.names & set(functions.values()) and one.kind == "function"]
    here = {name for one in begin for name in one.names}
    path = "::".join(["convladder", *(["BACKEND"] if cuda else []), *rung["rung"].split("/")[:2]])

    def qualified(function):
        """The name in the innermost of the rung's namespaces that has it."""
        scopes = {one.scope() for one in found if function in one.names and path.startswith(one.scope())} or {path}
        return max(scopes, key=len).replace("BACKEND", "gpu").replace("convladder::", "", 1) + "::" + function

    call = {role: qualified(function) for role, function in functions.items()}
    structs = {name: one.code for one in found if one.kind == "type" and one.defines for name in one.names}
    members = set(re.findall(r"\b(\w+)(?= =|;)", structs[arrays]))

    def whole(members):
        helpers, main = example.main_of(numbers, arrays, members, structs, call["run"], call.get("workspace_bytes"), call.get("finish"), cuda)
        program = re.sub(r"\bgpu(::\w+)+::\w+\(", "(", helpers + main) + " check " * cuda + " ".join(set(functions.values()) - here)
        return declarations.reached(found, program, begin, {"convladder", "convladder::BACKEND"}), helpers, main

    kept, helpers, main = whole(members)
    # Of the inputs, those that the rung reads.
    code = "\n".join(one.code for one, _ in kept if arrays not in one.names)
    read = {member for member in members if re.search(rf"\.{member}\b", code)}
    if read < members:
        kept, helpers, main = whole(read)
    top = re.sub(r"///[ \t]*@expect(?:[^\n]|\n///  )*\n", "", tops[rung["source"]])  # which are for a program of ConvLadder
    top = re.sub(r"(///[ \t]*\n)?(/// - [A-Z][^\n]*: [^\n]*\n(///   [^\n]*\n)*)+", "", top)  # other files
    return declarations.renamed_apart(kept, rung["source"], sources), found, {rung["source"]: top}, helpers, main


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
    kept, found, top, helpers, main = program_of(needs, rung, numbers, is_row_major)
    if is_row_major and re.search(r"TileMap::(?!row_major)\w", "\n".join(text for _, text in kept)):  # it tells others apart
        kept, found, top, helpers, main = program_of(needs, rung, numbers, False)
    is_sm_90a = rung["needs"] == "sm_90a" or any(ONLY_SM_90A in one.code for one, _ in kept)
    architecture = "sm_90a" if is_sm_90a else "native"
    text = declarations.written(kept, top)
    text = text.replace("BACKEND", "gpu") if cuda else text.replace("HOST_DEVICE ", "").replace("cudaStream_t stream", "void* stream")
    # The program has one thread, and cuda_on_cpu takes thread-local variables of a kernel file for shared memory.
    text = text.replace("\nthread_local ", "\n")
    text += ("\n\n// ===== The example " + "=" * 78 + "\n\nusing namespace convladder;\n\n" + helpers + main)
    for header in ("algorithm", "cmath", "cstddef", "cstdio", "exception", "new", "string", "vector"):
        found.append(declarations.Declaration(f"#include <{header}>", "", "", (), (), frozenset(), "include", False))
    if cuda:
        found.append(declarations.Declaration("#include <cuda_runtime.h>", "", "", (), (), frozenset(), "include", False))
    compiler = f"nvcc -std=c++20 -arch={architecture}" if cuda else "g++ -std=c++20 -O2"
    includes = includes_of(found, declarations.hidden(text))
    if "#include <Eigen/" in includes:
        compiler += " -I/usr/include/eigen3"
    about = ABOUT.format(rung=rung["rung"], source=rung["source"],
                         compile=f"{compiler} {file.name} -o {file.stem} && ./{file.stem}",
                         emulated=EMULATED.format(file=file.name) if cuda else "")
    return about + includes + "\n\n" + text.lstrip("\n")


def require_new(file):
    """@throws Trouble if there is such a file: somebody may have changed it."""
    if file.exists():
        raise Trouble(f"file = {file}: must not exist yet; remove it, or give another name")


def main():
    parser = argparse.ArgumentParser(usage="./ladder extract RUNG FILE [PROBLEM OPTION...]")
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
