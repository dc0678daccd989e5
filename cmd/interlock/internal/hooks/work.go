package hooks

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/interlockdev/interlock/cmd/interlock/internal/settings"
)

// work is the changes of several files of a project. A file may get several entries.
type work struct {
	project string
	options *options
	command []string // of the MCP server
	files   map[string]*draft
	order   []string
	texts   []string // what a person has to do by hand
}

// open returns a file of the project.
func (w *work) open(path string) (*draft, error) {
	if e := w.files[path]; e != nil {
		return e, nil
	}
	f, err := settings.Open(path, w.project, true)
	if err != nil {
		return nil, err
	}
	f.Path = shown(path)
	w.files[path] = &draft{file: f}
	w.order = append(w.order, path)
	return w.files[path], nil
}

// json returns a JSON file of the project, and whether entries of ours are in it.
func (w *work) json(path string) (*draft, error) {
	e, err := w.open(path)
	if err != nil || e.doc != nil {
		return e, err
	}
	if e.doc, err = settings.Parse(e.file.Path, e.file.Old); err != nil {
		return nil, err
	}
	for _, h := range harnesses {
		for _, s := range h.scopes() {
			if name, _, err := h.file(s, w.project); err == nil && s != userScope && name == path {
				found, err := h.entries(e.doc)
				e.had = e.had || err == nil && len(found) > 0
			}
		}
	}
	for _, m := range servers {
		if len(m.files) > 0 && filepath.Join(w.project, m.file(w.project)) == path && e.doc.Has(m.path...) {
			e.had = true
		}
	}
	return e, nil
}

// scope is the settings of one's own, where the project has them.
func (h *harness) scope() scope {
	if h.own != "" {
		return ownScope
	}
	return sharedScope
}

func (w *work) hooks(h *harness) error {
	path, _, err := h.file(h.scope(), w.project)
	if err != nil {
		return err
	}
	if h.plugin {
		e, err := w.open(path)
		if err != nil {
			return err
		}
		_, err = h.install(e.file, w.options)
		return err
	}
	e, err := w.json(path)
	if err != nil {
		return err
	}
	if _, err := h.add(e.doc, e.file.Path, w.options); err != nil {
		return err
	}
	e.touched, e.file.New = true, e.doc.Bytes()
	return nil
}

func (w *work) server(h *harness) error {
	i := slices.IndexFunc(servers, func(m server) bool { return m.harness == h.name })
	if i < 0 {
		return nil
	}
	m := &servers[i]
	if m.text != nil {
		w.texts = append(w.texts, "MCP server for "+h.title+": "+m.text(w.command))
		return nil
	}
	e, err := w.json(filepath.Join(w.project, m.file(w.project)))
	if err != nil {
		return err
	}
	added, err := m.add(e.doc, w.command)
	if err != nil || !added {
		return err
	}
	e.touched, e.file.New = true, e.doc.Bytes()
	return nil
}

// text sets our part of a text, "" for none.
func (w *work) text(name, part string) error {
	e, err := w.open(filepath.Join(w.project, name))
	if err != nil || e.file.Old == nil && part == "" {
		return err
	}
	content, err := settings.SetPart(e.file.Path, e.file.Old, strings.TrimSpace(part))
	if err != nil {
		return err
	}
	e.file.New = content
	if len(content) == 0 && len(e.file.Old) > 0 {
		e.file.New = nil // there was nothing else
	}
	return nil
}

// undo plans the removal of all that is ours in the project.
func (w *work) undo() error {
	for _, h := range harnesses {
		for _, s := range h.scopes() {
			if s == userScope {
				continue
			}
			if err := w.undoHooks(h, s); err != nil {
				return err
			}
		}
	}
	for _, m := range servers {
		if len(m.files) == 0 {
			continue
		}
		e, err := w.json(filepath.Join(w.project, m.file(w.project)))
		if err != nil {
			return err
		}
		found, err := m.remove(e.doc, e.file.First())
		if err != nil {
			return err
		}
		e.touched = e.touched || found
	}
	for _, e := range w.files {
		if e.doc != nil && e.touched {
			e.file.Settle(e.doc)
		}
	}
	for _, name := range texts {
		if err := w.text(name, ""); err != nil {
			return err
		}
	}
	return nil
}

func (w *work) undoHooks(h *harness, s scope) error {
	path, _, err := h.file(s, w.project)
	if err != nil {
		return err
	}
	if h.plugin {
		e, err := w.open(path)
		if err != nil {
			return err
		}
		return h.uninstall(e.file)
	}
	e, err := w.json(path)
	if err != nil {
		return err
	}
	found, err := h.remove(e.doc, e.file.First())
	e.touched = e.touched || found
	return err
}

// changed lists the files that are to change, in the order of their plan.
func (w *work) changed() (list []*draft) {
	for _, path := range w.order {
		if e := w.files[path]; e.file.Changed() {
			list = append(list, e)
		}
	}
	return list
}
