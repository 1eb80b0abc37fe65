"""What came of the mutants, as tables."""
import collections


def table(title, groups):
    """Rows of a table in Markdown: caught of those that are not equivalent."""
    lines = [f"| {title} | caught | of | score | GPU alone | equivalent |", "|---|---:|---:|---:|---:|---:|"]
    for name, verdicts in groups:
        caught, known = verdicts["caught"], verdicts["GPU alone"]
        count = caught + known + verdicts["survived"]
        score = f"{100 * caught / count:.0f} %" if count else ""
        lines.append(f"| {name} | {caught} | {count} | {score} | {known} | {verdicts['equivalent']} |")
    return "\n".join(lines)


def report(results):
    """The tables, and the survivors with their places."""
    parts = []
    for title, key in (("rung", "drawn_for"), ("operator", "operator"), ("ladder", "ladder")):
        groups = collections.defaultdict(collections.Counter)
        for result in results:
            groups[result[key]][result["verdict"]] += 1
        rows = sorted(groups.items())
        if key == "ladder":
            rows.append(("all", sum(groups.values(), collections.Counter())))
        parts.append(table(title, rows))
    by = collections.Counter(result["by"] for result in results if result["verdict"] == "caught")
    parts.append("Caught by " + ", ".join(f"{name}: {count}" for name, count in by.most_common()))
    for result in results:
        if result["verdict"] == "survived":
            parts.append("\n".join([f"SURVIVED {result['file']}:{result['line']}: {result['operator']}",
                                    f"  (tests of {result['rung']})",
                                    *(f"- {line}" for line in result["before"]),
                                    *(f"+ {line}" for line in result["after"])]))
    return "\n\n".join(parts)
