package main

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"
)

func main() {
	base := flag.String("base", "", "compare with this commit (by default, where the branch left main)")
	apart := flag.String("apart", "", "packages that are suites of their own, as a pattern of import paths")
	budget := flag.Duration("budget", 150*time.Second, "the time for tests of packages that have not changed")
	only := flag.Bool("n", false, "print what would run, and run nothing")
	flag.Usage = func() {
		fmt.Fprintln(os.Stderr, "usage: reach [-base COMMIT] [-apart PATTERN] [-budget TIME] [-n] -- FLAGS OF GO TEST")
	}
	flag.Parse()
	began := time.Now()
	if err := work(*base, *apart, began.Add(*budget), *only, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "reach:", err)
		os.Exit(1)
	}
}

func work(base, apart string, deadline time.Time, only bool, flags []string) error {
	root, err := git(".", "rev-parse", "--show-toplevel")
	if err != nil {
		return err
	}
	root = strings.TrimSpace(root)
	if base == "" {
		if base, err = branchPoint(root); err != nil {
			return err
		}
	}
	var suites *regexp.Regexp
	if apart != "" {
		if suites, err = regexp.Compile(apart); err != nil {
			return err
		}
	}
	c, err := changed(root, base)
	if err != nil {
		return err
	}
	p, err := choose(root, c, suites, registers)
	if err != nil {
		return err
	}
	r := &runner{root: root, flags: flags, out: os.Stdout, log: os.Stderr, deadline: deadline}
	r.announce(c, p)
	if only {
		for _, one := range p.runs {
			fmt.Fprintln(os.Stderr, one.dir, one.pattern())
		}
		return nil
	}
	return r.run(p)
}
