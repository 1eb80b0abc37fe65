#!/usr/bin/env python3
"""Makes the pages on which a kernel can be watched (docs/watch.md): what the microscope has seen, played step by step.

    make_players.py --build BUILD --out DIR [NAME...]
    make_players.py --trace TRACE.json > PAGE.html

Each player of docs/players/players.json becomes DIR/NAME.html, one file that needs nothing else: its rung is compiled
for the microscope in BUILD, traced on a small problem (`convladder inspect --trace`), and put on a page with its
source, pictures of its arrays for readers without a script, and docs/players/player.js, which plays the trace. A player
with a `bug` is that of a copy in which tests/planted_bugs plants it, one with a `change` of a copy changed so.
The second form plays any trace, of a file of one's own, say.
"""
import argparse
import functools
import html
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
for folder in ("tools/inspect", "tools/extract"):
    sys.path.insert(0, str(ROOT / folder))
import extract  # noqa: E402
import planted_races  # noqa: E402
import prepare  # noqa: E402

FOLDER = ROOT / "docs" / "players"
MOST_BYTES = 1 << 20  # of a page
CELL = 8  # units of a picture
WIDEST = 64  # cells of a row, where the array does not say how long a row is
MOST_ELEMENTS = 40_000  # of an array that is drawn whole; of a larger one, the rows that were touched
MOST_WIDTH = 640  # of a picture, in pixels
AROUND = 4  # lines of source around those that touch memory
MOST_FRAMES = 4


# --- Tracing

def changed_copy(player, rungs, folder):
    """The source that stands in for the rung's, or None."""
    if "bug" in player:
        return planted_races.planted(planted_races.planted_bug(player["bug"])._replace(rung=player["rung"]), folder)
    if "change" not in player:
        return None
    change = player["change"]
    return planted_races.planted(planted_races.Bug(player["name"], player["rung"], change.get("file", rungs[player["rung"]]["source"]),
                                                   change["find"], change["replace"]), folder)


def traced(build, rungs, player):
    """The trace, and the texts of the files that it is about."""
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder).resolve()
        source = changed_copy(player, rungs, folder)
        library = prepare.library_of(build, rungs[player["rung"]], source)
        command = [build / "command/convladder", "inspect", player["rung"], *player["problem"].split(), "--trace", folder / "trace.json"]
        if "blocks" in player:
            command += ["--blocks", str(player["blocks"])]
        if source:
            command += ["--source", source]
        done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "CONVLADDER_INSPECTED": str(library)})
        wrong = "bug" in player  # a change may be one that costs time alone
        if not (folder / "trace.json").exists() or (done.returncode == 0) == wrong:
            raise SystemExit(f"make_players.py: {player['name']}: inspect ended with {done.returncode}: {done.stderr[-500:]}")
        trace = json.loads((folder / "trace.json").read_text())
        files = {line["file"] for kernel in trace["kernels"] for line in kernel["lines"] if line["file"]}
        texts = {file: (ROOT / file).read_text() for file in sorted(files) if (ROOT / file).is_file()}
        # What lies in the temporary folder is known by its path in the project.
        names = {file: name_in_project(file, folder, rungs[player["rung"]]["source"]) for file in texts}
        for kernel in trace["kernels"]:
            for line in kernel["lines"]:
                line["file"] = names.get(line["file"], line["file"])
        trace["races"] = [functools.reduce(lambda race, file: race.replace(file, names[file]), names, race) for race in trace["races"]]
        return trace, {names[file]: text for file, text in texts.items()}


def name_in_project(file, folder, source):
    path = pathlib.PurePosixPath(file)
    if not path.is_relative_to(folder):
        return file
    beside = path.relative_to(folder)
    return source if beside.name == pathlib.PurePosixPath(source).name else str(beside)


# --- What a page keeps of a trace

def compact_block(block):
    """Requests as triples (warp, pattern, first byte), interval by interval; what many of them share is a pattern."""
    patterns, intervals = {}, [[] for _ in range(block["intervals"])]
    for interval, warp, line, lanes, *way in block["requests"]:
        if isinstance(way[0], list):
            first, pattern = way[0][0], (line, lanes, tuple(byte - way[0][0] for byte in way[0]))
        else:
            first, pattern = way[0], (line, lanes, way[1])
        intervals[interval] += [warp, patterns.setdefault(pattern, len(patterns)), first]
    return {**{key: block[key] for key in ("kernel", "launch", "block", "landings")}, "intervals": intervals, "patterns": list(patterns)}


