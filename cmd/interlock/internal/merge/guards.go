package merge

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"path"
	"strings"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/hook"
	"github.com/interlockdev/interlock/internal/api"
	"github.com/interlockdev/interlock/internal/git"
	"github.com/interlockdev/interlock/merge/merger"
	"github.com/interlockdev/interlock/merge/sequence"
)

// guards is the flags about what is looked for in submissions besides conflicts.
type guards struct {
	sequences sequence.Guard
	held      cli.Choice
	names     cli.Choice
	reverted  cli.Choice
	deletion  int
}

func (g *guards) define(cmd *cobra.Command) {
	f := cmd.Flags()
	g.held.Value, g.names.Value, g.reverted.Value = "refuse", string(merger.NamesPortable), "refuse"
	g.held.Among(
		cmd, "held", "leases of others on repo:REPO/PATH, where a submission changes PATH", "refuse", "name", "ignore",
	)
	f.Lookup("held").NoOptDefVal = "refuse"
	g.names.Among(
		cmd, "names", "which new names may be added",
		string(merger.NamesPortable), string(merger.NamesDistinct), string(merger.NamesAny),
	)
	g.reverted.Among(cmd, "reverted", "what is newer in a branch that was reverted on the target", "refuse", "ignore")
	f.IntVar(&g.deletion, "max-deletion", 50, "the `percentage` of the target's files that a submission may delete")
	f.StringArrayVar(
		&g.sequences.Folders, "sequence", nil,
		"a `folder` in which two files must not have one version, besides those with usual names; may be repeated",
	)
	f.StringArrayVar(
		&g.sequences.Except, "no-sequence", nil,
		"a `folder` with a usual name in which numbers are no versions; may be repeated",
	)
}

func (g *guards) check() error {
	if g.deletion < 1 || g.deletion > 100 {
		return cli.Usagef("--max-deletion %d: want a percentage from 1 to 100", g.deletion)
	}
	for flag, list := range map[string][]string{
		"--sequence": g.sequences.Folders, "--no-sequence": g.sequences.Except,
	} {
		for i, folder := range list {
			if list[i] = path.Clean(folder); path.IsAbs(folder) || strings.HasPrefix(list[i], "..") {
				return cli.Usagef("%s %s: want a folder of the repository, such as db/migrations", flag, cli.Quote(folder))
			}
		}
	}
	return nil
}

// config is what the merger looks for.
func (g *guards) config(c *requests, n merger.Name) merger.Guards {
	config := merger.Guards{
		Sequences: g.sequences, Names: merger.Names(g.names.Value), MaxDeletion: g.deletion,
		LandReverted: g.reverted.Value == "ignore", NameHeld: g.held.Value == "name",
	}
	if g.held.Value != "ignore" {
		config.Held = func(ctx context.Context, paths []string) ([]merger.Holder, error) {
			return holders(ctx, c, n.Repo, paths)
		}
	}
	return config
}

// holders lists the leases on paths of a repository, by others and by the author.
func holders(ctx context.Context, c *requests, repo string, paths []string) (list []merger.Holder, err error) {
	root := hook.RepoKey(repo, "")
	byKey := map[interlock.Key]string{}
	for _, p := range paths {
		// A lease on a folder covers all below it.
		for key := hook.RepoKey(repo, p); ; key = key[:strings.LastIndexByte(string(key), '/')] {
			if _, there := byKey[key]; !there {
				byKey[key] = p
			}
			if key == root {
				break
			}
		}
	}
	query := url.Values{"prefix": {string(root)}, "state": {"held"}}
	for {
		var page api.KeyList
		if err := c.get(ctx, "/v1/keys", query, &page); err != nil {
			return nil, err
		}
		for i := range page.Keys {
			key := page.Keys[i].Key
			p, ours := byKey[interlock.Key(key)]
			for j := range page.Keys[i].Holders {
				h := &page.Keys[i].Holders[j]
				if ours && h.Key == key && covers(h.Mode) {
					list = append(list, merger.Holder{Path: p, Key: string(h.Key), Agent: h.Agent, Purpose: h.Purpose})
				}
			}
		}
		if page.Cursor == "" {
			return list, nil
		}
		query.Set("cursor", page.Cursor)
	}
}

// covers reports whether a lease in a mode is on the whole of its key: an intent is on something below.
func covers(text api.Mode) bool {
	mode, _ := interlock.ParseMode(text)
	return mode == interlock.Exclusive || mode == interlock.Shared || mode == interlock.SharedIntentExclusive
}

// maxFolders bounds the folders of each kind that are logged at the start.
const maxFolders = 20

// tell logs the folders where versions are guarded, and those that look numbered and are not guarded.
func (g *guards) tell(ctx context.Context, log *slog.Logger, repo git.Repository, target merger.Ref) error {
	at, err := target.Read(ctx)
	if err != nil {
		log.Warn("the folders with numbered files are not known yet", "error", err)
		return nil
	}
	list, err := repo.Output(ctx, "ls-tree", "-r", "-z", "--name-only", "--full-tree", at.Head)
	if err != nil {
		return err
	}
	var guarded, not []string
	for _, f := range g.sequences.Survey(strings.FieldsFunc(list, func(c rune) bool { return c == 0 })) {
		if f.Guarded {
			guarded = append(guarded, f.String())
		} else {
			not = append(not, f.String())
		}
	}
	tell := func(text string, folders []string, next string) {
		if len(folders) == 0 {
			return
		}
		more := ""
		if n := len(folders) - maxFolders; n > 0 {
			more = fmt.Sprintf("; and %d more", n)
		}
		log.Info(text, "folders", strings.Join(folders[:min(len(folders), maxFolders)], "; ")+more, "change", next)
	}
	tell("versions are guarded: a second file of one comes back", guarded, "--no-sequence FOLDER")
	tell("folders that look numbered are not guarded", not, "--sequence FOLDER")
	return nil
}
