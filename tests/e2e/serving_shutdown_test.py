"""Cases of the end of a server and of what the machine gives it. docs/serving-cases.md lists them all."""
import json
import os
import resource
import signal
import subprocess
import unittest

from program import WINNOW, clean_environment
from serving_case import COMPLETIONS, ServingCase, model_file, rounds
from server_program import Server, wait_until
from wire import Wire


class Shutdown(ServingCase):
    def outcome(self, wire):
        """How a stream ended: done, error (told to the client, then done), or the status of a refusal; fails if it was cut."""
        status, headers = wire.head()
        if status != 200:
            return status
        events = list(wire.events())
        self.assertTrue(wire.done)
        return "error" if "error" in events[-1] else "done"

    @staticmethod
    def status(server, *request):
        """Of an answer; None where no connection is taken."""
        try:
            return server.ask(*request)[0]
        except OSError:
            return None

    def start_streams(self, server, num_running, num_waiting, max_tokens):
        wires = [self.stream([i, 3], max_tokens, server=server) for i in range(num_running + num_waiting)]
        wait_until(lambda: server.num_requests() == [num_running, num_waiting])
        return wires

    def test_shut_sigterm_drains(self):
        num_running, num_waiting = rounds((4, 2), (16, 4))
        with self.start("--max-running", str(num_running)) as server:
            wires = self.start_streams(server, num_running, num_waiting, rounds(2000, 4000))
            late = [Wire(server.address).send("POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n") for _ in range(10)]
            wait_until(lambda: server.metric("winnow_http_connections") >= 10 + len(wires))
            server.terminate()
            wait_until(lambda: self.status(server, "GET", "/health") != 200)
            self.assertLessEqual({self.status(server, "POST", COMPLETIONS, {"prompt": [5]}) for _ in range(10)}, {503, None})
            for wire in late:
                try:
                    wire.send("Content-Length: 15\r\n\r\n" + '{"prompt": "x"}')
                    self.assertIn(wire.reply()[0], (503, None))
                except OSError:
                    pass
                wire.close()
            self.assertEqual([self.outcome(wire) for wire in wires], ["done"] * len(wires))
            for wire in wires:
                wire.close()
            self.assertEqual(server.close(), 0)

    def test_shut_grace_ends_with_a_word(self):
        with self.start("--max-running", "2", "--drain-timeout", "0.2") as server:
            wires = self.start_streams(server, 2, 1, 8000)
            server.terminate()
            outcomes = [self.outcome(wire) for wire in wires]
            self.assertLessEqual(set(outcomes), {"error", 503})
            for wire in wires:
                wire.close()
            self.assertEqual(server.close(), 0)

    def test_shut_sigpipe(self):
        num = rounds(60, 1000)
        left = self.server.metric("winnow_http_clients_left_total")
        for i in range(num):
            wire = self.stream([i % 256, i // 256, 5], 4000)
            if i % 3:
                self.stream_ids(wire, (1, 3)[i % 2])
            wire.reset()
        self.holds_nothing(self.server)
        wait_until(lambda: self.server.metric("winnow_http_clients_left_total") - left >= num * 2 // 3)
        self.server.log.kill()  # nobody reads the log any more
        for _ in range(20):
            self.assertEqual(len(self.ids([5], 2)), 2)


class Resources(unittest.TestCase):
    def threads(self, *args, **kwargs):
        child = subprocess.run([WINNOW, *args], capture_output=True, text=True, env=clean_environment(None), **kwargs)
        self.assertEqual(child.returncode, 0, child.stderr)
        return next(int(line.split()[1]) for line in child.stdout.splitlines() if line.startswith("threads:"))

    def test_res_threads_follow_cgroup(self):
        cpus = sorted(os.sched_getaffinity(0))
        self.assertEqual(self.threads("version", preexec_fn=lambda: os.sched_setaffinity(0, cpus[:1])), 1)
        self.assertLessEqual(self.threads("version"), len(cpus))
        more = len(cpus) + 1
        with Server("-m", model_file("long"), "-t", str(more), "--attention", "dense") as server:
            self.assertRegex(server.head[0], rf"^warning: --threads is {more}, but this process may use \d+$")
            self.assertEqual(json.loads(server.head[-2])["threads"], more)

    def test_res_kv_overallocation(self):
        path = model_file("million", context=1 << 20)

        def start(limit_bytes, *flags):
            return subprocess.Popen([WINNOW, "serve", "-m", path, "--port", "0", "-t", "1", "--attention", "dense", *flags], stderr=subprocess.PIPE, text=True,
                                    env=clean_environment(None), preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit_bytes, limit_bytes)))
        with start(100 << 20) as child:
            text = child.stderr.read()
            self.assertGreater(child.wait(), 0, text)
            self.assertRegex(text, "cannot reserve|memory")
        whole = start(8 << 30)
        head = []
        for line in whole.stderr:
            head.append(line)
            if "listening" in line:
                break
        self.assertIn('"context_tokens":', "".join(head))
        whole.send_signal(signal.SIGTERM)
        whole.stderr.read()
        whole.stderr.close()
        self.assertEqual(whole.wait(), 0)


if __name__ == "__main__":
    unittest.main()
