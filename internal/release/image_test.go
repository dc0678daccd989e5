package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/x509"
	"debug/elf"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/interlockdev/interlock/internal/test/tools"
)

// The image has the same id whenever it is built, nothing but the server in it, and a server that works there as a user
// that is not root.
func TestImage(t *testing.T) {
	tools.Need(t, "git", "buildah", "unshare", "mount", "ip")
	first, second := buildImages(t), buildImages(t)
	if !slices.Equal(first.ids, second.ids) {
		t.Errorf("built twice, the images have the ids %q and %q", first.ids, second.ids)
	}
	if len(first.ids) != 2 || first.ids[0] == first.ids[1] {
		t.Errorf("the images have the ids %q, want one for each platform", first.ids)
	}
	for _, platform := range imageTargets {
		i := openImage(t, filepath.Join(first.out, "interlock_1.2.3_linux_"+platform.arch+".oci.tar"))
		i.check(t, platform.arch)
		if platform.arch == runtime.GOARCH {
			i.run(t)
		}
	}
	if left, err := filepath.Glob(filepath.Join(first.out, "store")); err != nil || len(left) != 0 {
		t.Errorf("what buildah stored is still there: %q, %v", left, err)
	}
}

// images are those of one build.
type images struct {
	out string
	ids []string
}

func buildImages(t *testing.T) images {
	t.Helper()
	r, err := describe(".", "")
	if err != nil {
		t.Fatal(err)
	}
	r.version, r.out = "v1.2.3", filepath.Join(t.TempDir(), "image")
	ids, err := r.image(imageTargets)
	if err != nil {
		t.Fatalf("buildah needs root here, and a kernel that lets it mount and chroot: %v", err)
	}
	return images{r.out, ids}
}

// image is one that was read from an archive.
type image struct {
	config struct {
		Architecture string
		OS           string
		Config       struct {
			User         string
			ExposedPorts map[string]struct{}
			Env          []string
			Entrypoint   []string
			Cmd          []string
			Volumes      map[string]struct{}
			Labels       map[string]string
		}
	}
	root    string   // of its files, unpacked
	entries []string // of its files: mode, owner and name
}

// openImage unpacks an image.
func openImage(t *testing.T, archive string) *image {
	t.Helper()
	file, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	blobs := map[string][]byte{}
	walk(t, file, func(h *tar.Header, body []byte) { blobs[h.Name] = body })
	blob := func(digest string) []byte { return blobs["blobs/"+strings.Replace(digest, ":", "/", 1)] }
	type descriptor struct{ MediaType, Digest string }
	var index struct{ Manifests []descriptor }
	var manifest struct {
		Config descriptor
		Layers []descriptor
	}
	i := &image{root: t.TempDir()}
	err = json.Unmarshal(blobs["index.json"], &index)
	if err != nil || len(index.Manifests) != 1 {
		t.Fatalf("%s has the index %s: %v", archive, blobs["index.json"], err)
	}
	if err := errors.Join(
		json.Unmarshal(blob(index.Manifests[0].Digest), &manifest), json.Unmarshal(blob(manifest.Config.Digest), &i.config),
	); err != nil {
		t.Fatal(err)
	}
	for _, layer := range manifest.Layers {
		packed, err := gzip.NewReader(bytes.NewReader(blob(layer.Digest)))
		if err != nil {
			t.Fatal(err)
		}
		walk(t, packed, func(h *tar.Header, body []byte) { i.unpack(t, h, body) })
	}
	slices.Sort(i.entries)
	return i
}

// unpack writes one file of a layer.
func (i *image) unpack(t *testing.T, h *tar.Header, body []byte) {
	name := strings.TrimSuffix(h.Name, "/")
	entry := fmt.Sprintf("%s %v %d:%d", name, h.FileInfo().Mode(), h.Uid, h.Gid)
	if !slices.Contains(i.entries, entry) {
		i.entries = append(i.entries, entry)
	}
	path := filepath.Join(i.root, name)
	var err error
	if h.Typeflag == tar.TypeDir {
		err = os.MkdirAll(path, h.FileInfo().Mode().Perm())
	} else {
		err = os.WriteFile(path, body, h.FileInfo().Mode().Perm())
	}
	if err := errors.Join(err, os.Chown(path, h.Uid, h.Gid)); err != nil {
		t.Fatal(err)
	}
}

// walk calls f with each file of an archive.
func walk(t *testing.T, from io.Reader, f func(*tar.Header, []byte)) {
	t.Helper()
	for archive := tar.NewReader(from); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		f(header, body)
	}
}

// check compares the files of the image, and how it starts, with the Dockerfile.
func (i *image) check(t *testing.T, arch string) {
	t.Helper()
	wantEntries := []string{
		"data drwxr-xr-x 65532:65532", "etc drwxr-xr-x 0:0", "etc/ssl drwxr-xr-x 0:0", "etc/ssl/certs drwxr-xr-x 0:0",
		"etc/ssl/certs/ca-certificates.crt -rw-r--r-- 0:0", "interlock -rwxr-xr-x 0:0",
	}
	if !slices.Equal(i.entries, wantEntries) {
		t.Errorf("%s: the image has\n%s\nwant\n%s", arch, strings.Join(i.entries, "\n"), strings.Join(wantEntries, "\n"))
	}
	c := i.config.Config
	got := fmt.Sprintf(
		"%s/%s user %s runs %q %q, ports %d, volumes %v, version %s", i.config.OS, i.config.Architecture, c.User,
		c.Entrypoint, c.Cmd, len(c.ExposedPorts), c.Volumes, c.Labels["org.opencontainers.image.version"],
	)
	want := "linux/" + arch +
		` user 65532:65532 runs ["/interlock"] ["serve"], ports 2, volumes map[/data:{}], version 1.2.3`
	if got != want {
		t.Errorf("the image is %s\nwant         %s", got, want)
	}
	program, err := elf.Open(filepath.Join(i.root, "interlock"))
	if err != nil {
		t.Fatal(err)
	}
	defer program.Close()
	machines := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}
	if program.Machine != machines[arch] {
		t.Errorf("%s: the binary is for %v", arch, program.Machine)
	}
	for _, p := range program.Progs {
		if p.Type == elf.PT_INTERP || p.Type == elf.PT_DYNAMIC {
			t.Errorf("%s: the binary needs libraries, which are not in the image", arch)
		}
	}
	pem, err := os.ReadFile(filepath.Join(i.root, "etc/ssl/certs/ca-certificates.crt"))
	if err != nil || !x509.NewCertPool().AppendCertsFromPEM(pem) || bytes.Count(pem, []byte("BEGIN CERT")) < 80 {
		t.Errorf("%s: the image has no certificate authorities: %v", arch, err)
	}
}

// run starts the server from the files of the image alone.
func (i *image) run(t *testing.T) {
	t.Helper()
	if err := os.Mkdir(filepath.Join(i.root, "proc"), 0o755); err != nil { // as a container engine does
		t.Fatal(err)
	}
	args := []string{
		"--mount", "--net", "--pid", "--fork", "--kill-child", "bash", "testdata/image.sh", i.root, "../../Dockerfile",
	}
	out, err := exec.Command("unshare", append(args, i.config.Config.Env...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	want := "ready http=[::]:7420 grpc=[::]:7421\n"
	for _, line := range []string{want, "\nok active\n", "\nlocked\n", "\nstopped\n"} {
		if !strings.Contains(string(out), line) {
			t.Errorf("the output lacks %q:\n%s", line, out)
		}
	}
}
