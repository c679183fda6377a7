#!/usr/bin/env python3
"""Compares Winnow's ids and speed with the `tokenizers` package on generated mixed text.

compare_tokenizers.py TOKENIZE_SAMPLES MODEL.gguf... [--bytes N] [--text FILE...]

TOKENIZE_SAMPLES is the built program of that name. Needs: pip install tokenizers gguf.
Prints per model: samples, bytes, differing samples, and the ratio of the CPU times of one thread.
"""

import argparse
import os
import random
import struct
import subprocess
import sys
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"
import reference_tokenizers as reference

SCRIPTS = [  # (first, last code point)
    (0x20, 0x7E), (0xA0, 0x17F), (0x370, 0x3FF), (0x400, 0x4FF), (0x531, 0x556), (0x5D0, 0x5EA),
    (0x610, 0x66F), (0x900, 0x97F), (0x980, 0x9FE), (0xB80, 0xBFA), (0xE01, 0xE5B), (0x10A0, 0x10FF),
    (0x1100, 0x11FF), (0x1200, 0x137F), (0x1E00, 0x1FFF), (0x2000, 0x206F), (0x2100, 0x22FF),
    (0x2500, 0x27BF), (0x3000, 0x30FF), (0x4E00, 0x9FFF), (0xAC00, 0xD7A3), (0xFB00, 0xFB06),
    (0xFE00, 0xFE0F), (0xFF01, 0xFF5E), (0x1D400, 0x1D7FF), (0x1F1E6, 0x1F1FF), (0x1F300, 0x1F64F),
    (0x1F900, 0x1F9FF), (0x20000, 0x2A6DF), (0x40000, 0x4FFFD), (0xE0020, 0xE007F),
]
EMOJI = ["\U0001F469\u200D\U0001F467", "\U0001F91D\U0001F3FD", "\u2764\uFE0F", "\U0001F1E9\U0001F1EA",
         "\U0001F3F4\U000E0067\U000E0062\U000E007F", "1\uFE0F\u20E3", "\U0001F600"]
SPACES = [" ", "  ", "    ", "\t", "\n", "\r\n", "\n\n", "\u00a0", "\u3000", "\u2028", "\u200b", "\x0b"]
WORDS = ("the of and to in is that it was for on are as with his they at be this from have or by one "
         "had not but what all were when we there can an your which their said if do will each about "
         "Straße naïve déjà façade señor größer Москва привет мир γλῶσσα שלום עולם مرحبا नमस्ते "
         "你好 世界 東京 ありがとう カタカナ 한국어 안녕하세요 สวัสดี ქართული Հայաստան tiếng Việt "
         "DON'T I'll we've it's they'RE x'ſt 'd 12 345 6789 3.14159 1e-6 ½ ² Ⅷ ٣٤").split()
CODE = ["def f(x):\n\treturn x ** 2\n", "for (int i = 0; i < n; ++i) {\n    a[i] += b[i];\n}\n",
        "<table><tr><td>&nbsp;</td></tr></table>", "std::vector<int> v{1, 2, 3};  // ok\n",
        "SELECT * FROM t WHERE a >= 10 AND b != 'x''y';", "#include <stdio.h>\r\n", "=====+++----____",
        "{\"key\": [1, null, true, \"\\u00e9\"]}", "$x->{'y'} =~ s/\\s+/ /g;", "HTTPServerError404_v2",
        "<tool_call>{}</tool_call>", "<|im_start|>user<|im_end|>", "<end_of_turn>", "<unused7>", "[INST]"]


def sample(rng):
    kind = rng.randrange(8)
    if kind == 0:
        return "".join(rng.choice(WORDS) + rng.choice([" ", " ", " ", ", ", ". ", "\n"])
                       for _ in range(rng.randrange(200)))
    if kind == 1:
        return "".join(rng.choice(CODE) for _ in range(rng.randrange(20)))
    if kind == 2:
        low, high = rng.choice(SCRIPTS)
        return "".join(chr(rng.randint(low, high)) if rng.random() < 0.85 else " "
                       for _ in range(rng.randrange(300)))
    if kind == 3:
        return "".join(rng.choice(EMOJI + WORDS) + rng.choice(["", " "]) for _ in range(rng.randrange(80)))
    if kind == 4:
        return "".join(rng.choice(SPACES) * rng.choice([1, 1, 2, 3, 7, 35]) + rng.choice(["", "x", "Yz", "1", "."])
                       for _ in range(rng.randrange(60)))
    if kind == 5:
        return rng.randbytes(rng.randrange(600)).decode("utf-8", errors="replace")
    if kind == 6:
        return "".join(chr(rng.randint(*rng.choice(SCRIPTS))) for _ in range(rng.randrange(300)))
    return "".join(rng.choice("aA_=-*#. e1\n\u2581") * rng.randrange(1, 40) for _ in range(rng.randrange(30)))


def run_winnow(program, model, samples, repeats):
    data = b"".join(struct.pack("<I", len(s)) + s for s in samples)
    done = subprocess.run([program, model, str(repeats)], input=data, capture_output=True)
    if done.returncode != 0:
        sys.exit(f"{program}: exit {done.returncode}: {done.stderr.decode(errors='replace')}")
    ids, pos = [], 0
    for _ in samples:
        (count,) = struct.unpack_from("<I", done.stdout, pos)
        ids.append(list(struct.unpack_from(f"<{count}i", done.stdout, pos + 4)))
        pos += 4 + 4 * count
    return ids, float(done.stderr)


def run_reference(tokenizer, samples, repeats):
    fastest = float("inf")
    for _ in range(repeats):
        begin = time.process_time()
        ids = [tokenizer.encode(s, add_special_tokens=False).ids for s in samples]
        fastest = min(fastest, time.process_time() - begin)
    return ids, fastest


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("models", nargs="+")
    parser.add_argument("--bytes", type=int, default=2_500_000, help="of generated text")
    parser.add_argument("--text", nargs="*", default=[], help="more texts, one sample per file")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=1)
    args = parser.parse_args()
    rng = random.Random(args.seed)
    texts = [open(path, encoding="utf-8", errors="replace", newline="").read() for path in args.text]
    size = 0
    while size < args.bytes:
        texts.append(sample(rng))
        size += len(texts[-1].encode())
    encoded = [t.encode() for t in texts]
    failed = False
    for model in args.models:
        tokenizer = reference.build(reference.Vocabulary(model))
        got, seconds = run_winnow(args.program, model, encoded, args.repeats)
        want, reference_seconds = run_reference(tokenizer, texts, args.repeats)
        differing = [i for i in range(len(texts)) if got[i] != want[i]]
        total = sum(map(len, encoded))
        print(f"{os.path.basename(model)}: {len(texts)} samples, {total} bytes, "
              f"{sum(map(len, want))} ids, {len(differing)} samples differ; "
              f"{total / seconds / 1e6:.1f} MB/s against {total / reference_seconds / 1e6:.1f}: "
              f"{reference_seconds / seconds:.1f} times as fast", flush=True)
        for i in differing[:5]:
            at = next((k for k, (a, b) in enumerate(zip(got[i], want[i])) if a != b), min(len(got[i]), len(want[i])))
            print(f"  sample {i}: first difference at id {at}: found {got[i][at:at + 6]}, "
                  f"expected {want[i][at:at + 6]}; expected text from there: "
                  f"{tokenizer.decode(want[i][max(0, at - 2):at + 6], skip_special_tokens=False)!r}")
        failed |= bool(differing)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
