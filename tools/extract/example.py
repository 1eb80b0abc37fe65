"""Writes the main() of an extracted rung: the numbers of an example, and the results that the rung must compute."""
import re
import textwrap

WIDTH = 100
HALVES = ("Half", "BFloat16", "Float8")

ON_DEVICE = """\
/// Memory that host and device share, until the program ends.
template <class T>
T* new_array(std::size_t count) {
  T* first = nullptr;
  gpu::check(cudaMallocManaged(&first, std::max<std::size_t>(count, 1) * sizeof(T)));
  return first;
}

"""
ON_HOST = """\
/// Memory for any type, until the program ends.
template <class T>
T* new_array(std::size_t count) {
  return static_cast<T*>(::operator new(count * sizeof(T), std::align_val_t{256}));
}

"""
COPY_OF = """\
/// An array with these numbers.
template <class T>
T* copy_of(const std::vector<T>& numbers) {
  return std::copy(numbers.begin(), numbers.end(), new_array<T>(numbers.size())) - numbers.size();
}

"""
IS_RIGHT = """\
/// Whether the array holds what is expected.
template <class T>
bool is_right(const char* name, const T* found, const std::vector<EXPECTED>& expected) {
"""
COMPARED = """\
  bool right = true;
  for (std::size_t i = 0; i < expected.size(); ++i) right &= SAME;
"""
COMPARED_ROUGHLY = """\
  // Roots of unity are irrational: numbers may differ by 1e-5 of the largest one.
  float largest = 0;
  for (const float number : expected) largest = std::max(largest, std::abs(number));
  bool right = true;
  for (std::size_t i = 0; i < expected.size(); ++i)
    right &= std::abs(found[i] - expected[i]) <= 1e-5f * largest;
"""
SAID = """\
  std::printf("%-10s %s, %zu numbers\\n", name, right ? "is right" : "DIFFERS", expected.size());
  return right;
}
"""
ROUNDED = """\

/// The nearest numbers of type T.
template <class T>
std::vector<T> rounded(const std::vector<float>& values) {
  std::vector<T> numbers;
  for (const float value : values) numbers.push_back(rounded_to<T>(value));
  return numbers;
}
"""
CREATED = """\

/// An output for which the rung asks once it knows its shape.
template <class T>
struct Created {
  std::size_t count = 0;
  T* array = nullptr;

  T* with_shape(const Shape& shape) {
    count = 1;
    for (const std::int64_t extent : shape) count *= static_cast<std::size_t>(extent);
    return array = new_array<T>(count);
  }
  bool holds(const char* name, const std::vector<T>& expected) const {
    if (count == expected.size()) return is_right(name, array, expected);
    std::printf("%-10s DIFFERS: it has %zu numbers, not %zu\\n", name, count, expected.size());
    return false;
  }
};
"""
CREATED_IN_ANY_ORDER = """\
  bool holds_rows_in_any_order(const char* name, std::size_t columns,
                               const std::vector<T>& expected) {
    std::vector<std::vector<T>> rows(count / columns, std::vector<T>(columns));
    for (std::size_t row = 0; row < rows.size(); ++row) {
      for (std::size_t i = 0; i < columns; ++i) rows[row][i] = array[row * columns + i];
    }
    std::sort(rows.begin(), rows.end());
    std::vector<T> sorted;
    for (const auto& row : rows) sorted.insert(sorted.end(), row.begin(), row.end());
    array = copy_of(sorted);
    return holds(name, expected);
  }
"""


NUMBERS = """
/// Integers from LOW to HIGH, others for each seed: their sums are exact in float.
template <class T>
T* numbers(std::size_t count, unsigned seed) {
  T* const first = new_array<T>(count);
  for (std::size_t i = 0; i < count; ++i) {
    seed = seed * 1664525 + 1013904223;
    first[i] = VALUE;
  }
  return first;
}
"""
# The body sees the indices of x, weights and y as i, j and l.
PRODUCTS = """\
  for (int n = 0; n < problem.N; ++n)
    for (int k = 0; k < problem.K; ++k)
      for (int p = 0; p < problem.P; ++p)
        for (int q = 0; q < problem.Q; ++q)
          for (int r = 0; r < problem.R; ++r)
            for (int s = 0; s < problem.S; ++s)
              for (int c = 0; c < GROUP_C; ++c) {
                const int h = p * problem.stride.h - problem.pad.top + r * problem.dilation.h;
                const int w = q * problem.stride.w - problem.pad.left + s * problem.dilation.w;
                if (h < 0 || h >= problem.H || w < 0 || w >= problem.W) continue;
                const int at_x = X_INDEX;
                const int at_w = W_INDEX;
                const int at_y = Y_INDEX;
BODIES
              }"""
