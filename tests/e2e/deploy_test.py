"""What deploy/ holds fits the program: its commands start it, its dashboard asks for metrics that are there."""
import configparser
import json
import os
import re
import shlex
import signal
import socket
import subprocess
import tempfile
import unittest

from program import ROOT, TINY, WINNOW, clean_environment
from server_program import Server

DEPLOY = ROOT / "deploy"
MODEL = TINY / "llama-untied.gguf"


class Unit(configparser.RawConfigParser):
    """A systemd unit, in which keys may be repeated: their values are joined by blanks."""

    class Repeated(dict):
        def __setitem__(self, key, value):
            if isinstance(value, list) and key in self:
                value = self[key] + value
            super().__setitem__(key, value)

    def __init__(self, path):
        super().__init__(strict=False, dict_type=self.Repeated, delimiters=("=",))
        self.optionxform = str
        self.read(path)


def ended(child):
    child.send_signal(signal.SIGTERM)
    return child.wait(timeout=60)


class Deploy(unittest.TestCase):
    def start(self, command, environment):
        """Runs it until it tells a service manager that it is ready, and ends it."""
        with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
            path = os.path.join(folder, "notify")
            manager.bind(path)
            manager.settimeout(60)
            child = subprocess.Popen(command, stderr=subprocess.DEVNULL, env=clean_environment({**environment, "NOTIFY_SOCKET": path}))
            self.addCleanup(child.wait)
            self.addCleanup(child.kill)
            self.assertEqual(manager.recv(100), b"READY=1")
            self.assertEqual(ended(child), 0)
            self.assertEqual(manager.recv(100), b"STOPPING=1")

    def test_the_unit_starts_the_program(self):
        service = Unit(DEPLOY / "winnow.service")["Service"]
        self.assertEqual(service["Type"], "notify")
        variables = dict(pair.split("=", 1) for pair in shlex.split(service["Environment"].replace("\n", " ")))
        self.assertIn("WINNOW_MODEL", variables)
        variables.update(WINNOW_MODEL=os.fspath(MODEL), WINNOW_FLAGS="--port 0 --attention dense -t 1")
        command = []
        for word in service["ExecStart"].split():
            # As systemd does: ${X} is one word, $X as many as it holds.
            alone = re.fullmatch(r"\$(\w+)", word)
            command += variables[alone[1]].split() if alone else [re.sub(r"\$\{(\w+)\}", lambda found: variables[found[1]], word)]
        self.assertEqual(command[0], "/usr/local/bin/winnow")
        self.start([WINNOW, *command[1:]], {})

    def test_the_unit_waits_longer_than_the_program_drains(self):
        service = Unit(DEPLOY / "winnow.service")["Service"]
        shown = subprocess.run([WINNOW, "serve", "--help"], capture_output=True, text=True, check=True).stdout
        self.assertGreater(int(service["TimeoutStopSec"]), int(re.search(r"--drain-timeout [^\[]*\[(\d+)\]", shown)[1]))

    def test_the_container_starts_the_program(self):
        text = (DEPLOY / "Containerfile").read_text()
        final = text[text.rindex("\nFROM "):]
        entry, command = (json.loads(re.search(rf"^{name} (\[.*\])$", final, re.MULTILINE)[1]) for name in ("ENTRYPOINT", "CMD"))
        self.assertEqual(entry, ["/usr/local/bin/winnow"])
        self.assertIn("WINNOW_MODEL=", final)
        self.start([WINNOW, *command, "--port", "0", "--attention", "dense", "-t", "1"], {"WINNOW_MODEL": os.fspath(MODEL)})

    def test_the_dashboard_asks_for_metrics_that_are_there(self):
        server = Server("-m", MODEL, "--attention", "dense", "-t", "1")
        self.addCleanup(server.close)
        server.post("/v1/chat/completions", {"messages": [{"role": "user", "content": "hello"}], "max_tokens": 2})
        there = set()
        for name, kind in re.findall(r"^# TYPE (\S+) (\S+)$", server.get("/metrics"), re.MULTILINE):
            there |= {name + end for end in ("_bucket", "_sum", "_count")} if kind == "histogram" else {name}
        dashboard = json.loads((DEPLOY / "grafana.json").read_text())
        asked = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
        asked += [variable["query"]["query"] for variable in dashboard["templating"]["list"] if variable["type"] == "query"]
        names = {name for expression in asked for name in re.findall(r"\b(?:vllm:|winnow_)\w+", expression)}
        self.assertGreater(len(names), 20)
        self.assertEqual(names - there, set())
        self.assertEqual(len({panel["id"] for panel in dashboard["panels"]}), len(dashboard["panels"]))


if __name__ == "__main__":
    unittest.main()
