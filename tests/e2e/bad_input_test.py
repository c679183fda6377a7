"""Bad files, flags and prompts, each given to the real program: a clear message, the right exit code, no signal, under a second."""
import pathlib
import struct
import tempfile
import unittest

from program import ARRAY, F32, TEXT, TINY, U32, Gguf, packed_text, run

OK, RUNTIME, USAGE, BAD_FILE, NO_MEMORY = 0, 1, 2, 3, 4
MODEL = TINY / "llama-untied.gguf"  # has a chat template
BASE_MODEL = TINY / "llama-group3.gguf"  # has none
MAX_CPU_SECONDS = 1.0


class BadInput(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="winnow-bad-")
        cls.count = 0

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()
        print(f"{cls.__name__}: {cls.count} bad inputs refused")

    def write(self, data, name="bad.gguf"):
        path = pathlib.Path(self.folder.name) / name
        path.write_bytes(data)
        return path

    def refused(self, args, code, pattern, stdin=b"", env=None):
        """Runs the program once and checks how it refuses."""
        with self.subTest(args=[str(arg)[:80] for arg in args], env=env):
            outcome = run(*args, stdin=stdin, env=env)
            self.assertEqual(outcome.code, code, outcome)
            self.assertRegex(outcome.stderr, pattern)
            self.assertEqual(outcome.stdout, b"")
            self.assertTrue(outcome.stderr.startswith("winnow"), outcome.stderr)
            self.assertLess(outcome.cpu_seconds, MAX_CPU_SECONDS)
            type(self).count += 1


