package journal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/cmd/interlock/internal/datadir"
	"github.com/interlockdev/interlock/engine/record"
	"github.com/interlockdev/interlock/journal"
	"github.com/interlockdev/interlock/journal/chain"
	"github.com/interlockdev/interlock/journal/filejournal"
)

func newJournalVerify(a *cli.App) *cobra.Command {
	var heads []string
	cmd := &cobra.Command{
		Use:   "verify DIR",
		Short: "Check every byte of a journal",
		Long: `Check every byte of a journal: checksums, the chain of entries, snapshots, and that
each entry can be read. It changes nothing and may run beside a server.

Checksums detect faults of a disk. Changes by a person with access to the files are detected
with a head that was published before: "interlock admin journal head" prints one. With --head
every change, addition, removal or move of an entry up to it is detected. Several heads
narrow down where.

Exit codes: 0 nothing is wrong, 3 damaged or changed, 5 a newer version wrote it, 1 there is
no journal in DIR, or a head is older than the journal can prove.`,
		Example: `  interlock admin journal verify data
  interlock admin journal verify data --head $(git tag -l --format='%(contents)' journal-2026-05-01)`,
		Args:        cli.OneArg("the directory"),
		Annotations: map[string]string{cli.Offline: "true"},
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			published, err := headsOf(heads)
			if err != nil {
				return err
			}
			return verify(ctx, a, args[0], published)
		},
	}
	cmd.Flags().StringArrayVar(
		&heads, "head", nil, "a published `INDEX:HASH` that the journal must contain; may be repeated",
	)
	return cmd
}

func verify(ctx context.Context, a *cli.App, dir string, heads []chain.Head) error {
	total := sizeOf(dir)
	p := newProgress(a, "checking")
	report, err := filejournal.Verify(ctx, dir, func(checked int64) { p.show(checked, total) })
	var proof chain.Proof
	var links *chain.Verifier
	if err == nil {
		links, err = verifierOf(ctx, dir, heads)
	}
	if err == nil {
		p.what, p.began = "reading", time.Now()
		var read int64
		events := datadir.NewReader()
		err = filejournal.Dump(ctx, dir, 0, func(e journal.Entry) error {
			read += int64(len(e.Data))
			p.show(read, total)
			links.Add(e)
			return events.Read(e, func(*record.Event) error { return nil })
		})
		if err == nil && report.Tail > 0 {
			proof, err = links.End()
			err = chainFailed(err)
		}
	}
	p.end()
	if errors.Is(err, context.Canceled) {
		return errors.New("interrupted before everything was checked")
	}
	if err != nil && report.Segments == 0 {
		return datadir.NoJournal(dir, err)
	}
	if report.Tail == 0 && err == nil {
		return datadir.NoJournal(dir, fs.ErrNotExist)
	}
	if a.JSON() {
		return errors.Join(a.Print(reportJSON(dir, &report, &proof, err)), err)
	}
	a.Say("journal    %s\n", dir)
	if err != nil {
		// The rest of the report is about the part before the place where it stopped.
		a.Say("files      %s, %s\n", cli.Count(report.Segments, "segment", "segments"), cli.Bytes(report.Bytes))
		var damage *journal.DamageError
		var tampered *chain.TamperError
		switch {
		case cli.ExitCode(err) == cli.ExitNewer:
			a.Say("result     %s\n", a.Tint(cli.Yellow, "written by a newer version: nothing is known to be wrong"))
		case errors.As(err, &damage):
			a.Say("good       up to entry %s\n", damage.Index)
			a.Say("result     %s\n", a.Tint(cli.Red, "damaged"))
		case errors.As(err, &tampered):
			sayProof(a, proof)
			a.Say("result     %s\n", a.Tint(cli.Red, "changed"))
		case errors.Is(err, chain.ErrTooOld):
			sayProof(a, proof)
			a.Say("result     %s\n", a.Tint(cli.Yellow, "not proved"))
		default:
			a.Say("result     %s\n", a.Tint(cli.Red, "could not be checked"))
		}
		return verifyFailed(err)
	}
	a.Say("entries    %d, from index %s to %s, epoch %s\n", report.Entries, report.First, report.Tail, report.Epoch)
	a.Say("files      %s, %s\n", cli.Count(report.Segments, "segment", "segments"), cli.Bytes(report.Bytes))
	switch n := len(report.Snapshots); n {
	case 0:
		a.Say("snapshots  none\n")
	default:
		a.Say("snapshots  %d, the newest after entry %s\n", n, report.Snapshots[n-1])
	}
	for _, spoiled := range report.Spoiled {
		a.Say("           %s: passed over\n", a.Tint(cli.Yellow, spoiled.Error()))
	}
	sayProof(a, proof)
	switch {
	case report.Clean:
		a.Say("end        closed in order\n")
	case report.Unfinished:
		a.Say("end        an unfinished write: a running server's, or the rest of a crash; the next start removes it\n")
	default:
		a.Say("end        not closed: a server has it open, or was killed\n")
	}
	if report.Copied {
		a.Say("copy       yes: at the next start fences jump ahead\n")
	}
	a.Say("result     %s\n", a.Tint(cli.Green, "nothing is wrong"))
	return nil
}

func verifyFailed(err error) error {
	var damage *journal.DamageError
	if errors.As(err, &damage) {
		return fmt.Errorf("%w; nothing was changed: restore a backup with interlock serve --restore FILE", err)
	}
	return err
}

// reportJSON is the report for programs.
func reportJSON(dir string, r *filejournal.Report, p *chain.Proof, err error) any {
	result, problem := "ok", ""
	if err != nil {
		result, problem = "damaged", err.Error()
		var tampered *chain.TamperError
		switch {
		case cli.ExitCode(err) == cli.ExitNewer:
			result = "newer"
		case errors.As(err, &tampered):
			result = "changed"
		case errors.Is(err, chain.ErrTooOld):
			result = "not_proved"
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
	confirmed := []string{}
	for _, h := range p.Confirmed {
		confirmed = append(confirmed, h.String())
	}
	head := ""
	if p.Head.Index > 0 {
		head = p.Head.String()
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
		Head       string          `json:"head,omitempty"`
		HeadAfter  interlock.Index `json:"head_covers_behind,string"`
		Confirmed  []string        `json:"confirmed"`
	}{
		dir, result, problem, r.First, r.Tail, r.Epoch, r.Entries, r.Segments, r.Bytes, snapshots, spoiled, r.Unfinished,
		r.Clean, r.Copied,
		head, p.From, confirmed,
	}
}
