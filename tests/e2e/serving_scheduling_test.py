"""Cases of scheduling and of KV pages against the real server. docs/serving-cases.md lists them all."""
import math
import threading
import time
import unittest

from serving_case import COMPLETIONS, GREEDY, PAGE, ServingCase, at_once, random_prompt, rounds, token_ids
from server_program import wait_until
from wire import Wire


class Scheduling(ServingCase):
    FLAGS = ("--kv-tokens", "24576")

    def test_sched_long_prefill_starves_decode(self):
        first, second = random_prompt(self.rng, 64), random_prompt(self.rng, 6144)
        steps, tokens, ids, done = [], [], [], threading.Event()

        def ask_second():
            steps.append(self.server.metric("winnow_steps_total"))
            tokens.append(len(ids))
            answers.append(self.ids(second, 1))
            tokens.append(len(ids))
            steps.append(self.server.metric("winnow_steps_total"))
            done.set()

        answers = []
        asker = threading.Thread(target=ask_second)
        with self.stream(first, 2000) as wire:
            self.assertEqual(wire.head()[0], 200)
            for event in wire.events():
                ids += token_ids(event)
                if len(ids) >= 20 and not asker.ident:
                    asker.start()
                if done.is_set():
                    break
            asker.join()
        num_steps = steps[1] - steps[0]
        # Each step gave the stream a token and the prompt a page or more; steps before and after the prompt are counted too.
        self.assertGreaterEqual(num_steps, 6144 / 512)
        self.assertGreaterEqual(tokens[1] - tokens[0], 6144 / 512 - 4, "the stream waited for the prompt")
        self.assertEqual(answers[0], self.cold(second, 1))
        self.assertEqual(ids, self.cold(first, len(ids)))

    def test_sched_bigger_than_pool(self):
        with self.start("--kv-tokens", "2048") as server:
            began = time.monotonic()
            self.refused({"prompt": [5] * 2049, "max_tokens": 1}, "2048.*2049|2049.*2048", server=server)
            self.assertLess(time.monotonic() - began, 1)
            self.assertEqual(self.complete([5] * 10, 4, server=server)["finish_reason"], "length")
            self.assertEqual(server.metric("vllm:num_requests_waiting"), 0)
            self.holds_nothing(server)

    def test_sched_preempt_thrash(self):
        num, prompt_pages, answer_pages, pool = rounds((4, 2, 4, 12), (8, 4, 36, 64))
        prompts = [random_prompt(self.rng, prompt_pages * PAGE) for _ in range(num)]
        with self.start("--kv-tokens", str(pool * PAGE)) as server:
            answers = at_once([lambda p=p: self.ids(p, answer_pages * PAGE, server=server) for p in prompts])
            evictions = server.metric("vllm:num_preemptions_total")
            self.holds_nothing(server)
        self.assertGreater(evictions, 0, "the pool was never full")
        self.assertLessEqual(evictions, 3 * num)
        for prompt, answer in zip(prompts, answers):
            self.assertEqual(answer, self.cold(prompt, answer_pages * PAGE))


class Pages(ServingCase):
    FLAGS = ("--chunk", "128")

    def test_kv_leak_on_abort(self):
        bystander = random_prompt(self.rng, 50)
        descriptors = self.server.num_descriptors()
        long_prompt, leavers = random_prompt(self.rng, 10 * PAGE), rounds(24, 300)
        with self.stream(bystander, 8000) as watched:
            ids = []
            self.assertEqual(watched.head()[0], 200)
            events = watched.events()
            for i in range(leavers):
                streamed, chunks = i % 8 < 4, (0, 1, 5, None)[i % 4]
                prompt = [i % 256, i // 256, 7] + (long_prompt if chunks is None else [])
                wire = Wire(self.server.address)
                wire.post(COMPLETIONS, {"prompt": prompt, "max_tokens": 4000, "stream": streamed, **GREEDY})
                if streamed and chunks:
                    self.stream_ids(wire, chunks)
                elif chunks is None:
                    wait_until(lambda prompt=prompt: f'"n_prompt":{len(prompt)},' in self.server.get("/slots"))
                wire.reset() if i % 3 == 0 else wire.close()
                ids += token_ids(next(events, None))
            wait_until(lambda: self.server.metric("vllm:num_requests_running") <= 1)
        self.holds_nothing(self.server)
        self.assertEqual(ids, self.cold(bystander, len(ids)))
        wait_until(lambda: self.server.num_descriptors() <= descriptors)
        used = self.server.cpu_seconds()
        time.sleep(0.5)  # what is looked for is that nothing happens
        self.assertLess(self.server.cpu_seconds() - used, 0.2)

    def test_kv_gauge_separates_live_and_cached(self):
        with self.start("--kv-tokens", "4096") as server:
            for _ in range(2):
                for _ in range(24):
                    self.ids(random_prompt(self.rng, 200), 2, server=server)
                self.holds_nothing(server)
                self.assertGreater(server.pages()["cached"], 0)
            self.assertEqual(len(self.ids(random_prompt(self.rng, 4000), 90, server=server)), 90)
            self.holds_nothing(server)

    def test_kv_page_boundary(self):
        prompts = [random_prompt(self.rng, n) for n in (PAGE - 1, PAGE, PAGE + 1, 2 * PAGE - 1, 2 * PAGE, 2 * PAGE + 1)]
        num = 2 * PAGE + 3
        answers = at_once([lambda p=p: self.ids(p, num) for p in prompts])
        for prompt, answer in zip(prompts, answers):
            self.assertEqual(answer, self.cold(prompt, num), len(prompt))
        # One alone holds as many pages as its tokens need. The last token of an answer is never computed.
        for prompt in prompts:
            with self.start("--kv-tokens", str(PAGE * math.ceil((len(prompt) + num - 1) / PAGE))) as server:
                self.assertEqual(self.ids(prompt, num, server=server), self.cold(prompt, num), len(prompt))


if __name__ == "__main__":
    unittest.main()
