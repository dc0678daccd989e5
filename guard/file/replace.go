package file

import (
	"errors"
	"io/fs"
	"os"
	"path"
)

// errMoved means that the file changed between the verification and the rename.
var errMoved = errors.New("the file was changed by another program between verification and write")

// replace writes the new content of the file at an edit's path, or removes it. The caller holds
// the lock and has verified that the file is as in now. Whatever happens, the file has its old
// content or its new one, whole; when replace returns without an error, the new one is durable.
//
//	write .interlock.tmp ─► sync ─► verify again ─► rename ─► sync the directory
func (d *Dir) replace(e *edit, now *File) error {
	dir := path.Dir(e.Path)
	if e.Delete {
		if err := d.same(e.Path, now); err != nil {
			return err
		}
		if err := d.root.Remove(e.Path); err != nil {
			return err
		}
		return d.sync(dir)
	}
	if now.Version == None {
		if err := d.makeDirectory(dir); err != nil {
			return err
		}
	}
	temp := path.Join(dir, tempName)
	if err := d.root.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := d.fill(temp, e.Body, now); err != nil {
		return err
	}
	if d.beforeRename != nil {
		if err := d.beforeRename(); err != nil {
			return err
		}
	}
	err := d.same(e.Path, now)
	if err == nil {
		err = d.root.Rename(temp, e.Path)
	}
	if err != nil {
		return errors.Join(err, d.root.Remove(temp))
	}
	return d.sync(dir)
}

// fill makes the temporary file: with the mode of the file that it replaces.
func (d *Dir) fill(temp string, body []byte, now *File) error {
	f, err := d.root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	_, err = f.Write(body)
	if err == nil && now.info != nil {
		err = f.Chmod(now.info.Mode().Perm())
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, d.root.Remove(temp))
	}
	return nil
}

// same fails if the file is not the one that was read any more, as far as its place,
// size and time tell.
func (d *Dir) same(name string, now *File) error {
	info, err := d.root.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist) && now.Version == None:
		return nil
	case err != nil:
		return err
	case now.info == nil, !os.SameFile(info, now.info), info.Size() != now.info.Size(),
		!info.ModTime().Equal(now.info.ModTime()):
		return errMoved
	}
	return nil
}

// makeDirectory makes a directory and those above it, and their names durable.
func (d *Dir) makeDirectory(dir string) error {
	if dir == "." {
		return nil
	}
	if _, err := d.root.Lstat(dir); err == nil || !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := d.makeDirectory(path.Dir(dir)); err != nil {
		return err
	}
	if err := d.root.Mkdir(dir, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return d.sync(path.Dir(dir))
}
