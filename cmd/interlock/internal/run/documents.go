package run

import (
	"encoding/base64"
	"encoding/json"
	"mime"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/internal/api"
)

// handedDocuments are the documents of a lease as its command finds them in the file that
// INTERLOCK_DOCUMENTS names: in the same form as `interlock lock --documents -o json` has them.
type handedDocuments struct {
	Documents []api.Document    `json:"documents"`
	AsOf      interlock.Version `json:"as_of,string"`
	More      bool              `json:"documents_more,omitempty"`
}

// infoToHand returns what a version has besides its number and its body, and its age.
func infoToHand(d *interlock.Document) (info api.DocumentInfo, age *api.Milliseconds) {
	info = api.DocumentInfo{
		Absent: d.Absent, Op: d.Op.String(), Agent: cli.Clean(d.Agent), Session: cli.Clean(d.Session),
		Flow: cli.Clean(d.Flow), Principal: cli.Clean(d.Principal), Fence: d.Fence, Note: cli.Clean(d.Note),
	}
	if !d.Absent {
		info.ContentType, info.Size = d.ContentType, &d.Size
	}
	if d.Op != 0 {
		age = new(d.Age.Milliseconds())
	}
	return info, age
}

func documentToHand(d *interlock.Document) api.Document {
	h := api.Document{Key: d.Key, Version: d.Version}
	h.DocumentInfo, h.Age = infoToHand(d)
	kind, _, _ := mime.ParseMediaType(d.ContentType)
	switch {
	case d.Absent:
	case d.Size > 0 && d.Body == nil:
		h.Truncated = true
	case !utf8.Valid(d.Body) || kind == "application/octet-stream":
		h.Base64 = new(base64.StdEncoding.EncodeToString(d.Body))
	case (kind == interlock.JSONType || strings.HasSuffix(kind, "+json")) && json.Valid(d.Body):
		h.Value = d.Body
	default:
		h.Text = new(string(d.Body))
	}
	for i := range d.Earlier {
		earlier := api.DocumentState{Version: d.Earlier[i].Version.String()}
		earlier.DocumentInfo, earlier.Age = infoToHand(&d.Earlier[i])
		h.Earlier = append(h.Earlier, earlier)
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
	list := handedDocuments{Documents: []api.Document{}, AsOf: snapshot.Version, More: more}
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
