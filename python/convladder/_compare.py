"""Compares all rungs of a ladder on one call."""
import dataclasses
import html
import typing

from . import _core
from ._arguments import as_called, refused, shown, words
from ._run import PLACES, Call, full_name, in_memory, _table
from ._tensors import to_host


@dataclasses.dataclass(frozen=True)
class Row:
    """The result of a rung."""

    rung: str
    where: str
    status: str  # "ran" or "declined"
    max_error: typing.Optional[float]  # the largest error of any output
    milliseconds: typing.Optional[float]  # host clock
    reason: str = ""  # why it declined, or where it differs
    verdict: typing.Optional[str] = None  # if it ran: "agrees" or "differs"
    remark: str = ""  # "roundings add up" if it agrees only within the worst-case bound


class Table(list):
    """Rows, the first rung of the ladder first. It is printed as a table, also in notebooks."""

    HEAD = ("rung", "where", "result", "max error", "ms")

    def cells(self):
        for row in self:
            numbers = ("", "") if row.max_error is None else (f"{row.max_error:.2g}", f"{row.milliseconds:.3g}")
            words = ": ".join(word for word in (row.verdict or row.status, row.reason or row.remark) if word)
            yield (row.rung, row.where, words, *numbers)

    def __str__(self):
        lines = [self.HEAD, *self.cells()]
        widths = [max(map(len, column)) for column in zip(*lines)]
        return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in lines)

    def _repr_html_(self):
        def line(cells, tag):
            return "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells) + "</tr>"
        return "<table>" + line(self.HEAD, "th") + "".join(line(cells, "td") for cells in self.cells()) + "</table>"


def _comparison(call):
    with as_called(call.names, call.sizes):
        return _core.Comparison(call.ladder, call.problem, call.arrays, call.rulebook and call.rulebook._core)


def compare(function, *arguments, rungs=None, where=None, **options):
    """Runs all rungs on the same arguments: compare(convladder.conv2d, x, w, pad=1).

    rungs: a name or a list of names; default all. where: a place or a list of places; default all that are available.
    Each result is compared with the definition in double precision, like in the command `compare`. Tensors on a GPU
    are copied to the host: the function is for comparisons, not for timing.
    """
    if not hasattr(function, "prepare"):
        raise refused("function", function, "it must be a function of this module, such as convladder.conv2d")
    call: Call = in_memory(function.prepare(*arguments, **options))
    call = dataclasses.replace(call, arrays={name: to_host(array) for name, array in call.arrays.items()})
    places = words("where", PLACES if where is None else where)
    for place in places:
        if place not in PLACES:
            raise _core.BadInput(f"where = {place!r}: it must be one of {', '.join(PLACES)}")
    wanted = None if rungs is None else words("rungs", rungs)
    if wanted is not None:
        with as_called({"rung": "rungs"}):
            wanted = {full_name(call.ladder, name) for name in wanted}
    table, comparison = Table(), None
    for row in _table():
        if row["ladder"] != call.ladder or (wanted is not None and row["name"] not in wanted):
            continue
        for place in (place for place in row["where"] if place in places):
            comparison = comparison or _comparison(call)
            found = comparison.run(row["name"], place)
            status = found["status"] if found["status"] == "declined" else "ran"
            numbers = (found["max_error"], found["milliseconds"]) if found["ran"] else (None, None)
            table.append(Row(row["name"], place, status, *numbers, found["reason"],
                             None if status == "declined" else found["status"], found["remark"]))
    if not table:
        raise _core.BadInput(f"rungs = {shown(rungs)}: none of them runs in {', '.join(places)} on this computer")
    return table
