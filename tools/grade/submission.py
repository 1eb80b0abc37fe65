"""Reads what was handed in: of a folder or a zip, the files that the assignment names, and nothing else.

Nothing of it is trusted. Each folder on the way to a file is opened by itself, without following a link; sizes are
bounded while reading, not by what an archive says of itself.
"""
import dataclasses
import hashlib
import io
import json
import os
import pathlib
import re
import stat
import urllib.parse
import zipfile
import zlib

from tree import MOST_BYTES, MOST_BYTES_OTHERWISE

MOST_ENTRIES = 64                   # of a zip, and of a folder that is looked through
MOST_BYTES_OF_ZIP = 4 * 1024 ** 2   # packed, and unpacked
MANIFEST = "handout.json"           # says whose handout it was; read if it is there
MOST_BYTES_OF_MANIFEST = 256 * 1024
NOT_HANDED_IN = "not handed in, so the handout's is taken: "  # how such a note begins
OUR_NAMES = {"state", "class.csv", "class.json"}  # beside the folders of submissions in OUT

# Characters that make text look like other text than it is.
BIDIRECTIONAL = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


class Refused(Exception):
    """Why a submission is not looked at, in a line."""


@dataclasses.dataclass
class Submission:
    """The listed files that are there; empty with a reason where it is refused."""
    name: str
    files: dict
    refused: str = ""
    manifest: dict = dataclasses.field(default_factory=dict)
    notes: list = dataclasses.field(default_factory=list)

    def digests(self):
        return {path: hashlib.sha256(content).hexdigest() for path, content in sorted(self.files.items())}

    def digest(self):
        about = json.dumps([self.digests(), self.refused, self.manifest.get("variant")])
        return hashlib.sha256(about.encode()).hexdigest()


def name_of(path):
    """The student's name: that of the folder, or of the zip without its suffix; as a name that any file may have."""
    name = path.name[:-4] if path.name.lower().endswith(".zip") else path.name
    quoted = urllib.parse.quote(name, safe="@+=, ", errors="surrogateescape")[:120]
    if quoted.lower() in OUR_NAMES or quoted.startswith("."):
        quoted = f"%{ord(quoted[0]):02X}{quoted[1:]}"
    return quoted


def most_bytes_of(path):
    if path == MANIFEST:
        return MOST_BYTES_OF_MANIFEST
    return MOST_BYTES.get(path, MOST_BYTES_OTHERWISE)


def clean(text):
    """The text without control characters and what turns the direction of writing: safe in a terminal."""
    text = BIDIRECTIONAL.sub("\ufffd", text.encode("utf-8", "replace").decode())
    return re.sub("[\x00-\x08\x0b-\x1f\x7f-\x9f\ufffe\uffff]", "\ufffd", text)


def checked(path, content):
    """The content. @raises Refused where it is no plain text."""
    if len(content) > most_bytes_of(path):
        raise Refused(f"{path}: has more than {most_bytes_of(path)} bytes")
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        raise Refused(f"{path}: is no UTF-8 text (byte {error.start})") from None
    if "\0" in text:
        raise Refused(f"{path}: has a zero byte")
    found = BIDIRECTIONAL.search(text)
    if found:
        line = text.count("\n", 0, found.start()) + 1
        raise Refused(f"{path}:{line}: has the invisible character U+{ord(found.group()):04X}, which turns the direction of writing")
    return content


def read(path, submit):
    """What lies at `path`, a folder or a zip. Refused or not, it has a name."""
    name = name_of(path)
    try:
        mode = os.lstat(path).st_mode
        if stat.S_ISDIR(mode):
            found = read_folder(path, submit)
        elif stat.S_ISREG(mode):
            found = read_zip(path, submit)
        else:
            raise Refused("is neither a folder nor a zip")
        found = {place: checked(place, content) for place, content in found.items()}
    except Refused as error:
        return Submission(name, {}, clean(str(error)))
    except OSError as error:
        return Submission(name, {}, f"cannot be read: {error.strerror}")
    manifest = manifest_of(found.pop(MANIFEST, b"{}"))
    if not found:
        return Submission(name, {}, "has none of the files that are to be handed in: " + ", ".join(submit), manifest)
    notes = [NOT_HANDED_IN + file for file in submit if file not in found]
    return Submission(name, found, "", manifest, notes)


