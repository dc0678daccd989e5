package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"

	"github.com/interlockdev/interlock/deploy"
)

func main() {
	check := flag.Bool("check", false, "write nothing, and fail if the dashboard is stale")
	flag.Parse()
	if err := run(deploy.DashboardFile, *check); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

func run(name string, check bool) error {
	want, err := deploy.Dashboard()
	if err != nil {
		return err
	}
	now, err := os.ReadFile(name)
	if err == nil && bytes.Equal(now, want) {
		return nil
	}
	if check {
		return errors.Join(err, fmt.Errorf("run make generate, this file is stale: deploy/%s", name))
	}
	if err := os.WriteFile(name, want, 0o644); err != nil {
		return err
	}
	fmt.Println("deploy/" + name)
	return nil
}
