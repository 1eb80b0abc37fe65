"""Which mutants are tested, and in which order."""
import collections
import hashlib
import threading
import time


def sequence(rungs, mutants, seed):
    """Pairs (rung, mutant) in the order in which they are drawn: each time for the rung, and then by the operator
    that have had the fewest. An edit of one file leaves the others' mutants where they are, or nearly so, since
    the order comes from what they say and not from a row of dice."""

    def place(*words):
        return hashlib.sha1("\n".join(map(str, (seed, *words))).encode()).digest()

    left = {}
    for rung in rungs:
        left[rung] = collections.defaultdict(list)
        for file in rung.files:
            for mutant in mutants[file]:
                left[rung][mutant.operator].append(mutant)
        for choices in left[rung].values():
            choices.sort(key=lambda mutant: place(mutant.key))
    drawn = set()
    of_rung, of_operator = collections.Counter(), collections.Counter()
    while left:
        rung = min(left, key=lambda rung: (of_rung[rung], place(rung.name, of_rung[rung])))
        operators = left[rung]
        name = min(operators, key=lambda name: (of_operator[name], place(rung.name, name, of_operator[name])),
                   default=None)
        if name is None:
            del left[rung]
            continue
        mutant = operators[name].pop()
        if not operators[name]:
            del operators[name]
        if mutant.key in drawn:  # for another rung that includes the file
            continue
        drawn.add(mutant.key)
        of_rung[rung] += 1
        of_operator[name] += 1
        yield rung, mutant


class Sample:
    """Mutants one after the other, until as many were tested as were asked for."""

    def __init__(self, pairs, most, seconds):
        self.pairs, self.most = pairs, most
        self.end = time.monotonic() + seconds if seconds else None
        self.condition = threading.Condition()
        self.results, self.under_way, self.trouble, self.ended = [], 0, None, False

    def count(self):
        return sum(result["verdict"] in ("caught", "survived") for result in self.results)

    def draw(self):
        """The next pair; None at the end."""
        with self.condition:
            while True:
                late = self.end is not None and time.monotonic() > self.end
                if self.trouble or self.ended or late or self.count() >= self.most:
                    return None
                if self.count() + self.under_way < self.most:
                    break
                self.condition.wait()
            pair = next(self.pairs, None)
            self.ended = pair is None
            self.under_way += pair is not None
            return pair

    def add(self, result):
        with self.condition:
            self.under_way -= 1
            self.results.append(result)
            if result["verdict"] != "invalid":
                by = f" ({result['by']})" if result["by"] else ""
                print(f"[{self.count()}] {result['verdict']}{by} {result['seconds']:.1f} s  "
                      f"{result['file']}:{result['line']}: {result['operator']}", flush=True)
            self.condition.notify_all()

    def fail(self, trouble):
        with self.condition:
            self.under_way -= 1
            self.trouble = self.trouble or trouble
            self.condition.notify_all()