INDICES = {"nchw": ("((n * problem.C + CHANNEL) * problem.H + h) * problem.W + w", "((k * GROUP_C + c) * problem.R + r) * problem.S + s",
                    "((n * problem.K + k) * problem.P + p) * problem.Q + q"),
           "nhwc": ("((n * problem.H + h) * problem.W + w) * problem.C + CHANNEL", "((k * problem.R + r) * problem.S + s) * GROUP_C + c",
                    "((n * problem.P + p) * problem.Q + q) * problem.K + k")}
TAPS = """\
  const WindowAxis &h = problem.height, &w = problem.width;
  for (int n = 0; n < problem.N; ++n)
    for (int c = 0; c < problem.C; ++c)
      for (int r = 0; r < h.kernel; ++r)
        for (int s = 0; s < w.kernel; ++s)
          for (int p = 0; p < h.out; ++p)
            for (int q = 0; q < w.out; ++q) {
              const int row = p * h.stride - h.pad_before + r * h.dilation;
              const int column = q * w.stride - w.pad_before + s * w.dilation;
              if (row < 0 || row >= h.size || column < 0 || column >= w.size) continue;
              const int at_x = X_INDEX;
              const int at_col = COL_INDEX;
BODIES
            }"""
TAP_INDICES = {"nchw": ("((n * problem.C + c) * h.size + row) * w.size + column",
                        "((((n * problem.C + c) * h.kernel + r) * w.kernel + s) * h.out + p) * w.out + q"),
               "nhwc": ("((n * h.size + row) * w.size + column) * problem.C + c",
                        "((((n * h.out + p) * w.out + q) * h.kernel + r) * w.kernel + s) * problem.C + c")}


