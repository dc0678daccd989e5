package main

import (
	"bytes"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// imageTargets lists the platforms of the image.
var imageTargets = []target{{"linux", "amd64"}, {"linux", "arm64"}}

// image builds the image of each platform, and returns the ids in their order. Buildah leaves an archive of each, which
// registries and container engines take; a Docker daemon keeps the image of its own platform.
//
//	out/files/every/etc/ssl/certs/ca-certificates.crt  the public certificate authorities
//	out/files/linux/amd64/interlock ...                the binaries
//	out/files/data                                     the empty volume
//	out/interlock_0.2.0_linux_amd64.oci.tar ...        the archives
func (r *release) image(wanted []target) (ids []string, err error) {
	if err := os.RemoveAll(r.out); err != nil {
		return nil, err
	}
	files := filepath.Join(r.out, "files")
	if err := r.imageFiles(files, wanted); err != nil {
		return nil, err
	}
	if _, err := exec.LookPath("buildah"); err == nil {
		return r.buildah(files, wanted)
	}
	if _, err := exec.LookPath("docker"); err == nil {
		return r.docker(files)
	}
	return nil, errors.New("an image needs buildah or docker, and neither is installed: apt-get install buildah")
}

// imageFiles writes what the Dockerfile copies.
func (r *release) imageFiles(files string, wanted []target) error {
	certificates := filepath.Join(files, "every/etc/ssl/certs")
	for _, dir := range []string{certificates, filepath.Join(files, "data")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	for _, t := range wanted {
		if err := r.command(&binary{target: t}, filepath.Join(files, t.os, t.arch, "interlock")); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(certificates, "ca-certificates.crt"), authorities(), 0o644)
}

// authorities returns the certificates of the public authorities, of Mozilla's list. Those with a constraint, which a
// file cannot express, are left out.
func authorities() []byte {
	var all bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			_ = pem.Encode(&all, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate})
		}
	}
	return all.Bytes()
}

// imageArguments are what an image of the release is built with.
func (r *release) imageArguments(files string) []string {
	return []string{
		"--build-arg", "VERSION=" + r.number(), "--build-arg", "REVISION=" + r.commit, "--tag", "interlock:" + r.number(),
		"--file", filepath.Join(r.root, "Dockerfile"), files,
	}
}

// buildah builds the images without a daemon and without a container: nothing runs in them while they are built. All
// that it stores lies below r.out while it works.
func (r *release) buildah(files string, wanted []target) (ids []string, err error) {
	store := filepath.Join(r.out, "store")
	global := []string{
		"--storage-driver", "vfs", "--root", filepath.Join(store, "root"), "--runroot", filepath.Join(store, "run"),
	}
	defer func() { err = errors.Join(err, os.RemoveAll(store)) }()
	for _, t := range wanted {
		args := append(global, "build", "--isolation", "chroot", "--quiet", "--timestamp", "0", "--platform", t.String())
		id, err := output(r.root, "buildah", append(args, r.imageArguments(files)...)...)
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
		archive := filepath.Join(r.out, fmt.Sprintf("interlock_%s_%s_%s.oci.tar", r.number(), t.os, t.arch))
		args = append(global, "push", "--quiet", id, "oci-archive:"+archive+":interlock:"+r.number())
		if _, err := output(r.root, "buildah", args...); err != nil {
			return nil, err
		}
	}
	return ids, nil
}

// docker lets a Docker daemon build the image of its own platform.
func (r *release) docker(files string) (ids []string, err error) {
	id, err := output(r.root, "docker", append([]string{"build", "--quiet"}, r.imageArguments(files)...)...)
	return []string{id}, err
}

// output runs a program and returns what it prints.
func output(dir, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	out, err := cmd.Output()
	return strings.TrimSpace(string(out)), failed(cmd, err)
}
