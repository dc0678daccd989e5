package datadir

import (
	"os"
	"strings"
	"testing"
)

// No error about a place shows a password, for any engine and in any place: with characters that
// end the part of a URL where a password belongs, in a parameter, without a scheme.
func TestPlaceTellsNoPassword(t *testing.T) {
	t.Setenv("AWS_REGION", "eu-central-1")
	secrets := []string{
		"hunter2secret", "hunter2/secret", "hunter2?secret", "hunter2#secret", "hunter2@secret", "hunter2:secret",
		"hunter2%zzsecret", "%68unter2secret", "hunter2 secret", "hunter2&secret=1", "hunter2=secret", "hunter2[secret",
	}
	for _, form := range []string{
		"://me:SECRET@127.0.0.1:1/x", "://:SECRET@h/x", "://me:SECRET@h,i/x?journal=main",
		"://h/x?password=SECRET", "://me@h:5/x?sslpassword=SECRET", "://h/x?PASSWORD=SECRET", "://h/x?pass%77ord=SECRET",
		"://h/x/y?auth_token=SECRET", ":me:SECRET@h/x", ":/me:SECRET@h/x", "://me:SECRET", "://me:SECRET@",
		"://h/d/x?emulator=me:SECRET@h", "://bucket/p?endpoint=https://me:SECRET@h",
	} {
		for _, e := range append(engines, engine{schemes: []string{"mysql", "host=h user=me", "//me", "me"}}) {
			for _, scheme := range e.schemes {
				for _, secret := range secrets {
					text := scheme + strings.ReplaceAll(form, "SECRET", secret)
					p, err := ParsePlace(text, false)
					said := Shown(text) + " " + OpenError(text, os.ErrNotExist).Error() + NoJournal(text, os.ErrNotExist).Error()
					if err != nil {
						said += err.Error()
					} else if e.kind != "" && strings.HasPrefix(form, "://me:SECRET@") {
						t.Errorf("%s is taken as a place: %+v", text, p)
					}
					for part := range strings.FieldsFuncSeq(secret, isDelimiter) {
						if len(part) > 2 && strings.Contains(said, part) {
							t.Errorf("%s: %q tells of the password %s", text, said, secret)
						}
					}
				}
			}
		}
	}
}

// The error about a place without a secret names its fault.
func TestPlaceNamesTheFault(t *testing.T) {
	for text, want := range map[string]string{
		"postgres://me@h:5432/db?sslmode=never":     "sslmode",
		"postgres://me@h/db?journal=a/b":            "the parameter journal",
		"redis://h/x":                               "the database is a number",
		"redis://me@h:7/0?replica=1":                "replica",
		"etcd://h:2379":                             "name of the journal",
		"s3://b":                                    "the bucket",
		"firestore://p/d":                           "firestore://PROJECT",
		"mysql://me@h/db":                           "this version keeps journals in",
		"redis://me:hunter2secret@h/0":              "REDISCLI_AUTH",
		"postgres://me:hunter2/secret@h/db":         "PGPASSWORD",
		"postgres://me@h/db?password=hunter2secret": "PGPASSWORD",
	} {
		if _, err := ParsePlace(text, false); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q in it", text, err, want)
		}
	}
	for _, good := range []string{
		"postgres://me@h:5432,i:5432/db?journal=main&application_name=a@b", "redis://me@h:7,i/0",
		"etcd://h:2379/a?ca=/x@y.pem",
	} {
		if _, err := ParsePlace(good, false); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
}
