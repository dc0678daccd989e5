package oncejournal

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"regexp"
	"strings"
	"time"
)

// FirestorePlace is where a journal in Firestore is.
type FirestorePlace struct {
	Project  string
	Database string // "(default)", or the ID of another one

	// Name distinguishes journals in one database: 1 to 64 letters, digits, '.', '_' and '-'.
	Name string

	// Shard is the number of the shard that the journal belongs to.
	Shard int

	// Emulator is the host and port of Google's emulator. "" means the service itself.
	Emulator string

	// Credentials is the file of a service account's key. "" means that the metadata server of the
	// machine is asked for tokens.
	Credentials string

	// Patience is how long a request may go unanswered before the journal fails, or a waiting
	// server tries again. 0 means remote.DefaultPatience.
	Patience time.Duration
}

var (
	nameForm     = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)
	projectForm  = regexp.MustCompile(`^[a-z0-9.:-]{1,64}$`)
	databaseForm = regexp.MustCompile(`^(\(default\)|[a-z][a-z0-9-]{2,62})$`)
)

const firestoreForm = "firestore://PROJECT/DATABASE/NAME"

// ParseFirestore reads a URL:
//
//	firestore://PROJECT/DATABASE/NAME?credentials=FILE&emulator=HOST:PORT
//
// The default database is written "(default)" or "default". Without the parameters, the key and the emulator are those
// of GOOGLE_APPLICATION_CREDENTIALS and FIRESTORE_EMULATOR_HOST, as with Google's own libraries.
func ParseFirestore(text string) (p FirestorePlace, err error) {
	rest, ok := strings.CutPrefix(text, "firestore://")
	if !ok {
		return p, errors.New("want " + firestoreForm)
	}
	rest, query, _ := strings.Cut(rest, "?")
	values, err := url.ParseQuery(query)
	if err != nil {
		return p, fmt.Errorf("its parameters: %w", err)
	}
	p.Emulator, p.Credentials = os.Getenv("FIRESTORE_EMULATOR_HOST"), os.Getenv("GOOGLE_APPLICATION_CREDENTIALS")
	for key := range values {
		switch value := values.Get(key); key {
		case "emulator":
			p.Emulator = value
		case "credentials":
			p.Credentials = value
		default:
			return p, fmt.Errorf("the parameter %q: want credentials or emulator", key)
		}
	}
	parts := strings.Split(rest, "/")
	if len(parts) != 3 {
		return p, errors.New("want " + firestoreForm)
	}
	p.Project, p.Database, p.Name = parts[0], parts[1], parts[2]
	if p.Database == "default" {
		p.Database = "(default)"
	}
	switch {
	case !projectForm.MatchString(p.Project):
		return p, errors.New("the project: want the ID of a project of Google Cloud, such as my-project-1")
	case !databaseForm.MatchString(p.Database):
		return p, errors.New("the database: want default, or the ID of a database of Firestore")
	case !nameForm.MatchString(p.Name):
		return p, errors.New("the name: want letters, digits, '.', '_' and '-', at most 64")
	}
	return p, nil
}

// where names the journal for all servers alike.
func (p *FirestorePlace) where() string {
	return fmt.Sprintf("project %s, database %s, journal %s, shard %d", p.Project, p.Database, p.Name, p.Shard)
}

func (p *FirestorePlace) database() string {
	return fmt.Sprintf("projects/%s/databases/%s", p.Project, p.Database)
}

// parent is the document below which all others are. It need not exist.
func (p *FirestorePlace) parent() string {
	return fmt.Sprintf("%s/documents/interlock/%s.%d", p.database(), p.Name, p.Shard)
}

func (p *FirestorePlace) base() string {
	if p.Emulator != "" {
		return "http://" + p.Emulator
	}
	return "https://firestore.googleapis.com"
}

// token returns what authenticates.
func (p *FirestorePlace) token() (tokens, error) {
	switch {
	case p.Emulator != "":
		return constantToken("owner"), nil
	case p.Credentials != "":
		return newServiceAccount(p.Credentials, p.base()+"/")
	}
	return newMetadata(os.Getenv("GCE_METADATA_HOST")), nil
}
