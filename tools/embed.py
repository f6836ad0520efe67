#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""embed.py OUT.c SYMBOL FILE... : writes a C source that holds the files, byte for byte.

OUT.c defines `const struct embed_file SYMBOL[]` and `const size_t SYMBOL_count` (persist/embed.h), in the order
given; an entry's name is the file's name without its folder and without what follows the first dot. A line
`-- include NAME` stands for the file NAME of the same folder."""
import os
import re
import sys

INCLUDE = re.compile(rb"^-- include (\S+)\n", re.MULTILINE)


def read(path):
    with open(path, "rb") as source:
        text = source.read()
    return INCLUDE.sub(lambda line: read(os.path.join(os.path.dirname(path), line[1].decode())), text)


def literal(data):
    """The bytes as C string literals, one for each line of the file."""
    text = []
    for line in data.splitlines(keepends=True):
        out = ""
        for byte in line:
            char = chr(byte)
            if char == "\n":
                out += "\\n"
            elif char in '\\"?':
                out += "\\" + char
            elif 0x20 <= byte < 0x7F:
                out += char
            else:
                out += f"\\{byte:03o}"
        text.append(f'\t\t"{out}"')
    return "\n".join(text) or '\t\t""'


def main():
    out, symbol, paths = sys.argv[1], sys.argv[2], sys.argv[3:]
    with open(out, "w", encoding="ascii") as f:
        f.write('/* Made by tools/embed.py; do not edit. */\n#include "persist/embed.h"\n\n')
        f.write(f"extern const struct embed_file {symbol}[];\nextern const size_t {symbol}_count;\n\n")
        f.write(f"const struct embed_file {symbol}[] = {{\n")
        for path in paths:
            data = read(path)
            name = os.path.basename(path).split(".")[0]
            f.write(f'\t{{"{name}",\n{literal(data)},\n\t\t{len(data)}}},\n')
        f.write(f"}};\n\nconst size_t {symbol}_count = sizeof({symbol}) / sizeof({symbol}[0]);\n")


if __name__ == "__main__":
    main()
