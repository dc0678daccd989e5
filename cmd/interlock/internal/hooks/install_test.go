package hooks

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/interlockdev/interlock/cmd/interlock/internal/settings"
	"github.com/interlockdev/interlock/internal/hookclient"
)

// person is a user with a project, and nothing in either.
func person(t *testing.T) (project, home string) {
	t.Helper()
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	project, home = filepath.Join(top, "web"), filepath.Join(top, "home")
	for _, dir := range []string{filepath.Join(project, ".git"), home} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("HOME", home)
	t.Setenv("INTERLOCK_CONFIG", filepath.Join(home, "interlock", "config.json"))
	for _, name := range []string{"CLAUDE_CONFIG_DIR", "CODEX_HOME", "INTERLOCK_CREDENTIAL"} {
		t.Setenv(name, "")
	}
	t.Chdir(project)
	return project, home
}

var plain = options{
	parameters: parameters{wait: hookclient.DefaultWait}, url: "http://127.0.0.1:7420", servers: 1,
}

// put installs the hooks in a project, and reports whether the file has changed.
func put(t *testing.T, h *harness, project string, o *options) bool {
	t.Helper()
	p, err := newPlan(h, sharedScope, project, o)
	if err != nil {
		t.Fatalf("%s: %v", h.name, err)
	}
	changed := p.file.Changed()
	if changed && p.keep {
		if err := p.file.Forget(); err != nil {
			t.Fatal(err)
		}
		if err := p.file.Keep(); err != nil {
			t.Fatal(err)
		}
	}
	if changed {
		if err := p.file.Write(); err != nil {
			t.Fatal(err)
		}
	}
	return changed
}

func take(t *testing.T, h *harness, project string) {
	t.Helper()
	f, err := h.open(sharedScope, project)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.uninstall(f); err != nil {
		t.Fatal(err)
	}
	if err := f.Write(); err != nil {
		t.Fatal(err)
	}
	if err := f.Forget(); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o640); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// files are settings as people have them. EVENT is one that the harness has.
var files = []string{
	"",
	"{}",
	"{}\n",
	"{ }\n",
	"{\"version\": 1}\n",
	`{"model":"m","hooks":{}}`,
	"\xef\xbb\xbf{\n}\n",
	"{\r\n\t\"model\": \"m\", // which\r\n\t\"hooks\": {\r\n\t}\r\n}",
	"// head\n{\n    // mine\n    \"hooks\": {\n        \"EVENT\": [],\n    },\n" +
		"    \"z\": [1, 2,], /* end */\n}\n// tail",
	"{\n  \"hooks\": {\n    \"EVENT\": [\n      {\"matcher\": \"X\", " +
		"\"hooks\": [ {\"type\": \"command\", \"command\": \"mine\"} ]}\n    ]\n  }\n}\n",
	"{\n  \"hooks\": {\n    \"EVENT\": [{\"command\": \"mine --url http://x/v1/hook\"}], \"Other\": [ ]\n" +
		"  },\n  \"mcpServers\": {}\n}",
}

