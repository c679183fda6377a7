#!/usr/bin/env python3
"""Float32 forward pass of a GGUF model in numpy, written from the published equations of each family.

It is the independent truth that Winnow's own forward pass is compared with, so it shares no code and no
helper with it: weights are de-quantised by the `gguf` package, arithmetic is float32 (angles in float64).
Attention runs in query blocks, so 32K positions fit in a few GB.

    reference_forward.py MODEL.gguf --check TRUTH.json      compare with a file of target log-probabilities
    reference_forward.py MODEL.gguf --ids IDS.json --last N  print target log-probabilities of the last N positions

Needs: numpy, gguf.
"""

import argparse
import json
import math
import sys
import time

import numpy as np
from gguf import GGMLQuantizationType, GGUFReader
from gguf.quants import dequantize

QUERY_BLOCK = 128
ROW_BLOCK = 2048
ARCHITECTURES = ("llama", "qwen2", "qwen3", "gemma3")


class Weights:
    """Metadata and tensors of one file; tensors are de-quantised when asked for."""

    def __init__(self, path):
        self.reader = GGUFReader(path)
        self.tensors = {t.name: t for t in self.reader.tensors}
        self.arch = self.get("general.architecture")
        if self.arch not in ARCHITECTURES:
            sys.exit(f"{path}: architecture {self.arch!r}, expected one of {ARCHITECTURES}")

    def get(self, key, default=None):
        field = self.reader.fields.get(key)
        return default if field is None else field.contents()

    def of_arch(self, key, default=None):
        return self.get(f"{self.arch}.{key}", default)

    def has(self, name):
        return name in self.tensors

    def tensor(self, name):
        """float32 array with the outer dimension first, or None."""
        t = self.tensors.get(name)
        if t is None:
            return None
        if t.tensor_type == GGMLQuantizationType.F32:
            return np.asarray(t.data, dtype=np.float32)
        return dequantize(t.data, t.tensor_type).astype(np.float32, copy=False)

    def rows(self, name, ids):
        """De-quantised rows `ids` of a matrix."""
        t = self.tensors[name]
        unique, where = np.unique(ids, return_inverse=True)
        data = np.asarray(t.data[unique])
        if t.tensor_type != GGMLQuantizationType.F32:
            data = dequantize(data, t.tensor_type)
        return data.astype(np.float32)[where]


