"""Cases of sampling, stopping and limits against the real server. docs/serving-cases.md lists them all."""
import itertools
import json
import struct
import time
import unittest

from program import TINY, U32, Gguf
from serving_case import CHAT, COMPLETIONS, PAGE, VOCABULARY, ServingCase, at_once, model_file, random_prompt, rounds, token_ids
from wire import Wire

SICK_TOKEN = 7  # its embedding is no number in the sick model
END_TOKENS = (268, 270)
# Only letters and blanks come.
PRINTABLE = {str(i): -1000 for i in range(VOCABULARY) if not (97 <= i <= 122 or i == 32)}


def break_embedding(value):
    def change(gguf):
        tensor = gguf.tensor("token_embd.weight")
        width = tensor[1][0] * 4
        tensor[3] = tensor[3][:SICK_TOKEN * width] + struct.pack("<f", value) * tensor[1][0] + tensor[3][(SICK_TOKEN + 1) * width:]
    return change


class Sampling(ServingCase):
    def test_samp_nan_inf_logits(self):
        healthy = [t for t in random_prompt(self.rng, 400) if t != SICK_TOKEN]
        bias = {str(SICK_TOKEN): -1000}  # it must not come as an answer's token either
        for name, value in (("nan", float("nan")), ("inf", float("inf")), ("minus-inf", float("-inf"))):
            with self.start("--kv-tokens", "2048", model=model_file(name, break_embedding(value), context=2048)) as server:
                alone = self.ids(healthy, 40, server=server, logit_bias=bias)
                for drawn in ({"temperature": 0}, {"temperature": 1, "seed": 3}, {"temperature": 1, "top_k": 5}, {"temperature": 1, "min_p": 0.1, "top_p": 0.9}):
                    sick = {"prompt": [SICK_TOKEN] + healthy[:300], "max_tokens": 20, "ignore_eos": True, **drawn}
                    answers = at_once([lambda: server.ask("POST", COMPLETIONS, sick),
                                       lambda: self.ids(healthy, 40, server=server, logit_bias=bias, cache_prompt=False)])
                    self.assertEqual(answers[0][0], 500, answers[0][1][:300])
                    self.assertIn("error", json.loads(answers[0][1]))
                    self.assertEqual(answers[1], alone)
                # Pages that held such numbers serve others now.
                for _ in range(6):
                    other = [t for t in random_prompt(self.rng, 300) if t != SICK_TOKEN]
                    found = self.ids(other, 10, server=server, logit_bias=bias, cache_prompt=False)
                    self.assertEqual(found, self.cold(other, 10, logit_bias=bias))
                self.holds_nothing(server)

    def test_samp_repetition_penalty_negative(self):
        for value in (0, -1, -0.5, 101):
            self.refused({"prompt": [5], "repetition_penalty": value}, "repetition_penalty")
        self.refused(b'{"prompt": [5], "repetition_penalty": NaN}', "JSON")
        prompt = random_prompt(self.rng, 30)
        self.assertEqual(self.ids(prompt, 16, repetition_penalty=1), self.cold(prompt, 16))

    def test_samp_edge_parameters(self):
        prompt = random_prompt(self.rng, 20)
        greedy = self.cold(prompt, 8)
        unfiltered = {}
        temperatures, top_ps, top_ks, min_ps = (0, 1e-6, 1, 2), (0, 1e-9, 1), (-1, 0, 1, VOCABULARY, VOCABULARY + 1), (0, 1)
        for temperature, top_p, top_k, min_p in itertools.product(temperatures, top_ps, top_ks, min_ps):
            fields = {"temperature": temperature, "top_p": top_p, "top_k": top_k, "min_p": min_p}
            found = self.ids(prompt, 8, seed=11, **fields)
            self.assertEqual(len(found), 8, fields)
            if temperature < 1 or top_p < 1 or top_k == 1 or min_p == 1:
                self.assertEqual(found, greedy, fields)
            else:
                self.assertEqual(found, unfiltered.setdefault(temperature, found), fields)
            if top_k == 1:
                self.assertEqual(self.ids(prompt, 8, **fields), greedy, fields)
        for name, value in (("temperature", -1), ("temperature", 1e9), ("top_p", 1.1), ("top_p", -0.1), ("min_p", -0.1), ("min_p", 1.1), ("top_k", -2)):
            self.refused({"prompt": prompt, name: value}, name)

    def test_samp_logit_bias_range(self):
        bad = ({str(VOCABULARY): 5}, {"-1": 5}, {"99999999999": 1}, {"abc": 1}, {"5": 1e308}, {"5": "x"}, {str(i): 1 for i in range(100000)}, [5], "5")
        for bias in bad:
            self.refused({"prompt": [5], "max_tokens": 1, "logit_bias": bias}, "logit_bias")
            self.assertEqual(len(self.ids([5], 2)), 2)
        prompt = random_prompt(self.rng, 20)
        self.assertEqual(self.ids(prompt, 8, logit_bias={str(i): -100 for i in range(VOCABULARY)}), self.cold(prompt, 8))

    def test_samp_prompt_ids_out_of_range(self):
        before = self.server.metric("vllm:prompt_tokens_total")
        for prompt in ([-1], [VOCABULARY], [1.5], [9223372036854775807], [[1], [VOCABULARY]], [True], [[]]):
            self.refused({"prompt": prompt, "max_tokens": 1}, "prompt")
        self.assertEqual(self.server.metric("vllm:prompt_tokens_total"), before, "half of a request was run")

    def test_samp_logprobs_count(self):
        messages = [{"role": "user", "content": "count"}]
        for count, drawn in itertools.product((None, 0, 1, 5, 20), ({"temperature": 0}, {"temperature": 1, "seed": 4})):
            body = {"messages": messages, "max_tokens": 5, "ignore_eos": True, "logprobs": True, "top_logprobs": count, **drawn}
            whole = self.server.post(CHAT, body)["choices"][0]["logprobs"]["content"]
            self.assertEqual([len(entry["top_logprobs"]) for entry in whole], [count or 0] * 5)
            self.assertTrue(all(entry["logprob"] <= 0 for entry in whole))
            with Wire(self.server.address).post(CHAT, {**body, "stream": True}) as wire:
                self.assertEqual(wire.head()[0], 200)
                streamed = [entry for event in wire.events() for entry in (event["choices"][0].get("logprobs") or {}).get("content", [])]
            self.assertEqual(streamed, whole)
        for count in (21, -1):
            self.refused({"messages": messages, "logprobs": True, "top_logprobs": count}, "top_logprobs", path=CHAT)
        for count, echo in itertools.product((0, 1, 5), (False, True)):
            scores = self.complete([60, 61, 62], 4, logprobs=count, echo=echo)["logprobs"]
            self.assertEqual(len(scores["tokens"]), 7 if echo else 4)
            for top in scores["top_logprobs"][1:] if count else ():
                self.assertIn(len(top), (count, count + 1))


