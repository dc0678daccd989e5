package resp

import (
	"errors"
	"fmt"
	"sort"
	"strings"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/internal/invisible"
)

// command is one command of the protocol.
type command struct {
	least, most int // arguments besides the name; most is -1 for any number
	keys        int // of the leading arguments that are keys; -1: all
	free        bool
	run         func(c *client, args [][]byte) error
}

// takes reports whether the command may have n arguments.
func (cmd *command) takes(n int) bool { return n >= cmd.least && (cmd.most < 0 || n <= cmd.most) }

// commands are those that are answered. Free ones need no credential.
var commands map[string]*command

func init() {
	commands = map[string]*command{
		"HELLO":   {0, 6, 0, true, (*client).hello},
		"AUTH":    {1, 2, 0, true, (*client).auth},
		"PING":    {0, 1, 0, true, (*client).ping},
		"ECHO":    {1, 1, 0, true, func(c *client, args [][]byte) error { c.w.bulk(string(args[0])); return nil }},
		"SELECT":  {1, 1, 0, true, (*client).choose},
		"QUIT":    {0, 0, 0, true, func(c *client, _ [][]byte) error { c.over = true; return c.ok() }},
		"RESET":   {0, 0, 0, true, (*client).reset},
		"CLIENT":  {1, -1, 0, true, (*client).client},
		"COMMAND": {0, -1, 0, true, (*client).command},
		"INFO":    {0, -1, 0, true, (*client).info},

		"SET":       {2, 11, 1, false, (*client).set},
		"SETNX":     {2, 2, 1, false, (*client).setNX},
		"GET":       {1, 1, 1, false, (*client).get},
		"DEL":       {1, -1, -1, false, (*client).del},
		"UNLINK":    {1, -1, -1, false, (*client).del},
		"GETDEL":    {1, 1, 1, false, (*client).getDel},
		"DELEX":     {1, 3, 1, false, (*client).delEx},
		"DELIFEQ":   {2, 2, 1, false, (*client).delIfEqual},
		"EXISTS":    {1, -1, -1, false, (*client).exists},
		"TTL":       {1, 1, 1, false, (*client).ttl},
		"PTTL":      {1, 1, 1, false, (*client).pttl},
		"EXPIRE":    {2, 2, 1, false, (*client).expireS},
		"PEXPIRE":   {2, 2, 1, false, (*client).expireMS},
		"EXPIREAT":  {2, 2, 1, false, (*client).expireAtS},
		"PEXPIREAT": {2, 2, 1, false, (*client).expireAtMS},
		"SCRIPT":    {1, -1, 0, false, (*client).script},
		"EVAL":      {2, -1, 0, false, (*client).eval},
		"EVALSHA":   {2, -1, 0, false, (*client).evalSHA},
		"FLUSHDB":   {0, 1, 0, false, (*client).flushDB},
		"FLUSHALL":  {0, 1, 0, false, (*client).flushDB},
		"SADD":      {2, -1, 1, false, (*client).setAdd},

		"INTERLOCK.FENCE": {2, 2, 1, false, (*client).fence},
		"INTERLOCK.WHY":   {1, 1, 1, false, (*client).why},
	}
}

