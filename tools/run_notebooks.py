#!/usr/bin/env python3
"""Executes notebooks from top to bottom: all in notebooks/, or those that are named.

Each runs in its own folder, with the Python that runs this script. What came out, with its plots, goes to
out/notebooks/ as a notebook and as HTML; the notebooks themselves stay as they are. Ends with 1 if a cell
failed.
"""

import json
import os
import pathlib
import sys
import tempfile

import nbclient
import nbconvert
import nbformat

ROOT = pathlib.Path(__file__).resolve().parent.parent
SECONDS_A_CELL = 600


def use_this_python(folder):
    """Makes "python3" the kernel of this very interpreter: another one may lack the libraries."""
    kernel = pathlib.Path(folder) / "kernels" / "python3"
    kernel.mkdir(parents=True)
    command = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    spec = {"argv": command, "display_name": "Python 3", "language": "python"}
    (kernel / "kernel.json").write_text(json.dumps(spec))
    os.environ["PYDEVD_DISABLE_FILE_VALIDATION"] = "1"  # the debugger has an opinion about Python
    os.environ["JUPYTER_PATH"] = os.pathsep.join(
        filter(None, [str(folder), os.environ.get("JUPYTER_PATH")])
    )


def execute(path, out):
    notebook = nbformat.read(path, as_version=4)
    client = nbclient.NotebookClient(
        notebook,
        timeout=SECONDS_A_CELL,
        kernel_name="python3",
        resources={"metadata": {"path": str(path.parent)}},
    )
    try:
        client.execute()
        return True
    except nbclient.exceptions.CellExecutionError as error:
        print(error, file=sys.stderr)
        return False
    finally:
        nbformat.write(notebook, out / path.name)
        page, _ = nbconvert.HTMLExporter().from_notebook_node(notebook)
        (out / path.name).with_suffix(".html").write_text(page)


def main(names):
    paths = [pathlib.Path(name).resolve() for name in names]
    paths = paths or sorted((ROOT / "notebooks").glob("*.ipynb"))
    out = ROOT / "out" / "notebooks"
    out.mkdir(parents=True, exist_ok=True)
    failed = []
    with tempfile.TemporaryDirectory() as folder:
        use_this_python(folder)
        for path in paths:
            print(f"Executing {path.name}", flush=True)
            if not execute(path, out):
                failed.append(path.name)
    print(f"{len(paths) - len(failed)} of {len(paths)} notebooks ran; their pages: {out}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
