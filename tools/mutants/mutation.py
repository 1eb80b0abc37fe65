"""Mutants of a file: one for each change that an operator makes."""
import collections

from operators import OPERATORS
from source import Source


class Mutant:
    """One change of one file."""

    def __init__(self, file, operator_name, source, span, text):
        self.file, self.operator, self.ordinal = file, operator_name, 1
        self.source, self.span, self.text = source, span, text
        self.line_number = source.line_of(span[0])

    @property
    def mutated(self):
        """The file's text with the change."""
        return self.source.text[:self.span[0]] + self.text + self.source.text[self.span[1]:]

    @property
    def before(self):
        """The lines of the file that change."""
        return self.source.lines[self.line_number - 1:self.source.line_of(self.span[1])]

    @property
    def after(self):
        """The same lines with the change."""
        begin = self.source.line_begins[self.line_number - 1]
        whole = "\n".join(self.before)
        first, end = (at - begin for at in self.span)
        return (whole[:first] + self.text + whole[end:]).split("\n")

    @property
    def change(self):
        """File, operator, and the lines before and after: what it is known by while lines come and go
        elsewhere in the file."""
        return (self.file, self.operator, *(" ".join(" ".join(lines).split()) for lines in (self.before, self.after)))

    @property
    def key(self):
        """The same, and of several such lines the how manyth."""
        return "\n".join(self.change) + f"\n{self.ordinal}"


def mutants_of(file, text):
    """All mutants of a file. What two operators would make alike has the name of the one that is further down,
    which says more."""
    source = Source(text)
    mutants, seen, alike = [], set(), collections.Counter()
    for name, function in reversed(OPERATORS.items()):
        for span, replacement in function(source):
            mutant = Mutant(file, name, source, span, replacement)
            if text[slice(*span)] == replacement or (span, replacement) in seen:
                continue
            seen.add((span, replacement))
            alike[mutant.change] += 1
            mutant.ordinal = alike[mutant.change]
            mutants.append(mutant)
    return mutants
