package file

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path"
	"time"
)

// author says who wrote a file last through here. It is true of the file only as
// long as the file has that version.
type author struct {
	Path      string  `json:"path"`
	Version   Version `json:"version"`
	Agent     string  `json:"agent,omitempty"`
	Principal string  `json:"principal,omitempty"`
	Note      string  `json:"note,omitempty"`
	At        int64   `json:"at"` // in milliseconds since 1970
}

func authorName(file string) string {
	sum := sha256.Sum256([]byte(file))
	return path.Join(lastName, hex.EncodeToString(sum[:]))
}

// sign remembers who wrote a file. The caller holds the lock.
func (d *Dir) sign(meta *os.Root, c *Change, v Version) {
	b, err := json.Marshal(author{c.Path, v, c.Agent, c.Principal, c.Note, time.Now().UnixMilli()})
	if err != nil {
		return
	}
	name := authorName(c.Path)
	if meta.WriteFile(name+".tmp", b, 0o666) == nil {
		_ = meta.Rename(name+".tmp", name)
	}
}

// credit adds to a file who wrote it, if that is known.
func (d *Dir) credit(meta *os.Root, f *File) {
	b, err := meta.ReadFile(authorName(f.Path))
	if err != nil {
		return
	}
	var a author
	if json.Unmarshal(b, &a) != nil || a.Path != f.Path || a.Version != f.Version {
		return
	}
	f.Agent, f.Principal, f.Note = a.Agent, a.Principal, a.Note
	f.Age = max(0, time.Since(time.UnixMilli(a.At)))
}
