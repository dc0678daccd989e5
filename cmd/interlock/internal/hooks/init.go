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
	"github.com/interlockdev/interlock/internal/home"
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
help hooks), the entry of the MCP server (interlock mcp), and a few lines for AGENTS.md,
CLAUDE.md or GEMINI.md. Every change is shown first, and nothing is written without a yes.

--undo removes what it has added to the project; a file without other changes gets its bytes back.`,
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
	o, err := optionsOf(a, &s.modes)
	if err != nil {
		return err
	}
	w := &work{project: project, options: o, command: command, files: map[string]*draft{}}
	if s.undo {
		err = w.undo()
	} else {
		err = s.plan(w, chosen)
	}
	if err != nil {
		return err
	}
	server, err := s.server(a, w.options, chosen)
	if err != nil {
		return err
	}
	changed := w.changed()
	s.show(a, w, server, changed)
	count := len(changed)
	if server.changed() {
		count++
	}
	if count == 0 || s.dryRun {
		return nil
	}
	if !s.yes {
		if !cli.IsTerminal(a.In) || !a.OnScreen() {
			return cli.Usagef("no terminal for the question, so nothing was written: use --yes, or --dry-run to look only")
		}
		yes, err := a.Confirm(ctx, "Write "+cli.Count(count, "file", "files")+"?")
		if err != nil {
			return err
		}
		if !yes {
			a.Complain("nothing was written")
			return nil
		}
	}
	return s.write(a, server, changed, chosen)
}

// server plans the file with the server of the hooks; nil if none of the chosen needs it.
func (s *setup) server(a *cli.App, o *options, chosen []*harness) (*serverFile, error) {
	indirect := slices.ContainsFunc(chosen, func(h *harness) bool { return h.indirect(o) })
	if !indirect || s.undo || slices.Contains(s.skip, "hooks") {
		return nil, nil
	}
	return newServerFile(a)
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
	for _, name := range texts {
		reads := func(h *harness) bool { return h.reads(w.project) == name }
		if slices.ContainsFunc(chosen, reads) || name == texts[0] && exists(filepath.Join(w.project, name)) {
			if err := w.text(name, lines); err != nil {
				return err
			}
		}
	}
	return nil
}

// texts are the files with instructions that agents read.
var texts = []string{"AGENTS.md", "CLAUDE.md", "GEMINI.md"}

// reads returns which of them a harness reads in a project. For Gemini CLI it is a setting.
func (h *harness) reads(project string) string {
	switch h.name {
	case "claude-code":
		return texts[1]
	case "gemini":
		for _, s := range h.scopes() {
			if f, err := h.open(s, project); err == nil {
				if d := parsed(f.Path, f.Old); d != nil && d.Has("context", "fileName") {
					return texts[0]
				}
			}
		}
		return texts[2]
	}
	return texts[0]
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// show shows the changes.
func (s *setup) show(a *cli.App, w *work, server *serverFile, changed []*draft) {
	if a.JSON() {
		return
	}
	if server.changed() {
		a.Say("%s", server.diff())
	}
	for _, e := range changed {
		a.Say("%s", e.file.Diff())
	}
	for _, text := range w.texts {
		a.Say("%s\n", text)
	}
	if len(changed) == 0 && !server.changed() {
		a.Say("nothing to change in %s\n", cli.Clean(shown(w.project)))
	}
}

func (s *setup) write(a *cli.App, server *serverFile, changed []*draft, chosen []*harness) error {
	if err := server.write(a); err != nil {
		return err
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
		if path, err := home.HookFile(); err == nil && exists(path) {
			a.Complain("the server of the hooks stays in %s: other projects may use it", cli.Clean(shown(path)))
		}
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
	if e.doc != nil {
		return state, forget(e.file)
	}
	return state, nil
}
