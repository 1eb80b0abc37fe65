"""What a student's file must not contain, whatever it computes.

The sandbox limits what a process can do; this module limits what a kernel's file may contain: C++ and CUDA without
access to the compiler, the linker, the emulator's internals or the microscope's counters, and kernels that nvcc would
accept.
"""
import re

from functions import LITERAL_OR_COMMENT


class Refused(Exception):
    """The file is not graded: its content, and the reason."""


class IllegalCuda(Exception):
    """A kernel does what no kernel can.

    `unseen`: it does so in code that is not the student's, whose loads and stores the microscope does not see.
    """

    def __init__(self, message, unseen=False):
        super().__init__(message)
        self.unseen = unseen


# --- The text

STANDARD_HEADERS = set("""algorithm array bit cassert cctype cerrno cfloat cfenv charconv cinttypes climits cmath compare
    complex concepts cstddef cstdint cstdio cstdlib cstring deque exception functional initializer_list iomanip ios
    iostream istream iterator limits list map memory new numbers numeric optional ostream queue random ranges set span
    sstream stack stdexcept string string_view tuple type_traits typeinfo unordered_map unordered_set utility variant
    vector assert.h float.h limits.h math.h stddef.h stdint.h stdio.h stdlib.h string.h
    cooperative_groups.h cuda.h cuda_fp16.h cuda_bf16.h cuda_pipeline.h cuda_runtime.h cuda_runtime_api.h""".split())
OUR_FOLDERS = ("core", "cpu_reference", "cuda_naive", "cuda_optimized", "student")
DIRECTIVES = {"", "include", "define", "undef", "if", "ifdef", "ifndef", "elif", "else", "endif", "pragma", "error"}
PRAGMAS = re.compile(r"(unroll\b.*|once|nv_diag\w*.*|diag_\w+.*)$")
GNU_ATTRIBUTES = re.compile(r"\s*(always_inline|__always_inline__|aligned\s*\([^()]*(\([^()]*\))?[^()]*\))\s*$")  # our macros' own
FORBIDDEN = {name: "no assembler, no words to the linker" for name in ("asm", "__asm", "__asm__", "_Pragma")} | {
    name: "it asks what is being looked at" for name in (
        "__has_include", "__has_embed", "__has_include_next", "CUDA_ON_CPU_INSPECT", "__SANITIZE_THREAD__",
        "__SANITIZE_ADDRESS__", "__OPTIMIZE__", "__NO_INLINE__", "__TIME__", "__DATE__", "__TIMESTAMP__",
        "__INCLUDE_LEVEL__", "__BASE_FILE__", "__COUNTER__")} | {
    "max_strided_blocks": "the case says how many blocks there may be", "__declspec": "not C++"}
FORBIDDEN_NAMES = re.compile(r"__tsan\w*|__sanitizer\w*|__wrap_\w*|__real_\w*|cuda_on_cpu_(?:marker|atomic|probe)\w*|__builtin_apply\w*")
# What the macro __shared__ becomes (cuda_on_cpu/static_shared.hpp), literals taken out.
SHARED = re.compile(r"\s*".join((
    r"\{", "static", "constinit", "thread_local", "::cuda_on_cpu::detail::SharedProbe", "cuda_on_cpu_probe", "=", r"\{\};",
    r"::cuda_on_cpu::detail::static_shared_declaration_passed\(cuda_on_cpu_probe,", '"",', r"\d+\);", r"\}")))
OTHERS_NAMESPACES = re.compile(r"\bnamespace\s+(?:\w+\s*::\s*)*(std|cuda_on_cpu|check|grader|oracle|__gnu_cxx|__cxxabiv1)\b\s*(?:::|\{)")


def without_literals(text):
    return LITERAL_OR_COMMENT.sub(lambda found: " " if found.group().startswith("/") else '""', text)


def check_names(code, where=""):
    for name in re.findall(r"\w+", code):
        if name in FORBIDDEN or FORBIDDEN_NAMES.fullmatch(name):
            raise Refused(f"{where}{name}: {FORBIDDEN.get(name, 'it is the instrumentation' + chr(39) + 's own')}")


