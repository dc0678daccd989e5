package file

// openWithoutWaiting is nothing here: no pipe can take a file's place.
const openWithoutWaiting = 0

// sync does nothing: Windows cannot sync a directory. Its file system journals the names itself.
func (d *Dir) sync(string) error { return nil }
