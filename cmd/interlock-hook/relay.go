package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/interlockdev/interlock/internal/home"
)

// relay passes the event on by `interlock hooks relay`, which speaks TLS. It returns only if that
// fails.
func relay(args []string, settings *home.Hook) error {
	program, err := interlock()
	if err != nil {
		return err
	}
	own := settings.Variables()
	env := slices.DeleteFunc(os.Environ(), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.ContainsFunc(own, func(v string) bool { return strings.HasPrefix(v, name+"=") })
	})
	env = append(env, own...)
	return become(program, append([]string{"interlock", "hooks", "relay"}, args...), env)
}

// interlock finds the full binary: beside this one, else on PATH.
func interlock() (string, error) {
	name := "interlock"
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	if own, err := os.Executable(); err == nil {
		beside := filepath.Join(filepath.Dir(own), name)
		if info, err := os.Stat(beside); err == nil && info.Mode().IsRegular() {
			return beside, nil
		}
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", errors.New("a server with https needs the binary interlock, beside interlock-hook or on PATH")
	}
	return path, nil
}
