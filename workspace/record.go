package workspace

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// Phase is how far a workspace has come. A process that is killed leaves the phase behind.
//
//	creating ─► ready ─► deleting ─► gone
type Phase string

const (
	Creating Phase = "creating" // holds no work yet
	Ready    Phase = "ready"
	Deleting Phase = "deleting" // its work is submitted or saved
)

// Record is what is known of a workspace. It is the file workspace.json.
type Record struct {
	Repo  string `json:"repo"`
	Name  string `json:"name"`
	Phase Phase  `json:"phase"`
	Kind  Kind   `json:"kind"`
	// Why is why this kind was chosen, one sentence.
	Why string `json:"why"`

	// Source is the git directory of the repository, absolute. Its objects are borrowed unless Copied.
	Source string `json:"source"`
	Copied bool   `json:"copied,omitempty"`
	// Upstream is the repository that submissions are pushed to and the target is taken from: a path
	// or a URL. It is Source unless another was named.
	Upstream string `json:"upstream"`
	// Target is the branch that the work is for, such as main.
	Target string `json:"target"`
	// Branch is the branch of the workspace, in its private git directory.
	Branch string `json:"branch"`
	// Start is the commit that the workspace was made at. The base checkout is of this commit.
	Start string `json:"start"`
	// Base is the commit of the target that was last taken in. At first it is Start.
	Base string `json:"base"`
	// On is the ID of the submission that Start is the commit of. Empty means that Start is one of the target.
	On string `json:"on,omitempty"`

	// Checkout is the folder of the user's files, "" for a bare repository. Its configuration is that of the workspace.
	Checkout string `json:"checkout,omitempty"`
	// Converted tells base checkouts of one commit apart that git has converted differently.
	Converted string `json:"converted,omitempty"`

	// ID tells this workspace from others of its name: 16 hexadecimal digits.
	ID string `json:"id"`
	// Author is the identity of its commits.
	Author Identity `json:"author"`

	Agent   string    `json:"agent,omitempty"`
	Purpose string    `json:"purpose,omitempty"`
	Created time.Time `json:"created"`
	Used    time.Time `json:"used,omitzero"` // when a run or a sync of it began last

	Include []string `json:"include,omitempty"` // files that were copied though git ignores them
	Share   []string `json:"share,omitempty"`   // folders that are links to the source's
	Sparse  []string `json:"sparse,omitempty"`  // the folders of kind sparse
	Ports   []string `json:"ports,omitempty"`   // names of ports that run claims
	// Setup is a shell command that makes the workspace ready, and SetUp tells that it has succeeded.
	Setup string `json:"setup,omitempty"`
	SetUp bool   `json:"set_up,omitempty"`
	// Rootless means that an overlay is mounted in a user namespace, for each command anew.
	Rootless bool `json:"rootless,omitempty"`

	// Submissions are those that were pushed, the oldest first.
	Submissions []Submission `json:"submissions,omitempty"`
}

// Identity is the name and address in commits.
type Identity struct {
	Name  string `json:"name"`
	Email string `json:"email"`
}

func (i Identity) env() []string {
	return []string{
		"GIT_AUTHOR_NAME=" + i.Name, "GIT_AUTHOR_EMAIL=" + i.Email,
		"GIT_COMMITTER_NAME=" + i.Name, "GIT_COMMITTER_EMAIL=" + i.Email,
	}
}

// Submission is a commit that was pushed to Upstream, where a ref keeps it.
type Submission struct {
	ID   string    `json:"id"`
	Ref  string    `json:"ref"`
	Base string    `json:"base"`
	Head string    `json:"head"`
	Task string    `json:"task,omitempty"` // the task of the merge queue, once it is made
	At   time.Time `json:"at"`
}

const recordFile = "workspace.json"

// readRecord reads the record in a workspace's folder. It is fs.ErrNotExist if there is none.
func readRecord(dir string) (Record, error) {
	var r Record
	path := filepath.Join(dir, recordFile)
	content, err := os.ReadFile(path)
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(content, &r); err != nil {
		return r, fmt.Errorf("%s is no record of a workspace: %w", path, err)
	}
	return r, nil
}

// write replaces the record durably. A workspace that holds no work yet needs no such care.
func (r *Record) write(dir string) error {
	return writeJSON(filepath.Join(dir, recordFile), r, r.Phase != Creating)
}

// writeJSON replaces a file by the JSON of v. After a crash the file is the old one or the new one; if it
// is durable, the new one.
func writeJSON(path string, v any, durable bool) (err error) {
	content, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	_, err = f.Write(append(content, '\n'))
	if durable && err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil || !durable {
		return err
	}
	return syncFolder(filepath.Dir(path))
}

func readJSON(path string, v any) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return json.Unmarshal(content, v)
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}
