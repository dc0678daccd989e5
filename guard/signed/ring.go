package signed

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/interlockdev/interlock"
)

// Ring is the private keys of a server: one that signs, and the former ones with statements
// that may still hold. Its methods may be called by any number of goroutines.
type Ring struct {
	keeper Keeper // nil for one in memory

	mu   sync.Mutex // guards the fields below
	keys []*key     // the one that signs is the last
	last time.Time  // the newest iat of a statement
}

// key is a pair of keys.
type key struct {
	id      string
	private ed25519.PrivateKey
	made    time.Time
	retired time.Time // zero for the one that signs
}

// maxFormer bounds how many former keys are published, so that rotating in a loop
// does not make the key set grow.
const maxFormer = 16

// NewRing makes a ring that lives in memory: after a restart its statements are those
// of an unknown key.
func NewRing() *Ring { return &Ring{keys: []*key{newKey(time.Now())}} }

// Keeper is where a ring is kept, as one text. A ring calls it from one goroutine at a
// time. Its String is the name of the place, for errors.
type Keeper interface {
	// Load returns the last saved bytes, and none if nothing was saved.
	Load() ([]byte, error)
	// Save replaces it durably and as a whole, out of the reach of others.
	Save(text []byte) error
	String() string
}

// OpenRing reads the ring from where it is kept, and makes it when there is none. With
// fresh, the keys that are there are thrown away: a server that began with a copy of
// another one's state must not speak in that one's name.
func OpenRing(keeper Keeper, fresh bool) (*Ring, error) {
	r := &Ring{keeper: keeper}
	var err error
	if !fresh {
		r.keys, err = readRing(keeper)
	}
	if err == nil && len(r.keys) == 0 {
		r.keys = []*key{newKey(time.Now())}
		err = r.write(r.keys)
	}
	if err != nil {
		return nil, fmt.Errorf("signed: the keys that sign fences: %w", err)
	}
	return r, nil
}

func newKey(now time.Time) *key {
	_, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		panic("signed: crypto/rand failed: " + err.Error()) // it never does
	}
	return keyOf(private, now)
}

func keyOf(private ed25519.PrivateKey, made time.Time) *key {
	return &key{id: thumbprint(private.Public().(ed25519.PublicKey)), private: private, made: made}
}

func (k *key) sign(text []byte) []byte { return ed25519.Sign(k.private, text) }

// published reports whether statements of the key may still hold.
func (k *key) published(now time.Time) bool {
	return k.retired.IsZero() || now.Before(k.retired.Add(MaxTTL))
}

// Sign signs s, to hold from now on for ttl, at most [MaxTTL], and sets its times. It returns
// the statement and the id of the key.
func (r *Ring) Sign(s *Statement, now time.Time, ttl time.Duration) (statement, keyID string, err error) {
	s.Issued = now.Truncate(time.Millisecond)
	s.Expires = s.Issued.Add(min(ttl, MaxTTL)).Truncate(time.Millisecond)
	r.mu.Lock()
	defer r.mu.Unlock()
	if s.Issued.After(r.last) {
		r.last = s.Issued
	}
	k := r.keys[len(r.keys)-1]
	statement, err = sign(s, k)
	return statement, k.id, err
}

// KeySet is the public keys with which statements that hold at the time now can have
// been signed.
func (r *Ring) KeySet(now time.Time) KeySet {
	r.mu.Lock()
	defer r.mu.Unlock()
	ks := KeySet{}
	for _, k := range r.keys {
		if k.published(now) {
			ks[k.id] = k.private.Public().(ed25519.PublicKey)
		}
	}
	return ks
}

// Rotate makes a new key, which signs from now on, and returns its id. The former key stays in
// the set until its last statement has expired. The error is an *interlock.Error with CodeQuota
// when that would be too many, and otherwise that of the file: then everything is as before.
func (r *Ring) Rotate(now time.Time) (keyID string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	keys := slices.DeleteFunc(slices.Clone(r.keys), func(k *key) bool { return !k.published(now) })
	if len(keys) > maxFormer {
		return "", &interlock.Error{
			Code: interlock.CodeQuota,
			Message: fmt.Sprintf(
				"%d former keys are still published, until their last statements have expired: rotate again in %v", maxFormer,
				MaxTTL,
			),
		}
	}
	former := *keys[len(keys)-1]
	if former.retired = now; r.last.After(now) {
		former.retired = r.last
	}
	keys[len(keys)-1] = &former
	k := newKey(now)
	keys = append(keys, k)
	if err := r.write(keys); err != nil {
		return "", err
	}
	r.keys = keys
	return k.id, nil
}

// write makes the keys durable.
func (r *Ring) write(keys []*key) error {
	if r.keeper == nil {
		return nil
	}
	return writeRing(r.keeper, keys)
}

var errRing = errors.New(
	"is not a key ring, or is damaged: restore it from a backup, or remove it to create a new one",
)
