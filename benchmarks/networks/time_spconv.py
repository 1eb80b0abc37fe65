#!/usr/bin/env python3
"""Times the network of voxel_backbone.hpp made of spconv's modules, and adds its times to those of ours.

    time_spconv.py SITES RUN.json

SITES is a folder that `./ladder bench --export-sites` has written, RUN.json what `voxel_backbone time` wrote on the
same GPU. It needs PyTorch and spconv 2.3, see tools/benchmark_spconv.py.

Three forms, all in fp16. Two in eval(), without gradients:
- "spconv, fused": bias and ReLU are part of each convolution, as in ours;
- "spconv, modules": batch normalisation and ReLU are modules behind it, as in OpenPCDet's source;
and under "forward and backward"
- "spconv": a bias in each convolution, a ReLU behind it, and the gradients of all weights and biases, as ours.
A time by the host's clock runs from the call until the GPU is done; "gpu_us" is the sum of the durations of all
kernels, copies and fills of a call, as PyTorch's profiler has them.
"""
import json
import pathlib
import sys
import time

import numpy
import spconv
import spconv.pytorch as sp
import torch
from cumm import tensorview

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
from benchmark_spconv import Timer  # noqa: E402

WARM_UP, RUNS, RUNS_ON_GPU = 20, 200, 10


def network(layers, bias, after):
    """Layers with the same sites share a rulebook by their `indice_key`, as in OpenPCDet.

    layers: RUN.json's; bias: whether convolutions have one; after: of a number of channels, the modules behind each
    convolution, or none if its ReLU is part of it."""
    modules = []
    sites = 0  # a number for each set of them
    for layer in layers:
        kind = sp.SubMConv3d if layer["submanifold"] else sp.SparseConv3d
        sites += not layer["submanifold"]
        key = f"{'subm' if layer['submanifold'] else 'spconv'}{sites}"
        convolution = kind(*layer["channels"], layer["kernel"], stride=layer["stride"], padding=layer["pad"],
                           bias=bias, indice_key=key)
        if after is None:
            convolution.act_type = tensorview.gemm.Activation.ReLU
        modules += [convolution, *(after(layer["channels"][1]) if after else [])]
    return sp.SparseSequential(*modules).to("cuda", torch.float16)


def normalised(channels):
    return [torch.nn.BatchNorm1d(channels, eps=1e-3), torch.nn.ReLU()]


def rounded(number):
    return round(float(number), 1)


def timed(call):
    """Times of a call, which returns the last layer's rows, and how many these are."""
    times = []
    for i in range(WARM_UP + RUNS):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        y = call()
        torch.cuda.synchronize()
        if i >= WARM_UP:
            times.append((time.perf_counter() - begin) * 1e6)
    if y.min() < 0:
        raise RuntimeError("no ReLU: a number below 0 came out")
    gpu = Timer().gpu_us(call, RUNS_ON_GPU)
    first, median, last = numpy.percentile(times, [25, 50, 75])
    return {"median_us": rounded(median), "quartiles_us": [rounded(first), rounded(last)],
            "gpu_us": rounded(gpu)}, len(y)


def main(sites, run_file):
    run = json.loads(run_file.read_text())
    if torch.cuda.get_device_name() != run["gpu"]:
        sys.exit(f"time_spconv.py: this is {torch.cuda.get_device_name()}, the rungs ran on {run['gpu']}")
    torch.manual_seed(1)
    coords = torch.from_numpy(numpy.load(sites / "sweep.npy")).cuda()
    features = torch.randint(-4, 5, (len(coords), 4), device="cuda").half()
    run["spconv version"] = spconv.__version__

    def rows_of(net):
        return net(sp.SparseConvTensor(features, coords, run["shape"], 1)).features

    def add(to, name, call):
        to[name], rows = timed(call)
        if rows != run["layers"][-1]["outputs"]:
            sys.exit(f"time_spconv.py: {name} ends with {rows} rows, ours with {run['layers'][-1]['outputs']}")
        print(name, to[name], flush=True)
        run_file.write_text(json.dumps(run, indent=1) + "\n")

    with torch.no_grad():
        fused = network(run["layers"], bias=True, after=None).eval()
        add(run, "spconv, fused", lambda: rows_of(fused))
        modules = network(run["layers"], bias=False, after=normalised).eval()
        add(run, "spconv, modules", lambda: rows_of(modules))
    trained = network(run["layers"], bias=True, after=lambda channels: [torch.nn.ReLU()]).train()
    dy = torch.randint(-1, 2, (run["layers"][-1]["outputs"], run["layers"][-1]["channels"][1]), device="cuda").half()

    def step():
        trained.zero_grad(set_to_none=True)
        y = rows_of(trained)
        y.backward(dy)
        return y.detach()

    add(run["forward and backward"], "spconv", step)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
