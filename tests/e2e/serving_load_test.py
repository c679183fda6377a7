"""Many clients at once, and hostile ones among others, against the real server. docs/serving-cases.md says what each stands for."""
import os
import random
import resource
import threading
import time
import unittest

from health_probe import MAX_HEALTH_SECONDS, Probe
from serving_case import CHAT, COMPLETIONS, ServingCase, at_once, random_prompt, rounds
from server_program import wait_until
from wire import Wire


class Load(ServingCase):
    @classmethod
    def setUpClass(cls):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))  # the server inherits it
        cls.addClassCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        super().setUpClass()

    def test_two_thousand_connections(self):
        num_idle, num_slow, num_streams, num_tokens = rounds((290, 16, 8, 100), (1900, 64, 32, 3000))
        descriptors = self.server.num_descriptors()
        with Probe(self.server) as probe:
            idle = [Wire(self.server.address) for _ in range(num_idle)]
            slow = [Wire(self.server.address).send("POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n") for _ in range(num_slow)]
            wait_until(lambda: self.server.metric("winnow_http_connections") >= num_idle + num_slow)
            prompts = [random_prompt(self.rng, 20 + i) for i in range(num_streams)]
            ended = threading.Event()

            def drip():
                while not ended.wait(0.05):
                    for wire in slow:
                        wire.send(" ")
            dripping = threading.Thread(target=drip)
            dripping.start()
            streams = [self.stream(prompt, num_tokens) for prompt in prompts]
            answers = at_once([lambda s=s: self.stream_ids(s) for s in streams])
            ended.set()
            dripping.join()
            self.assertEqual(idle[0].send("GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n").reply()[0], 200)
        for wire in idle + slow + streams:
            wire.close()
        self.assertEqual(answers, [self.cold(prompt, num_tokens) for prompt in prompts])
        self.assertEqual(probe.statuses, {("/health", 200)})
        print(f"{num_idle + num_slow + num_streams} connections: health answered {len(probe.seconds)} times, 99 of 100 within {probe.percentile(0.99) * 1e3:.1f} ms")
        self.assertLess(probe.percentile(rounds(0.9, 0.99)), MAX_HEALTH_SECONDS)
        wait_until(lambda: self.server.num_descriptors() <= descriptors)

    def test_running_out_of_descriptors(self):
        with self.start(limits={resource.RLIMIT_NOFILE: 64}) as server:
            first = Wire(server.address).send("GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
            self.assertEqual(first.reply()[0], 200)
            # More than it has room for; the kernel keeps what it cannot take, or it is closed.
            crowd = [Wire(server.address) for _ in range(100)]
            first.send('POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 32\r\n\r\n{"prompt": "x", "max_tokens": 2}')
            self.assertEqual(first.reply()[0], 200)
            used = server.cpu_seconds()
            time.sleep(0.5)  # what is looked for is that nothing happens
            self.assertLess(server.cpu_seconds() - used, 0.25, "it asks again and again for what it cannot have")
            for wire in crowd:
                wire.close()
            first.close()
            self.holds_nothing(server)


class Soak(ServingCase):
    FLAGS = ("--kv-tokens", "16384", "--head-timeout", "1", "--body-timeout", "1")
    NUM_CLIENTS = 6

    def normal(self, rng):
        prompt, num, answer = rng.choice(self.known)
        fields = {"attention": "dense"} if rng.random() < 0.5 else {"cache_prompt": False}
        if rng.random() < 0.5:
            found = self.ids(prompt, num, **fields)
        else:
            with self.stream(prompt, num, **fields) as wire:
                found = self.stream_ids(wire)
        self.assertEqual(found, answer)

    def aborted(self, rng):
        wire = self.stream(random_prompt(rng, rng.randrange(1, 1500)), 4000)
        if rng.random() < 0.7:
            self.stream_ids(wire, rng.randrange(1, 20))
        wire.reset() if rng.random() < 0.5 else wire.close()

    def hostile(self, rng):
        heads = ("Content-Length: 5\r\nContent-Length: 6", "Transfer-Encoding: chunked, gzip", f"Content-Length: {10**18}", "A" * 20000)
        bodies = (b"[" * 100000, b'{"prompt": "\xff"}', b'{"prompt": [-1]}', b'{"prompt": "x", "n": 1000000000}', b'{"prompt": "x", "max_tokens": 1e400}', b'{"prompt": "x", "grammar": "root ::= root"}',
                  b'{"messages": [{"role": "user", "content": "\\ud800"}]}', b"")
        with Wire(self.server.address) as wire:
            if rng.random() < 0.4:
                wire.send(f"POST {COMPLETIONS} HTTP/1.1\r\nHost: localhost\r\n{rng.choice(heads)}\r\n\r\n")
            elif rng.random() < 0.2:
                wire.send("GET /hea")  # and then nothing
            else:
                wire.post(rng.choice((COMPLETIONS, CHAT)), rng.choice(bodies))
            try:
                status = wire.head()[0]
            except ConnectionResetError:
                status = None
            self.assertTrue(status is None or 400 <= status < 500, status)

    def client(self, seed, until):
        rng, counts = random.Random(seed), {"normal": 0, "aborted": 0, "hostile": 0}
        while time.monotonic() < until:
            kind = rng.choices(("normal", "aborted", "hostile"), (70, 25, 5))[0]
            getattr(self, kind)(rng)
            counts[kind] += 1
        return counts

    def test_soak(self):
        self.known = []
        for length, num in ((3, 40), (130, 20), (500, 30), (1200, 10), (2500, 3)):
            prompt = random_prompt(self.rng, length)
            self.known.append((prompt, num, self.cold(prompt, num)))
        seconds = int(os.environ.get("WINNOW_SOAK_SECONDS", rounds(4, 120)))
        for kind in (self.normal, self.aborted, self.hostile):
            kind(self.rng)
        self.server.wait_until_idle()
        descriptors, began, samples, ended = self.server.num_descriptors(), time.monotonic(), [], threading.Event()

        def watch():
            while not ended.wait(seconds / 60):
                samples.append((time.monotonic() - began, self.server.resident_bytes()))
        watching = threading.Thread(target=watch)
        watching.start()
        try:
            counts = at_once([lambda i=i: self.client(i, began + seconds) for i in range(self.NUM_CLIENTS)])
        finally:
            ended.set()
            watching.join()
        self.holds_nothing(self.server)
        wait_until(lambda: self.server.num_descriptors() <= descriptors)
        later = samples[len(samples) // 2:]
        slope = (later[-1][1] - later[0][1]) / (later[-1][0] - later[0][0])
        total = {kind: sum(count[kind] for count in counts) for kind in counts[0]}
        print(f"soak of {seconds} s: {total}; memory at the end {later[-1][1] / 1e6:.1f} MB, second half {slope * 60 / 1e6:+.2f} MB a minute")
        self.assertLess(later[-1][1] - later[0][1], 30e6)


if __name__ == "__main__":
    unittest.main()