class Stopping(ServingCase):
    def text_of(self, prompt, stop, max_tokens, streamed):
        body = {"prompt": prompt, "max_tokens": max_tokens, "temperature": 0, "ignore_eos": True, "logit_bias": PRINTABLE, "stop": stop}
        if not streamed:
            choice = self.server.post(COMPLETIONS, body)["choices"][0]
            return choice["text"], choice["finish_reason"]
        with Wire(self.server.address).post(COMPLETIONS, {**body, "stream": True}) as wire:
            self.assertEqual(wire.head()[0], 200)
            choices = [event["choices"][0] for event in wire.events()]
        self.assertTrue(wire.done)
        return "".join(choice["text"] for choice in choices), choices[-1]["finish_reason"]

    def test_stop_spans_tokens(self):
        prompt = random_prompt(self.rng, 10)
        text, _ = self.text_of(prompt, None, 30, False)
        self.assertEqual(len(text.encode()), len(text))
        pairs = [(i, j) for i in range(len(text)) for j in range(i + 2, min(i + 13, len(text) + 1))]
        for i, j in self.rng.sample(pairs, rounds(16, len(pairs))):
            stops = [text[i:j]] if (i + j) % 3 else [text[i:j], text[i + 1:j + 3]]
            want = text[:min(text.find(stop) for stop in stops if stop in text)]
            for streamed in (False, True):
                self.assertEqual(self.text_of(prompt, stops, 200, streamed), (want, "stop"), stops)

    def test_stop_at_first_token(self):
        prompt = random_prompt(self.rng, 10)
        first = self.server.post(COMPLETIONS, {"prompt": prompt, "max_tokens": 1, "temperature": 0, "logit_bias": PRINTABLE})["choices"][0]["text"]
        ways = ({"stop": first, "logit_bias": PRINTABLE}, {"stop_token_ids": [ord(first[0])], "logit_bias": {str(ord(first[0])): 1000}},
                {"logit_bias": {str(END_TOKENS[-1]): 1000}})
        for way in ways:
            body = {"prompt": prompt, "max_tokens": 9, "temperature": 0, **way}
            whole = self.server.post(COMPLETIONS, body)
            self.assertEqual((whole["choices"][0]["text"], whole["choices"][0]["finish_reason"]), ("", "stop"), way)
            with Wire(self.server.address).post(COMPLETIONS, {**body, "stream": True, "stream_options": {"include_usage": True}}) as wire:
                self.assertEqual(wire.head()[0], 200)
                events = list(wire.events())
            self.assertEqual([e["choices"][0]["finish_reason"] for e in events if e["choices"] and e["choices"][0]["finish_reason"]], ["stop"])
            self.assertEqual("".join(e["choices"][0]["text"] for e in events if e["choices"]), "")
            self.assertEqual(events[-1]["usage"]["completion_tokens"], whole["usage"]["completion_tokens"])
            self.assertEqual(whole["usage"]["completion_tokens"], 1)

    def test_stop_every_eos(self):
        def declare(gguf):
            gguf.set("tokenizer.ggml.eot_token_id", U32, 269).set("tokenizer.ggml.eom_token_id", U32, 268)
        with self.start(model=model_file("ends", declare)) as server:
            head = "".join(server.head)
            pieces = [json.loads(server.ask("POST", "/detokenize", {"tokens": [token]})[1])["text"] for token in (268, 269, 270)]
            for token, piece in zip((268, 269, 270), pieces):
                self.assertIn(piece, json.loads(head.splitlines()[-2])["end_tokens"])
                choice = server.post(COMPLETIONS, {"prompt": [5, 6], "max_tokens": 20, "temperature": 0, "logit_bias": {str(token): 1000}})["choices"][0]
                self.assertEqual((choice["text"], choice["finish_reason"]), ("", "stop"), token)


