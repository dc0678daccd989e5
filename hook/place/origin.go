package place

import (
	"bufio"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// maxRead bounds what is read of one file.
const maxRead = 1 << 20

// openFile opens a file that an agent may have replaced. It waits for no named pipe.
func openFile(name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		f.Close()
		return nil, fs.ErrInvalid
	}
	return f, nil
}

func readLine(file string) string {
	f, err := openFile(file)
	if err != nil {
		return ""
	}
	defer f.Close()
	line, _ := bufio.NewReader(io.LimitReader(f, maxRead)).ReadString('\n') // the last one may have no end
	return strings.TrimSpace(line)
}

// originName returns the name of a repository by the address of its remote origin, "" without one.
func originName(gitDir string) string {
	f, err := openFile(filepath.Join(gitDir, "config"))
	if err != nil {
		return ""
	}
	defer f.Close()
	inOrigin := false
	lines := bufio.NewScanner(io.LimitReader(f, maxRead))
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		if strings.HasPrefix(line, "[") {
			section, _, _ := strings.Cut(line, "]")
			words := strings.Fields(section[1:])
			inOrigin = len(words) == 2 && strings.EqualFold(words[0], "remote") && words[1] == `"origin"`
			continue
		}
		name, value, ok := strings.Cut(line, "=")
		if ok && inOrigin && strings.EqualFold(strings.TrimSpace(name), "url") {
			return nameOf(strings.Trim(strings.TrimSpace(value), `"`))
		}
	}
	return ""
}

// nameOf returns the name of a repository by its address.
func nameOf(url string) string {
	url, _, _ = strings.Cut(url, "?")
	parts := strings.FieldsFunc(url, func(r rune) bool { return r == '/' || r == '\\' || r == ':' })
	for i := len(parts) - 1; i >= 0; i-- {
		if name := strings.TrimSuffix(parts[i], ".git"); name != "" && name != "." && name != ".." {
			return name
		}
	}
	return ""
}
