package shell

import (
	"path"
	"path/filepath"
	"strings"
)

// Join returns a path that begins at a folder; "" if the folder is not known and the path begins at it.
func Join(dir, file string) string {
	whole := file
	switch {
	case IsAbs(file):
	case dir == "" || file == "":
		return ""
	default:
		whole = dir + "/" + file
	}
	clean := Clean(whole)
	if strings.Contains(whole, top) && !strings.Contains(clean, top) {
		return "" // a folder above a checkout
	}
	return clean
}

// top is the last part of the path of a checkout's top folder, behind a folder inside of the checkout.
const top = "/\x00"

// Top returns a path with the top folders of checkouts that find knows in place of computed ones. It
// returns "" if one of them is not known.
func Top(file string, find func(folder string) string) string {
	for {
		folder, rest, found := strings.Cut(file, top)
		if !found {
			return file
		}
		if folder = find(folder); folder == "" {
			return ""
		}
		file = Clean(folder + rest)
	}
}

// IsAbs reports whether a path begins at a root, of Unix or of a drive of Windows.
func IsAbs(file string) bool {
	if strings.HasPrefix(file, "/") || strings.HasPrefix(file, `\\`) {
		return true
	}
	return len(file) > 2 && file[1] == ':' && (file[2] == '\\' || file[2] == '/') &&
		('a' <= file[0]|0x20 && file[0]|0x20 <= 'z')
}

// Clean cleans a path of this system, or of another one.
func Clean(file string) string {
	if IsAbs(file) && !strings.HasPrefix(file, "/") {
		return path.Clean(strings.ReplaceAll(file, `\`, "/"))
	}
	return path.Clean(file)
}

// base returns the name of a program without its folder.
func base(program string) string {
	return strings.TrimSuffix(path.Base(filepath.ToSlash(program)), ".exe")
}

// Patched returns the files of a patch in the form of apply_patch.
func Patched(patch string) (targets []Target) {
	for line := range strings.Lines(patch) {
		for _, begin := range []string{"*** Update File: ", "*** Add File: ", "*** Delete File: ", "*** Move to: "} {
			if path, ok := strings.CutPrefix(line, begin); ok {
				if path = strings.TrimSpace(path); path != "" {
					targets = append(targets, Target{Path: path})
				}
			}
		}
	}
	return targets
}

// Words returns the command line that has these words: a shell's own, where they call one.
func Words(words []string) string {
	if len(words) == 3 && shells[base(words[0])] && strings.HasPrefix(words[1], "-") {
		return words[2]
	}
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
	}
	return strings.Join(quoted, " ")
}
