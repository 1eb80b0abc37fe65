"""The small changes that mutants.py makes in a rung's source: operators over the tokens of the code.

An operator is a function that takes a Source and yields pairs (range of characters, text in its place).
Left alone are comments, strings, preprocessor lines and what has no effect when the program runs:
static_assert, attributes, template headers, `using`, launch bounds, and the texts of messages.
"""
import re

from source import CLOSES

_INTEGER = re.compile(r"(0[xX][\da-fA-F']+|0[bB][01']+|\d[\d']*)([uUlL]*)$")
OPERATORS = {}  # by name, in the order of the list


def operator(name):
    """Notes a function under a name, which the tables show."""

    def note(function):
        OPERATORS[name] = function
        return function

    return note


def _signs(source, table):
    """Replaces binary signs by those of the table."""
    for i in source.free():
        if source.tokens[i].kind == "sign" and source.words[i] in table and source.is_binary(i):
            yield source.span(i, i), table[source.words[i]]


def _is_index(source, i):
    """Whether the word at i is a variable that is read as it is: no function, no member's owner."""
    return (source.tokens[i].kind == "word" and re.match(r"[a-z]", source.words[i])
            and source.words[i - 1] not in (".", "->", "::") and source.tokens[i - 1].kind != "word"
            and source.words[i + 1] not in ("(", "::", ".", "->", "[", "{", "<")
            and source.words[i] not in ("this", "true", "false", "nullptr", "const", "auto", "int"))


@operator("index off by one")
def index_off_by_one(source):
    free = set(source.free())
    for i in sorted(free):
        if i == 0 or i not in source.match:
            continue
        if source.words[i] == "[" and (source.tokens[i - 1].kind == "word" or source.words[i - 1] in (")", "]")):
            inside = range(i + 1, source.match[i])
        elif source.words[i] == "(" and re.search(r"(^|_)(at|offset|index|column|row|place|slot|key|cell)$",
                                                  source.words[i - 1]):
            inside = [first for first, last in source.arguments(i) if first == last]
        else:
            continue
        for j in inside:
            if j in free and _is_index(source, j):
                yield source.span(j, j), f"({source.words[j]} + 1)"


def _value(digits):
    """The number that an integer literal of C++ stands for, where 017 is octal."""
    digits = digits.replace("'", "")
    return int(digits, 8 if digits.isdecimal() and digits[0] == "0" else 0)


def _integers(source):
    """Triples (index, value, suffix) of the integers written in the code."""
    for i in source.free():
        found = _INTEGER.match(source.words[i]) if source.tokens[i].kind == "number" else None
        if found:
            yield i, _value(found.group(1)), found.group(2)


@operator("constant + 1")
def constant_plus_one(source):
    for i, value, suffix in _integers(source):
        yield source.span(i, i), f"{value + 1}{suffix}"


@operator("constant - 1")
def constant_minus_one(source):
    for i, value, suffix in _integers(source):
        if value > 0:
            yield source.span(i, i), f"{value - 1}{suffix}"


def _named_constants(source):
    """Constants such as kStep where they are read, not where they are defined."""
    for i in source.free():
        if (re.match(r"k[A-Z]", source.words[i]) and source.words[i - 1] in tuple("+-*/%<([,?:=") + ("<=", "return")
                and source.words[i + 1] in tuple("+-*/%<>)],;?:")):
            yield i


@operator("constant doubled")
def constant_doubled(source):
    for i, value, suffix in _integers(source):
        if value > 1:
            yield source.span(i, i), f"{2 * value}{suffix}"
    for i in _named_constants(source):
        yield source.span(i, i), f"(2 * {source.words[i]})"


@operator("constant halved")
def constant_halved(source):
    for i, value, suffix in _integers(source):
        if value > 2:  # of 2 it is "constant - 1"
            yield source.span(i, i), f"{value // 2}{suffix}"
    for i in _named_constants(source):
        yield source.span(i, i), f"({source.words[i]} / 2)"


