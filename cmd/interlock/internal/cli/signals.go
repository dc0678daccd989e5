package cli

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"golang.org/x/term"
)

// Signals turns the signals of a server into two wishes: to stop, and to read its
// files again. After the first wish to stop they have their ordinary effect again,
// so that a second one ends the process at once.
type Signals struct {
	// Hangup is set when SIGHUP can mean that the terminal has gone: the server was
	// started on one, and not under nohup.
	Hangup bool

	Reload chan os.Signal
	stopCh chan os.Signal
	done   chan struct{}
	once   sync.Once

	mu  sync.Mutex
	why string
}

var errAsked = errors.New("stopped by a signal")

// WatchSignals takes over the signals of this process until Stop.
func WatchSignals() *Signals {
	s := &Signals{Reload: make(chan os.Signal, 1), stopCh: make(chan os.Signal, 1), done: make(chan struct{})}
	s.Hangup = !signal.Ignored(syscall.SIGHUP) && term.IsTerminal(int(os.Stdin.Fd()))
	signal.Notify(s.Reload, syscall.SIGHUP)
	signal.Notify(s.stopCh, syscall.SIGTERM, syscall.SIGINT)
	go func() {
		select {
		case sig := <-s.stopCh:
			s.StopNow(sig.String())
		case <-s.done:
		}
	}()
	return s
}

// StopNow handles a signal to stop.
func (s *Signals) StopNow(why string) {
	s.once.Do(func() {
		s.mu.Lock()
		s.why = why
		s.mu.Unlock()
		signal.Stop(s.stopCh)
		close(s.done)
	})
}

// Stopping is closed when the server must stop.
func (s *Signals) Stopping() <-chan struct{} { return s.done }

// Name returns the signal that came, or "".
func (s *Signals) Name() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.why
}

// Asked reports whether a signal asked to stop.
func (s *Signals) Asked() bool { return s.Name() != "" }

// Context is one that ends with the wish to stop.
func (s *Signals) Context(parent context.Context) context.Context {
	ctx, cancel := context.WithCancelCause(parent)
	go func() {
		<-s.done
		cancel(errAsked)
	}()
	return ctx
}

// Stop ends the handling of signals.
func (s *Signals) Stop() {
	s.once.Do(func() { close(s.done) })
	signal.Stop(s.stopCh)
	signal.Stop(s.Reload)
}
