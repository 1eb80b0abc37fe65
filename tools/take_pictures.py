#!/usr/bin/env python3
"""Makes docs/pictures/ from what the tour drew, or pictures of the built pages for a look at them.

    take_pictures.py                     `./ladder compare`, then this. Needs python3-pil
    take_pictures.py --pages HTML OUT    HTML: the folder that ./ladder docs wrote. Needs Chromium

The pictures of the tour are large. Half the size and 256 colours are enough for a page. Of the pages, PAGES are taken at the width of a
desktop and of a phone, light and dark: OUT/NAME_WIDTH_SCHEME.png.
"""

import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
PICTURES = {"coffee.png": "filters.png", "tile_maps.png": "tile_maps.png", "lidar.png": "lidar.png"}
PAGES = ("index", "ladder_conv2d", "rung_cuda_optimized_conv2d_direct_register_tile", "benchmarks_conv2d", "results", "map", "techniques", "lesson_04")
WIDTHS = (1300, 400)
SCHEMES = {"light": 1, "dark": 0}  # as Chromium numbers them
HEIGHT = 2400


def of_tour():
    from PIL import Image

    for source, target in PICTURES.items():
        picture = Image.open(ROOT / "out" / "tour" / source).convert("RGB")
        half = picture.resize((picture.width // 2, picture.height // 2), Image.LANCZOS)
        half.quantize(256, method=Image.MEDIANCUT).save(ROOT / "docs" / "pictures" / target, optimize=True)


def of_pages(site, out):
    from drive_players import browser_for

    browser = browser_for("no pictures of the pages")
    if browser is None:
        return
    out.mkdir(parents=True, exist_ok=True)
    for page in PAGES:
        for width in WIDTHS:
            for scheme, number in SCHEMES.items():
                with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
                    subprocess.run([browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
                                    f"--user-data-dir={folder}/profile", f"--window-size={width},{HEIGHT}", f"--blink-settings=preferredColorScheme={number}",
                                    "--virtual-time-budget=4000", f"--screenshot={out / f'{page}_{width}_{scheme}.png'}", (site / f"{page}.html").as_uri()],
                                   capture_output=True, check=True, timeout=120)


def main():
    if len(sys.argv) == 4 and sys.argv[1] == "--pages":
        of_pages(pathlib.Path(sys.argv[2]).resolve(), pathlib.Path(sys.argv[3]).resolve())
    elif len(sys.argv) == 1:
        of_tour()
    else:
        print(__doc__, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
