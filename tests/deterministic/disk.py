"""What of the files in a directory would survive a power cut. The files themselves are the
kernel's. The conductor says when a file or the directory was synced. Of what was not synced, some
survives a crash, as the seed says."""

import os

BLOCK = 512


class Disk:
    """`lies` can be set: then no sync does anything, as with a disk that says too early that it has
    written."""

    def __init__(self, directory, random):
        self.directory, self.random, self.lies = directory, random, False
        os.mkdir(directory, 0o700)
        # The files of the directory by name, and what of each is on the disk. A file has a number,
        # under which it is known also after it is renamed.
        self.present, self.names, self.contents, self.number = {}, {}, {}, 0
        # The blocks of each file that a failed sync has left in memory: as with Linux, a later sync
        # says that all is well and does not write them, unless they were written again.
        self.dropped = {}
        # What was done to the directory and is not synced yet: ("create", name, number),
        # ("rename", from, to), ("unlink", name).
        self.undone = []

    def path(self, name):
        return os.path.join(self.directory, name)

    def create(self, name):
        if name not in self.present:
            self.number += 1
            self.note("create", name, self.number)

    def rename(self, one, other):
        os.rename(self.path(one), self.path(other))
        self.note("rename", one, other)

    def unlink(self, name):
        os.unlink(self.path(name))
        self.note("unlink", name)

    def note(self, *step):
        self.undone.append(step)
        self.apply(step, self.present)

    @staticmethod
    def apply(step, names):
        if step[0] == "create":
            names[step[1]] = step[2]
        elif step[0] == "rename":
            names[step[2]] = names.pop(step[1])
        else:
            names.pop(step[1])

    def read(self, name):
        with open(self.path(name), "rb") as file:
            return file.read()

    def write(self, name, offset, size):
        """To be called before a write to the file."""
        self.dropped.get(self.present[name], set()).difference_update(
            range(offset // BLOCK, (offset + size) // BLOCK + 1))

    def sync_file(self, name):
        if not self.lies and name in self.present:
            number = self.present[name]
            synced, written = self.contents.get(number, b""), self.read(name)
            for block in self.dropped.get(number, ()):
                part = slice(block * BLOCK, (block + 1) * BLOCK)
                written = written[:part.start] + synced[part].ljust(
                    len(written[part]), b"\0") + written[part.stop:]
            self.contents[number] = written

    def fail_to_sync(self, name):
        number = self.present[name]
        synced, written = self.contents.get(number, b""), self.read(name)
        self.dropped.setdefault(number, set()).update(
            at // BLOCK for at in range(0, len(written), BLOCK)
            if written[at:at + BLOCK] != synced[at:at + BLOCK])

    def sync_directory(self):
        if not self.lies:
            self.names, self.undone = dict(self.present), []

    # ---- a crash ----

    def crash(self, worst):
        """Leaves in the directory what a power cut leaves: what was synced, and some of the rest,
        or nothing of it if `worst`. Returns in words what was lost."""
        kept = 0 if worst else self.random.randrange(len(self.undone) + 1)
        lost = ["%s %s" % step[:2] for step in self.undone[kept:]]
        for step in self.undone[:kept]:
            self.apply(step, self.names)
        there = {number: self.read(name) for name, number in self.present.items()}
        left = {}
        for name, number in sorted(self.names.items()):
            synced = self.contents.get(number, b"")
            left[name] = synced if worst else self.mix(synced, there.get(number, synced))
            if left[name] != there.get(number):
                lost.append("writes to %s" % name)
        for name in os.listdir(self.directory):
            os.unlink(self.path(name))
        for name, data in left.items():
            with open(self.path(name), "wb", opener=lambda path, flags: os.open(path, flags, 0o600)
                      ) as file:
                file.write(data)
        self.present, self.undone, self.dropped = dict(self.names), [], {}
        self.contents = {number: left[name] for name, number in self.names.items()}
        return ", ".join(lost) or "nothing"

    def mix(self, synced, written):
        """Of what was written since the last sync, all, nothing, any blocks, or the beginning of it
        is on the disk."""
        kind = self.random.randrange(4)
        if synced == written or kind == 0:
            return written
        if kind == 1:
            return synced
        torn = self.random.randrange(max(len(written), len(synced)) + 1)
        if kind == 2:
            return written[:torn] + synced[torn:]
        size = self.random.choice((len(synced), len(written)))
        blocks = [self.random.choice((synced, written))[at:at + BLOCK].ljust(
            min(BLOCK, size - at), b"\0") for at in range(0, size, BLOCK)]
        return b"".join(blocks)[:size]
