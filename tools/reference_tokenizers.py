"""The `tokenizers` package's encoders, rebuilt from a GGUF file's own vocabulary."""

import gguf
import tokenizers
from tokenizers import Regex, decoders, models, normalizers, pre_tokenizers

CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
REST = r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
CASED = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+TAIL|"
         r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*TAIL|")
CASED_REST = r" ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
CJK = "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+"
PATTERNS = {
    "llama-bpe": [CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|" + REST],
    "qwen2": [CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|" + REST],
    "qwen35": [CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}|"
               r" ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"],
    "gpt-4o": [CASED.replace("TAIL", CONTRACTIONS + "?") + r"\p{N}{1,3}|" + CASED_REST],
    "tekken": [CASED.replace("TAIL", "") + r"\p{N}|" + CASED_REST],
    "seed-coder": [CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}\r\n]+|"
                   r"\s*[\r\n]+|\s+(?!\S)|\s+"],
    "bailingmoe": [r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|"
                   r"\s*[\r\n]|\s+(?!\S)|\s+"],
    "deepseek-coder": [r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", CJK, r"\p{N}"],
    "deepseek-v3": [r"\p{N}{1,3}", "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+",
                    r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+|"
                    r" ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"],
}


def byte_level(pre):
    """The pre-tokeniser that the models' own tokenizer.json files describe for this name."""
    plain = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    gpt2 = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    if pre == "gpt-2":
        return gpt2
    if pre == "smollm":
        return pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), gpt2])
    splits = [pre_tokenizers.Split(Regex(p), behavior="isolated") for p in PATTERNS[pre]]
    return pre_tokenizers.Sequence(splits + [plain])


class Vocabulary:
    def __init__(self, path):
        fields = gguf.GGUFReader(path).fields

        def get(key, default=None):
            field = fields.get("tokenizer.ggml." + key)
            return default if field is None else field.contents()

        self.model, self.pre = get("model"), get("pre")
        self.tokens, self.types = get("tokens"), get("token_type")
        self.scores, self.merges = get("scores"), get("merges")

    def of_type(self, kind):
        return [t for t, k in zip(self.tokens, self.types) if k == kind]


def spm_merges(vocab):
    """Every way to split a normal piece into two normal pieces, best score first, leftmost first."""
    normal = {t for t, k in zip(vocab.tokens, vocab.types) if k == 1}
    merges = []
    for i, piece in enumerate(vocab.tokens):
        if piece not in normal:
            continue
        for cut in range(1, len(piece)):
            if piece[:cut] in normal and piece[cut:] in normal:
                merges.append((-vocab.scores[i], piece[:cut], piece[cut:]))
    merges.sort(key=lambda merge: merge[0])
    return [(left, right) for _, left, right in merges]


def build(vocab, with_control=False):
    ids = {}
    for i, token in enumerate(vocab.tokens):
        ids.setdefault(token, i)
    if vocab.model == "gpt2":
        merges = [tuple(m.split(" ")) for m in vocab.merges]
        out = tokenizers.Tokenizer(models.BPE(ids, merges))
        out.pre_tokenizer = byte_level(vocab.pre)
        out.decoder = decoders.ByteLevel()
    else:
        out = tokenizers.Tokenizer(models.BPE(ids, spm_merges(vocab), byte_fallback=True))
        out.normalizer = normalizers.Replace(" ", "\u2581")
        out.decoder = decoders.Sequence(
            [decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse()])
    added = [tokenizers.AddedToken(t, normalized=False) for t in vocab.of_type(4)]
    if with_control:
        added += [tokenizers.AddedToken(t, normalized=False, special=True) for t in vocab.of_type(3)]
    out.add_tokens(added)
    return out