@operator("sum does not begin at 0")
def sum_not_from_zero(source):
    for i in source.free():
        if source.words[i] in ("0.0f", "0.0", "0.f") and source.words[i - 1] == "=":
            yield source.span(i, i), "1.0f"


@operator("comparison moved")
def comparison_moved(source):
    return _signs(source, {"<": "<=", "<=": "<", ">": ">=", ">=": ">"})


@operator("comparison turned")
def comparison_turned(source):
    return _signs(source, {"==": "!=", "!=": "=="})


@operator("and, or")
def and_or(source):
    return _signs(source, {"&&": "||", "||": "&&"})


@operator("plus, minus")
def plus_minus(source):
    return _signs(source, {"+": "-", "-": "+"})


@operator("times, plus")
def times_plus(source):
    return _signs(source, {"*": "+"})


@operator("divide, modulo")
def divide_modulo(source):
    return _signs(source, {"/": "*", "%": "/"})


@operator("shift turned")
def shift_turned(source):
    return _signs(source, {"<<": ">>", ">>": "<<"})


@operator("bits of another sign")
def bits(source):
    return _signs(source, {"&": "|", "|": "&", "^": "|"})


@operator("a mask's bit")
def mask_bit(source):
    for i in source.free():
        if source.tokens[i].kind != "number":
            continue
        if source.words[i].lower().startswith("0x"):
            yield source.span(i, i), f"({source.words[i]} ^ 1u)"
        elif source.words[i] in ("1u", "1ull") and source.words[i + 1] == "<<":
            yield source.span(i, i), source.words[i].replace("1", "2", 1)


@operator("assigned, not added")
def assigned_not_added(source):
    heads = _loop_heads(source)
    for i in source.free():
        if source.words[i] in ("+=", "|=", "-=", "&=") and not any(a < i < b for a, b in heads):
            yield source.span(i, i), "="


# In the names of the glossary.
_AXES = [("h", "w"), ("r", "s"), ("p", "q"), ("H", "W"), ("R", "S"), ("P", "Q"), ("C", "K"), ("M", "N"),
         ("m", "n"), ("rows", "columns"), ("row", "column"), ("top", "left"), ("bottom", "right"),
         ("height", "width"), ("Cin", "Cout")]
_OTHER_AXIS = dict(_AXES + [pair[::-1] for pair in _AXES])


@operator("axes swapped")
def axes_swapped(source):
    for i in source.free():
        word, before = source.words[i], source.words[i - 1]
        if word in ("x", "y") and before == "." and re.match(r"(thread|block)(Idx|Dim)|gridDim", source.words[i - 2]):
            yield source.span(i, i), "y" if word == "x" else "x"
        elif word in _OTHER_AXIS and source.words[i + 1] not in ("(", "{", "::"):
            declared = source.tokens[i - 1].kind == "word" and before != "return"
            if not declared and before not in (">", "&", "*") or source.is_binary(i - 1):
                yield source.span(i, i), _OTHER_AXIS[word]


@operator("min, max")
def min_max(source):
    other = {"min": "max", "max": "min", "atomicMin": "atomicMax", "atomicMax": "atomicMin"}
    for i in source.free():
        if source.words[i] in other and source.words[i + 1] == "(" and source.words[i - 1] not in (".", "->"):
            yield source.span(i, i), other[source.words[i]]


def _conditions(source):
    """Pairs (first, last) of tokens: the conditions of `if`, without initialisers and declarations."""
    for i in source.free():
        if source.words[i] != "if" or source.words[i + 1] != "(" or i + 1 not in source.match:
            continue
        end = source.match[i + 1]
        first = next((j + 1 for j in range(end - 1, i + 1, -1) if source.words[j] == ";"), i + 2)
        if "=" not in source.words[first:end]:
            yield first, end - 1


@operator("guard always")
def guard_always(source):
    for first, last in _conditions(source):
        yield source.span(first, last), "true"


@operator("guard never")
def guard_never(source):
    for first, last in _conditions(source):
        yield source.span(first, last), "false"


