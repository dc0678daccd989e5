package workspace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// targetRef is the ref for the target in the private git directory. Tools take it for a branch of a
// remote repository named origin, which is where `git fetch` finds the upstream.
func (r *Record) targetRef() string { return "refs/remotes/origin/" + r.Target }

// makePrivate makes the private git directory, at the commit Start, without files.
func (w *Workspace) makePrivate(ctx context.Context, s *source) error {
	dir := w.GitDir()
	// What git init makes is little, and four runs of git would be most of the time that an overlay takes.
	branch, target := filepath.Join(dir, "refs", "heads", w.Branch), filepath.Join(dir, filepath.FromSlash(w.targetRef()))
	for _, folder := range []string{filepath.Join(dir, "objects", "pack"), filepath.Dir(branch), filepath.Dir(target)} {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return err
		}
	}
	for file, content := range map[string]string{
		branch: w.Start + "\n", target: w.Start + "\n", filepath.Join(dir, "HEAD"): "ref: refs/heads/" + w.Branch + "\n",
	} {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			return err
		}
	}
	config := w.config()
	info := filepath.Join(dir, "info")
	if err := errors.Join(
		os.WriteFile(filepath.Join(dir, "config"), []byte(config), 0o600),
		os.MkdirAll(info, 0o700), os.MkdirAll(filepath.Join(dir, "objects", "info"), 0o700),
	); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(info, "exclude"), s.exclude, 0o600); err != nil {
		return err
	}
	objects := w.store()
	if strings.ContainsAny(objects, "\n\"") {
		return problem(CodeSource, "the path %q cannot be borrowed from: move the repository", objects)
	}
	alternates := filepath.Join(dir, "objects", "info", "alternates")
	if err := os.WriteFile(alternates, []byte(objects+"\n"), 0o600); err != nil {
		return err
	}
	if shallow, err := os.ReadFile(filepath.Join(s.dir, "shallow")); err == nil {
		if err := os.WriteFile(filepath.Join(dir, "shallow"), shallow, 0o600); err != nil {
			return err
		}
	}
	if w.Copied {
		_, err := w.vault(ctx) // it has the objects
		return err
	}
	return nil
}

// config is the configuration of a private git directory that is new.
func (w *Workspace) config() string {
	version := 0
	if len(w.Start) == 64 {
		version = 1 // what has extensions
	}
	config := fmt.Sprintf(`[core]
	repositoryformatversion = %d
	filemode = true
	bare = false
	logallrefupdates = true
	worktree = %s
	# An overlay shows other inode numbers and change times than its base has.
	checkStat = minimal
	trustctime = false
[user]
	name = %s
	email = %s
[remote "origin"]
	url = %s
	fetch = %s
[branch %s]
	remote = origin
	merge = %s
[push]
	default = nothing
[gc]
	auto = 0
`, version, quoteConfig(w.Path()), quoteConfig(w.Author.Name), quoteConfig(w.Author.Email),
		quoteConfig(w.Upstream), quoteConfig("+refs/heads/"+w.Target+":"+w.targetRef()),
		quoteConfig(w.Branch), quoteConfig("refs/heads/"+w.Target))
	if len(w.Start) == 64 {
		config += "[extensions]\n\tobjectFormat = " + "sha256" + "\n"
	}
	return config + "[include]\n\tpath = " + agentConfig + "\n"
}

// quoteConfig writes a value or a subsection of a git configuration.
func quoteConfig(value string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`).Replace(value) + `"`
}

// exclude makes the private git directory ignore paths below the tree.
func (w *Workspace) exclude(paths []string) error {
	if len(paths) == 0 {
		return nil
	}
	f, err := os.OpenFile(filepath.Join(w.GitDir(), "info", "exclude"), os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	special := regexp.MustCompile(`[\\*?\[\]!# ]`)
	for _, path := range paths {
		line := "/" + special.ReplaceAllStringFunc(filepath.ToSlash(path), func(c string) string { return `\` + c })
		if _, err := f.WriteString(line + "\n"); err != nil {
			f.Close()
			return err
		}
	}
	return f.Close()
}

// Enter makes the tree available and returns what to put before a command so that it works there: the
// command is then run in the folder named, which is relative to the tree. Nothing has to be put before
// it unless the workspace is a rootless overlay.
func (w *Workspace) Enter(ctx context.Context, folder string) (prefix []string, err error) {
	if w.Kind != Overlay {
		return nil, nil
	}
	lower, err := w.lower(ctx)
	if err != nil {
		return nil, err
	}
	if w.Rootless {
		return enterPrefix(lower, w.upper(), w.work(), w.Path(), folder)
	}
	mounted, err := mountsBelow(w.Path())
	if err != nil || slices.Contains(mounted, w.Path()) {
		return nil, err
	}
	if err := mountOverlay(lower, w.upper(), w.work(), w.Path()); err != nil {
		return nil, problem(
			CodeKind, "the overlay of %s/%s cannot be mounted (%v): run the command as the user that made it", w.Repo,
			w.Name, err,
		)
	}
	return nil, nil
}

// lower is the folder that the overlay lies over, after a look at it.
func (w *Workspace) lower(ctx context.Context) (string, error) {
	b, err := w.host.openBase(ctx, w.vault, w.Repo, w.baseName())
	if errors.Is(err, os.ErrNotExist) {
		return "", (&base{dir: w.host.baseDir(w.Repo, w.baseName())}).changed("it is gone")
	}
	if err != nil {
		return "", err
	}
	return b.files(), nil
}
