package signed

import (
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// A ring is kept as JSON:
//
//	{"version":1,"keys":[
//	  {"kid":"…","seed":"<32 bytes, base64url>","made":1790000000.5,"retired":1790086400},
//	  {"kid":"…","seed":"…","made":1790086400}]}
//
// The last key signs. The text is durable before a new key is used: a key that was published
// and then lost would leave statements that no guard can verify.
type ringFile struct {
	Version int       `json:"version"`
	Keys    []ringKey `json:"keys"`
}

type ringKey struct {
	ID      string   `json:"kid"`
	Seed    string   `json:"seed"`
	Made    seconds  `json:"made"`
	Retired *seconds `json:"retired,omitempty"`
}

const ringVersion = 1

// readRing returns no keys when none were saved.
func readRing(keeper Keeper) ([]*key, error) {
	content, err := keeper.Load()
	if content == nil || err != nil {
		return nil, err
	}
	var f ringFile
	err = json.Unmarshal(content, &f)
	if f.Version > ringVersion {
		return nil, fmt.Errorf("%s was written by a newer version of Interlock: start that version or a later one", keeper)
	}
	if err != nil || f.Version < 1 || len(f.Keys) == 0 {
		return nil, fmt.Errorf("%s %w", keeper, errRing)
	}
	keys := make([]*key, len(f.Keys))
	for i, k := range f.Keys {
		seed, err := decode(k.Seed)
		if err != nil || len(seed) != ed25519.SeedSize {
			return nil, fmt.Errorf("%s %w", keeper, errRing)
		}
		keys[i] = keyOf(ed25519.NewKeyFromSeed(seed), k.Made.time())
		if k.Retired != nil {
			keys[i].retired = k.Retired.time()
		}
		if keys[i].id != k.ID || (k.Retired == nil) != (i == len(f.Keys)-1) {
			return nil, fmt.Errorf("%s %w", keeper, errRing)
		}
	}
	return keys, nil
}

// writeRing saves the keys.
func writeRing(keeper Keeper, keys []*key) error {
	f := ringFile{Version: ringVersion}
	for _, k := range keys {
		line := ringKey{ID: k.id, Seed: encoding.EncodeToString(k.private.Seed()), Made: secondsOf(k.made)}
		if !k.retired.IsZero() {
			retired := secondsOf(k.retired)
			line.Retired = &retired
		}
		f.Keys = append(f.Keys, line)
	}
	content, err := json.MarshalIndent(&f, "", "  ")
	if err != nil {
		return err
	}
	return keeper.Save(append(content, '\n'))
}

// File keeps a ring in the file at path, readable by its owner only.
func File(path string) Keeper { return ringPath(path) }

type ringPath string

func (p ringPath) String() string { return string(p) }

func (p ringPath) Load() ([]byte, error) {
	content, err := os.ReadFile(string(p))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return content, err
}

// Save writes a file beside the old one, syncs it, and takes its name.
func (p ringPath) Save(text []byte) (err error) {
	path := string(p)
	// The name ends in .tmp, which the file journal removes after a crash.
	temporary, err := os.OpenFile(path+".tmp", os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(temporary.Name()))
		}
	}()
	// An earlier file may have had other permissions.
	if err = temporary.Chmod(0o600); err == nil {
		_, err = temporary.Write(text)
	}
	if err == nil {
		err = temporary.Sync()
	}
	if err = errors.Join(err, temporary.Close()); err != nil {
		return err
	}
	if err := os.Rename(temporary.Name(), path); err != nil {
		return err
	}
	return syncDirectory(filepath.Dir(path))
}

func syncDirectory(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func secondsOf(t time.Time) seconds { return seconds(t.UnixMilli()) }
