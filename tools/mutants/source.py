"""A source as its tokens, as operators see it."""
import bisect
import collections
import re

Token = collections.namedtuple("Token", "kind text begin end")

_TOKENS = re.compile(
    r"""
    (?P<comment>//[^\n]*|/\*.*?\*/)
  | (?P<directive>^[ ]*\#(?:[^\n]*\\\n)*[^\n]*)
  | (?P<raw>R"(?P<quote>[^(\s]*)\(.*?\)(?P=quote)")
  | (?P<string>"(?:[^"\\\n]|\\.)*")
  | (?P<char>(?<![\w])'(?:[^'\\\n]|\\.)+')
  | (?P<number>\.?\d(?:'?[\w.]|(?<=[eEpP])[+-])*)
  | (?P<word>[A-Za-z_]\w*)
  | (?P<sign><<=|>>=|<=>|\.\.\.|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|::|[^\s\w])
    """,
    re.VERBOSE | re.DOTALL | re.MULTILINE)

CLOSES = {"(": ")", "[": "]", "{": "}"}
# What is in their parentheses stays as it is.
_LEFT_ALONE = {"static_assert", "assert", "text", "alignas", "__launch_bounds__", "decltype", "printf"}


class Source:
    """The text of a file, its tokens, and which of them may change."""

    def __init__(self, text):
        self.text = text
        self.tokens = [Token("string" if found.lastgroup == "raw" else found.lastgroup, found.group(),
                             found.start(), found.end())
                       for found in _TOKENS.finditer(text) if found.lastgroup not in ("comment", "directive")]
        self.words = [token.text for token in self.tokens] + [""] * 3  # so that the next ones exist
        self.lines = text.split("\n")
        self.line_begins = [0] + [at + 1 for at, letter in enumerate(text) if letter == "\n"]
        self.match = self._brackets()
        self.fixed = self._left_alone()

    def _brackets(self):
        """The index of each opening bracket's closing one, and vice versa."""
        match, open_ones = {}, []
        for i, token in enumerate(self.tokens):
            if token.kind != "sign":
                continue
            if token.text in CLOSES:
                open_ones.append(i)
            elif token.text in CLOSES.values() and open_ones:
                match[i] = open_ones.pop()
                match[match[i]] = i
        return match

    def _left_alone(self):
        """The indices of the tokens that stay as they are."""
        fixed = set()
        for i, word in enumerate(self.words):
            end = None
            if word in _LEFT_ALONE and self.words[i + 1] == "(":
                end = self.match.get(i + 1)
            elif word == "[" and self.words[i + 1] == "[":
                end = self.match.get(i)
            elif word == "template" and self.words[i + 1] == "<":
                end = self.end_of_angles(i + 1)
            elif word == "enum":
                end = self.statement_end(i)
            elif word in ("using", "namespace", "throw", "case", "typedef", "friend"):
                end = next((j for j in range(i, len(self.tokens)) if self.words[j] in (";", "{", ":")), None)
            if end is not None:
                fixed.update(range(i, end + 1))
        return fixed

    def statement_end(self, i):
        """The index of the `;` that ends what begins at token i, past all brackets in it."""
        while i < len(self.tokens) and self.words[i] != ";":
            i = self.match.get(i, i) if self.words[i] in CLOSES else i
            i += 1
        return i

    def end_of_angles(self, i):
        """The index of the `>` that closes the `<` at token i; None if it is no bracket."""
        depth = 0
        for j in range(i, min(i + 200, len(self.tokens))):
            word = self.words[j]
            depth += (word == "<") - (word == ">") - 2 * (word == ">>")
            if word in (";", "{") or depth < 0:
                return None
            if depth == 0:
                return j
        return None

    def free(self):
        """The indices of the tokens that may change."""
        return [i for i in range(len(self.tokens)) if i not in self.fixed]

    def span(self, first, last):
        """The range of characters of the tokens first to last."""
        return self.tokens[first].begin, self.tokens[last].end

    def said(self, first, last):
        """The text of the tokens first to last; empty if there are none."""
        return self.text[slice(*self.span(first, last))] if first <= last else ""

    def arguments(self, i):
        """Pairs (first, last) of tokens, one for each part between the commas of the bracket at i."""
        parts, begin, end = [], i + 1, self.match.get(i, i)
        j = begin
        while j < end:
            if self.words[j] in CLOSES:
                j = self.match.get(j, j)
            elif self.words[j] == "<" and not self.is_binary(j):
                j = self.end_of_angles(j) or j
            elif self.words[j] == ",":
                parts.append((begin, j - 1))
                begin = j + 1
            j += 1
        return parts + [(begin, end - 1)] if end > begin else parts

    def is_binary(self, i):
        """Whether the sign at i stands between two operands: the formatter puts blanks around it."""
        token = self.tokens[i]
        return (0 < i < len(self.tokens) - 1 and self.text[token.begin - 1].isspace()
                and self.text[token.end].isspace() and self.words[i - 1] not in ("operator", "return")
                and (self.tokens[i - 1].kind in ("word", "number") or self.words[i - 1] in (")", "]", "}")))

    def operand_end(self, i):
        """The last token of the operand that begins at token i: a name, a number, a call, brackets."""
        if self.words[i] in ("-", "~", "!"):
            i += 1
        if self.words[i] == "(":
            i = self.match.get(i, i)
        while True:
            after = self.words[i + 1]
            if after in (".", "->", "::"):
                i += 2
            elif after in ("(", "[") or (after == "{" and self.tokens[i].kind == "word"):
                i = self.match.get(i + 1, i)
            else:
                return i

    def line_of(self, at):
        """The number of the line that character `at` is on, from 1."""
        return bisect.bisect_right(self.line_begins, at)
