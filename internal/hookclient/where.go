package hookclient

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"

	"github.com/interlockdev/interlock/hook/place"
)

// Header is one line of a request's head.
type Header struct{ Name, Value string }

// Where returns the headers about the place of an event: the machine, the checkout of the folder
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
