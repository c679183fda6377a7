"""The real server in a child process. Standard library only."""
import http.client
import json
import os
import re
import resource
import signal
import subprocess
import time
import urllib.parse
import urllib.request

from program import WINNOW, clean_environment


class Server:
    terminated = False

    def __init__(self, *args, env=None, limits=None):
        """Returns when the server listens; what it then says is dropped. `limits` are soft ones by resource.RLIMIT_*."""
        def lower():
            for which, soft in (limits or {}).items():
                resource.setrlimit(which, (soft, resource.getrlimit(which)[1]))
        self.child = subprocess.Popen([WINNOW, "serve", "--port", "0", *map(os.fspath, args)], stdout=subprocess.DEVNULL,
                                      stderr=subprocess.PIPE, text=True, env=clean_environment(env), preexec_fn=lower)
        self.head = []
        for line in self.child.stderr:
            self.head.append(line)
            found = re.search(r"http://\S+", line)
            if found:
                self.url = found.group(0).rstrip("/.,")
                break
        else:
            self.child.stderr.close()
            self.child.wait()
            raise RuntimeError("the server ended: " + "".join(self.head))
        self.log = subprocess.Popen(["cat"], stdin=self.child.stderr, stdout=subprocess.DEVNULL)
        self.child.stderr.close()
        parts = urllib.parse.urlsplit(self.url)
        self.address = parts.hostname, parts.port

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def get(self, path):
        with urllib.request.urlopen(self.url + path) as reply:
            return reply.read().decode()

    def metrics(self, *names):
        """Their values at one moment, each the sum over all labels."""
        text = self.get("/metrics")
        values = [re.findall(rf"^{re.escape(name)}(?:{{[^}}]*}})? (\S+)$", text, re.MULTILINE) for name in names]
        assert all(values), names
        return [sum(map(float, found)) for found in values]

    def metric(self, name):
        return self.metrics(name)[0]

    def pages(self):
        """Numbers of KV pages by state, all read at once."""
        text = self.get("/metrics")
        counts = {state: int(float(value)) for state, value in re.findall(r'^winnow_kv_pages\{.*state="(\w+)"\} (\S+)$', text, re.MULTILINE)}
        counts["total"] = int(float(re.search(r"^winnow_kv_pages_total_count\S* (\S+)$", text, re.MULTILINE)[1]))
        return counts

    def num_requests(self):
        """Running and waiting."""
        return self.metrics("vllm:num_requests_running", "vllm:num_requests_waiting")

    def wait_until_idle(self):
        wait_until(lambda: self.num_requests() == [0, 0])

    def ask(self, method, path, body=None, headers=None):
        """Status and text; `body` is sent as it is if it is bytes, else as JSON."""
        connection = http.client.HTTPConnection(*self.address, timeout=120)
        try:
            data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
            connection.request(method, path, data, {"Content-Type": "application/json", **(headers or {})})
            reply = connection.getresponse()
            return reply.status, reply.read().decode()
        finally:
            connection.close()

    def post(self, path, body, headers=None):
        request = urllib.request.Request(self.url + path, json.dumps(body).encode(), {"Content-Type": "application/json", **(headers or {})})
        with urllib.request.urlopen(request) as reply:
            return json.load(reply)

    def resident_bytes(self):
        with open(f"/proc/{self.child.pid}/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def cpu_seconds(self):
        with open(f"/proc/{self.child.pid}/stat") as file:
            fields = file.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def num_descriptors(self):
        return len(os.listdir(f"/proc/{self.child.pid}/fd"))

    def terminate(self):
        """Once: a second signal would end it at once."""
        if not self.terminated and self.child.poll() is None:
            self.child.send_signal(signal.SIGTERM)
        self.terminated = True

    def close(self):
        """Ends it as a service manager would; its exit code."""
        self.terminate()
        code = self.child.wait()
        self.log.wait()
        return code


def wait_until(holds):
    """Asks until it holds; CTest's timeout ends a test where it never does."""
    while not holds():
        time.sleep(0.005)