class Rope:
    """Rotation of one layer: which dims pair up and the angle of each pair at position 1."""

    def __init__(self, dims, base, scale, factors, neighbours):
        half = np.arange(dims // 2, dtype=np.float64)
        self.dims = dims
        self.frequencies = base ** (-2.0 * half / dims) / scale
        if factors is not None:
            self.frequencies = self.frequencies / factors.astype(np.float64)
        self.neighbours = neighbours  # pairs (2i, 2i + 1), else (i, i + dims / 2)

    def apply(self, x, first):
        """x: [tokens, heads, head_dim], in place; the first token stands at position `first`."""
        angles = np.outer(first + np.arange(len(x), dtype=np.float64), self.frequencies)
        cos = np.cos(angles).astype(np.float32)[:, None, :]
        sin = np.sin(angles).astype(np.float32)[:, None, :]
        if self.neighbours:
            a, b = x[..., 0 : self.dims : 2], x[..., 1 : self.dims : 2]
        else:
            a, b = x[..., : self.dims // 2], x[..., self.dims // 2 : self.dims]
        a_new, b_new = a * cos - b * sin, b * cos + a * sin
        a[...], b[...] = a_new, b_new


class Layer:
    """Shape of one layer, read from the metadata."""

    def __init__(self, w, idx, layers):
        gemma = w.arch == "gemma3"
        width = w.of_arch("embedding_length")

        def of_layer(value):
            return value[idx] if isinstance(value, (list, tuple)) else value

        self.heads = of_layer(w.of_arch("attention.head_count"))
        self.kv_heads = of_layer(w.of_arch("attention.head_count_kv", self.heads))
        self.head_dim = w.of_arch("attention.key_length", width // self.heads)
        self.soft_cap = w.of_arch("attn_logit_softcapping", 0.0)
        scale_dim = width // self.heads if gemma and layers == 62 else self.head_dim
        self.scale = w.of_arch("attention.scale", 0.0) or 1.0 / math.sqrt(scale_dim)
        self.window = 0
        if gemma:
            pattern = w.of_arch("attention.sliding_window_pattern", 6)
            local = pattern[idx] if isinstance(pattern, (list, tuple)) else idx % pattern < pattern - 1
            self.window = w.of_arch("attention.sliding_window") if local else 0
        self.rope = self._rope(w, gemma)

    def _rope(self, w, gemma):
        dims = w.of_arch("rope.dimension_count", self.head_dim)
        base, scale = w.of_arch("rope.freq_base", 1e6 if gemma else 10000.0), 1.0
        if w.of_arch("rope.scaling.type") == "linear":
            scale = w.of_arch("rope.scaling.factor")
        if gemma and self.window:
            base, scale = w.of_arch("rope.freq_base_swa", 10000.0), 1.0
        return Rope(dims, base, scale, w.tensor("rope_freqs.weight"), w.arch == "llama")


def rms_norm(x, weight, epsilon):
    mean_square = np.mean(np.square(x), axis=-1, keepdims=True, dtype=np.float32)
    return x / np.sqrt(mean_square + np.float32(epsilon)) * weight


def silu(x):
    with np.errstate(over="ignore"):
        return x / (1 + np.exp(-x))


def gelu_tanh(x):
    return 0.5 * x * (1 + np.tanh(np.float32(math.sqrt(2 / math.pi)) * (x + np.float32(0.044715) * x * x * x)))


def soft_cap(x, cap):
    return np.float32(cap) * np.tanh(x / np.float32(cap)) if cap else x


def attention(q, k, v, layer, first_query):
    """q: [queries, heads, dim] at positions from first_query; k, v: [tokens, kv_heads, dim] from position 0."""
    out = np.empty(q.shape[:2] + v.shape[2:], dtype=np.float32)
    group = layer.heads // layer.kv_heads
    for kv_head in range(layer.kv_heads):
        keys, values = np.ascontiguousarray(k[:, kv_head].T), np.ascontiguousarray(v[:, kv_head])
        for start in range(0, len(q), QUERY_BLOCK):
            first = first_query + start
            positions = first + np.arange(len(q[start : start + QUERY_BLOCK]))
            end = first + len(positions)
            begin = max(0, first - layer.window + 1) if layer.window else 0
            # Keys before this position are seen by the whole block, so that only the rest needs a mask.
            masked_from = begin if layer.window else first
            distance = positions[:, None] - np.arange(masked_from, end)[None, :]
            hidden = (distance < 0) | (distance >= layer.window) if layer.window else distance < 0
            for h in range(kv_head * group, (kv_head + 1) * group):
                block = q[start : start + len(positions), h] * np.float32(layer.scale)
                scores = soft_cap(block @ keys[:, begin:end], layer.soft_cap)
                scores[:, masked_from - begin :][hidden] = -np.inf
                scores -= scores.max(axis=1, keepdims=True)
                np.exp(scores, out=scores)
                total = scores.sum(axis=1, keepdims=True)
                out[start : start + len(positions), h] = (scores @ values[begin:end]) / total
    return out


def project(w, name, x):
    y = x @ w.tensor(f"{name}.weight").T
    bias = w.tensor(f"{name}.bias")
    return y if bias is None else y + bias


def run_layer(w, idx, layer, x, epsilon, first_needed):
    """One layer over all tokens; returns the rows from first_needed on."""
    at = f"blk.{idx}."
    tokens = len(x)

    def norm(name, y):
        weight = w.tensor(f"{at}{name}.weight")
        return y if weight is None else rms_norm(y, weight, epsilon)

    h = norm("attn_norm", x)
    q = project(w, at + "attn_q", h[first_needed:]).reshape(-1, layer.heads, layer.head_dim)
    k = project(w, at + "attn_k", h).reshape(tokens, layer.kv_heads, layer.head_dim)
    v = project(w, at + "attn_v", h).reshape(tokens, layer.kv_heads, -1)
    q, k = norm("attn_q_norm", q), norm("attn_k_norm", k)
    layer.rope.apply(q, first_needed)
    layer.rope.apply(k, 0)
    mixed = attention(q, k, v, layer, first_needed).reshape(len(q), -1)
    gemma = w.arch == "gemma3"
    y = project(w, at + "attn_output", mixed)
    x = x[first_needed:] + (norm("post_attention_norm", y) if gemma else y)
    h = norm("ffn_norm", x)
    gate_weight, up_weight = w.tensor(at + "ffn_gate.weight"), w.tensor(at + "ffn_up.weight")
    down_weight = w.tensor(at + "ffn_down.weight")
    activation = gelu_tanh if gemma else silu
    y = np.empty_like(x)
    for i in range(0, len(x), ROW_BLOCK):
        rows = h[i : i + ROW_BLOCK]
        y[i : i + ROW_BLOCK] = (activation(rows @ gate_weight.T) * (rows @ up_weight.T)) @ down_weight.T
    return x + (norm("post_ffw_norm", y) if gemma else y)


def head_logits(w, x, epsilon):
    """x: [rows, width] of the last layer -> float32 logits [rows, vocab]."""
    x = rms_norm(x, w.tensor("output_norm.weight"), epsilon)
    name = "output.weight" if w.has("output.weight") else "token_embd.weight"
    vocab = w.tensors[name].data.shape[0]
    logits = np.empty((len(x), vocab), dtype=np.float32)
    for i in range(0, vocab, 8192):
        rows = np.arange(i, min(vocab, i + 8192))
        logits[:, rows] = x @ w.rows(name, rows).T
    return soft_cap(logits, w.of_arch("final_logit_softcapping", 0.0))


def hidden_states(w, ids, last=None, progress=False):
    """Rows after the last layer for the last `last` positions (all by default)."""
    epsilon = w.of_arch("attention.layer_norm_rms_epsilon")
    layers = w.of_arch("block_count")
    x = w.rows("token_embd.weight", np.asarray(ids))
    if w.arch == "gemma3":
        x = x * np.float32(math.sqrt(w.of_arch("embedding_length")))
    for idx in range(layers):
        began = time.time()
        first_needed = len(ids) - last if last and idx == layers - 1 else 0
        x = run_layer(w, idx, Layer(w, idx, layers), x, epsilon, first_needed)
        if progress:
            print(f"layer {idx + 1}/{layers}: {time.time() - began:.1f} s", file=sys.stderr, flush=True)
    return x, epsilon


def logits_of(w, ids, last=None, progress=False):
    """float32 logits of the last `last` positions (all by default): [positions, vocab]."""
    x, epsilon = hidden_states(w, ids, last, progress)
    return head_logits(w, x, epsilon)


def log_softmax(logits):
    shifted = logits.astype(np.float64) - logits.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


def target_logprobs(w, ids, last=None, progress=False):
    """(log-probability of ids[p + 1] given ids[..p], most probable token) for the last `last` positions p.

    The last position has no target: there is one log-probability fewer than top tokens.
    """
    x, epsilon = hidden_states(w, ids, last, progress)
    first = len(ids) - len(x)
    values, top1 = [], []
    for i in range(0, len(x), 256):
        logits = head_logits(w, x[i : i + 256], epsilon)
        top1 += logits.argmax(axis=1).tolist()
        logprobs = log_softmax(logits)
        for row in range(len(logprobs)):
            target = first + i + row + 1
            if target < len(ids):
                values.append(float(logprobs[row, ids[target]]))
    return values, top1


def check(w, path):
    with open(path) as f:
        truth = json.load(f)
    values, top1 = target_logprobs(w, truth["ids"])
    difference = np.abs(np.array(values) - np.array(truth["target_logprob"]))
    same = np.mean(np.array(top1) == np.array(truth["top1"]))
    ppl = math.exp(-np.mean(values))
    print(
        f"{path}: |d logprob| mean {difference.mean():.2e} max {difference.max():.2e}, "
        f"same top token {100 * same:.2f} %, ppl {ppl:.5f} (truth {truth['ppl']:.5f})"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("--check", action="append", default=[], metavar="TRUTH.json")
    parser.add_argument("--ids", metavar="IDS.json")
    parser.add_argument("--last", type=int)
    args = parser.parse_args()
    w = Weights(args.model)
    for path in args.check:
        check(w, path)
    if args.ids:
        with open(args.ids) as f:
            values, top1 = target_logprobs(w, json.load(f)["ids"], args.last, progress=True)
        json.dump({"target_logprob": values, "top1": top1}, sys.stdout)


if __name__ == "__main__":
    main()
