package hooks

import (
	_ "embed"
	"encoding/json"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/cmd/interlock/internal/settings"
)

//go:embed plugin/interlock.ts
var plugin string

// pluginText is the plugin for OpenCode with its settings.
func pluginText(o *options) string {
	return strings.NewReplacer(
		`const SETTINGS: string[][] = []`,
		`const SETTINGS: string[][] = `+string(settings.JSON(append([][2]string{}, o.list(event{before: true})...))),
		`const WAIT_S = 30 `, `const WAIT_S = `+strconv.Itoa(int(o.wait.Seconds()))+` `,
	).Replace(plugin)
}

// pluginMark is the first line of a plugin of ours.
const pluginMark = "// Interlock for OpenCode."

// open reads the settings file of a harness.
func (h *harness) open(s scope, project string) (*settings.File, error) {
	name, top, err := h.file(s, project)
	if err != nil {
		return nil, err
	}
	f, err := settings.Open(name, top, s != userScope)
	if err != nil {
		return nil, err
	}
	f.Path = shown(name)
	return f, nil
}

// install plans the entries in a file. keep is set if the present content is the one to go back to.
func (h *harness) install(f *settings.File, o *options) (keep bool, err error) {
	if h.plugin {
		if f.Old != nil && !strings.HasPrefix(string(f.Old), pluginMark) {
			return false, cli.Usagef("%s is not from Interlock: move it away first", cli.Clean(f.Path))
		}
		f.New = []byte(pluginText(o))
		return false, nil
	}
	d, err := settings.Parse(f.Path, f.Old)
	if err != nil {
		return false, err
	}
	keep, err = h.add(d, f.Path, o)
	f.New = d.Bytes()
	return keep, err
}

// add adds the entries to a document, and reports whether it had none.
func (h *harness) add(d *settings.Document, name string, o *options) (first bool, err error) {
	before, err := h.entries(d)
	if err != nil {
		return false, err
	}
	if h.version {
		var version int
		switch ok, err := d.Get(&version, "version"); {
		case err != nil:
			return false, err
		case !ok:
			if err := d.Set(1, "version"); err != nil {
				return false, err
			}
		case version != 1:
			return false, cli.Usagef("%s has version %d, and this interlock knows version 1", cli.Clean(name), version)
		}
	}
	for _, e := range h.events {
		if err := h.set(d, e, h.entry(o, e)); err != nil {
			return false, err
		}
	}
	for _, old := range before {
		if !slices.ContainsFunc(h.events, func(e event) bool { return e.name == old.event }) {
			if err := h.drop(d, old.event, nil); err != nil {
				return false, err
			}
		}
	}
	return len(before) == 0, nil
}

// entry is the element of an event's list.
func (h *harness) entry(o *options, e event) []byte {
	e = o.adapt(e)
	handler := h.handler(o, e)
	if h.flat {
		return settings.JSON(handler)
	}
	return settings.JSON(group{Matcher: e.matcher, Hooks: []any{handler}})
}

// set lets an event have one entry of ours, which stays where it is if it is there already.
func (h *harness) set(d *settings.Document, e event, entry []byte) error {
	elements, err := d.Elements("hooks", e.name)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(elements, func(el []byte) bool { return string(el) == string(entry) }) {
		return h.drop(d, e.name, entry)
	}
	if err := h.drop(d, e.name, nil); err != nil {
		return err
	}
	return d.Append(json.RawMessage(entry), "hooks", e.name)
}

// drop removes our entries of an event but one that equals except.
func (h *harness) drop(d *settings.Document, event string, except []byte) error {
	return d.Keep(func(element []byte) ([]byte, bool) {
		if except != nil && string(element) == string(except) {
			except = nil
			return element, true
		}
		return h.without(element)
	}, "hooks", event)
}