def manifest_of(content):
    try:
        manifest = json.loads(content)
    except (ValueError, RecursionError):
        return {}
    return manifest if isinstance(manifest, dict) else {}


def places_of(wanted, submit, folders):
    """Where a file may lie, best first: at its place, within the one folder that all is in, flat."""
    yield wanted
    if len(folders) == 1:
        yield f"{folders[0]}/{wanted}"
    base = wanted.rsplit("/", 1)[-1]
    if sum(path.rsplit("/", 1)[-1] == base for path in submit) == 1:
        yield base


# --- Folders

def read_folder(folder, submit):
    with os.scandir(folder) as entries:
        first = [entry for entry, _ in zip(entries, range(MOST_ENTRIES))]
    folders = [entry.name for entry in first if entry.is_dir(follow_symlinks=False) and not entry.name.startswith(".")]
    alone = folders if len(first) < MOST_ENTRIES and not any(
        os.path.lexists(folder / path.split("/")[0]) for path in submit) else []
    root = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        found = {}
        for wanted in [*submit, MANIFEST]:
            for place in places_of(wanted, submit, alone):
                content = read_below(root, place, most_bytes_of(wanted))
                if content is not None:
                    found[wanted] = content
                    break
        return found
    finally:
        os.close(root)


def read_below(root, place, most):
    """At most `most` + 1 bytes; None if there is no such file."""
    opened = []
    try:
        current = root
        *folders, file = place.split("/")
        for part in folders:
            current = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=current)
            opened.append(current)
        # A FIFO would wait for a writer without O_NONBLOCK.
        descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=current)
        opened.append(descriptor)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise Refused(f"{place}: is no ordinary file")
        content = b""
        while len(content) <= most:
            block = os.read(descriptor, most + 1 - len(content))
            if not block:
                break
            content += block
        return content
    except FileNotFoundError:
        return None
    except OSError:
        # A link, or a folder in the way, or something that cannot be opened.
        raise Refused(f"{place}: is no ordinary file in ordinary folders") from None
    finally:
        for descriptor in opened:
            os.close(descriptor)


# --- Zips

def read_zip(path, submit):
    with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
        packed = file.read(MOST_BYTES_OF_ZIP + 1)
    if len(packed) > MOST_BYTES_OF_ZIP:
        raise Refused(f"the zip has more than {MOST_BYTES_OF_ZIP} bytes")
    try:
        with zipfile.ZipFile(io.BytesIO(packed)) as archive:
            return read_entries(archive, submit)
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError, ValueError) as error:
        raise Refused(f"is no zip that can be read: {str(error)[:100]}") from None


def read_entries(archive, submit):
    entries = archive.infolist()
    if len(entries) > MOST_ENTRIES:
        raise Refused(f"the zip has {len(entries)} entries, and may have {MOST_ENTRIES}; hand in what ./ladder submit packs")
    by_name = {}
    for entry in entries:
        name = entry.filename.replace("\\", "/")
        if name.startswith("/") or ".." in pathlib.PurePosixPath(name).parts:
            raise Refused(f"the zip has an entry {name[:100]}, which leads out of it")
        if name in by_name:
            raise Refused(f"the zip has {name[:100]} twice")
        by_name[name] = entry
    tops = {name.split("/")[0] for name in by_name if not name.startswith((".", "__MACOSX/"))}
    alone = list(tops) if len(tops) == 1 else []
    found, unpacked = {}, 0
    for wanted in [*submit, MANIFEST]:
        for place in places_of(wanted, submit, alone):
            entry = by_name.get(place)
            if entry is None or entry.is_dir():
                continue
            kind = stat.S_IFMT(entry.external_attr >> 16)
            if kind not in (0, stat.S_IFREG):
                raise Refused(f"{place}: is no ordinary file")
            if entry.flag_bits & 1 or entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise Refused(f"{place}: is encrypted, or not packed as zips commonly are")
            with archive.open(entry) as file:
                found[wanted] = file.read(most_bytes_of(wanted) + 1)
            unpacked += len(found[wanted])
            if unpacked > MOST_BYTES_OF_ZIP:
                raise Refused(f"the zip unpacks to more than {MOST_BYTES_OF_ZIP} bytes")
            break
    return found
