"""The real server in a child process. Standard library only."""
import json
import os
import re
import signal
import subprocess
import urllib.request

from program import WINNOW, clean_environment


class Server:
    def __init__(self, *args):
        """Returns when the server listens; what it then says goes to `log`."""
        self.child = subprocess.Popen([WINNOW, "serve", "--port", "0", *map(os.fspath, args)], stdout=subprocess.DEVNULL,
                                      stderr=subprocess.PIPE, text=True, env=clean_environment(None))
        self.head = []
        for line in self.child.stderr:
            self.head.append(line)
            found = re.search(r"http://\S+", line)
            if found:
                self.url = found.group(0).rstrip("/.,")
                break
        else:
            raise RuntimeError("the server ended: " + "".join(self.head))
        self.log = subprocess.Popen(["cat"], stdin=self.child.stderr, stdout=subprocess.DEVNULL)
        self.child.stderr.close()

    def get(self, path):
        with urllib.request.urlopen(self.url + path) as reply:
            return reply.read().decode()

    def metric(self, name):
        found = re.search(rf"^{re.escape(name)}(?:{{[^}}]*}})? (\S+)$", self.get("/metrics"), re.MULTILINE)
        return float(found.group(1))

    def wait_until_idle(self):
        """CTest's timeout ends a test whose server never is."""
        while self.metric("vllm:num_requests_running") + self.metric("vllm:num_requests_waiting") > 0:
            pass

    def post(self, path, body, headers=None):
        request = urllib.request.Request(self.url + path, json.dumps(body).encode(), {"Content-Type": "application/json", **(headers or {})})
        with urllib.request.urlopen(request) as reply:
            return json.load(reply)

    def close(self):
        """Ends it as a service manager would; its exit code."""
        if self.child.poll() is None:
            self.child.send_signal(signal.SIGTERM)
        code = self.child.wait()
        self.log.wait()
        return code