// Install, install, uninstall returns the bytes and the mode of the file, and leaves nothing behind.
func TestInstallAndUninstall(t *testing.T) {
	for _, h := range harnesses {
		for i, text := range files {
			project, home := person(t)
			path, _, err := h.file(sharedScope, project)
			if err != nil {
				t.Fatal(err)
			}
			if h.plugin || i == 0 {
				text = "" // no file
			} else {
				text = strings.ReplaceAll(text, "EVENT", h.events[0].name)
				write(t, path, text)
			}
			if !put(t, h, project, &plain) || put(t, h, project, &plain) {
				t.Errorf("%s, %q: the first installation changes nothing, or the second something", h.name, text)
			}
			installed := read(t, path)
			apart := strings.NewReplacer(",", " ", "{", " ", "}", " ", "[", " ", "]", " ").Replace(text)
			for word := range strings.FieldsSeq(apart) {
				if !strings.Contains(installed, word) {
					t.Errorf("%s, %q: %q is lost:\n%s", h.name, text, word, installed)
				}
			}
			strict := plain
			strict.mode, strict.hold = "strict", "edit"
			if !put(t, h, project, &strict) || !strings.Contains(read(t, path), "strict") || put(t, h, project, &strict) {
				t.Errorf("%s, %q: the mode does not change once:\n%s", h.name, text, read(t, path))
			}
			take(t, h, project)
			switch info, err := os.Stat(path); {
			case text == "" && err == nil:
				t.Errorf("%s: the new file stays: %q", h.name, read(t, path))
			case text != "" && err != nil:
				t.Errorf("%s, %q: %v", h.name, text, err)
			case text != "" && (read(t, path) != text || info.Mode().Perm() != 0o640):
				t.Errorf("%s, %q: it becomes %q, of mode %o", h.name, text, read(t, path), info.Mode().Perm())
			}
			if left, err := filepath.Glob(filepath.Join(project, ".[a-fh-z]*")); text == "" && (err != nil || len(left) > 0) {
				t.Errorf("%s: it leaves %q behind", h.name, left)
			}
			if left, err := filepath.Glob(filepath.Join(home, "interlock", "backup", "*")); err != nil || len(left) > 0 {
				t.Errorf("%s: it leaves %q behind", h.name, left)
			}
		}
	}
}

// What a person changes after the installation stays.
func TestUninstallKeepsChanges(t *testing.T) {
	project, _ := person(t)
	h := harnesses[0]
	path := filepath.Join(project, ".claude", "settings.json")
	write(t, path, "{\n  \"model\": \"a\"\n}\n")
	put(t, h, project, &plain)
	text := read(t, path)
	text = strings.Replace(text, `"model": "a",`, `"model": "b", // better`, 1)
	text = strings.Replace(text, `    "Stop": [`, "    \"Stop\": [\n      {\"hooks\": [{\"command\": \"mine\"}]},", 1)
	// A handler of a person's own in a group of ours.
	text = strings.Replace(text, `"hooks": [`+"\n          {", `"hooks": [{"command": "also mine"},`+"\n          {", 1)
	write(t, path, text)
	take(t, h, project)
	want := "{\n  \"model\": \"b\", // better\n  \"hooks\": {\n    \"PreToolUse\": [\n      {\n        " +
		"\"matcher\": \"Edit|Write|NotebookEdit|Bash|mcp__interlock__acquire\",\n        \"hooks\": [\n          {\n" +
		"            \"command\": \"also mine\"\n          }\n        ]\n      }\n" +
		"    ],\n    \"Stop\": [\n      {\"hooks\": [{\"command\": \"mine\"}]}\n    ]\n  }\n}\n"
	if got := read(t, path); got != want {
		t.Errorf("it becomes\n%s\nwant\n%s", got, want)
	}
}

// What cannot be read or may not be changed is left alone.
func TestRefusals(t *testing.T) {
	for _, tt := range []struct {
		name  string
		setup func(t *testing.T, project, home, path string)
		want  string
	}{
		{"no JSON", func(t *testing.T, _, _, path string) {
			write(t, path, "{\n  \"a\": 1\n  \"b\"\n}")
		}, "line 3, column 3"},
		{"hooks are a text", func(t *testing.T, _, _, path string) { write(t, path, "{\"hooks\": \"x\"}") }, "line 1"},
		{"an event is a number", func(t *testing.T, _, _, path string) {
			write(t, path, "{\"hooks\": {\"Stop\": 1}}")
		}, "line 1"},
		{"a folder", func(t *testing.T, _, _, path string) { mkdir(t, path) }, "is no file"},
		{"a file above", func(t *testing.T, _, _, path string) { write(t, filepath.Dir(path), "") }, "not a directory"},
		{"a link out", func(t *testing.T, _, home, path string) {
			write(t, filepath.Join(home, "profile"), "{}")
			link(t, path, filepath.Join(home, "profile"))
		}, "leads out of the project"},
		{"a folder out", func(t *testing.T, _, home, path string) {
			link(t, filepath.Dir(path), home)
		}, "leads out of the project"},
		{"a link to nothing", func(t *testing.T, _, home, path string) {
			link(t, path, filepath.Join(home, "x"))
		}, "link to nothing"},
		{"a folder to nothing", func(t *testing.T, _, home, path string) {
			link(t, filepath.Dir(path), filepath.Join(home, "x"))
		}, "link to nothing"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			project, home := person(t)
			path := filepath.Join(project, ".claude", "settings.json")
			tt.setup(t, project, home, path)
			before, _ := os.ReadFile(path) // some are no files
			_, err := newPlan(harnesses[0], sharedScope, project, &plain)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want %q", err, tt.want)
			}
			if after, _ := os.ReadFile(path); string(after) != string(before) {
				t.Errorf("the file becomes %q", after)
			}
		})
	}
}