def plain_loops(example, read):
    """The outputs of an example as plain loops compute them, or None: then the numbers are listed. `read`: arrays that the rung reads."""
    if any("initial" in one or one["created"] for one in example["outputs"]):
        return None
    for one in example["inputs"]:  # small integers all of them
        if one["type"] != "std::int32_t" and not re.fullmatch(r"[-0-9, ]+", one["numbers"]):
            return None
    problem, types = example["problem"], {one["name"]: one["type"] for one in example["inputs"]}
    of_problem = re.sub(r"\.book = .*", "", problem)
    if re.search(r"\.bias = true|\.activation = Activation::(?!none)|\.scale_[ab] = (?!1[,}])|Request::(?!write)|\.batch = (?!1[,}])", of_problem):
        return None
    layout = "nhwc" if "Layout::nhwc" in problem else "nchw"
    kind, outputs = problem.split("{")[0], [one["name"] for one in example["outputs"]]
    floats = {name for name, one in types.items() if one != "std::int32_t"}
    if not floats <= read:
        return None

    def of(name, index):
        return f"to_float({name}[{index}])" if types[name] in HALVES else f"{name}[{index}]"

    def filled(pattern, indent, bodies, **values):
        for name, value in values.items():
            pattern = pattern.replace(name, value)
        lines = [line for line in pattern.replace("BODIES", "\n".join(" " * indent + body for body in bodies)).split("\n")]
        return "\n".join(wrapped_sum(line) for line in lines)

    if kind == "Conv2dProblem":
        bodies = {"y": ({"x", "weights"}, "y[at_y] += {x} * {weights};"), "dx": ({"dy", "weights"}, "dx[at_x] += {dy} * {weights};"),
                  "dw": ({"x", "dy"}, "dw[at_w] += {x} * {dy};"), "db": ({"x", "dy"}, "db[k] += {dy};")}
        if not all(output in bodies and bodies[output][0] == floats for output in outputs):
            return None
        values = {name: of(name, at) for name, at in (("x", "at_x"), ("weights", "at_w"), ("dy", "at_y")) if name in types}
        lines = [bodies[output][1].format(**values) for output in outputs if output != "db"]
        grouped = ".groups = 1," not in problem
        x_index, w_index, y_index = INDICES[layout]
        channel = "k / (problem.K / problem.groups) * (problem.C / problem.groups) + c" if grouped else "c"
        code = filled(PRODUCTS, 16, lines, X_INDEX=x_index, W_INDEX=w_index, Y_INDEX=y_index, CHANNEL=channel,
                      GROUP_C="problem.C / problem.groups" if grouped else "problem.C")
        code = code.replace("k * problem.C / problem.groups", "k * (problem.C / problem.groups)").replace(") * problem.C / problem.groups + c", ") * (problem.C / problem.groups) + c")
        if "db" in outputs:
            channel = "i % problem.K" if layout == "nhwc" else "i / (problem.P * problem.Q) % problem.K"
            code += f"\n  for (int i = 0; i < problem.N * problem.K * problem.P * problem.Q; ++i)\n    db[{channel}] += {of('dy', 'i')};"
        for name in ("x", "w", "y"):  # an index that nothing needs
            if code.count(f"at_{name}") == 1:
                code = re.sub(rf"\n *const int at_{name} =[^;]*;", "", code)
        return code
    if kind == "GemmProblem" and outputs == ["c"] and floats == {"a", "b"}:
        return ("  for (int m = 0; m < problem.M; ++m)\n    for (int n = 0; n < problem.N; ++n)\n      for (int k = 0; k < problem.K; ++k)\n"
                f"        c[m * problem.N + n] += {of('a', 'm * problem.K + k')} * {of('b', 'k * problem.N + n')};")
    if kind == "Im2colProblem" and ".rank = 2" in problem and len(outputs) == 1 and not set(types.values()) & set(HALVES):
        body = {"col": "col[at_col] = x[at_x];", "x": "x[at_x] += col[at_col];"}[outputs[0]]
        return filled(TAPS, 14, [body], X_INDEX=TAP_INDICES[layout][0], COL_INDEX=TAP_INDICES[layout][1])
    if kind == "SparseToDenseProblem" and outputs == ["x"] and ".ndim = 3" in problem and {"features", "coords"} <= read:
        depth, height, width = re.search(r"\.shape = \{\{(\d+), (\d+), (\d+)", problem).groups()
        return (f"  for (int row = 0; row < problem.grid.sites; ++row)\n    for (int c = 0; c < problem.C; ++c) {{\n"
                f"      const std::int32_t* at = coords + row * 4;  // image, z, y, x, of {depth} x {height} x {width}\n"
                f"      x[(((at[0] * problem.C + c) * {depth} + at[1]) * {height} + at[2]) * {width} + at[3]] =\n"
                "          features[row * problem.C + c];\n    }")
    if kind == "SparseConvProblem" and len(outputs) == 1:
        inputs = {"y": ("features", "weights"), "dx": ("dy", "weights"), "dw": ("features", "dy")}[outputs[0]]
        if floats != set(inputs):
            return None
        row = {"features": "in * problem.Cin + i", "dy": "out * problem.Cout + o", "weights": "(k * problem.Cin + i) * problem.Cout + o"}
        row |= {"y": row["dy"], "dx": row["features"], "dw": row["weights"]}
        body = ["for (int i = 0; i < problem.Cin; ++i)", "  for (int o = 0; o < problem.Cout; ++o)",
                f"    {outputs[0]}[{row[outputs[0]]}] +=", f"        {of(inputs[0], row[inputs[0]])} * {of(inputs[1], row[inputs[1]])};"]
        pairs = next((one["numbers"].count(",") + 1 for one in example["inputs"] if one["name"] == "pairs"), 0)
        if "pairs" in read:
            return (f"  for (int at = 0; at < {pairs}; at += 3) {{\n    const int k = pairs[at], in = pairs[at + 1], out = pairs[at + 2];\n"
                    + "".join("    " + line + "\n" for line in body) + "  }")
        if "nbr" in read or "nbr_back" in read:
            name, one, other, rows = ("nbr", "in", "out", "M") if "nbr" in read else ("nbr_back", "out", "in", "N")
            return (f"  for (int k = 0; k < {problem_taps(problem)}; ++k)\n    for (int {other} = 0; {other} < problem.{rows}; ++{other}) {{\n"
                    f"      const int {one} = {name}[k * problem.{rows} + {other}];\n      if ({one} < 0) continue;\n"
                    + "".join("      " + line + "\n" for line in body) + "    }")
    return None


def wrapped_sum(line):
    """A line of the plain loops that is not too long."""
    if len(line) <= WIDTH:
        return line
    at = max(line.rfind(" " + sign + " ", 0, WIDTH - 2) for sign in "+*=")
    return line[:at + 2] + "\n" + " " * (len(line) - len(line.lstrip()) + 4) + line[at + 3:]


