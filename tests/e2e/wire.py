"""A raw connection to a server: what no well-behaved client would send, and streams read as slowly as a test likes. Standard library only."""
import json
import socket
import struct


class Wire:
    def __init__(self, address, receive_bytes=None):
        self.socket = socket.socket()
        if receive_bytes:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        self.socket.settimeout(120)
        self.socket.connect(address)
        self.input = self.socket.makefile("rb")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def send(self, data):
        self.socket.sendall(data.encode() if isinstance(data, str) else data)
        return self

    def post(self, path, body, headers=""):
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self.send(f"POST {path} HTTP/1.1\r\nHost: localhost\r\n{headers}Content-Length: {len(data)}\r\n\r\n".encode() + data)

    def head(self):
        """Status and headers; (None, {}) if the server closed instead."""
        line = self.input.readline()
        if not line:
            return None, {}
        headers = {}
        while (field := self.input.readline().strip()):
            name, _, value = field.decode().partition(":")
            headers[name.lower()] = value.strip()
        return int(line.split()[1]), headers

    def reply(self):
        """Status and body of an answer that is no stream."""
        status, headers = self.head()
        return status, self.input.read(int(headers.get("content-length", 0))).decode()

    def events(self):
        """The data of a chunked stream's events, without [DONE], until it ends; its head is read. ConnectionError if it is cut."""
        text = b""
        while (size := int(self.input.readline() or b"-1", 16)) > 0:
            text += self.input.read(size)
            self.input.readline()
            *events, text = text.split(b"\n\n")
            for event in events:
                if event.startswith(b"data: ") and event != b"data: [DONE]":
                    yield json.loads(event[6:])
                elif event == b"data: [DONE]":
                    self.done = True
        if size < 0:
            raise ConnectionError("the stream was cut")

    done = False  # [DONE] has come

    def at_end(self):
        """Waits for the server to close; whether nothing more came before."""
        try:
            return self.input.read(1) == b""
        except ConnectionResetError:
            return True

    def close(self):
        self.input.close()
        self.socket.close()

    def reset(self):
        """Closes with a reset, as a process that dies does."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close()
