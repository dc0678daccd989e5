package server

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// Certificate is a certificate and its key from two PEM files. It is read again
// when a file changed, so that it can be replaced without a restart: at the next
// handshake after checkEvery has passed, or at once by Reload.
type Certificate struct {
	certFile, keyFile string
	log               *slog.Logger
	now               func() time.Time

	mu      sync.Mutex
	cert    *tls.Certificate
	stamp   [2]fileStamp
	checked time.Time
}

// fileStamp tells whether a file is another than before.
type fileStamp struct {
	modified time.Time
	size     int64
}

// checkEvery bounds how often handshakes look at the files.
const checkEvery = 10 * time.Second

// LoadCertificate reads the files. Later changes that cannot be used are logged to
// logger (nil means slog.Default), and the earlier certificate stays in use.
func LoadCertificate(certFile, keyFile string, logger *slog.Logger) (*Certificate, error) {
	if logger == nil {
		logger = slog.Default()
	}
	c := &Certificate{certFile: certFile, keyFile: keyFile, log: logger, now: time.Now}
	return c, c.Reload()
}

// Reload reads the files at once.
func (c *Certificate) Reload() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.reload()
}

func (c *Certificate) reload() error {
	// The stamps are taken first: what changes while it is read is read again.
	stamp, err := c.stamps()
	if err != nil {
		return fmt.Errorf("certificate: %w", err)
	}
	cert, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err != nil {
		return fmt.Errorf("certificate: %s and %s: %w", c.certFile, c.keyFile, err)
	}
	if cert.Leaf, err = x509.ParseCertificate(cert.Certificate[0]); err != nil {
		return fmt.Errorf("certificate: %s: %w", c.certFile, err)
	}
	c.cert, c.stamp, c.checked = &cert, stamp, c.now()
	return nil
}

func (c *Certificate) stamps() (stamp [2]fileStamp, err error) {
	for i, name := range [2]string{c.certFile, c.keyFile} {
		info, err := os.Stat(name)
		if err != nil {
			return stamp, err
		}
		stamp[i] = fileStamp{info.ModTime(), info.Size()}
	}
	return stamp, nil
}

// current returns the certificate, read anew if a file changed.
func (c *Certificate) current(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := c.now(); now.Sub(c.checked) >= checkEvery {
		c.checked = now
		stamp, err := c.stamps()
		if err == nil && stamp != c.stamp {
			err = c.reload()
		}
		if err != nil {
			c.log.Warn("the new certificate is invalid, the previous one "+
				"stays in use", "error", err, "until", c.cert.Leaf.NotAfter)
		}
	}
	return c.cert, nil
}

// TLSConfig is for both APIs. TLS 1.2 is the oldest that is spoken.
func (c *Certificate) TLSConfig() *tls.Config {
	return &tls.Config{GetCertificate: c.current, MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}}
}
