"""Real models answer real questions through the program. tools/get_models fetches them."""
import json
import os
import pathlib
import unittest

from program import ROOT, run

MODELS = pathlib.Path(os.environ.get("WINNOW_MODELS") or pathlib.Path.home() / ".cache/winnow/models")


def model(name):
    path = MODELS / name
    if not path.exists():
        raise unittest.SkipTest(f"missing model {path} (tools/get_models fetches it)")
    return path


def answer(*args, **kwargs):
    outcome = run("run", *args, "--json", "--quiet", **kwargs)
    assert outcome.code == 0, outcome
    return json.loads(outcome.stdout)


class RealModels(unittest.TestCase):
    def test_smollm2_knows_a_capital(self):
        result = answer("-m", model("smollm2-135m-instruct-q4_1.gguf"), "-p", "What is the capital of France?", "-n", "24")
        self.assertIn("Paris", result["text"])

    def test_qwen_finds_a_word_in_a_document(self):
        document = "The gate opens with the word marigold.\n" + "Rain fell on the hills. " * 40
        result = answer("-m", model("qwen2.5-coder-0.5b-instruct.gguf"), "-p", "Which word opens the gate?", "-n", "24", "-f", "-", stdin=document.encode())
        self.assertIn("marigold", result["text"].lower())
        self.assertEqual(result["finish_reason"], "stop")

    def test_gemma_continues_a_text(self):
        path = model("gemma-3-270m-q4_k_m.gguf")
        result = answer("-m", path, "--raw", "-p", "The capital of France is", "-n", "6")
        self.assertIn("Paris", result["text"])

    def test_any_text_survives_tokenize_and_detokenize(self):
        text = (ROOT / "README.md").read_bytes() + bytes(range(256))
        for name in ("smollm2-135m-instruct-q4_1.gguf", "qwen2.5-coder-0.5b-instruct.gguf", "gemma-3-270m-q4_k_m.gguf"):
            path = model(name)
            tokens = run("tokenize", "-m", path, stdin=text)
            self.assertEqual(tokens.code, 0, tokens)
            self.assertEqual(run("detokenize", "-m", path, stdin=tokens.stdout).stdout, text)


if __name__ == "__main__":
    unittest.main()
