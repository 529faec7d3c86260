"""Writes manual pages, in the language of man(7), from help texts and from docs/operations."""

import re
import textwrap

WIDTH = 72


def escaped(text):
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq")
    text = text.replace("`", "\\(ga").replace("^", "\\(ha").replace("~", "\\(ti")
    return "\n".join("\\&" + line if line.startswith(".") else line for line in text.split("\n"))


def filled(text, bold=()):
    """Returns a paragraph, wrapped; each of the words in `bold` is shown bold."""
    lines = textwrap.wrap(" ".join(text.split()), WIDTH, break_long_words=False,
                          break_on_hyphens=False)
    out = []
    for line in lines:
        line = escaped(line)
        for word in bold:
            line = re.sub(r"(?<![\w-])%s(?![\w-])" % re.escape(escaped(word)),
                          lambda m: "\\fB%s\\fR" % m[0], line)
        out += folded(line)
    return "\n".join(out)


def folded(line):
    """Continues a long line of the source on the next one."""
    out = []
    while len(line.encode()) > 78:
        at = line.rfind(" ", 20, 76)
        if at < 0:
            break
        out.append(line[:at + 1] + "\\")
        line = line[at + 1:]
    return [*out, line]


def as_it_is(lines):
    text = [part for line in lines for part in folded(escaped(line.rstrip()))]
    # Three blank lines in a row, or one at the end, would be a fault.
    return "\n".join([".nf", *[line or "\\&" for line in text], ".fi"])


def block(lines, items):
    """Returns one paragraph of a help text: prose, a list with a text for each item, or lines that
    stay as they are."""
    if not lines[0].startswith("  "):
        return [".PP", filled("\n".join(lines))]
    if not items or not re.match(r"  \S.*?(  \S|$)", lines[0]):
        return [".PP", ".RS 2", as_it_is([line[2:] for line in lines]), ".RE"]
    out, text = [], []

    def end():
        if text:
            out.append(filled("\n".join(text)))
            text.clear()
    column = max([len(re.match(r"  \S.*?  +", line)[0]) for line in lines
                  if re.match(r"  \S.*?  +\S", line)] or [23])
    for line in lines:
        if not line.startswith("   "):
            end()
            head, rest = line[2:column].rstrip(), line[column:].strip()
            if not rest and len(line) > column:
                head, rest = line.strip(), ""
            if len(line) > column and line[column - 1] != " ":
                head, rest = line.strip(), ""
            out += [".TP", "\\fB%s\\fR" % escaped(head)]
            if rest:
                text.append(rest)
        else:
            text.append(line.strip())
    end()
    return out


def blocks(text):
    return [found.split("\n") for found in re.split(r"\n\n+", text.strip("\n")) if found]


def head(name, section, summary, about, names=None):
    return [".\\\" Made from the program's own help; see src/cli/pages.",
            ".TH %s %s \"%s\" \"Pawl %s\" \"Pawl\"" % (escaped(name.upper()), section, about.date,
                                                  about.version),
            ".SH NAME", "%s \\- %s" % (", ".join(escaped(n) for n in names or [name]),
                                      escaped(summary))]


def see_also(pages):
    rows = [r"\fB%s\fR(%s)" % (escaped(name), section) for name, section in pages]
    return [".SH SEE ALSO", ",\n".join(rows)]


def sections(found):
    """Returns the description, the exit status and the examples of a help text. `found` has the
    paragraphs after its usage."""
    out, example, status = [], [], []
    for lines in found:
        # A colon may stand directly above its list.
        split = next((i for i in range(1, len(lines)) if lines[i].startswith("  ")
                      and not lines[0].startswith("  ")), None)
        if lines[0] == "Example:":
            example = [line[2:] for line in lines[1:]]
        elif lines[0].startswith("The exit status is"):
            status.append(lines)
        else:
            parts = [lines[:split], lines[split:]] if split else [lines]
            for part in parts:
                out += block(part, True)
    ends = [".SH EXIT STATUS"] if status else []
    for i, lines in enumerate(status):
        split = next((k for k, line in enumerate(lines) if line.startswith("  ")), len(lines))
        ends += block(lines[:split], True)[0 if i else 1:]
        if lines[split:]:
            ends += block(lines[split:], True)
    return out, ends, [".SH EXAMPLES", as_it_is(example)] if example else []


def command_page(command, about):
    usage, *rest = blocks(command.help)
    usage = [line.removeprefix("usage: ").removeprefix("       ") for line in usage]
    out = head("pawl-" + command.name, 1, command.summary, about)
    out += [".SH SYNOPSIS", as_it_is(usage), ".SH DESCRIPTION"]
    body, ends, example = sections(rest)
    out += body[1:] if body[0] == ".PP" else body
    out += [".SH OPTIONS OF ALL COMMANDS", filled(
        "All commands have the options and environment variables that pawl(1) describes: nodes, "
        "certificates, times and --json.")]
    return out + ends + example + see_also([("pawl", 1), ("pawld", 8)])


