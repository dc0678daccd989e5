package redis

import (
	"crypto/sha1" // Redis names scripts by it
	_ "embed"
	"encoding/hex"
	"strings"
)

//go:embed fenced.lua
var file string

// Script is the guard as a script, for EVAL and SCRIPT LOAD. Its first key holds the
// highest fence, the others are what the command touches; its first argument is the
// fence, the others are the command. It ends without a line break, since the "$(...)" of
// a shell takes that off, and its SHA1 would be another one.
var Script = strings.TrimSuffix(file, "\n")

// Function is the name under which the library has the guard.
const Function = "interlock_fenced"

// Library returns the guard as a library of Redis 7, for FUNCTION LOAD. A server keeps
// it over restarts and passes it on to its replicas, which it does not do with scripts.
func Library() string {
	return "#!lua name=interlock\nlocal function fenced(KEYS, ARGV)\n" + file + "end\nredis.register_function('" +
		Function + "', fenced)\n"
}

// SHA returns the name under which EVALSHA knows the script.
func SHA() string {
	sum := sha1.Sum([]byte(Script))
	return hex.EncodeToString(sum[:])
}
