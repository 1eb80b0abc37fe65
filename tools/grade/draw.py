"""Hidden cases: drawn by a key, near the public ones of their family."""
import hashlib
import hmac

HIDDEN = 5  # cases of a family and rung
MOST_MORE = 4  # that an extent grows by
# What is moved of a ladder's problems: extents, and counts of channels, which groups must divide. Filters, padding,
# strides and all else stay as a public case has them, so that a rung takes the problem if it takes that one.
EXTENTS = {"conv2d": {"h", "w"}, "conv2d_wgrad": {"h", "w"}, "im2col": {"size"}, "col2im": {"size"},
           "gemm": {"m", "n", "k"}, "tile_map": {"tiles"}, "rulebook": {"sites"}, "sparse_conv": {"sites"}}
# In family 1, whole tiles stay whole: by what an extent grows there.
STEPS = {"conv2d": {"h": 8, "w": 32}, "conv2d_wgrad": {"h": 8, "w": 8}, "gemm": {"m": 64, "n": 64, "k": 32}, "tile_map": {"tiles": 8}}
CHANNELS = {"conv2d": {"c", "k"}, "conv2d_wgrad": {"c", "k"}, "im2col": {"c"}, "col2im": {"c"}}


class Draw:
    """Numbers that depend on the key and on what they are for, and on nothing else."""

    def __init__(self, key, about):
        self.key, self.about, self.count = key, about, 0

    def number(self, least, most):
        """One of least ... most."""
        self.count += 1
        digest = hmac.new(self.key, f"{self.about}|{self.count}".encode(), hashlib.sha256).digest()
        return least + int.from_bytes(digest[:8], "big") % (most - least + 1)

    def seed(self):
        return int.from_bytes(hmac.new(self.key, self.about.encode(), hashlib.sha256).digest()[:8], "big")


def options_of(words):
    """[(option, value or "")] of "--c 3 --bias"."""
    parts, options = words.split(), []
    for i, part in enumerate(parts):
        if part.startswith("--"):
            has_value = i + 1 < len(parts) and not parts[i + 1].startswith("--")
            options.append((part[2:], parts[i + 1] if has_value else ""))
    return options


def words_of(options):
    return " ".join(f"--{option} {value}".rstrip() for option, value in options)


def near(ladder, words, draw, plain=False):
    """A problem like this one. @param plain of family 1"""
    options = dict(options_of(words))
    groups = int(options.get("groups", 1))
    for option, value in options.items():
        if option in EXTENTS.get(ladder, ()):
            step, most = (STEPS[ladder][option], 2) if plain and ladder in STEPS else (1, MOST_MORE)
            options[option] = ",".join(str(int(extent) + step * draw.number(0, most)) for extent in value.split(","))
        elif option in CHANNELS.get(ladder, ()):
            options[option] = str(int(value) + groups * draw.number(0, 2))
    return words_of(options.items())


def hidden_cases(assignment, key):
    """[(name, rung, words, seed)], five of each family and rung, by their names."""
    cases = []
    for place, rung in enumerate(assignment.rungs):
        of_rung = [(name, words) for name, of, words in assignment.cases if of == rung and name.startswith("F")]
        for family in dict.fromkeys(name.split(".")[0] for name, _ in of_rung):
            models = [words for name, words in of_rung if name.split(".")[0] == family]
            for number in range(HIDDEN):
                name = f"{family}.h{place * HIDDEN + number + 1}"
                draw = Draw(key, f"{assignment.name}|{name}")
                cases.append((name, rung, near(rung.split("/")[1], models[number % len(models)], draw, family == "F1"), draw.seed()))
    return cases


def public_cases(assignment, key):
    """The same of the public ones, whose data is drawn, too."""
    return [(name, rung, words, Draw(key, f"{assignment.name}|{name}").seed()) for name, rung, words in assignment.cases]
