"""The committed run of benchmarks/networks as tables for the page of benchmarks."""

from benchmark_run import time_text

WAYS = {
    "convladder": "rungs",
    "spconv": "spconv, with bias in each convolution, and ReLU as a separate operation",
    "spconv, fused": "spconv, with bias and ReLU in each convolution, as in ConvLadder",
    "spconv, modules": "spconv, with bias and ReLU as separate operations, as in OpenPCDet",
}


def ways_table(of_ways, what):
    """A row for each way. what: it computes, in words"""
    lines = [f"| {what} | time from call to result, median | quartiles | kernels, copies and fills only |", "|---|---:|---:|---:|"]
    for name, words in WAYS.items():
        if name not in of_ways:
            continue
        one = of_ways[name]
        quartiles = " to ".join(time_text(us) for us in one["quartiles_us"])
        on_gpu = time_text(one["gpu_us"]) if "gpu_us" in one else ""
        lines.append(f"| {words} | {time_text(one['median_us'])} | {quartiles} | {on_gpu} |")
    return [*lines, ""]


def tables(run, link, stale):
    """Times of the whole network, then of each layer. stale: the rungs that have changed since"""
    rungs = [link(rung) + (" (stale)" if rung in stale else "") for rung in run["rungs"]]
    lines = [
        f"{run['network']}, {run['dtype']}, {run['sites']:,} sites of the sweep, on {run['gpu']},"
        f" {run['date']}, commit {run['commit']}; spconv {run.get('spconv version', 'was not timed')}."
        f" Rungs: {', '.join(rungs)}.",
        "",
    ]
    lines += ways_table(run, "forward")
    if "forward and backward" in run:
        lines += ways_table(run["forward and backward"], "forward, and all gradients")
    lines += [
        "Each convolution separately: the host waits for each, so the sum exceeds the total above. The first convolution on"
        " new sites includes their rulebook:",
        "",
        "| convolution | rows | median |",
        "|---|---:|---:|",
    ]
    for layer in run["layers"]:
        lines.append(f"| {layer['layer']} | {layer['outputs']:,} | {time_text(layer['median_us'])} |")
    return lines
