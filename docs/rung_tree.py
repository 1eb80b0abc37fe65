"""The order in which pages show a ladder's rungs: each below the one that it comes from."""


def tree(rows):
    """The rungs of a ladder, each with where it stands: (row, depth, whether it branches off).

    The last step that comes from a rung goes on at its depth, and so does what comes from it alone. Whatever else comes
    from it branches off in between, one deeper.
    @param rows what `convladder list --json` wrote of one ladder
    """
    after = {}
    for row in rows:
        after.setdefault(row["previous"], []).append(row)

    def below(row, depth, branches_off):
        yield row, depth, branches_off
        children = after.get(row["rung"], [])
        steps = [child for child in children if child["kind"] == "step"]
        goes_on = children if len(children) == 1 else steps[-1:]
        for child in children:
            if child not in goes_on:
                yield from below(child, depth + 1, True)
        for child in goes_on:
            yield from below(child, depth, False)

    for row in after[""]:
        yield from below(row, 0, False)


def class_of(depth, branches_off):
    """The class, in style.css, of where a rung stands."""
    return f"depth{depth} branches-off" if branches_off else f"depth{depth}"
