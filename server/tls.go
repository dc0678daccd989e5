package server

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"os"
	"time"
)

// Certificate is a certificate and its key from two PEM files. It can be replaced without a restart: the files are read
// again at the next handshake some seconds after a change, or at once by Reload.
type Certificate struct{ fileWatch[*tls.Certificate] }

// LoadCertificate reads the files. Later changes that cannot be used are logged to
// logger (nil means slog.Default), and the earlier certificate stays in use.
func LoadCertificate(certFile, keyFile string, logger *slog.Logger) (*Certificate, error) {
	if logger == nil {
		logger = slog.Default()
	}
	c := &Certificate{fileWatch[*tls.Certificate]{
		what: "certificate", files: []string{certFile, keyFile}, now: time.Now,
		load: func() (*tls.Certificate, error) {
			cert, err := tls.LoadX509KeyPair(certFile, keyFile)
			if err != nil {
				return nil, fmt.Errorf("%s and %s: %w", certFile, keyFile, err)
			}
			if cert.Leaf, err = x509.ParseCertificate(cert.Certificate[0]); err != nil {
				return nil, fmt.Errorf("%s: %w", certFile, err)
			}
			return &cert, nil
		},
		refuse: func(inUse *tls.Certificate, err error) {
			logger.Warn(
				"the new certificate is invalid, the previous one stays in use", "error", err, "until", inUse.Leaf.NotAfter,
			)
		},
	}}
	return c, c.Reload()
}

// current returns the certificate for a handshake.
func (c *Certificate) current(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.latest(), nil }

// TLSConfig is for both APIs. TLS 1.2 is the oldest that is spoken.
func (c *Certificate) TLSConfig() *tls.Config {
	return &tls.Config{GetCertificate: c.current, MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}}
}

// Authorities are the certificates in a PEM file that sign those of other servers. They can be replaced without a
// restart: the file is read again at the next connection some seconds after a change, or at once by Reload. Connections
// that are open stay.
type Authorities struct{ fileWatch[*x509.CertPool] }

// LoadAuthorities reads the file. Later changes that cannot be used are logged, and the earlier authorities stay.
func LoadAuthorities(file string, logger *slog.Logger) (*Authorities, error) {
	a := &Authorities{fileWatch[*x509.CertPool]{
		what: "authorities of other servers", files: []string{file}, now: time.Now,
		load: func() (*x509.CertPool, error) {
			pem, err := os.ReadFile(file)
			if err != nil {
				return nil, err
			}
			pool := x509.NewCertPool()
			if !pool.AppendCertsFromPEM(pem) {
				return nil, fmt.Errorf("%s contains no certificate", file)
			}
			return pool, nil
		},
		refuse: func(_ *x509.CertPool, err error) {
			logger.Warn("the new authorities of other servers are invalid, the previous ones stay in use", "error", err)
		},
	}}
	return a, a.Reload()
}
