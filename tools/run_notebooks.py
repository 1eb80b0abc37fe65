#!/usr/bin/env python3
"""Executes notebooks from top to bottom: all in notebooks/, or those that are named.

Each runs in its own folder, with the Python that runs this script. What came out, with its plots, goes to
out/notebooks/ as a notebook and as HTML; the notebooks themselves stay as they are. Ends with 1 if a cell
failed.
"""

import base64
import html
import io
import json
import os
import pathlib
import re
import sys
import tempfile

import nbclient
import nbconvert
import nbformat
import PIL.Image
import pygments.formatters

ROOT = pathlib.Path(__file__).resolve().parent.parent
SECONDS_A_CELL = 600
LARGE_PICTURE = 1 << 18  # bytes of base64: such a picture is of photographs, for which JPEG takes a fifth of PNG


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


STYLE = """
:root { color-scheme: light dark; --soft: #8882; --line: #8885; }
body { font: 16px/1.6 system-ui, sans-serif; max-width: 56rem; margin: 1.5rem auto; padding: 0 1rem; overflow-wrap: break-word; }
h1, h2, h3 { line-height: 1.25; }
pre { font: 13px/1.5 ui-monospace, monospace; overflow-x: auto; margin: 0; padding: .7rem .9rem; }
code { font-size: .92em; }
.jp-InputArea, .input_area, .highlight { background: var(--soft); border-radius: 6px; margin: .6rem 0; }
.input_area .highlight, .highlight .highlight { margin: 0; background: none; }
.jp-InputPrompt, .jp-OutputPrompt, .prompt, .anchor-link { display: none; }
.jp-OutputArea-output, .output { overflow-x: auto; }
img, svg { max-width: 100%; height: auto; }
img { background: #fff; }
table { border-collapse: collapse; display: block; overflow-x: auto; } td, th { border: 1px solid var(--line); padding: .2em .6em; }
"""


def as_jpeg(match):
    """A picture as the page's text has it, `data:image/png;base64,...`, as JPEG where it is large."""
    if len(match[1]) < LARGE_PICTURE:
        return match[0]
    packed = io.BytesIO()
    picture = PIL.Image.open(io.BytesIO(base64.b64decode(match[1]))).convert("RGBA")
    ground = PIL.Image.new("RGBA", picture.size, "white")
    PIL.Image.alpha_composite(ground, picture).convert("RGB").save(packed, "JPEG", quality=85)
    return "data:image/jpeg;base64," + base64.b64encode(packed.getvalue()).decode()


def page_of(notebook, name):
    """A page that needs nothing else, in the light or in the dark."""
    body, _ = nbconvert.HTMLExporter(template_name="basic").from_notebook_node(notebook)
    body = re.sub(r"data:image/png;base64,([A-Za-z0-9+/=\s]+)", as_jpeg, body)
    body = re.sub(r"<img(?![^>]*\balt=)", '<img alt="what the cell above has drawn"', body)
    colours = [pygments.formatters.HtmlFormatter(style=style).get_style_defs(".highlight") for style in ("default", "monokai")]
    # The colours of words alone: the ground is the page's.
    light, dark = (re.sub(r"background(-color)?: [^;}]*;?", "", text) for text in colours)
    title = html.escape(name.partition("_")[2].replace("_", " ").capitalize())
    return (f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>\n'
            f'<meta name="viewport" content="width=device-width, initial-scale=1">\n<style>{STYLE}{light}\n'
            f'@media (prefers-color-scheme: dark) {{\n{dark}\n}}\n</style></head><body>\n{body}\n</body></html>\n')


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
        (out / path.name).with_suffix(".html").write_text(page_of(notebook, path.stem))


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
