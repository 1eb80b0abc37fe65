"""What the microscope has counted (tests/counted.json), as tables for the pages of rungs and ladders."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tools/inspect"))
import expect  # noqa: E402


def predictions(root, row):
    """The lines @expect of a rung's header; none of a C++ rung's."""
    return expect.lines_of(root / row["source"], row["ladder"]) if row["backend"] == "cuda" else []


def of_ladder(ladder, rungs, record, link):
    """Of each of the ladder's tables, a row for each rung that takes its problem."""
    lines = []
    for table in expect.TABLES[ladder]:
        lines += [f"On `{table.problem}`, {table.multiply_adds:,} multiply-adds:", "",
                  "| rung | global | shared | constant | " + " | ".join(f"`{array}`" for array in table.inputs) + " | barriers |",
                  "|---|" + "---:|" * (4 + len(table.inputs))]
        for rung in rungs:
            counts = record.get(rung, {"counted": {}})["counted"].get(table.problem)
            if not counts:
                continue
            loads = [sum(counts[f"lanes.{space}.{operation}"] for where, operation in expect.LOADS if where == space)
                     for space in expect.SPACES]
            cells = [shown(round(load / table.multiply_adds, 3)) for load in loads]
            cells += [shown(round(counts[f"loads_per_output.{array}"] or 0, 3)) for array in table.inputs]
            lines.append(f"| {link(rung)} | {' | '.join(cells)} | {shown(round(counts['barriers_per_block'], 1))} |")
        lines.append("")
    return lines


def problems():
    """What predictions are about that name no problem."""
    return ["| ladder | problem |", "|---|---|", *(f"| {ladder} | `{problem}` |" for ladder, problem in expect.PROBLEMS.items())]


def shown(value):
    """A number as a reader wants it; nothing where there is none."""
    return "" if value is None else f"{value:,}" if isinstance(value, int) else f"{value:,.6g}"
