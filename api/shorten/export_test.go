package shorten

import (
	"io"

	"linkstream/schema"
)

// CheckURL is checkURL, for the fuzz test.
func CheckURL(longURL string) (host, problem string) {
	to, problem := checkURL(longURL)
	return string(to.host), problem
}

// ParseHosts returns the hosts of a blocklist file, for the fuzz test.
func ParseHosts(file io.Reader) (hosts []string, err error) {
	_, err = parseHosts(file, func(host schema.Host) { hosts = append(hosts, string(host)) })
	return hosts, err
}

// Blocks reports whether the list covers a canonical host.
func Blocks(list *Blocklist, host string) bool { return list.blocks(schema.Host(host)) }
