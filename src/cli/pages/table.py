"""The commands of pawl with their options and words, read from the help that pawl prints itself."""

import dataclasses
import re
import subprocess

# `pawl help` lists no command that is for few; these have a help and a page nevertheless.
UNLISTED = ["can", "redis-script"]
COMMON = "Options of all commands:"


@dataclasses.dataclass
class Option:
    name: str
    short: str
    # "" means that it takes no value; "FILE", "DIR", "held|free", "DURATION", ...
    value: str
    text: str

    @property
    def choices(self):
        return self.value.split("|") if "|" in self.value else []


@dataclasses.dataclass
class Command:
    name: str
    summary: str
    help: str
    options: list
    # The words that may follow the command's name, such as those of pawl cluster.
    words: list


def said(program, *arguments):
    return subprocess.run([program, *arguments], check=True, capture_output=True, text=True).stdout


def listed_options(text):
    """Returns the options of a list: `  -E, --name VALUE   text`, with the text perhaps on lines of
    its own."""
    options = []
    for line in text.splitlines():
        head = re.match(r"  (?:-(\w), )?--([a-z][a-z-]*)(?: (\S+))?(?: +(.*))?$", line)
        if head:
            options.append(Option(head[2], head[1] or "", head[3] or "", head[4] or ""))
        elif options and line.startswith(" " * 23):
            options[-1].text = (options[-1].text + " " + line.strip()).strip()
    return options


def command(program, name, summary):
    text = said(program, name, "--help").split("\n" + COMMON)[0].rstrip() + "\n"
    usage, rest = text.split("\n\n", 1)
    options = listed_options(rest)
    known = {option.name for option in options}
    for found in re.finditer(r"--([a-z][a-z-]*)(?: ([A-Z][\w,%]*|[a-z]+\|[a-z|]+))?", usage):
        if found[1] not in known:
            known.add(found[1])
            options.append(Option(found[1], "", found[2] or "", ""))
    words = re.findall(r"(?:pawl %s|\|) ([a-z][a-z-]*)(?![|\w])" % re.escape(name), usage)
    if " MODE" in usage:
        words = re.findall(r"(?m)^  ([a-z]+)  +\S", rest)
    return Command(name, summary, text, options, list(dict.fromkeys(words)))


def overview(program):
    """Returns the help of pawl itself, and the groups of its commands: (heading, [(name,
    summary)])."""
    text = said(program, "--help")
    groups = []
    for line in text.split("\n" + COMMON)[0].splitlines():
        row = re.match(r"  ([a-z][a-z-]*) +(\S.*)", line)
        if row and groups:
            groups[-1][1].append((row[1], row[2]))
        elif line.endswith(":") and not line.startswith("usage"):
            groups.append((line[:-1], []))
    return text, groups


def commands(program):
    _, groups = overview(program)
    rows = [row for _, rows in groups for row in rows]
    rows += [(name, "") for name in UNLISTED]
    found = [command(program, name, summary) for name, summary in rows]
    for one in found:
        if not one.summary:  # The first sentence of its help.
            one.summary = summary_of(one.help)
    return found


def summary_of(text):
    sentence = " ".join(text.split("\n\n")[1].split()).split(".")[0].split(",")[0]
    return sentence[0].lower() + sentence[1:]


def common_options(program):
    return listed_options(said(program, "--help").split(COMMON)[1].split("\n\n")[0])