@operator("one of two, always")
def choice(source):
    stops = set("([{,;=?:}") | {"return", "+=", "-=", "*=", "|=", "&="}
    for i in source.free():
        if source.words[i] != "?":
            continue
        first = i
        while first > 0 and source.words[first - 1] not in stops:
            first = source.match.get(first - 1, first - 1) if source.words[first - 1] in (")", "]") else first - 1
        yield source.span(first, i - 1), "true"
        yield source.span(first, i - 1), "false"


@operator("jump dropped")
def jump_dropped(source):
    for i in source.free():
        if source.words[i] in ("return", "continue", "break") and source.words[i + 1] == ";":
            yield source.span(i, i), ""


def _calls(source, name):
    """Triples (first, name, last) of tokens: the statements that are calls of a function whose name fits."""
    for i in source.free():
        if not re.fullmatch(name, source.words[i]):
            continue
        first = i
        while source.words[first - 1] in ("::", "."):
            first -= 2
        bracket = i + 1
        if source.words[bracket] == "<":
            bracket = (source.end_of_angles(bracket) or bracket) + 1
        last = source.match.get(bracket, 0)
        if (source.words[bracket] == "(" and source.words[first - 1] in (";", "{", "}", ")", "else")
                and source.words[last + 1] == ";"):
            yield first, i, last


@operator("barrier or wait dropped")
def barrier_dropped(source):
    name = r"\w*(sync|fence|wait|commit|arrive|barrier)\w*"
    for first, i, last in _calls(source, name):
        if not re.match(r"cp_async$|launch_", source.words[i]):
            yield source.span(first, last), ""


@operator("wait one later")
def wait_one_later(source):
    for _, i, _ in _calls(source, r"\w*wait\w*"):
        if source.words[i + 1] == "<":
            first, last = i + 2, source.end_of_angles(i + 1) - 1
            yield source.span(first, last), f"({source.said(first, last)}) + 1"


@operator("sum without an atomic")
def atomic_dropped(source):
    # Between its read and its write, others run: cuda_on_cpu's threads take turns only where they wait.
    plain = "([](auto* to, auto add) { const auto old = *to; __nanosleep(1); *to = old + add; return old; })"
    for i in source.free():
        if source.words[i] == "atomicAdd" and source.words[i + 1] == "(":
            yield source.span(i, i), plain


def _loop_heads(source):
    """Pairs of tokens: the brackets of `for`."""
    return [(i + 1, source.match[i + 1]) for i in source.free()
            if source.words[i] == "for" and i + 1 in source.match]


def _loop_parts(source):
    """For each loop with three parts, the tokens of the first two semicolons and of the bracket."""
    for begin, end in _loop_heads(source):
        ends, j = [], begin + 1
        while j < end:
            if source.words[j] in CLOSES:
                j = source.match.get(j, j)
            elif source.words[j] == ";":
                ends.append(j)
            j += 1
        if len(ends) == 2:
            yield begin, ends[0], ends[1]


@operator("chunk begins at 0")
def chunk_from_zero(source):
    for begin, semicolon, _ in _loop_parts(source):
        equals = next((j for j in range(begin, semicolon) if source.words[j] == "="), None)
        if equals is None:
            continue
        last = next((j for j in range(equals, semicolon) if source.words[j] == ","), semicolon) - 1
        if source.said(equals + 1, last) != "0":
            yield source.span(equals + 1, last), "0"


@operator("loop skipped")
def loop_skipped(source):
    for _, first, second in _loop_parts(source):
        if second > first + 1:
            yield source.span(first + 1, second - 1), "false"
    for i in source.free():
        if source.words[i] == "while" and source.words[i + 1] == "(" and source.words[i - 1] != "}":
            yield source.span(i + 2, source.match[i + 1] - 1), "false"


@operator("stage frozen")
def stage_frozen(source):
    for i in source.free():
        divisor = source.words[i + 1]
        if source.words[i] == "%" and (divisor == "2" or re.search(r"stage|slot|ring|buffer|ahead", divisor, re.I)):
            yield source.span(i, i), "* 0 %"
        elif source.words[i] == "^=" and divisor in ("1", "1u"):
            yield source.span(i + 1, i + 1), "0"


