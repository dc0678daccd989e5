//go:build unix

package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
)

// A server that is restored from a backup has the leases of the original, and grants fences far
// above its own.
func TestBackupAndRestore(t *testing.T) {
	r := newRig(t)
	r.must("lock", "report:1", "--ttl", "10m")
	r.must("state", "set", "doc:1", `{"n":7}`)
	file := filepath.Join(t.TempDir(), "backup")
	if out := r.must("admin", "backup", "--to", file); !strings.Contains(out, "backed up the state after entry") {
		t.Errorf("it said %q", out)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if out, code := r.do("admin", "backup", "--to", file); code != cli.ExitUsage || !strings.Contains(out, "--force") {
		t.Errorf("over an existing file: exit code %d, %q", code, out)
	}
	var made, checked struct{ Index, Head string }
	for args, into := range map[string]any{"backup --to " + file + " --force": &made, "backup verify " + file: &checked} {
		out := r.must(append([]string{"admin", "-o", "json"}, strings.Fields(args)...)...)
		if err := json.Unmarshal([]byte(out), into); err != nil {
			t.Fatalf("%s: %q: %v", args, out, err)
		}
	}
	if out := r.must("admin", "backup", "verify", file); made.Index == "" || !strings.Contains(out, "nothing is wrong") {
		t.Errorf("made %+v, verify: %s", made, out)
	}
	if left, err := os.ReadDir(filepath.Dir(file)); err != nil || len(left) != 1 {
		t.Errorf("beside the backup there is %v, %v", left, err)
	}

	for _, apart := range []bool{false, true} {
		restoreFrom(t, r, file, apart)
	}
}

// restoreFrom starts a server from a backup: with --restore, or from a journal that admin restore has filled apart.
func restoreFrom(t *testing.T, r *rig, file string, apart bool) {
	dir := filepath.Join(t.TempDir(), "data")
	flags := []string{"--data-dir", dir, "--restore", file}
	if apart {
		r.must("admin", "restore", file, "--to", dir)
		flags = flags[:2]
	}
	p := serving(t, nil, flags...)
	http, grpc := p.ready()
	r.env = append(cleanEnvironment(), "INTERLOCK_URL=http://"+http, "INTERLOCK_GRPC="+grpc)
	if out, code := r.do("lock", "report:1", "--wait", "0"); code != cli.ExitNotAcquired {
		t.Errorf("the key of a lease in the backup: exit code %d, %s", code, out)
	}
	out := r.must("lock", "report:2")
	_, number, _ := strings.Cut(out, "INTERLOCK_FENCE=")
	number, _, _ = strings.Cut(number, "\n")
	if fence, err := strconv.ParseUint(number, 10, 64); err != nil || fence < 1<<40 {
		t.Errorf("the first fence has not jumped: %s", out)
	}
	if out := r.must("state", "get", "doc:1"); !strings.Contains(out, "7") {
		t.Errorf("document: %s", out)
	}
	p.signal(syscall.SIGTERM)
	p.ends(cli.ExitOK)
	const kept = "nothing of it was changed: leave out --restore"
	if apart {
		if out, code := r.do("admin", "restore", file, "--to", dir); code != cli.ExitUsage || !strings.Contains(out, kept) {
			t.Errorf("over a journal: exit code %d, %s", code, out)
		}
		return
	}
	if out := serving(t, nil, flags...).ends(cli.ExitUsage); !strings.Contains(out, kept) {
		t.Errorf("over a journal: %s", out)
	}
}

// A backup that is cut off, damaged, newer or missing is refused before anything is written.
func TestRestoreRefuses(t *testing.T) {
	r := newRig(t)
	r.must("lock", "report:1")
	dir := t.TempDir()
	file := filepath.Join(dir, "backup")
	r.must("admin", "backup", "--to", file)
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	flipped := bytes.Clone(whole)
	flipped[len(flipped)/2] ^= 4
	newer := bytes.Clone(whole)
	newer[8]++
	binary.LittleEndian.PutUint32(newer[12:], crc32.Checksum(newer[:12], crc32.MakeTable(crc32.Castagnoli)))
	for name, x := range map[string]struct {
		content []byte
		code    int
		text    string
	}{
		"cut off":     {whole[:len(whole)-1], cli.ExitDamaged, "it was cut off"},
		"flipped":     {flipped, cli.ExitDamaged, "checksum of the chunk"},
		"newer":       {newer, cli.ExitNewer, "newer"},
		"no backup":   {[]byte("PK\x03\x04 something else"), cli.ExitDamaged, "so it is no backup"},
		"not a file":  {nil, cli.ExitUsage, "there is no file"},
		"empty":       {[]byte{}, cli.ExitDamaged, "so it is no backup"},
		"other bytes": {append(bytes.Clone(whole), 'x'), cli.ExitDamaged, "behind the end"},
	} {
		t.Run(name, func(t *testing.T) {
			path, data := filepath.Join(t.TempDir(), "file"), filepath.Join(t.TempDir(), "data")
			if x.content != nil {
				if err := os.WriteFile(path, x.content, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			p := serving(t, nil, "--data-dir", data, "--restore", path)
			if out := p.ends(x.code); !strings.Contains(out, x.text) {
				t.Errorf("serve: %s", out)
			}
			if _, err := os.Stat(data); err == nil {
				t.Error("the directory was made")
			}
			if out, code := r.do("admin", "backup", "verify", path); code == 0 || !strings.Contains(out, x.text) {
				t.Errorf("verify: exit code %d, %s", code, out)
			}
		})
	}
}
