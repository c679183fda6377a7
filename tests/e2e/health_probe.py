"""How soon a server answers beside whatever else it does. Standard library only."""
import threading
import time

from wire import Wire

MAX_HEALTH_SECONDS = 0.1


class Probe:
    """Asks for paths again and again on one connection each, beside whatever else happens, until its block ends."""

    def __init__(self, server, paths=("/health",), interval=0.02):
        self.server, self.paths, self.interval = server, paths, interval
        self.seconds, self.statuses, self.ended = [], set(), threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)

    def run(self):
        wires = [Wire(self.server.address) for _ in self.paths]
        while not self.ended.wait(self.interval):
            for wire, path in zip(wires, self.paths):
                began = time.monotonic()
                wire.send(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n")
                self.statuses.add((path, wire.reply()[0]))
                self.seconds.append(time.monotonic() - began)
        for wire in wires:
            wire.close()

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.thread.join()

    def percentile(self, share):
        return sorted(self.seconds)[int(share * len(self.seconds))] if self.seconds else 0