@operator("alignment not asked for")
def alignment_unasked(source):
    for i in source.free():
        if source.words[i] == "%" and source.words[i + 2] in ("==", "!=") and source.words[i + 3] == "0":
            yield source.span(i + 1, i + 1), "1"
        elif (re.search("aligned", source.words[i], re.I) and source.words[i + 1] == "("
              and source.tokens[i - 1].kind != "word"):
            yield source.span(i, source.match[i + 1]), "true"


@operator("wrap-around missing")
def wrap_missing(source):
    for i in source.free():
        if source.words[i] not in ("%", "&") or not source.is_binary(i):
            continue
        last = source.operand_end(i + 1)
        what = source.said(i + 1, last)
        if source.words[i] == "%" or re.search(r"mask|- 1\)$|^(3|7|15|31|63|0x\w+)u?$", what):
            yield (source.tokens[i - 1].end, source.tokens[last].end), ""


@operator("tail forgotten")
def tail_forgotten(source):
    for i in source.free():
        if source.words[i] == "ceil_div" and source.words[i + 1] == "(":
            (a, b), (c, d) = source.arguments(i + 1)
            yield source.span(i, source.match[i + 1]), f"(({source.said(a, b)}) / ({source.said(c, d)}))"


@operator("bias or activation left out")
def bias_or_activation(source):
    for i in source.free():
        if source.words[i] == "activated" and source.words[i + 1] == "(":
            first, last = source.arguments(i + 1)[-1]
            yield source.span(i, source.match[i + 1]), f"({source.said(first, last)})"
        elif source.words[i] == "bias" and source.words[i + 1] == "[" and source.tokens[i - 1].kind != "word":
            first = i - 2 if source.words[i - 1] in (".", "->") else i
            yield source.span(first, source.match[i + 1]), "0.0f"


# Kinds of problems that a rung might begin to decline, by the problem's type.
_DECLINES = {
    "Conv2dProblem": ["{0}.groups > 1", "{0}.stride.w > 1", "{0}.dilation.h > 1", "{0}.W % 2 == 1",
                      "{0}.pad.left != {0}.pad.right", "{0}.N == 0", "{0}.R != {0}.S"],
    "Im2colProblem": ["{0}.rank == 1", "{0}.rank == 3", "{0}.request == Request::none", "{0}.width.stride > 1",
                      "{0}.N == 0"],
    "GemmProblem": ["{0}.K % 4 != 0", "{0}.M == 1", "{0}.N % 2 == 1"],
    "TileMapProblem": ["{0}.batch > 1", "{0}.tiles_m == 1"],
    "RulebookProblem": ["{0}.ndim == 4", "{0}.batch > 1", "{0}.sites == 0", "{0}.dilation[0] > 1"],
    "SparseConvProblem": ["{0}.Cin % 4 != 0", "{0}.Cout % 2 == 1", "{0}.M == 0", "{0}.book.KV == 1",
                          "{0}.book.KV > 32"],
    "SparsePoolProblem": ["{0}.C % 2 == 1", "{0}.M == 0"],
    "SparseGlobalPoolProblem": ["{0}.C % 2 == 1", "{0}.reduce == PoolReduction::mean"],
    "SparseToDenseProblem": ["{0}.C % 2 == 1", "{0}.grid.ndim == 4"],
}


@operator("declines what it took")
def declines_more(source):
    for i in source.free():
        # Declined supports(const Conv2dProblem& conv) {
        if source.words[i] != "Declined" or source.words[i + 2:i + 4] != ["(", "const"] or i + 2 not in source.match:
            continue
        problem, name, body = source.words[i + 4], source.words[i + 6], source.match[i + 2] + 1
        if source.words[body] == "{":
            for condition in _DECLINES.get(problem, []):
                condition = condition.format(name)
                yield source.span(body, body), "{" + f' if ({condition}) return "no {condition}";'
