package server

import (
	"crypto/sha256"
	"strings"

	"github.com/interlockdev/interlock"
)

// Principal is who a caller proved to be.
type Principal struct {
	// Name is the credential's name. It goes into the journal as the actor. "" when
	// the server asks for no credentials.
	Name string
	// Namespace is the only one the caller may touch; "" means any.
	Namespace interlock.Namespace
	// Operator says that the caller may change what holds for its whole namespace:
	// key patterns and settings.
	Operator bool

	digest [sha256.Size]byte // of the credential; zero without one
}

// Authenticate finds out who sent bearer, the credential without the word
// "Bearer". A server without credentials takes everybody for an operator. The error is an
// *interlock.Error with CodeUnauthenticated.
func (s *Server) Authenticate(bearer string) (Principal, error) {
	if s.credentials == nil {
		return Principal{Operator: true}, nil
	}
	if p, ok := s.credentials.lookup(bearer); ok {
		return p, nil
	}
	message := "the credential is not known here: ask the operator for a new one, made by `interlock credential new`"
	if bearer == "" {
		message = "this server wants a credential: send the header Authorization: Bearer CREDENTIAL"
	}
	return Principal{}, &interlock.Error{Code: interlock.CodeUnauthenticated, Message: message}
}

// Resolve says which namespace a call means that asked for requested, or for none
// with "". The error is an *interlock.Error with CodeForbidden or
// CodeInvalidNamespace.
func (p Principal) Resolve(requested string) (interlock.Namespace, error) {
	switch {
	case requested == "" && p.Namespace != "":
		return p.Namespace, nil
	case requested == "":
		return interlock.DefaultNamespace, nil
	case p.Namespace != "" && interlock.Namespace(requested) != p.Namespace:
		return "", &interlock.Error{
			Code:    interlock.CodeForbidden,
			Message: "this credential is for another namespace than the one asked for: leave the header out, or use the credential of that namespace",
		}
	}
	if !validNamespace(requested) {
		return "", &interlock.Error{
			Code:    interlock.CodeInvalidNamespace,
			Message: "a namespace has 1 to 128 visible ASCII characters other than '/'",
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
