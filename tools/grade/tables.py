"""The C++ tables with the rungs of the checker and the workers."""
from assignment import constant_of, gpu, source_of
from rung_table import LADDERS


def ladder_of(rung):
    return rung.split("/")[1]


def table(rungs, definitions):
    """check::ladders() with these rungs, and oracle::definition_of() if there are `definitions`."""
    ladders = list(dict.fromkeys(ladder_of(rung) for rung in rungs))
    headers = sorted({LADDERS[ladder][0] for ladder in ladders})
    text = ["// Written by ./ladder grade.", "#include <map>", "", '#include "check/assignment.hpp"',
            *(f'#include "{header}"' for header in headers), '#include "ladders/declare.hpp"']
    if definitions:
        text.append('#include "oracle/ladders/definition.hpp"')
    for rung in rungs:
        top, ladder = rung.split("/")[:2]
        kind = "CUDA_RUNG" if source_of(rung).endswith(".cu") else "CPU_RUNG"
        text.append(f"{kind}({LADDERS[ladder][1]}, {top}, {ladder}, {constant_of(rung)})")
    text.append("namespace convladder {")
    if definitions:
        text += ["namespace oracle {", *(f"Definition {ladder}_definition();" for ladder in ladders),
                 "const Definition& definition_of(const std::string& ladder) {",
                 "  static const std::map<std::string, Definition> all = {",
                 *(f'    {{"{ladder}", {ladder}_definition()}},' for ladder in ladders), "  };",
                 "  return all.at(ladder);", "}", "}  // namespace oracle"]
    text += ["namespace check {", "const std::vector<Ladder>& ladders() {", "  static const std::vector<Ladder> all = [] {",
             "    std::vector<Ladder> made;"]
    for ladder in ladders:
        _, _, problem, signature = LADDERS[ladder]
        text.append(f'    made.push_back({{"{ladder}", "", [](const Problem& problem) {{ return '
                    f"{signature}(std::get<{problem}>(problem)); }}, {{}}}});")
        for rung in (rung for rung in rungs if ladder_of(rung) == ladder):
            top = rung.split("/")[0]
            source = source_of(rung)
            space, where = ("emulated::", "emulated") if source.endswith(".cu") else ("", "cpu")
            text += [f'    made.back().rungs.push_back({{"{rung}", "{source}", "", "", true, {{}}, {{}}}});',
                     f"    made.back().rungs.back().code[static_cast<std::size_t>(Where::{where})] = "
                     f"AnyImplementation({space}{top}::{ladder}::{constant_of(rung)});"]
    text += ["    return made;", "  }();", "  return all;", "}", "}  // namespace check", "}  // namespace convladder", ""]
    return "\n".join(text)


def gpu_table():
    """check::gpu_of_model(), for workers, which may open no file."""
    numbers = gpu()
    values = ", ".join(f"{float(numbers[name])!r}" for name in ("bytes_per_second", "multiprocessors", "clock", "launch_seconds"))
    return ('// Written by ./ladder grade.\n#include "check/counters.hpp"\n\n'
            f"convladder::check::Gpu convladder::check::gpu_of_model() {{ return {{{values}}}; }}\n")
