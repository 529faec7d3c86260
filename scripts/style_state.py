"""style_state: what scripts/style checks of the state that the rooms of cluster/ keep: who touches
it, and that its fields say what they are."""
import os
import re

PEER_STATE = "cluster/engine/peer_state.h"
# The headers whose fields have comments; and fields that belong to the one in front of them.
COMMENTED = ("cluster/", "include/pawl/")
BELONGS = re.compile(r"\b(count|size|capacity|next|ctx)\b|_(count|size|slots|ctx|next)\b")


def members(rooms):
    """The state of a room of cluster/ is a member of struct core (cluster/engine/room_state.h).
    Returns the folder of each member. The rooms of the coordinator share one member."""
    return {"peering" if room == "cluster/peers" else os.path.basename(room): room
            for room in rooms if room.count("/") == 1}


def fields(source):
    """Yields (line, declaration, comment, place) of each field of a struct or union: the comment
    above its group or at its end, or None; and how many declarations of the group there are up to
    this one. Fields without a comment have that of their struct, if the struct has one field or
    stands inside another one."""
    blocks = []  # Each item is [is it a struct or union, its comment, its fields].
    comment, place, text, begun = None, 0, "", 0
    for number, line in enumerate(source.code, 1):
        code, said = line.strip(), source.lines[number - 1].strip()
        if not code:
            if said.startswith("/*"):
                comment, place = "", 0
            comment = f"{comment} {said}" if said and comment is not None else None
            continue
        begun = begun if text else number
        text = f"{text} {code}".strip()
        if text.endswith("{"):
            record = re.match(r"(typedef )?(struct|union)\b[^;()]*\{$", text)
            blocks.append([bool(record), comment, []])
            comment, text = None, ""
        elif code.startswith("}") and code.endswith((";", "}")) and blocks:
            _, above, found = blocks.pop()
            comment, place = above, 1
            inherits = len(found) == 1 or (blocks and blocks[-1][0])
            for at, declaration, own, nth in found:
                shared = inherits and own is None
                yield at, declaration, above if shared else own, 1 if shared else nth
            text = ""
        elif text.endswith(";") and blocks and blocks[-1][0]:
            place += not BELONGS.search(text)
            ends = "/*" in said
            blocks[-1][2].append((begun, text, said if ends else comment,
                                  1 if ends else place))
            text = ""
        elif code.endswith((";", ",")) or code.startswith("#"):
            text = "" if not (blocks and blocks[-1][0] and code.endswith(",")) else text


def check_comments(tree):
    """Each field of a struct in a header has a comment. One comment may be about fields that stand
    together under it, if it has a part for each declaration, or ends with a colon. (The count or
    the size of a field goes with it.)"""
    for s in tree.sources:
        if not s.path.startswith(COMMENTED) or not s.path.endswith(".h"):
            continue
        for number, declaration, comment, place in fields(s):
            parts = (0 if comment is None else place if comment.endswith(": */")
                     else 1 + len(re.findall(r"; |\band\b", comment)))
            if parts < place or parts == 0:
                yield f"{s.path}:{number}: nothing says what this is: {declaration}"


def peer_rooms(tree):
    """Returns the room of each field of struct peer that stands under the name of one."""
    found, room = {}, None
    source = next(s for s in tree.sources if s.path == PEER_STATE)
    inside = False
    for number, line in enumerate(source.lines, 1):
        inside = (inside or line == "struct peer {") and line != "};"
        heading = re.fullmatch(r"\t/\* ---- (\w+) ---- \*/", line)
        room = f"cluster/{heading[1]}" if heading else room
        declared = re.fullmatch(r"\t(?:struct |enum )?\w+ ([\w, ]+);", source.code[number - 1])
        if inside and room and declared:
            found |= {name: room for name in declared[1].split(", ")}
    return found


def check_state(tree, rooms):
    """The state of a room is used in that room and in cluster/node only; other rooms call the
    functions of the room. It is a member of struct core, and a part of struct peer."""
    state, of_peer = members(rooms), peer_rooms(tree)
    for s in tree.sources:
        if s.folder not in rooms or s.folder == "cluster/node":
            continue
        own = "/".join(s.folder.split("/")[:2])
        peers = "|".join(set(re.findall(r"\bstruct peer \*(?:const )?(\w+)", "\n".join(s.code))))
        of = re.compile(r"\bpeers\[(?:[^][]|\[[^][]*\])*\]\.(\w+)"
                        + (rf"|\b(?:{peers})->(\w+)" if peers else ""))
        for number, line in enumerate(s.code, 1):
            used = [("core->" + name, state.get(name, own))
                    for name in re.findall(r"\bcore->(\w+)", line)]
            names = [match[1] or match[match.lastindex] for match in of.finditer(line)]
            used += [("peer." + name, of_peer.get(name, own)) for name in names]
            for what, room in used:
                if room != own:
                    yield f"{s.path}:{number}: {what} belongs to {room}: call a function of it"
