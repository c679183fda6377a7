"""Cases of the prefix cache, of determinism and of isolation against the real server. docs/serving-cases.md lists them all."""
import json
import statistics
import time
import unittest

from program import TEXT
from health_probe import MAX_HEALTH_SECONDS, Probe
from serving_case import CHAT, COMPLETIONS, FULL, PAGE, ServingCase, at_once, model_file, random_prompt, rounds, token_ids
from wire import Wire


class Prefixes(ServingCase):
    FLAGS = ("--kv-tokens", "16384")

    def test_prefix_full_hit(self):
        for length in (1, PAGE, 2 * PAGE, 2 * PAGE + 1):
            for max_tokens in (1, 20):
                prompt = random_prompt(self.rng, length)
                first, second = (self.complete(prompt, max_tokens) for _ in range(2))
                self.assertEqual(len(second["token_ids"]), max_tokens)
                self.assertEqual(second["token_ids"], first["token_ids"])
                self.assertEqual(second["cached"], length - 1)

    def test_prefix_stale_hash_after_recycle(self):
        with self.start("--kv-tokens", str(16 * PAGE)) as server:
            for _ in range(rounds(3, 200)):
                prompt = random_prompt(self.rng, 8 * PAGE)
                first = self.ids(prompt, 6, server=server)
                for _ in range(8):
                    self.ids(random_prompt(self.rng, 8 * PAGE), 1, server=server)
                again = self.complete(prompt, 6, server=server)
                self.assertEqual(again["token_ids"], first)
                self.assertEqual(first, self.cold(prompt, 6))
            self.holds_nothing(server)

    def test_prefix_hit_on_page_not_yet_computed(self):
        for num in (2, 8):
            prompt = random_prompt(self.rng, 5 * PAGE)
            answers = at_once([lambda: self.ids(prompt, 16)] * num)
            self.assertEqual(answers, [self.cold(prompt, 16)] * num)

    def test_prefix_identity_of_weights(self):
        def louder(gguf):
            norm = gguf.tensor("output_norm.weight")
            norm[3] = norm[3][64:] + norm[3][:64]
        prompt, answers = random_prompt(self.rng, 4 * PAGE), []
        for path in (model_file("long"), model_file("other", louder), model_file("long")):
            with self.start("--alias", "same", model=path) as server:
                first, second = (self.complete(prompt, 12, server=server) for _ in range(2))
                self.assertEqual((first["cached"], second["cached"] > 0), (0, True))
                self.assertEqual(first["token_ids"], second["token_ids"])
                answers.append(first["token_ids"])
        self.assertNotEqual(answers[0], answers[1])
        self.assertEqual(answers[0], answers[2])

    def test_prefix_key_includes_attention_mode(self):
        alone = {}
        prompt = random_prompt(self.rng, 2000)
        for mode in ("dense", "sparse"):
            alone[mode] = self.cold(prompt, 12, attention=mode)
        self.assertNotEqual(alone["dense"], alone["sparse"], "sparse attention left out nothing")
        for modes in (("dense", "sparse", "dense", "sparse"), ("sparse", "dense", "sparse", "dense")):
            salt = "-".join(modes)
            for mode in modes:
                answer = self.complete(prompt, 12, attention=mode, cache_salt=salt)
                self.assertEqual(answer["token_ids"], alone[mode], (modes, mode))

    def test_prefix_key_includes_sparse_decode(self):
        prompt = random_prompt(self.rng, 1200)
        dense = self.cold(prompt, 200)
        with self.start("--sparse-decode", "on", "--sparse-decode-tau", "0.5") as server:
            sparse = self.ids(prompt, 200, server=server)
            self.assertNotEqual(sparse, dense, "sparse decode left out nothing")
            longer = prompt + sparse + [7]
            # A request that asks for dense attention is dense altogether, and takes no page of the sparse answer.
            self.assertEqual(self.ids(longer, 12, server=server, attention="dense"), self.cold(longer, 12))
            self.assertEqual(self.ids(prompt, 200, server=server, attention="dense"), dense)
            self.assertEqual(self.ids(prompt, 200, server=server), sparse)

    def test_prefix_interrupted_generation(self):
        for _ in range(rounds(6, 50)):
            prompt = random_prompt(self.rng, self.rng.randrange(100, 600))
            wire = self.stream(prompt, 1000)
            begun = self.stream_ids(wire, self.rng.randrange(5, 150))
            wire.reset() if self.rng.random() < 0.5 else wire.close()
            longer = prompt + begun + random_prompt(self.rng, 20)
            self.assertEqual(self.ids(longer, 12), self.cold(longer, 12))


