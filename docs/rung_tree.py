"""The order in which pages show a ladder's rungs: each below the one that it comes from."""

INDENT = 17  # pixels a branch


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


def placed(depth, branches_off):
    """The attributes of an element where a rung stands; style.css has the arrow of a branch."""
    kind = "branches-off" if branches_off else "goes-on"
    return f'class="{kind}" style="padding-left: {INDENT * depth}px"'


def pill(rung, link):
    """A rung's link in the colour of its folder."""
    return f'<span class="pill {rung.split("/")[0]}">{link}</span>'
