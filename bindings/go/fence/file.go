//go:build unix && !solaris && !aix

package fence

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
)

const (
	suffix     = ".new"
	chunkBytes = 64 << 10
)

// file is the file of a store. It only grows, until it is written anew under another name and moved
// into its place. Readers and writers hold its lock (flock).
type file struct {
	path   string
	folder *os.File
	f      *os.File
	// take is called with each record, including those that other processes have written.
	take func(name string, m mark) error
	// The records before this offset have been handed out.
	readTo int64
	// Some of them may not be on disk, because another process may have died before its sync.
	unsynced bool
	// After a crash of the machine the name may lead to no file, or to the one that was there before
	// the file was written anew.
	unnamed bool
	// The disk refused to confirm something, so what is on disk is not known any more.
	failed bool
	// How many records the file has.
	records int
}

func openFile(path string, take func(string, mark) error) (*file, error) {
	folder, err := os.Open(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	return &file{path: path, folder: folder, take: take}, nil
}

func (f *file) close() {
	f.drop()
	f.folder.Close()
}

func (f *file) drop() {
	if f.f != nil {
		f.f.Close()
		f.f = nil
	}
}

func (f *file) damaged() error {
	return fmt.Errorf("%s is damaged, or is not a fence file", f.path)
}

// locked calls do with the lock of the file, after what others have added was handed out.
func (f *file) locked(do func() error) error {
	if f.failed {
		return fmt.Errorf("%s: the disk has failed to confirm a write, so tokens may be lost: open the store again when the disk works", f.path)
	}
	if err := f.lockCurrent(); err != nil {
		return err
	}
	err := f.catchUp()
	if err == nil {
		err = do()
	}
	if f.f != nil {
		_ = flock(f.f, syscall.LOCK_UN)
	}
	return err
}

func flock(f *os.File, how int) error {
	for {
		if err := syscall.Flock(int(f.Fd()), how); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

// lockCurrent locks the file. While this waits for the lock, the file may be written anew; then this
// opens and locks the new file.
func (f *file) lockCurrent() error {
	if f.f != nil {
		if err := flock(f.f, syscall.LOCK_EX); err != nil {
			return err
		}
	}
	for f.f == nil || !f.isCurrent() {
		f.drop()
		if err := f.openLocked(); err != nil {
			f.drop()
			return err
		}
	}
	return nil
}

func (f *file) isCurrent() bool {
	named, err := os.Stat(f.path)
	if err != nil {
		return false
	}
	own, err := f.f.Stat()
	return err == nil && os.SameFile(named, own)
}

func (f *file) openLocked() error {
	opened, err := os.OpenFile(f.path, os.O_RDWR|os.O_CREATE|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return err
	}
	f.f = opened
	if err := flock(opened, syscall.LOCK_EX); err != nil {
		return err
	}
	state, err := opened.Stat()
	if err != nil {
		return err
	}
	if !state.Mode().IsRegular() {
		return f.damaged()
	}
	found := make([]byte, len(header))
	n, err := opened.ReadAt(found, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	found = found[:n]
	empty := bytes.Equal(found, make([]byte, n))
	switch {
	case state.Size() < int64(len(header)) && (empty || header[:n] == string(found)),
		state.Size() == int64(len(header)) && empty:
		// The file is new, or its maker died before it had written a record.
		if _, err := opened.WriteAt([]byte(header), 0); err != nil {
			return err
		}
		if err := opened.Sync(); err != nil {
			return err
		}
	case string(found) != header:
		return f.damaged()
	}
	f.readTo, f.records, f.unsynced, f.unnamed = int64(len(header)), 0, true, true
	return nil
}

// catchUp hands out what was added since.
func (f *file) catchUp() error {
	chunk := make([]byte, chunkBytes)
	for {
		n, err := f.f.ReadAt(chunk, f.readTo)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if n == 0 {
			return nil
		}
		used := 0
		for {
			name, m, size := readRecord(chunk[used:n])
			if size == 0 {
				break
			}
			if err := f.take(name, m); err != nil {
				return err
			}
			used += size
			f.readTo += int64(size)
			f.records++
			f.unsynced = true
		}
		if used > 0 {
			continue
		}
		if n == chunkBytes || !torn(chunk[:n]) {
			return f.damaged()
		}
		return f.f.Truncate(f.readTo)
	}
}

// ---- with the lock held ----

// sync returns once everything that was handed out is on disk.
func (f *file) sync() error {
	var err error
	if f.unsynced {
		err = f.f.Sync()
	}
	if err == nil && f.unnamed {
		err = f.folder.Sync()
	}
	if err != nil {
		// The system reports a failed write only once, so a later success means nothing.
		f.failed = true
		return err
	}
	f.unsynced, f.unnamed = false, false
	return nil
}

// append appends a record, and returns once it is on disk.
func (f *file) append(name string, m mark) error {
	data := appendRecord(nil, name, m)
	_, err := f.f.WriteAt(data, f.readTo)
	if err == nil {
		f.unsynced = true
		err = f.sync()
	}
	if err != nil {
		if f.f.Truncate(f.readTo) != nil {
			f.failed = true
		}
		return err
	}
	f.readTo += int64(len(data))
	f.records++
	return nil
}

// rewrite replaces the file by one that has only these marks. If the new file cannot be written, the
// old one stays in use.
func (f *file) rewrite(marks map[string]mark) error {
	fresh := f.path + suffix
	// A process may have died while it wrote this file. Only the holder of the lock writes it, so
	// nobody else does now.
	_ = os.Remove(fresh)
	made, err := os.OpenFile(fresh, os.O_RDWR|os.O_CREATE|os.O_EXCL|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil
	}
	data := whole(marks)
	if f.fill(made, data) != nil || os.Rename(fresh, f.path) != nil {
		made.Close()
		_ = os.Remove(fresh)
		return nil
	}
	f.drop()
	f.f, f.readTo, f.records = made, int64(len(data)), len(marks)
	// After a crash of the machine the name may lead to the old file, which lacks what is appended
	// to the new one.
	f.unnamed = true
	return f.sync()
}

// fill writes the new file, with the owner and the mode of the old one.
func (f *file) fill(made *os.File, data []byte) error {
	state, err := f.f.Stat()
	if err != nil {
		return err
	}
	if old, ok := state.Sys().(*syscall.Stat_t); ok {
		if int(old.Uid) != os.Getuid() || int(old.Gid) != os.Getgid() {
			if err := made.Chown(int(old.Uid), int(old.Gid)); err != nil {
				return err
			}
		}
	}
	if err := made.Chmod(state.Mode().Perm()); err != nil {
		return err
	}
	if err := flock(made, syscall.LOCK_EX); err != nil {
		return err
	}
	if _, err := made.WriteAt(data, 0); err != nil {
		return err
	}
	return made.Sync()
}
