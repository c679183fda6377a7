"""winnow bench serve against winnow serve on a tiny random model, and against servers that are not there or say no."""
import http.server
import itertools
import json
import pathlib
import signal
import subprocess
import tempfile
import threading
import unittest
import xml.etree.ElementTree

from program import TINY, U32, WINNOW, Gguf, clean_environment, run
from server_program import Server

MODEL = TINY / "llama-untied.gguf"


def tiny_server(*flags):
    return Server("-m", MODEL, "-t", "1", "--attention", "dense", *flags)


def bench(server, *flags):
    return run("bench", "serve", "--endpoint", server.url, *flags)


class BenchServe(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = tiny_server("--alias", "tiny")

    @classmethod
    def tearDownClass(cls):
        cls.server.close()

    def test_a_closed_loop_counts_every_token(self):
        with tempfile.TemporaryDirectory() as folder:
            plot = pathlib.Path(folder, "latency.svg")
            outcome = bench(self.server, "--concurrency", "3", "--requests", "8", "--prompt-tokens", "16:2,40", "--max-tokens", "6",
                            "--goodput", "ttft:60000,tpot:60000,e2el:60000", "--json", "--records", "--plot", plot)
            self.assertEqual(outcome.code, 0, outcome)
            self.assertEqual(xml.etree.ElementTree.parse(plot).getroot().tag, "{http://www.w3.org/2000/svg}svg")
        report = json.loads(outcome.stdout)
        self.assertEqual((report["model"], report["prompts"], report["completed"], report["failures"]), ("tiny", "ids", 8, []))
        self.assertEqual(report["total_output_tokens"], 48)
        self.assertEqual(report["goodput"]["good_requests"], 8)
        self.assertLessEqual(report["peak_concurrency"], 3)
        self.assertEqual(report["total_input_tokens"], sum(record["prompt_tokens"] for record in report["records"]))
        for record in report["records"]:
            self.assertIn(record["prompt_tokens"], (16, 40))
            self.assertEqual(record["prompt_tokens"], record["asked_prompt_tokens"])
            self.assertEqual(record["completion_tokens"], 6)
            self.assertEqual(record["chunk_s"], sorted(record["chunk_s"]))
        for name in ("ttft_ms", "tpot_ms", "itl_ms", "e2el_ms"):
            self.assertLessEqual(report[name]["p50"], report[name]["p99"])
        for name in ("ttft_ms", "e2el_ms"):
            self.assertGreater(report[name]["mean"], 0)
        # Tokens that come in one piece have no time between them.
        gaps = [1000 * (after - before) for record in report["records"] for before, after in itertools.pairwise(record["chunk_s"])]
        self.assertAlmostEqual(report["itl_ms"]["mean"], sum(gaps) / len(gaps), places=3)
        self.assertIn("tpot", report["formulas"])

    def test_an_open_loop_prints_a_table(self):
        outcome = bench(self.server, "--rate", "50", "--requests", "5", "--prompt-tokens", "20", "--max-tokens", "3")
        self.assertEqual(outcome.code, 0, outcome)
        text = outcome.stdout.decode()
        for part in ("open loop, 50 requests/s", "5 completed of 5", "TTFT", "TPOT", "ITL", "E2EL", "goodput"):
            self.assertIn(part, text)

    def test_a_shared_prefix_is_found_in_the_cache(self):
        outcome = bench(self.server, "--concurrency", "1", "--requests", "3", "--prompt-tokens", "160", "--shared-prefix", "140",
                        "--max-tokens", "1", "--json")
        self.assertEqual(outcome.code, 0, outcome)
        self.assertGreaterEqual(json.loads(outcome.stdout)["total_cached_tokens"], 2 * 140)

    def test_isolation_compares_the_long_prompt_beside_and_alone(self):
        # The streams last: their context is long.
        with tempfile.NamedTemporaryFile(suffix=".gguf") as model:
            model.write(Gguf(MODEL).set("llama.context_length", U32, 1 << 17).build())
            model.flush()
            server = Server("-m", model.name, "-t", "1", "--attention", "dense")
            try:
                outcome = bench(server, "--isolation", "--streams", "2", "--prompt-tokens", "8", "--long-prompt", "2000", "--json")
            finally:
                server.close()
        self.assertEqual(outcome.code, 0, outcome)
        report = json.loads(outcome.stdout)
        self.assertEqual(report["streams_ended_early"], 0)
        self.assertGreaterEqual(report["gap_before_ms"]["count"], 2 * 19)
        self.assertGreaterEqual(report["gap_during_ms"]["count"], 2)
        self.assertAlmostEqual(report["ttft_ratio"], report["ttft_beside_ms"] / report["ttft_alone_ms"])

    def test_refused_requests_are_counted_and_end_with_1(self):
        outcome = bench(self.server, "--requests", "3", "--prompt-tokens", "5000", "--json")
        self.assertEqual(outcome.code, 1, outcome)
        report = json.loads(outcome.stdout)
        self.assertEqual(report["completed"], 0)
        self.assertEqual([(f["kind"], f["count"]) for f in report["failures"]], [("HTTP 400", 3)])
        self.assertIn("maximum context length", outcome.stderr)

    def test_ctrl_c_prints_what_there_is(self):
        arguments = [WINNOW, "bench", "serve", "--endpoint", self.server.url, "--seconds", "3600", "--prompt-tokens", "16", "--max-tokens", "2", "--json"]
        with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=clean_environment(None)) as child:
            for line in child.stderr:
                if b"requests ended" in line:
                    break
            child.send_signal(signal.SIGINT)
            stdout, _ = child.communicate()
        self.assertEqual(child.returncode, 130)
        report = json.loads(stdout)
        self.assertTrue(report["interrupted"])
        self.assertGreaterEqual(report["completed"], 100)


