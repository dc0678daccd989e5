package main

import (
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// release is the version of a release build: -ldflags "-X main.release=v1.2.3".
var release string

// version prints the version of this program.
func version() string {
	if release != "" {
		return release
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "dev"
}

// commit is the revision that was built, if the build knows.
func commit() (id string, dirty bool) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "", false
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			id = s.Value
		case "vcs.modified":
			dirty = s.Value == "true"
		}
	}
	return id, dirty
}

func newVersion(a *app) *cobra.Command {
	return &cobra.Command{
		Use:         "version",
		Short:       "Print the version",
		Args:        noArgs,
		Annotations: map[string]string{offline: "true"},
		RunE: func(*cobra.Command, []string) error {
			id, dirty := commit()
			platform := runtime.GOOS + "/" + runtime.GOARCH
			if a.json() {
				return a.print(struct {
					Version  string `json:"version"`
					Commit   string `json:"commit,omitempty"`
					Dirty    bool   `json:"dirty,omitempty"`
					Go       string `json:"go"`
					Platform string `json:"platform"`
				}{version(), id, dirty, runtime.Version(), platform})
			}
			a.say("interlock %s\n", version())
			if id != "" {
				if dirty {
					id += " and changes"
				}
				a.say("commit    %s\n", id)
			}
			a.say("built by  %s for %s\n", runtime.Version(), platform)
			return nil
		},
	}
}
