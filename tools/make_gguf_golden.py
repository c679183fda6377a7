#!/usr/bin/env python3
"""Makes tests/golden/qformats.txt: stored groups of every quantised type and the floats they stand for.

The right values are those of the `gguf` package (gguf.quants.dequantize). Needs: pip install gguf numpy.
Usage: tools/make_gguf_golden.py [OUTPUT]   (run from the root of the repository)

One line per type: name, number of elements, the stored bytes and the floats (little-endian) in hex.
"""

import importlib.metadata
import pathlib
import sys

import gguf
import numpy as np

# Bytes of the 16-bit floats within a group: random bytes there could be infinite or NaN.
HALF_OFFSETS = {
    "F32": [], "F16": [0], "BF16": [], "Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0],
    "Q2_K": [80, 82], "Q3_K": [108], "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208], "IQ4_NL": [0],
    "IQ4_XS": [0], "MXFP4": [],
}
SPECIAL_HALVES = [0x0000, 0x8000, 0x0001, 0x83FF, 0x7BFF, 0xFBFF]  # zeros, subnormals, largest numbers


def random_groups(rng, name, num_groups):
    qtype = gguf.GGMLQuantizationType[name]
    _, group_bytes = gguf.GGML_QUANT_SIZES[qtype]
    groups = rng.integers(0, 256, (num_groups, group_bytes), dtype=np.uint8)
    for offset in HALF_OFFSETS[name]:
        halves = rng.standard_normal(num_groups).astype(np.float16).view(np.uint16)
        num_special = min(len(SPECIAL_HALVES), num_groups // 2)
        halves[:num_special] = rng.permutation(SPECIAL_HALVES)[:num_special]
        groups[:, offset : offset + 2] = halves.view(np.uint8).reshape(num_groups, 2)
    if name in ("F32", "BF16"):
        values = (rng.standard_normal(num_groups) * 10.0 ** rng.integers(-30, 30, num_groups)).astype(np.float32)
        groups = values.view(np.uint8).reshape(num_groups, 4)[:, 4 - group_bytes :].copy()
    if name == "MXFP4":
        groups[:4, 0] = [0, 1, 2, 255]
    return qtype, groups


def main():
    output = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "tests/golden/qformats.txt")
    rng = np.random.default_rng(20240501)
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in ("gguf", "numpy"))
    lines = [
        f"# Made by tools/make_gguf_golden.py with {versions}; do not edit.",
        "# type, elements, stored bytes, floats that gguf.quants.dequantize gives (both in hex, little-endian)",
    ]
    for name in HALF_OFFSETS:
        group_size, _ = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[name]]
        num_groups = {1: 48, 32: 8, 256: 3}[group_size]
        qtype, groups = random_groups(rng, name, num_groups)
        with np.errstate(all="ignore"):
            floats = gguf.quants.dequantize(groups.reshape(1, -1), qtype).astype(np.float32)
        assert floats.size == num_groups * group_size and not np.isnan(floats).any(), name
        lines.append(f"{name} {floats.size} {groups.tobytes().hex()} {floats.tobytes().hex()}")
    output.write_text("\n".join(lines) + "\n")


main()