class Refusals(unittest.TestCase):
    def test_nobody_at_the_endpoint_is_told(self):
        outcome = run("bench", "serve", "--endpoint", "http://127.0.0.1:1")
        self.assertEqual((outcome.code, outcome.stdout), (1, b""), outcome)
        self.assertIn("http://127.0.0.1:1/v1/models: expected an answer, found 'connect: Connection refused'", outcome.stderr)

    def test_wrong_usage_is_named(self):
        for named, flags in (("--endpoint", []), ("--endpoint", ["--endpoint", "https://a"]), ("--endpoint", ["--endpoint", "http://a:x"]),
                             ("--concurrency", ["--endpoint", "a", "--rate", "1", "--concurrency", "1"]),
                             ("--goodput", ["--endpoint", "a", "--goodput", "itl:5"]),
                             ("--prompt-tokens", ["--endpoint", "a", "--prompt-tokens", "0"]),
                             ("--rate", ["--endpoint", "a", "--rate", "0"]), ("--records", ["--endpoint", "a", "--records"]),
                             ("--isolation", ["--endpoint", "a", "--isolation", "--requests", "3"])):
            outcome = run("bench", "serve", *flags)
            self.assertEqual(outcome.code, 2, flags)
            self.assertIn(named, outcome.stderr.splitlines()[0], flags)

    def test_keys_are_shown(self):
        server = tiny_server("--api-key", "right")
        try:
            self.assertIn("found 401", bench(server).stderr)
            outcome = bench(server, "--api-key", "right", "--requests", "1", "--prompt-tokens", "8", "--max-tokens", "2")
            self.assertEqual(outcome.code, 0, outcome)
        finally:
            server.close()

    def test_a_server_that_dies_in_the_middle_is_reported(self):
        class Handler(http.server.BaseHTTPRequestHandler):
            asked = 0

            def do_GET(self):
                self.answer(b'{"data": [{"id": "other"}]}')

            def do_POST(self):
                self.rfile.read(int(self.headers["Content-Length"]))
                if self.path == "/tokenize":
                    return self.send_error(404)
                chunk = b'data: {"choices": [{"text": "a", "finish_reason": null}]}\n\n'
                Handler.asked += 1
                # After the warm-up and one request more, no stream reaches its end.
                return self.answer(chunk if Handler.asked > 2 else chunk + b"data: [DONE]\n\n")

            def answer(self, body):
                self.send_response(200)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
            thread = threading.Thread(target=server.serve_forever)
            thread.start()
            outcome = run("bench", "serve", "--endpoint", f"http://127.0.0.1:{server.server_port}", "--concurrency", "1", "--requests", "3", "--json")
            server.shutdown()
            thread.join()
        self.assertEqual(outcome.code, 0, outcome)
        report = json.loads(outcome.stdout)
        self.assertEqual((report["prompts"], report["completed"]), ("text", 1))
        self.assertEqual([(f["kind"], f["count"]) for f in report["failures"]], [("cut off", 2)])


if __name__ == "__main__":
    unittest.main()
