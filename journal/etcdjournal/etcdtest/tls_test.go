package etcdtest

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/interlockdev/interlock/internal/test/busy"
	"github.com/interlockdev/interlock/journal"
	"github.com/interlockdev/interlock/journal/etcdjournal"
)

// papers are the files with which the members of a cluster and their clients know each
// other.
type papers struct {
	ca             string
	member, server paper
}

// paper is a certificate and its key.
type paper struct{ cert, key string }

// newPapers makes a new authority sign the certificates of all.
func newPapers(t testing.TB) *papers {
	t.Helper()
	dir := t.TempDir()
	authority := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	authorityKey := newKey(t)
	sign := func(name string, serial int64) paper {
		key := newKey(t)
		template := &x509.Certificate{
			SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: name},
			IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
			NotBefore:   authority.NotBefore, NotAfter: authority.NotAfter, KeyUsage: x509.KeyUsageDigitalSignature,
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		}
		cert, err := x509.CreateCertificate(rand.Reader, template, authority, &key.PublicKey, authorityKey)
		if err != nil {
			t.Fatal(err)
		}
		der, err := x509.MarshalPKCS8PrivateKey(key)
		if err != nil {
			t.Fatal(err)
		}
		return paper{
			cert: writePEM(t, filepath.Join(dir, name+".pem"), "CERTIFICATE", cert),
			key:  writePEM(t, filepath.Join(dir, name+".key"), "PRIVATE KEY", der),
		}
	}
	self, err := x509.CreateCertificate(rand.Reader, authority, authority, &authorityKey.PublicKey, authorityKey)
	if err != nil {
		t.Fatal(err)
	}
	return &papers{
		ca: writePEM(t, filepath.Join(dir, "ca.pem"), "CERTIFICATE", self), member: sign("member", 2),
		server: sign("server", 3),
	}
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func writePEM(t testing.TB, path, kind string, der []byte) string {
	t.Helper()
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// config is how a client of the test shows its papers; nil when there are none.
func (p *papers) config(t testing.TB) *tls.Config {
	t.Helper()
	if p == nil {
		return nil
	}
	pair, err := tls.LoadX509KeyPair(p.server.cert, p.server.key)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(p.ca)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(text)
	return &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}}
}

// With certificates a journal is opened and read again. A client that shows none, shows one of
// another authority, or trusts another authority than the members', gets nothing.
func TestTLS(t *testing.T) {
	c := startClusterWith(t, newPapers(t))
	at := c.place()
	ctx, cancel := context.WithTimeout(context.Background(), busy.Patience())
	defer cancel()
	j, err := c.store(at).Open(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Append(ctx, j.Tail()+1, [][]byte{[]byte("x")}); err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	others := newPapers(t)
	for name, change := range map[string]func(*etcdjournal.Place){
		"nothing is encrypted":    func(p *etcdjournal.Place) { p.CA, p.Cert, p.Key = "", "", "" },
		"no certificate is shown": func(p *etcdjournal.Place) { p.Cert, p.Key = "", "" },
		"a certificate of another authority": func(p *etcdjournal.Place) {
			p.Cert, p.Key = others.server.cert,
				others.server.key
		},
		"members whom another authority signed": func(p *etcdjournal.Place) { p.CA = others.ca },
	} {
		t.Run(name, func(t *testing.T) {
			wrong := at
			wrong.Patience = time.Second
			change(&wrong)
			if j, err := c.store(wrong).Open(ctx); err == nil {
				t.Errorf("opened in epoch %d", j.Epoch())
			} else if errors.Is(err, journal.ErrFenced) {
				t.Errorf("somebody else opened it: %v", err)
			}
		})
	}
	again, err := c.store(at).Open(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if again.Epoch() != j.Epoch()+1 {
		t.Errorf("epoch %d after %d: somebody has opened it meanwhile", again.Epoch(), j.Epoch())
	}
}
