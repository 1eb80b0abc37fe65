#!/usr/bin/env python3
"""Takes a profile of the microbenchmarks and of each CUDA rung, and keeps it in benchmarks/counters/.

    measure_counters.py PROFILED [NCU]

PROFILED is the program benchmarks/profiled of a build with nvcc, NCU the profiler (Nsight Compute) if it is not on
the path. The file is named after the GPU and the date. compare_counters.py holds it against the microscope.
"""
import csv
import io
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDER = ROOT / "benchmarks" / "counters"
MARKER = "next_run"
# What the microscope calls it, and the metrics whose sum it is (docs/microscope.md).
METRICS = {
    "global.load.requests": ["smsp__sass_inst_executed_op_global_ld.sum"],
    "global.store.requests": ["smsp__sass_inst_executed_op_global_st.sum"],
    "global.load.sectors": ["l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"],
    "global.store.sectors": ["l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum"],
    "global.atomic.requests": ["smsp__inst_executed_op_global_red.sum", "smsp__sass_inst_executed_op_global_atom.sum"],
    "global.atomic.sectors": ["l1tex__t_sectors_pipe_lsu_mem_global_op_red.sum",
                              "l1tex__t_sectors_pipe_lsu_mem_global_op_atom.sum"],
    "global.async.requests": ["smsp__inst_executed_op_ldgsts.sum"],
    "shared.load.requests": ["smsp__sass_inst_executed_op_shared_ld.sum"],
    "shared.store.requests": ["smsp__sass_inst_executed_op_shared_st.sum"],
    "shared.load.wavefronts": ["l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"],
    "shared.store.wavefronts": ["l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum"],
    "matrix.load.requests": ["smsp__sass_inst_executed_op_ldsm.sum"],
    "theoretical.global.sectors": ["memory_l2_theoretical_sectors_global"],
    "theoretical.shared.wavefronts": ["memory_l1_wavefronts_shared"],
    "theoretical.shared.wavefronts_ideal": ["memory_l1_wavefronts_shared_ideal"],
    "local.load.requests": ["smsp__inst_executed_op_local_ld.sum"],
    "local.store.requests": ["smsp__inst_executed_op_local_st.sum"],
}


def base_name(kernel):
    """Of "void convladder::gpu::(anonymous namespace)::copy<float>(const T1 *, ...)": copy."""
    name = re.sub(r"\(anonymous namespace\)|<unnamed>", "", kernel)
    return re.match(r"[\w:~ ]*", name.split("<")[0].split("(")[0]).group().split("::")[-1].split()[-1]


def number(row, metric):
    value = (row.get(metric) or "").replace(",", "")
    return float(value) if re.fullmatch(r"\d+(\.\d+)?", value) else None


def counters_of(row):
    """The counters that this GPU has."""
    found = {}
    for counter, metrics in METRICS.items():
        values = [number(row, metric) for metric in metrics]
        values = [value for value in values if value is not None]
        if values:
            found[counter] = int(sum(values))
    return found


def profiled(program, ncu):
    """The record that the program prints, and the profiler's rows, run by run."""
    command = [ncu, "--csv", "--page", "raw", "--print-units", "base", "--clock-control", "none", "--metrics",
               ",".join(metric for metrics in METRICS.values() for metric in metrics),
               program, str(FOLDER / "problems.txt")]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    lines = done.stdout.splitlines()
    start = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), None)
    json_from = next((i for i, line in enumerate(lines) if line == "{"), None)
    json_to = next((i for i, line in enumerate(lines) if line == "}"), None)
    if done.returncode != 0 or start is None or json_from is None:
        sys.exit(f"measure_counters.py: {' '.join(command)} failed:\n{done.stdout[-4000:]}")
    record = json.loads("\n".join(lines[json_from:json_to + 1]))
    runs = []
    for row in list(csv.DictReader(io.StringIO("\n".join(lines[start:]))))[1:]:  # the first has the units
        if base_name(row["Kernel Name"]) == MARKER:
            runs.append([])
        elif runs:
            runs[-1].append(row)
    return record, runs


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    record, runs = profiled(sys.argv[1], sys.argv[2] if len(sys.argv) == 3 else "ncu")
    if len(record["runs"]) != len(runs):
        sys.exit(f"measure_counters.py: {len(record['runs'])} runs, but {len(runs)} in the profile")
    for run, rows in zip(record["runs"], runs):
        kernels = run["kernels"] = {}
        for row in rows:
            kernel = kernels.setdefault(base_name(row["Kernel Name"]), {"launches": 0})
            kernel["launches"] += 1
            for counter, value in counters_of(row).items():
                kernel[counter] = kernel.get(counter, 0) + value
    name = f"{record['gpu'].lower().replace(' ', '-')}-{record['date']}.json"
    (FOLDER / name).write_text(json.dumps(record, indent=1) + "\n")
    print(FOLDER / name)


if __name__ == "__main__":
    main()
