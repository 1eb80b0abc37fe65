"""Finds the inner loop of a program: in its kernel, or in what the kernel calls, wherever that lies."""

import re
import typing

FOLDERS = ("cpu_reference/", "cuda_naive/", "cuda_optimized/", "core/arithmetic", "core/half")
MOST_LINES = 45
STRONG = re.compile(r"\bw?g?mma_(?:m\d|across|along|down)\w*|\bfmaf?\(|\+= [^;{}]*\*[^;{}]*;")  # the arithmetic that a ladder is about
WEAK = re.compile(r"\+=|\|=|atomic|max\(|\] = ")
LOOP = re.compile(r"\b(for|while)\s*\(")
FUNCTION = re.compile(r"\b(\w+)\s*\((?:[^;{}()]|\((?:[^;{}()]|\([^;{}()]*\))*\))*\)\s*(?:const\s*)?(?:noexcept\s*)?(?:->\s*[\w:<>]+\s*)?\{")
NO_FUNCTIONS = {"if", "for", "while", "switch", "catch", "return", "__launch_bounds__"}
CALL = re.compile(r"\b([A-Za-z_]\w*)\s*(?:<[^<>;(){}]*>\s*)?[({]")


class Function(typing.NamedTuple):
    name: str
    file: str
    start: int  # in the code
    end: int
    head: str  # what stands before its name, since the declaration before


def bare(text):
    """The text with comments and strings blanked, of the same length."""
    return re.sub(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', lambda match: re.sub(r"[^\n]", " ", match.group()), text, flags=re.S)


def closing(code, opened, pair="{}"):
    """The place of what closes the bracket at `opened`."""
    depth = 0
    for place in range(opened, len(code)):
        depth += (code[place] == pair[0]) - (code[place] == pair[1])
        if not depth:
            return place
    return len(code) - 1


def functions_of(code, file):
    found, place = [], 0
    while match := FUNCTION.search(code, place):
        place = match.end()
        if match.group(1) in NO_FUNCTIONS:
            continue
        end = closing(code, match.end() - 1)
        head = code[max(code.rfind(";", 0, match.start()), code.rfind("}", 0, match.start()), 0):match.start()]
        found.append(Function(match.group(1), file, match.start(), end, head))
        place = end
    return found


def loops_of(code, start, end):
    """(start, end) of each loop in code[start:end], from the outside to the inside."""
    found = []
    for match in LOOP.finditer(code, start, end):
        after = closing(code, match.end() - 1, "()") + 1
        body = re.compile(r"\s*").match(code, after).end()
        if body < len(code) and code[body] == "{":
            last = closing(code, body)
        else:
            last = body
            depth = 0
            while last < end and not (code[last] == ";" and not depth):
                depth += (code[last] in "({") - (code[last] in ")}")
                if code[last] == "}" and not depth:
                    break
                last += 1
        found.append((match.start(), last + 1))
    return found


def best_loop(code, function, wanted):
    """The largest loop of at most MOST_LINES lines around the first innermost loop that does what is `wanted`; None without one."""
    loops = loops_of(code, function.start, function.end)
    for start, end in loops:
        inner = any(start < other[0] and other[1] <= end for other in loops)
        if inner or not wanted.search(code[start:end]):
            continue
        around = [loop for loop in loops if loop[0] <= start and end <= loop[1]]
        fitting = [loop for loop in around if code.count("\n", *loop) < MOST_LINES]
        return max(fitting, key=lambda loop: loop[1] - loop[0]) if fitting else (start, end)
    return None


class Finder:
    def __init__(self, index, source):
        self.index, self.source = index, source
        self.codes, self.by_name = {}, {}
        self.own = self.read(source)
        for file in sorted(index.closure(source)):
            if file != source and file.startswith(FOLDERS):
                self.read(file)

    def read(self, file):
        self.codes[file] = bare(self.index.source(file))
        functions = functions_of(self.codes[file], file)
        for function in functions:
            self.by_name.setdefault(function.name, []).append(function)
        return functions

    def called(self, function):
        """Functions that it calls, and kernels that it names, as launches do. One that an included header declares may be defined in
        another rung's file."""
        code = self.codes[function.file]
        for name in CALL.findall(code, function.start, function.end):
            if name not in self.by_name and name.startswith("launch_") and (file := self.definitions().get(name)):
                self.read(file)
        calls = dict.fromkeys(CALL.findall(code, function.start, function.end))
        words = dict.fromkeys(re.findall(r"[A-Za-z_]\w*", code[function.start:function.end]))
        found = [other for name in calls for other in self.by_name.get(name, ())]
        found += [other for name in words for other in self.by_name.get(name, ()) if "__global__" in other.head]
        return [other for other in found if other != function]

    def definitions(self):
        """{name of a function that launches kernels: the rung's file that defines it}."""
        if not hasattr(self.index, "launching"):
            self.index.launching = {}
            for path in sorted((self.index.root / "cuda_optimized").rglob("*.cu")):
                file = path.relative_to(self.index.root).as_posix()
                for name in re.findall(r"\b(launch_\w+)\([^;{}]*\) \{", bare(self.index.source(file))):
                    self.index.launching.setdefault(name, file)
        return self.index.launching

    def in_order(self):
        """Kernels first, then what they call, and so on; then the other functions of the program. Sets who calls each."""
        self.caller = {}
        kernels = [function for function in self.own if "__global__" in function.head]
        if not kernels:
            used = [other for function in self.own for other in self.called(function)]
            kernels = [function for function in used if "__global__" in function.head] or self.own
        order, left = [], list(kernels)
        while left:
            function = left.pop(0)
            if function not in order:
                order.append(function)
                for other in self.called(function):
                    self.caller.setdefault(other, function)
                    left.append(other)
        return order + [function for function in self.own if function not in order]

    def find(self):
        """[(function, (start, end) of a loop)]: the inner loop; before it, if it lies in an included file, the loop of the program
        that calls it."""
        order = self.in_order()
        for wanted in (STRONG, WEAK, re.compile("")):
            for function in order:
                if found := best_loop(self.codes[function.file], function, wanted):
                    return [*self.loop_around(function), (function, found)]
        return []

    def loop_around(self, function):
        if function.file == self.source:
            return []
        seen = {function}
        while function in self.caller and self.caller[function] not in seen:
            called, function = function, self.caller[function]
            seen.add(function)
            if function.file == self.source:
                found = best_loop(self.codes[self.source], function, re.compile(rf"\b{called.name}\b"))
                return [(function, found)] if found else []
        return []


def of_program(index, source):
    """[(file, first line, last line, function)] of the inner loop, see Finder.find."""
    finder = Finder(index, source)
    places = []
    for function, (start, end) in finder.find():
        code = finder.codes[function.file]
        places.append((function.file, code.count("\n", 0, start) + 1, code.count("\n", 0, end) + 1, function.name))
    return places
