package hooks

import (
	"crypto/subtle"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/cmd/interlock/internal/settings"
	"github.com/interlockdev/interlock/hook/place"
	"github.com/interlockdev/interlock/internal/home"
	"github.com/interlockdev/interlock/internal/loopback"
)

// scope is the owner of a settings file.
type scope string

const (
	ownScope    scope = "own"    // of one person in a project
	sharedScope scope = "shared" // of all people in a project
	userScope   scope = "user"   // of one person in all projects
)

// options are the settings of an installation.
type options struct {
	parameters
	url        string // of the first server
	servers    int
	credential bool // it is in INTERLOCK_CREDENTIAL
	filed      bool // it is in a file, or certificates are
	namespace  string
}

// optionsOf are the options for the server that the flags name.
func optionsOf(a *cli.App, m *modes) (*options, error) {
	p, err := m.options()
	if err != nil {
		return nil, err
	}
	variable := os.Getenv("INTERLOCK_CREDENTIAL")
	inVariable := variable != "" && subtle.ConstantTimeCompare([]byte(a.Server.Credential), []byte(variable)) == 1
	return &options{
		parameters: p,
		url:        a.Server.Bases[0].String(),
		servers:    len(a.Server.Bases),
		credential: inVariable,
		filed:      a.Server.Credential != "" && !inVariable || a.Server.CAFile != "",
		namespace:  a.Server.Namespace,
	}, nil
}

// direct reports whether a harness can call the server itself: one on this machine, which asks for no credential and
// so looks where a file is. Any other one hears that from interlock-hook.
func (o *options) direct() bool {
	u, err := url.Parse(o.url)
	if err != nil || o.servers != 1 || o.filed || o.credential {
		return false
	}
	return loopback.Is(u.Hostname())
}

// strict reports whether an event is refused when no server can be asked.
func (o *options) strict(e event) bool { return o.mode == "strict" && e.before }

// address is the URL of an event.
func (o *options) address(harness string, e event) string {
	address := o.url + "/v1/hooks/" + harness
	if query := o.query(e); query != "" {
		address += "?" + query
	}
	return address
}

// where is the flags that select the file.
type where struct {
	project, user, shared bool
}

func (w *where) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.BoolVar(&w.project, "project", false, "the settings of the project of this directory (default)")
	f.BoolVar(&w.user, "user", false, "your settings for all projects")
	f.BoolVar(
		&w.shared,
		"shared",
		false,
		"the project's settings that are committed, where there are others (claude-code)",
	)
	cmd.MarkFlagsMutuallyExclusive("project", "user")
	cmd.MarkFlagsMutuallyExclusive("shared", "user")
}

// scope is the scope that the flags name.
func (w *where) scope(h *harness) (scope, error) {
	switch {
	case w.user:
		return userScope, nil
	case w.shared && h.own == "":
		return "", cli.Usagef("--shared: %s has one settings file in a project, which is the shared one", h.name)
	case w.shared || h.own == "":
		return sharedScope, nil
	}
	return ownScope, nil
}

// projectDir is the top of the checkout of the present directory, else that directory.
func projectDir() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	if c, ok := place.Find(dir); ok {
		return c.Root, nil
	}
	return dir, nil
}

// shown is a path as a person reads it: relative below the present directory, with ~ below the home.
func shown(path string) string {
	if dir, err := os.Getwd(); err == nil {
		if rel, err := filepath.Rel(
			dir,
			path,
		); err == nil && rel != ".." &&
			!strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
			return rel
		}
	}
	if home, err := os.UserHomeDir(); err == nil {
		if rel, ok := strings.CutPrefix(path, filepath.Clean(home)+string(filepath.Separator)); ok {
			return filepath.Join("~", rel)
		}
	}
	return path
}

// serverOf is what a hook needs to reach the server that the flags name.
func serverOf(a *cli.App) (home.Hook, error) {
	h := home.Hook{URL: strings.Join(a.Server.URLs(), ","), Namespace: a.Server.Namespace}
	for _, f := range []struct{ from, to *string }{
		{&a.Server.CredentialFile, &h.CredentialFile}, {&a.Server.CAFile, &h.CAFile},
	} {
		if *f.from == "" {
			continue
		}
		var err error
		if *f.to, err = filepath.Abs(*f.from); err != nil {
			return h, err
		}
	}
	if h.CredentialFile == "" {
		h.Credential = a.Server.Credential
	}
	return h, nil
}

// serverFile is the file that interlock-hook reads, with the texts that it has and is to get.
type serverFile struct {
	path     string
	old, new string
}

// newServerFile plans the file for the server that the flags name. An old file that cannot be read is replaced.
func newServerFile(a *cli.App) (*serverFile, error) {
	wanted, err := serverOf(a)
	if err != nil {
		return nil, err
	}
	path, err := home.HookFile()
	if err != nil {
		return nil, cli.ExitWith(cli.ExitUsage, err)
	}
	old, _ := os.ReadFile(path)
	return &serverFile{path: path, old: string(old), new: wanted.Text()}, nil
}

// changed reports whether there is something to write. No file may be planned.
func (f *serverFile) changed() bool { return f != nil && f.old != f.new }

// diff is the change as a person reads it, without credentials.
func (f *serverFile) diff() string {
	before, after := home.ParseHook(f.old), home.ParseHook(f.new)
	same := subtle.ConstantTimeCompare([]byte(before.Credential), []byte(after.Credential)) == 1
	for _, c := range []*string{&before.Credential, &after.Credential} {
		if *c != "" {
			*c = "(not shown)"
		}
	}
	if !same && before.Credential != "" && after.Credential != "" {
		after.Credential = "(another one, not shown)"
	}
	shownFile := settings.File{Path: shown(f.path), New: []byte(after.Text())}
	if f.old != "" {
		shownFile.Old = []byte(before.Text())
	}
	return shownFile.Diff()
}

// write carries the change out, and reports it.
func (f *serverFile) write(a *cli.App) error {
	if !f.changed() {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(f.path), 0o700); err != nil {
		return err
	}
	err := cli.ReplaceFile(f.path, func(next *os.File) error {
		_, err := next.WriteString(f.new)
		return err
	})
	if err == nil && !a.JSON() {
		a.Say("written: the server of the hooks, %s\n", cli.Clean(shown(f.path)))
	}
	return err
}
