package deploy

import (
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
)

const chartDir = "helm/interlock"

// install is how a release of the chart is called and configured.
type install struct {
	release, namespace string
	values             map[string]any
}

// render returns what the chart makes of an installation, by the names of its templates.
func render(in install) (map[string]string, error) {
	chart, err := loader.Load(chartDir)
	if err != nil {
		return nil, err
	}
	options := chartutil.ReleaseOptions{Name: in.release, Namespace: in.namespace, Revision: 1, IsInstall: true}
	values, err := chartutil.ToRenderValues(chart, in.values, options, chartutil.DefaultCapabilities)
	if err != nil {
		return nil, err
	}
	files, err := engine.Engine{Strict: true}.Render(chart, values)
	if err != nil {
		return nil, err
	}
	rendered := map[string]string{}
	for name, text := range files {
		if text = strings.TrimSpace(text); text != "" && !strings.HasPrefix(path.Base(name), "_") {
			rendered[path.Base(name)] = text + "\n"
		}
	}
	return rendered, nil
}

// each runs f for each set of values.
func each(t *testing.T, f func(t *testing.T, in install)) {
	files, err := filepath.Glob("testdata/values/*.yaml")
	if err != nil || len(files) != 8 {
		t.Fatalf("there are the values %q: %v", files, err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		t.Run(name, func(t *testing.T) {
			f(t, valuesOf(t, name))
		})
	}
}

// valuesOf returns an installation with one of the sets of values.
func valuesOf(t *testing.T, name string) install {
	t.Helper()
	values, err := chartutil.ReadValuesFile(filepath.Join("testdata/values", name+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return install{release: "prod", namespace: "locks", values: values}
}

// objects returns what the chart renders, decoded strictly.
func objects(t *testing.T, in install) []object {
	t.Helper()
	files, err := render(in)
	if err != nil {
		t.Fatal(err)
	}
	var all []object
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if name == "NOTES.txt" {
			continue
		}
		found, err := decode(files[name])
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, files[name])
		}
		all = append(all, found...)
	}
	return all
}

// helm lint has no complaint but the missing icon.
func TestLint(t *testing.T) {
	each(t, func(t *testing.T, in install) {
		result := lint.All(chartDir, in.values, in.namespace, true)
		for _, m := range result.Messages {
			if m.Severity > support.InfoSev || !strings.Contains(m.Err.Error(), "icon is recommended") {
				t.Error(m)
			}
		}
	})
}

// The notes name an address that the chart's Service has.
func TestNotes(t *testing.T) {
	each(t, func(t *testing.T, in install) {
		files, err := render(in)
		if err != nil {
			t.Fatal(err)
		}
		services := of[*service](objects(t, in))
		want := fmt.Sprintf("://%s.%s.svc:7420", services[1].Name, in.namespace)
		if !strings.Contains(files["NOTES.txt"], want) {
			t.Errorf("the notes lack %s:\n%s", want, files["NOTES.txt"])
		}
	})
}

// Values that would make a server that does not start, or one that is open, are refused before anything is installed.
func TestRefusedValues(t *testing.T) {
	for _, tt := range []struct{ name, values, want string }{
		{"no credentials", "insecure: false", "name the Secret with the credentials"},
		{"no image", "image: {repository: ''}", "repository"},
		{"two journals", "{journal: {url: 'etcd://a/b', urlSecret: {name: c}}}", "two places"},
		{"a password in the URL", "{journal: {url: 'postgres://u:secret@h/d'}}", "journal"},
		{"a misspelt value", "{replica: 3}", "replica"},
		{"a misspelt value below", "{journal: {volume: {sise: 1Gi}}}", "sise"},
		{"no server", "{replicas: 0}", "replicas"},
		{"a backup that every server restores", "{settings: {restore: /backup}}", "restore"},
		{"a backup elsewhere", "{restore: {claim: a, path: ../b}}", "path"},
		{"a folder elsewhere", "{journal: {volume: {folder: ../b}}}", "folder"},
		{"a flag that the chart sets", "{settings: {data-dir: /tmp}}", "data-dir"},
		{"a short digest", "{image: {digest: 'sha256:12'}}", "digest"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			values, err := chartutil.ReadValues([]byte(tt.values))
			if err != nil {
				t.Fatal(err)
			}
			in := valuesOf(t, "insecure")
			in.values = chartutil.CoalesceTables(values, in.values)
			_, err = render(in)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("the chart answers %v, want %q", err, tt.want)
			}
		})
	}
}
