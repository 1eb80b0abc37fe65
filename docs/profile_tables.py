"""The microscope's counts beside a profiler's (benchmarks/counters/), for the page of the microscope."""

import json


def beside_profile(root):
    """Nothing, if they have not been compared."""
    file = root / "benchmarks/counters/comparison.json"
    if not file.is_file():
        return []
    result = json.loads(file.read_text())
    record = json.loads((file.parent / result["profile"]).read_text())
    micro = [pair for counters in result["microbenchmarks"].values() for pair in counters.values()]
    equal = sum(ours == theirs for ours, theirs in micro)
    rows = {}
    for rung, seen in result["rungs"].items():
        for counter, (ours, theirs) in seen["counters"].items():
            rows.setdefault(counter, []).append((rung, ours, theirs))
    lines = [f"On an {record['gpu']} (driver {record['driver']}, toolkit {record['toolkit']}, {record['date']}), "
             f"{equal} of {len(micro)} counters of the {len(result['microbenchmarks'])} microbenchmarks are equal. "
             f"Of the {len(result['rungs'])} rungs, each on one problem:", "",
             f"| counter | rungs | within {result['tolerance']:.0%} | further away |", "|---|---:|---:|---|"]
    for counter, seen in rows.items():
        far = sorted((abs(ours - theirs) / max(ours, theirs), rung, ours, theirs) for rung, ours, theirs in seen
                     if abs(ours - theirs) > result["tolerance"] * max(ours, theirs))
        examples = [f"{rung.split('/', 1)[1]} {ours:,} / {theirs:,}" for _, rung, ours, theirs in reversed(far[-3:])]
        lines.append(f"| {counter} | {len(seen)} | {len(seen) - len(far)} | {'; '.join(examples)} |")
    return lines
