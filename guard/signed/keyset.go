package signed

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/interlockdev/interlock/internal/jsonname"
)

// KeySet is public keys by their ids, which are their thumbprints (RFC 7638).
type KeySet map[string]ed25519.PublicKey

const (
	maxKeySetBytes = 1 << 20 // a journal has up to 1,024 shards, each with keys of its own
	maxKeySetKeys  = 4096
)

// jwk is a public key (RFC 7517, 8037).
type jwk struct {
	Type      string `json:"kty"`
	Curve     string `json:"crv"`
	X         string `json:"x"`
	ID        string `json:"kid"`
	Algorithm string `json:"alg,omitempty"`
	Use       string `json:"use,omitempty"`
}

type jwks struct {
	Keys []jwk `json:"keys"`
}

// ParseKeySet reads a JSON Web Key Set. Keys of other kinds are passed over, as the
// standard asks; a set without any of ours is an error.
func ParseKeySet(b []byte) (KeySet, error) {
	if len(b) > maxKeySetBytes {
		return nil, fmt.Errorf("signed: a key set of more than %d bytes", maxKeySetBytes)
	}
	var set jwks
	err := json.Unmarshal(b, &set)
	if err == nil {
		err = jsonname.Unique(b, true)
	}
	if err != nil {
		return nil, fmt.Errorf("signed: this is not a key set: %w", err)
	}
	if len(set.Keys) > maxKeySetKeys {
		return nil, fmt.Errorf("signed: a key set of more than %d keys", maxKeySetKeys)
	}
	ks := KeySet{}
	for _, k := range set.Keys {
		if k.Type != "OKP" || k.Curve != "Ed25519" || k.Algorithm != "" && k.Algorithm != "EdDSA" ||
			k.Use != "" && k.Use != "sig" {
			continue
		}
		x, err := decode(k.X)
		if err != nil || len(x) != ed25519.PublicKeySize {
			return nil, fmt.Errorf("signed: key %q is not an Ed25519 key", k.ID)
		}
		if id := thumbprint(x); k.ID != id {
			return nil, fmt.Errorf("signed: key %q should have the id %s", k.ID, id)
		}
		ks[k.ID] = x
	}
	if len(ks) == 0 {
		return nil, errors.New("signed: the key set has no key that signs fences")
	}
	return ks, nil
}

// MarshalJSON returns the JSON Web Key Set, sorted by id.
func (ks KeySet) MarshalJSON() ([]byte, error) {
	set := jwks{Keys: []jwk{}}
	for _, id := range slices.Sorted(maps.Keys(ks)) {
		set.Keys = append(set.Keys, jwk{
			Type: "OKP", Curve: "Ed25519", X: encoding.EncodeToString(ks[id]), ID: id, Algorithm: "EdDSA", Use: "sig",
		})
	}
	return json.Marshal(set)
}

// thumbprint is the id of a key.
func thumbprint(public ed25519.PublicKey) string {
	sum := sha256.Sum256(fmt.Appendf(nil, `{"crv":"Ed25519","kty":"OKP","x":%q}`, encoding.EncodeToString(public)))
	return encoding.EncodeToString(sum[:])
}
