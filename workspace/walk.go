package workspace

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
)

// An agent writes its tree and its private git directory, also while this program looks at them. So this program
// opens what is in there through an os.Root, which no link leads out of, without waiting for the other end of a pipe,
// and checks the opened file, not its name.

// openRegular opens a regular file of at most limit bytes below a root.
func openRegular(root *os.Root, name string, limit int64) (*os.File, error) {
	f, err := root.OpenFile(name, os.O_RDONLY|noWait, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	switch {
	case err != nil:
	case !info.Mode().IsRegular():
		err = fmt.Errorf("%s is %s", name, typeName(info.Mode().Type()))
	case info.Size() > limit:
		err = fmt.Errorf("%s has %d bytes, more than %d", name, info.Size(), limit)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// readRegular reads such a file.
func readRegular(root *os.Root, name string, limit int64) ([]byte, error) {
	f, err := openRegular(root, name, limit)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, limit))
}

// maxDepth is how deep folders lie in each other below a root that is walked.
const maxDepth = 100

// walk visits what is below a folder of a root, by names with slashes, in no certain order. The function returns
// false for a folder to leave its entries out. What vanishes meanwhile is not visited.
func walk(root *os.Root, dir string, visit func(name string, e fs.DirEntry) (bool, error)) error {
	if strings.Count(dir, "/") > maxDepth {
		return fmt.Errorf("%s is deeper than %d folders", dir, maxDepth)
	}
	f, err := root.OpenFile(dir, os.O_RDONLY|noWait|onlyFolder, 0)
	if err != nil {
		return nil
	}
	entries, err := f.ReadDir(-1)
	f.Close()
	if err != nil {
		return nil
	}
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		into, err := visit(name, e)
		if err != nil {
			return err
		}
		if into && e.IsDir() {
			if err := walk(root, name, visit); err != nil {
				return err
			}
		}
	}
	return nil
}

func typeName(mode fs.FileMode) string {
	switch {
	case mode.IsRegular():
		return "a file"
	case mode.IsDir():
		return "a folder"
	case mode&fs.ModeSymlink != 0:
		return "a symbolic link"
	case mode&fs.ModeNamedPipe != 0:
		return "a named pipe"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	}
	return "a device"
}
