"""Two real servers behind a real vllm-router, as deploy/two-replicas starts them."""
import http.client
import json
import os
import pathlib
import random
import signal
import socket
import subprocess
import sys
import unittest

from program import ROOT, WINNOW, clean_environment
from serving_case import COMPLETIONS, PAGE, at_once, model_file
from server_program import wait_until

ROUTER = pathlib.Path(sys.executable).parent / "vllm-router"


def free_ports(count):
    """The first of so many ports, one behind the other, that are free now."""
    for first in random.Random().sample(range(20000, 32000, count), 100):
        try:
            for port in range(first, first + count):
                with socket.socket() as probe:
                    probe.bind(("127.0.0.1", port))
            return first
        except OSError:
            continue
    raise RuntimeError("no free ports")


def ask(port, path, body=None):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    try:
        data = None if body is None else json.dumps(body)
        connection.request("GET" if body is None else "POST", path, data, {"Content-Type": "application/json"})
        reply = connection.getresponse()
        return reply.status, reply.read().decode()
    finally:
        connection.close()


def answers(port):
    try:
        return ask(port, "/health")[0] == 200
    except OSError:
        return False


@unittest.skipUnless(ROUTER.exists(), "missing Python package vllm-router (./dev test installs it)")
class TwoReplicas(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.port = free_ports(4)
        cls.script = subprocess.Popen([ROOT / "deploy/two-replicas", model_file("long"), "--attention", "dense"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                      env=clean_environment({}) | {"PORT": str(cls.port), "WINNOW": WINNOW, "ROUTER": os.fspath(ROUTER)})
        cls.addClassCleanup(cls.stop)
        wait_until(lambda: cls.script.poll() is not None or answers(cls.port))
        assert cls.script.poll() is None, "the script has ended"

    @classmethod
    def stop(cls):
        cls.script.send_signal(signal.SIGTERM)
        assert cls.script.wait() == 0
        for port in range(cls.port, cls.port + 3):
            assert not answers(port), f"something still listens on {port}"

    def complete(self, prompt, **more):
        status, text = ask(self.port, COMPLETIONS, {"model": "any", "prompt": prompt, "max_tokens": 20, "temperature": 0, "ignore_eos": True, **more})
        self.assertEqual(status, 200, text)
        return text

    def test_a_prompt_goes_where_its_beginning_is(self):
        rng = random.Random(self.id())
        documents = ["".join(rng.choices("abcdefgh ijklmnop", k=1500)) for _ in range(6)]

        def cached(document, number):
            usage = json.loads(self.complete(f"{document} Question {number}?"))["usage"]
            return usage["prompt_tokens_details"]["cached_tokens"] / usage["prompt_tokens"]
        rounds = [at_once([lambda d=d, n=n: cached(d, n) for d in documents]) for n in range(4)]
        # Documents that begin alike have a token or two in common.
        self.assertLess(max(rounds[0]), 0.01, rounds)
        for shares in rounds[1:]:
            self.assertGreater(min(shares), 1 - 2 * PAGE / 1500, rounds)

    def test_a_stream_comes_through(self):
        whole = json.loads(self.complete("one two three"))["choices"][0]["text"]
        events = self.complete("one two three", stream=True).split("\n\n")
        self.assertEqual(events[-2:], ["data: [DONE]", ""])
        streamed = [json.loads(event.removeprefix("data: ")) for event in events[:-2]]
        self.assertEqual("".join(chunk["choices"][0]["text"] for chunk in streamed), whole)

    def test_what_routers_ask_for_is_there(self):
        self.assertEqual(json.loads(ask(self.port, "/v1/models")[1])["data"][0]["id"], "long")
        status, text = ask(self.port, COMPLETIONS, {"model": "any", "prompt": "x", "temperature": -1})
        self.assertEqual((status, json.loads(text)["error"]["param"]), (400, "temperature"))


if __name__ == "__main__":
    unittest.main()
