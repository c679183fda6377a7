"""What the comparisons in this folder note about the machine and the program they ran on."""

import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
MODELS = pathlib.Path(os.environ.get("WINNOW_MODELS") or pathlib.Path.home() / ".cache/winnow/models")


def say(text):
    print(text, file=sys.stderr, flush=True)


def output_of(*command):
    try:
        return subprocess.run(command, capture_output=True, text=True, cwd=ROOT).stdout.strip()
    except FileNotFoundError:
        return ""


def cpu_name():
    text = pathlib.Path("/proc/cpuinfo").read_text()
    found = re.search(r"model name\s*:\s*(.*)", text)
    return found[1].strip() if found else "unknown CPU"


def numbers(text):
    return [int(part) for part in text.split(",") if part]
