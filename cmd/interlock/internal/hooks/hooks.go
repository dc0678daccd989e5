package hooks

import (
	"os"
	"os/exec"
	"slices"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/cmd/interlock/internal/settings"
)

// New returns the command hooks.
func New(a *cli.App) *cobra.Command {
	return cli.Group(
		"hooks", "Reserve the files that coding agents edit",
		`With hooks a coding agent asks the server before it edits a file. The file is leased to the
agent until the end of its turn; another agent that wants it waits in line, and is refused
with the reason if the wait gets long. The agents are claude-code, codex, gemini, cursor,
copilot and opencode.

Hooks are a help for agents, not a boundary: what an agent does by other ways is not seen.
The boundary is a guard, see interlock help guard.`,
		newInstall(a), newUninstall(a), newStatus(a), newDoctor(a), newSkip(a), newRelay(a),
	)
}

// complete proposes the names of harnesses.
func complete(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return names(), cobra.ShellCompDirectiveNoFileComp
}

// outcome is what a command did to a file.
type outcome struct {
	Harness string `json:"harness"`
	Scope   scope  `json:"scope"`
	File    string `json:"file"`
	State   string `json:"state"`
	DryRun  bool   `json:"dry_run,omitempty"`
}

func (o *outcome) print(a *cli.App) error {
	if a.JSON() {
		return a.Print(o)
	}
	if o.DryRun {
		return nil // the difference is shown
	}
	a.Say("%s: hooks of %s in %s\n", o.State, o.Harness, cli.Clean(shown(o.File)))
	return nil
}

type install struct {
	where
	modes
	print, dryRun bool
}

func newInstall(a *cli.App) *cobra.Command {
	var in install
	cmd := &cobra.Command{
		Use: "install HARNESS", Short: "Put the hooks into a coding agent's settings", Args: cli.OneArg("a harness"),
		Long: `Put the hooks into the settings of a coding agent: by default those of the project of this
directory. Comments, order and the entries of others stay, and a second run changes nothing.
The first content is kept beside the configuration file; uninstall returns it.

The server is that of --url and its like. For an agent that starts interlock-hook it is
written to hook.env beside the configuration file (mode 0600), with the credential.`,
		Example: `  interlock hooks install claude-code
  interlock hooks install codex --user --mode strict
  interlock hooks install gemini --dry-run`,
		ValidArgsFunction: complete,
		RunE: func(_ *cobra.Command, args []string) error {
			h, err := find(args[0])
			if err != nil {
				return err
			}
			return in.run(a, h)
		},
	}
	in.where.flags(cmd)
	in.modes.flags(cmd)
	cmd.Flags().BoolVar(&in.print, "print", false, "print the settings to add by hand, and change nothing")
	cmd.Flags().BoolVar(&in.dryRun, "dry-run", false, "print the difference, and change nothing")
	return cmd
}

func (in *install) run(a *cli.App, h *harness) error {
	s, err := in.scope(h)
	if err != nil {
		return err
	}
	project, err := projectDir()
	if err != nil {
		return err
	}
	o, err := optionsOf(a, &in.modes)
	if err != nil {
		return err
	}
	if in.print {
		return h.printed(a, o)
	}
	p, err := newPlan(h, s, project, o)
	if err != nil {
		return err
	}
	out := outcome{Harness: h.name, Scope: s, File: p.file.Path, State: "unchanged", DryRun: in.dryRun}
	if p.file.Changed() {
		out.State = "installed"
	}
	var server *serverFile
	if h.indirect(o) {
		if server, err = newServerFile(a); err != nil {
			return err
		}
	}
	if in.dryRun {
		if !a.JSON() {
			if server.changed() {
				a.Say("%s", server.diff())
			}
			a.Say("%s", p.file.Diff())
		}
		return out.print(a)
	}
	if err := server.write(a); err != nil {
		return err
	}
	if err := p.apply(); err != nil {
		return err
	}
	if err := out.print(a); err != nil {
		return err
	}
	p.advise(a)
	return nil
}

// plan is an installation that is not carried out yet.
type plan struct {
	h    *harness
	file *settings.File
	keep bool
}

func newPlan(h *harness, s scope, project string, o *options) (*plan, error) {
	f, err := h.open(s, project)
	if err != nil {
		return nil, err
	}
	keep, err := h.install(f, o)
	return &plan{h, f, keep}, err
}

// apply carries the plan out.
func (p *plan) apply() error {
	if !p.file.Changed() {
		return nil
	}
	if p.keep {
		if err := p.file.Forget(); err != nil {
			return err
		}
		if p.file.Old != nil {
			if err := p.file.Keep(); err != nil {
				return err
			}
		}
	}
	return p.file.Write()
}

// advise names what else has to be done.
func (p *plan) advise(a *cli.App) {
	if p.h.next != "" {
		a.Complain("%s", p.h.next)
	}
	if _, err := exec.LookPath("interlock-hook"); err != nil && !p.h.plugin && p.usesCommand() {
		a.Complain("interlock-hook is not on PATH, so %s cannot start it: install it beside interlock", p.h.title)
	}
}

func (p *plan) usesCommand() bool {
	d, err := settings.Parse(p.file.Path, p.file.New)
	if err != nil {
		return false
	}
	entries, err := p.h.entries(d)
	return err == nil && slices.ContainsFunc(entries, func(f found) bool { return !isURL(handlerOf(f.handler)) })
}