def problem_taps(problem):
    return re.search(r"\.KV = (\d+)", problem).group(1)


def wrapped(head, numbers, tail):
    """`head` + numbers + `tail`, in lines that are not too long, as clang-format would break them."""
    line = head + numbers + tail
    if len(line) <= WIDTH:
        return line
    if " " not in numbers.removeprefix(".workspace = "):  # nothing to fill lines with
        return f"{head}\n      {numbers}{tail}"
    if numbers.startswith("{."):  # a problem: what is inside of a member's braces stays together
        line = head + re.sub(r"(?<=[=] )\{[^.]*?\}+(?=[,}])", lambda match: match.group().replace(" ", "\0"), numbers) + tail
        return re.sub(r" = \n *", " = ", textwrap.fill(re.sub(r" = ", "\0=\0", line), WIDTH, subsequent_indent=" " * (len(head) - len(head.lstrip()) + 4), break_long_words=False).replace("\0", " "))
    return textwrap.fill(line, WIDTH, subsequent_indent=" " * (len(head) - len(head.lstrip()) + 4), break_long_words=False)


def without_defaults(code, structs, used=None):
    """A problem's members without those that are as the struct has them anyway, or that are not used."""
    match = re.match(r"(\w+)\{(.*)\}$", code)
    if not match:
        return code
    name, inside = match.groups()
    members, depth, begin = [], 0, 0
    for at, char in enumerate(inside):
        depth += {"{": 1, "}": -1}.get(char, 0)
        if char == "," and depth == 0:
            members.append(inside[begin:at].strip())
            begin = at + 1
    members.append(inside[begin:].strip())
    result = []
    for member in members:
        field, value = re.match(r"\.(\w+) = (.*)", member).groups()
        value = without_defaults(value, structs, used)
        if used is not None and field not in used:
            continue
        if not re.search(rf"\b{field} = {re.escape(value)}[,;]", structs.get(name, "")):
            result.append(f".{field} = {value}")
    return f"{name}{{{', '.join(result)}}}"


