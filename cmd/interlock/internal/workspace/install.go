package workspace

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/cmd/interlock/internal/settings"
	checkout "github.com/interlockdev/interlock/hook/place"
	"github.com/interlockdev/interlock/workspace"
)

// hookCommand is how the handlers of ours begin.
const hookCommand = "interlock workspace hook claude-code"

// hookEvents are the events that are handled, with the seconds that Claude Code waits.
var hookEvents = []struct {
	name    string
	seconds int
}{{"WorktreeCreate", 600}, {"WorktreeRemove", 60}}

// handler is an entry in the settings of Claude Code.
type handler struct {
	Type    string `json:"type"`
	Command string `json:"command"`
	Timeout int    `json:"timeout"`
}

type handlerGroup struct {
	Hooks []handler `json:"hooks"`
}

// command is what the settings run: this command with its flags.
func (c *creation) command(event string) string {
	argv := []string{hookCommand}
	add := func(flag string, values ...string) {
		for _, v := range values {
			if v != "" {
				argv = append(argv, flag, cli.Quote(v))
			}
		}
	}
	add("--root", c.root)
	if event == "WorktreeCreate" {
		add("--repo-name", c.repo)
		add("--target", c.o.Target)
		add("--include", c.o.Include...)
		add("--share", c.o.Share...)
		add("--setup", c.setup)
		if c.minFree != workspace.DefaultMinFree && os.Getenv(minFreeVariable) == "" { // the hook reads the variable
			add("--min-free", strconv.Itoa(c.minFree))
		}
	}
	return strings.Join(argv, " ")
}

// settingsFile is the file of the user, or of one person in the project of this directory.
func settingsFile(user bool) (*settings.File, error) {
	if user {
		if dir := os.Getenv("CLAUDE_CONFIG_DIR"); dir != "" {
			return settings.Open(filepath.Join(dir, "settings.json"), dir, false)
		}
		home, err := os.UserHomeDir()
		if err != nil {
			return nil, err
		}
		return settings.Open(filepath.Join(home, ".claude", "settings.json"), home, false)
	}
	project, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	if c, ok := checkout.Find(project); ok {
		project = c.Root
	}
	return settings.Open(filepath.Join(project, ".claude", "settings.local.json"), project, true)
}

// install writes the hooks into the settings of Claude Code, or removes them.
func (c *creation) install(user, remove bool) error {
	f, err := settingsFile(user)
	if err != nil {
		return err
	}
	d, err := settings.Parse(f.Path, f.Old)
	if err != nil {
		return err
	}
	for _, e := range hookEvents {
		if err := d.Keep(
			func(element []byte) ([]byte, bool) { return element, !ours(element) }, "hooks", e.name,
		); err != nil {
			return err
		}
		if remove {
			if err := d.Clear(nil, "hooks", e.name); err != nil {
				return err
			}
			continue
		}
		elements, err := d.Elements("hooks", e.name)
		if err != nil {
			return err
		}
		if len(elements) > 0 {
			return cli.Usagef(
				"%s has a hook for %s already, and Claude Code makes one worktree of each: remove it first", cli.Clean(
					f.Path,
				), e.name,
			)
		}
		group := handlerGroup{[]handler{{"command", c.command(e.name), e.seconds}}}
		if err := d.Append(group, "hooks", e.name); err != nil {
			return err
		}
	}
	if remove {
		if err := d.Clear(nil, "hooks"); err != nil {
			return err
		}
	}
	f.New = d.Bytes()
	if remove && d.Bare() {
		f.New = nil
	}
	if !f.Changed() {
		c.a.Say("unchanged: %s\n", cli.Clean(f.Path))
		return nil
	}
	if err := f.Write(); err != nil {
		return err
	}
	word := "installed in"
	if remove {
		word = "removed from"
	}
	c.a.Say("%s: %s\n", word, cli.Clean(f.Path))
	return nil
}

// ours reports whether a group of handlers has one of ours.
func ours(element []byte) bool {
	var g handlerGroup
	return json.Unmarshal(element, &g) == nil && slices.ContainsFunc(g.Hooks, func(h handler) bool {
		return strings.HasPrefix(h.Command, hookCommand)
	})
}
