package run

import (
	"encoding/json"
	"mime"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
)

// handedDocuments are the documents of a lease as its command finds them in the file that
// INTERLOCK_DOCUMENTS names: in the same form as `interlock lock --documents -o json` has them.
type handedDocuments struct {
	Documents []handedDocument  `json:"documents"`
	AsOf      interlock.Version `json:"as_of,string"`
	More      bool              `json:"documents_more,omitempty"`
}

type handedDocument struct {
	Key interlock.Key `json:"key"`
	handedVersion
	Truncated bool             `json:"truncated,omitempty"`
	Value     json.RawMessage  `json:"value,omitempty"`
	Text      *string          `json:"text,omitempty"`
	Base64    *[]byte          `json:"base64,omitempty"`
	Earlier   []*handedVersion `json:"earlier,omitempty"`
}

type handedVersion struct {
	Version   interlock.Version `json:"version,string"`
	Absent    bool              `json:"absent,omitempty"`
	Type      string            `json:"content_type,omitempty"`
	Size      *int              `json:"size,omitempty"`
	Op        string            `json:"op,omitempty"`
	Agent     string            `json:"agent,omitempty"`
	Session   string            `json:"session,omitempty"`
	Flow      string            `json:"flow,omitempty"`
	Principal string            `json:"principal,omitempty"`
	Fence     interlock.Fence   `json:"fence,string,omitempty"`
	Note      string            `json:"note,omitempty"`
	Age       *int64            `json:"age_ms,omitempty"`
}

func versionToHand(d *interlock.Document) *handedVersion {
	v := &handedVersion{
		Version: d.Version, Absent: d.Absent, Op: d.Op.String(), Agent: cli.Clean(d.Agent), Session: cli.Clean(d.Session),
		Flow:      cli.Clean(d.Flow),
		Principal: cli.Clean(d.Principal), Fence: d.Fence, Note: cli.Clean(d.Note),
	}
	if !d.Absent {
		v.Type, v.Size = d.ContentType, &d.Size
	}
	if d.Op != 0 {
		age := d.Age.Milliseconds()
		v.Age = &age
	}
	return v
}

func documentToHand(d *interlock.Document) handedDocument {
	h := handedDocument{Key: d.Key, handedVersion: *versionToHand(d)}
	kind, _, _ := mime.ParseMediaType(d.ContentType)
	switch {
	case d.Absent:
	case d.Size > 0 && d.Body == nil:
		h.Truncated = true
	case !utf8.Valid(d.Body) || kind == "application/octet-stream":
		h.Base64 = &d.Body
	case (kind == interlock.JSONType || strings.HasSuffix(kind, "+json")) && json.Valid(d.Body):
		h.Value = d.Body
	default:
		text := string(d.Body)
		h.Text = &text
	}
	for i := range d.Earlier {
		h.Earlier = append(h.Earlier, versionToHand(&d.Earlier[i]))
	}
	return h
}

// handDocuments writes the documents that came with a lease where only this user can read them, and
// returns the variables that tell the command of them, and what removes the file. Without documents
// the command gets no such variables: those of a run around it are of other keys.
func (r *invocation) handDocuments(lease *client.Lease) (env []string, remove func(), err error) {
	if !r.documents {
		return []string{"INTERLOCK_DOCUMENTS="}, func() {}, nil
	}
	snapshot, more := lease.Documents()
	list := handedDocuments{Documents: []handedDocument{}, AsOf: snapshot.Version, More: more}
	for i := range snapshot.Documents {
		list.Documents = append(list.Documents, documentToHand(&snapshot.Documents[i]))
	}
	content, err := json.Marshal(list)
	if err != nil {
		return nil, nil, err
	}
	dir, err := os.MkdirTemp("", "interlock-run-")
	if err != nil {
		return nil, nil, err
	}
	remove = func() {
		if err := os.RemoveAll(dir); err != nil {
			r.a.Complain("the documents for the command could not be removed: %v", err)
		}
	}
	path := filepath.Join(dir, "documents.json")
	if err := os.WriteFile(path, append(content, '\n'), 0o600); err != nil {
		remove()
		return nil, nil, err
	}
	return []string{"INTERLOCK_DOCUMENTS=" + path, "INTERLOCK_AS_OF=" + snapshot.Version.String()}, remove, nil
}
