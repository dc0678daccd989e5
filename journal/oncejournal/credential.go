package oncejournal

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// keysMargin is how long before their end keys are replaced.
const keysMargin = 5 * time.Minute

// keySource has the keys that sign requests to S3. They come from the first of: the environment, the file of AWS's
// tools, the endpoint of a container, and that of an instance.
type keySource struct {
	client *http.Client

	mu   sync.Mutex // guards keys
	keys keys
}

func newKeySource(client *http.Client) *keySource { return &keySource{client: client} }

func (r *keySource) get(ctx context.Context) (keys, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.keys.id != "" && (r.keys.ends.IsZero() || time.Until(r.keys.ends) > keysMargin) {
		return r.keys, nil
	}
	found, err := r.find(ctx)
	if err == nil {
		r.keys = found
	}
	return found, err
}

// forget makes the next request look for keys again.
func (r *keySource) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.keys = keys{}
}

func (r *keySource) find(ctx context.Context) (keys, error) {
	if id, secret := os.Getenv("AWS_ACCESS_KEY_ID"), os.Getenv("AWS_SECRET_ACCESS_KEY"); id != "" && secret != "" {
		return keys{id: id, secret: secret, session: os.Getenv("AWS_SESSION_TOKEN")}, nil
	}
	if k, ok := keysOfFile(); ok {
		return k, nil
	}
	if address, token, err := containerEndpoint(); address != "" || err != nil {
		if err != nil {
			return keys{}, err
		}
		body, err := fetch(ctx, r.client, http.MethodGet, address, map[string]string{"Authorization": token})
		if err != nil {
			return keys{}, fmt.Errorf("the container's endpoint for keys: %w", err)
		}
		return parseKeys(body)
	}
	k, err := r.ofInstance(ctx)
	if err != nil {
		return k, fmt.Errorf(
			"there are no keys: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or give the instance a role (%w)", err,
		)
	}
	return k, nil
}

// keysOfFile reads the profile of AWS_PROFILE from the file of AWS's tools.
func keysOfFile() (k keys, ok bool) {
	file := os.Getenv("AWS_SHARED_CREDENTIALS_FILE")
	if file == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return k, false
		}
		file = filepath.Join(home, ".aws", "credentials")
	}
	f, err := os.Open(file)
	if err != nil {
		return k, false
	}
	defer f.Close()
	want := os.Getenv("AWS_PROFILE")
	if want == "" {
		want = "default"
	}
	profile := ""
	for lines := bufio.NewScanner(f); lines.Scan(); {
		line := strings.TrimSpace(lines.Text())
		if strings.HasPrefix(line, "[") {
			profile = strings.Trim(line, "[] ")
			continue
		}
		name, value, _ := strings.Cut(line, "=")
		if value = strings.TrimSpace(value); profile != want {
			continue
		}
		switch strings.TrimSpace(name) {
		case "aws_access_key_id":
			k.id = value
		case "aws_secret_access_key":
			k.secret = value
		case "aws_session_token":
			k.session = value
		}
	}
	return k, k.id != "" && k.secret != ""
}

// containerEndpoint returns where a container gets its keys, and the token for that.
func containerEndpoint() (address, token string, err error) {
	address = os.Getenv("AWS_CONTAINER_CREDENTIALS_FULL_URI")
	if path := os.Getenv("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"); path != "" {
		address = "http://169.254.170.2" + path
	}
	token = os.Getenv("AWS_CONTAINER_AUTHORIZATION_TOKEN")
	if file := os.Getenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"); file != "" && address != "" {
		text, err := os.ReadFile(file)
		if err != nil {
			return "", "", err
		}
		token = strings.TrimSpace(string(text))
	}
	return address, token, nil
}

// ofInstance asks the metadata service of a machine of AWS, in the version with a session.
func (r *keySource) ofInstance(ctx context.Context) (k keys, err error) {
	base := strings.TrimSuffix(os.Getenv("AWS_EC2_METADATA_SERVICE_ENDPOINT"), "/")
	if base == "" {
		base = "http://169.254.169.254"
	}
	token, err := fetch(
		ctx, r.client, http.MethodPut, base+"/latest/api/token",
		map[string]string{"X-aws-ec2-metadata-token-ttl-seconds": "300"},
	)
	if err != nil {
		return k, err
	}
	header := map[string]string{"X-aws-ec2-metadata-token": string(token)}
	const path = "/latest/meta-data/iam/security-credentials/"
	role, err := fetch(ctx, r.client, http.MethodGet, base+path, header)
	if err != nil {
		return k, err
	}
	name, _, _ := strings.Cut(string(role), "\n")
	body, err := fetch(ctx, r.client, http.MethodGet, base+path+strings.TrimSpace(name), header)
	if err != nil {
		return k, err
	}
	return parseKeys(body)
}

// parseKeys reads the answer of an endpoint.
func parseKeys(body []byte) (k keys, err error) {
	var got struct {
		ID      string    `json:"AccessKeyId"`
		Secret  string    `json:"SecretAccessKey"`
		Session string    `json:"Token"`
		Ends    time.Time `json:"Expiration"`
	}
	if err := json.Unmarshal(body, &got); err != nil {
		return k, fmt.Errorf("the answer with keys: %w", err)
	}
	if got.ID == "" || got.Secret == "" {
		return k, errors.New("the answer with keys has none")
	}
	return keys{id: got.ID, secret: got.Secret, session: got.Session, ends: got.Ends}, nil
}