def check_source_text(files):
    """Directives and includes, as they are written. `files` {path: bytes} are the student's."""
    for path, content in files.items():
        text = content.decode(errors="replace").replace("\\\r\n", "").replace("\\\n", "")
        if re.search(r"%:|\?\?=", text):
            raise Refused(f"{path}: %: and ??=: write #")
        code = without_literals(text)
        check_names(code, f"{path}: ")
        # An include's name is a literal: directives are looked for beside it.
        for line in re.sub(r"/\*.*?\*/", lambda found: re.sub(r"[^\n]", " ", found.group()), text, flags=re.DOTALL).split("\n"):
            directive = re.match(r"\s*#\s*(\w*)(.*)$", line)
            if directive:
                check_directive(path, directive.group(1), directive.group(2).split("//")[0].strip(), files)


def check_directive(path, word, rest, files):
    if word not in DIRECTIVES:
        raise Refused(f"{path}: #{word}: is no directive of a kernel's file")
    if word == "pragma" and not PRAGMAS.match(rest):
        raise Refused(f"{path}: #pragma {rest}: only #pragma unroll")
    if word == "define" and "__global__" in rest:
        raise Refused(f"{path}: __global__ in a macro: a kernel must be found by its name")
    if word != "include":
        return
    system = re.fullmatch(r"<([\w./]+)>", rest)
    own = re.fullmatch(r'"([\w./]+)"', rest)
    if system and system.group(1) in STANDARD_HEADERS:
        return
    if own and (own.group(1) in STANDARD_HEADERS or own.group(1) in files or (
            own.group(1).split("/")[0] in OUR_FOLDERS and ".." not in own.group(1).split("/"))):
        return
    raise Refused(f"{path}: #include {rest}: only headers of C++, of CUDA, and of the rungs")


def own_lines(preprocessed, files):
    """The preprocessed lines that come from the student's files."""
    own, lines = False, []
    for line in preprocessed.split("\n"):
        marker = re.match(r'# \d+ "([^"]*)"', line)
        if marker:
            own = marker.group(1).removeprefix("./") in files
        elif own:
            lines.append(line)
    return "\n".join(lines)


def check_tokens(preprocessed, files):
    """What macros have become, too: nothing can be pasted together."""
    code = SHARED.sub(" ", without_literals(own_lines(preprocessed, files)))
    for pragma in re.findall(r"^\s*#\s*pragma\s+(.*)$", code, re.MULTILINE):
        if not PRAGMAS.match(pragma.strip()) and not pragma.startswith("GCC pch"):
            raise Refused(f"#pragma {pragma.strip()}: only #pragma unroll")
    check_names(code)
    for attribute in re.findall(r"\[\s*\[\s*(using\b[^\]]*|\w+\s*::[^\]]*)\]\s*\]", code):
        raise Refused(f"[[{attribute.strip()}]]: no attributes but those of CUDA and of the standard")
    for found in re.finditer(r"__attribute(?:__)?\s*\(\s*\(", code):
        inside = code[found.end():closing(code, found.end() - 1)]
        if not GNU_ATTRIBUTES.match(inside):
            raise Refused(f"__attribute__(({inside.strip()})): no attributes but those of CUDA and of the standard")
    space = OTHERS_NAMESPACES.search(code)
    if space:
        raise Refused(f"namespace {space.group(1)}: a file writes in its own")


def closing(code, begin):
    depth = 0
    for place in range(begin, len(code)):
        depth += (code[place] == "(") - (code[place] == ")")
        if depth == 0:
            return place
    return len(code)


# --- The object's symbols

RUNTIME = re.compile(r"""
    _GLOBAL_OFFSET_TABLE_|_Unwind_Resume|__gxx_personality_v0|__dso_handle|__tls_get_addr|__stack_chk_fail|
    __cxa_(?!atexit_)\w+|__cxxabiv1::.*|(?:vtable|typeinfo|typeinfo\ name|VTT)\ for\ (?:std|__cxxabiv1|__gnu_cxx)::.*|
    operator\ (?:new|delete)(?:\[\])?\(.*|
    mem(?:cpy|move|set|cmp|chr)|str(?:len|cmp|ncmp|cpy|ncpy|cat|chr|rchr|str|tol|toll|toul|toull|tod|tof)|
    (?:v?(?:s|sn|f)?printf|puts|putchar|fputs|fputc|putc|fwrite|fflush|stdout|stderr|perror)|
    (?:__)?pthread_(?:mutex_\w+|key_create|once)|abort|exit|_exit|_Exit|quick_exit|atexit|__assert_fail|malloc|calloc|realloc|free|aligned_alloc|abs|labs|rand|srand|qsort|time|clock|
    (?:l|ll)?(?:round|rint)f?l?|f(?:abs|min|max|ma|mod|dim|loor)f?|(?:sqrt|cbrt|exp2?|expm1|log|log2|log10|log1p|pow|sin|cos|tan|
    asin|acos|atan|atan2|sinh|cosh|tanh|ceil|trunc|round|rint|nearbyint|hypot|erf|erfc|ldexp|frexp|scalbn|copysign|remainder|
    nextafter|ilogb|logb|modf|sincos)f?|__(?:isnan|isinf|finite|signbit)f?|
    __emutls\w*|__udivti3|__divti3|__umodti3|__modti3""", re.VERBOSE)
