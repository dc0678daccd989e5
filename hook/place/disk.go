package place

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// disk is a file system that compares names.
type disk struct {
	lstat func(path string) (os.FileInfo, error)
	// names returns some names in a folder.
	names func(dir string) []string
	same  func(a, b os.FileInfo) bool
}

var realDisk = disk{lstat: os.Lstat, names: someNames, same: os.SameFile}

// maxNames bounds how many names of a folder are read to learn how it compares them.
const maxNames = 64

func someNames(dir string) []string {
	f, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer f.Close()
	names, _ := f.Readdirnames(maxNames) // those that could be read are enough
	return names
}

// spell returns a path below a folder in the one spelling that all have which the disk takes for the same path.
func (d disk) spell(dir, path string) string {
	spelled := parts(path)
	for i, name := range spelled {
		// The parts that do not exist yet are compared as in the last folder that does.
		if d.ignores(dir, name, swapCase) {
			spelled[i] = strings.ToLower(spelled[i])
		}
		switch composed := norm.NFC.String(name); {
		case composed == name:
		case d.ignores(dir, name, otherForm):
			spelled[i] = norm.NFC.String(spelled[i])
		default:
			spelled[i] = escape(spelled[i])
		}
		if next := filepath.Join(dir, name); d.isThere(next) {
			dir = next
		}
	}
	return strings.Join(spelled, "/")
}

func (d disk) isThere(path string) bool {
	_, err := d.lstat(path)
	return err == nil
}

// ignores reports whether a folder takes a name in another spelling for the same name. A name that is not there is
// compared as one that is, and in a folder without such a name as the folder's own.
func (d disk) ignores(dir, name string, other func(string) string) bool {
	if other(name) == name {
		return false
	}
	if is, known := d.equal(dir, name, other); known {
		return is
	}
	for _, one := range d.names(dir) {
		if is, known := d.equal(dir, one, other); known {
			return is
		}
	}
	// The folders above are the last hint: most disks compare all names alike.
	for ; dir != ""; dir = above(dir) {
		if is, known := d.equal(filepath.Dir(dir), filepath.Base(dir), other); known {
			return is
		}
	}
	return false
}

// equal reports whether two spellings of a name are one file. It is not known of a file that is not there, or that has
// one spelling.
func (d disk) equal(dir, name string, other func(string) string) (is, known bool) {
	spelled := other(name)
	if spelled == name {
		return false, false
	}
	a, err := d.lstat(filepath.Join(dir, name))
	if err != nil {
		return false, false
	}
	b, err := d.lstat(filepath.Join(dir, spelled))
	return err == nil && d.same(a, b), true
}

// swapCase returns a name with its letters in the other case.
func swapCase(name string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsUpper(r) {
			return unicode.ToLower(r)
		}
		return unicode.ToUpper(r)
	}, name)
}

// otherForm returns a name in the normal form that it does not have.
func otherForm(name string) string {
	if composed := norm.NFC.String(name); composed != name {
		return composed
	}
	return norm.NFD.String(name)
}

// escape writes what is not ASCII in a name as '%' and its bytes: keys are in normal form C.
func escape(name string) string {
	var b strings.Builder
	for i := range len(name) {
		if c := name[i]; c < 0x80 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}
