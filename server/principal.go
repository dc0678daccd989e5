package server

import (
	"crypto/sha256"
	"slices"
	"strings"

	"github.com/interlockdev/interlock"
)

// Identity is the proven identity of a caller.
type Identity struct {
	// Principal is the caller; nil when the server asks for no credentials.
	Principal *interlock.Principal
	// Namespace is the only one the caller may touch; "" means any.
	Namespace interlock.Namespace

	digest [sha256.Size]byte // of the credential; zero without one
}

// name returns the credential's name, which the journal keeps as the actor; "" without
// credentials.
func (id *Identity) name() string {
	if id.Principal == nil {
		return ""
	}
	return id.Principal.Name
}

// equal reports whether two identities have one name, namespace and the same rights.
func (id *Identity) equal(other *Identity) bool {
	return id.Namespace == other.Namespace && sameRights(id.Principal, other.Principal)
}

// sameRights reports whether two principals have one name and the same rights.
func sameRights(p, o *interlock.Principal) bool {
	if p == nil || o == nil {
		return p == o
	}
	return p.Name == o.Name && p.Roles == o.Roles && slices.Equal(p.Queues, o.Queues) && slices.Equal(p.Groups, o.Groups)
}

// Authenticate returns the identity that bearer proves, the credential without the word
// "Bearer". A server without credentials lets everyone do everything. The error is an
// *interlock.Error with CodeUnauthenticated.
func (s *Server) Authenticate(bearer string) (Identity, error) {
	if s.credentials == nil {
		return Identity{}, nil
	}
	if p, ok := s.credentials.lookup(bearer); ok {
		return p, nil
	}
	message := "unknown credential: ask the operator for a new one, made by `interlock credential create`"
	if bearer == "" {
		message = "this server requires a credential"
	}
	return Identity{}, &interlock.Error{Code: interlock.CodeUnauthenticated, Message: message}
}

// Resolve returns the namespace of a call that asked for requested, or for none with "". The error
// is an *interlock.Error with CodeForbidden or CodeInvalidNamespace.
func (id *Identity) Resolve(requested string) (interlock.Namespace, error) {
	switch {
	case requested == "" && id.Namespace != "":
		return id.Namespace, nil
	case requested == "":
		return interlock.DefaultNamespace, nil
	case id.Namespace != "" && interlock.Namespace(requested) != id.Namespace:
		return "", &interlock.Error{
			Code: interlock.CodeForbidden,
			Message: "this credential is for another namespace: omit the header Interlock-Namespace, or use a credential of " +
				"that namespace",
		}
	}
	if !validNamespace(requested) {
		return "", &interlock.Error{
			Code:    interlock.CodeInvalidNamespace,
			Message: "a namespace must have 1 to 128 visible ASCII characters other than '/'",
		}
	}
	return interlock.Namespace(requested), nil
}

// bearerOf takes the credential out of an Authorization value.
func bearerOf(authorization string) string {
	scheme, rest, _ := strings.Cut(authorization, " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(rest)
}
