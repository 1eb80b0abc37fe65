#!/usr/bin/env python3
"""Times spconv (https://github.com/traveller59/spconv) on the benchmark problems of the sparse ladders.

    ./ladder bench --export-sites SITES
    benchmark_spconv.py time SITES TIMES.json [PROBLEM...]
    benchmark_spconv.py add TIMES.json RUN.json

`time` needs a GPU, PyTorch and spconv 2.3 (pip install spconv-cu126); it writes what it has timed to TIMES.json.
PROBLEM chooses among ids, as a shell chooses files: 'sweep-64-*'. `add` needs none of them: it puts the times into
RUN.json, a file of `./ladder bench --json` of the same kind of GPU, as baselines of the rows that they belong to.

Where there is no network, unpack the wheels of spconv-cu126, cumm-cu126, pccm, ccimport, pybind11, fire, termcolor,
lark, portalocker, sympy, mpmath and ninja into one folder, and put that on PYTHONPATH.

A time is the sum of the durations of all kernels, copies and fills of a call in PyTorch's profiler: the time if the
GPU never waited for the host. The median on the host's clock, from the call until the GPU has finished, is listed
under the same name with ", host clock".
- rulebook: get_indice_pairs() for pairs, in no order; get_indice_pairs_implicit_gemm() for tables, without the data
  that only training needs. spconv numbers the outputs of a strided rulebook in no order, and checks no input.
- sparse_conv: each of its algorithms after its own tuning, with a given rulebook. bf16 is omitted, which spconv 2.3
  does not support.
- poolings and sparse_to_dense are omitted.
- gradients: spconv computes both in one call, so its time is a limit for either row, and not a baseline.

"""

import fnmatch
import json
import os
import pathlib
import subprocess
import sys
import time

HOST = ", host clock"
BOTH = ", dgrad and wgrad"


