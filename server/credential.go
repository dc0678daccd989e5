package server

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"os"
	"strings"
	"sync/atomic"

	"github.com/interlockdev/interlock"
)

// Credentials are who may come in, read from a file of lines:
//
//	# the name of the credential, its namespace, the hash of the secret
//	billing-swarm   acme      sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
//	ops             acme      sha256:60303ae22b998861bce3b28f33eec1be758a213c86c93c076dbe9f558c11c752 operator
//
// The word operator at the end of a line lets its owner change key patterns and
// settings, which bind everybody in the namespace. Everything else, revoking
// included, whoever may come in may do.
//
// Blank lines and lines that begin with '#' mean nothing. A name may stand in
// several lines, so that a secret can be replaced without an interruption.
//
// The hash is one round of SHA-256. That is safe because the secrets are 256
// random bits (see NewCredential): nobody can try them all, so a slow hash would
// protect nothing and would cost every call. A secret that a person made up must
// never be put into this file.
type Credentials struct {
	path    string
	table   atomic.Pointer[credentialTable]
	changed broadcast // the table is another one
}

// credentialTable finds candidates by the first bytes of their digest. How long a
// look-up takes can tell of digests only, and a caller cannot choose the digest
// of what it sends; the comparison that decides is constant in time.
type credentialTable map[[8]byte][]credentialLine

type credentialLine struct {
	digest    [sha256.Size]byte
	principal Principal
}

const (
	credentialPrefix  = "ilk_" // so that scanners for leaked secrets can find one
	credentialHash    = "sha256:"
	operatorWord      = "operator"
	maxCredentialFile = 16 << 20
	maxBearerBytes    = 512
)

// LoadCredentials reads the file at path. The error names the line.
func LoadCredentials(path string) (*Credentials, error) {
	c := &Credentials{path: path}
	return c, c.Reload()
}

// Reload reads the file again. When it cannot be used, the credentials stay as
// they were and the error says why. What goes on in the name of a credential that is
// there no more, or says something else, is ended.
func (c *Credentials) Reload() error {
	info, err := os.Stat(c.path)
	if err != nil {
		return fmt.Errorf("credentials: %w", err)
	}
	if info.Size() > maxCredentialFile {
		return fmt.Errorf("credentials: %s has more than %d bytes", c.path, maxCredentialFile)
	}
	content, err := os.ReadFile(c.path)
	if err != nil {
		return fmt.Errorf("credentials: %w", err)
	}
	table, err := parseCredentials(content)
	if err != nil {
		return fmt.Errorf("credentials: %s: %w", c.path, err)
	}
	c.table.Store(&table)
	c.changed.all()
	return nil
}

func parseCredentials(content []byte) (credentialTable, error) {
	table := credentialTable{}
	lines := bufio.NewScanner(bytes.NewReader(content))
	n, count := 0, 0
	for lines.Scan() {
		n++
		fields := strings.Fields(lines.Text())
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		if len(fields) != 3 && (len(fields) != 4 || fields[3] != operatorWord) {
			return nil, fmt.Errorf("line %d: want three words, name, namespace and %shash, and %s as a fourth for an operator", n, credentialHash, operatorWord)
		}
		name, namespace, hash, operator := fields[0], fields[1], fields[2], len(fields) == 4
		if len(name) > interlock.MaxNameBytes || cleanText(name) != name {
			return nil, fmt.Errorf("line %d: the name has more than %d bytes or characters that cannot be printed", n, interlock.MaxNameBytes)
		}
		if !validNamespace(namespace) {
			return nil, fmt.Errorf("line %d: %q cannot be a namespace", n, namespace)
		}
		var digest [sha256.Size]byte
		digits, ok := strings.CutPrefix(hash, credentialHash)
		if raw, err := hex.DecodeString(digits); !ok || err != nil || len(raw) != len(digest) {
			return nil, fmt.Errorf("line %d: want %s and 64 hexadecimal digits, as `interlock credential new` prints them", n, credentialHash)
		} else {
			copy(digest[:], raw)
		}
		bucket := [8]byte(digest[:8])
		for _, other := range table[bucket] {
			if other.digest == digest {
				return nil, fmt.Errorf("line %d: another line has the same hash", n)
			}
		}
		table[bucket] = append(table[bucket], credentialLine{
			digest:    digest,
			principal: Principal{Name: name, Namespace: interlock.Namespace(namespace), Operator: operator, digest: digest},
		})
		count++
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("after line %d: %w", n, err)
	}
	if count == 0 {
		return nil, fmt.Errorf("it names nobody: add a line made by `interlock credential new`")
	}
	return table, nil
}

// lookup finds whose secret it is.
func (c *Credentials) lookup(secret string) (Principal, bool) {
	if secret == "" || len(secret) > maxBearerBytes {
		return Principal{}, false
	}
	digest := sha256.Sum256([]byte(secret))
	for _, line := range (*c.table.Load())[[8]byte(digest[:8])] {
		if subtle.ConstantTimeCompare(line.digest[:], digest[:]) == 1 {
			return line.principal, true
		}
	}
	return Principal{}, false
}

// NewCredential makes a secret of 256 random bits, and the line for the
// credentials file. The secret is shown once, to whom it is for, and stored
// nowhere.
func NewCredential(name string, namespace interlock.Namespace) (secret, line string, err error) {
	var random [32]byte
	if _, err := rand.Read(random[:]); err != nil {
		return "", "", fmt.Errorf("no randomness: %w", err)
	}
	secret = credentialPrefix + hex.EncodeToString(random[:])
	digest := sha256.Sum256([]byte(secret))
	line = fmt.Sprintf("%s %s %s%x", name, namespace, credentialHash, digest)
	if _, err := parseCredentials([]byte(line)); err != nil {
		return "", "", fmt.Errorf("the name %q or the namespace %q cannot be used: neither may hold spaces or be empty", name, namespace)
	}
	return secret, line, nil
}

// validNamespace is the engine's rule, which does not see what only reads: visible
// ASCII characters other than '/'.
func validNamespace(s string) bool {
	if s == "" || len(s) > interlock.MaxNamespaceBytes {
		return false
	}
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c >= 0x7f || c == '/' {
			return false
		}
	}
	return true
}
