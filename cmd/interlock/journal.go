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
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/journal"
	"github.com/interlockdev/interlock/journal/filejournal"
	"github.com/interlockdev/interlock/shard"
)

func newJournal(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:         "journal",
		Short:       "Check or print a journal",
		Args:        noCommand,
		Annotations: map[string]string{offline: "true", textOnly: "true"},
		RunE:        func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newJournalVerify(a), newJournalDump(a))
	return cmd
}

func newJournalVerify(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "verify DIR",
		Short: "Check every byte of a journal",
		Long: `Check every byte of a journal: checksums, the chain of entries, snapshots, and that
each entry can be read. It changes nothing and may run beside a server.

Exit codes: 0 nothing is wrong, 3 damaged, 5 a newer version wrote it, 1 there is no
journal in DIR.`,
		Args:        oneArg("the directory"),
		Annotations: map[string]string{offline: "true"},
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			return a.verify(ctx, args[0])
		},
	}
}

func (a *app) verify(ctx context.Context, dir string) error {
	total := sizeOf(dir)
	p := a.progress("checking")
	report, err := filejournal.Verify(ctx, dir, func(checked int64) { p.show(checked, total) })
	if err == nil {
		p.what, p.began = "reading", time.Now()
		var read int64
		events := journalReader{shard.Joiner{Midway: true}}
		err = filejournal.Dump(ctx, dir, 0, func(e journal.Entry) error {
			read += int64(len(e.Data))
			p.show(read, total)
			return events.read(e, func(*engine.Event) error { return nil })
		})
	}
	p.end()
	if errors.Is(err, context.Canceled) {
		return errors.New("interrupted before everything was checked")
	}
	if err != nil && report.Segments == 0 {
		return noJournal(dir, err)
	}
	if report.Tail == 0 && err == nil {
		return noJournal(dir, fs.ErrNotExist)
	}
	if a.json() {
		return errors.Join(a.print(reportJSON(dir, &report, err)), err)
	}
	a.say("journal    %s\n", dir)
	if err != nil {
		// What else the report says is of the part before the place where it stopped.
		a.say("files      %s, %s\n", count(report.Segments, "segment", "segments"), bytesText(report.Bytes))
		var damage *journal.DamageError
		switch {
		case exitCode(err) == exitNewer:
			a.say("result     %s\n", a.tint(yellow, "written by a newer version: nothing is known to be wrong"))
		case errors.As(err, &damage):
			a.say("good       up to entry %s\n", damage.Index)
			a.say("result     %s\n", a.tint(red, "damaged"))
		default:
			a.say("result     %s\n", a.tint(red, "could not be checked"))
		}
		return verifyFailed(err)
	}
	a.say("entries    %d, from index %s to %s, epoch %s\n", report.Entries, report.First, report.Tail, report.Epoch)
	a.say("files      %s, %s\n", count(report.Segments, "segment", "segments"), bytesText(report.Bytes))
	switch n := len(report.Snapshots); n {
	case 0:
		a.say("snapshots  none\n")
	default:
		a.say("snapshots  %d, the newest after entry %s\n", n, report.Snapshots[n-1])
	}
	for _, spoiled := range report.Spoiled {
		a.say("           %s: passed over\n", a.tint(yellow, spoiled.Error()))
	}
	switch {
	case report.Clean:
		a.say("end        closed in order\n")
	case report.Unfinished:
		a.say("end        an unfinished write: a running server's, or what a crash left; the next start removes it\n")
	default:
		a.say("end        not closed: a server has it open, or was killed\n")
	}
	if report.Copied {
		a.say("copy       yes: at the next start fences jump ahead\n")
	}
	a.say("result     %s\n", a.tint(green, "nothing is wrong"))
	return nil
}

func verifyFailed(err error) error {
	var damage *journal.DamageError
	if errors.As(err, &damage) {
		return fmt.Errorf("%w; nothing was changed: restore a backup and start it with --restored", err)
	}
	return err
}

func noJournal(dir string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no journal in %s: name the directory that serve --data-dir was given", dir)
	}
	return err
}

// reportJSON is the report for programs.
func reportJSON(dir string, r *filejournal.Report, err error) any {
	result, problem := "ok", ""
	if err != nil {
		result, problem = "damaged", err.Error()
		if exitCode(err) == exitNewer {
			result = "newer"
		}
	}
	spoiled := []string{}
	for _, e := range r.Spoiled {
		spoiled = append(spoiled, e.Error())
	}
	snapshots := []string{}
	for _, at := range r.Snapshots {
		snapshots = append(snapshots, at.String())
	}
	return struct {
		Dir        string          `json:"dir"`
		Result     string          `json:"result"`
		Problem    string          `json:"problem,omitempty"`
		First      interlock.Index `json:"first,string"`
		Tail       interlock.Index `json:"tail,string"`
		Epoch      interlock.Epoch `json:"epoch,string"`
		Entries    uint64          `json:"entries"`
		Segments   int             `json:"segments"`
		Bytes      int64           `json:"bytes"`
		Snapshots  []string        `json:"snapshots"`
		Spoiled    []string        `json:"spoiled_snapshots"`
		Unfinished bool            `json:"unfinished"`
		Clean      bool            `json:"closed_in_order"`
		Copied     bool            `json:"copied"`
	}{dir, result, problem, r.First, r.Tail, r.Epoch, r.Entries, r.Segments, r.Bytes, snapshots, spoiled, r.Unfinished, r.Clean, r.Copied}
}

func newJournalDump(a *app) *cobra.Command {
	var from uint64
	var namespace string
	var answers bool
	cmd := &cobra.Command{
		Use:   "dump DIR",
		Short: "Print the events of a journal",
		Long: `Print the events of a journal, oldest first, with -o json one a line. It changes
nothing and may run beside a server. Ids of leases, tickets and sessions are left
out: whoever knows one may act on it.`,
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

func (a *app) dump(ctx context.Context, dir string, from interlock.Index, namespace interlock.Namespace, answers bool) error {
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
		return events.read(entry, func(ev *engine.Event) error {
			if namespace != "" && ev.Namespace != namespace || ev.Kind == engine.EvAnswered && !answers {
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

// journalReader reads the events of a journal's entries, which it is handed one after
// the other.
type journalReader struct{ pieces shard.Joiner }

// next gives the entry of the step that ends with e, nil if none does: e opens an epoch,
// or more of the step follows.
func (r *journalReader) next(e journal.Entry) ([]byte, error) {
	entry, err := r.pieces.Join(e)
	if err != nil {
		return nil, exitWith(exitDamaged, err)
	}
	return entry, nil
}

// read reads the events of the step that ends with this entry.
func (r *journalReader) read(e journal.Entry, visit func(*engine.Event) error) error {
	entry, err := r.next(e)
	if entry == nil {
		return err
	}
	var stopped error
	err = engine.DecodeEntry(entry, func(ev *engine.Event) error {
		stopped = visit(ev)
		return stopped
	})
	if err == nil || stopped != nil {
		return err
	}
	return unreadable(e.Index, err)
}

// unreadable says where the entry is that could not be decoded. One that passes its
// checksum and is not of a newer version is damage all the same.
func unreadable(at interlock.Index, err error) error {
	err = fmt.Errorf("entry %s cannot be read: %w", at, err)
	if errors.Is(err, engine.ErrNewer) {
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
		if err := engine.CheckEntry(entry); err != nil {
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
	fmt.Fprintf(p.a.err, "\r\x1b[K%s: %s of at most %s, %s/s", p.what, bytesText(done), bytesText(max(done, total)), bytesText(rate))
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