class Limits(ServingCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.small = cls.start(model=TINY / "llama-untied.gguf")
        cls.addClassCleanup(cls.small.close)

    def test_limit_exact_context(self):
        context = 512
        for max_tokens, streamed in itertools.product((1, 16, None), (False, True)):
            for length, room in ((context - 2, 2), (context - 1, 1)):
                body = {"prompt": [5] * length, "max_tokens": max_tokens, "temperature": 0, "ignore_eos": True, "return_token_ids": True}
                if streamed:
                    with Wire(self.small.address).post(COMPLETIONS, {**body, "stream": True}) as wire:
                        ids = self.stream_ids(wire)
                else:
                    choice = self.small.post(COMPLETIONS, body)["choices"][0]
                    self.assertEqual(choice["finish_reason"], "length")
                    ids = choice["token_ids"]
                self.assertEqual(len(ids), min(room, max_tokens or room))
            for length in (context, context + 1, 2 * context):
                body = {"prompt": [5] * length, "max_tokens": max_tokens, "stream": streamed}
                self.refused(body, f"{context}.*{length}|{length}.*{context}", server=self.small)
        for words, status in ((100, 200), (600, 400)):
            body = {"messages": [{"role": "user", "content": "x" * words}], "max_tokens": 2}
            self.assertEqual(self.small.ask("POST", CHAT, body)[0], status)

    def test_limit_max_tokens(self):
        def ask(field):
            return self.small.ask("POST", COMPLETIONS, b'{"prompt": [5, 6], "temperature": 0, "ignore_eos": true, "return_token_ids": true' + field + b"}")
        for value in (b"-1", b"9223372036854775808", b"1e400", b'"5"', b"1.5", b"true", b"[]"):
            status, text = ask(b', "max_tokens": ' + value)
            self.assertEqual(status, 400, (value, text))
        for value, num in ((b"0", 0), (b"1", 1), (b"512", 510), (b"2147483647", 510), (b"9223372036854775807", 510), (b"null", 510), (None, 510)):
            status, text = ask(b"" if value is None else b', "max_tokens": ' + value)
            self.assertEqual(status, 200, (value, text))
            choice = json.loads(text)["choices"][0]
            self.assertEqual((len(choice["token_ids"]), choice["finish_reason"]), (num, "length"), value)
        both = {"messages": [{"role": "user", "content": "x"}], "max_tokens": 9, "max_completion_tokens": 3, "ignore_eos": True}
        self.assertEqual(self.small.post(CHAT, both)["usage"]["completion_tokens"], 3)

    def test_limit_empty_prompt(self):
        bodies = [(COMPLETIONS, {"prompt": p}) for p in ("", [], [""], "\0", " ")]
        bodies += [(CHAT, {"messages": []})] + [(CHAT, {"messages": [{"role": "user", "content": c}]}) for c in ("", None, [])]
        for path, body in bodies:
            began = time.monotonic()
            status, text = self.small.ask("POST", path, {**body, "max_tokens": 2})
            self.assertIn(status, (200, 400), text)
            self.assertLess(time.monotonic() - began, 1)
            self.assertEqual(len(self.ids([5], 2, server=self.small)), 2)

    def test_limit_n_choices(self):
        before = self.server.resident_bytes()
        for body in ({"n": 0}, {"n": 129}, {"n": 10**9}, {"best_of": 0}, {"best_of": 129}, {"best_of": 10**9}, {"n": 3, "best_of": 2},
                     {"prompt": ["x"] * 100000}, {"prompt": [[5]] * 100000}):
            began = time.monotonic()
            self.refused({"prompt": "x", "max_tokens": 1, **body}, "n|best_of|prompt")
            self.assertLess(time.monotonic() - began, 1)
        self.assertLess(self.server.resident_bytes() - before, 16e6)
        prompt = random_prompt(self.rng, 3 * PAGE + 5)
        answer = self.server.post(COMPLETIONS, {"prompt": prompt, "n": 2, "max_tokens": 3, "temperature": 1, "seed": 1, "ignore_eos": True})
        self.assertEqual([choice["index"] for choice in answer["choices"]], [0, 1])


if __name__ == "__main__":
    unittest.main()
