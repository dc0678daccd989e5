package file

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path"
	"time"
)

// maxWrites is how many writes of a file are remembered.
const maxWrites = 32

// record names the authors that wrote a file through here, the last one last. It is true of the
// file only as long as that has the last one's version.
type record struct {
	Path   string        `json:"path"`
	Writes []signedWrite `json:"writes"`
}

type signedWrite struct {
	From      Version `json:"from"`
	Version   Version `json:"version"`
	Agent     string  `json:"agent,omitempty"`
	Principal string  `json:"principal,omitempty"`
	Note      string  `json:"note,omitempty"`
	At        int64   `json:"at"` // in milliseconds since 1970
}

func recordName(file string) string {
	sum := sha256.Sum256([]byte(file))
	return path.Join(lastName, hex.EncodeToString(sum[:]))
}

func loadRecord(meta *os.Root, file string) (r record) {
	b, err := meta.ReadFile(recordName(file))
	if err != nil || json.Unmarshal(b, &r) != nil || r.Path != file {
		return record{Path: file}
	}
	return r
}

// sign remembers the author of a file. The caller holds the lock.
func (d *Dir) sign(meta *os.Root, c *Change, from, to Version) {
	r := loadRecord(meta, c.Path)
	r.Writes = append(r.Writes, signedWrite{from, to, c.Agent, c.Principal, c.Note, time.Now().UnixMilli()})
	r.Writes = r.Writes[max(0, len(r.Writes)-maxWrites):]
	b, err := json.Marshal(r)
	if err != nil {
		return
	}
	name := recordName(c.Path)
	if meta.WriteFile(name+".tmp", b, 0o666) == nil {
		_ = meta.Rename(name+".tmp", name)
	}
}

// credit adds its author to a file, if that is known, and returns the authors that have written
// it since it had a version, the last one last; none if that is not known.
func (d *Dir) credit(meta *os.Root, f *File, since Version) []signedWrite {
	r := loadRecord(meta, f.Path)
	n := len(r.Writes)
	if n == 0 || r.Writes[n-1].Version != f.Version {
		return nil
	}
	w := &r.Writes[n-1]
	f.Agent, f.Principal, f.Note = w.Agent, w.Principal, w.Note
	f.Age = w.age()
	for i := n - 1; i >= 0; i-- {
		if r.Writes[i].From == since {
			return r.Writes[i:]
		}
		if i > 0 && r.Writes[i-1].Version != r.Writes[i].From {
			break // something came from outside between them
		}
	}
	return nil
}

func (w *signedWrite) age() time.Duration { return max(0, time.Since(time.UnixMilli(w.At))) }
