package hookclient

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf16"

	"github.com/interlockdev/interlock/hook/place"
	"github.com/interlockdev/interlock/hook/region"
)

// Header is one line of a request's head.
type Header struct{ Name, Value string }

// Where returns the headers about the place of an event: the machine, that it can be asked for places, the checkout of
// the folder
// that the agent works in, and the leases around this process. The server cannot see that folder if it runs on another
// machine. A value that no header can have is left out.
func Where(event []byte) (list []Header) {
	add := func(name, value string) {
		if value != "" && !strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			list = append(list, Header{name, value})
		}
	}
	host, _ := os.Hostname() // without a name the server takes the address
	add(place.HeaderHost, host)
	add(place.HeaderPlaces, "{}")
	add(place.HeaderLease, strings.TrimSpace(os.Getenv("INTERLOCK_LEASE")+" "+os.Getenv("INTERLOCK_OUTER")))
	dir := folder(event)
	c, ok := place.Find(dir)
	if !ok {
		return list
	}
	// The root with links followed, and as the agent spells it.
	add(place.HeaderRoot, c.Root)
	for at := filepath.Clean(dir); at != filepath.Dir(at); at = filepath.Dir(at) {
		if at != c.Root && place.Resolve(at) == c.Root {
			add(place.HeaderRoot, at)
			break
		}
	}
	add(place.HeaderRepo, c.Repo)
	return list
}

// Limit is how long an event may take with this wait, in all: only one before a tool waits for a file.
func Limit(event []byte, wait time.Duration) time.Duration {
	var in struct {
		Name  string          `json:"hook_event_name"`
		Other string          `json:"hookEventName"`
		Event json.RawMessage `json:"event"`
	}
	_ = json.Unmarshal(event, &in) // what is no event has no name
	name := strings.ToLower(in.Name + in.Other + string(in.Event))
	if name == "" || strings.Contains(name, "pretool") || strings.Contains(name, "before") {
		return wait + Margin
	}
	return Short
}

// maxPlaces bounds how many paths of one event are looked up.
const maxPlaces = 1_000

// Asked returns the header of an event that is sent again, since the answer to it asks where paths lead; ok is false if
// it does not.
func Asked(answer []byte) (h Header, ok bool) {
	var in place.Asked
	if json.Unmarshal(answer, &in) != nil || len(in.Places) == 0 {
		return h, false
	}
	return Places(in.Places[:min(len(in.Places), maxPlaces)], in.Edit), true
}

// Places is the header that tells where paths lead, and which region an edit changes there. A path without a known
// place leads to itself.
func Places(paths []string, edit *region.Edit) Header {
	told := map[string]place.Location{}
	for _, path := range paths {
		at, ok := place.Locate(filepath.FromSlash(path))
		if !ok {
			at.Path = path
		}
		at.Edited(edit)
		told[path] = at
	}
	text, err := json.Marshal(told)
	if err != nil {
		panic(err) // they are texts
	}
	return Header{place.HeaderPlaces, ascii(text)}
}

// ascii escapes what is not ASCII in a JSON text, for a header.
func ascii(text []byte) string {
	var b strings.Builder
	for _, r := range string(text) {
		if r < 0x80 {
			b.WriteRune(r)
			continue
		}
		for _, half := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(&b, `\u%04x`, half)
		}
	}
	return b.String()
}

// folder is the folder that the agent works in, as its event has it, else the one of this process.
func folder(event []byte) string {
	var in struct {
		Dir       string   `json:"cwd"`
		Directory string   `json:"directory"`
		Roots     []string `json:"workspace_roots"`
	}
	_ = json.Unmarshal(event, &in) // an event of another form has no folder
	for _, dir := range append([]string{in.Dir, in.Directory}, in.Roots...) {
		if filepath.IsAbs(dir) {
			return dir
		}
	}
	dir, _ := os.Getwd()
	return dir
}
