"""Grades a class: several processes, a line a submission, and what was done when the run before was killed.

A submission is graded in a process of its own, so that one that goes wrong takes no other with it. OUT/state/NAME.done
is written last, with a digest of all that the grade depends on.
"""
import contextlib
import ctypes
import hashlib
import json
import multiprocessing
import multiprocessing.connection
import os
import shutil
import signal
import sys
import threading
import time
import traceback

import formats
from submission import name_of, read
from tree import version

SECONDS_BETWEEN_LINES = 5
PR_SET_PDEATHSIG = 1
DONE, FAILED, SKIPPED = 0, 1, 2  # how the process of a submission ends


def digest_of(submission, assignment, key):
    """Of the files, the assignment with its marks, the version and the key."""
    about = [submission.digest(), assignment.name, (assignment.folder / "assignment.toml").read_text(), version(),
             hashlib.sha256(key).hexdigest()]
    return hashlib.sha256(json.dumps(about).encode()).hexdigest()


def end_with_parent():
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


@contextlib.contextmanager
def saying(say, line):
    """Says the line, and again every few seconds while the block runs. No process is forked meanwhile."""
    over = threading.Event()
    begin = time.monotonic()

    def repeat():
        say(line)
        while not over.wait(SECONDS_BETWEEN_LINES - 0.5):
            say(f"  {line[0].lower()}{line[1:]}: {time.monotonic() - begin:.0f} s")
    thread = threading.Thread(target=repeat)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


class Batch:
    """A run over submissions. `keep`: the folders that they were tried in stay in OUT/state."""

    def __init__(self, grader, out, *, jobs=1, resume=False, keep=False, say=print):
        self.grader, self.out, self.jobs, self.resume, self.keep, self.say = grader, out, jobs, resume, keep, say
        self.state = out / "state"
        self.done = self.skipped = 0
        self.running = {}  # the process's sentinel -> (process, path)
        self.begin = self.said = time.monotonic()

    def grade(self, paths):
        """Grades what lies at the paths. @returns names of those that could not be graded"""
        self.state.mkdir(parents=True, exist_ok=True)
        self.total = len(paths)
        waiting, failed = list(paths), []
        try:
            while waiting or self.running:
                while waiting and len(self.running) < self.jobs:
                    self.start(waiting.pop(0))
                timeout = 1 if self.terminal else SECONDS_BETWEEN_LINES
                for sentinel in multiprocessing.connection.wait(list(self.running), timeout):
                    process, path = self.running.pop(sentinel)
                    process.join()
                    failed += self.finished(path, process.exitcode)
                self.progress()
        finally:
            for process, _ in self.running.values():
                process.kill()
            for process, _ in self.running.values():
                process.join()
        return failed

    def start(self, path):
        process = multiprocessing.get_context("fork").Process(target=self.work, args=(path,))
        process.start()
        self.running[process.sentinel] = (process, path)

    def work(self, path):
        """In a process of its own: grades one, unless that was done."""
        end_with_parent()
        sys.stdout.flush()
        submission = read(path, self.grader.assignment.submit)
        digest = digest_of(submission, self.grader.assignment, self.grader.key)
        done = self.state / f"{submission.name}.done"
        folder = self.out / submission.name
        if self.resume and done.is_file() and done.read_text() == digest + "\n" and (folder / "report.json").is_file():
            os._exit(SKIPPED)
        done.unlink(missing_ok=True)
        tried = self.state / f"{submission.name}.tried"
        shutil.rmtree(tried, ignore_errors=True)
        tried.mkdir(parents=True)
        begin = time.monotonic()
        status = DONE
        try:
            folder.mkdir(exist_ok=True)
            self.keep_files(submission)
            # Valid whatever happens to this process.
            formats.write_results(folder, self.grader.failure(submission, "grading was interrupted"))
            report, log = self.grader.grade(submission, tried)
        except Exception as error:
            report, status = self.grader.failure(submission, f"{type(error).__name__}: {error}"), FAILED
            log = {"seconds": {}, "error": traceback.format_exc()}
        log["seconds"]["all"] = round(time.monotonic() - begin, 3)
        formats.write_all(folder, report, log)
        if not self.keep:
            shutil.rmtree(tried, ignore_errors=True)
        if status == DONE:
            formats.write(done, digest + "\n")
        os._exit(status)

    def keep_files(self, submission):
        """A copy of what was looked at: for ./ladder similar, and for whoever asks later."""
        kept = self.state / f"{submission.name}.files"
        shutil.rmtree(kept, ignore_errors=True)
        for path, content in submission.files.items():
            (kept / path).parent.mkdir(parents=True, exist_ok=True)
            (kept / path).write_bytes(content)

    def finished(self, path, exit_code):
        name = name_of(path)
        self.done += 1
        if exit_code == SKIPPED:
            self.skipped += 1
            self.line(f"{name}: as before")
            return []
        if exit_code == DONE:
            report = json.loads((self.out / name / "report.json").read_text())
            self.line(f"{name}: {report['score']:g} of {report['max_score']}" +
                      ("" if report["status"] == "graded" else f", {report['status']}"))
            return []
        if exit_code != FAILED:  # the process was ended: its report is written here
            submission = read(path, self.grader.assignment.submit)
            report = self.grader.failure(submission, f"the grader's process ended with {exit_code}")
            formats.write_all(self.out / name, report, {"seconds": {}})
        self.line(f"{name}: could not be graded ({self.out / name / 'log.json'} says why)")
        return [name]

    # --- What is said

    @property
    def terminal(self):
        return sys.stderr.isatty()

    def line(self, text):
        if self.terminal:
            sys.stderr.write("\r\x1b[K")
        self.say(f"[{self.done}/{self.total}] {text}")
        self.said = time.monotonic()

    def progress(self):
        """A bar in a terminal; else a line, where nothing was said for a while."""
        now = time.monotonic()
        graded = self.done - self.skipped
        left = f", about {duration((now - self.begin) / graded * (self.total - self.done))} left" if graded else ""
        if self.terminal:
            bar = "#" * (20 * self.done // max(1, self.total))
            sys.stderr.write(f"\r  grading [{bar:20}] {self.done}/{self.total}{left}\x1b[K")
            if self.done == self.total:
                sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
        elif now - self.said >= SECONDS_BETWEEN_LINES - 0.5 and self.done < self.total:
            self.say(f"  grading: {self.done} of {self.total} done{left}")
            self.said = now


def duration(seconds):
    return f"{seconds / 60:.0f} min" if seconds >= 90 else f"{seconds:.0f} s"


def reports_in(out):
    """The reports of all submissions that were graded into OUT, by name."""
    return [json.loads(file.read_text()) for file in sorted(out.glob("*/report.json"), key=lambda file: file.parent.name)]