class Flags(BadInput):
    def test_verbs_that_do_not_exist_are_named(self):
        for args in [["foo"], ["Run"], [""], ["-m"], ["--foo"], ["eval"], ["eval", "x"], ["\x1b[31m"], ["x" * 100000]]:
            self.refused(args, USAGE, r"verb: expected one of run, chat, .*, found '")

    def test_a_value_out_of_range_names_flag_range_and_value(self):
        run_flags = {
            "-n": ["-2", "abc", "", "1.5", "99999999999999999999", "1e3", " 1", "0x10"],
            "-t": ["0", "-1", "100000", "all"],
            "-c": ["0", "-5", "1099511627777", "4k"],
            "--chunk": ["0", "-128", "1048577", "x"],
            "--temp": ["-1", "nan", "inf", "101", "hot", ""],
            "--top-k": ["-2", "2147483648", "1.5"],
            "--top-p": ["-0.1", "1.1", "nan"],
            "--min-p": ["-0.1", "1.1", "x"],
            "--repeat-penalty": ["0", "-1", "nan", "101"],
            "--presence-penalty": ["inf", "101", "-101"],
            "--frequency-penalty": ["nan", "1000"],
            "--seed": ["-1", "18446744073709551616", "0.5"],
        }
        for flag, values in run_flags.items():
            for value in values:
                self.refused(["run", "-m", MODEL, "-p", "x", flag, value], USAGE,
                             r"winnow run: --[a-z-]+.*: expected a (whole )?number from .* to .*, found '" + value[:5])

    def test_words_outside_a_choice_are_refused_with_the_choices(self):
        self.refused(["run", "-m", MODEL, "-p", "x", "--kv-type", "q4"], USAGE, "--kv-type: expected one of bf16, f16, found 'q4'")
        self.refused(["run", "-m", MODEL, "-p", "x", "--kv-type", ""], USAGE, "--kv-type: expected one of bf16, f16, found ''")
        self.refused(["bench", "-m", MODEL, "-o", "xml"], USAGE, "--output: expected one of md, json, csv, found 'xml'")

    def test_logit_bias_and_stop_are_checked(self):
        for value in ["", "=", "1", "1=", "=1", "a=1", "1=a", "99999999999=1", "1=1e999", "1==2"]:
            self.refused(["run", "-m", MODEL, "-p", "x", "--logit-bias", value], USAGE,
                         "--logit-bias: expected TOKEN_ID=NUMBER, found '")
        for value in ["-1=5", "1000000=5"]:
            self.refused(["run", "-m", MODEL, "-p", "x", "--logit-bias", value], USAGE, "--logit-bias: expected token ids from 0 to")
        self.refused(["run", "-m", MODEL, "-p", "x", "--logit-bias", "1=1e30"], USAGE, "--logit-bias: expected a number from -1000 to 1000")
        self.refused(["run", "-m", MODEL, "-p", "x", "--stop", ""], USAGE, "--stop: expected a text")

    def test_unknown_missing_and_doubled_flags_are_named(self):
        for verb in [["run"], ["chat"], ["tokenize"], ["detokenize"], ["eval", "ppl"], ["bench"]]:
            self.refused(verb, USAGE, "--model is required")
            self.refused([*verb, "-m", MODEL, "--frobnicate"], USAGE, "unexpected argument '--frobnicate'")
            self.refused([*verb, "-m", MODEL, "stray"], USAGE, "unexpected argument 'stray'")
            self.refused([*verb, "-m"], USAGE, "--model")
            self.refused([*verb, "-m", MODEL, "-m", MODEL], USAGE, "--model")
        self.refused(["run", "-m", MODEL, "-p"], USAGE, "--prompt")
        self.refused(["run", "-m", MODEL, "-n", "-p", "x"], USAGE, "--max-tokens.*found '-p'|unexpected")
        self.refused(["inspect"], USAGE, "FILE is required")
        self.refused(["inspect", MODEL, MODEL], USAGE, "unexpected argument")
        self.refused(["version", "x"], USAGE, "unexpected argument 'x'")
        self.refused(["bench", "peak", "x"], USAGE, "unexpected argument 'x'")

    def test_flags_that_exclude_each_other_are_refused(self):
        self.refused(["eval", "ppl", "-m", MODEL], USAGE, "expected either -f or --ids, found neither")
        self.refused(["eval", "ppl", "-m", MODEL, "-f", "a", "--ids", "b"], USAGE, "expected either -f or --ids, found both")
        self.refused(["eval", "ppl", "-m", MODEL, "-f", "a", "--logprobs"], USAGE, "--logprobs: expected --json")
        self.refused(["run", "-m", MODEL, "-p", "x", "--raw", "--system", "y"], USAGE, "--system: expected a chat prompt, found --raw")

    def test_lists_of_lengths_are_checked(self):
        for value in ["", ",", "1,", "a", "-1", "1;2", "99999999999"]:
            self.refused(["bench", "-m", MODEL, "-p", value], USAGE, "--prompt: expected a whole number from 0 to")
        self.refused(["bench", "-m", MODEL, "-p", "0", "-n", "0"], USAGE, "expected a length above 0")
        for value in ["0", "-1", "1001"]:
            self.refused(["bench", "-m", MODEL, "-r", value], USAGE, "--repetitions: expected a whole number from 1 to 1000")
        for value in ["0", "1", "-7", "x"]:
            self.refused(["eval", "ppl", "-m", MODEL, "-f", "x", "--tokens", value], USAGE, "--tokens: expected a whole number from 2")

    def test_prompts_of_tasks_are_checked(self):
        needle = ["eval", "needle", "-m", MODEL]
        self.refused([*needle, "--lengths", "4096,1"], USAGE, "--lengths: expected a whole number from 256")
        self.refused([*needle, "--needles", "0"], USAGE, "--needles: expected a whole number from 1 to 100")
        self.refused([*needle, "-f", "a", "--ids", "b"], USAGE, "expected either -f or --ids, found both")
        self.refused([*needle, "-f", "/dev/null"], USAGE, "/dev/null: expected some text, found none")
        self.refused([*needle, "--ids", "/nonexistent"], BAD_FILE, "/nonexistent: expected a readable file")
        self.refused([*needle, "--lengths", "400"], USAGE, "expected room for 10 needles of each kind, found 400 tokens")
        self.refused([*needle, "--lengths", "2048", "--needles", "1", "-q"], RUNTIME, "maximum context length is 512")
        for content in [b"", b"[]", b'{"ids": [1, 2]}', b'{"ids": [], "asked_after": [], "recalled_inside": []}', b'{"ids": [1], "asked_after": [], "recalled_inside": [{}]}']:
            self.refused([*needle, "--ids", self.write(content, "needles.json")], USAGE, "needles.json: .*expected")
        ruler = ["eval", "ruler", "-m", MODEL]
        self.refused([*ruler, "--tasks", "vt,qa"], USAGE, "--tasks: expected some of all, niah_single_1, .*, found 'qa'")
        self.refused([*ruler, "--tasks", ""], USAGE, "--tasks: expected some of .* found ''")
        self.refused([*ruler, "--samples", "0"], USAGE, "--samples: expected a whole number from 1")
        self.refused([*ruler, "--length", "300", "--tasks", "cwe"], USAGE, "cwe: expected room for [0-9]+ tokens of prompt and 120 of answer, found 300")

    def test_the_environment_is_checked_too(self):
        self.refused(["run", "-m", MODEL, "-p", "x"], USAGE, "WINNOW_THREADS.*found 'many'", env={"WINNOW_THREADS": "many"})
        self.refused(["run", "-m", MODEL, "-p", "x"], USAGE, "(?i)isa.*sse", env={"WINNOW_ISA": "sse"})
        self.refused(["run", "-p", "x"], BAD_FILE, "nowhere.gguf", env={"WINNOW_MODEL": "/nowhere.gguf"})


