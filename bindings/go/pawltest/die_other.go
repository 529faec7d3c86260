//go:build !linux

package pawltest

import "syscall"

func dieWithParent() *syscall.SysProcAttr { return nil }
