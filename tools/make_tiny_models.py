#!/usr/bin/env python3
"""Writes tests/golden/tiny/NAME.gguf and NAME.json: small random models and the logits they must give.

The expected logits come from `transformers` (eager attention, float32), which is given the same weights in
its own layout; the GGUF file is laid out as the usual converters do it: rows of Q and K of llama models
reordered to neighbouring pairs, 1 added to Gemma's norm weights, rope_freqs for llama3 scaling. The pass in
reference_forward.py, which reads the GGUF file, must agree before anything is kept.

    make_tiny_models.py [NAME...]

Needs: numpy, gguf, torch, transformers (4.56 or newer).
"""

import json
import sys
from dataclasses import dataclass, field
from pathlib import Path

import gguf
import numpy as np
import torch
import transformers
from gguf import GGMLQuantizationType as Type
from gguf.quants import dequantize, quantize
from transformers.models.gemma3 import modeling_gemma3
from transformers.models.llama import modeling_llama
from transformers.models.phi3 import modeling_phi3
from transformers.models.qwen2 import modeling_qwen2

import reference_forward

FOLDER = Path(__file__).resolve().parent.parent / "tests" / "golden" / "tiny"
SEED = 20261129
TOLERANCE = 1e-4  # largest |difference| of logits allowed between transformers and reference_forward.py

CHATML = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)
GEMMA_TURNS = (
    "{{ bos_token }}{% for message in messages %}{{ '<start_of_turn>' + ('model' if message['role'] == 'assistant' else "
    "message['role']) + '\\n' + message['content'] | trim + '<end_of_turn>\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<start_of_turn>model\\n' }}{% endif %}"
)


@dataclass
class Spec:
    name: str
    arch: str
    about: str  # what this model is there to test
    layers: int
    tokens: int
    positions: tuple  # whose logits are kept
    width: int = 32
    heads: int | list = 4
    kv_heads: int | list = 2
    head_dim: int = 16
    ffn: int | list = 32
    tied: bool = True
    rope_base: float = 10000.0
    rope_dims: int = 0  # 0: the whole head
    linear_scale: float = 0.0
    llama3_scaling: dict | None = None
    window: int = 0
    pattern: int | list | None = None  # Gemma 3: period, or one flag (true = window) per layer
    local_base: float = 0.0
    attention_cap: float = 0.0
    final_cap: float = 0.0
    query_scalar: int = 0  # attention scale = query_scalar ** -0.5 instead of head_dim ** -0.5
    types: dict = field(default_factory=dict)  # storage type by tensor name; F32 if absent
    vocabulary: str = "gpt2"
    pre: str = "qwen2"
    add_bos: bool = False
    chat_template: str | None = None

    def heads_of(self, idx):
        return self.heads[idx] if isinstance(self.heads, list) else self.heads

    def kv_heads_of(self, idx):
        return self.kv_heads[idx] if isinstance(self.kv_heads, list) else self.kv_heads

    def ffn_of(self, idx):
        return self.ffn[idx] if isinstance(self.ffn, list) else self.ffn


def mixed_types():
    """One storage type per matrix, as in the usual K-quant mixes: K-quants where rows hold 256 values."""
    rows = (
        ("attn_q", Type.Q4_0, Type.IQ4_NL),
        ("attn_k", Type.Q5_0, Type.BF16),
        ("attn_v", Type.Q8_0, Type.F16),
        ("attn_output", Type.Q4_K, Type.IQ4_XS),
        ("ffn_gate", Type.Q4_1, Type.MXFP4),
        ("ffn_up", Type.Q5_1, Type.Q4_0),
        ("ffn_down", Type.Q6_K, Type.Q5_K),
    )
    types = {f"blk.{idx}.{row[0]}.weight": row[1 + idx] for row in rows for idx in (0, 1)}
    return types | {"token_embd.weight": Type.Q8_0}


