"""Writes the main() of an extracted rung: the numbers of an example, and the results that the rung must compute."""
import re
import textwrap

WIDTH = 100
HALVES = ("Half", "BFloat16", "Float8")

ON_DEVICE = """\
/// Device memory, which stays until the program ends.
template <class T>
T* new_array(std::size_t count) {
  void* first = nullptr;
  gpu::check(cudaMalloc(&first, std::max<std::size_t>(count, 1) * sizeof(T)));
  return static_cast<T*>(first);
}

/// A copy on the device.
template <class T>
T* copy_of(const std::vector<T>& numbers) {
  T* const first = new_array<T>(numbers.size());
  gpu::check(cudaMemcpy(first, numbers.data(), numbers.size() * sizeof(T), cudaMemcpyHostToDevice));
  return first;
}

"""
ON_HOST = """\
/// Memory for any type, which stays until the program ends.
template <class T>
T* new_array(std::size_t count) {
  return static_cast<T*>(::operator new(count * sizeof(T), std::align_val_t{256}));
}

/// A copy of the numbers.
template <class T>
T* copy_of(const std::vector<T>& numbers) {
  return std::copy(numbers.begin(), numbers.end(), new_array<T>(numbers.size())) - numbers.size();
}

"""
IS_RIGHT = """\
/// Whether the array holds what is expected.
template <class T>
bool is_right(const char* name, const T* array, const std::vector<T>& expected) {
"""
FOUND_ON_DEVICE = """\
  std::vector<T> found(expected.size());
  gpu::check(cudaMemcpy(found.data(), array, found.size() * sizeof(T), cudaMemcpyDeviceToHost));
"""
FOUND_ON_HOST = """\
  const std::vector<T> found(array, array + expected.size());
"""
COMPARED = """\
  const bool right = found == expected;
"""
COMPARED_AS_FLOATS = """\
  bool right = true;
  for (std::size_t i = 0; i < found.size(); ++i)
    right = right && to_float(found[i]) == to_float(expected[i]);
"""
COMPARED_ROUGHLY = """\
  // Roots of unity are irrational: numbers may differ by 1e-5 of the largest one.
  float largest = 0;
  for (const T number : expected) largest = std::max(largest, std::abs(number));
  bool right = true;
  for (std::size_t i = 0; i < found.size(); ++i)
    right = right && std::abs(found[i] - expected[i]) <= 1e-5f * largest;
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
    std::vector<T> host(count);
    DOWNLOAD
    std::vector<std::vector<T>> rows(count / columns, std::vector<T>(columns));
    for (std::size_t row = 0; row < rows.size(); ++row) {
      for (std::size_t i = 0; i < columns; ++i) rows[row][i] = host[row * columns + i];
    }
    std::sort(rows.begin(), rows.end());
    std::vector<T> sorted;
    for (const auto& row : rows) sorted.insert(sorted.end(), row.begin(), row.end());
    array = copy_of(sorted);
    return holds(name, expected);
  }
"""
DOWNLOAD = "gpu::check(cudaMemcpy(host.data(), array, count * sizeof(T), cudaMemcpyDeviceToHost));"


def wrapped(head, numbers, tail):
    """`head` + numbers + `tail`, in lines that are not too long, as clang-format would break them."""
    line = head + numbers + tail
    if len(line) <= WIDTH:
        return line
    if " " not in numbers.removeprefix(".workspace = "):  # nothing to fill lines with
        return f"{head}\n      {numbers}{tail}"
    return textwrap.fill(line, WIDTH, subsequent_indent=" " * (len(head) - len(head.lstrip()) + 4), break_long_words=False)


def without_defaults(code, structs):
    """A problem's members without those that are as the struct has them anyway."""
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
        value = without_defaults(value, structs)
        if not re.search(rf"\b{field} = {re.escape(value)}[,;]", structs.get(name, "")):
            result.append(f".{field} = {value}")
    return f"{name}{{{', '.join(result)}}}"


def main_of(example, arrays, members, structs, call, workspace, finish, cuda):
    """The example's functions and main(). `members` are those of the arrays that the rung reads or writes."""
    inputs = [one for one in example["inputs"] if one["name"] in members]
    outputs = example["outputs"]
    created = any(one["created"] for one in outputs)
    in_any_order = any("rows_in_any_order" in one for one in outputs)
    halves = {one["type"] for one in inputs + outputs} & set(HALVES)
    helpers = ON_DEVICE if cuda else ON_HOST
    helpers += IS_RIGHT + (FOUND_ON_DEVICE if cuda else FOUND_ON_HOST)
    helpers += (COMPARED_ROUGHLY if not example["exact"] else COMPARED_AS_FLOATS if {one["type"] for one in outputs} & set(HALVES) else COMPARED) + SAID
    if halves:
        helpers += ROUNDED
    if created:
        more = CREATED
        if in_any_order:
            download = DOWNLOAD if cuda else "std::copy(array, array + count, host.begin());"
            more = CREATED.replace("\n};\n", "\n" + CREATED_IN_ANY_ORDER.replace("DOWNLOAD", download) + "};\n")
        helpers += more
    code = without_defaults(example["problem"], structs)
    problem = code[:code.index("{")]
    lines = [f"/// {example['description']}", "int main() try {",
             wrapped(f"  const {problem} problem = ", code[len(problem):] or "{}", ";"), f"  {arrays} arrays;"]

    def vector(one, numbers):
        if one["type"] in HALVES:
            return f"rounded<{one['type']}>({{", numbers, "})"
        return f"std::vector<{one['type']}>{{", numbers, "}"

    for one in inputs:
        before, numbers, behind = vector(one, one["numbers"])
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
            lines.append(f"  {one['type']}* const {name} = new_array<{one['type']}>({one['count']});")
            lines.append(f"  arrays.{name} = {name};")
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
    if len(outputs) > 1:
        lines.append("  bool right = true;")
    begin, behind_all = ("  right &= ", ");") if len(outputs) > 1 else ("  return ", ") ? 0 : 1;")
    for one in outputs:
        before, numbers, behind = vector(one, one["numbers"])
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
    lines += [*(["  return right ? 0 : 1;"] if len(outputs) > 1 else []), "} catch (const std::exception& error) {",
              '  std::printf("%s\\n", error.what());', "  return 1;", "}"]
    return helpers.rstrip("\n") + "\n\n", "\n".join(lines) + "\n"
