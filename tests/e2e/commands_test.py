"""The program from end to end on tiny random models: what it prints, where, and how it ends."""
import json
import math
import os
import pathlib
import pty
import select
import signal
import subprocess
import tempfile
import time
import unittest
import xml.etree.ElementTree

from program import TINY, U32, WINNOW, Gguf, clean_environment, run

MODEL = TINY / "llama-untied.gguf"
EVERY_BYTE = bytes(range(256))


def run_json(*args, **kwargs):
    outcome = run(*args, **kwargs)
    assert outcome.code == 0, outcome
    return json.loads(outcome.stdout.decode("utf-8"))


def start(*args, **kwargs):
    return subprocess.Popen([WINNOW, *map(os.fspath, args)], env=clean_environment(None), **kwargs)


class Run(unittest.TestCase):
    def test_the_answer_goes_to_stdout_and_the_rest_to_stderr(self):
        outcome = run("run", "-m", MODEL, "-p", "hello", "-n", "5")
        self.assertEqual(outcome.code, 0, outcome)
        self.assertTrue(outcome.stdout.endswith(b"\n"))
        self.assertRegex(outcome.stderr, r"^prompt \d+ tokens, \d+ tok/s; first token after .*; answer \d+ tokens.*; peak memory \d+ MiB\n$")
        self.assertEqual(run("run", "-m", MODEL, "-p", "hello", "-n", "5", "--quiet").stderr, "")

    def test_json_holds_text_tokens_reason_counts_and_timings(self):
        result = run_json("run", "-m", MODEL, "-p", "hello", "-n", "6", "--json")
        self.assertLessEqual(len(result["tokens"]), 6)
        self.assertIn(result["finish_reason"], ("stop", "length"))
        self.assertEqual(result["counts"]["predicted"], len(result["tokens"]))
        self.assertEqual(result["timings"]["prompt_n"], result["counts"]["prompt"])
        for key in ("ttft_ms", "prompt_ms", "prompt_per_second", "predicted_ms", "predicted_per_second", "predicted_n", "peak_memory_bytes"):
            self.assertGreaterEqual(result["timings"][key], 0, key)
        self.assertGreater(result["timings"]["ttft_ms"], 0)
        self.assertGreater(result["timings"]["peak_memory_bytes"], 10**6)

    def test_chunk_threads_and_repetition_do_not_change_the_answer(self):
        base = ["run", "-m", MODEL, "--raw", "-p", "word " * 100, "-n", "12", "--json"]
        answers = {tuple(run_json(*base, *more)["tokens"]) for more in ([], ["--chunk", "128"], ["--chunk", "1"], ["-t", "1"], ["-t", "3"])}
        self.assertEqual(len(answers), 1)

    def test_a_seed_repeats_an_answer(self):
        base = ["run", "-m", MODEL, "-p", "hello", "-n", "20", "--temp", "1.5", "--top-k", "50", "--top-p", "0.99", "--min-p", "0.001", "--json"]
        first, again, other = (run_json(*base, "--seed", seed) for seed in ("1", "1", "2"))
        self.assertEqual(first["tokens"], again["tokens"])
        self.assertNotEqual(first["tokens"], other["tokens"])
        self.assertEqual(first["seed"], 1)

    def test_no_tokens_are_made_when_none_are_asked_for(self):
        result = run_json("run", "-m", MODEL, "-p", "hello", "-n", "0", "--json")
        self.assertEqual((result["tokens"], result["text"], result["finish_reason"]), ([], "", "length"))

    def test_bias_forces_a_token_and_a_stop_string_ends_the_answer_before_it(self):
        id_of_x = run_json("tokenize", "-m", MODEL, stdin=b"x")["tokens"][0]
        result = run_json("run", "-m", MODEL, "-p", "hello", "-n", "5", "--logit-bias", f"{id_of_x}=1000", "--json")
        self.assertEqual((result["text"], result["finish_reason"]), ("xxxxx", "length"))
        result = run_json("run", "-m", MODEL, "-p", "hello", "-n", "9", "--logit-bias", f"{id_of_x}=1000", "--stop", "xxx", "--json")
        self.assertEqual((result["text"], result["finish_reason"], result["stop_string"]), ("", "stop", "xxx"))

    def test_the_context_ends_an_answer_without_limit(self):
        id_of_x = run_json("tokenize", "-m", MODEL, stdin=b"x")["tokens"][0]
        result = run_json("run", "-m", MODEL, "-p", "hello", "-c", "128", "--logit-bias", f"{id_of_x}=1000", "--json")
        self.assertEqual(result["finish_reason"], "context_full")
        self.assertGreaterEqual(result["counts"]["prompt"] + len(result["tokens"]), 128)

    def test_file_and_question_make_one_message(self):
        with tempfile.NamedTemporaryFile() as file:
            file.write(b"document")
            file.flush()
            both = run_json("run", "-m", MODEL, "-f", file.name, "-p", "question", "-n", "8", "--json")
        joined = run_json("run", "-m", MODEL, "-p", "document\n\nquestion", "-n", "8", "--json")
        piped = run_json("run", "-m", MODEL, "-n", "8", "--json", stdin=b"document\n\nquestion")
        dash = run_json("run", "-m", MODEL, "-n", "8", "--json", "-f", "-", stdin=b"\xef\xbb\xbfdocument\n\nquestion")
        self.assertEqual(both["tokens"], joined["tokens"])
        self.assertEqual(piped["tokens"], joined["tokens"])
        self.assertEqual(dash["tokens"], joined["tokens"])
        self.assertEqual(both["counts"]["prompt"], joined["counts"]["prompt"])

    def test_a_system_message_is_part_of_the_prompt(self):
        plain = run_json("run", "-m", MODEL, "-p", "hello", "-n", "1", "--json")
        system = run_json("run", "-m", MODEL, "-p", "hello", "-n", "1", "--json", "--system", "be brief")
        self.assertGreater(system["counts"]["prompt"], plain["counts"]["prompt"])

    def test_broken_utf8_and_nul_bytes_are_taken(self):
        outcome = run("run", "-m", MODEL, "-n", "2", "--json", stdin=b"a\xff\xfeb\0c\xed\xa0\x80")
        self.assertEqual(outcome.code, 0, outcome)
        self.assertRegex(outcome.stderr, "standard input: [0-9]+ parts are not UTF-8 and were replaced")
        json.loads(outcome.stdout.decode("utf-8"))
        raw = run("run", "-m", MODEL, "-n", "30", "--raw", "--json", "--temp", "2", "--seed", "3", stdin=EVERY_BYTE)
        self.assertEqual(raw.code, 0, raw)
        self.assertNotIn("replaced", raw.stderr)
        json.loads(raw.stdout.decode("utf-8"))

    def test_text_that_looks_like_a_flag_is_a_prompt(self):
        for prompt in ("--json", "-n", "[a,b]", "%s%n"):
            self.assertEqual(run("run", "-m", MODEL, "-p", prompt, "-n", "1").code, 0)

    def test_the_environment_names_the_model(self):
        outcome = run("run", "-p", "hello", "-n", "1", env={"WINNOW_MODEL": str(MODEL), "WINNOW_THREADS": "1"})
        self.assertEqual(outcome.code, 0, outcome)