STANDARD = re.compile(r"(?:[\w:<>,*&\s]+\s)?(?:std|__gnu_cxx)::")
NOT_OF_STANDARD = re.compile(r"\b(__basic_file|basic_filebuf|basic_[io]?fstream|stdio_\w*filebuf|filesystem|thread|jthread|random_device|"
                             r"condition_variable|__condvar|this_thread|promise|__future_base|locale::global|"
                             r"set_terminate|set_new_handler|pmr)\b")
INSIDE_CUDA = re.compile(r"cuda_on_cpu::(?!(?:detail::|ptx::|ptx::detail_of_ptx::|cooperative_groups::)?\w+(?:\[abi:\w+\])?(?:[(<]|$))")
CONTROL = re.compile(r"cuda_on_cpu::(control|inspect|microscope)::")
LAST_REPORT = re.compile(r"cuda_on_cpu::control::last_report")
# By these, bytes come to the host, or are stored by it.
COPIES = re.compile(r"cuda_on_cpu::(cudaMemcpy\w*|cudaMallocHost|cudaHostAlloc|cudaMallocManaged|cudaHostRegister|cudaHostGetDevicePointer|"
                    r"detail::copy_(?:to|from)_symbol)\b")
INSIDE_OURS = re.compile(r"\b(device_at|cuda_device|CpuDevice|CudaDevice|convladder::(?:oracle|grader)::|convladder::check::"
                         r"(?!(?:add_blank|stop_at_blank|blank_is_known)\b))")
OTHER_RUNGS = re.compile(r"convladder::(?:emulated::)?(?:cpu_reference|cuda_naive|cuda_optimized|student)::")
WEAK_OF_HEADERS = re.compile(r"_ZN?[VKRO]*(10convladder|11cuda_on_cpu|St|9__gnu_cxx|S[absiod])|_ZT[VISTCHWA]|_ZGV|_ZZ|"
                             r"DW\.ref\.|_Z(?:nwmPv|naPv|dlPvS_|daPvS_)$|_Z(pl|mi|ml|dv|eq|ne|ls|rs|or|an|aa|co)")
HOOKS = re.compile(r"__tsan_\w+|__sanitizer_cov_trace_pc|cuda_on_cpu_atomic_(begins|ended)")


def own_prefix(source):
    """How the mangled names of a rung's own namespace begin."""
    top, ladder = source.split("/")[:2]
    parts = ["convladder", *(["emulated"] if source.endswith(".cu") else []), top, ladder]
    return "".join(f"{len(part)}{part}" for part in parts)


def wanted_by(symbols):
    """The demangled names that an object asks for."""
    return {name for kind, _, name in symbols if kind == "U"}


def check_symbols(symbols, source, needed):
    """What the object defines, and what it asks others for. `needed` is what the project's own rungs ask for."""
    prefix = own_prefix(source)
    for kind, mangled, name in symbols:
        if kind in "UwV" and kind != "V":
            check_wanted(mangled, name, needed)
        elif kind in "WVu":
            if not WEAK_OF_HEADERS.match(mangled):
                raise Refused(f"{name}: a file defines names of its own namespace only")
        elif kind.isupper() and f"N{prefix}" not in mangled and f"NK{prefix}" not in mangled and not mangled.startswith("DW.ref."):
            raise Refused(f"{name}: a file defines names of its own namespace only")


