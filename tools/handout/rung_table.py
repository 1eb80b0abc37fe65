"""check/assignment.cpp of a handout: its ladders, rungs, exercises and properties."""
from assignment import constant_of, source_of

# Of each ladder: its header, its arrays, its problem, the function that tells the arrays of a problem.
LADDERS = {
    "conv2d": ("core/conv2d_problem.hpp", "Conv2dArrays", "Conv2dProblem", "conv2d_signature"),
    "im2col": ("core/im2col_problem.hpp", "Im2colArrays", "Im2colProblem", "im2col_signature"),
    "col2im": ("core/im2col_problem.hpp", "Col2imArrays", "Im2colProblem", "col2im_signature"),
    "conv2d_wgrad": ("core/conv2d_gradients.hpp", "Conv2dWgradArrays", "Conv2dProblem", "conv2d_wgrad_signature"),
    "gemm": ("core/gemm_problem.hpp", "GemmArrays", "GemmProblem", "gemm_signature"),
    "tile_map": ("core/tile_map_problem.hpp", "TileMapArrays", "TileMapProblem", "tile_map_signature"),
    "rulebook": ("core/rulebook_problem.hpp", "RulebookArrays", "RulebookProblem", "rulebook_signature"),
}


def definitions_of(assignment, ladders):
    """The references of these ladders, in C++."""
    if assignment.expected:
        return []
    return ["namespace oracle {", "", *(f"Definition {ladder}_definition();" for ladder in ladders), "",
            "const Definition& definition_of(const std::string& ladder) {",
            "  static const std::map<std::string, Definition> definitions = {",
            *(f'      {{"{ladder}", {ladder}_definition()}},' for ladder in ladders), "  };",
            "  return definitions.at(ladder);", "}", "", "}  // namespace oracle", ""]


def table_of(assignment):
    """check/assignment.cpp: the ladders, the rungs of this folder and the exercises."""
    hunted = assignment.hunt_rung
    ladders = list(dict.fromkeys(rung.split("/")[1] for rung in assignment.rungs + ([hunted] if hunted else [])))
    definition = [] if assignment.expected else ['#include "oracle/ladders/definition.hpp"']

    def constant(rung, folder=None):
        top, ladder = rung.split("/")[:2]
        space = "emulated::" if source_of(rung).endswith(".cu") else ""
        return f"{space}{folder or top}::{ladder}::{constant_of(rung)}"

    def declaration(rung, folder=None):
        top, ladder = rung.split("/")[:2]
        kind = "CUDA_RUNG" if source_of(rung).endswith(".cu") else "CPU_RUNG"
        return f"{kind}({LADDERS[ladder][1]}, {folder or top}, {ladder}, {constant_of(rung)})"

    def row(name, source, code):
        return f'      row("{name}", "{source}", AnyImplementation({code})),'

    def ladder_of(name, rows):
        _, _, problem, signature = LADDERS[name]
        begin = f'{{"{name}", "", [](const Problem& problem) {{ return {signature}(std::get<{problem}>(problem)); }}, {{'
        return "\n".join([begin, *rows, "    }}"])

    text = [f"// Written by `./ladder handout {assignment.name}`.", "#include <map>", "#include <stdexcept>", "",
            '#include "check/assignment.hpp"', *(f'#include "{header}"' for header in
                                                 sorted({LADDERS[ladder][0] for ladder in ladders})),
            '#include "ladders/declare.hpp"', *definition, ""]
    # A capstone begins from what is given: that can be inspected, too.
    shown = assignment.rungs + (assignment.given if assignment.solution else [])
    text += [declaration(rung) for rung in shown]
    text += [declaration(hunted, folder) for folder in ("hunted", "mended") if hunted]
    text += ["", "namespace convladder {", *definitions_of(assignment, ladders), "namespace check {",
             "namespace {", "", "Rung row(std::string name, std::string source, AnyImplementation code) {",
             '  Rung rung{std::move(name), std::move(source), "", "", true};',
             "  const Where where = rung.is_cuda() ? Where::emulated : Where::cpu;",
             "  rung.code[static_cast<std::size_t>(where)] = std::move(code);", "  return rung;", "}", "",
             "}  // namespace", "", "const std::vector<Ladder>& ladders() {",
             "  static const std::vector<Ladder> all = {"]
    for ladder in ladders:
        rows = [row(rung, source_of(rung), constant(rung)) for rung in shown if rung.split("/")[1] == ladder]
        if rows:
            text.append("    " + ladder_of(ladder, rows) + ",")
    text += ["  };", "  return all;", "}", "", "const Ladder& hunt() {"]
    if hunted:
        file = source_of(hunted)
        rows = [row("hunted", f"check/hunted/{file}", constant(hunted, "hunted")),
                row("mended", f"hunt/{file.rsplit('/', 1)[1]}", constant(hunted, "mended"))]
        text.append(f"  static const Ladder ladder = {ladder_of(hunted.split('/')[1], rows)};")
    else:
        text.append("  static const Ladder ladder = {};")
    text += ["  return ladder;", "}", "", "const std::vector<Exercise>& exercises() {",
             "  static const std::vector<Exercise> all = {",
             *(f'      {{"{blank.exercise}", "{blank.name}", "{assignment.rung_of(blank)}"}},'
               for blank in assignment.blanks),
             "  };", "  return all;", "}", "", "const std::vector<Property>& properties() {",
             "  static const std::vector<Property> all = {",
             *(f'      {{"{name}", {name}}},' for name in assignment.properties),
             "  };", "  return all;", "}", "", "}  // namespace check", "}  // namespace convladder", ""]
    return "\n".join(text)
