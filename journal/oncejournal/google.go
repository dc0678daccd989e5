package oncejournal

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync"
	"time"
)

// tokens makes bearer tokens.
type tokens interface {
	get(ctx context.Context) (string, error)
}

type constantToken string

func (t constantToken) get(context.Context) (string, error) { return string(t), nil }

// tokenTime is how long a token of a service account is valid, and tokenMargin how long before its end another
// one is made.
const (
	tokenTime   = time.Hour
	tokenMargin = 5 * time.Minute
)

// tokenCache makes a token when the one before it is about to end.
type tokenCache struct {
	make func(ctx context.Context) (token string, ends time.Time, err error)

	mu    sync.Mutex // guards the fields below
	token string
	ends  time.Time
}

func (c *tokenCache) get(ctx context.Context) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.token != "" && time.Until(c.ends) > tokenMargin {
		return c.token, nil
	}
	token, ends, err := c.make(ctx)
	if err != nil {
		return "", err
	}
	c.token, c.ends = token, ends
	return token, nil
}

// newServiceAccount signs tokens with the key of a service account for one audience. The service accepts them as they
// are, so no other endpoint is asked.
func newServiceAccount(file, audience string) (tokens, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var account struct {
		Type  string `json:"type"`
		Email string `json:"client_email"`
		ID    string `json:"private_key_id"`
		Key   string `json:"private_key"`
	}
	if err := json.Unmarshal(text, &account); err != nil {
		return nil, fmt.Errorf("%s is no key of a service account: %w", file, err)
	}
	if account.Type != "service_account" {
		return nil, fmt.Errorf("%s has the type %q: want the key of a service account", file, account.Type)
	}
	key, err := parseKey(account.Key)
	if err != nil {
		return nil, fmt.Errorf("%s: its private key: %w", file, err)
	}
	return &tokenCache{make: func(context.Context) (string, time.Time, error) {
		now := time.Now()
		ends := now.Add(tokenTime)
		token, err := signToken(key, account.ID, map[string]any{
			"iss": account.Email, "sub": account.Email, "aud": audience, "iat": now.Unix(), "exp": ends.Unix(),
		})
		return token, ends, err
	}}, nil
}

func parseKey(text string) (*rsa.PrivateKey, error) {
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return nil, errors.New("it is no PEM")
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		if key, err := x509.ParsePKCS1PrivateKey(block.Bytes); err == nil {
			return key, nil
		}
		return nil, err
	}
	key, ok := parsed.(*rsa.PrivateKey)
	if !ok {
		return nil, errors.New("it is no key for RSA")
	}
	return key, nil
}

// signToken makes a JSON web token with the algorithm RS256.
func signToken(key *rsa.PrivateKey, id string, claims map[string]any) (string, error) {
	head, err := json.Marshal(map[string]string{"alg": "RS256", "typ": "JWT", "kid": id})
	if err != nil {
		return "", err
	}
	body, err := json.Marshal(claims)
	if err != nil {
		return "", err
	}
	encode := base64.RawURLEncoding.EncodeToString
	text := encode(head) + "." + encode(body)
	sum := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, sum[:])
	return text + "." + encode(signature), err
}

// newMetadata asks the metadata server of a machine of Google Cloud.
func newMetadata(host string) tokens {
	if host == "" {
		host = "metadata.google.internal"
	}
	client := newLocalClient()
	return &tokenCache{make: func(ctx context.Context) (string, time.Time, error) {
		began := time.Now()
		body, err := fetch(
			ctx, client, http.MethodGet,
			"http://"+host+"/computeMetadata/v1/instance/service-accounts/default/token",
			map[string]string{"Metadata-Flavor": "Google"},
		)
		if err != nil {
			return "", began, fmt.Errorf(
				"the metadata server returns no token, and GOOGLE_APPLICATION_CREDENTIALS names no key: %w", err,
			)
		}
		var got struct {
			Token   string `json:"access_token"`
			Seconds int    `json:"expires_in"`
		}
		if err := json.Unmarshal(body, &got); err != nil || got.Token == "" {
			return "", began, errors.New("the answer of the metadata server has no token")
		}
		return got.Token, began.Add(time.Duration(got.Seconds) * time.Second), nil
	}}
}
