"""Writes a graded submission as the formats that others read. None has a time in it, or a hidden case's shape or values.

Gradescope: `docs/specs.md` of gradescope/autograder_samples. GitHub Classroom: classroom-resources/autograding-grading-reporter.
JUnit: jenkins' junit-10.xsd. CSV: RFC 4180.
"""
import csv
import io
import json
import math
import os
import xml.etree.ElementTree as ElementTree

from submission import NOT_HANDED_IN, clean

MOST_CHARACTERS = 4000  # of a message


def write(file, content):
    """By renaming: a run that is killed leaves the old file or the new one."""
    temporary = file.with_name(f".{file.name}.new")
    temporary.write_bytes(content if isinstance(content, bytes) else content.encode())
    os.replace(temporary, file)


def as_json(value):
    """JSON in ASCII, in which no "<" stands: it may be put into a page as it is."""
    return json.dumps(value, indent=1, allow_nan=False).replace("<", "\\u003c") + "\n"


def safe(value):
    """The same with clean words only, wherever they stand."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        return {clean(name): safe(of) for name, of in value.items()}
    return [safe(of) for of in value] if isinstance(value, (list, tuple)) else value


def shortened(message):
    return message if len(message) <= MOST_CHARACTERS else message[:MOST_CHARACTERS] + "\n..."


def headline(report):
    """What stands above the marks."""
    lines = [f"{report['assignment']}: {report['score']:g} of {report['max_score']} points"]
    if report["status"] != "graded":
        lines.append({"no_build": "Nothing of it compiles.", "refused": "It was not looked at.",
                      "failed": "It could not be graded; please tell the course's staff."}[report["status"]])
    manual = [mark["name"] for mark in report["marks"] if mark["kind"] == "manual"]
    if manual:
        lines.append(f"A person will add points for: {', '.join(manual)}")
    return "\n".join(lines + [flag for flag in report["flags"] if flag.startswith(NOT_HANDED_IN)])


def feedback(report):
    """What the student reads."""
    lines = [headline(report), ""]
    for mark in report["marks"]:
        score = "-" if mark["score"] is None else f"{mark['score']:g}"
        lines.append(f"{mark['number']}. {mark['name']}: {score} of {mark['max_score']}")
        lines += [f"     {line}" for line in shortened(mark["message"]).split("\n") if line]
    lines += ["", "./ladder test shows the first failure of the public cases with its indices; ./ladder inspect shows the",
              "kernel's memory requests, line by line, its races, and reads of unwritten memory."]
    return "\n".join(lines) + "\n"


def gradescope(report):
    """results.json. No `score` of its own: it would override the sum; no `execution_time`: it differs from run to run."""
    tests = []
    for mark in report["marks"]:
        if mark["score"] is None:
            continue
        test = {"name": mark["name"], "number": mark["number"], "score": mark["score"], "max_score": mark["max_score"],
                "output": shortened(mark["message"]), "output_format": "text", "tags": [mark["kind"]],
                "visibility": mark["visibility"]}
        if mark["status"] in ("passed", "failed"):
            test["status"] = mark["status"]
        tests.append(test)
    return {"tests": tests, "output": shortened(headline(report)), "output_format": "text", "visibility": "visible",
            "stdout_visibility": "hidden",
            "extra_data": {"schema": report["schema"], "assignment": report["assignment"], "version": report["version"],
                           "digest": report["submission"]["digest"], "isolation": report["isolation"]["level"]},
            "leaderboard": [{"name": mark["name"], "value": mark["counter"]["value"], "order": "asc"} for mark in report["marks"]
                            if mark["counter"] and mark["counter"]["name"].startswith("model_")
                            and mark["counter"]["value"] is not None]}


def junit(report):
    """A test case for each mark; one with less than all points has failed."""
    root = ElementTree.Element("testsuites")
    marks = report["marks"]
    counts = {"tests": len(marks), "failures": sum(mark["status"] in ("failed", "partly") for mark in marks),
              "errors": 0, "skipped": sum(mark["status"] == "not_run" for mark in marks)}
    suite = ElementTree.SubElement(root, "testsuite", {"name": report["assignment"]} | {
        name: str(count) for name, count in counts.items()})
    for mark in marks:
        case = ElementTree.SubElement(suite, "testcase", {"classname": report["assignment"], "name": mark["name"]})
        message = shortened(mark["message"])
        first = message.split("\n")[0]
        if mark["status"] == "not_run":
            ElementTree.SubElement(case, "skipped", {"message": first})
        elif mark["status"] != "passed":
            failure = ElementTree.SubElement(case, "failure", {"message": first, "type": mark["status"]})
            failure.text = message
        points = "no" if mark["score"] is None else f"{mark['score']:g}"
        ElementTree.SubElement(case, "system-out").text = f"{points} of {mark['max_score']} points"
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="utf-8", xml_declaration=True) + b"\n"


def classroom(report):
    """What a step of a workflow hands to the reporter, which knows whole points only: each is rounded down."""
    status = {"passed": "pass", "partly": "fail", "failed": "fail", "not_run": "error"}
    marks = [mark for mark in report["marks"] if mark["score"] is not None]
    return {"version": 1, "status": "pass" if all(mark["status"] == "passed" for mark in marks) else
            "fail" if report["status"] != "failed" else "error",
            "max_score": sum(mark["max_score"] for mark in marks),
            "tests": [{"name": mark["name"], "status": status[mark["status"]], "score": math.floor(mark["score"]),
                       "message": shortened(mark["message"]), "test_code": "", "filename": "", "line_no": 0, "duration": 0}
                      for mark in marks]}


def write_results(folder, report):
    write(folder / "results.json", as_json(gradescope(safe(report))))


def write_all(folder, report, log):
    """All files of a submission; report.json at last."""
    report = safe(report)
    folder.mkdir(parents=True, exist_ok=True)
    write_results(folder, report)
    write(folder / "junit.xml", junit(report))
    write(folder / "classroom.json", as_json(classroom(report)))
    write(folder / "feedback.txt", feedback(report))
    write(folder / "log.json", as_json(log))
    write(folder / "report.json", as_json(report))


# --- The class

def cell(value):
    """A cell that no spreadsheet takes for a formula."""
    text = "" if value is None else f"{value:g}" if isinstance(value, float) else clean(str(value))
    return "'" + text if text and isinstance(value, str) and text[0] in "=+-@\t\r" else text


def class_table(reports):
    """class.csv: a line a submission, sorted by name."""
    out = io.StringIO()
    table = csv.writer(out, lineterminator="\r\n")
    marks = [mark["id"] for mark in reports[0]["marks"]] if reports else []
    table.writerow(["name", "score", "max", "status", *marks, "flags", "digest"])
    for report in reports:
        table.writerow([cell(value) for value in (
            report["submission"]["name"], report["score"], report["max_score"], report["status"],
            *(mark["score"] for mark in report["marks"]), "; ".join(report["flags"]), report["submission"]["digest"])])
    return out.getvalue()


def class_view(reports):
    """class.json: which families fail for whom, and which planted bug whose work is most like."""
    families, bugs = {}, {}
    for report in reports:
        name = report["submission"]["name"]
        failed = {case["id"].split(".")[0] for mark in report["marks"] if mark["kind"] == "exact" for case in mark["cases"]
                  if case["id"].startswith("F") and not case["public"] and case["outcome"] != "agrees"}
        for family in failed:
            families.setdefault(family, []).append(name)
        for found in report["diagnosis"][:1]:
            bugs.setdefault(found["bug"], []).append(name)
    return {"schema": "convladder-class-1", "assignment": reports[0]["assignment"] if reports else None,
            "submissions": len(reports),
            "families": {family: families[family] for family in sorted(families, key=lambda name: int(name[1:]))},
            "bugs": dict(sorted(bugs.items())), "status": {
                status: [report["submission"]["name"] for report in reports if report["status"] == status]
                for status in ("graded", "no_build", "refused", "failed")}}


def write_class(out, reports):
    write(out / "class.csv", class_table(reports))
    write(out / "class.json", as_json(class_view(reports)))