def check_wanted(mangled, name, needed):
    if name in needed or HOOKS.fullmatch(mangled) or RUNTIME.fullmatch(name):
        return
    plain = name.removeprefix("guard variable for ").removeprefix("typeinfo for ").removeprefix("vtable for ")
    if plain.startswith("cuda_on_cpu::") or " cuda_on_cpu::" in plain.split("(")[0]:
        copy = COPIES.search(plain)
        if copy:
            raise Refused(f"{copy.group(1)}: this assignment's arrays stay on the device")
        if not LAST_REPORT.search(plain) and (CONTROL.search(plain) or INSIDE_CUDA.match(plain)):
            raise Refused(f"{plain.split('(')[0]}: not for rungs")
        return
    if plain.startswith("convladder::"):
        if INSIDE_OURS.search(plain) or OTHER_RUNGS.match(plain):
            raise Refused(f"{plain.split('(')[0]}: not for rungs")
        return
    if STANDARD.match(plain) and not NOT_OF_STANDARD.search(plain):
        return
    raise Refused(f"{plain.split('(')[0]}: a rung computes, and asks nothing of the system")


# --- Kernels by their calls

CALL = re.compile(r"\s+[0-9a-f]+:\s+(?:call|jmp|bl|b)\S*\s+[0-9a-f]+ <([^>+]+)>")
RELOCATION = re.compile(r"\s+[0-9a-f]+: (R_\S+)\s+(\S+?)(?:[-+]0x[0-9a-f]+)?$")
OF_THREAD_LOCAL = re.compile(r"TLS|TPOFF")  # kinds of relocations: of a __shared__ variable, which is data
FUNCTION = re.compile(r"[0-9a-f]+ <(\S+)>:$")
STANDARD_ON_DEVICE = re.compile(
    r"\bstd::(?:(?:__\w+::)?(?:min|max|clamp|swap|move|forward|exchange|abs|get|tie|make_pair|make_tuple|addressof|__addressof|bit_cast|"
    r"is_constant_evaluated|__is_constant_evaluated|declval|isnan|isinf|signbit|sqrt|fma|fabs|countr_zero|countl_zero|popcount|"
    r"__countr_zero|__countl_zero|__popcount|has_single_bit|bit_width|bit_ceil|size|begin|end|data|copysign|floor|ceil|"
    r"as_const|ref|cref|midpoint|gcd|lcm|__detail::\w+)\b|"
    r"(?:array|__array_traits|pair|tuple|_Tuple_impl|_Head_base|numeric_limits|optional|_Optional\w*|span|__detail::\w*|integral_constant|"
    r"integer_sequence|tuple_element|source_location|initializer_list|type_identity|__pair_base|atomic_ref|__atomic_\w+)\b)|"
    r"\bstd::operator\s*(?:==|<=>|&|\|)")
HOST_LEAVES = re.compile(r"cuda_on_cpu::(?:detail::)?(cuda\w+|launch\b|launch_with|set_function_attribute|get_function_attributes|copy_\w+)|"
                         r"cuda_on_cpu::control::")
OF_CUDA = re.compile(r"(?:[\w:<>,*&\s]+\s)?cuda_on_cpu::")
DEVICE_LEAVES = re.compile(r"""
    __tsan_\w+|__sanitizer_cov_trace_pc|cuda_on_cpu_\w+|mem(?:cpy|move|set|cmp)|__wrap_mem\w+|__stack_chk_fail|__tls_get_addr|
    _GLOBAL_OFFSET_TABLE_|__emutls\w*|_Unwind_Resume|__gxx_personality_v0|DW\.ref\..*|__assert_fail|
    (?:l|ll)?(?:round|rint)f?|f(?:abs|min|max|ma|mod|dim)f?|(?:sqrt|cbrt|exp|exp2|exp10|expm1|log|log2|log10|log1p|pow|sin|cos|tan|
    asin|acos|atan|atan2|sinh|cosh|tanh|floor|ceil|trunc|round|rint|nearbyint|hypot|erf|erfc|ldexp|frexp|scalbn|copysign|remainder|
    modf|sincos|nextafter|ilogb|logb)f?|abs|labs|llabs|__\w*(?:div|mod)ti3""", re.VERBOSE)
NO_LOADS = re.compile(r"""(?:operator\ (?:new|delete)(?:\[\])?\(.*|__cxa_\w+|std::__throw_\w+\(.*|malloc|free|abort|exit|(?:f?printf|puts|putchar))""",
                      re.VERBOSE)  # outside of the student's object, and no way to read an array
FRIENDLY = {"operator new": "new", "operator new[]": "new[]", "operator delete": "delete", "operator delete[]": "delete[]",
            "__cxa_throw": "throw", "__cxa_allocate_exception": "throw", "__cxa_guard_acquire": "a static variable",
            "puts": "printf", "putchar": "printf", "__printf_chk": "printf"}


