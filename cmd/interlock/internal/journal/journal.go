package journal

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/cmd/interlock/internal/datadir"
	"github.com/interlockdev/interlock/cmd/interlock/internal/view"
	"github.com/interlockdev/interlock/engine/record"
	"github.com/interlockdev/interlock/journal"
	"github.com/interlockdev/interlock/journal/filejournal"
)

// NewAdmin returns the command admin, with the command that fills a journal from a backup.
func NewAdmin(a *cli.App, restore *cobra.Command) *cobra.Command {
	return cli.Group(
		"admin", "Back up a server; check, print and move its journal; list its shards", "",
		newBackup(a), restore, newJournal(a), newMigrate(a), newMembers(a), newShards(a), newMove(a), newDrain(a),
	)
}

func newJournal(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:         "journal",
		Short:       "Check or print a journal, or its head",
		Args:        cli.NoCommand,
		Annotations: map[string]string{cli.Offline: "true", cli.TextOnly: "true"},
		RunE:        func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newJournalVerify(a), newJournalDump(a), newJournalHead(a))
	return cmd
}

func newJournalDump(a *cli.App) *cobra.Command {
	var from uint64
	var namespace string
	var answers bool
	cmd := &cobra.Command{
		Use:   "dump DIR",
		Short: "Print the events of a journal",
		Long: `Print the events of a journal, oldest first, with -o json one a line. It changes nothing and
may run beside a server. Ids of leases, tickets and sessions are left out, because they are
secrets.`,
		Example: `  interlock admin journal dump data --from 1041
  interlock admin journal dump data --only acme -o json | jq 'select(.fence == "17")'`,
		Args:        cli.OneArg("the directory"),
		Annotations: map[string]string{cli.Offline: "true"},
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			return dump(ctx, a, args[0], interlock.Index(from), interlock.Namespace(namespace), answers)
		},
	}
	cmd.Flags().Uint64Var(&from, "from", 0, "the `index` to begin at (default: the oldest)")
	cmd.Flags().StringVar(&namespace, "only", "", "only events of this `namespace`")
	cmd.Flags().BoolVar(&answers, "answers", false, "also the records of answered requests, which make repetition safe")
	return cmd
}

func dump(
	ctx context.Context, a *cli.App, dir string, from interlock.Index, namespace interlock.Namespace, answers bool,
) error {
	out := bufio.NewWriterSize(a.Out, 64<<10)
	file := a.Out
	a.Out = out
	defer func() { a.Out = file }()
	entries, shown := 0, 0
	p := newProgress(a, "reading")
	events := datadir.NewReader()
	err := filejournal.Dump(ctx, dir, from, func(entry journal.Entry) error {
		if entries++; entries%4096 == 0 && shown == 0 {
			p.count(entries) // nothing else tells that it works
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		return events.Read(entry, func(ev *record.Event) error {
			if namespace != "" && ev.Namespace != namespace || ev.Kind == record.Answered && !answers {
				return nil
			}
			if shown++; shown == 1 {
				p.end()
			}
			e := view.EventOf(ev, entry.Index, entry.Epoch)
			if a.JSON() {
				return a.Print(&e)
			}
			_, err := fmt.Fprintln(out, e.Line(a))
			return err
		})
	})
	p.end()
	err = errors.Join(err, out.Flush())
	if errors.Is(err, context.Canceled) {
		return errors.New("interrupted")
	}
	if err != nil && entries == 0 {
		return datadir.NoJournal(dir, err)
	}
	if err == nil && entries == 0 && from == 0 {
		return datadir.NoJournal(dir, fs.ErrNotExist)
	}
	return err
}

// sizeOf is about how many bytes of log a directory holds, for the progress.
func sizeOf(dir string) (total int64) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && strings.HasSuffix(e.Name(), ".log") {
			total += info.Size()
		}
	}
	return total
}

// progress is one line on a terminal that is written over and over; elsewhere
// nothing is shown.
type progress struct {
	a     *cli.App
	what  string
	live  bool
	began time.Time
	told  time.Time
	shown bool
}

func newProgress(a *cli.App, what string) *progress {
	f, ok := a.Err.(*os.File)
	return &progress{a: a, what: what, live: ok && term.IsTerminal(int(f.Fd())), began: time.Now()}
}

// due lets short work pass without a word, and bounds how often the line changes.
func (p *progress) due() bool {
	now := time.Now()
	if !p.live || now.Sub(p.began) < 300*time.Millisecond || now.Sub(p.told) < 100*time.Millisecond {
		return false
	}
	p.told, p.shown = now, true
	return true
}

// show tells how much of total was done. Segments are allocated before they are
// written, so the end may come early.
func (p *progress) show(done, total int64) {
	if !p.due() {
		return
	}
	rate := int64(float64(done) / time.Since(p.began).Seconds())
	fmt.Fprintf(
		p.a.Err, "\r\x1b[K%s: %s of at most %s, %s/s", p.what, cli.Bytes(done), cli.Bytes(max(done, total)), cli.Bytes(rate),
	)
}

func (p *progress) count(entries int) {
	if p.due() {
		fmt.Fprintf(p.a.Err, "\r\x1b[K%s: %d entries", p.what, entries)
	}
}

// bytes tells how much was done where the whole is unknown.
func (p *progress) bytes(done int64) {
	if p.due() {
		rate := int64(float64(done) / time.Since(p.began).Seconds())
		fmt.Fprintf(p.a.Err, "\r\x1b[K%s: %s, %s/s", p.what, cli.Bytes(done), cli.Bytes(rate))
	}
}

func (p *progress) end() {
	if p.shown {
		fmt.Fprint(p.a.Err, "\r\x1b[K")
		p.shown = false
	}
}