class ModelFiles(BadInput):
    def both(self, path, pattern, code=BAD_FILE):
        self.refused(["inspect", path], code, pattern)
        self.refused(["run", "-m", path, "-p", "x"], code, pattern)

    def test_paths_that_are_no_files(self):
        for path in ["/nonexistent/model.gguf", "missing.gguf", "", "x" * 5000, "/", self.folder.name, "/dev/null", "/dev/zero", MODEL / "x"]:
            for args in [["inspect", path], ["run", "-m", path, "-p", "x"], ["tokenize", "-m", path]]:
                self.refused(args, BAD_FILE, "expected|No such file|cannot")

    def test_files_that_are_no_models(self):
        good = MODEL.read_bytes()
        for name, data in {"empty": b"", "one": b"G", "magic": b"GGUF", "text": b"hello world\n" * 100, "zeros": bytes(5000), "ones": b"\xff" * 5000,
                           "other": b"GGML" + good[4:], "swapped": b"FUGG" + good[4:]}.items():
            self.both(self.write(data, f"{name}.gguf"), name + ".gguf")

    def test_versions_that_are_not_known(self):
        for version in [0, 1, 4, 0xFFFFFFFF, 0x03000000]:
            gguf = Gguf(MODEL)
            gguf.version = version
            self.both(self.write(gguf.build()), "version")

    def test_a_file_cut_at_any_edge_of_its_sections(self):
        edges = []
        data = Gguf(MODEL).build(edges)
        self.assertGreater(len(edges), 60)
        for what, at in edges:
            for cut in {at, min(at + 3, len(data) - 1)}:
                path = self.write(data[:cut], "cut.gguf")
                self.refused(["inspect", path], BAD_FILE, "cut.gguf")

    def test_counts_and_sizes_that_cannot_be(self):
        good = Gguf(MODEL).build()
        for offset, name in [(8, "tensors"), (16, "keys"), (24, "text")]:
            for value in [2**64 - 1, 2**63, 2**40, 2**32]:
                data = bytearray(good)
                data[offset:offset + 8] = struct.pack("<Q", value)
                self.both(self.write(bytes(data), f"{name}.gguf"), f"{name}.gguf")

    def test_tensors_that_cannot_be(self):
        changes = {
            "unknown type 9999": lambda t: t.__setitem__(2, 9999),
            "type 4, which was removed": lambda t: t.__setitem__(2, 4),
            "no dimensions": lambda t: t.__setitem__(1, []),
            "dimension 0": lambda t: t.__setitem__(1, [0, 5]),
            "five dimensions": lambda t: t.__setitem__(1, [1, 1, 1, 1, 1]),
            "a product beyond 64 bits": lambda t: t.__setitem__(1, [2**40, 2**40]),
            "more than the file": lambda t: t.__setitem__(1, [64, 2**30]),
            "a doubled name": lambda t: t.__setitem__(0, "output_norm.weight"),
        }
        for what, change in changes.items():
            with self.subTest(what=what):
                gguf = Gguf(MODEL)
                change(gguf.tensor("token_embd.weight"))
                self.both(self.write(gguf.build()), "bad.gguf")

    def test_a_doubled_key(self):
        gguf = Gguf(MODEL)
        gguf.keys.append(list(gguf.keys[0]))
        self.both(self.write(gguf.build()), gguf.keys[0][0])

    def refused_by_run(self, gguf, pattern, code=BAD_FILE):
        self.refused(["run", "-m", self.write(gguf.build()), "-p", "x", "-n", "1"], code, pattern)

    def test_architectures_that_are_not_supported(self):
        for name in ["mamba", "", "LLAMA", "x" * 10000, "llama\x00"]:
            self.refused_by_run(Gguf(MODEL).set("general.architecture", TEXT, name), "expected.*llama.*gemma3|supported")
        self.refused_by_run(Gguf(MODEL).without_key("general.architecture"), "general.architecture")
        self.refused_by_run(Gguf(MODEL).set("general.architecture", U32, 5), "general.architecture")

    def test_keys_that_are_missing_or_out_of_range(self):
        for key in ["block_count", "embedding_length", "attention.head_count", "feed_forward_length", "context_length",
                    "attention.layer_norm_rms_epsilon"]:
            self.refused_by_run(Gguf(MODEL).without_key(f"llama.{key}"), f"llama.{key}")
        for key in ["block_count", "embedding_length", "attention.head_count", "attention.head_count_kv", "feed_forward_length", "context_length"]:
            for value in [0, 0xFFFFFFFF]:
                self.refused_by_run(Gguf(MODEL).set(f"llama.{key}", U32, value), "expected")
            self.refused_by_run(Gguf(MODEL).set(f"llama.{key}", TEXT, "many"), f"llama.{key}")
            self.refused_by_run(Gguf(MODEL).set(f"llama.{key}", F32, float("nan")), f"llama.{key}")

    def test_numbers_that_are_none_or_out_of_range(self):
        for key in ["attention.layer_norm_rms_epsilon", "attention.scale", "attn_logit_softcapping", "final_logit_softcapping", "rope.freq_base",
                    "rope.scaling.factor", "rope.scale_linear"]:
            for value in [float("nan"), float("inf"), -1.0, 1e30]:
                self.refused_by_run(Gguf(MODEL).set(f"llama.{key}", F32, value), f"'llama.{key}': expected a number from .* to .*, found")

    def test_rope_scaling_that_is_not_supported(self):
        for kind in ["yarn", "longrope", "llama3"]:
            self.refused_by_run(Gguf(MODEL).set("llama.rope.scaling.type", TEXT, kind), f"llama.rope.scaling.type: supported are none and linear, found {kind}")

    def test_tensors_that_are_missing_or_of_another_shape(self):
        names = [tensor[0] for tensor in Gguf(MODEL).tensors if tensor[0].startswith("blk.0.")] + ["token_embd.weight", "output_norm.weight"]
        for name in names:
            self.refused_by_run(Gguf(MODEL).without_tensor(name), name.replace(".", r"\."))
        for name in ["blk.0.attn_q.weight", "blk.0.ffn_down.weight", "output_norm.weight"]:
            gguf = Gguf(MODEL)
            tensor = gguf.tensor(name)
            tensor[1] = [tensor[1][0], *tensor[1][1:], 1, 1][:len(tensor[1])]
            tensor[1][-1] += 32
            tensor[3] = tensor[3] * 3
            self.refused_by_run(gguf, name.replace(".", r"\."))

    def test_vocabularies_that_cannot_be(self):
        self.refused_by_run(Gguf(MODEL).without_key("tokenizer.ggml.model"), "tokenizer.ggml.model")
        self.refused_by_run(Gguf(MODEL).without_key("tokenizer.ggml.tokens"), "token")
        self.refused_by_run(Gguf(MODEL).set("tokenizer.ggml.model", TEXT, "wordpiece"), "wordpiece")
        self.refused_by_run(Gguf(MODEL).set("tokenizer.ggml.pre", TEXT, "no-such-pre"), "no-such-pre")
        self.refused_by_run(Gguf(MODEL).set("tokenizer.ggml.tokens", U32, 1), "tokenizer.ggml.tokens")
        self.refused_by_run(Gguf(MODEL).set_raw("tokenizer.ggml.tokens", ARRAY, struct.pack("<IQ", TEXT, 1) + packed_text("a")), "token")
        self.refused_by_run(Gguf(MODEL).set("tokenizer.ggml.eos_token_id", U32, 10**9), "eos_token_id")

    def test_templates_that_cannot_be_used(self):
        for template in ["{% if %}", "{{ x", "{% for m in messages %}", "{% endfor %}", "{% nosuchtag %}", "{{ 1 +* 2 }}"]:
            gguf = Gguf(MODEL).set("tokenizer.chat_template", TEXT, template)
            self.refused(["run", "-m", self.write(gguf.build()), "-p", "x", "-n", "1"], BAD_FILE, "(?i)template|line")
        gguf = Gguf(MODEL).set("tokenizer.chat_template", TEXT, "{{ raise_exception('no such role') }}")
        self.refused(["run", "-m", self.write(gguf.build()), "-p", "x", "-n", "1"], USAGE, "no such role")

    def test_templates_that_would_take_for_ever_or_all_memory_end_soon(self):
        double = "{% set ns = namespace(t='0123456789') %}{% for i in range(40) %}{% set ns.t = ns.t ~ ns.t %}{% endfor %}"
        many = "{% set a = 'a' * 1000000 %}{% set many = [a] * 600 %}"
        deep = "{% with %}" * 150 + "{% for a in range(99999) %}{% for b in range(99999) %}{% if x and x and x and x %}{% endif %}{% endfor %}{% endfor %}" + "{% endwith %}" * 150
        for template in ["{% for i in range(100000000) %}x{% endfor %}", "{{ [0] * 10000000000 }}", "{{ 'x' * 10000000000 }}", double, deep,
                         many + "{{ many | join }}", many + "{{ a | replace('a', a) }}", many + "{{ many | tojson(indent=a) }}", many + "{{ many }}",
                         "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
                         "{% for i in range(99999) %}{{ ('x' * 999) | upper }}{% endfor %}", "{{ ('<' * 9999999) | escape }}",
                         "{{ dict(range(100000) | batch(2)) }}", "{% set l = 'x' * 9999999 %}{{ l | list | length }}"]:
            gguf = Gguf(MODEL).set("tokenizer.chat_template", TEXT, template)
            self.refused(["run", "-m", self.write(gguf.build()), "-p", "x", "-n", "1"], USAGE, "chat template, line 1: .*(steps|bytes|parts|Range too big)")


