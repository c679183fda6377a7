"""The `tokenizers` package's encoders, rebuilt from a GGUF file's own vocabulary."""

import gguf
import tokenizers
from tokenizers import Regex, decoders, models, normalizers, pre_tokenizers

CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
REST = r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
CASED = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+TAIL|"
         r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*TAIL|")
CASED_REST = r" ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
# Letters of the bicameral scripts, as DeepSeek-LLM's authors list them.
CASED_LETTERS = (
    "A-Za-z\u00b5\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u01ba\u01bc-\u01bf\u01c4-\u0293\u0295-\u02af\u0370-\u0373"
    "\u0376\u0377\u037b-\u037d\u037f\u0386\u0388-\u038a\u038c\u038e-\u03a1\u03a3-\u03f5\u03f7-\u0481\u048a-"
    "\u052f\u0531-\u0556\u10a0-\u10c5\u13a0-\u13f5\u13f8-\u13fd\u1c90-\u1cba\u1cbd-\u1cbf\u1d00-\u1d2b\u1d6b-"
    "\u1d77\u1d79-\u1d9a\u1e00-\u1f15\u1f18-\u1f1d\u1f20-\u1f45\u1f48-\u1f4d\u1f50-\u1f57\u1f59\u1f5b\u1f5d"
    "\u1f5f-\u1f7d\u1f80-\u1fb4\u1fb6-\u1fbc\u1fbe\u1fc2-\u1fc4\u1fc6-\u1fcc\u1fd0-\u1fd3\u1fd6-\u1fdb\u1fe0-"
    "\u1fec\u1ff2-\u1ff4\u1ff6-\u1ffc\u2102\u2107\u210a-\u2113\u2115\u2119-\u211d\u2124\u2126\u2128\u212a-"
    "\u212d\u212f-\u2134\u2139\u213c-\u213f\u2145-\u2149\u214e\u2183\u2184\u2c00-\u2c7b\u2c7e-\u2ce4\u2ceb-"
    "\u2cee\u2cf2\u2cf3\ua640-\ua66d\ua680-\ua69b\ua722-\ua76f\ua771-\ua787\ua78b-\ua78e\uab70-\uabbf\ufb00-"
    "\ufb06\ufb13-\ufb17\uff21-\uff3a\uff41-\uff5a\U00010400-\U0001044f\U000104b0-\U000104d3\U000104d8-"
    "\U000104fb\U00010c80-\U00010cb2\U00010cc0-\U00010cf2\U000118a0-\U000118df\U0001e900-\U0001e943")
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
    "deepseek-llm": [r"[\r\n]", r"\s?[" + CASED_LETTERS + "]+",
                     r"\s?[!-/:-~\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3000-\u3002]+", r"\s+$", CJK, r"\p{N}+"],
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
