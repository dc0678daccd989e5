package main

import (
	"debug/buildinfo"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
)

const (
	module  = "github.com/interlockdev/interlock"
	command = module + "/cmd/interlock"
	hook    = module + "/cmd/interlock-hook"
	// variable and hookVariable are set to the version when the commands are linked.
	variable     = command + "/internal/cli.release"
	hookVariable = "main.release"
)

// binary is the command, built for one platform, with the small one for hooks.
type binary struct {
	target
	path     string
	hook     string // path of interlock-hook, which has no module beside ours
	info     *debug.BuildInfo
	licences []byte // of the modules in it
}

// name is the name of the command on its platform.
func (b *binary) name() string { return "interlock" + b.suffix() }

// hookName is likewise that of the command for hooks.
func (b *binary) hookName() string { return "interlock-hook" + b.suffix() }

func (b *binary) suffix() string {
	if b.os == "windows" {
		return ".exe"
	}
	return ""
}

// compile builds the command for one platform below the folder work, and the one for hooks beside it. Neither the paths
// of this machine nor the state of the checkout get into them.
func (r *release) compile(t target, work string) (*binary, error) {
	b := &binary{target: t}
	if err := r.command(b, filepath.Join(work, t.os+"_"+t.arch, b.name())); err != nil {
		return nil, err
	}
	b.hook = filepath.Join(filepath.Dir(b.path), b.hookName())
	return b, r.link(b, b.hook, hook, hookVariable)
}

// command builds the command alone.
func (r *release) command(b *binary, path string) (err error) {
	b.path = path
	if err := r.link(b, path, command, variable); err != nil {
		return err
	}
	b.info, err = buildinfo.ReadFile(path)
	return err
}

// link builds a command with its version for the platform of b.
func (r *release) link(b *binary, path, command, variable string) error {
	env := []string{
		"CGO_ENABLED=0", "GOOS=" + b.os, "GOARCH=" + b.arch, "GOAMD64=v1", "GOARM64=v8.0", "GOEXPERIMENT=",
	}
	return do(
		r.root, env, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w -X "+variable+"="+r.version,
		"-o", path, command,
	)
}

// modules lists the modules in the binary, with what replaces them.
func (b *binary) modules() (list []*debug.Module) {
	for _, m := range b.info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		list = append(list, m)
	}
	return list
}

// completions returns the completion scripts, by the names of their shells.
func (r *release) completions(work string) (map[string][]byte, error) {
	own, err := r.compile(target{runtime.GOOS, runtime.GOARCH}, work)
	if err != nil {
		return nil, err
	}
	scripts := map[string][]byte{}
	for _, shell := range []string{"bash", "zsh", "fish"} {
		cmd := exec.Command(own.path, "completion", shell)
		out, err := cmd.Output()
		if err != nil {
			return nil, failed(cmd, err)
		}
		scripts[shell] = out
	}
	return scripts, nil
}

// licences returns the licences of all modules in a binary, which ask to be passed on with it, and Go's own.
func (r *release) licences(b *binary) ([]byte, error) {
	var all strings.Builder
	add := func(of, dir string) error {
		found := false
		for _, pattern := range []string{"LICENSE*", "LICENCE*", "COPYING*", "NOTICE*"} {
			names, err := filepath.Glob(filepath.Join(dir, pattern))
			if err != nil {
				return err
			}
			for _, name := range names {
				text, err := os.ReadFile(name)
				if err != nil {
					return err
				}
				found = true
				fmt.Fprintf(&all, "==== %s: %s\n\n%s\n", of, filepath.Base(name), text)
			}
		}
		if !found {
			return fmt.Errorf("module %s has no licence in %s", of, dir)
		}
		return nil
	}
	goroot, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return nil, err
	}
	if err := add("Go "+b.info.GoVersion, strings.TrimSpace(string(goroot))); err != nil {
		return nil, err
	}
	for _, m := range b.modules() {
		cmd := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", m.Path)
		cmd.Dir = r.root
		dir, err := cmd.Output()
		if err != nil {
			return nil, failed(cmd, err)
		}
		if err := add(m.Path+" "+m.Version, strings.TrimSpace(string(dir))); err != nil {
			return nil, err
		}
	}
	return []byte(all.String()), nil
}
