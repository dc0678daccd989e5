package journal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/cmd/interlock/internal/datadir"
	"github.com/interlockdev/interlock/internal/api"
	"github.com/interlockdev/interlock/journal"
	"github.com/interlockdev/interlock/journal/backup"
	"github.com/interlockdev/interlock/placement"
	"github.com/interlockdev/interlock/shard"
)

func newBackup(a *cli.App) *cobra.Command {
	var to string
	var force bool
	cmd := &cobra.Command{
		Use:   "backup [--to PATH]",
		Short: "Back up a running server, or check a backup",
		Long: `Back up a running server, to a file or to standard output. The backup is the state of all
namespaces as of one moment: leases, places in line, sessions, documents, tasks, patterns,
and the answers of requests that may be repeated. It has neither earlier events nor the keys
that sign fences, nor the credentials and shared files, which are files of the server's
machine.

Where the journal has several shards, PATH is a directory, with a file for each shard: each is
the state of its shard as of one moment.

The server continues meanwhile. "interlock serve --restore PATH" starts a server from a
backup. A backup is as secret as the server's journal: it needs a credential with the role
server.

Exit codes: 0 made, 2 wrong flags or a file that exists, 69 no server answered or the backup
was cut off, 77 no credential or one without the role, 1 anything else.`,
		Example: `  interlock admin backup --to interlock-$(date +%F).backup
  interlock admin backup | age -r KEY > interlock.backup.age`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			list, err := shardsNow(ctx, a)
			if err != nil {
				return err
			}
			if n := len(list.Shards); n > 1 {
				if to == "" || to == "-" {
					return cli.Usagef("the journal has %d shards, and each has a backup of its own: name a directory with --to DIR", n)
				}
				return backUpShards(ctx, a, to, list, force)
			}
			if to == "" || to == "-" {
				if f, ok := a.Out.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
					return cli.Usagef("a backup is no text for a terminal: name a file with --to FILE, or redirect the output")
				}
				h, length, err := download(ctx, a, 0, a.Out)
				if err == nil {
					fmt.Fprintf(a.Err, "backed up the state after entry %s, %s\n", h.Index, cli.Bytes(length))
				}
				return err
			}
			report, err := backUp(ctx, a, 0, to, force)
			if err != nil {
				return err
			}
			if a.JSON() {
				return a.Print(report)
			}
			a.Say("backed up the state after entry %s to %s, %s\n", report.Index, cli.Clean(to), cli.Bytes(report.Bytes))
			return nil
		},
	}
	cmd.Flags().StringVar(&to, "to", "", "the `file` or directory to write; - is standard output, and the default")
	cmd.Flags().BoolVar(&force, "force", false, "replace a file that exists")
	cmd.AddCommand(newBackupVerify(a))
	return cmd
}

// backUp writes a backup to a file that appears when it is whole and durable.
func backUp(ctx context.Context, a *cli.App, number int, path string, force bool) (r backupReport, err error) {
	if _, err := os.Lstat(path); err == nil && !force {
		return r, cli.Usagef("%s exists: choose another name, or replace it with --force", cli.Clean(path))
	}
	var h backup.Header
	var length int64
	if err := cli.ReplaceFile(path, func(next *os.File) (err error) {
		h, length, err = download(ctx, a, number, next)
		return err
	}); err != nil {
		return r, err
	}
	if err := syncDirectory(filepath.Dir(path)); err != nil {
		return r, fmt.Errorf("the backup is there, and may not outlive a crash of this machine: %w", err)
	}
	return reportOf(path, h, length), nil
}

// backUpShards writes a backup of each shard to a directory.
func backUpShards(ctx context.Context, a *cli.App, dir string, list *api.ShardList, force bool) error {
	shards := len(list.Shards)
	d, err := directoryOf(list)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if files, err := datadir.ShardBackups(dir); err == nil && len(files) > shards {
		return cli.Usagef("%s has the backups of %d shards, and there are %d: choose another directory",
			cli.Clean(dir), len(files), shards)
	}
	var reports []backupReport
	total := int64(0)
	for n := range shards {
		r, err := backUp(ctx, a, n, filepath.Join(dir, datadir.ShardBackup(n)), force)
		if err != nil {
			return err
		}
		reports, total = append(reports, r), total+r.Bytes
	}
	again, err := shardsNow(ctx, a)
	if err != nil {
		return err
	}
	if again.LastMove != list.LastMove {
		return errMoved
	}
	if err := cli.ReplaceFile(filepath.Join(dir, datadir.DirectoryBackup), func(next *os.File) error {
		_, err := next.Write(d.Encode())
		return err
	}); err != nil {
		return err
	}
	if a.JSON() {
		return a.Print(struct {
			Shards []backupReport `json:"shards"`
		}{reports})
	}
	a.Say("backed up %d shards to %s, %s\n", shards, cli.Clean(dir), cli.Bytes(total))
	return nil
}

// errMoved ends a backup in which a namespace would be in two shards, or in none.
var errMoved = errors.New("a namespace moves, or has moved since the backup began: see interlock admin shards, and " +
	"repeat the command with --force when no move is under way")

// shardsNow asks for the shards, and where namespaces are at this moment.
func shardsNow(ctx context.Context, a *cli.App) (*api.ShardList, error) {
	list := &api.ShardList{}
	r := cli.Request{Method: http.MethodGet, Path: shardsPath, Query: url.Values{"now": {"true"}}}
	_, text, err := a.API().Do(ctx, r)
	if err == nil {
		err = json.Unmarshal(text, list)
	}
	return list, err
}

