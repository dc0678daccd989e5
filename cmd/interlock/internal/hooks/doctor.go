package hooks

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/cmd/interlock/internal/settings"
)

// check is one finding of doctor.
type check struct {
	Harness string `json:"harness"`
	File    string `json:"file,omitempty"`
	Check   string `json:"check"`
	State   string `json:"state"` // ok, note or failed
	Text    string `json:"text"`
}

func newDoctor(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use: "doctor [HARNESS]", Short: "Test the installed hooks with events of their own", Args: cli.AtMostOneArg,
		Long: `Test the installed hooks. Two sessions that do not exist edit a file that does not exist, by the
very command or URL of the settings: the first is let through, the second is refused, and both
end again. What keeps a hook from running is reported, too: a program that is not on PATH, a
hook that no person has confirmed, a setting that turns hooks off, two hooks for one edit.

The exit code is 1 if a check has failed.`,
		ValidArgsFunction: complete,
		Annotations:       map[string]string{cli.Offline: "true"},
		RunE: func(cmd *cobra.Command, args []string) error {
			chosen, err := choose(args)
			if err != nil {
				return err
			}
			return doctor(cmd.Context(), a, chosen)
		},
	}
}

// visit is one run of doctor.
type visit struct {
	project string
	all     []check
}

func doctor(ctx context.Context, a *cli.App, chosen []*harness) error {
	project, err := projectDir()
	if err != nil {
		return err
	}
	v := &visit{project: project}
	for _, h := range chosen {
		for _, s := range h.scopes() {
			if err := v.file(ctx, h, s); err != nil {
				return err
			}
		}
	}
	v.double()
	if len(v.all) == 0 {
		return cli.ExitWith(
			cli.ExitFailure,
			fmt.Errorf("no hooks are installed here: interlock hooks install HARNESS does that"),
		)
	}
	return v.print(a)
}

func (v *visit) print(a *cli.App) error {
	failed := 0
	t := a.Table("HARNESS", "CHECK", "STATE", "")
	for _, c := range v.all {
		if c.State == "failed" {
			failed++
		}
		if a.JSON() {
			if err := a.Print(c); err != nil {
				return err
			}
			continue
		}
		colour := map[string]cli.Colour{"ok": cli.Green, "failed": cli.Red}[c.State]
		t.Row(c.Harness, c.Check, cli.Coloured(c.State, colour), cli.Clean(c.Text))
	}
	if !a.JSON() {
		if err := t.Write(a.Out); err != nil {
			return err
		}
	}
	if failed > 0 {
		return cli.ExitWith(cli.ExitFailure, fmt.Errorf("%s failed", cli.Count(failed, "check", "checks")))
	}
	return nil
}

// file examines one settings file.
func (v *visit) file(ctx context.Context, h *harness, s scope) error {
	add := func(name, state, format string, args ...any) {
		path, _, _ := h.file(s, v.project)
		v.all = append(v.all, check{h.name, shown(path), name, state, fmt.Sprintf(format, args...)})
	}
	f, err := h.open(s, v.project)
	if err != nil {
		add("settings", "failed", "%v", err)
		return nil
	}
	handlers, err := h.handlers(f)
	if err != nil {
		add("settings", "failed", "%v", err)
		return nil
	}
	if len(handlers) == 0 {
		return nil
	}
	add("settings", "ok", "%s", shown(f.Path))
	entry, ok := h.first(handlers)
	if !ok {
		add("settings", "failed", "no hook runs before a tool: interlock hooks install %s repairs it", h.name)
		return nil
	}
	if way := handlerOf(entry.handler); !h.plugin && !isURL(way) {
		program := strings.Trim(strings.Fields(way)[0], `"'`)
		if _, err := exec.LookPath(program); err != nil {
			add("program", "failed", "%s is not on PATH: install it beside interlock", program)
			return nil
		}
	}
	v.canaries(ctx, h, entry, add)
	v.policies(h, s, f, add)
	return nil
}

