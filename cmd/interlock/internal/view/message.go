package view

import (
	"net/url"

	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
)

// MailboxPath returns the path of a key's mailbox.
func MailboxPath(key string) string { return cli.ResourcePath("mailbox", key) }

// WriterPath returns the path of the writer of a key pattern.
func WriterPath(pattern string) string { return "/v1/writers/" + url.PathEscape(pattern) }