def median(numbers):
    return sorted(numbers)[len(numbers) // 2]


class Timer:
    """Times of calls. Imports PyTorch, which only `time` needs."""

    def __init__(self):
        import torch
        from torch.profiler import ProfilerActivity, profile

        self.torch, self.profile, self.activities = torch, profile, [ProfilerActivity.CUDA, ProfilerActivity.CPU]

    def host_us(self, call, runs):
        times = []
        for _ in range(runs):
            self.torch.cuda.synchronize()
            start = time.perf_counter()
            call()
            self.torch.cuda.synchronize()
            times.append((time.perf_counter() - start) * 1e6)
        return median(times)

    def gpu_us(self, call, runs):
        with self.profile(activities=self.activities) as profiler:
            for _ in range(runs):
                call()
            self.torch.cuda.synchronize()
        on_gpu = self.torch.autograd.DeviceType.CUDA
        return sum(e.time_range.elapsed_us() for e in profiler.events() if e.device_type == on_gpu) / runs

    def __call__(self, call):
        """(microseconds on the GPU, on the host's clock)"""
        for _ in range(3):
            call()  # tunes, and loads code
        once = self.host_us(call, 3)
        runs = max(3, min(20, int(2e5 / once)))
        return self.gpu_us(call, max(2, runs // 2)), self.host_us(call, runs)


class Spconv:
    def __init__(self, folder, tf32):
        import numpy
        import spconv
        import spconv.constants
        import torch

        # Before the first call: the tuner caches its results.
        spconv.constants.SPCONV_ALLOW_TF32 = tf32
        torch.backends.cuda.matmul.allow_tf32 = tf32
        import spconv.pytorch
        from cumm import tensorview
        from spconv.core import ConvAlgo
        from spconv.pytorch import functional, ops
        from spconv.tools import CUDAKernelTimer

        self.np, self.torch, self.sp, self.ops, self.functional = numpy, torch, spconv.pytorch, ops, functional
        self.activation = tensorview.gemm.Activation
        self.version = spconv.__version__
        self.tf32, self.folder, self.timer = tf32, folder, Timer()
        self.untimed = CUDAKernelTimer(False)
        self.native = ConvAlgo.Native
        self.masked = {
            "spconv implicit_gemm": ConvAlgo.MaskImplicitGemm,
            "spconv implicit_gemm split": ConvAlgo.MaskSplitImplicitGemm,
        }
        self.coords = (None, None)

    def sites(self, problem):
        name = problem["sites"]
        if self.coords[0] != name:
            self.coords = (name, self.torch.from_numpy(self.np.load(self.folder / f"{name}.npy")).cuda())
        return self.coords[1]

    def window(self, problem):
        """The arguments of both functions that make rulebooks, from the kernel on."""
        axes = len(problem["shape"])
        subm = problem["mode"] == "subm"
        return [problem["kernel"], problem["stride"], problem["pad"], problem["dilation"], [0] * axes, subm, False]

    def pairs(self, problem):
        return self.ops.get_indice_pairs(
            self.sites(problem), problem["batch"], problem["shape"], self.native, *self.window(problem)
        )

    def tables(self, problem, algorithm, training, sort):
        return self.ops.get_indice_pairs_implicit_gemm(
            self.sites(problem), problem["batch"], problem["shape"], algorithm, *self.window(problem), training,
            do_sort=sort,
        )

    def require_outputs(self, problem, found):
        if found != problem.get("outputs", found):
            raise RuntimeError(f"spconv finds {found} outputs, the rulebook has {problem['outputs']}")

    def rulebook(self, problem):
        """{name: (gpu, host)} of the form that the problem asks for."""
        form = problem["form"]
        if problem["mode"] not in ("subm", "strided"):
            return {}  # an inverse convolution has no rulebook of its own
        if form == "pairs":
            self.require_outputs(problem, len(self.pairs(problem)[0]))
            return {"spconv native": self.timer(lambda: self.pairs(problem))}
        name = "spconv implicit_gemm split" if form == "split" else "spconv implicit_gemm"
        call = lambda: self.tables(problem, self.masked[name], False, form != "table")
        self.require_outputs(problem, len(call()[0]))
        return {name: self.timer(call)}

    def layer(self, problem, dtype):
        """features, weights and bias"""
        torch = self.torch
        window = [problem["kernel"], problem["stride"], problem["pad"], problem["dilation"]]
        kind = self.sp.SubMConv3d if problem["mode"] == "subm" else self.sp.SparseConv3d
        net = kind(problem["cin"], problem["cout"], *window, bias=False).to("cuda", dtype)
        features = torch.randn(len(self.sites(problem)), problem["cin"], device="cuda").to(dtype)
        bias = torch.randn(problem["cout"], device="cuda").to(dtype) if problem["bias"] else None
        return features, net.weight.detach(), bias

    def forwards(self, problem, features, weights, bias, training):
        """{name: call} for each algorithm; the rulebooks are made here."""
        activation = self.activation.ReLU if problem["activation"] == "relu" else self.activation.None_
        subm = problem["mode"] == "subm"
        calls = {}
        outputs, pairs, counts = self.pairs(problem)
        self.require_outputs(problem, len(outputs))
        native = self.functional.indice_subm_conv if subm else self.functional.indice_conv
        calls["spconv native"] = lambda rows=len(outputs): native(
            features, weights, pairs, counts, rows, self.native, self.untimed, bias, 0.0, 0.0, activation
        )
        for name, algorithm in self.masked.items():
            made = self.tables(problem, algorithm, True, True)
            calls[name] = lambda made=made: self.functional.implicit_gemm(
                features, weights, *made[2:8], len(made[0]), made[8], training, subm, self.untimed, None, bias, 0.0, 0.0,
                activation,
            )
        return calls

    def timed(self, calls):
        """The failure of one algorithm does not affect the others."""
        times = {}
        for name, call in calls.items():
            try:
                times[name] = self.timer(call)
            except Exception as error:
                print(f"{name}: {str(error)[:200]}", file=sys.stderr)
        return times

    def forward(self, problem, dtype):
        with self.torch.no_grad():
            return self.timed(self.forwards(problem, *self.layer(problem, dtype), False))

    def backward(self, problem, dtype):
        torch = self.torch
        features, weights, bias = self.layer(problem, dtype)
        features.requires_grad_()
        weights.requires_grad_()
        calls = {}
        for name, forward in self.forwards(problem, features, weights, bias, True).items():
            try:
                y = forward()
            except Exception as error:
                print(f"{name}: {str(error)[:200]}", file=sys.stderr)
                continue
            dy = torch.randn_like(y)
            calls[name + BOTH] = lambda y=y, dy=dy: torch.autograd.grad(y, [features, weights], dy, retain_graph=True)
        return self.timed(calls)

    def run(self, problems):
        """One entry for each problem and dtype."""
        torch = self.torch
        types = {"tf32": torch.float32} if self.tf32 else {"fp32": torch.float32, "fp16": torch.float16}
        done = {}  # both gradients' rows have the same time
        for problem in problems:
            if problem["ladder"] == "rulebook":
                jobs = {} if self.tf32 else {"int32": lambda: self.rulebook(problem)}
            elif problem["ladder"] == "sparse_conv":
                jobs = {name: lambda dtype=dtype: self.forward(problem, dtype) for name, dtype in types.items()}
            elif problem["ladder"] in ("sparse_dgrad", "sparse_wgrad"):
                jobs = {name: lambda dtype=dtype: self.backward(problem, dtype) for name, dtype in types.items()}
            else:
                jobs = {}
            for dtype, job in jobs.items():
                key = (problem["ladder"].removesuffix("dgrad").removesuffix("wgrad"), problem["id"], dtype)
                try:
                    if key not in done:
                        done[key] = job()
                except Exception as error:
                    print(f"{key}: {str(error)[:300]}", file=sys.stderr)
                    done[key] = {}
                times = {}
                for name, (gpu, host) in done[key].items():
                    times[name], times[name + HOST] = round(gpu, 2), round(host, 2)
                print(problem["ladder"], problem["id"], dtype, times, file=sys.stderr, flush=True)
                yield {"ladder": problem["ladder"], "problem": problem["id"], "dtype": dtype, "times": times}
            torch.cuda.empty_cache()


def time_problems(folder, out, patterns):
    problems = json.loads((folder / "problems.json").read_text())
    if patterns:
        problems = [p for p in problems if any(fnmatch.fnmatch(p["id"], pattern) for pattern in patterns)]
    # TF32 is settled at a process's first call.
    if "SPCONV_TF32" not in os.environ:
        parts = []
        for tf32 in ("0", "1"):
            part = out.with_name(f"{out.name}.{tf32}")
            command = [sys.executable, __file__, "time", str(folder), str(part), *patterns]
            done = subprocess.run(command, env={**os.environ, "SPCONV_TF32": tf32})
            # A part that was aborted has the times measured until then.
            if done.returncode != 0:
                print(f"benchmark_spconv.py: TF32={tf32} ended with {done.returncode}", file=sys.stderr)
            if part.exists():
                parts.append(json.loads(part.read_text()))
                part.unlink()
        if not parts:
            sys.exit("benchmark_spconv.py: nothing was timed")
        out.write_text(json.dumps({**parts[0], "rows": [row for part in parts for row in part["rows"]]}, indent=1) + "\n")
        return
    spconv = Spconv(folder, os.environ["SPCONV_TF32"] == "1")
    record = {"gpu": spconv.torch.cuda.get_device_name(), "spconv": spconv.version, "rows": []}
    for row in spconv.run(problems):
        record["rows"].append(row)
        out.write_text(json.dumps(record) + "\n")


def add_times(times, run_file):
    """Replaces all spconv results in the run."""
    run = json.loads(run_file.read_text())
    if times["gpu"] != run["gpu"]:
        sys.exit(f"benchmark_spconv.py: spconv ran on {times['gpu']}, the rungs on {run['gpu']}")
    run["spconv"] = times["spconv"]
    by_row = {(row["ladder"], row["problem"], row["dtype"]): row["times"] for row in times["rows"]}
    count = 0
    for row in run["rows"]:
        for kind in ("baselines", "limits"):
            row[kind] = {name: us for name, us in row[kind].items() if not name.startswith("spconv")}
        # Its calls are consecutive, like those of rungs with a warm L2.
        if row["l2"] != "warm":
            continue
        for name, us in by_row.get((row["ladder"], row["problem"], row["dtype"]), {}).items():
            kind = "limits" if BOTH in name else "baselines"
            row[kind] = dict(sorted({**row[kind], name: us}.items()))
            count += 1
    # As the program writes it: a row a line.
    rows = run.pop("rows")
    text = json.dumps(run, indent=1).rstrip("}").rstrip("\n") + ',\n "rows": ['
    lines = [json.dumps(row, separators=(",", ":")) for row in rows]
    text += ("\n  " + ",\n  ".join(lines) + "\n ]" if lines else "]") + "\n}\n"
    run_file.write_text(text)
    print(f"{run_file}: {count} times of spconv {run['spconv']}")


def main():
    arguments = sys.argv[1:]
    if len(arguments) >= 3 and arguments[0] == "time":
        time_problems(pathlib.Path(arguments[1]), pathlib.Path(arguments[2]), arguments[3:])
    elif len(arguments) == 3 and arguments[0] == "add":
        add_times(json.loads(pathlib.Path(arguments[1]).read_text()), pathlib.Path(arguments[2]))
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
