package home

import (
	"os"
	"path/filepath"
	"testing"
)

func TestHookText(t *testing.T) {
	h := Hook{URL: "http://a:1,http://b:2", Credential: "s=1", CAFile: "/ca.pem", Namespace: "team"}
	if got := ParseHook(h.Text()); got != h {
		t.Errorf("the file reads as %+v, want %+v", got, h)
	}
	got := ParseHook("INTERLOCK_URL = http://a:1 \r\nOTHER=1\nINTERLOCK_NAMESPACE\n# INTERLOCK_CREDENTIAL=x\n")
	if want := (Hook{URL: "http://a:1"}); got != want {
		t.Errorf("a file edited by hand reads as %+v, want %+v", got, want)
	}
}

func TestLoadHook(t *testing.T) {
	file := Hook{URL: "http://a:1", Credential: "of-a", CAFile: "/a.pem", Namespace: "team"}
	for _, tt := range []struct {
		name string
		env  map[string]string
		want Hook
	}{
		{"no variable", nil, file},
		{
			"another server",
			map[string]string{"INTERLOCK_URL": "http://b:2"},
			Hook{URL: "http://b:2", Namespace: "team"},
		},
		{
			"another credential",
			map[string]string{"INTERLOCK_CREDENTIAL_FILE": "/mine"},
			Hook{URL: "http://a:1", CredentialFile: "/mine", CAFile: "/a.pem", Namespace: "team"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			t.Setenv("INTERLOCK_CONFIG", filepath.Join(dir, "config.json"))
			for _, name := range []string{"URL", "CREDENTIAL", "CREDENTIAL_FILE", "TLS_CA", "NAMESPACE"} {
				t.Setenv("INTERLOCK_"+name, tt.env["INTERLOCK_"+name])
			}
			if err := os.WriteFile(filepath.Join(dir, "hook.env"), []byte(file.Text()), 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := LoadHook()
			if err != nil || got != tt.want {
				t.Errorf("%+v (%v), want %+v", got, err, tt.want)
			}
		})
	}
}

func TestLoadHookWithoutFile(t *testing.T) {
	for _, config := range []string{os.DevNull, filepath.Join(t.TempDir(), "config.json")} {
		t.Setenv("INTERLOCK_CONFIG", config)
		if got, err := LoadHook(); err != nil || got != (Hook{}) {
			t.Errorf("INTERLOCK_CONFIG=%s: %+v (%v), want nothing", config, got, err)
		}
	}
	t.Setenv("INTERLOCK_CONFIG", os.DevNull)
	if path, err := HookFile(); err == nil {
		t.Errorf("beside %s the settings would be %s", os.DevNull, path)
	}
}

func TestSecret(t *testing.T) {
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte("s3cret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	h := Hook{CredentialFile: file}
	if got, err := h.Secret(); err != nil || got != "s3cret" {
		t.Errorf("%q (%v), want s3cret", got, err)
	}
	h.CredentialFile += ".missing"
	if _, err := h.Secret(); err == nil {
		t.Error("a credential file that is not there is no error")
	}
}