// indirect reports whether a harness finds the server by the file that interlock-hook reads.
func (h *harness) indirect(o *options) bool { return h.name != "claude-code" || !o.direct() }

// printed prints the settings of a harness as they are in a new file.
func (h *harness) printed(a *cli.App, o *options) error {
	var f settings.File
	if _, err := h.install(&f, o); err != nil {
		return err
	}
	return a.Content(f.New)
}

type uninstall struct {
	where
	dryRun bool
}

func newUninstall(a *cli.App) *cobra.Command {
	var un uninstall
	cmd := &cobra.Command{
		Use: "uninstall HARNESS", Short: "Take the hooks out of a coding agent's settings", Args: cli.OneArg("a harness"),
		Long: `Take the hooks out of the settings of a coding agent. If nothing else has changed since the
installation, the file has the bytes from before, and a file that was not there goes.`,
		Example:           `  interlock hooks uninstall claude-code`,
		ValidArgsFunction: complete,
		Annotations:       map[string]string{cli.Offline: "true"},
		RunE: func(_ *cobra.Command, args []string) error {
			h, err := find(args[0])
			if err != nil {
				return err
			}
			return un.run(a, h)
		},
	}
	un.where.flags(cmd)
	cmd.Flags().BoolVar(&un.dryRun, "dry-run", false, "print the difference, and change nothing")
	return cmd
}

func (un *uninstall) run(a *cli.App, h *harness) error {
	s, err := un.scope(h)
	if err != nil {
		return err
	}
	project, err := projectDir()
	if err != nil {
		return err
	}
	f, err := h.open(s, project)
	if err != nil {
		return err
	}
	if err := h.uninstall(f); err != nil {
		return err
	}
	out := outcome{Harness: h.name, Scope: s, File: f.Path, State: "absent", DryRun: un.dryRun}
	if f.Changed() {
		out.State = "removed"
	}
	switch {
	case un.dryRun && !a.JSON():
		a.Say("%s", f.Diff())
	case !un.dryRun && f.Changed():
		if err := f.Write(); err != nil {
			return err
		}
		if err := forget(f); err != nil {
			return err
		}
	}
	return out.print(a)
}

// choose returns the harness that the arguments name, or all of them.
func choose(args []string) ([]*harness, error) {
	if len(args) == 0 {
		return harnesses, nil
	}
	h, err := find(args[0])
	return []*harness{h}, err
}

func newStatus(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:               "status [HARNESS]",
		Short:             "List the settings files of coding agents, and the hooks in them",
		Args:              cli.AtMostOneArg,
		ValidArgsFunction: complete,
		Annotations:       map[string]string{cli.Offline: "true"},
		RunE: func(_ *cobra.Command, args []string) error {
			chosen, err := choose(args)
			if err != nil {
				return err
			}
			return status(a, chosen)
		},
	}
}

func status(a *cli.App, chosen []*harness) error {
	project, err := projectDir()
	if err != nil {
		return err
	}
	t := a.Table("HARNESS", "SCOPE", "STATE", "FILE")
	for _, h := range chosen {
		for _, s := range h.scopes() {
			o := h.look(s, project)
			if a.JSON() {
				if err := a.Print(o); err != nil {
					return err
				}
				continue
			}
			state := cli.Cell{Text: o.State}
			switch o.State {
			case "installed":
				state = cli.Coloured(o.State, cli.Green)
			case "unreadable":
				state = cli.Coloured(o.State, cli.Red)
			}
			t.Row(o.Harness, string(o.Scope), state, cli.Clean(shown(o.File)))
		}
	}
	if a.JSON() {
		return nil
	}
	return t.Write(a.Out)
}

// look reports how a settings file stands.
func (h *harness) look(s scope, project string) outcome {
	out := outcome{Harness: h.name, Scope: s, State: "absent"}
	out.File, _, _ = h.file(s, project)
	f, err := h.open(s, project)
	if err != nil {
		out.State = "unreadable"
		return out
	}
	handlers, err := h.handlers(f)
	switch {
	case err != nil:
		out.State = "unreadable"
	case len(handlers) > 0:
		out.State = "installed"
	case f.Old != nil:
		out.State = "none"
	}
	return out
}

// handlers lists the commands and URLs of ours in a file; for a plugin it is the text "plugin".
func (h *harness) handlers(f *settings.File) (all []found, err error) {
	if f.Old == nil {
		return nil, nil
	}
	if h.plugin {
		if len(f.Old) >= len(pluginMark) && string(f.Old[:len(pluginMark)]) == pluginMark {
			return []found{{event: "tool.execute.before"}}, nil
		}
		return nil, nil
	}
	d, err := settings.Parse(f.Path, f.Old)
	if err != nil {
		return nil, err
	}
	return h.entries(d)
}

// uses reports whether a harness is in use in a project or by this user.
func (h *harness) uses(project string) bool {
	home, _ := os.UserHomeDir()
	for _, top := range []string{project, home} {
		for _, folder := range h.folders {
			if info, err := os.Stat(top + "/" + folder); top != "" && err == nil && info.IsDir() {
				return true
			}
		}
	}
	return slices.ContainsFunc(h.programs, func(p string) bool { _, err := exec.LookPath(p); return err == nil })
}
