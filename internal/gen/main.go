package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/interlockdev/interlock/internal/gen/journal"
	"github.com/interlockdev/interlock/internal/gen/jsoncodec"
	"github.com/interlockdev/interlock/internal/gen/openapi"
	"github.com/interlockdev/interlock/internal/gen/python"
	"github.com/interlockdev/interlock/internal/gen/schema"
	"github.com/interlockdev/interlock/internal/gen/source"
	"github.com/interlockdev/interlock/internal/gen/stream"
	"github.com/interlockdev/interlock/internal/gen/typescript"
)

// emitter writes the files of one kind.
type emitter struct {
	name string
	// emit returns the texts of all its files, by their slash-separated names below the root
	// of the module.
	emit func(*source.Tree) (map[string][]byte, error)
}

var emitters = []emitter{
	{"journal", journal.Emit},
	{"jsoncodec", jsoncodec.Emit},
	{"openapi", openapi.Emit},
	{"python", python.Emit},
	{"schema", schema.Emit},
	{"stream", stream.Emit},
	{"typescript", typescript.Emit},
}

func main() {
	check := flag.Bool("check", false, "write nothing, and fail if a generated file is stale")
	flag.Parse()
	if err := run(*check); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

func run(check bool) error {
	root, err := moduleRoot()
	if err != nil {
		return err
	}
	files, err := generate(root)
	if err != nil {
		return err
	}
	stale, err := staleFiles(root, files)
	if err != nil {
		return err
	}
	if check {
		if len(stale) > 0 {
			return fmt.Errorf("run make generate, these files are stale: %s", strings.Join(stale, ", "))
		}
		return nil
	}
	for _, name := range stale {
		full := filepath.Join(root, filepath.FromSlash(name))
		text, wanted := files[name]
		if !wanted {
			err = os.Remove(full)
		} else {
			err = os.WriteFile(full, text, 0o644)
		}
		if err != nil {
			return err
		}
		fmt.Println(name)
	}
	return nil
}

// generate returns the texts of all generated files.
func generate(root string) (map[string][]byte, error) {
	tree, err := source.Open(root)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for _, e := range emitters {
		emitted, err := e.emit(tree)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", e.name, err)
		}
		for name, text := range emitted {
			if _, taken := files[name]; taken {
				return nil, fmt.Errorf("%s: another emitter writes %s as well", e.name, name)
			}
			files[name] = text
		}
	}
	return files, nil
}

// staleFiles returns the names of the files that differ from their text in files, and of the generated
// files that no emitter writes any more, sorted.
func staleFiles(root string, files map[string][]byte) (stale []string, err error) {
	for name, text := range files {
		now, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		if err != nil || !bytes.Equal(now, text) {
			stale = append(stale, name)
		}
	}
	old, err := source.Generated(root)
	if err != nil {
		return nil, err
	}
	for _, name := range old {
		if _, wanted := files[name]; !wanted {
			stale = append(stale, name)
		}
	}
	slices.Sort(stale)
	return stale, nil
}

// moduleRoot is the nearest folder with a go.mod, from the working directory upwards.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("no go.mod in the working directory or above it")
		}
		dir = parent
	}
}
