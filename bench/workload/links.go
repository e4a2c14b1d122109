// Package workload generates the links of a run, the visits to them, and a history of clicks.
package workload

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
)

// MaxLinks is the largest number of links in one run.
const MaxLinks = 10_000_000

const (
	hashDigits = 5 // base 36: enough for 60 million links
	urlStart   = "https://www.example.com/articles/2026/november/"
	urlEnd     = "?utm_source=newsletter&utm_medium=email&utm_campaign=autumn"
)

// BareURL is where bare servers redirect to. It is as long as the URL of each link.
const BareURL = urlStart + "00000" + urlEnd

// Links is the links of a run, numbered from 0 to Count-1. Hashes and URLs are computed from the number, so that ten
// million links need no memory.
type Links struct {
	Count  int
	prefix string // of each hash, different in each run
}

// NewLinks returns links whose hashes have a new random prefix.
func NewLinks(count int) Links {
	return Links{Count: count, prefix: fmt.Sprintf("b%04x", rand.IntN(1<<16))}
}

// Hash returns the hash of a link.
func (l Links) Hash(link int) string { return string(l.AppendHash(nil, link)) }

// URL returns the destination of a link.
func (l Links) URL(link int) string { return string(l.AppendURL(nil, link)) }

// AppendHash appends the hash of a link to dst.
func (l Links) AppendHash(dst []byte, link int) []byte {
	return appendNumber(append(dst, l.prefix...), link)
}

// AppendURL appends the destination of a link to dst.
func (l Links) AppendURL(dst []byte, link int) []byte {
	return append(appendNumber(append(dst, urlStart...), link), urlEnd...)
}

// Index returns the link with the given hash. It returns false if none of the links has it.
func (l Links) Index(hash string) (link int, ok bool) {
	digits, ours := strings.CutPrefix(hash, l.prefix)
	n, err := strconv.ParseUint(digits, 36, 32)
	return int(n), ours && err == nil && len(digits) == hashDigits && int(n) < l.Count
}

// UniqueURL returns a URL that differs for each n.
func UniqueURL(n int64) string { return fmt.Sprintf("%s%d%s", urlStart, n, urlEnd) }

// appendNumber appends a number in base 36, with leading zeros.
func appendNumber(dst []byte, n int) []byte {
	dst = append(dst, "00000"...)
	for i := len(dst) - 1; n > 0; i-- {
		dst[i] = "0123456789abcdefghijklmnopqrstuvwxyz"[n%36]
		n /= 36
	}
	return dst
}
