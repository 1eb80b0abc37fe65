#!/usr/bin/env python3
"""Measures what rungs read and write under each tile map, and keeps it in benchmarks/traffic/.

    measure_traffic.py TRAFFIC [NCU]

TRAFFIC is the program benchmarks/traffic of a build with nvcc, NCU the profiler (Nsight Compute) if it is
not on the path. Beside each measurement stands what the wave simulator predicts; the file is named after the
GPU and the date, and the page of the ladder tile_map shows the newest. Some 100 kernels, half a minute.
"""

import csv
import io
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Few enough for a few passes over each kernel.
METRICS = {
    "time_us": ("gpu__time_duration.sum", 1e-3),
    "dram_read_bytes": ("dram__bytes_read.sum", 1),
    "dram_write_bytes": ("dram__bytes_write.sum", 1),
    "l2_read_bytes": ("lts__t_sectors_srcunit_tex_op_read.sum", 32),
    "l2_write_bytes": ("lts__t_sectors_srcunit_tex_op_write.sum", 32),
    "l2_read_hit_bytes": ("lts__t_sectors_srcunit_tex_op_read_lookup_hit.sum", 32),
    "waves": ("launch__waves_per_multiprocessor", 1),
}


def profiled(traffic, ncu, kernels):
    """A dictionary of numbers for each run, in their order."""
    command = [ncu, "--csv", "--page", "raw", "--print-units", "base", "--clock-control", "none"]
    command += ["--kernel-name", "regex:^(" + "|".join(kernels) + ")$"]
    command += ["--metrics", ",".join(metric for metric, _ in METRICS.values()), traffic, "run"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    lines = done.stdout.splitlines()
    start = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), None)
    if done.returncode != 0 or start is None:
        sys.exit(f"measure_traffic.py: {' '.join(command)} failed:\n{done.stdout}")
    rows = list(csv.DictReader(io.StringIO("\n".join(lines[start:]))))[1:]  # the first has the units
    # A metric that this GPU does not know stays out.
    found = []
    for row in rows:
        name = re.search(r"\b(" + "|".join(kernels) + r")\b", row["Kernel Name"])
        numbers = {"kernel": name.group(1) if name else row["Kernel Name"]}
        for name, (metric, unit) in METRICS.items():
            value = (row.get(metric) or "").replace(",", "")
            if value.replace(".", "", 1).isdigit():
                numbers[name] = float(f"{float(value) * unit:.6g}")
        found.append(numbers)
    return found


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    traffic = sys.argv[1]
    ncu = sys.argv[2] if len(sys.argv) == 3 else "ncu"
    record = json.loads(subprocess.run([traffic], check=True, stdout=subprocess.PIPE, text=True).stdout)
    kernels = list(dict.fromkeys(record.pop("kernels")))
    measured = profiled(traffic, ncu, kernels)
    if len(measured) != len(record["rows"]):
        sys.exit(f"measure_traffic.py: {len(record['rows'])} runs, but {len(measured)} profiles")
    for row, numbers in zip(record["rows"], measured):
        kernel = numbers.pop("kernel")
        if kernel != row["kernel"]:
            sys.exit(f"measure_traffic.py: a profile of {kernel} where {row['kernel']} ran")
        row["measured"] = numbers
    folder = ROOT / "benchmarks" / "traffic"
    folder.mkdir(exist_ok=True)
    name = f"{record['gpu'].lower().replace(' ', '-')}-{record['date']}.json"
    (folder / name).write_text(json.dumps(record, indent=1) + "\n")
    print(folder / name)


if __name__ == "__main__":
    main()
