package cli

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// SignalError is the cause of a wait that a signal ended.
type SignalError struct{ Signal syscall.Signal }

func (e *SignalError) Error() string { return "ended by " + SignalName(e.Signal) }

// CancelBySignal lets a signal end a wait. taken ends that, and returns the signal
// that was taken, if any.
func CancelBySignal(signals <-chan os.Signal, cancel context.CancelCauseFunc) (taken func() os.Signal) {
	stop, done := make(chan struct{}), make(chan os.Signal, 1)
	go func() {
		select {
		case s := <-signals:
			cancel(&SignalError{s.(syscall.Signal)})
			done <- s
		case <-stop:
			done <- nil
		}
	}()
	return sync.OnceValue(func() os.Signal {
		close(stop)
		return <-done
	})
}

// Notify asks for signals. One that was ignored when we began stays ignored, here
// and in the command.
func Notify(ch chan<- os.Signal, signals ...os.Signal) {
	for _, s := range signals {
		if !signal.Ignored(s) {
			signal.Notify(ch, s)
		}
	}
}