// instead tells what to use in place of commands that are not answered, by their beginnings.
var instead = []struct {
	commands string
	text     string
}{
	{
		"ZADD ZRANGE ZRANGEBYSCORE ZREM ZPOPMIN BZPOPMIN ZCARD ZSCORE LPUSH RPUSH LPOP RPOP BLPOP BRPOP LMOVE BLMOVE " +
			"BRPOPLPUSH RPOPLPUSH LRANGE LLEN LREM XADD XREAD XREADGROUP XACK XGROUP",
		"interlock is not a database. For a queue of work, also of retries, use tasks, such as interlock task create QUEUE " +
			"--in 60s: a task survives the crash of its worker; see docs/tasks.md",
	},
	{
		"PUBLISH SUBSCRIBE PSUBSCRIBE SSUBSCRIBE UNSUBSCRIBE PUNSUBSCRIBE",
		"interlock has no channels. Ask again with SET NX, or wait in line with interlock run KEY -- COMMAND; interlock " +
			"log --follow shows what happens to keys",
	},
	{
		"MULTI EXEC DISCARD WATCH UNWATCH",
		"interlock has no transactions of Redis. Send the commands without MULTI, or in a pipeline without a transaction. " +
			"For several documents, all or none, use interlock state commit",
	},
	{
		"SADD HSET HGET HGETALL HDEL HMSET HINCRBY MSET MGET APPEND SREM SMEMBERS SISMEMBER JSON.SET JSON.GET",
		"interlock is not a database. For a document with a version use interlock state; see docs/concepts.md",
	},
	{
		"INCR INCRBY DECR DECRBY INCRBYFLOAT",
		"interlock is not a database. For a limit of rate or number give a pattern a capacity or a rate, with interlock " +
			"pattern set; see docs/patterns.md",
	},
	{
		"KEYS SCAN RANDOMKEY DBSIZE",
		"interlock key list PREFIX lists the keys that are held",
	},
	{"FCALL FUNCTION EVAL_RO EVALSHA_RO", "interlock runs no functions. Send the script with EVAL"},
	{"WAIT WAITAOF", "interlock answers a command when it is on the disk, so there is nothing to wait for"},
}

// unknown refuses a command that is not answered.
func unknown(name string) error {
	for _, group := range instead {
		for word := range strings.FieldsSeq(group.commands) {
			if word == name {
				return &usageError{"unsupported command " + name + ": " + group.text}
			}
		}
	}
	return &usageError{fmt.Sprintf(
		"unknown command '%s': this port answers the commands of locks, which COMMAND LIST lists; see docs/redis.md",
		invisible.Line(name[:min(len(name), 64)]),
	)}
}

// execute carries one command out and writes its answer.
func (c *client) execute(args [][]byte) {
	var small [32]byte
	name := string(upper(small[:0], args[0]))
	began := len(c.w.b)
	if err := c.run(name, args[1:]); err != nil {
		c.w.b = c.w.b[:began]
		c.w.fail(errorLine(err))
	}
}

func (c *client) run(name string, args [][]byte) error {
	cmd := commands[name]
	if cmd == nil {
		if !c.admitted {
			if err := c.identify(); err != nil {
				return noAuth(err)
			}
		}
		return unknown(name)
	}
	if !cmd.takes(len(args)) {
		return &usageError{"wrong number of arguments for '" + strings.ToLower(name) + "' command"}
	}
	if !cmd.free {
		if err := c.identify(); err != nil {
			return noAuth(err)
		}
	}
	err := cmd.run(c, args)
	if !cmd.free && codeOf(err) == interlock.CodeUnauthenticated {
		c.over = true // the credential was withdrawn
	}
	return err
}

// upper appends the name of a command in capital letters.
func upper(b, name []byte) []byte {
	for _, x := range name {
		if x >= 'a' && x <= 'z' {
			x -= 'a' - 'A'
		}
		b = append(b, x)
	}
	return b
}

func (c *client) ok() error {
	c.w.simple("OK")
	return nil
}

var errSyntax = errors.New("syntax error")

// command is COMMAND: the list of commands, or its length.
func (c *client) command(args [][]byte) error {
	if len(args) > 0 {
		switch strings.ToUpper(string(args[0])) {
		case "COUNT":
			c.w.int(int64(len(commands)))
			return nil
		case "DOCS":
			c.w.pairs(0)
			return nil
		case "LIST":
		default:
			return &usageError{"unknown subcommand of COMMAND: want COUNT, DOCS or LIST"}
		}
	}
	names := make([]string, 0, len(commands))
	for name := range commands {
		names = append(names, strings.ToLower(name))
	}
	sort.Strings(names)
	c.w.array(len(names))
	for _, name := range names {
		if len(args) > 0 {
			c.w.bulk(name)
			continue
		}
		cmd := commands[strings.ToUpper(name)]
		arity, first, last := int64(cmd.least+1), int64(0), int64(0)
		if cmd.most != cmd.least {
			arity = -arity
		}
		if cmd.keys != 0 {
			first, last = 1, int64(cmd.keys)
		}
		c.w.array(6)
		c.w.bulk(name)
		c.w.int(arity)
		c.w.array(0)
		c.w.int(first)
		c.w.int(last)
		c.w.int(min(first, 1))
	}
	return nil
}
