"""Writes what the shells complete."""


def first_sentence(text):
    """Returns the begin of a text, for a line of a menu."""
    for end in (". ", "; ", ": ", " (", ", "):
        text = text.split(end)[0]
    return text.rstrip(".")


def kind(option):
    if option.value in ("FILE", "DIR"):
        return option.value
    return "choices" if option.choices else "other" if option.value else ""


# ---- bash ----

def names(option):
    return (["-" + option.short] if option.short else []) + ["--" + option.name]


def bash_values(commands, common):
    """Returns the cases for the word after an option, which mean the same for all commands."""
    rows = {}
    for option in [o for c in commands for o in c.options] + common:
        if kind(option) not in ("", "other"):
            what = {"FILE": "-f", "DIR": "-d"}.get(option.value, "-W '%s'"
                                                   % " ".join(option.choices))
            rows.setdefault(what, set()).add("--" + option.name)
    return "\n".join("\t%s) mapfile -t COMPREPLY < <(compgen %s -- \"$current\") && return ;;"
                     % (" | ".join(sorted(found)), what) for what, found in sorted(rows.items()))


def bash(template, commands, common):
    valued = ["--" + o.name for o in common if o.value]
    return (template
            .replace("@OPTIONS@", "\n".join(
                "\t%s) echo '%s' ;;" % (c.name, " ".join(n for o in c.options for n in names(o)))
                for c in commands if c.options))
            .replace("@WORDS@", "\n".join("\t%s) echo '%s' ;;" % (c.name, " ".join(c.words))
                                          for c in commands if c.words))
            .replace("@VALUED@", " | ".join(valued))
            .replace("@VALUES@", bash_values(commands, common))
            .replace("@COMMON@", " ".join("--" + o.name for o in common))
            .replace("@COMMANDS@", " ".join(c.name for c in commands)))


# ---- zsh ----

def zsh_text(text):
    return first_sentence(text).translate(str.maketrans({"'": "'\\''", "[": "(", "]": ")",
                                                         ":": "\\:", "\\": ""}))


def zsh_option(option):
    value = {"": "", "FILE": ":file:_files", "DIR": ":directory:_files -/",
             "choices": ":value:(%s)" % " ".join(option.choices),
             "other": ":%s: " % zsh_text(option.value)}[kind(option)]
    text = "[%s]%s" % (zsh_text(option.text), value)
    return " ".join("'%s%s'" % (name, text) for name in names(option))


def zsh(commands, common):
    lines = ["#compdef pawl", "# Made from the help of pawl; see src/cli/pages.", "",
             "_pawl_command() {", "\tlocal -a common options", "\tcommon=("]
    lines += ["\t\t" + zsh_option(option) for option in common]
    lines += ["\t)", "\tcase $1 in"]
    for c in commands:
        lines.append("\t%s)" % c.name)
        lines.append("\t\toptions=(")
        lines += ["\t\t\t" + zsh_option(option) for option in c.options]
        if c.words:
            lines.append("\t\t\t'1:word:(%s)'" % " ".join(c.words))
        lines += ["\t\t)", "\t\t;;"]
    lines += ["\tesac", "\t_arguments -s $options $common '*:argument:_default'", "}", "",
              "_pawl() {", "\tlocal -a commands", "\tlocal at=${words[(i)--]}",
              "\tif (( at < CURRENT )); then", "\t\t# The command that pawl run is to run.",
              "\t\tshift $at words", "\t\t(( CURRENT -= at ))", "\t\t_normal", "\t\treturn",
              "\tfi", "\tcommands=("]
    lines += ["\t\t'%s:%s'" % (c.name, zsh_text(c.summary)) for c in commands]
    lines += ["\t\t'help:explain a command'", "\t)", "\tif (( CURRENT == 2 )); then",
              "\t\t_describe command commands", "\t\treturn", "\tfi",
              "\tlocal command=$words[2]", "\tshift words", "\t(( CURRENT -= 1 ))",
              "\tif [[ $command == help ]]; then", "\t\t_describe command commands", "\telse",
              "\t\t_pawl_command $command", "\tfi", "}", "", '_pawl "$@"', ""]
    return "\n".join(lines)


# ---- fish ----

def fish_text(text):
    return first_sentence(text).replace("\\", "").replace("'", "\\'")


def fish_option(option, condition):
    short = " -s " + option.short if option.short else ""
    value = {"": "", "FILE": " -r -F", "DIR": " -x -a '(__fish_complete_directories)'",
             "choices": " -x -a '%s'" % " ".join(option.choices), "other": " -x"}[kind(option)]
    text = " -d '%s'" % fish_text(option.text) if option.text else ""
    return "complete -c pawl%s%s -l %s%s%s" % (condition, short, option.name, value, text)


def fish(commands, common):
    lines = ["# Made from the help of pawl; see src/cli/pages.", "complete -c pawl -f"]
    for c in commands:
        lines.append("complete -c pawl -n __fish_use_subcommand -a %s -d '%s'"
                     % (c.name, fish_text(c.summary)))
    lines += [fish_option(option, "") for option in common]
    for c in commands:
        seen = " -n '__fish_seen_subcommand_from %s'" % c.name
        lines += [fish_option(option, seen) for option in c.options]
        if c.words:
            lines.append("complete -c pawl%s -a '%s'" % (seen, " ".join(c.words)))
    return "\n".join(lines) + "\n"
