#!/usr/bin/env python3
"""Writes tests/golden/truth/long-NAME.json: what the float32 reference says at the end of long texts.

Each file holds the ids, and for the last 256 positions the log-probability of the next id and the most
probable token, in the layout of the shorter truth files (values belong to the end of `ids`).

    make_long_truth.py [--models DIR] [--quality DIR] [NAME...]

--models: the folder of the real model files (tools/get_models). The ids of a file that exists are kept and
only the values made again; for a new one, --quality names the folder that holds qwen-needles-8192-seed0.json
and qwen-code-16384.json, and the Gemma texts come from Python's own documentation and sources, through the
vocabulary in the model file.

Needs: numpy, gguf; for the Gemma texts also sentencepiece and protobuf.
"""

import argparse
import json
import math
import os
import sys
from importlib.metadata import version
from pathlib import Path

import reference_forward

FOLDER = Path(__file__).resolve().parent.parent / "tests" / "golden" / "truth"
LAST = 256
QWEN = "qwen2.5-coder-0.5b-instruct.gguf"
GEMMA = "gemma-3-270m-q4_k_m.gguf"


def sentencepiece_of(weights):
    """The vocabulary of a GGUF file as a sentencepiece processor."""
    import sentencepiece
    from sentencepiece import sentencepiece_model_pb2

    model = sentencepiece_model_pb2.ModelProto()
    model.trainer_spec.model_type = model.trainer_spec.BPE
    model.trainer_spec.byte_fallback = True
    model.trainer_spec.unk_id = weights.get("tokenizer.ggml.unknown_token_id")
    model.trainer_spec.bos_id = weights.get("tokenizer.ggml.bos_token_id")
    model.trainer_spec.eos_id = weights.get("tokenizer.ggml.eos_token_id")
    model.trainer_spec.pad_id = weights.get("tokenizer.ggml.padding_token_id", -1)
    model.normalizer_spec.name = "identity"
    model.normalizer_spec.add_dummy_prefix = bool(weights.get("tokenizer.ggml.add_space_prefix", True))
    model.normalizer_spec.remove_extra_whitespaces = False
    tokens, scores = weights.get("tokenizer.ggml.tokens"), weights.get("tokenizer.ggml.scores")
    for token, score, kind in zip(tokens, scores, weights.get("tokenizer.ggml.token_type")):
        # Types 1 to 6 mean the same in both. Converters write the spaces of user-defined pieces as they are.
        model.pieces.add(piece=token.replace(" ", "\u2581"), score=score, type=int(kind))
    processor = sentencepiece.SentencePieceProcessor()
    processor.LoadFromSerializedProto(model.SerializeToString())
    return processor


def gemma_ids(weights, text, count):
    ids = [weights.get("tokenizer.ggml.bos_token_id")]
    ids += sentencepiece_of(weights).encode(text[: 8 * count])
    return ids[:count]


def python_documentation():
    from pydoc_data import topics

    return "\n\n".join(topics.topics[name] for name in sorted(topics.topics))


def python_sources():
    library = Path(json.__file__).parent.parent
    names = ("argparse.py", "ast.py", "bdb.py", "calendar.py", "configparser.py")
    return "\n\n".join((library / name).read_text() for name in names)


def quality_set(args, name):
    if args.quality is None:
        sys.exit(f"a new file needs --quality, the folder of {name}")
    with open(args.quality / name) as f:
        return json.load(f)


def needle_ids(args, name):
    """The document, then every question and its answer, which must be fetched from far back."""
    needles = quality_set(args, name)
    ids = needles["ids"]
    for asked in needles["asked_after"]:
        ids = ids + asked["question_ids"] + asked["answer_ids"]
    return ids


# name -> (model file, where the text comes from, ids of (args, weights))
TEXTS = {
    "qwen0.5b-needles-8192": (
        QWEN,
        "qwen-needles-8192-seed0.json (facts hidden in a long text), followed by all its questions with their answers",
        lambda args, w: needle_ids(args, "qwen-needles-8192-seed0.json"),
    ),
    "qwen0.5b-code-16384": (
        QWEN,
        "qwen-code-16384.json (sources of Python's standard library)",
        lambda args, w: quality_set(args, "qwen-code-16384.json")["ids"],
    ),
    "gemma3-code-8192": (
        GEMMA,
        f"sources of Python {sys.version_info.major}.{sys.version_info.minor}",
        lambda args, w: gemma_ids(w, python_sources(), 8192),
    ),
    "gemma3-prose-12288": (
        GEMMA,
        f"documentation of Python {sys.version_info.major}.{sys.version_info.minor} (pydoc_data.topics)",
        lambda args, w: gemma_ids(w, python_documentation(), 12288),
    ),
    "gemma3-prose-32768": (
        GEMMA,
        f"documentation of Python {sys.version_info.major}.{sys.version_info.minor} (pydoc_data.topics)",
        lambda args, w: gemma_ids(w, python_documentation(), 32768),
    ),
}


def make(name, args):
    model, source, ids_of = TEXTS[name]
    path = FOLDER / f"long-{name}.json"
    weights = reference_forward.Weights(args.models / model)
    if path.exists():
        kept = json.loads(path.read_text())
        ids, source = kept["ids"], kept["text"]
    else:
        ids = ids_of(args, weights)
    values, top1 = reference_forward.target_logprobs(weights, ids, LAST, progress=True)
    truth = {
        "provenance": f"tools/make_long_truth.py: numpy {version('numpy')} float32 forward pass on weights "
        f"de-quantised by gguf {version('gguf')}",
        "model": model,
        "text": source,
        "ids": ids,
        "top1": top1,
        "target_logprob": [round(x, 5) for x in values],
        "ppl": round(math.exp(-sum(values) / len(values)), 6),
    }
    with open(path, "w") as f:
        json.dump(truth, f, separators=(",", ":"))
        f.write("\n")
    print(f"{name}: {len(ids)} ids, last {len(top1)}: ppl {truth['ppl']:.4f}, {path.stat().st_size} bytes", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    models = os.environ.get("WINNOW_MODELS", Path.home() / ".cache" / "winnow" / "models")
    parser.add_argument("--models", type=Path, default=models)
    parser.add_argument("--quality", type=Path)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(TEXTS)}; all by default")
    args = parser.parse_args()
    unknown = sorted(set(args.names) - set(TEXTS))
    if unknown:
        sys.exit(f"unknown text {unknown}, expected some of {list(TEXTS)}")
    for name in args.names or TEXTS:
        make(name, args)


if __name__ == "__main__":
    main()
