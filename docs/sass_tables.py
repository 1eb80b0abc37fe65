"""What nvcc makes of the gemm ladder's main loops (benchmarks/sass/gemm.json), for the page that reads SASS."""

import json

from benchmark_run import short_name


class Sass:
    def __init__(self, root, link, is_stale):
        """@param is_stale of a rung's entry {rung, source_hash}"""
        self.record = json.loads((root / "benchmarks/sass/gemm.json").read_text())
        self.link, self.is_stale = link, is_stale

    def machine(self):
        return [f"By nvcc {self.record['toolkit']} for {self.record['architecture']}, {self.record['date']}."]

    def table(self):
        """Instructions of each main loop, by what they do."""
        kinds = list(next(iter(self.record["rungs"].values()))["kinds"])
        lines = ["| | instructions | " + " | ".join(kinds) + " | multiply-adds per instruction |",
                 "|---|" + "---:|" * (len(kinds) + 2)]
        for rung, entry in self.record["rungs"].items():
            mark = " (stale)" if self.is_stale({"rung": rung, **entry}) else ""
            cells = [str(entry["kinds"][kind]) for kind in kinds]
            lines.append(f"| {self.link(rung, short_name(rung))}{mark} | {entry['instructions']} | " + " | ".join(cells)
                         + f" | {entry['products'] / entry['instructions']:.0f} |")
        return lines

    def excerpt(self, rung):
        """Some of a main loop, as nvdisasm prints it."""
        return ["```", *self.record["rungs"][rung]["excerpt"], "```"]
