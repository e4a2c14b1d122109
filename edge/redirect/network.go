package redirect

import "net/netip"

// appendNetwork appends what a click keeps of its client's address: the /24 of an IPv4 address, the /48 of an IPv6
// address, nothing of one that is not known.
func appendNetwork(dst []byte, client netip.Addr) []byte {
	switch {
	case !client.IsValid() || client.IsUnspecified():
		return dst
	case client.Is4():
		a := client.As4()
		return append(dst, a[:3]...)
	default:
		a := client.As16()
		return append(dst, a[:6]...)
	}
}