class Ending(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="winnow-end-")

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_a_reader_that_goes_away_ends_the_answer_quietly(self):
        id_of_x = run_json("tokenize", "-m", MODEL, stdin=b"x")["tokens"][0]
        child = start("run", "-m", MODEL, "-p", "hello", "--quiet", "--logit-bias", f"{id_of_x}=1000", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        child.stdout.close()
        self.assertEqual(child.stderr.read(), b"")
        child.stderr.close()
        self.assertEqual(child.wait(), 0)

    def test_a_full_disk_is_reported(self):
        with open("/dev/full", "wb") as full:
            child = start("run", "-m", MODEL, "-p", "hello", "-n", "3", "--quiet", stdout=full, stderr=subprocess.PIPE)
            _, err = child.communicate()
        self.assertEqual(child.returncode, 1)
        self.assertIn(b"stdout: expected to write the output, found 'No space left on device'", err)

    def test_help_that_cannot_be_written_is_reported_as_an_answer_is(self):
        for args in (["--help"], ["help"], ["run", "--help"], ["eval", "--help"], ["bench", "peak", "--help"], ["version"]):
            with open("/dev/full", "wb") as full:
                child = start(*args, stdout=full, stderr=subprocess.PIPE)
                _, err = child.communicate()
            self.assertEqual(child.returncode, 1, args)
            self.assertIn(b"stdout: expected to write the output", err)

    def with_closed(self, fds, *args):
        """Exit code, stdout and stderr of a run whose standard streams `fds` the caller has closed."""
        out, err = (tempfile.TemporaryFile(dir=self.folder.name) for _ in range(2))
        child = start(*args, stdin=subprocess.DEVNULL, stdout=out, stderr=err, preexec_fn=lambda: [os.close(fd) for fd in fds])
        child.wait()
        out.seek(0)
        err.seek(0)
        with out, err:
            return child.returncode, out.read(), err.read()

    def test_closed_standard_streams_do_not_become_other_files(self):
        answer = ["run", "-m", MODEL, "-p", "hello", "-n", "3"]
        code, out, err = self.with_closed([0], *answer)
        self.assertEqual((code, err.count(b"first token after")), (0, 1), err)
        self.assertTrue(out.endswith(b"\n"))
        code, out, err = self.with_closed([0], "run", "-m", MODEL)
        self.assertEqual((code, out), (2, b""))
        self.assertIn(b"prompt: expected some text, found none", err)
        for closed in ([1], [0, 1]):
            code, _, err = self.with_closed(closed, *answer)
            self.assertEqual(code, 1)
            self.assertIn(b"stdout: expected to write the output", err)
        code, out, _ = self.with_closed([2], *answer)
        self.assertEqual((code, out[-1:]), (0, b"\n"))
        self.assertEqual(self.with_closed([0, 1, 2], *answer)[0], 1)

    def test_a_model_file_that_becomes_shorter_while_in_use_is_named(self):
        path = pathlib.Path(self.folder.name) / "live\n.gguf"
        path.write_bytes(Gguf(MODEL).set("llama.context_length", U32, 2**20).build())
        id_of_x = run_json("tokenize", "-m", MODEL, stdin=b"x")["tokens"][0]
        child = start("run", "-m", path, "-p", "hello", "--logit-bias", f"{id_of_x}=1000", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        os.read(child.stdout.fileno(), 1)
        os.truncate(path, 4096)
        _, err = child.communicate()
        self.assertEqual(child.returncode, 3, err)
        self.assertRegex(err.decode(), r"^winnow: .*live\\n\.gguf: expected the file to stay as it was, found it shorter while in use")

    def test_another_bus_error_still_ends_the_program_as_the_system_does(self):
        child = self.endless("run", "-p", "hello")
        os.read(child.stdout.fileno(), 1)
        child.send_signal(signal.SIGBUS)
        child.communicate()
        self.assertEqual(child.returncode, -signal.SIGBUS)

    def test_interrupting_while_waiting_for_the_prompt_ends_with_130(self):
        for verb in (["run"], ["chat"], ["tokenize"]):
            child = start(*verb, "-m", MODEL, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            time.sleep(0.5)
            child.send_signal(signal.SIGINT)
            self.assertEqual(child.wait(), 130, verb)
            for stream in (child.stdin, child.stdout, child.stderr):
                stream.close()

    def endless(self, *args, **kwargs):
        """A run that only an interrupt ends: it repeats one token into a context of a million."""
        path = pathlib.Path(self.folder.name) / "long.gguf"
        path.write_bytes(Gguf(MODEL).set("llama.context_length", U32, 2**20).build())
        id_of_x = run_json("tokenize", "-m", MODEL, stdin=b"x")["tokens"][0]
        return start(*args, "-m", path, "--logit-bias", f"{id_of_x}=1000", stdout=subprocess.PIPE, stderr=subprocess.PIPE, **kwargs)

    def test_interrupting_an_answer_ends_with_130_and_keeps_what_there_is(self):
        child = self.endless("run", "-p", "hello")
        first = os.read(child.stdout.fileno(), 1)
        child.send_signal(signal.SIGINT)
        out, err = child.communicate()
        self.assertEqual(child.returncode, 130)
        self.assertRegex((first + out).decode(), r"^x+\n$")
        self.assertIn(b"cancelled", err)

    def test_interrupting_json_output_still_prints_the_object(self):
        child = self.endless("run", "-p", "hello", "--json")
        time.sleep(1)
        child.send_signal(signal.SIGINT)
        out, _ = child.communicate()
        self.assertEqual(child.returncode, 130)
        self.assertEqual(json.loads(out)["finish_reason"], "cancelled")

    def test_interrupting_the_prompt_claims_no_first_token(self):
        path = pathlib.Path(self.folder.name) / "long-prompt.gguf"
        path.write_bytes(Gguf(MODEL).set("llama.context_length", U32, 2**20).build())
        text = pathlib.Path(self.folder.name) / "long.txt"
        text.write_bytes(b"word " * 60000)
        for json_flag in ([], ["--json"]):
            child = start("run", "-m", path, "--raw", "-f", text, "-n", "5", "--attention", "dense", *json_flag, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            time.sleep(2)
            child.send_signal(signal.SIGINT)
            out, err = child.communicate()
            self.assertEqual(child.returncode, 130, err)
            self.assertNotIn(b"first token", err)
            if b"interrupted" in err:  # on a busy machine, before the prompt
                continue
            self.assertIn(b"answer 0 tokens", err)
            if json_flag:
                self.assertIsNone(json.loads(out)["timings"]["ttft_ms"])

    def test_in_a_chat_the_first_interrupt_stops_the_answer_only(self):
        child = self.endless("chat", stdin=subprocess.PIPE)
        child.stdin.write(b"hello\n")
        child.stdin.flush()
        os.read(child.stdout.fileno(), 1)
        child.send_signal(signal.SIGINT)
        child.stdin.write(b"/exit\n")
        _, err = child.communicate()
        self.assertEqual(child.returncode, 0, err)
        self.assertIn(b"cancelled", err)


class Chat(unittest.TestCase):
    def test_a_conversation_answers_each_line_and_reuses_what_it_read(self):
        outcome = run("chat", "-m", MODEL, "-n", "4", stdin=b"hello\nagain\n/regen\n/clear\nfresh\n/exit\nnever\n")
        self.assertEqual(outcome.code, 0, outcome)
        self.assertEqual(outcome.stderr.count("first token after"), 4)
        self.assertIn("cached", outcome.stderr)
        self.assertGreaterEqual(outcome.stdout.count(b"\n"), 4)

    def test_commands_are_explained_and_mistakes_named(self):
        outcome = run("chat", "-m", MODEL, "-n", "1", stdin=b"/help\n/nope\n/regen\n/read /nonexistent\n\n")
        self.assertEqual(outcome.code, 0, outcome)
        for text in ("/read FILE", "found '/nope'", "/regen: expected an answer", "/nonexistent: expected a readable file"):
            self.assertIn(text, outcome.stderr)
        self.assertEqual(outcome.stdout, b"")

    def test_a_message_that_is_too_long_is_taken_back(self):
        outcome = run("chat", "-m", MODEL, "-n", "1", "-c", "128", stdin=b"word " * 500 + b"\nhi\n")
        self.assertEqual(outcome.code, 0, outcome)
        self.assertIn("maximum context length", outcome.stderr)
        self.assertEqual(outcome.stderr.count("first token after"), 1)

    def test_a_file_goes_before_the_next_message(self):
        with tempfile.NamedTemporaryFile() as file:
            file.write(b"document " * 20)
            file.flush()
            outcome = run("chat", "-m", MODEL, "-n", "1", stdin=f"/read {file.name}\nhello\n".encode())
        self.assertIn("180 bytes go before your next message", outcome.stderr)
        self.assertEqual(outcome.code, 0, outcome)

    def test_on_a_terminal_it_prompts_and_ctrl_c_ends_it(self):
        main, side = pty.openpty()
        child = start("chat", "-m", MODEL, "-n", "2", stdin=side, stdout=side, stderr=side)
        os.close(side)
        seen = b""
        deadline = time.monotonic() + 30
        while b"> " not in seen and time.monotonic() < deadline:
            if select.select([main], [], [], 1)[0]:
                seen += os.read(main, 4096)
        self.assertIn(b"> ", seen)
        child.send_signal(signal.SIGINT)
        self.assertEqual(child.wait(), 130)
        os.close(main)


    def test_ctrl_c_ends_it_however_close_to_the_prompt_it_comes(self):
        for _ in range(40):
            main, side = pty.openpty()
            child = start("chat", "-m", MODEL, stdin=side, stdout=side, stderr=side)
            os.close(side)
            seen = b""
            while b"ends." not in seen:  # the prompt is being written
                seen += os.read(main, 64)
            child.send_signal(signal.SIGINT)
            self.assertEqual(child.wait(), 130)
            os.close(main)


class Tokens(unittest.TestCase):
    def test_any_bytes_survive_tokenize_and_detokenize(self):
        for model in ("llama-untied", "llama-per-layer", "qwen2-bias", "gemma3-default"):
            for text in (b"", b"hello world", "naïve 日本 😀".encode(), EVERY_BYTE, b" leading\n\n  spaces\t"):
                with self.subTest(model=model, text=text[:20]):
                    path = TINY / f"{model}.gguf"
                    tokens = run("tokenize", "-m", path, stdin=text)
                    self.assertEqual(tokens.code, 0, tokens)
                    back = run("detokenize", "-m", path, stdin=tokens.stdout)
                    self.assertEqual(back.code, 0, back)
                    self.assertEqual(back.stdout, text)


class Eval(unittest.TestCase):
    def test_scores_are_those_of_the_reference(self):
        golden = json.loads((TINY / "llama-untied.json").read_text())
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump({"ids": golden["ids"]}, file)
            file.flush()
            result = run_json("eval", "ppl", "-m", MODEL, "--ids", file.name, "--logprobs", "--json")
            short = run_json("eval", "ppl", "-m", MODEL, "--ids", file.name, "--tokens", "10", "--json")
        want = golden["target_logprob"][:len(golden["ids"]) - 1]
        self.assertEqual(result["tokens"], len(golden["ids"]))
        self.assertEqual(len(result["target_logprob"]), len(golden["ids"]) - 1)
        self.assertEqual(len(result["top1"]), len(golden["ids"]))
        differences = [abs(ours - theirs) for ours, theirs in zip(result["target_logprob"], want)]
        self.assertLess(sum(differences) / len(differences), 0.05)
        mean = sum(result["target_logprob"]) / len(result["target_logprob"])
        self.assertAlmostEqual(result["ppl"], math.exp(-mean), delta=1e-3 * result["ppl"])
        self.assertEqual((short["tokens"], "top1" in short), (10, False))

    def test_a_text_is_scored_from_stdin(self):
        result = run_json("eval", "ppl", "-m", MODEL, "-f", "-", "--json", stdin=b"some words to score")
        self.assertGreater(result["ppl"], 1)
        outcome = run("eval", "ppl", "-m", MODEL, "-f", "-", stdin=b"some words to score")
        self.assertRegex(outcome.stdout.decode(), r"^perplexity \d+\.\d+ over \d+ tokens\n$")


class Tasks(unittest.TestCase):
    """Generated prompts are read by a model that knows nothing, but in a context long enough for them."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="winnow-tasks-")
        cls.model = pathlib.Path(cls.folder.name) / "long.gguf"
        cls.model.write_bytes(Gguf(MODEL).set("llama.context_length", U32, 2**13).build())

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_needles_are_counted_by_kind_length_and_depth(self):
        svg = pathlib.Path(self.folder.name) / "map.svg"
        result = run_json("eval", "needle", "-m", self.model, "--lengths", "1024,2048", "--seeds", "2", "--needles", "2", "--sparse-dense-tokens", "256",
                          "--sparse-tau", "1", "--svg", svg, "--json", "-q")
        self.assertEqual([(length["length"], length["prompts"]) for length in result["lengths"]], [(1024, 2), (2048, 2)])
        for length in result["lengths"]:
            self.assertEqual(length["dense"]["density"], 1)
            self.assertTrue(0 < length["sparse"]["density"] < 1)
            for attention in ("dense", "sparse"):
                for kind in ("after", "inside"):
                    count = length[attention][kind]
                    self.assertEqual((count["needles"], count["digits"]), (4, 28))
                    self.assertLessEqual(7 * count["exact"], count["digits_right"])
        self.assertEqual(len(result["cells"]), 16)
        for cell in result["cells"]:
            self.assertEqual(set(cell), {"length", "prompt", "kind", "depth", "digits", "dense", "sparse"})
            self.assertTrue(0 < cell["depth"] < 1)
        self.assertEqual(xml.etree.ElementTree.parse(svg).getroot().tag, "{http://www.w3.org/2000/svg}svg")

    def test_needles_are_found_alike_by_two_dense_runs(self):
        args = ["eval", "needle", "-m", self.model, "--lengths", "1024", "--needles", "1", "--attention", "dense", "-q"]
        for cell in run_json(*args, "--json")["cells"]:
            self.assertEqual(cell["dense"], cell["sparse"])
        self.assertRegex(run(*args).stdout.decode(), r"\n +1024 +1 +dense .*\n +1024 +1 +sparse .* 1\.000\n$")

    def test_a_needle_prompt_is_read_from_a_file(self):
        ids = list(range(40, 140)) + [50, 51]
        prompt = {"ids": ids, "asked_after": [{"question_ids": [9, 8], "answer_ids": [60, 61, 62]}], "recalled_inside": [{"position": 100, "answer_ids": [50, 51]}]}
        path = pathlib.Path(self.folder.name) / "needles.json"
        path.write_text(json.dumps(prompt))
        result = run_json("eval", "needle", "-m", self.model, "--ids", path, "--ids", path, "--json", "-q")
        self.assertEqual((result["lengths"][0]["length"], result["lengths"][0]["prompts"]), (102, 2))
        after, inside = result["cells"][:2]
        self.assertEqual((after["kind"], after["digits"], after["prompt"]), ("after", 3, str(path)))
        self.assertEqual((inside["kind"], inside["digits"]), ("inside", 2))
        self.assertAlmostEqual(inside["depth"], 10 / 102)

    def test_ruler_tasks_are_scored_with_intervals(self):
        args = ["eval", "ruler", "-m", self.model, "--length", "2048", "--samples", "2", "--tasks", "vt,niah_single_1", "-q"]
        result = run_json(*args, "--json")
        self.assertEqual([(task["task"], task["samples"]) for task in result["tasks"]], [("vt", 2), ("niah_single_1", 2)])
        self.assertEqual((result["all"]["tasks"], result["all"]["samples"]), (2, 4))
        for task in result["tasks"] + [result["all"]]:
            self.assertAlmostEqual(task["difference"], task["sparse"] - task["dense"])
            self.assertTrue(task["low"] <= task["difference"] <= task["high"])
        for sample in result["samples"]:
            self.assertTrue(1800 < sample["tokens"] < 2048)
            self.assertEqual(len(sample["references"]), 5 if sample["task"] == "vt" else 1)
        self.assertEqual(run(*args).stdout, run(*args).stdout)
        self.assertIn("niah_single_1", run(*args).stdout.decode())


class Bench(unittest.TestCase):
    def test_rows_cover_prompts_answers_and_depths(self):
        rows = run_json("bench", "-m", MODEL, "-p", "16,32", "-n", "4", "-d", "0,64", "-r", "2", "-o", "json", "-q")
        tests = [(row["n_prompt"], row["n_gen"], row["n_depth"]) for row in rows]
        self.assertEqual(tests, [(16, 0, 0), (32, 0, 0), (0, 4, 0), (16, 0, 64), (32, 0, 64), (0, 4, 64)])
        for row in rows:
            self.assertEqual(len(row["samples_ts"]), 2)
            self.assertGreater(row["avg_ts"], 0)
            self.assertAlmostEqual(row["avg_ns"], sum(row["samples_ns"]) / 2, delta=1)

    def test_answers_side_by_side_are_rows_of_their_own(self):
        rows = run_json("bench", "-m", MODEL, "-p", "0", "-n", "3", "-b", "1,5", "-d", "0,40", "-r", "2", "-o", "json", "-q")
        tests = [(row["n_gen"], row["n_streams"], row["n_depth"]) for row in rows]
        self.assertEqual(tests, [(3, 1, 0), (3, 5, 0), (3, 1, 40), (3, 5, 40)])
        for row in rows:
            self.assertEqual(len(row["samples_ts"]), 2)
            self.assertGreater(row["avg_ts"], 0)

    def test_markdown_and_csv_are_tables(self):
        table = run("bench", "-m", MODEL, "-p", "16", "-n", "2", "-r", "1", "-q").stdout.decode()
        self.assertEqual([line.count("|") for line in table.splitlines()], [9] * 4)
        lines = run("bench", "-m", MODEL, "-p", "16", "-n", "2", "-r", "1", "-q", "-o", "csv").stdout.decode().splitlines()
        self.assertEqual(len(lines), 3)
        self.assertTrue(lines[0].startswith("build_commit,cpu_info,"))


# So small that a tiny model's context of 512 tokens has sparse rows, and some blocks are left out.
RULE = ["--sparse-dense-tokens", "128", "--sparse-tau", "0.5"]
SPARSE = ["--attention", "sparse", *RULE]
LONG_TEXT = " ".join(f"{i * i % 997} <b>&{i}" for i in range(400)).encode()


class Sparse(unittest.TestCase):
    """What is shown of sparse attention."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="winnow-sparse-")
        cls.text = pathlib.Path(cls.folder.name) / "long.txt"
        cls.text.write_bytes(LONG_TEXT)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def eval(self, *args):
        return run_json(*args, "-m", MODEL, "-f", self.text, "--tokens", "480", "--json", "-q")

    def picture(self, name):
        return pathlib.Path(self.folder.name) / name

    def test_run_tells_density_and_times_where_rows_were_sparse(self):
        base = ["run", "-m", MODEL, "--raw", "-p", "word " * 96, "-n", "2"]
        self.assertNotIn("attention", run_json(*base, "--json"))
        self.assertNotIn("attention", run_json(*base, *RULE, "--attention", "dense", "--json"))
        self.assertNotIn("attention", run_json(*base, *RULE, "--attention", "auto", "--json"))
        attention = run_json(*base, *SPARSE, "--json")["attention"]
        self.assertTrue(0 < attention["density"] < 1, attention)
        self.assertGreater(attention["effective_density"], attention["density"])
        for key in ("select_ms", "attend_ms", "rest_ms"):
            self.assertGreaterEqual(attention[key], 0, key)
        self.assertRegex(run(*base, *SPARSE).stderr, r"; density 0\.\d+, effective 0\.\d+: selection .* s, attention .* s, rest .* s; ")

    def test_sparse_decode_tells_its_density_and_is_off_unless_asked_for(self):
        base = ["run", "-m", MODEL, "--raw", "-p", "word " * 96, "-n", "8", *RULE, "--attention", "dense", "--sparse-decode-tau", "0.5", "--json"]
        for flags in ([], ["--sparse-decode", "off"]):
            self.assertNotIn("decode_attention", run_json(*base, *flags))
        result = run_json(*base, "--sparse-decode", "on")
        self.assertNotIn("attention", result)
        self.assertTrue(0 < result["decode_attention"]["density"] < 1, result)
        self.assertIn("; decode density 0.", run(*base, "--sparse-decode", "on").stderr)
        self.assertIn("--sparse-decode: expected --sparse-rule winnow", run(*base, "--sparse-decode", "on", "--sparse-rule", "v2").stderr)
        bench = ["bench", "-m", MODEL, "-p", "0", "-n", "4", "-d", "300", "-r", "1", "-o", "json", "-q", *RULE, "--attention", "dense",
                 "--sparse-decode", "on", "--sparse-decode-tau", "0.5"]
        self.assertEqual(run_json(*bench)[0]["attention"], "winnow decode tau 0.5")
        self.assertEqual(run_json(*bench, "-b", "2")[0]["attention"], "winnow decode tau 0.5")

    def test_eval_kl_compares_sparse_decode(self):
        result = self.eval("eval", "kl", "--decode", "60", *RULE, "--sparse-decode-tau", "0.5")
        self.assertEqual(result["positions"], 95)  # from a multiple of 128 on
        self.assertGreater(result["mean_kl"], 0)
        self.assertTrue(0 < result["density"] < 1, result)
        for key in ("p99_kl", "top1_agreement", "ppl_dense", "ppl_sparse", "effective_density", "token_ms_dense", "token_ms_sparse", "step_time"):
            self.assertGreater(result[key], 0, key)
        kept = self.eval("eval", "kl", "--decode", "60", *RULE, "--sparse-decode-tau", "0")
        self.assertEqual(kept["density"], 1)
        self.assertLess(kept["mean_kl"], result["mean_kl"])
        refused = run("eval", "kl", "-m", MODEL, "-f", self.text, "--tokens", "480", "--decode", "400", *RULE)
        self.assertIn("--decode: expected a text of", refused.stderr)

    def test_calibrate_keeps_a_profile_that_the_next_prompt_uses(self):
        with tempfile.TemporaryDirectory() as cache:
            env = {"XDG_CACHE_HOME": cache}
            made = run("calibrate", "-m", MODEL, "--json", env=env)
            self.assertEqual(made.code, 0, made)
            result = json.loads(made.stdout)
            self.assertEqual(result["path"], str(next(pathlib.Path(cache).rglob("*.profile"))))
            self.assertGreater(result["tau_factor"], 0)
            prompt = ["run", "-m", MODEL, "--raw", "-p", "word " * 96, "-n", "2", *SPARSE]
            used = run(*prompt, env=env)
            self.assertEqual(used.code, 0, used)
            self.assertNotIn("profiling", used.stderr)
            self.assertIn("profiling", run(*prompt, env={"XDG_CACHE_HOME": cache + "/none"}).stderr)

    def test_profiles_that_cannot_be_used_are_named(self):
        prompt = ["run", "-m", MODEL, "--raw", "-p", "word " * 96, "-n", "1", *SPARSE, "--sparse-profile"]
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "x.profile"
            self.assertIn(str(path), run(*prompt, path).stderr)
            run("calibrate", "-m", MODEL, "-o", path)
            good = path.read_bytes()
            self.assertEqual(run(*prompt, path).code, 0)
            for bytes_, found in ((b"", ""), (b"GGUF" * 100, "expected a profile of sparse attention"),
                                  (good[:-9], "expected the checksum"), (good[:100] + b"?" + good[101:], "expected the checksum")):
                path.write_bytes(bytes_)
                outcome = run(*prompt, path)
                self.assertNotEqual(outcome.code, 0, outcome)
                self.assertIn(found, outcome.stderr)
            path.write_bytes(good)
            other = ["run", "-m", TINY / "gemma3-default.gguf", "--raw", "-p", "word " * 96, "-n", "1", *SPARSE, "--sparse-profile", path]
            self.assertIn("expected a profile of this model", run(*other).stderr)

    def test_chat_and_bench_take_the_flags(self):
        outcome = run("chat", "-m", MODEL, "-n", "1", *SPARSE, stdin=b"word " * 80 + b"\n")
        self.assertIn("; density 0.", outcome.stderr)
        bench = ["bench", "-m", MODEL, "-n", "2", "-r", "1", "-o", "json", "-q", "--sparse-dense-tokens", "128"]
        rows = run_json(*bench, "-p", "120,400", "--attention", "sparse")
        self.assertEqual([row["attention"] for row in rows], ["dense", "winnow tau 0.004", "dense"])
        rows = run_json(*bench, "-p", "400", "--attention", "sparse", "--sparse-rule", "v2", "--sparse-dense-layers", "0")
        self.assertEqual([row["attention"] for row in rows], ["v2 alpha 0.1", "dense"])
        rows = run_json(*bench, "-p", "400")  # auto: too short
        self.assertEqual([row["attention"] for row in rows], ["dense", "dense"])

    def test_compare_answers_twice(self):
        base = ["run", "-m", MODEL, "--raw", "-p", "word " * 96, "-n", "4", "--compare"]
        result = run_json(*base, *SPARSE, "--json")
        self.assertNotIn("attention", result["dense"])
        self.assertIn("attention", result["sparse"])
        self.assertTrue(1 <= len(result["kl"]) <= 4, result["kl"])
        self.assertTrue(all(kl >= 0 for kl in result["kl"]))
        self.assertGreater(result["mean_kl"], 0)
        same = run_json(*base, "--json")  # too short for sparse rows
        self.assertEqual((same["first_difference"], same["mean_kl"]), (None, 0))
        self.assertEqual(same["dense"]["tokens"], same["sparse"]["tokens"])
        text = run(*base, *SPARSE).stdout.decode()
        for part in ("--- dense: first token after", "--- sparse: first token after", "KL of the first token", "the answers"):
            self.assertIn(part, text)
        self.assertIn("--attention: expected sparse", run(*base, "--attention", "dense").stderr)

    def test_the_operator_is_measured(self):
        result = run_json("bench", "attention", "--len", "2000", "--queries", "200", "--heads", "4", "--kv-heads", "2", "--dim", "32",
                          "--density", "0.3", "-r", "1", "--json")
        self.assertAlmostEqual(result["density"], 0.3, delta=0.02)
        for key in ("dense_ms", "sparse_ms", "select_ms", "dense_share_of_peak"):
            self.assertGreater(result[key], 0, key)
        self.assertIn("isa", result)
        for flags, message in ((["--queries", "16384"], "--queries: expected at most"), (["--heads", "3"], "--heads: expected a multiple"),
                               (["--dim", "40"], "--dim: expected a multiple of 16")):
            outcome = run("bench", "attention", *flags)
            self.assertEqual(outcome.code, 2, outcome)
            self.assertIn(message, outcome.stderr)

    def test_the_curve_has_a_point_for_every_setting(self):
        svg = self.picture("curve.svg")
        base = ["eval", "curve", "--taus", "0.01,0.2", "--alphas", "0.9", "--sparse-dense-tokens", "128", "--sparse-dense-layers", "0"]
        result = self.eval(*base, "--svg", svg)
        self.assertEqual([(row["rule"], row["setting"]) for row in result["rows"]], [("winnow", 0.01), ("winnow", 0.2), ("v2", 0.9)])
        for row in result["rows"]:
            self.assertGreater(row["attention_time"], 0)
            self.assertGreaterEqual(row["mean_kl"], 0)
        self.assertGreater(result["rows"][0]["density"], result["rows"][1]["density"])
        picture = xml.etree.ElementTree.parse(svg)
        self.assertEqual(len(picture.findall(".//{http://www.w3.org/2000/svg}circle")), 3)
        table = run(*base, "-m", MODEL, "-f", self.text, "--tokens", "480", "-q").stdout.decode().splitlines()
        self.assertEqual(len(table), 4)
        self.assertIn("found none", run("eval", "curve", "-m", MODEL, "-f", self.text, "--taus", "", "--alphas", "").stderr)

    def test_the_map_draws_every_head_and_shows_the_text(self):
        svg, html = self.picture("map.svg"), self.picture("map.html")
        base = ["map", "-m", MODEL, "-f", self.text, "--tokens", "480", "-q", *RULE]
        outcome = run(*base, "--svg", svg, "--html", html)
        self.assertEqual(outcome.code, 0, outcome)
        self.assertRegex(outcome.stdout.decode(), r"^8 heads, density 0\.\d+, effective density \d\.\d+\n$")
        xml.etree.ElementTree.parse(svg)
        page = html.read_text()
        data = json.loads(page.split('id="data">')[1].split("</script>")[0])
        self.assertEqual([(head["layer"], head["head"]) for head in data["heads"]], [(layer, head) for layer in range(2) for head in range(4)])
        self.assertIn("<b>&", "".join(data["texts"]))
        self.assertNotIn("<b>&", page)
        self.assertEqual(run(*base, "--svg", svg, "--layer", "1", "--head", "3").stdout[:8], b"1 heads,")
        for flags, message in (([], "--svg, --html: expected a file"), (["--svg", svg, "--layer", "2"], "--layer: expected a number from 0 to 1"),
                               (["--svg", svg, "--attention", "dense"], "--attention: expected sparse"),
                               (["--svg", svg, "--sparse-tail", "300"], "expected sparse rows")):
            outcome = run(*base, *flags)
            self.assertEqual(outcome.code, 2, outcome)
            self.assertIn(message, outcome.stderr)
        outcome = run(*base, "--svg", "/nonexistent/x.svg")
        self.assertEqual(outcome.code, 1, outcome)
        self.assertIn("/nonexistent/x.svg: expected to write the file", outcome.stderr)

    def test_layers_tell_what_each_head_keeps_and_loses(self):
        for rule in (["--sparse-rule", "winnow"], ["--sparse-rule", "v2", "--sparse-alpha", "0.9", "--sparse-dense-layers", "0"]):
            heads = self.eval("eval", "layers", *SPARSE, *rule, "--probe", "1")["heads"]
            self.assertEqual(len(heads), 8)
            for head in heads:
                self.assertTrue(0 < head["density"] <= 1 and 0 < head["mass_kept"] <= 1 + 1e-5 and head["output_error"] >= 0, head)
        all_kept = self.eval("eval", "layers", "--sparse-dense-tokens", "128", "--sparse-tau", "0", "--probe", "1")["heads"]
        for head in all_kept:
            self.assertAlmostEqual(head["mass_kept"], 1, delta=1e-4)
            self.assertLess(head["output_error"], 1e-2)
        self.assertNotIn("mass_kept", self.eval("eval", "layers", *SPARSE, "--probe", "0")["heads"][0])


class Others(unittest.TestCase):
    def test_inspect_lists_metadata_tensors_and_memory(self):
        outcome = run("inspect", MODEL)
        self.assertEqual(outcome.code, 0, outcome)
        for text in ("general.architecture", "token_embd.weight", "memory:"):
            self.assertIn(text, outcome.stdout.decode())
        result = run_json("inspect", MODEL, "--json")
        self.assertTrue(result["supported"])
        self.assertGreater(result["memory"]["kv_bytes_per_token"], 0)
        self.assertEqual(result["memory"]["weights_bytes"], sum(t["bytes"] for t in result["tensors"]))

    def test_help_is_short_and_on_stdout(self):
        for verb in ([], ["run"], ["chat"], ["inspect"], ["tokenize"], ["detokenize"], ["eval", "ppl"], ["eval", "kl"], ["eval", "curve"],
                     ["eval"], ["eval", "layers"], ["eval", "needle"], ["eval", "ruler"], ["calibrate"], ["map"], ["bench"], ["bench", "attention"], ["bench", "peak"], ["version"]):
            outcome = run(*verb, "--help")
            self.assertEqual((outcome.code, outcome.stderr), (0, ""), outcome)
            self.assertTrue(5 <= len(outcome.stdout.splitlines()) <= 45, outcome)
            self.assertLessEqual(max(map(len, outcome.stdout.decode().splitlines())), 100, outcome)

    def test_without_a_verb_the_usage_goes_to_stderr(self):
        outcome = run()
        self.assertEqual((outcome.code, outcome.stdout), (2, b""))
        self.assertIn("Usage: winnow VERB", outcome.stderr)

    def test_the_version_names_build_instruction_set_and_threads(self):
        for args in (["version"], ["--version"]):
            self.assertRegex(run(*args).stdout.decode(), r"^winnow \d+\.\d+\.\d+ \(.+\)\ninstruction set: \w+ .*\nthreads: \d+\n$")


if __name__ == "__main__":
    unittest.main()
