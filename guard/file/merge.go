package file

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"time"
	"unicode/utf8"
)

// mergeTime bounds one merge.
const mergeTime = 5 * time.Second

// merge joins a change with what others made of the same base. It is not ok when the
// two are in conflict, when one of them is no text or a deletion, when the base is
// not kept, or where there is no git.
func (b base) merge(ctx context.Context, c *Change, now *File) (merged []byte, ok bool) {
	if !b.known || b.version == None || now.Version == None || c.Delete {
		return nil, false
	}
	for _, body := range [][]byte{b.body, c.Body, now.Body} {
		if !utf8.Valid(body) || bytes.IndexByte(body, 0) >= 0 {
			return nil, false
		}
	}
	merged, err := mergeFiles(ctx, c.Body, b.body, now.Body)
	return merged, err == nil && len(merged) <= MaxBytes
}

// mergeFiles runs git merge-file. It sees three files in a directory of its own and
// nothing else: no repository, no settings of the user or of the machine.
func mergeFiles(ctx context.Context, mine, base, theirs []byte) (merged []byte, err error) {
	dir, err := os.MkdirTemp("", "interlock-merge-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	for name, body := range map[string][]byte{"mine": mine, "base": base, "theirs": theirs} {
		if err := os.WriteFile(filepath.Join(dir, name), body, 0o600); err != nil {
			return nil, err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, mergeTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, "git", "merge-file", "-p", "-q", "--diff3",
		"-L", "your change", "-L", "what you read", "-L", "what is there now", "--", "mine", "base", "theirs")
	cmd.Dir = dir
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "LC_ALL=C",
		"GIT_CEILING_DIRECTORIES=" + filepath.Dir(dir), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + os.DevNull,
	}
	cmd.WaitDelay = time.Second
	return cmd.Output()
}
