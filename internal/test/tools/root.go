package tools

import (
	"bytes"
	"os"
	"path/filepath"
)

// root is found when the process starts, because a test may leave its folder later. It is not the folder of this file
// as the compiler knows it: with -trimpath that is no folder at all.
var root = rootAbove(".")

// Root returns the folder of the repository. It panics in a process that was started outside.
func Root() string {
	if root == "" {
		panic("this process was started outside of the repository")
	}
	return root
}

// rootAbove returns the nearest folder, from this one upwards, with the go.mod of this module; "" if there is none. The
// modules below it, which keep what they need apart, have other names.
func rootAbove(folder string) string {
	folder, err := filepath.Abs(folder)
	if err != nil {
		return ""
	}
	for {
		text, err := os.ReadFile(filepath.Join(folder, "go.mod"))
		if err == nil && bytes.HasPrefix(text, []byte("module github.com/interlockdev/interlock\n")) {
			return folder
		}
		parent := filepath.Dir(folder)
		if parent == folder {
			return ""
		}
		folder = parent
	}
}
