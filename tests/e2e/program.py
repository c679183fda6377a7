"""Runs the real program in a child process, and takes GGUF files apart so that tests can break them. Standard library only."""
import os
import pathlib
import struct
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
TINY = ROOT / "tests/golden/tiny"
WINNOW = os.environ.get("WINNOW_PROGRAM") or str(ROOT / "build/release/winnow")


class Outcome:
    def __init__(self, code, stdout, stderr, cpu_seconds):
        self.code = code  # negative: killed by that signal
        self.stdout = stdout
        self.stderr = stderr
        self.cpu_seconds = cpu_seconds

    def __str__(self):
        return f"exit code {self.code}\nstdout: {self.stdout[:2000]!r}\nstderr: {self.stderr[:2000]!r}"


# Profiles that the program makes are kept here, not among the user's. ./dev test gives all tests of a run one folder.
OWN_CACHE = None if os.environ.get("WINNOW_TEST_CACHE") else tempfile.TemporaryDirectory(prefix="winnow-cache-")
CACHE = OWN_CACHE.name if OWN_CACHE else os.environ["WINNOW_TEST_CACHE"]


def clean_environment(extra):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("WINNOW_") or k == "WINNOW_ISA"}
    environment["XDG_CACHE_HOME"] = CACHE
    environment.update(extra or {})
    return environment


def run(*args, stdin=b"", env=None):
    """Waits with wait4, which tells the processor time of this child alone: a busy machine does not count. CTest's timeout ends a child that hangs."""
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        given.write(stdin)
        given.seek(0)
        child = subprocess.Popen([WINNOW, *map(os.fspath, args)], stdin=given, stdout=out, stderr=err,
                                 env=clean_environment(env))
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        return Outcome(child.returncode, out.read(), err.read().decode("utf-8"), usage.ru_utime + usage.ru_stime)


SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
TEXT, ARRAY = 8, 9
U32, F32 = 4, 6


def packed_text(text):
    data = text if isinstance(text, bytes) else text.encode()
    return struct.pack("<Q", len(data)) + data


def packed_value(kind, value):
    return packed_text(value) if kind == TEXT else struct.pack("<" + SCALARS[kind], value)


class Gguf:
    """A model file as lists that a test can change: keys [name, type, bytes], tensors [name, dims, type, data]."""

    def __init__(self, path=None):
        self.magic, self.version, self.keys, self.tensors = b"GGUF", 3, [], []
        self.alignment = 32
        if path is not None:
            self._read(pathlib.Path(path).read_bytes())

    def _read(self, data):
        at = 24
        num_tensors, num_keys = struct.unpack_from("<QQ", data, 8)

        def text():
            nonlocal at
            size, = struct.unpack_from("<Q", data, at)
            at += 8 + size
            return data[at - size:at].decode()

        def skip(kind):
            nonlocal at
            if kind == TEXT:
                text()
            elif kind == ARRAY:
                inner, count = struct.unpack_from("<IQ", data, at)
                at += 12
                for _ in range(count):
                    skip(inner)
            else:
                at += struct.calcsize(SCALARS[kind])

        for _ in range(num_keys):
            name = text()
            kind, = struct.unpack_from("<I", data, at)
            at += 4
            begin = at
            skip(kind)
            self.keys.append([name, kind, data[begin:at]])
        infos = []
        for _ in range(num_tensors):
            name = text()
            num_dims, = struct.unpack_from("<I", data, at)
            dims = list(struct.unpack_from(f"<{num_dims}Q", data, at + 4))
            at += 4 + 8 * num_dims
            kind, offset = struct.unpack_from("<IQ", data, at)
            at += 12
            infos.append((name, dims, kind, offset))
        start = (at + 31) // 32 * 32
        ends = sorted(info[3] for info in infos)[1:] + [len(data) - start]
        for (name, dims, kind, offset), end in zip(sorted(infos, key=lambda info: info[3]), ends):
            self.tensors.append([name, dims, kind, data[start + offset:start + end]])

    def set(self, name, kind, value):
        return self.set_raw(name, kind, packed_value(kind, value))

    def set_raw(self, name, kind, data):
        for key in self.keys:
            if key[0] == name:
                key[1:] = [kind, data]
                return self
        self.keys.append([name, kind, data])
        return self

    def without_key(self, name):
        self.keys = [key for key in self.keys if key[0] != name]
        return self

    def without_tensor(self, name):
        self.tensors = [tensor for tensor in self.tensors if tensor[0] != name]
        return self

    def tensor(self, name):
        return next(tensor for tensor in self.tensors if tensor[0] == name)

    def build(self, edges=None):
        """The file's bytes; (what begins there, offset) pairs are added to `edges`."""
        out = bytearray()

        def put(what, data):
            if edges is not None:
                edges.append((what, len(out)))
            out.extend(data)

        put("magic", self.magic)
        put("version", struct.pack("<I", self.version))
        put("number of tensors", struct.pack("<Q", len(self.tensors)))
        put("number of keys", struct.pack("<Q", len(self.keys)))
        for name, kind, data in self.keys:
            put(f"key {name}", packed_text(name))
            put(f"type of {name}", struct.pack("<I", kind))
            put(f"value of {name}", data)
        offset = 0
        for name, dims, kind, data in self.tensors:
            put(f"tensor {name}", packed_text(name))
            put(f"dimensions of {name}", struct.pack(f"<I{len(dims)}Q", len(dims), *dims))
            put(f"type of {name}", struct.pack("<I", kind))
            put(f"offset of {name}", struct.pack("<Q", offset))
            offset += (len(data) + 31) // 32 * 32
        for name, _, _, data in self.tensors:
            out.extend(bytes(-len(out) % 32))
            put(f"data of {name}", data)
        return bytes(out)
