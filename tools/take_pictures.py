#!/usr/bin/env python3
"""Makes docs/pictures/ from what the tour drew: `./ladder compare`, then this. Needs python3-pil.

The pictures of the tour are large. Half the size and 256 colours are enough for a page.
"""

import pathlib

from PIL import Image

ROOT = pathlib.Path(__file__).resolve().parent.parent
PICTURES = {"coffee.png": "filters.png", "tile_maps.png": "tile_maps.png", "lidar.png": "lidar.png"}


def main():
    for source, target in PICTURES.items():
        picture = Image.open(ROOT / "out" / "tour" / source).convert("RGB")
        half = picture.resize((picture.width // 2, picture.height // 2), Image.LANCZOS)
        half.quantize(256, method=Image.MEDIANCUT).save(ROOT / "docs" / "pictures" / target, optimize=True)


if __name__ == "__main__":
    main()