class Determinism(ServingCase):
    def same_for_all_chunks(self, prompt, num, chunks, attention):
        answers = []
        for chunk in chunks:
            with self.start("--chunk", str(chunk)) as server:
                answers.append(self.ids(prompt, num, server=server, attention=attention))
        self.assertEqual(answers, [answers[0]] * len(chunks))

    def test_det_chunk_size(self):
        self.same_for_all_chunks(random_prompt(self.rng, 3000), 64, rounds((8192, 128), (8192, 1024, 512, 128, 97, 1)), "dense")

    def test_det_sparse_anchoring(self):
        prompt = random_prompt(self.rng, 4000)
        self.same_for_all_chunks(prompt, 32, rounds((8192, 640), (8192, 1024, 640, 130)), "sparse")
        alone = self.cold(prompt, 32, attention="sparse")
        self.assertNotEqual(alone, self.cold(prompt, 32), "sparse attention left out nothing")
        for num_pages in rounds((5,), (1, 5, 9)):
            self.ids(prompt[:num_pages * PAGE + 1], 1, attention="sparse", cache_salt=str(num_pages))
            self.assertEqual(self.ids(prompt, 32, attention="sparse", cache_salt=str(num_pages)), alone)

    def test_det_batch_size(self):
        prompt = random_prompt(self.rng, 200)
        alone = self.cold(prompt, 64)
        for threads in (1, 2):
            with self.start(threads=threads) as server:
                self.assertEqual(self.ids(prompt, 64, server=server), alone)
                self.assertEqual(at_once([lambda: self.ids(prompt, 64, server=server, cache_prompt=False)] * 8), [alone] * 8)
                neighbours = [(random_prompt(self.rng, 30 * (i + 1)), 10 * (i + 1)) for i in range(7)]
                calls = [lambda: self.ids(prompt, 64, server=server, cache_prompt=False)]
                calls += [lambda p=p, n=n: self.ids(p, n, server=server) for p, n in neighbours]
                self.assertEqual(at_once(calls)[0], alone)

    def test_det_seed_in_mixed_batch(self):
        prompt, other = random_prompt(self.rng, 40), random_prompt(self.rng, 70)
        drawn = {"temperature": 0.8, "seed": 42}
        alone = self.cold(prompt, 32, **drawn)
        for beside in ({}, {"seed": 7}):
            answers = at_once([lambda: self.ids(prompt, 32, **drawn), lambda: self.ids(other, 32, temperature=0.8, **beside),
                               lambda: self.ids(prompt, 32, temperature=0.8, seed=7)])
            self.assertEqual(answers[0], alone)
            self.assertNotEqual(answers[2], alone)
        self.assertEqual(at_once([lambda: self.ids(prompt, 32, **drawn)] * 4), [alone] * 4)


