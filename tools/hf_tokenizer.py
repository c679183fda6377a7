#!/usr/bin/env python3
"""hf_tokenizer.py MODEL.gguf FOLDER: the model's vocabulary and chat template as a folder that Hugging Face's
AutoTokenizer reads, for programs that count tokens with one. Needs: pip install tokenizers gguf."""

import json
import pathlib
import sys

import gguf
import reference_tokenizers as reference


def settings(path, vocabulary):
    """What tokenizer_config.json says beside tokenizer.json."""
    fields = gguf.GGUFReader(path).fields

    def get(key):
        return fields[key].contents() if key in fields else None
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": False,
              "model_max_length": get(get("general.architecture") + ".context_length"),
              "chat_template": get("tokenizer.chat_template")}
    for name, key in (("bos_token", "bos"), ("eos_token", "eos"), ("pad_token", "padding"), ("unk_token", "unknown")):
        token = get(f"tokenizer.ggml.{key}_token_id")
        if token is not None:
            config[name] = vocabulary.tokens[token]
    return {name: value for name, value in config.items() if value is not None}


def main(arguments):
    if len(arguments) != 2:
        sys.exit(__doc__)
    path, folder = map(pathlib.Path, arguments)
    vocabulary = reference.Vocabulary(path)
    folder.mkdir(parents=True, exist_ok=True)
    reference.build(vocabulary, with_control=True).save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps(settings(path, vocabulary), indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
