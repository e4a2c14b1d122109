package customdomain

import (
	"strings"

	"linkstream/schema"
)

// MaxHostLen is the maximum length of a custom domain: the name of its TXT record, which is longer, must be a host
// name, too.
const MaxHostLen = schema.MaxHostLen - len(txtPrefix)

// ParseHost returns the canonical form of a host that can be a custom domain. CodeInvalid for anything else: an IP
// address, a name of one label, a name with an underscore or with a hyphen at an end of a label, or one longer than
// MaxHostLen.
func ParseHost(s string) (string, error) {
	host, err := schema.ParseHost(s)
	if err != nil || !host.ValidDomain() || !strings.Contains(string(host), ".") || strings.Contains(string(host), "_") ||
		len(host) > MaxHostLen {
		return "", schema.Errorf(schema.CodeInvalid, "%q is not a hostname like go.example.com",
			s[:min(len(s), 2*MaxHostLen)])
	}
	return string(host), nil
}