func mkdir(t *testing.T, path string) {
	t.Helper()
	if err := os.MkdirAll(path, 0o755); err != nil {
		t.Fatal(err)
	}
}

func link(t *testing.T, path, target string) {
	t.Helper()
	mkdir(t, filepath.Dir(path))
	if err := os.Symlink(target, path); err != nil {
		t.Fatal(err)
	}
}

// A link of a user to a file elsewhere stays a link, and the file there changes.
func TestLinkOfUser(t *testing.T) {
	_, home := person(t)
	path, there := filepath.Join(home, ".claude", "settings.json"), filepath.Join(home, "dotfiles", "claude.json")
	write(t, there, "{\"a\": 1}\n")
	link(t, path, there)
	f, err := harnesses[0].open(userScope, "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := harnesses[0].install(f, &plain); err != nil {
		t.Fatal(err)
	}
	if err := f.Write(); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Lstat(
		path,
	); err != nil || info.Mode()&os.ModeSymlink == 0 ||
		!strings.Contains(read(t, there), "PreToolUse") {
		t.Errorf("the link is %v (%v), and the file %q", info.Mode(), err, read(t, there))
	}
}

// Each setting of hooks reaches the entry of an event that it is about, and the harness waits and looks accordingly.
func TestSettingsInEntries(t *testing.T) {
	o := plain
	o.parameters = parameters{
		mode: "strict", hold: "edit", prompts: "off", unknown: "deny", commits: "own", files: "7",
		wait: 50 * time.Second, also: []string{"mcp_fs_write:path", "x:y"},
	}
	for name, want := range map[string][]string{
		"claude-code": {
			`claude-code?also=mcp_fs_write%3Apath&also=x%3Ay&commits=own&files=7&hold=edit&mode=strict&prompts=off` +
				`&unknown=deny&wait_s=50"`,
			`claude-code?also=mcp_fs_write%3Apath&also=x%3Ay&files=7&hold=edit&prompts=off"`,
			`"Edit|Write|NotebookEdit|Bash|mcp_fs_write|x"`, `"timeout": 60`,
		},
		"codex": {
			`codex --mode strict --hold edit --prompts off --unknown deny --commits own --files 7 --also mcp_fs_write:path ` +
				`--also x:y --wait 50s"`,
			`codex --hold edit --prompts off --files 7 --also mcp_fs_write:path --also x:y"`,
			`"^(Bash|apply_patch|mcp__interlock__acquire|mcp_fs_write|x)$"`,
		},
		"gemini": {
			`"timeout": 60000`,
			`"write_file|replace|run_shell_command|(mcp_+)?(interlock_+)?acquire|mcp_fs_write|x"`,
		},
		"opencode": {
			`SETTINGS: string[][] = [["mode","strict"],["hold","edit"],["prompts","off"],["unknown","deny"],` +
				`["commits","own"],["files","7"],["also","mcp_fs_write:path"],["also","x:y"]] //`,
			`WAIT_S = 50 //`,
		},
	} {
		h, err := find(name)
		if err != nil {
			t.Fatal(err)
		}
		var f settings.File
		if _, err := h.install(&f, &o); err != nil {
			t.Fatal(err)
		}
		for _, text := range want {
			if !strings.Contains(string(f.New), text) {
				t.Errorf("%s has no %s:\n%s", name, text, f.New)
			}
		}
	}
}

