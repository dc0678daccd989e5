//go:build unix

package server

import (
	"net"
	"syscall"
)

// isReset reports whether the other side has reset a connection that is about to be closed.
func isReset(conn *net.TCPConn) (reset bool) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return false
	}
	_ = raw.Control(func(fd uintptr) {
		no, err := syscall.GetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_ERROR)
		reset = err == nil && no != 0
	})
	return reset
}
