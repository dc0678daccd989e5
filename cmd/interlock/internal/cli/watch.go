package cli

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// leastInterval keeps a forgotten --watch from being a load.
const leastInterval = 100 * time.Millisecond

// Watchable adds --watch to a command that shows something: it is run again and again, on a
// terminal in place, until it is interrupted.
func Watchable(a *App, cmd *cobra.Command) {
	var watch bool
	var interval time.Duration
	once := cmd.RunE
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "show it again every --interval, until interrupted")
	DurationVar(cmd.Flags(), &interval, "interval", 2*time.Second, "the pause of --watch")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		switch {
		case !watch:
			return once(cmd, args)
		case interval < leastInterval:
			return Usagef("--interval %s: want at least %s", Span(interval), Span(leastInterval))
		}
		return a.watch(cmd, interval, func() error { return once(cmd, args) })
	}
}

// watch shows something every interval. What fails for want of a server is tried again.
func (a *App) watch(cmd *cobra.Command, interval time.Duration, show func() error) error {
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	cmd.SetContext(ctx)
	out, complain := a.Out, a.Err
	defer func() { a.Out, a.Err = out, complain }()
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for first := true; ; first = false {
		var frame bytes.Buffer
		a.Out, a.Err = &frame, &frame
		if a.JSON() {
			a.Err = complain
		}
		err := show()
		a.Out, a.Err = out, complain
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && (first || ExitCode(err) != ExitUnreachable):
			_, _ = out.Write(frame.Bytes())
			return err
		case err != nil:
			fmt.Fprintf(&frame, "interlock: %s\n", a.Sentence(err))
		}
		if err := a.draw(out, frame.String(), interval, first); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// draw writes a frame: on a terminal over the last one, as much as has room there, elsewhere below
// it.
func (a *App) draw(out io.Writer, frame string, interval time.Duration, first bool) (err error) {
	switch {
	case a.JSON():
	case !a.screen:
		if !first {
			frame = "\n" + frame
		}
	default:
		head := a.Tint(Dim, "every "+Span(interval)+", "+time.Now().Format(time.TimeOnly)+"; interrupt to end")
		lines := strings.Split(strings.TrimRight(frame, "\n"), "\n")
		if _, height, err := term.GetSize(int(os.Stdout.Fd())); err == nil && height > 4 && len(lines) > height-3 {
			more := len(lines) - height + 3
			lines = append(lines[:height-3], Count(more, "more line", "more lines"))
		}
		frame = "\x1b[H\x1b[2J" + head + "\n" + strings.Join(lines, "\n") + "\n"
	}
	_, err = io.WriteString(out, frame)
	return err
}
