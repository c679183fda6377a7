"""Mixed-up KV shown by a real model: each request counts upwards in its own range, in too small a pool."""
import re
import unittest

from real_models_test import model
from serving_case import COMPLETIONS, PAGE, at_once, rounds
from server_program import Server


class RealModel(unittest.TestCase):
    def test_each_request_counts_in_its_own_range(self):
        num, num_tokens = rounds(4, 8), rounds(24, 100)
        path = model("smollm2-135m-instruct-q4_1.gguf")
        with Server("-m", path, "-c", "1024", "--attention", "dense", "--kv-tokens", str(2 * num * PAGE)) as server:
            def count_from(first):
                prompt = ", ".join(str(i) for i in range(first, first + 40)) + ","
                return server.post(COMPLETIONS, {"prompt": prompt, "max_tokens": num_tokens, "temperature": 0})["choices"][0]["text"]
            firsts = [1000 * (i + 1) for i in range(num)]
            answers = at_once([lambda f=f: count_from(f) for f in firsts])
            self.assertGreater(server.metric("vllm:num_preemptions_total"), 0, "the pool was never full")
        for first, answer in zip(firsts, answers):
            numbers = [int(word) for word in re.findall(r"\d+(?=,)", answer)]
            self.assertGreaterEqual(len(numbers), num_tokens // 8)
            self.assertEqual(numbers, list(range(first + 40, first + 40 + len(numbers))))


if __name__ == "__main__":
    unittest.main()
