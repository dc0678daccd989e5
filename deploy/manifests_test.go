package deploy

import (
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

var update = flag.Bool("update", false, "write the plain manifests anew")

// forms are the plain manifests, by the values that they are rendered from.
var forms = []string{"file", "postgres"}

// manifests returns what the chart renders for a form, in one file, without what Helm alone uses.
func manifests(t *testing.T, form string) string {
	t.Helper()
	in := valuesOf(t, form)
	in.release, in.namespace = "interlock", "interlock"
	files, err := render(in)
	if err != nil {
		t.Fatal(err)
	}
	delete(files, "NOTES.txt")
	var all []string
	for _, name := range slices.Sorted(maps.Keys(files)) {
		all = append(all, files[name])
	}
	var lines []string
	for line := range strings.Lines(strings.Join(all, "---\n")) {
		if !strings.Contains(line, "app.kubernetes.io/managed-by: Helm") {
			lines = append(lines, line)
		}
	}
	return "# Rendered from the chart in deploy/helm/interlock: go -C deploy test . -run Manifests -update\n" +
		strings.Join(lines, "")
}

// The plain manifests are what the chart renders.
func TestManifestsAreTheCharts(t *testing.T) {
	for _, form := range forms {
		file := filepath.Join("kubernetes", form, "interlock.yaml")
		want := manifests(t, form)
		if *update {
			if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(file)
		if err != nil || string(got) != want {
			t.Errorf("%s is not what the chart renders: go -C deploy test . -run Manifests -update (%v)", file, err)
		}
	}
}

// Kustomize takes the manifests as a base: an overlay changes the namespace, the image and the number of servers.
func TestManifestsAreABase(t *testing.T) {
	for _, form := range forms {
		t.Run(form, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.CopyFS(filepath.Join(dir, "base"), os.DirFS(filepath.Join("kubernetes", form))); err != nil {
				t.Fatal(err)
			}
			const overlay = `apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
namespace: agents
resources: [base]
images: [{name: registry.example.com/interlock, newName: registry.internal/interlock, newTag: 1.2.3}]
`
			if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(overlay), 0o644); err != nil {
				t.Fatal(err)
			}
			built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
			if err != nil {
				t.Fatal(err)
			}
			text, err := built.AsYaml()
			if err != nil {
				t.Fatal(err)
			}
			all, err := decode(string(text))
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range all {
				if o.GetNamespace() != "agents" {
					t.Errorf("%T %s is in the namespace %q", o, o.GetName(), o.GetNamespace())
				}
			}
			if image := pod(t, all).Spec.Containers[0].Image; image != "registry.internal/interlock:1.2.3" {
				t.Errorf("the image is %s", image)
			}
		})
	}
}
