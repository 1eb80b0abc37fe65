"""Puts together the OUT folders of a class that was graded in parts."""
import shutil

import batch
import formats
from assignment import BadInput


def merge(parts, out):
    """The same files as if one run had graded all. `out` must be empty, or not be there."""
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise BadInput(f"out = {out}: is not empty")
    if not out.resolve().parent.is_dir():
        raise BadInput(f"out = {out}: the folder above it is not there")
    of_name, assignments = {}, set()
    for part in parts:
        if not (part / "state").is_dir():
            raise BadInput(f"merge = {part}: holds no grades")
        for report in batch.reports_in(part):
            name = report["submission"]["name"]
            if name in of_name:
                raise BadInput(f"merge = {part}: has {name}, and so has {of_name[name]}")
            of_name[name] = part
            assignments.add(report["assignment"])
    if len(assignments) > 1:
        raise BadInput(f"merge: the parts are of {' and '.join(sorted(assignments))}")
    making = out.resolve().parent / f".{out.resolve().name}.new"
    shutil.rmtree(making, ignore_errors=True)
    (making / "state").mkdir(parents=True)
    for name, part in sorted(of_name.items()):
        shutil.copytree(part / name, making / name)
        done = part / "state" / f"{name}.done"
        if done.is_file():
            shutil.copy(done, making / "state" / done.name)
        files = part / "state" / f"{name}.files"
        if files.is_dir():
            shutil.copytree(files, making / "state" / files.name)
    formats.write_class(making, batch.reports_in(making))
    if out.exists():
        out.rmdir()
    making.rename(out)
