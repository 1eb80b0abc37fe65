"""Problems of the sparse ladders, in every mode and one to four dimensions."""
import numpy as np

import numpy_reference as reference
from program import ProgramTest


def sites(rng, shape, batch, count):
    """Distinct sites in any order, int32 [count][1 + ndim]."""
    extents = (batch, *shape)
    places = rng.choice(int(np.prod(extents)), size=count, replace=False)
    return np.stack(np.unravel_index(places, extents), axis=1).astype(np.int32)


class SparseTest(ProgramTest):
    """A test of a sparse ladder."""

    # mode, shape, batch, sites, kernel, stride, pad, dilation, out-padding
    CASES = [
        ("subm", (9,), 1, 5, 3, 1, 0, 1, 0),
        ("subm", (6, 7), 2, 30, (3, 5), 1, 0, (2, 1), 0),
        ("subm", (5, 6, 7), 2, 60, 3, 1, 0, 1, 0),
        ("subm", (3, 4, 3, 4), 1, 40, (3, 1, 3, 3), 1, 0, 1, 0),
        ("strided", (17,), 3, 12, 4, 3, 2, 1, 0),
        ("strided", (8, 9), 2, 25, (2, 3), (2, 1), (0, 2), (1, 2), 0),
        ("strided", (7, 8, 9), 2, 50, 3, 2, 1, 1, 0),
        ("strided", (4, 5, 4, 5), 2, 30, (2, 3, 1, 2), 2, (0, 1, 0, 1), 1, 0),
        ("transposed", (7,), 2, 6, 3, 2, 1, 2, 1),
        ("transposed", (5, 6), 2, 14, (3, 2), (2, 3), (1, 0), 1, (1, 2)),
        ("transposed", (4, 5, 4), 2, 20, 3, 2, 1, 1, 1),
        ("transposed", (3, 3, 2, 3), 1, 10, 2, (1, 2, 1, 2), 0, 1, 0),
        ("inverse", (17,), 2, 12, 3, 2, 1, 1, 0),
        ("inverse", (8, 9), 2, 25, (2, 3), (2, 1), (0, 2), (1, 2), 0),
        ("inverse", (7, 8, 9), 2, 50, 3, 2, 1, 1, 0),
        ("inverse", (4, 5, 4, 5), 2, 30, 2, 2, 0, 1, 0),
        # Padding before and after each axis.
        ("strided", (9, 8), 2, 40, (3, 4), (2, 1), (2, 0, 0, 3), 1, 0),
        ("strided", (12,), 1, 9, 2, 3, (0, 5), 1, 0),
        ("transposed", (5, 6), 2, 20, 3, 2, (0, 1, 1, 0), 1, (1, 0)),
        ("transposed", (4, 5, 4), 1, 20, (3, 2, 3), (2, 1, 2), (0, 3, 1, 0, 2, 1), 1, 0),
        ("inverse", (8, 9), 2, 25, (2, 3), (2, 1), (0, 2, 1, 0), (1, 2), 0),
        # Sites that no window reaches: stride beyond the kernel.
        ("strided", (20,), 1, 6, 1, 5, 0, 1, 0),
        ("inverse", (20,), 1, 6, 1, 5, 0, 1, 0),
        # More than one word of taps in a mask.
        ("subm", (6, 6, 6), 1, 50, (5, 5, 3), 1, 0, 1, 0),
        # Nothing in, nothing out.
        ("subm", (4, 5, 6), 2, 0, 3, 1, 0, 1, 0),
        ("strided", (4, 5), 1, 0, 3, 2, 1, 1, 0),
        ("transposed", (4, 5), 1, 0, 3, 2, 1, 1, 0),
        ("inverse", (4,), 1, 0, 3, 2, 1, 1, 0),
    ]

    @staticmethod
    def words(case):
        mode, shape, batch, _, *steps = case
        words = ["--mode", mode, "--shape", ",".join(map(str, shape)), "--batch", batch]
        for name, value in zip(("kernel", "stride", "pad", "dilation", "out-padding"), steps):
            if name != "pad" or mode != "subm":
                words += [f"--{name}", value if isinstance(value, int) else ",".join(map(str, value))]
        return words

    def problem(self, case):
        """The words that describe it, coords, and what the reference makes of it."""
        mode, shape, batch, count, *steps = case
        coords = sites(self.rng, shape, batch, count)
        path = self.write("coords.npy", coords)
        return (["--coords", path, *self.words(case)], coords,
                reference.rulebook(coords, shape, mode, *steps))

    @staticmethod
    def volume(case):
        return int(np.prod(reference.per_axis(case[4], len(case[1]))))