// No harness lacks a setting.
func TestEachSettingInEachHarness(t *testing.T) {
	o := plain
	o.parameters = parameters{also: []string{"x:y"}, wait: hookclient.DefaultWait}
	fields := reflect.ValueOf(&o.parameters).Elem()
	for i := range fields.NumField() {
		if fields.Field(i).Kind() == reflect.String {
			field := reflect.NewAt(fields.Field(i).Type(), fields.Field(i).Addr().UnsafePointer()).Elem()
			field.SetString("set-" + fields.Type().Field(i).Name)
		}
	}
	for _, h := range harnesses {
		var f settings.File
		if _, err := h.install(&f, &o); err != nil {
			t.Fatal(err)
		}
		for i := range fields.NumField() {
			name := fields.Type().Field(i).Name
			if fields.Field(i).Kind() == reflect.String && !strings.Contains(string(f.New), "set-"+name) {
				t.Errorf("%s has no %s:\n%s", h.name, name, f.New)
			}
		}
	}
}

// A plugin of another author is not overwritten, nor removed.
func TestForeignPlugin(t *testing.T) {
	project, _ := person(t)
	h, err := find("opencode")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(project, ".opencode", "plugins", "interlock.ts")
	write(t, path, "export const Mine = 1\n")
	if _, err := newPlan(
		h,
		sharedScope,
		project,
		&plain,
	); err == nil ||
		!strings.Contains(err.Error(), "is not from Interlock") {
		t.Errorf("installed over it: %v", err)
	}
	take(t, h, project)
	if got := read(t, path); got != "export const Mine = 1\n" {
		t.Errorf("it becomes %q", got)
	}
}

// The settings of a harness have what its documentation demands.
func TestEntries(t *testing.T) {
	strict := plain
	strict.mode, strict.namespace = "strict", "team"
	secret := plain
	secret.credential = true
	elsewhere := plain
	elsewhere.url = "http://10.0.0.7:7420"
	filed := plain
	filed.url, filed.servers, filed.filed = "https://example.com", 2, true
	for _, tt := range []struct {
		harness string
		o       options
		has     []string
		hasNot  []string
	}{
		{
			"claude-code", strict,
			[]string{
				`"url":"http://127.0.0.1:7420/v1/hooks/claude-code?mode=strict"`, `"onFailure":"block"`,
				`"Interlock-Namespace":"team"`,
			},
			[]string{"SessionStart", "interlock-hook"},
		},
		{"claude-code", secret, []string{`"command":"interlock-hook claude-code"`}, []string{"http", "Bearer"}},
		{"claude-code", elsewhere, []string{`"command":"interlock-hook claude-code"`}, []string{"http"}},
		{"claude-code", filed, []string{`"command":"interlock-hook claude-code"`}, []string{"http", "onFailure"}},
		{"codex", plain, []string{`"command":"interlock-hook codex"`, `"timeout":3}`}, []string{"--", "http"}},
		{"codex", strict, []string{`"command":"interlock-hook codex --mode strict"`}, []string{"http"}},
		{"gemini", plain, []string{`"timeout":40000`}, []string{"http"}},
		{"cursor", strict, []string{`"version":1`, `"failClosed":true`}, []string{"//", "SessionStart", "matcher"}},
		{"copilot", plain, []string{`"version":1`, `"timeoutSec":40`}, []string{`"timeout"`}},
	} {
		h, err := find(tt.harness)
		if err != nil {
			t.Fatal(err)
		}
		var f settings.File
		if _, err := h.install(&f, &tt.o); err != nil {
			t.Fatal(err)
		}
		text := strings.NewReplacer("\n", "", "  ", "", ": ", ":").Replace(string(f.New))
		for _, want := range tt.has {
			if !strings.Contains(text, want) {
				t.Errorf("%s lacks %s: %s", tt.harness, want, text)
			}
		}
		for _, word := range tt.hasNot {
			if strings.Contains(text, word) {
				t.Errorf("%s has %s: %s", tt.harness, word, text)
			}
		}
		// Only the hook before a tool refuses: elsewhere exit code 2 has other meanings.
		if n := strings.Count(text, "strict"); tt.o.mode == "strict" && n != 1 && tt.harness != "copilot" {
			t.Errorf("%s: the mode strict stands %d times: %s", tt.harness, n, text)
		}
	}
}
