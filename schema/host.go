package schema

import (
	"errors"
	"net/netip"
	"net/url"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

// Limits of a host name in bytes of its ASCII form, without the dot that may end it (RFC 1035, section 2.3.4).
const (
	MaxHostLen  = 253
	maxLabelLen = 63
)

// maxGivenHostLen bounds what ParseHost reads, because the cost of punycode grows with the square of a label. A
// character takes at most four bytes in UTF-8, and at least one byte in the ASCII form.
const maxGivenHostLen = 4 * (MaxHostLen + 1)

// Host is a host in canonical form, so that equal hosts are equal strings: a name in lower-case ASCII without the dot
// that may end it, or an IP address in its shortest form without brackets. ParseHost makes one. "" is not a host.
type Host string

// ParseHost returns the canonical form of a host as people, URLs and files write it, without a port.
//
//   - Names with characters outside ASCII are mapped by UTS #46, as browsers do (WHATWG URL Standard, "domain to
//     ASCII"). The dot that may end a name is dropped. A label has 1 to 63 letters, digits, hyphens and underscores in
//     any place: such names resolve, and links lead to them. A label that begins with "xn--" must be valid punycode. A
//     name has at most 253 characters. ValidDomain says which names this service can have.
//   - An IPv4 address has four decimal numbers. Clients read every name whose last label is a number as IPv4 (WHATWG
//     URL Standard, "ends in a number"), but not all agree on 0177.1 or 2130706433: these are errors.
//   - An IPv6 address may stand in brackets and has no zone. An address that embeds an IPv4 address becomes the IPv4
//     address: IPv4-mapped ::ffff:0:0/96, IPv4-compatible ::/96 (RFC 4291, section 2.5.5), NAT64's 64:ff9b::/96 (RFC
//     6052) and 64:ff9b:1::/48 with the address at the end (RFC 8215), and 6to4's 2002::/16 (RFC 3056).
func ParseHost(s string) (Host, error) {
	if len(s) > maxGivenHostLen {
		return "", errHostTooLong
	}
	if strings.Contains(s, ":") {
		return parseIPv6(s)
	}
	ascii, err := HostToASCII(s)
	if err != nil {
		return "", err
	}
	name := strings.ToLower(strings.TrimSuffix(ascii, "."))
	if err := checkLabels(name); err != nil {
		return "", err
	}
	if HostIsAddr(name) {
		addr, err := netip.ParseAddr(name)
		if err != nil {
			return "", errHostNumber
		}
		return Host(addr.String()), nil
	}
	if !validPunycode(name, lookup) {
		return "", errHostPunycode
	}
	return Host(name), nil
}

// lookup converts names as browsers do: a label may have a hyphen or an underscore anywhere.
var lookup = idna.New(idna.MapForLookup(), idna.BidiRule(), idna.StrictDomainName(false), idna.CheckHyphens(false))

var (
	errHostTooLong   = errors.New("the name is longer than 253 characters")
	errHostCharacter = errors.New("the name has characters that no host name may have")
	errHostLabel     = errors.New("a part of the name is empty or longer than 63 characters")
	errHostHyphen    = errors.New("a part of the name begins or ends with a hyphen, or is not valid punycode")
	errHostPunycode  = errors.New("a part of the name that begins with xn-- is not valid punycode")
	errHostNumber    = errors.New("an IPv4 address must have four decimal numbers")
	errHostIPv6      = errors.New("the IPv6 address is not valid")
)

func parseIPv6(s string) (Host, error) {
	if inner, found := strings.CutPrefix(s, "["); found {
		s, found = strings.CutSuffix(inner, "]")
		if !found {
			return "", errHostIPv6
		}
	}
	addr, err := netip.ParseAddr(s)
	if err != nil || addr.Zone() != "" {
		return "", errHostIPv6
	}
	return Host(unembed(addr).String()), nil
}

// embeddings are the prefixes of IPv6 addresses that embed an IPv4 address, except the prefix of IPv4-mapped addresses.
var embeddings = []struct {
	prefix netip.Prefix
	at     int // index of the first byte
}{
	{netip.MustParsePrefix("::/96"), 12},
	{netip.MustParsePrefix("64:ff9b::/96"), 12},
	{netip.MustParsePrefix("64:ff9b:1::/48"), 12},
	{netip.MustParsePrefix("2002::/16"), 2},
}

// unembed returns the IPv4 address that an IPv6 address stands for, addr itself if it stands for none.
func unembed(addr netip.Addr) netip.Addr {
	addr = addr.Unmap()
	if addr.IsUnspecified() || addr.IsLoopback() { // :: and ::1, which are in ::/96
		return addr
	}
	for _, e := range embeddings {
		if e.prefix.Contains(addr) {
			bytes := addr.As16()
			return netip.AddrFrom4([4]byte(bytes[e.at:]))
		}
	}
	return addr
}

// checkLabels reports what is wrong with the labels of a name in lower case.
func checkLabels[T string | []byte](name T) error {
	if len(name) > MaxHostLen {
		return errHostTooLong
	}
	start := 0
	for i := 0; i <= len(name); i++ {
		if i < len(name) && name[i] != '.' {
			if !hostChar[name[i]] {
				return errHostCharacter
			}
			continue
		}
		if i == start || i-start > maxLabelLen {
			return errHostLabel
		}
		start = i + 1
	}
	return nil
}

var hostChar = func() (set [256]bool) {
	for _, c := range []byte("abcdefghijklmnopqrstuvwxyz0123456789-_") {
		set[c] = true
	}
	return set
}()

const punycodePrefix = "xn--"

// validPunycode reports whether a profile could have made each label that claims to be punycode: no client could look
// up another one.
func validPunycode(name string, profile *idna.Profile) bool {
	if !strings.Contains(name, punycodePrefix) {
		return true
	}
	for label := range strings.SplitSeq(name, ".") {
		if !strings.HasPrefix(label, punycodePrefix) {
			continue
		}
		if ascii, err := profile.ToASCII(label); err != nil || ascii != label {
			return false
		}
	}
	return true
}

// HostToASCII converts a name to ASCII (UTS #46). It returns a name that is ASCII unchanged and unchecked. A dot at the
// end stays.
func HostToASCII(name string) (string, error) {
	if isASCII(name) {
		return name, nil
	}
	ascii, err := lookup.ToASCII(name)
	if err != nil || !utf8.ValidString(name) || strings.ContainsFunc(ascii, notInHost) {
		return "", errHostCharacter // or a character that would end the host: "／" becomes "/"
	}
	return ascii, nil
}

func notInHost(r rune) bool { return r >= utf8.RuneSelf || r != '.' && !hostChar[r] }

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// HostOfURL returns the host to which a URL leads.
func HostOfURL(rawURL string) (Host, error) {
	u, err := url.Parse(rawURL)
	if err != nil {
		return "", err
	}
	return ParseHost(u.Hostname())
}

// IsAddr reports whether the host is an IP address.
func (h Host) IsAddr() bool { return HostIsAddr(string(h)) }

// Addr returns the host as an IP address, the zero Addr if it is a name.
func (h Host) Addr() netip.Addr {
	if !h.IsAddr() {
		return netip.Addr{} // netip would allocate its error
	}
	addr, _ := netip.ParseAddr(string(h))
	return addr
}

// IsLocal reports whether the host leads a client to the machine that the client runs on: localhost and names below it
// (RFC 6761, section 6.3), a loopback address, or an address of "this network", which systems take for loopback (RFC
// 1122, section 3.2.1.3).
func (h Host) IsLocal() bool {
	if addr := h.Addr(); addr.IsValid() {
		return addr.IsLoopback() || addr.IsUnspecified() || addr.Is4() && addr.As4()[0] == 0
	}
	return h == localhost || strings.HasSuffix(string(h), "."+localhost)
}

const localhost = "localhost"

// Unicode returns the host in its owner's spelling, or "" if that equals the host. Show it only together with the ASCII
// form: letters of different scripts look the same.
func (h Host) Unicode() string {
	unicode, err := lookup.ToUnicode(string(h))
	if err != nil || unicode == string(h) {
		return ""
	}
	return unicode
}

// inURL returns the host as it stands in a URL: an IPv6 address in brackets.
func (h Host) inURL() string {
	if strings.Contains(string(h), ":") {
		return "[" + string(h) + "]"
	}
	return string(h)
}

// CutPort cuts the port off a host as it stands in a Host header or in a URL, without copying. An IPv6 address keeps
// its brackets. The port is the text behind the colon, or "".
func CutPort[T string | []byte](hostport T) (host, port T) {
	for i := len(hostport) - 1; i >= 0; i-- {
		switch hostport[i] {
		case ':':
			return hostport[:i], hostport[i+1:]
		case ']':
			return hostport, hostport[:0]
		}
	}
	return hostport, hostport[:0]
}

// ValidHostName reports whether name is the Host of a name that this service may have: canonical, not an address, and
// without a label that begins or ends with a hyphen (RFC 952, RFC 1123). It checks only the characters of punycode, and
// does not allocate. Other names need no look-up.
func ValidHostName[T string | []byte](name T) bool {
	if checkLabels(name) != nil || HostIsAddr(name) {
		return false
	}
	for i := range len(name) {
		if name[i] == '-' && (i == 0 || i == len(name)-1 || name[i-1] == '.' || name[i+1] == '.') {
			return false
		}
	}
	return true
}

// ValidDomain reports whether the host is a name that this service can have. Registries and certificate authorities are
// stricter than browsers: also punycode must follow the rules of ValidHostName (IDNA2008, RFC 5891, section 4.2.3).
func (h Host) ValidDomain() bool {
	return ValidHostName(string(h)) && validPunycode(string(h), idna.Lookup)
}

// HostIsAddr reports whether a client takes host, in lower case and without a port, for an IP address: it has a colon,
// as all IPv6 addresses have, or its last label is a number.
func HostIsAddr[T string | []byte](host T) bool {
	start := 0
	for i := range len(host) {
		switch host[i] {
		case ':':
			return true
		case '.':
			start = i + 1
		}
	}
	return isNumber(host[start:])
}

// isNumber reports whether a label is a decimal number, or a hexadecimal one, which begins with 0x.
func isNumber[T string | []byte](label T) bool {
	hex := len(label) >= 2 && label[0] == '0' && label[1] == 'x'
	if hex {
		label = label[2:] // browsers read 0x alone as 0
	}
	for i := range len(label) {
		c := label[i]
		if (c < '0' || c > '9') && !(hex && c >= 'a' && c <= 'f') {
			return false
		}
	}
	return hex || len(label) > 0
}