// first is the entry before a tool.
func (h *harness) first(handlers []found) (found, bool) {
	for _, f := range handlers {
		if h.plugin || f.event == h.events[0].name {
			return f, true
		}
	}
	return found{}, false
}

// canaries sends the events of two sessions.
func (v *visit) canaries(
	ctx context.Context,
	h *harness,
	entry found,
	add func(name, state, format string, args ...any),
) {
	send := h.senderOf(entry)
	try := func(event []byte) ([]byte, error) {
		ctx, cancel := context.WithTimeout(ctx, canaryLimit)
		defer cancel()
		return send(ctx, event)
	}
	path := filepath.Join(os.TempDir(), "interlock-doctor-"+cli.FreshID()+".txt")
	one, two := "doctor-"+cli.FreshID(), "doctor-"+cli.FreshID()
	answer, err := try(h.before(one, path, v.project))
	if err != nil {
		add("server", "failed", "%v", err)
		return
	}
	add("server", "ok", "it answers, and takes the credential")
	defer func() {
		for _, session := range []string{one, two} {
			if _, err := try(h.ends(session, v.project)); err != nil {
				add("end", "failed", "a made-up session did not end: %v", err)
			}
		}
	}()
	if reason, refused := refusalIn(answer); refused {
		add("allow", "failed", "an edit of a free file was refused: %s", cli.Clean(reason))
		return
	}
	add("allow", "ok", "the edit of a free file passes")
	answer, err = try(h.before(two, path, v.project))
	reason, refused := refusalIn(answer)
	warn := strings.Contains(handlerOf(entry.handler), "mode warn") ||
		strings.Contains(handlerOf(entry.handler), "mode=warn")
	switch {
	case err != nil:
		add("deny", "failed", "%v", err)
	case refused:
		add("deny", "ok", "%s", cli.Cut(cli.Clean(reason), 100))
	case warn:
		add("deny", "note", "the mode is warn, which refuses nothing")
	default:
		add("deny", "failed", "an edit of a file that another session has was let through")
	}
}

// policies looks for settings that keep the harness from running its hooks.
func (v *visit) policies(h *harness, s scope, f *settings.File, add func(name, state, format string, args ...any)) {
	switch h.name {
	case "codex":
		v.trust(h, s, add)
	case "claude-code":
		home, _ := os.UserHomeDir()
		for _, file := range []string{
			"/etc/claude-code/managed-settings.json", "/Library/Application Support/ClaudeCode/managed-settings.json",
			filepath.Join(home, ".claude", "settings.json"), filepath.Join(v.project, ".claude", "settings.json"),
			filepath.Join(v.project, ".claude", "settings.local.json"),
		} {
			claudePolicy(file, add)
		}
	case "gemini":
		var off bool
		if d := parsed(f.Path, f.Old); d != nil {
			var on bool
			ok, err := d.Get(&on, "hooksConfig", "enabled")
			off = ok && err == nil && !on
		}
		if off {
			add("policy", "failed", "%s has hooksConfig.enabled: false, so no hook runs", shown(f.Path))
		}
		if s != userScope {
			v.trustFolder(add)
		}
	}
}

// trust looks for the confirmation of a person in Codex's configuration.
func (v *visit) trust(h *harness, s scope, add func(name, state, format string, args ...any)) {
	path, _, err := h.file(s, v.project)
	if err != nil {
		return
	}
	config := filepath.Join(codexHome(), "config.toml")
	text, _ := os.ReadFile(config) // without one nothing is confirmed
	if strings.Contains(string(text), path+":pre_tool_use:") {
		add("trust", "ok", "confirmed in %s; after a change of the entry it has to be again", shown(config))
		return
	}
	add("trust", "failed", "Codex skips it until a person confirms it: start codex, type /hooks")
}

