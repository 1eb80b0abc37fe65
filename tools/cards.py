"""Tables of the GPU models: made from `needs` in the rung table (`./ladder list --json`) and from the models in
cuda_on_cpu/src/device_models.cpp.
"""
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent
MODELS = ROOT / "cuda_on_cpu/src/device_models.cpp"
MODEL = re.compile(r'^ *\{"(sm_\d+)", "([^"]+)", "([^"]+)", (\d+), (\d+), (\d+), (\d+), (\d+) \* kKiB, (\w+), (\d+) \* kMiB\},$', re.M)
FEATURES = {"sm_80": "`mma` in TF32 and bf16, or 96 KiB of shared memory", "sm_90": "TMA", "sm_90a": "`wgmma`"}


def models():
    """The rows of the table of models."""
    for architecture, card, others, capability, sms, threads, blocks, shared, reserved, l2 in MODEL.findall(MODELS.read_text()):
        yield {"architecture": architecture, "card": card, "others": others, "capability": int(capability), "sms": int(sms),
               "threads": int(threads), "blocks": int(blocks), "shared": int(shared),
               "shared_block": int(shared) - (reserved == "kKiB"), "l2": int(l2)}


def runs_on(needs, capability):
    """As runs_on() in core/needs.hpp."""
    needed = int(re.search(r"\d+", needs)[0])
    return capability == needed if needs.endswith("a") else capability >= needed


def card_table(rows):
    """One row per card: how many rungs run there, and the requirements of the others."""
    cuda = [row for row in rows if row["backend"] == "cuda"]
    spine = [row for row in cuda if row["level"] == "spine"]
    lines = ["| card | architecture | CUDA rungs | of the spines | the others need |", "|---|---|---:|---:|---|"]
    for model in models():
        def run(some, capability=model["capability"]):
            return [row for row in some if runs_on(row["needs"], capability)]

        lacking = {}
        for row in cuda:
            if not runs_on(row["needs"], model["capability"]):
                lacking[row["needs"]] = lacking.get(row["needs"], 0) + 1
        needs = ", ".join(f"{count} {needed} ({FEATURES.get(needed, needed)})" for needed, count in sorted(lacking.items()))
        lines.append(f"| {model['card']} ({model['others']}) | `{model['architecture']}` | {len(run(cuda))} of {len(cuda)} |"
                     f" {len(run(spine))} of {len(spine)} | {needs or '-'} |")
    return "\n".join(lines) + "\n"


def ladder_card_table(rows):
    """One row per ladder, one column per card: how many of its CUDA rungs run there."""
    cards = list(models())
    lines = ["| ladder | " + " | ".join(model["card"] for model in cards) + " | all |", "|---|" + "---:|" * (len(cards) + 1)]
    ladders = {}
    for row in rows:
        if row["backend"] == "cuda":
            ladders.setdefault(row["ladder"], []).append(row["needs"])
    for ladder, needs in ladders.items():
        counts = [sum(runs_on(each, model["capability"]) for each in needs) for model in cards]
        lines.append(f"| {ladder} | " + " | ".join(map(str, (*counts, len(needs)))) + " |")
    return "\n".join(lines) + "\n"


def limit_table():
    """One row per card: its properties."""
    lines = ["| card | architecture | SMs | threads per SM | blocks per SM | shared memory per SM | per block | L2 cache |",
             "|---|---|---:|---:|---:|---:|---:|---:|"]
    for model in models():
        lines.append(f"| {model['card']} | `{model['architecture']}` | {model['sms']} | {model['threads']} | {model['blocks']} |"
                     f" {model['shared']} KiB | {model['shared_block']} KiB | {model['l2']} MiB |")
    return "\n".join(lines) + "\n"
