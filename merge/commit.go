package merge

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"os"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/interlockdev/interlock/internal/git"
)

// commit is what this package reads of a commit, and writes into one.
type commit struct {
	id      string
	tree    string
	parents []string
	// author and committer are "NAME <EMAIL>".
	author, committer string
	// authored and committed are seconds since 1970.
	authored, committed int64
	// signature is the text in the header of signatures, without its last newline. Empty means none.
	signature string
	message   string
	// carrier is the commit of a forge that brought this one to the branch. It is no part of the commit.
	carrier string
}

// readCommit reads a commit.
func (b *Boundary) readCommit(ctx context.Context, id string) (commit, error) {
	content, err := b.object(ctx, "commit", id)
	if err != nil {
		return commit{}, err
	}
	c, err := parseCommit(content)
	c.id = id
	return c, err
}

// parseCommit reads a commit's content. Headers that it does not know are left out.
func parseCommit(content []byte) (c commit, err error) {
	head, message, _ := strings.Cut(string(content), "\n\n")
	c.message = message
	last := ""
	for line := range strings.SplitSeq(head, "\n") {
		name, value, _ := strings.Cut(line, " ")
		if name != "" {
			last = name
		}
		switch name {
		case "": // goes on with the header before
			if last == c.signatureHeader() {
				c.signature += "\n" + value
			}
		case c.signatureHeader():
			c.signature = value
		case "tree":
			c.tree = value
		case "parent":
			c.parents = append(c.parents, value)
		case "author":
			c.author, c.authored, err = parseIdentity(value)
		case "committer":
			c.committer, c.committed, err = parseIdentity(value)
		}
		if err != nil {
			return commit{}, err
		}
	}
	if c.tree == "" || c.author == "" || c.committer == "" {
		return commit{}, fmt.Errorf("a commit without tree, author or committer: %.200q", head)
	}
	return c, nil
}

// parseIdentity reads "NAME <EMAIL> SECONDS ZONE".
func parseIdentity(value string) (identity string, seconds int64, err error) {
	end := strings.LastIndexByte(value, '>')
	if end < 0 {
		return "", 0, fmt.Errorf("%.200q is no author or committer", value)
	}
	if fields := strings.Fields(value[end+1:]); len(fields) > 0 {
		// Broken dates occur in old histories. The boundary copies no date, so they may stay zero.
		seconds, _ = strconv.ParseInt(fields[0], 10, 64)
	}
	return value[:end+1], seconds, nil
}

// encode is the content of a commit object, with both times in UTC. The text is UTF-8, so it needs no header.
func (c *commit) encode() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "tree %s\n", c.tree)
	for _, p := range c.parents {
		fmt.Fprintf(&b, "parent %s\n", p)
	}
	fmt.Fprintf(&b, "author %s %d +0000\n", c.author, c.authored)
	fmt.Fprintf(&b, "committer %s %d +0000\n", c.committer, c.committed)
	if c.signature != "" {
		fmt.Fprintf(&b, "%s %s\n", c.signatureHeader(), strings.ReplaceAll(c.signature, "\n", "\n "))
	}
	b.WriteString("\n" + c.message)
	return b.Bytes()
}

// signatureHeader is the header of signatures. It depends on the hash of ids, because git signs a commit under each.
func (c *commit) signatureHeader() string {
	if len(c.tree) == 64 {
		return "gpgsig-sha256"
	}
	return "gpgsig"
}

// writeCommit writes a commit, and returns its id. The id is computed here, and git has to agree.
func (b *Boundary) writeCommit(ctx context.Context, c *commit) (string, error) {
	content := c.encode()
	// One git writes all commits, from a file, because a process of its own for each takes longer than the write.
	if err := os.WriteFile(b.folder.Path("commit"), content, 0o600); err != nil {
		return "", err
	}
	id := ""
	// Relative to the folder of b.git.
	err := b.write.ask(ctx, "../../commit\n", func(r *bufio.Reader) (err error) {
		id, err = r.ReadString('\n')
		id = strings.TrimSuffix(id, "\n")
		return err
	})
	if err != nil {
		return "", err
	}
	if want := objectID(b.idLength, "commit", content); id != want {
		return "", fmt.Errorf("git wrote the commit %s as %s", want, id)
	}
	return id, nil
}

// graphEvery is after how many landings the commit graph is written. Git finds merge bases by walking back from both
// commits, and reads each commit on its way that the graph lacks. On 50,000 files, 300 landings after a submission's
// base, that is 11 ms of 14 for a merge, and the graph takes 7 ms to write.
const graphEvery = 32

// graph writes the commit graph now and then. It changes no result, so it may fail where another git writes it.
func (b *Boundary) graph(ctx context.Context, id string) error {
	if b.ungraphed++; b.ungraphed < graphEvery {
		return nil
	}
	b.ungraphed = 0
	_, err := b.git.Feed(ctx, []byte(id+"\n"), "commit-graph", "write", "--split", "--stdin-commits")
	if _, failed := errors.AsType[*git.Error](err); failed {
		return nil
	}
	return err
}

// objectID is the id of an object with the content given.
func objectID(length int, kind string, content []byte) string {
	var h hash.Hash = sha1.New()
	if length == 64 {
		h = sha256.New()
	}
	fmt.Fprintf(h, "%s %d\x00", kind, len(content))
	h.Write(content)
	return hex.EncodeToString(h.Sum(nil))
}

// person makes an identity of another commit safe to repeat: valid UTF-8, one line, with a name.
func person(identity string) string {
	identity = strings.ToValidUTF8(identity, "\uFFFD")
	name, email, _ := strings.Cut(strings.TrimSuffix(identity, ">"), "<")
	if name = oneLine(name); name == "" {
		name = "unknown"
	}
	return name + " <" + oneLine(email) + ">"
}

// IsPerson reports whether an identity is "NAME <EMAIL>", as it would stand in a commit.
func IsPerson(identity string) bool {
	name, email, ok := strings.Cut(strings.TrimSuffix(identity, ">"), " <")
	return ok && name != "" && email != "" && person(identity) == identity
}

// oneLine makes others' text safe for a header or a trailer: one line, without the brackets of an address.
func oneLine(s string) string {
	return strings.TrimSpace(strings.Map(func(c rune) rune {
		if c < ' ' || c == 0x7f || c == '<' || c == '>' || c == utf8.RuneError {
			return -1
		}
		return c
	}, s))
}
