package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/interlockdev/interlock/internal/home"
)

// Config is the configuration file: named contexts, each with values for the flags that select a
// server and an agent. A flag on the command line wins over a variable, and a variable over the
// context. It never has a credential itself, only the name of a file.
type Config struct {
	Current  string                       `json:"current,omitempty"`
	Contexts map[string]map[string]string `json:"contexts"`
}

// ContextFlags are the flags that a context may have values for.
var ContextFlags = []string{"url", "grpc-addr", "namespace", "credential-file", "tls-ca", "agent"}

// serverFlags are those of them that belong to one server: with an address from elsewhere none of
// them is used, so that no credential gets to another server than its own.
var serverFlags = []string{"url", "grpc-addr", "credential-file", "tls-ca"}

// ConfigFile returns the path of the configuration file.
func ConfigFile() (string, error) {
	file, err := home.Config()
	if err != nil {
		return "", ExitWith(ExitUsage, err)
	}
	return file, nil
}

// LoadConfig reads the configuration file. One that does not exist has no contexts, and a process
// without a home, as in a container, has no file.
func LoadConfig() (*Config, error) {
	c := &Config{Contexts: map[string]map[string]string{}}
	file, err := ConfigFile()
	if err != nil {
		return c, nil
	}
	content, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(bytes.TrimSpace(content)) == 0 {
		return c, nil
	}
	if err != nil {
		return nil, ExitWith(ExitUsage, err)
	}
	d := json.NewDecoder(bytes.NewReader(content))
	d.DisallowUnknownFields()
	if err := d.Decode(c); err != nil {
		return nil, Usagef("%s cannot be read: %w; it has the fields current and contexts", file, err)
	}
	for _, name := range c.Names() {
		for _, field := range slices.Sorted(maps.Keys(c.Contexts[name])) {
			if !slices.Contains(ContextFlags, field) {
				return nil, Usagef("%s: context %s has no field %s%s", file, Quote(Clean(name)), Clean(field), nearField(field))
			}
		}
	}
	if c.Current != "" && c.Contexts[c.Current] == nil {
		return nil, Usagef("%s: there is no context %s, and it is the current one", file, Quote(Clean(c.Current)))
	}
	return c, nil
}

// nearField is a hint at a field that may be meant.
func nearField(field string) string {
	best := slices.MinFunc(ContextFlags, func(a, b string) int { return distance(field, a) - distance(field, b) })
	if distance(field, best) <= reach(field) {
		return "; did you mean " + best + "?"
	}
	return "; it may have " + strings.Join(ContextFlags, ", ")
}

// Names returns the names of the contexts, in order.
func (c *Config) Names() []string { return slices.Sorted(maps.Keys(c.Contexts)) }

// Context returns a context by its name.
func (c *Config) Context(name string) (map[string]string, error) {
	if fields := c.Contexts[name]; fields != nil {
		return fields, nil
	}
	return nil, Usagef("there is no context %s: `interlock context list` lists them", Quote(Clean(name)))
}

// Save writes the configuration file, as a whole or not at all, for its owner alone.
func (c *Config) Save() (err error) {
	file, err := ConfigFile()
	if err != nil {
		return err
	}
	content, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return err
	}
	dir := filepath.Dir(file)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return ReplaceFile(file, func(next *os.File) error {
		_, err := next.Write(append(content, '\n'))
		return err
	})
}

// ReplaceFile replaces a file by one that write fills, as a whole or not at all. The new file has
// mode 0600 unless write changes that.
func ReplaceFile(path string, write func(next *os.File) error) error {
	next, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*") // with mode 0600
	if err != nil {
		return err
	}
	err = write(next)
	if err == nil {
		err = next.Sync()
	}
	if err = errors.Join(err, next.Close()); err == nil {
		err = os.Rename(next.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(next.Name()))
	}
	return nil
}

// useContext sets the flags without a value to those of the context that --context names, else of
// the current one. A flag that no variable sets is another one of the same name, such as a filter.
func (a *App) useContext(cmd *cobra.Command) error {
	config, err := LoadConfig()
	if err != nil {
		return err
	}
	flags, name := cmd.Flags(), a.Context
	elsewhere := flags.Changed("url")
	switch {
	case name != "" && elsewhere && !Given(flags.Lookup("url")):
		return Usagef("--context and --url are two servers: use one of them")
	case name == "":
		name = config.Current
	}
	if name == "" {
		return nil
	}
	fields, err := config.Context(name)
	if err != nil {
		return err
	}
	for _, field := range ContextFlags {
		value, f := fields[field], flags.Lookup(field)
		if value == "" || f == nil || f.Annotations[EnvMark] == nil || f.Changed || elsewhere && slices.Contains(serverFlags, field) {
			continue
		}
		if field == "credential-file" && flags.Changed("credential") {
			continue
		}
		if err := flags.Set(field, value); err != nil {
			return fmt.Errorf("context %s: %w", Quote(Clean(name)), err)
		}
	}
	return nil
}

// CheckAddresses refuses addresses that no server has.
func CheckAddresses(url, session string) error {
	t := Target{URL: url, GRPC: session}
	return t.addresses()
}

// DefineContext adds --context.
func (a *App) DefineContext(flags *pflag.FlagSet) {
	flags.StringVar(&a.Context, "context", "", "the `name` of a context of the configuration file (default: the current one)")
	Bind(flags, "context", "")
}
