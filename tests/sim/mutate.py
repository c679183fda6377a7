"""mutate.py MUTATIONS NAME SOURCE_ROOT OUT: writes the file that the mutation changes, changed."""
import pathlib
import sys


def parts(block):
    """The text to be replaced and what replaces it."""
    lines = block.splitlines()
    return ["\n".join(line[1:] for line in lines if line.startswith(mark)) for mark in "-+"]


def main():
    mutations, name, root, out = sys.argv[1:]
    blocks = pathlib.Path(mutations).read_text().split("\n## ")[1:]
    block = next(block for block in blocks if block.split()[0] == name)
    path = block.split()[1]
    source = pathlib.Path(root, path).read_text()
    old, new = parts(block)
    if source.count(old) != 1:
        sys.exit(f"mutation {name}: its text stands {source.count(old)} times in {path}, expected once")
    pathlib.Path(out).write_text(source.replace(old, new))


main()