def low_bit_types():
    """The K-quants of two and three bits where rows hold 256 values, the rest in Q8_0."""
    low = {f"blk.{idx}.{name}.weight": (Type.Q2_K, Type.Q3_K)[(idx + at) % 2]
           for idx in (0, 1) for at, name in enumerate(("attn_output", "ffn_down"))}
    rest = ("attn_q", "attn_k", "attn_v", "ffn_gate", "ffn_up")
    return low | {f"blk.{idx}.{name}.weight": Type.Q8_0 for idx in (0, 1) for name in rest} | {"token_embd.weight": Type.Q8_0}


# The weights of each are drawn by its place in this list.
SPECS = [
    Spec("llama-group3", "llama", "three query heads to one KV head, tied output", layers=2, tokens=200,
         positions=(0, 1, 63, 126, 127, 128, 199), width=48, heads=3, kv_heads=1, pre="smollm"),
    Spec("llama-untied", "llama", "head width apart from width / heads, own output matrix, BOS, chat template", layers=2,
         tokens=140, positions=(0, 1, 63, 127, 128, 139), tied=False, rope_base=500000.0, pre="llama-bpe", add_bos=True,
         chat_template=CHATML),
    Spec("llama-rope-freqs", "llama", "rope_freqs tensor of llama3 scaling, as many KV heads as query heads", layers=2,
         tokens=200, positions=(0, 1, 63, 127, 128, 199), heads=2, kv_heads=2, head_dim=32, rope_base=500000.0,
         llama3_scaling={"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                         "original_max_position_embeddings": 64}, pre="llama-bpe", add_bos=True),
    Spec("llama-per-layer", "llama", "query heads, KV heads and FFN width by layer; SentencePiece vocabulary", layers=3, tokens=140,
         positions=(0, 1, 63, 127, 128, 139), heads=[4, 4, 2], kv_heads=[4, 2, 1], ffn=[16, 32, 24], vocabulary="llama", add_bos=True),
    Spec("llama-linear-rope", "llama", "linear RoPE scaling", layers=2, tokens=140, positions=(0, 1, 63, 127, 128, 139),
         linear_scale=4.0, vocabulary="llama", add_bos=True),
    Spec("llama-mixed-types", "llama", "weights in Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 Q4_K Q5_K Q6_K IQ4_NL IQ4_XS MXFP4 F16 BF16",
         layers=2, tokens=140, positions=(0, 1, 63, 127, 128, 139), width=64, heads=8, kv_heads=2, head_dim=32, ffn=256,
         types=mixed_types(), pre="smollm"),
    Spec("qwen2-bias", "qwen2", "biases of Q, K and V, own output matrix, chat template", layers=2, tokens=200,
         positions=(0, 1, 63, 127, 128, 199), heads=2, kv_heads=1, rope_base=1000000.0, tied=False, chat_template=CHATML),
    Spec("qwen2-partial-rope", "qwen2", "rotation of the first half of each head only", layers=2, tokens=140,
         positions=(0, 1, 63, 127, 128, 139), heads=2, kv_heads=1, rope_dims=8),
    Spec("qwen3-qk-norm", "qwen3", "RMS norm of each head of Q and K, head width apart from width / heads", layers=2,
         tokens=200, positions=(0, 1, 63, 127, 128, 199), rope_base=1000000.0, chat_template=CHATML),
    Spec("gemma3-default", "gemma3", "default pattern (layer 5 sees everything), RoPE scale 8 there, default local base",
         layers=6, tokens=200, positions=(0, 1, 19, 20, 21, 127, 128, 147, 148, 199), heads=2, kv_heads=1, ffn=16,
         rope_base=1000000.0, linear_scale=8.0, window=20, vocabulary="gemma", add_bos=True, chat_template=GEMMA_TURNS),
    Spec("gemma3-period", "gemma3", "pattern given as a period, window longer than a page, local base given", layers=3,
         tokens=300, positions=(0, 127, 128, 130, 131, 256, 299), heads=2, kv_heads=1, head_dim=32, rope_base=1000000.0,
         window=131, pattern=3, local_base=5000.0, vocabulary="gemma", add_bos=True),
    Spec("gemma3-flags", "gemma3", "pattern given as flags, soft caps of attention and logits, attention scale given",
         layers=3, tokens=200, positions=(0, 1, 31, 32, 33, 127, 128, 199), rope_base=1000000.0, window=32,
         pattern=[False, True, True], attention_cap=2.0, final_cap=3.0, query_scalar=4, vocabulary="gemma", add_bos=True),
    Spec("llama-low-bits", "llama", "weights in Q2_K Q3_K, the rest in Q8_0", layers=2, tokens=140,
         positions=(0, 1, 63, 127, 128, 139), width=64, heads=8, kv_heads=2, head_dim=32, ffn=256, types=low_bit_types(), pre="smollm"),
]


# --- vocabularies -----------------------------------------------------------------------------------------------------


def byte_symbols():
    """The printable character that byte-level BPE writes for each byte."""
    keep = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    symbols, extra = {}, 0x100
    for byte in range(256):
        if byte in keep:
            symbols[byte] = chr(byte)
        else:
            symbols[byte] = chr(extra)
            extra += 1
    return [symbols[b] for b in range(256)]


def gpt2_vocabulary():
    space = byte_symbols()[0x20]
    merges = ["t h", "i n", "e r", "a n", f"{space} t", f"{space} a", f"{space}t he", "th e", "an d", f"{space} and", "in g"]
    merges.insert(6, "h e")
    specials = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    tokens = byte_symbols() + ["".join(m.split(" ")) for m in merges] + specials
    types = [gguf.TokenType.NORMAL] * (256 + len(merges)) + [gguf.TokenType.CONTROL] * len(specials)
    return {"tokens": tokens, "types": types, "merges": merges, "bos": tokens.index("<|endoftext|>"),
            "eos": tokens.index("<|im_end|>")}


def sentencepiece_vocabulary(gemma):
    if gemma:
        specials, bos, eos, unknown = ["<pad>", "<eos>", "<bos>", "<unk>", "<start_of_turn>", "<end_of_turn>"], 2, 1, 3
    else:
        specials, bos, eos, unknown = ["<unk>", "<s>", "</s>"], 1, 2, 0
    types = [gguf.TokenType.CONTROL] * len(specials)
    types[unknown] = gguf.TokenType.UNKNOWN
    pieces = ["\u2581t", "he", "\u2581the", "in", "er", "an", "\u2581", "e", "t", "a", "o", "i", "n", "h", "r", "s"]
    tokens = specials + [f"<0x{b:02X}>" for b in range(256)] + pieces
    types += [gguf.TokenType.BYTE] * 256 + [gguf.TokenType.NORMAL] * len(pieces)
    scores = [0.0] * (len(specials) + 256) + [-float(i) for i in range(len(pieces))]
    return {"tokens": tokens, "types": types, "scores": scores, "bos": bos, "eos": eos, "unknown": unknown}


def vocabulary_of(spec):
    return gpt2_vocabulary() if spec.vocabulary == "gpt2" else sentencepiece_vocabulary(spec.vocabulary == "gemma")


def write_vocabulary(writer, spec, vocabulary):
    writer.add_tokenizer_model("gpt2" if spec.vocabulary == "gpt2" else "llama")
    writer.add_tokenizer_pre(spec.pre if spec.vocabulary == "gpt2" else "default")
    writer.add_token_list(vocabulary["tokens"])
    writer.add_token_types(vocabulary["types"])
    if "merges" in vocabulary:
        writer.add_token_merges(vocabulary["merges"])
    else:
        writer.add_token_scores(vocabulary["scores"])
        writer.add_unk_token_id(vocabulary["unknown"])
        writer.add_add_space_prefix(spec.vocabulary == "llama")
    writer.add_bos_token_id(vocabulary["bos"])
    writer.add_eos_token_id(vocabulary["eos"])
    writer.add_add_bos_token(spec.add_bos)
    if spec.chat_template:
        writer.add_chat_template(spec.chat_template)


# --- weights ----------------------------------------------------------------------------------------------------------


# The types that the gguf package cannot quantise to, and where a group has its scale.
SCALE_AT = {Type.Q2_K: 80, Type.Q3_K: 108, Type.Q4_K: 0, Type.Q5_K: 0, Type.Q6_K: 208, Type.IQ4_NL: 0, Type.IQ4_XS: 0,
            Type.MXFP4: 0}


def random_groups(rng, qtype, shape, std):
    """Bytes of a type of SCALE_AT: random groups whose values have the given spread."""
    group, group_bytes = gguf.GGML_QUANT_SIZES[qtype]
    data = rng.integers(0, 256, (shape[0], shape[1] // group, group_bytes), dtype=np.uint8)
    scale_at = SCALE_AT[qtype]
    min_at = {Type.Q2_K: 82, Type.Q4_K: 2, Type.Q5_K: 2}.get(qtype)

    def values(scale, minimum):
        if qtype == Type.MXFP4:
            data[..., 0] = scale
        else:
            data[..., scale_at : scale_at + 2] = np.array([scale], np.float16).view(np.uint8)
        if min_at is not None:
            data[..., min_at : min_at + 2] = np.array([minimum], np.float16).view(np.uint8)
        return dequantize(data.reshape(shape[0], -1), qtype)

    if qtype == Type.MXFP4:
        exponent = 127 + round(np.log2(std / values(127, 0).std()))
        values(exponent, 0)
    else:
        unit = values(1, 0)
        ratio = -unit.mean() / values(0, 1).mean() if min_at is not None else 0.0
        scale = std / values(1, ratio).std()
        values(scale, scale * ratio)
    return data.reshape(shape[0], -1)


class Builder:
    """Draws the weights once and gives them to both sides, each in its own layout."""

    def __init__(self, spec, writer, rng):
        self.spec, self.writer, self.rng = spec, writer, rng
        self.state = {}  # transformers name -> float32 array

    def matrix(self, name, hf_name, out, inputs, gain=1.0, heads=0):
        """heads > 0: rows are reordered to neighbouring pairs in the file, head by head."""
        std = gain / np.sqrt(inputs)
        qtype = self.spec.types.get(name, Type.F32)
        if qtype in SCALE_AT:
            stored = random_groups(self.rng, qtype, (out, inputs), std)
        else:
            stored = quantize(self.rng.normal(0, std, (out, inputs)).astype(np.float32), qtype)
        self.writer.add_tensor(name, stored, raw_dtype=None if qtype in (Type.F32, Type.F16) else qtype)
        values = np.array(stored, np.float32) if qtype == Type.F32 else dequantize(stored, qtype)
        if heads:
            values = values.reshape(heads, -1, 2, inputs).swapaxes(1, 2).reshape(out, inputs)
        self.state[hf_name] = values

    def norm(self, name, hf_name, size):
        weight = (1 + 0.2 * self.rng.normal(size=size)).astype(np.float32)
        self.writer.add_tensor(name, weight)
        self.state[hf_name] = weight - 1 if self.spec.arch == "gemma3" else weight

    def bias(self, name, hf_name, size):
        bias = (0.5 * self.rng.normal(size=size)).astype(np.float32)
        self.writer.add_tensor(name, bias)
        self.state[hf_name] = bias

    def layer(self, idx):
        spec, at, hf = self.spec, f"blk.{idx}.", f"model.layers.{idx}."
        gemma = spec.arch == "gemma3"
        q_width, kv_width = spec.heads_of(idx) * spec.head_dim, spec.kv_heads_of(idx) * spec.head_dim
        pairs = spec.arch == "llama"
        self.norm(at + "attn_norm.weight", hf + "input_layernorm.weight", spec.width)
        for letter, rows, heads in (("q", q_width, spec.heads_of(idx)), ("k", kv_width, spec.kv_heads_of(idx)), ("v", kv_width, 0)):
            self.matrix(f"{at}attn_{letter}.weight", f"{hf}self_attn.{letter}_proj.weight", rows, spec.width,
                        gain=1.5 if letter != "v" else 1.0, heads=heads if pairs else 0)
            if spec.arch == "qwen2":
                self.bias(f"{at}attn_{letter}.bias", f"{hf}self_attn.{letter}_proj.bias", rows)
        self.matrix(at + "attn_output.weight", hf + "self_attn.o_proj.weight", spec.width, q_width)
        if spec.arch in ("qwen3", "gemma3"):
            self.norm(at + "attn_q_norm.weight", hf + "self_attn.q_norm.weight", spec.head_dim)
            self.norm(at + "attn_k_norm.weight", hf + "self_attn.k_norm.weight", spec.head_dim)
        if gemma:
            self.norm(at + "post_attention_norm.weight", hf + "post_attention_layernorm.weight", spec.width)
            self.norm(at + "ffn_norm.weight", hf + "pre_feedforward_layernorm.weight", spec.width)
            self.norm(at + "post_ffw_norm.weight", hf + "post_feedforward_layernorm.weight", spec.width)
        else:
            self.norm(at + "ffn_norm.weight", hf + "post_attention_layernorm.weight", spec.width)
        self.matrix(at + "ffn_gate.weight", hf + "mlp.gate_proj.weight", spec.ffn_of(idx), spec.width)
        self.matrix(at + "ffn_up.weight", hf + "mlp.up_proj.weight", spec.ffn_of(idx), spec.width)
        self.matrix(at + "ffn_down.weight", hf + "mlp.down_proj.weight", spec.width, spec.ffn_of(idx), gain=1.5)

    def all(self, vocab_size):
        spec = self.spec
        self.matrix("token_embd.weight", "model.embed_tokens.weight", vocab_size, spec.width, gain=2.0)
        for idx in range(spec.layers):
            self.layer(idx)
        self.norm("output_norm.weight", "model.norm.weight", spec.width)
        if not spec.tied:
            self.matrix("output.weight", "lm_head.weight", vocab_size, spec.width, gain=2.0)
        if spec.llama3_scaling:
            self.writer.add_tensor("rope_freqs.weight", llama3_factors(spec))


def llama3_factors(spec):
    """Divisors of the base frequencies: 1 for short waves, `factor` for long ones, a smooth passage between."""
    s = spec.llama3_scaling
    waves = 2 * np.pi * spec.rope_base ** (np.arange(0, spec.head_dim, 2) / spec.head_dim)
    turns = s["original_max_position_embeddings"] / waves
    smooth = np.clip((turns - s["low_freq_factor"]) / (s["high_freq_factor"] - s["low_freq_factor"]), 0, 1)
    return (1 / ((1 - smooth) / s["factor"] + smooth)).astype(np.float32)


# --- metadata and the two models --------------------------------------------------------------------------------------


def write_keys(writer, spec, vocab_size):
    writer.add_name(spec.name)
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_Q4_K_M if spec.types else gguf.LlamaFileType.ALL_F32)
    writer.add_quantization_version(gguf.GGML_QUANT_VERSION)
    writer.add_vocab_size(vocab_size)
    writer.add_context_length(512)
    writer.add_embedding_length(spec.width)
    writer.add_block_count(spec.layers)
    writer.add_feed_forward_length(spec.ffn)
    writer.add_head_count(spec.heads)
    writer.add_head_count_kv(spec.kv_heads)
    writer.add_layer_norm_rms_eps(1e-6)
    if spec.head_dim != spec.width // spec.heads_of(0) or spec.arch == "gemma3":
        writer.add_key_length(spec.head_dim)
        writer.add_value_length(spec.head_dim)
    if spec.arch == "llama" or spec.rope_dims:
        writer.add_rope_dimension_count(spec.rope_dims or spec.head_dim)
    writer.add_rope_freq_base(spec.rope_base)
    if spec.linear_scale:
        writer.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
        writer.add_rope_scaling_factor(spec.linear_scale)
    if spec.window:
        writer.add_sliding_window(spec.window)
    if spec.pattern is not None:
        writer.add_sliding_window_pattern(spec.pattern)
    if spec.local_base:
        writer.add_rope_freq_base_swa(spec.local_base)
    if spec.attention_cap:
        writer.add_attn_logit_softcapping(spec.attention_cap)
    if spec.final_cap:
        writer.add_final_logit_softcapping(spec.final_cap)
    if spec.query_scalar:
        writer.add_attention_scale(spec.query_scalar**-0.5)


def rope_parameters(spec):
    parameters = {"rope_type": "default", "rope_theta": spec.rope_base}
    if spec.llama3_scaling:
        parameters |= {"rope_type": "llama3"} | spec.llama3_scaling
    if spec.linear_scale:
        parameters |= {"rope_type": "linear", "factor": spec.linear_scale}
    if spec.arch != "gemma3":
        return parameters
    local = {"rope_type": "default", "rope_theta": spec.local_base or 10000.0}
    return {"full_attention": parameters, "sliding_attention": local}


def published_model(spec, vocab_size):
    """The transformers model, without its weights."""
    common = dict(
        vocab_size=vocab_size, hidden_size=spec.width, intermediate_size=spec.ffn_of(0), num_hidden_layers=spec.layers,
        num_attention_heads=spec.heads_of(0), num_key_value_heads=spec.kv_heads_of(0), head_dim=spec.head_dim,
        rms_norm_eps=1e-6, tie_word_embeddings=spec.tied, rope_parameters=rope_parameters(spec),
        max_position_embeddings=512, bos_token_id=0, eos_token_id=0, pad_token_id=0, attn_implementation="eager",
    )
    if spec.arch == "llama":
        model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**common))
        for idx, layer in enumerate(model.model.layers):
            own = common | dict(intermediate_size=spec.ffn_of(idx), num_attention_heads=spec.heads_of(idx),
                               num_key_value_heads=spec.kv_heads_of(idx))
            config = transformers.LlamaConfig(**own)
            layer.self_attn = modeling_llama.LlamaAttention(config, idx)
            layer.mlp = modeling_llama.LlamaMLP(config)
        return model
    if spec.arch == "qwen2":
        return transformers.Qwen2ForCausalLM(transformers.Qwen2Config(**common))
    if spec.arch == "qwen3":
        return transformers.Qwen3ForCausalLM(transformers.Qwen3Config(**common))
    pattern = spec.pattern or 6
    flags = pattern if isinstance(pattern, list) else [i % pattern < pattern - 1 for i in range(spec.layers)]
    kinds = ["sliding_attention" if flag else "full_attention" for flag in flags]
    return transformers.Gemma3ForCausalLM(transformers.Gemma3TextConfig(
        **common, sliding_window=spec.window, layer_types=kinds, query_pre_attn_scalar=spec.query_scalar or spec.head_dim,
        attn_logit_softcapping=spec.attention_cap or None, final_logit_softcapping=spec.final_cap or None))


def capped_attention(module, *tensors, **options):
    return gemma3_attention(module, *tensors, **options | {"softcap": module.attn_logit_softcapping})


gemma3_attention = modeling_gemma3.eager_attention_forward


def published_logits(spec, state, vocab_size, ids):
    model = published_model(spec, vocab_size)
    own_rotation = modeling_qwen2.apply_rotary_pos_emb
    # Gemma 3 has the attention's soft cap in its configuration and in its attention function, but does not pass it on.
    modeling_gemma3.eager_attention_forward = capped_attention
    if spec.rope_dims:
        # Qwen2 always rotates whole heads; Phi-3 has the same layout and rotates the first dims.
        modeling_qwen2.apply_rotary_pos_emb = modeling_phi3.apply_rotary_pos_emb
        frequencies = spec.rope_base ** (-torch.arange(0, spec.rope_dims, 2, dtype=torch.float32) / spec.rope_dims)
        model.model.rotary_emb.inv_freq = frequencies
    if spec.tied:
        state = state | {"lm_head.weight": state["model.embed_tokens.weight"]}
    model.load_state_dict({k: torch.from_numpy(v.copy()) for k, v in state.items()}, strict=True)
    with torch.no_grad():
        logits = model.eval()(torch.tensor([ids]), use_cache=False).logits[0].numpy()
    modeling_qwen2.apply_rotary_pos_emb = own_rotation
    return logits


def expected(spec, ids, logits, provenance):
    ranked = np.sort(logits, axis=1)
    logprobs = reference_forward.log_softmax(logits)
    targets = logprobs[np.arange(len(ids) - 1), ids[1:]]
    return {
        "provenance": provenance,
        "about": spec.about,
        "ids": ids,
        "positions": list(spec.positions),
        "logits": [[round(float(x), 5) for x in logits[p]] for p in spec.positions],
        "top1": logits.argmax(axis=1).tolist(),
        "top1_margin": [round(float(x), 4) for x in ranked[:, -1] - ranked[:, -2]],
        "target_logprob": [round(float(x), 5) for x in targets],
    }


def make(spec, number):
    rng = np.random.default_rng([SEED, number])
    vocabulary = vocabulary_of(spec)
    vocab_size = len(vocabulary["tokens"])
    path = FOLDER / f"{spec.name}.gguf"
    writer = gguf.GGUFWriter(path, spec.arch)
    write_keys(writer, spec, vocab_size)
    write_vocabulary(writer, spec, vocabulary)
    builder = Builder(spec, writer, rng)
    builder.all(vocab_size)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()

    ids = rng.integers(0, vocab_size, spec.tokens).tolist()
    if spec.add_bos:
        ids[0] = vocabulary["bos"]
    logits = published_logits(spec, builder.state, vocab_size, ids)
    ours = reference_forward.logits_of(reference_forward.Weights(path), ids)
    difference = float(np.abs(logits - ours).max())
    if difference > TOLERANCE:
        path.unlink()
        sys.exit(f"{spec.name}: transformers and reference_forward.py differ by {difference:g}, allowed {TOLERANCE:g}")
    provenance = (
        f"tools/make_tiny_models.py, random weights of seed {SEED}; logits by transformers {transformers.__version__} "
        f"(torch {torch.__version__}, eager attention, float32); file by gguf {gguf_version()}; "
        f"reference_forward.py differs by at most {difference:.0e}"
    )
    with open(FOLDER / f"{spec.name}.json", "w") as f:
        json.dump(expected(spec, ids, logits, provenance), f, separators=(",", ":"))
        f.write("\n")
    print(f"{spec.name}: {path.stat().st_size} bytes, difference {difference:.1e}, logits up to {np.abs(logits).max():.2f}")


def gguf_version():
    from importlib.metadata import version

    return version("gguf")


def main():
    wanted = set(sys.argv[1:])
    unknown = wanted - {spec.name for spec in SPECS}
    if unknown:
        sys.exit(f"unknown model {sorted(unknown)}, expected some of {[spec.name for spec in SPECS]}")
    FOLDER.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    for number, spec in enumerate(SPECS):
        if not wanted or spec.name in wanted:
            make(spec, number)


if __name__ == "__main__":
    main()
