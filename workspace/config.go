package workspace

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	"github.com/interlockdev/interlock/internal/git"
)

// harmless are the settings that git may find in the private git directory, in lower case and without
// a subsection. All others could make git run a program, or read another file: filters, drivers of
// merges and diffs, hooks, helpers, rewritten URLs.
var harmless = strings.Fields(`
	core.repositoryformatversion core.filemode core.bare core.logallrefupdates core.worktree core.checkstat
	core.trustctime core.sparsecheckout core.sparsecheckoutcone core.ignorecase core.precomposeunicode core.symlinks
	core.autocrlf core.eol core.safecrlf core.abbrev core.untrackedcache core.splitindex core.preloadindex
	core.whitespace core.quotepath core.commentchar
	extensions.objectformat extensions.worktreeconfig extensions.preciousobjects
	user.name user.email user.signingkey user.useconfigonly
	branch.remote branch.merge branch.rebase branch.description branch.pushremote branch.vscode-merge-base
	remote.url remote.pushurl remote.fetch remote.push remote.tagopt remote.prune remote.skipdefaultupdate
	push.default push.autosetupremote push.followtags pull.rebase pull.ff fetch.prune fetch.prunetags fetch.parallel
	merge.conflictstyle merge.ff merge.renames merge.renamelimit merge.directoryrenames merge.log merge.stat
	rebase.autostash rebase.autosquash rebase.updaterefs rebase.stat rerere.enabled rerere.autoupdate
	gc.auto gc.pruneexpire gc.reflogexpire gc.reflogexpireunreachable gc.autodetach gc.autopacklimit
	maintenance.auto maintenance.strategy index.version index.threads index.sparse pack.threads pack.windowmemory
	diff.renames diff.renamelimit diff.algorithm diff.mnemonicprefix diff.noprefix diff.colormoved diff.context
	commit.gpgsign commit.verbose commit.cleanup tag.gpgsign tag.sort log.date log.decorate log.abbrevcommit log.follow
	status.showuntrackedfiles status.short status.branch stash.showpatch stash.showstat
	feature.manyfiles feature.experimental lfs.repositoryformatversion init.defaultbranch
`)

// checkConfig refuses a private git directory with settings that could run programs. An agent may be
// confined to its tree, and this process is not: a filter that the agent configured must not run here.
func (w *Workspace) checkConfig(ctx context.Context) error {
	outside := git.Repository{Folder: w.dir}
	for _, name := range []string{"config", "config.worktree"} {
		file := filepath.Join(w.GitDir(), name)
		if !exists(file) {
			continue
		}
		out, err := outside.Output(ctx, "config", "--file", file, "--no-includes", "--null", "--name-only", "--list")
		if err != nil {
			return problem(CodeConfig, "%s is no configuration that git can read: repair it", file)
		}
		for key := range strings.SplitSeq(strings.TrimSuffix(out, "\x00"), "\x00") {
			section, _, _ := strings.Cut(key, ".")
			setting := section + "." + key[strings.LastIndexByte(key, '.')+1:]
			if key != "" && !slices.Contains(harmless, setting) && section != "advice" && section != "color" {
				return problem(
					CodeConfig, "%s sets %s, which could make git run a program: remove it with git config --unset", file, key,
				)
			}
		}
	}
	return nil
}
