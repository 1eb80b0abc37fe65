"""PNG files, made and measured without a library for pictures."""
import struct
import zlib


def png_bytes(image, mangle=None):
    """An 8-bit PNG: image [h][w] grey or [h][w][3]."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    height, width = image.shape[:2]
    colour = 0 if image.ndim == 2 else 2
    rows = b"".join(b"\0" + image[row].tobytes() for row in range(height))
    return (b"\x89PNG\r\n\x1a\n"
            + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, colour, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def png_size(data):
    assert data[:8] == b"\x89PNG\r\n\x1a\n" and data[12:16] == b"IHDR"
    return struct.unpack(">II", data[16:24])
