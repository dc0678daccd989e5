package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"golang.org/x/term"
)

// signals turns the signals of a server into two wishes: to stop, and to read its
// files again. After the first wish to stop they have their ordinary effect again,
// so that a second one ends the process at once.
type signals struct {
	// hangup is set when SIGHUP can mean that the terminal has gone: the server was
	// started on one, and not under nohup.
	hangup bool

	reload chan os.Signal
	stopCh chan os.Signal
	done   chan struct{}
	once   sync.Once

	mu  sync.Mutex
	why string
}

var errAsked = errors.New("stopped by a signal")

func watchSignals() *signals {
	s := &signals{reload: make(chan os.Signal, 1), stopCh: make(chan os.Signal, 1), done: make(chan struct{})}
	s.hangup = !signal.Ignored(syscall.SIGHUP) && term.IsTerminal(int(os.Stdin.Fd()))
	signal.Notify(s.reload, syscall.SIGHUP)
	signal.Notify(s.stopCh, syscall.SIGTERM, syscall.SIGINT)
	go func() {
		select {
		case sig := <-s.stopCh:
			s.stopNow(sig.String())
		case <-s.done:
		}
	}()
	return s
}

// stopNow handles a signal to stop.
func (s *signals) stopNow(why string) {
	s.once.Do(func() {
		s.mu.Lock()
		s.why = why
		s.mu.Unlock()
		signal.Stop(s.stopCh)
		close(s.done)
	})
}

func (s *signals) stopping() <-chan struct{} { return s.done }

// name returns the signal that came, or "".
func (s *signals) name() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.why
}

func (s *signals) asked() bool { return s.name() != "" }

// context is one that ends with the wish to stop.
func (s *signals) context(parent context.Context) context.Context {
	ctx, cancel := context.WithCancelCause(parent)
	go func() {
		<-s.done
		cancel(errAsked)
	}()
	return ctx
}

// stop ends the handling of signals.
func (s *signals) stop() {
	s.once.Do(func() { close(s.done) })
	signal.Stop(s.stopCh)
	signal.Stop(s.reload)
}
