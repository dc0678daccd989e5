package oncejournal

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A service account signs a token that its public key verifies, for one audience and an hour, and uses it again.
func TestServiceAccount(t *testing.T) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	account := map[string]string{
		"type": "service_account", "client_email": "server@project.example", "private_key_id": "k1",
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})),
	}
	save := func() string {
		text, err := json.Marshal(account)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "key.json")
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	source, err := newServiceAccount(save(), "https://firestore.googleapis.com/")
	if err != nil {
		t.Fatal(err)
	}
	token, err := source.get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		t.Fatalf("the token has %d parts", len(parts))
	}
	decode := func(part string, to any) {
		t.Helper()
		text, err := base64.RawURLEncoding.DecodeString(part)
		if err == nil {
			err = json.Unmarshal(text, to)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	var head struct{ Alg, Kid string }
	decode(parts[0], &head)
	var claims struct {
		Iss, Sub, Aud string
		Iat, Exp      int64
	}
	decode(parts[1], &claims)
	if head.Alg != "RS256" || head.Kid != "k1" || claims.Iss != account["client_email"] || claims.Sub != claims.Iss ||
		claims.Aud != "https://firestore.googleapis.com/" || claims.Exp-claims.Iat != 3600 ||
		time.Since(time.Unix(claims.Iat, 0)) > time.Minute {
		t.Errorf("the token is %+v, %+v", head, claims)
	}
	signature, err := base64.RawURLEncoding.DecodeString(parts[2])
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	if err := rsa.VerifyPKCS1v15(&key.PublicKey, crypto.SHA256, sum[:], signature); err != nil {
		t.Error(err)
	}
	if again, err := source.get(t.Context()); err != nil || again != token {
		t.Errorf("another token was made: %v", err)
	}
	for field, value := range map[string]string{"type": "authorized_user", "private_key": "none"} {
		was := account[field]
		account[field] = value
		if _, err := newServiceAccount(save(), "a"); err == nil {
			t.Errorf("%s %s is accepted", field, value)
		}
		account[field] = was
	}
}

func TestMetadata(t *testing.T) {
	url := endpoint(t, map[string]string{
		"GET /computeMetadata/v1/instance/service-accounts/default/token": `{"access_token":"abc","expires_in":3600}`,
	}, func(r *http.Request) bool { return r.Header.Get("Metadata-Flavor") == "Google" })
	token, err := newMetadata(strings.TrimPrefix(url, "http://")).get(t.Context())
	if err != nil || token != "abc" {
		t.Errorf("got %q, %v", token, err)
	}
}
