//go:build unix

package top

import (
	"os"
	"os/signal"
	"syscall"
)

// resizes reports changes of the terminal's size.
func resizes() (sizes <-chan os.Signal, stop func()) {
	ch := make(chan os.Signal, 1)
	signal.Notify(ch, syscall.SIGWINCH)
	return ch, func() { signal.Stop(ch) }
}
