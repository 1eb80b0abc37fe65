"""The committed runs of tools/measure_traffic.py as tables for the page of the ladder tile_map."""

import benchmark_run


def megabytes(count):
    return "" if count is None else f"{count / 1e6:.0f}"


def tables(run, link, hashes):
    """A table for each problem and rung; rungs with a map of their own stand with the rung before."""
    lines = [
        f"{run['gpu']}, driver {run['driver']}, CUDA {run['toolkit']}, {run['date']}, commit {run['commit']}.",
        "",
    ]
    stale = [rung for rung, then in run["source_hashes"].items() if hashes.get(rung) != then]
    if stale:
        lines += ["**Stale**, because the rungs have changed: " + ", ".join(link(r) if r in hashes else r for r in stale) + ".", ""]
    rows = run["rows"]
    several = {row["rung"] for row in rows if row["map"] == "row_major"}
    for problem in dict.fromkeys(row["problem"] for row in rows):
        of_problem = [row for row in rows if row["problem"] == problem]
        for rung in dict.fromkeys(row["rung"] for row in of_problem if row["rung"] in several):
            mine = [row for row in of_problem if row["rung"] == rung]
            if rung.endswith("/cp_async"):
                mine += [row for row in of_problem if row["rung"] not in several]
            least = mine[0]["predicted"]
            lines += [
                f"**{problem}**, {link(rung)}: inputs of {megabytes(least['input_bytes'])} MB, an output of"
                f" {megabytes(least['output_bytes'])} MB.",
                "",
                "| map | DRAM to L2, predicted | measured | L2 to DRAM | L2 to SMs, predicted | measured"
                " | L2 hit rate | time |",
                "|---|---:|---:|---:|---:|---:|---:|---:|",
            ]
            best = min(row["measured"]["time_us"] for row in mine)
            for row in mine:
                now, then = row["measured"], row["predicted"]
                read, hit = now.get("l2_read_bytes"), now.get("l2_read_hit_bytes")
                share = f"{100 * hit / read:.0f} %" if read and hit is not None else ""
                own = "" if row["rung"] in several else f" ({link(row['rung'], benchmark_run.short_name(row['rung']))})"
                mark = "**" if now["time_us"] == best else ""
                lines.append(
                    f"| `{row['map']}`{own} | {megabytes(then['dram_read_bytes'])} MB"
                    f" | {megabytes(now.get('dram_read_bytes'))} MB | {megabytes(now.get('dram_write_bytes'))} MB"
                    f" | {megabytes(then['l2_read_bytes'])} MB | {megabytes(read)} MB | {share}"
                    f" | {mark}{benchmark_run.time_text(now['time_us'])}{mark} |"
                )
            lines.append("")
    return lines
