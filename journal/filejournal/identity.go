package filejournal

import (
	"errors"
	"fmt"
	"os"

	"github.com/interlockdev/interlock/journal"
)

// Copied reports that the directory is a copy or a restored backup: entries may have followed
// in the original that this log does not have. The owner must jump ahead with every number that
// it must not assign twice, append the jump, and then call Adopt.
func (j *Journal) Copied() bool { return j.copied.Load() }

// Adopt makes the directory the original from now on, durably. It must be called only when the
// jump that Copied asks for is durable. Until then every Open reports Copied again, which is
// safe.
func (j *Journal) Adopt() error {
	j.upkeep.Lock()
	defer j.upkeep.Unlock()
	if err := j.usable(); err != nil {
		return err
	}
	if err := j.writeIdentity(); err != nil {
		return err
	}
	j.copied.Store(false)
	return nil
}

func (j *Journal) writeIdentity() error {
	err := j.replace(identityName, func(f file) ([]byte, error) {
		device, inode, err := f.ID()
		return encodeIdentity(device, inode), err
	})
	if noSpace(err) {
		return fmt.Errorf("%w: writing the identity: %w", journal.ErrNoSpace, err)
	}
	if err != nil {
		return j.fail("writing the identity", err)
	}
	return nil
}

// replace writes a small file whole, durably.
func (j *Journal) replace(name string, content func(file) ([]byte, error)) error {
	f, err := j.dir.Open(name+tempSuffix, os.O_RDWR|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		return err
	}
	b, err := content(f)
	if err == nil {
		_, err = f.WriteAt(b, 0)
	}
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := j.dir.Rename(name+tempSuffix, name); err != nil {
		return err
	}
	return j.dir.Sync()
}

// markClean notes where the log ends. It is a help and not a duty: without space
// for it the journal is closed all the same.
func (j *Journal) markClean() error {
	err := j.replace(cleanName, func(file) ([]byte, error) { return encodeClean(j.at), nil })
	if noSpace(err) {
		return nil
	}
	return err
}
