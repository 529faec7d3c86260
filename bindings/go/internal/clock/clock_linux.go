package clock

import (
	"syscall"
	"unsafe"
)

// The numbers of these clocks are the same on all architectures of Linux.
const (
	clockMonotonicRaw = 4
	clockBoottime     = 7
)

// Go's own clock stands still while the machine is suspended, so both clocks are read by system
// calls.
func now() Instant {
	return Instant{Boot: read(clockBoottime), Mono: read(clockMonotonicRaw)}
}

func read(id uintptr) int64 {
	var t syscall.Timespec
	_, _, errno := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, id,
		uintptr(unsafe.Pointer(&t)), 0)
	if errno != 0 {
		panic("pawl: a clock that is needed cannot be read: " + errno.Error())
	}
	return t.Nano()
}
