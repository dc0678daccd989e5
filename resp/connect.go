package resp

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/internal/invisible"
)

// hello is HELLO [version [AUTH user password] [SETNAME name]].
func (c *client) hello(args [][]byte) error {
	version := c.w.version
	if len(args) > 0 {
		v, err := strconv.Atoi(string(args[0]))
		if err != nil || v != 2 && v != 3 {
			return errNoProto
		}
		version, args = v, args[1:]
	}
	for len(args) > 0 {
		switch option := strings.ToUpper(string(args[0])); {
		case option == "AUTH" && len(args) > 2:
			if err := c.login(string(args[1]), string(args[2])); err != nil {
				return err
			}
			args = args[3:]
		case option == "SETNAME" && len(args) > 1:
			if err := c.setName(string(args[1])); err != nil {
				return err
			}
			args = args[2:]
		default:
			return errSyntax
		}
	}
	if c.caller == nil {
		if err := noAuth(c.identify()); err == error(errNoAuth) {
			return err
		}
	}
	c.w.version = version
	c.w.pairs(7)
	c.w.bulk("server")
	c.w.bulk("interlock")
	c.w.bulk("version")
	c.w.bulk(redisVersion)
	c.w.bulk("proto")
	c.w.int(int64(version))
	c.w.bulk("id")
	c.w.int(c.id)
	c.w.bulk("mode")
	c.w.bulk("standalone")
	c.w.bulk("role")
	c.w.bulk("master")
	c.w.bulk("modules")
	c.w.array(0)
	return nil
}

// redisVersion is the version of Redis with the meanings of the commands that are answered.
const redisVersion = "7.2.0"

// auth is AUTH [user] credential.
func (c *client) auth(args [][]byte) error {
	user := ""
	if len(args) == 2 {
		user = string(args[0])
	}
	if err := c.login(user, string(args[len(args)-1])); err != nil {
		return err
	}
	return c.ok()
}

// login takes a credential. The user is the agent's name, or namespace/name for a credential that may
// enter several namespaces; "default" is no name.
func (c *client) login(user, credential string) error {
	namespace, name, both := strings.Cut(user, "/")
	if !both {
		namespace, name = "", user
	}
	if name == "default" {
		name = ""
	}
	if len(name) > interlock.MaxNameBytes {
		return &usageError{fmt.Sprintf("the user name has more than %d bytes", interlock.MaxNameBytes)}
	}
	caller, err := c.door.cfg.API().Caller(credential, namespace)
	if err != nil {
		return err
	}
	c.forget()
	c.user, c.bearer, c.namespace, c.caller, c.shown = name, credential, namespace, caller, ""
	return c.identify()
}

// forget ends what the present caller is known by.
func (c *client) forget() {
	c.count(-c.held)
	c.caller = nil
}

func (c *client) ping(args [][]byte) error {
	if len(args) == 1 {
		c.w.bulk(string(args[0]))
	} else {
		c.w.simple("PONG")
	}
	return nil
}

// choose is SELECT. There is one database; namespaces are chosen by the user's name.
func (c *client) choose(args [][]byte) error {
	if string(args[0]) == "0" && !c.door.cfg.Test {
		return c.ok()
	}
	if c.door.cfg.Test {
		return c.chooseForTest(string(args[0]))
	}
	return &usageError{"DB index is out of range: there is only 0; a namespace is chosen with the user NAMESPACE/NAME"}
}

func (c *client) reset(_ [][]byte) error {
	c.forget()
	c.user, c.bearer, c.namespace, c.name, c.shown, c.admitted = "", "", "", "", "", false
	c.w.version = 2
	c.w.simple("RESET")
	return nil
}

// client is CLIENT with those of its words that libraries send.
func (c *client) client(args [][]byte) error {
	switch word := strings.ToUpper(string(args[0])); {
	case word == "ID" && len(args) == 1:
		c.w.int(c.id)
		return nil
	case word == "GETNAME" && len(args) == 1:
		if c.name == "" {
			c.w.null()
		} else {
			c.w.bulk(c.name)
		}
		return nil
	case word == "SETNAME" && len(args) == 2:
		if err := c.setName(string(args[1])); err != nil {
			return err
		}
		return c.ok()
	case word == "FORWARDED" && len(args) == 2:
		if len(args[1]) > interlock.MaxNameBytes {
			return &usageError{"CLIENT FORWARDED takes an address"}
		}
		c.forwarded, c.from, c.shown = true, string(args[1]), ""
		return c.ok()
	case word == "SETINFO" && len(args) == 3:
		value := string(args[2])
		if strings.ContainsAny(value, " \r\n") || len(value) > interlock.MaxNameBytes {
			return &usageError{"CLIENT SETINFO takes short values without blanks"}
		}
		switch strings.ToUpper(string(args[1])) {
		case "LIB-NAME":
			c.library, c.shown = value, ""
		case "LIB-VER":
			c.libraryVersion = value
		default:
			return &usageError{"CLIENT SETINFO knows LIB-NAME and LIB-VER"}
		}
		return c.ok()
	case word == "INFO" && len(args) == 1:
		c.w.bulk(fmt.Sprintf(
			"id=%d addr=%s name=%s db=0 resp=%d lib-name=%s lib-ver=%s user=%s\n",
			c.id, c.raw.RemoteAddr(), c.name, c.w.version, c.library, c.libraryVersion, invisible.Line(c.user),
		))
		return nil
	case (word == "NO-EVICT" || word == "NO-TOUCH") && len(args) == 2:
		return c.ok()
	case word == "TRACKING" && len(args) == 3 && strings.EqualFold(string(args[2]), "OPTIN"):
		return c.ok() // nothing is tracked before CLIENT CACHING, which is refused
	case word == "TRACKING" || word == "CACHING":
		return &usageError{
			"interlock sends no invalidations: ask again with SET NX, or wait in line with interlock run KEY -- COMMAND",
		}
	}
	return &usageError{"unknown subcommand of CLIENT: want ID, INFO, GETNAME, SETNAME or SETINFO"}
}

func (c *client) setName(name string) error {
	if strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r > '~' }) || len(name) > interlock.MaxNameBytes {
		return &usageError{fmt.Sprintf(
			"a client's name has at most %d visible ASCII characters, and no blanks", interlock.MaxNameBytes,
		)}
	}
	c.name, c.shown = name, ""
	return nil
}

// info is INFO, with what libraries look for.
func (c *client) info(_ [][]byte) error {
	version := c.door.cfg.Version
	c.w.bulk("# Server\r\nredis_version:" + redisVersion + "\r\nredis_mode:standalone\r\narch_bits:64\r\n" +
		"interlock_version:" + version + "\r\nuptime_in_seconds:" +
		strconv.FormatInt(int64(time.Since(c.door.started)/time.Second), 10) +
		"\r\n\r\n# Persistence\r\nloading:0\r\n\r\n# Replication\r\nrole:master\r\nconnected_slaves:0\r\n\r\n" +
		"# Cluster\r\ncluster_enabled:0\r\n")
	return nil
}
