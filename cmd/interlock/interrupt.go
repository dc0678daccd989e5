package main

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// signalError is the cause of a wait that a signal ended.
type signalError struct{ signal syscall.Signal }

func (e *signalError) Error() string { return "ended by " + signalName(e.signal) }

// cancelBySignal lets a signal end a wait. taken ends that, and returns the signal
// that was taken, if any.
func cancelBySignal(signals <-chan os.Signal, cancel context.CancelCauseFunc) (taken func() os.Signal) {
	stop, done := make(chan struct{}), make(chan os.Signal, 1)
	go func() {
		select {
		case s := <-signals:
			cancel(&signalError{s.(syscall.Signal)})
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

// notify asks for signals. One that was ignored when we began stays ignored, here
// and in the command.
func notify(ch chan<- os.Signal, signals ...os.Signal) {
	for _, s := range signals {
		if !signal.Ignored(s) {
			signal.Notify(ch, s)
		}
	}
}