// trustFolder looks for the trust of a person in the project's folder, without which Gemini CLI runs none of its
// hooks.
func (v *visit) trustFolder(add func(name, state, format string, args ...any)) {
	home, _ := os.UserHomeDir()
	user := filepath.Join(home, ".gemini", "settings.json")
	text, _ := os.ReadFile(user) // without one each folder has to be trusted
	var asks bool
	if d := parsed(user, text); d != nil {
		if ok, err := d.Get(&asks, "security", "folderTrust", "enabled"); ok && err == nil && !asks {
			return
		}
	}
	if os.Getenv("GEMINI_CLI_TRUST_WORKSPACE") == "true" {
		add("trust", "ok", "by the variable GEMINI_CLI_TRUST_WORKSPACE")
		return
	}
	list := filepath.Join(home, ".gemini", "trustedFolders.json")
	file := cmp.Or(os.Getenv("GEMINI_CLI_TRUSTED_FOLDERS_PATH"), list)
	text, _ = os.ReadFile(file) // without one no folder is trusted
	switch trustOf(text, v.project) {
	case "TRUST_FOLDER", "TRUST_PARENT":
		add("trust", "ok", "in %s", shown(file))
	case "DO_NOT_TRUST":
		add("trust", "failed", "%s has this folder as not trusted, so Gemini CLI runs none of its hooks", shown(file))
	default:
		add("trust", "note", "Gemini CLI runs it once a person trusts this folder: start gemini here")
	}
}

// trustOf returns what Gemini CLI's list of folders has about one: the word of the longest path that it is below.
func trustOf(list []byte, folder string) (word string) {
	var folders map[string]string
	_ = json.Unmarshal(list, &folders) // what is no such list has no folder
	longest := -1
	for path, trust := range folders {
		top := path
		if trust == "TRUST_PARENT" {
			top = filepath.Dir(path)
		}
		if real, err := filepath.EvalSymlinks(top); err == nil {
			top = real
		}
		rest, err := filepath.Rel(top, folder)
		inside := err == nil && rest != ".." && !strings.HasPrefix(rest, ".."+string(filepath.Separator))
		if inside && len(path) > longest {
			longest, word = len(path), trust
		}
	}
	return word
}

func codexHome() string {
	if dir := os.Getenv("CODEX_HOME"); dir != "" {
		return dir
	}
	home, _ := os.UserHomeDir()
	return filepath.Join(home, ".codex")
}

func parsed(path string, text []byte) *settings.Document {
	d, err := settings.Parse(path, text)
	if err != nil {
		return nil
	}
	return d
}

func claudePolicy(file string, add func(name, state, format string, args ...any)) {
	text, err := os.ReadFile(file)
	d := parsed(file, text)
	if err != nil || d == nil {
		return
	}
	for _, field := range []string{"disableAllHooks", "allowManagedHooksOnly"} {
		var on bool
		if ok, err := d.Get(&on, field); ok && err == nil && on {
			add("policy", "failed", "%s has %s, so the hook does not run", shown(file), field)
		}
	}
	for _, field := range []string{"allowedHttpHookUrls", "httpHookAllowedEnvVars"} {
		if d.Has(field) {
			add("policy", "note", "%s has %s: the address and INTERLOCK_CREDENTIAL have to be in it", shown(file), field)
		}
	}
}

// double reports hooks that run twice for one edit.
func (v *visit) double() {
	installed := map[string]bool{}
	for _, c := range v.all {
		installed[c.Harness] = true
	}
	claude, err := find("claude-code")
	if err != nil {
		return
	}
	if claude.look(sharedScope, v.project).State != "installed" &&
		claude.look(userScope, v.project).State != "installed" {
		return
	}
	for _, name := range []string{"cursor", "copilot"} {
		if installed[name] {
			v.all = append(v.all, check{
				Harness: name, Check: "double", State: "note",
				Text: "it runs the hooks of .claude/settings.json, too: each edit is asked about twice, and answered once",
			})
		}
	}
}
