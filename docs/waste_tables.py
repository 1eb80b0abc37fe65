"""The committed run of benchmarks/tile_waste.cpp as a picture and tables for the page of the ladder sparse_conv."""

from draw_pictures import Picture

NAMES = {
    "random": "in no order",
    "coordinates": "by coordinates",
    "Morton": "along a Morton curve",
    "sorted": "by mask",
    "split": "by mask, in two halves",
    "lists": "lists of rows",
}
COLOURS = {
    "random": "var(--line)",
    "coordinates": "var(--x)",
    "Morton": "var(--col)",
    "sorted": "var(--w)",
    "split": "var(--y)",
    "lists": "var(--hot)",
}
# The layers that are benchmark problems' sites, too.
LAYERS = {"sweep-64-subm3": "sweep", "large-64-subm3": "large sweep"}
# Of rungs of sparse_conv with 64 channels: the order of their rows, and how many execute a tap together.
TOGETHER = {
    "implicit_gemm": ("coordinates", 32),
    "implicit_gemm_sorted": ("sorted", 32),
    "implicit_gemm_split_masks": ("split", 32),
    "implicit_gemm_cp_async": ("split", 16),
    "implicit_gemm_mma": ("sorted", 32),
    "implicit_gemm_wgmma": ("sorted", 128),
    "implicit_gemm_warp_specialized": ("sorted", 128),
}


def curves(layer):
    """By order: executed over useful for each height of a tile."""
    return {
        row["order"]: {int(tile): count / layer["pairs"] for tile, count in row.items() if tile != "order"}
        for row in layer["executed"]
    }


def picture(run):
    """Executed over useful against the tile's height, for the first layer of the run."""
    p = Picture(760, 340)
    layer = run["layers"][0]
    by_order = curves(layer)
    tiles = list(next(iter(by_order.values())))
    left, top, width, height, most = 60, 40, 460, 250, 4

    def place(i, ratio):
        return left + width * i / (len(tiles) - 1), top + height * (most - ratio) / (most - 1)

    title = f"executed rows x taps / pairs: {layer['rows']:,} rows, {layer['pairs']:,} pairs"
    p.text(left, 24, title, "title", "start")
    for ratio in range(1, most + 1):
        p.line([place(0, ratio), place(len(tiles) - 1, ratio)], "var(--line)", 1)
        p.text(left - 10, place(0, ratio)[1] + 5, ratio, "small", "end")
    for i, tile in enumerate(tiles):
        p.text(place(i, 1)[0], top + height + 20, tile, "small")
    p.text(left + width / 2, top + height + 40, "rows per tile", "small")
    # Names stand at the ends of their curves, but not on top of each other.
    last = -100
    for order in sorted(by_order, key=lambda order: -by_order[order][tiles[-1]]):
        p.line([place(i, by_order[order][tile]) for i, tile in enumerate(tiles)], COLOURS[order], 3)
        last = max(last + 18, place(0, by_order[order][tiles[-1]])[1] + 5)
        p.text(left + width + 12, last, NAMES[order], "note", "start")
    return p


def tables(run):
    """The picture, and a row for each layer and order."""
    lines = ["![Executed / useful taps, by the rows per tile](tile_waste.svg)", ""]
    tiles = list(curves(run["layers"][0])["random"])
    lines += [
        "| layer | order of the rows | " + " | ".join(f"{tile} rows" for tile in tiles) + " |",
        "|---|---|" + "---:|" * len(tiles),
    ]
    for layer in run["layers"]:
        density = layer["pairs"] / layer["rows"]
        name = f"{layer['name']}: {layer['rows']:,} rows, {density:.1f} pairs each"
        for order, ratios in curves(layer).items():
            cells = " | ".join(f"{ratios[tile]:.2f}" for tile in tiles)
            lines.append(f"| {name} | {NAMES[order]} | {cells} |")
            name = ""
    lines += [
        "",
        f"`benchmarks/tile_waste.cpp`, {run['date']}, commit {run['commit']}; simulated sweeps. *Lists of rows*: a tile"
        f" of rows in the order of their coordinates executes each tap only for the rows that have it, in groups of {run['grain']}.",
        "",
    ]
    return lines


def executed_rates(waste, run, link):
    """Useful and executed TFLOP/s of the rungs TOGETHER, for the rows of a run of the benchmarks."""
    lines = [
        "| problem | rung | type | order of the rows | executed / useful | useful TFLOP/s | executed TFLOP/s |",
        "|---|---|---|---|---:|---:|---:|",
    ]
    layers = {layer["name"]: curves(layer) for layer in waste["layers"]}
    for problem, layer in LAYERS.items():
        for name, (order, rows) in TOGETHER.items():
            for row in run["rows"]:
                rung = f"cuda_optimized/sparse_conv/{name}"
                if (row["rung"], row["problem"], row["l2"]) != (rung, problem, "warm") or not row["tflops"]:
                    continue
                ratio = layers[layer][order][rows]
                lines.append(
                    f"| {problem} | {link(rung)} | {row['dtype']} | {rows}, {NAMES[order]} | {ratio:.2f}"
                    f" | {row['tflops']:.1f} | {row['tflops'] * ratio:.1f} |"
                )
    return lines
