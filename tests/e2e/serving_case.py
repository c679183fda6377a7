"""What the tests of serving share: tiny models with room for long prompts, greedy answers as token ids, and the answers of cold runs."""
import concurrent.futures
import json
import os
import pathlib
import random
import tempfile
import unittest

from program import TINY, U32, Gguf
from server_program import Server, wait_until
from wire import Wire

FULL = os.environ.get("WINNOW_FULL") == "1"  # as many rounds as the cases ask for
PAGE = 128
VOCABULARY = 271
COMPLETIONS, CHAT = "/v1/completions", "/v1/chat/completions"
GREEDY = {"temperature": 0, "ignore_eos": True, "return_token_ids": True}

_folder = tempfile.TemporaryDirectory(prefix="winnow-serving-")


def rounds(few, all_of_them):
    return all_of_them if FULL else few


def model_file(name, change=lambda gguf: None, context=8192):
    """A tiny random model of that context, changed."""
    path = pathlib.Path(_folder.name) / f"{name}.gguf"
    if not path.exists():
        gguf = Gguf(TINY / "llama-untied.gguf").set("llama.context_length", U32, context)
        change(gguf)
        path.write_bytes(gguf.build())
    return path


def random_prompt(rng, length):
    return [rng.randrange(256) for _ in range(length)]


def at_once(calls):
    """The results of calls that run side by side."""
    with concurrent.futures.ThreadPoolExecutor(max(1, len(calls))) as pool:
        return [future.result() for future in [pool.submit(call) for call in calls]]


def token_ids(event):
    """Of one event of a stream."""
    return [token for choice in (event or {}).get("choices", []) for token in choice.get("token_ids") or []]


class ServingCase(unittest.TestCase):
    """One server of the class for its tests, and a second one, idle but for one request at a time, that tells what a cold run answers."""
    FLAGS, LIMITS = (), {}

    @classmethod
    def start(cls, *flags, model=None, threads=1, limits=None):
        """Prompts that ask for sparse attention leave out about half of a long prompt's pairs."""
        attention = ("--attention", "dense", "--sparse-profile", "none", "--sparse-tau", "0.1")
        return Server("-m", model or model_file("long"), "-t", str(threads), *attention, *flags, limits=limits)

    @classmethod
    def setUpClass(cls):
        cls.server = cls.start(*cls.FLAGS, limits=cls.LIMITS)
        cls.addClassCleanup(cls.server.close)
        cls.reference = cls.start()
        cls.addClassCleanup(cls.reference.close)

    def setUp(self):
        self.rng = random.Random(self.id())

    def tearDown(self):
        """Whatever a test did, the server lives and holds nothing."""
        self.holds_nothing(self.server)

    def holds_nothing(self, server):
        server.wait_until_idle()
        wait_until(lambda: server.pages()["live"] == 0)
        counts = server.pages()
        self.assertEqual(counts["live"] + counts["cached"] + counts["free"], counts["total"])
        self.assertEqual(server.ask("GET", "/health")[0], 200)

    def complete(self, prompt, max_tokens, server=None, headers=None, **more):
        """One choice, with usage beside it."""
        body = {"prompt": prompt, "max_tokens": max_tokens, **GREEDY, **more}
        answer = (server or self.server).post(COMPLETIONS, body, headers)
        return answer["choices"][0] | {"usage": answer["usage"], "cached": answer["usage"]["prompt_tokens_details"]["cached_tokens"]}

    def ids(self, prompt, max_tokens, **more):
        return self.complete(prompt, max_tokens, **more)["token_ids"]

    def cold(self, prompt, max_tokens, **more):
        return self.ids(prompt, max_tokens, server=self.reference, cache_prompt=False, **more)

    def refused(self, body, pattern, path=COMPLETIONS, status=400, server=None):
        code, text = (server or self.server).ask("POST", path, body)
        self.assertEqual(code, status, text[:500])
        self.assertRegex(json.loads(text)["error"]["message"], pattern)

    def stream(self, prompt, max_tokens, server=None, receive_bytes=None, **more):
        """A connection whose stream has been asked for."""
        wire = Wire((server or self.server).address, receive_bytes)
        return wire.post(COMPLETIONS, {"prompt": prompt, "max_tokens": max_tokens, "stream": True, **GREEDY, **more})

    def stream_ids(self, wire, at_most=None):
        """The token ids of a stream, or the first of them."""
        self.assertEqual(wire.head()[0], 200)
        ids = []
        for event in wire.events():
            self.assertNotIn("error", event)
            ids += token_ids(event)
            if at_most is not None and len(ids) >= at_most:
                break
        return ids
