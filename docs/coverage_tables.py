"""What `./ladder check coverage` left in build/coverage/report, if it ran: llvm-cov's pages, and the numbers."""

import html
import json

FOLDER = "coverage"  # of the report, beside the pages


def newest_report(root):
    """The numbers, and where llvm-cov's page of each file is; None without a report."""
    folder = root / "build" / "coverage" / "report"
    if not (folder / "coverage.json").exists():
        return None
    report = json.loads((folder / "coverage.json").read_text())
    # llvm-cov puts a page where its file is, as seen from /.
    report["pages"] = f"{FOLDER}/coverage/{root.resolve().as_posix().lstrip('/')}"
    return report


def link(address, text):
    """As HTML: Doxygen knows only pages of its own."""
    return f'<a href="{html.escape(address)}">{html.escape(text)}</a>'


def counted(sums):
    """"12 of 14 lines, 3 of 4 branches"."""
    return ", ".join(f"{sums[what][0]} of {sums[what][2]} {what}" for what in ("lines", "branches"))


def of_file(report, source):
    sums = report["files"].get(source)
    return link(f"{report['pages']}/{source}.html", counted(sums)) if sums else "not counted"


def page(report):
    lines = ["# Coverage {#coverage}", ""]
    pages = link(FOLDER + "/index.html", "llvm-cov's pages")
    lines += [
        "Coverage of the rungs by the suite, on the CPU. A line is covered if it was executed, and a condition if it was both true"
        " and false, in any instance of a template. Lines that are not covered are listed, with the reason, in"
        " `tests/not_covered.txt`; otherwise `./ladder check coverage` fails.",
        "",
        f"The execution counts of each line and condition are on {pages}. They combine the instances of a"
        " template: after a part that `if constexpr` omits from one instance, a line may have the count 0 although"
        " it was executed.",
        "",
        "| ladder | lines | branches |",
        "|---|---:|---:|",
    ]
    for ladder, sums in report["ladders"].items():
        cells = (
            f"{sums[what][0]} of {sums[what][2]}" + (f", {sums[what][1]} named" if sums[what][1] else "")
            for what in ("lines", "branches")
        )
        lines.append(f"| {ladder} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"
