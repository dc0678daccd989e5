package hooks

import (
	"encoding/json"
	"os"
	"path/filepath"

	"github.com/interlockdev/interlock/cmd/interlock/internal/settings"
)

// server is the entry of the MCP server in the settings of a harness. The file is in the project.
type server struct {
	harness string
	files   []string // the first that exists, else the first
	path    []string
	entry   any
	text    string // where there is no file to change: what a person does
}

var (
	plainServer = struct {
		Command string   `json:"command"`
		Args    []string `json:"args"`
	}{"interlock", []string{"mcp"}}
	openCodeServer = struct {
		Type    string   `json:"type"`
		Command []string `json:"command"`
		Enabled bool     `json:"enabled"`
	}{"local", []string{"interlock", "mcp"}, true}
)

var servers = []server{
	{
		harness: "claude-code", files: []string{".mcp.json"}, path: []string{"mcpServers", "interlock"}, entry: plainServer,
	},
	{
		harness: "gemini", files: []string{".gemini/settings.json"}, path: []string{"mcpServers", "interlock"},
		entry: plainServer,
	},
	{
		harness: "cursor",
		files:   []string{".cursor/mcp.json"},
		path:    []string{"mcpServers", "interlock"},
		entry:   plainServer,
	},
	{
		harness: "opencode", files: []string{"opencode.json", "opencode.jsonc"}, path: []string{"mcp", "interlock"},
		entry: openCodeServer,
	},
	{
		harness: "codex",
		text:    "add to ~/.codex/config.toml:\n\n[mcp_servers.interlock]\ncommand = \"interlock\"\nargs = [\"mcp\"]\n",
	},
	{harness: "copilot", text: "type in copilot: /mcp add, with the command interlock mcp"},
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
func (m *server) add(d *settings.Document) (first bool, err error) {
	if d.Has(m.path...) {
		return false, nil
	}
	return true, d.Set(m.entry, m.path...)
}

// remove removes the entry, unless a person has changed it.
func (m *server) remove(d, first *settings.Document) (found bool, err error) {
	var entry json.RawMessage
	if ok, err := d.Get(&entry, m.path...); err != nil || !ok || string(entry) != string(settings.JSON(m.entry)) {
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
