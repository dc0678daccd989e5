package cli

import "runtime/debug"

// release is the version of a release build. The linker sets it (see internal/release).
var release string

// Version prints the version of this program.
func Version() string {
	if release != "" {
		return release
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "dev"
}

// Commit is the revision that was built, if the build knows.
func Commit() (id string, dirty bool) {
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
