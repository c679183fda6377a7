"""winnow serve as a process, on a tiny random model, spoken to with the standard library."""
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import tempfile
import unittest

from program import TINY, WINNOW, clean_environment, run
from wire import Wire

MODEL = TINY / "llama-untied.gguf"
CHAT = {"messages": [{"role": "user", "content": "hello"}], "max_tokens": 8, "temperature": 0}


class Server:
    def __init__(self, *flags, env=None):
        arguments = [WINNOW, "serve", "-m", os.fspath(MODEL), "--port", "0", "-t", "1", "--attention", "dense", *flags]
        self.child = subprocess.Popen(arguments, stderr=subprocess.PIPE, env=clean_environment(env))
        self.notes = []
        for line in self.child.stderr:
            self.notes.append(line.decode())
            found = re.match(r"listening on http://([^:]+):(\d+)$", self.notes[-1].strip())
            if found:
                self.address = found[1], int(found[2])
                break

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.child.poll() is None:
            self.child.kill()
        self.child.wait()
        if self.child.stderr:
            self.child.stderr.close()

    def ask(self, method, path, body=None, headers=None):
        connection = http.client.HTTPConnection(*self.address, timeout=60)
        connection.request(method, path, None if body is None else json.dumps(body), headers or {})
        reply = connection.getresponse()
        text = reply.read().decode()
        connection.close()
        return reply.status, text

    def end(self, number=signal.SIGTERM):
        self.child.send_signal(number)
        return self.child.wait(timeout=60)


