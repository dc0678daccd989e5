package place

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"sync"
)

// digits is the length of an id: among ten thousand copies, two have the same one once in 20,000 times.
const digits = 10

// identity returns the id of a folder, "" if it cannot be read. It is another one for each folder that exists, and
// the same one by each path of a folder.
func identity(dir string) string {
	device, inode, ok := node(dir)
	if !ok {
		return ""
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%d\x00%d", machine(), device, inode))
	return hex.EncodeToString(sum[:])[:digits]
}

// machine names the running system. Containers of one machine have one name, since they can share folders, and two
// machines two.
var machine = sync.OnceValue(func() string {
	if name := bootID(); name != "" {
		return name
	}
	name, _ := os.Hostname() // without one, folders of machines with the same numbers are one
	return name
})
