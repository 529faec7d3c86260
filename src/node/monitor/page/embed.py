"""embed.py OUT FILE...: writes a file of C that has the files of the page in it, with the paths
under which the admin port offers them (page_files.h)."""

import os
import sys

TYPES = {".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8",
         ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}


def main():
    out, names = sys.argv[1], sys.argv[2:]
    text = '/* Made by embed.py. */\n#include "page_files.h"\n\n'
    rows = ""
    for i, name in enumerate(names):
        with open(name, "rb") as f:
            data = f.read()
        base = os.path.basename(name)
        lines = [", ".join(map(str, data[at:at + 20])) for at in range(0, len(data), 20)]
        text += "static const uint8_t file_%d[] = {\n\t%s\n};\n\n" % (i, ",\n\t".join(lines))
        path = "/" if base == "index.html" else "/page/" + base
        rows += '\t{ "%s", "%s", file_%d, sizeof file_%d },\n' % (
            path, TYPES[os.path.splitext(base)[1]], i, i)
    text += "const struct page_file page_files[] = {\n%s};\n" % rows
    text += "const size_t page_file_count = %d;\n" % len(names)
    with open(out, "w") as f:
        f.write(text)


main()
