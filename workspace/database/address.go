package database

import (
	"net"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// address is where a database of PostgreSQL is, as its caller wrote it.
type address struct {
	config *pgconn.Config
	// words are the parameters that were written, without database and password. What comes from PGHOST and its like
	// is in config alone, and the clone's user has the same environment.
	words url.Values
}

// parseAddress reads a URL or key=value words. Errors have no password.
func parseAddress(source string) (*address, error) {
	bad := func(why string) error {
		return refuse(
			CodeSource, "use postgres://USER@HOST/NAME or sqlite:PATH", "the address of the database cannot be read: %s", why,
		)
	}
	config, err := pgconn.ParseConfig(source)
	if err != nil {
		return nil, bad("it is not one of PostgreSQL") // the error of pgconn quotes the address
	}
	if config.Database == "" {
		config.Database = config.User
	}
	a := &address{config: config, words: url.Values{}}
	if strings.HasPrefix(source, "postgres://") || strings.HasPrefix(source, "postgresql://") {
		u, err := url.Parse(source)
		if err != nil {
			return nil, bad("it is not a URL")
		}
		a.words = u.Query()
		if u.User != nil {
			a.words.Set("user", u.User.Username())
		}
		if u.Hostname() != "" || u.Port() != "" {
			hosts, ports := splitHosts(u.Host)
			a.words.Set("host", hosts)
			if strings.Trim(ports, ",") != "" {
				a.words.Set("port", ports)
			}
		}
	} else if a.words, err = keywords(source); err != nil {
		return nil, bad(err.Error())
	}
	for _, word := range []string{"password", "dbname"} {
		a.words.Del(word)
	}
	return a, nil
}

func splitHosts(list string) (hosts, ports string) {
	var h, p []string
	for one := range strings.SplitSeq(list, ",") {
		host, port, err := net.SplitHostPort(one)
		if err != nil {
			host, port = strings.Trim(one, "[]"), ""
		}
		h, p = append(h, host), append(p, port)
	}
	return strings.Join(h, ","), strings.Join(p, ",")
}

// keywords reads words of the form key = 'value', with backslashes, as libpq does. pgconn has accepted them.
func keywords(text string) (url.Values, error) {
	words := url.Values{}
	for text = strings.TrimSpace(text); text != ""; text = strings.TrimSpace(text) {
		key, rest, ok := strings.Cut(text, "=")
		if !ok {
			return nil, refuse(CodeSource, "", "a word has no value")
		}
		rest = strings.TrimLeft(rest, " \t\n")
		var value strings.Builder
		quoted := strings.HasPrefix(rest, "'")
		if quoted {
			rest = rest[1:]
		}
		i := 0
		for ; i < len(rest); i++ {
			if c := rest[i]; c == '\\' && i+1 < len(rest) {
				i++
			} else if quoted && c == '\'' || !quoted && strings.IndexByte(" \t\n", c) >= 0 {
				break
			}
			value.WriteByte(rest[i])
		}
		words.Set(strings.TrimSpace(key), value.String())
		text = rest[min(len(rest), i+1):]
	}
	return words, nil
}

// url returns the address of a database of the same server.
func (a *address) url(database, host string, password bool) string {
	words := url.Values{}
	for key, values := range a.words {
		words[key] = values
	}
	if host != "" {
		words.Set("host", host)
		words.Set("port", strconv.Itoa(int(a.config.Port)))
	}
	if password && a.config.Password != "" {
		words.Set("password", a.config.Password)
	}
	// A slash may stay as it is in a query, and a person reads it better. A plus sign is no space to libpq.
	query := strings.NewReplacer("%2F", "/", "+", "%20").Replace(words.Encode())
	return "postgres:///" + url.PathEscape(database) + "?" + query
}

// environ returns the variables for a database of the same server.
func (a *address) environ(database, host string) ([]string, error) {
	env := []string{"DATABASE_URL=" + a.url(database, host, true), "PGDATABASE=" + database}
	if a.config.User != "" {
		env = append(env, "PGUSER="+a.config.User)
	}
	if a.config.Password != "" {
		env = append(env, "PGPASSWORD="+a.config.Password)
	}
	if len(a.config.Fallbacks) == 0 || host != "" {
		if host == "" {
			host = a.config.Host
		}
		env = append(env, "PGHOST="+host, "PGPORT="+strconv.Itoa(int(a.config.Port)))
	}
	slices.Sort(env)
	return env, nil
}

// Endpoint returns where the server of a source is: "tcp" with host:port, or "unix" with the path of a socket. It is
// the first of several. SQLite has none.
func Endpoint(source string) (network, endpoint string, err error) {
	if _, ok := sqlitePath(source); ok {
		return "", "", nil
	}
	a, err := parseAddress(source)
	if err != nil {
		return "", "", err
	}
	port := strconv.Itoa(int(a.config.Port))
	if strings.HasPrefix(a.config.Host, "/") {
		return "unix", path.Join(a.config.Host, ".s.PGSQL."+port), nil
	}
	return "tcp", net.JoinHostPort(a.config.Host, port), nil
}
