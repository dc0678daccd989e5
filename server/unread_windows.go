package server

import "net"

// isReset is not known here: a reset is seen by reading.
func isReset(*net.TCPConn) bool { return false }