class Prompts(BadInput):
    def test_models_without_a_chat_template_say_what_to_do(self):
        gguf = self.write(Gguf(MODEL).without_key("tokenizer.chat_template").build(), "base.gguf")
        self.refused(["run", "-m", gguf, "-p", "x"], USAGE, "chat template, found none.*--raw")
        self.refused(["chat", "-m", gguf], USAGE, "chat template, found none.*--raw")

    def test_prompts_that_are_empty_or_cannot_be_read(self):
        self.refused(["run", "-m", MODEL, "-p", ""], USAGE, "prompt: expected some text, found none")
        self.refused(["run", "-m", MODEL], USAGE, "prompt: expected some text, found none")
        self.refused(["run", "-m", MODEL, "-f", "/dev/null"], USAGE, "prompt: expected some text")
        self.refused(["run", "-m", MODEL, "-f", "/nonexistent.txt"], BAD_FILE, "/nonexistent.txt: expected a readable file, found 'No such file")
        self.refused(["run", "-m", MODEL, "-f", ""], BAD_FILE, "expected a readable file")
        self.refused(["run", "-m", MODEL, "-f", "/dev/zero"], BAD_FILE, "/dev/zero: expected a file or pipe, found a device")
        self.refused(["run", "-m", MODEL, "-f", MODEL / "x"], BAD_FILE, "expected a readable file")
        self.refused(["eval", "ppl", "-m", MODEL, "-f", "/nonexistent.txt"], BAD_FILE, "expected a readable file")
        self.refused(["eval", "ppl", "-m", MODEL, "--ids", "/nonexistent.json"], BAD_FILE, "expected a readable file")
        for args in [["run", "-f"], ["eval", "ppl", "-f"], ["eval", "ppl", "--ids"], ["eval", "needle", "-f"], ["calibrate", "-f"], ["serve", "--api-key-file"]]:
            self.refused([*args, self.folder.name, "-m", MODEL], BAD_FILE, "expected a readable file, found 'Is a directory'")

    def test_standard_input_is_called_that(self):
        self.refused(["eval", "ppl", "-m", MODEL, "-f", "-"], USAGE, "standard input: expected at least 2 tokens", stdin=b"")
        self.refused(["eval", "ppl", "-m", MODEL, "--ids", "-"], USAGE, "standard input: expected", stdin=b"{")
        self.refused(["eval", "needle", "-m", MODEL, "-f", "-"], USAGE, "standard input: expected some text", stdin=b"")

    def test_other_encodings_are_named(self):
        for data in ["hello".encode("utf-16"), b"\xfe\xff\0h", "x".encode("utf-32")]:
            self.refused(["run", "-m", MODEL], USAGE, "expected UTF-8 text, found the byte-order mark", stdin=data)

    def test_prompts_longer_than_the_context(self):
        for args in [["run", "-m", MODEL], ["run", "-m", MODEL, "--raw"]]:
            self.refused([*args, "-c", "128"], RUNTIME, "maximum context length is 128 tokens .*, but the prompt has", stdin=b"word " * 2000)
        self.refused(["eval", "ppl", "-m", MODEL, "-f", "-", "-c", "128"], RUNTIME, "maximum context", stdin=b"word " * 2000)
        self.refused(["bench", "-m", MODEL, "-p", "1000000", "-n", "0", "-q"], RUNTIME, "pp1000000: expected a context of 1000000 tokens, found 512")
        self.refused(["bench", "-m", MODEL, "-p", "0", "-n", "1000000", "-q"], RUNTIME, "context")

    def test_contexts_that_are_too_large(self):
        self.refused(["run", "-m", MODEL, "-p", "x", "-c", "1000000000"], USAGE, "context: expected 1 to")

    def test_contexts_that_memory_has_no_room_for(self):
        free = next(int(line.split()[1]) * 1024 for line in open("/proc/meminfo") if line.startswith("MemAvailable"))
        if free > 2**26 * 560:
            self.skipTest(f"{free >> 30} GiB are free: enough for the largest context of the tiny models")
        gguf = self.write(Gguf(TINY / "llama-mixed-types.gguf").set("llama.context_length", U32, 2**26).build(), "long.gguf")
        self.refused(["run", "-m", gguf, "--raw", "-p", "x", "-c", str(2**26)], NO_MEMORY, "needs .* of KV cache")

    def test_ids_that_are_no_ids(self):
        for text in ["", "{", "[]", "null", "{}", '{"tokens": 1}', '{"tokens": [1.5]}', '{"tokens": [-1]}', '{"tokens": [true]}', '{"tokens": ["a"]}',
                     '{"tokens": [999999]}', '{"tokens": [99999999999999999999]}', "[" * 100000, '{"tokens": [1]', "\xff\xfe", "\0"]:
            data = text.encode("latin-1")
            self.refused(["detokenize", "-m", MODEL], USAGE, "standard input: expected", stdin=data)
            ids = self.write(data.replace(b"tokens", b"ids"), "ids.json")
            self.refused(["eval", "ppl", "-m", MODEL, "--ids", ids], USAGE, "ids.json: expected")
        for text in ['{"ids": []}', '{"ids": [1]}']:
            self.refused(["eval", "ppl", "-m", MODEL, "--ids", self.write(text.encode(), "ids.json")], USAGE, "expected at least 2 tokens")


if __name__ == "__main__":
    unittest.main()