def calls_of(listing):
    """{function: [those that it names]}, mangled, in the order of the code."""
    calls, now = {}, None
    for line in listing.split("\n"):
        begins = FUNCTION.match(line)
        if begins:
            now = calls.setdefault(begins.group(1), [])
        elif now is not None:
            found = CALL.match(line) or RELOCATION.match(line)
            if found and not (found.re is RELOCATION and OF_THREAD_LOCAL.search(found.group(1))):
                now.append(found.group(found.lastindex).removesuffix("@plt"))
    return calls


def short(name):
    """std::sort of "void std::sort<float*>(float*, float*)"."""
    while re.search(r"<[^<>]*>", name.replace("operator<", "operator@").replace("->", "@@")):
        name = re.sub(r"<[^<>]*>", "", name.replace("->", "@@"))
    head = re.sub(r"\(anonymous namespace\)::", "", name).split("(")[0].strip()
    head = head if head.startswith("operator") else head.split(" ")[-1]
    return re.sub(r"^convladder::(?:emulated::)?(?:\w+::)*", "", head)


def kernels_in(texts):
    """The names behind __global__."""
    names = set()
    for text in texts:
        for found in re.finditer(r"\b__global__\b(?:\s|void\b|static\b|inline\b|__launch_bounds__\s*\([^)]*\)|\[\[[^]]*\]\])*(\w+)\s*\(", without_literals(text)):
            names.add(found.group(1))
    return names


def check_calls(listing, texts, demangle):
    """That kernels reach device functions only. `texts` are the student's files."""
    calls = calls_of(listing)
    every = sorted(set(calls) | {name for called in calls.values() for name in called})
    names = dict(zip(every, demangle(every)))
    written = kernels_in(texts)
    kernels = [function for function in calls if short(names[function]).split("::")[-1] in written]
    for function in kernels:
        way = illegal_below(function, calls, names)
        if way:
            of_ours = way[-1] not in FRIENDLY.values() and not way[-1].startswith("std::") and "printf" not in way[-1]
            named = way[0] if of_ours else way[-1]  # what leads to a host function of ours is one itself
            raise IllegalCuda(f"{named}: {' calls '.join([short(names[function]), *way])}: no device function",
                              unseen=not all(NO_LOADS.fullmatch(names.get(leaf, leaf)) for leaf in illegal_leaves(kernels, calls, names)))


def illegal_leaves(kernels, calls, names):
    """All that is outside of the object and no device function, and that the kernels reach."""
    waiting, seen, leaves = list(kernels), set(kernels), set()
    while waiting:
        for called in calls[waiting.pop()]:
            called = called if called in calls else re.sub(r"([CD])2E", r"\g<1>1E", called)
            if called not in seen:
                seen.add(called)
                if called in calls:
                    waiting.append(called)
                elif is_illegal_leaf(called, names.get(called, called)):
                    leaves.add(called)
    return leaves


def illegal_below(kernel, calls, names):
    """The short names of the calls that lead from a kernel to what it may not call; None: there is no such way."""
    waiting, seen = [(kernel, ())], {kernel}
    while waiting:
        function, path = waiting.pop(0)
        for called in calls[function]:
            name = names[called]
            if called in seen or called.startswith("."):
                continue
            seen.add(called)
            if OF_CUDA.match(name) and not HOST_LEAVES.search(name):
                continue  # what a function of CUDA does here is not the file's concern
            way = (*path, FRIENDLY.get(short(name), short(name)))
            called = called if called in calls else re.sub(r"([CD])2E", r"\g<1>1E", called)  # one code, two names
            if called not in calls:
                if is_illegal_leaf(called, name):
                    return way
                continue
            if re.match(r"(?:[\w:<>,*&\s]+\s)?std::", name) and not STANDARD_ON_DEVICE.search(name.split("(")[0]):
                return way
            if HOST_LEAVES.search(name):
                return way
            waiting.append((called, way))
    return None


def is_illegal_leaf(mangled, name):
    if DEVICE_LEAVES.fullmatch(mangled) or DEVICE_LEAVES.fullmatch(name):
        return False
    if not mangled.startswith("_Z"):
        return mangled.isidentifier()
    if OF_CUDA.match(name):
        return bool(HOST_LEAVES.search(name))
    if STANDARD_ON_DEVICE.search(name.split("(")[0]):
        return False
    if name.startswith(("typeinfo", "vtable", "guard variable", "TLS ")) or "(" not in name:
        return False
    return not name.startswith(("convladder::check::stop_at_blank", "convladder::check::add_blank"))
