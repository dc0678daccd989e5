package demo

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/interlockdev/interlock/internal/test/launchtest"
	"github.com/interlockdev/interlock/internal/test/tools"
)

// With hooks no edit is lost and no build fails; without them both happens.
func TestAgents(t *testing.T) {
	tools.Need(t, "git")
	var out bytes.Buffer
	cfg := Config{Out: &out, JSON: true, Dir: t.TempDir(), Binary: launchtest.Binary(t), Speed: 20, Agents: 4}
	if err := Agents(t.Context(), cfg); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	var r agentsResult
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	if r.Without.Lost == 0 || r.Without.Edits != 8 || r.Without.Builds != 8 || r.Without.Refused != 0 {
		t.Errorf("without hooks: %+v", r.Without)
	}
	if r.With.Lost != 0 || r.With.Broken != 0 || r.With.LastBroken || r.With.Edits != 8 || r.With.Builds != 8 ||
		r.With.Refused < 3 {
		t.Errorf("with hooks: %+v", r.With)
	}
	for _, e := range append(edits("refund"), edits("invoice")...) {
		text, err := os.ReadFile(filepath.Join(cfg.Dir, "with-hooks", "shop", e.file))
		if err != nil || strings.Count(string(text), e.line) != 1 {
			t.Errorf("%s: %v\n%s", e.file, err, text)
		}
	}
}

func TestAgentsTellsItsStory(t *testing.T) {
	tools.Need(t, "git")
	var out bytes.Buffer
	cfg := Config{Out: &out, Dir: t.TempDir(), Binary: launchtest.Binary(t), Speed: 30, Agents: 2}
	if err := Agents(t.Context(), cfg); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	for _, want := range []string{
		"2 coding agents", "1. Without hooks", "2. With hooks", "> ", "read it again", "lost edits", "0 of 4", "interlock init",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the story lacks %q:\n%s", want, out.String())
		}
	}
}

func TestAgentsNeedsTheHookProgram(t *testing.T) {
	if _, err := newHookProgram(filepath.Join(t.TempDir(), "interlock"), ""); err == nil ||
		!strings.Contains(err.Error(), "make build") {
		t.Errorf("error %v", err)
	}
}

func TestBuild(t *testing.T) {
	dir := t.TempDir()
	if err := makeShop(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	if err := build(dir); err != nil {
		t.Error(err)
	}
	add := func(e edit) {
		path := filepath.Join(dir, e.file)
		text, err := os.ReadFile(path)
		if err == nil {
			err = replace(path, e.in(string(text)))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	refund := edits("refund")
	add(refund[1])
	if err := build(dir); err == nil || !strings.Contains(err.Error(), "undefined: refund") {
		t.Errorf("a route without its handler: %v", err)
	}
	add(refund[0])
	if err := build(dir); err != nil {
		t.Error(err)
	}
}
