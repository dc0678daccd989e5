package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/interlockdev/interlock/internal/release/npm"
	"github.com/interlockdev/interlock/internal/release/wheel"
)

// target is a platform that a release is built for.
type target struct{ os, arch string }

func (t target) String() string { return t.os + "/" + t.arch }

// targets lists the platforms of a release.
var targets = []target{
	{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"}, {"windows", "amd64"},
}

func main() {
	out := flag.String("o", "dist/release", "the `directory` to write to; it is emptied first")
	only := flag.String("targets", "", "build only these `platforms`, such as linux/amd64,darwin/arm64")
	version := flag.String("version", "", "the `version` to build, such as v0.2.0, instead of the commit's tag")
	image := flag.Bool("image", false, "build nothing but the image, for linux/amd64 and linux/arm64")
	flag.Parse()
	if err := run(*out, *only, *version, *image); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(out, only, version string, image bool) error {
	r, err := describe(".", version)
	if err != nil {
		return err
	}
	if r.out, err = filepath.Abs(out); err != nil {
		return err
	}
	all := targets
	if image {
		all = imageTargets
	}
	wanted, err := choose(all, only)
	if err != nil {
		return err
	}
	if image {
		ids, err := r.image(wanted)
		if err != nil {
			return err
		}
		fmt.Printf("image interlock:%s of commit %s: %s\n", r.number(), r.commit, strings.Join(ids, " "))
		return nil
	}
	if err := r.build(wanted); err != nil {
		return err
	}
	fmt.Printf("release %s of commit %s is in %s\n", r.version, r.commit, out)
	return nil
}

// npm writes the package of the client for TypeScript.
func (r *release) npm() error {
	body, err := npm.Pack(r.root, r.number(), r.time)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.out, npm.Name(r.number())), body, 0o644)
}

// choose returns the targets that a list names, or all of them.
func choose(targets []target, list string) ([]target, error) {
	if list == "" {
		return targets, nil
	}
	var chosen []target
	for name := range strings.SplitSeq(list, ",") {
		i := slices.IndexFunc(targets, func(t target) bool { return t.String() == name })
		if i < 0 {
			return nil, fmt.Errorf("no target %q: there are %v", name, targets)
		}
		chosen = append(chosen, targets[i])
	}
	return chosen, nil
}

// build writes all files of the release.
func (r *release) build(wanted []target) error {
	if err := os.RemoveAll(r.out); err != nil {
		return err
	}
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "interlock-release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	completions, err := r.completions(work)
	if err != nil {
		return err
	}
	for _, t := range wanted {
		b, err := r.compile(t, work)
		if err != nil {
			return err
		}
		if b.licences, err = r.licences(b); err != nil {
			return err
		}
		if err := r.archive(b, completions); err != nil {
			return err
		}
		if err := r.billOfMaterials(b); err != nil {
			return err
		}
		if t.os == "linux" {
			if err := r.packages(b, completions, work); err != nil {
				return err
			}
		}
	}
	if err := r.npm(); err != nil {
		return err
	}
	if err := wheel.Build(r.root, r.out, r.number(), r.time); err != nil {
		return err
	}
	if err := r.formula(); err != nil {
		return err
	}
	return r.sums()
}
