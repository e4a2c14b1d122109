package blocklist

import (
	"io"

	"linkstream/schema"
)

// ParseHosts returns the hosts in a blocklist file, for the fuzz test.
func ParseHosts(file io.Reader) (hosts []string, err error) {
	_, err = parseHosts(file, func(host schema.Host) { hosts = append(hosts, string(host)) })
	return hosts, err
}
