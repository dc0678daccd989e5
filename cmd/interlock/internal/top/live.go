package top

import (
	"context"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/term"

	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
)

// live draws on the terminal until a person quits.
func live(ctx context.Context, a *cli.App, m *model) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	hangup := make(chan os.Signal, 1)
	cli.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	sizes, stopSizes := resizes()
	defer stopSizes()

	updates := make(chan func(*model) request)
	send := func(f func(*model) request) {
		select {
		case updates <- f:
		case <-ctx.Done():
		}
	}
	s, err := openScreen(a)
	if err != nil {
		return err
	}
	defer s.close()
	ended := make(chan error, 1) // of the stream: no connection would help
	go func() {
		ended <- follow(ctx, a, func(raw []byte) error {
			o, err := decode(raw)
			if err == nil {
				send(func(m *model) request { return m.see(o) })
			}
			return err
		}, func(why error) {
			text := clean(a.Sentence(why)) + ", connecting again"
			send(func(m *model) request {
				m.stale = text
				return request{}
			})
		})
	}()
	keys := make(chan string)
	go readKeys(a.In, keys, ctx.Done())
	act := func(r request) (ends bool) {
		switch r.kind {
		case nothing:
		case quit:
			return true
		default:
			go func() {
				learned := perform(ctx, a, r)
				send(func(m *model) request {
					learned(m)
					return request{}
				})
			}()
		}
		return false
	}
	if m.view == viewTrouble {
		act(m.readEvents())
	}
	for {
		if err := s.draw(m); err != nil {
			return err
		}
		var ends bool
		select {
		case key := <-keys:
			ends = act(m.press(key))
		case f := <-updates:
			ends = act(f(m))
		case <-sizes:
			s.forget()
		case <-hangup:
			ends = true
		case err := <-ended:
			return err
		}
		if ends {
			return nil
		}
	}
}

// screen is the terminal, and what is on it.
type screen struct {
	a     *cli.App
	in    int
	state *term.State
	shown []string
	width int
}

// openScreen takes the terminal over.
func openScreen(a *cli.App) (*screen, error) {
	s := &screen{a: a, in: int(a.In.Fd())}
	var err error
	if s.state, err = term.MakeRaw(s.in); err != nil {
		return nil, err
	}
	_, err = io.WriteString(a.Out, "\x1b[?1049h\x1b[?25l") // a page of its own, without a cursor
	return s, err
}

// close leaves the terminal as openScreen found it.
func (s *screen) close() {
	_, _ = io.WriteString(s.a.Out, "\x1b[?25h\x1b[?1049l")
	_ = term.Restore(s.in, s.state)
}

// forget lets the next frame be drawn whole.
func (s *screen) forget() { s.shown = nil }

// draw writes the lines that have changed, at once.
func (s *screen) draw(m *model) error {
	width, height, err := term.GetSize(int(os.Stdout.Fd()))
	if err != nil || width < 1 || height < 1 {
		width, height = 80, 24
	}
	lines := m.frame(max(width, leastWidth), max(height, leastHeight))
	lines = lines[:min(len(lines), height)]
	var b strings.Builder
	if len(s.shown) != len(lines) || s.width != width {
		s.shown, s.width = make([]string, len(lines)), width
		b.WriteString("\x1b[2J")
	}
	for i, l := range lines {
		if text := l.fit(width).painted(s.a); text != s.shown[i] {
			b.WriteString("\x1b[" + strconv.Itoa(i+1) + ";1H" + text + "\x1b[K")
			s.shown[i] = text
		}
	}
	if b.Len() == 0 {
		return nil
	}
	_, err = io.WriteString(s.a.Out, b.String())
	return err
}
