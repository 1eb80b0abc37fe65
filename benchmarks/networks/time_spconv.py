#!/usr/bin/env python3
"""Times the network of voxel_backbone.hpp made of spconv's modules, and adds its times to those of ours.

    time_spconv.py SITES RUN.json

SITES is a folder that `./ladder bench --export-sites` has written, RUN.json what `voxel_backbone time` wrote on the
same GPU. It needs PyTorch and spconv 2.3, see tools/benchmark_spconv.py.

Two forms, both in fp16, in eval(), without gradients:
- "spconv, fused": bias and ReLU are part of each convolution, as in ours;
- "spconv, modules": batch normalisation and ReLU are modules behind it, as in OpenPCDet's source.
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


def network(layers, fused):
    """Layers with the same sites share a rulebook by their `indice_key`, as in OpenPCDet. layers: RUN.json's"""
    modules = []
    sites = 0  # a number for each set of them
    for layer in layers:
        kind = sp.SubMConv3d if layer["submanifold"] else sp.SparseConv3d
        sites += not layer["submanifold"]
        key = f"{'subm' if layer['submanifold'] else 'spconv'}{sites}"
        convolution = kind(*layer["channels"], layer["kernel"], stride=layer["stride"], padding=layer["pad"],
                           bias=fused, indice_key=key)
        modules.append(convolution)
        if fused:
            convolution.act_type = tensorview.gemm.Activation.ReLU
        else:
            modules += [torch.nn.BatchNorm1d(layer["channels"][1], eps=1e-3), torch.nn.ReLU()]
    return sp.SparseSequential(*modules).to("cuda", torch.float16).eval()


def rounded(number):
    return round(float(number), 1)


def timed(net, shape, coords, features):
    """Times of a call, and how many rows the last layer has."""

    def call():
        return net(sp.SparseConvTensor(features, coords, shape, 1))

    times = []
    for i in range(WARM_UP + RUNS):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        y = call()
        torch.cuda.synchronize()
        if i >= WARM_UP:
            times.append((time.perf_counter() - begin) * 1e6)
    if y.features.min() < 0:
        raise RuntimeError("no ReLU: a number below 0 came out")
    gpu = Timer().gpu_us(call, RUNS_ON_GPU)
    first, median, last = numpy.percentile(times, [25, 50, 75])
    return {"median_us": rounded(median), "quartiles_us": [rounded(first), rounded(last)],
            "gpu_us": rounded(gpu)}, len(y.features)


def main(sites, run_file):
    run = json.loads(run_file.read_text())
    if torch.cuda.get_device_name() != run["gpu"]:
        sys.exit(f"time_spconv.py: this is {torch.cuda.get_device_name()}, the rungs ran on {run['gpu']}")
    torch.manual_seed(1)
    coords = torch.from_numpy(numpy.load(sites / "sweep.npy")).cuda()
    features = torch.randint(-4, 5, (len(coords), 4), device="cuda").half()
    run["spconv version"] = spconv.__version__
    with torch.no_grad():
        for name, fused in (("spconv, fused", True), ("spconv, modules", False)):
            run[name], rows = timed(network(run["layers"], fused), run["shape"], coords, features)
            if rows != run["layers"][-1]["outputs"]:
                sys.exit(f"time_spconv.py: {name} ends with {rows} rows, ours with {run['layers'][-1]['outputs']}")
            print(name, run[name], flush=True)
            run_file.write_text(json.dumps(run, indent=1) + "\n")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
