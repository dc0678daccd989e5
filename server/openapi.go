package server

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/interlockdev/interlock"
)

// The paths of openapi.json are written by hand; internal/gen writes the schemas of bodies and
// answers. TestOpenAPI holds it equal to what the server answers, and the table
// of routes to its paths.
//
//go:embed openapi.json
var openAPIFile []byte

// llmsFile tells an agent, in at most 1,000 tokens, how to use the server.
//
//go:embed llms.txt
var llmsFile []byte

// openAPIDocuments are the documents of /openapi.json by the version in them: of one, for all shards of a process.
var openAPIDocuments sync.Map

// openAPIDocument returns the document of /openapi.json: the file with this version in it.
func openAPIDocument(version string) ([]byte, error) {
	if doc, made := openAPIDocuments.Load(version); made {
		return doc.([]byte), nil
	}
	doc, err := withVersion(openAPIFile, `"version": `, version)
	if err != nil {
		return nil, err
	}
	shared, _ := openAPIDocuments.LoadOrStore(version, doc)
	return shared.([]byte), nil
}

// withVersion replaces the version of a document, which begins after mark.
func withVersion(doc []byte, mark, version string) ([]byte, error) {
	dev := []byte(mark + `"dev"`)
	if bytes.Count(doc, dev) != 1 {
		return nil, fmt.Errorf("server: openapi.json has no place for the version")
	}
	return bytes.Replace(doc, dev, appendJSONString([]byte(mark), version), 1), nil
}

// openAPIByTag has the parts of the document by their tags in lower case: the operations with the tag and what they
// refer to.
var openAPIByTag = sync.OnceValues(func() (map[string][]byte, error) {
	var whole openAPIParts
	if err := json.Unmarshal(openAPIFile, &whole); err != nil {
		return nil, fmt.Errorf("server: openapi.json: %w", err)
	}
	parts := map[string][]byte{}
	for _, tag := range whole.Tags {
		var err error
		if parts[strings.ToLower(tag.Name)], err = whole.only(tag.Name); err != nil {
			return nil, fmt.Errorf("server: openapi.json: %w", err)
		}
	}
	return parts, nil
})

// openAPIParts is the document, as far as a part of it differs from the whole.
type openAPIParts struct {
	OpenAPI    string                                `json:"openapi"`
	Info       json.RawMessage                       `json:"info"`
	Servers    json.RawMessage                       `json:"servers"`
	Security   json.RawMessage                       `json:"security"`
	Tags       []openAPITag                          `json:"tags"`
	Paths      map[string]map[string]json.RawMessage `json:"paths"`
	Components map[string]map[string]json.RawMessage `json:"components"`
}

type openAPITag struct {
	Name        string `json:"name"`
	Description string `json:"description"`
}

// only returns the document with the operations of one tag, and the components that they refer to,
// directly or not.
func (p *openAPIParts) only(tag string) ([]byte, error) {
	part := *p
	part.Tags = slices.DeleteFunc(slices.Clone(p.Tags), func(t openAPITag) bool { return t.Name != tag })
	part.Paths = map[string]map[string]json.RawMessage{}
	part.Components = map[string]map[string]json.RawMessage{"securitySchemes": p.Components["securitySchemes"]}
	var texts []json.RawMessage
	for path, item := range p.Paths {
		for method, text := range item {
			var op struct{ Tags []string }
			if err := json.Unmarshal(text, &op); err != nil {
				return nil, err
			}
			if !slices.Contains(op.Tags, tag) {
				continue
			}
			if part.Paths[path] == nil {
				part.Paths[path] = map[string]json.RawMessage{}
			}
			part.Paths[path][method] = text
			texts = append(texts, text)
		}
	}
	for len(texts) > 0 {
		text := texts[len(texts)-1]
		texts = texts[:len(texts)-1]
		for _, ref := range references(text) {
			kind, name, _ := strings.Cut(ref, "/")
			if _, there := part.Components[kind][name]; there {
				continue
			}
			found, ok := p.Components[kind][name]
			if !ok {
				return nil, fmt.Errorf("there is no component %s", ref)
			}
			if part.Components[kind] == nil {
				part.Components[kind] = map[string]json.RawMessage{}
			}
			part.Components[kind][name] = found
			texts = append(texts, found)
		}
	}
	return json.Marshal(&part)
}

// references lists the components that a part of the document refers to, such as schemas/Lease.
func references(text []byte) (list []string) {
	const mark = `"$ref": "#/components/`
	for {
		i := bytes.Index(text, []byte(mark))
		if i < 0 {
			return list
		}
		text = text[i+len(mark):]
		list = append(list, string(text[:bytes.IndexByte(text, '"')]))
	}
}

// getOpenAPI is GET /openapi.json: the whole document, or the part with one tag.
func (c *call) getOpenAPI() {
	if !c.query.Has("tag") {
		c.plain("application/json", c.s.openapi)
		return
	}
	parts, err := openAPIByTag()
	if err != nil {
		c.failWith(err)
		return
	}
	tag := c.query.Get("tag")
	part, known := parts[strings.ToLower(tag)]
	if !known {
		c.refuse(interlock.CodeInvalidRequest, fmt.Sprintf(
			"parameter tag: want one of %s, found %q", strings.Join(slices.Sorted(maps.Keys(parts)), ", "), clipped(tag),
		))
		return
	}
	if part, err = withVersion(part, `"version":`, c.s.version); err != nil {
		c.failWith(err)
		return
	}
	c.plain("application/json", part)
}

// docsURL is where the documentation begins.
const docsURL = "https://github.com/interlockdev/interlock/blob/main/docs/http.md"

// getRoot is GET /: where things are.
func (c *call) getRoot() {
	j := c.reply()
	j.str("name", "interlock")
	j.str("version", c.s.version)
	j.open("links")
	for _, link := range [][2]string{
		{"openapi", "/openapi.json"},
		{"guide", "/llms.txt"},
		{"health", "/healthz"},
		{"ready", "/readyz"},
		{"status", "/v1/status"},
		{"namespace", "/v1/namespace"},
		{"leases", "/v1/leases"},
		{"keys", "/v1/keys"},
		{"mcp", "/mcp"},
		{"docs", docsURL},
	} {
		j.str(link[0], link[1])
	}
	j.close()
	j.close()
	j.b = append(j.b, '\n')
	c.plain("application/json", j.b)
	j.free()
}

// getGuide is GET /llms.txt.
func (c *call) getGuide() { c.plain("text/plain; charset=utf-8", llmsFile) }

func (c *call) plain(contentType string, body []byte) {
	c.answered = true
	h := c.w.Header()
	h.Set("Content-Type", contentType)
	h["X-Content-Type-Options"] = noSniff
	_, _ = c.w.Write(body)
}
