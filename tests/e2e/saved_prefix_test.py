"""Prefixes that are saved by one process and serve another: the real server, started again and again."""
import json
import pathlib
import resource
import signal
import tempfile
import unittest

from program import TEXT
from serving_case import CHAT, PAGE, ServingCase, at_once, model_file, random_prompt
from server_program import wait_until
from wire import Wire

LOADED = "winnow_saved_prefix_loaded_tokens_total"


class SavedPrefixes(ServingCase):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory(prefix="winnow-kv-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name) / "kv"

    def serve(self, *flags, model=None, limits=None):
        return self.start("--kv-store", self.folder, *flags, model=model, limits=limits)

    def save(self, server, name, body, headers=None):
        return server.post("/winnow/kv/" + name, body, headers)

    def names(self, server, headers=None):
        status, text = server.ask("GET", "/winnow/kv", headers=headers)
        self.assertEqual(status, 200)
        return [prefix["name"] for prefix in json.loads(text)["data"]]

    def file(self):
        found, = self.folder.iterdir()
        return found

    def asked_for(self, prompt, server, **more):
        """Token ids, log probabilities and cached tokens of an answer."""
        answer = self.complete(prompt, 12, server=server, logprobs=3, **more)
        return answer["token_ids"], answer["logprobs"], answer["cached"]

    def cold_answer(self, prompt, **more):
        return self.asked_for(prompt, self.reference, cache_prompt=False, **more)[:2]

    def test_an_answer_after_a_restart_is_that_of_a_cold_run_bit_for_bit(self):
        for attention in ("dense", "sparse"):
            document = random_prompt(self.rng, 3000)
            with self.serve() as server:
                saved = self.save(server, attention, {"prompt": document, "attention": attention})
                self.assertEqual((saved["name"], saved["tokens"], saved["attention"]), (attention, 3000 // PAGE * PAGE, attention))
            with self.serve() as server:
                for more in (1, 50, 300):
                    prompt = document + random_prompt(self.rng, more)
                    *answer, cached = self.asked_for(prompt, server, attention=attention)
                    self.assertEqual(answer, list(self.cold_answer(prompt, attention=attention)), (attention, more))
                    # The last tokens of a sparse document attended to more than they do in the middle of a prompt.
                    self.assertGreaterEqual(cached, 3000 // PAGE * PAGE - (0 if attention == "dense" else 2 * PAGE))
                self.assertGreaterEqual(server.metric(LOADED), 2500)
                self.holds_nothing(server)
                self.assertEqual(server.ask("DELETE", "/winnow/kv/" + attention)[0], 200)

    def test_a_conversation_that_begins_with_a_saved_document_finds_it(self):
        def speaking(gguf):
            gguf.set("tokenizer.chat_template", TEXT, "{% for m in messages %}[{{ m.role }}]{{ m.content }}\n{% endfor %}")
        model = model_file("speaking", speaking)
        opening = [{"role": "system", "content": "".join(self.rng.choices("abcdefg ", k=900))}]
        whole = {"messages": opening + [{"role": "user", "content": "Why?"}], "max_tokens": 8, "temperature": 0, "logprobs": True}
        with self.serve(model=model) as server:
            tokens = self.save(server, "talk", {"messages": opening})["tokens"]
        with self.serve(model=model) as server:
            warm, cold = (server.post(CHAT, whole | {"cache_prompt": cached}) for cached in (True, False))
            self.assertEqual(warm["usage"]["prompt_tokens_details"]["cached_tokens"], tokens)
            self.assertEqual(warm["choices"], cold["choices"])

    def test_a_process_that_was_killed_in_a_save_leaves_nothing(self):
        kept = random_prompt(self.rng, 2 * PAGE)
        with self.serve() as server:
            self.save(server, "kept", {"prompt": kept})
        server = self.serve()
        try:
            self.folder.joinpath("kept.0123456789abcdef.prefix.Zz09aA").write_bytes(b"begun")
            server.child.send_signal(signal.SIGKILL)
        finally:
            server.close()
        with self.serve() as server:
            self.assertEqual(self.names(server), ["kept"])
            self.assertEqual(self.file().suffix, ".prefix")
            self.assertEqual(self.complete(kept + [1], 4, server=server)["cached"], 2 * PAGE)

    def test_damaged_files_cost_a_line_and_no_more(self):
        document = random_prompt(self.rng, 5 * PAGE)
        prompt = document + [1, 2, 3]
        with self.serve() as server:
            self.save(server, "doc", {"prompt": document})
        whole = self.file().read_bytes()
        damages = {"cut": whole[:-1], "empty": b"", "header": whole[:200] + b"\xff" + whole[201:], "version": whole[:8] + b"\x09" + whole[9:],
                   "other": b"GGUF" + whole[4:], "page": whole[:-5] + bytes(x ^ 1 for x in whole[-5:])}
        for name, data in damages.items():
            self.file().write_bytes(data)
            with self.serve() as server:
                told = [line for line in server.head if '"saved_prefix"' in line]
                self.assertEqual(len(told), 0 if name == "page" else 1, (name, server.head))
                self.assertEqual(list(self.asked_for(prompt, server)[:2]), list(self.cold_answer(prompt)), name)
                self.assertEqual(self.names(server), [], name)
                self.holds_nothing(server)

    def test_another_model_gets_nothing_and_destroys_nothing(self):
        def louder(gguf):
            norm = gguf.tensor("output_norm.weight")
            norm[3] = norm[3][64:] + norm[3][:64]
        document = random_prompt(self.rng, 3 * PAGE)
        with self.serve() as server:
            self.save(server, "doc", {"prompt": document})
        with self.serve(model=model_file("other", louder)) as server:
            self.assertEqual(self.complete(document + [1], 4, server=server)["cached"], 0)
            self.assertEqual(sum("expected a prefix made by" in line for line in server.head), 1)
        with self.serve() as server:
            self.assertEqual(self.complete(document + [1], 4, server=server)["cached"], 3 * PAGE)

    def test_a_key_gets_its_own_prefixes_alone(self):
        document = random_prompt(self.rng, 3 * PAGE)
        mine, other = ({"Authorization": f"Bearer {key}"} for key in ("first", "second"))
        keys = ("--api-key", "first", "--api-key", "second")
        with self.serve(*keys) as server:
            self.save(server, "doc", {"prompt": document}, mine)
        with self.serve(*keys) as server:
            self.assertEqual((self.names(server, mine), self.names(server, other)), (["doc"], []))
            self.assertEqual(server.ask("DELETE", "/winnow/kv/doc", headers=other)[0], 404)
            self.assertEqual(server.ask("GET", "/winnow/kv")[0], 401)
            for headers, cached in ((other, 0), (mine, 3 * PAGE)):
                self.assertEqual(self.complete(document + [1], 4, server=server, headers=headers)["cached"], cached)
            self.assertEqual(self.complete(document + [1], 4, server=server, headers=mine, cache_salt="x")["cached"], 0)

    def test_a_full_disk_is_an_error_of_the_save_alone(self):
        document = random_prompt(self.rng, 20 * PAGE)
        for flags, limits in (((), {resource.RLIMIT_FSIZE: 100000}), (("--kv-store-limit", "0.0001"), {})):
            with self.serve(*flags, limits=limits) as server:
                status, text = server.ask("POST", "/winnow/kv/doc", {"prompt": document})
                self.assertEqual((status, json.loads(text)["error"]["code"]), (507, "storage_full"))
                self.assertEqual(list(self.folder.iterdir()), [])
                self.assertEqual(self.complete(document, 4, server=server)["token_ids"], self.cold(document, 4))
                self.holds_nothing(server)

    def test_a_client_that_leaves_saves_nothing(self):
        with self.serve() as server:
            wires = [self.leaving(server, name) for name in ("a", "b", "c")]
            wait_until(lambda: sum(server.num_requests()) > 0)
            for wire in wires:
                wire.reset()
            server.wait_until_idle()
            wait_until(lambda: server.pages()["live"] == 0)
            self.holds_nothing(server)
            # What was written before the news came may stay; nothing half written does.
            wait_until(lambda: all(path.suffix == ".prefix" for path in self.folder.iterdir()))

    def leaving(self, server, name):
        return Wire(server.address).post("/winnow/kv/" + name, {"prompt": random_prompt(self.rng, 7000)})

    def test_many_saves_and_questions_at_once(self):
        documents = [random_prompt(self.rng, self.rng.randrange(300, 1500)) for _ in range(6)]
        with self.serve("--kv-tokens", "16384") as server:
            calls = [lambda i=i, d=d: self.save(server, f"doc{i}", {"prompt": d}) for i, d in enumerate(documents)]
            calls += [lambda d=d: self.complete(d + [7], 6, server=server) for d in documents]
            at_once(calls)
            self.assertEqual(sorted(self.names(server)), [f"doc{i}" for i in range(6)])
        with self.serve("--kv-tokens", "16384") as server:
            answers = at_once([lambda d=d, n=n: self.ids(d + [n], 6, server=server) for d in documents for n in range(3)])
            self.assertEqual(answers, [self.cold(d + [n], 6) for d in documents for n in range(3)])
            self.holds_nothing(server)

    def test_two_servers_do_not_share_a_folder(self):
        with self.serve():
            with self.assertRaisesRegex(RuntimeError, "expected a folder of its own"):
                self.serve()


if __name__ == "__main__":
    unittest.main()