def overview_page(text, groups, common, about):
    out = head("pawl", 1, "leases and locks that a majority of nodes agrees on", about)
    out += [".SH SYNOPSIS", as_it_is(["pawl [OPTION...] COMMAND [ARG...]"]), ".SH DESCRIPTION",
            filled("Pawl grants keys to one holder at a time, or to several who share them, for a "
                   "while that the holder renews. A majority of its nodes agrees on who holds "
                   "what. This is its command; pawl COMMAND --help says what the page of a command "
                   "says."), ".SH COMMANDS"]
    for heading, rows in groups:
        out.append(".SS " + heading)
        for name, summary in rows:
            out += [".TP", "\\fBpawl\\-%s\\fR(1)" % escaped(name), filled(summary)]
    out.append(".SH OPTIONS")
    listed = text.split("Options of all commands:\n")[1].split("\n\n")
    lines = listed[0].split("\n")
    out += block([line for line in lines if line.startswith("  ")], True)
    out += [".PP", filled(next(line for line in lines if line.startswith("Durations")))]
    out.append(".SH ENVIRONMENT")
    for option in common:
        for name in re.findall(r"PAWL_[A-Z_]+", option.text):
            out += [".TP", "\\fB%s\\fR" % escaped(name),
                    "as \\fB\\-\\-%s\\fR" % escaped(option.name)]
    ends = " ".join(listed[1].split("\n")[1:])
    out += [".SH EXIT STATUS", filled(ends.removeprefix("Exit status: "))]
    names = sorted(name for _, rows in groups for name, _ in rows)
    return out + see_also([*[("pawl-" + name, 1) for name in names], ("pawl.conf", 5),
                           ("pawld", 8)])


def daemon_page(text, about):
    first, *rest = blocks(text)
    out = head("pawld", 8, "a node of Pawl", about)
    synopsis = ["pawld --config FILE", "pawld --dev [--listen ADDRESS] [--print-endpoints]",
                "pawld --check-config [FILE]"]
    out += [".SH SYNOPSIS", as_it_is(synopsis), ".SH DESCRIPTION", filled("\n".join(first))]
    out += [".SH OPTIONS"]
    for lines in rest:
        if lines[0].startswith("  "):
            out += block(lines, True)
        elif lines[0].endswith(":"):
            out += [".PP", filled(lines[0]), *block(lines[1:], True)]
        elif lines[0].startswith("To try it:"):
            out += [".SH EXAMPLES", as_it_is([line[17:] for line in lines])]
        elif lines[0].startswith("SIGTERM"):
            out.append(".SH SIGNALS AND EXIT STATUS")
            out += block(["  " + line for line in lines], True)
        else:
            out += [".PP", filled("\n".join(lines))]
    out += [".SH FILES", ".TP", "\\fB/etc/pawl/pawld.conf\\fR",
            "the configuration that the unit of the package uses"]
    return out + see_also([("pawl", 1), ("pawl.conf", 5)])


# ---- from Markdown ----

def plain(text):
    """Returns the text of a piece of Markdown, and the words that it shows as code."""
    text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", text)
    code = [word for word in re.findall(r"`([^`]+)`", text) if " " not in word]
    return re.sub(r"`([^`]*)`", r"\1", text).replace("**", "").replace("*", ""), code


def table(lines):
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    out = [".SS " + escaped(plain(rows[0][0])[0])]
    for name, default, *text in rows[2:]:
        name, reload = re.sub(r" \*\*R\*\*$", "", name), name.endswith("**R**")
        out += [".TP", "\\fB%s\\fR" % escaped(plain(name)[0])]
        sentence, code = plain("|".join(text))
        notes = [plain(default)[0] and "default " + plain(default)[0], reload and "R"]
        notes = "; ".join(note for note in notes if note)
        out.append(filled(sentence + (" (%s)" % notes if notes else ""), code))
    return out


def configuration_page(reference, about):
    out = head("pawl.conf", 5, "the configuration of a node of Pawl", about,
               ["pawl.conf", "pawld.conf"])
    out += [".SH SYNOPSIS", as_it_is(["/etc/pawl/pawld.conf"]), ".SH DESCRIPTION", filled(
        "The file has sections, [section], with lines of name = value; a comment is a line that "
        "begins with # or ;. Unknown and repeated names are errors. pawld --check-config FILE says "
        "what is wrong with a file and with what it names.")]
    for title in ("Settings", "Limits"):
        part = reference.split("\n## %s\n" % title)[1].split("\n## ")[0]
        out.append(".SH " + title.upper())
        first = True
        for lines in blocks(part):
            if lines[0].startswith("|"):
                out += table(lines)
            else:
                sentence, code = plain(" ".join(lines))
                out += ([] if first else [".PP"]) + [filled(sentence, code)]
            first = False
    out += [".SH FILES", ".TP", "\\fB/usr/share/pawl/rights.conf\\fR",
            "an example of a file of access rules"]
    return out + see_also([("pawl", 1), ("pawld", 8)])
