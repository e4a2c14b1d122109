package main

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
)

// linkSet is the links of a run, 0 to count-1. Hashes and URLs follow from the number, so that ten million of them need
// no memory here.
type linkSet struct {
	prefix string // of each hash, of this run alone
	count  int
}

const (
	hashDigits = 5 // base 36 holds 60 million links
	urlStart   = "https://www.example.com/articles/2026/november/"
	urlEnd     = "?utm_source=newsletter&utm_medium=email&utm_campaign=autumn"
)

// someURL is as long as the URL of each link.
const someURL = urlStart + "00000" + urlEnd

func newLinkSet(count int) linkSet {
	return linkSet{prefix: fmt.Sprintf("b%04x", rand.IntN(1<<16)), count: count}
}

func (l linkSet) appendHash(dst []byte, link int) []byte {
	return appendNumber(append(dst, l.prefix...), link)
}

func (l linkSet) appendURL(dst []byte, link int) []byte {
	return append(appendNumber(append(dst, urlStart...), link), urlEnd...)
}

func (l linkSet) hash(link int) string { return string(l.appendHash(nil, link)) }
func (l linkSet) url(link int) string  { return string(l.appendURL(nil, link)) }

// link is the inverse of hash; false for a hash that is none of these.
func (l linkSet) link(hash string) (int, bool) {
	digits, ours := strings.CutPrefix(hash, l.prefix)
	n, err := strconv.ParseUint(digits, 36, 32)
	return int(n), ours && err == nil && len(digits) == hashDigits && int(n) < l.count
}

// appendNumber appends a number in base 36 with leading zeros.
func appendNumber(dst []byte, n int) []byte {
	dst = append(dst, "00000"...)
	for i := len(dst) - 1; n > 0; i-- {
		dst[i] = "0123456789abcdefghijklmnopqrstuvwxyz"[n%36]
		n /= 36
	}
	return dst
}
