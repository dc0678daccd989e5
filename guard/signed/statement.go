package signed

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/interlockdev/interlock"
)

const (
	// Issuer is the iss of every statement.
	Issuer = "interlock"

	// Type is the typ of every statement. It keeps tokens that were made for something
	// else from being taken for one.
	Type = "interlock-fence+jwt"

	// DefaultTTL is how long a statement holds by default.
	DefaultTTL = 30 * time.Second

	// MaxTTL is how long one may hold.
	MaxTTL = 5 * time.Minute

	// MaxBytes bounds a statement. One of 64 claims on keys of 512 bytes fits.
	MaxBytes = 128 << 10
)

// Statement is the signed statement.
type Statement struct {
	Namespace interlock.Namespace
	Claims    []interlock.Claim // without their counts
	Fence     interlock.Fence
	Holder    Holder
	Issued    time.Time // in milliseconds
	Expires   time.Time // in milliseconds
}

// Holder names the lease's holder, for logs. The names are agents' text.
type Holder struct {
	Agent   string `json:"agent,omitempty"`
	Session string `json:"session,omitempty"` // public name
	Flow    string `json:"flow,omitempty"`
}

// Covers reports whether the statement lets its bearer write key: a claim on it, or
// on an ancestor of it, is exclusive. The key must be in the spelling of its pattern.
func (s *Statement) Covers(key interlock.Key) bool {
	for _, c := range s.Claims {
		if c.Mode != interlock.Exclusive {
			continue
		}
		if rest, ok := strings.CutPrefix(string(key), string(c.Key)); ok && (rest == "" || rest[0] == '/') {
			return true
		}
	}
	return false
}

// header is the first part of a statement. It has one form, so that no other is ever
// looked at.
func header(kid string) []byte {
	return fmt.Appendf(nil, `{"alg":"EdDSA","kid":%q,"typ":%q}`, kid, Type)
}

// payload is the second part of a statement.
type payload struct {
	Issuer    string              `json:"iss"`
	Namespace interlock.Namespace `json:"ns"`
	Claims    []claim             `json:"claims"`
	Fence     interlock.Fence     `json:"fence,string"`
	Holder    Holder              `json:"holder"`
	Issued    seconds             `json:"iat"`
	Expires   seconds             `json:"exp"`
}

type claim struct {
	Key  interlock.Key `json:"key"`
	Mode string        `json:"mode"`
}

func encodePayload(s *Statement) ([]byte, error) {
	p := payload{
		Issuer: Issuer, Namespace: s.Namespace, Claims: make([]claim, len(s.Claims)), Fence: s.Fence, Holder: s.Holder,
		Issued: seconds(s.Issued.UnixMilli()), Expires: seconds(s.Expires.UnixMilli()),
	}
	for i, c := range s.Claims {
		p.Claims[i] = claim{Key: c.Key, Mode: c.Mode.String()}
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // keys stay short
	if err := e.Encode(&p); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// decodePayload reads what a key of ours has signed. Members that it does not know
// are a later version's.
func decodePayload(b []byte) (*Statement, error) {
	var p payload
	if err := json.Unmarshal(b, &p); err != nil {
		return nil, err
	}
	if p.Issuer != Issuer {
		return nil, fmt.Errorf("its issuer is not %q", Issuer)
	}
	s := &Statement{
		Namespace: p.Namespace, Claims: make([]interlock.Claim, len(p.Claims)), Fence: p.Fence, Holder: p.Holder,
		Issued: p.Issued.time(), Expires: p.Expires.time(),
	}
	for i, c := range p.Claims {
		mode, ok := interlock.ParseMode(c.Mode)
		if !ok {
			mode = 0 // a later version's: it covers nothing
		}
		s.Claims[i] = interlock.Claim{Key: c.Key, Mode: mode}
	}
	return s, nil
}

// seconds is a NumericDate (RFC 7519), kept in milliseconds since 1970.
type seconds int64

func (s seconds) time() time.Time { return time.UnixMilli(int64(s)) }

// MarshalJSON writes seconds with up to three decimals.
func (s seconds) MarshalJSON() ([]byte, error) {
	return strconv.AppendFloat(nil, float64(s)/1000, 'f', -1, 64), nil
}

// UnmarshalJSON reads a number of seconds from 1970 to the year 9999.
func (s *seconds) UnmarshalJSON(b []byte) error {
	v, err := strconv.ParseFloat(string(b), 64)
	if err != nil || !(v >= 0 && v < 253402300800) {
		return errors.New("a time is not a number of seconds")
	}
	*s = seconds(math.Round(v * 1000))
	return nil
}

var encoding = base64.RawURLEncoding

// decode takes nothing but what encoding writes: the package would pass over line
// breaks, and one statement would have many texts.
func decode(s string) ([]byte, error) {
	b, err := encoding.DecodeString(s)
	if err == nil && encoding.EncodeToString(b) != s {
		err = errors.New("a part is not in base64url")
	}
	return b, err
}

// sign returns the statement as text.
func sign(s *Statement, k *key) (string, error) {
	p, err := encodePayload(s)
	if err != nil {
		return "", err
	}
	text := encoding.AppendEncode(nil, header(k.id))
	text = append(text, '.')
	text = encoding.AppendEncode(text, p)
	signature := k.sign(text)
	text = append(text, '.')
	text = encoding.AppendEncode(text, signature)
	if len(text) > MaxBytes {
		return "", fmt.Errorf("signed: a statement of %d bytes, at most %d", len(text), MaxBytes)
	}
	return string(text), nil
}