def starts_of(lanes, way):
    """Where each active lane of a request goes. @param way as in a trace: the first byte and a stride, or all bytes"""
    if isinstance(way[0], list):
        return way[0]
    active = [lane for lane in range(32) if lanes >> lane & 1]
    return [way[0] + way[1] * (lane - active[0]) for lane in active]


def bytes_of(trace, array, step):
    """Every `step`th byte of what requests of the trace ask for of an array."""
    found = set()
    for block in trace["blocks"]:
        lines = trace["kernels"][block["kernel"]]["lines"]
        for _, _, line, lanes, *way in block["requests"]:
            if lines[line]["array"] != array:
                continue
            for start in starts_of(lanes, way):
                found.update(range(start, start + lines[line]["width"], step))
    return found


def picture_of(trace, number, name, space):
    """How an array is drawn: which of its rows, of how many cells, and where each begins."""
    known = trace["arrays"].get(name, {})
    element = known.get("element_bytes", 4)
    extents = known.get("extents", [])
    columns, plane = 32, None  # rows of banks, or of a cache line
    if extents:
        columns, rest = extents[-1], list(extents[:-1])
        while len(extents) > 2 and rest and columns * rest[-1] <= 40:  # rows of a filter, side by side
            columns *= rest.pop()
        plane = rest[-1] if len(rest) > 1 else None
        if not rest and columns > WIDEST:
            columns, plane = WIDEST, None
    touched = {byte // element // columns for byte in bytes_of(trace, name, element)}
    elements = known.get("bytes", 0) // element
    rows = range(-(-elements // columns)) if extents and elements <= MOST_ELEMENTS else sorted(touched)
    tops, y, before = [], 0, None
    for row in rows:
        if before is not None and (row != before + 1 or (plane and row % plane == 0)):
            y += 4  # between planes, and where rows are left out
        tops.append(y)
        y, before = y + CELL, row
    return {"number": number, "space": space, "element": element, "columns": columns, "begins": known.get("begins", 0),
            "rows": list(rows), "tops": tops, "height": y}


def in_order(trace):
    """(array, space) of those that are drawn: what is only read, shared memory, what is written."""
    lines = [line for kernel in trace["kernels"] for line in kernel["lines"] if line["array"] and line["space"] != "constant"]
    written = {line["array"] for line in lines if line["op"] in ("store", "atomic")}
    spaces = {line["array"]: line["space"] for line in lines}
    return sorted(spaces.items(), key=lambda each: (each[1] == "shared" or 2 * (each[0] in written), each[0]))


def kept(trace, player, texts):
    """What the page's script reads."""
    files = list(texts)
    arrays, kernels = {}, []
    for name, space in in_order(trace):
        arrays[name] = picture_of(trace, len(arrays), name, space)
    for kernel in trace["kernels"]:
        lines = []
        for line in kernel["lines"]:
            lines.append({"file": files.index(line["file"]) if line["file"] in files else -1, "number": line["line"], "space": line["space"],
                          "op": line["op"], "width": line["width"], "array": line["array"]})
        kernels.append({"name": kernel["name"], "grid": kernel["grid"], "block": kernel["block"], "lines": lines})
    blocks = [compact_block(block) for block in sorted(trace["blocks"], key=lambda block: (block["launch"], block["block"])) if block["requests"]]
    names = [kernels[block["kernel"]]["name"] for block in blocks]
    return {"unit": player.get("unit", "request"), "begin": names.index(player["begin"]) if "begin" in player else 0, "arrays": arrays, "kernels": kernels, "blocks": blocks}


# --- The page

def listing(texts, kernels):
    """The source around the lines that touch memory."""
    parts = []
    for number, (file, text) in enumerate(texts.items()):
        touched = {line["number"] for kernel in kernels for line in kernel["lines"] if line["file"] == number}
        lines, items, before = text.split("\n"), [], None
        for at, line in enumerate(lines, 1):
            if not any(abs(at - other) <= AROUND for other in touched):
                continue
            if before is not None and at != before + 1:
                items.append("<li>…</li>")
            before = at
            jump = f' id="line-{number}-{at}" data-file="{number}" data-number="{at}" tabindex="0"' if at in touched else ""
            items.append(f'<li value="{at}"{jump}>{html.escape(line)}</li>')
        parts.append(f"<h2>{html.escape(file)}</h2>\n<div class=\"source\"><ol>" + "".join(items) + "</ol></div>")
    return "\n".join(parts)


KINDS = ("read", "flying", "written", "grown1", "grown2", "grown3", "load", "store")


def array_picture(array, name, paths=None):
    """@param paths by kind; None: the script will fill them in"""
    ground = "".join(f"M0 {top}h{CELL * array['columns'] - 1}v{CELL - 1}h-{CELL * array['columns'] - 1}z" for top in array["tops"])
    identifier = f' id="array-{array["number"]}"' if paths is None else ""
    paths = dict.fromkeys(KINDS, "") if paths is None else paths
    drawn = "".join(f'<path class="{kind}" d="{path}"/>' for kind, path in paths.items())
    width = array["columns"] * CELL
    return (f'<svg{identifier} viewBox="0 0 {width} {max(array["height"], CELL)}" width="{min(width, MOST_WIDTH)}" role="img" aria-label="{html.escape(name)}">'
            f'<path class="ground" d="{ground}"/>{drawn}</svg>')


def caption(name, array):
    what = "rows of 32 banks" if array["space"] == "shared" else f"rows of {array['columns']}"
    return f"<figcaption><b>{html.escape(name)}</b>, {array['space']} memory, {what}</figcaption>"


def frames(trace, page):
    """Still pictures of the block that is shown first: what was read and written up to some of its barriers."""
    block = page["blocks"][page["begin"]]
    original = next(one for one in trace["blocks"] if (one["launch"], one["block"]) == (block["launch"], block["block"]))
    ends = [end for end, requests in enumerate(block["intervals"]) if requests]
    chosen = ends if len(ends) <= MOST_FRAMES else [*ends[:2], ends[len(ends) // 2], ends[-1]]
    lines = page["kernels"][block["kernel"]]["lines"]
    parts = []
    for end in chosen:
        read, written = {}, {}
        for interval, _, line, lanes, *way in original["requests"]:
            of, array = lines[line], page["arrays"].get(lines[line]["array"])
            if interval > end or array is None:
                continue
            loads = of["op"] == "load" or (of["op"] == "async" and of["space"] == "global")
            cells = (read if loads else written).setdefault(of["array"], set())
            for start in starts_of(lanes, way):
                cells.update(range(start // array["element"], (start + of["width"] - 1) // array["element"] + 1))
        pictures = []
        for name in sorted({*read, *written}):
            array = page["arrays"][name]
            at = {row: top for row, top in zip(array["rows"], array["tops"])}
            paths = {}
            for kind, cells in (("read", read.get(name, set()) - written.get(name, set())), ("written", written.get(name, set()))):
                paths[kind] = "".join(f"M{cell % array['columns'] * CELL} {at[cell // array['columns']]}h7v7h-7z" for cell in sorted(cells))
            counts = f"{len(read.get(name, ()))} elements read, {len(written.get(name, ()))} written"
            pictures.append(f"<figure>{array_picture(array, f'{name}: {counts}', paths)}<figcaption><b>{html.escape(name)}</b>: {counts}</figcaption></figure>")
        when = f"Up to barrier {end + 1}" if end + 1 < len(block["intervals"]) else "At the end"
        parts.append(f"<h2>{when}</h2>\n<div class=\"frames\">{''.join(pictures)}</div>")
    kernel = page["kernels"][block["kernel"]]["name"]
    return f"<p>Elements that block {block['block']} of {html.escape(kernel)} has read and written so far.</p>" + "\n".join(parts)


KEY = (("read", "read"), ("flying", "asynchronous copy in flight"), ("written", "written"), ("grown2", "partial sum updated"), ("load", "loaded by this step"), ("store", "stored by this step"))


def page_of(player, trace, texts, others):
    """@param others by name, on a site that has them all; None: the page stands for itself"""
    page = kept(trace, player, texts)
    key = "".join(f'<li><svg width="10" height="10" viewBox="-1 -1 9 9"><path class="{kind}" d="M0 0h7v7h-7z"/></svg>{what}</li>' for kind, what in KEY)
    arrays = "".join(f"<figure>{array_picture(array, name)}{caption(name, array)}</figure>" for name, array in page["arrays"].items())
    races = "".join(f'<p class="bad">{html.escape(race)}</p>' for race in trace["races"][:3])
    home, links = "", ""
    if others is not None:
        home = '<p><a href="../watch.html">Kernels that can be watched</a></p>\n'
        beside = "".join(f' <a href="{name}.html">{html.escape(others[name]["title"])}</a>.' for name in player.get("beside", []))
        links = f' <a href="../{rung_page_name(player["rung"])}">The rung\'s page</a>.' + (" For comparison:" + beside if beside else "")
    problem = f"{html.escape(trace['problem'])}; recorded by the microscope from <code>{html.escape(player['rung'])}</code>"
    changed = "; " + html.escape(player["changed"]) if "changed" in player else ""
    words = "".join(f"<p>{html.escape(sentence)}</p>" for sentence in player["watch"])
    data = json.dumps(page, separators=(",", ":")).replace("</", "<\\/")
    script = (ROOT / "command/inspect/request_picture.js").read_text() + (FOLDER / "player.js").read_text()
    return f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{html.escape(player['title'])}</title>
<style>
{(FOLDER / "player.css").read_text()}</style></head><body>
{home}<h1>{html.escape(player['title'])}</h1>
<p>{problem}{changed}.{links}</p>
{words}{races}
<section id="player" hidden>
<div class="controls"><button id="back" aria-label="one step back">back</button><button id="next" aria-label="one step on">step</button><button id="play">play</button>
<label>a step is <select id="unit"><option value="request">a request</option><option value="interval">up to a barrier</option><option value="block">a block</option></select></label>
<select id="block" aria-label="block"></select><select id="warp" aria-label="warp"></select></div>
<p id="words" aria-live="polite"></p>
<svg id="timeline" role="img" aria-label="requests of each warp, barriers, asynchronous copies in flight"></svg>
<p>Each row is a warp, each tick a request: blue loads, orange stores, yellow asynchronous copies, red atomics. A vertical line is a barrier; bars below are copies on their way. Click to go there. Keys: left, right, home, end, space.</p>
<ul class="key">{key}</ul>
<div class="columns"><div class="arrays">{arrays}</div>
<div class="beside"><div id="request"></div>{listing(texts, page["kernels"])}</div></div>
</section>
<details id="stills" open><summary>Still pictures</summary>
{frames(trace, page)}
</details>
<script type="application/json" id="trace">{data}</script>
<script>
{script}</script>
</body></html>
"""


def own_page(trace):
    """Of a trace alone, whose files lie where it says."""
    files = {line["file"] for kernel in trace["kernels"] for line in kernel["lines"] if line["file"]}
    texts = {file: (ROOT / file).read_text() for file in sorted(files) if (ROOT / file).is_file()}
    return page_of({"title": trace["source"], "rung": trace["rung"], "watch": []}, trace, texts, None)


def rung_page_name(rung):
    """As Doxygen names the page rung_..."""
    return "rung_" + re.sub(r"\W", "_", rung) + ".html"


def read_players():
    players = json.loads((FOLDER / "players.json").read_text())
    return {player["name"]: player for player in players}


def main():
    parser = argparse.ArgumentParser(usage="make_players.py (--build BUILD --out DIR [NAME...] | --trace TRACE.json)")
    parser.add_argument("--build", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--trace", type=pathlib.Path)
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    if arguments.trace:
        print(own_page(json.loads(arguments.trace.read_text())), end="")
        return
    if not arguments.build or not arguments.out:
        parser.error("--build and --out, or --trace")
    players = read_players()
    rungs = {rung["rung"]: rung for rung in extract.table_of(arguments.build)}
    arguments.out.mkdir(parents=True, exist_ok=True)
    for name in arguments.names or players:
        trace, texts = traced(arguments.build.resolve(), rungs, players[name])
        text = page_of(players[name], trace, texts, players)
        if len(text.encode()) > MOST_BYTES:
            raise SystemExit(f"make_players.py: {name}: {len(text.encode())} bytes, more than {MOST_BYTES}: take a smaller problem")
        (arguments.out / f"{name}.html").write_text(text)


if __name__ == "__main__":
    main()