def main_of(example, arrays, members, structs, call, workspace, finish, cuda, used=None, listed=False):
    """The example's functions and main(). `members` are those of the arrays that the rung reads or writes."""
    inputs = [one for one in example["inputs"] if one["name"] in members]
    outputs = example["outputs"]
    loops = None if listed else plain_loops(example, {one["name"] for one in inputs})
    created = any(one["created"] for one in outputs)
    in_any_order = any("rows_in_any_order" in one for one in outputs)
    halves = {one["type"] for one in (outputs if loops else inputs + outputs)} & set(HALVES)
    helpers = ON_DEVICE if cuda else ON_HOST
    if loops:  # all arrays have an element
        helpers = helpers.replace("std::max<std::size_t>(count, 1)", "count")
    if not loops or any(one["type"] == "std::int32_t" for one in inputs):
        helpers += COPY_OF
    short = {one["type"] for one in outputs} & set(HALVES)
    same = "found[i] == expected[i]"
    if short:
        same = "to_float(found[i]) == to_float(expected[i])"
    if short and loops:
        same = "to_float(found[i]) == to_float(rounded_to<T>(expected[i]))"
    helpers += IS_RIGHT.replace("EXPECTED", "float" if loops else "T")
    helpers += (COMPARED_ROUGHLY if not example["exact"] else COMPARED.replace("SAME", same)) + SAID
    helpers = re.sub(r"(for \(.*\)) (right &= .{40,})", r"\1\n    \2", helpers)
    if halves and not loops:
        helpers += ROUNDED
    if loops:
        values = [int(value) for one in inputs if one["type"] != "std::int32_t" for value in one["numbers"].split(", ") if value]
        low, high = min(values, default=0), max(values, default=0)
        value = f"static_cast<float>(static_cast<int>((seed >> 16) % {high - low + 1}) {'- ' + str(-low) if low < 0 else '+ ' + str(low)})"
        if {one["type"] for one in inputs} & set(HALVES):
            value = f"rounded_to<T>({value})"
        helpers += NUMBERS.replace("LOW", str(low)).replace("HIGH", str(high)).replace("VALUE", value)
    if created:
        more = CREATED
        if in_any_order:
            more = CREATED.replace("\n};\n", "\n" + CREATED_IN_ANY_ORDER + "};\n")
        helpers += more
    code = without_defaults(example["problem"], structs, used)
    problem = code[:code.index("{")]
    lines = [f"/// {example['description']}", "int main() {",
             wrapped(f"  const {problem} problem = ", code[len(problem):] or "{}", ";"), f"  {arrays} arrays;"]

    def vector(one, numbers):
        if one["type"] in HALVES:
            return f"rounded<{one['type']}>({{", numbers, "})"
        return f"std::vector<{one['type']}>{{", numbers, "}"

    for seed, one in enumerate(inputs, 1):
        before, numbers, behind = vector(one, one["numbers"])
        if loops and one["type"] != "std::int32_t":
            count = one["numbers"].count(",") + 1
            lines += [f"  const {one['type']}* const {one['name']} = numbers<{one['type']}>({count}, {seed});", f"  arrays.{one['name']} = {one['name']};"]
        elif loops and re.search(rf"\b{one['name']}\b", loops):
            lines += [wrapped(f"  const std::int32_t* const {one['name']} = copy_of({before}", numbers, behind + ");"), f"  arrays.{one['name']} = {one['name']};"]
        else:
            lines.append(wrapped(f"  arrays.{one['name']} = copy_of({before}", numbers, behind + ");"))
    for one in outputs:
        name = one["name"]
        if one["created"]:
            lines.append(f"  Created<{one['type']}> {name};")
        elif "initial" in one:
            before, numbers, behind = vector(one, one["initial"])
            lines.append(wrapped(f"  {one['type']}* const {name} = copy_of({before}", numbers, behind + ");"))
            lines.append(f"  arrays.{name} = {name};")
        else:
            array = f"found_{name}" if loops else name
            lines.append(f"  {one['type']}* const {array} = new_array<{one['type']}>({one['count']});")
            lines.append(f"  arrays.{name} = {array};")
    for creator, kind in (("create", "std::int32_t"), ("create_floats", "float")):
        theirs = [one for one in outputs if one["created"] and one["type"] == kind]
        if not theirs:
            continue
        lines.append(f"  arrays.{creator} = [&](const std::string& name, const Shape& shape) {{")
        for one in theirs:
            lines.append(f"    if (name == \"{one['name']}\") return {one['name']}.with_shape(shape);")
        if len(theirs) > 0:
            # Outputs that the rung also writes but that are not read.
            lines.append(f"    return Created<{kind}>().with_shape(shape);")
        lines.append("  };")
    context = "{}"
    if workspace:
        memory = f".workspace = new_array<std::byte>({workspace}(problem))}};"
        lines.append(wrapped("  const Context context{", memory, ""))
        context = "context"
    lines.append(f"  {call}(problem, arrays, {context});")
    if cuda:
        lines.append("  gpu::check(cudaDeviceSynchronize());")
    if finish:
        lines.append(f"  {finish}(problem, arrays, {context});")
    if loops:
        lines.append("  // The same by a plain loop.")
        for one in outputs:
            lines.append(f"  std::vector<float> {one['name']}({one['count']});")
        lines += loops.split("\n")
    if len(outputs) > 1:
        lines.append("  bool right = true;")
    begin, behind_all = ("  right &= ", ");") if len(outputs) > 1 else ("  return ", ") ? 0 : 1;")
    for one in outputs:
        before, numbers, behind = vector(one, one["numbers"])
        if loops:
            lines.append(f"{begin}is_right(\"{one['name']}\", found_{one['name']}, {one['name']}{behind_all}")
            continue
        if "rows_in_any_order" in one:
            values = numbers.split(", ") if numbers else []
            width = one["rows_in_any_order"]
            rows = sorted([[int(v) for v in values[at:at + width]] for at in range(0, len(values), width)])
            numbers = ", ".join(str(v) for row in rows for v in row)
            head = f"{begin}{one['name']}.holds_rows_in_any_order(\"{one['name']}\", {width}, {before}"
        elif one["created"]:
            head = f"{begin}{one['name']}.holds(\"{one['name']}\", {before}"
        else:
            head = f"{begin}is_right(\"{one['name']}\", {one['name']}, {before}"
        lines.append(wrapped(head, numbers, behind + behind_all))
    lines += [*(["  return right ? 0 : 1;"] if len(outputs) > 1 else []), "}"]
    return helpers.rstrip("\n") + "\n\n", "\n".join(lines) + "\n"
