"""The real guidellm, aiperf and lm-eval against the real server with a real model, each by its own command line. What a client says
of its requests and their first tokens is held against what the server counted of the same requests, so that no other work on the
machine comes between the two. ./dev clients installs the clients and runs this; nothing is fetched while it runs."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

from program import ROOT, clean_environment, run
from real_models_test import model
from server_program import Server

BIN = pathlib.Path(sys.executable).parent
CLIENTS = ("guidellm", "aiperf", "lm_eval")
NUM_REQUESTS, PROMPT_TOKENS, ANSWER_TOKENS = 12, 600, 16
TTFT_TOLERANCE = 0.05
# Of a text: what is given, and what is scored.
GIVEN_LETTERS, SCORED_LETTERS = 500, 300


@unittest.skipUnless(all((BIN / client).exists() for client in CLIENTS),
                     "missing Python packages guidellm, aiperf and lm-eval (./dev clients installs them and runs this test)")
class LoadClients(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.model = model("smollm2-135m-instruct-q4_1.gguf")
        folder = tempfile.TemporaryDirectory(prefix="winnow-clients-")
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.tokenizer = cls.folder / "tokenizer"
        subprocess.run([sys.executable, ROOT / "tools/hf_tokenizer.py", cls.model, cls.tokenizer], check=True)
        cls.server = Server("-m", cls.model, "--attention", "dense", "--alias", "smollm2")
        cls.addClassCleanup(cls.server.close)

    def client(self, *command, offline=True):
        """Ends well, with its caches in this test's folder."""
        environment = clean_environment({"HF_HOME": str(self.folder / "hub"), "NO_PROXY": "127.0.0.1"})
        if offline:
            environment |= {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}
        done = subprocess.run([BIN / command[0], *map(os.fspath, command[1:])], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, cwd=self.folder, env=environment, timeout=600)
        self.assertEqual(done.returncode, 0, done.stdout[-5000:])

    def counted(self):
        """What the server has counted so far."""
        names = {"requests": "vllm:request_success_total", "prompt": "vllm:prompt_tokens_total", "answer": "vllm:generation_tokens_total",
                 "ttft_s": "vllm:time_to_first_token_seconds_sum", "ttfts": "vllm:time_to_first_token_seconds_count"}
        return dict(zip(names, self.server.metrics(*names.values())))

    def check(self, before, prompt_tokens, answer_tokens, ttft_ms, uncounted=0):
        """A client's view of all its requests: sums of tokens, and the mean time to the first token. Of `uncounted`, short and few,
        the client says nothing."""
        self.server.wait_until_idle()
        server = {name: value - before[name] for name, value in self.counted().items()}
        self.assertEqual(server["requests"], NUM_REQUESTS + uncounted)
        self.assertEqual(server["ttfts"], NUM_REQUESTS + uncounted)
        if not uncounted:
            self.assertEqual((server["prompt"], server["answer"]), (prompt_tokens, answer_tokens))
        self.assertEqual(answer_tokens, NUM_REQUESTS * ANSWER_TOKENS)
        told_ms = server["ttft_s"] * 1e3 / NUM_REQUESTS
        difference = ttft_ms / told_ms - 1
        print(f"TTFT {ttft_ms:.1f} ms by the client, {told_ms:.1f} ms by the server ({difference:+.1%})", end=" ... ", flush=True)
        self.assertLess(abs(difference), TTFT_TOLERANCE)

    def guidellm(self, path):
        before, report = self.counted(), self.folder / "guidellm.json"
        self.client("guidellm", "run", "--backend", f"kind=openai_http,target={self.server.url},request_format={path}",
                    "--profile", "kind=synchronous", "--constraint", f"kind=max_requests,count={NUM_REQUESTS}",
                    "--data", f"kind=synthetic_text,prompt_tokens={PROMPT_TOKENS},output_tokens={ANSWER_TOKENS}",
                    "--tokenizer", f"kind=huggingface_auto,model={self.tokenizer}", "--output", f"kind=json,path={report}", "--disable-console")
        benchmark, = json.loads(report.read_text())["benchmarks"]
        totals = benchmark["metrics"]["request_totals"]
        self.assertEqual((totals["successful"], totals["total"]), (NUM_REQUESTS, NUM_REQUESTS))
        requests = benchmark["requests"]["successful"]
        if path == "/v1/completions":
            self.assertEqual({r["prompt_tokens"] for r in requests}, {PROMPT_TOKENS})
        self.check(before, sum(r["prompt_tokens"] for r in requests), sum(r["output_tokens"] for r in requests),
                   benchmark["metrics"]["time_to_first_token_ms"]["successful"]["mean"])

    def test_guidellm_on_completions(self):
        self.guidellm("/v1/completions")

    def test_guidellm_on_chats(self):
        self.guidellm("/v1/chat/completions")

    def aiperf(self, kind):
        """Offline it takes the tokenizer's folder for a name on the hub."""
        before, folder = self.counted(), self.folder / f"aiperf-{kind}"
        self.client("aiperf", "profile", "--model", "smollm2", "--url", self.server.url, "--endpoint-type", kind, "--streaming",
                    "--tokenizer", self.tokenizer, "--isl", str(PROMPT_TOKENS), "--isl-stddev", "0", "--osl", str(ANSWER_TOKENS), "--extra-inputs", "ignore_eos:true",
                    "--use-server-token-count", "--concurrency", "2", "--request-count", str(NUM_REQUESTS), "--workers-max", "1", "--no-gpu-telemetry",
                    "--ui", "none", "--artifact-dir", folder, offline=False)
        report = json.loads((folder / "profile_export_aiperf.json").read_text())
        self.assertEqual((report["request_count"]["avg"], report["error_summary"]), (NUM_REQUESTS, []))
        if kind == "completions":
            self.assertEqual({report["input_sequence_length"][k] for k in ("min", "max")}, {PROMPT_TOKENS})
        self.check(before, report["total_isl"]["avg"], report["total_osl"]["avg"], report["time_to_first_token"]["avg"])

    def test_aiperf_on_completions(self):
        self.aiperf("completions")

    def test_aiperf_on_chats(self):
        self.aiperf("chat")

    def test_bench_serve(self):
        before = self.counted()
        outcome = run("bench", "serve", "--endpoint", self.server.url, "--concurrency", "1", "--requests", str(NUM_REQUESTS),
                      "--prompt-tokens", str(PROMPT_TOKENS), "--max-tokens", str(ANSWER_TOKENS), "--json")
        self.assertEqual(outcome.code, 0, outcome)
        report = json.loads(outcome.stdout)
        self.assertEqual((report["completed"], report["failures"]), (NUM_REQUESTS, []))
        # Its warm-up reads a twentieth of a prompt.
        self.check(before, report["total_input_tokens"], report["total_output_tokens"], report["ttft_ms"]["mean"], uncounted=1)

    def test_the_tokenizer_folder_and_the_server_agree(self):
        from transformers import AutoTokenizer
        tokenizer = AutoTokenizer.from_pretrained(self.tokenizer)
        text = (ROOT / "README.md").read_text()
        self.assertEqual(tokenizer.encode(text), self.tokens(text))
        messages = [{"role": "user", "content": "Who wrote Hamlet?"}]
        rendered = self.server.post("/v1/chat/completions/render", {"messages": messages})["token_ids"]
        self.assertEqual(tokenizer.apply_chat_template(messages, add_generation_prompt=True)["input_ids"], rendered)

    def tokens(self, text):
        return self.server.post("/tokenize", {"prompt": text, "add_special_tokens": False})["tokens"]

    def expected_logprob(self, ids, num_given):
        """The sum that winnow eval ppl finds for the tokens behind those given."""
        outcome = run("eval", "ppl", "-m", self.model, "--attention", "dense", "--ids", "-", "--logprobs", "--json",
                      stdin=json.dumps({"ids": ids}).encode())
        self.assertEqual(outcome.code, 0, outcome)
        return sum(json.loads(outcome.stdout)["target_logprob"][num_given - 1:])

    def lm_eval(self, name, documents, settings, *backend):
        """Its answer for each document of a task that this writes."""
        folder = self.folder / name
        folder.mkdir()
        (folder / "data.jsonl").write_text("".join(json.dumps(d) + "\n" for d in documents))
        # YAML reads JSON.
        data = {"dataset_path": "json", "dataset_kwargs": {"data_files": {"test": str(folder / "data.jsonl")}}, "test_split": "test"}
        task = {"task": name, **data, **settings}
        (folder / f"{name}.yaml").write_text(json.dumps(task))
        before = self.counted()
        arguments = [f"base_url={self.server.url}/v1/completions", "model=smollm2", "tokenized_requests=True", "max_length=2048", *backend]
        self.client("lm_eval", "run", "--model", "local-completions", "--tasks", name, "--include_path", folder, "--batch_size", "1",
                    "--output_path", folder, "--log_samples", "--model_args", ",".join(arguments))
        self.assertEqual(self.counted()["requests"] - before["requests"], len(documents))
        samples, = folder.glob("*/samples_*.jsonl")
        found = {s["doc_id"]: s["resps"][0][0] for s in map(json.loads, samples.read_text().splitlines())}
        return [found[i] for i in range(len(documents))]

    def continuations(self, name, *backend):
        text = (ROOT / "README.md").read_text()
        size = GIVEN_LETTERS + SCORED_LETTERS
        documents = [{"given": text[at:at + GIVEN_LETTERS].rstrip(), "scored": text[at + GIVEN_LETTERS:at + size]} for at in (0, size, 2 * size)]
        # The model chooses this one itself.
        documents.append({"given": "one, two, three, four,", "scored": " five, six, seven"})
        found = self.lm_eval(name, documents, {"output_type": "loglikelihood", "doc_to_text": "{{given}}", "doc_to_target": "{{scored}}",
                                               "target_delimiter": "", "metric_list": [{"metric": "acc"}]}, *backend)
        for document, (logprob, _) in zip(documents, found):
            given, whole = self.tokens(document["given"]), self.tokens(document["given"] + document["scored"])
            # Where a token spans the border, lm-eval takes what is given by itself.
            expected = self.expected_logprob(given + whole[len(given):], len(given))
            self.assertAlmostEqual(float(logprob), expected, places=3)
        self.assertEqual([is_greedy for _, is_greedy in found], ["False", "False", "False", "True"])

    def test_lm_eval_with_the_tokenizer_of_the_server(self):
        self.continuations("served", "tokenizer_backend=remote")

    def test_lm_eval_with_the_tokenizer_in_a_folder(self):
        self.continuations("local", "tokenizer_backend=huggingface", f"tokenizer={self.tokenizer}")

    def test_lm_eval_on_whole_texts(self):
        text = (ROOT / "README.md").read_text()
        documents = [{"text": text[:2000]}, {"text": text[2000:3000]}]
        found = self.lm_eval("rolling", documents, {"output_type": "loglikelihood_rolling", "doc_to_text": "", "doc_to_target": "{{text}}",
                                                    "metric_list": [{"metric": "word_perplexity"}]}, "tokenizer_backend=remote")
        begin = self.tokens(json.loads(self.server.get("/tokenizer_info"))["bos_token"])
        for document, logprob in zip(documents, found):
            self.assertAlmostEqual(float(logprob), self.expected_logprob(begin + self.tokens(document["text"]), 1), places=3)


if __name__ == "__main__":
    unittest.main()
