package server

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/interlockdev/interlock"
)

// Credentials are the principals that may come in, read from a file of lines:
//
//	# the name of the credential, its namespace, the hash of the secret
//	billing-swarm   acme      sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
//	ops             acme      sha256:60303ae22b998861bce3b28f33eec1be758a213c86c93c076dbe9f558c11c752 operator
//	bank-writer     acme      sha256:2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae agent worker=bank group=ledger
//
// The words at the end of a line are the rights of its credential, in any order:
//
//	viewer agent approver operator   a role; each has the rights of viewer, too
//	server                           the role of the server's own operator, for all that namespaces share
//	worker=QUEUE[,QUEUE...]          the role of a worker, of those queues or of all (*)
//	group=GROUP[,GROUP...]           the claimant groups that it acts for
//
// A line without a role is that of an agent.
//
// Blank lines and lines that begin with '#' mean nothing. A name may stand in
// several lines, so that a secret can be replaced without an interruption.
//
// The hash is one round of SHA-256. That is safe because the secrets are 256 random bits (see
// NewCredential): they cannot all be tried, so a slow hash would protect nothing and would cost
// every call. A secret that a person made up must never be put into this file.
type Credentials struct {
	path    string
	table   atomic.Pointer[credentialTable]
	changed broadcast // the table is another one

	mu   sync.Mutex // for one reader at a time; guards read
	read fileStamp  // of the file that was read last, usable or not
}

// credentialTable finds candidates by the first bytes of their digest. The duration of a
// look-up depends on digests only, and a caller cannot choose the digest of its token; the
// comparison that decides is constant in time.
type credentialTable map[[8]byte][]Identity

// CredentialLine is a line of a credentials file.
type CredentialLine struct {
	Number    int // from 1
	Principal interlock.Principal
	Namespace interlock.Namespace

	digest [sha256.Size]byte
}

// Hash returns the SHA-256 of the secret, in hexadecimal.
func (l *CredentialLine) Hash() string { return hex.EncodeToString(l.digest[:]) }

const (
	credentialPrefix  = "ilk_" // so that scanners for leaked secrets can find one
	credentialHash    = "sha256:"
	workerWord        = "worker="
	groupWord         = "group="
	maxCredentialFile = 16 << 20
	maxBearerBytes    = 512

	// credentialLooks is the time between two looks at the file.
	credentialLooks = 5 * time.Second
)

// LoadCredentials reads the file at path. The error names the line.
func LoadCredentials(path string) (*Credentials, error) {
	c := &Credentials{path: path}
	return c, c.Reload()
}

// Reload reads the file again. When it cannot be used, the credentials stay as they were and the
// error contains the reason. Streams and waits in the name of a credential that was removed or
// changed are ended.
func (c *Credentials) Reload() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	stamp, err := stampOf(c.path) // first: what changes while it is read is read again
	if err != nil {
		return fmt.Errorf("credentials: %w", err)
	}
	c.read = stamp
	if stamp.size > maxCredentialFile {
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

// Watch reads the file again when it has changed, until ctx ends. A file that is another one at each look is still
// being written, and half of it would end the streams of the other half: it is read when two looks have found the
// same. What cannot be read or used is logged once.
func (c *Credentials) Watch(ctx context.Context, log *slog.Logger) {
	looks := time.NewTicker(credentialLooks)
	defer looks.Stop()
	missing := false
	for last := (fileStamp{}); ; {
		select {
		case <-looks.C:
		case <-ctx.Done():
			return
		}
		stamp, err := stampOf(c.path)
		c.mu.Lock()
		changed := stamp != c.read
		c.mu.Unlock()
		switch {
		case err != nil && !missing:
			log.Error("the credentials stay as they were", "error", err)
		case err == nil && changed && stamp == last:
			if err := c.Reload(); err != nil {
				log.Error("the credentials stay as they were", "error", err)
			} else {
				log.Info("credentials were read again")
			}
		}
		missing, last = err != nil, stamp
	}
}

func parseCredentials(content []byte) (credentialTable, error) {
	table := credentialTable{}
	list, err := ListCredentials(content)
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("it is empty: add a line made by `interlock credential create`")
	}
	for i := range list {
		identity := Identity{Principal: &list[i].Principal, Namespace: list[i].Namespace, digest: list[i].digest}
		bucket := [8]byte(identity.digest[:8])
		for _, other := range table[bucket] {
			if other.digest == identity.digest {
				return nil, fmt.Errorf("line %d: another line has the same hash", list[i].Number)
			}
		}
		table[bucket] = append(table[bucket], identity)
	}
	return table, nil
}

// ListCredentials returns the credentials in the content of a file, in their order. The error names
// the line.
func ListCredentials(content []byte) (list []CredentialLine, err error) {
	lines := bufio.NewScanner(bytes.NewReader(content))
	n := 0
	for lines.Scan() {
		n++
		fields := strings.Fields(lines.Text())
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		line, err := parseCredential(fields)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		line.Number = n
		list = append(list, line)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("after line %d: %w", n, err)
	}
	return list, nil
}