// directoryOf returns the directory of shards. It is an error while a namespace moves.
func directoryOf(list *api.ShardList) (placement.Directory, error) {
	var more []string
	for _, s := range list.Shards {
		if s.Store != "" {
			more = append(more, s.Store)
		}
	}
	d, err := placement.NewDirectory(len(list.Shards) - len(more))
	if err != nil {
		return d, err
	}
	d.More = more
	if len(list.Moves) > 0 {
		return d, errMoved
	}
	d.LastMove, d.Exceptions = list.LastMove, map[string]int{}
	for _, m := range list.Moved {
		d.Exceptions[m.Namespace] = m.Shard
	}
	return d, d.Validate()
}

func syncDirectory(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	err = d.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported) {
		err = nil // this system syncs no directories
	}
	return errors.Join(err, d.Close())
}

// backupSilence is how long the server may send nothing until the backup counts as cut off.
const backupSilence = 45 * time.Second

// download writes a backup to w and checks it on the way.
func download(ctx context.Context, a *cli.App, number int, w io.Writer) (h backup.Header, length int64, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	api := a.API()
	req := cli.Request{
		Method: http.MethodGet, Path: "/v1/admin/backup", Query: url.Values{"shard": {strconv.Itoa(number)}},
	}
	res, err := api.Client.Send(ctx, req)
	if err != nil {
		return h, 0, api.Explain(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		// Once more, to read the refusal whole. It is no longer one if the reason has gone meanwhile.
		if _, _, err := api.Do(ctx, req); err != nil {
			return h, 0, err
		}
		return h, 0, cli.ExitWith(cli.ExitUnreachable, errors.New("the server was not ready: repeat the command"))
	}
	silence := time.AfterFunc(backupSilence, cancel)
	defer silence.Stop()
	p := newProgress(a, "receiving")
	out := &output{w: w, wrote: func(n int64) {
		silence.Reset(backupSilence)
		p.bytes(n)
	}}
	h, length, err = backup.Check(ctx, io.TeeReader(res.Body, out), "the backup")
	p.end()
	var damage *journal.DamageError
	switch {
	case err == nil:
		return h, length, nil
	case out.err != nil:
		return h, 0, out.err
	case errors.Is(err, journal.ErrNewer):
		return h, 0, err
	case errors.Is(err, context.Canceled), errors.As(err, &damage):
		return h, 0, cli.ExitWith(cli.ExitUnreachable, fmt.Errorf(
			"the backup was cut off after %s (%w): look at the server's log for the reason, and repeat the command",
			cli.Bytes(out.n), err,
		))
	}
	return h, 0, cli.ExitWith(cli.ExitUnreachable, err)
}

// output counts what is written, and keeps the error of the writer apart from those of the reader.
type output struct {
	w     io.Writer
	n     int64
	wrote func(n int64)
	err   error
}

func (o *output) Write(b []byte) (n int, err error) {
	n, err = o.w.Write(b)
	o.n += int64(n)
	o.err = err
	o.wrote(o.n)
	return n, err
}

// backupReport is what -o json shows of a backup.
type backupReport struct {
	File  string          `json:"file"`
	Shard int             `json:"shard"`
	Epoch interlock.Epoch `json:"epoch,string"`
	Index interlock.Index `json:"index,string"`
	Time  time.Time       `json:"time"`
	Bytes int64           `json:"bytes"`
	Head  string          `json:"head,omitempty"`
}

func reportOf(path string, h backup.Header, length int64) backupReport {
	return backupReport{File: path, Shard: h.Shard, Epoch: h.Epoch, Index: h.Index, Time: h.Time, Bytes: length}
}

func newBackupVerify(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "verify PATH",
		Short: "Check every byte of a backup",
		Long: `Check every byte of a backup: its checksums, its end, and that each entry in it can be read,
as "interlock serve --restore" does before it writes anything. It takes about as much memory
as a server with that state.

Exit codes: 0 nothing is wrong, 3 damaged or cut off, 5 a newer version made it, 1 anything
else.`,
		Example:     `  interlock admin backup verify interlock-2026-05-01.backup`,
		Args:        cli.OneArg("the file or the directory of the backup"),
		Annotations: map[string]string{cli.Offline: "true"},
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			return verifyBackup(ctx, a, args[0])
		},
	}
}

func verifyBackup(ctx context.Context, a *cli.App, path string) error {
	info, err := os.Stat(path)
	if err != nil || !info.IsDir() {
		return verifyFile(ctx, a, path)
	}
	files, err := datadir.ShardBackups(path)
	if err != nil {
		return err
	}
	if _, err := datadir.BackedUpDirectory(path, len(files)); err != nil {
		return cli.ExitWith(cli.ExitDamaged, err)
	}
	for _, f := range files {
		if err := verifyFile(ctx, a, f); err != nil {
			return err
		}
	}
	return nil
}

func verifyFile(ctx context.Context, a *cli.App, path string) error {
	f, err := backup.Open(ctx, path)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no file %s", cli.Clean(path))
	}
	if err != nil {
		return err
	}
	state, err := shard.ReadBackup(ctx, f)
	if err != nil {
		return datadir.ReplayError(err)
	}
	report := reportOf(path, f.Header, f.Length)
	report.Head = state.Head()
	if a.JSON() {
		return a.Print(report)
	}
	a.Say("backup     %s, %s\n", cli.Clean(path), cli.Bytes(report.Bytes))
	a.Say("state      after entry %s, epoch %s, shard %d\n", report.Index, report.Epoch, report.Shard)
	a.Say("made       %s\n", report.Time.Format(time.RFC3339))
	a.Say("head       %s\n", report.Head)
	a.Say("nothing is wrong\n")
	return nil
}