class Isolation(ServingCase):
    FLAGS = ("--api-key", "first", "--api-key", "second")

    @classmethod
    def as_key(cls, key):
        return {"Authorization": f"Bearer {key}"}

    def test_iso_duplicate_request_id(self):
        ours, theirs = random_prompt(self.rng, 60), random_prompt(self.rng, 90)
        headers = "X-Request-Id: same\r\nAuthorization: Bearer first\r\n"
        bodies = [{"prompt": p, "max_tokens": 3000, "temperature": 0, "ignore_eos": True, "return_token_ids": True, "stream": True, "request_id": "same"}
                  for p in (ours, theirs)]
        with Wire(self.server.address).post(COMPLETIONS, bodies[0], headers) as kept:
            left = Wire(self.server.address).post(COMPLETIONS, bodies[1], headers)
            status, reply_headers = kept.head()
            self.assertEqual((status, reply_headers["x-request-id"]), (200, "same"))
            their_ids = self.stream_ids(left, 20)
            left.close()
            events = list(kept.events())
        self.assertNotEqual(events[0]["id"], "same")
        ids = [token for event in events for token in token_ids(event)]
        self.assertEqual(len(ids), 3000)
        self.assertEqual(ids, self.cold(ours, 3000))
        self.assertEqual(their_ids, self.cold(theirs, len(their_ids)))

    def test_iso_prefix_cache_tenants(self):
        prompt = random_prompt(self.rng, 512)
        cached = lambda key, **more: self.complete(prompt, 1, headers=self.as_key(key), **more)["cached"]
        self.assertEqual([cached("first"), cached("second")], [0, 0])
        self.assertGreater(cached("first"), 0)
        for salt, found in (("a", 0), ("a", 511)):
            self.assertEqual(cached("first", cache_salt=salt), found)
        self.assertEqual(cached("second", cache_salt="a"), 0)

    @unittest.skipUnless(FULL, "a rank test of 200 timed requests: WINNOW_FULL=1")
    def test_iso_prefix_cache_tenants_timing(self):
        known, cold = [], []
        for _ in range(200):
            prompt = random_prompt(self.rng, 512)
            self.complete(prompt, 1, headers=self.as_key("first"))
            for times, asked in ((known, prompt), (cold, random_prompt(self.rng, 512))):
                began = time.monotonic()
                self.complete(asked, 1, headers=self.as_key("second"))
                times.append(time.monotonic() - began)
        rank_sum = sum(sum(c < k for c in cold) + 0.5 * sum(c == k for c in cold) for k in known)
        n = len(known)
        z = (rank_sum - n * n / 2) / (n * n * (2 * n + 1) / 12) ** 0.5
        p = 2 * (1 - statistics.NormalDist().cdf(abs(z)))
        print(f"rank test of {n} prompts known to another key against {n} unknown ones: p = {p:.3f}")
        self.assertGreater(p, 0.001)

    def test_iso_template_sandbox(self):
        message = {"messages": [{"role": "user", "content": "x"}], "max_tokens": 1}
        status, text = self.server.ask("POST", CHAT, {**message, "chat_template": "{{ 1 }}"}, self.as_key("first"))
        self.assertEqual(status, 400, text)
        self.assertIn("chat_template", text)
        content = "{{ ''.__class__ }}{% for i in range(9) %}" * 20
        status, text = self.server.ask("POST", CHAT + "/render", {"messages": [{"role": "user", "content": content}]}, self.as_key("first"))
        self.assertEqual(status, 200, text)
        text = self.server.ask("POST", "/detokenize", {"tokens": json.loads(text)["token_ids"]}, self.as_key("first"))[1]
        self.assertIn(content, json.loads(text)["text"])
        templates = {
            "range": "{% for i in range(1000000000) %}{% endfor %}",
            "loops": "{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}",
            "double": "{% set ns = namespace(s='0123456789') %}{% for i in range(40) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}{{ ns.s }}",
            "recurse": "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
            "attributes": "{{ ''.__class__.__mro__[1].__subclasses__() }}",
            "throw": "{{ raise_exception('no') }}",
        }
        if not FULL:
            del templates["double"]  # takes seconds; template_test has it too
        for name, template in templates.items():
            path = model_file(name, lambda gguf: gguf.set("tokenizer.chat_template", TEXT, template))
            try:
                server = self.start(model=path)
            except RuntimeError as error:
                self.assertIn("template", str(error), name)
                continue
            with server:
                with Probe(server) as probe:  # rendering holds up no one
                    status, text = server.ask("POST", CHAT, message)
                self.assertLess(probe.percentile(0.9), MAX_HEALTH_SECONDS)
                self.assertEqual(status, 400, (name, text[:300]))
                self.holds_nothing(server)
                self.assertEqual(server.ask("POST", COMPLETIONS, {"prompt": "x", "max_tokens": 1})[0], 200)
                self.assertLess(server.resident_bytes(), 500e6)


if __name__ == "__main__":
    unittest.main()
