package main

import (
	"runtime"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
)

func newVersion(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:         "version",
		Short:       "Print the version",
		Args:        cli.NoArgs,
		Annotations: map[string]string{cli.Offline: "true"},
		RunE: func(*cobra.Command, []string) error {
			id, dirty := cli.Commit()
			platform := runtime.GOOS + "/" + runtime.GOARCH
			if a.JSON() {
				return a.Print(struct {
					Version  string `json:"version"`
					Commit   string `json:"commit,omitempty"`
					Dirty    bool   `json:"dirty,omitempty"`
					Go       string `json:"go"`
					Platform string `json:"platform"`
				}{cli.Version(), id, dirty, runtime.Version(), platform})
			}
			a.Say("interlock %s\n", cli.Version())
			if id != "" {
				if dirty {
					id += " and changes"
				}
				a.Say("commit    %s\n", id)
			}
			a.Say("built by  %s for %s\n", runtime.Version(), platform)
			return nil
		},
	}
}
