#!/usr/bin/env python3
"""Writes tests/golden/tokenizer.json: hashes of what the `tokenizers` package makes of a generated corpus.

The corpus is generated from the fragments below by a small random generator that the C++ test repeats.
Needs the models that tools/get_models fetches: $WINNOW_MODELS or ~/.cache/winnow/models.
"""

import json
import os
import pathlib

os.environ["TOKENIZERS_PARALLELISM"] = "false"
import tokenizers

import compare_tokenizers as mixed
import reference_tokenizers as reference

OUT = pathlib.Path(__file__).parent.parent / "tests/golden/tokenizer.json"
MODELS = pathlib.Path(os.environ.get("WINNOW_MODELS", pathlib.Path.home() / ".cache/winnow/models"))
FILES = ["smollm2-135m-instruct-q4_1.gguf", "qwen2.5-coder-0.5b-instruct.gguf", "gemma-3-270m-q4_k_m.gguf"]
NUM_SAMPLES = 4096
GROUP = 64  # samples per hash
ODD = ["\x00", "\x06", "\x1b[0m", "\ufffd", "\u2581", "e\u0301", "\U00040000", "_", "=", "a", "\u0e31",
       "\u017f", "\u1f88", "\u01c5", "\u02b0", "\u0327", "/", "\n/", "'", "\u2167", "\u00a0\n", "\ufb01"]
FRAGMENTS = mixed.WORDS + mixed.CODE + mixed.EMOJI + mixed.SPACES + ODD + [" "] * 60


class Random:
    """A 32-bit linear congruential step; the lowest bits, which hardly vary, are left out."""

    def __init__(self, seed):
        self.state = seed

    def below(self, limit):
        self.state = (self.state * 1664525 + 1013904223) % 2**32
        return (self.state >> 8) % limit


def sample(seed):
    random = Random(seed)
    text = ""
    for _ in range(1 + random.below(60)):
        fragment = FRAGMENTS[random.below(len(FRAGMENTS))]
        text += fragment * (1 + random.below(40) if random.below(8) == 0 else 1)
    return text


def group_hashes(lists):
    """One hash for every GROUP lists, over the length and the numbers of each."""
    flat = [[number for one in lists[i:i + GROUP] for number in (len(one), *one)]
            for i in range(0, len(lists), GROUP)]
    return [fnv1a(numbers) for numbers in flat]


def fnv1a(numbers):
    """FNV-1a over 32-bit little-endian numbers."""
    value = 0xCBF29CE484222325
    for number in numbers:
        for byte in number.to_bytes(4, "little"):
            value = (value ^ byte) * 0x100000001B3 % 2**64
    return f"{value:016x}"


def word_ends(pre_tokenizer, text):
    """Byte offsets at which the words end."""
    ends, size = [], 0
    for _, (begin, end) in pre_tokenizer.pre_tokenize_str(text):
        size += len(text[begin:end].encode())
        ends.append(size)
    return ends


def main():
    samples = [sample(i) for i in range(NUM_SAMPLES)]
    out = {
        "provenance": f"tools/make_tokenizer_golden.py; tokenizers {tokenizers.__version__}; FNV-1a of the ids, "
                      f"or of the byte offsets where words end, of {GROUP} generated samples each",
        "samples": NUM_SAMPLES, "group": GROUP, "fragments": FRAGMENTS, "models": {}, "pretokenizers": {}}
    for name in ["gpt-2", "smollm", *reference.PATTERNS]:
        pre = reference.byte_level(name)
        out["pretokenizers"][name] = group_hashes([word_ends(pre, s) for s in samples])
    for name in FILES:
        tokenizer = reference.build(reference.Vocabulary(MODELS / name))
        out["models"][name] = group_hashes(
            [tokenizer.encode(s, add_special_tokens=False).ids for s in samples])
    lines = ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in out.items())
    OUT.write_text("{" + lines + "}\n")


if __name__ == "__main__":
    main()
