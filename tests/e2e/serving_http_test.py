"""Cases of JSON, HTTP and streams against the real server. docs/serving-cases.md lists them all."""
import itertools
import json
import resource
import time
import unittest

from health_probe import MAX_HEALTH_SECONDS, Probe
from serving_case import CHAT, COMPLETIONS, ServingCase, at_once, random_prompt, rounds
from server_program import wait_until
from wire import Wire


class Json(ServingCase):
    LIMITS = {resource.RLIMIT_STACK: 256 << 10}  # what recursion on a request's depth would run out of

    def test_json_deep_nesting(self):
        def shapes(depth):
            yield "[" * depth + "]" * depth
            yield '{"a":' * depth + "1" + "}" * depth
            yield '[{"a":' * (depth // 2) + "1" + "}]" * (depth // 2)
            yield "[" * depth
        places = ((COMPLETIONS, '{"prompt": "x", "max_tokens": 1, "unknown": %s}'),
                  (CHAT, '{"max_tokens": 1, "messages": [{"role": "user", "content": %s}]}'),
                  (CHAT, '{"max_tokens": 1, "messages": [{"role": "user", "content": "x"}], "tools": [{"type": "function", "function": {"name": "f", "parameters": %s}}]}'),
                  (CHAT, '{"max_tokens": 1, "messages": [{"role": "user", "content": "x"}], "response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": %s}}}'))
        for depth, (path, frame) in itertools.product((100, 1000, 10**4, 10**6), places):
            for shape in shapes(depth):
                status, text = self.server.ask("POST", path, (frame % shape).encode())
                self.assertEqual(status, 400, (depth, path, text[:300]))
                self.assertLess(len(text), 2000)
        for open_group, close_group in (("(", ")"), ("(?:", ")*")):
            pattern = open_group * 10**4 + "a" + close_group * 10**4
            body = {"prompt": "x", "max_tokens": 1, "response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "string", "pattern": pattern}}}}
            self.assertEqual(self.server.ask("POST", COMPLETIONS, body)[0], 400)

    def test_json_invalid_utf8(self):
        for bad in (b"\xc3\x28", b"\xff", b"\xc0\xaf", b"\xe2\x82", b"\xed\xa0\x80", b"\xf4\x90\x80\x80"):
            for body in (b'{"prompt": "a%s"}', b'{"prompt": "a", "%s": 1}', b'{"prompt": "a", "model": "%s"}', b'{"prompt": "a"}%s'):
                connection = Wire(self.server.address).post(COMPLETIONS, body.replace(b"%s", bad))
                status, headers = connection.head()
                text = connection.input.read(int(headers["content-length"]))
                connection.close()
                self.assertEqual(status, 400, (bad, body, text))
                text.decode("utf-8")
        for body in ('{"prompt": "a"}'.encode("utf-16"), b"\xef\xbb\xbf" + b'{"prompt": "a"', b"", b"\0"):
            self.refused(body, "JSON|json")
        lone_bytes = {str(i): -1000 for i in range(271) if not 128 <= i < 192}
        status, text = self.server.ask("POST", COMPLETIONS, {"prompt": [5], "max_tokens": 50, "ignore_eos": True, "logit_bias": lone_bytes})
        self.assertEqual(status, 200)
        self.assertEqual(set(json.loads(text)["choices"][0]["text"]), {"\ufffd"})

    def test_json_lone_surrogate(self):
        fields = ('"prompt": "%s"', '"prompt": "x", "stop": "%s"', '"prompt": "x", "model": "%s"', '"prompt": "x", "%s": 1')
        for lone, field, streamed in itertools.product(("\\ud800", "\\udc00x", "\\ud83d\\ud83d\\ude00"), fields, ("true", "false")):
            body = ("{%s, \"max_tokens\": 1, \"stream\": %s}" % (field % lone, streamed)).encode()
            status, text = self.server.ask("POST", COMPLETIONS, body)
            self.assertEqual(status, 400, (body, text))
        self.assertEqual(self.server.ask("POST", COMPLETIONS, b'{"prompt": "\\ud83d\\ude00", "max_tokens": 1}')[0], 200)

    def test_json_huge_body(self):
        before = self.server.resident_bytes()
        head = "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n"
        for length in (100 << 20, 3 << 30, 10**18):
            wires = [Wire(self.server.address).send(f"{head}Content-Length: {length}\r\n\r\n") for _ in range(10)]
            for wire in wires:
                self.assertEqual(wire.head()[0], 413)
                wire.close()
        self.assertLess(self.server.resident_bytes() - before, 20e6)

        def send_chunks():
            with Wire(self.server.address).send(f"{head}Transfer-Encoding: chunked\r\n\r\n") as wire:
                chunk = b"100000\r\n" + b" " * (1 << 20) + b"\r\n"
                try:
                    for _ in range(100):
                        wire.send(chunk)
                except OSError:  # closed by the server while we write
                    return True
                return wire.head()[0] in (413, None)
        self.assertEqual(at_once([send_chunks] * rounds(2, 10)), [True] * rounds(2, 10))
        self.refused({"prompt": "x" * (8 << 20)}, "context")
        wait_until(lambda: self.server.resident_bytes() - before < 300e6)


class Http(ServingCase):
    def test_http_ambiguous_framing(self):
        before = self.server.metric("vllm:prompt_tokens_total")
        hidden = b'POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 33\r\n\r\n{"prompt": "smuggled", "stop": 1}'
        for headers in ("Content-Length: 0\r\nTransfer-Encoding: chunked", "Content-Length: 4\r\nContent-Length: 5", "Transfer-Encoding: chunked, gzip",
                        "Transfer-Encoding:  chunked", "Content-Length: +5", "Content-Length: 0x5", "Content-Length: 5 5", "A: b\nContent-Length: 5", "A : b"):
            with Wire(self.server.address) as wire:
                wire.send(f"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n\r\n".encode() + b"0\r\n\r\n" + hidden)
                self.assertEqual(wire.reply()[0], 400, headers)
                self.assertTrue(wire.at_end(), headers)
        self.assertEqual(self.server.metric("vllm:prompt_tokens_total"), before)

    def test_http_slowloris(self):
        scale = rounds(10, 1)
        num_heads, num_bodies, num_idle, num_streams = 500 // scale, 100 // scale, 200 // scale, 64 // scale
        timeout = rounds(1, 10)
        with self.start("--max-running", "128", "--head-timeout", str(timeout), "--body-timeout", str(timeout)) as server:
            descriptors = server.num_descriptors()
            timeouts = server.metric("winnow_http_timeouts_total")
            with Probe(server) as probe:
                heads = [Wire(server.address).send("GET /health HT") for _ in range(num_heads)]
                bodies = [Wire(server.address).send("POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{") for _ in range(num_bodies)]
                idle = [Wire(server.address) for _ in range(num_idle)]
                streams = [self.stream([i], 7000, server=server) for i in range(num_streams)]
                ids = [self.stream_ids(stream, 3) for stream in streams]
                self.assertEqual(self.complete([9] * 30, 8, server=server)["finish_reason"], "length")
                slow = heads + bodies
                for wire in slow:  # a byte now and then does not put off the end
                    try:
                        wire.send("a")
                    except OSError:
                        pass
                self.assertEqual([wire.reply()[0] for wire in slow], [408] * len(slow))
            for wire in slow + idle + streams:
                wire.close()
            self.assertEqual(server.metric("winnow_http_timeouts_total") - timeouts, len(slow))
            self.assertEqual([len(first) for first in ids], [3] * num_streams)
            self.assertEqual(probe.statuses, {("/health", 200)})
            self.assertLess(probe.percentile(0.9), MAX_HEALTH_SECONDS)
            wait_until(lambda: server.num_descriptors() <= descriptors)
            self.holds_nothing(server)

    def test_http_health_when_saturated(self):
        with self.start("--max-running", "2", "--max-waiting", "2") as server:
            with Probe(server, ("/health", "/metrics"), interval=0.1 if rounds(False, True) else 0.02) as probe:
                took, began = 0, time.monotonic()
                while took < 1 or took < rounds(0, 60):
                    running = [self.stream(random_prompt(self.rng, 7000), 1100, server=server) for _ in range(2)]
                    wait_until(lambda: server.num_requests() == [2, 0])
                    waiting = [self.stream([5], 300, server=server) for _ in range(2)]
                    wait_until(lambda: server.num_requests() == [2, 2])
                    self.assertEqual(server.ask("GET", "/ready")[0], 503)
                    with Wire(server.address).post(COMPLETIONS, {"prompt": [5], "max_tokens": 1}) as wire:
                        status, headers = wire.head()
                        self.assertEqual((status, headers["retry-after"]), (429, "1"))
                    running[0].head()
                    next(running[0].events())
                    for wire in running + waiting:
                        wire.close()
                    server.wait_until_idle()
                    took = time.monotonic() - began
            self.assertEqual(probe.statuses, {("/health", 200), ("/metrics", 200)})
            self.assertLess(probe.percentile(rounds(0.9, 0.99)), MAX_HEALTH_SECONDS)
            self.assertEqual(server.ask("GET", "/ready")[0], 200)
            self.holds_nothing(server)


class Streams(ServingCase):
    def test_stream_slow_reader(self):
        num_stalled, num_normal = rounds((4, 2), (20, 4))
        with self.start("--write-timeout", "1") as server:
            before, descriptors = server.resident_bytes(), server.num_descriptors()
            stalled = []
            for i in range(num_stalled):
                wire = self.stream([i, 3], 8000, server=server, receive_bytes=2048, logprobs=20)
                wire.input.read(1000)
                stalled.append(wire)
            prompts = [random_prompt(self.rng, 20 + i) for i in range(num_normal)]
            normal = at_once([lambda p=p: self.ids(p, 200, server=server) for p in prompts])
            self.assertEqual(normal, [self.cold(p, 200) for p in prompts])
            self.holds_nothing(server)
            self.assertGreaterEqual(server.metric("winnow_http_timeouts_total"), num_stalled)
            self.assertLess(server.resident_bytes() - before, num_stalled * 1e6 + 30e6)
            for wire in stalled:
                wire.close()
            wait_until(lambda: server.num_descriptors() <= descriptors)

    def test_stream_usage_chunk(self):
        options = (None, {}, {"include_usage": False}, {"include_usage": None}, {"include_usage": True})
        for stream_options, n in itertools.product(options, (1, 2)):
            body = {"messages": [{"role": "user", "content": "x"}], "max_tokens": 3, "ignore_eos": True, "n": n, "stream": True, "stream_options": stream_options}
            with Wire(self.server.address).post(CHAT, body) as wire:
                self.assertEqual(wire.head()[0], 200)
                events = list(wire.events())
            self.assertTrue(wire.done)
            asked = bool((stream_options or {}).get("include_usage"))
            self.assertEqual([bool(event["choices"]) for event in events], [True] * (len(events) - asked) + [False] * asked)
            if asked:
                self.assertEqual(events[-1]["usage"]["completion_tokens"], 3 * n)


if __name__ == "__main__":
    unittest.main()
