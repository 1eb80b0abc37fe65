"""What the tests of ./ladder grade share: the grader's modules with fake trials, and submissions to a3_tile_and_halo."""
import io
import json
import pathlib
import sys
import tempfile
import unittest
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools/grade"), str(ROOT / "tools/handout")]
sys.dont_write_bytecode = True
try:
    import assignment as assignments
except ModuleNotFoundError:
    print("SKIPPED: Python 3.11 or newer is needed (tomllib)")
    sys.exit(77)
import fake_trials  # noqa: E402

sys.modules["trials"] = fake_trials
import tree  # noqa: E402

DONE, FAILED, BAD_INPUT, MISSING, INTERRUPTED = 0, 1, 2, 3, 130
TILE = "a3_tile_and_halo"
KERNEL = "cuda_optimized/conv2d/direct/tiled.cu"
RUNG = "cuda_optimized/conv2d/direct/tiled"
KEY = bytes(range(32))
COUNTS = {"loads_of_x": 4.5, "barriers": 6.0}


def counted_by_id(counter, rung, problem):
    """In the place of the microscope."""
    return {"loads_per_output.x": 4.5, "barriers_per_block": 6.0}[counter]


class FakeCounted:
    about = "the same for all"

    def __init__(self, trials):
        pass

    def __call__(self, *asked):
        return counted_by_id(*asked)


def solved(student, *fake, hunt="good mended", predicted=COUNTS):
    """The files of a student of A3 whose work is right but for what the lines say."""
    assignment = assignments.read(TILE)
    asked = json.loads(tree.predictions_of(assignment, tree.Draw(KEY, TILE, student)))
    for name, value in predicted.items():
        asked[name]["value"] = value
    return {KERNEL: "".join(f"// fake: {line}\n" for line in fake).encode(), "predictions.json": json.dumps(asked).encode(),
            "hunt/problem.txt": hunt.encode(), "hunt/direct.cu": b"// mended"}


def lay(folder, files):
    for path, content in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)


def packed(entries):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, content in entries:
            archive.writestr(path, content)
    return out.getvalue()


class WithFolder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="convladder-test-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.assignment = assignments.read(TILE)