func parseCredential(fields []string) (line CredentialLine, err error) {
	if len(fields) < 3 {
		return line, fmt.Errorf("want a name, a namespace and %shash, and then the roles", credentialHash)
	}
	name, namespace, hash := fields[0], fields[1], fields[2]
	if len(name) > interlock.MaxNameBytes || cleanText(name) != name {
		return line, fmt.Errorf(
			"the name has more than %d bytes or characters that cannot be printed", interlock.MaxNameBytes,
		)
	}
	if interlock.IsWebhook(name) {
		return line, fmt.Errorf(
			"names that begin with %s are those of links in messages: choose another one", interlock.WebhookPrefix,
		)
	}
	if !validNamespace(namespace) {
		return line, fmt.Errorf("%q is not a valid namespace", namespace)
	}
	digits, ok := strings.CutPrefix(hash, credentialHash)
	raw, err := hex.DecodeString(digits)
	if !ok || err != nil || len(raw) != sha256.Size {
		return line, fmt.Errorf(
			"want %s and 64 hexadecimal digits, as `interlock credential create` prints them", credentialHash,
		)
	}
	line = CredentialLine{
		Principal: interlock.Principal{Name: name}, Namespace: interlock.Namespace(namespace),
		digest: [sha256.Size]byte(raw),
	}
	return line, parseRights(&line.Principal, fields[3:])
}

// parseRights parses the words of a line that define the rights of its credential.
func parseRights(p *interlock.Principal, words []string) error {
	for _, word := range words {
		if queues, ok := strings.CutPrefix(word, workerWord); ok {
			p.Roles |= interlock.RoleWorker
			if err := parseNames(&p.Queues, "queue", queues); err != nil {
				return err
			}
			continue
		}
		if groups, ok := strings.CutPrefix(word, groupWord); ok {
			if err := parseNames(&p.Groups, "group", groups); err != nil {
				return err
			}
			continue
		}
		role, ok := interlock.ParseRole(word)
		switch {
		case !ok:
			return fmt.Errorf(
				"unknown role %q: want %s, %sQUEUE or %sGROUP", word, interlock.AllRoles&^interlock.RoleWorker, workerWord,
				groupWord,
			)
		case role == interlock.RoleWorker:
			return fmt.Errorf("the queue of the worker is missing: write %sQUEUE, or %s* for all queues", workerWord, workerWord)
		}
		p.Roles |= role
	}
	if p.Roles == 0 {
		p.Roles = interlock.RoleAgent
	}
	return nil
}

// Rights returns the words of the line for the rights of its credential.
func (l *CredentialLine) Rights() []string { return rightsOf(&l.Principal) }

// rightsOf returns the words of a line for the rights of p, the inverse of parseRights.
func rightsOf(p *interlock.Principal) (words []string) {
	if plain := p.Roles &^ interlock.RoleWorker; plain != 0 {
		words = strings.Split(plain.String(), ",")
	}
	if p.Roles&interlock.RoleWorker != 0 {
		words = append(words, workerWord+strings.Join(p.Queues, ","))
	}
	if len(p.Groups) > 0 {
		words = append(words, groupWord+strings.Join(p.Groups, ","))
	}
	return words
}

// parseNames adds names with commas between to a list.
func parseNames(list *[]string, what, names string) error {
	for name := range strings.SplitSeq(names, ",") {
		if name == "" || len(name) > interlock.MaxNameBytes || cleanText(name) != name {
			return fmt.Errorf(
				"the name of a %s must have 1 to %d printable bytes, found %q", what, interlock.MaxNameBytes, clipped(name),
			)
		}
		*list = append(*list, name)
	}
	return nil
}

// grants reports whether a credential of a namespace has a name and one of some roles now.
func (c *Credentials) grants(ns interlock.Namespace, name string, roles interlock.Roles) bool {
	for _, list := range *c.table.Load() {
		for i := range list {
			p := list[i].Principal
			if name != "" && p.Name == name && (list[i].Namespace == "" || list[i].Namespace == ns) && p.Has(roles) {
				return true
			}
		}
	}
	return false
}

// lookup returns the identity that a secret proves.
func (c *Credentials) lookup(secret string) (Identity, bool) {
	if secret == "" || len(secret) > maxBearerBytes {
		return Identity{}, false
	}
	digest := sha256.Sum256([]byte(secret))
	for _, identity := range (*c.table.Load())[[8]byte(digest[:8])] {
		if subtle.ConstantTimeCompare(identity.digest[:], digest[:]) == 1 {
			return identity, true
		}
	}
	return Identity{}, false
}

// NewCredential returns a secret of 256 random bits, and its line for the credentials
// file with the rights of p; no role means RoleAgent. The secret is shown once and stored
// nowhere.
func NewCredential(p interlock.Principal, namespace interlock.Namespace) (secret, line string, err error) {
	var random [32]byte
	if _, err := rand.Read(random[:]); err != nil {
		return "", "", fmt.Errorf("no randomness: %w", err)
	}
	secret = credentialPrefix + hex.EncodeToString(random[:])
	digest := sha256.Sum256([]byte(secret))
	if p.Roles == 0 {
		p.Roles = interlock.RoleAgent
	}
	line = fmt.Sprintf("%s %s %s%x", p.Name, namespace, credentialHash, digest)
	line = strings.Join(append([]string{line}, rightsOf(&p)...), " ")
	list, err := ListCredentials([]byte(line))
	if err != nil || len(list) != 1 || !sameRights(&list[0].Principal, &p) {
		return "", "", fmt.Errorf("the name %q, the namespace %q, or the name of a queue or group is invalid: "+
			"none may be empty or contain spaces, and the names of queues and groups no commas", p.Name, namespace)
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
