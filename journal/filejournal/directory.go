package filejournal

import (
	"errors"
	"syscall"

	"github.com/interlockdev/interlock/journal/filejournal/device"
)

type (
	directory = device.Directory
	file      = device.File
)

// noSpace reports whether err means that the disk or the quota is full.
func noSpace(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// noFiles reports whether err means that the table of open files is full: that of the process
// or that of the machine. The disk is as well as ever then.
func noFiles(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}