class Serve(unittest.TestCase):
    def test_answers_are_those_of_run(self):
        with Server("--alias", "tiny") as server:
            self.assertEqual(server.ask("GET", "/health"), (200, '{"status":"ok"}'))
            status, text = server.ask("POST", "/v1/chat/completions", CHAT)
            self.assertEqual(status, 200, text)
            answer = json.loads(text)
            self.assertEqual(answer["model"], "tiny")
            alone = json.loads(run("run", "-m", MODEL, "-p", "hello", "-n", "8", "--json", "--attention", "dense").stdout)
            self.assertEqual(answer["choices"][0]["message"]["content"], alone["text"])
            status, text = server.ask("POST", "/v1/chat/completions", {**CHAT, "stream": True})
            chunks = [json.loads(event[6:]) for event in text.split("\n\n")[:-2]]
            pieces = [chunk["choices"][0]["delta"].get("content", "") for chunk in chunks]
            self.assertEqual("".join(pieces), alone["text"])
            self.assertTrue(text.endswith("data: [DONE]\n\n"))
            self.assertEqual(server.end(), 0)

    def test_echoed_prompts_are_scored(self):
        with Server() as server:
            body = {"prompt": [[5, 6, 7, 8]], "max_tokens": 1, "logprobs": 1, "echo": True, "temperature": 0}
            status, text = server.ask("POST", "/v1/completions", body)
            self.assertEqual(status, 200, text)
            scores = json.loads(text)["choices"][0]["logprobs"]
            self.assertEqual(len(scores["tokens"]), 5)
            self.assertIsNone(scores["token_logprobs"][0])
            for own, top in zip(scores["token_logprobs"][1:], scores["top_logprobs"][1:]):
                self.assertLessEqual(own, max(top.values()))
            self.assertEqual(scores["token_logprobs"][4], max(scores["top_logprobs"][4].values()))
            status, text = server.ask("POST", "/v1/completions", {**body, "prompt_logprobs": 2})
            self.assertEqual(status, 200, text)
            choice = json.loads(text)["choices"][0]
            self.assertEqual(choice["logprobs"], scores)
            own = [entry and next(iter(entry.items())) for entry in choice["prompt_logprobs"]]
            self.assertEqual([each and (int(each[0]), each[1]["logprob"]) for each in own],
                             [None, *zip((6, 7, 8), scores["token_logprobs"][1:4])])
            for entry in choice["prompt_logprobs"][1:]:
                by_rank = sorted(entry.values(), key=lambda each: each["rank"])
                self.assertEqual([each["rank"] for each in by_rank][:2], [1, 2])
                self.assertEqual([each["logprob"] for each in by_rank], sorted((each["logprob"] for each in by_rank), reverse=True))

    def test_json_mode_gives_json(self):
        with Server() as server:
            schema = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"], "additionalProperties": False}
            body = {**CHAT, "max_tokens": 200, "response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": schema}}}
            status, text = server.ask("POST", "/v1/chat/completions", body)
            self.assertEqual(status, 200, text)
            self.assertIn(json.loads(json.loads(text)["choices"][0]["message"]["content"])["ok"], (True, False))

    def test_a_grammar_holds_the_answer(self):
        with Server() as server:
            for path, body in (("/v1/chat/completions", CHAT), ("/v1/completions", {"prompt": "a"})):
                asked = {**body, "max_tokens": 20, "temperature": 1, "grammar": 'root ::= ("yes" | "no"){2} [0-9]'}
                status, text = server.ask("POST", path, asked)
                self.assertEqual(status, 200, text)
                choice = json.loads(text)["choices"][0]
                answer = choice["message"]["content"] if "message" in choice else choice["text"]
                self.assertRegex(answer, "^(yes|no){2}[0-9]$")
                self.assertEqual(choice["finish_reason"], "stop")

    def test_foreign_hosts_are_refused_where_there_are_no_keys(self):
        def status(server, host):
            return Wire(server.address).send(f"GET /version HTTP/1.1\r\nHost: {host}\r\n\r\n").reply()[0]
        with Server() as server:
            self.assertEqual([status(server, host) for host in ("localhost", "evil.example")], [200, 403])
        with Server("--allowed-hosts", "evil.example") as server:
            self.assertEqual([status(server, host) for host in ("evil.example", "other.example")], [200, 403])
        for flags in (["--api-key", "k"], ["--host", "0.0.0.0"], ["--allowed-hosts", "*"]):
            with Server(*flags) as server:
                self.assertEqual(status(server, "evil.example"), 200)

    def test_the_service_manager_is_told(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "notify")
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
                manager.bind(path)
                manager.settimeout(60)
                with Server(env={"NOTIFY_SOCKET": path}) as server:
                    self.assertEqual(manager.recv(100), b"READY=1")
                    self.assertEqual(server.end(), 0)
                    self.assertEqual(manager.recv(100), b"STOPPING=1")

    def test_a_dead_log_does_not_stop_it(self):
        with Server() as server:
            server.child.stderr.close()
            for _ in range(20):
                self.assertEqual(server.ask("POST", "/v1/chat/completions", CHAT)[0], 200)
            server.child.stderr = None
            self.assertEqual(server.end(signal.SIGINT), 0)

    def test_a_log_that_nobody_reads_does_not_stop_it(self):
        with Server() as server:
            for _ in range(600):
                self.assertEqual(server.ask("GET", "/nothing-" + "x" * 200)[0], 404)
            self.assertEqual(server.end(), 0)

    def test_every_request_is_one_line_of_json(self):
        with Server() as server:
            server.ask("POST", "/v1/chat/completions", CHAT, {"X-Request-Id": "mine"})
            line = json.loads(server.child.stderr.readline())
            self.assertEqual((line["status"], line["request_id"], line["path"]), (200, "mine", "/v1/chat/completions"))
            self.assertGreater(line["prompt_tokens"], 0)

    def test_keys_come_from_a_file(self):
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as keys:
            keys.write("# ours\nfirst\nsecond\n")
            keys.flush()
            with Server("--api-key-file", keys.name) as server:
                self.assertEqual(server.ask("GET", "/v1/models")[0], 401)
                self.assertEqual(server.ask("GET", "/v1/models", None, {"Authorization": "Bearer second"})[0], 200)

    def test_what_cannot_be_served_is_told_at_once(self):
        with Server() as server:
            taken = run("serve", "-m", MODEL, "--port", str(server.address[1]), "--attention", "dense")
            self.assertEqual(taken.code, 1, taken)
            self.assertIn(str(server.address[1]), taken.stderr)
        for flags in (["--port", "70000"], ["--cors-origins", "nonsense"], ["--allowed-hosts", "http://a"], ["--api-key", "a b"], ["--api-key-file", "/dev/null"]):
            self.assertEqual(run("serve", "-m", MODEL, *flags).code, 2, flags)


if __name__ == "__main__":
    unittest.main()
