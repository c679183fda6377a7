"""What lm-eval asks of a server: log-probabilities of given tokens. They equal those of `winnow eval ppl`."""
import json
import unittest

from program import ROOT, run
from real_models_test import model
from server_program import Server


class Scoring(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.model = model("smollm2-135m-instruct-q4_1.gguf")
        cls.server = Server("-m", cls.model)
        cls.addClassCleanup(cls.server.close)
        text = (ROOT / "README.md").read_bytes()
        cls.ids = json.loads(run("tokenize", "-m", cls.model, stdin=text).stdout)["tokens"][:700]

    def score(self, prompts, **more):
        body = {"model": "any", "prompt": prompts, "max_tokens": 1, "temperature": 0, "logprobs": 1, "echo": True, "seed": 1234} | more
        return sorted(self.server.post("/v1/completions", body)["choices"], key=lambda c: c["index"])

    def test_scores_equal_those_of_eval(self):
        expected = json.loads(run("eval", "ppl", "-m", self.model, "--ids", "-", "--logprobs", "--json", "--tokens", str(len(self.ids)),
                                  stdin=json.dumps({"ids": self.ids}).encode()).stdout)
        scored = self.score([self.ids])[0]["logprobs"]
        self.assertEqual(len(scored["tokens"]), len(self.ids) + 1)
        self.assertIsNone(scored["token_logprobs"][0])
        self.assertIsNone(scored["top_logprobs"][0])
        self.assertEqual(len(expected["target_logprob"]), len(self.ids) - 1)
        for ours, theirs in zip(scored["token_logprobs"][1:-1], expected["target_logprob"]):
            self.assertAlmostEqual(ours, theirs, places=5)

    def test_the_best_token_is_seen_to_be_the_best(self):
        scored = self.score([self.ids])[0]["logprobs"]
        greedy = [p == max(top.values()) for p, top in zip(scored["token_logprobs"][1:], scored["top_logprobs"][1:])]
        self.assertTrue(greedy[-1])  # the answer's own token, drawn greedily
        self.assertTrue(0.2 < sum(greedy) / len(greedy) < 1)

    def test_a_batch_keeps_its_order_and_its_scores(self):
        alone = [self.score([self.ids[:n]])[0]["logprobs"]["token_logprobs"] for n in (5, 300, 129)]
        together = self.score([self.ids[:5], self.ids[:300], self.ids[:129]])
        self.assertEqual([c["logprobs"]["token_logprobs"] for c in together], alone)

    def test_the_tokenizer_can_be_had_over_http(self):
        info = json.loads(self.server.get("/tokenizer_info"))
        self.assertTrue(info["eos_token"])
        tokens = self.server.post("/tokenize", {"prompt": "Good morning", "add_special_tokens": False})["tokens"]
        self.assertEqual(self.server.post("/detokenize", {"tokens": tokens})["prompt"], "Good morning")


if __name__ == "__main__":
    unittest.main()
