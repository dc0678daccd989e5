package main

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// A bill of materials as CycloneDX 1.6 defines it; only what is written here.
type (
	bom struct {
		Schema       string       `json:"$schema"`
		Format       string       `json:"bomFormat"`
		SpecVersion  string       `json:"specVersion"`
		Version      int          `json:"version"`
		Metadata     metadata     `json:"metadata"`
		Components   []component  `json:"components"`
		Dependencies []dependency `json:"dependencies"`
	}
	metadata struct {
		Timestamp string     `json:"timestamp"`
		Component component  `json:"component"`
		Property  []property `json:"properties"`
	}
	component struct {
		Type    string    `json:"type"`
		Ref     string    `json:"bom-ref"`
		Name    string    `json:"name"`
		Version string    `json:"version"`
		PURL    string    `json:"purl,omitempty"`
		License []license `json:"licenses,omitempty"`
		Hashes  []hash    `json:"hashes,omitempty"`
	}
	license struct {
		License struct {
			ID string `json:"id"`
		} `json:"license"`
	}
	hash struct {
		Algorithm string `json:"alg"`
		Content   string `json:"content"`
	}
	property struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	}
	dependency struct {
		Ref       string   `json:"ref"`
		DependsOn []string `json:"dependsOn"`
	}
)

// billOfMaterials lists the modules that are in a binary, as the linker recorded them.
func (r *release) billOfMaterials(b *binary) error {
	sum, err := sha256Of(b.path)
	if err != nil {
		return err
	}
	own := goModule(module, r.version)
	own.Type, own.License = "application", make([]license, 1)
	own.License[0].License.ID = "Apache-2.0"
	own.Hashes = []hash{{"SHA-256", sum}}
	library := component{
		Type: "library", Ref: "pkg:golang/std@" + b.info.GoVersion, Name: "std", Version: b.info.GoVersion,
		PURL: "pkg:golang/std@" + strings.TrimPrefix(b.info.GoVersion, "go"),
	}
	components, refs := []component{library}, []string{library.Ref}
	for _, m := range b.modules() {
		c := goModule(m.Path, m.Version)
		if digest, ok := strings.CutPrefix(m.Sum, "h1:"); ok {
			raw, err := base64.StdEncoding.DecodeString(digest)
			if err != nil {
				return fmt.Errorf("the sum of %s: %w", m.Path, err)
			}
			c.Hashes = []hash{{"SHA-256", hex.EncodeToString(raw)}}
		}
		components, refs = append(components, c), append(refs, c.Ref)
	}
	text, err := json.MarshalIndent(bom{
		Schema: "http://cyclonedx.org/schema/bom-1.6.schema.json", Format: "CycloneDX", SpecVersion: "1.6", Version: 1,
		Metadata: metadata{
			Timestamp: r.time.Format("2006-01-02T15:04:05Z"), Component: own,
			Property: []property{{"interlock:commit", r.commit}, {"interlock:platform", b.String()}},
		},
		Components: components, Dependencies: []dependency{{own.Ref, refs}},
	}, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.out, r.stem(b)+".cdx.json"), append(text, '\n'), 0o644)
}

// goModule is a Go module as a component.
func goModule(path, version string) component {
	purl := "pkg:golang/" + path + "@" + version
	return component{Type: "library", Ref: purl, Name: path, Version: version, PURL: purl}
}
