package main

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
	"github.com/interlockdev/interlock/engine/record"
	"github.com/interlockdev/interlock/journal"
	"github.com/interlockdev/interlock/journal/filejournal"
	"github.com/interlockdev/interlock/shard"
)

func newJournal(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:         "journal",
		Short:       "Check or print a journal, or its head",
		Args:        noCommand,
		Annotations: map[string]string{offline: "true", textOnly: "true"},
		RunE:        func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newJournalVerify(a), newJournalDump(a), newJournalHead(a))
	return cmd
}

func newJournalDump(a *app) *cobra.Command {
	var from uint64
	var namespace string
	var answers bool
	cmd := &cobra.Command{
		Use:   "dump DIR",
		Short: "Print the events of a journal",
		Long: `Print the events of a journal, oldest first, with -o json one a line. It changes nothing and
may run beside a server. Ids of leases, tickets and sessions are left out, because they are
secrets.`,
		Example: `  interlock journal dump data --from 1041
  interlock journal dump data --only acme -o json | jq 'select(.fence == "17")'`,
		Args:        oneArg("the directory"),
		Annotations: map[string]string{offline: "true"},
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			return a.dump(ctx, args[0], interlock.Index(from), interlock.Namespace(namespace), answers)
		},
	}
	cmd.Flags().Uint64Var(&from, "from", 0, "the `index` to begin at (default: the oldest)")
	cmd.Flags().StringVar(&namespace, "only", "", "only events of this `namespace`")
	cmd.Flags().BoolVar(&answers, "answers", false, "also the records of answered requests, which make repetition safe")
	return cmd
}

func (a *app) dump(
	ctx context.Context, dir string, from interlock.Index, namespace interlock.Namespace, answers bool,
) error {
	out := bufio.NewWriterSize(a.out, 64<<10)
	file := a.out
	a.out = out
	defer func() { a.out = file }()
	entries, shown := 0, 0
	p := a.progress("reading")
	events := journalReader{shard.Joiner{Midway: true}}
	err := filejournal.Dump(ctx, dir, from, func(entry journal.Entry) error {
		if entries++; entries%4096 == 0 && shown == 0 {
			p.count(entries) // nothing else tells that it works
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		return events.read(entry, func(ev *record.Event) error {
			if namespace != "" && ev.Namespace != namespace || ev.Kind == record.Answered && !answers {
				return nil
			}
			if shown++; shown == 1 {
				p.end()
			}
			e := eventOf(ev, entry.Index, entry.Epoch)
			if a.json() {
				return a.print(&e)
			}
			_, err := fmt.Fprintln(out, e.line(a))
			return err
		})
	})
	p.end()
	err = errors.Join(err, out.Flush())
	if errors.Is(err, context.Canceled) {
		return errors.New("interrupted")
	}
	if err != nil && entries == 0 {
		return noJournal(dir, err)
	}
	if err == nil && entries == 0 && from == 0 {
		return noJournal(dir, fs.ErrNotExist)
	}
	return err
}

func noJournal(dir string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no journal in %s: name the directory that serve --data-dir was given", dir)
	}
	return err
}

// journalReader reads the events of a journal's entries, which it is handed one after
// the other.
type journalReader struct{ pieces shard.Joiner }

// next returns the entry of the step that ends with e, nil if none does: e opens an epoch, or more
// of the step follows.
func (r *journalReader) next(e journal.Entry) ([]byte, error) {
	entry, err := r.pieces.Join(e)
	if err != nil {
		return nil, exitWith(exitDamaged, err)
	}
	return entry, nil
}

// read reads the events of the step that ends with this entry.
func (r *journalReader) read(e journal.Entry, visit func(*record.Event) error) error {
	entry, err := r.next(e)
	if entry == nil {
		return err
	}
	var stopped error
	err = record.DecodeEntry(entry, func(ev *record.Event) error {
		stopped = visit(ev)
		return stopped
	})
	if err == nil || stopped != nil {
		return err
	}
	return unreadable(e.Index, err)
}

// unreadable reports where the entry is that could not be decoded. One that passes its checksum and
// is not of a newer version is damage all the same.
func unreadable(at interlock.Index, err error) error {
	err = fmt.Errorf("entry %s cannot be read: %w", at, err)
	if errors.Is(err, record.ErrNewer) {
		return err
	}
	return exitWith(exitDamaged, err)
}

// readable refuses the entries that this program cannot read, in the order of a
// journal, which may begin between two pieces.
func readable() func(journal.Entry) error {
	r := journalReader{shard.Joiner{Midway: true}}
	return func(e journal.Entry) error {
		entry, err := r.next(e)
		if entry == nil {
			return err
		}
		if err := record.CheckEntry(entry); err != nil {
			return unreadable(e.Index, err)
		}
		return nil
	}
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
	a     *app
	what  string
	live  bool
	began time.Time
	told  time.Time
	shown bool
}

func (a *app) progress(what string) *progress {
	f, ok := a.err.(*os.File)
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
		p.a.err, "\r\x1b[K%s: %s of at most %s, %s/s", p.what, bytesText(done), bytesText(max(done, total)), bytesText(rate),
	)
}

func (p *progress) count(entries int) {
	if p.due() {
		fmt.Fprintf(p.a.err, "\r\x1b[K%s: %d entries", p.what, entries)
	}
}

func (p *progress) end() {
	if p.shown {
		fmt.Fprint(p.a.err, "\r\x1b[K")
		p.shown = false
	}
}
