"""The notebooks as pages: their text and their code, for a look without running them."""

import json
import re


def page_name(notebook):
    """lesson_04 of 04_four_at_a_time."""
    return "lesson_" + notebook.split("_", 1)[0]


def with_formulas(text):
    """Jupyter's formulas as Doxygen's."""
    text = re.sub(r"\$\$(.+?)\$\$", lambda match: f"\\f[{match.group(1)}\\f]", text, flags=re.S)
    return re.sub(r"(?<![\\\w$])\$([^$\n]+)\$(?!\w)", lambda match: f"\\f${match.group(1)}\\f$", text)


def linked(text):
    """Links to files of the project, which are not on the site, as their names."""
    return re.sub(r"\[([^\]]+)\]\((?!https?:)[^)]*\)", r"\1", text)


def pages(root, executed):
    """{name: Markdown} of all notebooks. @param executed the folder with what ./ladder notebooks has left"""
    found = {}
    for path in sorted((root / "notebooks").glob("[0-9]*.ipynb")):
        name = page_name(path.stem)
        lines, title = [], path.stem
        for cell in json.loads(path.read_text())["cells"]:
            source = "".join(cell["source"]).rstrip()
            if cell["cell_type"] == "code":
                lines += ["```python", source, "```", ""]
                continue
            if not lines and (first := re.match(r"# (.*)\n?", source)):
                title, source = first.group(1), source[first.end():]
            lines += [linked(with_formulas(source)), ""]
        ran = (f'<a href="notebooks/{path.stem}.html">Output and plots</a>.' if (executed / f"{path.stem}.html").exists()
               else "`./ladder notebooks`, followed by `./ladder docs`, adds the outputs.")
        number = int(path.stem.split("_", 1)[0])
        head = [f"# {title} {{#{name}}}", "", "\\tableofcontents", "", f'Lesson {number} of \\ref lessons "the lessons": the text and the code of `notebooks/{path.name}`. {ran}', ""]
        found[name] = "\n".join([*head, *lines]) + "\n"
    return found
