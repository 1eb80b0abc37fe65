"""The microscope's counts beside a profiler's (benchmarks/counters/), for the pages of the microscope and of rungs."""

import collections
import json

from counted_tables import expect  # its folder is on the path then
import counter_differences as differences


class Profile:
    """A committed profile of a GPU, and what the microscope has counted of the same."""

    def __init__(self):
        self.comparison = json.loads(differences.COMPARISON.read_text())
        self.record = json.loads((differences.FOLDER / self.comparison["profile"]).read_text())
        self.entries = {(entry["rung"], entry["counter"]): entry for entry in differences.read()}

    def machine(self):
        return (f"{self.record['gpu']} (driver {self.record['driver']}, toolkit {self.record['toolkit']},"
                f" {self.record['date']})")

    def agreement(self):
        """The agreement of both, counter by counter, and the causes of differences."""
        micro = [pair for counters in self.comparison["microbenchmarks"].values() for pair in counters.values()]
        rungs = self.comparison["rungs"]
        pairs = [(rung, counter) for rung, seen in rungs.items() for counter in seen["counters"]]
        within = len(pairs) - len(self.entries)
        tolerance = f"{differences.TOLERANCE:.0%}"
        far = collections.Counter(counter for _, counter in self.entries)
        lines = [f"On an {self.machine()}, {sum(ours == theirs for ours, theirs in micro)} of {len(micro)} counters of the"
                 f" {len(self.comparison['microbenchmarks'])} microbenchmarks are equal. Of {len(pairs)} counters of the"
                 f" {len(rungs)} CUDA rungs, each on one problem, {within} ({within / len(pairs):.0%}) are within {tolerance}"
                 f" of the profiler; without combined accesses,"
                 f" {len(pairs) - len(differences.differing_as_written(self.comparison))}. The other {len(self.entries)} are listed in `benchmarks/counters/differences.json`,"
                 " each with its cause.", "",
                 f"| counter | rungs | within {tolerance} |", "|---|---:|---:|"]
        for counter, count in collections.Counter(counter for _, counter in pairs).items():
            lines.append(f"| {counter} | {count} | {count - far[counter]} |")
        lines += ["", "| cause of the difference | counters | rungs | example (microscope / profiler) |", "|---|---:|---:|---|"]
        for cause, words in differences.CAUSES.items():
            entries = [entry for entry in self.entries.values() if entry["cause"] == cause]
            if entries:
                one = entries[0]
                lines.append(f"| **{cause}**: {words} | {len(entries)} | {len({entry['rung'] for entry in entries})}"
                             f" | {one['rung'].split('/', 1)[1]}, {one['counter']}, {one['ours']:,} / {one['profiler']:,}:"
                             f" {one['because']} |")
        return lines

    def of_rung(self, rung, is_stale):
        """What was counted of a rung beside what the profiler measured. @param is_stale whether a row {rung, source_hash}
        is of another source than today's"""
        seen = self.comparison["rungs"].get(rung)
        if not seen or not seen["counters"]:
            return []
        lines = [f"On `{seen['options']}`, compared with the profile of an {self.machine()}:", "",
                 "| counter | microscope | profiler | cause of the difference |", "|---|---:|---:|---|"]
        for counter, (ours, theirs) in seen["counters"].items():
            entry = self.entries.get((rung, counter))
            why = f"{entry['cause']}: {entry['because']}" if entry else ""
            written = seen["as_written"].get(counter)
            counted = f"{ours:,}" if written is None else f"{ours:,} ({written:,} without combined accesses)"
            lines.append(f"| {counter} | {counted} | {theirs:,} | {why} |")
        if is_stale({"rung": rung, "source_hash": seen["source_hash"]}):
            lines += ["", "**Stale**: the rung has changed since it was profiled."]
        return [*lines, ""]
