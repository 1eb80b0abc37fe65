#!/usr/bin/env python3
"""Makes small changes in rungs and tests whether the rungs' tests detect them.

    mutants.py [options] BUILD      (./ladder check mutants; BUILD is build/cpu, with everything built)

A mutant is a rung's source, or a file of the rungs' folders that it includes, with one small change of
operators.py. Its unit is compiled as in the build, takes the place of the original in its folder's
library, and the suite is run on it: the tests of that rung, of rungs that call it, of others that include the
file, then all tests that are no single rung's, and those of the rung once more so that undefined behaviour shows. It is

- caught     if a test fails, the program ends by a signal, or it takes ten times as long as the original;
- survived   if everything passes: a hole in the suite, or a change that makes no difference;
- equivalent if the compiler makes the same code of it, as in the build or with -O2 (Papadakis et al.,
             Trivial Compiler Equivalence, ICSE 2015), or tests/equivalent_mutants.txt says why it is;
- GPU alone  if that list says that nothing but a GPU shows it: not caught, but known;
- invalid    if it does not compile. This one and equivalent ones do not count in the score.

The sample is drawn by a seed, from all rungs and from all operators evenly. Results are kept in
BUILD/mutants/results.jsonl, and a later run goes on from there: what was caught stays so while the rung's
code is the same, what survived while the tests are, too. Exit status 1: some mutant survived; 2: the tool
cannot tell, since an unchanged rung does not pass, for example.

"""
import argparse
import fnmatch
import itertools
import os
import pathlib
import sys
import threading

sys.dont_write_bytecode = True
from built_rungs import ROOT, Trouble, rungs_of  # noqa: E402
from equivalents import GPU_ALONE, read_equivalents, reason_for, stale_entries  # noqa: E402
from judge import Judge  # noqa: E402
from mutation import mutants_of  # noqa: E402
from report import report  # noqa: E402
from sample import Sample, sequence  # noqa: E402
from workplace import Workplace  # noqa: E402


def run_all(judge, sample, equivalents, folder, jobs):
    def work(number):
        place = Workplace(judge.build, folder / f"job{number}")
        while (pair := sample.draw()) is not None:
            rung, mutant = pair
            try:
                reason = reason_for(mutant.change, equivalents)
                listed = "GPU alone" if reason.startswith(GPU_ALONE) else "equivalent"
                sample.add({"verdict": listed, "by": "list", "drawn_for": rung.name, "ladder": rung.ladder,
                            "operator": mutant.operator, "file": mutant.file, "line": mutant.line_number,
                            "seconds": 0, "what": reason} if reason else judge.judge(place, mutant, rung))
            except Exception as trouble:  # whatever it is: the other threads must not go on
                sample.fail(trouble)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def options_of(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--rung", action="append",
                        help="only rungs whose names fit, such as '*/gemm/cp_async'; repeatable")
    parser.add_argument("--ladder", help="only rungs of this ladder")
    parser.add_argument("--file", default="*", help="only changes of files whose paths fit")
    parser.add_argument("--operator", default="*", help="only operators whose names fit")
    parser.add_argument("--sample", type=int, default=300, help="how many are tested (300)")
    parser.add_argument("--all", action="store_true", help="all of them: tens of thousands")
    parser.add_argument("--seed", type=int, default=1, help="of the sample (1)")
    parser.add_argument("--seconds", type=float, default=0, help="begin no more after so many")
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1), help="at once (2)")
    parser.add_argument("--others", type=int, default=4,
                        help="how many more rungs that include the file test a survivor (4)")
    parser.add_argument("--quick", action="store_true",
                        help="of the rest of the suite, survivors meet only what takes no time")
    parser.add_argument("--list", action="store_true", help="print the changes, and test nothing")
    return parser.parse_args(arguments)


def main(arguments):
    options = options_of(arguments)
    build = options.build.resolve()
    everything = rungs_of(build)
    rungs = [rung for rung in everything if options.ladder in (None, rung.ladder)
             and any(fnmatch.fnmatch(rung.name, glob) for glob in options.rung or ["*"])]
    if not rungs:
        raise Trouble("no rung is called so")
    files = sorted({file for rung in everything for file in rung.files})
    whole = {file: mutants_of(file, (ROOT / file).read_text()) for file in files}
    listed = ROOT / "tests/equivalent_mutants.txt"
    equivalents = read_equivalents(listed)
    for file, operator, before, _ in stale_entries(equivalents, files, whole):
        raise Trouble(f"{listed.relative_to(ROOT)}: {file} has no such change any more: {operator}: {before}")
    mutants = {file: [mutant for mutant in of_file if fnmatch.fnmatch(file, options.file)
                      and fnmatch.fnmatch(mutant.operator, options.operator)] for file, of_file in whole.items()}
    pairs = sequence(rungs, mutants, options.seed)
    if options.list:
        for rung, mutant in pairs if options.all else itertools.islice(pairs, options.sample):
            print(f"{mutant.file}:{mutant.line_number}: {mutant.operator}\n+ {' '.join(mutant.after).strip()}")
        return 0

    most = sum(map(len, mutants.values())) if options.all else options.sample
    print(f"{most} of {sum(map(len, mutants.values()))} mutants of {len(rungs)} rungs, seed {options.seed}", flush=True)
    folder = build / "mutants"
    folder.mkdir(exist_ok=True)
    judge = Judge(build, everything, folder / "results.jsonl", options.others, options.quick)
    sample = Sample(pairs, most, options.seconds)
    run_all(judge, sample, equivalents, folder, options.jobs)
    if sample.trouble:
        raise sample.trouble
    results = sorted((result for result in sample.results if result["verdict"] != "invalid"),
                     key=lambda result: (result["file"], result["line"]))
    print("\n" + report(results))
    return 1 if any(result["verdict"] == "survived" for result in results) else 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except Trouble as trouble:
        print(f"mutants: {trouble}", file=sys.stderr)
        sys.exit(2)
