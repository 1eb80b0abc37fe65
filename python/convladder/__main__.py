"""python -m convladder prints the version and the places where rungs run."""
from . import __version__, _core, rungs


def main():
    print(f"convladder {__version__}")
    for place, device, why in _core.places():
        count = sum(place in row["where"] for row in rungs())
        print(f"{place + ':':10}{f'{count} rungs, on {device}' if device else f'not here: {why}'}")


if __name__ == "__main__":
    main()
