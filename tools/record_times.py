#!/usr/bin/env python3
"""Puts the times of a GPU's tour into docs/measured/, from where the page "Verified and measured" takes them.

    record_times.py TOUR.json... VERIFIED.json

TOUR.json is what `./ladder compare --json` wrote on that machine, of the tour or of a ladder; VERIFIED.json
what `suite --record` wrote there, of the same commit: it knows the machine and the hash of each rung's
sources. The file is named after the GPU and the date.
"""

import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    *tours, verified = (json.loads(pathlib.Path(name).read_text()) for name in sys.argv[1:])
    for tour in tours:
        if tour["gpu"] != verified["gpu"]:
            sys.exit(f"record_times.py: the tour ran on {tour['gpu']}, the suite on {verified['gpu']}")
    record = {key: verified[key] for key in ("gpu", "driver", "toolkit", "date", "commit")}
    record["source_hashes"] = {row["rung"]: row["source_hash"] for row in verified["rungs"]}
    record["ladders"] = [table for tour in tours for table in tour["ladders"]]
    folder = ROOT / "docs" / "measured"
    folder.mkdir(exist_ok=True)
    name = f"{record['gpu'].lower().replace(' ', '-')}-{record['date']}.json"
    (folder / name).write_text(json.dumps(record, indent=1) + "\n")
    print(folder / name)


if __name__ == "__main__":
    main()
