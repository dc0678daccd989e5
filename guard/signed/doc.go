// Package signed makes signed fences and checks them: short-lived statements that a lease holds
// a key, which the guard of a resource can verify without asking the server.
//
// A statement is a compact JWS (RFC 7515) with an Ed25519 signature (RFC 8037), and
// its payload is a JSON Web Token (RFC 7519):
//
//	BASE64URL(header) . BASE64URL(payload) . BASE64URL(signature)
//
//	header   {"alg":"EdDSA","kid":"<RFC 7638 thumbprint>","typ":"interlock-fence+jwt"}
//	payload  {"iss":"interlock","ns":"acme",
//	          "claims":[{"key":"account:12345","mode":"exclusive"}],
//	          "fence":"17",                                        decimal, below 2^64
//	          "holder":{"agent":"billing-7","session":"swift-otter-3f2a","flow":"main"},
//	          "iat":1790000000.25,"exp":1790000030.25}             seconds since 1970
//
// A statement proves that at iat the fence was that of a live lease. It does not prove that no
// other holder has got the key since: a resource must also remember the highest fence that it
// has seen of each key, and refuse a lower one. With that, a late writer is refused by the
// resource as soon as the next holder has written once; without it, at exp.
//
// The package must never accept what it does not fully understand: one algorithm, one
// type, one form of header. The private keys must never leave [Ring] and its file.
//
// Start reading at statement.go, then verify.go and ring.go.
package signed
