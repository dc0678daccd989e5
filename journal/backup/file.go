package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/journal"
)

// File is a backup in a file that was checked to its end. It can be read like a journal.
type File struct {
	Header Header
	Length int64
	path   string
}

// Open reads a whole file and checks it.
func Open(ctx context.Context, path string) (*File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	h, length, err := Check(ctx, f, path)
	if err != nil {
		return nil, err
	}
	return &File{Header: h, Length: length, path: path}, nil
}

func isNewer(err error) bool { return errors.Is(err, journal.ErrNewer) }

// Snapshot is that of journal.Journal.
func (b *File) Snapshot(context.Context) (interlock.Index, io.ReadCloser, error) {
	if b.Header.Snapshot == 0 {
		return 0, nil, nil
	}
	f, r, err := b.begin()
	if err != nil {
		return 0, nil, err
	}
	return b.Header.Snapshot, struct {
		io.Reader
		io.Closer
	}{r, f}, nil
}

// Read is that of journal.Journal; from must be the index behind the snapshot's.
func (b *File) Read(ctx context.Context, from interlock.Index, visit func(journal.Entry) error) error {
	if from != b.Header.Snapshot+1 {
		return fmt.Errorf("%w: the entries of the backup begin at %d", journal.ErrTrimmed, b.Header.Snapshot+1)
	}
	f, r, err := b.begin()
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := io.Copy(io.Discard, withContext{ctx, r}); err != nil {
		return err
	}
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		e, err := r.Entry()
		if err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		if err := visit(e); err != nil {
			return err
		}
	}
}

// begin opens the file again. It may have been replaced since it was checked.
func (b *File) begin() (*os.File, *Reader, error) {
	f, err := os.Open(b.path)
	if err != nil {
		return nil, nil, err
	}
	r, err := NewReader(f, b.path)
	if err == nil && r.Header != b.Header {
		err = fmt.Errorf("%s: the file was replaced while it was read", b.path)
	}
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, r, nil
}
