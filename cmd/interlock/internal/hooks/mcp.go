package hooks

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/cmd/interlock/internal/settings"
)

// server is the entry of the MCP server in the settings of a harness. The file is in the project.
type server struct {
	harness string
	files   []string // the first that exists, else the first
	path    []string
	entry   func(command []string) any
	text    func(command []string) string // where there is no file to change: what a person does
}

// plainServer and openCodeServer are the forms of the entry.
type (
	plainServer struct {
		Command string   `json:"command"`
		Args    []string `json:"args"`
	}
	openCodeServer struct {
		Type    string   `json:"type"`
		Command []string `json:"command"`
		Enabled bool     `json:"enabled"`
	}
)

func plainEntry(command []string) any { return plainServer{command[0], command[1:]} }

var servers = []server{
	{harness: "claude-code", files: []string{".mcp.json"}, path: []string{"mcpServers", "interlock"}, entry: plainEntry},
	{
		harness: "gemini", files: []string{".gemini/settings.json"}, path: []string{"mcpServers", "interlock"},
		entry: plainEntry,
	},
	{harness: "cursor", files: []string{".cursor/mcp.json"}, path: []string{"mcpServers", "interlock"}, entry: plainEntry},
	{
		harness: "opencode", files: []string{"opencode.json", "opencode.jsonc"}, path: []string{"mcp", "interlock"},
		entry: func(command []string) any { return openCodeServer{"local", command, true} },
	},
	{
		harness: "codex",
		text: func(command []string) string {
			return "add to ~/.codex/config.toml:\n\n[mcp_servers.interlock]\ncommand = " + quoted(command[:1]) +
				"\nargs = [" + quoted(command[1:]) + "]\n"
		},
	},
	{
		harness: "copilot",
		text: func(command []string) string {
			return "type in copilot: /mcp add, with the command " + strings.Join(command, " ")
		},
	},
}

// quoted is a list of texts in TOML.
func quoted(list []string) string {
	texts := make([]string, len(list))
	for i, text := range list {
		texts[i] = string(settings.JSON(text))
	}
	return strings.Join(texts, ", ")
}

// serverFlags are those that the command of an entry may have.
var serverFlags = []string{"--url", "--namespace", "--credential-file", "--tls-ca"}

// serverCommand is the command of the MCP server, with flags where it would find other values, in
// the current context.
func serverCommand(a *cli.App) ([]string, error) {
	config, err := cli.LoadConfig()
	if err != nil {
		return nil, err
	}
	usual := config.Contexts[config.Current] // without a context there are no values
	hook, err := serverOf(a)
	if err != nil {
		return nil, err
	}
	address := usual["url"]
	if address == "" {
		address = "http://" + cli.DefaultHTTP
	}
	command := []string{"interlock", "mcp"}
	elsewhere := hook.URL != address
	values := []string{hook.URL, hook.Namespace, hook.CredentialFile, hook.CAFile}
	for i, value := range []string{address, usual["namespace"], usual["credential-file"], usual["tls-ca"]} {
		if values[i] != "" && (values[i] != value || elsewhere && serverFlags[i] != "--namespace") {
			command = append(command, serverFlags[i], values[i])
		}
	}
	return command, nil
}

// ours reports whether an entry is one that serverCommand has made.
func (m *server) ours(entry []byte) bool {
	var in struct {
		Command json.RawMessage `json:"command"`
		Args    []string        `json:"args"`
	}
	if json.Unmarshal(entry, &in) != nil {
		return false
	}
	var words []string
	var program string
	if json.Unmarshal(in.Command, &words) != nil && json.Unmarshal(in.Command, &program) == nil {
		words = append([]string{program}, in.Args...)
	}
	if len(words) < 2 || words[0] != "interlock" || words[1] != "mcp" || len(words)%2 != 0 {
		return false
	}
	for i := 2; i < len(words); i += 2 {
		if !slices.Contains(serverFlags, words[i]) {
			return false
		}
	}
	return string(entry) == string(settings.JSON(m.entry(words)))
}

// file is the file below a project, relative to it.
func (m *server) file(project string) string {
	for _, name := range m.files {
		if _, err := os.Lstat(filepath.Join(project, name)); err == nil {
			return name
		}
	}
	return m.files[0]
}

// add adds the entry to a document. One that is there stays, whatever it is: a person may have added
// flags.
func (m *server) add(d *settings.Document, command []string) (first bool, err error) {
	if d.Has(m.path...) {
		return false, nil
	}
	return true, d.Set(m.entry(command), m.path...)
}

// remove removes the entry, unless a person has changed it.
func (m *server) remove(d, first *settings.Document) (found bool, err error) {
	var entry json.RawMessage
	if ok, err := d.Get(&entry, m.path...); err != nil || !ok || !m.ours(entry) {
		return false, err
	}
	if first != nil && first.Has(m.path...) {
		return false, nil // it was there before
	}
	if err := d.Remove(m.path...); err != nil {
		return false, err
	}
	return true, d.Clear(first, m.path[:len(m.path)-1]...)
}