// without returns an element without what is ours, false if nothing is left.
func (h *harness) without(element []byte) ([]byte, bool) {
	if h.flat {
		return element, handlerOf(element) == ""
	}
	var in struct {
		Hooks []json.RawMessage `json:"hooks"`
	}
	if json.Unmarshal(element, &in) != nil {
		return element, true
	}
	rest := slices.DeleteFunc(
		slices.Clone(in.Hooks),
		func(handler json.RawMessage) bool { return handlerOf(handler) != "" },
	)
	switch {
	case len(rest) == len(in.Hooks):
		return element, true
	case len(rest) == 0:
		return nil, false
	}
	d, err := settings.Parse("", element)
	if err != nil {
		return element, true
	}
	err = d.Keep(func(handler []byte) ([]byte, bool) { return handler, handlerOf(handler) == "" }, "hooks")
	return d.Bytes(), err == nil
}

// handlerOf returns the URL or the command of a handler of ours, "" for one of others.
func handlerOf(handler []byte) string {
	var in struct {
		URL     string `json:"url"`
		Command string `json:"command"`
		Bash    string `json:"bash"`
	}
	_ = json.Unmarshal(handler, &in) // a handler of another form is of others
	if strings.Contains(in.URL, "/v1/hooks/") {
		return in.URL
	}
	for _, command := range []string{in.Command, in.Bash} {
		if words := strings.Fields(command); len(words) > 1 {
			program := path.Base(strings.ReplaceAll(strings.Trim(words[0], `"'`), `\`, "/"))
			if strings.TrimSuffix(program, ".exe") == "interlock-hook" {
				return command
			}
		}
	}
	return ""
}

// found is an entry of ours in a file.
type found struct {
	event   string
	entry   []byte // the element of the event's list
	handler []byte
}

// entries lists our entries in a document.
func (h *harness) entries(d *settings.Document) (all []found, err error) {
	events, err := d.Names("hooks")
	if err != nil {
		return nil, err
	}
	for _, event := range events {
		elements, err := d.Elements("hooks", event)
		if err != nil {
			continue // a field of another form has no entry of ours
		}
		for _, element := range elements {
			handlers := []json.RawMessage{element}
			if !h.flat {
				var in struct {
					Hooks []json.RawMessage `json:"hooks"`
				}
				_ = json.Unmarshal(element, &in)
				handlers = in.Hooks
			}
			for _, handler := range handlers {
				if handlerOf(handler) != "" {
					all = append(all, found{event, element, handler})
				}
			}
		}
	}
	return all, nil
}

// forget removes the copy of a file from before our first entry, once none of ours is left in it.
func forget(f *settings.File) error {
	if d := parsed(f.Path, f.New); f.New != nil && d != nil && !f.Undone() {
		for _, h := range harnesses {
			if entries, err := h.entries(d); err != nil || len(entries) > 0 {
				return err
			}
		}
		for _, m := range servers {
			if len(m.path) > 0 && d.Has(m.path...) {
				return nil
			}
		}
	}
	return f.Forget()
}

// uninstall plans a file without our entries.
func (h *harness) uninstall(f *settings.File) error {
	if f.Old == nil {
		return nil
	}
	if h.plugin {
		if strings.HasPrefix(string(f.Old), pluginMark) {
			f.New = nil
		}
		return nil
	}
	d, err := settings.Parse(f.Path, f.Old)
	if err != nil {
		return err
	}
	if found, err := h.remove(d, f.First()); err != nil || !found {
		return err
	}
	f.Settle(d)
	return nil
}

// remove removes the entries from a document, and reports whether there were any. first is the
// document from before, if it is known.
func (h *harness) remove(d, first *settings.Document) (found bool, err error) {
	entries, err := h.entries(d)
	if err != nil || len(entries) == 0 {
		return false, err
	}
	for _, e := range entries {
		if err := h.drop(d, e.event, nil); err != nil {
			return false, err
		}
		if err := d.Clear(first, "hooks", e.event); err != nil {
			return false, err
		}
	}
	if err := d.Clear(first, "hooks"); err != nil {
		return false, err
	}
	fields, err := d.Names()
	if err != nil || !h.version {
		return true, err
	}
	if first != nil && !first.Has("version") || first == nil && slices.Equal(fields, []string{"version"}) {
		err = d.Remove("version")
	}
	return true, err
}
