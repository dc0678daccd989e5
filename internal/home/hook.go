package home

import (
	"errors"
	"io/fs"
	"os"
	"strings"
)

// Hook is the server of the hooks, under the names that the commands' variables have. A hook runs in
// the environment of the coding agent, which is often not that of the shell in which `interlock
// hooks install` ran, so install keeps the values in a file. It has lines NAME=VALUE; the plugin for
// OpenCode reads it, too.
type Hook struct {
	URL            string // one or several, with commas
	Credential     string
	CredentialFile string
	CAFile         string
	Namespace      string
}

// fields pairs the fields with their names, in the order of the file.
func (h *Hook) fields() []struct {
	name  string
	value *string
} {
	return []struct {
		name  string
		value *string
	}{
		{"INTERLOCK_URL", &h.URL},
		{"INTERLOCK_CREDENTIAL", &h.Credential},
		{"INTERLOCK_CREDENTIAL_FILE", &h.CredentialFile},
		{"INTERLOCK_TLS_CA", &h.CAFile},
		{"INTERLOCK_NAMESPACE", &h.Namespace},
	}
}

// ParseHook reads the text of the file. Lines that it does not know are left out.
func ParseHook(text string) (h Hook) {
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimRight(line, "\r\n"), "=")
		for _, f := range h.fields() {
			if f.name == strings.TrimSpace(name) {
				*f.value = strings.TrimSpace(value)
			}
		}
	}
	return h
}

// Text returns the text of the file.
func (h *Hook) Text() string {
	var b strings.Builder
	b.WriteString("# The server of interlock-hook, written by `interlock hooks install`. A variable wins over a line.\n")
	for _, f := range h.fields() {
		if *f.value != "" {
			b.WriteString(f.name + "=" + *f.value + "\n")
		}
	}
	return b.String()
}

// Variables returns the values as variables of a process, the empty ones, too.
func (h *Hook) Variables() (list []string) {
	for _, f := range h.fields() {
		list = append(list, f.name+"="+*f.value)
	}
	return list
}

// LoadHook returns the settings of the variables, and of the file where there is no variable. With
// the address of a server from a variable, neither a credential nor a certificate of the file is
// used, so that none gets to another server than its own.
func LoadHook() (Hook, error) {
	var env, file Hook
	for _, f := range env.fields() {
		*f.value = os.Getenv(f.name)
	}
	path, err := HookFile()
	if err == nil {
		var text []byte
		text, err = os.ReadFile(path)
		file = ParseHook(string(text))
	}
	if err != nil && (env.URL != "" || path == "" || errors.Is(err, fs.ErrNotExist)) {
		err = nil // there is none, or none is needed
	}
	if env.Namespace == "" {
		env.Namespace = file.Namespace
	}
	if env.URL != "" {
		return env, err
	}
	env.URL = file.URL
	if env.Credential == "" && env.CredentialFile == "" {
		env.Credential, env.CredentialFile = file.Credential, file.CredentialFile
	}
	if env.CAFile == "" {
		env.CAFile = file.CAFile
	}
	return env, err
}

// Secret returns the credential, "" if there is none.
func (h *Hook) Secret() (string, error) {
	if h.Credential != "" || h.CredentialFile == "" {
		return h.Credential, nil
	}
	text, err := os.ReadFile(h.CredentialFile)
	return strings.TrimSpace(string(text)), err
}
