package hooks

import (
	"context"
	_ "embed"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/cmd/interlock/internal/settings"
)

//go:embed lines.txt
var lines string

// setup is the command init.
type setup struct {
	modes
	harnesses, skip   []string
	yes, dryRun, undo bool
}

// The parts of a setup, as --skip names them.
var parts = []string{"hooks", "mcp", "text"}

// NewInit returns the command init.
func NewInit(a *cli.App) *cobra.Command {
	var s setup
	cmd := &cobra.Command{
		Use: "init", Short: "Set up the coding agents of a project", Args: cli.NoArgs,
		Long: `Set up the coding agents of the project of this directory. It finds those that are in use, by
their folders and by their programs on PATH, and offers three things: their hooks (see interlock
help hooks), the entry of the MCP server (interlock mcp), and a few lines for AGENTS.md and
CLAUDE.md. Every change is shown first, and nothing is written without a yes.

--undo removes what it has added; a file without other changes gets its bytes back.`,
		Example: `  interlock init
  interlock init --yes --harness claude-code,codex
  interlock init --undo`,
		RunE: func(cmd *cobra.Command, _ []string) error { return s.run(cmd.Context(), a) },
	}
	s.modes.flags(cmd)
	f := cmd.Flags()
	f.StringSliceVar(&s.harnesses, "harness", nil, "the `agents` to set up (default: those in use)")
	f.StringSliceVar(&s.skip, "skip", nil, "`parts` to leave out: "+strings.Join(parts, ", "))
	f.BoolVarP(&s.yes, "yes", "y", false, "write without a question")
	f.BoolVar(&s.dryRun, "dry-run", false, "show the changes, and write nothing")
	f.BoolVar(&s.undo, "undo", false, "remove what init has added")
	cmd.MarkFlagsMutuallyExclusive("yes", "dry-run")
	return cmd
}

func (s *setup) run(ctx context.Context, a *cli.App) error {
	for _, part := range s.skip {
		if !slices.Contains(parts, part) {
			return cli.Usagef("--skip %s: want %s", cli.Quote(cli.Clean(part)), strings.Join(parts, ", "))
		}
	}
	project, err := projectDir()
	if err != nil {
		return err
	}
	chosen, err := s.choose(project)
	if err != nil {
		return err
	}
	command, err := serverCommand(a)
	if err != nil {
		return err
	}
	w := &work{
		project: project, options: optionsOf(a, s.mode.Value, s.hold.Value), command: command, files: map[string]*draft{},
	}
	if s.undo {
		err = w.undo()
	} else {
		err = s.plan(w, chosen)
	}
	if err != nil {
		return err
	}
	changed := w.changed()
	s.show(a, w, changed)
	if len(changed) == 0 || s.dryRun {
		return nil
	}
	if !s.yes {
		if !cli.IsTerminal(a.In) || !a.OnScreen() {
			return cli.Usagef("no terminal for the question, so nothing was written: use --yes, or --dry-run to look only")
		}
		yes, err := a.Confirm(ctx, "Write "+cli.Count(len(changed), "file", "files")+"?")
		if err != nil {
			return err
		}
		if !yes {
			a.Complain("nothing was written")
			return nil
		}
	}
	return s.write(a, w, changed, chosen)
}

// choose returns the harnesses that were named, else those in use.
func (s *setup) choose(project string) (chosen []*harness, err error) {
	for _, name := range s.harnesses {
		h, err := find(name)
		if err != nil {
			return nil, err
		}
		chosen = append(chosen, h)
	}
	if len(chosen) > 0 || s.undo {
		return chosen, nil
	}
	for _, h := range harnesses {
		if h.uses(project) {
			chosen = append(chosen, h)
		}
	}
	if len(chosen) == 0 {
		return nil, cli.Usagef("no coding agent is in use here: name those to set up with --harness: %s", list())
	}
	return chosen, nil
}

// plan plans what was not left out.
func (s *setup) plan(w *work, chosen []*harness) error {
	for _, h := range chosen {
		if !slices.Contains(s.skip, "hooks") {
			if err := w.hooks(h); err != nil {
				return err
			}
		}
		if !slices.Contains(s.skip, "mcp") {
			if err := w.server(h); err != nil {
				return err
			}
		}
	}
	if slices.Contains(s.skip, "text") {
		return nil
	}
	names := []string{"AGENTS.md"}
	if slices.ContainsFunc(chosen, func(h *harness) bool { return h.name == "claude-code" }) {
		names = append(names, "CLAUDE.md") // Claude Code reads no other
		if len(chosen) == 1 && !exists(filepath.Join(w.project, "AGENTS.md")) {
			names = names[1:]
		}
	}
	for _, name := range names {
		if err := w.text(name, lines); err != nil {
			return err
		}
	}
	return nil
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// show shows the changes.
func (s *setup) show(a *cli.App, w *work, changed []*draft) {
	if a.JSON() {
		return
	}
	for _, e := range changed {
		a.Say("%s", e.file.Diff())
	}
	for _, text := range w.texts {
		a.Say("%s\n", text)
	}
	if len(changed) == 0 {
		a.Say("nothing to change in %s\n", cli.Clean(shown(w.project)))
	}
}

func (s *setup) write(a *cli.App, w *work, changed []*draft, chosen []*harness) error {
	indirect := slices.ContainsFunc(chosen, func(h *harness) bool { return h.indirect(w.options) })
	if indirect && !s.undo && !slices.Contains(s.skip, "hooks") {
		path, saved, err := saveServer(a)
		if err != nil {
			return err
		}
		if saved && !a.JSON() {
			a.Say("written: the server of the hooks, %s\n", cli.Clean(shown(path)))
		}
	}
	for _, e := range changed {
		state, err := e.write()
		if err != nil {
			return err
		}
		if a.JSON() {
			if err := a.Print(fileState{cli.Clean(e.file.Path), state}); err != nil {
				return err
			}
			continue
		}
		a.Say("%s: %s\n", state, cli.Clean(e.file.Path))
	}
	if s.undo {
		return nil
	}
	for _, h := range chosen {
		if h.next != "" && !slices.Contains(s.skip, "hooks") {
			a.Complain("%s: %s", h.name, h.next)
		}
	}
	a.Complain("interlock hooks doctor tests the hooks")
	return nil
}

// fileState is a file in the output.
type fileState struct {
	File  string `json:"file"`
	State string `json:"state"`
}

// draft is a file with all that is to change in it.
type draft struct {
	file *settings.File
	doc  *settings.Document // of a JSON file
	// touched means that an entry of ours was added or removed; had, that there was one before.
	touched, had bool
}

// write carries the changes of a file out.
func (e *draft) write() (state string, err error) {
	switch {
	case e.file.New == nil:
		state = "removed"
	case e.file.Old == nil:
		state = "created"
	default:
		state = "changed"
	}
	undone := e.doc != nil && e.file.Undone()
	if e.doc != nil && e.touched && !e.had {
		if err := e.file.Forget(); err != nil {
			return state, err
		}
		if err := e.file.Keep(); err != nil {
			return state, err
		}
	}
	if err := e.file.Write(); err != nil {
		return state, err
	}
	if undone {
		return state, e.file.Forget()
	}
	return state, nil
}
