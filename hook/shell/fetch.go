package shell

import (
	"path"
	"strings"
)

// fetched names the files that curl or wget make of addresses.
func (r *reader) fetched(folder string, addresses []word) {
	for _, w := range addresses {
		text, _, _ := strings.Cut(w.text, "?")
		text, _, _ = strings.Cut(text, "#")
		name := path.Base(text)
		if _, rest, ok := strings.Cut(text, "://"); ok && !strings.Contains(rest, "/") || strings.HasSuffix(text, "/") {
			name = "index.html"
		}
		if w.loose || strings.ContainsAny(name, "*[{") {
			r.tree(literal(folder))
			continue
		}
		r.write(literal(folder + "/" + name))
	}
}

func (r *reader) curl(c *arguments) stream {
	folder := "."
	for _, w := range c.values("--output-dir") {
		folder = w.text
	}
	for _, w := range c.values("-o --output") {
		if folder != "." && !IsAbs(w.text) {
			w.text = folder + "/" + w.text
		}
		if w.text != "-" {
			r.write(w)
		}
	}
	if c.any("-O --remote-name --remote-name-all") {
		r.fetched(folder, c.operands)
	}
	if c.any("-J --remote-header-name") {
		r.tree(literal(folder))
	}
	return stream{}
}

func (r *reader) wget(c *arguments) stream {
	folder := "."
	for _, w := range c.values("-P --directory-prefix") {
		folder = w.text
	}
	switch {
	case c.any("-O --output-document"):
		r.writeAll(c.values("-O --output-document"))
	case c.any("-r --recursive -m --mirror -p --page-requisites -i --input-file -x --force-directories " +
		"--content-disposition"):
		r.tree(literal(folder))
	default:
		r.fetched(folder, c.operands)
	}
	return stream{}
}
